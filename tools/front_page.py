"""Fill the measured parts of the README and of two pages of the documentation.

The figures come from what validation and benchmarks have stored.

    python tools/front_page.py [--check]

Each part stands between ``<!-- name -->`` and ``<!-- /name -->``. With ``--check`` nothing is
written; the exit code says how many pages are out of date.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
EXPLAINED = ROOT / "docs" / "explanation"
PAGES = (ROOT / "README.md", EXPLAINED / "errata.md", EXPLAINED / "likelihood.md")
BENCHMARKS = ROOT / "benchmarks" / "README.md"
Row = dict[str, Any]


def main() -> int:
    """Write or check the pages."""
    if "--check" in sys.argv:
        stale = [page.name for page in PAGES if filled(page) != page.read_text(encoding="utf-8")]
        if stale:
            print(f"{', '.join(stale)}: not up to date; run tools/front_page.py", file=sys.stderr)
        return len(stale)
    write()
    return 0


def write() -> None:
    """Renew every measured part."""
    for page in PAGES:
        page.write_text(filled(page), encoding="utf-8")


def filled(page: Path) -> str:
    """The page with every measured part renewed."""
    pattern = re.compile(r"(<!-- ([\w-]+) -->\n).*?(<!-- /\2 -->)", re.DOTALL)
    text = page.read_text(encoding="utf-8")
    return pattern.sub(lambda m: f"{m[1]}{PARTS[m[2]]()}\n{m[3]}", text)


# --- the first screen ------------------------------------------------------------------------


def short() -> str:
    """False alarms and speed beside others in one small table."""
    head = ["| measured | equipoise | compared with |", "|---|---|---|"]
    return "\n".join([*head, alarms(), *(faster(*one) for one in FIRST)])


def promised() -> str:
    """The warranty in one line: errors over all promises, and the worst design of all."""
    found = warranty_result()
    rows = [row for row in found["rows"] if row["nominal"] == NOMINAL]
    worlds = sum(row["worlds"] for row in rows)
    errors = sum(round(row["errors"] * row["worlds"]) for row in rows)
    worst = max(rows, key=lambda row: row["worst at most"])
    sure = percent(found["confidence"])
    return (
        f"**Does it keep its word?** {len(rows)} promises of at most {percent(NOMINAL)} errors, "
        f"each in designs drawn at random:\nwrong in {percent(errors / worlds)} of {worlds:,} "
        f"worlds; in the worst of all designs (`{worst['audit']}`) in "
        f"{percent(worst['worst design'])},\nat most {percent(worst['worst at most'])} with "
        f"{sure} confidence. [How](#measured-not-claimed)"
    )


def mortgages() -> str:
    """What an audit of the bundled mortgages finds, with and without legitimate factors."""
    import equipoise as eq

    trail, white = eq.datasets.mortgages(), eq.reference(race="White")
    plain = eq.gap(eq.selection_rate, across="race", target=white)
    alike = eq.gap(
        eq.selection_rate, across="race", target=white, given=["payments", "loan", "bad_credit"]
    )
    said = [eq.certify(trail, claim, tolerance=0.05, rng=7) for claim in (plain, alike)]
    lines = "\n".join(f"- {found.headline()}" for found in said)
    which = "[mortgage applications of 1990](docs/tutorial/mortgages.md)"
    return f"On {said[0].provenance.scanned:,} {which} it says:\n\n{lines}"


def alarms() -> str:
    """False alarms among groups that are all alike, over all rules of each tool."""
    found: dict[str, list[float]] = {}
    for what, figure in section("false_alarms"):
        # what follows the semicolon is power
        alarms = figure.split("; with ")[0]
        shares = re.search(r"([\d.]+) %(?: \([\d.]+ %\))? at n = 2,000", alarms)
        # a question in backticks was about power alone
        if not what.startswith("`") and shares:
            found.setdefault(what.split()[0], []).append(float(shares[1]) / 100)
    ours = found.pop("equipoise")
    theirs = ", ".join(f"{name} {between(shares)}" for name, shares in found.items())
    what = "the same side by side: 40 groups, all alike, 2,000 rows"
    return f"| {what} | {between(ours)} | {theirs}, by rule |"


def faster(name: str, begins: str, words: str) -> str:
    """One line of the benchmarks as question, ratio, and what it is compared with."""
    figure = benchmark(name, begins)
    ratio = re.match(r"([\d.,e+]+ ×) (?:(faster|less CPU) than )?(.*?) \((.*?)(?:, |;|\))", figure)
    if ratio is None:
        return f"| {words} | {figure} | – |"
    return f"| {words} | {ratio[1]} {ratio[2] or ''} ({ratio[4]}) | {ratio[3]} |".replace("  ", " ")


NOMINAL = 0.05
FIRST = (
    ("bootstrap", "1,275 intervals, n = 100,000", "1,275 intervals of 100,000 rows"),
    ("bootstrap", "intervals for intersections", "intervals for intersections of 10,000 rows"),
    ("scale", "whole audit of 100,000,000 rows", "eight rates of 100,000,000 rows, CPU time"),
)


# --- the details -------------------------------------------------------------------------------


def warranty() -> str:
    """Every promise, how often it was broken, and how often it may be at most."""
    lines = [
        "| audit | wrong if | promised | errors, at most | worst design, at most | worlds |",
        "|---|---|---|---|---|---|",
    ]
    for row in warranty_result()["rows"]:
        cells = [
            row["wrong"],
            f"≤ {percent(row['nominal'])}",
            f"{percent(row['errors'])}, {percent(row['at most'])}",
            f"{percent(row['worst design'])}, {percent(row['worst at most'])}",
            f"{row['worlds']:,}",
        ]
        name = f"`{row['audit']}`" if row["audit"] in VERBS else row["audit"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


VERBS = (
    *("describe", "certify", "flag", "joint_test", "discover", "summarize", "compare", "repair"),
    *("alternatives", "monitor", "calibration", "shift", "individual"),
)


def warranty_result() -> dict[str, Any]:
    """What the warranty's study has stored."""
    return result("warranty", "warranty")


def speed() -> str:
    """A few lines of the benchmarks, as they were measured."""
    lines = ["| question | equipoise |", "|---|---|"]
    lines += [f"| {words} | {benchmark(name, begins)} |" for name, begins, words in SPEED]
    return "\n".join(lines)


SPEED = (
    ("bootstrap", "1,275 intervals, n = 100,000", "`certify`: 1,275 intervals, 100,000 rows"),
    ("bootstrap", "intervals for intersections", "`certify`: intersections, 10,000 rows"),
    ("bootstrap", "flags, n = 6,172, default", "`flag`: COMPAS"),
    ("tilts", "tilts, rescaled, n = 1,600", "`shift`: 1,600 rows"),
    ("transport", "K = 150", "`individual`: 150 cells, 1,000 resamples"),
    ("summaries", "variance interval, K = 100, B = 500, n = 1,000,000", "`summarize`: 100 groups"),
    ("calibration", "the whole default audit", "`calibration`: 2,000 rows"),
    ("scale", "whole audit of 100,000,000 rows", "eight rates, 100,000,000 rows, CPU time"),
)


def benchmark(name: str, begins: str) -> str:
    """The figure of the first benchmark whose question begins so."""
    for what, figure in section(name):
        if what.startswith(begins):
            return plain(figure)
    raise KeyError(f"{BENCHMARKS}: no line of {name} begins with {begins!r}")


def section(name: str) -> list[tuple[str, str]]:
    """Questions and figures of one part of the benchmarks."""
    text = BENCHMARKS.read_text(encoding="utf-8")
    found = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    lines = [x for x in (found[1] if found else "").splitlines() if x.startswith("| ")]
    cells = [x.strip("| ").split(" | ") for x in lines[1:]]
    return [(what, figure) for what, figure, *_ in cells]


def plain(figure: str) -> str:
    """Ratios as people write them: 4,090 and not 4.09e+03."""
    return re.sub(r"\d+(\.\d+)?e\+\d+", lambda m: f"{float(m[0]):,.0f}", figure)


# --- the errata --------------------------------------------------------------------------------


def small_groups() -> str:
    """Flags of Algorithm 4 and of the default where nothing is wrong."""
    rows = result("paper_000", "type_i")["rows"]

    def shares(world: str, what: str) -> str:
        found = {
            row["n"]: row["ours"] for row in rows if (row["world"], row["figure"]) == (world, what)
        }
        return ", ".join(f"{found[n]:.2f}" for n in sorted(found))

    sizes = sorted({row["n"] for row in rows})
    published, ours = "Algorithm 4, two-sided", "flags, two-sided"
    return (
        f"Chance that anything is flagged, at {listed(f'{n:,}' for n in sizes)} rows with a "
        f"smallest group of a few people: Algorithm 4\n{shares('null', published)}; the default "
        f"{shares('null', ours)}. For rare outcomes, {shares('null, rare', published)} and "
        f"{shares('null, rare', ours)}."
    )


def plug_in() -> str:
    """Coverage with the target taken for known, and profiled."""
    rows = result("paper_003", "coverage")["rows"]
    plug, ours = ([row[name] for row in rows] for name in ("plug_in", "ours"))
    return (
        f"In {len(rows)} worlds a 95 % interval covers {min(plug):.2f} to {max(plug):.2f} with the "
        f"estimate plugged in, {min(ours):.3f} to {max(ours):.3f} profiled."
    )


def compas_intervals() -> str:
    """The published interval and the corrected one."""
    rows = {row["figure"]: row for row in result("paper_003", "compas")["rows"]}
    low, high = rows["plug-in, 95% interval, n = 2174"]["published"]
    a, b = rows["profile, 95% interval, n = 2174"]["ours"]
    return (
        f"In COMPAS, the published 95 % interval of the gap between African-American and Caucasian "
        f"people, {low} to {high},\nbecomes {signed(a)} to {signed(b)}."
    )


def ranges() -> str:
    """The size of the published rule for a range, where the range is narrow."""
    rows = result("paper_003", "power_curves")["rows"]
    found = [row for row in rows if row["figure"].endswith("n = 20, −0.05 ≤ ε ≤ 0.05")]
    published, ours = ([row[k] for row in found] for k in ("likelihood_as_published", "ours"))
    return (
        f"A range of ± 0.05 and 20 rows, at its edge, nominal 5 %: the published rule rejects in "
        f"{listed(f'{100 * x:.1f} %' for x in published)} of worlds\n(normal and skewed noise), "
        f"ours in {listed(f'{100 * x:.1f} %' for x in ours)}."
    )


def folds() -> str:
    """False alarms with and without the correction for folds, where there is nothing to learn."""
    rows = [row for row in result("paper_001", "type_i")["rows"] if row["world"] == "perfect score"]

    def shares(method: str, how: str) -> str:
        same = [row for row in rows if (row["method"], row["rows_used"]) == (method, how)]
        return between([row["rate"] for row in same])

    plain = "cusum-standardised, uncorrected"
    return (
        f"A perfect score, no tolerance, level 10 %, {rows[0]['replicates']} samples: alarms in "
        f"{shares(plain, 'folds')} with folds and no\ncorrection, {shares(plain, 'split')} with "
        f"one split, {shares('cusum', 'folds')} with folds and the default."
    )


def result(paper: str, name: str) -> dict[str, Any]:
    """One stored result."""
    place = ROOT / "validation" / paper / "results" / f"{name}.json"
    return json.loads(place.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


PARTS = {
    "mortgages": mortgages,
    "promised": promised,
    "short": short,
    "warranty": warranty,
    "speed": speed,
    "small-groups": small_groups,
    "plug-in": plug_in,
    "compas-intervals": compas_intervals,
    "ranges": ranges,
    "folds": folds,
}


def percent(share: float) -> str:
    """A share in per cent, two figures."""
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.3g} %"


def between(shares: list[float]) -> str:
    """One share, or the smallest and the largest."""
    low, high = percent(min(shares)), percent(max(shares))
    return low if low == high else f"{low} – {high}"


def signed(number: float) -> str:
    """Three digits, with a proper minus."""
    return f"{number:.3f}".replace("-", "−")


def listed(words: Any) -> str:
    """Words with commas, and an *and* before the last."""
    *most, last = words
    return f"{', '.join(most)} and {last}"


if __name__ == "__main__":
    raise SystemExit(main())
