"""Figure 4: bounds for two ranges of a line's squared error, and two of a band's coverage.

Published, with 400 holdout points and 90 % confidence for all ranges at once: upper bounds of 0.5
and 1.15 where the true squared errors are 0.3 and 0.8, lower bounds of 81.1 % and 80.1 % where the
true coverages are 92.4 % and 89.5 %. The ranges are drawn, not printed. For the line their middle
is known, since the error of model (12) at x is x; all ranges about it are tried. The band stands in
for a fitted forest, so ranges with the nearest true coverage are tried. A published bound agrees
if it looks like one of those of our samples for some range.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from audit_worlds import BAND as STAND_IN
from audit_worlds import LEVEL, SEED, SLOW, band_sample, bounds_of, ends_of, line_sample
from records import agreed, main, write

from equipoise.audits._groups.problem import Problem
from equipoise.audits.methods import Bootstrap, Pivotal
from equipoise.methods.numerics import BoolArray, FloatArray
from equipoise.methods.published.bootstrap import Side

ROWS = 400
METHODS = {"published": Bootstrap(), "default": Pivotal()}
LINE = {0.3: 0.5, 0.8: 1.15}
BAND = {0.924: 0.811, 0.895: 0.801}


def run(full: bool = False) -> dict[str, Any]:
    """The bounds over many holdout sets."""
    rng = np.random.default_rng([SEED, 4])
    rows = []
    for method in METHODS:
        rows += _line(method, 200 if full else 40, rng)
        slow = SLOW if full else 3
        rows += _band(method, slow if method == "default" else 100 if full else 20, rng)
    result = {"source": "Figure 4", "rows": rows, "agrees": agreed(rows)}
    return write(__file__, "figure_4", result, full)


def _line(method: str, sets: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    found, misses = [], 0
    for trial in range(sets):
        problem, truth = line_sample(ROWS, rng, uneven=True)
        upper = bounds_of(problem, METHODS[method], trial, Side.UPPER)[1]
        misses += bool(np.any(upper < truth))
        found.append(_ranges(problem, upper, 10))
    start, stop = np.indices((11, 11))
    rows = []
    for middle, published in LINE.items():
        tried = (start < stop) & np.isclose((start + stop) / 20, middle)
        about = ("upper bound on the squared error", method, middle, published)
        rows.append(_row(about, np.array(found), tried, misses))
    return rows


def _band(method: str, sets: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    found, misses = [], 0
    for trial in range(sets):
        problem, truth = band_sample(ROWS, rng)
        lower = bounds_of(problem, METHODS[method], trial, Side.LOWER)[0]
        misses += bool(np.any(lower > truth))
        found.append(LEVEL + _ranges(problem, lower, 50))
    start, stop = np.indices((51, 51))
    total = np.concatenate([[0.0], np.cumsum(STAND_IN.rate)])
    with np.errstate(divide="ignore", invalid="ignore"):
        covers = (total[stop] - total[start]) / (stop - start)
    rows = []
    for covered, published in BAND.items():
        # ranges of half a unit to one and a half whose true coverage is nearest
        wide = (stop - start >= 5) & (stop - start <= 15)
        off = np.where(wide, np.abs(covers - covered), np.inf)
        tried = off <= np.sort(off, axis=None)[9]
        about = ("lower bound on coverage", method, covered, published)
        rows.append(_row(about, np.array(found), tried, misses))
    return rows


def _ranges(problem: Problem, bound: FloatArray, cells: int) -> FloatArray:
    """Bounds by first and last tenth; ranges without rows have none."""
    start, stop = (np.rint(end * 10).astype(np.int64) for end in ends_of(problem))
    out = np.full((cells + 1, cells + 1), np.nan)
    out[start, stop] = bound
    return out


def _row(
    about: tuple[str, str, float, float], bounds: FloatArray, tried: BoolArray, misses: int
) -> dict[str, Any]:
    """The range whose bounds are nearest to the published one."""
    figure, method, truth, published = about
    each = bounds[:, tried]
    given = np.isfinite(each).sum(axis=0)
    common: dict[str, Any] = {
        "figure": figure,
        "method": method,
        "truth": truth,
        "published": published,
        "ours": None,
        "spread": None,
        "between": None,
        "range of x": None,
        "ranges_tried": int(tried.sum()),
        "sets": len(bounds),
        "sets_with_a_bound": int(given.max()),
        "sets_with_a_miss": misses,
        "agrees": None,
    }
    if given.max() < 2:
        # too skewed for these rows, says the default, whatever the range
        return common
    mean = np.nansum(each, axis=0) / np.maximum(given, 1)
    best = int(np.argmin(np.where(given > 1, np.abs(mean - published), np.inf)))
    start, stop = np.argwhere(tried)[best].tolist()
    bound = each[np.isfinite(each[:, best]), best]
    low, high = np.quantile(bound, [0.005, 0.995])
    return {
        **common,
        "ours": round(float(bound.mean()), 4),
        "spread": round(float(bound.std(ddof=1)), 4),
        "between": [round(float(low), 3), round(float(high), 3)],
        "range of x": [start / 10, stop / 10],
        "sets_with_a_bound": int(given[best]),
        "agrees": bool(low <= published <= high) if method == "published" else None,
    }


if __name__ == "__main__":
    main("figure 4", run)
