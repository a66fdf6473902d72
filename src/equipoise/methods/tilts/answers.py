"""What an audit of tilts keeps, and what follows from it for any tilt that is asked about.

The averages of `TiltBasis` are enough to estimate a tilt of the span; a tilt that leaves the span
needs the rows as well. `nearest` finds the tilt to answer with when a group or another population
is asked about: the narrowest bounds among those that come close.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.methods.numerics import FloatArray, IntArray
from equipoise.methods.tilts.audit import PENALTIES, Closest, closest_tilts
from equipoise.methods.tilts.draws import scale_of
from equipoise.methods.tilts.kernels import Kernel, features_of, mean_bound, norm_bound, overlap_of

#: A tilt found by iteration may dip below zero by rounding; one that dips further is not a tilt.
LOWEST = -1e-3
#: A tilt whose part in the span has less than this share of its mean is not told by the span.
_LEAST = 1e-3
#: Points of another population treated at a time.
_BLOCK = 4096


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TiltBasis:
    """What is stored with a finding: enough to estimate any tilt of the span."""

    pivots: FloatArray
    """Encoded covariates of the rows whose kernel sections span the tilts."""
    corner: FloatArray
    """Coordinates of these sections, lower triangular."""
    mean: FloatArray
    """Mean of the features."""
    cross: FloatArray
    """Mean of the features times the metric minus its mean."""
    second: FloatArray
    """Mean of the products of features."""
    centred: FloatArray
    """The same of features minus what the target counts already: the form behind the scale."""
    once: FloatArray
    """The same with sampling weights counted once."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TiltRows:
    """The rows, for questions that need them; not stored."""

    kernel: Kernel
    """The kernel on encoded covariates."""
    points: FloatArray
    """Encoded covariates of the rows."""
    features: FloatArray
    """Coordinates of the rows in the span."""
    left: FloatArray
    """Squared norm of what the span leaves out of each row's kernel section."""
    weights: FloatArray
    """Sampling weights with mean one."""
    counts: FloatArray
    """How many rows each row stands for."""
    values: FloatArray
    """The metric minus its mean over everyone."""
    influence: FloatArray
    """First-order effect of each row on the target."""
    paired: FloatArray
    """How much each row counts in the target."""
    apart: float
    """Mean square of the influence that is not paired with the metric, over its variance."""
    clusters: IntArray | None
    """Number of each row's cluster."""

    @property
    def share(self) -> FloatArray:
        """Each row's share of the population."""
        return np.asarray(self.counts * self.weights / self.counts.sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class TiltEstimate:
    """A tilt's disparity and how sharply the rows tell it."""

    disparity: float
    """Mean metric of the tilted population minus the target."""
    reach: float | None
    """Half-width of the bounds per unit of the critical value; None if the span says nothing."""
    beyond: float
    """Half-width added for what the tilt has outside the span."""
    effective: float
    """Effective sample size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """A distribution of covariates that a tilt should approach."""

    wanted: FloatArray
    """Mean of the features in it."""
    on_rows: FloatArray | None
    """Its density against the audited population on each row, where known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TiltSpan:
    """The tilts that were bounded at once, and what their bounds are made of."""

    basis: TiltBasis
    """Averages of the features."""
    rows: TiltRows | None
    """The rows, if they are still there."""
    n: int
    """How many rows there are."""
    mean: float
    """The metric over everyone."""
    target: float
    """What it is compared with."""
    floor: float | None
    """What the squared norm of a tilt counts in its scale; None without a scale."""
    averages: tuple[float, float] | None
    """Averages of the metric that the critical value allows for; None: whatever a tilt has."""

    def estimate(
        self,
        coordinates: FloatArray,
        *,
        values: FloatArray | None = None,
        norm: float | None = None,
    ) -> TiltEstimate | None:
        """The estimate of a tilt; None if it is zero on every row.

        ``values`` on the rows and the squared ``norm`` are given for tilts outside the span, of
        which the coordinates hold only a part.
        """
        basis, rows = self.basis, self.rows
        mean, cross = float(basis.mean @ coordinates), float(basis.cross @ coordinates)
        square = float(coordinates @ basis.second @ coordinates)
        inside, beyond = mean, 0.0
        if values is not None and norm is not None and rows is not None:
            weighed = rows.weights * values
            share = rows.counts / rows.counts.sum()
            mean, cross = float(share @ weighed), float(share @ (weighed * rows.values))
            square = float(share @ weighed**2)
            if mean > 0:
                beyond = self._beyond(rows, coordinates, weighed, norm) / mean
        if mean <= 0 or square <= 0:
            return None
        told = inside > _LEAST * mean
        return TiltEstimate(
            # The metric was centred before averaging; here its mean comes back.
            disparity=cross / mean + self.mean - self.target,
            # A tilt counts with average one, so its scale is divided by the mean it has instead.
            reach=self._scale(coordinates) / inside / mean if told else None,
            beyond=beyond,
            # n_eff of Appendix D of Cherian and Candès.
            effective=self.n * mean**2 / square,
        )

    def _scale(self, coordinates: FloatArray) -> float:
        size, basis = float(coordinates @ coordinates), self.basis
        # Unscaled bounds hold on the unit ball: a tilt of another norm is brought there first.
        if self.floor is None:
            return size
        square = max(float(coordinates @ basis.centred @ coordinates), 0.0)
        return float(scale_of(float(basis.mean @ coordinates), square, size, self.floor))

    def _beyond(
        self, rows: TiltRows, coordinates: FloatArray, weighed: FloatArray, norm: float
    ) -> float:
        """By how much the part outside the span can move the tilt's sum."""
        share = rows.counts / rows.counts.sum()
        outside = weighed - rows.weights * (rows.features @ coordinates)
        length = float(coordinates @ coordinates)
        average = float(share @ (weighed * rows.values)) / float(share @ weighed)
        apart = rows.values - average
        # Outside the span each row has features of squared norm ``left``, times its weight.
        size = np.sqrt(rows.left) * rows.weights * np.abs(apart)
        overlap = overlap_of(rows.kernel, rows.points, rows.features, size, rows.counts)
        moved = norm_bound(size, rows.counts, rows.clusters, overlap)
        single = float(share @ outside) * rows.influence
        single = single + float(share @ (outside * apart)) * rows.paired
        total = math.sqrt(max(norm - length, 0.0)) * moved
        total += mean_bound(single, rows.counts, rows.clusters)
        low, high = self._allowed(coordinates)
        slip = max(low - average, average - high, 0.0)
        if slip == 0:
            return total
        each = rows.features * rows.weights[:, None] - rows.paired[:, None] * self.basis.mean
        turned = norm_bound(np.linalg.norm(each, axis=1), rows.counts, rows.clusters)
        return total + slip * math.sqrt(length) * turned

    def _allowed(self, coordinates: FloatArray) -> tuple[float, float]:
        """Between which averages of the centred metric the critical value speaks of a tilt."""
        if self.averages is not None:
            return self.averages[0] - self.mean, self.averages[1] - self.mean
        own = float(self.basis.cross @ coordinates) / float(self.basis.mean @ coordinates)
        return own, own

    def nearest(
        self, aim: Aim, penalty: float | None, other: FloatArray, *, critical: float, spread: float
    ) -> Closest | None:
        """The tilt that best answers a question, weighing width against distance.

        ``other`` are features of points where no row lies and a tilt must not be negative either.
        None where no tilt that is nowhere negative comes near.
        """
        features = self.basis.corner if self.rows is None else self.rows.features
        # The search takes penalties as shares of this trace; readers give and get them whole.
        size = float(self.basis.once.trace())
        penalties: Sequence[float] = PENALTIES if penalty is None else (penalty / size,)
        tried = closest_tilts(features, self.basis.once, aim.wanted, penalties, other)
        usable = [found for found in tried if found.lowest > LOWEST]

        def cost(found: Closest) -> float:
            """Half-width of the bounds, and what the metric may change over the distance left."""
            made = self.estimate(found.coordinates)
            if made is None:
                return float("inf")
            away = self.distance(aim, found)
            if away is None:
                away = self.mismatch(aim, found) or 0.0
            return critical * (made.reach or 0.0) + spread * away

        # The choice costs no confidence, since the bounds of all tilts hold at once.
        return min(usable, key=cost, default=None)

    def distance(self, aim: Aim, found: Closest) -> float | None:
        """Share of the tilted population that lies elsewhere than the one asked about."""
        if aim.on_rows is None or self.rows is None:
            return None
        share, tilt = self.rows.share, np.maximum(found.values, 0.0)
        # Half the absolute differences of two distributions: their distance in total variation.
        apart = np.abs(tilt / (share @ tilt) - aim.on_rows / (share @ aim.on_rows))
        return float(share @ apart / 2)

    def mismatch(self, aim: Aim, found: Closest) -> float | None:
        """What remains of the kernel's distance between the populations."""
        if aim.on_rows is not None:
            return None
        everyone = self.basis.mean
        # The kernel's distance between two populations is that of their mean features.
        before = float(np.linalg.norm(everyone - aim.wanted))
        mean = float(everyone @ found.coordinates)
        after = float(np.linalg.norm(self.basis.once @ found.coordinates / mean - aim.wanted))
        return after / before if before > 0 else 0.0


def mean_features(
    kernel: Kernel, basis: TiltBasis, points: FloatArray, mass: FloatArray
) -> tuple[FloatArray, float]:
    """Mean features of another population, and the share of it that is like some row audited."""
    wanted, alike = np.zeros(basis.mean.size), 0.0
    for start in range(0, len(points), _BLOCK):
        part, weight = points[start : start + _BLOCK], mass[start : start + _BLOCK]
        features = features_of(kernel, basis.pivots, basis.corner, part)
        # Of a point's kernel the span explains all where rows were audited, nothing far from them.
        own = np.maximum(kernel.diagonal(part), 1e-300)
        wanted += weight @ features
        alike += float(weight @ np.minimum((features**2).sum(axis=1) / own, 1.0))
    total = mass.sum()
    return wanted / total, alike / float(total)
