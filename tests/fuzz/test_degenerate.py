"""Worlds in which nothing can be known: no flag, no certificate, no verdict."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl
import pytest
from sklearn.linear_model import LinearRegression

import equipoise as eq
from equipoise.findings import Verdict
from tests.fuzz import cases
from tests.fuzz.conftest import CASES
from tests.fuzz.outcome import check_finding, outcome, shows_nothing
from tests.fuzz.tables import Rng, chance, pick

certify: Any = eq.certify
flag: Any = eq.flag
VALUE = eq.metric("value", "v")
BOUNDS = (
    None,
    "pivotal",
    "certificates",
    "bootstrap",
    "bootstrap-unscaled",
    "certificates-published",
    "certificates-unscaled",
    "likelihood",
    "likelihood-plugin",
    "euclidean",
)
TESTS = (
    None,
    "pivotal",
    "bootstrap",
    "likelihood",
    "likelihood-plugin",
    "euclidean",
)
DRAWN = ("pivotal", "bootstrap", "certificates")


@dataclass(frozen=True, slots=True)
class World:
    """A table from which nothing follows."""

    table: pl.DataFrame
    targets: tuple[Any, ...] = (None, eq.complement())
    differs: bool = True
    """Whether groups might differ, so that not even their being alike can be shown."""


def constant(rng: Rng) -> World:
    """A real-valued metric without any spread: how uncertain it is cannot be told."""
    n, value = int(rng.integers(2, 40)), pick(rng, (0.1, -2.5, 0.3, 1e-9, 1e9, 1 / 3))
    groups = [pick(rng, ("a", "b", "c")) for _ in range(n)]
    return World(_table(groups, [value] * n), (None, eq.complement(), 0.0, value, 5.0))


def one_row_each(rng: Rng) -> World:
    n = int(rng.integers(1, 7))
    groups = [f"group {i}" for i in range(n)]
    values = _values(rng, n)
    return World(_table(groups, values), (None, eq.complement(), 0.5))


def alike(rng: Rng) -> World:
    """Groups with the very same rows: there is no difference to be found."""
    rows, values = int(rng.integers(2, 12)), _values(rng, 12)
    names = ("a", "b", "c")[: int(rng.integers(2, 4))]
    groups = [name for name in names for _ in range(rows)]
    return World(_table(groups, values[:rows] * len(names)), differs=False)


def everybody(rng: Rng) -> World:
    """One group, which is its own target or has nobody outside."""
    n = int(rng.integers(1, 25))
    return World(_table(["a"] * n, _values(rng, n)))


def no_weight(rng: Rng) -> World:
    """All rows of a group count for nothing."""
    n = int(rng.integers(2, 15))
    table = _table(["a"] * n + ["b"] * n, _values(rng, n) * 2)
    return World(table.with_columns(w=pl.Series([0.0] * (2 * n))))


def missing(rng: Rng) -> World:
    n = int(rng.integers(1, 15))
    table = _table([pick(rng, ("a", "b")) for _ in range(n)], [None] * n)
    return World(table.with_columns(v=pl.lit(None, dtype=pl.Float64)))


def _values(rng: Rng, n: int) -> list[Any]:
    if chance(rng, 0.5):
        return [int(x) for x in rng.integers(0, 2, n)]
    return [round(float(x), 2) for x in rng.normal(size=n)]


def _table(groups: list[Any], values: list[Any]) -> pl.DataFrame:
    n = len(groups)
    return pl.DataFrame({"g": groups, "v": values, "y": [0] * n, "s": [0.5] * n, "w": [1.0] * n})


WORLDS: dict[str, Callable[[Rng], World]] = {
    made.__name__: made for made in (constant, one_row_each, alike, everybody, no_weight, missing)
}


def ask(rng: Rng, world: World) -> Callable[[], Any]:
    """One of the verbs that could claim to have shown something."""
    weight = "w" if float(world.table["w"].sum()) == 0 else None
    trail = eq.read(world.table, weight=weight)
    claim = eq.gap(VALUE, across="g", target=pick(rng, world.targets))
    seed = int(rng.integers(1000))
    verb = int(rng.integers(5))
    if verb <= 1:
        method = pick(rng, BOUNDS)
        more = {"resamples": 40} if _resamples(method) else {}
        return lambda: certify(trail, claim, method=method, tolerance=0.02, rng=seed, **more)
    if verb <= 3:
        method, control = pick(rng, TESTS), pick(rng, ("bh", "by", "e-bh", "holm", "max-t"))
        limit = pick(rng, ({}, {"outside": (-0.1, 0.1)}, {"above": 0.02}, {"below": -0.02}))
        more = {"resamples": 40} if str(method).startswith("bootstrap") else {}
        return lambda: flag(
            trail, claim, method=method, control=control, fdr=0.1, rng=seed, **limit, **more
        )
    method = pick(rng, (None, "likelihood", "euclidean"))
    return lambda: eq.joint_test(trail, claim, method=method, rng=seed)


def _resamples(method: Any) -> bool:
    return str(method).startswith(DRAWN)


def test_nothing_follows_from_nothing(record_property: Any) -> None:
    answered: dict[str, int] = dict.fromkeys(WORLDS, 0)

    def one(rng: Rng) -> None:
        name = pick(rng, list(WORLDS))
        world = WORLDS[name](rng)
        found = outcome(ask(rng, world))
        if found is None:
            return
        answered[name] += 1
        check_finding(found)
        if not world.differs:
            assert found.conclusion is not Verdict.EXCEEDED, found.sentences()
        elif not _differs_for_sure(world, found):
            _without_own_target(found)

    record_property(CASES, cases.run("degenerate", one))
    refused = {name for name, number in answered.items() if not number}
    assert refused == {"no_weight", "missing"}, answered


def _differs_for_sure(world: World, found: Any) -> bool:
    """Rates of 0/1 rows are counts, from which something may follow even if all are alike."""
    return bool(found.rows) and set(world.table["v"].to_list()) <= {0, 1} and _is_known(found)


def _is_known(found: Any) -> bool:
    target = found.claim.get("target")
    return isinstance(target, dict) and target.get("kind") == "constant"


def _without_own_target(found: Any) -> None:
    """A group that is its own target differs by nothing for sure; all others show nothing."""
    own = [row for row in found.rows if row.note == "the group is its own target"]
    if own:
        assert all(row.disparity in (0, None) for row in own)
        assert found.conclusion is not Verdict.EXCEEDED
    else:
        shows_nothing(found)


@pytest.mark.parametrize("loss", [0, 1])
def test_a_model_that_never_errs_or_always_does(loss: int) -> None:
    table = pl.DataFrame({"y": [0, 1] * 2, "p": [loss, 1 - loss] * 2, "g": ["a", "b", "b", "a"]})
    trail = eq.read(table, label="y", prediction="p")
    found = outcome(lambda: eq.individual(trail, vary="g", tolerance=0.01, rng=1))
    if found is not None:
        check_finding(found)
        assert found.conclusion is not Verdict.EXCEEDED


@pytest.mark.parametrize("method", ["cusum", "hosmer-lemeshow", "simple-score", "chi-squared"])
@pytest.mark.parametrize("label", [0, 1])
def test_one_class_that_is_predicted(method: Any, label: int) -> None:
    # everybody has the outcome that was foreseen, so there is nothing to declare
    n = 40
    score = 0.01 if label == 0 else 0.99
    table = pl.DataFrame({"y": [label] * n, "s": [score] * n, "x": list(range(n))})
    models = None if method == "hosmer-lemeshow" else [LinearRegression()]
    found = outcome(
        lambda: eq.calibration(
            eq.read(table, label="y", score="s"),
            features=["x"],
            method=method,
            models=models,
            resamples=50,
            importance=0,
            rng=1,
        )
    )
    if found is not None:
        check_finding(found)
        shows_nothing(found)


@pytest.mark.parametrize("rows", [2, 5, 30])
def test_spread_of_groups_that_are_alike(rows: int) -> None:
    table = _table(["a"] * rows + ["b"] * rows, [0.25] * (2 * rows))
    trail = eq.read(table)
    for call in (
        lambda: eq.summarize(trail, VALUE, across="g", resamples=40, rng=1),
        lambda: eq.discover(trail, VALUE, features=["g"], leaf_rows=1, rng=1),
        lambda: eq.shift(trail, eq.gap(VALUE), over="g", resamples=40, rng=1),
    ):
        found = outcome(call)
        if found is not None:
            check_finding(found)
            shows_nothing(found)
