"""What `certify` says when only a yes or no is asked of each group."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from equipoise.findings.charts.forest import Line, forest
from equipoise.findings.finding import Finding
from equipoise.findings.lookup import find_row
from equipoise.findings.rows import ComparedGroup
from equipoise.findings.verdict import Verdict
from equipoise.findings.words import be, plural


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedGroup(ComparedGroup):
    """One group, certified or not."""

    certified: bool
    """Whether the claim is certified for this group."""
    p_adjusted: float | None
    """Smallest error rate at which the group would be certified; None if it could not be."""
    note: str = ""
    """Why no certificate was possible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateList(Finding):
    """Certificates: with the stated confidence, none of them is false."""

    kind: ClassVar[str] = "certificates"
    row_type: ClassVar[type] = CertifiedGroup
    columns: ClassVar[tuple[str, ...]] = (
        "group",
        "n",
        "value",
        "disparity",
        "certified",
        "p_adjusted",
        "note",
    )

    metric: str
    """The metric in words."""
    against: str
    """The target in words."""
    claimed: str
    """What a certificate says of a group, in words."""
    level: float
    """Confidence that no certificate is false."""
    tolerance: float
    """The limit in the claim."""
    side: str
    """``lower``: above the limit; ``upper``: below it; ``both``: within it."""
    method: Mapping[str, Any]
    """The method and its options."""
    engine: str
    """How resamples were drawn: exact, moments or clusters."""

    @property
    def certified(self) -> tuple[CertifiedGroup, ...]:
        """The certified groups, in the order of the collection."""
        return tuple(row for row in self.rows if row.certified)

    @property
    def verdict(self) -> Verdict:
        """Shown if every group is certified; certificates cannot show the opposite."""
        every = all(row.certified for row in self.rows)
        # Of no groups at all everything would be true.
        return Verdict.SHOWN if every and self.rows else Verdict.UNDETERMINED

    @property
    def conclusion(self) -> Verdict:
        """Shown if every group is certified, undetermined otherwise."""
        return self.verdict

    def ask(self, group: Mapping[str, Any] | str | None = None, /, **where: Any) -> CertifiedGroup:
        """The certificate of one group, named by its attributes, its range or its label."""
        row: CertifiedGroup = find_row(self.rows, group, where)
        return row

    def plot(self, most: int = 40) -> Any:
        """Estimates of the largest groups, certified ones told apart by colour."""
        lines = [
            Line(
                group=row.group,
                n=row.n,
                centre=row.disparity,
                lower=row.disparity,
                upper=row.disparity,
                colour=str(Verdict.SHOWN if row.certified else Verdict.UNDETERMINED),
            )
            for row in self.rows
            if row.disparity is not None
        ]
        rules = [self.tolerance] if self.side != "both" else [-self.tolerance, self.tolerance]
        return forest(
            lines,
            title=f"Certified: disparity in {self.metric} {self.claimed}",
            subtitle=self.guarantee,
            axis="disparity",
            reference=rules,
            most=most,
        )

    def sentences(self) -> tuple[str, ...]:
        """How many groups are certified, the guarantee, and the rows left out."""
        done = self.certified
        return (
            f"{plural(len(done), self.noun)} of {len(self):,} {be(len(done))} "
            f"certified to have a disparity {self.claimed}.",
            f"{self.guarantee}.",
            f"A {self.noun} without a certificate may meet the claim all the same.",
            self.provenance.left_out(),
        )
