"""The verbs: each takes a trail and a question, and returns a finding.

One module per verb: what a caller may ask, one check of it, and the steps. `methods` and `kernels`
hold the values that options take. What stands behind a verb is in a folder with an underscore:

- `_groups`: `certify`, `flag`, `joint_test`, `discover`
- `_spread`: `summarize`, `compare`
- `_shift`, `_calibration`: the verbs of these names
- `_individual`: `individual`, `select_fair`
"""

from equipoise.audits.calibration import calibration
from equipoise.audits.certify import certify
from equipoise.audits.comparable import Directional, FairMetric, MOutOfN, NumericalDerivative
from equipoise.audits.compare import compare
from equipoise.audits.describe import describe
from equipoise.audits.discover import discover
from equipoise.audits.flag import flag
from equipoise.audits.individual import individual
from equipoise.audits.joint_test import joint_test
from equipoise.audits.kernels import gaussian, kernel, laplace, monotone
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
from equipoise.audits.select_fair import select_fair
from equipoise.audits.shift import shift
from equipoise.audits.summarize import summarize
from equipoise.cells.gather import tally
from equipoise.cells.tallied import Tallied, merge

__all__ = [
    "AllRanges",
    "Betting",
    "Bootstrap",
    "BootstrapCertificates",
    "Certificates",
    "Directional",
    "Euclidean",
    "FairMetric",
    "Likelihood",
    "MOutOfN",
    "NumericalDerivative",
    "Pivotal",
    "Tallied",
    "calibration",
    "certify",
    "compare",
    "describe",
    "discover",
    "flag",
    "gaussian",
    "individual",
    "joint_test",
    "kernel",
    "laplace",
    "merge",
    "monotone",
    "select_fair",
    "shift",
    "summarize",
    "tally",
]
