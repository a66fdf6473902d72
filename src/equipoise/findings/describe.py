"""What `describe` says: sizes, estimates and pointwise intervals."""

from dataclasses import dataclass, field
from operator import itemgetter

from equipoise.findings.adjusted import AdjustedGroup, adjusted_sentences
from equipoise.findings.charts.groups import Line, forest, reading
from equipoise.findings.finding import IF_ANY, ByGroup, Chart, Group, MetricFinding
from equipoise.findings.words import amount, disparity_text, level_text, plural


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedGroup(Group):
    """One group as it is in the data."""

    value: float | None
    """The group's metric; None if it counts on no row."""
    lower: float | None
    """Lower end of the pointwise interval for ``value``."""
    upper: float | None
    """Upper end of the pointwise interval for ``value``."""
    target: float | None
    """What the group is compared with; None where legitimate factors are given."""
    disparity: float | None
    """Value minus target, or value divided by target for a ratio; given factors, adjusted."""
    note: str = ""
    """Why a number is missing or weak."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Description(MetricFinding[DescribedGroup], ByGroup[DescribedGroup]):
    """Group sizes and estimates, before any inference about many groups.

    >>> import equipoise as eq
    >>> eq.describe(eq.datasets.compas(), eq.gap("accuracy", across="race"))
    <Description: accuracy against everyone; 6 rows>
    """

    kind = "description"
    columns = ("group", "n", "value", "lower", "upper", "disparity", "note")

    overall: float
    """The metric over everyone."""
    share: bool
    """Whether the metric is a share, read as a percentage."""
    level: float
    """Confidence level of each interval on its own."""
    method: str
    """How the intervals were computed."""
    small: int
    """Groups with fewer rows than this are noted as small."""
    adjusted: tuple[AdjustedGroup, ...] = field(default=(), metadata=IF_ANY)
    """Every group without the legitimate factors, where such are given."""

    def sentences(self) -> tuple[str, ...]:
        """Everyone's value, the extremes, the small groups, and the rows left out."""
        source = self.provenance
        return (
            f"The {self.metric} is {amount(self.overall, self.share)} over "
            f"{plural(source.counted, 'row')} of {source.source}.",
            *self._extremes(),
            f"Each interval holds on its own with {level_text(self.level)} confidence "
            f"({self.method}); with {plural(len(self), 'group')} {self._misses()} can be expected "
            "to miss.",
            *self._small_groups(),
            *self._given(),
            source.left_out(),
        )

    def plot(self, most: int = 40) -> Chart:
        """A forest plot of the largest groups, each interval on its own."""
        lines = [
            Line(
                group=row.group,
                n=row.n,
                centre=row.value,
                lower=row.lower,
                upper=row.upper,
                colour=reading(row.lower, row.upper, self.overall),
            )
            for row in self.rows
            if row.value is not None and row.lower is not None and row.upper is not None
        ]
        return forest(
            lines,
            title=f"{self.metric.capitalize()} by group",
            subtitle=f"Pointwise {level_text(self.level)} intervals",
            axis=self.metric,
            reference=[self.overall],
            most=most,
        )

    def _given(self) -> list[str]:
        """The largest adjusted disparities, and what they were before."""
        relative = self.claim.get("kind") == "ratio"
        known = [row for row in self.rows if row.disparity is not None]
        if not self.adjusted or not known:
            return []
        even = 1.0 if relative else 0.0
        most = sorted(known, key=lambda row: -abs((row.disparity or 0.0) - even))[:3]
        told = "; ".join(
            f"{row.group} {disparity_text(row.disparity or 0.0, relative, self.share)}"
            for row in most
        )
        return [
            f"Given {self.given}: {told}.",
            *adjusted_sentences(self.adjusted, self.given, relative=relative, share=self.share),
        ]

    def _extremes(self) -> list[str]:
        # The highest and lowest of many small groups are those that chance moved furthest.
        known = [(r.value, r) for r in self.rows if r.value is not None and r.n >= self.small]
        if not known:
            return []
        (_, high), (_, low) = max(known, key=itemgetter(0)), min(known, key=itemgetter(0))
        named = [("Highest", high)] if high is low else [("Highest", high), ("Lowest", low)]
        return [
            f"{word} among groups of at least {self.small}: {self._one(row)}" for word, row in named
        ]

    def _one(self, row: DescribedGroup) -> str:
        if row.lower is None or row.upper is None:
            why = row.note or "no interval"
            return f"{row.group}, {amount(row.value, self.share)} (n = {row.n:,}; {why})."
        low, high = amount(row.lower, self.share), amount(row.upper, self.share)
        return f"{row.group}, {amount(row.value, self.share)} ({low} to {high}, n = {row.n:,})."

    def _small_groups(self) -> list[str]:
        few = [row for row in self.rows if row.n < self.small]
        if not few:
            return []
        empty = sum(row.n == 0 for row in few)
        none = f", {empty} of them none at all" if empty else ""
        have = "has" if len(few) == 1 else "have"
        return [f"{plural(len(few), 'group')} {have} fewer than {self.small} such rows{none}."]

    def _misses(self) -> str:
        # Said so that nobody reads the intervals as if they held together.
        expected = round((1 - self.level) * len(self))
        return f"about {expected}" if expected else "fewer than one"
