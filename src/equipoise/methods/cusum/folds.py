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
    # Theorem 1 of Feng and others holds given the rows fitted on, if these say nothing of the rest.
    fitted = np.zeros(rows, dtype=bool)
    fitted[rng.permutation(rows)[: round(share * rows)]] = True
    return fitted


def fold_noise(weights: FloatArray) -> FloatArray:
    """How much of each weight is noise of the rows it was learned on: models × rows variances.

    ``weights`` are folds × models × rows: what models fitted without each fold say of every row.

    With folds every row is tested and learned from. If weights are nothing but noise, the sum of
    scores counts each pair of rows in different folds twice, once each way, which doubles its
    variance; draws that hold the weights fixed do not know. Two models share all rows they were
    fitted on but one fold in K − 1 each, so K − 1 times their variance is that of either.

    >>> fold_noise(np.array([[[0.1, 0.2]], [[0.1, 0.4]]])).round(3).tolist()
    [[0.0, 0.02]]
    """
    folds = len(weights)
    return np.asarray((folds - 1) * weights.var(axis=0, ddof=1), dtype=np.float64)
