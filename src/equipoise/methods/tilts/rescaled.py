"""Non-negative tilts in units of their own scale.

Under a non-negative tilt the average metric ν lies between the smallest and the largest value that
the metric takes on average anywhere. With ν given, the process is (m·β)((a − ν u)·β): two ranks,
linear in ν. Its supremum over tilts and over that range, in units of the scale, is a maximum over
the two ends of the range and over τ of a closed form. Without the range, tilts of both signs whose
mean is nearly zero decide the supremum (see `signed`), and bounds are wide wherever the metric
depends on the covariates.
"""

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.tilts.draws import Deviations
from equipoise.methods.tilts.sample import TiltMoments, TiltSample
from equipoise.methods.tilts.scale import SLACK, ScaleGrid

#: Directions with less than this share of the largest second moment are mere rounding.
_THIN = 1e-8


def rescaled_extremes(
    grid: ScaleGrid, moments: TiltMoments, reach: tuple[float, float], drawn: Deviations
) -> FloatArray:
    """Lowest and highest value of process over scale in each resample: shape (resamples, 2).

    >>> from equipoise.methods.tilts.scale import make_grid
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
    >>> from equipoise.methods.tilts.sample import moments_of
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
