"""What `certify` says: bounds on every group's disparity that hold at once."""

import dataclasses
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from equipoise._validate import confidence, names_extra
from equipoise.errors import ClaimError, EquipoiseError, OptionError
from equipoise.findings.adjusted import (
    AdjustedGroup,
    ChangedGroup,
    LabelledGroup,
    UnknownGroup,
    adjusted_sentences,
    changed_sentences,
    is_paired,
    label_sentences,
    missing_sentences,
    unknown_sentences,
)
from equipoise.findings.charts import (
    Dot,
    ForestAxis,
    ForestLine,
    disparity_axis,
    forest,
    forest_pair,
    ranked,
    reading,
    width_curve,
)
from equipoise.findings.finding import (
    COMPARED,
    IF_ANY,
    ByGroup,
    Chart,
    ComparedGroup,
    DisparityFinding,
    Group,
    MetricFinding,
    range_width,
)
from equipoise.findings.words import (
    CHEAP_ONLY,
    SELF_TARGET,
    Ends,
    Side,
    Verdict,
    amount,
    apart,
    clamp,
    disparity_text,
    distance,
    ends_text,
    furthest,
    judged,
    level_text,
    percent,
    plural,
    rounds_away,
    says_something,
    telling_order,
    together,
    tolerance_words,
    tolerated,
)
from equipoise.methods.stored import (
    Recipe,
    StoredBand,
    StoredStudent,
    family_critical,
    quantile_at,
    restored_bounds,
    some_groups,
)

# --- What `certify` says: bounds on every group's disparity that hold at once ---

_TOO_SMALL = "too small to exclude anything"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedGroup(ComparedGroup):
    """One group with its simultaneous bounds."""

    lower: float | None
    """Lower bound on the disparity; None if there is none."""
    upper: float | None
    """Upper bound on the disparity; None if there is none. Bounds of one side have the other end
    where it shows that the limit is exceeded."""
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


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


#: What is added to a headline about a group that does not exceed the limit.
_BESIDES: Mapping[Verdict | None, str] = {
    Verdict.KEPT: "; that keeps the limit",
    Verdict.UNDETERMINED: "; whether that keeps the limit is undetermined",
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Bounds(DisparityFinding[BoundedGroup], ByGroup[BoundedGroup]):
    """Simultaneous bounds: with the stated confidence, all of them hold.

    >>> import equipoise as eq
    >>> eq.certify(eq.datasets.compas(), eq.gap("accuracy", across="race"), rng=7)
    <Bounds: accuracy against everyone; 6 rows>
    """

    kind = "bounds"
    columns = (*COMPARED, "lower", "upper", "verdict", "note")

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
    recipe: Recipe | None = dataclasses.field(default=None, repr=False)
    """What bounds that are not estimate ± reach are made from, so that any level can be had."""
    adjusted: tuple[AdjustedGroup, ...] = dataclasses.field(default=(), metadata=IF_ANY)
    """Where factors are given: every group without them, and what the adjustment rests on."""
    changed: tuple[ChangedGroup, ...] = dataclasses.field(default=(), metadata=IF_ANY)
    """Where a change or pairs are asked about: every group's metric before and after."""
    unknown: tuple[UnknownGroup, ...] = dataclasses.field(default=(), metadata=IF_ANY)
    """Where the unknown are no group of their own: how many may be of each group, and what they can
    change."""
    labels: tuple[LabelledGroup, ...] = dataclasses.field(default=(), metadata=IF_ANY)
    """Where most labels are cheap: every group by its true labels, and what both are worth."""

    def at(self, level: float) -> "Bounds":
        """The same bounds at another confidence level, from the stored distribution."""
        if confidence(level) == self.level:
            return self
        pivotal = self.method.get("kind") == "pivotal"
        if (not self.quantiles and self.recipe is None) or (pivotal and self.recipe is None):
            raise OptionError("These bounds keep too little from which to read another level.")
        said = self.guarantee.replace(level_text(self.level), level_text(level))
        if pivotal and not self.quantiles:
            # no group had an answer, and none has one at another level
            return dataclasses.replace(self, level=level, guarantee=said)
        try:
            critical = quantile_at(self.quantiles, level) if self.quantiles else None
            if isinstance(self.recipe, StoredBand | StoredStudent) and not self.quantiles:
                family, groups = self.recipe.family, self.recipe.groups
                critical = family_critical(family, groups, level, self.side)
        except ValueError as error:
            raise EquipoiseError(f"{error}.") from error
        if critical is None:
            raise OptionError(
                "These bounds can be read at levels up to 99.9 %; audit again for more."
            )
        ends = self._ends(critical)
        other = self._other_ends(level, critical, ends)
        rows = tuple(map(self._rebound, self.rows, ends, other))
        # what was shown among the known was shown at the level before
        unknown = tuple(
            dataclasses.replace(one, lower=None, upper=None, tipping=None) for one in self.unknown
        )
        return dataclasses.replace(
            self, level=level, critical=critical, rows=rows, guarantee=said, unknown=unknown
        )

    def recipe_alone(self, places: Sequence[int]) -> Recipe | None:
        """What is stored of some groups; None where it would tell of others."""
        return some_groups(self.recipe, places)

    def by_itself(self, among: int) -> "Bounds":
        """Every group judged by what is stored of it alone, as one of so many (Bonferroni)."""
        critical = family_critical("bonferroni", among, self.level, self.side)
        ends = self._again(critical)
        rows = tuple(map(self._rebound, self.rows, ends, ends))
        return dataclasses.replace(self, critical=critical, rows=rows)

    def reason(self, row: BoundedGroup) -> str:
        """Why a verdict is undetermined: ``few rows``, ``unknown people``, or ``not answered``.

        Unknown people, or ``unknown labels``, are the reason if they alone, without any sampling
        error, leave it open: then no number of further rows like these would settle it. ``few rows
        and unknown people`` stands where either alone would not. Empty where there is a verdict.
        """
        if row.verdict is not Verdict.UNDETERMINED or self.tolerance is None:
            return ""
        if row.reach is None:
            return "not answered"
        one = next((one for one in self.unknown if one.group == row.group), None)
        if one is None or one.lowest is None or one.highest is None:
            return "few rows"
        allowed = tolerated(self.tolerance, self.side, self.relative)
        if judged(one.lowest, one.highest, allowed) is Verdict.UNDETERMINED:
            return f"unknown {one.what}"
        settled = judged(one.lower, one.upper, allowed) is not Verdict.UNDETERMINED
        return f"few rows and unknown {one.what}" if settled else "few rows"

    def _ends(self, critical: float) -> list[Ends]:
        """Both ends of every group at a critical value, whichever sides were asked for."""
        if self.recipe is not None:
            return self._again(critical)
        return [
            (None, None)
            if row.reach is None or row.disparity is None
            # (8) of Cherian and Candès, with ŝ/p̂² for the reach.
            else (row.disparity - critical * row.reach, row.disparity + critical * row.reach)
            for row in self.rows
        ]

    def _other_ends(self, level: float, critical: float, ends: list[Ends]) -> list[Ends]:
        """Ends that judge a one-sided limit from the other side, each at its share of the error."""
        kept = self.recipe
        if kept is None or isinstance(kept, StoredBand | StoredStudent):
            return [(None, None)] * len(ends)
        if self.side == "both" or self.tolerance is None:
            return [(None, None)] * len(ends)
        strict = family_critical("bonferroni", len(kept.answered), level, self.side)
        return self._again(max(strict, critical))

    def _again(self, critical: float) -> list[Ends]:
        """Both ends at a critical value, from what is stored."""
        assert self.recipe is not None
        low, high = (
            side * math.inf if end is None else end
            for side, end in zip((-1, 1), self.limits, strict=True)
        )
        try:
            ends = restored_bounds(self.recipe, critical, (low, high))
        except ValueError as error:
            raise EquipoiseError(f"{error}.") from error
        # NaN compares as false, and so becomes None as well.
        lower, upper = ([x if abs(x) < math.inf else None for x in e.tolist()] for e in ends)
        return list(zip(lower, upper, strict=True))

    @property
    def verdict(self) -> Verdict | None:
        """What is shown about the tolerance for all groups together.

        A group that is its own target has no verdict and is left aside; if there is nobody else,
        nothing is shown.
        """
        # All bounds hold at once, so verdicts may be put together without losing confidence.
        return None if self.tolerance is None else together(row.verdict for row in self.rows)

    @property
    def tells_apart(self) -> bool:
        """Whether any group is shown to differ from its target at all."""
        return any(row is not None for row in furthest(self.rows, float(self.relative)))

    def cautions(self) -> list[str]:
        """Limits that nobody could exceed."""
        return self._empty_sentence()

    def sentences(self) -> tuple[str, ...]:
        """The guarantee, the verdict, the largest and smallest disparities, and what is missing."""
        return (
            self._guaranteed(),
            *self._verdict_sentence(),
            *self._empty_sentence(),
            *self._extreme_sentences(),
            *self._adjusted_sentences(),
            *changed_sentences(self.changed, self.claim, share=self.share),
            *self._unknown_sentences(),
            *self._vacuous_sentence(),
            *label_sentences(self.labels, self.provenance.excluded.get(CHEAP_ONLY, 0)),
            self.provenance.left_out(),
        )

    def _guaranteed(self) -> str:
        # of no bound at all everything would be true
        if all(row.lower is None and row.upper is None for row in self.rows):
            return f"There is no bound for any of {plural(len(self), self.noun)}."
        return f"{self.guarantee}."

    def _adjusted_sentences(self) -> list[str]:
        return adjusted_sentences(
            self.adjusted, self.given, relative=self.relative, share=self.share
        )

    def _unknown_sentences(self) -> list[str]:
        if not self.unknown:
            return missing_sentences(self.rows)
        said = unknown_sentences(self.unknown, relative=self.relative, share=self.share)
        by_reason: dict[str, list[str]] = {}
        for row in self.rows:
            by_reason.setdefault(self.reason(row), []).append(row.group)
        for reason, names in sorted(by_reason.items(), reverse=True):
            if reason not in ("", "not answered"):
                more = f" and {len(names) - 3} more" if len(names) > 3 else ""
                said.append(f"Undetermined because of {reason}: {', '.join(names[:3])}{more}.")
        return said

    def _ignorance(self) -> dict[str, tuple[float, float]]:
        """For each group the range that unknown people alone leave open."""
        return {
            one.group: (one.lowest, one.highest)
            for one in self.unknown
            if one.lowest is not None and one.highest is not None
        }

    def drawn(self) -> str:
        """The groups furthest from their target, as plain HTML and SVG."""
        even, open_ = float(self.relative), self._ignorance()
        dots = [
            Dot(
                group=row.group,
                n=row.n,
                value=row.disparity,
                lower=row.lower,
                upper=row.upper,
                open=open_.get(row.group),
                order=telling_order(row, self.relative),
                loud=row.verdict is Verdict.EXCEEDED,
                settled=not _or(row.lower, -math.inf) <= even <= _or(row.upper, math.inf),
            )
            for row in self.rows
            if row.disparity is not None and row.reach is not None
        ]
        return ranked(
            dots,
            even=even,
            limits=[] if self.tolerance is None else self._plot_rules(),
            relative=self.relative,
            said=self.say,
            words=("exceeds the limit", "told apart", f"not {self._untold}"),
            intervals=f"{level_text(self.level)} bounds",
            ignorance="what the unknown alone leave open" if open_ else "",
        )

    @property
    def sureness(self) -> float:
        """Where its headline stands among those of other bounds, the surest first."""
        worst = self._worst()
        return 0.0 if worst is None else telling_order(worst, self.relative)[1]

    def _worst(self) -> BoundedGroup | None:
        """The group that exceeds its limit most surely, or else the one most surely apart."""
        rows = [row for row in self.rows if row.disparity is not None and row.reach is not None]
        over = [row for row in rows if row.verdict is Verdict.EXCEEDED]
        if over:
            return max(over, key=self._sureness)
        # not the furthest of all, which is likely to be one of a few people
        return min(rows, key=lambda row: telling_order(row, self.relative), default=None)

    def headline(self) -> str:
        """What is said of the group that exceeds its limit, or is apart, most surely."""
        worst = self._worst()
        if worst is None:
            return ""
        said = f"{self._told(worst)}; {self._surely(worst)}"
        if self.verdict is Verdict.KEPT and self.tolerance is not None:
            claim = tolerance_words(self.tolerance, self.side, self.relative, self.share)
            return (
                f"The {self.metric} of every {self.noun} is shown to be {claim} of {self.against}. "
                f"Most surely apart: {said}."
                if self._nearer(worst) is not None
                else f"The {self.metric} of every {self.noun} is shown to be {claim} of "
                f"{self.against}, with {level_text(self.level)} confidence; no {self.noun} is "
                f"{self._untold}."
            )
        # beside violations what only differs must not pass for one
        return f"{said}{self._beside(worst)}."

    def _beside(self, row: BoundedGroup) -> str:
        """What is added about the limit; that of one side is quoted, lest it be taken for two."""
        words = _BESIDES.get(row.verdict, "")
        if not words or self.tolerance is None or self.side == "both":
            return words
        claim = tolerance_words(self.tolerance, self.side, self.relative, self.share)
        return f"{words} (to be {claim})"

    def _sureness(self, row: BoundedGroup) -> float:
        return distance(self._nearer(row), self.relative)

    def _nearer(self, row: BoundedGroup) -> float | None:
        """The bound on the side of no disparity, if it excludes that."""
        even = float(self.relative)
        above = (row.disparity or 0.0) > even
        end = row.lower if above else row.upper
        return None if end is None or end == even or (end > even) != above else end

    def _told(self, row: BoundedGroup) -> str:
        both = [one for one in self.changed if one.group == row.group and one.where == row.where]
        if both and not is_paired(self.claim):
            before, after = (amount(x, self.share) for x in (both[0].before, both[0].after))
            moved = disparity_text(row.disparity or 0.0, self.relative, self.share)
            return (
                f"{row.group}: {self.metric} {moved}, {before} before and {after} after "
                f"(n = {row.n:,})"
            )
        far = apart(row.disparity or 0.0, self.relative, self.share)
        value = self.value_text(row.value)
        given = f" given {self.given}" if self.given else ""
        return f"{row.group}: {self.metric} {value}, {far} {self.against}{given} (n = {row.n:,})"

    def _surely(self, row: BoundedGroup) -> str:
        level = level_text(self.level)
        scope = "" if self.method.get("family") == "pointwise" else f" for all {self.noun}s at once"
        near = self._nearer(row)
        # that a limit on one side is kept is shown by the bound on that side, written as the limit
        kept = row.verdict is Verdict.KEPT and self.tolerance is not None
        if self.side != "both" and (near is None or kept):
            ends = ends_text(row.lower, row.upper, self.say, "no bound")
            return f"{ends}, with {level} confidence{scope}"
        if near is None:
            none = "a ratio of 1" if self.relative else "a difference of zero"
            return f"{none} is possible too ({level} confidence{scope})"
        sure = apart(near, self.relative, self.share)
        if not self.relative and rounds_away(near, self.share):
            # "at least 0.0 points" reads as if nothing were shown
            there = "below" if near < 0 else "above"
            return f"that it is {there} at all is shown with {level} confidence{scope}"
        end = "at most" if self.relative and near < 1 else "at least"
        return f"{end} {sure}, with {level} confidence{scope}"

    @names_extra
    def plot(self, most: int = 40, *, beside: "Bounds | None" = None) -> Chart:
        """A forest plot of the largest groups, all intervals holding at once.

        ``beside`` are other bounds on the same groups, such as another method's, on the same axis.
        """
        if beside is not None:
            return self._plot_beside(beside, most)
        return forest(
            self._lines(),
            title=f"{self.metric.capitalize()} against {self.against}",
            subtitle=f"{level_text(self.level)} simultaneous bounds"
            + ("; wide bars: what the unknown alone leave open" if self.unknown else ""),
            axis=disparity_axis(self.relative, self.share),
            reference=self._plot_rules(),
            most=most,
        )

    def _lines(self) -> list[ForestLine]:
        open_ = self._ignorance()
        return [
            ForestLine(
                group=row.group,
                n=row.n,
                centre=row.disparity,
                lower=row.lower,
                upper=row.upper,
                open=open_.get(row.group),
                colour=str(row.verdict or reading(row.lower, row.upper, float(self.relative))),
            )
            for row in self.rows
            if row.disparity is not None and row.reach is not None
        ]

    def _plot_beside(self, other: "Bounds", most: int) -> Chart:
        if self.relative != other.relative or self.metric != other.metric:
            raise OptionError("beside= takes bounds on the same metric, gaps or ratios alike.")
        names = [f"{x.method['kind']}, {level_text(x.level)}" for x in (self, other)]
        if names[0] == names[1]:
            names[1] += " (beside)"
        return forest_pair(
            {name: x._lines() for name, x in zip(names, (self, other), strict=True)},
            title=f"{self.metric.capitalize()} against {self.against}",
            subtitle="What each set of intervals guarantees is said by its finding",
            axis=disparity_axis(self.relative, self.share),
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

    @names_extra
    def plot_by_width(self) -> Chart:
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
            if self.side != "both" and verdict is Verdict.EXCEEDED:
                # without the bound that shows it a verdict would hang in the air
                lower, upper = (clamp(end, self.limits) for end in (low, high))
        if answered and not says_something(lower, upper, self.limits):
            note = row.note or f"n = {row.n:,} is {_TOO_SMALL}"
        if (lower, upper, verdict, note) == (row.lower, row.upper, row.verdict, row.note):
            return row  # as most are without a tolerance, and copies of many rows take time
        return dataclasses.replace(row, lower=lower, upper=upper, verdict=verdict, note=note)

    def _empty_sentence(self) -> list[str]:
        """Which side of the limit no group could pass, whatever it is like."""
        if self.tolerance is None or self.verdict is not Verdict.KEPT or not self.share:
            return []
        targets = [row.target for row in self.rows if row.target is not None and not row.note]
        if self.changed or self.given or not targets:
            return []
        low, high = tolerated(self.tolerance, self.side, self.relative)
        said = []
        for end in (end for end in (low, high) if end is not None):
            words = self.say(end)
            beyond = [end * x if self.relative else x + end for x in targets]
            if max(beyond) < 0 or min(beyond) > 1:
                least, most = percent(min(targets)), percent(max(targets))
                their = least if least == most else f"{least} to {most}"
                said.append(
                    f"With a {self.metric} of {their} for {self.against} no {self.noun} could be "
                    f"beyond {words}: that side of the limit is kept whatever happens."
                )
        return said

    def _verdict_sentence(self) -> list[str]:
        if self.tolerance is None or self.verdict is None:
            return []
        counts = {v: sum(row.verdict is v for row in self.rows) for v in Verdict}
        every = plural(sum(counts.values()), self.noun)
        claim = tolerance_words(self.tolerance, self.side, self.relative, self.share)
        return [
            f"The limit, that every {self.noun}'s disparity is {claim}, is {self.verdict}: kept by "
            f"{counts[Verdict.KEPT]:,} of {every}, exceeded by {counts[Verdict.EXCEEDED]:,}, "
            f"undetermined for {counts[Verdict.UNDETERMINED]:,}."
        ]

    def _extreme_sentences(self) -> list[str]:
        above, below = furthest(self.rows, float(self.relative))
        said = []
        if above:
            said.append(
                f"Most surely above: {self._one(above)}, at least {self.say(above.lower or 0.0)}."
            )
        if below:
            said.append(
                f"Most surely below: {self._one(below)}, at most {self.say(below.upper or 0.0)}."
            )
        return said or [f"No {self.noun} is {self._untold}."]

    @property
    def _untold(self) -> str:
        """What is not shown of a group that no bound tells apart; one-sided bounds look one way."""
        if self.side == "both":
            return f"told apart from {self.against}"
        way = "above" if self.side == "lower" else "below"
        return f"shown to lie {way} {self.against}"

    def _one(self, row: BoundedGroup) -> str:
        return f"{row.group} (n = {row.n:,}), estimated {self.say(row.disparity or 0.0)}"

    def _vacuous_sentence(self) -> list[str]:
        return silent_sentences(((row.group, row.note) for row in self.rows), self.noun)


def silent_sentences(notes: Iterable[tuple[str, str]], noun: str) -> list[str]:
    """Sentences on the groups that have a note instead of an answer, by reason.

    >>> silent_sentences([("a", "one row only"), ("b", ""), ("c", "one row only")], "group")
    ['Nothing is said about 2 groups (one row only): a; c.']
    """
    reasons: dict[str, list[str]] = {}
    for group, note in notes:
        if note:
            # Each of these notes has the group's own size; they are told together.
            reason = _TOO_SMALL if note.endswith(_TOO_SMALL) else note
            reasons.setdefault(reason, []).append(group)
    return [
        f"Nothing is said about {plural(len(names), noun)} ({reason}): "
        f"{'; '.join(names[:3])}{_more(len(names) - 3)}."
        for reason, names in reasons.items()
    ]


def _more(number: int) -> str:
    return f"; and {number} more" if number > 0 else ""


# --- What `certify` says of all ranges of a number at once, without listing them ---


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedRange(Group):
    """One range, certified or not."""

    value: float
    """The metric over the range."""
    disparity: float
    """Value minus target."""
    certified: bool = True
    """Whether the claim is certified for this range."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RangeCertificates(MetricFinding[CertifiedRange]):
    """Certificates for every range between two values in the data.

    With the stated confidence none of them is false. A range may be certified although a part of it
    is not: ask for the part.

    >>> import equipoise as eq
    >>> claim = eq.gap("accuracy", across=eq.intervals("decile_score"))
    >>> eq.certify(eq.datasets.compas(), claim, method="all-ranges", tolerance=0.2, rng=7).kind
    'range certificates'
    """

    kind = "range certificates"
    columns = (*COMPARED, "certified")

    attribute: str
    """The number whose ranges were audited."""
    claimed: str
    """What a certificate says of a range, in words."""
    level: float
    """Confidence that no certificate is false."""
    tolerance: float
    """The limit in the claim."""
    side: str
    """``lower``: above the limit; ``upper``: below it; ``both``: within it."""
    method: Mapping[str, Any]
    """The method and its options."""
    engine: str
    """How resamples were drawn."""
    ranges: int
    """How many ranges were audited."""
    points: tuple[float, ...] = field(repr=False)
    """The values in the data, in order."""
    target: float
    """What ranges are compared with."""
    sizes: tuple[float, ...] = field(repr=False)
    """Running number of rows, from none."""
    weights: tuple[float, ...] = field(repr=False)
    """Running sum of weights."""
    totals: tuple[float, ...] = field(repr=False)
    """Running weighted sum of the metric."""
    evidence: tuple[tuple[float, ...], ...] = field(repr=False)
    """For each side of the claim: running sums that certify a range when they rise by the bar."""
    bars: tuple[float, ...]
    """The critical value on each side."""
    everyone: bool = False
    """Whether the target is everyone: then the range that holds all rows is its own target."""

    def ask(self, group: Mapping[str, object] | None = None, /, **where: object) -> CertifiedRange:
        """Any range of the number, both ends included, such as ``ask(age=(25, 45))``."""
        low, high = self._ends({**(group or {}), **where})
        start, stop = bisect_left(self.points, low), bisect_right(self.points, high)
        if stop <= start:
            raise ClaimError(f"No row has {self.attribute} between {low:g} and {high:g}.")
        return self.between(start, stop)

    def between(self, start: int, stop: int) -> CertifiedRange:
        """The range from the point at ``start`` up to but not including the one at ``stop``."""
        low, high = self.points[start], self.points[stop - 1]
        value = (self.totals[stop] - self.totals[start]) / (
            self.weights[stop] - self.weights[start]
        )
        rows = self.sizes[stop] - self.sizes[start]
        # (10) of Cherian and Candès is linear in the group, so running sums answer for any of the
        # ranges, however many there are.
        risen = (sums[stop] - sums[start] for sums in self.evidence)
        return CertifiedRange(
            group=f"{self.attribute} {low:g}" + (f" to {high:g}" if high > low else ""),
            where={self.attribute: {"from": low, "to": high}},
            n=round(rows),
            value=value,
            disparity=value - self.target,
            # One row alone says nothing of how values vary, and all rows are their own target.
            certified=rows >= 2
            and not (self.everyone and rows == self.sizes[-1])
            and all(r >= bar for r, bar in zip(risen, self.bars, strict=True)),
        )

    def _ends(self, where: Mapping[str, object]) -> tuple[float, float]:
        ends = where.get(self.attribute)
        if set(where) != {self.attribute} or not isinstance(ends, tuple | list) or len(ends) != 2:
            raise ClaimError(
                f"Ask for a range of {self.attribute}, such as {self.attribute}=(low, high); "
                f"got {dict(where)!r}."
            )
        return float(ends[0]), float(ends[1])

    def sentences(self) -> tuple[str, ...]:
        """The widest certified ranges, the guarantee, and the rows left out."""
        found = sorted(self.rows, key=lambda row: -row.n)
        first = (
            f"The largest certified range is {found[0].group} ({plural(found[0].n, 'row')}): its "
            f"disparity is {self.claimed}."
            if found
            else f"No range is certified to have a disparity {self.claimed}."
        )
        return (
            first,
            f"{self.guarantee}.",
            "A range without a certificate may meet the claim all the same.",
            self.provenance.left_out(),
        )

    @names_extra
    def plot(self, most: int = 40) -> Chart:
        """The certified ranges that lie in no wider one, from end to end."""
        lines = [
            ForestLine(
                group=row.group,
                n=row.n,
                centre=(row.where[self.attribute]["from"] + row.where[self.attribute]["to"]) / 2,
                lower=row.where[self.attribute]["from"],
                upper=row.where[self.attribute]["to"],
                colour=str(Verdict.KEPT),
            )
            for row in self.rows
        ]
        return forest(
            lines,
            title=f"Certified ranges of {self.attribute}: "
            f"disparity in {self.metric} {self.claimed}",
            subtitle=self.guarantee,
            axis=ForestAxis(self.attribute),
            reference=[],
            most=most,
        )
