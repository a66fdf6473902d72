"""equipoise: audits of black-box models for unfairness, with statistical guarantees.

>>> import equipoise as eq
>>> trail = eq.datasets.compas()
>>> claim = eq.gap(eq.false_positive_rate, across=eq.intersections("race", "sex", "age"))
>>> description = eq.describe(trail, claim)
>>> len(description)
81
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from equipoise import datasets
from equipoise._version import __version__
from equipoise.audits import VERBS
from equipoise.claims import (
    Claim,
    Groups,
    Metric,
    Target,
    actual_over_expected,
    binned,
    bins,
    boxes,
    calibration_error,
    change,
    complement,
    constant,
    custom,
    each_class,
    equalized_odds,
    exposure,
    factors,
    from_plan,
    gap,
    highest,
    intersections,
    intervals,
    leaves,
    masks,
    median,
    metric,
    multicalibration,
    one_class,
    overall,
    quantile,
    ratio,
    reference,
    standardised,
    thresholds,
    tilts,
)
from equipoise.claims.measure import (
    actual_expected,
    auc,
    balanced_accuracy,
    expected_calibration_error,
    f1,
    gini,
    lift,
    macro_f1,
    macro_precision,
    macro_recall,
    matthews,
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
    relative_error,
    residual,
    scoring_rate,
    selection_rate,
    squared_error,
    true_negative_rate,
    true_positive_rate,
)
from equipoise.errors import ClaimError, EquipoiseError, OptionError, PlanError, TrailError
from equipoise.report import Report, report
from equipoise.trail import Trail, from_arrays, read

__all__ = [
    "AllRanges",
    "Alternatives",
    "Betting",
    "Bootstrap",
    "BootstrapCertificates",
    "Bounds",
    "Calibration",
    "CertificateList",
    "Certificates",
    "Claim",
    "ClaimError",
    "Comparison",
    "DescribedMetrics",
    "Description",
    "Directional",
    "EquipoiseError",
    "Euclidean",
    "Evidence",
    "FairChoice",
    "FairMetric",
    "Finding",
    "Flags",
    "Groups",
    "Guess",
    "Individual",
    "Joint",
    "JointTest",
    "Ledger",
    "Likelihood",
    "MOutOfN",
    "Metric",
    "Monitoring",
    "MonotoneShift",
    "NumericalDerivative",
    "OptionError",
    "PackResult",
    "PackTable",
    "Pivotal",
    "PlanError",
    "Power",
    "RangeCertificates",
    "Repair",
    "Report",
    "Rule",
    "Shift",
    "Summary",
    "Tallied",
    "Target",
    "Trail",
    "TrailError",
    "Verdict",
    "__version__",
    "absolute_error",
    "accuracy",
    "actual_expected",
    "actual_over_expected",
    "alternatives",
    "auc",
    "balanced_accuracy",
    "binned",
    "bins",
    "boxes",
    "brier",
    "calibration",
    "calibration_error",
    "certify",
    "change",
    "compare",
    "complement",
    "constant",
    "coverage",
    "custom",
    "datasets",
    "describe",
    "discover",
    "each_class",
    "equalized_odds",
    "error_rate",
    "expected_calibration_error",
    "exposure",
    "f1",
    "factors",
    "false_negative_rate",
    "false_positive_rate",
    "flag",
    "from_arrays",
    "from_plan",
    "gap",
    "gaussian",
    "gini",
    "guess",
    "highest",
    "individual",
    "intersections",
    "intervals",
    "joint_test",
    "kernel",
    "laplace",
    "leaves",
    "lift",
    "log_loss",
    "macro_f1",
    "macro_precision",
    "macro_recall",
    "masks",
    "matthews",
    "median",
    "merge",
    "metric",
    "monitor",
    "monotone",
    "multicalibration",
    "negative_predictive_value",
    "one_class",
    "overall",
    "pack",
    "positive_predictive_value",
    "power",
    "quantile",
    "ratio",
    "read",
    "reference",
    "relative_error",
    "repair",
    "report",
    "residual",
    "scoring_rate",
    "select_fair",
    "selection_rate",
    "shift",
    "squared_error",
    "standardised",
    "summarize",
    "tally",
    "thresholds",
    "tilts",
    "true_negative_rate",
    "true_positive_rate",
]

if TYPE_CHECKING:
    from equipoise.audits._individual import Directional, FairMetric, MOutOfN, NumericalDerivative
    from equipoise.audits._shift import gaussian, kernel, laplace, monotone
    from equipoise.audits.alternatives import alternatives
    from equipoise.audits.calibration import calibration
    from equipoise.audits.certify import certify
    from equipoise.audits.compare import compare
    from equipoise.audits.describe import describe
    from equipoise.audits.discover import discover
    from equipoise.audits.flag import flag
    from equipoise.audits.guess import Guess, guess
    from equipoise.audits.individual import individual
    from equipoise.audits.joint_test import joint_test
    from equipoise.audits.methods import (
        AllRanges,
        Betting,
        Bootstrap,
        BootstrapCertificates,
        Certificates,
        Euclidean,
        Likelihood,
        Pivotal,
    )
    from equipoise.audits.monitor import monitor
    from equipoise.audits.power import power
    from equipoise.audits.repair import repair
    from equipoise.audits.select_fair import select_fair
    from equipoise.audits.shift import shift
    from equipoise.audits.summarize import summarize
    from equipoise.cells.gather import tally
    from equipoise.cells.ledger import Ledger
    from equipoise.cells.tally import Tallied, merge
    from equipoise.findings import (
        Alternatives,
        Bounds,
        Calibration,
        CertificateList,
        Comparison,
        DescribedMetrics,
        Description,
        Evidence,
        FairChoice,
        Finding,
        Flags,
        Individual,
        Joint,
        JointTest,
        Monitoring,
        MonotoneShift,
        Power,
        RangeCertificates,
        Repair,
        Rule,
        Shift,
        Summary,
        Verdict,
    )
    from equipoise.packs import PackResult, PackTable, pack
else:
    # Where the names are that bring mathematics, findings or pages with them; each comes in when
    # it is first used, so that `certify` does not wait for what `shift` needs.
    _PLACES = {
        "audits.methods": (
            "AllRanges Betting Bootstrap BootstrapCertificates Certificates Euclidean Likelihood "
            "Pivotal"
        ),
        "audits._individual": "Directional FairMetric MOutOfN NumericalDerivative",
        "audits._shift": "gaussian kernel laplace monotone",
        "cells.gather": "tally",
        "cells.ledger": "Ledger",
        "cells.tally": "Tallied merge",
        "findings": (
            "Alternatives Bounds Calibration CertificateList Comparison DescribedMetrics "
            "Description Evidence FairChoice Finding Flags Individual Joint JointTest Monitoring "
            "MonotoneShift Power RangeCertificates Repair Rule Shift Summary Verdict"
        ),
        "packs": "PackResult PackTable pack",
        **{f"audits.{verb}": verb for verb in VERBS},
        "audits.guess": "Guess guess",
    }
    _PLACE = {name: place for place, names in _PLACES.items() for name in names.split()}

    def __getattr__(name: str) -> Any:
        if name not in _PLACE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f"{__name__}.{_PLACE[name]}"), name)
        globals()[name] = found  # asked for once
        return found


def __dir__() -> list[str]:
    return __all__
