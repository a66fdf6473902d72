"""Audits under shifts of the covariates: tilts from the unit ball of a kernel's function space.

`factor_kernel` writes the kernel matrix as F Fᵀ without forming it; `audit_tilts` bootstraps the
supremum of the tilt process over the ball; `closest_tilts` finds the tilt to ask about, and
`TiltSpan` answers what is asked of any.
"""

from equipoise.methods.tilts.answers import (
    LOWEST,
    Aim,
    TiltBasis,
    TiltRows,
    TiltSpan,
    mean_features,
)
from equipoise.methods.tilts.audit import (
    TOLERATED,
    Closest,
    Method,
    TiltAudit,
    audit_tilts,
    closest_tilts,
    critical_at,
    critical_table,
    critical_value,
    points_between,
    rescaled_extremes,
)
from equipoise.methods.tilts.draws import NormalTilts, RowTilts, TiltEngine, TiltMoments, TiltSample
from equipoise.methods.tilts.kernels import (
    MAX_RANK,
    TOLERANCE,
    Factor,
    Function,
    Gaussian,
    Kernel,
    Laplace,
    NotPositiveError,
    Product,
    Same,
    factor_kernel,
    features_of,
    section_sums,
)
