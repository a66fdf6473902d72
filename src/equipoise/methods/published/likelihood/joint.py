"""Joint tests that several disparities are zero (or any other values) at once.

Groups that share no row decouple: each has a multiplier of its own, and the joint statistic is the
sum of one-dimensional ones. Overlapping groups (men, women, everybody) make constraints depend on
each other; dependent ones are dropped, and the degrees of freedom are the rank of the rest.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from equipoise.methods.numerics import FloatArray, IntArray
from equipoise.methods.published.likelihood.mean import Segments, adjustment, mean_ratio

# --- Joint tests that several disparities are zero (or any other values) at once ---

MAX_STEPS = 100
UNSEEN = 1e-5
"""Count that stands for an outcome that could occur and did not: a barrier at weight zero."""
TOLERANCE = 1e-9
"""Constraints whose part not explained by the others is smaller than this are dependent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JointRatio:
    """A joint likelihood ratio test."""

    statistic: float
    """The statistic, χ² with ``rank`` degrees of freedom if the null holds."""
    rank: int
    """Constraints that do not depend on each other."""
    constraints: int
    """Constraints that were asked for and have data."""
    p: float
    """p-value."""


def _test(statistic: float, rank: int, constraints: int) -> JointRatio:
    p = float(chdtrc(rank, statistic)) if rank else 1.0
    return JointRatio(statistic=statistic, rank=rank, constraints=constraints, p=p)


def joint_disjoint(
    groups: Segments, value: FloatArray, adjust: FloatArray | None = None
) -> JointRatio:
    """Joint test of the means of groups that share no row; groups that do not vary are left out.

    >>> from equipoise.methods.published.likelihood import segments
    >>> found = joint_disjoint(segments([np.arange(9.0), np.arange(5.0)]), np.array([4.0, 2.0]))
    >>> found.statistic, found.rank, found.p
    (0.0, 2, 1.0)
    """
    # A row counts for one group only, so equation (3.3) of the paper on empirical likelihood falls
    # apart into one for each multiplier, and the χ² of its Theorem 1 adds up.
    each = mean_ratio(groups, value, adjust=adjust).statistic
    known = ~np.isnan(each)
    return _test(float(each[known].sum()), int(known.sum()), int(known.sum()))


def joint_euclidean(gap: FloatArray, covariance: FloatArray) -> JointRatio:
    """Euclidean likelihood: gaps against their covariance, of whatever rank it is.

    >>> twice = np.array([[0.01, 0.01], [0.01, 0.01]])
    >>> found = joint_euclidean(np.array([0.2, 0.2]), twice)
    >>> round(found.statistic, 6), found.rank, found.constraints
    (4.0, 1, 2)
    """
    error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    used = error > 0
    z = gap[used] / error[used]
    values, vectors = np.linalg.eigh(
        covariance[np.ix_(used, used)] / np.outer(error, error)[np.ix_(used, used)]
    )
    # Groups such as men, women and everybody make the covariance singular, against condition C5 of
    # the paper on empirical likelihood: the statistic lives on its range, and its degrees of
    # freedom are the rank.
    real = values > TOLERANCE * max(float(values.max(initial=0.0)), 1.0)
    turned = vectors[:, real].T @ z
    statistic = float((turned**2 / values[real]).sum())
    return _test(statistic, int(real.sum()), int(used.sum()))


def joint_ratio(
    g: FloatArray,
    count: FloatArray | None = None,
    *,
    adjusted: bool = True,
    support: bool = False,
) -> JointRatio:
    """Joint empirical likelihood of E g = 0 over rows (N, m), dependent columns dropped.

    With ``adjusted`` one point more, at −a ḡ, keeps zero inside the hull. With ``support`` rows
    with a count of zero are outcomes that could have occurred: a group of two ones may have a rate
    below one, as in the binomial likelihood, and no point is added.

    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=(200, 2))
    >>> both = np.column_stack([x, x.sum(axis=1)])
    >>> one, two = joint_ratio(x), joint_ratio(both)
    >>> two.rank, two.constraints, abs(one.statistic - two.statistic) < 1e-8
    (2, 3, True)
    >>> rate = np.array([[-0.5], [0.5]])
    >>> found = joint_ratio(rate, np.array([0.0, 3.0]), support=True)
    >>> bool(abs(found.statistic - 3 * np.log(4)) < 1e-3)
    True
    """
    n = np.ones(len(g)) if count is None else count
    if not support and bool((n == 0).any()):
        g, n = g[n > 0], n[n > 0]
    chosen = independent_columns(g, np.maximum(n, UNSEEN) if support else n)
    m = int((np.abs(g).max(axis=0, initial=0.0) > 0).sum())
    if chosen.size == 0:
        return _test(0.0, 0, m)
    x, weights = _standard(g[:, chosen], n), n
    if support:
        weights = np.maximum(n, UNSEEN)
    elif adjusted:
        # The size of `adjustment`, for all constraints at once.
        size = max(1.0, float(np.log(n.sum())) / 2)
        mean = (n[:, None] * x).sum(axis=0) / n.sum()
        x, weights = np.vstack([x, -size * mean]), np.append(n, 1.0)
    z = 1 + x @ _solve(x, weights)
    value = _value(z, weights)
    if support:
        # The barrier of unseen outcomes has steered the search; the statistic is that of the rows.
        value = _value(z[n > 0], n[n > 0])
    return _test(2 * max(value, 0.0), int(chosen.size), m)


def null_weights(g: FloatArray, count: FloatArray) -> FloatArray:
    """The most likely distribution over the rows, unseen outcomes included, with E g = 0.

    >>> null_weights(np.array([[-0.5], [0.5]]), np.array([0.0, 3.0])).round(4).tolist()
    [0.5, 0.5]
    """
    weights = np.maximum(count, UNSEEN)
    chosen = independent_columns(g, weights)
    if chosen.size == 0:
        return np.asarray(weights / weights.sum())
    x = _standard(g[:, chosen], count)
    z = np.maximum(1 + x @ _solve(x, weights), weights / weights.sum())
    return np.asarray(weights / z / (weights / z).sum())


def _standard(g: FloatArray, count: FloatArray) -> FloatArray:
    n = np.maximum(count, UNSEEN)
    return np.asarray(g / np.sqrt((n[:, None] * g**2).sum(axis=0) / n.sum()))


def independent_columns(g: FloatArray, count: FloatArray) -> IntArray:
    """Columns that do not depend on earlier pivots, in the order they came."""
    from scipy.linalg import qr  # slow to load, and seldom needed

    root = np.sqrt(count)[:, None] * g
    size = np.sqrt((root**2).sum(axis=0))
    live = np.flatnonzero(size > 0)
    if live.size == 0:
        return live
    # the Gram matrix is m × m however many rows there are
    unit = root[:, live] / size[live]
    gram = unit.T @ unit if len(g) > live.size else None
    r, pivots = qr(unit if gram is None else gram, mode="r", pivoting=True)[-2:]
    diagonal = np.abs(np.diag(r))
    rank = int((diagonal > TOLERANCE).sum())
    return np.sort(live[pivots[:rank]]).astype(np.int64)


def _solve(x: FloatArray, count: FloatArray) -> FloatArray:
    """The multipliers of the largest Σ n log*(1 + λ·x), by damped Newton on the pseudo-logarithm.

    A row of count n has z ≥ n/N at the optimum, since no weight exceeds one.
    """
    floor = count / float(count.sum())
    at = np.zeros(x.shape[1])
    value, gradient, hessian = _three(x, count, at, floor)
    for _ in range(MAX_STEPS):
        step = _newton_step(hessian, gradient)
        gain = float(gradient @ step)
        if gain <= 1e-20 * (1 + value):
            break
        size = 1.0
        while size > 1e-10:
            new = _three(x, count, at + size * step, floor)
            # Armijo's rule; the last term forgives the rounding of a long sum.
            if new[0] >= value + 1e-4 * size * gain - 1e-13 * abs(value):
                break
            size /= 2
        at = at + size * step
        value, gradient, hessian = new
        if gain <= 1e-13 * (1 + value):
            break
    return at


def _newton_step(hessian: FloatArray, gradient: FloatArray) -> FloatArray:
    try:
        return np.asarray(np.linalg.solve(hessian, gradient))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(hessian, gradient, rcond=None)[0])


def _value(z: FloatArray, count: FloatArray) -> float:
    """Σ n log*(z), with the floor of `_solve`."""
    return float(count @ _pseudo(z, count / float(count.sum()))[0])


def _pseudo(z: FloatArray, floor: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Owen's logarithm, its derivative, and z kept above the floor."""
    safe, ratio, inner = np.maximum(z, floor), z / floor, z >= floor
    log = np.where(inner, np.log(safe), np.log(floor) - 1.5 + 2 * ratio - ratio**2 / 2)
    return log, np.where(inner, 1 / safe, (2 - ratio) / floor), safe


def _three(
    x: FloatArray, count: FloatArray, at: FloatArray, floor: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    log, first, safe = _pseudo(1 + x @ at, floor)
    weighted = x * (np.sqrt(count) / safe)[:, None]
    return float(count @ log), x.T @ (count * first), weighted.T @ weighted


# --- Joint regions: which values of several disparities the rows are compatible with ---
#
# Every row has a score for each disparity, linear in its value: g = zero − value · slope, with
# mean estimate − value. All that Euclidean likelihood needs of the scores is their second
# moments.


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """What each row says about each of m disparities."""

    zero: FloatArray
    """Scores if every disparity is zero, shape ``(N, m)``; their mean is the estimate."""
    slope: FloatArray
    """By how much each score falls per unit of its disparity, shape ``(N, m)``; mean one."""
    count: FloatArray
    """How often each row occurred, shape ``(N,)``."""
    disjoint: bool = False
    """Whether every disparity has rows of its own: those with a slope."""
    support: bool = False
    """Whether rows with a count of zero are outcomes that could have occurred."""

    @property
    def estimate(self) -> FloatArray:
        """The disparities at which all scores have mean zero."""
        return np.asarray(self.count @ self.zero / self.count.sum())

    def at(self, values: FloatArray) -> FloatArray:
        """Scores at given disparities."""
        return self.zero - values * self.slope

    def some(self, chosen: IntArray) -> "Scores":
        """Some of the disparities; the others are free."""
        return Scores(
            zero=self.zero[:, chosen],
            slope=self.slope[:, chosen],
            count=self.count,
            disjoint=self.disjoint,
            support=self.support,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Second moments of scores, all of shape ``(m, m)``."""

    rows: float
    """Rows behind them."""
    estimate: FloatArray
    """The disparities at which all scores have mean zero, shape ``(m,)``."""
    zero: FloatArray
    """Mean of zero · zero."""
    cross: FloatArray
    """Mean of zero · slope."""
    slope: FloatArray
    """Mean of slope · slope."""


def moments_of(scores: Scores) -> Moments:
    """Second moments of scores.

    >>> one = Scores(zero=np.array([[0.0], [2.0]]), slope=np.ones((2, 1)), count=np.ones(2))
    >>> moments_of(one).zero.tolist(), moments_of(one).estimate.tolist()
    ([[2.0]], [1.0])
    """
    total = float(scores.count.sum())
    weighted = scores.zero * scores.count[:, None]
    return Moments(
        rows=total,
        estimate=scores.estimate,
        zero=weighted.T @ scores.zero / total,
        cross=weighted.T @ scores.slope / total,
        slope=(scores.slope * scores.count[:, None]).T @ scores.slope / total,
    )


def euclidean_at(moments: Moments, values: FloatArray, chosen: IntArray) -> JointRatio:
    """Joint Euclidean likelihood of values of the chosen disparities, the others being free.

    >>> one = Scores(zero=np.array([[0.0], [2.0]]), slope=np.ones((2, 1)), count=np.ones(2))
    >>> euclidean_at(moments_of(one), np.array([0.0]), np.array([0])).statistic
    2.0
    """
    grid = np.ix_(chosen, chosen)
    gap = moments.estimate[chosen] - values
    # s(ε) below (3.8) of the paper on empirical likelihood: the covariance of the scores at the
    # values tested, not at the estimate.
    cross = moments.cross[grid] * values
    square = moments.zero[grid] - cross - cross.T + np.outer(values, values) * moments.slope[grid]
    return joint_euclidean(gap, (square - np.outer(gap, gap)) / moments.rows)


def euclidean_ends(moments: Moments, critical: float) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest value of each disparity in the joint region: its shadow on each axis.

    ``critical`` is the cut-off of the statistic. Infinite where too few rows exclude nothing; NaN
    where the disparity does not vary.

    >>> one = Scores(zero=np.arange(9.0)[:, None], slope=np.ones((9, 1)), count=np.ones(9))
    >>> [float(end[0].round(2)) for end in euclidean_ends(moments_of(one), 4.0)]
    [2.28, 5.72]
    """
    n, c, e = moments.rows, critical, moments.estimate
    own, cross, slope = (np.diag(x) for x in (moments.zero, moments.cross, moments.slope))
    # (n + c)(e − v)² ≤ c (own − 2 cross v + slope v²), a quadratic in v
    a, b, d = n + c - c * slope, (n + c) * e - c * cross, (n + c) * e * e - c * own
    inside = np.maximum(b * b - a * d, 0.0)
    root = np.sqrt(inside)
    bottom = np.where(a > 0, a, 1.0)
    varies = own - e * e > 1e-12 * np.maximum(own, 1e-300)
    low = np.where(a > 0, (b - root) / bottom, -np.inf)
    high = np.where(a > 0, (b + root) / bottom, np.inf)
    return np.where(varies, low, np.nan), np.where(varies, high, np.nan)


def likelihood_at(scores: Scores, values: FloatArray, *, adjusted: bool = True) -> JointRatio:
    """Joint empirical likelihood of values of all disparities.

    >>> one = Scores(zero=np.arange(9.0)[:, None], slope=np.ones((9, 1)), count=np.ones(9))
    >>> likelihood_at(one, np.array([4.0])).statistic
    0.0
    """
    if scores.support:
        return joint_ratio(scores.at(values), scores.count, support=True)
    if not scores.disjoint:
        return joint_ratio(scores.at(values), scores.count, adjusted=adjusted)
    groups = own_segments(scores, values)
    adjust = adjustment(groups) if adjusted else None
    return joint_disjoint(groups, np.zeros(values.size), adjust)


def own_segments(scores: Scores, values: FloatArray) -> Segments:
    """The scores of each disparity's own rows, one after the other."""
    g = scores.at(values)
    own = (scores.slope != 0) & (scores.count[:, None] > 0)
    column, row = np.nonzero(own.T)
    start = np.searchsorted(column, np.arange(values.size)).astype(np.int64)
    times = scores.count[row]
    return Segments(
        value=g[row, column],
        start=start,
        count=None if bool((times == 1).all()) else times,
    )
