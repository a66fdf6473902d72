"""How unequal are the groups, in one number: meta-metrics without their upward bias."""

from equipoise.methods.spread.compare import (
    Contrast,
    compare_attributes,
    compare_model_rows,
    compare_models,
    compare_moved,
    contrast_measure,
)
from equipoise.methods.spread.recommended import (
    SpreadEvidence,
    SpreadOutcome,
    shrink,
    summarize_spread,
    weigh,
)
from equipoise.methods.spread.report import VarianceReport, published_intervals, report_variance
from equipoise.methods.spread.sample import (
    Exclusion,
    GroupSample,
    Kinds,
    Meta,
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
    row_draws,
    sample_variance,
    unit_covariance,
)
