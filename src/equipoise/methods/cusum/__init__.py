"""Is a model calibrated for everyone? Score tests that look for a subgroup where it is not.

Rows have an outcome, a prediction and a tolerance. Under the null hypothesis the expected outcome
of every row lies within the tolerance of its prediction. Predicted residuals, made without the
row's own outcome, say where to look: rows are ordered by them, their scores are added up, and the
largest sum over all thresholds and all residual models is compared with what it would be at the
edge of the null hypothesis.

>>> import numpy as np
>>> rng = np.random.default_rng(1)
>>> predicted = np.full(400, 0.3)
>>> worse = np.arange(400) < 100
>>> outcome = (rng.random(400) < np.where(worse, 0.6, 0.3)).astype(float)
>>> null = bernoulli_null(outcome, predicted, tolerance=0.05)
>>> guess = violations(np.where(worse, 0.2, -0.01)[None, :], null)
>>> statistic = cusum(guess, null)
>>> result = run_test(statistic, null=null, draws=999, seed=np.random.SeedSequence(7))
>>> result.p, result.best.members.size
(0.001, 100)
"""

from equipoise.methods.cusum.statistic import (
    Best,
    Cusum,
    Null,
    Piece,
    Scale,
    bernoulli_null,
    canonical_order,
    cusum,
    fold_noise,
    pieces_of,
    sign_flip_null,
    split_rows,
    stratified_folds,
)
from equipoise.methods.cusum.testing import (
    TAILS,
    Axes,
    Binned,
    BinSets,
    Scan,
    Side,
    Tested,
    axes,
    binned,
    half_lines,
    levels,
    pair_shares,
    quantile_bins,
    recalibration_axes,
    risk_axis,
    run_test,
    scan,
    violations,
)
