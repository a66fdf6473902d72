"""What a tilt is estimated to be, and which tilt comes closest to what is asked about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from equipoise.errors import OptionError
from equipoise.findings.shift_lazy import tilts
from equipoise.methods.arrays import FloatArray

if TYPE_CHECKING:
    from equipoise.findings.shift import Shift
    from equipoise.findings.shift_ask import Question

#: A tilt found by iteration may dip below zero by rounding; one that dips further is not a tilt.
_LOWEST = -1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A tilt's disparity and how sharply the rows tell it."""

    disparity: float
    """Mean metric of the tilted population minus the target."""
    reach: float
    """Half-width of the bounds per unit of the critical value."""
    effective: float
    """Effective sample size."""


def estimate(
    finding: Shift,
    coordinates: FloatArray,
    *,
    values: FloatArray | None = None,
    norm: float | None = None,
) -> Estimate | None:
    """The estimate of a tilt; None if it is zero on every row.

    ``values`` on the rows and the squared ``norm`` are given for tilts outside the span, of which
    the coordinates hold only a part.
    """
    basis, space = finding.basis, finding.space
    mean, cross = float(basis.mean @ coordinates), float(basis.cross @ coordinates)
    square = float(coordinates @ basis.second @ coordinates)
    size = float(coordinates @ coordinates)
    if values is not None and norm is not None and space is not None:
        share = space.counts / space.counts.sum()
        weighed = space.weights * values
        mean, cross = float(share @ weighed), float(share @ (weighed * space.values))
        square, size = float(share @ weighed**2), norm
    if mean <= 0 or square <= 0:
        return None
    floor = finding.floor
    # Unscaled bounds hold on the unit ball: a tilt of another norm is brought there first.
    scale = size if floor is None else float(tilts.scale_of(mean, square, size, floor))
    return Estimate(
        # The metric was centred before averaging; here its mean comes back.
        disparity=cross / mean + finding.mean - finding.target,
        # A tilt counts with average one, so its scale is divided by the mean it has instead.
        reach=scale / mean**2,
        # n_eff of Appendix D of Cherian and Candès.
        effective=finding.n * mean**2 / square,
    )


def closest(finding: Shift, question: Question, penalty: float | None) -> tilts.Closest:
    """The tilt that best answers a question, weighing width against distance."""
    rows = finding.basis.corner if finding.space is None else finding.space.features
    # The search takes penalties as shares of this trace; readers give, and are told, them whole.
    size = float(finding.basis.once.trace())
    penalties = tilts.PENALTIES if penalty is None else (penalty / size,)
    tried = tilts.closest_tilts(rows, finding.basis.once, question.wanted, penalties)
    usable = [found for found in tried if found.lowest > _LOWEST]
    if not usable:
        raise OptionError(
            f"No non-negative tilt comes near {question.label}: it lies where no row is."
        )
    # The choice costs no confidence, since the bounds of all tilts hold at once.
    return min(usable, key=lambda found: _cost(finding, question, found))


def _cost(finding: Shift, question: Question, found: tilts.Closest) -> float:
    """Half-width of the bounds, and what the metric may change over the distance that is left."""
    made = estimate(finding, found.coordinates)
    if made is None:
        return float("inf")
    away = question.distance(found)
    if away is None:
        away = question.mismatch(finding.basis, found) or 0.0
    return (finding.critical or 0.0) * made.reach + finding.spread * away
