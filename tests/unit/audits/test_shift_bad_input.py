"""Tilt audits of tables and kernels that go wrong: a stated outcome, never a crash."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.errors import ClaimError, OptionError, TrailError


def audit(frame: dict[str, Any], over: Any = "x", **options: Any) -> Any:
    trail = eq.read(pl.DataFrame(frame), prediction="hit")
    chosen: dict[str, Any] = {"rng": 1, "resamples": 50, "target": None}
    chosen |= options
    claim = eq.gap(eq.selection_rate, target=chosen.pop("target"))
    return eq.shift(trail, claim, over=over, **chosen)


def table(n: int = 60) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    return {"x": rng.random(n), "hit": rng.integers(0, 2, n)}


def test_one_row_has_no_bounds() -> None:
    found = audit({"x": [1.0], "hit": [1]})
    assert found.critical is None
    assert found.reason.startswith("there is one row only")
    assert found.sentences()[0] == f"There are no bounds: {found.reason}."
    assert not any("None" in said for said in found.sentences())
    assert found.rows[0].lower is None
    assert found.rows[0].upper is None
    assert found.guarantee.startswith("none")
    assert "There are no bounds" in " ".join(found.sentences())
    assert found.at(0.99).critical is None
    found.plot().to_dict()


@pytest.mark.parametrize("hit", [0, 1])
def test_a_constant_metric_has_no_bounds(hit: int) -> None:
    found = audit({"x": table()["x"], "hit": np.full(60, hit)}, target=0.5)
    assert found.reason.startswith("the metric is the same on every row")
    assert found.rows[0].lower is None
    asked = found.ask_group(x=(0.0, 0.5))
    assert asked.lower is None
    assert asked.note == found.reason


def test_a_constant_covariate_leaves_one_tilt() -> None:
    found = audit({"x": np.ones(60), "hit": table()["hit"]}, target=0.4)
    assert found.rank == 1
    (row,) = found.rows
    assert row.group == "everyone"
    assert "every covariate is constant" in row.note
    assert row.effective == pytest.approx(60)
    assert row.lower < row.disparity < row.upper
    assert "constant covariates: x" in found.assumptions


def test_one_constant_covariate_among_others_changes_nothing() -> None:
    plain = table()
    both = plain | {"z": np.full(60, 3.0)}
    one, two = audit(plain, eq.gaussian("x")), audit(both, eq.gaussian("x", "z"))
    # to rounding: processors multiply matrices of other widths in another order
    assert one.critical == pytest.approx(two.critical, rel=1e-12)
    assert "constant covariates: z" in two.assumptions


def test_duplicate_rows_are_merged() -> None:
    once = {"x": np.repeat([0.0, 0.5, 1.0], 20), "hit": np.tile([0, 1, 1, 0], 15)}
    found = audit(once)
    assert found.rank <= 3
    assert found.provenance.cells <= 6
    assert found.provenance.counted == 60
    assert found.ask_group(x=0.5).distance < 0.05


@pytest.mark.parametrize(
    ("bandwidth", "says"),
    [
        (0, "must be a positive number"),
        (-1.0, "must be a positive number"),
        (float("nan"), "must be a positive number"),
        (float("inf"), "leave it out"),
        ("wide", "must be a positive number"),
        (True, "must be a positive number"),
        ((1.0, 2.0), "one for each of 'x'; got 2"),
    ],
)
def test_bandwidths_that_mean_nothing(bandwidth: Any, says: str) -> None:
    for make in (eq.gaussian, eq.laplace):
        with pytest.raises(OptionError, match=says):
            make("x", bandwidth=bandwidth)


@pytest.mark.parametrize("bandwidth", [1e-9, 1e9])
def test_extreme_bandwidths_are_audited(bandwidth: float) -> None:
    found = audit(table(), eq.gaussian("x", bandwidth=bandwidth))
    assert found.rank == (60 if bandwidth < 1 else 1)
    assert np.isfinite(found.critical)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("sigmoid", "not positive"),
        (lambda a, b: -((a - b.T) ** 2), "not positive semi-definite"),
        (lambda a, b: a + 2 * b.T, "not symmetric"),
        (lambda a, b: np.full((len(a), len(b)), np.inf), "not finite"),
    ],
)
def test_functions_that_are_no_kernels_are_refused(function: Any, says: str) -> None:
    rows = table()
    options = {"gamma": 3.0, "coef0": -4.0} if function == "sigmoid" else {}
    with pytest.raises(OptionError, match=f"kernel cannot be used: it .*{says}"):
        audit(rows, eq.kernel(function, "x", **options))


def test_a_kernel_that_is_zero_everywhere_is_refused() -> None:
    with pytest.raises(OptionError, match="zero on every row"):
        audit(table(), eq.kernel(lambda a, b: 0 * (a + b.T), "x"))


def test_missing_covariates_are_left_out_and_counted() -> None:
    rows = table()
    x = rows["x"].tolist()
    x[0], x[1], x[2] = None, float("nan"), float("inf")
    found = audit({"x": x, "hit": rows["hit"]})
    assert found.provenance.excluded == {"missing x": 3}
    assert found.provenance.counted == 57
    assert found.rows[0].n == 57
    assert "3 missing x" in " ".join(found.sentences())
    with pytest.raises(ClaimError, match="No row has a value of every covariate"):
        audit({"x": pl.Series([None, None], dtype=pl.Float64), "hit": [0, 1]})


def test_a_missing_category_is_a_level_of_its_own() -> None:
    rows = table()
    found = audit({"g": ["a", None] * 30, "hit": rows["hit"]}, "g")
    assert found.covariates[0].levels == ("a", None)
    assert found.ask_group(g="a").effective == pytest.approx(30, abs=0.5)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"over": "y"}, TrailError, "y"),
        ({"over": 5}, ClaimError, "over= takes a kernel"),
        ({"method": "scaled"}, OptionError, "There is: 'rescaled', 'signed', 'unscaled'"),
        ({"engine": "fast"}, OptionError, "engine 'fast' does not exist"),
        ({"side": "left"}, OptionError, "side 'left' does not exist"),
        ({"resamples": 5}, OptionError, "at least 20"),
        ({"floor": 0.0}, OptionError, "floor must lie"),
        ({"residual": 1.0}, OptionError, "residual must lie"),
        ({"max_rank": 0}, OptionError, "max_rank"),
        ({"sample": 1}, OptionError, "sample"),
        ({"kernel": "x"}, OptionError, "option 'kernel' does not exist"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        audit(table(), **({"over": "x"} | options))


def test_questions_that_cannot_be_answered() -> None:
    found = audit(table())
    with pytest.raises(OptionError, match="kernel sections, listed by"):
        found.ask_tilt([1.0])
    with pytest.raises(OptionError, match="negative on"):
        found.ask_tilt(-np.ones(found.rank))
    with pytest.raises(OptionError, match="finite numbers"):
        found.ask_tilt(np.full(found.rank, np.nan))
    with pytest.raises(OptionError, match="must not be negative"):
        found.ask_tilt(lambda c: c["x"] - 0.5)
    with pytest.raises(OptionError, match="expected a finite number for each"):
        found.ask_tilt(lambda c: 1.0)
    with pytest.raises(ClaimError, match="no row audited lies there"):
        found.ask_group(x=(5, 6))
    with pytest.raises(ClaimError, match="Covariate 'y' does not exist"):
        found.ask_group(y=1)
    with pytest.raises(OptionError, match="Which group"):
        found.ask_group()
    with pytest.raises(OptionError, match="2 points and 1 weights"):
        found.ask_tilt([1.0], at={"x": [0.1, 0.2]})
    with pytest.raises(ClaimError, match="gap"):
        eq.shift(
            eq.read(pl.DataFrame(table()), prediction="hit"),
            eq.ratio(eq.selection_rate, across="x"),
            over="x",
        )


def test_categories_need_a_kernel_that_tells_them_apart() -> None:
    rows = table() | {"g": ["a", "b"] * 30}
    with pytest.raises(ClaimError, match="'g' is a category"):
        audit(rows, eq.kernel("rbf", "x", "g"))
    with pytest.raises(OptionError, match="Options go with a kernel given by name"):
        eq.kernel(lambda a, b: a @ b.T, "x", degree=2)
    with pytest.raises(OptionError, match="Kernel 'rbff' does not exist"):
        eq.kernel("rbff", "x")
    with pytest.raises(OptionError, match="at least one covariate"):
        eq.gaussian()
    with pytest.raises(OptionError, match="names 'x' more than once"):
        _ = eq.gaussian("x") * eq.laplace("x")


def test_counts_are_no_rows() -> None:
    claim = eq.gap(eq.selection_rate)
    counts: Any = eq.Tallied.from_json(
        eq.tally(eq.read(pl.DataFrame(table()), prediction="hit"), claim).to_json()
    )
    with pytest.raises(TrailError, match="these are counts"):
        eq.shift(counts, claim, over="x")
