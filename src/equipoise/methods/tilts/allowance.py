"""What the factor F leaves out of the kernel, turned into an addition to the critical value.

A function of the unit ball has a part in the span of F and a part outside, on which each row has
features of squared norm d, the diagonal of K − F Fᵀ. With ρ the mean of d, averages of these
features have norm at most √ρ; their resampled deviations have expected squared norm at most ρ/n,
and by the tail of a normal vector exceed 38 times that with a chance below one in a million. The
process on the whole ball is then at most that on the span plus 2 x ‖β‖ ‖γ‖ + y ‖γ‖², where
‖β‖² + ‖γ‖² ≤ 1.
"""

from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.tilts.draws import Deviations
from equipoise.methods.tilts.sample import TiltMoments, TiltSample

#: 1 + 2√x + 2x at x = log(2·10⁶): the tail of the squared norm of a normal vector (Laurent and
#: Massart 2000, Lemma 1), in units of its mean; two such norms together make one in a million.
_TAIL = 37.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """Norms of the averages outside the span."""

    mean: float
    """Of the features."""
    cross: float
    """Of the features times the metric, or times the metric minus its projection."""
    moved: float
    """Of the deviations of the features, except with a chance below one in a million."""
    moved_cross: float
    """Of the deviations of the features times the metric, likewise."""
    largest: float
    """Largest second moment inside the span."""

    def terms(
        self, moments: TiltMoments, drawn: Deviations, reach: tuple[float, float]
    ) -> tuple[FloatArray, FloatArray]:
        """The factors x and y of each resample."""
        value = max(abs(end) for end in reach)
        shift = np.abs(drawn.target)
        m, g, u = (np.linalg.norm(v, axis=-1) for v in (moments.mean, moments.cross, drawn.mean))
        # The process has a − ν u for a, with ν in the range; where no range is used it is zero.
        a = np.linalg.norm(drawn.cross, axis=1) + shift * m + value * u
        a_out = self.moved_cross + shift * self.mean + value * self.moved
        # Cauchy–Schwarz on the four products of a part inside with one outside; x is half the sum.
        x = (m * a_out + self.mean * a + self.cross * u + self.moved * g) / 2
        return x, self.mean * a_out + self.moved * self.cross


def outside_of(sample: TiltSample, moments: TiltMoments) -> Outside | None:
    """The norms outside the span; None if the factor leaves nothing out."""
    if sample.left is None or not sample.left.any():
        return None
    share, size = sample.counts / sample.n, np.sqrt(sample.left)
    rho = float(share @ sample.left)
    moved, moved_cross = (
        float(np.sqrt(_TAIL * _unit_squares(sample, size * factor))) / sample.n
        for factor in (np.ones_like(size), np.abs(sample.values))
    )
    return Outside(
        mean=float(np.sqrt(rho)),
        # Cauchy–Schwarz: the squared norm of a mean of L φ is at most P L² · P‖φ‖².
        cross=float(np.sqrt(rho * (share @ sample.values**2))),
        moved=moved,
        moved_cross=moved_cross,
        largest=float(np.linalg.eigvalsh(moments.second)[-1]),
    )


def _unit_squares(sample: TiltSample, size: FloatArray) -> float:
    """Sum over what is resampled, rows or clusters, of its squared norm."""
    if sample.clusters is None:
        return float(sample.counts @ size**2)
    # Features of a cluster may all point the same way, so norms add up before they are squared.
    return float((np.bincount(sample.clusters, sample.counts * size) ** 2).sum())


def widened(
    inside: FloatArray, outside: Outside, x: FloatArray, y: FloatArray, floor: float | None
) -> FloatArray:
    """The process on the whole ball, given its extremes on the span, both as positive numbers.

    With a scale (``floor`` given) the scale of the part inside differs from that of the whole as
    well, by at most 2 √(ρ·largest) ‖β‖‖γ‖ + (ρ − floor) ‖γ‖², and the whole scale is at least
    floor (‖β‖² + ‖γ‖²).
    """
    if floor is None:
        # The larger eigenvalue of ((inside, x), (x, y)): the maximum over ‖β‖² + ‖γ‖² = 1.
        middle, half = (inside + y) / 2, (inside - y) / 2
        return np.asarray(middle + np.sqrt(half**2 + x**2))
    rho = outside.mean**2
    across = x + inside * np.sqrt(rho * outside.largest)
    beyond = y + inside * (rho - floor)
    # The larger eigenvalue of ((0, across), (across, beyond)), over the least the scale can be.
    return np.asarray(inside + (beyond + np.sqrt(beyond**2 + 4 * across**2)) / (2 * floor))
