"""`flag`: nulls, controls, methods by name, what was out of reach, and what it refuses."""

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom, hypergeom
from scipy.stats import t as student

import equipoise as eq
from equipoise.findings.finding import from_json
from equipoise.methods.hypotheses import (
    Above,
    benjamini_hochberg,
    benjamini_yekutieli,
    e_benjamini_hochberg,
    holm,
    smallest_reachable,
)
from tests.unit.audits.table import make_table

# the verbs return one of several findings, which each test knows

TABLE = make_table(600)
ROLES = {"label": "label", "prediction": "prediction", "score": "score"}
TRAIL = eq.read(TABLE, **ROLES)
CLAIM = eq.gap("accuracy", across=eq.intersections("race", "sex"))
REAL = eq.gap("absolute_error", across=eq.intersections("race", "sex"))


def planted(n: int = 2000, gap: float = 0.2) -> eq.Trail:
    rng = np.random.default_rng(1)
    group = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    return eq.read(
        pl.DataFrame(
            {
                "group": group,
                "site": rng.integers(0, 60, n),
                "y": (rng.random(n) < 0.3 + gap * (group == "c")).astype(int),
            }
        ),
        prediction="y",
        cluster="site",
    )


@pytest.mark.parametrize(
    ("control", "adjust"),
    [
        ("bh", benjamini_hochberg),
        ("by", benjamini_yekutieli),
        ("e-bh", e_benjamini_hochberg),
        ("holm", holm),
    ],
)
def test_adjusted_p_values_are_those_of_the_control(control: Any, adjust: Any) -> None:
    found = eq.flag(TRAIL, CLAIM, control=control)
    p = np.array([row.p for row in found.rows], dtype=float)
    adjusted = np.array([row.p_adjusted for row in found.rows], dtype=float)
    np.testing.assert_allclose(adjusted, adjust(p))
    assert all(row.flagged == (row.p_adjusted <= found.rate) for row in found.rows)


def test_a_p_value_equal_to_the_rate_is_flagged() -> None:
    twice = eq.read(pl.DataFrame({"group": ["a", "a"], "y": [1, 1]}), prediction="y")
    claim = eq.gap(eq.selection_rate, across="group", target=0.5)
    (row,) = eq.flag(twice, claim, above=0.0, fdr=0.25).rows
    assert row.p_adjusted == pytest.approx(0.25)
    assert row.flagged


@pytest.mark.parametrize(
    ("control", "step"),
    [
        ("bh", lambda flagged, tested: (flagged + 1) / tested),
        ("by", lambda flagged, tested: (flagged + 1) / tested / sum(1 / np.arange(1, tested + 1))),
        ("holm", lambda flagged, tested: 1 / (tested - flagged)),
    ],
)
def test_what_could_be_reached_is_what_one_more_flag_takes(control: Any, step: Any) -> None:
    frame = pl.DataFrame({"group": ["a"] * 90 + ["b"] * 60 + ["c"] * 50})
    ones = [1, 0, 0] * 50 + [1] * 40 + [0] * 10
    trail = eq.read(frame.with_columns(y=pl.Series(ones)), prediction="y")
    claim = eq.gap(eq.selection_rate, across="group", target=0.3)
    found = eq.flag(trail, claim, above=0.0, control=control)
    assert [row.group for row in found.flagged] == ["c"]
    alpha = 0.1 * step(1, 3)
    size, target = np.array([90.0, 60.0, 50.0]), np.full(3, 0.3)
    wanted = smallest_reachable(size, target, Above(limit=0.0), alpha=alpha)
    reachable = np.array([row.reachable for row in found.rows], dtype=float)
    np.testing.assert_allclose(reachable, np.asarray(wanted.disparity_above, dtype=float))


@pytest.mark.parametrize("question", [{}, {"above": 0.0}, {"below": 0.1}])
def test_max_t_of_one_group_is_its_p_value(question: Any) -> None:
    frame = pl.DataFrame({"group": ["a"] * 400, "y": [1] * 215 + [0] * 185})
    claim = eq.gap(eq.selection_rate, across="group", target=0.5)
    found = eq.flag(eq.read(frame, prediction="y"), claim, control="max-t", rng=1, **question)
    (row,) = found.rows
    # Holm's p-value of one group is its own, and no draws can beat it
    assert row.p_adjusted == row.p


@pytest.mark.parametrize("question", [{}, {"above": 0.02}, {"below": -0.02}])
@pytest.mark.parametrize("claim", [CLAIM, REAL], ids=["0/1", "real"])
def test_max_t_lies_between_the_plain_p_value_and_holm(claim: Any, question: Any) -> None:
    stepped, plain = (
        eq.flag(TRAIL, claim, control=c, rng=1, **question) for c in ("max-t", "holm")
    )
    for a, b in zip(stepped.rows, plain.rows, strict=True):
        assert a.p == b.p
        if a.p is not None:
            assert a.p <= a.p_adjusted <= b.p_adjusted
    # groups that share rows move together, which Holm does not know
    pairs = zip(stepped.rows, plain.rows, strict=True)
    assert any((a.p_adjusted or 1) < (b.p_adjusted or 1) for a, b in pairs)


def asked(way: str) -> Any:
    return {way: 0.0}


@pytest.mark.parametrize("claim", [CLAIM, REAL], ids=["0/1", "real"])
def test_opposite_questions_have_opposite_p_values(claim: Any) -> None:
    above, below = (eq.flag(TRAIL, claim, rng=1, **asked(way)) for way in ("above", "below"))
    for a, b in zip(above.rows, below.rows, strict=True):
        if a.p is not None:
            # the outcome itself counts on both sides; each tail is the larger of several
            assert 1 - 1e-9 <= a.p + b.p <= (1.5 if claim is CLAIM else 1.1)


@pytest.mark.parametrize(
    "method",
    [None, "pivotal", "bootstrap", "likelihood", "euclidean"],
)
def test_methods_by_name_agree_where_groups_are_large(method: Any) -> None:
    claim = eq.gap("accuracy", across="sex", target=eq.complement())
    reference = eq.flag(TRAIL, claim).ask(sex="f").p
    found = eq.flag(TRAIL, claim, method=method, rng=1)
    assert found.ask(sex="f").p == pytest.approx(reference, abs=0.05)


def test_against_a_number_p_values_are_binomial_tails() -> None:
    found = eq.flag(TRAIL, eq.gap("accuracy", across=eq.intersections("race", "sex"), target=0.7))
    above = eq.flag(TRAIL, eq.gap("accuracy", across="sex", target=0.7), above=0.05)
    for row in found.rows:
        k = round(row.value * row.n)
        tails = binom.cdf(k, row.n, 0.7), binom.sf(k - 1, row.n, 0.7)
        assert row.p == pytest.approx(min(1.0, 2 * min(tails)), rel=1e-6)
    for row in above.rows:
        k = round(row.value * row.n)
        assert row.p == pytest.approx(binom.sf(k - 1, row.n, 0.75), rel=1e-6)


def test_groups_out_of_reach_are_listed_with_their_size() -> None:
    table = pl.DataFrame({"g": ["a"] * 500 + ["b"] * 2, "y": [0, 1] * 250 + [1, 1]})
    found = eq.flag(eq.read(table, prediction="y"), eq.gap("selection_rate", across="g"))
    row = found.ask(g="b")
    assert row.note == "too small to be flagged whatever the outcome"
    assert row in found.unreachable
    large = found.ask(g="a")
    assert 0 < large.reachable < 0.1
    assert "nothing is known about them" in " ".join(found.sentences())


def test_the_reachable_disparity_would_indeed_be_flagged() -> None:
    def found_with(ones: int) -> Any:
        table = {
            "g": ["a"] * 400 + ["b"] * 400,
            "y": [1] * ones + [0] * (400 - ones) + [0, 1] * 200,
        }
        claim = eq.gap("selection_rate", across="g", target=0.5)
        return eq.flag(eq.read(pl.DataFrame(table), prediction="y"), claim).ask(g="a")

    needed = round(400 * (0.5 + found_with(200).reachable))
    assert found_with(needed).flagged
    assert not found_with(needed - 2).flagged


def test_a_minimum_is_the_users_option() -> None:
    found = eq.flag(TRAIL, CLAIM, min_rows=100)
    for row in found.rows:
        assert (row.p is None) == (row.n < 100)
    assert "fewer rows than the minimum" in {row.note for row in found.rows}


def test_clusters_are_tested_by_leaving_one_out() -> None:
    found = eq.flag(planted(), eq.gap("selection_rate", across="group"))
    assert found.ask(group="c").flagged
    assert "clusters" in " ".join(found.assumptions)
    silent = eq.flag(planted(gap=0.0), eq.gap("selection_rate", across="group"), fdr=0.01)
    assert not silent.flagged
    stepped = eq.flag(planted(), eq.gap("selection_rate", across="group"), control="max-t", rng=1)
    assert stepped.ask(group="c").flagged


def test_the_cluster_error_is_the_jackknife_written_out() -> None:
    table = make_table(400)
    trail = eq.read(table, cluster="site", **ROLES)
    found = eq.flag(trail, eq.gap("absolute_error", across="sex"), above=0.0).ask(sex="f")
    x = (table["label"] - table["score"]).abs().to_numpy()
    site, woman = table["site"].to_numpy(), (table["sex"] == "f").to_numpy()
    gap, everyone = x[woman].mean() - x.mean(), np.unique(site)
    moves = np.array([x[(site != s) & woman].mean() - x[site != s].mean() - gap for s in everyone])
    square, number = float((moves**2).sum()), everyone.size
    # as many clusters as their shares, and what they did, make them worth
    shares = (
        np.array([((site == s) & woman).sum() / woman.sum() for s in everyone]) ** 2
        + np.array([(site == s).mean() for s in everyone]) ** 2
    )
    worth = min(shares.sum() ** 2 / (shares**2).sum(), 3 * square**2 / (moves**4).sum(), number)
    t, g = gap / np.sqrt(square * (number - 1) / number), -(moves**3).sum() / square**1.5
    turned = t + g * t**2 / 3 + g**2 * t**3 / 27 + g / 6
    aim = max(float(student.sf(z, worth - 1)) for z in (t, turned))
    assert found.p == pytest.approx(aim, rel=1e-5)


def test_four_fifths_is_a_ratio_below() -> None:
    claim = eq.ratio("selection_rate", across="group", target=eq.reference(group="c"))
    trail = eq.read(planted().frame.to_native(), prediction="y")
    found = eq.flag(trail, claim, below=0.8)
    assert {row.group for row in found.flagged} == {"a", "b"}
    scaled = eq.gap("selection_rate", across="group", target=0.8 * eq.reference(group="c"))
    same = eq.flag(trail, scaled, below=0.0)
    # four fifths of the reference are a gap it could have to itself; a ratio to itself is one
    pairs = zip(same.rows, found.rows, strict=True)
    assert all(a.p == pytest.approx(b.p) for a, b in pairs if a.group != "c")
    assert (found.ask(group="c").p, found.ask(group="c").note) == (
        None,
        "the group is its own target",
    )


def test_a_ratio_without_a_limit_asks_for_any_difference() -> None:
    trail = eq.read(planted().frame.to_native(), prediction="y")
    claim = eq.ratio("selection_rate", across="group", target=eq.complement())
    found = eq.flag(trail, claim)
    assert "different from everyone else" in found.sentences()[0]
    assert found.ask(group="c").flagged
    # a ratio differs from one exactly if the gap differs from zero
    gaps = eq.flag(trail, eq.gap("selection_rate", across="group", target=eq.complement()))
    assert [r.p for r in found.rows] == pytest.approx([r.p for r in gaps.rows], rel=1e-6)
    wide = eq.flag(trail, claim, outside=(0.8, 1.25))
    assert "outside 0.8 to 1.25 times" in wide.sentences()[0]
    assert all(a.p >= b.p for a, b in zip(wide.rows, found.rows, strict=True))
    with pytest.raises(eq.OptionError, match="must be above 0"):
        eq.flag(trail, claim, outside=(0.0, 1.2))
    with pytest.raises(eq.OptionError, match="needs above= or below="):
        eq.flag(trail, claim, method="bootstrap")


# --- exactly these rows --------------------------------------------------------------------------


def test_these_rows_are_asked_by_dealing_outcomes() -> None:
    table = pl.DataFrame({"g": ["a"] * 5 + ["b"] * 5, "y": [1] * 5 + [0] * 5})
    claim = eq.gap("selection_rate", across="g", target=eq.complement())
    found = eq.flag(eq.read(table, prediction="y"), claim, population="these rows")
    # one deal in 252 is as uneven, or two with the opposite one
    assert [row.p for row in found.rows] == pytest.approx([2 / 252, 2 / 252])
    assert "exactly these rows" in found.assumptions[0]
    above = eq.flag(eq.read(table, prediction="y"), claim, population="these rows", above=0.0)
    assert [row.p for row in above.rows] == pytest.approx([1 / 252, 1.0])
    everyone = eq.gap("selection_rate", across="g")
    same = eq.flag(eq.read(table, prediction="y"), everyone, population="these rows")
    assert [row.p for row in same.rows] == pytest.approx([2 / 252, 2 / 252])
    ratio = eq.ratio("selection_rate", across="g", target=eq.reference(g="b"))
    nothing = eq.flag(eq.read(table, prediction="y"), ratio, population="these rows")
    assert nothing.ask(g="a").p is None


def test_these_rows_leave_no_doubt_where_people_like_them_would() -> None:
    """Fisher's test is about the rows at hand; the other is about where they came from."""
    table = pl.DataFrame({"g": ["a"] * 40 + ["b"] * 60, "y": [1, 0] * 20 + [1, 0, 0] * 20})
    claim = eq.gap("selection_rate", across="g", target=eq.complement())
    trail = eq.read(table, prediction="y")
    here = eq.flag(trail, claim, above=0.0, population="these rows").ask(g="a").p
    assert here == pytest.approx(float(hypergeom.sf(19, 100, 40, 40)))
    beyond = eq.flag(trail, claim, above=0.0).ask(g="a").p
    # conditioning costs power: the unconditional p-value is the smaller one
    assert beyond < here


@pytest.mark.parametrize(
    ("trail", "claim", "options", "words"),
    [
        (TRAIL, REAL, {}, "needs a 0/1 metric"),
        (eq.read(TABLE, weight="weight", **ROLES), CLAIM, {}, "without weights and clusters"),
        (eq.read(TABLE, cluster="site", **ROLES), CLAIM, {}, "without weights and clusters"),
        (TRAIL, eq.gap("accuracy", across="sex", target=0.5), {}, "not with a number"),
        (TRAIL, eq.gap("accuracy", across="sex", target=0.8 * eq.overall()), {}, "scaled target"),
        (TRAIL, CLAIM, {"above": 0.1}, "the limit can only be 0"),
        (TRAIL, eq.ratio("accuracy", across="sex"), {"below": 0.8}, "the limit can only be 1"),
        (
            TRAIL,
            eq.gap("accuracy", across="sex", target=eq.reference(race="a")),
            {},
            "shares no row",
        ),
        (TRAIL, CLAIM, {"method": "bootstrap"}, "a test of its own"),
        (TRAIL, CLAIM, {"population": "everyone"}, "population"),
    ],
)
def test_what_cannot_be_asked_of_these_rows(
    trail: Any, claim: Any, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(eq.OptionError, match=words):
        eq.flag(trail, claim, **{"population": "these rows", **options})


# --- words and refusals --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({}, "different from everyone"),
        ({"above": 0.05}, "more than 5.0 points above everyone"),
        ({"above": 0.0}, "accuracy above everyone"),
        ({"below": -0.05}, "more than 5.0 points below everyone"),
        ({"above": -0.05}, "above, or less than 5.0 points below, everyone"),
        ({"outside": (-0.1, 0.1)}, "outside -10.0 points to +10.0 points of everyone"),
    ],
)
def test_the_question_reads_well(limits: dict[str, Any], words: str) -> None:
    assert words in eq.flag(TRAIL, CLAIM, **limits).sentences()[0]


def test_json_comes_back_equal_and_the_lattice_is_drawn() -> None:
    found = eq.flag(TRAIL, CLAIM)
    assert from_json(found.to_json()) == found
    assert json.dumps(found.plot().to_dict())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"above": 0.1, "below": 0.0}, "one of above="),
        ({"outside": (0.1, 0.0)}, "low ≤ high"),
        ({"outside": 0.1}, "pair"),
        ({"fdr": 0.0}, "fdr"),
        ({"control": "none"}, "control"),
        ({"resamples": 100, "method": "likelihood"}, "does not resample"),
        ({"above": "much"}, "above"),
        ({"outside": ("a", "b")}, "outside"),
        ({"above": 10}, r"must lie between -1 and 1.*10 points are 0\.1"),
        ({"outside": (-5, 5)}, r"5 points are 0\.05"),
        ({"method": "certificates"}, "flag method"),
        ({"min_rows": 0}, "min_rows"),
        ({"abvoe": 0.1}, "above"),
    ],
)
def test_what_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises((eq.OptionError, TypeError), match=words):
        eq.flag(TRAIL, CLAIM, **options)


def test_what_is_out_of_reach_of_stepped_maxima_is_said_only_where_it_is_certain() -> None:
    # Copies of one attribute: maxima of groups all alike reach far beyond Holm's step.
    group = pl.Series("g0", ["a"] * 6 + ["b"] * 60)
    data = pl.DataFrame({"y": [1, 0] * 33, **{f"g{i}": group for i in range(4)}})
    trail = eq.read(data, prediction="y")
    claim = eq.gap("selection_rate", across=[f"g{i}" for i in range(4)], target=0.5)
    controls: list[tuple[Any, bool]] = [("holm", True), ("max-t", False)]
    for control, certain in controls:
        rows = eq.flag(trail, claim, control=control, rng=1).rows
        small = [row for row in rows if row.n == 6]
        assert small
        assert all(("whatever the outcome" in row.note) == certain for row in small)


@pytest.mark.parametrize("number", [20, 60])
def test_few_groups_are_boxes_and_many_a_ranked_list(number: int) -> None:
    names = [f"town {i}" for i in range(number)]
    data = pl.DataFrame({"town": names * 20, "y": [0, 1] * (10 * number)})
    flags = eq.flag(eq.read(data, prediction="y"), eq.gap("selection_rate", across="town"))
    drawn = flags.plot().to_dict()
    assert drawn["width"] < 850
    marks = max(drawn["datasets"].values(), key=len)
    if number > 20:
        assert len(marks) == 40
        assert marks[0]["estimate"] >= marks[-1]["estimate"]
    else:
        assert len({(box["x"], box["y"]) for box in marks}) == number
