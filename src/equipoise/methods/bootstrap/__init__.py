"""Bootstrap over groups: engines, targets, simultaneous bounds, certificates and p-values.

An `Audit` holds what is resampled; everything else reads off its resamples.

>>> import numpy as np
>>> from equipoise.methods.nulls import Above
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
>>> (bootstrap_t(audit, Above(limit=0.0)).p < 0.01).tolist()
[False, True]
"""

from equipoise.methods.bootstrap.bounds import (
    Bounds,
    Side,
    critical_value,
    half_width_factors,
    simultaneous_bounds,
)
from equipoise.methods.bootstrap.certificates import Aim, Certificates, certify, combine
from equipoise.methods.bootstrap.clusters import cluster_t
from equipoise.methods.bootstrap.data import (
    CellMoments,
    ClusterData,
    InfluenceSums,
    RowData,
    Totals,
    canonical_rows,
    counted_rows,
    observed_totals,
    unweighted_moments,
)
from equipoise.methods.bootstrap.engines import (
    BinaryEngine,
    ClusterEngine,
    MomentsEngine,
    RowEngine,
)
from equipoise.methods.bootstrap.estimates import (
    GroupEstimates,
    estimate_gaps,
    estimate_ratios,
)
from equipoise.methods.bootstrap.extremes import Extremes, bound_extremes
from equipoise.methods.bootstrap.flags import (
    BootstrapPValues,
    algorithm_4,
    bootstrap_t,
    pooled_moments,
    standardized_blocks,
)
from equipoise.methods.bootstrap.intervals import IntervalCertificates, certify_intervals
from equipoise.methods.bootstrap.process import Audit
from equipoise.methods.bootstrap.quantiles import quantile
from equipoise.methods.bootstrap.scaling import Scaling, Unscaled
from equipoise.methods.bootstrap.scores import score_p_values
from equipoise.methods.bootstrap.status import Status
from equipoise.methods.bootstrap.streams import CHUNK, Engine, Progress, resampled
from equipoise.methods.bootstrap.targets import (
    Complement,
    Constant,
    Custom,
    Overall,
    Reference,
    Target,
)
from equipoise.methods.tilted import TiltSums

__all__ = [
    "CHUNK",
    "Aim",
    "Audit",
    "BinaryEngine",
    "BootstrapPValues",
    "Bounds",
    "CellMoments",
    "Certificates",
    "ClusterData",
    "ClusterEngine",
    "Complement",
    "Constant",
    "Custom",
    "Engine",
    "Extremes",
    "GroupEstimates",
    "InfluenceSums",
    "IntervalCertificates",
    "MomentsEngine",
    "Overall",
    "Progress",
    "Reference",
    "RowData",
    "RowEngine",
    "Scaling",
    "Side",
    "Status",
    "Target",
    "TiltSums",
    "Totals",
    "Unscaled",
    "algorithm_4",
    "bootstrap_t",
    "bound_extremes",
    "canonical_rows",
    "certify",
    "certify_intervals",
    "cluster_t",
    "combine",
    "counted_rows",
    "critical_value",
    "estimate_gaps",
    "estimate_ratios",
    "half_width_factors",
    "observed_totals",
    "pooled_moments",
    "quantile",
    "resampled",
    "score_p_values",
    "simultaneous_bounds",
    "standardized_blocks",
    "unweighted_moments",
]
