"""Two published months side by side, and what the page says where groups are hidden."""

import json
import re

import polars as pl

import equipoise as eq
from equipoise.findings.finding import Finding

LEAST = 5
JANUARY = {"N": (120, 50), "S": (90, 45), "W": (60, 20), "Isle": (3, 2)}


def audited(table: dict[str, tuple[int, int]]) -> tuple[Finding, ...]:
    rows = [(g, p, m) for g, (n, h) in table.items() for p, m in ((1, h), (0, n - h)) if m]
    frame = pl.DataFrame(rows, schema=["place", "p", "count"], orient="row")
    trail = eq.read(frame, prediction="p", count="count")
    claim = eq.gap("selection_rate", across="place")
    return (
        eq.certify(trail, claim, tolerance=0.01, rng=1),
        eq.flag(trail, claim, rng=1),
        eq.joint_test(trail, claim, rng=1),
    )


def sizes(table: dict[str, tuple[int, int]]) -> dict[str, int]:
    published = json.loads(str(eq.report(*audited(table), suppress=LEAST).published))
    rows = [r for e in published["entries"] if e["finding"] for r in e["finding"]["rows"]]
    return {row["group"]: row["n"] for row in rows}


def test_what_grows_by_a_few_people_is_told_only_for_shown_groups() -> None:
    # the threat model says so: whoever publishes both tells that three people came to N
    later = {**JANUARY, "N": (123, 52), "Isle": (4, 2)}
    first, second = sizes(JANUARY), sizes(later)
    assert {name: second[name] - first[name] for name in first} == {"N": 3, "S": 0}
    # the same groups are hidden, with enough others that the small one has room in both
    assert "Isle" not in {*first, *second}
    assert "W" not in {*first, *second}


def test_months_in_one_evidence_are_protected_together() -> None:
    rows = []
    for month, more in (("jan", 0), ("feb", 3)):
        for g, (n, h) in {**JANUARY, "Isle": (40, 20)}.items():
            grown = n + more if g == "N" else n
            rows += [(month, g, 1, h), (month, g, 0, grown - h)]
    frame = pl.DataFrame(rows, schema=["month", "place", "p", "count"], orient="row")
    trail = eq.read(frame, prediction="p", count="count")
    claim = eq.gap("selection_rate", across=eq.intersections("month", "place"))
    found = eq.describe(trail, claim)
    assert eq.report(found, suppress=LEAST).suppressed == 0


def test_page_and_charts_name_no_hidden_group_and_no_conclusion_about_it() -> None:
    # Isle and W alone would exceed the limit
    table = {"N": (4000, 2000), "S": (4000, 2000), "W": (30, 0), "Isle": (4, 4)}
    page = eq.report(*audited(table), suppress=LEAST)
    text = re.sub(r"<script(?![^>]*data-).*?</script>|<style.*?</style>", "", page.html, flags=re.S)
    for name in ("Isle", "W (", ">W<"):
        assert name not in text
    for said in ("Limit exceeded", "A violation is shown", "At least one group's"):
        assert said not in text
    assert "Not told: groups are left out" in text
    assert "Not published." in text
