"""What `summarize` says: how far apart the groups are, without what chance adds."""

from dataclasses import dataclass
from typing import Literal

from equipoise._validate import names_extra
from equipoise.findings.charts.others import ChartSpan, differences, spans
from equipoise.findings.finding import (
    AboutEveryone,
    Chart,
    Finding,
    Group,
    MetricFinding,
    Provenance,
    html_table,
    text_table,
)
from equipoise.findings.words import amount, level_text, plural, unsigned

# --- What `summarize` says: how far apart the groups are, without what chance adds ---

Ends = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSpread(AboutEveryone):
    """One measure of how far apart the groups are."""

    measure: str
    """The measure in words."""
    value: float | None
    """Its value at the observed group means, which chance inflates; None if it is infinite."""
    bias: float | None
    """How much of it chance is estimated to have added."""
    corrected: float | None
    """Value less bias, not below its value under equality, nor outside its interval."""
    corrected_raw: float | None
    """The same before it was cut off there."""
    lower: float | None
    """Lower end of the interval for the true value."""
    upper: float | None
    """Upper end; None if there is none."""
    p: float | None
    """p-value of "all groups are equal", on which the lower end rests."""
    plain_lower: float | None = None
    """Lower end of the percentile bootstrap of the uncorrected value, which is too high."""
    plain_upper: float | None = None
    """Upper end of the same."""
    note: str = ""
    """Why a number is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizedGroup(Group):
    """One group: its own estimate, and the estimate that borrows strength from the others."""

    size: int
    """Rows it counts as: the effective number where rows carry weights."""
    value: float | None
    """The group's metric; None if it counts on no row."""
    lower: float | None = None
    """Lower end of the pointwise interval for ``value``."""
    upper: float | None = None
    """Upper end of the same."""
    shrunken: float | None = None
    """The estimate pulled toward the common mean, as far as the data say."""
    shrunken_lower: float | None = None
    """Lower end of its interval."""
    shrunken_upper: float | None = None
    """Upper end of the same."""
    own: float | None = None
    """How much of the shrunken estimate is the group's own mean."""
    note: str = ""
    """Why the group takes no part in the summary; empty if it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceDetails:
    """The variance between groups, estimated and bounded in every way offered."""

    plugin: float
    """Variance of the observed group means."""
    published: float
    """Corrected with plug-in sampling variances, not cut off."""
    corrected: float
    """Corrected with unbiased sampling variances, cut off at zero."""
    corrected_raw: float
    """The same, not cut off."""
    recommended: tuple[float, float | None]
    """The recommended interval."""
    p: float
    """p-value of "no spread" on which its lower end rests."""
    double_corrected: Ends
    """Percentile interval of the double-corrected bootstrap, as published: also of single rows."""
    double_corrected_raw: Ends
    """The same before it was cut off at zero."""
    single_corrected: Ends
    """Percentile interval of the corrected variance, as published; too high."""
    uncorrected: Ends
    """Percentile interval of the plain variance; far too high."""
    centred: Ends
    """Corrected estimate with centred double-corrected deviations."""
    q_profile: Ends
    """Interval for a population of groups, of which these are a sample (generalised Cochran Q)."""
    dersimonian_laird: float
    """Moment estimate of meta-analysis."""
    paule_mandel: float
    """Estimate at which Cochran's Q equals its expectation."""
    restricted_likelihood: float
    """REML estimate."""
    chi_square: float
    """Cochran's Q at zero spread."""
    chi_square_df: int
    """Its degrees of freedom."""
    chi_square_p: float
    """p-value of homogeneity by its chi-square limit."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Summary(MetricFinding[MeasuredSpread]):
    """How unequal the groups are: every measure with its bias, and an interval that may be zero.

    >>> import equipoise as eq
    >>> eq.summarize(eq.datasets.compas(), "accuracy", across="race", rng=7)
    <Summary: how far apart the accuracy is across race; 6 rows>
    """

    kind = "summary"
    columns = ("measure", "value", "bias", "corrected", "lower", "upper", "p", "note")
    group_columns = (
        "group",
        "n",
        "value",
        "lower",
        "upper",
        "shrunken",
        "shrunken_lower",
        "shrunken_upper",
        "note",
    )

    by: str
    """What the groups are cut by."""
    share: bool
    """Whether the metric is a share, read in percentage points."""
    level: float
    """Confidence level of each interval on its own."""
    alpha: float
    """Order of the generalized entropy index."""
    resamples: int
    """Resamples behind biases and intervals."""
    engine: str
    """How resamples were drawn: binomial, rows or moments."""
    groups: tuple[SummarizedGroup, ...]
    """Every group, those left out included."""
    absent: int
    """Combinations of levels to which no row belongs; they are no groups."""
    sd: MeasuredSpread | None
    """The variance as a standard deviation, in the metric's own unit; None if not estimated."""
    variance: VarianceDetails | None
    """All estimates and intervals of the variance; None if its sampling error is unknown."""

    @property
    def excluded(self) -> tuple[SummarizedGroup, ...]:
        """The groups that take no part, each with its reason in ``note``."""
        return tuple(group for group in self.groups if group.note)

    @property
    def shown(self) -> bool:
        """Whether a difference between groups is shown at the stated level.

        One test for all measures: their lower ends leave equality together, or not at all.
        """
        return self.p is not None and self.p <= (1 - self.level) / 2

    @property
    def p(self) -> float | None:
        """p-value of "all groups are equal"; None where it cannot be tested."""
        if self.variance is not None:
            return self.variance.p
        return next((row.p for row in self.rows if row.p is not None), None)

    def row(self, measure: str) -> MeasuredSpread | None:
        """The row of a measure, if it was asked for."""
        return next((row for row in self.rows if row.measure == measure), None)

    def sentences(self) -> tuple[str, ...]:
        """The spread, whether it is shown, the extremes, the shrunken range, what is missing."""
        source = self.provenance
        return (
            self._spread_sentence(),
            self._shown_sentence(),
            *self._extreme_sentence(),
            *self._shrunken_sentence(),
            f"Each interval holds on its own with {level_text(self.level)} confidence, for the "
            f"groups audited, on {plural(source.counted - self._lost(), 'row')} of "
            f"{source.source}.",
            *self._excluded_sentences(),
            _left_out(source, self._lost() > 0),
        )

    @names_extra
    def plot(self) -> Chart:
        """Uncorrected beside corrected intervals, measure by measure."""
        bars = [bar for row in (self.sd, *self.rows) if row for bar in _bars(row)]
        return spans(
            bars,
            title=f"{self.metric.capitalize()} across {self.by}: how far apart the groups are",
            subtitle=[
                f"{level_text(self.level)} intervals, each on its own; dashed: all groups equal",
                *self._excluded_note(),
            ],
        )

    def _excluded_note(self) -> list[str]:
        """The groups left out, as a chart's footnote lists them."""
        names = [f"{group.group} (n = {group.n:,})" for group in self.excluded]
        if not names:
            return []
        more = f" and {len(names) - 4} more" if len(names) > 4 else ""
        return [f"Left out of {self.by} ({self.metric}): {', '.join(names[:4])}{more}"]

    def __str__(self) -> str:
        groups = text_table(self.groups[:40], self.group_columns)
        more = f"\n… and {len(self.groups) - 40:,} more" if len(self.groups) > 40 else ""
        return "\n".join(
            [*self.sentences(), "", text_table(self.rows, self.columns), "", groups + more]
        )

    def _repr_html_(self) -> str:
        groups = html_table(self.groups[:200], self.group_columns)
        # Not super(): a slotted dataclass is made twice, and super() remembers the first.
        return f"<div>{Finding._repr_html_(self)}{groups}</div>"

    def _say(self, value: float | None) -> str:
        """A spread without its unit."""
        if value is None:
            return "no limit"
        return f"{100 * value:.1f}" if self.share else f"{value:.4g}"

    def _used(self) -> str:
        return plural(len(self.groups) - len(self.excluded), "group")

    def _spread_sentence(self) -> str:
        if self.sd is None or self.sd.corrected is None or self.sd.value is None:
            return (
                f"The {self.metric} does not vary within any of {self._used()} by {self.by}, so "
                "the sampling error of its variance cannot be estimated."
            )
        return (
            f"Across {self._used()} by {self.by}, the {self.metric} differs by a standard "
            f"deviation of {unsigned(self.sd.corrected, self.share)} "
            f"({level_text(self.level)} interval {self._say(self.sd.lower)} to "
            f"{self._say(self.sd.upper)}); without correction it would read "
            f"{self._say(self.sd.value)}."
        )

    def _shown_sentence(self) -> str:
        quoted = "" if self.p is None else f" ({_chance(self.p)})"
        if self.shown:
            return f"That the groups differ is shown{quoted}."
        return f"A difference between groups is not shown{quoted}."

    def _extreme_sentence(self) -> list[str]:
        row = self.row("max-min difference")
        if row is None or row.value is None or row.lower is None:
            return []
        return [
            f"Highest and lowest group are {unsigned(row.value, self.share)} apart"
            f"{self._by_chance(row.value, row.bias)}; the true distance lies between "
            f"{self._say(row.lower)} and {self._say(row.upper)}."
        ]

    def _by_chance(self, value: float, bias: float | None) -> str:
        if bias is None:
            return ""
        # an estimated bias may be larger than what there is, of which no more can be explained
        if bias >= value:
            return ", all of which chance explains"
        explains = "none" if bias <= 0 else self._say(bias)
        return f", of which chance explains {explains}"

    def _shrunken_sentence(self) -> list[str]:
        known = [(g.shrunken, g.group) for g in self.groups if g.shrunken is not None]
        if not known:
            return []
        ends = [f"{amount(value, self.share)} ({name})" for value, name in (min(known), max(known))]
        return [f"Shrunken as far as the data say, the groups run from {' to '.join(ends)}."]

    def _lost(self) -> int:
        """Rows of groups that take no part."""
        return sum(group.n for group in self.excluded)

    def _excluded_sentences(self) -> list[str]:
        said = [f"Left out: {_with_rows(g)}, {g.note}." for g in self.excluded[:5]]
        if len(self.excluded) > 5:
            said.append(f"{plural(len(self.excluded) - 5, 'more group')} were left out alike.")
        if self.absent:
            said.append(f"To {plural(self.absent, 'combination')} of levels no row belongs.")
        return said


def _with_rows(group: SummarizedGroup) -> str:
    # a note on a group of one row says so itself
    return group.group if group.n < 2 else f"{group.group} ({plural(group.n, 'row')})"


def _left_out(source: Provenance, groups: bool) -> str:
    """The rows left out, beside whole groups if there are any: their rows are left out too."""
    said = source.left_out()
    return said.replace("No row was", "No other row was") if groups else said


def _bars(row: MeasuredSpread) -> list[ChartSpan]:
    """The two intervals of one measure, as a chart takes them."""
    intervals = {
        "uncorrected": (row.value, row.plain_lower, row.plain_upper),
        "corrected": (row.corrected, row.lower, row.upper),
    }
    return [
        ChartSpan(
            measure=row.measure,
            series=series,
            centre=centre,
            lower=lower,
            upper=upper,
            # groups that are all equal have a ratio of one, and nothing of any other measure
            least=float(row.measure == "max-min ratio"),
        )
        for series, (centre, lower, upper) in intervals.items()
        if lower is not None
    ]


def _chance(p: float) -> str:
    return f"p = {p:.2g} for no difference at all"


# --- What `compare` says: whether one spread between groups is larger than another ---

Between = Literal["attributes", "models"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSpread(AboutEveryone):
    """Two spreads and the interval for their difference, on the scale of the measure."""

    first: str
    """The attribute or model that comes first."""
    second: str
    """The one it is compared with."""
    first_value: float | None
    """Corrected measure of the first; a variance is below zero if chance explains more."""
    second_value: float | None
    """The same of the second."""
    difference: float | None
    """First minus second; None if either has no corrected value."""
    lower: float | None
    """Lower end of the interval for the true difference; None if there is none."""
    upper: float | None
    """Upper end of the same; None if there is none."""
    measure: str = "variance"
    """What is compared."""
    larger: str = ""
    """Which spread is shown to be larger; empty if neither is."""
    note: str = ""
    """What limits the comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """One attribute or model."""

    name: str
    """Its name."""
    groups: int
    """Groups that count."""
    variance: float
    """Corrected variance between them; below zero if chance explains more than there is."""
    sd: float
    """The same as a standard deviation in the metric's own unit, cut off at zero."""
    plain_sd: float
    """Standard deviation of the group means before correction."""
    excluded: tuple[str, ...] = ()
    """Groups left out, each with its reason."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison(MetricFinding[ComparedSpread]):
    """Which of several spreads is larger, pair by pair.

    >>> import equipoise as eq
    >>> eq.compare(eq.datasets.compas(), "accuracy", across=["race", "sex"], rng=7)
    <Comparison: where groups are further apart in accuracy: race or sex; 1 row>
    """

    kind = "comparison"
    columns = (
        "first",
        "second",
        "measure",
        "first_value",
        "second_value",
        "difference",
        "lower",
        "upper",
        "larger",
    )

    by: str
    """What the groups are cut by."""
    between: Between
    """Whether attributes or models are compared."""
    share: bool
    """Whether the metric is a share, read in percentage points."""
    level: float
    """Confidence level of each interval on its own."""
    resamples: int
    """Number of joint resamples."""
    sides: tuple[ComparedSide, ...]
    """Every attribute or model, with its own spread."""

    def sentences(self) -> tuple[str, ...]:
        """Each spread, each comparison, what it rests on, and the groups left out."""
        source = self.provenance
        return (
            *(self._side_sentence(side) for side in self.sides),
            *(self._pair_sentence(row) for row in self.rows),
            f"{plural(len(self.rows), 'interval')} of {level_text(self.level)}, each on its own, "
            f"for differences, on {plural(source.counted, 'row')} of {source.source}.",
            *(f"Left out of {side.name}: {name}." for side in self.sides for name in side.excluded),
            _left_out(source, any(side.excluded for side in self.sides)),
        )

    @names_extra
    def plot(self) -> Chart:
        """The interval for each difference of variances."""
        return differences(
            self.rows,
            title=f"{self.metric.capitalize()}: whose groups are further apart",
            subtitle=f"{level_text(self.level)} intervals for differences",
        )

    def _side_sentence(self, side: ComparedSide) -> str:
        of = f"by {side.name}" if self.between == "attributes" else f"by {self.by} for {side.name}"
        plain = f"{100 * side.plain_sd:.1f}" if self.share else f"{side.plain_sd:.4g}"
        return (
            f"Across {plural(side.groups, 'group')} {of}, the {self.metric} differs by a standard "
            f"deviation of {unsigned(side.sd, self.share)}; without correction it would read "
            f"{plain}."
        )

    def _pair_sentence(self, row: ComparedSpread) -> str:
        # Corrected variances may lie below zero, where there is no standard deviation to compare.
        by = "of variances" if row.measure == "variance" else f"by {row.measure}"
        low, high = (end_text(end) for end in (row.lower, row.upper))
        seen = "" if row.difference is None else f"{row.difference:.3g}, "
        ends = f"difference {by} {seen}{low} to {high}"
        if not row.larger:
            return (
                f"Whether groups are further apart for {row.first} or for {row.second} is not "
                f"shown ({ends})."
            )
        other = row.second if row.larger == row.first else row.first
        return f"Groups are shown to be further apart for {row.larger} than for {other} ({ends})."


def end_text(end: float | None) -> str:
    """An end of an interval, or that it has none."""
    return "no limit" if end is None else f"{end:.3g}"
