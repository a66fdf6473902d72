"""Is the default as powerful as the published settings, which cost many times as much?

The published settings: forests of residuals with 100 trees, two widths, two depths, kernel logistic
regressions with three penalties, raw sums (also with the correction for folds, without which they
exceed their level, as `type_i` shows). Both audit the same logistic regression, which does not
know the corner, on the same samples of 1000 rows. CPU seconds are those of fitting.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from calibration_worlds import ERROR, SEED, World
from figure_2 import audited
from records import main, write

from equipoise.audits._calibration.residual_models import Candidate, as_pool, default_pool
from equipoise.worlds import interaction_risks

N, TOLERANCES = 1000, (0.05, 0.075)
METHODS = ("cusum", "cusum-published, corrected", "cusum-published")


def run(full: bool = False) -> dict[str, Any]:
    """Power and cost of both, on the same samples."""
    replicates = 10 if full else 3
    model, _ = audited("logistic")
    hits: dict[tuple[str, str, float], int] = {}
    spent = dict.fromkeys(("default", "published"), 0.0)
    for i in range(replicates):
        table = interaction_risks(N, rng=np.random.default_rng([SEED, 77, i]), score=model)
        for name, pool in (("default", None), ("published", published_pool())):
            started = time.process_time()
            world = World(table, [SEED, 77, i], pool)
            world.residuals("folds")
            spent[name] += time.process_time() - started
            for method, t in itertools.product(METHODS, TOLERANCES):
                key = (name, method, t)
                hits[key] = hits.get(key, 0) + (world.p(method, t) <= ERROR)
    rows = [
        {
            "models": name,
            "method": method,
            "tolerance": tolerance,
            "n": N,
            "replicates": replicates,
            "power": round(count / replicates, 3),
            "cpu_seconds_of_fitting": round(spent[name] / replicates, 2),
        }
        for (name, method, tolerance), count in hits.items()
    ]
    better = [
        hits["default", "cusum", t] >= hits["published", "cusum-published, corrected", t]
        for t in TOLERANCES
    ]
    result = {
        "source": "The default pool and statistic against the published ones",
        "rows": rows,
        "agrees": all(better),
    }
    return write(__file__, "pools", result, full)


def published_pool() -> list[Candidate]:
    """Forests of a hundred trees, and the kernels that both share."""
    from sklearn.ensemble import RandomForestRegressor

    grid = itertools.product((5, 10), (4, 8))
    forests = [RandomForestRegressor(100, max_features=w, max_depth=d) for w, d in grid]
    return [*as_pool(forests, True), *default_pool(11, True)[8:]]


if __name__ == "__main__":
    main("pools", run)
