"""A small random forest that may be fitted in threads.

scikit-learn's forests change the filters of warnings, which belong to the whole process, around
every tree; several at once in threads get in each other's way. Single trees do not, and averaging
them is all a forest is. Trees of 0/1 outcomes by squared error are those by Gini's index.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from equipoise.methods.arrays import FloatArray


@dataclass(slots=True, kw_only=True)
class Forest:
    """Trees on resampled rows, averaged."""

    trees: int
    depth: int
    width: int
    """Columns that each split may choose from."""
    leaf_rows: int
    seed: int
    fitted: tuple[Any, ...] = ()

    def fit(self, matrix: FloatArray, wanted: FloatArray) -> Self:
        """Grow the trees."""
        from sklearn.tree import DecisionTreeRegressor

        rng = np.random.default_rng(self.seed)
        n, single = len(wanted), np.ascontiguousarray(matrix, dtype=np.float32)
        target = np.ascontiguousarray(wanted, dtype=np.float64)
        grown = []
        for seed in rng.integers(0, 2**31, self.trees):
            times = np.bincount(rng.integers(0, n, n), minlength=n).astype(np.float64)
            tree = DecisionTreeRegressor(
                max_depth=self.depth,
                max_features=self.width,
                min_samples_leaf=self.leaf_rows,
                random_state=int(seed),
            )
            grown.append(tree.fit(single, target, sample_weight=times, check_input=False))
        self.fitted = tuple(grown)
        return self

    def predict(self, matrix: FloatArray) -> FloatArray:
        """The mean of the trees."""
        single = np.ascontiguousarray(matrix, dtype=np.float32)
        total = np.zeros(len(matrix))
        for tree in self.fitted:
            total += tree.predict(single, check_input=False)
        return total / len(self.fitted)
