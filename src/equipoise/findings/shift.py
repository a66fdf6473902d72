"""What `shift` says: bounds on a metric under every tilt of the covariates, asked at any time."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise._validate import confidence
from equipoise.findings.charts.groups import Line, forest, reading
from equipoise.findings.charts.others import tilt_chart
from equipoise.findings.finding import Chart
from equipoise.findings.shift_questions import (
    Population,
    Question,
    closest,
    estimate,
    group_question,
    population_question,
    section_coordinates,
    weight_question,
    where_negative,
)
from equipoise.findings.shift_space import (
    AskedTilt,
    OfCovariates,
    ShiftRecord,
    Tilted,
    kernel_words,
    profile_of,
)
from equipoise.findings.words import (
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
        """The same bounds at another confidence level, from the stored distribution."""
        confidence(level)
        if self.critical is None:
            return dataclasses.replace(self, level=level)
        critical = tilts.critical_value(np.array(self.draws), level, self.side)
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

    def plot(self, answer: AskedTilt | None = None, most: int = 40) -> Chart:
        """The rows with their bounds, or one answer: its tilt over the covariates and its bound."""
        if answer is not None:
            return tilt_chart(
                answer.profile,
                title=f"{self.metric.capitalize()}, tilted toward {answer.group}",
                subtitle=self._said(answer),
            )
        lines = [
            Line(
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
            axis="disparity",
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
        found = estimate(self, coordinates, values=values, norm=norm)
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
        answer = self._answer(best.coordinates, question.label, wanted=question.on_rows)
        said = [answer.note, where_negative(self, best)]
        return dataclasses.replace(
            answer,
            note="; ".join(note for note in said if note),
            where=question.where,
            penalty=best.penalty,
            distance=question.distance(best),
            mismatch=question.mismatch(self.basis, best),
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
            f"Furthest {way}, leaning toward {row.group}: {self._said(row)}."
            for way, row in ways
            if row
        ] or [f"No tilt toward one kind of people is told apart from {self.against}."]

    def _kernel_sentence(self) -> str:
        return (
            f"Tilts vary over {kernel_words(self.kernel)} and are described by "
            f"{plural(self.rank, 'kernel section')}, outside of which lies a share of "
            f"{self.residual:.1g} of the kernel."
        )
