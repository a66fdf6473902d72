"""What `certify` says: bounds on every group's disparity that hold at once."""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from equipoise._validate import fraction
from equipoise.errors import OptionError
from equipoise.findings.atoms import Atoms
from equipoise.findings.charts.forest import Line, forest, forest_pair, reading
from equipoise.findings.charts.width import width_curve
from equipoise.findings.finding import Finding
from equipoise.findings.lookup import find_row, range_width
from equipoise.findings.recipes import Ends, cook, family_critical, quantile_of
from equipoise.findings.summary import restored
from equipoise.findings.verdict import Verdict
from equipoise.findings.words import difference, left_out, level_text, plural

Side = Literal["lower", "upper", "both"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedGroup:
    """One group with its simultaneous bounds."""

    group: str
    """The group in words."""
    where: Mapping[str, Any]
    """The group as data: attribute → value, or → ends of a range."""
    n: int
    """Rows of the group on which the metric counts; how many rows a tilt's weights are worth."""
    value: float | None
    """The group's metric."""
    target: float | None
    """What it is compared with."""
    disparity: float | None
    """Value minus target, or value divided by target for a ratio."""
    lower: float | None
    """Lower bound on the disparity; None if there is none."""
    upper: float | None
    """Upper bound on the disparity; None if there is none."""
    verdict: Verdict | None = None
    """What is shown about the tolerance, if one was given."""
    note: str = ""
    """Why a bound is missing or says nothing."""
    reach: float | None = None
    """Half-width of the bounds per unit of the critical value."""

    def __post_init__(self) -> None:
        if self.verdict is not None:
            # Read back from JSON the verdict is a plain word.
            object.__setattr__(self, "verdict", Verdict(self.verdict))

    def __str__(self) -> str:
        ends = [
            f"at least {self.lower:+.3f}" if self.lower is not None else "",
            f"at most {self.upper:+.3f}" if self.upper is not None else "",
        ]
        said = " and ".join(end for end in ends if end) or self.note
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
    limits: tuple[float | None, float | None]
    """Smallest and largest disparity that is possible at all."""
    method: Mapping[str, Any]
    """The method and its options."""
    engine: str
    """How resamples were drawn: exact, moments or clusters."""
    critical: float | None
    """The critical value behind the bounds; None if no group could be audited."""
    draws: tuple[tuple[float, float], ...] = dataclasses.field(repr=False)
    """Lowest and highest value of the process in each resample: any level can be read off."""
    recipe: Mapping[str, Any] | None = dataclasses.field(default=None, repr=False)
    """What bounds that are not estimate ± reach are made from, so that any level can be had."""
    atoms: Atoms | None = dataclasses.field(default=None, repr=False)
    """The cells from which any group of the collection can be made again; None if unknown."""

    def __post_init__(self) -> None:
        if self.atoms is not None:
            # Read back from JSON they are a plain mapping.
            object.__setattr__(self, "atoms", restored(Atoms, self.atoms))

    def ask(self, group: Mapping[str, Any] | str | None = None, /, **where: Any) -> BoundedGroup:
        """The bounds of one group of the collection; asking more never costs confidence.

        Groups are named by their attributes, ranges by a pair of ends, or by the label of a row.
        """
        row = find_row(self.rows, group, where)
        if not isinstance(row, BoundedGroup):
            raise TypeError("rows of bounds must be bounded groups")
        return row

    def at(self, level: float) -> "Bounds":
        """The same bounds at another confidence level, from the stored distribution."""
        fraction("level", level)
        if not self.draws and self.recipe is None:
            raise OptionError("These bounds keep no distribution from which to read another level.")
        if self.draws:
            critical = quantile_of(sorted(self.statistics()), level)
        else:
            critical = family_critical(self.recipe or {}, level, self.side)
        rows = tuple(map(self._rebound, self.rows, self._ends(critical)))
        said = self.guarantee.replace(level_text(self.level), level_text(level))
        return dataclasses.replace(self, level=level, critical=critical, rows=rows, guarantee=said)

    def _ends(self, critical: float) -> list[Ends]:
        """Both ends of every group at a critical value, whichever sides were asked for."""
        if self.recipe is not None:
            return cook(self.recipe, critical)
        return [
            (None, None)
            if row.reach is None or row.disparity is None
            else (row.disparity - critical * row.reach, row.disparity + critical * row.reach)
            for row in self.rows
        ]

    @property
    def verdict(self) -> Verdict | None:
        """What is shown about the tolerance for all groups together."""
        said = [row.verdict for row in self.rows if row.verdict is not None]
        if not said:
            return None
        if Verdict.SHOWN_NOT in said:
            return Verdict.SHOWN_NOT
        every = all(verdict is Verdict.SHOWN for verdict in said) and len(said) == len(self.rows)
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
            left_out(self.provenance.excluded, self.provenance.ineligible),
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
        low, high = self._plot_limits()
        return [
            Line(
                group=row.group,
                n=row.n,
                centre=row.disparity,
                lower=low if row.lower is None else row.lower,
                upper=high if row.upper is None else row.upper,
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

    def _plot_limits(self) -> tuple[float, float]:
        known = [
            x for row in self.rows for x in (row.disparity, row.lower, row.upper) if x is not None
        ]
        return (min(known), max(known)) if known else (0.0, 1.0)

    def _plot_rules(self) -> list[float]:
        if self.tolerance is None:
            return [float(self.relative)]
        ends = tolerated(self.tolerance, self.side, self.relative)
        return [end for end in ends if end is not None]

    def statistics(self) -> Iterator[float]:
        """The largest deviation of each resample, on the sides that were asked for."""
        for low, high in self.draws:
            yield {"lower": high, "upper": -low, "both": max(high, -low)}[self.side]

    def _rebound(self, row: BoundedGroup, ends: Ends) -> BoundedGroup:
        if row.reach is None or row.disparity is None or row.reach == 0:
            return row
        lower = ends[0] if self.side != "upper" else None
        upper = ends[1] if self.side != "lower" else None
        moved = dataclasses.replace(row, lower=clamp(lower, self), upper=clamp(upper, self))
        verdict = judge(moved, self.tolerance, self.side, self.relative)
        return dataclasses.replace(moved, verdict=verdict, note=vacuous_note(moved, self))

    def _say(self, value: float) -> str:
        return f"{value:.2f}" if self.relative else difference(value, self.share)

    def _verdict_sentence(self) -> list[str]:
        if self.tolerance is None or self.verdict is None:
            return []
        counts = {v: sum(row.verdict is v for row in self.rows) for v in Verdict}
        claim = tolerance_words(self.tolerance, self.side, self.relative, self.share)
        fails = self.verdict is Verdict.SHOWN_NOT
        return [
            f"That every {self.noun}'s disparity is {claim} is "
            f"{'shown not to hold' if fails else self.verdict}: shown for "
            f"{counts[Verdict.SHOWN]:,} of {plural(len(self), self.noun)}, shown not to hold for "
            f"{counts[Verdict.SHOWN_NOT]:,}, undetermined for {counts[Verdict.UNDETERMINED]:,}."
        ]

    def _extreme_sentences(self) -> list[str]:
        even = float(self.relative)
        above = [row for row in self.rows if row.lower is not None and row.lower > even]
        below = [row for row in self.rows if row.upper is not None and row.upper < even]
        said = []
        if above:
            row = max(above, key=lambda r: r.lower)
            said.append(f"Furthest above: {self._one(row)}, at least {self._say(row.lower)}.")
        if below:
            row = min(below, key=lambda r: r.upper)
            said.append(f"Furthest below: {self._one(row)}, at most {self._say(row.upper)}.")
        return said or [f"No {self.noun} is told apart from {self.against}."]

    def _one(self, row: BoundedGroup) -> str:
        return f"{row.group} (n = {row.n:,}), estimated {self._say(row.disparity or 0.0)}"

    def _vacuous_sentence(self) -> list[str]:
        silent = [row for row in self.rows if row.note and row.reach != 0]
        if not silent:
            return []
        reasons: dict[str, list[str]] = {}
        for row in silent:
            reason = _TOO_SMALL if row.note.endswith(_TOO_SMALL) else row.note
            reasons.setdefault(reason, []).append(row.group)
        return [
            f"Nothing is said about {plural(len(names), self.noun)} ({reason}): "
            f"{'; '.join(names[:3])}{f'; and {len(names) - 3} more' if len(names) > 3 else ''}."
            for reason, names in reasons.items()
        ]


_TOO_SMALL = "too small to exclude anything"


def judge(row: BoundedGroup, tolerance: float | None, side: Side, relative: bool) -> Verdict | None:
    """What a group's bounds show about a tolerance."""
    if tolerance is None:
        return None
    low, high = tolerated(tolerance, side, relative)
    inside_low = low is None or (row.lower is not None and row.lower > low)
    inside_high = high is None or (row.upper is not None and row.upper < high)
    if _alone(row):
        return Verdict.UNDETERMINED
    if inside_low and inside_high:
        return Verdict.SHOWN
    beyond_high = high is not None and row.lower is not None and row.lower >= high
    beyond_low = low is not None and row.upper is not None and row.upper <= low
    return Verdict.SHOWN_NOT if beyond_high or beyond_low else Verdict.UNDETERMINED


def _alone(row: BoundedGroup) -> bool:
    """Whether the group is a single row, which shows nothing (unless it is its own target)."""
    return row.n == 1 and row.reach != 0


def tolerated(tolerance: float, side: Side, relative: bool) -> tuple[float | None, float | None]:
    """The open range of disparities that a tolerance allows."""
    if side == "lower":
        return tolerance, None
    if side == "upper":
        return None, tolerance
    return (tolerance, 1 / tolerance) if relative else (-tolerance, tolerance)


def tolerance_words(tolerance: float, side: Side, relative: bool, share: bool) -> str:
    """The tolerance as it reads in a sentence."""

    def say(value: float) -> str:
        return f"{value:.2f}" if relative else difference(value, share)

    low, high = tolerated(tolerance, side, relative)
    if low is None:
        return f"below {say(tolerance)}"
    if high is None:
        return f"above {say(tolerance)}"
    return f"between {say(low)} and {say(high)}"


def clamp(bound: float | None, finding: Bounds) -> float | None:
    """A bound moved into the range of what is possible at all."""
    if bound is None or not math.isfinite(bound):
        return None
    low, high = finding.limits
    if low is not None:
        bound = max(bound, low)
    return min(bound, high) if high is not None else bound


def vacuous_note(row: BoundedGroup, finding: Bounds) -> str:
    """A note if the bounds exclude nothing that was not impossible anyway."""
    if row.reach == 0:
        return row.note
    low, high = finding.limits
    says_low = row.lower is not None and (low is None or row.lower > low)
    says_high = row.upper is not None and (high is None or row.upper < high)
    if (says_low or says_high) and not _alone(row):
        return ""
    return row.note or f"n = {row.n:,} is {_TOO_SMALL}"
