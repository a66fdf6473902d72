"""What `certify` says: bounds on every group's disparity that hold at once."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from equipoise._validate import fraction
from equipoise.errors import OptionError
from equipoise.findings.charts.forest import Line, forest, forest_pair, reading
from equipoise.findings.charts.width import width_curve
from equipoise.findings.finding import Finding
from equipoise.findings.limits import (
    Ends,
    Side,
    clamp,
    furthest,
    judged,
    says_something,
    tolerance_words,
    tolerated,
)
from equipoise.findings.lookup import find_row, range_width
from equipoise.findings.recipes import cook, family_critical, quantile_at
from equipoise.findings.rows import ComparedGroup
from equipoise.findings.verdict import Verdict
from equipoise.findings.words import disparity_text, ends_text, level_text, plural

_TOO_SMALL = "too small to exclude anything"
SELF_TARGET = "the group is its own target"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedGroup(ComparedGroup):
    """One group with its simultaneous bounds."""

    lower: float | None
    """Lower bound on the disparity; None if there is none."""
    upper: float | None
    """Upper bound on the disparity; None if there is none."""
    verdict: Verdict | None = None
    """What is shown about the tolerance, if one was given."""
    note: str = ""
    """Why a bound is missing or says nothing."""
    reach: float | None = None
    """About the half-width of the bounds per unit of the critical value; None without an answer."""

    def __str__(self) -> str:
        said = ends_text(self.lower, self.upper, "{:+.3f}".format, self.note)
        estimate = "unknown" if self.disparity is None else f"{self.disparity:+.3f}"
        return f"{self.group}: {estimate}, {said} (n = {self.n:,})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds(Finding):
    """Simultaneous bounds: with the stated confidence, all of them hold."""

    kind: ClassVar[str] = "bounds"
    row_type: ClassVar[type] = BoundedGroup
    columns: ClassVar[tuple[str, ...]] = (
        "group",
        "n",
        "value",
        "disparity",
        "lower",
        "upper",
        "verdict",
        "note",
    )

    metric: str
    """The metric in words."""
    against: str
    """The target in words."""
    share: bool
    """Whether the metric is a share, read in percentage points."""
    relative: bool
    """Whether disparities are ratios rather than differences."""
    level: float
    """Confidence that every bound holds."""
    side: Side
    """Which bounds were computed."""
    tolerance: float | None
    """The disparity that is tolerated, if one was given."""
    limits: Ends
    """Smallest and largest disparity that is possible at all."""
    method: Mapping[str, Any]
    """The method and its options."""
    engine: str
    """How resamples were drawn: exact, moments or clusters."""
    critical: float | None
    """The critical value behind the bounds; None if no group could be audited."""
    quantiles: tuple[float, ...] = dataclasses.field(default=(), repr=False)
    """Critical values of the levels 0.1 %, 0.2 % … 99.9 %; empty if there is no distribution."""
    recipe: Mapping[str, Any] | None = dataclasses.field(default=None, repr=False)
    """What bounds that are not estimate ± reach are made from, so that any level can be had."""

    def ask(self, group: Mapping[str, Any] | str | None = None, /, **where: Any) -> BoundedGroup:
        """The bounds of one group of the collection; asking more never costs confidence.

        Groups are named by their attributes, ranges by a pair of ends, or by the label of a row.
        """
        row: BoundedGroup = find_row(self.rows, group, where)
        return row

    def at(self, level: float) -> "Bounds":
        """The same bounds at another confidence level, from the stored distribution."""
        fraction("level", level)
        pivotal = self.method.get("kind") == "pivotal"
        if (not self.quantiles and self.recipe is None) or (pivotal and self.recipe is None):
            raise OptionError("These bounds keep too little from which to read another level.")
        said = self.guarantee.replace(level_text(self.level), level_text(level))
        if pivotal and not self.quantiles:
            # no group had an answer, and none has one at another level
            return dataclasses.replace(self, level=level, guarantee=said)
        if self.quantiles:
            critical = quantile_at(self.quantiles, level)
        else:
            critical = family_critical(self.recipe or {}, level, self.side)
        ends = self._ends(critical)
        other = self._other_ends(level, critical, ends)
        rows = tuple(map(self._rebound, self.rows, ends, other))
        return dataclasses.replace(self, level=level, critical=critical, rows=rows, guarantee=said)

    def _ends(self, critical: float) -> list[Ends]:
        """Both ends of every group at a critical value, whichever sides were asked for."""
        if self.recipe is not None:
            return cook(self.recipe, critical, self.limits)
        return [
            (None, None)
            if row.reach is None or row.disparity is None
            # (8) of Cherian and Candès, with ŝ/p̂² for the reach.
            else (row.disparity - critical * row.reach, row.disparity + critical * row.reach)
            for row in self.rows
        ]

    def _other_ends(self, level: float, critical: float, ends: list[Ends]) -> list[Ends]:
        """Ends that judge a one-sided limit from the other side, each at its share of the error."""
        pivotal = self.recipe is not None and self.recipe["kind"] == "pivot"
        if self.recipe is None or not pivotal or self.side == "both" or self.tolerance is None:
            return [(None, None)] * len(ends)
        strict = family_critical(
            {"family": "bonferroni", "groups": len(self.recipe["answered"])}, level, self.side
        )
        return cook(self.recipe, max(strict, critical), self.limits)

    @property
    def verdict(self) -> Verdict | None:
        """What is shown about the tolerance for all groups together.

        A group that is its own target has no verdict and is left aside; if there is nobody else,
        nothing is shown.
        """
        if self.tolerance is None:
            return None
        said = [row.verdict for row in self.rows if row.verdict is not None]
        if Verdict.SHOWN_NOT in said:
            return Verdict.SHOWN_NOT
        # All bounds hold at once, so verdicts may be put together without losing confidence.
        every = bool(said) and all(verdict is Verdict.SHOWN for verdict in said)
        return Verdict.SHOWN if every else Verdict.UNDETERMINED

    @property
    def conclusion(self) -> Verdict | None:
        """What is shown about the tolerance; None if none was given."""
        return self.verdict

    def sentences(self) -> tuple[str, ...]:
        """The guarantee, the verdict, the largest and smallest disparities, and what is missing."""
        return (
            f"{self.guarantee}.",
            *self._verdict_sentence(),
            *self._extreme_sentences(),
            *self._vacuous_sentence(),
            self.provenance.left_out(),
        )

    def plot(self, most: int = 40, *, beside: "Bounds | None" = None) -> Any:
        """A forest plot of the largest groups, all intervals holding at once.

        ``beside`` are other bounds on the same groups, such as another method's, on the same axis.
        """
        if beside is not None:
            return self._plot_beside(beside, most)
        return forest(
            self._lines(),
            title=f"{self.metric.capitalize()} against {self.against}",
            subtitle=f"{level_text(self.level)} simultaneous bounds",
            axis="ratio" if self.relative else "disparity",
            reference=self._plot_rules(),
            most=most,
        )

    def _lines(self) -> list[Line]:
        return [
            Line(
                group=row.group,
                n=row.n,
                centre=row.disparity,
                lower=row.lower,
                upper=row.upper,
                colour=str(row.verdict or reading(row.lower, row.upper, float(self.relative))),
            )
            for row in self.rows
            if row.disparity is not None and row.reach is not None
        ]

    def _plot_beside(self, other: "Bounds", most: int) -> Any:
        if self.relative != other.relative or self.metric != other.metric:
            raise OptionError("beside= takes bounds on the same metric, gaps or ratios alike.")
        names = [f"{x.method['kind']}, {level_text(x.level)}" for x in (self, other)]
        if names[0] == names[1]:
            names[1] += " (beside)"
        return forest_pair(
            {name: x._lines() for name, x in zip(names, (self, other), strict=True)},
            title=f"{self.metric.capitalize()} against {self.against}",
            subtitle="What each set of intervals guarantees is said by its finding",
            axis="ratio" if self.relative else "disparity",
            reference=self._plot_rules(),
            most=most,
        )

    def by_width(self) -> tuple[dict[str, float], ...]:
        """For ranges of one number: the worst bound, and the worst estimate, of each width.

        Since all bounds hold at once, so does the whole curve.
        """
        worst: dict[float, list[tuple[float, float]]] = {}
        for row in self.rows:
            ends = next(iter(row.where.values())) if len(row.where) == 1 else None
            bound = row.upper if self.side == "upper" else row.lower
            if isinstance(ends, Mapping) and bound is not None and row.disparity is not None:
                # Widths on a grid that are meant to be equal differ by rounding.
                width = round(range_width(ends), 12)
                worst.setdefault(width, []).append((bound, row.disparity))
        if not worst:
            raise OptionError(
                "by_width is for ranges of one number: intervals(…) or thresholds(…)."
            )
        pick = max if self.side == "upper" else min
        return tuple(
            {
                "width": width,
                "bound": pick(bound for bound, _ in pairs),
                "observed": pick(seen for _, seen in pairs),
            }
            for width, pairs in sorted(worst.items())
        )

    def plot_by_width(self) -> Any:
        """The curve of `by_width` as a chart."""
        return width_curve(
            self.by_width(),
            title=f"{self.metric.capitalize()} over all ranges of a width",
            subtitle=f"Worst case, {level_text(self.level)} simultaneous",
            axis="disparity",
            attribute=next(iter(self.rows[0].where)),
        )

    def _plot_rules(self) -> list[float]:
        if self.tolerance is None:
            return [float(self.relative)]
        ends = tolerated(self.tolerance, self.side, self.relative)
        return [end for end in ends if end is not None]

    def _rebound(self, row: BoundedGroup, ends: Ends, other: Ends) -> BoundedGroup:
        # Without bounds, or being its own target, a group is the same at every level.
        if row.reach is None or row.disparity is None:
            return row
        lower = ends[0] if self.side != "upper" else None
        upper = ends[1] if self.side != "lower" else None
        against = {"lower": other[1], "upper": other[0], "both": None}[self.side]
        return self.judged(dataclasses.replace(row, lower=lower, upper=upper, note=""), against)

    def judged(self, row: BoundedGroup, against: float | None = None) -> BoundedGroup:
        """A row whose bounds are cut to what is possible, with its verdict and its note.

        ``against`` is a bound from the other side, which may show that a one-sided limit is not
        kept.
        """
        lower, upper = clamp(row.lower, self.limits), clamp(row.upper, self.limits)
        verdict, note = None, row.note
        answered = row.reach is not None
        if self.tolerance is not None and row.note != SELF_TARGET:
            allowed = tolerated(self.tolerance, self.side, self.relative)
            low = against if self.side == "upper" else lower
            high = against if self.side == "lower" else upper
            verdict = judged(low, high, allowed) if answered else Verdict.UNDETERMINED
        if answered and not says_something(lower, upper, self.limits):
            note = row.note or f"n = {row.n:,} is {_TOO_SMALL}"
        if (lower, upper, verdict, note) == (row.lower, row.upper, row.verdict, row.note):
            return row  # as most are without a tolerance, and copies of many rows take time
        return dataclasses.replace(row, lower=lower, upper=upper, verdict=verdict, note=note)

    def _say(self, value: float) -> str:
        return disparity_text(value, self.relative, self.share)

    def _verdict_sentence(self) -> list[str]:
        if self.tolerance is None or self.verdict is None:
            return []
        counts = {v: sum(row.verdict is v for row in self.rows) for v in Verdict}
        every = plural(sum(counts.values()), self.noun)
        claim = tolerance_words(self.tolerance, self.side, self.relative, self.share)
        fails = self.verdict is Verdict.SHOWN_NOT
        return [
            f"That every {self.noun}'s disparity is {claim} is "
            f"{'shown not to hold' if fails else self.verdict}: shown for "
            f"{counts[Verdict.SHOWN]:,} of {every}, shown not to hold for "
            f"{counts[Verdict.SHOWN_NOT]:,}, undetermined for {counts[Verdict.UNDETERMINED]:,}."
        ]

    def _extreme_sentences(self) -> list[str]:
        above, below = furthest(self.rows, float(self.relative))
        said = []
        if above:
            said.append(f"Furthest above: {self._one(above)}, at least {self._say(above.lower)}.")
        if below:
            said.append(f"Furthest below: {self._one(below)}, at most {self._say(below.upper)}.")
        return said or [f"No {self.noun} is told apart from {self.against}."]

    def _one(self, row: BoundedGroup) -> str:
        return f"{row.group} (n = {row.n:,}), estimated {self._say(row.disparity or 0.0)}"

    def _vacuous_sentence(self) -> list[str]:
        silent = [row for row in self.rows if row.note]
        if not silent:
            return []
        reasons: dict[str, list[str]] = {}
        for row in silent:
            # Each of these notes has the group's own size; they are told together.
            reason = _TOO_SMALL if row.note.endswith(_TOO_SMALL) else row.note
            reasons.setdefault(reason, []).append(row.group)
        return [
            f"Nothing is said about {plural(len(names), self.noun)} ({reason}): "
            f"{'; '.join(names[:3])}{f'; and {len(names) - 3} more' if len(names) > 3 else ''}."
            for reason, names in reasons.items()
        ]
