"""How means move together, against drawing whole units again and again."""

import numpy as np

from equipoise.methods.spread import cell_covariance, unit_covariance
from tests.unit.methods.spread.naive import group_sums

RNG = np.random.default_rng(7)
ROWS, CLUSTERS = 1200, 150
CLUSTER = RNG.integers(CLUSTERS, size=ROWS)
FIRST, SECOND = RNG.integers(3, size=ROWS), 3 + RNG.integers(2, size=ROWS)
WEIGHT = RNG.uniform(0.5, 2, size=ROWS)
VALUE = RNG.normal(size=ROWS) + 0.5 * FIRST + RNG.normal(size=CLUSTERS)[CLUSTER]


def _means(times: np.ndarray) -> np.ndarray:
    w = WEIGHT * times
    return np.array(
        [
            (w * VALUE)[side == g].sum() / w[side == g].sum()
            for side, groups in ((FIRST, range(3)), (SECOND, range(3, 5)))
            for g in groups
        ]
    )


def _bootstrap(units: np.ndarray, number: int) -> np.ndarray:
    rng = np.random.default_rng(8)
    draws = [
        _means(
            np.bincount(rng.integers(number, size=number), minlength=number)[units].astype(float)
        )
        for _ in range(3000)
    ]
    return np.cov(np.array(draws).T)


def _close(found: np.ndarray, naive: np.ndarray) -> None:
    scale = np.sqrt(np.outer(np.diag(naive), np.diag(naive)))
    assert np.abs((found - naive) / scale).max() < 0.12


def test_clusters_move_means_as_drawing_whole_clusters_does() -> None:
    unit, place = np.tile(CLUSTER, 2), np.concatenate([FIRST, SECOND])
    weight = np.tile(WEIGHT, 2)
    found = unit_covariance(unit, place, weight, weight * np.tile(VALUE, 2), 5)
    _close(found, _bootstrap(CLUSTER, CLUSTERS))


def test_cells_move_means_as_drawing_rows_does() -> None:
    cell = FIRST * 2 + SECOND - 3

    parts = [cell == c for c in range(6)]
    cells = group_sums([VALUE[part] for part in parts], [WEIGHT[part] for part in parts])
    at = np.arange(6)
    found = cell_covariance(cells, (at // 2, 3 + at % 2), 5)
    _close(found, _bootstrap(np.arange(ROWS), ROWS))
