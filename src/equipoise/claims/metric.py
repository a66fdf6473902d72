"""Metrics: a value per row, the rows on which it counts, and the direction that harms.

To add one: give it a name, a formula for the value, a formula for the rows it counts on, which
roles must be two-valued, its range, and ``by_role=True``, which says that its names are roles. That
is all; every audit then knows it.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import narwhals as nw

from equipoise._codec import Written, from_plain, kind
from equipoise._validate import known_keywords, known_name, listing, real
from equipoise.claims.formula import Formula, parse, with_column
from equipoise.errors import ClaimError

Harm = Literal["high", "low", "both"]


class MakesMetric(Written):
    """A value from which a metric is made, and as which a plan writes it."""

    __slots__ = ()

    def metric(self) -> "Metric":
        """The metric itself."""
        raise NotImplementedError


class MakesMeasure(MakesMetric):
    """What a metric is of a group's totals, where it is no mean; see `equipoise.claims.measure`."""

    __slots__ = ()

    edges: tuple[float, ...]
    """Ends of the ranges of the score by which rows are cut."""

    @property
    def classes(self) -> bool:
        """Whether label and prediction may be of several classes."""
        raise NotImplementedError

    @property
    def graded(self) -> str | None:
        """Formula of the number whose order counts, if one does."""
        raise NotImplementedError

    def parts(self) -> "tuple[Metric, ...]":
        """The metric, and what else is summed beside it."""
        raise NotImplementedError


@kind("metric")
@dataclass(frozen=True, slots=True, kw_only=True)
class Metric(Written):
    """What is measured on each row, and on which rows.

    Built-in metrics are ready-made values such as `equipoise.false_positive_rate`; make your own
    with [`metric`][equipoise.metric].

    >>> import equipoise as eq
    >>> eq.false_positive_rate.value, eq.false_positive_rate.where
    ('prediction', 'label == 0')
    """

    name: str
    """The name it goes by in results."""
    value: str | nw.Expr
    """Formula of the row's value."""
    where: str | nw.Expr | None = None
    """Formula of the rows it counts on; None means all."""
    binary: tuple[str, ...] = ()
    """Roles that must hold two values, read as 0 and 1."""
    unit: tuple[str, ...] = ()
    """Roles that must lie between 0 and 1."""
    zero_one: bool = False
    """Whether the value is always 0 or 1."""
    low: float | None = None
    """Smallest possible value; None if unbounded."""
    high: float | None = None
    """Largest possible value; None if unbounded."""
    harm: Harm = "both"
    """Which direction is worse for those concerned."""
    clipped: bool = False
    """Whether values beyond low and high are moved to them."""
    by_role: bool = False
    """Whether its names are roles, even on a table with a column of that name."""
    values: tuple[float, ...] = ()
    """All the values it can take, where they are few: counts then say everything."""
    models: tuple[str, ...] = ()
    """Columns that hold two values, read as the prediction is."""
    change: "Change | None" = None
    """The change that it measures, if it is one."""
    measure: "MakesMeasure | None" = None
    """What it is of a group's totals, where it is no mean: an AUC, a median."""

    def __post_init__(self) -> None:
        # A plan file may build a metric as well, so the value itself checks its fields.
        if not isinstance(self.name, str) or not self.name.strip():
            raise ClaimError(f"A metric needs a name; got {self.name!r}.")
        known_name("harm", self.harm, ("high", "low", "both"))
        known = {"low": self.low, "high": self.high}
        ends = [real(name, end) for name, end in known.items() if end is not None]
        if len(ends) == 2 and not ends[0] < ends[1]:
            raise ClaimError(
                f"A metric's low must be below its high; got {ends[0]:g}, {ends[1]:g}."
            )
        object.__setattr__(self, "values", _rising(self.values))
        for text in (self.value, "1 == 1" if self.where is None else self.where):
            if not isinstance(text, str | nw.Expr):
                raise ClaimError(
                    "A metric's value and where are formulas or narwhals expressions; "
                    f"got {text!r}."
                )
        self.formulas()

    def __repr__(self) -> str:
        return f"Metric({self.name})"

    @property
    def words(self) -> str:
        """The name as it reads in a sentence."""
        return _SPOKEN.get(self.name, self.name.replace("_", " "))

    @property
    def overlapping(self) -> "Change | None":
        """The change whose two rates are each of other rows, if it is one."""
        return self.change if self.change is not None and self.change.overlapping else None

    @property
    def in_unit(self) -> bool:
        """Whether its values are certain to lie between 0 and 1."""
        # The range of a metric of your own is a promise, which the scan has yet to check.
        certain = self.measure is None and (self.clipped or isinstance(self.shorthand(), str))
        low, high = self.low, self.high
        return certain and low is not None and low >= 0 and high is not None and high <= 1

    def clip(self, low: float, high: float) -> "Metric":
        """The same metric with values outside [low, high] moved to the nearer end.

        Guarantees for averages want a bounded metric; clipping bounds one that is not.

        >>> import equipoise as eq
        >>> eq.squared_error.clip(0, 4)
        Metric(squared_error clipped to [0, 4])
        """
        low, high = real("low", low), real("high", high)
        if self.change is not None:
            raise ClaimError("Clip the metric before its change is taken: change(m.clip(…), …).")
        if self.measure is not None:
            raise ClaimError(f"{self.name!r} is no mean of rows, so that there is nothing to clip.")
        if not low < high:
            raise ClaimError(f"clip needs low below high; got {low:g} and {high:g}.")
        name = f"{self.name} clipped to [{low:g}, {high:g}]"
        # The range it had before still holds.
        low = low if self.low is None else max(low, self.low)
        high = high if self.high is None else min(high, self.high)
        if not low < high:
            raise ClaimError(f"{self.name!r} has no value in the range it is clipped to.")
        # Any other range moves 0 or 1 to somewhere between them.
        kept = self.zero_one and (low, high) == (0, 1)
        return dataclasses.replace(
            self, name=name, low=low, high=high, clipped=True, zero_one=kept, values=()
        )

    def formulas(self) -> tuple[Formula, ...]:
        """The formulas written as text."""
        return tuple(parse(text) for text in (self.value, self.where) if isinstance(text, str))

    def names(self) -> tuple[str, ...]:
        """Every role or column that its formulas mention."""
        return tuple(sorted({name for formula in self.formulas() for name in formula.names}))

    def shorthand(self) -> "str | MakesMetric | None":
        """The bare name, if it is a built-in metric; the change or measure that it is."""
        if self.change is not None:
            return self.change
        # An expression has no truth value, so it must not be compared.
        built_in = isinstance(self.value, str) and METRICS.get(self.name) == self
        return self.name if built_in else self.measure


#: Names that are no words.
_SPOKEN = {
    "auc": "AUC",
    "gini": "Gini coefficient",
    "f1": "F1",
    "macro_f1": "macro F1",
    "matthews": "Matthews correlation",
    "actual_expected": "actual over expected",
}

MetricLike = Metric | str | Mapping[str, object]
"""A metric as verbs take it: a value, the name of a built-in one, or its plain form."""


def as_metric(value: object) -> Metric:
    """A metric given as a value, by the name of a built-in one, or as plain data."""
    if isinstance(value, Mapping):
        value = from_plain(value)
    if isinstance(value, Metric):
        return value
    if isinstance(value, MakesMetric):
        return value.metric()
    if isinstance(value, str):
        return METRICS[known_name("Metric", value, METRICS, ClaimError)]
    raise ClaimError(
        f"Expected a metric such as equipoise.false_positive_rate, or its name; got {value!r}."
    )


@known_keywords
def metric(
    name: str,
    value: str | nw.Expr,
    *,
    where: str | nw.Expr | None = None,
    low: float | None = None,
    high: float | None = None,
    harm: Harm = "both",
    values: Iterable[float] = (),
) -> Metric:
    """A metric of your own: the average of ``value`` over the rows ``where`` holds.

    ``value`` and ``where`` are a column name, a formula such as ``"abs(label - score)"``, or a
    narwhals expression (which works everywhere except in a plan file). ``values`` lists all that
    it can be, if that is two or three equally spaced numbers such as -1, 0 and 1: tests and bounds
    then rest on counts.

    >>> metric("late", "days_late > 3", where="label == 1")
    Metric(late)
    """
    known = _rising(values)
    if known:
        low = known[0] if low is None else low
        high = known[-1] if high is None else high
    return Metric(name=name, value=value, where=where, low=low, high=high, harm=harm, values=known)


def _rising(values: Iterable[float]) -> tuple[float, ...]:
    """The values of a metric in order."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ClaimError(f"A metric's values are numbers such as (-1, 0, 1); got {values!r}.")
    known = tuple(sorted({real("A metric's value", value) for value in values}))
    gaps = [b - a for a, b in itertools.pairwise(known)]
    if known and (len(known) not in (2, 3) or max(gaps) - min(gaps) > 1e-9 * max(gaps)):
        raise ClaimError(
            f"A metric's values are two or three equally spaced numbers; got {list(known)}. Leave "
            "values= out for any other metric."
        )
    return known


# --- The same metric under two models: by how much it changes ---


@kind("change")
@dataclass(frozen=True, slots=True, kw_only=True)
class Change(MakesMetric):
    """A metric under two models on the same rows, as it is written in a plan.

    Made by [`change`][equipoise.change], which gives the metric itself.
    """

    of: Metric
    """The metric of which the change is asked."""
    before: str
    """Column with what the old model says."""
    after: str
    """Column with what the new model says."""
    threshold: float | None = None
    """The score from which on a model says yes, where the columns hold scores."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", as_metric(self.of))
        for name in ("before", "after"):
            column = getattr(self, name)
            if not isinstance(column, str) or not column:
                raise ClaimError(
                    f"{name} must be the name of a column with what a model says; got {column!r}."
                )
        if self.before == self.after:
            raise ClaimError(
                f"before and after are the same column, {self.before!r}; a change needs two."
            )
        if self.of.change is not None:
            raise ClaimError(f"{self.of.words} is a change already.")
        if self.of.measure is not None:
            raise ClaimError(
                f"change(…) takes metrics that are means of rows, and the {self.of.words} is none. "
                "Ask each model by itself."
            )
        if not all(isinstance(x, str | None) for x in (self.of.value, self.of.where)):
            raise ClaimError(
                f"The change of {self.of.name!r} needs its value and its rows written as formulas."
            )
        if self.threshold is not None:
            object.__setattr__(self, "threshold", real("threshold", self.threshold))
        if self.threshold is not None and self.role != "prediction":
            raise ClaimError(f"{self.of.name!r} takes scores as they are; leave out threshold=.")
        if self.overlapping and self.role in parse(str(self.of.value)).names:
            raise ClaimError(
                f"Both the value of {self.of.name!r} and the rows it counts on depend on what a "
                "model says. Write its value without it, or count on all rows."
            )

    @property
    def role(self) -> str:
        """What the columns stand for: a prediction or a score."""
        read = [name for name in ("prediction", "score") if name in self.of.names()]
        if len(read) != 1:
            which = "both" if read else "neither"
            raise ClaimError(
                f"A change is that of a metric of predictions or of scores; {self.of.name!r} reads "
                f"{which}: {listing(self.of.names())}."
            )
        return read[0]

    @property
    def overlapping(self) -> bool:
        """Whether the rows that count depend on what a model says."""
        where = self.of.where
        return isinstance(where, str) and self.role in parse(where).names

    @property
    def models(self) -> tuple[str, ...]:
        """The columns that must hold two values."""
        known = self.role == "prediction" and self.threshold is None
        return (self.before, self.after) if known and "prediction" in self.of.binary else ()

    def wheres(self) -> tuple[str, str]:
        """The rows that count under the old model, and under the new one."""
        where = str(self.of.where)
        return self._said(where, self.before), self._said(where, self.after)

    def metric(self) -> Metric:
        """What is measured on each row: the difference, or the value where either counts."""
        of = self.of
        if self.overlapping:
            value, where = str(of.value), " or ".join(f"({text})" for text in self.wheres())
            return self._made(f"change in {of.name}", value, where, of.zero_one, ())
        value = f"({self._value(self.after)}) - ({self._value(self.before)})"
        values = (-1.0, 0.0, 1.0) if of.zero_one else ()
        made = self._made(f"change in {of.name}", value, of.where, False, values)
        if of.low is None or of.high is None:
            return made
        return dataclasses.replace(made, low=of.low - of.high, high=of.high - of.low)

    def sides(self) -> tuple[Metric, Metric]:
        """The metric under either model, on the rows of which both have something to say."""
        return self._side(self.before, self.after), self._side(self.after, self.before)

    def _side(self, model: str, other: str) -> Metric:
        # zero times the other changes nothing, but counts on the same rows
        value = f"({self._value(model)}) + 0 * ({self._value(other)})"
        made = self._made(f"{self.of.name} of {model}", value, self.of.where, self.of.zero_one, ())
        return dataclasses.replace(made, change=None, low=self.of.low, high=self.of.high)

    def _value(self, column: str) -> str:
        value, low, high = self._said(str(self.of.value), column), self.of.low, self.of.high
        if not self.of.clipped:
            return value
        # formulas know no clip, but what is nearer to which end
        return f"(abs(({value}) - {low!r}) - abs(({value}) - {high!r}) + {low!r} + {high!r}) / 2"

    def _said(self, text: str, column: str) -> str:
        return with_column(text, self.role, column, self.threshold)

    def _made(
        self,
        name: str,
        value: str,
        where: str | nw.Expr | None,
        zero_one: bool,
        values: tuple[float, ...],
    ) -> Metric:
        return dataclasses.replace(
            self.of,
            name=name,
            value=value,
            where=where,
            binary=tuple(role for role in self.of.binary if role != "prediction"),
            unit=(),
            zero_one=zero_one,
            values=values,
            models=self.models,
            clipped=False,
            low=-1.0 if zero_one else None,
            high=1.0 if zero_one else None,
            change=self,
        )


@known_keywords
def change(
    metric: MetricLike, *, before: str, after: str, threshold: float | None = None
) -> Metric:
    """By how much a metric changes when one model takes the place of another, on the same rows.

    Parameters
    ----------
    metric
        A metric of predictions or of scores, or its name.
    before, after
        Columns with what the old and the new model say of each row. Predictions are read as the
        trail's prediction is (0/1, booleans, or words with ``positive=``), scores as numbers.
    threshold
        Where the columns hold scores and the metric is one of predictions: the score from which on
        the answer is yes.

    Rows without an answer of both models are left out and counted. Unless a claim says otherwise,
    its target is zero, no change. Of a metric that counts on the same rows under both models, each
    row has a difference; of one whose rows depend on the model, such as the positive predictive
    value, the two rates are compared with regard to the rows they share.

    Examples
    --------
    >>> import equipoise as eq
    >>> worse = eq.change(eq.error_rate, before="old_says", after="new_says")
    >>> eq.gap(worse, across="sex").words
    'change in error rate against 0'
    """
    return Change(of=as_metric(metric), before=before, after=after, threshold=threshold).metric()


def _rate(name: str, value: str, where: str | None, harm: Harm, *roles: str) -> Metric:
    return Metric(
        name=name,
        value=value,
        where=where,
        binary=roles,
        by_role=True,
        zero_one=True,
        low=0.0,
        high=1.0,
        harm=harm,
    )


def _loss(name: str, value: str, *, probability: bool = False, high: float | None = None) -> Metric:
    return Metric(
        name=name,
        value=value,
        binary=("label",) if probability else (),
        unit=("score",) if probability else (),
        by_role=True,
        low=0.0,
        high=high,
        harm="high",
    )


BOTH = ("label", "prediction")
# To be selected helps where a loan is given and harms where bail is denied: both directions.
selection_rate = _rate("selection_rate", "prediction", None, "both", "prediction")
# the median is that of the whole sample, which is found before rows are counted
scoring_rate = Metric(
    name="scoring_rate",
    value="score > median",
    by_role=True,
    zero_one=True,
    low=0.0,
    high=1.0,
)
false_positive_rate = _rate("false_positive_rate", "prediction", "label == 0", "high", *BOTH)
false_negative_rate = _rate("false_negative_rate", "1 - prediction", "label == 1", "high", *BOTH)
true_positive_rate = _rate("true_positive_rate", "prediction", "label == 1", "low", *BOTH)
true_negative_rate = _rate("true_negative_rate", "1 - prediction", "label == 0", "low", *BOTH)
positive_predictive_value = _rate(
    "positive_predictive_value", "label", "prediction == 1", "low", *BOTH
)
negative_predictive_value = _rate(
    "negative_predictive_value", "1 - label", "prediction == 0", "low", *BOTH
)
accuracy = _rate("accuracy", "label == prediction", None, "low", *BOTH)
error_rate = _rate("error_rate", "label != prediction", None, "high", *BOTH)
brier = _loss("brier", "(label - score) ** 2", probability=True, high=1.0)
# for labels of 0 and 1: log(score) where it happened, log(1 - score) where it did not
log_loss = _loss("log_loss", "-log(1 - abs(label - score))", probability=True)
squared_error = _loss("squared_error", "(label - score) ** 2")
absolute_error = _loss("absolute_error", "abs(label - score)")
residual = Metric(name="residual", value="label - score", by_role=True, harm="both")
coverage = Metric(
    name="coverage",
    value="low <= label and label <= high",
    by_role=True,
    zero_one=True,
    low=0.0,
    high=1.0,
    harm="low",
)
# what nothing is off by cannot be said as a share of it
relative_error = Metric(
    name="relative_error",
    value="(score - label) / label",
    where="label != 0",
    by_role=True,
    harm="both",
)

#: Every built-in metric by name.
METRICS: dict[str, Metric] = {
    made.name: made
    for made in (
        selection_rate,
        scoring_rate,
        false_positive_rate,
        false_negative_rate,
        true_positive_rate,
        true_negative_rate,
        positive_predictive_value,
        negative_predictive_value,
        accuracy,
        error_rate,
        brier,
        log_loss,
        squared_error,
        absolute_error,
        residual,
        relative_error,
        coverage,
    )
}
