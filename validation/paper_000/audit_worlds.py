"""Audits of simulated cells without a table in between, and the samples of paper 000's tables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from quantile_forest import RandomForestQuantileRegressor

import equipoise as eq
from equipoise._validate import Seed
from equipoise.audits._common import answerable
from equipoise.audits._groups.likelihood import make_engine
from equipoise.audits._groups.problem import Problem, problem_of
from equipoise.audits.certify import limits_of
from equipoise.audits.methods import Bootstrap, Pivotal
from equipoise.cells import Axis, Cells
from equipoise.claims.groups import Dimension
from equipoise.methods.numerics import FloatArray, IntArray
from equipoise.methods.published import bootstrap
from equipoise.worlds import ConformalWorld, conformal_world, coverage, linear_world

SEED = 20230501
SIZES = (100, 200, 400, 800, 1600)
TRIALS, RESAMPLES, LEVEL = 200, 500, 0.9
SLOW = 25
"""Trials of the default in the band's world: 1,275 ranges take it a second."""
SQUARED = eq.metric("squared error", "loss")
COVERED = eq.metric("coverage of the band", "hit")
BAND = conformal_world()
FORESTS = 50
"""Forests that are fitted; trials take turns."""


def bench_of(
    claim: eq.Claim,
    levels: Sequence[tuple[Any, ...]],
    index: IntArray,
    cell: IntArray | None = None,
    value: FloatArray | None = None,
    counts: tuple[IntArray, IntArray] | None = None,
) -> Problem:
    """A problem from rows (their cell and metric), or from rows and ones per cell."""
    axes = tuple(_axis(d, found) for d, found in zip(claim.dimensions(), levels, strict=True))
    if counts is not None:
        rows, total = (x.astype(np.float64) for x in counts)
        square = cube = total
    else:
        if cell is None or value is None:
            raise ValueError("give rows or counts")
        rows, total, square, cube = (
            np.bincount(cell, value**power, minlength=len(index)) for power in range(4)
        )
    cells = Cells(
        metric=claim.metric,
        axes=axes,
        index=index,
        present=rows,
        rows=rows,
        weight=rows,
        total=total,
        square=square,
        weight2=rows,
        total2=total,
        square2=square,
        weight3=rows,
        total3=total,
        square3=square,
        cube3=cube,
        zero_one=counts is not None,
        weighted=False,
        scanned=int(rows.sum()),
        excluded={},
        source="a simulated world",
    )
    return problem_of(claim, cells, lambda: _rows(cell, value))


def _rows(cell: IntArray | None, value: FloatArray | None) -> bootstrap.RowData:
    if cell is None or value is None:
        raise ValueError("a problem made from counts has no rows")
    return bootstrap.canonical_rows(cell, value)


def _axis(dimension: Dimension, levels: tuple[Any, ...]) -> Axis:
    return Axis(dimension=dimension, levels=levels, asked=dimension)


def bench_of_intervals(claim: eq.Claim, edges: FloatArray, **data: Any) -> Problem:
    """A problem whose cells are the ranges between neighbouring edges."""
    pairs = tuple(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    return bench_of(claim, [pairs], np.arange(len(pairs))[:, None], **data)


def line_sample(n: int, rng: np.random.Generator, *, uneven: bool) -> tuple[Problem, FloatArray]:
    """A fitted line of model (11) or (12): ranges with ends in {0, 0.1, …, 1}, and their truth."""
    world = linear_world(rng, heteroskedastic=uneven)
    edges = np.linspace(0, 1, 11)
    claim = eq.gap(SQUARED, across=eq.intervals("x", edges=edges), target=0.0)
    x, loss = world.draw(n, rng)
    cell = np.minimum((x * 10).astype(np.int64), 9)
    problem = bench_of_intervals(claim, edges, cell=cell, value=loss)
    return problem, world.value(*ends_of(problem))


@lru_cache
def forest_band(number: int) -> ConformalWorld:
    """A conformalized quantile forest, fitted to 1000 points and set right by 1000 others.

    The ends are exact sums over counts, so its true coverage in each of 50 bins is known.
    """
    rng = np.random.default_rng([SEED, 1, number])
    x = rng.uniform(0, 5, 2000)
    y = rng.poisson(np.sin(x) ** 2 + 0.1) + 0.03 * x * rng.standard_normal(2000)
    y = y + 25 * (rng.random(2000) < 0.01) * rng.standard_normal(2000)
    forest = RandomForestQuantileRegressor(
        n_estimators=200, min_samples_leaf=40, random_state=number
    )
    forest.fit(x[:1000, None], y[:1000])
    ends = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    low, high = forest.predict(x[1000:, None], quantiles=ends).T
    # conformalized quantile regression: how far outcomes lie outside, at the level asked for
    outside = np.maximum(low - y[1000:], y[1000:] - high)
    wider = np.quantile(outside, LEVEL * (1 + 1 / 1000), method="higher")
    at = (np.arange(50 * 40) + 0.5) / 400
    low, high = forest.predict(at[:, None], quantiles=ends).T
    return ConformalWorld(rate=coverage(at, low - wider, high + wider).reshape(50, 40).mean(axis=1))


def forest_sample(n: int, trial: int, rng: np.random.Generator) -> tuple[Problem, FloatArray]:
    """A sample of one of the conformalized forests."""
    return band_sample(n, rng, forest_band(trial % FORESTS))


def band_sample(
    n: int, rng: np.random.Generator, band: ConformalWorld = BAND
) -> tuple[Problem, FloatArray]:
    """A band of known coverage: 1,275 ranges of [0, 5], and their true coverage less 90 %."""
    edges = np.linspace(0, 5, 51)
    claim = eq.gap(COVERED, across=eq.intervals("x", edges=edges), target=LEVEL)
    problem = bench_of_intervals(claim, edges, counts=band.draw(n, rng))
    start, stop = (np.rint(end * 10).astype(np.int64) for end in ends_of(problem))
    total = np.concatenate([[0.0], np.cumsum(band.rate)])
    return problem, (total[stop] - total[start]) / (stop - start) - LEVEL


def ends_of(problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Both ends of every range."""
    found = [where["x"] for where in problem.collection.wheres()]
    return (
        np.array([end["from"] for end in found]),
        np.array([end.get("below", end.get("to")) for end in found]),
    )


def audit_of(problem: Problem, seed: int) -> bootstrap.Audit:
    """An exact bootstrap of a problem."""
    return bootstrap.Audit(
        engine=make_engine(problem, "exact", RESAMPLES),
        groups=problem.estimates,
        target=problem.target,
        sums=problem.collection.sums,
        resamples=RESAMPLES,
        seed=np.random.SeedSequence((SEED, seed)),
    )


def seed_of_trial(trial: int) -> Seed:
    """The seed of one trial, as audits take it."""
    return Seed(np.random.SeedSequence((SEED, trial)), trial)


def bounds_of(
    problem: Problem, method: Bootstrap | Pivotal, trial: int, side: bootstrap.Side
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper bounds of a problem as arrays, by the mathematics behind `certify`.

    Bounds of a side that was not asked for mean nothing; groups without an answer have NaN.
    """
    if isinstance(method, Bootstrap):
        scaling = method.scaling(power=1.5)
        extremes = bootstrap.bound_extremes(audit_of(problem, trial), scaling)
        found = bootstrap.simultaneous_bounds(
            problem.estimates, extremes, scaling, level=LEVEL, side=side
        )
        return found.lower, found.upper
    core, critical, _ = answerable(
        problem.core, LEVEL, side.value, method.resamples, seed_of_trial(trial), False
    )
    return core.bounds(critical.value, limits_of(problem))
