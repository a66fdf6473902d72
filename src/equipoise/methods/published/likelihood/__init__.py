"""Empirical likelihood: means, joint tests and regions, and bounds that hold for all groups."""

from equipoise.methods.published.likelihood.band import Parts, band, bartlett, defined, parts_of
from equipoise.methods.published.likelihood.euclid import (
    normal_critical,
    student_interval,
    student_roots,
)
from equipoise.methods.published.likelihood.intervals import (
    mean_interval,
    mean_p_values,
    mean_roots,
)
from equipoise.methods.published.likelihood.joint import (
    JointRatio,
    independent_columns,
    joint_disjoint,
    joint_euclidean,
    joint_ratio,
    null_weights,
)
from equipoise.methods.published.likelihood.mean import (
    SMALL,
    MeanRatio,
    Segments,
    adjustment,
    mean_ratio,
    segments,
)
from equipoise.methods.published.likelihood.region import (
    Moments,
    Scores,
    euclidean_at,
    euclidean_ends,
    likelihood_at,
    moments_of,
    own_segments,
)
from equipoise.methods.published.likelihood.resampled import (
    Calibration,
    affordable,
    disjoint_draws,
    euclidean_draws,
    ratio_draws,
)
from equipoise.methods.published.likelihood.roots import known_roots, part_roots

__all__ = [
    "SMALL",
    "Calibration",
    "JointRatio",
    "MeanRatio",
    "Moments",
    "Parts",
    "Scores",
    "Segments",
    "adjustment",
    "affordable",
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
    "known_roots",
    "likelihood_at",
    "mean_interval",
    "mean_p_values",
    "mean_ratio",
    "mean_roots",
    "moments_of",
    "normal_critical",
    "null_weights",
    "own_segments",
    "part_roots",
    "parts_of",
    "ratio_draws",
    "segments",
    "student_interval",
    "student_roots",
]
