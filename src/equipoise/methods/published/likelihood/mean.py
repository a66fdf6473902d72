"""Empirical likelihood of a mean, for many groups at once.

Values stand in one array, group after group. For each group the multiplier λ solves
Σ g/(1 + λ g) = 0 with g = x − value; Newton steps on Owen's pseudo-logarithm, which is quadratic
below 1/n, cannot leave the domain. A value outside the range of the data has likelihood zero; the
adjusted likelihood adds one more point on the other side, at −a ḡ with a = max(1, log(n)/2). It has
an answer everywhere, and corrects most of the error of the χ² limit in small groups.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

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
