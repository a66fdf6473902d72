"""What `flag` says: which groups differ, with control over false alarms."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from equipoise.findings.charts.lattice import lattice
from equipoise.findings.finding import Finding
from equipoise.findings.lookup import find_row
from equipoise.findings.verdict import Verdict
from equipoise.findings.words import amount, difference, left_out, plural


@dataclass(frozen=True, slots=True, kw_only=True)
class FlaggedGroup:
    """One group with its test."""

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
    p: float | None
    """p-value of the group on its own; None if it could not be tested."""
    p_adjusted: float | None
    """p-value adjusted for all the groups: flagged when it is at most the stated rate."""
    flagged: bool
    """Whether the group is flagged."""
    note: str = ""
    """Why the group could not be tested, or could not have been flagged whatever the outcome."""
    reachable: float | None = None
    """Smallest disparity that a group of this size could have shown; None if not worked out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags(Finding):
    """Flagged groups, with the stated control over false flags."""

    kind: ClassVar[str] = "flags"
    row_type: ClassVar[type] = FlaggedGroup
    columns: ClassVar[tuple[str, ...]] = (
        "group",
        "n",
        "value",
        "disparity",
        "p",
        "p_adjusted",
        "flagged",
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
    null: str
    """What a flag speaks against, in words."""
    rate: float
    """The rate of false flags that is controlled."""
    control: str
    """Which error rate is controlled, and how."""
    method: Mapping[str, Any]
    """The method and its options."""
    engine: str
    """How resamples were drawn, or that none were needed."""

    @property
    def flagged(self) -> tuple[FlaggedGroup, ...]:
        """The flagged groups, strongest evidence first."""
        chosen = [row for row in self.rows if row.flagged]
        return tuple(sorted(chosen, key=lambda row: (row.p, row.group)))

    @property
    def unreachable(self) -> tuple[FlaggedGroup, ...]:
        """Groups that could not be tested or could not have been flagged whatever happened."""
        return tuple(row for row in self.rows if row.note)

    @property
    def conclusion(self) -> Verdict | None:
        """A flag shows a violation; no flag shows nothing."""
        return Verdict.SHOWN_NOT if self.flagged else None

    def ask(self, group: Mapping[str, Any] | str | None = None, /, **where: Any) -> FlaggedGroup:
        """The test of one group, named by its attributes, its range or its label."""
        row = find_row(self.rows, group, where)
        if not isinstance(row, FlaggedGroup):
            raise TypeError("rows of flags must be flagged groups")
        return row

    def sentences(self) -> tuple[str, ...]:
        """How many are flagged, which, under what guarantee, and who could not have been."""
        found, are = self.flagged, "is" if len(self.flagged) == 1 else "are"
        first = (
            f"{plural(len(found), self.noun)} of {len(self):,} {are} flagged: {self.metric} "
            f"{self.null} {self.against}."
            if found
            else f"No {self.noun} of {len(self):,} is flagged: {self.metric} {self.null} "
            f"{self.against} is shown for none. That is not evidence that there is none."
        )
        return (
            first,
            *(self._one(row) for row in found[:10]),
            *([f"… and {len(found) - 10} more."] if len(found) > 10 else []),
            f"{self.guarantee}.",
            *self._unreachable_sentence(),
            left_out(self.provenance.excluded, self.provenance.ineligible),
        )

    def plot(self) -> Any:
        """A lattice of the groups, flagged ones filled in."""
        return lattice(
            self.rows,
            title=f"{self.metric.capitalize()} {self.null} {self.against}",
            subtitle=self.guarantee,
        )

    def _one(self, row: FlaggedGroup) -> str:
        shown = (
            f"{row.disparity:.2f} times"
            if self.relative
            else difference(row.disparity or 0, self.share)
        )
        return (
            f"{row.group}: {amount(row.value, self.share)}, {shown} "
            f"(n = {row.n:,}, adjusted p = {row.p_adjusted:.2g})."
        )

    def _unreachable_sentence(self) -> list[str]:
        silent = self.unreachable
        if not silent:
            return []
        most = max(row.n for row in silent)
        return [
            f"{plural(len(silent), self.noun)} of at most {plural(most, 'row')} could not be "
            "tested, or not have been flagged whatever the outcome; nothing is known about them."
        ]
