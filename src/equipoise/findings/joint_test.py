"""What `joint_test` says: whether all disparities could be zero at once."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from equipoise._validate import known_name, names_extra
from equipoise.errors import EquipoiseError, OptionError
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
from equipoise.findings.charts import ForestLine, disparity_axis, forest
from equipoise.findings.finding import (
    COMPARED,
    IF_ANY,
    ByGroup,
    Chart,
    ComparedFinding,
    ComparedGroup,
    Finding,
    FindingOf,
    from_dict,
)
from equipoise.findings.words import CHEAP_ONLY, Verdict, level_text, telling_order, together
from equipoise.methods.stored import Region, region_statistic

# --- What `joint_test` says: whether all disparities could be zero at once ---

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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JointTest(ComparedFinding[JointlyTested], ByGroup[JointlyTested]):
    """A test of whether every group's disparity is zero.

    >>> import equipoise as eq
    >>> eq.joint_test(eq.datasets.compas(), eq.gap("accuracy", across="race"), rng=7)
    <JointTest: accuracy against everyone; 6 rows>
    """

    kind = "joint_test"
    columns = (*COMPARED, "lower", "upper", "region_lower", "region_upper", "note")

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
    family: Literal["joint", "sidak", "bonferroni", "pointwise"]
    """What makes the intervals hold: joint (of all scores), sidak, bonferroni or pointwise."""
    at: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """The disparities tested, by group; empty if all are zero."""
    region: Region | None = dataclasses.field(default=None, repr=False)
    """What the joint region is made from, for `contains`; None if that would be too much."""
    adjusted: tuple[AdjustedGroup, ...] = dataclasses.field(default=(), metadata=IF_ANY)
    """Every group without the legitimate factors, where such are given."""
    changed: tuple[ChangedGroup, ...] = dataclasses.field(default=(), metadata=IF_ANY)
    """Where a change or pairs are asked about: every group's metric before and after."""
    share: bool = dataclasses.field(default=False, metadata=IF_ANY)
    """Whether these are shares, read as percentages."""
    unknown: tuple[UnknownGroup, ...] = dataclasses.field(default=(), metadata=IF_ANY)
    """Where the unknown are no group of their own: how many may be of each group."""
    labels: tuple[LabelledGroup, ...] = dataclasses.field(default=(), metadata=IF_ANY)
    """Where most labels are cheap: every group by its true labels, and what both are worth."""

    @property
    def verdict(self) -> Verdict | None:
        """``exceeded`` if some group is shown to differ; no rejection shows nothing."""
        return Verdict.EXCEEDED if self.rejected else None

    @property
    def conclusion(self) -> Verdict:
        """``exceeded`` or, since no rejection shows nothing, ``undetermined``."""
        return Verdict.UNDETERMINED if self.silent else Verdict.EXCEEDED

    @property
    def silent(self) -> bool:
        """Whether no group is shown to differ."""
        return not self.rejected

    @property
    def published_verdict(self) -> str:
        """The verdict in the words of the published algorithm; "certified" is its word, not ours.

        A test that does not reject has not shown that a model is fair.
        """
        # Lines 6 and 8 of Algorithm 1 of the paper on empirical likelihood.
        return f"Model {'un' if self.rejected else ''}fairness certified"

    @property
    def region_kind(self) -> str | None:
        """Whose joint region `contains` asks: likelihood or euclidean; None if none was kept.

        Rows of real-valued metrics are not kept, so their region is the Euclidean one; to ask
        empirical likelihood itself, test the values with ``joint_test(…, at=…)``.
        """
        return None if self.region is None else self.region.kind

    def contains(self, disparities: Mapping[str, float]) -> bool:
        """Whether values of some disparities lie in the joint confidence region.

        Values are given by the group's label. Groups left out are free: the answer is whether some
        point of the region has these values.
        """
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
        try:
            return region_statistic(self.region, named) <= self.critical
        except ValueError as error:
            raise EquipoiseError(f"{error}.") from error

    def sentences(self) -> tuple[str, ...]:
        """The verdict, the test, the intervals, and what was left out."""
        if self.method.get("kind") == "pivotal":
            return (
                f"{self._said()} ({level_text(self.level)} confidence).",
                f"Largest score {self.statistic:.2f}, critical {self.critical:.2f}, "
                f"p = {self.p:.3g}, over {self.tested} groups.",
                *self._interval_sentences(),
                *adjusted_sentences(
                    self.adjusted,
                    self.given,
                    relative=self.claim.get("kind") == "ratio",
                    share=self.share,
                ),
                *changed_sentences(self.changed, self.claim, share=self.share),
                *(
                    unknown_sentences(
                        self.unknown, relative=self.claim.get("kind") == "ratio", share=self.share
                    )
                    or missing_sentences(self.rows)
                ),
                *label_sentences(self.labels, self.provenance.excluded.get(CHEAP_ONLY, 0)),
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

    @names_extra
    def plot(self) -> Chart:
        """The estimated disparities with the intervals of the family."""
        lines = [
            ForestLine(
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
            axis=disparity_axis(relative=False, share=self.share),
            reference=[0.0],
            most=40,
        )


# --- What an audit of several claims says: the worst of them for each group ---


@dataclass(frozen=True, slots=True, kw_only=True)
class JointGroup:
    """One group, and the claim on which it does worst."""

    group: str
    """The group in words."""
    where: Mapping[str, Any]
    """The group as data: attribute → value, or → ends of a range."""
    metric: str
    """The metric on which the group does worst."""
    n: int
    """Rows of the group on which that metric counts."""
    value: float | None
    """The group's value of that metric."""
    disparity: float | None
    """Its disparity."""
    verdict: str
    """What is shown of the group: its worst verdict, or whether it is flagged."""
    note: str = ""
    """Why a number is missing or weak."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Joint(FindingOf[JointGroup], ByGroup[JointGroup]):
    """Several claims audited as one: the guarantee covers all of them together.

    >>> import equipoise as eq
    >>> eq.certify(eq.datasets.compas(), eq.equalized_odds(across="sex"), rng=7)
    <Joint: equalized odds; 2 rows>
    """

    kind = "joint"
    columns = ("group", "metric", "n", "value", "disparity", "verdict", "note")

    name: str
    """What the claims are together, such as equalized odds."""
    parts: Mapping[str, Any]
    """The finding of each claim in plain form, by metric."""

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics, one for each claim."""
        # The mapping has a kind among its keys, which keeps its findings in plain form.
        return tuple(name for name in self.parts if name != "kind")

    def part(self, metric: str) -> Finding:
        """The finding of one claim, with all its numbers."""
        return from_dict(self.parts[known_name("Part", metric, self.names)])

    @property
    def share(self) -> bool:
        """Whether all claims are about shares, read as percentages and points."""
        return all(getattr(self.part(name), "share", False) for name in self.names)

    @property
    def relative(self) -> bool:
        """Whether any claim is about ratios."""
        return any(getattr(self.part(name), "relative", False) for name in self.names)

    @property
    def conclusion(self) -> Verdict | None:
        """The worst conclusion of the parts; shown only if every part is."""
        said = [self.part(name).conclusion for name in self.names]
        if all(conclusion is None for conclusion in said):
            return None
        # Here silence weighs: not all is shown while one part shows nothing.
        return together(conclusion or Verdict.UNDETERMINED for conclusion in said)

    @property
    def silent(self) -> bool:
        """Whether every part can only find violations, and found none."""
        return all(self.part(name).silent for name in self.names)

    def by_evidence(self) -> list[JointGroup]:
        """The groups, violations first, then by how telling each one's worst claim is."""
        places = {}
        for name in self.names:
            part = self.part(name)
            relative = bool(getattr(part, "relative", False))
            for row in part.rows:
                places[name, row.group] = telling_order(row, relative)
        last = (True, math.inf)
        return sorted(self.rows, key=lambda row: places.get((row.metric, row.group), last))

    @names_extra
    def plot(self) -> Chart:
        """The charts of all parts, one below the other."""
        import altair as alt

        specs = [self.part(name).plot().to_dict() for name in self.names]
        # Only the whole may say how it is configured and hold the data of its parts.
        whole = {key: specs[0][key] for key in ("$schema", "config")}
        whole["datasets"] = {k: v for spec in specs for k, v in spec["datasets"].items()}
        parts = [{key: v for key, v in spec.items() if key not in whole} for spec in specs]
        # each part has the verdicts that occur in it
        own = {"scale": {"color": "independent", "shape": "independent"}}
        return alt.VConcatChart.from_dict({**whole, "vconcat": parts, "resolve": own})

    def sentences(self) -> tuple[str, ...]:
        """The joint guarantee, then what each claim shows."""
        said = [f"{self.name.capitalize()}. {self.guarantee}."]
        for name in self.names:
            said += [f"{name.capitalize()}: {sentence}" for sentence in self._of(name)]
        return tuple(said)

    def _of(self, name: str) -> tuple[str, ...]:
        part = self.part(name)
        # The part's own guarantee is at the stricter level that makes the joint one hold.
        return tuple(s for s in part.sentences() if not s.startswith(part.guarantee))
