"""A look at the rows of a metric, with columns as features."""

from collections.abc import Sequence

import numpy as np

import equipoise as eq
from equipoise.cells.rows import RowTable, chosen_features, feature_keys, one_look, pull_features
from equipoise.claims import Metric


def pulled(
    trail: eq.Trail,
    metric: Metric,
    names: Sequence[str],
    sample: int | None = None,
    seed: np.random.SeedSequence | None = None,
) -> RowTable:
    """The rows, as an audit of them alone would have them."""
    wanted = chosen_features(trail, names)
    further = feature_keys(trail, wanted)
    with one_look(trail, [], metric, further, sample=sample) as look:
        return pull_features(look, wanted, sample=sample, seed=seed)
