"""What a tilt is estimated to be, and which tilt comes closest to what is asked about."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import OptionError
from equipoise.findings.shift_ask import features_between, point_words, points_between
from equipoise.findings.shift_lazy import tilts
from equipoise.findings.shift_space import ShiftSpace
from equipoise.methods.arrays import FloatArray

if TYPE_CHECKING:
    from equipoise.findings.shift import Shift
    from equipoise.findings.shift_ask import Question

#: A tilt found by iteration may dip below zero by rounding; one that dips further is not a tilt.
_LOWEST = -1e-3
#: A tilt whose part in the span has less than this share of its mean is not told by the span.
_LEAST = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A tilt's disparity and how sharply the rows tell it."""

    disparity: float
    """Mean metric of the tilted population minus the target."""
    reach: float | None
    """Half-width of the bounds per unit of the critical value; None if the span says nothing."""
    beyond: float
    """Half-width added for what the tilt has outside the span."""
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
    basis = finding.basis
    mean, cross = float(basis.mean @ coordinates), float(basis.cross @ coordinates)
    square = float(coordinates @ basis.second @ coordinates)
    inside, beyond = mean, 0.0
    if values is not None and norm is not None and finding.space is not None:
        weighed = finding.space.weights * values
        share = finding.space.counts / finding.space.counts.sum()
        mean, cross = float(share @ weighed), float(share @ (weighed * finding.space.values))
        square = float(share @ weighed**2)
        if mean > 0:
            beyond = _beyond(finding, finding.space, coordinates, weighed, norm) / mean
    if mean <= 0 or square <= 0:
        return None
    return Estimate(
        # The metric was centred before averaging; here its mean comes back.
        disparity=cross / mean + finding.mean - finding.target,
        # A tilt counts with average one, so its scale is divided by the mean it has instead.
        reach=_scale(finding, coordinates) / inside / mean if inside > _LEAST * mean else None,
        beyond=beyond,
        # n_eff of Appendix D of Cherian and Candès.
        effective=finding.n * mean**2 / square,
    )


def _scale(finding: Shift, coordinates: FloatArray) -> float:
    size, basis = float(coordinates @ coordinates), finding.basis
    # Unscaled bounds hold on the unit ball: a tilt of another norm is brought there first.
    if finding.floor is None:
        return size
    square = max(float(coordinates @ basis.centred @ coordinates), 0.0)
    return float(tilts.scale_of(float(basis.mean @ coordinates), square, size, finding.floor))


def _beyond(
    finding: Shift, space: ShiftSpace, coordinates: FloatArray, weighed: FloatArray, norm: float
) -> float:
    """By how much the part outside the span can move the tilt's sum (see `tilts.remainder`)."""
    share = space.counts / space.counts.sum()
    outside = weighed - space.weights * (space.features @ coordinates)
    length = float(coordinates @ coordinates)
    average = float(share @ (weighed * space.values)) / float(share @ weighed)
    apart = space.values - average
    # Outside the span each row has features of squared norm ``left``, times its weight.
    size = np.sqrt(space.left) * space.weights * np.abs(apart)
    overlap = tilts.overlap_of(space.kernel, space.points, space.features, size, space.counts)
    moved = tilts.norm_bound(size, space.counts, space.clusters, overlap)
    single = float(share @ outside) * space.influence
    single = single + float(share @ (outside * apart)) * space.paired
    total = math.sqrt(max(norm - length, 0.0)) * moved
    total += tilts.mean_bound(single, space.counts, space.clusters)
    low, high = _allowed(finding, coordinates)
    slip = max(low - average, average - high, 0.0)
    if slip == 0:
        return total
    rows = space.features * space.weights[:, None] - space.paired[:, None] * finding.basis.mean
    turned = tilts.norm_bound(np.linalg.norm(rows, axis=1), space.counts, space.clusters)
    return total + slip * math.sqrt(length) * turned


def _allowed(finding: Shift, coordinates: FloatArray) -> tuple[float, float]:
    """Between which averages of the centred metric the critical value speaks of a tilt."""
    if finding.method == "rescaled":
        return finding.reach[0] - finding.mean, finding.reach[1] - finding.mean
    own = float(finding.basis.cross @ coordinates) / float(finding.basis.mean @ coordinates)
    return own, own


def closest(finding: Shift, question: Question, penalty: float | None) -> tilts.Closest:
    """The tilt that best answers a question, weighing width against distance."""
    rows = finding.basis.corner if finding.space is None else finding.space.features
    # The search takes penalties as shares of this trace; readers give, and are told, them whole.
    size = float(finding.basis.once.trace())
    penalties = tilts.PENALTIES if penalty is None else (penalty / size,)
    other = features_between(finding, points_between(finding))
    tried = tilts.closest_tilts(rows, finding.basis.once, question.wanted, penalties, other)
    usable = [found for found in tried if found.lowest > _LOWEST]
    if not usable:
        raise OptionError(
            f"No non-negative tilt comes near {question.label}: it lies where no row is."
        )
    # The choice costs no confidence, since the bounds of all tilts hold at once.
    return min(usable, key=lambda found: _cost(finding, question, found))


def where_negative(finding: Shift, found: tilts.Closest) -> str:
    """Where between the rows a tilt is below zero by more than a thousandth of its largest value.

    Looked at where the search for the tilt did not look; empty if there is no such place.
    """
    points = points_between(finding, offset=0.0)
    values = features_between(finding, points) @ found.coordinates
    top = float(found.values.max())
    if not len(values) or values.min() > _LOWEST * top:
        return ""
    place = point_words(finding, points[np.argmin(values)])
    return f"weight {values.min() / top:.1%} of the largest near {place}, where no row lies"


def _cost(finding: Shift, question: Question, found: tilts.Closest) -> float:
    """Half-width of the bounds, and what the metric may change over the distance that is left."""
    made = estimate(finding, found.coordinates)
    if made is None:
        return float("inf")
    away = question.distance(found)
    if away is None:
        away = question.mismatch(finding.basis, found) or 0.0
    return (finding.critical or 0.0) * (made.reach or 0.0) + finding.spread * away
