"""Empirical likelihood: means, joint tests and regions, and bounds that hold for all groups."""

from equipoise.methods.published.likelihood.band import (
    Against,
    Parts,
    band,
    band_parts,
    known_roots,
    part_roots,
)
from equipoise.methods.published.likelihood.intervals import (
    ResampledNull,
    affordable,
    disjoint_draws,
    euclidean_draws,
    mean_interval,
    mean_p_values,
    ratio_draws,
)
from equipoise.methods.published.likelihood.mean import (
    SMALL,
    JointRatio,
    Moments,
    Scores,
    Segments,
    adjustment,
    euclidean_at,
    euclidean_ends,
    independent_columns,
    likelihood_at,
    moments_of,
    normal_critical,
    null_weights,
    own_segments,
    segments,
    student_interval,
    student_roots,
)
