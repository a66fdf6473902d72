"""By how much the part of a given tilt that lies outside the span can be wrong.

A tilt h of the kernel's space is f + e, f in the span of the kept sections and e orthogonal to it,
so that ‖e‖² = ‖h‖² − ‖f‖². With L the metric, ν its average under the tilt, ψ the target's
influence and D = P* − P, the error of P h · ε̂(h) is the deviation D[h (L − ν) − P h · ψ]. The
critical value bounds f's part of it for every ν in the range of the process (`rescaled`), with the
weights r of the target taken off as in `draws`. What is left is

    D[e (L − ν)]  −  D[P e · ψ + P((L − ν) e) · r]  +  (ν₀ − ν) D[f − P f · r],

with P e and P((L − ν) e) known on the rows, and ν₀ the nearest ν in the range. The first term is at
most ‖e‖ times the norm of a mean of residual features, whose squares are the diagonal of K − F Fᵀ;
the second is one number; the third is zero unless e moves ν out of the range. Each is bounded
except with a chance of one in a million, and each shrinks like one over the root of the rows, so
that more rows never lose an answer.
"""

import math

import numpy as np

from equipoise.methods.arrays import FloatArray, IntArray
from equipoise.methods.tilts.kernels import Kernel

#: Minus the logarithm of one in two million: two bounds that may fail make one in a million.
_RARE = math.log(2e6)
#: The normal quantile that goes with one in a million, both sides.
_NORMAL = 4.9
#: Rows between which the residual kernel is measured.
_MEASURED = 400


def norm_bound(
    size: FloatArray, counts: FloatArray, clusters: IntArray | None, overlap: float = 1.0
) -> float:
    """What the norm of a resampled mean of vectors of these sizes exceeds once in a million.

    The squared norm of a normal vector with covariance Γ exceeds tr Γ + 2 √(x tr Γ²) + 2 x ‖Γ‖ with
    a chance of exp(−x) (Laurent and Massart 2000, Lemma 1). ``overlap`` is √tr Γ² / tr Γ: one if
    all vectors may point the same way, less if they are known not to.

    >>> round(norm_bound(np.ones(100), np.ones(100), None), 2)
    0.61
    >>> round(norm_bound(np.ones(100), np.ones(100), None, overlap=0.0), 2)
    0.1
    """
    n = counts.sum()
    if clusters is None:
        trace = float(counts @ size**2)
    else:
        # Rows of a cluster move together and may point the same way: sizes add up first.
        trace = float((np.bincount(clusters, counts * size) ** 2).sum())
        overlap = 1.0
    tail = 1 + 2 * overlap * math.sqrt(_RARE) + 2 * overlap * _RARE
    return math.sqrt(tail * trace) / float(n)


def mean_bound(values: FloatArray, counts: FloatArray, clusters: IntArray | None) -> float:
    """What the resampled deviation of a mean exceeds, on either side, once in a million.

    >>> round(mean_bound(np.array([-1.0, 1.0]), np.array([50.0, 50.0]), None), 2)
    0.49
    """
    n = counts.sum()
    apart = values - counts @ values / n
    if clusters is None:
        return _NORMAL * math.sqrt(float(counts @ apart**2)) / float(n)
    return _NORMAL * math.sqrt(float((np.bincount(clusters, counts * apart) ** 2).sum())) / float(n)


def overlap_of(
    kernel: Kernel, points: FloatArray, features: FloatArray, size: FloatArray, counts: FloatArray
) -> float:
    """√tr Γ² / tr Γ of the residual features of rows with these sizes.

    tr Γ² is a mean over pairs of rows of squared residual kernel values. Pairs of a row with itself
    are added up; others are measured between at most four hundred rows at equal distances in order.

    >>> from equipoise.methods.tilts.kernels import Same
    >>> x = np.arange(100.0)[:, None]
    >>> round(overlap_of(Same(), x, np.zeros((100, 1)), np.ones(100), np.ones(100)), 2)
    0.1
    """
    left = np.maximum(kernel.diagonal(points) - np.einsum("ij,ij->i", features, features), 0.0)
    share = counts / counts.sum()
    trace = float(share @ size**2)
    if trace <= 0:
        return 1.0
    own = float(share**2 @ size**4)
    chosen = np.unique(np.linspace(0, len(points) - 1, _MEASURED).astype(np.int64))
    some = features[chosen]
    rest = kernel.block(points[chosen], points[chosen]) - some @ some.T
    # The size of a row holds more than its residual norm: its weight and how far its metric is.
    more = np.divide(
        size[chosen] ** 2, left[chosen], out=np.zeros(len(chosen)), where=left[chosen] > 0
    )
    mass = share[chosen] / share[chosen].sum()
    pairs = mass[:, None] * mass * (rest * rest) * more[:, None] * more
    np.fill_diagonal(pairs, 0.0)
    return min(math.sqrt(own + float(pairs.sum())) / trace, 1.0)
