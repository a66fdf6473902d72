"""Audits under shifts of the covariates: tilts from the unit ball of a kernel's function space.

`factor_kernel` writes the kernel matrix as F Fᵀ without forming it; `audit_tilts` bootstraps the
supremum of the tilt process over the ball; `closest_tilts` finds the tilt to ask about.
"""

from equipoise.methods.tilts.audit import Method, TiltAudit, audit_tilts, critical_value
from equipoise.methods.tilts.closest import (
    PENALTIES,
    TOLERATED,
    Closest,
    closest_tilts,
    points_between,
)
from equipoise.methods.tilts.draws import (
    Deviations,
    NormalTilts,
    RowTilts,
    TiltEngine,
    deviations,
)
from equipoise.methods.tilts.factor import (
    MAX_RANK,
    TOLERANCE,
    Factor,
    NotPositiveError,
    check_positive,
    factor_kernel,
    features_of,
)
from equipoise.methods.tilts.kernels import (
    Function,
    Gaussian,
    Kernel,
    Laplace,
    Product,
    Same,
    section_sums,
)
from equipoise.methods.tilts.process import extremes, unscaled_extremes
from equipoise.methods.tilts.remainder import mean_bound, norm_bound, overlap_of
from equipoise.methods.tilts.rescaled import reach_of, rescaled_extremes
from equipoise.methods.tilts.sample import TiltMoments, TiltSample, moments_of
from equipoise.methods.tilts.scale import SLACK, ScaleGrid, make_grid, scale_of
from equipoise.methods.tilts.signed import signed_extremes

__all__ = [
    "MAX_RANK",
    "PENALTIES",
    "SLACK",
    "TOLERANCE",
    "TOLERATED",
    "Closest",
    "Deviations",
    "Factor",
    "Function",
    "Gaussian",
    "Kernel",
    "Laplace",
    "Method",
    "NormalTilts",
    "NotPositiveError",
    "Product",
    "RowTilts",
    "Same",
    "ScaleGrid",
    "TiltAudit",
    "TiltEngine",
    "TiltMoments",
    "TiltSample",
    "audit_tilts",
    "check_positive",
    "closest_tilts",
    "critical_value",
    "deviations",
    "extremes",
    "factor_kernel",
    "features_of",
    "make_grid",
    "mean_bound",
    "moments_of",
    "norm_bound",
    "overlap_of",
    "points_between",
    "reach_of",
    "rescaled_extremes",
    "scale_of",
    "section_sums",
    "signed_extremes",
    "unscaled_extremes",
]
