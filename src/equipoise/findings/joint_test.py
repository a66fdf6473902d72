"""What `joint_test` says: whether all disparities could be zero at once."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from equipoise.errors import OptionError
from equipoise.findings.charts.forest import Line, forest
from equipoise.findings.finding import Finding
from equipoise.findings.lookup import find_row
from equipoise.findings.rows import ComparedGroup
from equipoise.findings.verdict import Verdict
from equipoise.findings.words import level_text

_FAMILY = {
    "joint": "hold for all groups at once, by the joint law of their scores",
    "sidak": "by Šidák's inequality: all of them hold at once",
    "bonferroni": "by Bonferroni's inequality: all of them hold at once",
    "pointwise": "one group at a time",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JointlyTested(ComparedGroup):
    """One group of a joint test."""

    lower: float | None = None
    """Lower end of the interval of the finding's family; None if there is none."""
    upper: float | None = None
    """Upper end of the interval of the finding's family; None if there is none."""
    region_lower: float | None = None
    """Smallest disparity of the group in the joint region (a Scheffé-type interval)."""
    region_upper: float | None = None
    """Largest disparity of the group in the joint region (a Scheffé-type interval)."""
    note: str = ""
    """Why the group is not part of the test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JointTest(Finding):
    """A test of whether every group's disparity is zero."""

    kind: ClassVar[str] = "joint_test"
    row_type: ClassVar[type] = JointlyTested
    columns: ClassVar[tuple[str, ...]] = (
        "group",
        "n",
        "value",
        "disparity",
        "lower",
        "upper",
        "region_lower",
        "region_upper",
        "note",
    )

    metric: str
    """The metric in words."""
    against: str
    """The target in words."""
    level: float
    """Confidence level of the verdict, the region and the intervals."""
    statistic: float
    """The largest score of all groups, or the likelihood ratio statistic."""
    degrees: int
    """Degrees of freedom of a likelihood ratio: disparities that do not follow from each other."""
    tested: int
    """Groups that were tested."""
    p: float
    """p-value."""
    rejected: bool
    """Whether some disparity differs from what was tested, at the level."""
    method: Mapping[str, Any]
    """The method and its options."""
    critical: float
    """Cut-off of the statistic at the level: the edge of the joint region."""
    calibration: str
    """How the cut-off and the p-value were corrected for small groups."""
    family: str
    """What makes the intervals hold: joint (of all scores), sidak, bonferroni or pointwise."""
    at: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """The disparities tested, by group; empty if all are zero."""
    region: Mapping[str, Any] | None = dataclasses.field(default=None, repr=False)
    """What the joint region is made from, for `contains`; None if that would be too much."""

    @property
    def verdict(self) -> str:
        """What the test shows."""
        return "disparity shown" if self.rejected else "no disparity shown"

    @property
    def published_verdict(self) -> str:
        """The verdict in the words of the published algorithm; "certified" is its word, not ours.

        A test that does not reject has not shown that a model is fair.
        """
        # Lines 6 and 8 of Algorithm 1 of the paper on empirical likelihood.
        return f"Model {'un' if self.rejected else ''}fairness certified"

    @property
    def conclusion(self) -> Verdict | None:
        """A rejection shows that some group differs; no rejection shows nothing."""
        return Verdict.SHOWN_NOT if self.rejected else None

    @property
    def region_kind(self) -> str | None:
        """Whose joint region `contains` asks: likelihood or euclidean; None if none was kept.

        Rows of real-valued metrics are not kept, so their region is the Euclidean one; to ask
        empirical likelihood itself, test the values with ``joint_test(…, at=…)``.
        """
        return None if self.region is None else str(self.region["kind"])

    def contains(self, disparities: Mapping[str, float]) -> bool:
        """Whether values of some disparities lie in the joint confidence region.

        Values are given by the group's label. Groups left out are free: the answer is whether some
        point of the region has these values.
        """
        from equipoise.findings.recipes import region_statistic

        tested = [row for row in self.rows if not row.note]
        place = {row.group: i for i, row in enumerate(tested)}
        unknown = [name for name in disparities if name not in place]
        if unknown or not disparities:
            raise OptionError(f"There is no tested group {unknown}; there is {list(place)}.")
        if self.region is None:
            raise OptionError("This finding keeps no joint region; use joint_test(at=…).")
        named = {place[name]: float(value) for name, value in disparities.items()}
        # The cut-off stays that of all groups, (3.6) of the paper on empirical likelihood: fewer
        # values ask for a shadow of the region, not for a smaller one.
        return region_statistic(self.region, named) <= self.critical

    def ask(self, group: Mapping[str, Any] | str | None = None, /, **where: Any) -> JointlyTested:
        """One group, named by its attributes, its range or its label."""
        row: JointlyTested = find_row(self.rows, group, where)
        return row

    def sentences(self) -> tuple[str, ...]:
        """The verdict, the test, the intervals, and what was left out."""
        if self.method.get("kind") == "pivotal":
            return (
                f"{self._said()} ({level_text(self.level)} confidence).",
                f"Largest score {self.statistic:.2f}, critical {self.critical:.2f}, "
                f"p = {self.p:.3g}, over {self.tested} groups.",
                *self._interval_sentences(),
                self.provenance.left_out(),
            )
        dropped = self.tested - self.degrees
        verb = "follows" if dropped == 1 else "follow"
        follow = f"; {dropped} of them {verb} from the others" if dropped else ""
        return (
            f"{self._said()} ({level_text(self.level)} confidence).",
            f"Likelihood ratio {self.statistic:.2f} on {self.degrees} degrees of freedom, "
            f"p = {self.p:.3g}, over {self.tested} groups{follow}.",
            f"Calibration: {self.calibration}.",
            f"In the words of the published algorithm: {self.published_verdict}"
            + ("." if self.rejected else ", which means no more than that."),
            *self._interval_sentences(),
            self.provenance.left_out(),
        )

    def _said(self) -> str:
        if self.at:
            verb = "is" if self.rejected else "is not"
            return f"That {self.metric} differs from {self.against} as tested {verb} ruled out"
        if self.rejected:
            return f"At least one group's {self.metric} differs from {self.against}"
        return (
            f"No group's {self.metric} was shown to differ from {self.against}, which does not "
            "show that none does"
        )

    def _interval_sentences(self) -> list[str]:
        if all(row.lower is None and row.region_lower is None for row in self.rows):
            return []
        if self.family == "joint":
            return [f"Intervals at {level_text(self.level)}: lower to upper {_FAMILY['joint']}."]
        return [
            f"Intervals at {level_text(self.level)}: lower to upper {_FAMILY[self.family]}; "
            "region_lower to region_upper is the shadow of the joint region on each group "
            "(Scheffé-type), and all of these hold at once too."
        ]

    def plot(self) -> Any:
        """The estimated disparities with the intervals of the family."""
        lines = [
            Line(
                group=row.group,
                n=row.n,
                centre=row.disparity,
                # without an interval only the estimate is drawn
                lower=row.disparity if row.lower is None else row.lower,
                upper=row.disparity if row.upper is None else row.upper,
                colour="undetermined",
            )
            for row in self.rows
            if row.disparity is not None
        ]
        return forest(
            lines,
            title=f"{self.metric.capitalize()} against {self.against}",
            subtitle=f"Joint test: p = {self.p:.3g}; intervals {_FAMILY[self.family]}",
            axis="disparity",
            reference=[0.0],
            most=40,
        )
