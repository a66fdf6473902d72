"""What `flag` says: which groups differ, with control over false alarms."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from equipoise.findings.charts.lattice import lattice
from equipoise.findings.finding import Finding
from equipoise.findings.lookup import find_row
from equipoise.findings.rows import ComparedGroup
from equipoise.findings.verdict import Verdict
from equipoise.findings.words import amount, be, difference, plural


@dataclass(frozen=True, slots=True, kw_only=True)
class FlaggedGroup(ComparedGroup):
    """One group with its test."""

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
        # Names settle ties, so that the same audit always reads the same.
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
        row: FlaggedGroup = find_row(self.rows, group, where)
        return row

    def sentences(self) -> tuple[str, ...]:
        """How many are flagged, which, under what guarantee, and who could not have been."""
        found = self.flagged
        first = (
            f"{plural(len(found), self.noun)} of {len(self):,} {be(len(found))} flagged: "
            f"{self.metric} {self.null} {self.against}."
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
            self.provenance.left_out(),
        )

    def plot(self) -> Any:
        """A lattice of the groups, flagged ones filled in."""
        return lattice(
            self.rows,
            said=self._say,
            title=f"{self.metric.capitalize()} {self.null} {self.against}",
            subtitle=self.guarantee,
        )

    def _say(self, value: float) -> str:
        return f"{value:.2f} times" if self.relative else difference(value, self.share)

    def _one(self, row: FlaggedGroup) -> str:
        return (
            f"{row.group}: {amount(row.value, self.share)}, {self._say(row.disparity or 0.0)} "
            f"(n = {row.n:,}, adjusted p = {row.p_adjusted:.2g})."
        )

    def _unreachable_sentence(self) -> list[str]:
        silent = self.unreachable
        if not silent:
            return []
        # Without this, silence about groups that no outcome could flag would pass for a result.
        most = max(row.n for row in silent)
        return [
            f"{plural(len(silent), self.noun)} of at most {plural(most, 'row')} could not be "
            "tested, or not have been flagged whatever the outcome; nothing is known about them."
        ]
