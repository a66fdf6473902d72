"""`flag`: nulls, controls, methods by name, what was out of reach, and what it refuses."""

import json
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.findings.finding import from_json
from equipoise.methods.multiplicity import benjamini_hochberg, benjamini_yekutieli, holm
from equipoise.methods.nulls import Above, mid_p, smallest_reachable
from tests.unit.audits.table import make_table

# the verbs return one of several findings, which each test knows
flag_: Any = eq.flag

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
    [("bh", benjamini_hochberg), ("by", benjamini_yekutieli), ("holm", holm)],
)
def test_adjusted_p_values_are_those_of_the_control(control: Any, adjust: Any) -> None:
    found = flag_(TRAIL, CLAIM, control=control)
    p = np.array([row.p for row in found.rows], dtype=float)
    adjusted = [row.p_adjusted for row in found.rows]
    np.testing.assert_allclose(adjusted, adjust(p))
    assert all(row.flagged == (row.p_adjusted <= found.rate) for row in found.rows)


def test_a_p_value_equal_to_the_rate_is_flagged() -> None:
    twice = eq.read(pl.DataFrame({"group": ["a", "a"], "y": [1, 1]}), prediction="y")
    claim = eq.gap(eq.selection_rate, across="group", target=0.5)
    (row,) = flag_(twice, claim, above=0.0, method="exact", fdr=0.25).rows
    assert (row.p_adjusted, row.flagged) == (0.25, True)


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
    found = flag_(trail, claim, above=0.0, control=control)
    assert [row.group for row in found.flagged] == ["c"]
    alpha = 0.1 * step(1, 3)
    size, target = np.array([90.0, 60.0, 50.0]), np.full(3, 0.3)
    wanted = smallest_reachable(size, target, Above(limit=0.0), mid_p, alpha=alpha)
    np.testing.assert_allclose([row.reachable for row in found.rows], wanted.disparity_above)


@pytest.mark.parametrize("question", [{}, {"above": 0.0}, {"below": 0.1}])
def test_max_t_of_one_group_is_its_p_value(question: Any) -> None:
    frame = pl.DataFrame({"group": ["a"] * 400, "y": [1] * 215 + [0] * 185})
    claim = eq.gap(eq.selection_rate, across="group", target=0.5)
    found = flag_(eq.read(frame, prediction="y"), claim, control="max-t", rng=1, **question)
    (row,) = found.rows
    # four standard errors of 5,000 draws
    assert row.p_adjusted == pytest.approx(row.p, abs=4 * np.sqrt(row.p * (1 - row.p) / 5000))


def test_max_t_lies_between_the_plain_p_value_and_holm() -> None:
    stepped, plain = (flag_(TRAIL, CLAIM, control=c, rng=1) for c in ("max-t", "holm"))
    for a, b in zip(stepped.rows, plain.rows, strict=True):
        assert a.p_adjusted >= a.p - 0.03
        # Monte-Carlo error of 5,000 draws
        assert a.p_adjusted <= b.p_adjusted + 0.03


@pytest.mark.parametrize("claim", [CLAIM, REAL], ids=["0/1", "real"])
def test_opposite_questions_have_opposite_p_values(claim: Any) -> None:
    above, below = (flag_(TRAIL, claim, rng=1, **{way: 0.0}) for way in ("above", "below"))
    for a, b in zip(above.rows, below.rows, strict=True):
        if a.p is not None:
            # the default takes the larger of two p-values, so the sum may exceed one
            assert 1 - 2e-3 <= a.p + b.p <= (1.2 if claim is CLAIM else 1 + 2e-3)


@pytest.mark.parametrize(
    "method",
    [None, "under-null", "likelihood-ratio", "score", "bootstrap", "bootstrap-t"],
)
def test_methods_by_name_agree_where_groups_are_large(method: Any) -> None:
    claim = eq.gap("accuracy", across="sex", target=eq.complement())
    reference = flag_(TRAIL, claim).ask(sex="f").p
    found = flag_(TRAIL, claim, method=method, rng=1)
    assert found.ask(sex="f").p == pytest.approx(reference, abs=0.05)


@pytest.mark.parametrize("test", ["mid-p", "exact"])
def test_exact_tests_need_a_known_target(test: str) -> None:
    assert flag_(TRAIL, eq.gap("accuracy", across="sex", target=0.5), method=test).rows[0].p < 0.05
    with pytest.raises(eq.OptionError, match="needs a known target"):
        flag_(TRAIL, CLAIM, method=test)


def test_groups_out_of_reach_are_listed_with_their_size() -> None:
    table = pl.DataFrame({"g": ["a"] * 500 + ["b"] * 2, "y": [0, 1] * 250 + [1, 1]})
    found = flag_(eq.read(table, prediction="y"), eq.gap("selection_rate", across="g"))
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
        return flag_(eq.read(pl.DataFrame(table), prediction="y"), claim).ask(g="a")

    needed = round(400 * (0.5 + found_with(200).reachable))
    assert found_with(needed).flagged
    assert not found_with(needed - 2).flagged


def test_a_minimum_is_the_users_option() -> None:
    found = flag_(TRAIL, CLAIM, min_rows=100)
    for row in found.rows:
        assert (row.p is None) == (row.n < 100)
    assert "fewer rows than the minimum" in {row.note for row in found.rows}


def test_clusters_are_tested_by_leaving_one_out() -> None:
    found = flag_(planted(), eq.gap("selection_rate", across="group"))
    assert found.ask(group="c").flagged
    assert "clusters" in found.engine
    silent = flag_(planted(gap=0.0), eq.gap("selection_rate", across="group"), fdr=0.01)
    assert not silent.flagged
    with pytest.raises(eq.OptionError, match="max-t"):
        flag_(planted(), eq.gap("selection_rate", across="group"), control="max-t")


def test_the_cluster_error_is_the_jackknife_written_out() -> None:
    table = make_table(200)
    trail = eq.read(table, cluster="site", **ROLES)
    found = flag_(trail, eq.gap("accuracy", across="sex"), above=0.0).ask(sex="f")
    right = (table["label"] == table["prediction"]).to_numpy().astype(float)
    site, woman = table["site"].to_numpy(), (table["sex"] == "f").to_numpy()
    gaps = []
    for one in np.unique(site):
        keep = site != one
        gaps.append(right[keep & woman].mean() - right[keep].mean())
    number = len(gaps)
    error = np.sqrt((number - 1) / number * np.sum((np.array(gaps) - np.mean(gaps)) ** 2))
    from scipy.special import stdtr

    met = len(np.unique(site[woman]))
    gap = right[woman].mean() - right.mean()
    assert found.p == pytest.approx(float(stdtr(met - 1, -gap / error)), rel=1e-6)


def test_four_fifths_is_a_ratio_below() -> None:
    claim = eq.ratio("selection_rate", across="group", target=eq.reference(group="c"))
    trail = eq.read(planted().frame.to_native(), prediction="y")
    found = flag_(trail, claim, below=0.8)
    assert {row.group for row in found.flagged} == {"a", "b"}
    scaled = eq.gap("selection_rate", across="group", target=0.8 * eq.reference(group="c"))
    same = flag_(trail, scaled, below=0.0)
    assert [r.p for r in same.rows] == pytest.approx([r.p for r in found.rows])


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({}, "different from everyone"),
        ({"above": 0.05}, "more than 5.0 points above everyone"),
        ({"above": 0.0}, "accuracy above everyone"),
        ({"below": -0.05}, "more than 5.0 points below everyone"),
        ({"below": 0.05}, "below, or less than 5.0 points above, everyone"),
        ({"outside": (-0.1, 0.1)}, "outside -10.0 points to +10.0 points of everyone"),
    ],
)
def test_the_question_reads_well(limits: dict[str, Any], words: str) -> None:
    assert words in flag_(TRAIL, CLAIM, **limits).sentences()[0]


def test_json_comes_back_equal_and_the_lattice_is_drawn() -> None:
    found = flag_(TRAIL, CLAIM)
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
        ({"resamples": 100}, "does not resample"),
        ({"method": "certificates"}, "flag method"),
        ({"min_rows": 0}, "min_rows"),
        ({"abvoe": 0.1}, "above"),
    ],
)
def test_what_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises((eq.OptionError, TypeError), match=words):
        flag_(TRAIL, CLAIM, **options)


def test_what_is_out_of_reach_of_stepped_maxima_is_said_only_where_it_is_certain() -> None:
    # Copies of one attribute: maxima of groups all alike reach far beyond Holm's step.
    group = pl.Series("g0", ["a"] * 6 + ["b"] * 60)
    data = pl.DataFrame({"y": [1, 0] * 33, **{f"g{i}": group for i in range(4)}})
    trail = eq.read(data, prediction="y")
    claim = eq.gap("selection_rate", across=[f"g{i}" for i in range(4)], target=0.5)
    for control, certain in (("holm", True), ("max-t", False)):
        rows = flag_(trail, claim, control=control, rng=1).rows
        small = [row for row in rows if row.n == 6]
        assert small
        assert all(("whatever the outcome" in row.note) == certain for row in small)


def test_a_lattice_of_many_groups_is_no_wider_than_a_page() -> None:
    names = [f"town {i}" for i in range(40)]
    data = pl.DataFrame({"town": names * 20, "y": [0, 1] * 400})
    flags = flag_(eq.read(data, prediction="y"), eq.gap("selection_rate", across="town"))
    drawn = flags.plot().to_dict()
    assert drawn["width"] < 850
    boxes = max(drawn["datasets"].values(), key=len)
    assert len({(box["x"], box["y"]) for box in boxes}) == 40
