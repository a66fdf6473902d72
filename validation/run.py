"""Run every validation script and write down published values beside ours.

    python validation/run.py [--full] [paper_000 …]
    python validation/run.py --page

A script is a file of validation/paper_*/, inference/, shift/, monitoring/ or warranty/ with
a function run(full: bool = False) -> dict. It writes its own results;
this program collects them in validation/README.md, and fills the measured parts of the front page
and the documentation.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from validation.published import ITEMS, Item, beside
from validation.warranty.promises import PROMISES

from tools import front_page

HERE = Path(__file__).parent
WARRANTY = "Statistical warranty: how often each audit is wrong where the truth is known"
INFERENCE = "The inference core: what was asked of it before it became the default"
MONITORING = (
    "Monitoring: how rarely alarms are false, however often one looks, and how soon they come"
)
SHIFT = "Shifts and tilts: bounds that hold for a whole class at once"
WORST = 10
"""Random designs that are shown, worst first."""
PAPERS = {
    "paper_000": "Cherian and Candès, Statistical inference for fairness auditing",
    "paper_001": "Feng et al., Is this model reliable for everyone? Testing for strong calibration",
    "paper_002": "Xue, Yurochkin and Sun, Auditing ML models for individual bias and unfairness",
    "paper_003": "Empirical likelihood for fairness auditing",
    "paper_004": "Lum, Zhang and Bower, De-biasing “bias” measurement",
}


def main() -> int:
    """Run what was asked for; the exit code says whether everything agrees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="as many replicates as published")
    parser.add_argument("--page", action="store_true", help="write the pages, measure nothing")
    parser.add_argument("papers", nargs="*", help="folders to run; all if none is named")
    asked = parser.parse_args()
    for script in [] if asked.page else scripts(asked.papers):
        started = time.process_time()
        result = load(script).run(asked.full)
        spent = time.process_time() - started
        print(f"{script.parent.name}/{script.stem}: {said(result)} ({spent:.0f} s)", flush=True)
    (HERE / "README.md").write_text(page(), encoding="utf-8")
    front_page.write()
    results = [*stored(), *stored(["inference", "shift", "monitoring", "warranty"])]
    return 0 if all(agrees(result) for _, result in results) else 1


def scripts(papers: list[str]) -> list[Path]:
    """The files that define run()."""
    folders = ("inference", "shift", "monitoring", "warranty", *PAPERS)
    found = [path for folder in folders for path in sorted((HERE / folder).glob("*.py"))]
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
        # processes that a script starts look for it by name
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(script.parent))


def stored(folders: Iterable[str] = PAPERS) -> list[tuple[Path, dict[str, Any]]]:
    """Every result that has been written, those of the papers unless told."""
    found = [p for folder in folders for p in sorted((HERE / folder).glob("results/*.json"))]
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
        "published). First every table and figure of the five papers with a verdict, then the",
        "[statistical warranty](#warranty), then what the [inference core](#inference) and the",
        "[audits of shifts](#shift) and [monitoring](#monitoring) were put through, then every",
        "value. *agrees* compares the default method with what is claimed, allowing for",
        "Monte-Carlo error; a dash marks figures shown for comparison only.",
        "Corrections of the papers are derived in [the errata](../docs/explanation/errata.md).",
        "",
        "## Every table and figure",
        "",
        *verdicts(),
        "",
        f'## <a id="warranty"></a>{WARRANTY}',
        "",
        *warranty(),
        "",
        f'## <a id="inference"></a>{INFERENCE}',
        *inference(),
        "",
        f'## <a id="shift"></a>{SHIFT}',
        *shifts(),
        "",
        f'## <a id="monitoring"></a>{MONITORING}',
        *monitoring(),
    ]
    paper = ""
    for path, result in stored():
        if path.parent.parent.name != paper:
            paper = path.parent.parent.name
            lines += ["", f"## {PAPERS[paper]}"]
        lines += ["", heading(path, result), "", *table(result["rows"])]
        for picture in result.get("pictures", []):
            lines += ["", f"![{result['source']}]({picture})"]
    return "\n".join(lines) + "\n"


def heading(path: Path, result: dict[str, Any]) -> str:
    """The title of one result, with a place to point at and what it was made by."""
    paper, name = path.parent.parent.name, path.stem
    runs = result.get("note") or ("every replicate" if result.get("full") else "quick run")
    place = f'<a id="{paper}-{name}"></a>'
    script = f"[{paper}/{name}.py]({paper}/{name}.py)"
    return f"### {place}{result['source']}: {said(result)}\n\nBy {script}, {runs}."


def verdicts() -> list[str]:
    """One line for each table and figure."""
    results = {(path.parent.parent.name, path.stem): result for path, result in stored()}
    lines = []
    for paper, title in PAPERS.items():
        lines += [f"**{title}**", "", "| what | shows | published beside ours | verdict |"]
        lines += ["|---|---|---|---|"]
        lines += [line(item, results) for item in ITEMS if item.paper == paper] + [""]
    return lines[:-1]


def line(item: Item, results: dict[tuple[str, str], dict[str, Any]]) -> str:
    """A table or figure, how many of its values are met, and the verdict."""
    if item.result is None:
        return f"| {item.name} | {item.shows} | – | {item.verdict(agrees=False)} |"
    result = results[item.paper, item.result]
    link = f"[{beside(item, result)}](#{item.paper}-{item.result})"
    return f"| {item.name} | {item.shows} | {link} | {item.verdict(agrees(result))} |"


def warranty() -> list[str]:
    """The warranty: what is promised and what was counted."""
    ((_, result),) = stored(["warranty"])
    sure = f"{100 * result['confidence']:.0f} %"
    broken = [row["audit"] for row in result["rows"] if not row["agrees"]]
    done = {row["audit"] for row in result["rows"]}
    open_ = [f"`{one.audit}`" for one in PROMISES if one.audit not in done]
    return [
        "Designs are drawn at random by a generator that knows no method, from a seed that is the",
        "day of the run. *errors* is the share of worlds in which the audit was wrong, *at most*",
        f"the highest share that the count leaves open with {sure} confidence; *worst at most* is",
        "the same for the worst of all designs, for all of them at once. A promise is broken if",
        f"the worst design shows an error above nominal and a point, with {sure} confidence.",
        f"**Broken: {', '.join(broken)}.**" if broken else "None is.",
        *([f"**Not examined yet: {', '.join(open_)}.**"] if open_ else []),
        "",
        *table(result["rows"]),
    ]


def inference() -> list[str]:
    """What was asked of the inference core: all small tables, designs once wrong, random ones."""
    lines = []
    for path, result in stored(["inference"]):
        rows = result["rows"][:WORST] if path.stem == "adversarial" else result["rows"]
        lines += ["", heading(path, result), "", *table(rows)]
    return lines


def shifts() -> list[str]:
    """Audits of tilts where the truth is known: kernels, monotone weights, flags."""
    lines = []
    for path, result in stored(["shift"]):
        lines += ["", heading(path, result), "", *table(result["rows"])]
    return lines


def monitoring() -> list[str]:
    """Streams on the limit and beyond it: alarms, run lengths, delays, bounds."""
    lines = []
    for path, result in stored(["monitoring"]):
        lines += ["", heading(path, result), "", *table([flat(row) for row in result["rows"]])]
    return lines


def flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose parts are told in a few words: each method's delay, and its false alarms."""
    out: dict[str, Any] = {}
    for name, value in row.items():
        if name == "methods" and isinstance(value, dict):
            for method, found in value.items():
                # none found half of the streams in time
                delay = "–" if found["delay"] is None else f"{found['delay']:g}"
                out[method] = f"{delay} ({100 * found['false']:.1f} %)"
        elif not isinstance(value, dict):
            out[name] = value
    return out


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Rows as a table."""
    names = list(dict.fromkeys(name for row in rows for name in row))
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
