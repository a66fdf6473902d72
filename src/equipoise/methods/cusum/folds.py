"""Which rows residual models are fitted on, and which they are tested on; order is irrelevant."""

import numpy as np

from equipoise.methods.arrays import BoolArray, FloatArray, IntArray


def canonical_order(*columns: FloatArray) -> IntArray:
    """An order of the rows that depends on their values only.

    >>> canonical_order(np.array([2.0, 1.0, 1.0]), np.array([0.0, 5.0, 4.0])).tolist()
    [2, 1, 0]
    """
    return np.lexsort(columns[::-1]).astype(np.int64)


def stratified_folds(strata: FloatArray, folds: int, rng: np.random.Generator) -> IntArray:
    """The fold of each row: at random, but as equal as can be within each stratum and over all.

    >>> folds = stratified_folds(np.repeat([0.0, 1.0], 4), 2, np.random.default_rng(1))
    >>> np.bincount(folds[:4]).tolist(), np.bincount(folds[4:]).tolist()
    ([2, 2], [2, 2])
    """
    # shuffled, then sorted by stratum and dealt like cards
    shuffled = rng.permutation(len(strata))
    dealt = shuffled[np.argsort(strata[shuffled], kind="stable")]
    fold = np.empty(len(strata), dtype=np.int64)
    fold[dealt] = np.arange(len(strata)) % folds
    return fold


def split_rows(rows: int, share: float, rng: np.random.Generator) -> BoolArray:
    """True for the rows to fit on. Outcomes play no part, so the test is exact given the split.

    >>> int(split_rows(8, 0.75, np.random.default_rng(1)).sum())
    6
    """
    fitted = np.zeros(rows, dtype=bool)
    fitted[rng.permutation(rows)[: round(share * rows)]] = True
    return fitted
