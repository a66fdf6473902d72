"""The six meta-metrics: one number for how far apart the group means are."""

from enum import StrEnum

import numpy as np
from scipy.special import xlogy

from equipoise.methods.arrays import FloatArray


class Meta(StrEnum):
    """The summaries of a vector of group means."""

    DIFFERENCE = "max-min difference"
    RATIO = "max-min ratio"
    MAX_DEVIATION = "max absolute difference"
    MEAN_DEVIATION = "mean absolute deviation"
    VARIANCE = "variance"
    ENTROPY = "generalized entropy index"


def meta_metric(kind: Meta, mean: FloatArray, *, alpha: float = 2.0) -> FloatArray:
    """Compute one meta-metric of the group means on the last axis.

    Deviations are taken from the plain mean of the group means, each group counting once. The ratio
    is infinite where the smallest mean is zero; so is the entropy index of order 0 or less.

    Parameters
    ----------
    kind
        Which of the six.
    mean
        Group means; the last axis runs over the groups.
    alpha
        Order of the generalized entropy index; 0 and 1 are its limits.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0.2, 0.4, 0.6])
    >>> round(float(meta_metric(Meta.VARIANCE, y)), 6)
    0.04
    >>> round(float(meta_metric(Meta.RATIO, y)), 6)
    3.0
    """
    if kind is Meta.DIFFERENCE:
        return np.asarray(mean.max(axis=-1) - mean.min(axis=-1))
    if kind is Meta.RATIO:
        return _ratio(mean)
    if kind is Meta.MAX_DEVIATION:
        return np.asarray(np.abs(deviations(mean)).max(axis=-1))
    if kind is Meta.MEAN_DEVIATION:
        return np.asarray(np.abs(deviations(mean)).mean(axis=-1))
    if kind is Meta.VARIANCE:
        # Divisor K − 1 as in Table 1 of Lum, Zhang and Bower: only then is the bias the plain mean
        # of the sampling variances (their Section 4).
        return np.asarray(mean.var(axis=-1, ddof=1))
    return _entropy(mean, alpha)


def deviations(mean: FloatArray) -> FloatArray:
    """Distance of each group mean from the plain mean of the group means."""
    return np.asarray(mean - mean.mean(axis=-1, keepdims=True))


def no_spread(kind: Meta) -> float:
    """Return the value of the meta-metric when all groups are equal."""
    return 1.0 if kind is Meta.RATIO else 0.0


def needs_positive(kind: Meta) -> bool:
    """Whether the meta-metric has a meaning for non-negative metrics only."""
    return kind in (Meta.RATIO, Meta.ENTROPY)


def _ratio(mean: FloatArray) -> FloatArray:
    low, high = mean.min(axis=-1), mean.max(axis=-1)
    # All means zero are equal means.
    ratio = np.where(high > 0, np.inf, 1.0)
    return np.asarray(np.divide(high, low, out=ratio, where=low > 0))


def _entropy(mean: FloatArray, alpha: float) -> FloatArray:
    # normal draws of a small mean may fall below zero, where no mean of such a metric lies
    mean = np.maximum(mean, 0.0)
    centre = mean.mean(axis=-1, keepdims=True)
    share = np.divide(mean, centre, out=np.ones_like(mean), where=centre > 0)
    with np.errstate(divide="ignore", over="ignore"):
        # Table 1 of Lum, Zhang and Bower leaves out the orders 0 and 1, limits of what follows.
        if alpha == 0:
            return np.asarray(-np.log(share).mean(axis=-1))
        if alpha == 1:
            return np.asarray(xlogy(share, share).mean(axis=-1))
        return np.asarray((share**alpha - 1).mean(axis=-1) / (alpha * (alpha - 1)))
