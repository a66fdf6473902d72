"""equipoise: audits of black-box models for unfairness, with statistical guarantees.

>>> import equipoise as eq
>>> trail = eq.datasets.compas()
>>> claim = eq.gap(eq.false_positive_rate, across=eq.intersections("race", "sex", "age"))
>>> description = eq.describe(trail, claim)
>>> len(description)
81
"""

from equipoise import datasets
from equipoise._version import __version__
from equipoise.audits import describe
from equipoise.claims import (
    Claim,
    Groups,
    Metric,
    Target,
    binned,
    bins,
    boxes,
    complement,
    constant,
    custom,
    equalized_odds,
    from_plan,
    gap,
    intersections,
    intervals,
    leaves,
    masks,
    metric,
    multicalibration,
    overall,
    ratio,
    reference,
    thresholds,
)
from equipoise.claims.metric import (
    absolute_error,
    accuracy,
    brier,
    coverage,
    error_rate,
    false_negative_rate,
    false_positive_rate,
    log_loss,
    negative_predictive_value,
    positive_predictive_value,
    residual,
    selection_rate,
    squared_error,
    true_negative_rate,
    true_positive_rate,
)
from equipoise.errors import ClaimError, EquipoiseError, OptionError, TrailError
from equipoise.findings import Finding, Verdict
from equipoise.trail import Trail, read

__all__ = [
    "Claim",
    "ClaimError",
    "EquipoiseError",
    "Finding",
    "Groups",
    "Metric",
    "OptionError",
    "Target",
    "Trail",
    "TrailError",
    "Verdict",
    "__version__",
    "absolute_error",
    "accuracy",
    "binned",
    "bins",
    "boxes",
    "brier",
    "complement",
    "constant",
    "coverage",
    "custom",
    "datasets",
    "describe",
    "equalized_odds",
    "error_rate",
    "false_negative_rate",
    "false_positive_rate",
    "from_plan",
    "gap",
    "intersections",
    "intervals",
    "leaves",
    "log_loss",
    "masks",
    "metric",
    "multicalibration",
    "negative_predictive_value",
    "overall",
    "positive_predictive_value",
    "ratio",
    "read",
    "reference",
    "residual",
    "selection_rate",
    "squared_error",
    "thresholds",
    "true_negative_rate",
    "true_positive_rate",
]
