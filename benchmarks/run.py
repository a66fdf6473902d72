"""``make bench``: run the benchmarks named (all by default) and write their results to README.md."""

import importlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import Line, machine

HERE = Path(__file__).parent
BENCHMARKS = (
    "foundation",
    "first_hour",
    "bootstrap",
    "summaries",
    "likelihood",
    "tilts",
    "transport",
    "calibration",
    "unknown",
    "scale",
    "peers",
    "false_alarms",
    "beside_others",
    "install",
)


def main(names: list[str]) -> int:
    """Run each benchmark, print its lines, and return how many aims were missed."""
    chosen = names or list(BENCHMARKS)
    unknown = [name for name in chosen if name not in BENCHMARKS]
    if unknown:
        print(f"There is no benchmark {unknown}; there is {list(BENCHMARKS)}.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="equipoise-bench-") as folder:
        for name in chosen:
            lines = importlib.import_module(name).run(Path(folder))
            _store(name, lines)
            print(_section(name, lines))
    _write_readme()
    # the front page quotes a few of these figures
    subprocess.run([sys.executable, HERE.parent / "tools" / "front_page.py"], check=False)
    return 0


def _store(name: str, lines: list[Line]) -> None:
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    content = {"machine": machine(), "lines": [line.as_row() for line in lines]}
    (results / f"{name}.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _section(name: str, lines: list[Line]) -> str:
    head = "| what | figure | aim | met |\n|---|---|---|---|"
    return "\n".join([f"## {name}", "", head, *(line.as_row() for line in lines), ""])


def _write_readme() -> None:
    parts = [
        "# Benchmarks",
        "",
        "Made by `make bench`. Each comparison runs both sides in the same run, in processes of their",
        "own; the best of several runs counts. Imports and data come before the clock starts, and are",
        "frozen for the garbage collector. Ratios travel between machines, seconds do not.",
        "",
    ]
    for path in sorted((HERE / "results").glob("*.json")):
        content = json.loads(path.read_text())
        about = ", ".join(f"{key} {value}" for key, value in content["machine"].items())
        head = "| what | figure | aim | met |\n|---|---|---|---|"
        parts += [f"## {path.stem}", "", f"{about}", "", head, *content["lines"], ""]
    (HERE / "README.md").write_text("\n".join(parts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
