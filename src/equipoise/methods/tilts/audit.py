"""The tilt audit on arrays: resample, take suprema, keep their distribution."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import nnls

from equipoise.methods.numerics import FloatArray, IntArray, Progress, quantile, rank
from equipoise.methods.tilts.draws import (
    SLACK,
    Deviations,
    ScaleGrid,
    TiltEngine,
    TiltMoments,
    TiltSample,
    deviations,
    joined,
    make_grid,
    moments_of,
    unscaled_extremes,
)

# --- Non-negative tilts in units of their own scale ---
#
# Under a non-negative tilt the average metric ν lies between the smallest and the largest value
# that the metric takes on average anywhere. With ν given, the process is (m·β)((a − ν u)·β): two
# ranks, linear in ν. Its supremum over tilts and over that range, in units of the scale, is a
# maximum over the two ends of the range and over τ of a closed form. Without the range, tilts of
# both signs whose mean is nearly zero decide the supremum (see `signed`), and bounds are wide
# wherever the metric depends on the covariates.

#: Directions with less than this share of the largest second moment are mere rounding.
_THIN = 1e-8


def rescaled_extremes(
    grid: ScaleGrid, moments: TiltMoments, reach: tuple[float, float], drawn: Deviations
) -> FloatArray:
    """Lowest and highest value of process over scale in each resample: shape (resamples, 2).

    >>> from equipoise.methods.tilts.draws import make_grid
    >>> moments = TiltMoments(
    ...     n=9.0, mean=np.array([1.0]), cross=np.array([0.0]), second=np.array([[1.0]]),
    ...     centred=np.array([[1.0]]),
    ... )
    >>> drawn = Deviations(
    ...     mean=np.zeros((1, 1)), cross=np.array([[0.2]]), target=np.zeros(1), spread=np.ones(1)
    ... )
    >>> found = rescaled_extremes(make_grid(moments, 0.25), moments, (0.0, 0.0), drawn)
    >>> abs(found).round(3).tolist()
    [[0.0, 0.16]]
    """
    first = (drawn.cross - drawn.target[:, None] * moments.mean) @ grid.axes
    second = drawn.mean @ grid.axes
    # Linear in ν, and the scale does not depend on it: the maximum is at an end of the range.
    ends = [_ends(grid, first - value * second) for value in dict.fromkeys(reach)]
    low = np.max([end[0] for end in ends], axis=0)
    high = np.max([end[1] for end in ends], axis=0)
    return np.stack([0.0 - low, high], axis=1) * (1 + SLACK)


def _ends(grid: ScaleGrid, w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Largest value of −(m·β)(w·β) and of (m·β)(w·β) over the scale, for each line of w."""
    wm = grid.with_mean(w)
    mm = grid.with_mean(grid.mean)
    ww = np.maximum(grid.inner((w * w) @ grid.inverse, wm, wm), 0.0)
    # xyᵀ + yxᵀ has the eigenvalues x·y ± |x||y|: the two ranks need no eigenvalue routine.
    size = np.sqrt(mm * grid.shrink * ww)
    lean = wm * grid.shrink
    # Rounding may leave a hair below zero, where the supremum is zero.
    low, high = (np.maximum((size + sign * lean).max(axis=1) / 2, 0.0) for sign in (-1, 1))
    return low, high


def reach_of(sample: TiltSample, moments: TiltMoments) -> tuple[float, float]:
    """Between which values the average metric lies under every non-negative tilt of the span.

    The metric may be replaced by any function with the same averages against the span. Its
    projection on the span is one, and varies far less than the metric itself. Values are minus the
    mean over everyone.

    >>> sample = TiltSample(
    ...     features=np.ones((4, 1)), values=np.array([1.0, -1.0, 3.0, -3.0]),
    ...     influence=np.zeros(4), counts=np.ones(4), paired=np.zeros(4),
    ... )
    >>> from equipoise.methods.tilts.draws import moments_of
    >>> reach_of(sample, moments_of(sample))
    (0.0, 0.0)
    """
    size, axes = np.linalg.eigh(moments.second)
    kept = size > _THIN * size[-1]
    coordinates = axes[:, kept] @ ((axes[:, kept].T @ moments.cross) / size[kept])
    fitted = sample.features @ coordinates
    # Both the projection and the metric bound the average, so the nearer end counts; where the
    # range is a point, rounding may swap its ends.
    low = max(float(fitted.min()), float(sample.values.min()))
    high = min(float(fitted.max()), float(sample.values.max()))
    return min(low, high), max(low, high)


# --- Tilts of either sign in units of their own scale: the largest root of a quartic for each τ
#
# The process has rank four at most. Its eigenvalues against one quadratic form of the grid are
# those of a constant matrix times the inner products of its four vectors.

_Coefficients = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


def signed_extremes(grid: ScaleGrid, moments: TiltMoments, drawn: Deviations) -> FloatArray:
    """Lowest and highest value of process over scale in each resample, over tilts of any sign.

    >>> from equipoise.methods.tilts.draws import make_grid
    >>> moments = TiltMoments(
    ...     n=9.0, mean=np.array([1.0]), cross=np.array([0.0]), second=np.array([[1.0]]),
    ...     centred=np.array([[1.0]]),
    ... )
    >>> drawn = Deviations(
    ...     mean=np.zeros((1, 1)), cross=np.array([[0.2]]), target=np.zeros(1), spread=np.ones(1)
    ... )
    >>> abs(signed_extremes(make_grid(moments, 0.25), moments, drawn)).round(3).tolist()
    [[0.0, 0.16]]
    """
    first = (drawn.cross - drawn.target[:, None] * moments.mean) @ grid.axes
    gram = _gram(grid, first, drawn.mean @ grid.axes)
    e1, e2, e3, e4 = _characteristic(gram)
    high = _largest_root((e1, e2, e3, e4), _bound(gram, 1.0)).max(axis=1)
    low = _largest_root((-e1, e2, -e3, e4), _bound(gram, -1.0)).max(axis=1)
    return np.stack([0.0 - low, high], axis=1) * (1 + SLACK)


def _gram(grid: ScaleGrid, a: FloatArray, u: FloatArray) -> dict[str, FloatArray]:
    """Inner products of m, a, u, g in the inverse of each form: resamples × grid."""
    g, by_cross = grid.cross, grid.inverse * grid.cross[:, None]
    am, um, gm = grid.with_mean(a), grid.with_mean(u), grid.with_mean(g)
    return {
        "mm": grid.with_mean(grid.mean) * grid.shrink,
        "mg": gm * grid.shrink,
        "ma": am * grid.shrink,
        "mu": um * grid.shrink,
        "gg": grid.inner(g @ by_cross, gm, gm),
        "ag": grid.inner(a @ by_cross, am, gm),
        "ug": grid.inner(u @ by_cross, um, gm),
        "aa": grid.inner((a * a) @ grid.inverse, am, am),
        "uu": grid.inner((u * u) @ grid.inverse, um, um),
        "au": grid.inner((a * u) @ grid.inverse, am, um),
    }


def _characteristic(gram: dict[str, FloatArray]) -> _Coefficients:
    """e₁ … e₄ of x⁴ − e₁ x³ + e₂ x² − e₃ x + e₄, whose roots are the four eigenvalues.

    The constant matrix pairs m with a by ½ and u with g by −½, so by Cauchy–Binet each eₖ is a
    sum of a few k × k minors of the inner products.
    """
    names = ("m", "a", "u", "g")
    matrix = np.empty((4, 4, *gram["aa"].shape))
    for i, x in enumerate(names):
        for j, y in enumerate(names):
            matrix[i, j] = gram[x + y] if x + y in gram else gram[y + x]
    pairs = _minor(matrix, (0, 1), (0, 1)) + _minor(matrix, (2, 3), (2, 3))
    crossed = _minor(matrix, (0, 2), (1, 3)) + _minor(matrix, (0, 3), (1, 2))
    threes = _minor(matrix, (1, 2, 3), (0, 2, 3)) - _minor(matrix, (0, 1, 3), (0, 1, 2))
    return (
        matrix[0, 1] - matrix[2, 3],
        -(pairs + 2 * crossed) / 4,
        -threes / 4,
        _minor(matrix, (0, 1, 2, 3), (0, 1, 2, 3)) / 16,
    )


def _minor(x: FloatArray, rows: tuple[int, ...], columns: tuple[int, ...]) -> FloatArray:
    """Determinant of some rows and columns, by expansion along the first row."""
    if len(rows) == 1:
        return np.asarray(x[rows[0], columns[0]])
    total: FloatArray = np.zeros(x.shape[2:])
    for i, column in enumerate(columns):
        rest = columns[:i] + columns[i + 1 :]
        total = total + (-1) ** i * x[rows[0], column] * _minor(x, rows[1:], rest)
    return total


def _bound(gram: dict[str, FloatArray], sign: float) -> FloatArray:
    """A number no eigenvalue of the process (or, with sign −1, of its negative) exceeds."""
    # Weyl: the largest eigenvalue of a sum is at most the sum of those of its two parts, and a part
    # xyᵀ + yxᵀ has x·y + |x||y|.
    first = np.sqrt(np.maximum(gram["mm"] * gram["aa"], 0)) + sign * gram["ma"]
    second = np.sqrt(np.maximum(gram["uu"] * gram["gg"], 0)) - sign * gram["ug"]
    return np.asarray((np.maximum(first, 0) + np.maximum(second, 0)) / 2)


def _largest_root(coefficients: _Coefficients, start: FloatArray) -> FloatArray:
    """The largest root by Newton's method from above: roots are real, so it never overshoots."""
    e1, e2, e3, e4 = coefficients
    x = start.copy()
    for _ in range(60):
        value = (((x - e1) * x + e2) * x - e3) * x + e4
        slope = ((4 * x - 3 * e1) * x + 2 * e2) * x - e3
        # At a double root the slope vanishes with the value, and rounding may turn its sign.
        step = np.divide(value, slope, out=np.zeros_like(x), where=slope > 0)
        moved = np.clip(x - np.maximum(step, 0.0), 0.0, None)
        done = bool(np.all(x - moved <= 1e-9 * x))
        x = moved
        if done:
            break
    return x


# --- The tilt audit on arrays: resample, take suprema, keep their distribution ---


class Method(StrEnum):
    """In which units tilts are compared."""

    RESCALED = "rescaled"
    SIGNED = "signed"
    UNSCALED = "unscaled"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TiltAudit:
    """The distribution of the suprema, and the averages from which tilts are estimated."""

    method: Method
    """In which units tilts are compared."""
    floor: float | None
    """What the squared norm counts in the scale; None without a scale."""
    moments: TiltMoments
    """Averages over the rows."""
    reach: tuple[float, float]
    """Between which values the average metric lies under non-negative tilts of the span."""
    draws: FloatArray
    """Lowest and highest value over tilts in the span, for each resample."""
    engine: str
    """How resamples were drawn."""


def audit_tilts(
    sample: TiltSample,
    engine: TiltEngine,
    *,
    method: Method,
    floor: float,
    resamples: int,
    seed: np.random.SeedSequence,
    progress: Progress | None = None,
) -> TiltAudit:
    """Resample and keep the extremes of the process.

    >>> from equipoise.methods.tilts.draws import RowTilts
    >>> rng = np.random.default_rng(1)
    >>> values = rng.standard_normal(50)
    >>> sample = TiltSample(
    ...     features=np.ones((50, 1)), values=values - values.mean(), influence=np.zeros(50),
    ...     counts=np.ones(50), paired=np.zeros(50),
    ... )
    >>> found = audit_tilts(
    ...     sample, RowTilts(sample), method=Method.UNSCALED, floor=0.001, resamples=200,
    ...     seed=np.random.SeedSequence(1),
    ... )
    >>> 0.1 < critical_value(found.draws, 0.9, "lower") < 0.3
    True
    """
    moments = moments_of(sample)
    # Only the rescaled process needs the range; it costs a pass over the rows.
    reach = reach_of(sample, moments) if method is Method.RESCALED else (0.0, 0.0)
    grid = None if method is Method.UNSCALED else make_grid(moments, floor)
    scale = None if grid is None else floor
    chunks = deviations(engine, resamples=resamples, seed=seed, progress=progress)
    draws = [_extremes(method, grid, moments, reach, drawn) for drawn in joined(chunks)]
    return TiltAudit(
        method=method,
        floor=scale,
        moments=moments,
        reach=reach,
        draws=np.concatenate(draws),
        engine=engine.name,
    )


def _extremes(
    method: Method,
    grid: ScaleGrid | None,
    moments: TiltMoments,
    reach: tuple[float, float],
    drawn: Deviations,
) -> FloatArray:
    if grid is None:
        return unscaled_extremes(moments, drawn)
    if method is Method.SIGNED:
        found = signed_extremes(grid, moments, drawn)
    else:
        found = rescaled_extremes(grid, moments, reach, drawn)
    # In units of the resample's own spread; bounds have that of the rows, which is one.
    return np.asarray(found / drawn.spread[:, None])


def critical_value(draws: FloatArray, level: float, side: str) -> float:
    """The quantile that bounds need: of the highest, the lowest, or the larger of both.

    >>> critical_value(np.array([[-3.0, 1.0], [-1.0, 2.0]]), 0.5, "both")
    2.0
    """
    return quantile(_needed(draws, side), level)


def _needed(draws: FloatArray, side: str) -> FloatArray:
    return {
        "lower": draws[:, 1],
        "upper": -draws[:, 0],
        "both": np.maximum(draws[:, 1], -draws[:, 0]),
    }[side]


#: Entries of a table of critical values at most; with fewer draws there is one for each.
TABLE = 1000


def critical_table(draws: FloatArray, side: str) -> tuple[float, ...]:
    """Critical values at equally spaced levels, the last at 100 %, for `critical_at` to read.

    To six digits, and rounded up: what is read is never below the quantile of the draws.

    >>> critical_table(np.array([[-3.0, 1.0], [-1.0, 2.0000001]]), "both")
    (2.00001, 3.0)
    """
    values = np.sort(_needed(draws, side))
    number = min(values.size, TABLE)
    places = [rank(values.size, i / number) for i in range(1, number + 1)]
    return tuple(map(_rounded_up, values[places].tolist()))


def critical_at(table: Sequence[float], level: float) -> float:
    """The critical value of a level; between two entries of the table it is the larger one.

    >>> critical_at((1.0, 2.0, 3.0, 4.0), 0.5), critical_at((1.0, 2.0, 3.0, 4.0), 0.51)
    (2.0, 3.0)
    """
    return table[rank(len(table), level)]


def _rounded_up(value: float) -> float:
    near = float(f"{value:.5e}")
    if near >= value:
        return near
    return float(f"{near + 10.0 ** (math.floor(math.log10(abs(value))) - 5):.5e}")


# --- The closest non-negative tilt in the span: to a group, to a weighting, to another population

#: Rounds in which rows with a negative tilt are added to the constraints.
_ROUNDS = 60
#: Rows added in a round.
_ADDED = 60
#: How negative a tilt may be, as a share of its largest value.
TOLERATED = 1e-6
#: Penalties on the squared norm that are tried, as shares of the mean diagonal of the kernel.
PENALTIES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Closest:
    """A tilt of the span that is non-negative on the rows and at the points between them."""

    coordinates: FloatArray
    """Its coordinates."""
    values: FloatArray
    """Its value on each row."""
    penalty: float
    """The penalty on its squared norm."""
    lowest: float
    """Its lowest value as a share of the largest: zero, up to rounding."""


def closest_tilts(
    features: FloatArray,
    second: FloatArray,
    wanted: FloatArray,
    penalties: Sequence[float] = PENALTIES,
    between: FloatArray | None = None,
) -> list[Closest]:
    """For each penalty the non-negative tilt closest to a density ratio, in mean square.

    ``second`` is the mean of the products of features, and ``wanted`` the mean of the features in
    the distribution to be approached: for a group, the mean over its rows. Minimises
    P h² − 2 Q h + penalty ‖h‖² over functions that are at least zero on every row of ``features``
    and, if given, of ``between``, the features of points where no row lies; the minimum is a
    projection on a cone, found by non-negative least squares.

    >>> x = np.linspace(-1, 1, 40)[:, None]
    >>> from equipoise.methods.tilts.kernels import Gaussian
    >>> from equipoise.methods.tilts.kernels import factor_kernel
    >>> features = factor_kernel(Gaussian((0.5,)), x).features
    >>> inside = np.abs(x[:, 0]) < 0.5
    >>> second = features.T @ features / 40
    >>> found = closest_tilts(features, second, features[inside].mean(axis=0), [1e-5])[0]
    >>> bool(found.lowest > -1e-6), round(float(found.values[~inside].mean()), 1)
    (True, 0.2)
    """
    size = float(np.trace(second))
    bounded = features if between is None else np.concatenate([features, between])
    return [
        _closest(bounded, len(features), second, wanted, penalty * size) for penalty in penalties
    ]


def _closest(
    bounded: FloatArray, rows: int, second: FloatArray, wanted: FloatArray, penalty: float
) -> Closest:
    # Without constraints the minimum solves this system; the penalty also makes it invertible.
    matrix = second + penalty * np.eye(len(second))
    lower, _ = cho_factor(matrix, lower=True)
    lower = np.tril(lower)
    free = cho_solve((lower, True), wanted)
    bound: IntArray = np.zeros(0, dtype=np.int64)
    found = free
    for _ in range(_ROUNDS):
        values = bounded @ found
        worst = _negative(values)
        if len(np.setdiff1d(worst, bound)) == 0:
            break
        bound = np.union1d(bound, worst)
        found = _projected(lower, free, bounded[bound])
    values = bounded @ found
    top = float(values[:rows].max())
    return Closest(
        coordinates=found,
        values=values[:rows],
        penalty=penalty,
        lowest=float(min(values.min() / top, 0.0)) if top > 0 else -np.inf,
    )


def _negative(values: FloatArray) -> IntArray:
    """The rows where a tilt is most negative."""
    # A tenth of what is tolerated, so that what the last round leaves still passes.
    limit = -TOLERATED / 10 * max(float(values.max()), 0.0)
    order = np.argsort(values, kind="stable")[:_ADDED]
    return np.asarray(order[values[order] < limit])


def _projected(lower: FloatArray, free: FloatArray, rows: FloatArray) -> FloatArray:
    """The point nearest to ``free`` in the norm of the matrix at which no row is negative."""
    normals = solve_triangular(lower, rows.T, lower=True)
    start = lower.T @ free
    # Moreau: the projection on a cone is the point plus a non-negative mixture of the normals.
    length = np.maximum(np.linalg.norm(normals, axis=0), 1e-300)
    mixture: FloatArray = nnls(normals / length, -start, maxiter=50 * len(length) + 200)[0]
    moved = start + (normals / length) @ mixture
    return np.asarray(solve_triangular(lower.T, moved, lower=False))


def points_between(
    points: FloatArray, fixed: Sequence[int] = (), number: int = 1000, offset: float = 0.5
) -> FloatArray:
    """Points between the rows, where a tilt that is non-negative on the rows may not be.

    For each column that is not ``fixed``, rows are joined in the order of that column, those that
    agree on the fixed columns; ``number`` points in all lie on these lines at equal distances. With
    one column this is an even grid of its range; with more, points fall inside the cloud of rows.

    >>> points_between(np.array([[0.0], [10.0]]), number=4).ravel().tolist()
    [1.25, 3.75, 6.25, 8.75]
    """
    distinct = np.unique(points, axis=0)
    spread = np.ptp(distinct, axis=0)
    free = [j for j in range(points.shape[1]) if j not in fixed and spread[j] > 0]
    each = -(-number // max(len(free), 1))
    found = [_along(distinct, spread, j, fixed, free, each, offset) for j in free]
    return np.concatenate(found) if found else points[:0]


def _along(
    distinct: FloatArray,
    spread: FloatArray,
    column: int,
    fixed: Sequence[int],
    free: Sequence[int],
    number: int,
    offset: float,
) -> FloatArray:
    order = np.lexsort([distinct[:, column], *(distinct[:, j] for j in fixed)])
    start, stop = distinct[order[:-1]], distinct[order[1:]]
    length = np.abs((stop - start)[:, free] / spread[free]).sum(axis=1)
    # A line from one category to another leads through nobody.
    length[np.any(start[:, fixed] != stop[:, fixed], axis=1)] = 0.0
    along = np.concatenate([[0.0], np.cumsum(length)])
    if along[-1] <= 0:
        return distinct[:0]
    place = (np.arange(number) + offset) / number * along[-1]
    segment = np.clip(np.searchsorted(along, place, side="right") - 1, 0, len(length) - 1)
    part = (place - along[segment]) / np.where(length[segment] > 0, length[segment], 1.0)
    return np.asarray(start[segment] + np.clip(part, 0.0, 1.0)[:, None] * (stop - start)[segment])


# --- Monotone tilts as mixtures of half-lines: bounds on all half-lines bound every one of them ---


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HalfLines:
    """Simultaneous lower bounds on the disparity below each cut and from it up."""

    below: FloatArray
    """Of x under each cut; minus infinity where there is none."""
    above: FloatArray
    """Of x at or over each cut."""
    everyone: float | None = None
    """Of all rows together, if it is known otherwise."""


def lower_bound(
    weights: FloatArray, shares: FloatArray, errors: FloatArray, halves: HalfLines
) -> float:
    """The lower bound on the disparity under a monotone tilt; minus infinity if there is none.

    ``weights`` and ``shares`` of the population have one entry for each range between cuts, in
    order; ``errors`` bound by how much the share above each cut may be wrong.

    >>> halves = HalfLines(below=np.array([-0.3, -0.2]), above=np.array([-0.1, 0.1]))
    >>> shares, errors = np.array([0.4, 0.4, 0.2]), np.full(2, 0.01)
    >>> round(lower_bound(np.array([0.0, 0.0, 2.0]), shares, errors, halves), 3)
    0.1
    >>> round(lower_bound(np.array([0.0, 1.0, 2.0]), shares, errors, halves), 3)
    -0.053
    """
    least, made = _mixture(weights, shares, halves)
    if not np.isfinite(least):
        return -np.inf
    mean = float(shares @ weights)
    ratio = float(shares @ made) / mean
    slack = float(np.abs(np.diff(made - ratio * weights)) @ errors)
    # The mean of the tilt is estimated too; where it may be zero only the least bound is left.
    surely = mean - float(np.abs(np.diff(weights)) @ errors)
    if slack <= 1e-12 * mean:
        return ratio
    return max(ratio - slack / surely, least) if surely > 0 else least


def upper_bound(
    weights: FloatArray, shares: FloatArray, errors: FloatArray, halves: HalfLines
) -> float:
    """The upper bound, from upper bounds on the half-lines; infinity if there is none."""
    everyone = None if halves.everyone is None else -halves.everyone
    mirrored = HalfLines(below=-halves.below, above=-halves.above, everyone=everyone)
    return -lower_bound(weights, shares, errors, mirrored)


def _mixture(
    weights: FloatArray, shares: FloatArray, halves: HalfLines
) -> tuple[float, FloatArray]:
    """The least bound of the half-lines that make up a tilt, and g on each range."""
    steps = np.diff(weights)
    rising = weights[-1] >= weights[0]
    bounds, used = (halves.above, steps > 0) if rising else (halves.below, steps < 0)
    constant = float(min(weights[0], weights[-1]))
    least = [*bounds[used]]
    made = np.zeros(len(weights))
    if constant > 0:
        flat = _everyone(shares, halves)
        least += [*flat]
        made = made + constant * flat
    if not np.all(np.isfinite(least)):
        return -np.inf, made
    gained = np.where(used, np.abs(steps) * np.where(used, bounds, 0.0), 0.0)
    if rising:
        made[1:] += np.cumsum(gained)
    else:
        made[:-1] += np.cumsum(gained[::-1])[::-1]
    return float(min(least)), made


def _everyone(shares: FloatArray, halves: HalfLines) -> FloatArray:
    """A bound on everyone as a function of x: a number, or those of two half-lines that meet."""
    if halves.everyone is not None:
        return np.full(len(shares), halves.everyone)
    under = np.cumsum(shares)[:-1]
    answered = np.isfinite(halves.below) & np.isfinite(halves.above)
    below, above = (np.where(answered, x, 0.0) for x in (halves.below, halves.above))
    both = under * below + (shares.sum() - under) * above
    # All bounds hold at once, so the best pair may be chosen.
    best = int(np.argmax(np.where(answered, both, -np.inf)))
    place = np.arange(len(shares)) <= best
    return np.asarray(np.where(place, halves.below[best], halves.above[best]))


def share_errors(
    place: IntArray, weights: FloatArray, counts: FloatArray, clusters: IntArray | None, cuts: int
) -> FloatArray:
    """Standard errors of the weighted share above each cut, from each row's range.

    >>> share_errors(np.array([0, 1]), np.ones(2), np.array([50.0, 50.0]), None, 1).tolist()
    [0.05]
    """
    total = float(counts @ weights)
    found = []
    for cut in range(cuts):
        inside = (place > cut).astype(np.float64)
        moved = weights * (inside - counts @ (weights * inside) / total)
        if clusters is None:
            square = float(counts @ moved**2)
        else:
            square = float((np.bincount(clusters, counts * moved) ** 2).sum())
        found.append(np.sqrt(square) / total)
    return np.array(found)


def first_turn(weights: FloatArray) -> int | None:
    """Where weights that rise begin to fall, or the other way round; None if they never do.

    >>> first_turn(np.array([1.0, 2.0, 2.0, 1.5]))
    2
    >>> first_turn(np.array([3.0, 3.0, 1.0])) is None
    True
    """
    steps = np.diff(weights)
    moving = np.flatnonzero(steps)
    if not len(moving):
        return None
    turned = np.flatnonzero(np.sign(steps) == -np.sign(steps[moving[0]]))
    return int(turned[0]) if len(turned) else None
