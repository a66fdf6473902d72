"""Boolean certificates that a disparity lies above, below or within a tolerance."""

from dataclasses import dataclass
from enum import Enum

import numpy as np

from equipoise.methods.arrays import BoolArray, FloatArray
from equipoise.methods.inference.comparison import Status
from equipoise.methods.multiplicity import StepDown
from equipoise.methods.published.bootstrap.estimates import GroupEstimates
from equipoise.methods.published.bootstrap.process import (
    Audit,
    certificate_deviations,
    certificate_values,
    columns,
)
from equipoise.methods.published.bootstrap.scaling import Scaling, Unscaled
from equipoise.methods.quantiles import quantile


class Aim(Enum):
    """What is to be certified of each disparity ε."""

    ABOVE = "above"
    """ε > limit."""
    BELOW = "below"
    """ε < limit."""
    WITHIN = "within"
    """|ε| < limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """One-sided certificates for one limit; :func:`combine` joins two of them."""

    limit: float
    """The limit ε₀."""
    upward: bool
    """True for ε > limit, False for ε < limit."""
    statistic: FloatArray
    """ŝ⁻¹ p̂ (ε̂ − limit), its sign turned for ε < limit; NaN for groups left out."""
    extremes: FloatArray
    """Largest value of the scaled process in each resample, over all groups."""
    exceedances: FloatArray
    """Share of resamples above the statistic: over all groups, or stepped down."""
    stepped: bool
    """Whether the exceedances were stepped down."""

    def certified(self, level: float) -> BoolArray:
        """Groups certified with familywise confidence ``level``."""
        # a share of 50 in 500 must count as 0.1 whatever 1 − level rounds to
        return np.nan_to_num(self.exceedances, nan=1.0) <= 1 - level + 1e-9

    def critical(self, level: float) -> float:
        """Single-step critical value t*; NaN when no group could be audited."""
        return quantile(self.extremes, level) if self.extremes.size else float("nan")


def certify(
    audit: Audit,
    scaling: Scaling | Unscaled,
    *,
    aim: Aim,
    limit: float,
    step_down: bool = True,
) -> tuple[Certificates, ...]:
    """Run Algorithms 3 and 7; ``Aim.WITHIN`` gives two results, both of which must certify.

    Stepping down drops certified groups and takes the quantile over the rest, again and again: the
    same familywise error, never fewer certificates. It is done in one pass for every level.
    """
    runs = [
        _OneSided(audit.groups, scaling, bound, upward, step_down)
        for bound, upward in _sides(aim, limit)
    ]
    for cells in audit.blocks() if runs[0].live.size else ():
        for run in runs:
            run.add(certificate_deviations(audit, cells, run.limit))
    return tuple(run.result() for run in runs)


def combine(results: tuple[Certificates, ...], level: float) -> BoolArray:
    """Groups certified by every one of the results, each at ``level``.

    Certifying |ε| < limit rejects a union of two hypotheses, so no level is split.
    """
    return np.asarray(np.all([r.certified(level) for r in results], axis=0), dtype=np.bool_)


def _sides(aim: Aim, limit: float) -> list[tuple[float, bool]]:
    if aim is Aim.WITHIN:
        # An intersection–union test: each side is tested at the full level, since both must reject.
        return [(-limit, True), (limit, False)]
    return [(limit, aim is Aim.ABOVE)]


class _OneSided:
    """Collects the exceedances of one one-sided certificate."""

    def __init__(
        self,
        groups: GroupEstimates,
        scaling: Scaling | Unscaled,
        limit: float,
        upward: bool,
        step_down: bool,
    ) -> None:
        scale = scaling.factors(groups)
        # one row cannot support a certificate; leaving it out depends on group sizes only
        able = groups.usable & (groups.status != Status.SINGLE) & ~np.isnan(scale)
        self.live = np.flatnonzero(able)
        self.limit, self._upward = limit, upward
        sign = 1.0 if upward else -1.0
        # (10) of Cherian and Candès, over Algorithm 7's scale: certified where it reaches t*.
        self._factor = sign / scale[self.live]
        self._statistic = certificate_values(groups, limit)[self.live] * self._factor
        self._step = StepDown(self._statistic) if step_down else None
        self._maxima: list[FloatArray] = []
        self._groups = groups.share.size

    def add(self, deviations: FloatArray) -> None:
        process = columns(deviations, self.live)
        process *= self._factor
        self._maxima.append(process.max(axis=1))
        if self._step is not None:
            self._step.add(process)

    def result(self) -> Certificates:
        maxima = np.concatenate([np.zeros(0), *self._maxima])
        if self._step is not None:
            shares = self._step.shares_above()
        else:
            shares = _shares_above(maxima, self._statistic)
        return Certificates(
            limit=self.limit,
            upward=self._upward,
            statistic=self._spread(self._statistic),
            extremes=maxima,
            exceedances=self._spread(shares),
            stepped=self._step is not None,
        )

    def _spread(self, values: FloatArray) -> FloatArray:
        out = np.full(self._groups, np.nan)
        out[self.live] = values
        return out


def _shares_above(maxima: FloatArray, statistic: FloatArray) -> FloatArray:
    ordered = np.sort(maxima)
    # A statistic equal to t* certifies, so only maxima strictly above it speak against.
    above = maxima.size - np.searchsorted(ordered, statistic, side="right")
    return np.asarray(above / max(maxima.size, 1), dtype=np.float64)
