"""How unequal are the groups, in one number: meta-metrics without their upward bias."""

from equipoise.methods.spread.compare import (
    Contrast,
    compare_attributes,
    compare_model_rows,
    compare_models,
    compare_moved,
    contrast_measure,
)
from equipoise.methods.spread.equality import (
    Equality,
    Inversion,
    difference_interval,
    equality_test,
    invert_path,
    max_deviation_interval,
    mean_deviation_interval,
    ratio_interval,
    spreading_path,
)
from equipoise.methods.spread.recommended import (
    Evidence,
    Outcome,
    corrected_value,
    recommended_interval,
    shrink,
    summarize_spread,
    weigh,
)
from equipoise.methods.spread.report import (
    VarianceReport,
    chi_square_test,
    published_intervals,
    report_variance,
)
from equipoise.methods.spread.sample import (
    Exclusion,
    GroupSample,
    Kinds,
    Meta,
    Pseudo,
    meta_metric,
    pseudo_values,
    row_clusters,
    row_moments,
    sample_from_groups,
    sample_from_sums,
    varies,
)
from equipoise.methods.spread.variance import (
    Draws,
    Interval,
    bootstrap_draws,
    cell_covariance,
    cochran_q,
    dersimonian_laird,
    double_corrected,
    double_factor,
    paule_mandel,
    q_profile_interval,
    restricted_likelihood,
    row_draws,
    sample_variance,
    unit_covariance,
)
