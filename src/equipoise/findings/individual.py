"""What `individual` says: how much worse a model could do on comparable people, and on whom."""

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from equipoise._validate import known_name, names_extra
from equipoise.findings.charts.others import heat_map, trade_off
from equipoise.findings.finding import AboutEveryone, Chart, FindingOf
from equipoise.findings.words import Verdict, amount, be, level_text, plural, unsigned

# --- What `individual` says: how much worse a model could do on comparable people, and on whom


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedPeople:
    """People of one kind whom the model would treat worse as people of another kind."""

    group: str
    """The people in words."""
    to: str
    """As whom they would be treated worse, in words."""
    where: Mapping[str, Any]
    """Their features."""
    where_to: Mapping[str, Any]
    """The features of those they are compared with."""
    label: Any
    """What really happened to them: 0 or 1, or a value of the label where it has others."""
    n: int
    """Rows of this kind of people, moved or not."""
    people: float
    """How many of them are moved; a fraction if the budget pays for part of one."""
    loss: float
    """The model's loss on them."""
    loss_to: float
    """The model's loss on those they are compared with."""
    gain: float
    """What they add to the audit value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedCell:
    """One kind of people: features and label."""

    group: str
    """The features in words."""
    where: Mapping[str, Any]
    """The features as data."""
    label: Any
    """The label: 0 or 1, or one of its values where it has others."""
    n: int
    """Rows; zero for people nobody has seen, on whom the model was asked."""
    after: float
    """Rows there would be in the worst comparable population."""
    loss: float
    """The model's loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRobustness:
    """What happens to the value in the table if every cost is wrong by at most some amount d."""

    rise: float
    """The value is at most this times d higher."""
    fall: float
    """It is at most this times d lower, for d up to the budget."""
    steepness: float | None
    """Largest difference of losses per unit of distance between comparable people, the L of
    Proposition 2.2; None where people at no distance are treated differently."""
    published: float | None
    """L over the root of the budget, by which the proposition bounds both; never the smaller."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Individual(FindingOf[MovedPeople]):
    """How much worse the model could do on comparable people, with its uncertainty.

    >>> import equipoise as eq
    >>> found = eq.individual(eq.datasets.compas(), vary="sex", features=["sex", "age"], rng=7)
    >>> found.value > 0
    True
    """

    kind = "individual"
    columns = ("group", "label", "to", "n", "people", "loss", "loss_to", "gain")

    value: float
    """The audit value: rise of the average loss in the worst comparable population."""
    lower: float | None
    """Lower end of the two-sided interval; None if there is no answer."""
    upper: float | None
    """Upper end of the same."""
    lower_bound: float | None
    """One-sided lower confidence bound."""
    upper_bound: float | None
    """One-sided upper confidence bound."""
    ceiling: float
    """The largest value that any population of these people could have."""
    risk: float
    """Average loss of the people as they are."""
    loss: str
    """The loss in words."""
    share: bool
    """Whether the loss is 0 or 1, so that averages read as percentages."""
    vary: tuple[str, ...]
    """The features in which comparable people may differ."""
    features: tuple[str, ...]
    """All features, those included."""
    compared: str
    """Who is compared with whom, in words."""
    budget: float
    """Largest average cost of moving; may be infinite."""
    spent: float
    """Average cost of the moves found."""
    level: float
    """Confidence level of the interval, and of each bound."""
    tolerance: float | None
    """The audit value that is tolerated, if one was named."""
    p_above: float | None
    """p-value of "the value is at most the tolerance": small means shown unfair."""
    p_below: float | None
    """p-value of "the value is at least the tolerance": small means shown fair. None as well where
    comparable people were neither seen nor asked about."""
    verdict: Verdict | None
    """Whether it is shown that the value is at most the tolerance; None without a tolerance."""
    method: str
    """How the sampling error was found."""
    reason: str
    """Why this method, or why there is no answer."""
    outcome: str
    """What kind of answer there is."""
    price: float | None
    """What one more unit of budget would gain; None if it has no limit."""
    unique: bool
    """Whether the dual price is unique."""
    resamples: int
    """Draws behind the interval; 0 for closed forms."""
    observed_only: bool
    """Whether people were compared only with people in the table, as without a model."""
    mixed: int
    """Cells in which the loss differs between rows, so that its mean stands for it."""
    isolated: int
    """Cells that are comparable with no other."""
    gaps: int
    """Cells comparable with a combination of features that is neither in the table nor was the
    model asked about it; where there are any, no tolerance is shown to be kept."""
    cells: tuple[AuditedCell, ...]
    """Every kind of people, in the order in which a cost matrix runs."""
    metric: str = ""
    """How a fair metric is known, in words; empty where costs do not come from one."""
    left_out: float = 0.0
    """The most by which moves to people too far away to be listed could raise the value."""
    robustness: CostRobustness | None = None
    """What errors of the costs can do to the value; None at budget 0 or without a limit."""
    weighted: bool = False
    """Whether rows count by their sampling weights."""
    clusters: int | None = None
    """Number of clusters audited; None where rows are independent."""

    def sentences(self) -> tuple[str, ...]:
        """The value, the verdict, who is concerned, and what the answer rests on."""
        source = self.provenance
        return (
            self._value_sentence(),
            self._interval_sentence(),
            *self._verdict_sentence(),
            *(self._move_sentence(row) for row in self.rows[:3]),
            self._scope_sentence(),
            *self._mixed_sentence(),
            *self._cost_sentences(),
            *self._sample_sentence(),
            source.based_on(),
            source.left_out(),
        )

    @names_extra
    def plot(self) -> Chart:
        """How many people leave and arrive, by varied features and each other feature."""
        return heat_map(
            self.changes(),
            title=f"Who would be treated worse: people moved along {', '.join(self.vary)}",
            subtitle="change in the number of people between the table and the worst comparable "
            "population",
        )

    def changes(self) -> list[dict[str, Any]]:
        """The heat map as records: the net change in people by label, varied levels and others."""
        others = [name for name in self.features if name not in self.vary] or [""]
        change: dict[tuple[int, str, str], float] = defaultdict(float)
        # Feature by feature, so that the levels of one stand side by side.
        for name, cell in itertools.product(others, self.cells):
            row = ", ".join(_level(varied, cell.where[varied]) for varied in self.vary)
            column = f"{name}: {_level(name, cell.where[name])}" if name else "everyone"
            change[cell.label, column, row] += cell.after - cell.n
        return [
            # Those who leave and arrive cancel but for rounding, which a chart would colour.
            {"panel": f"label {a}", "column": b, "row": c, "change": round(change[a, b, c], 9)}
            for a, b, c in sorted(change, key=lambda key: key[0])
        ]

    def moved_by(self, *features: str) -> tuple[str, ...]:
        """Who would be treated worse, in sentences that tell people apart by some features only.

        Parameters
        ----------
        features
            Features by which to describe people, in that order; the varied ones by default.
        """
        for name in features:
            known_name("Feature", name, self.features)
        by = features or self.vary
        added: dict[tuple[str, str, int, float, float], float] = defaultdict(float)
        for row in self.rows:
            changed = [name for name in self.features if row.where[name] != row.where_to[name]]
            ends = (
                _words(row.where, by),
                _words(row.where_to, [n for n in self.vary if n in changed]),
            )
            added[*ends, row.label, row.loss, row.loss_to] += row.people
        ordered = sorted(added.items(), key=lambda item: -item[1])
        return tuple(self._said(people, *kind) for kind, people in ordered)

    def _rise(self, value: float | None) -> str:
        return "not available" if value is None else unsigned(value, self.share)

    def _value_sentence(self) -> str:
        if self.value == 0:
            return (
                f"Comparing {self.compared}, nobody in the table could be treated worse: the audit "
                f"value of the {self.loss} is 0."
            )
        return (
            f"Comparing {self.compared}, the {self.loss} could be {self._rise(self.value)} higher: "
            f"{amount(self.risk + self.value, self.share)} instead of "
            f"{amount(self.risk, self.share)}."
        )

    def _interval_sentence(self) -> str:
        if self.lower is None or self.upper is None:
            return f"There is no interval: {self.reason}."
        if self.lower == self.upper:
            return f"The value is exact, without sampling error: {self.reason}."
        return (
            f"With {level_text(self.level)} confidence it lies between {self._rise(self.lower)} "
            f"and {self._rise(self.upper)} ({self.method}: {self.reason})."
        )

    def _verdict_sentence(self) -> list[str]:
        if self.tolerance is None:
            return []
        limit = self._rise(self.tolerance)
        if self.verdict is Verdict.KEPT:
            return [f"It is shown to be at most {limit}, the tolerance."]
        if self.verdict is Verdict.EXCEEDED:
            return [f"It is shown to exceed {limit}, the tolerance."]
        if self.gaps and self.upper_bound is not None and self.upper_bound <= self.tolerance:
            return [
                f"Among people in the table it is shown to be at most {limit}, the tolerance; but "
                f"{plural(self.gaps, 'kind')} of people could be compared with combinations of "
                "features that are not in it, on whom the model could do worse, so whether the "
                "tolerance is kept is not determined."
            ]
        return [f"Whether it exceeds {limit}, the tolerance, is not determined."]

    def _move_sentence(self, row: MovedPeople) -> str:
        return self._said(row.people, row.group, row.to, row.label, row.loss, row.loss_to)

    def _said(
        self, people: float, group: str, to: str, label: int, loss: float, loss_to: float
    ) -> str:
        # Moves are solved in floating point, in which 42 people may come out as 41.9999999.
        number = f"{people:,.0f}" if abs(people - round(people)) < 1e-6 else f"{people:,.1f}"
        who = f"{number} {'person' if number == '1' else 'people'} ({group}) with label {label}"
        if self.share and (loss, loss_to) == (0.0, 1.0):
            otherwise = f"predicted {1 - label}" if label in (0, 1) else "predicted otherwise"
            return (
                f"{who} {'is' if number == '1' else 'are'} predicted {label}, and would be "
                f"{otherwise} as {to}."
            )
        return f"{who} would have a loss of {loss_to:.3g} instead of {loss:.3g} as {to}."

    def _scope_sentence(self) -> str:
        alone = (
            f" {plural(self.isolated, 'kind')} of people {be(self.isolated)} comparable with no "
            "other."
            if self.isolated
            else ""
        )
        kinds = plural(len(self.cells), "kind")
        if self.observed_only:
            others = (
                f"for {self.gaps:,} of these, some comparable combinations are not in it, and a "
                "model could do worse on them"
                if self.gaps
                else "every comparable combination is in it"
            )
            return (
                f"Only people in the table were compared ({kinds} of people); {others}. The loss "
                f"is taken to depend on the features and the label alone.{alone}"
            )
        unseen = sum(cell.n == 0 for cell in self.cells)
        return (
            f"The model was asked about {kinds} of people, {unseen:,} of which are not in the "
            f"table.{alone}"
        )

    def _mixed_sentence(self) -> list[str]:
        if not self.mixed:
            return []
        return [
            f"In {plural(self.mixed, 'kind')} of people the loss differs from row to row, so the "
            "model knows more than the features named; their mean loss stands for it."
        ]

    def _cost_sentences(self) -> list[str]:
        said = []
        if self.metric:
            said.append(f"The fair metric: {self.metric}.")
        if self.left_out > 0:
            said.append(
                "Moves to people far away were left out; they could raise the value by at most "
                f"{self._rise(self.left_out)}, which the upper bounds allow for."
            )
        if self.robustness is not None and self.value > 0:
            wrong = self.budget / 10
            low = max(0.0, self.value - self.robustness.fall * wrong)
            high = min(self.ceiling, self.value + self.robustness.rise * wrong)
            said.append(
                f"Were every cost wrong by up to a tenth of the budget ({wrong:.3g}), the value in "
                f"the table would lie between {self._rise(low)} and {self._rise(high)}."
            )
        return said

    def _sample_sentence(self) -> list[str]:
        if self.clusters is not None:
            by = ", and rows count by their weights" if self.weighted else ""
            return [f"The {self.clusters:,} clusters are what is independent{by}."]
        return ["Rows count by their weights."] if self.weighted else []


def _words(where: Mapping[str, object], names: Sequence[str]) -> str:
    return (
        ", ".join(
            _level(name, where[name])
            if isinstance(where[name], str)
            else f"{name} {_level(name, where[name])}"
            for name in names
        )
        or "others"
    )


def _level(name: str, value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{end} {number:g}" for end, number in value.items())
    return f"{name} missing" if value is None else str(value)


# --- What `select_fair` says: which model errs least among those that treat people alike ---

Bound = Literal["lower", "upper"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedModel(AboutEveryone):
    """One model: its error, its audit value, and whether it may be chosen."""

    model: str
    """Its name."""
    error: float
    """Its average loss."""
    value: float
    """Its audit value: how much higher the loss could be on comparable people."""
    lower: float | None
    """One-sided lower confidence bound for the audit value; None if there is no answer."""
    upper: float | None
    """One-sided upper confidence bound."""
    verdict: Verdict
    """Whether it is shown that the audit value is at most the tolerance."""
    candidate: bool
    """Whether the model meets the constraint."""
    chosen: bool
    """Whether it is the one chosen."""
    method: str
    """How the sampling error was found."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FairChoice(FindingOf[AuditedModel]):
    """The model chosen under a constraint on the audit value, and all it was chosen from.

    >>> import equipoise as eq
    >>> models = {"priors": lambda frame: frame["priors"] == "More than 3"}
    >>> eq.select_fair(eq.datasets.compas(), models, vary="sex", tolerance=0.1, rng=7).chosen
    'priors'
    """

    kind = "fair choice"
    columns = ("model", "error", "value", "lower", "upper", "verdict", "candidate", "chosen")

    chosen: str | None
    """The model chosen; None if no model meets the constraint."""
    closest: str
    """The model with the smallest bound, of use when there is no choice."""
    tolerance: float
    """The audit value that is tolerated."""
    bound: Bound
    """Which bound must not exceed it."""
    level: float
    """Confidence level: of each bound for ``lower``, of all of them together for ``upper``."""
    loss: str
    """The loss in words."""
    share: bool
    """Whether the loss is 0 or 1, so that averages read as percentages."""
    vary: tuple[str, ...]
    """The features in which comparable people may differ."""
    features: tuple[str, ...]
    """All features, those included."""
    compared: str
    """Who is compared with whom, in words."""

    def row(self, model: str) -> AuditedModel | None:
        """The row of a model."""
        return next((row for row in self.rows if row.model == model), None)

    def sentences(self) -> tuple[str, ...]:
        """The choice, what it costs, and what the constraint means."""
        source = self.provenance
        return (
            self._choice_sentence(),
            *self._cost_sentence(),
            self._constraint_sentence(),
            "Models were chosen and judged on the same rows, which flatters the error of the one "
            "chosen; judge it again on rows of its own.",
            source.based_on(),
            source.left_out(),
        )

    @names_extra
    def plot(self) -> Chart:
        """Error, audit value and its bounds for each model in the order given."""
        series = (
            (self.loss, "error"),
            ("audit value", "value"),
            ("lower bound", "lower"),
            ("upper bound", "upper"),
        )
        records = [
            {
                "model": row.model,
                "series": name,
                "value": getattr(row, field),
                "chosen": "chosen" if row.chosen else "",
            }
            for name, field in series
            for row in self.rows
        ]
        return trade_off(
            records,
            self.tolerance,
            title=f"{self.loss.capitalize()} and audit value of {plural(len(self), 'model')}",
            subtitle=f"dashed across: the tolerance; large: chosen ({self.chosen or 'none'})",
        )

    def _choice_sentence(self) -> str:
        row = None if self.chosen is None else self.row(self.chosen)
        limit = unsigned(self.tolerance, self.share)
        if row is None:
            near = f"{self.closest} comes closest"
            return f"None of {plural(len(self), 'model')} meets the tolerance of {limit}; {near}."
        passed = sum(r.candidate for r in self.rows)
        return (
            f"{row.model} is chosen: of {plural(passed, 'model')} that {_meet(passed)} the "
            f"tolerance of {limit} it has the lowest {self.loss}, {amount(row.error, self.share)}; "
            f"comparing {self.compared} it could be {unsigned(row.value, self.share)} higher."
        )

    def _cost_sentence(self) -> list[str]:
        # Equal errors are settled as in the choice itself, by the smaller audit value.
        best = min(self.rows, key=lambda row: (row.error, row.value))
        row = None if self.chosen is None else self.row(self.chosen)
        if row is None or best.error == row.error:
            return []
        return [
            f"Without the constraint {best.model} would be chosen, with "
            f"{amount(best.error, self.share)} and an audit value of "
            f"{unsigned(best.value, self.share)}."
        ]

    def _constraint_sentence(self) -> str:
        if self.bound == "lower":
            return (
                "A model meets the tolerance if it is not shown to exceed it "
                f"({level_text(self.level)} for each model on its own), which does not show that "
                "it keeps to it."
            )
        return (
            "A model meets the tolerance if it is shown to keep to it, with "
            f"{level_text(self.level)} confidence for all models together."
        )


def _meet(number: int) -> str:
    return "meets" if number == 1 else "meet"
