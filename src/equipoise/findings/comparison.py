"""What `compare` says: whether one spread between groups is larger than another."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from equipoise.findings.charts.spread import differences
from equipoise.findings.finding import Finding
from equipoise.findings.rows import AboutEveryone
from equipoise.findings.words import percent, plural, unsigned

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Finding):
    """Which of several spreads is larger, pair by pair."""

    kind: ClassVar[str] = "comparison"
    row_type: ClassVar[type] = ComparedSpread
    columns: ClassVar[tuple[str, ...]] = (
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

    metric: str
    """The metric in words."""
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
            f"{plural(len(self.rows), 'interval')} of {percent(self.level, 0)}, each on its own, "
            f"for differences, on {plural(source.counted, 'row')} of {source.source}.",
            *(f"Left out of {side.name}: {name}." for side in self.sides for name in side.excluded),
            source.left_out(),
        )

    def plot(self) -> Any:
        """The interval for each difference of variances."""
        return differences(
            self.rows,
            title=f"{self.metric.capitalize()}: whose groups are further apart",
            subtitle=f"{percent(self.level, 0)} intervals for differences",
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
