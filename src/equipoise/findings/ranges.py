"""What `certify` says of all ranges of a number at once, without listing them."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from equipoise.errors import ClaimError
from equipoise.findings.charts.forest import Line, forest
from equipoise.findings.finding import Finding
from equipoise.findings.rows import Group
from equipoise.findings.verdict import Verdict
from equipoise.findings.words import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedRange(Group):
    """One range, certified or not."""

    value: float
    """The metric over the range."""
    disparity: float
    """Value minus target."""
    certified: bool = True
    """Whether the claim is certified for this range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeCertificates(Finding):
    """Certificates for every range between two values in the data.

    With the stated confidence none of them is false. A range may be certified although a part of it
    is not: ask for the part.
    """

    kind: ClassVar[str] = "range certificates"
    row_type: ClassVar[type] = CertifiedRange
    columns: ClassVar[tuple[str, ...]] = ("group", "n", "value", "disparity", "certified")

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

    def ask(self, group: Mapping[str, Any] | None = None, /, **where: Any) -> CertifiedRange:
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

    def _ends(self, where: Mapping[str, Any]) -> tuple[float, float]:
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
            title=f"Certified ranges of {self.attribute}: "
            f"disparity in {self.metric} {self.claimed}",
            subtitle=self.guarantee,
            axis=self.attribute,
            reference=[],
            most=most,
        )
