"""equipoise: audits of black-box models for unfairness, with statistical guarantees.

>>> import equipoise as eq
>>> trail = eq.datasets.compas()
>>> claim = eq.gap(eq.false_positive_rate, across=eq.intersections("race", "sex", "age"))
>>> description = eq.describe(trail, claim)
>>> len(description)
81
"""

# ruff: noqa: F405 (ruff does not look into `audits`; a test does)

from typing import TYPE_CHECKING, Any

from equipoise import datasets
from equipoise._version import __version__
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
    tilts,
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
from equipoise.errors import ClaimError, EquipoiseError, OptionError, PlanError, TrailError
from equipoise.findings import Evidence, Finding, Verdict
from equipoise.report import Report, report
from equipoise.trail import Trail, from_arrays, read

__all__ = [
    "AllRanges",
    "Betting",
    "Bootstrap",
    "BootstrapCertificates",
    "Certificates",
    "Claim",
    "ClaimError",
    "Directional",
    "EquipoiseError",
    "Euclidean",
    "Evidence",
    "FairMetric",
    "Finding",
    "Groups",
    "Likelihood",
    "MOutOfN",
    "Metric",
    "NumericalDerivative",
    "OptionError",
    "Pivotal",
    "PlanError",
    "Report",
    "Tallied",
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
    "calibration",
    "certify",
    "compare",
    "complement",
    "constant",
    "coverage",
    "custom",
    "datasets",
    "describe",
    "discover",
    "equalized_odds",
    "error_rate",
    "false_negative_rate",
    "false_positive_rate",
    "flag",
    "from_arrays",
    "from_plan",
    "gap",
    "gaussian",
    "individual",
    "intersections",
    "intervals",
    "joint_test",
    "kernel",
    "laplace",
    "leaves",
    "log_loss",
    "masks",
    "merge",
    "metric",
    "monotone",
    "multicalibration",
    "negative_predictive_value",
    "overall",
    "positive_predictive_value",
    "ratio",
    "read",
    "reference",
    "report",
    "residual",
    "select_fair",
    "selection_rate",
    "shift",
    "squared_error",
    "summarize",
    "tally",
    "thresholds",
    "tilts",
    "true_negative_rate",
    "true_positive_rate",
]

if TYPE_CHECKING:
    # for type checkers alone; the list of the verbs is the one in audits
    from equipoise.audits import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        # Asked only for what is not here yet: the verbs and their methods. They bring in the
        # mathematics, and with it half a second of imports, when one of them is first used.
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from equipoise import audits

        return getattr(audits, name)


def __dir__() -> list[str]:
    return __all__
