"""What `shift` says: bounds on a metric under every tilt of the covariates, asked at any time."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from equipoise._lazy import LazyModule
from equipoise._validate import fraction
from equipoise.errors import OptionError
from equipoise.findings.charts.forest import Line, forest, reading
from equipoise.findings.charts.shift import tilt_chart
from equipoise.findings.finding import Finding
from equipoise.findings.shift_ask import (
    Question,
    group_question,
    population_question,
    section_coordinates,
    weight_question,
)
from equipoise.findings.shift_kernels import Covariate, KernelPart, kernel_words
from equipoise.findings.shift_rows import AskedTilt, Side, Tilted, critical_values
from equipoise.findings.shift_space import ShiftBasis, ShiftSpace, basis_from, profile_of
from equipoise.findings.summary import restored
from equipoise.findings.words import difference, left_out, level_text, plural
from equipoise.methods.arrays import FloatArray

if TYPE_CHECKING:
    from equipoise.methods import tilts
else:
    # the mathematics comes in when a finding is asked, not when one is read
    tilts = LazyModule("equipoise.methods.tilts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift(Finding):
    """Bounds under every non-negative tilt of the covariates; with the confidence, all hold."""

    kind: ClassVar[str] = "shift"
    row_type: ClassVar[type] = Tilted
    columns: ClassVar[tuple[str, ...]] = (
        "group",
        "effective",
        "value",
        "disparity",
        "lower",
        "upper",
        "note",
    )

    n: int
    """Rows audited."""
    metric: str
    """The metric in words."""
    against: str
    """The target in words."""
    share: bool
    """Whether the metric is a share, read in percentage points."""
    target: float
    """What the metric is compared with."""
    mean: float
    """The metric over everyone."""
    spread: float
    """By how much the metric can differ between people."""
    level: float
    """Confidence that every bound holds."""
    side: Side
    """Which bounds were computed."""
    limits: tuple[float | None, float | None]
    """Smallest and largest disparity that is possible at all."""
    method: str
    """In which units tilts are compared: rescaled, signed or unscaled."""
    floor: float | None
    """What the squared norm of a tilt counts in its scale; None without a scale."""
    engine: str
    """How resamples were drawn: exact, moments or clusters."""
    resamples: int
    """How often."""
    critical: float | None
    """The critical value for tilts in the span; None if there is no answer."""
    allowance: float | None
    """What is added to it for tilts outside the span, because sections were left out."""
    rank: int
    """Kernel sections that span the tilts."""
    residual: float
    """Share of the kernel's trace outside their span."""
    kernel: tuple[KernelPart, ...]
    """The kernel, with the bandwidths used."""
    covariates: tuple[Covariate, ...]
    """The covariates."""
    reach: tuple[float, float]
    """Least and largest average metric under the tilts of the span, where the method uses it."""
    sampled: int | None
    """Rows drawn at random, if a sample was asked for."""
    reason: str
    """Why there is no answer; empty if there is one."""
    draws: tuple[tuple[float, float], ...] = dataclasses.field(repr=False)
    """Lowest and highest value over tilts in the span in each resample."""
    whole: tuple[tuple[float, float], ...] = dataclasses.field(repr=False)
    """The same over the whole unit ball; empty where nothing was left out."""
    basis: ShiftBasis = dataclasses.field(repr=False, compare=False)
    """Averages from which tilts of the span are estimated."""
    space: ShiftSpace | None = dataclasses.field(default=None, repr=False, compare=False)
    """The rows; not stored, so that a finding read back answers only what needs none."""

    def __post_init__(self) -> None:
        # Read back from JSON these are plain mappings.
        if isinstance(self.basis, Mapping):
            object.__setattr__(self, "basis", basis_from(self.basis))
        kernel = tuple(restored(KernelPart, part) for part in self.kernel)
        covariates = tuple(restored(Covariate, each) for each in self.covariates)
        object.__setattr__(self, "kernel", kernel)
        object.__setattr__(self, "covariates", covariates)

    def to_dict(self) -> dict[str, Any]:
        """Plain data without the rows: groups can be asked only while the audit is at hand."""
        bare = dataclasses.replace(self, space=None, basis=None)  # type: ignore[arg-type]
        data = Finding.to_dict(bare)
        del data["space"]
        return {**data, "basis": self.basis.to_dict()}

    def ask_tilt(
        self, tilt: Any, /, *, at: Mapping[str, Sequence[Any]] | None = None, name: str = ""
    ) -> AskedTilt:
        """The bounds under one tilt; asking more never costs confidence.

        Parameters
        ----------
        tilt
            Weights on kernel sections: on those of ``sections()``, or on sections at the points
            given by ``at``. Or a function of the covariates (arrays by name) that returns a
            non-negative number for each row, which is replaced by the closest tilt of the span.
        at
            Covariates of the points, one list for each.
        name
            What to call the tilt.
        """
        if callable(tilt):
            question = weight_question(self, tilt, name)
            return self._closest(question)
        weights = np.asarray(tilt, dtype=np.float64)
        found = section_coordinates(self, weights, at)
        label = name or f"a tilt of {plural(int(np.count_nonzero(weights)), 'section')}"
        return self._answer(found.coordinates, label, values=found.values, norm=found.norm)

    def ask_group(
        self, group: Any = None, /, *, name: str = "", penalty: float | None = None, **where: Any
    ) -> AskedTilt:
        """The bounds under the closest non-negative tilt to a group, and how close it is.

        Parameters
        ----------
        group
            A function of the covariates (arrays by name) that says of each row whether it is in
            the group; or covariates by name: a value, a pair of ends, or a list of several.
        name
            What to call the group.
        penalty
            Penalty on the norm of the tilt; by default the one with the least sum of half-width
            and distance, which may be chosen freely because all bounds hold at once.
        """
        return self._closest(group_question(self, group, where, name), penalty)

    def ask_population(
        self, table: Any, /, *, name: str = "", penalty: float | None = None
    ) -> AskedTilt:
        """The bounds under the tilt that brings the covariates closest to those of another table.

        Parameters
        ----------
        table
            A trail, a data frame, or a mapping with the covariates as columns.
        name
            What to call the population.
        penalty
            As in `ask_group`.
        """
        return self._closest(population_question(self, table, name), penalty)

    def sections(self) -> tuple[dict[str, Any], ...]:
        """The covariates of the kernel sections that span the tilts, in the order of weights."""
        return tuple(
            {c.name: c.decode(float(x)) for c, x in zip(self.covariates, point, strict=True)}
            for point in self.basis.pivots
        )

    def at(self, level: float) -> Shift:
        """The same bounds at another confidence level, from the stored distribution."""
        fraction("level", level)
        if self.critical is None:
            return dataclasses.replace(self, level=level)
        critical, allowance = critical_values(self.draws, self.whole, level, self.side)
        said = self.guarantee.replace(level_text(self.level), level_text(level))
        moved = dataclasses.replace(
            self, level=level, critical=critical, allowance=allowance, guarantee=said
        )
        return dataclasses.replace(moved, rows=tuple(moved._rebound(row) for row in self.rows))

    def sentences(self) -> tuple[str, ...]:
        """The guarantee, what stands out, how tilts were described, and what is missing."""
        return (
            f"{self.guarantee}.",
            *([f"There are no bounds: {self.reason}."] if self.reason else self._extremes()),
            self._kernel_sentence(),
            left_out(self.provenance.excluded, self.provenance.ineligible),
        )

    def plot(self, answer: AskedTilt | None = None, most: int = 40) -> Any:
        """The rows with their bounds, or one answer: its tilt over the covariates and its bound."""
        if answer is not None:
            return tilt_chart(
                answer.profile,
                title=f"{self.metric.capitalize()}, tilted toward {answer.group}",
                subtitle=self._said(answer),
            )
        known = [row for row in self.rows if row.disparity is not None]
        low, high = self._plot_limits(known)
        lines = [
            Line(
                group=row.group,
                n=round(row.effective or 0),
                centre=row.disparity or 0.0,
                lower=low if row.lower is None else row.lower,
                upper=high if row.upper is None else row.upper,
                colour=reading(row.lower, row.upper, 0.0),
            )
            for row in known
        ]
        return forest(
            lines,
            title=f"{self.metric.capitalize()} against {self.against}, by tilt",
            subtitle=f"{level_text(self.level)} simultaneous bounds; n is the effective size",
            axis="disparity",
            reference=[0.0],
            most=most,
        )

    def estimate(
        self, coordinates: FloatArray, norm: float | None = None, values: FloatArray | None = None
    ) -> tuple[float, float, float, float]:
        """Mean, disparity, scale per squared mean, and effective size of a tilt.

        ``values`` on the rows and ``norm`` are given for tilts outside the span.
        """
        basis = self.basis
        mean, cross = float(basis.mean @ coordinates), float(basis.cross @ coordinates)
        square = float(coordinates @ basis.second @ coordinates)
        size = float(coordinates @ coordinates)
        if values is not None and norm is not None and self.space is not None:
            space = self.space
            share = space.counts / space.counts.sum()
            weighed = space.weights * values
            mean, cross = float(share @ weighed), float(share @ (weighed * space.values))
            square, size = float(share @ weighed**2), norm
        if mean <= 0 or square <= 0:
            return 0.0, 0.0, np.inf, 0.0
        scale = (
            size if self.floor is None else float(tilts.scale_of(mean, square, size, self.floor))
        )
        effective = self.n * mean**2 / square
        return mean, cross / mean + self.mean - self.target, scale / mean**2, effective

    def tilted(
        self,
        coordinates: FloatArray,
        label: str,
        where: Mapping[str, Any] | None = None,
        values: FloatArray | None = None,
        norm: float | None = None,
    ) -> Tilted:
        """A tilt with its bounds."""
        mean, disparity, reach, effective = self.estimate(coordinates, norm, values)
        nothing = mean <= 0
        row = Tilted(
            group=label,
            where=dict(where or {}),
            n=self.n,
            effective=None if nothing else effective,
            value=None if nothing else disparity + self.target,
            target=self.target,
            disparity=None if nothing else disparity,
            lower=None,
            upper=None,
            note="the tilt is zero on every row" if nothing else "",
            reach=None if nothing else reach,
            inside=values is None,
        )
        return self._rebound(row)

    def _rebound(self, row: Tilted) -> Tilted:
        if row.reach is None or row.disparity is None:
            return row
        if self.critical is None:
            return dataclasses.replace(row, lower=None, upper=None, note=self.reason)
        critical = self.critical + (0.0 if row.inside else self.allowance or 0.0)
        half = critical * row.reach
        lower = self._clamped(row.disparity - half) if self.side != "upper" else None
        upper = self._clamped(row.disparity + half) if self.side != "lower" else None
        low, high = self.limits
        says = (lower is not None and (low is None or lower > low)) or (
            upper is not None and (high is None or upper < high)
        )
        note = row.note if says else "too little data to exclude anything"
        return dataclasses.replace(row, lower=lower, upper=upper, note=note)

    def _clamped(self, bound: float) -> float:
        low, high = self.limits
        bound = bound if low is None else max(bound, low)
        return bound if high is None else min(bound, high)

    def _answer(
        self,
        coordinates: FloatArray,
        label: str,
        *,
        values: FloatArray | None = None,
        norm: float | None = None,
        wanted: FloatArray | None = None,
        **more: Any,
    ) -> AskedTilt:
        row = self.tilted(coordinates, label, values=values, norm=norm)
        fields = {f.name: getattr(row, f.name) for f in dataclasses.fields(row)}
        fields |= {"where": more.pop("where", row.where)}
        profile: tuple[Mapping[str, Any], ...] = ()
        if self.space is not None and row.reach is not None:
            tilt = self.space.features @ coordinates if values is None else values
            profile = profile_of(self.space, self.covariates, np.maximum(tilt, 0.0), wanted)
        return AskedTilt(**fields, **more, profile=profile)

    def _closest(self, question: Question, penalty: float | None = None) -> AskedTilt:
        """The tilt that best answers a question, weighing width against distance."""
        rows = self.basis.corner if self.space is None else self.space.features
        size = float(np.trace(self.basis.once))
        penalties = tilts.PENALTIES if penalty is None else (penalty / size,)
        tried = tilts.closest_tilts(rows, self.basis.once, question.wanted, penalties)
        usable = [found for found in tried if found.lowest > -1e-3]
        if not usable:
            raise OptionError(
                f"No non-negative tilt comes near {question.label}: it lies where no row is."
            )
        best = min(usable, key=lambda found: self._cost(question, found))
        return self._answer(
            best.coordinates,
            question.label,
            wanted=question.on_rows,
            where=question.where,
            penalty=best.penalty,
            distance=question.distance(best),
            mismatch=question.mismatch(self.basis, best),
            uncovered=question.uncovered,
        )

    def _cost(self, question: Question, found: tilts.Closest) -> float:
        _, _, reach, _ = self.estimate(found.coordinates)
        half = (self.critical or 0.0) * reach
        away = question.distance(found)
        if away is None:
            away = question.mismatch(self.basis, found) or 0.0
        return half + self.spread * away

    def _plot_limits(self, rows: Sequence[Tilted]) -> tuple[float, float]:
        known = [x for row in rows for x in (row.disparity, row.lower, row.upper) if x is not None]
        return (min(known), max(known)) if known else (0.0, 1.0)

    def _say(self, value: float) -> str:
        return difference(value, self.share)

    def _said(self, row: Tilted) -> str:
        if row.disparity is None:
            return row.note
        ends = [
            f"at least {self._say(row.lower)}" if row.lower is not None else "",
            f"at most {self._say(row.upper)}" if row.upper is not None else "",
        ]
        said = " and ".join(end for end in ends if end) or row.note
        return (
            f"estimated {self._say(row.disparity)} against {self.against}, {said} "
            f"({level_text(self.level)}, for all tilts at once)"
        )

    def _extremes(self) -> list[str]:
        above = [row for row in self.rows if row.lower is not None and row.lower > 0]
        below = [row for row in self.rows if row.upper is not None and row.upper < 0]
        said = []
        if above:
            row = max(above, key=lambda r: r.lower)
            said.append(f"Furthest above, leaning toward {row.group}: {self._said(row)}.")
        if below:
            row = min(below, key=lambda r: r.upper)
            said.append(f"Furthest below, leaning toward {row.group}: {self._said(row)}.")
        return said or [f"No tilt toward one kind of people is told apart from {self.against}."]

    def _kernel_sentence(self) -> str:
        text = (
            f"Tilts vary over {kernel_words(self.kernel)} and are described by "
            f"{plural(self.rank, 'kernel section')}, outside of which lies a share of "
            f"{self.residual:.1g} of the kernel."
        )
        if self.critical and self.allowance:
            grown = self.allowance / self.critical
            text += f" For tilts outside them bounds are {100 * grown:.2g} % wider."
        return text
