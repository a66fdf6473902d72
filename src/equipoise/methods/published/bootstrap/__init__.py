"""Bootstrap over groups: engines, targets, simultaneous bounds, certificates and p-values.

An `Audit` holds what is resampled; everything else reads off its resamples.

>>> import numpy as np
>>> from equipoise.methods.hypotheses import Above
>>> from equipoise.methods.targets import Overall
>>> cells = unweighted_moments(np.array([400.0, 600.0]), np.array([100.0, 300.0]))
>>> each_cell = lambda x: x
>>> audit = Audit(
...     engine=BinaryEngine(cells),
...     groups=estimate_gaps(cells, Overall(), each_cell),
...     target=Overall(),
...     sums=each_cell,
...     resamples=200,
...     seed=np.random.SeedSequence(1),
... )
>>> run = bound_extremes(audit, Scaling())
>>> found = simultaneous_bounds(audit.groups, run, Scaling(), level=0.9, side=Side.BOTH)
>>> bool(found.upper[0] < 0 < found.lower[1])
True
>>> combine(certify(audit, Scaling(), aim=Aim.ABOVE, limit=0.0), 0.9).tolist()
[False, True]
>>> (algorithm_4(audit, Above(limit=0.0)).p < 0.01).tolist()
[False, True]
"""

from equipoise.methods.published.bootstrap.bounds import (
    Aim,
    IntervalCertificates,
    Side,
    algorithm_4,
    certify,
    certify_intervals,
    combine,
    half_width_factors,
    simultaneous_bounds,
)
from equipoise.methods.published.bootstrap.data import (
    BinaryEngine,
    CellMoments,
    ClusterData,
    ClusterEngine,
    MomentsEngine,
    RowData,
    RowEngine,
    canonical_rows,
    unweighted_moments,
)
from equipoise.methods.published.bootstrap.estimates import (
    Audit,
    Engine,
    GroupEstimates,
    Scaling,
    Unscaled,
    bound_extremes,
    estimate_gaps,
    estimate_ratios,
)
