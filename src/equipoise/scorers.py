"""Scores for scikit-learn: how far groups are apart, fold by fold of a cross-validation.

`disparity` is a function of arrays, as `sklearn.metrics.make_scorer` takes them; `scorer` makes a
scorer that finds the groups among the columns of the features. Neither needs scikit-learn to be
installed, and both are point values: they choose between models, they do not certify one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from equipoise._validate import known_name, listing
from equipoise.audits.describe import describe
from equipoise.claims.groups import intersections
from equipoise.claims.metric import Metric, MetricLike, as_metric
from equipoise.errors import OptionError
from equipoise.findings.describe import DescribedMetrics
from equipoise.methods.numerics import AnyArray
from equipoise.trail import from_arrays
from equipoise.trail.trail import Column

__all__ = ["disparity", "scorer"]

Statistic = Literal["difference", "ratio", "worst"]
_STATISTICS = ("difference", "ratio", "worst")


class Estimator(Protocol):
    """A fitted model of scikit-learn."""

    def predict(self, x: object, /) -> AnyArray:
        """What it says of each row."""
        ...


def disparity(
    y_true: Column,
    y_pred: Column,
    *,
    sensitive_features: Column | Mapping[str, Column],
    metric: MetricLike = "selection_rate",
    statistic: Statistic = "difference",
    sample_weight: Column | None = None,
) -> float:
    """How far groups are apart in a metric, as one number.

    Parameters
    ----------
    y_true, y_pred
        What happened and what the model says: decisions, or for a metric of scores its numbers.
    sensitive_features
        The attribute, a mapping from names to several, or a data frame; crossed, they form groups.
    metric
        A metric or its name; `equipoise.auc` and the other measures too.
    statistic
        ``"difference"`` of the highest and the lowest group, ``"ratio"`` of the lowest to the
        highest, or the value of the group that is ``"worst"`` off.
    sample_weight
        Sampling weights.

    Groups in which the metric has no value take no part; NaN if fewer than two are left.

    Examples
    --------
    >>> disparity([0, 1, 1, 0], [0, 1, 0, 0], sensitive_features=["f", "f", "m", "m"])
    0.5
    """
    asked = as_metric(metric)
    known_name("statistic", statistic, _STATISTICS)
    said = {"y_score": y_pred} if _reads_score(asked) else {"y_pred": y_pred}
    trail = from_arrays(
        y_true, sensitive_features=sensitive_features, sample_weight=sample_weight, **said
    )
    found = describe(trail, metrics=[asked], across=intersections(*trail.attributes))
    return _number(found, len(trail.attributes), statistic, asked)


def _reads_score(metric: Metric) -> bool:
    return "score" in metric.names()


def _number(found: DescribedMetrics, depth: int, statistic: str, metric: Metric) -> float:
    # only whole crosses: an attribute by itself is the sum of its groups
    rows = [row for row in found.parts[0].rows if len(row.where) == depth]
    value = np.array([row.value for row in rows if row.value is not None], dtype=np.float64)
    if value.size < 2:
        return float("nan")
    low, high = float(value.min()), float(value.max())
    if statistic == "worst":
        return high if metric.harm == "high" else low
    if statistic == "difference":
        return high - low
    return low / high if high > 0 else float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupScorer:
    """A scorer of scikit-learn: called with an estimator, features and labels."""

    metric: Metric
    across: tuple[str, ...]
    statistic: Statistic
    sign: float

    def __call__(self, estimator: Estimator, x: object, y: Column) -> float:
        """The score; higher is better, as scikit-learn has it."""
        said = _scores(estimator, x) if _reads_score(self.metric) else estimator.predict(x)
        groups = {name: _column(x, name) for name in self.across}
        found = disparity(
            y, said, sensitive_features=groups, metric=self.metric, statistic=self.statistic
        )
        return self.sign * found


def scorer(
    metric: MetricLike = "selection_rate",
    *,
    across: str | Sequence[str],
    statistic: Statistic = "difference",
) -> GroupScorer:
    """A scorer for ``cross_validate(…, scoring=…)`` whose groups are columns of the features.

    A difference comes with a minus sign, as scikit-learn wants higher to be better; so does the
    worst group's value of a metric that harms when it is high. A model that should not see the
    columns is put into a pipeline that drops them.

    Examples
    --------
    >>> gap = scorer("false_positive_rate", across="sex")
    >>> gap.across
    ('sex',)
    """
    asked = as_metric(metric)
    known_name("statistic", statistic, _STATISTICS)
    names = (across,) if isinstance(across, str) else tuple(across)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise OptionError(f"across names columns of the features; got {across!r}.")
    worse = statistic == "difference" or (statistic == "worst" and asked.harm == "high")
    sign = -1.0 if worse else 1.0
    return GroupScorer(metric=asked, across=names, statistic=statistic, sign=sign)


def _scores(estimator: Estimator, x: object) -> AnyArray:
    """Probabilities of the second class, or decision values, or the predicted numbers."""
    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(x))[:, 1]
    if hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(x))
    return np.asarray(estimator.predict(x))


def _column(x: object, name: str) -> Column:
    columns = getattr(x, "columns", None)
    if columns is None or not hasattr(x, "__getitem__"):
        raise OptionError(
            f"The groups are the column {name!r} of the features, which must be a data frame; got "
            f"{type(x).__name__}."
        )
    if name not in list(columns):
        raise OptionError(f"The features have no column {name!r}; they have {listing(columns)}.")
    found: Column = x[name]
    return found
