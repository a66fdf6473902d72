"""What `certify` says of all ranges of a number at once, without listing them."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from equipoise.errors import ClaimError
from equipoise.findings.charts.forest import Line, forest
from equipoise.findings.finding import Finding
from equipoise.findings.verdict import Verdict
from equipoise.findings.words import left_out, plural


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedRange:
    """A range that is certified and lies in no wider one that is."""

    group: str
    """The range in words."""
    where: Mapping[str, Any]
    """Attribute → ends of the range, both included."""
    n: int
    """Rows of the range on which the metric counts."""
    value: float
    """The metric over the range."""
    disparity: float
    """Value minus target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeCertificates(Finding):
    """Certificates for every range between two values in the data.

    With the stated confidence none of them is false. A range may be certified although a part of it
    is not: ask for the part.
    """

    kind: ClassVar[str] = "range certificates"
    row_type: ClassVar[type] = CertifiedRange
    columns: ClassVar[tuple[str, ...]] = ("group", "n", "value", "disparity")

    metric: str
    """The metric in words."""
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
    sizes: tuple[float, ...] = field(repr=False)
    """Running number of rows, from none."""
    evidence: tuple[tuple[float, ...], ...] = field(repr=False)
    """For each side of the claim: running sums that certify a range when they rise by the bar."""
    bars: tuple[float, ...]
    """The critical value on each side."""

    def ask(self, low: float, high: float) -> bool:
        """Whether the range from ``low`` to ``high``, both included, is certified."""
        start, stop = bisect_left(self.points, low), bisect_right(self.points, high)
        if stop <= start:
            raise ClaimError(f"No row has {self.attribute} between {low:g} and {high:g}.")
        if self.sizes[stop] - self.sizes[start] < 2:
            return False
        pairs = zip(self.evidence, self.bars, strict=True)
        return all(sums[stop] - sums[start] >= bar for sums, bar in pairs)

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
            left_out(self.provenance.excluded, self.provenance.ineligible),
        )

    def plot(self, most: int = 40) -> Any:
        """The certified ranges that lie in no wider one, from end to end."""
        lines = [
            Line(
                group=row.group,
                n=row.n,
                centre=(row.where[self.attribute]["from"] + row.where[self.attribute]["to"]) / 2,
                lower=row.where[self.attribute]["from"],
                upper=row.where[self.attribute]["to"],
                colour=str(Verdict.SHOWN),
            )
            for row in self.rows
        ]
        return forest(
            lines,
            title=f"Certified ranges of {self.attribute}: {self.metric} {self.claimed}",
            subtitle=self.guarantee,
            axis=self.attribute,
            reference=[],
            most=most,
        )
