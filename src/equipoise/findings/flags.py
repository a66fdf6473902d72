"""What `flag` says: which groups differ, with control over false alarms."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from equipoise._validate import names_extra
from equipoise.findings.adjusted import (
    AdjustedGroup,
    ChangedGroup,
    LabelledGroup,
    UnknownGroup,
    adjusted_sentences,
    changed_sentences,
    label_sentences,
    missing_sentences,
    unknown_sentences,
)
from equipoise.findings.charts import (
    ABOVE,
    BELOW,
    MOST_BOXES,
    NEITHER,
    Dot,
    ForestAxis,
    ForestLine,
    disparity_axis,
    forest,
    lattice,
    ranked,
)
from equipoise.findings.finding import (
    COMPARED,
    IF_ANY,
    ByGroup,
    Chart,
    ComparedFinding,
    ComparedGroup,
    DisparityFinding,
)
from equipoise.findings.words import (
    CHEAP_ONLY,
    SELF_TARGET,
    Verdict,
    apart,
    be,
    difference,
    p_text,
    plural,
    telling_order,
)

# --- What `flag` says: which groups differ, with control over false alarms ---


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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Flags(DisparityFinding[FlaggedGroup], ByGroup[FlaggedGroup]):
    """Flagged groups, with the stated control over false flags.

    >>> import equipoise as eq
    >>> eq.flag(eq.datasets.compas(), eq.gap("accuracy", across="race"))
    <Flags: accuracy against everyone; 6 rows>
    """

    kind = "flags"
    columns = (*COMPARED, "p", "p_adjusted", "flagged", "note")

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
    adjusted: tuple[AdjustedGroup, ...] = field(default=(), metadata=IF_ANY)
    """Where factors are given: every group without them, and what the adjustment rests on."""
    changed: tuple[ChangedGroup, ...] = field(default=(), metadata=IF_ANY)
    """Where a change or pairs are asked about: every group's metric before and after."""
    unknown: tuple[UnknownGroup, ...] = field(default=(), metadata=IF_ANY)
    """Where the unknown are no group of their own: how many may be of each group, and what they can
    change. A flag then holds whoever they are."""
    labels: tuple[LabelledGroup, ...] = field(default=(), metadata=IF_ANY)
    """Where most labels are cheap: every group by its true labels, and what both are worth."""

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
    def conclusion(self) -> Verdict:
        """A flag shows a violation; no flag shows nothing."""
        return Verdict.UNDETERMINED if self.silent else Verdict.EXCEEDED

    @property
    def silent(self) -> bool:
        """Whether no group is flagged."""
        return not any(row.flagged for row in self.rows)

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
            *adjusted_sentences(
                self.adjusted, self.given, relative=self.relative, share=self.share
            ),
            *changed_sentences(self.changed, self.claim, share=self.share),
            *(
                unknown_sentences(
                    self.unknown, relative=self.relative, share=self.share, made="Flags hold"
                )
                or missing_sentences(self.rows)
            ),
            *self._unreachable_sentence(),
            *label_sentences(self.labels, self.provenance.excluded.get(CHEAP_ONLY, 0)),
            self.provenance.left_out(),
        )

    @names_extra
    def plot(self) -> Chart:
        """A lattice of the groups, flagged ones filled in; of many, the furthest in a row."""
        if len(self.rows) > MOST_BOXES:
            return self._plot_ranked()
        return lattice(
            self.rows,
            said=self.say,
            title=f"{self.metric.capitalize()} {self.null} {self.against}",
            subtitle=self.guarantee,
        )

    def _plot_ranked(self) -> Chart:
        even = float(self.relative)
        lines = [
            ForestLine(
                group=row.group,
                n=row.n,
                centre=row.disparity,
                lower=row.disparity,
                upper=row.disparity,
                colour=(ABOVE if row.disparity > even else BELOW) if row.flagged else NEITHER,
            )
            for row in self.rows
            if row.disparity is not None
        ]
        return forest(
            lines,
            title=f"{self.metric.capitalize()} {self.null} {self.against}",
            subtitle=self.guarantee,
            axis=disparity_axis(self.relative, self.share),
            reference=[even],
            loud={row.group for row in self.flagged},
        )

    def drawn(self) -> str:
        """The groups furthest from their target, flagged ones first, as plain HTML and SVG."""
        dots = [
            Dot(
                group=row.group,
                n=row.n,
                value=row.disparity,
                order=telling_order(row, self.relative),
                loud=row.flagged,
                settled=row.flagged,
            )
            for row in self.rows
            if row.disparity is not None
        ]
        return ranked(
            dots,
            even=float(self.relative),
            limits=[],
            relative=self.relative,
            said=self.say,
            words=("flagged", "", "not flagged"),
        )

    @property
    def sureness(self) -> float:
        """Where its headline stands among those of other flags, the surest first."""
        return telling_order(self.flagged[0], self.relative)[1] if self.flagged else 0.0

    def headline(self) -> str:
        """The group flagged on the strongest evidence."""
        found = self.flagged
        if not found:
            return ""
        first = found[0]
        far = apart(first.disparity or 0.0, self.relative, self.share)
        more = len(found) - 1
        others = f"; {plural(more, 'other')} {be(more)} flagged too" if more else ""
        return (
            f"{first.group}: {self.metric} {self.value_text(first.value)}, {far} {self.against} "
            f"(n = {first.n:,}); flagged, adjusted p {p_text(first.p_adjusted)}{others}."
        )

    def say(self, value: float) -> str:
        """A disparity in words; a ratio as so many times."""
        return f"{value:.2f} times" if self.relative else difference(value, self.share)

    def _one(self, row: FlaggedGroup) -> str:
        # a change against none is its own disparity
        said = dict.fromkeys((self.value_text(row.value), self.say(row.disparity or 0.0)))
        return (
            f"{row.group}: {', '.join(said)} (n = {row.n:,}, adjusted p {p_text(row.p_adjusted)})."
        )

    def _unreachable_sentence(self) -> list[str]:
        # of its own target there is nothing to know
        silent = [row for row in self.unreachable if row.note != SELF_TARGET]
        if not silent:
            return []
        # Without this, silence about groups that no outcome could flag would pass for a result.
        most = max(row.n for row in silent)
        return [
            f"{plural(len(silent), self.noun)} of at most {plural(most, 'row')} could not be "
            "tested, or not have been flagged whatever the outcome; nothing is known about them."
        ]


# --- What `certify` says when only a yes or no is asked of each group ---


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedGroup(ComparedGroup):
    """One group, certified or not."""

    certified: bool
    """Whether the claim is certified for this group."""
    p_adjusted: float | None
    """Smallest error rate at which the group would be certified; None if it could not be."""
    note: str = ""
    """Why no certificate was possible."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CertificateList(ComparedFinding[CertifiedGroup], ByGroup[CertifiedGroup]):
    """Certificates: with the stated confidence, none of them is false.

    >>> import equipoise as eq
    >>> claim = eq.gap("accuracy", across="race")
    >>> eq.certify(eq.datasets.compas(), claim, method="certificates", tolerance=0.1, rng=7)
    <CertificateList: accuracy against everyone; 6 rows>
    """

    kind = "certificates"
    columns = (*COMPARED, "certified", "p_adjusted", "note")

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
        return Verdict.KEPT if every and self.rows else Verdict.UNDETERMINED

    @names_extra
    def plot(self, most: int = 40) -> Chart:
        """Estimates of the largest groups, certified ones told apart by colour."""
        lines = [
            ForestLine(
                group=row.group,
                n=row.n,
                centre=row.disparity,
                lower=row.disparity,
                upper=row.disparity,
                colour=str(Verdict.KEPT if row.certified else Verdict.UNDETERMINED),
            )
            for row in self.rows
            if row.disparity is not None
        ]
        rules = [self.tolerance] if self.side != "both" else [-self.tolerance, self.tolerance]
        return forest(
            lines,
            title=f"Certified: disparity in {self.metric} {self.claimed}",
            subtitle=self.guarantee,
            axis=ForestAxis("disparity"),
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
