"""How unequal are the groups, in one number: meta-metrics without their upward bias."""

from equipoise.methods.spread.compare import (
    Contrast,
    compare_attributes,
    compare_model_rows,
    compare_models,
    compare_moved,
    contrast_measure,
)
from equipoise.methods.spread.draws import (
    Draws,
    bootstrap_draws,
    cell_covariance,
    row_draws,
    unit_covariance,
)
from equipoise.methods.spread.equality import (
    Equality,
    Inversion,
    equality_test,
    invert_path,
    spreading_path,
)
from equipoise.methods.spread.extremes import (
    difference_interval,
    max_deviation_interval,
    mean_deviation_interval,
    ratio_interval,
)
from equipoise.methods.spread.pseudo import (
    Kinds,
    Pseudo,
    pseudo_values,
    row_clusters,
    row_moments,
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
    Meta,
    meta_metric,
    sample_from_groups,
    sample_from_sums,
    varies,
)
from equipoise.methods.spread.variance import (
    Interval,
    cochran_q,
    dersimonian_laird,
    double_corrected,
    double_factor,
    paule_mandel,
    q_profile_interval,
    restricted_likelihood,
    sample_variance,
)
