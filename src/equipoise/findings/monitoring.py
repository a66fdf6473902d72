"""What `monitor` says: evidence over time for every group, and the alarms it raised."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from equipoise._validate import names_extra
from equipoise.findings.charts.others import evidence_chart
from equipoise.findings.finding import COMPARED, ByGroup, Chart, ComparedGroup, DisparityFinding
from equipoise.findings.words import Verdict, be, ends_text, level_text, plural

Reading = Literal["ever", "lately", "planned"]
#: Groups that a page and a terminal show over time.
SHOWN = 8
_BARS = "▁▂▃▄▅▆▇█"
_NO_PROOF = " That is not evidence that there is none."


class State(StrEnum):
    """How a group stands after the last batch.

    >>> str(State.ALARM)
    'alarm'
    """

    ALARM = "alarm"
    """It is shown to exceed the limit."""
    QUIET = "quiet"
    """It is not; which does not show that the limit is kept."""
    KEPT = "kept"
    """It is shown to keep the tolerance, if its disparity does not drift."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoredGroup(ComparedGroup):
    """One group over time."""

    evidence: float | None
    """Evidence against the limit after the last batch: bets of 1 have become this much. For planned
    looks, the score of the last look. None if there was never a comparison."""
    needed: float | None
    """How much would raise an alarm for this group now."""
    alarm: bool
    """Whether the group is in alarm after the last batch."""
    raised: str | None
    """The batch after which it was first in alarm; None if it never was."""
    lower: float | None
    """Lower end of the confidence sequence; None if there is none."""
    upper: float | None
    """Its upper end."""
    state: State
    """How the group stands: alarm, quiet or kept."""
    reachable: float | None
    """The disparity that would most likely have been found by now; None if not worked out."""
    note: str = ""
    """Why nothing could be said, or what to know of what is."""
    history: tuple[float | None, ...] = ()
    """Decimal logarithm of the evidence at each of the finding's ``periods``."""
    band: tuple[tuple[float | None, float | None], ...] = ()
    """Ends of the confidence sequence at the same periods, for the groups furthest out."""
    smallest: int | None = None
    """Rows of the smallest batch of the group, or of those it is compared with."""

    @property
    def trace(self) -> str:
        """The history as a row of bars, for a terminal."""
        return bars(self.history)


def bars(values: Sequence[float | None], most: int = 12) -> str:
    """Numbers as a row of bars, from nothing to the largest.

    >>> bars([0.0, 0.5, 2.0])
    '▁▂█'
    """
    known = [max(0.0, v) for v in values if v is not None]
    if not known:
        return ""
    step = max(1, math.ceil(len(known) / most))
    # the last one stays, which is where things stand
    chosen = known[::-1][::step][::-1]
    top = max(*chosen, 1.0)
    return "".join(_BARS[min(int(v / top * 7.999), 7)] for v in chosen)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Monitoring(DisparityFinding[MonitoredGroup], ByGroup[MonitoredGroup]):
    """Evidence over time, and alarms.

    >>> import equipoise as eq
    >>> claim = eq.gap("false_positive_rate", across="race")
    >>> eq.monitor(eq.datasets.compas_by_month(), claim, above=0.05, period="month")
    <Monitoring: false positive rate against everyone; 6 rows>
    """

    kind = "monitoring"
    columns = (*COMPARED, "lower", "upper", "evidence", "raised", "state", "note")
    terse = ("group", "n", "disparity", "evidence", "trace", "raised", "state")

    null: str
    """What an alarm speaks against, in words."""
    reading: Reading
    """``ever``, ``lately`` or ``planned``: what is promised about false alarms."""
    level: float
    """Confidence of the bounds; one less it is the error of alarms."""
    batches: int
    """How many batches there are."""
    periods: tuple[str, ...]
    """The batches at which histories are given; all of them, if they are not too many."""
    threshold: float
    """Decimal logarithm of the evidence that raises the first alarm."""
    limits: tuple[float, ...]
    """The limits asked about: one, or the ends of a range."""
    tolerance: float | None
    """The tolerance, where one was given."""
    run_length: int | None
    """For ``lately``: batches to a false alarm, on average at least."""
    looks: int | None
    """For ``planned``: how many looks were planned."""
    together: float | None
    """Evidence that any group at all exceeds the limit."""

    @property
    def alarms(self) -> tuple[MonitoredGroup, ...]:
        """The groups in alarm, strongest evidence first."""
        chosen = [row for row in self.rows if row.alarm]
        return tuple(sorted(chosen, key=lambda row: (-(row.evidence or 0.0), row.group)))

    @property
    def conclusion(self) -> Verdict:
        """An alarm shows a violation; quiet shows nothing; kept is shown if all groups are."""
        if self.alarms:
            return Verdict.EXCEEDED
        kept = all(row.state is State.KEPT for row in self.rows) and bool(self.rows)
        return Verdict.KEPT if kept else Verdict.UNDETERMINED

    @property
    def silent(self) -> bool:
        """Whether there is no alarm, and no tolerance that could be shown to be kept."""
        return self.tolerance is None and not self.alarms

    def sentences(self) -> tuple[str, ...]:
        """Which groups are in alarm and since when, what that means, and who is not known."""
        found = self.alarms
        kept = sum(row.state is State.KEPT for row in self.rows)
        after = f"after {plural(self.batches, 'batch', 'batches')}"
        first = (
            f"{plural(len(found), self.noun)} of {len(self):,} {be(len(found))} in alarm {after}: "
            f"{self.metric} {self.null} {self.against}."
            if found
            else f"No alarm {after}: {self.metric} {self.null} {self.against} is shown for none of "
            f"{plural(len(self), self.noun)}.{'' if kept == len(self) else _NO_PROOF}"
        )
        return (
            first,
            *(self._one(row) for row in found[:10]),
            *([f"… and {len(found) - 10} more."] if len(found) > 10 else []),
            *self._withdrawn(),
            *([f"{plural(kept, self.noun)} {be(kept)} shown to keep it, if nothing drifts."]
              if kept else []),
            f"{self.guarantee}.",
            *self._unseen(),
            self.provenance.left_out(),
        )  # fmt: skip

    @names_extra
    def plot(self) -> Chart:
        """Evidence over time of the groups with most of it, and their confidence sequences."""
        return evidence_chart(self, title=self._title(), subtitle=self.guarantee)

    def shown(self) -> tuple[MonitoredGroup, ...]:
        """The groups that a chart shows: alarms first, then by evidence."""
        known = [row for row in self.rows if row.evidence is not None]
        order = sorted(known, key=lambda row: (not row.alarm, -(row.evidence or 0.0), row.group))
        return tuple(order[:SHOWN])

    def _title(self) -> str:
        return f"Evidence over time: {self.metric} {self.null} {self.against}"

    def _one(self, row: MonitoredGroup) -> str:
        ends = ends_text(row.lower, row.upper, self.say, "no bound")
        since = f"in alarm since {row.raised}" if row.raised else "in alarm"
        strength = ""
        if self.reading != "planned" and row.evidence is not None:
            strength = f", evidence {evidence_text(row.evidence)}"
        return (
            f"{row.group}: {since}{strength}; {self.value_text(row.value)} over all batches, "
            f"{ends} (n = {row.n:,})."
        )

    def _withdrawn(self) -> list[str]:
        gone = [row for row in self.rows if row.raised and not row.alarm]
        names = ", ".join(f"{row.group} ({row.raised})" for row in gone[:5])
        more = f" and {len(gone) - 5} more" if len(gone) > 5 else ""
        return [f"Raised before and no longer: {names}{more}."] if gone else []

    def _unseen(self) -> list[str]:
        quiet = [row for row in self.rows if not row.alarm and row.reachable is not None]
        silent = [row for row in self.rows if row.evidence is None]
        out = []
        if quiet:
            row = max(quiet, key=lambda row: (row.n, row.group))
            far = self.say(row.reachable or 0.0)
            out.append(
                f"By now a disparity of {far} would most likely have been found in {row.group}, "
                "the largest group without an alarm; smaller groups show less."
            )
        if silent:
            out.append(
                f"{plural(len(silent), self.noun)} had never rows to compare; nothing is known "
                "about them."
            )
        return out


def evidence_text(value: float) -> str:
    """Evidence as odds against the limit having been kept.

    >>> evidence_text(34.2), evidence_text(5.1e9)
    ('34 to 1', '5e9 to 1')
    """
    if value >= 1e5:
        return f"{value:.0e}".replace("e+0", "e").replace("e+", "e") + " to 1"
    return f"{value:,.0f} to 1" if value >= 10 else f"{value:.2g} to 1"


def promise(reading: Reading, level: float, run_length: int | None, looks: int | None) -> str:
    """What a reading promises about false alarms, in one sentence."""
    error = level_text(round(1 - level, 12))
    if reading == "lately":
        return (
            "If all limits are kept, false alarms are on average at least "
            f"{run_length} batches apart"
        )
    if reading == "planned":
        return (
            f"If all limits are kept, the chance of any alarm in {looks} planned looks is at most "
            f"{error}"
        )
    return (
        f"If all limits are kept, the chance of any alarm ever, however often one looks, is at "
        f"most {error}; whenever one looks, on average at most {error} of the alarms are false"
    )
