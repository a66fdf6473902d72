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
from equipoise._validate import known_keywords, known_name, real
from equipoise.claims.formula import Formula, parse
from equipoise.errors import ClaimError

Harm = Literal["high", "low", "both"]


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
        return self.name.replace("_", " ")

    @property
    def in_unit(self) -> bool:
        """Whether its values are certain to lie between 0 and 1."""
        # The range of a metric of your own is a promise, which the scan has yet to check.
        certain = self.clipped or self.shorthand() is not None
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

    def shorthand(self) -> str | None:
        """The bare name, if it is a built-in metric."""
        # An expression has no truth value, so it must not be compared.
        built_in = isinstance(self.value, str) and METRICS.get(self.name) == self
        return self.name if built_in else None


MetricLike = Metric | str | Mapping[str, object]
"""A metric as verbs take it: a value, the name of a built-in one, or its plain form."""


def as_metric(value: object) -> Metric:
    """A metric given as a value, by the name of a built-in one, or as plain data."""
    if isinstance(value, Mapping):
        value = from_plain(value)
    if isinstance(value, Metric):
        return value
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


_BOTH = ("label", "prediction")
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
false_positive_rate = _rate("false_positive_rate", "prediction", "label == 0", "high", *_BOTH)
false_negative_rate = _rate("false_negative_rate", "1 - prediction", "label == 1", "high", *_BOTH)
true_positive_rate = _rate("true_positive_rate", "prediction", "label == 1", "low", *_BOTH)
true_negative_rate = _rate("true_negative_rate", "1 - prediction", "label == 0", "low", *_BOTH)
positive_predictive_value = _rate(
    "positive_predictive_value", "label", "prediction == 1", "low", *_BOTH
)
negative_predictive_value = _rate(
    "negative_predictive_value", "1 - label", "prediction == 0", "low", *_BOTH
)
accuracy = _rate("accuracy", "label == prediction", None, "low", *_BOTH)
error_rate = _rate("error_rate", "label != prediction", None, "high", *_BOTH)
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
        coverage,
    )
}
