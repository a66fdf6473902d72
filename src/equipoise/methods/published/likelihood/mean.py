"""Empirical likelihood of a mean, for many groups at once.

Values stand in one array, group after group. For each group the multiplier λ solves
Σ g/(1 + λ g) = 0 with g = x − value; Newton steps on Owen's pseudo-logarithm, which is quadratic
below 1/n, cannot leave the domain. A value outside the range of the data has likelihood zero; the
adjusted likelihood adds one more point on the other side, at −a ḡ with a = max(1, log(n)/2). It has
an answer everywhere, and corrects most of the error of the χ² limit in small groups.

Joint tests that several disparities are zero (or any other values) at once.

Groups that share no row decouple: each has a multiplier of its own, and the joint statistic is the
sum of one-dimensional ones. Overlapping groups (men, women, everybody) make constraints depend on
each other; dependent ones are dropped, and the degrees of freedom are the rank of the rest.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, ndtr, ndtri, stdtr, stdtrit

from equipoise.methods.numerics import BoolArray, FloatArray, IntArray

# --- Empirical likelihood of a mean, for many groups at once ---

SMALL = 1000
"""Groups with fewer rows get the adjusted likelihood unless told otherwise."""
MAX_STEPS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """Values of many groups, one after the other; every group has at least one."""

    value: FloatArray
    """The values, group after group."""
    start: IntArray
    """Where each group begins, shape ``(G,)``."""
    count: FloatArray | None = None
    """How often each value occurred; None means once."""
    worth: FloatArray | None = None
    """Rows on which each group's adjustment is based, shape ``(G,)``; None means its own rows."""

    def sums(self, x: FloatArray) -> FloatArray:
        """Sum of ``x`` over each group, repeated values counted."""
        return np.asarray(np.add.reduceat(x if self.count is None else x * self.count, self.start))

    def spread(self, x: FloatArray) -> FloatArray:
        """Hand each group's number to all its values."""
        if self.start.size == 1:
            return np.broadcast_to(x, self.value.shape)
        return np.repeat(x, np.diff(self.start, append=self.value.size))

    @property
    def rows(self) -> FloatArray:
        """Rows of each group."""
        if self.count is None:
            return np.diff(self.start, append=self.value.size).astype(np.float64)
        return np.asarray(np.add.reduceat(self.count, self.start))

    @property
    def mean(self) -> FloatArray:
        """Mean of each group."""
        return self.sums(self.value) / self.rows

    @property
    def varies(self) -> BoolArray:
        """Groups whose values are not all the same."""
        low = np.minimum.reduceat(self.value, self.start)
        return np.asarray(np.maximum.reduceat(self.value, self.start) > low)


def segments(values: list[FloatArray]) -> Segments:
    """Groups given one by one.

    >>> segments([np.array([1.0, 3.0]), np.array([5.0])]).mean.tolist()
    [2.0, 5.0]
    """
    sizes = np.array([v.size for v in values], dtype=np.int64)
    start = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    return Segments(value=np.concatenate(values).astype(np.float64), start=start)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanRatio:
    """Empirical likelihood ratio of each group's mean, arrays of shape ``(G,)``."""

    statistic: FloatArray
    """Minus twice the log ratio; infinite outside the range of the values if not adjusted."""
    slope: FloatArray
    """Its derivative in the value tested."""
    multiplier: FloatArray
    """The multiplier λ."""


def adjustment(groups: Segments, small: float = SMALL) -> FloatArray:
    """Size a of the added point of each group; 0 for groups of ``small`` rows and more.

    >>> adjustment(segments([np.arange(5.0), np.arange(2000.0)])).tolist()
    [1.0, 0.0]
    """
    n = groups.rows
    worth = n if groups.worth is None else groups.worth
    # The size is that of Chen, Variyath and Abraham (2008): a = max(1, log(n)/2).
    size = np.maximum(1.0, np.log(np.maximum(worth, 1.0)) / 2)
    # many pseudo-values may rest on few rows of a group: the correction is the group's
    return np.where(worth < small, size * n / np.maximum(worth, 1.0), 0.0)


def largest_adjusted(n: FloatArray, a: FloatArray) -> FloatArray:
    """Largest value of the adjusted statistic, approached far away from the data.

    >>> largest_adjusted(np.array([3.0]), np.array([1.0])).round(3).tolist()
    [1.046]
    """
    # all n values alike, as they are seen from far away: one multiplier in closed form
    return -2 * (n * np.log((n + 1) * a / (n * (1 + a))) + np.log((n + 1) / (1 + a)))


def mean_ratio(
    groups: Segments,
    value: FloatArray,
    *,
    adjust: FloatArray | None = None,
    guess: FloatArray | None = None,
) -> MeanRatio:
    """Likelihood ratio of ``value`` being each group's mean; NaN where a group does not vary.

    >>> three = segments([np.array([0.0, 1.0, 2.0])])
    >>> mean_ratio(three, np.array([1.0])).statistic.tolist()
    [0.0]
    >>> mean_ratio(three, np.array([2.5])).statistic.tolist()
    [inf]
    >>> mean_ratio(three, np.array([2.5]), adjust=np.ones(1)).statistic.round(2).tolist()
    [0.95]
    """
    a = np.zeros_like(value) if adjust is None else adjust
    g = groups.value - groups.spread(value)
    gap = groups.mean - value
    extra = -a * gap
    inside = _inside(groups, g, extra)
    solved = _newton(groups, g, extra, a, guess, inside)
    statistic, slope = _evaluate(groups, g, extra, a, solved)
    out = np.where(inside, statistic, np.inf)
    # At the mean itself all weights are equal; a value within rounding of it has ratio zero.
    centre = np.abs(gap) <= 1e-14 * np.abs(value)
    out = np.where(centre, 0.0, out)
    varies = groups.varies
    return MeanRatio(
        statistic=np.where(varies, np.maximum(out, 0.0), np.nan),
        slope=np.where(inside, slope, np.nan),
        multiplier=np.where(inside, solved, np.nan),
    )


def _inside(groups: Segments, g: FloatArray, extra: FloatArray) -> BoolArray:
    low = np.minimum(np.minimum.reduceat(g, groups.start), extra)
    high = np.maximum(np.maximum.reduceat(g, groups.start), extra)
    return np.asarray((low < 0) & (high > 0))


def _newton(
    groups: Segments,
    g: FloatArray,
    extra: FloatArray,
    a: FloatArray,
    guess: FloatArray | None,
    inside: BoolArray,
) -> FloatArray:
    """Maximise Σ log*(1 + λ g): concave, so steps that do not help are halved."""
    has = a > 0
    size = groups.rows + has
    # No weight exceeds one, so 1 + λ g ≥ 1/n at the solution, where the two logarithms agree.
    floor = 1 / size
    at = np.zeros_like(size) if guess is None else np.nan_to_num(guess)
    wide, scale = groups.spread(floor), np.sqrt(groups.sums(g * g) / size) + 1e-300
    best = np.full_like(at, -np.inf)
    step = np.zeros_like(at)
    for _ in range(MAX_STEPS):
        value, first, second = _three_sums(groups, g, extra, has, at, floor, wide)
        worse = value < best - 1e-13 * (1 + np.abs(best))
        at, step = np.where(worse, at - step / 2, at), np.where(worse, step / 2, 0.0)
        kept = ~worse
        newton = np.divide(first, second, out=np.zeros_like(at), where=second > 0)
        step = np.where(kept, newton, step)
        best = np.where(kept, value, best)
        done = ~inside | (kept & (np.abs(step) * scale <= 1e-13))
        if bool(done.all()):
            break
        at = np.where(kept & ~done, at + step, at)
    return at


def _three_sums(
    groups: Segments,
    g: FloatArray,
    extra: FloatArray,
    has: BoolArray,
    at: FloatArray,
    floor: FloatArray,
    wide: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sums of log*, of its derivative and of minus its second derivative, in λ."""
    rows = _pseudo(1 + groups.spread(at) * g, wide)
    one = _pseudo(1 + at * extra, floor)
    value, first, second = (groups.sums(x) for x in (rows[0], rows[1] * g, rows[2] * g * g))
    return (
        value + np.where(has, one[0], 0.0),
        first + np.where(has, one[1] * extra, 0.0),
        second + np.where(has, one[2] * extra * extra, 0.0),
    )


def _pseudo(z: FloatArray, floor: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Owen's logarithm, its first and minus its second derivative."""
    if bool((z >= floor).all()):
        inverse = 1 / z
        return np.log(z), inverse, inverse * inverse
    safe = np.maximum(z, floor)
    ratio = z / floor
    # Owen (2001): below 1/n the parabola with the same value and the same two derivatives.
    log = np.where(z >= floor, np.log(safe), np.log(floor) - 1.5 + 2 * ratio - ratio * ratio / 2)
    first = np.where(z >= floor, 1 / safe, (2 - ratio) / floor)
    return log, first, 1 / (safe * safe)


def _evaluate(
    groups: Segments, g: FloatArray, extra: FloatArray, a: FloatArray, at: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The statistic at the solution, and its derivative in the value tested."""
    z = np.maximum(1 + groups.spread(at) * g, 1e-300)
    one = np.maximum(1 + at * extra, 1e-300)
    statistic = 2 * (groups.sums(np.log(z)) + np.where(a > 0, np.log(one), 0.0))
    # λ is optimal, so it may be held fixed (the envelope theorem); the added point moves by a.
    return statistic, 2 * at * (np.where(a > 0, a / one, 0.0) - groups.sums(1 / z))


# --- Euclidean likelihood: the disparity in units of its standard error, from moments alone ---


def student_roots(gap: FloatArray, error: FloatArray, degrees: FloatArray) -> FloatArray:
    """Signed roots of the Euclidean likelihood ratio, as normal scores.

    ``degrees`` are those of Student's distribution, infinite for none. NaN where the standard error
    is zero or there is no degree of freedom: nothing then says how values vary.

    >>> student_roots(np.array([2.0]), np.array([1.0]), np.array([np.inf])).tolist()
    [2.0]
    >>> student_roots(np.array([2.0]), np.array([1.0]), np.array([3.0])).round(2).tolist()
    [1.48]
    """
    usable = (error > 0) & (degrees >= 1)
    z = np.divide(gap, error, out=np.full_like(gap, np.nan), where=usable)
    # Theorem 3 of the paper on empirical likelihood refers the square to χ²; Student's t allows for
    # a variance estimated from few rows.
    student = usable & np.isfinite(degrees)
    # Through the smaller tail: a normal score of 1 − 10⁻¹⁷ would be infinite.
    tail = stdtr(np.where(student, degrees, 1.0), -np.abs(np.where(student, z, 0.0)))
    return np.where(student, np.copysign(-ndtri(np.maximum(tail, 1e-300)), z), z)


def student_interval(
    estimate: FloatArray, error: FloatArray, degrees: FloatArray, critical: float
) -> tuple[FloatArray, FloatArray]:
    """All values whose signed root is at most ``critical`` in size.

    >>> one = np.array([1.0])
    >>> low, high = student_interval(0 * one, one, 3 * one, 1.4802)
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([-2.0], [2.0])
    """
    usable = (error > 0) & (degrees >= 1)
    student = usable & np.isfinite(degrees)
    wide = -stdtrit(np.where(student, degrees, 1.0), ndtr(-critical))
    half = np.where(usable, np.where(student, wide, critical) * error, np.nan)
    return estimate - half, estimate + half


def normal_critical(level: float, family: str, groups: int, *, two_sided: bool = True) -> float:
    """The normal score that intervals of one group, or of many at once, are cut at.

    >>> [round(normal_critical(0.95, name, 10), 3) for name in ("pointwise", "sidak")]
    [1.96, 2.8]
    """
    number = max(groups, 1)
    miss = {
        "pointwise": 1 - level,
        "sidak": 1 - level ** (1 / number),
        "bonferroni": (1 - level) / number,
    }[family]
    return max(float(-ndtri(miss / 2 if two_sided else miss)), 0.0)


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
    return float(count @ _pseudo_log(z, count / float(count.sum()))[0])


def _pseudo_log(z: FloatArray, floor: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Owen's logarithm, its derivative, and z kept above the floor."""
    safe, ratio, inner = np.maximum(z, floor), z / floor, z >= floor
    log = np.where(inner, np.log(safe), np.log(floor) - 1.5 + 2 * ratio - ratio**2 / 2)
    return log, np.where(inner, 1 / safe, (2 - ratio) / floor), safe


def _three(
    x: FloatArray, count: FloatArray, at: FloatArray, floor: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    log, first, safe = _pseudo_log(1 + x @ at, floor)
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
