"""Empirical likelihood: means, joint tests and regions, and bounds that hold for all groups."""

from equipoise.methods.likelihood.band import Parts, band, bartlett, defined, parts_of
from equipoise.methods.likelihood.euclid import normal_critical, student_interval, student_roots
from equipoise.methods.likelihood.intervals import (
    mean_interval,
    mean_p_values,
    mean_roots,
)
from equipoise.methods.likelihood.joint import (
    JointRatio,
    independent_columns,
    joint_disjoint,
    joint_euclidean,
    joint_ratio,
    null_weights,
)
from equipoise.methods.likelihood.maxima import (
    Comparison,
    Maxima,
    affordable_draws,
    normal_maxima,
    standard_errors,
)
from equipoise.methods.likelihood.mean import (
    SMALL,
    MeanRatio,
    Segments,
    adjustment,
    mean_ratio,
    segments,
)
from equipoise.methods.likelihood.region import (
    Moments,
    Scores,
    euclidean_at,
    euclidean_ends,
    likelihood_at,
    moments_of,
    own_segments,
)
from equipoise.methods.likelihood.resampled import (
    Calibration,
    affordable,
    disjoint_draws,
    euclidean_draws,
    ratio_draws,
)
from equipoise.methods.likelihood.roots import part_roots

__all__ = [
    "SMALL",
    "Calibration",
    "Comparison",
    "JointRatio",
    "Maxima",
    "MeanRatio",
    "Moments",
    "Parts",
    "Scores",
    "Segments",
    "adjustment",
    "affordable",
    "affordable_draws",
    "band",
    "bartlett",
    "defined",
    "disjoint_draws",
    "euclidean_at",
    "euclidean_draws",
    "euclidean_ends",
    "independent_columns",
    "joint_disjoint",
    "joint_euclidean",
    "joint_ratio",
    "likelihood_at",
    "mean_interval",
    "mean_p_values",
    "mean_ratio",
    "mean_roots",
    "moments_of",
    "normal_critical",
    "normal_maxima",
    "null_weights",
    "own_segments",
    "part_roots",
    "parts_of",
    "ratio_draws",
    "segments",
    "standard_errors",
    "student_interval",
    "student_roots",
]
