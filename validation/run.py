"""Run every validation script and write down published values beside ours.

    python validation/run.py [--full] [paper_000 …]

A script is a file of validation/paper_*/ or validation/warranty/ with a function
run(full: bool = False) -> dict. It writes its own results; this program collects them in
validation/README.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAPERS = {
    "warranty": "Statistical warranty: how often each audit is wrong where the truth is known",
    "paper_000": "Cherian and Candès, Statistical inference for fairness auditing",
    "paper_001": "Feng et al., Is this model reliable for everyone? Testing for strong calibration",
    "paper_002": "Xue, Yurochkin and Sun, Auditing ML models for individual bias and unfairness",
    "paper_003": "Empirical likelihood for fairness auditing",
    "paper_004": "Disparity summaries (meta-metrics) and their bias",
}


def main() -> int:
    """Run what was asked for; the exit code says whether everything agrees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="as many replicates as published")
    parser.add_argument("papers", nargs="*", help="folders to run; all if none is named")
    asked = parser.parse_args()
    for script in scripts(asked.papers):
        started = time.process_time()
        result = load(script).run(asked.full)
        spent = time.process_time() - started
        print(f"{script.parent.name}/{script.stem}: {said(result)} ({spent:.0f} s)", flush=True)
    (HERE / "README.md").write_text(page(), encoding="utf-8")
    return 0 if all(agrees(result) for _, result in stored()) else 1


def scripts(papers: list[str]) -> list[Path]:
    """The files that define run()."""
    found = [path for folder in PAPERS for path in sorted((HERE / folder).glob("*.py"))]
    wanted = [path for path in found if not papers or path.parent.name in papers]
    return [path for path in wanted if "\ndef run(" in path.read_text(encoding="utf-8")]


def load(script: Path) -> Any:
    """The script as a module of its own, with its folder first on the path."""
    sys.path.insert(0, str(script.parent))
    try:
        name = f"validation_{script.parent.name}_{script.stem}"
        spec = importlib.util.spec_from_file_location(name, script)
        if spec is None or spec.loader is None:
            raise ImportError(f"{script} cannot be loaded")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(script.parent))


def stored() -> list[tuple[Path, dict[str, Any]]]:
    """Every result that has been written."""
    found = [p for folder in PAPERS for p in sorted((HERE / folder).glob("results/*.json"))]
    return [(path, json.loads(path.read_text(encoding="utf-8"))) for path in found]


def agrees(result: dict[str, Any]) -> bool:
    """Whether everything that can be judged agrees."""
    return bool(result.get("agrees", True))


def said(result: dict[str, Any]) -> str:
    """The verdict in one word."""
    return "agrees" if agrees(result) else "DIFFERS"


def page() -> str:
    """The page of all results."""
    lines = [
        "# Published values beside ours",
        "",
        "Written by `make validate` (quick) or `make validate-full` (as many replicates as",
        "published). *agrees* compares the default method with what the table claims, allowing for",
        "Monte-Carlo error; a dash marks figures shown for comparison only.",
    ]
    paper = ""
    for path, result in stored():
        if path.parent.parent.name != paper:
            paper = path.parent.parent.name
            lines += ["", f"## {PAPERS.get(paper, paper)}"]
        lines += ["", f"### {result.get('source', path.stem)}: {said(result)}", ""]
        lines += table(result)
        for path in result.get("pictures", []):
            lines += ["", f"![{result.get('source', path)}]({path})"]
    return "\n".join(lines) + "\n"


def table(result: dict[str, Any]) -> list[str]:
    """The rows of one result as a table."""
    rows = [row for row in result.get("rows", []) if isinstance(row, dict)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        return ["no table"]
    return [
        f"| {' | '.join(name.replace('_', ' ') for name in names)} |",
        f"|{'---|' * len(names)}",
        *(f"| {' | '.join(cell(row.get(name)) for name in names)} |" for row in rows),
    ]


def cell(value: Any) -> str:
    """One value of a table."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(cell(item) for item in value) or "–"
    return str(value).replace("|", "/")


if __name__ == "__main__":
    raise SystemExit(main())
