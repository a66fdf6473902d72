"""What `repair` and `alternatives` say: a rule and its certificate, models beside each other."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from equipoise._codec import canonical, to_plain
from equipoise._files import read_text, write_atomically
from equipoise._validate import listing, names_extra, short
from equipoise.errors import EquipoiseError, OptionError
from equipoise.findings.bounds import Bounds, silent_sentences
from equipoise.findings.charts import ForestLine, disparity_axis, forest_pair
from equipoise.findings.charts.others import frontier
from equipoise.findings.finding import (
    AboutEveryone,
    ByGroup,
    Chart,
    ComparedFinding,
    ComparedGroup,
    DisparityFinding,
    Group,
    from_dict,
    read_back,
)
from equipoise.findings.words import (
    Side,
    Verdict,
    amount,
    difference,
    level_text,
    listed,
    percent,
    plural,
    tolerance_words,
    tolerated,
)
from equipoise.methods.repair import recalibrated

# --- A rule: what it takes to decide again, as plain data ---

How = Literal["threshold", "by_group", "recalibration"]
SCHEMA = "equipoise-rule/1"
#: A rule that tells fewer than this share anything else than all others decides next to nothing.
SOMEBODY = 0.02
#: What is said wherever thresholds differ by group.
WARNING = (
    "These thresholds differ by group. To treat people differently by a protected attribute is "
    "unlawful in some places and for some decisions, whatever it is for: in hiring in the United "
    "States, adjusting scores or cut-offs by race, colour, religion, sex or national origin is "
    "forbidden (42 U.S.C. § 2000e-2(l)). Have this checked by a lawyer before it is used; "
    "rule='threshold' is the same for everyone."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupThreshold:
    """The threshold of one group."""

    where: Mapping[str, Any]
    """The group as data: attribute → value."""
    threshold: float
    """The score from which on the answer is yes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule that makes decisions, or other scores, from scores; made by `equipoise.repair`.

    >>> rule = Rule(how="threshold", score="risk", threshold=0.4)
    >>> rule.apply([0.2, 0.4, 0.9]).tolist()
    [0, 1, 1]
    >>> Rule.from_json(rule.to_json()) == rule
    True
    """

    how: How
    """``threshold`` (one for all), ``by_group`` (one for each), or ``recalibration``."""
    score: str
    """The column of scores from which it was learnt."""
    threshold: float | None = None
    """The score from which on the answer is yes; with ``by_group``, for groups not listed."""
    attributes: tuple[str, ...] = ()
    """With ``by_group``: the attributes that tell groups apart."""
    thresholds: tuple[GroupThreshold, ...] = ()
    """With ``by_group``: the threshold of each group."""
    knots: tuple[tuple[float, float], ...] = ()
    """With ``recalibration``: points (score, new score) of a line that never falls."""

    def __post_init__(self) -> None:
        # a rule is read from files that anybody may have edited
        numbers = [one.threshold for one in self.thresholds]
        numbers += [] if self.threshold is None else [self.threshold]
        numbers += [x for knot in self.knots for x in knot]
        if not all(np.isfinite(x) for x in numbers):
            raise EquipoiseError("A rule's thresholds and knots must be finite numbers.")
        if (self.how == "recalibration") != bool(self.knots):
            raise EquipoiseError("A recalibration has knots, and no other rule has any.")
        if self.how != "recalibration" and self.threshold is None:
            raise EquipoiseError(f"A rule of the kind {self.how!r} needs a threshold.")
        if (self.how == "by_group") != bool(self.attributes):
            raise EquipoiseError("Thresholds by group need attributes, and no other rule has any.")
        for one in self.thresholds:
            if set(one.where) != set(self.attributes):
                raise EquipoiseError(
                    f"A threshold by group must name {listing(self.attributes)}; one names "
                    f"{listing(one.where)}."
                )
        x, y = ([knot[i] for knot in self.knots] for i in (0, 1))
        if any(np.diff(x) <= 0) or any(np.diff(y) < 0):
            raise EquipoiseError(
                "The knots of a recalibration must rise in the score, and not fall."
            )

    def apply(
        self,
        scores: npt.ArrayLike,
        groups: Sequence[object] | Mapping[str, Sequence[object]] | None = None,
    ) -> npt.NDArray[np.float64] | npt.NDArray[np.int64]:
        """Decisions (0 and 1), or recalibrated scores, for new scores.

        Parameters
        ----------
        scores
            One number for each row, none missing.
        groups
            With thresholds by group: the values of the attribute, or a mapping from attribute to
            values where there are several. Groups that the rule does not know have the common
            threshold. Other rules look at nobody's group and refuse it.
        """
        given = _scores(scores)
        if self.how != "by_group":
            if groups is not None:
                raise OptionError(
                    f"A rule of the kind {self.how!r} is the same for everyone; leave out groups=."
                )
            if self.how == "recalibration":
                return recalibrated(np.array(self.knots), given)
            return (given >= cast(float, self.threshold)).astype(np.int64)
        columns = self._columns(groups, len(given))
        known = {_key([one.where[a] for a in self.attributes]): one.threshold
                 for one in self.thresholds}  # fmt: skip
        cut = [known.get(_key(row), self.threshold) for row in zip(*columns, strict=True)]
        return (given >= np.array(cut, dtype=np.float64)).astype(np.int64)

    def _columns(self, groups: object, rows: int) -> list[list[object]]:
        named = listing(self.attributes)
        if groups is None:
            raise OptionError(f"This rule has thresholds by {named}; pass groups=….")
        if not isinstance(groups, Mapping):
            if len(self.attributes) > 1:
                raise OptionError(
                    f"This rule has thresholds by {named}; pass groups={{attribute: values, …}}."
                )
            groups = {self.attributes[0]: groups}
        lost = [name for name in self.attributes if name not in groups]
        if lost:
            raise OptionError(f"groups= lacks {listing(lost)}; this rule needs {named}.")
        columns = [[*np.asarray(groups[name], dtype=object)] for name in self.attributes]
        if any(len(column) != rows for column in columns):
            raise OptionError(f"groups= must have a value for each of the {rows:,} scores.")
        return columns

    @property
    def words(self) -> str:
        """The rule in one sentence."""
        if self.how == "threshold":
            return f"yes from a score of {self.threshold:.4g} on, for everyone"
        if self.how == "by_group":
            told = [
                f"{', '.join(str(v) for v in one.where.values())} {one.threshold:.4g}"
                for one in self.thresholds[:8]
            ]
            more = f" and {len(self.thresholds) - 8} more" if len(self.thresholds) > 8 else ""
            return f"yes from these scores on: {', '.join(told)}{more}; others {self.threshold:.4g}"
        return f"scores are moved along a line of {len(self.knots)} knots, the same for everyone"

    def to_dict(self) -> dict[str, object]:
        """The rule as plain data."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        fields["thresholds"] = [
            {"where": to_plain(dict(one.where)), "threshold": one.threshold}
            for one in self.thresholds
        ]
        fields["knots"] = [list(knot) for knot in self.knots]
        fields["attributes"] = list(self.attributes)
        return {"schema": SCHEMA, **fields}

    def to_json(self, indent: int | None = 1) -> str:
        """The rule as JSON text, which `Rule.from_json` reads back."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=indent)

    @classmethod
    def from_dict(cls, data: object) -> "Rule":
        """The rule that `to_dict` wrote."""
        if not isinstance(data, Mapping) or "schema" not in data:
            raise EquipoiseError(f"This is not a rule; got {short(repr(data))}.")
        if data["schema"] != SCHEMA:
            raise EquipoiseError(
                f"This rule is of the form {data['schema']!r}; this version reads {SCHEMA!r}."
            )
        return read_back(cls, {k: v for k, v in data.items() if k != "schema"}, "rule")

    @classmethod
    def from_json(cls, text: str) -> "Rule":
        """The rule that `to_json` wrote; nothing in the text is ever run."""
        try:
            data = json.loads(text)
        except (json.JSONDecodeError, RecursionError, TypeError) as error:
            raise EquipoiseError(f"This is not a rule: {error}.") from error
        return cls.from_dict(data)

    def save(self, path: str | Path) -> Path:
        """Write the rule as a JSON file."""
        return write_atomically(path, self.to_json() + "\n")

    @classmethod
    def load(cls, path: str | Path) -> "Rule":
        """Read a rule from a JSON file."""
        return cls.from_json(read_text(path, "rule"))


def _scores(scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
    try:
        given = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise OptionError(f"scores must be numbers; {short(str(error), 200)}.") from error
    if given.ndim != 1:
        raise OptionError(f"scores must be one number for each row; they have shape {given.shape}.")
    lost = int(np.isnan(given).sum())
    if lost:
        raise OptionError(f"{plural(lost, 'score')} of {len(given):,} missing; a rule needs all.")
    return given


def _key(values: Sequence[object]) -> tuple[object, ...]:
    # to Python true equals 1; in a table they are different levels
    plain = [canonical(value) for value in values]
    return tuple((isinstance(value, bool), value) for value in plain)


# --- What `repair` says ---


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairedGroup(ComparedGroup):
    """One group under the rule, on rows from which the rule was not learnt."""

    before: float | None
    """The group's metric as decided so far, on the same rows; None if that is not known."""
    disparity_before: float | None
    """Its disparity as decided so far."""
    lower: float | None
    """Lower bound on the disparity under the rule."""
    upper: float | None
    """Upper bound on the disparity under the rule."""
    verdict: Verdict | None
    """What is shown about the tolerance."""
    note: str = ""
    """Why a number is missing or weak."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedRule:
    """A candidate that was certified on the second part, or would have been the next."""

    rule: str
    """The rule in words."""
    loss: float | None
    """Its loss on the rows of learning."""
    worst: float | None
    """The largest disparity there, against what is tolerated: by how much it was beyond."""
    verdict: Verdict | None
    """What the second part shows about it; None if it was not tried there."""
    chosen: bool
    """Whether it is the one that is returned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What the rule costs, on the rows from which it was not learnt."""

    loss: str
    """What is lost, in words: the error rate, unless another loss was named."""
    compared: str
    """What the rule is compared with, in words."""
    share: bool
    """Whether it is a share, read in percentage points."""
    before: float | None
    """The loss without the rule."""
    after: float | None
    """The loss under the rule."""
    change: float | None
    """After minus before, on the same rows."""
    lower: float | None
    """Lower end of the interval of the change."""
    upper: float | None
    """Upper end of the interval of the change."""
    note: str = ""
    """Why there is no interval."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Repair(DisparityFinding[RepairedGroup], ByGroup[RepairedGroup]):
    """A rule learnt on one part of the rows, and its certificate from the other.

    >>> import equipoise as eq
    >>> trail = eq.from_arrays(
    ...     [0, 1] * 200,
    ...     y_score=[i / 400 for i in range(400)],
    ...     sensitive_features={"sex": ["f", "m", "m", "f"] * 100},
    ... )
    >>> eq.repair(trail, eq.gap("selection_rate", across="sex"), tolerance=0.2, rng=7)
    <Repair: selection rate against everyone, repaired by a threshold for everyone; 2 rows>
    """

    kind = "repair"
    columns = (
        "group", "n", "before", "value", "disparity_before", "disparity", "lower", "upper",
        "verdict", "note",
    )  # fmt: skip
    terse = ("group", "n", "before", "value", "lower", "upper", "verdict")

    rule: Rule | None
    """The rule; None where it was taken out for a page on which small groups are hidden."""
    level: float
    """Confidence of the certificate."""
    side: Side
    """Which disparities are limited."""
    tolerance: float
    """The disparity that is tolerated."""
    verdict: Verdict
    """What the rows that were kept back show of the repaired decisions."""
    learnt_on: int
    """Rows with a score from which the rule was learnt."""
    certified_on: int
    """Rows that were kept back and count, on which it is certified."""
    unit: str
    """What was dealt to the two parts at random: rows or clusters."""
    candidates: int
    """Rules that were looked at on the first part."""
    tries: int
    """Rules among which the second part could choose; its error was divided by as many."""
    within: bool
    """Whether the rule kept the tolerance, with room to spare, on the rows of learning."""
    price: Price | None
    """What the rule costs; None if nothing is known to compare with."""
    tried: tuple[TriedRule, ...]
    """The candidates that mattered."""
    yes_before: float | None
    """Share of the rows kept back that are told yes so far; None if that is not known."""
    yes_after: float | None
    """Share of them that the rule tells yes; None for a recalibration."""
    certified: Mapping[str, Any]
    """The certificate in plain form; see `certificate`."""

    @property
    def certificate(self) -> Bounds:
        """The ordinary finding of `certify` about the repaired decisions."""
        if not self.certified:
            raise EquipoiseError("The certificate was left out with the small groups of this page.")
        return cast(Bounds, from_dict(self.certified))

    def sentences(self) -> tuple[str, ...]:
        """What is shown, the rule, its price, and what it rests on."""
        return (
            self._shown(),
            *([] if self.rule is None else [f"Rule: {self.rule.words}."]),
            *self._priced(),
            *self._told_yes(),
            f"Learnt on {plural(self.learnt_on, 'row')} from {plural(self.candidates, 'candidate')}"
            f", certified on {self.certified_on:,} others"
            + (f", dealt out by {self.unit}" if self.unit != "rows" else "")
            + f"; {self._multiplicity()}.",
            *self._short(),
            *silent_sentences(((row.group, row.note) for row in self.rows), self.noun),
            *([WARNING] if self.rule is not None and self.rule.how == "by_group" else []),
            self.provenance.left_out(),
        )

    def headline(self) -> str:
        """What is shown of the repaired decisions."""
        return self._shown()

    def _shown(self) -> str:
        said = tolerance_words(self.tolerance, self.side, self.relative, self.share)
        claim = f"the {self.metric} of every {self.noun} is {said} of {self.against}"
        if self.relative:
            claim = (
                f"the {self.metric} of every {self.noun}, as a share of {self.against}, is {said}"
            )
        sure = f"({level_text(self.level)} confidence)"
        if self.verdict is Verdict.KEPT:
            return f"Under the rule {claim}: this is shown by rows it had not seen {sure}."
        if self.verdict is Verdict.EXCEEDED:
            return f"The rule is no repair: that {claim} is shown to be false under it {sure}."
        return (
            f"Undetermined: it is not shown that under the rule {claim} {sure}. This is no "
            "certificate."
        )

    def _told_yes(self) -> list[str]:
        if self.yes_after is None:
            return []
        before = "" if self.yes_before is None else f", so far {percent(self.yes_before)}"
        few = min(self.yes_after, 1 - self.yes_after) < SOMEBODY
        same = " Nearly everybody is told the same: alike, but of little use." if few else ""
        return [f"The rule says yes to {percent(self.yes_after)} of them all{before}.{same}"]

    def _multiplicity(self) -> str:
        if self.tries == 1:
            return (
                "one rule was chosen before the others were looked at, so the choice costs nothing"
            )
        each = level_text(round(1 - (1 - self.level) / self.tries, 6))
        return f"the best of {self.tries} was taken, each of them judged at {each}"

    def _short(self) -> list[str]:
        if self.within or self.verdict is Verdict.KEPT:
            return []
        return [
            "No candidate kept the tolerance with enough room on the rows of learning; the one "
            "that came nearest was taken. A wider tolerance, more rows or another kind of rule "
            "may help."
        ]

    def _priced(self) -> list[str]:
        price = self.price
        if price is None:
            return ["Its price is not known: there is no label, or nothing to compare it with."]
        before, after = (amount(x, price.share) for x in (price.before, price.after))
        both = f"{before} {price.compared}, {after} under the rule"
        if price.change is None or price.lower is None or price.upper is None:
            why = f" ({price.note})" if price.note else ""
            return [f"Price: {price.loss} {both}; how sure that is cannot be told{why}."]
        ends = f"{difference(price.lower, price.share)} to {difference(price.upper, price.share)}"
        return [
            f"Price: {price.loss} {both}: {difference(price.change, price.share)} "
            f"({ends}, {level_text(self.level)} confidence, row by row)."
        ]

    @names_extra
    def plot(self) -> Chart:
        """Every group's disparity before and under the rule, with the bounds of the certificate."""
        known = [
            row
            for row in self.rows
            if row.disparity is not None and not (row.lower is None and row.upper is None)
        ]
        series = {
            "under the rule": [
                ForestLine(group=row.group, n=row.n, centre=row.disparity or 0.0, lower=row.lower,
                     upper=row.upper, colour=str(row.verdict))
                for row in known
            ],
            "before": [
                ForestLine(group=row.group, n=row.n, centre=row.disparity_before,
                     lower=row.disparity_before, upper=row.disparity_before, colour="before")
                for row in known
                if row.disparity_before is not None
            ],
        }  # fmt: skip
        ends = tolerated(self.tolerance, self.side, self.relative)
        return forest_pair(
            {name: lines for name, lines in series.items() if lines or name != "before"},
            title=f"{self.metric.capitalize()} against {self.against}: repaired",
            subtitle=f"{level_text(self.level)} simultaneous bounds on rows not learnt from",
            axis=disparity_axis(self.relative, self.share),
            reference=[end for end in ends if end is not None],
        )


# --- What `alternatives` says ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative(AboutEveryone):
    """One model beside the others."""

    model: str
    """Its name."""
    column: str
    """The column with what it says."""
    loss: float
    """Its loss."""
    loss_lower: float | None
    """Lower end of the loss, in a box that holds for all models at once."""
    loss_upper: float | None
    """Upper end of the same."""
    excess: float
    """Its loss beyond that of the model that lost least."""
    excess_upper: float | None
    """Upper bound on how far its loss is beyond that of the best, whichever that is."""
    disparity: float
    """Its largest disparity over all groups."""
    lower: float | None
    """Lower end of the largest disparity, in the same box."""
    upper: float | None
    """Upper end of the same."""
    group: str
    """The group whose disparity is the largest."""
    change: float | None
    """Its largest disparity less that of the present model; None for that model itself."""
    change_upper: float | None
    """Upper bound on this change, which holds for all candidates at once."""
    p_loss: float | None
    """p-value of losing more than the margin beyond the best."""
    p_disparity: float | None
    """p-value of a disparity that is no smaller than that of the present model."""
    p_adjusted: float | None
    """The larger of the two, raised for the number of candidates (Holm)."""
    within: bool | None
    """Whether its loss alone is shown to be within the margin, candidates accounted for."""
    less: bool | None
    """Whether its disparity alone is shown to be smaller, candidates accounted for."""
    shown: bool
    """Whether it is shown to be within the margin and less discriminatory."""
    note: str = ""
    """What is in the way."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Alternatives(ComparedFinding[Alternative]):
    """Which models lose little and have a smaller disparity than the present one.

    >>> import equipoise as eq
    >>> trail = eq.from_arrays(
    ...     [0, 1] * 40, [1, 1, 0, 1] * 20, sensitive_features={"sex": ["f", "f", "m", "m"] * 20}
    ... )
    >>> claim = eq.gap("selection_rate", across="sex")
    >>> eq.alternatives(trail, claim, models={"truth": "label"}, rng=7)
    <Alternatives: selection rate against everyone, among 2 models; 2 rows>
    """

    kind = "alternatives"
    columns = (
        "model", "loss", "excess", "excess_upper", "disparity", "group", "change", "change_upper",
        "p_adjusted", "shown", "note",
    )  # fmt: skip
    terse = ("model", "loss", "disparity", "change", "change_upper", "p_adjusted", "shown")

    share: bool
    """Whether the metric is a share, read in percentage points."""
    loss: str
    """The loss in words."""
    loss_share: bool
    """Whether the loss is a share."""
    present: str
    """Name of the model in use."""
    margin: float
    """The loss beyond the best that is tolerated."""
    side: Side
    """Which disparities count: both, above (upper) or below (lower)."""
    level: float
    """Confidence that no model is wrongly shown, and that all boxes hold."""
    rows_compared: int
    """Rows on which all models say something."""
    groups: tuple[Group, ...]
    """The groups over which the largest disparity is taken."""

    @property
    def noun(self) -> str:
        """What a row is about."""
        return "model"

    @property
    def shown(self) -> tuple[Alternative, ...]:
        """Less discriminatory alternatives, the one with the smallest disparity first."""
        found = [row for row in self.rows if row.shown]
        return tuple(sorted(found, key=lambda row: (row.disparity, row.loss, row.model)))

    @property
    def conclusion(self) -> None:
        """None: an alternative is no violation of a limit, and none found shows nothing."""
        return None

    def ask(self, model: str) -> Alternative:
        """The row of one model."""
        for row in self.rows:
            if row.model == model:
                return row
        raise OptionError(
            f"There is no model {model!r}; there is {listing(r.model for r in self)}."
        )

    def sentences(self) -> tuple[str, ...]:
        """Which models are shown, by how much, against what, and what was left out."""
        found, now = self.shown, self.ask(self.present)
        tried = len(self.rows) - 1
        margin = difference(self.margin, self.loss_share).removeprefix("+")
        claim = (
            f"within {margin} of the least {self.loss} and with a smaller largest disparity in "
            f"{self.metric} than {self.present}"
        )
        first = (
            f"{plural(len(found), 'model')} of {tried} shown to be {claim}: "
            f"{listed([row.model for row in found[:8]])}."
            if found
            else f"None of {plural(tried, 'model')} is shown to be {claim}. That does not show "
            "that there is none."
        )
        return (
            first,
            *(self._one(row) for row in found[:5]),
            f"{self.present}: {self.loss} {amount(now.loss, self.loss_share)}, largest disparity "
            f"{self._size(now.disparity)} ({now.group}).",
            f"{self.guarantee}.",
            f"All models were compared row by row on the same {plural(self.rows_compared, 'row')}, "
            f"over {plural(len(self.groups), 'group')}.",
            self.provenance.left_out(),
        )

    def headline(self) -> str:
        """The first sentence."""
        return self.sentences()[0]

    def _one(self, row: Alternative) -> str:
        by = "" if row.change is None else f", {difference(row.change, self.share)}"
        most = (
            ""
            if row.change_upper is None or row.change_upper >= 0
            else f" (at most {difference(row.change_upper, self.share)})"
        )
        return (
            f"{row.model}: {self.loss} {amount(row.loss, self.loss_share)}, largest disparity "
            f"{self._size(row.disparity)} ({row.group}){by}{most}; adjusted p = "
            f"{row.p_adjusted:.2g}."
        )

    def _size(self, value: float) -> str:
        return percent(value).replace(" %", " points") if self.share else f"{value:.4g}"

    @names_extra
    def plot(self) -> Chart:
        """Loss against the largest disparity, a box for each model; all boxes hold at once."""
        now = self.ask(self.present)
        records = [
            {
                "model": row.model,
                "loss": row.loss,
                "disparity": row.disparity,
                "loss from": row.loss if row.loss_lower is None else row.loss_lower,
                "loss to": row.loss if row.loss_upper is None else row.loss_upper,
                "from": row.disparity if row.lower is None else row.lower,
                "to": row.disparity if row.upper is None else row.upper,
                "reading": "present"
                if row.model == self.present
                else "shown to be less discriminatory"
                if row.shown
                else "not shown",
            }
            for row in self.rows
        ]
        return frontier(
            records,
            limit=min(row.loss for row in self.rows) + self.margin,
            level=now.disparity,
            axes=(self.loss, f"largest disparity in {self.metric}"),
            title=f"{self.loss.capitalize()} against the largest disparity in {self.metric}",
            subtitle=f"Boxes hold for all models at once ({level_text(self.level)})",
        )

    def to_markdown(self) -> str:
        """The log that is kept: what was asked, every model with its numbers, what is promised."""
        heads = ("model", "column", "loss", "excess ≤", "disparity", "group", "change ≤",
                 "adjusted p", "shown")  # fmt: skip
        lines = [
            [row.model, row.column, f"{row.loss:.4f}", _cell(row.excess_upper),
             f"{row.disparity:.4f}", row.group, _cell(row.change_upper), _cell(row.p_adjusted),
             "present" if row.model == self.present else "yes" if row.shown else "no"]
            for row in self.rows
        ]  # fmt: skip
        table = [heads, ["---"] * len(heads), *lines]
        source = self.provenance
        return "\n".join(
            [
                f"# Less discriminatory alternatives: {_in_table(self.question)}",
                "",
                *(f"{_in_table(sentence)}" + "\n" for sentence in self.sentences()),
                *("| " + " | ".join(map(_in_table, line)) + " |" for line in table),
                "",
                f"Rows from {_in_table(source.source)} ({source.scanned:,} looked at), fingerprint "
                f"{source.fingerprint}, seed {source.seed}, equipoise {source.version}.",
                "",
            ]
        )


def _cell(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _in_table(text: str) -> str:
    """Names come from tables, and must not end a cell or become a tag."""
    flat = " ".join(str(text).split())
    for sign, said in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "\\|")):
        flat = flat.replace(sign, said)
    return flat
