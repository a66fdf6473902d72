"""Joint tests that several disparities are zero (or any other values) at once.

Groups that share no row decouple: each has a multiplier of its own, and the joint statistic is the
sum of one-dimensional ones. Overlapping groups (men, women, everybody) make constraints depend on
each other; dependent ones are dropped, and the degrees of freedom are the rank of the rest.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr
from scipy.special import chdtrc

from equipoise.methods.arrays import FloatArray, IntArray
from equipoise.methods.likelihood.mean import Segments, mean_ratio

MAX_STEPS = 100
MOST_PRODUCTS = 2e8
"""Products of three scores that the correction of the mean may form."""
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

    >>> from equipoise.methods.likelihood import segments
    >>> found = joint_disjoint(segments([np.arange(9.0), np.arange(5.0)]), np.array([4.0, 2.0]))
    >>> found.statistic, found.rank, found.p
    (0.0, 2, 1.0)
    """
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
    real = values > TOLERANCE * max(float(values.max(initial=0.0)), 1.0)
    turned = vectors[:, real].T @ z
    statistic = float((turned**2 / values[real]).sum())
    return _test(statistic, int(real.sum()), int(used.sum()))


def joint_ratio(
    g: FloatArray, count: FloatArray | None = None, *, adjusted: bool = True
) -> JointRatio:
    """Joint empirical likelihood of E g = 0 over rows (N, m), dependent columns dropped.

    With ``adjusted`` one point more, at −a ḡ, keeps zero inside the hull. Its size a corrects the
    mean of the statistic to order 1/n, by Mardia's skewness and kurtosis of the rows.

    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=(200, 2))
    >>> both = np.column_stack([x, x.sum(axis=1)])
    >>> one, two = joint_ratio(x), joint_ratio(both)
    >>> two.rank, two.constraints, abs(one.statistic - two.statistic) < 1e-8
    (2, 3, True)
    """
    n = np.ones(len(g)) if count is None else count
    chosen = independent_columns(g, n)
    m = int((np.abs(g).max(axis=0, initial=0.0) > 0).sum())
    if chosen.size == 0:
        return _test(0.0, 0, m)
    x = g[:, chosen] / np.sqrt((n[:, None] * g[:, chosen] ** 2).sum(axis=0) / n.sum())
    weights = n
    if adjusted:
        size = _pull(x, n)
        mean = (n[:, None] * x).sum(axis=0) / n.sum()
        x, weights = np.vstack([x, -size * mean]), np.append(n, 1.0)
    return _test(_solve(x, weights), int(chosen.size), m)


def _pull(x: FloatArray, count: FloatArray) -> float:
    """Size of the added point: half of Bartlett's correction, and no less than log(n)/2."""
    total, r = float(count.sum()), x.shape[1]
    mean = count @ x / total
    spread = (x * count[:, None]).T @ x / total - np.outer(mean, mean)
    values, vectors = np.linalg.eigh(spread)
    white = (x - mean) @ (vectors / np.sqrt(np.maximum(values, 1e-12 * max(values[-1], 1e-300))))
    square = (white**2).sum(axis=1)
    kurtosis = float(count @ square**2) / total
    # without the skewness, where it would cost too much, the correction is larger than needed
    skewness = _skewness(white, count) if len(x) * r**3 <= MOST_PRODUCTS else 0.0
    return float(max(1.0, np.log(total) / 2, (kurtosis / 2 - skewness / 3) / r / 2))


def _skewness(white: FloatArray, count: FloatArray) -> float:
    total = float(count.sum())
    pairs = white[:, :, None] * white[:, None, :]
    third = np.tensordot(pairs, white * count[:, None], axes=(0, 0)) / total
    return float((third**2).sum())


def independent_columns(g: FloatArray, count: FloatArray) -> IntArray:
    """Columns that do not depend on earlier pivots, in the order they came."""
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


def _solve(x: FloatArray, count: FloatArray) -> float:
    """Twice the largest Σ n log*(1 + λ·x), by damped Newton on the pseudo-logarithm."""
    floor = 1 / float(count.sum())
    at = np.zeros(x.shape[1])
    value, gradient, hessian = _three(x, count, at, floor)
    for _ in range(MAX_STEPS):
        step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        gain = float(gradient @ step)
        if gain <= 1e-20 * (1 + value):
            break
        size = 1.0
        while size > 1e-10:
            new = _three(x, count, at + size * step, floor)
            if new[0] >= value + 1e-4 * size * gain - 1e-13 * abs(value):
                break
            size /= 2
        at = at + size * step
        value, gradient, hessian = new
        if gain <= 1e-13 * (1 + value):
            break
    return 2 * max(value, 0.0)


def _three(
    x: FloatArray, count: FloatArray, at: FloatArray, floor: float
) -> tuple[float, FloatArray, FloatArray]:
    z = 1 + x @ at
    safe = np.maximum(z, floor)
    ratio = z / floor
    inner = z >= floor
    log = np.where(inner, np.log(safe), np.log(floor) - 1.5 + 2 * ratio - ratio**2 / 2)
    first = np.where(inner, 1 / safe, (2 - ratio) / floor)
    weighted = x * (np.sqrt(count) / safe)[:, None]
    return float(count @ log), x.T @ (count * first), weighted.T @ weighted
