"""Strong calibration: whether a model is reliable for everyone, and where it is not."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from equipoise._validate import names_extra
from equipoise.findings.charts.others import (
    calibration_curves,
    control_chart,
    importance_chart,
    stratified_curves,
)
from equipoise.findings.finding import Chart, FindingOf, Group
from equipoise.findings.words import (
    Verdict,
    amount,
    difference,
    level_text,
    percent,
    plural,
    unsigned,
)

_UNITS = {"raw": "mean over rows", "standard": "standard deviations"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedGroup(Group):
    """Predicted against observed outcomes of some rows."""

    share: float
    """Their share of the rows tested."""
    value: float
    """Mean observed outcome."""
    target: float
    """Mean score."""
    disparity: float
    """Observed minus predicted."""
    direction: str | None = None
    """``under`` or ``over`` for a part of the subgroup that was searched for; None for others."""
    shrunken: float | None = None
    """The disparity less what a search finds where there is nothing; None where none was made."""
    least: float | None = None
    """The smallest disparity compatible with these rows, all other sets that were looked at allowed
    for; None where the set was not found by a scan, or nothing is declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubgroupRule:
    """A readable approximation of the detected subgroup: one leaf of a shallow tree."""

    words: str
    """At most three conditions."""
    direction: str
    """``under`` if risk is thought under-estimated there, ``over`` if over-estimated."""
    n: int
    """Rows it holds on."""
    inside: float
    """Share of these that belong to the subgroup."""
    covers: float
    """Share of the subgroup (of this direction) that it holds on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileLine:
    """One column among the worst members and among everybody."""

    feature: str
    """The column."""
    level: str | None
    """For text, the level that is most over-represented among the worst; None for numbers."""
    worst: float
    """Mean (for text: share with that level) among the worst members."""
    everyone: float
    """The same among all rows."""
    n: int
    """How many worst members these are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPath:
    """One residual model's line in the control chart."""

    model: str
    """The residual model."""
    share: tuple[float, ...]
    """Share of the rows taken so far, the worst predicted violations first."""
    value: tuple[float, ...]
    """The sum of scores so far, scaled as the statistic is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportantColumn:
    """What the statistic owes to a column."""

    column: str
    """The column."""
    drop: float
    """How far the statistic drops when the column is permuted, or left out if nothing is learnt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """One bin of a calibration curve."""

    group: str
    """The subgroup or the rest."""
    n: int
    """Rows of the bin."""
    predicted: float
    """Their mean score."""
    observed: float
    """Their mean outcome."""
    column: str | None = None
    """The column by which rows were divided, if by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentTest:
    """One test of the portfolio, on its own."""

    name: str
    """Its name."""
    words: str
    """What it looks for."""
    p: float
    """Its p-value, no other test allowed for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassTest:
    """One class against the rest."""

    label: str
    """The class."""
    score: str
    """The column with its scores."""
    p: float
    """Its p-value, all classes allowed for."""
    verdict: Verdict
    """``exceeded`` if a violation is declared for this class."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Calibration(FindingOf[CalibratedGroup]):
    """Whether some subgroup is miscalibrated by more than the tolerance, and which one.

    >>> import equipoise as eq
    >>> import polars as pl
    >>> from equipoise.worlds import interaction_risks
    >>> table = pl.DataFrame(interaction_risks(300, rng=1)).drop("risk")
    >>> eq.calibration(table, label="y", score="score", method="platt", rng=7).method
    'platt'
    """

    kind = "calibration"
    columns = ("group", "n", "share", "target", "value", "disparity")

    tolerance: float
    """How far expected outcome and score may be apart."""
    side: str
    """Which violations were looked for: both, under or over."""
    level: float
    """Confidence level of the test."""
    verdict: Verdict
    """``exceeded`` if a violation is declared, ``undetermined`` otherwise: no number of rows shows
    calibration for everyone."""
    p: float
    """p-value of "nobody's expected outcome is further from the score than the tolerance"."""
    statistic: float
    """The largest scaled sum of scores."""
    critical: float | None
    """The value it must exceed; None if there are too few draws for this level."""
    reason: str
    """What the p-value rests on, or why it is 1."""
    method: str
    """The method's name."""
    method_words: str
    """The method in words."""
    scale: str
    """``raw`` (mean scores) or ``standard`` (standard deviations)."""
    min_prevalence: float
    """Subgroups up to this share of the rows were not looked at."""
    folds: int | None
    """Number of folds, if folds were used."""
    split: float | None
    """Share of the rows models were fitted on, if there was one split."""
    draws: int
    """Monte-Carlo draws."""
    tested: int
    """Rows on which the statistic was computed."""
    share: bool
    """Whether outcomes are 0 or 1, so that means read as risks."""
    models: tuple[str, ...]
    """The residual models."""
    model: str | None
    """The one that found the subgroup; None if none did."""
    component: str | None
    """The test of the portfolio that found the subgroup; None for other methods."""
    components: tuple[ComponentTest, ...]
    """The tests of the portfolio."""
    rules: tuple[SubgroupRule, ...]
    """The detected subgroup in words."""
    profile: tuple[ProfileLine, ...]
    """Its worst members beside everybody."""
    paths: tuple[ControlPath, ...]
    """The lines of the control chart."""
    path_critical: float | None
    """The value that these lines must exceed."""
    importance: tuple[ImportantColumn, ...]
    """What the statistic owes to each column, the most important first."""
    curves: tuple[CurvePoint, ...]
    """Calibration curves of the subgroup and the rest."""
    column_curves: tuple[CurvePoint, ...]
    """Calibration curves in strata of the columns that tell the subgroup apart best."""
    classes: tuple[ClassTest, ...]
    """The classes, where there are more than two; all else is about the one with the smallest p."""
    finest: float = 0.0
    """The smallest p-value that so many draws can give."""

    @property
    def parts(self) -> tuple[CalibratedGroup, ...]:
        """The detected subgroup, each direction apart, the worse one first."""
        return tuple(row for row in self.rows if row.direction is not None)

    @property
    def subgroup(self) -> CalibratedGroup | None:
        """The worse part of the detected subgroup; None if no sum of scores is positive."""
        return self.parts[0] if self.parts else None

    @property
    def conclusion(self) -> Verdict:
        """A declared violation is shown; none declared shows nothing."""
        return Verdict.UNDETERMINED if self.silent else Verdict.EXCEEDED

    @property
    def silent(self) -> bool:
        """Whether no violation is declared."""
        return self.verdict is not Verdict.EXCEEDED

    def sentences(self) -> tuple[str, ...]:
        """The verdict, the subgroup, what it owes to, and what the answer rests on."""
        source = self.provenance
        return (
            self._verdict_sentence(),
            *self._finest_sentence(),
            *self._class_sentences(),
            *self._subgroup_sentences(),
            *self._importance_sentence(),
            self._method_sentence(),
            f"{self.guarantee}.",
            source.based_on(),
            source.left_out(),
        )

    @names_extra
    def plot(self) -> Chart:
        """The control chart: sums of scores from the worst predicted violations on."""
        return control_chart(
            [
                {"model": path.model, "share": x, "value": y}
                for path in self.paths
                for x, y in zip(path.share, path.value, strict=True)
            ],
            self.path_critical,
            None if self.model is None else (self.model, sum(part.share for part in self.parts)),
            unit=_UNITS[self.scale],
            title=f"Control chart: is the model off by more than {self._limit()} somewhere?",
            subtitle=self._chart_words(),
        )

    def _chart_words(self) -> str:
        """What the dashed line means, and where the p-value comes from if not from these paths."""
        error = f"{1 - self.level:.2g}"
        if self.component in (None, "learnt"):
            return f"above the dashed line, p is below {error} (p = {self.p:.2g})"
        words = next(x.words for x in self.components if x.name == self.component)
        return (
            f"learnt subgroups alone: above the dashed line, p is below {error}; "
            f"p = {self.p:.2g} comes from {words}"
        )

    @names_extra
    def plot_importance(self) -> Chart:
        """How far the statistic drops when each column is permuted, or left out of a scan."""
        return importance_chart(
            _records(self.importance, "column", "drop"),
            title="What the detected subgroup owes to each column",
            subtitle="drop of the test statistic without the column",
        )

    @names_extra
    def plot_calibration(self) -> Chart:
        """Observed against predicted outcomes, in the detected subgroup and outside it."""
        return calibration_curves(
            _records(self.curves, "group", "n", "predicted", "observed"),
            self.tolerance,
            title="Predicted and observed outcomes",
            subtitle="the subgroup was chosen on these rows, which exaggerates its distance",
        )

    @names_extra
    def plot_columns(self) -> Chart:
        """Calibration curves in strata of the columns that tell the subgroup apart best."""
        return stratified_curves(
            _records(self.column_curves, "column", "group", "n", "predicted", "observed"),
            self.tolerance,
            title="Predicted and observed outcomes by the columns that matter most",
            subtitle="the dashed line is a calibrated score, the band its tolerance",
        )

    def _limit(self) -> str:
        return unsigned(self.tolerance, self.share)

    def _verdict_sentence(self) -> str:
        what = "risk" if self.share else "outcome"
        way = {"both": "off by", "upper": "under-estimated by", "lower": "over-estimated by"}
        says = f"the {what} is {way[self.side]} more than {self._limit()}"
        if self.verdict is Verdict.EXCEEDED:
            found = f"in some subgroup {says} (p = {self.p:.2g})"
            return f"The model is not reliable for everyone: {found}."
        return (
            f"It is not shown that {says} in any subgroup (p = {self.p:.2g}); nor is it shown "
            "that the model is reliable for everyone."
        )

    def _finest_sentence(self) -> list[str]:
        error = 1 - self.level
        if self.finest <= error + 1e-12:
            return []
        enough = math.ceil(self.finest * (self.draws + 1) / error - 1e-9) - 1
        return [
            f"Nothing could be shown at {level_text(self.level)} confidence: with "
            f"{plural(self.draws, 'resample')} no p-value is below {self.finest:.3g}. It takes at "
            f"least {enough:,} resamples."
        ]

    def _class_sentences(self) -> list[str]:
        if not self.classes:
            return []
        shown = [line.label for line in self.classes if line.verdict is Verdict.EXCEEDED]
        first = min(self.classes, key=lambda line: line.p).label
        said = f"Each of {len(self.classes)} classes was tested against the rest, in one family"
        found = f"a violation is declared for {', '.join(shown)}" if shown else "none is declared"
        return [f"{said}: {found}. What follows is about {first}."]

    def _subgroup_sentences(self) -> list[str]:
        """What was found, one direction at a time: where, how many, and by how much."""
        said = [self._part_sentence(part) for part in self.parts]
        return said + [self._rule_sentence(rule) for rule in self.rules[:4]]

    def _part_sentence(self, part: CalibratedGroup) -> str:
        declared = self.verdict is Verdict.EXCEEDED
        name = "detected" if declared else "most suspicious"
        what = "risk" if self.share else "outcome"
        how = (
            f"observed {amount(part.value, self.share)}, predicted "
            f"{amount(part.target, self.share)}"
        )
        # It was chosen for its distance on these very rows, so that is never told bare.
        honest = [f"{difference(part.disparity, self.share)} as seen"]
        if part.shrunken is not None:
            about = difference(part.shrunken, self.share)
            honest.append(f"about {about} when the search is allowed for")
        if part.least is not None:
            honest.append(f"at least {unsigned(abs(part.least), self.share)} at this level")
        return (
            f"{what.capitalize()} is {part.direction}-estimated in the {name} subgroup of "
            f"{plural(part.n, 'row')} ({percent(part.share)} of those tested): {how} "
            f"({'; '.join(honest)})."
        )

    def _rule_sentence(self, rule: SubgroupRule) -> str:
        if rule.inside == rule.covers == 1.0:
            return f"{rule.direction.capitalize()}-estimated where {rule.words}."
        return (
            f"Roughly, {rule.direction}-estimated where {rule.words} "
            f"({plural(rule.n, 'row')}; {percent(rule.inside, 0)} of them belong to the subgroup, "
            f"{percent(rule.covers, 0)} of this part of it is described)."
        )

    def _importance_sentence(self) -> list[str]:
        # A column whose permutation raises the statistic tells nobody apart.
        top = [line.column for line in self.importance if line.drop > 0][:3]
        return [f"It is told apart mostly by {', '.join(top)}."] if top else []

    def _method_sentence(self) -> str:
        how = "no residual model"
        if self.models:
            part = (
                f"{self.folds} folds" if self.folds else f"a split at {percent(self.split or 0, 0)}"
            )
            how = f"{plural(len(self.models), 'residual model')}, {part}"
        found = [x.words for x in self.components if x.name == self.component]
        most = f" The test that says most: {found[0]}." if found else ""
        return f"Tested by the {self.method_words} ({how}; {self.reason}).{most}"


def _records(lines: Sequence[object], *names: str) -> list[dict[str, object]]:
    """What a chart shows of each line."""
    return [{name: getattr(line, name) for name in names} for line in lines]
