"""The audited rows and the span of tilts, kept beside a finding so that it can be asked more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.findings.shift_kernels import Covariate
from equipoise.findings.shift_lazy import tilts
from equipoise.methods.arrays import FloatArray, IntArray

#: Bins in which a number is shown.
_BINS = 40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShiftBasis:
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
class ShiftSpace:
    """The rows, for questions that need them; not stored."""

    kernel: tilts.Kernel
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

    def columns(self, covariates: Sequence[Covariate]) -> dict[str, Any]:
        """The covariates of the rows as arrays by name, for a function that is given to us."""
        found: dict[str, Any] = {}
        for i, covariate in enumerate(covariates):
            codes = self.points[:, i]
            levels = covariate.levels
            found[covariate.name] = (
                codes.copy() if levels is None else np.array([levels[int(c)] for c in codes])
            )
        return found


def profile_of(
    space: ShiftSpace, covariates: Sequence[Covariate], tilt: FloatArray, wanted: FloatArray | None
) -> tuple[dict[str, Any], ...]:
    """How the population lies along each covariate, before and after a tilt, for a chart."""
    before = space.share
    after = before * tilt / (before @ tilt)
    aim = None if wanted is None else before * wanted / (before @ wanted)
    records = []
    for i, covariate in enumerate(covariates):
        records += _along(covariate, space.points[:, i], before, after, aim)
    return tuple(records)


def _along(
    covariate: Covariate,
    codes: FloatArray,
    before: FloatArray,
    after: FloatArray,
    aim: FloatArray | None,
) -> list[dict[str, Any]]:
    place, ends = _bins(covariate, codes)
    size = len(ends)
    sums = [
        np.bincount(place, x, minlength=size) if x is not None else None
        for x in (before, after, aim)
    ]
    found = []
    for k, (start, stop) in enumerate(ends):
        rows, tilted, wanted = (None if x is None else float(x[k]) for x in sums)
        if rows is None or tilted is None or rows <= 0:
            continue
        found.append(
            {
                "covariate": covariate.name,
                "from": start,
                "to": stop,
                "rows": rows,
                "tilted": tilted,
                "tilt": tilted / rows,
                "wanted": None if wanted is None else wanted / rows,
            }
        )
    return found


def _bins(covariate: Covariate, codes: FloatArray) -> tuple[Any, list[tuple[Any, Any]]]:
    """Each row's bin, and the ends of every bin; a category is a bin of its own."""
    if covariate.levels is not None:
        return codes.astype(np.int64), [(level, level) for level in covariate.levels]
    distinct = np.unique(codes)
    if len(distinct) <= _BINS:
        place = np.searchsorted(distinct, codes)
        return place, [(float(value), float(value)) for value in distinct]
    edges = np.linspace(distinct[0], distinct[-1], _BINS + 1)
    # The largest value ends the last bin rather than beginning one of its own.
    place = np.clip(np.searchsorted(edges, codes, side="right") - 1, 0, _BINS - 1)
    return place, list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
