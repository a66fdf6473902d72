"""Small groups are gone from the file, and cannot be worked out from what is left."""

import dataclasses
import json
import re
from typing import Any

import hypothesis.strategies as st
import polars as pl
import pytest
from hypothesis import given, settings

import equipoise as eq
from equipoise.report.differences import far_apart
from equipoise.report.suppress import small, suppressed
from tests.browser.audits import table

SMALL = "Zanzibari"


def trail() -> eq.Trail:
    """Counts in which one place is tiny, and with it every group it is part of."""
    rows = []
    for place, size in (("North", 400), ("South", 300), ("Isle", 40), (SMALL, 7)):
        for sex, part in (("woman", 0.6), ("man", 0.4)):
            for y in (0, 1):
                for p in (0, 1):
                    share = 0.35 if y == p else 0.15
                    rows.append((place, sex, y, p, max(round(size * part * share), 1)))
    frame = pl.DataFrame(rows, schema=["place", "sex", "y", "p", "count"], orient="row")
    return eq.read(frame, label="y", prediction="p", count="count")


def battery() -> tuple[eq.Finding, ...]:
    table, groups = trail(), eq.intersections("place", "sex")
    claim = eq.gap("accuracy", across=groups)
    found: list[Any] = [
        eq.describe(table, claim, small=2),
        eq.flag(table, claim, above=0.0, fdr=0.9, rng=1),
        eq.certify(table, claim, tolerance=0.2, rng=1),
        eq.certify(table, claim, method="bootstrap", resamples=50, rng=1),
        eq.certify(table, claim, method="certificates", tolerance=0.4, resamples=50, rng=1),
        eq.certify(table, eq.equalized_odds(across=groups), tolerance=0.2, rng=1),
        eq.joint_test(table, claim, rng=1),
        eq.summarize(table, "accuracy", across="place", resamples=50, rng=1),
        eq.compare(table, "accuracy", across=("place", "sex"), resamples=50, rng=1),
        eq.individual(table, vary="place", features=("place", "sex"), budget=0.5, rng=1),
    ]
    return tuple(found)


@pytest.fixture(scope="module")
def findings() -> tuple[eq.Finding, ...]:
    return battery()


def own_text(page: str) -> str:
    """The page without the scripts, which are the same in every report."""
    return re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)


def test_no_name_of_a_small_group_is_left(findings: tuple[eq.Finding, ...]) -> None:
    assert all(SMALL in own_text(eq.report(found).html) for found in findings[:5])
    made = eq.report(*findings, suppress=10)
    assert SMALL not in own_text(made.html)
    assert made.suppressed > 10
    assert "having fewer than 10 rows or giving away one that has" in made.html


def test_no_number_of_a_small_group_is_left(findings: tuple[eq.Finding, ...]) -> None:
    whole, text = (own_text(eq.report(*findings, suppress=n).html) for n in (None, 10))
    numbers = {
        repr(value)
        for found in findings
        for row in (*found.rows, *getattr(found, "groups", ()))
        if SMALL in getattr(row, "group", "")
        for value in (getattr(row, name, None) for name in ("value", "lower", "upper", "p"))
        # numbers of few digits stand in a page for many reasons
        if isinstance(value, float) and len(repr(value)) > 12
    }
    assert len(numbers) > 10
    assert all(number in whole for number in numbers)
    # some are embedded with fewer digits, and cutting them off forgives the rounding
    assert not any(number[:11] in text for number in numbers)


def test_what_counts_could_be_worked_out_from_is_not_embedded(
    findings: tuple[eq.Finding, ...],
) -> None:
    page = eq.report(findings[2], suppress=10).html
    (data,) = re.findall(r"<script[^>]*data-ask[^>]*>(.*?)</script>", page, re.DOTALL)
    asked = json.loads(data)
    assert [level["level"] for level in asked["levels"]] == [0.95]
    assert min(n for _, n, _, _ in asked["groups"]) >= 10
    (kept,) = suppressed([findings[2]], 10)
    assert kept.finding.recipe is None  # type: ignore[attr-defined]


def test_a_page_concludes_from_what_it_shows() -> None:
    table = pl.DataFrame(
        {
            "y": [0] * 400 + [0] * 8,
            "p": [0] * 400 + [1] * 8,
            "place": ["North"] * 200 + ["South"] * 200 + [SMALL] * 8,
        }
    )
    claim = eq.gap("false_positive_rate", across="place")
    found = eq.flag(eq.read(table, label="y", prediction="p"), claim, above=0.1, rng=1)
    assert [row.group for row in found.rows if row.flagged] == [SMALL]
    page = eq.report(found, suppress=10).html
    # a flag that only a hidden group has would say what happened to it
    assert "Limit exceeded" not in page
    assert "Not told: groups are left out" in page
    assert SMALL not in own_text(page)


def test_rows_known_by_their_place_go_together() -> None:
    found = eq.calibration(table(300), features=["age", "income"], resamples=50, rng=7)
    sizes = sorted(row.n for row in found.rows)
    page = own_text(eq.report(found, suppress=sizes[0] + 1).html)
    assert found.rows[0].group not in page
    assert not any(sentence in page for sentence in found.sentences()[1:3])
    assert "<table" not in page
    assert "<figure" not in page
    assert "left out of this report" in page
    assert found.rows[0].group in own_text(eq.report(found, suppress=2).html)


@pytest.mark.parametrize("least", [60, 10**6])
def test_any_limit_leaves_a_report(findings: tuple[eq.Finding, ...], least: int) -> None:
    made = eq.report(*findings, suppress=least)
    assert made.html.count('<section class="finding"') == len(findings)


def test_nothing_changes_without_suppression(findings: tuple[eq.Finding, ...]) -> None:
    for found, kept in zip(findings, suppressed(findings, None), strict=True):
        assert kept.finding is found


def key(**where: Any) -> str:
    return json.dumps(where, sort_keys=True, ensure_ascii=False)


def test_a_small_remainder_takes_the_smallest_sibling_with_it() -> None:
    sizes = {key(a="x"): 100, key(a="y"): 50, key(a="z"): 4}
    assert small(sizes, 154, 10) == {key(a="z"), key(a="y")}
    # two that are hidden hide each other, but only to within the eleven rows they have together
    assert small({**sizes, key(a="w"): 7}, 161, 10) == {key(a="z"), key(a="w"), key(a="y")}


def test_the_parts_of_a_hidden_group_do_not_add_up_to_it() -> None:
    sizes = {
        key(a="x"): 100, key(a="y"): 50, key(a="z"): 4,
        key(a="y", b="1"): 30, key(a="y", b="2"): 20,
    }  # fmt: skip
    # y is the next after z, whatever that costs, and goes with its parts
    assert small(sizes, 154, 10) == {
        key(a="z"), key(a="y"), key(a="y", b="1"), key(a="y", b="2")
    }  # fmt: skip


def test_exactly_the_limit_is_enough_for_a_group_and_for_a_remainder() -> None:
    sizes = {key(a="x"): 100, key(a="y"): 10}
    assert small(sizes, 110, 10) == set()
    assert small(sizes, 120, 10) == set()
    assert small(sizes, 119, 10) == {key(a="x"), key(a="y")}
    assert small(sizes, 110, 11) == {key(a="x"), key(a="y")}


def test_ranges_apart_by_exactly_the_limit_are_kept() -> None:
    counts = {(1.0, 1.0): 10, (2.0, 2.0): 10, (1.0, 2.0): 20}
    assert far_apart(counts, 20, 10) == set(counts)
    assert far_apart(counts, 20, 11) == {(1.0, 2.0)}
    # ten people beside the ranges may be told from everybody, nine may not
    assert far_apart(counts, 30, 10) == set(counts)
    assert far_apart(counts, 29, 10) == {(1.0, 1.0)}


def test_half_lines_give_the_whole_line() -> None:
    counts = {(1.0, 1.0): 20, (1.0, 2.0): 40, (2.0, 3.0): 23, (3.0, 3.0): 3}
    # first two points and last two points share one, so the last point holds three rows
    assert far_apart(counts, None, 10) == {(1.0, 1.0)}


def test_a_tilt_is_as_small_as_the_rows_it_is_worth() -> None:
    found = eq.shift(trail(), eq.gap("accuracy"), over="sex", resamples=20, rng=1)
    first, second = (dataclasses.replace(found.rows[0], effective=x) for x in (9.9, 10.0))
    second = dataclasses.replace(second, where={"sex": "other"})
    (kept,) = suppressed([dataclasses.replace(found, rows=(first, second))], 10)
    assert (kept.told, kept.removed) == (False, 1)
    (kept,) = suppressed([dataclasses.replace(found, rows=(second,))], 10)
    assert (kept.told, kept.removed) == (True, 0)


def test_people_with_another_label_are_other_people(findings: tuple[eq.Finding, ...]) -> None:
    individual: Any = findings[9]
    many, few = (
        dataclasses.replace(individual.rows[0], label=label, n=n) for label, n in ((0, 99), (1, 4))
    )
    made = dataclasses.replace(individual, rows=(many, few), cells=())
    (kept,) = suppressed([made], 10)
    assert (kept.told, kept.removed) == (False, 1)
    (kept,) = suppressed([dataclasses.replace(made, rows=(many,))], 10)
    assert kept.told


def test_what_counts_could_be_read_from_is_not_kept() -> None:
    claim = eq.gap("accuracy", across="place")
    found = eq.joint_test(trail(), claim, method="likelihood", rng=1)
    assert found.region is not None
    (kept,) = suppressed([found], 10)
    assert not hasattr(kept.finding, "region")
    (kept,) = suppressed([found], 2)
    assert kept.told
    assert kept.finding.region is None  # type: ignore[attr-defined]


def test_a_hidden_parent_is_not_the_sum_of_what_is_shown() -> None:
    sizes = {
        key(a="x"): 100, key(a="y"): 50, key(a="z"): 4,
        key(a="y", b="1"): 30, key(a="y", b="2"): 20,
        key(a="x", b="1"): 60, key(a="x", b="2"): 40,
        key(b="1"): 92, key(b="2"): 62, key(a="z", b="1"): 2, key(a="z", b="2"): 2,
    }  # fmt: skip
    gone = small(sizes, 154, 10)
    assert {key(a="z"), key(a="y")} <= gone
    assert not {key(a="y", b="1"), key(a="y", b="2")} <= set(sizes) - gone


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(0, 40), min_size=12, max_size=12),
    st.integers(2, 15),
)
def test_no_parent_less_its_published_children_is_small(cells: list[int], least: int) -> None:
    sizes: dict[str, int] = {}
    for i, n in enumerate(cells):
        a, b = f"a{i % 3}", f"b{i // 3}"
        for where in ({"a": a}, {"b": b}, {"a": a, "b": b}):
            sizes[key(**where)] = sizes.get(key(**where), 0) + n
    gone = small(sizes, sum(cells), least)
    known = {**{k: n for k, n in sizes.items() if k not in gone}, key(): sum(cells)}
    assert all(n >= least for k, n in known.items() if k != key())
    for parent, n in known.items():
        for name in ("a", "b"):
            where = json.loads(parent)
            kids = [
                size
                for child, size in known.items()
                if (there := json.loads(child)).pop(name, None) is not None and there == where
            ]
            if kids and name not in where:
                assert not 0 < n - sum(kids) < least


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=2, max_size=8), st.integers(0, 12), st.integers(2, 12))
def test_no_combination_of_ranges_gives_few_rows(
    points: list[int], missing: int, least: int
) -> None:
    size = len(points)
    counts = {
        (float(i), float(j)): sum(points[i : j + 1]) for i in range(size) for j in range(i, size)
    }
    kept = far_apart(counts, sum(points) + missing, least)
    # all that can be worked out is the rows between two cuts, or between a cut and everybody
    cuts = sorted({int(i) for i, _ in kept} | {int(j) + 1 for _, j in kept})
    before = [sum(points[:cut]) for cut in cuts]
    gaps = [b - a for i, a in enumerate(before) for b in before[i + 1 :]]
    assert all(gap == 0 or gap >= least for gap in gaps)
    if kept and before[0] == 0:
        last = sum(points) + missing - before[-1]
        assert last == 0 or last >= least


def test_ranges_that_give_a_small_one_away_are_left_out() -> None:
    ages = [20] * 30 + [30] * 3 + [40] * 40 + [50] * 27
    frame = pl.DataFrame({"y": [0, 1] * 50, "p": [0, 1, 1, 0] * 25, "age": ages})
    claim = eq.gap("accuracy", across=eq.intervals("age"))
    found = eq.certify(eq.read(frame, label="y", prediction="p"), claim, rng=1)
    (kept,) = suppressed([found], 10)
    ends = [tuple(row.where["age"].values()) for row in kept.finding.rows]
    assert ends == [(20, 20), (20, 40), (20, 50), (30, 40), (30, 50), (50, 50)]
    assert kept.removed == 4


def test_rates_of_another_model_are_not_told_beside_hidden_groups() -> None:
    groups = ["a"] * 60 + ["b"] * 60 + ["few"] * 4
    table = pl.DataFrame(
        {
            "g": groups,
            "y": [i % 2 for i in range(124)],
            "old": [i % 3 % 2 for i in range(124)],
            "new": [i // 2 % 2 for i in range(124)],
        }
    )
    claim = eq.gap(eq.change("error_rate", before="old", after="new"), across="g")
    found = eq.certify(table, claim, label="y", prediction="new")
    assert len(found.changed) == 3
    (kept,) = suppressed((found,), 10)
    # who is shown is judged alone, and nothing is told of rates before and after
    assert isinstance(kept.finding, eq.Bounds)
    assert kept.finding.changed == ()
    assert [row.group for row in kept.finding.rows] == ["b"]
    assert not any("before and" in said for said in kept.finding.sentences())
    # where nobody is hidden they are told
    (kept,) = suppressed((found,), 2)
    assert len(kept.finding.changed) == 3  # type: ignore[attr-defined]


def test_flags_of_amounts_are_not_published_beside_hidden_groups() -> None:
    values = [float(i % 7) + 0.25 for i in range(163)]
    places = ["North"] * 80 + ["South"] * 80 + [SMALL] * 3
    frame = pl.DataFrame({"pay": values, "place": places})
    claim = eq.gap(eq.metric("pay", "pay"), across="place")
    found = eq.flag(eq.read(frame), claim, rng=1)
    assert suppressed([found], 2)[0].told
    # their p-values rest on the shape of everybody's values, hidden ones included
    assert not suppressed([found], 5)[0].told
