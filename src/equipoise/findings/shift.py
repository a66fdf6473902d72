"""What `shift` says: bounds on a metric under every tilt of the covariates, asked at any time."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise._validate import confidence, names_extra
from equipoise.errors import OptionError
from equipoise.findings.bounds import BoundedGroup, Bounds
from equipoise.findings.charts import ForestLine, disparity_axis, forest, reading
from equipoise.findings.charts.others import tilt_chart
from equipoise.findings.finding import COMPARED, NOT_STORED, Chart, ComparedFinding
from equipoise.findings.shift_questions import (
    AskedTilt,
    OfCovariates,
    Population,
    Question,
    ShiftRecord,
    Tilted,
    closest,
    group_question,
    kernel_words,
    population_question,
    profile_of,
    section_coordinates,
    weight_question,
    where_negative,
)
from equipoise.findings.words import (
    Ends,
    Side,
    clamp,
    difference,
    ends_text,
    furthest,
    level_text,
    plural,
    says_something,
)
from equipoise.methods import tilts
from equipoise.methods.numerics import AnyArray, FloatArray
from equipoise.methods.tilts.audit import HalfLines, first_turn, lower_bound, upper_bound

#: Why a tilt has no bounds although there is a critical value.
_ELSEWHERE = "the tilt lies outside the kept kernel sections; raise max_rank"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Shift(ShiftRecord):
    """Bounds under every non-negative tilt of the covariates; with the confidence, all hold.

    >>> import equipoise as eq
    >>> eq.shift(eq.datasets.compas(), eq.gap("accuracy"), over=eq.gaussian("age"), rng=7)
    <Shift: accuracy against everyone, under tilts of age; 3 rows>
    """

    kind = "shift"
    columns = ("group", "effective", "value", "disparity", "lower", "upper", "note")

    def ask_tilt(
        self,
        tilt: OfCovariates | Sequence[float] | AnyArray,
        /,
        *,
        at: Mapping[str, Sequence[object]] | None = None,
        name: str = "",
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
            return self._closest(weight_question(self, tilt, name))
        weights = np.asarray(tilt, dtype=np.float64)
        found = section_coordinates(self, weights, at)
        label = name or f"a tilt of {plural(int(np.count_nonzero(weights)), 'section')}"
        return self._answer(found.coordinates, label, values=found.values, norm=found.norm)

    def ask_group(
        self,
        group: OfCovariates | Mapping[str, object] | None = None,
        /,
        *,
        name: str = "",
        penalty: float | None = None,
        **where: object,
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
        self, table: Population, /, *, name: str = "", penalty: float | None = None
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

    def sections(self) -> tuple[dict[str, object], ...]:
        """The covariates of the kernel sections that span the tilts, in the order of weights."""
        return tuple(
            {c.name: c.decode(float(x)) for c, x in zip(self.covariates, point, strict=True)}
            for point in self.basis.pivots
        )

    def at(self, level: float) -> Shift:
        """The same bounds at another confidence level, from the stored table of critical values.

        They may be wider by a step of the table, a thousandth of the level, but never narrower.
        """
        if confidence(level) == self.level:
            return self
        if self.critical is None:
            return dataclasses.replace(self, level=level)
        if not self.quantiles:
            raise OptionError("These bounds keep too little from which to read another level.")
        critical = tilts.critical_at(self.quantiles, level)
        said = self.guarantee.replace(level_text(self.level), level_text(level))
        moved = dataclasses.replace(self, level=level, critical=critical, guarantee=said)
        return dataclasses.replace(moved, rows=tuple(moved._rebound(row) for row in self.rows))

    def sentences(self) -> tuple[str, ...]:
        """The guarantee, what stands out, how tilts were described, and what is missing."""
        said = [f"{self.guarantee}.", *self._extremes()]
        return (
            *([f"There are no bounds: {self.reason}."] if self.reason else said),
            self._kernel_sentence(),
            self.provenance.left_out(),
        )

    @names_extra
    def plot(self, answer: AskedTilt | None = None, most: int = 40) -> Chart:
        """The rows with their bounds, or one answer: its tilt over the covariates and its bound."""
        if answer is not None:
            return tilt_chart(
                answer.profile,
                title=f"{self.metric.capitalize()}, tilted toward {answer.group}",
                subtitle=self._said(answer),
            )
        lines = [
            ForestLine(
                group=row.group,
                n=round(row.effective or 0),
                centre=row.disparity,
                lower=row.lower,
                upper=row.upper,
                colour=reading(row.lower, row.upper, 0.0),
            )
            for row in self.rows
            if row.disparity is not None
        ]
        return forest(
            lines,
            title=f"{self.metric.capitalize()} against {self.against}, by tilt",
            subtitle=f"{level_text(self.level)} simultaneous bounds; n is the effective size",
            axis=disparity_axis(relative=False, share=self.share),
            reference=[0.0],
            most=most,
        )

    def tilted(
        self,
        coordinates: FloatArray,
        label: str,
        where: Mapping[str, object] | None = None,
        values: FloatArray | None = None,
        norm: float | None = None,
    ) -> Tilted:
        """A tilt with its bounds."""
        found = self.span.estimate(coordinates, values=values, norm=norm)
        row = Tilted(
            group=label,
            where=dict(where or {}),
            n=self.n,
            effective=None if found is None else found.effective,
            value=None if found is None else found.disparity + self.target,
            target=self.target,
            disparity=None if found is None else found.disparity,
            lower=None,
            upper=None,
            note="the tilt is zero on every row" if found is None else "",
            reach=None if found is None else found.reach,
            beyond=0.0 if found is None else found.beyond,
        )
        return self._rebound(row)

    def _rebound(self, row: Tilted) -> Tilted:
        if row.disparity is None:
            return row
        if self.critical is None:
            return dataclasses.replace(row, lower=None, upper=None, note=self.reason)
        if row.reach is None:
            return dataclasses.replace(row, lower=None, upper=None, note=_ELSEWHERE)
        # (15) of Cherian and Candès, times the scale of the tilt where there is one. What the kept
        # sections leave out of a tilt varies too, whatever the level.
        half = self.critical * row.reach + row.beyond
        lower = clamp(row.disparity - half, self.limits) if self.side != "upper" else None
        upper = clamp(row.disparity + half, self.limits) if self.side != "lower" else None
        telling = says_something(lower, upper, self.limits)
        note = row.note if telling else "too little data to exclude anything"
        return dataclasses.replace(row, lower=lower, upper=upper, note=note)

    def _answer(
        self,
        coordinates: FloatArray,
        label: str,
        *,
        values: FloatArray | None = None,
        norm: float | None = None,
        wanted: FloatArray | None = None,
    ) -> AskedTilt:
        row = self.tilted(coordinates, label, values=values, norm=norm)
        fields = {f.name: getattr(row, f.name) for f in dataclasses.fields(row)}
        profile: tuple[Mapping[str, Any], ...] = ()
        if self.space is not None and row.reach is not None:
            tilt = self.space.features @ coordinates if values is None else values
            profile = profile_of(self.space, self.covariates, np.maximum(tilt, 0.0), wanted)
        return AskedTilt(**fields, profile=profile)

    def _closest(self, question: Question, penalty: float | None = None) -> AskedTilt:
        best = closest(self, question, penalty)
        answer = self._answer(best.coordinates, question.label, wanted=question.aim.on_rows)
        said = [answer.note, where_negative(self, best)]
        return dataclasses.replace(
            answer,
            note="; ".join(note for note in said if note),
            where=question.where,
            penalty=best.penalty,
            distance=self.span.distance(question.aim, best),
            mismatch=self.span.mismatch(question.aim, best),
            uncovered=question.uncovered,
        )

    def _say(self, value: float) -> str:
        return difference(value, self.share)

    def _said(self, row: Tilted) -> str:
        if row.disparity is None:
            return row.note
        said = ends_text(row.lower, row.upper, self._say, row.note)
        return (
            f"estimated {self._say(row.disparity)} against {self.against}, {said} "
            f"({level_text(self.level)}, for all tilts at once)"
        )

    def _extremes(self) -> list[str]:
        ways = zip(("above", "below"), furthest(self.rows, 0.0), strict=True)
        return [
            f"Most surely {way}, leaning toward {row.group}: {self._said(row)}."
            for way, row in ways
            if row
        ] or [f"No tilt toward one kind of people is told apart from {self.against}."]

    def _kernel_sentence(self) -> str:
        return (
            f"Tilts vary over {kernel_words(self.kernel)} and are described by "
            f"{plural(self.rank, 'kernel section')}, outside of which lies a share of "
            f"{self.residual:.1g} of the kernel."
        )


# --- What `shift` says of monotone tilts: bounds under every weight that rises, or falls ---

#: Share of the error that is spent on the shares of the population between cuts.
SPENT = 0.05

_FEW = "too few rows at one end to exclude anything; a smaller grid has more in each stretch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The rows between two cuts."""

    start: float
    """Where it begins; its first value is inside."""
    stop: float
    """Where it ends; the last stretch includes its end."""
    share: float
    """Share of the population."""
    square: float
    """Mean over everyone of the squared sampling weight inside; the share without weights."""
    mean: float | None
    """The metric; None where nobody is."""
    error: float
    """Standard error of the share of the population from the start up; zero for the first."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MonotoneShift(ComparedFinding[BoundedGroup]):
    """Bounds under every tilt that rises, or falls, in one column; all hold at once.

    >>> import equipoise as eq
    >>> over = eq.monotone("decile_score")
    >>> eq.shift(eq.datasets.compas(), eq.gap("accuracy"), over=over, rng=7).column
    'decile_score'
    """

    kind = "monotone shift"
    columns = (*COMPARED, "lower", "upper", "note")

    n: int
    """Rows audited."""
    column: str
    """The column in which weights rise or fall."""
    share: bool
    """Whether the metric is a share, read in percentage points."""
    target: float
    """What the metric is compared with."""
    level: float
    """Confidence that every bound holds."""
    side: Side
    """Which bounds were computed."""
    limits: Ends
    """Smallest and largest disparity that is possible at all."""
    stretches: tuple[Stretch, ...]
    """The ranges between cuts, within which a weight is constant."""
    critical: float
    """Standard errors by which no share of the population is wrong."""
    own: bool
    """Whether everyone together is the target, so that their disparity is zero."""
    halves: Bounds = dataclasses.field(repr=False)
    """The bounds on half-lines, from which other levels are read."""
    space: FloatArray | None = dataclasses.field(
        default=None, repr=False, compare=False, metadata=NOT_STORED
    )
    """Value of the column and share of the population of each row; not stored."""

    def ask_tilt(
        self, tilt: OfCovariates | Sequence[float] | AnyArray, /, *, name: str = ""
    ) -> AskedTilt:
        """The bounds under one monotone tilt; asking more never costs confidence.

        Parameters
        ----------
        tilt
            A function of the column (arrays by name, as in `Shift.ask_tilt`) that returns a
            non-negative number for each row, never falling or never rising; within a stretch its
            average is used, and ``distance`` says how much that changes. Or one weight for each of
            ``stretches``, in order.
        name
            What to call the tilt.
        """
        weights, distance = self._weights(tilt)
        label = name or getattr(tilt, "__name__", "the weights given")
        label = "a tilt" if label == "<lambda>" else label
        shares = np.array([each.share for each in self.stretches])
        mean = float(shares @ weights)
        if mean <= 0:
            raise OptionError(f"{label}: the tilt is zero on every row.")
        lower, upper = self._ends(weights, shares)
        squares = np.array([each.square for each in self.stretches])
        means = np.array([each.mean or 0.0 for each in self.stretches])
        value = float(shares * weights @ means) / mean
        told = says_something(lower, upper, self.limits)
        # Bounds hold the estimate; rounding must not part them where both are zero.
        lower = None if lower is None else min(lower, value - self.target)
        upper = None if upper is None else max(upper, value - self.target)
        return AskedTilt(
            group=label,
            where={},
            n=self.n,
            effective=self.n * mean**2 / float(squares @ weights**2),
            value=value,
            target=self.target,
            disparity=value - self.target,
            lower=lower,
            upper=upper,
            note="" if told else _FEW,
            distance=distance,
            profile=self._profile(weights / mean, shares),
        )

    def at(self, level: float) -> MonotoneShift:
        """The same bounds at another confidence level."""
        confidence(level)
        halves = self.halves.at(half_level(level))
        said = self.guarantee.replace(level_text(self.level), level_text(level))
        return dataclasses.replace(
            self,
            level=level,
            guarantee=said,
            rows=halves.rows,
            critical=share_critical(level, len(self.stretches) - 1),
            halves=halves,
        )

    def every(self, direction: str) -> Ends:
        """Between which disparities every tilt lies that is ``"rising"`` or ``"falling"``.

        A tilt that gives all weight to the last few rows is among them, so this is wide; a tilt
        that is asked about has narrower bounds.
        """
        if direction not in ("rising", "falling"):
            raise OptionError(f"direction must be 'rising' or 'falling'; got {direction!r}.")
        found = []
        for side in (0, 1):
            below, above = self._half_lines(side)
            flat = self._everyone
            ends = [*(above if direction == "rising" else below), *([] if flat is None else [flat])]
            if flat is None:
                # Everyone is made of the two half-lines that meet at any cut.
                pairs = np.stack([below, above])
                ends.append(pairs.min(axis=0).max() if side == 0 else pairs.max(axis=0).min())
            found.append(clamp(float(min(ends) if side == 0 else max(ends)), self.limits))
        wanted = (self.side != "upper", self.side != "lower")
        return (found[0] if wanted[0] else None, found[1] if wanted[1] else None)

    def sentences(self) -> tuple[str, ...]:
        """The guarantee, what holds for every tilt, what stands out, and what is missing."""
        return (
            f"{self.guarantee}.",
            *(self._whole_class(direction) for direction in ("rising", "falling")),
            *self._extremes(),
            f"Weights are constant within {plural(len(self.stretches), 'stretch', 'stretches')} of "
            f"{self.column}.",
            self.provenance.left_out(),
        )

    @names_extra
    def plot(self, answer: AskedTilt | None = None, most: int = 40) -> Chart:
        """The half-lines with their bounds, or one answer: its tilt and its bound."""
        if answer is None:
            return self.halves.plot(most)
        return tilt_chart(
            answer.profile,
            title=f"{self.metric.capitalize()}, tilted by {answer.group}",
            subtitle=self._said(answer.disparity, answer.lower, answer.upper, answer.note),
        )

    @property
    def _everyone(self) -> float | None:
        """The disparity of everyone together, where it needs no estimate."""
        return 0.0 if self.own else None

    def _weights(
        self, tilt: OfCovariates | Sequence[float] | AnyArray
    ) -> tuple[FloatArray, float | None]:
        """One weight for each stretch, and how far they are from the tilt that was given."""
        if not callable(tilt):
            given = np.asarray(tilt, dtype=np.float64)
            if given.shape != (len(self.stretches),):
                raise OptionError(
                    f"There are {plural(len(self.stretches), 'stretch', 'stretches')} of "
                    f"{self.column}, listed by stretches; got weights of shape {given.shape}."
                )
            return self._checked(given, [each.start for each in self.stretches]), None
        if self.space is None:
            raise OptionError(
                "A finding that was read back does not hold the rows, which a tilt given as a "
                "function needs. Give one weight for each of stretches, or run the audit again."
            )
        x, share = self.space
        values = np.asarray(tilt({self.column: x.copy()}), dtype=np.float64)
        if values.shape != x.shape:
            raise OptionError(
                f"The tilt must return a number for each of {len(x):,} rows; got an array of shape "
                f"{values.shape}."
            )
        order = np.argsort(x, kind="stable")
        self._checked(values[order], x[order])
        place = np.searchsorted([each.start for each in self.stretches[1:]], x, side="right")
        size = np.bincount(place, share, minlength=len(self.stretches))
        total = np.bincount(place, share * values, minlength=len(self.stretches))
        # A stretch where nobody is takes the weight of its neighbour: it counts for nothing.
        there = np.flatnonzero(size > 0)
        nearest = there[np.clip(np.searchsorted(there, np.arange(len(size))), 0, len(there) - 1)]
        weights = (total / np.where(size > 0, size, 1.0))[nearest]
        mean = float(share @ values)
        away = float(share @ np.abs(values - weights[place])) / (2 * mean) if mean > 0 else None
        return weights, away

    def _checked(self, values: FloatArray, x: Sequence[float] | FloatArray) -> FloatArray:
        if not np.all(np.isfinite(values)) or values.min() < 0:
            raise OptionError(
                "A tilt must be a finite number of at least zero everywhere; the least value is "
                f"{np.nanmin(values):g}."
            )
        turn = first_turn(values)
        if turn is not None:
            raise OptionError(
                f"The tilt turns from {values[turn]:.4g} to {values[turn + 1]:.4g} after "
                f"{self.column} {x[turn]:.4g}, where it went the other way before. Monotone tilts "
                "only rise or only fall; for others use a kernel such as "
                f'gaussian("{self.column}").'
            )
        return values

    def _half_lines(self, side: int) -> tuple[FloatArray, FloatArray]:
        """Bounds below each cut and from it up; what is possible at all where there are none."""
        rows = [row.lower if side == 0 else row.upper for row in self.rows]
        none = self.limits[side]
        if none is None:
            none = -np.inf if side == 0 else np.inf
        ends = np.array([none if end is None else end for end in rows])
        cuts = len(self.stretches) - 1
        return ends[:cuts], ends[cuts:]

    def _ends(self, weights: FloatArray, shares: FloatArray) -> Ends:
        errors = self.critical * np.array([each.error for each in self.stretches[1:]])
        found: list[float | None] = []
        for side, bound in ((0, lower_bound), (1, upper_bound)):
            if self.side == ("upper", "lower")[side]:
                found.append(None)
                continue
            below, above = self._half_lines(side)
            halves = HalfLines(below=below, above=above, everyone=self._everyone)
            found.append(clamp(bound(weights, shares, errors, halves), self.limits))
        return found[0], found[1]

    def _profile(self, weights: FloatArray, shares: FloatArray) -> tuple[dict[str, object], ...]:
        return tuple(
            {
                "covariate": self.column,
                "from": each.start,
                "to": each.stop,
                "rows": float(share),
                "tilted": float(share * weight),
                "tilt": float(weight),
                "wanted": None,
            }
            for each, share, weight in zip(self.stretches, shares, weights, strict=True)
            if share > 0
        )

    def _say(self, value: float) -> str:
        return difference(value, self.share)

    def _said(
        self, disparity: float | None, lower: float | None, upper: float | None, note: str
    ) -> str:
        estimate = "" if disparity is None else f"estimated {self._say(disparity)}, "
        said = ends_text(lower, upper, self._say, note)
        return f"{estimate}{said} ({level_text(self.level)}, for all monotone tilts at once)"

    def _whole_class(self, direction: str) -> str:
        lower, upper = self.every(direction)
        said = ends_text(lower, upper, self._say, "nothing is excluded")
        return f"Under every weight {direction} in {self.column}, the disparity is {said}."

    def _extremes(self) -> list[str]:
        ways = zip(("above", "below"), furthest(self.rows, 0.0), strict=True)
        return [
            f"Most surely {way}, {row.group}: "
            f"{self._said(row.disparity, row.lower, row.upper, row.note)}."
            for way, row in ways
            if row
        ]


def half_level(level: float) -> float:
    """The confidence of the half-lines, so that with the shares of the population it is ``level``.

    >>> round(half_level(0.9), 4)
    0.905
    """
    return 1 - (1 - level) * (1 - SPENT)


def share_critical(level: float, cuts: int) -> float:
    """Standard errors within which every share of the population lies, by Bonferroni.

    >>> round(share_critical(0.9, 19), 2)
    3.65
    """
    from scipy.special import ndtri

    return float(-ndtri((1 - level) * SPENT / (2 * max(cuts, 1))))
