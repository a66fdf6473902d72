"""Fill the measured parts of the README from the results of validation and benchmarks.

    python tools/front_page.py [--check]

Each part stands between ``<!-- name -->`` and ``<!-- /name -->``. With ``--check`` nothing is
written; the exit code says whether the README is up to date.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


def main() -> int:
    """Write or check the README."""
    text = README.read_text(encoding="utf-8")
    made = filled(text)
    if "--check" in sys.argv:
        return 0 if made == text else 1
    README.write_text(made, encoding="utf-8")
    return 0


def filled(text: str) -> str:
    """The text with every measured part renewed."""
    for name, part in (("warranty", warranty()), ("alarms", alarms()), ("speed", speed())):
        pattern = re.compile(f"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        text = pattern.sub(lambda m, part=part: f"{m[1]}{part}\n{m[2]}", text)  # type: ignore[misc]
    return text


def read(*path: str) -> dict[str, Any]:
    """One stored result; empty if it has not been measured."""
    place = ROOT.joinpath(*path)
    return json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}


def warranty() -> str:
    """The error rates of the defaults, one row per audit."""
    result = read("validation", "warranty", "results", "warranty.json")
    rows = [r for r in result.get("rows", []) if r["method"].startswith("default")]
    lines = ["| audit (default method) | promised | measured over worlds and targets | worlds |"]
    lines += ["|---|---|---|---|"]
    for audit, words in _AUDITS.items():
        rates = [r["rate"] for r in rows if r["audit"] == audit and r["measures"] == "errors"]
        if rates:
            span = f"{_percent(min(rates))} – {_percent(max(rates))}"
            promise = f"errors ≤ {_percent(result['nominal'])}"
            number = f"{len(rates)} × {result['replicates']}"
            lines.append(f"| {words} | {promise} | {span} | {number} |")
    return "\n".join(lines)


_AUDITS = {
    "certify": "`certify`: any of all bounds wrong",
    "certificates": '`certify(method="certificates")`: any certificate false',
    "flag": "`flag`: anything flagged where nothing is wrong",
}


def alarms() -> str:
    """The table of false alarms, as the benchmark wrote it."""
    place = ROOT / "benchmarks" / "false_alarms.md"
    if not place.exists():
        return "Not measured yet."
    rows = [x for x in place.read_text(encoding="utf-8").splitlines() if x.startswith("|")]
    return "\n".join(rows)


def speed() -> str:
    """A few lines of the benchmarks, as they were measured."""
    lines = ["| question | equipoise |", "|---|---|"]
    for name, begins in _SPEED:
        for line in read("benchmarks", "results", f"{name}.json").get("lines", []):
            cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
            if cells[0].startswith(begins):
                lines.append(f"| {cells[0]} | {cells[1]} |")
                break
    return "\n".join(lines)


_SPEED = (
    ("bootstrap", "1,275 intervals, n = 100,000"),
    ("bootstrap", "intervals for intersections"),
    ("tilts", "tilts, rescaled, n = 1,600"),
    ("transport", "K = 150"),
    ("calibration", "statistics"),
    ("scale", "100,000,000"),
)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


if __name__ == "__main__":
    raise SystemExit(main())
