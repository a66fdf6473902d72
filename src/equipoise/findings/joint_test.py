"""What `joint_test` says: whether all disparities could be zero at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from equipoise.errors import OptionError
from equipoise.findings.charts.forest import Line, forest
from equipoise.findings.finding import Finding
from equipoise.findings.lookup import find_row
from equipoise.findings.verdict import Verdict
from equipoise.findings.words import left_out, level_text


@dataclass(frozen=True, slots=True, kw_only=True)
class JointlyTested:
    """One group of a joint test."""

    group: str
    """The group in words."""
    where: Mapping[str, Any]
    """The group as data: attribute → value, or → ends of a range."""
    n: int
    """Rows of the group on which the metric counts."""
    value: float | None
    """The group's metric."""
    target: float | None
    """What it is compared with."""
    disparity: float | None
    """Value minus target."""
    note: str = ""
    """Why the group is not part of the test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JointTest(Finding):
    """A test of whether every group's disparity is zero."""

    kind: ClassVar[str] = "joint_test"
    row_type: ClassVar[type] = JointlyTested
    columns: ClassVar[tuple[str, ...]] = ("group", "n", "value", "disparity", "note")

    metric: str
    """The metric in words."""
    against: str
    """The target in words."""
    level: float
    """Confidence level at which the verdict is given."""
    statistic: float
    """Likelihood ratio statistic."""
    degrees: int
    """Degrees of freedom: disparities that do not follow from each other."""
    tested: int
    """Groups that were tested."""
    p: float
    """p-value."""
    rejected: bool
    """Whether some disparity differs from zero, at the level."""
    method: Mapping[str, Any]
    """The method and its options."""
    covariance: tuple[tuple[float, ...], ...]
    """Covariance of the tested disparities, for `contains`."""
    critical: float
    """χ² cut-off at the level."""

    @property
    def verdict(self) -> str:
        """What the test shows, in the words of a certification audit."""
        return "disparity shown" if self.rejected else "no disparity shown"

    @property
    def conclusion(self) -> Verdict | None:
        """A rejection shows that some group differs; no rejection shows nothing."""
        return Verdict.SHOWN_NOT if self.rejected else None

    def contains(self, disparities: Mapping[str, float]) -> bool:
        """Whether values of some disparities lie in the joint confidence region.

        Values are given by the group's label; groups left out are free. The region is that of the
        Euclidean likelihood, an ellipsoid around the estimates.
        """
        import numpy as np

        from equipoise.methods.likelihood import joint_euclidean

        tested = [row for row in self.rows if not row.note]
        place = {row.group: i for i, row in enumerate(tested)}
        unknown = [name for name in disparities if name not in place]
        if unknown or not disparities:
            raise OptionError(f"There is no tested group {unknown}; there is {list(place)}.")
        chosen = [place[name] for name in disparities]
        gap = np.array([tested[place[k]].disparity - v for k, v in disparities.items()])
        found = joint_euclidean(gap, np.array(self.covariance)[np.ix_(chosen, chosen)])
        return bool(found.p >= 1 - self.level)

    def ask(self, group: Mapping[str, Any] | str | None = None, /, **where: Any) -> JointlyTested:
        """One group, named by its attributes, its range or its label."""
        row = find_row(self.rows, group, where)
        if not isinstance(row, JointlyTested):
            raise TypeError("rows of a joint test must be jointly tested groups")
        return row

    def sentences(self) -> tuple[str, ...]:
        """The verdict, the test, and what was left out."""
        said = (
            f"At least one group's {self.metric} differs from {self.against}"
            if self.rejected
            else f"No group's {self.metric} was shown to differ from {self.against}, which does "
            "not show that none does"
        )
        dropped = self.tested - self.degrees
        verb = "follows" if dropped == 1 else "follow"
        follow = f"; {dropped} of them {verb} from the others" if dropped else ""
        return (
            f"{said} ({level_text(self.level)} confidence).",
            f"Likelihood ratio {self.statistic:.2f} on {self.degrees} degrees of freedom, "
            f"p = {self.p:.3g}, over {self.tested} groups{follow}.",
            left_out(self.provenance.excluded, self.provenance.ineligible),
        )

    def plot(self) -> Any:
        """The estimated disparities."""
        lines = [
            Line(
                group=row.group,
                n=row.n,
                centre=row.disparity,
                lower=row.disparity,
                upper=row.disparity,
                colour="undetermined",
            )
            for row in self.rows
            if row.disparity is not None
        ]
        return forest(
            lines,
            title=f"{self.metric.capitalize()} against {self.against}",
            subtitle=f"Joint test: p = {self.p:.3g}",
            axis="disparity",
            reference=[0.0],
            most=40,
        )
