"""One tilt and its bounds: a row of a finding, and the answer to a question."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from equipoise.findings.words import ends_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Tilted:
    """One tilt of the population with its simultaneous bounds."""

    group: str
    """The tilt in words."""
    where: Mapping[str, Any]
    """Where the tilt leans, if it can be said by covariates."""
    n: int
    """Rows audited."""
    effective: float | None
    """Effective sample size: as many rows would tell as much about the tilted population."""
    value: float | None
    """The metric in the tilted population."""
    target: float
    """What it is compared with."""
    disparity: float | None
    """Value minus target."""
    lower: float | None
    """Lower bound on the disparity; None if there is none."""
    upper: float | None
    """Upper bound on the disparity; None if there is none."""
    note: str = ""
    """Why a bound is missing, or what to keep in mind."""
    reach: float | None = None
    """Half-width of the bounds per unit of the critical value."""
    beyond: float = 0.0
    """Half-width added for what the tilt has outside the span of the kept kernel sections."""

    def __str__(self) -> str:
        said = ends_text(self.lower, self.upper, "{:+.3f}".format, self.note)
        estimate = "unknown" if self.disparity is None else f"{self.disparity:+.3f}"
        about = "" if self.effective is None else f" (effective n = {self.effective:,.0f})"
        return f"{self.group}: {estimate}, {said}{about}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedTilt(Tilted):
    """The answer to a question about a tilt."""

    distance: float | None = None
    """Share of the tilted population that lies elsewhere than the one asked about: 0 if the tilt
    is what was asked about, 1 if they have nothing in common."""
    mismatch: float | None = None
    """For a population: what remains of the kernel's distance to it; 1 if the tilt does nothing."""
    uncovered: float | None = None
    """For a population: share of it that is unlike every row audited."""
    penalty: float | None = None
    """Penalty on the norm with which the closest tilt was found."""
    profile: tuple[Mapping[str, Any], ...] = dataclasses.field(default=(), repr=False)
    """The population along each covariate, before and after the tilt."""
