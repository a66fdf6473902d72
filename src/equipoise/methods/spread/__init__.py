"""How unequal are the groups, in one number: meta-metrics without their upward bias."""

from equipoise.methods.spread.compare import (
    Contrast,
    compare_attributes,
    compare_models,
    compare_moved,
    contrast_measure,
)
from equipoise.methods.spread.compare_rows import compare_model_rows
from equipoise.methods.spread.draws import (
    Draws,
    binomial_draws,
    bootstrap_draws,
    moment_draws,
    null_draws,
    row_draws,
)
from equipoise.methods.spread.equality import Equality, equality_test
from equipoise.methods.spread.extremes import (
    difference_interval,
    max_deviation_interval,
    ratio_interval,
)
from equipoise.methods.spread.homogeneity import HomogeneityTest, chi_square_test
from equipoise.methods.spread.inversion import Inversion, Path, invert_path, spreading_path
from equipoise.methods.spread.mean_deviation import mean_deviation_interval
from equipoise.methods.spread.meta_analysis import (
    cochran_q,
    dersimonian_laird,
    paule_mandel,
    q_profile_interval,
    restricted_likelihood,
    stable_variance,
)
from equipoise.methods.spread.metrics import Meta, meta_metric
from equipoise.methods.spread.moves import cell_covariance, unit_covariance
from equipoise.methods.spread.recommended import Evidence, recommended_interval, weigh
from equipoise.methods.spread.report import (
    VarianceReport,
    on_sd_scale,
    published_intervals,
    report_variance,
)
from equipoise.methods.spread.sample import (
    Exclusion,
    GroupSample,
    sample_from_groups,
    sample_from_sums,
    varies,
)
from equipoise.methods.spread.shrink import Shrunken, shrink
from equipoise.methods.spread.summary import (
    Outcome,
    Spread,
    corrected_value,
    summarize_spread,
)
from equipoise.methods.spread.variance import (
    Interval,
    centred_interval,
    corrected_variance,
    double_corrected,
    double_factor,
    percentile_interval,
    sample_variance,
    single_factor,
)

__all__ = [
    "Contrast",
    "Draws",
    "Equality",
    "Evidence",
    "Exclusion",
    "GroupSample",
    "HomogeneityTest",
    "Interval",
    "Inversion",
    "Meta",
    "Outcome",
    "Path",
    "Shrunken",
    "Spread",
    "VarianceReport",
    "binomial_draws",
    "bootstrap_draws",
    "cell_covariance",
    "centred_interval",
    "chi_square_test",
    "cochran_q",
    "compare_attributes",
    "compare_model_rows",
    "compare_models",
    "compare_moved",
    "contrast_measure",
    "corrected_value",
    "corrected_variance",
    "dersimonian_laird",
    "difference_interval",
    "double_corrected",
    "double_factor",
    "equality_test",
    "invert_path",
    "max_deviation_interval",
    "mean_deviation_interval",
    "meta_metric",
    "moment_draws",
    "null_draws",
    "on_sd_scale",
    "paule_mandel",
    "percentile_interval",
    "published_intervals",
    "q_profile_interval",
    "ratio_interval",
    "recommended_interval",
    "report_variance",
    "restricted_likelihood",
    "row_draws",
    "sample_from_groups",
    "sample_from_sums",
    "sample_variance",
    "shrink",
    "single_factor",
    "spreading_path",
    "stable_variance",
    "summarize_spread",
    "unit_covariance",
    "varies",
    "weigh",
]
