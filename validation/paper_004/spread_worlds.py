"""Worlds, verdicts and output shared by the scripts that reproduce paper 004."""

from __future__ import annotations

import numpy as np

from equipoise.methods.numerics import FloatArray, IntArray

SEED = 20220621

World = tuple[IntArray, FloatArray]


def scenarios() -> dict[str, tuple[IntArray, FloatArray]]:
    """Return sizes and true rates of the paper's Table 2."""
    step = np.arange(100) / 99
    equal = np.full(100, 50)
    unequal = np.round(10 + 80 * step).astype(np.int64)
    same, apart = np.full(100, 0.8), 0.1 + 0.8 * step
    return {
        "equal size, equal performance": (equal, same),
        "unequal size, equal performance": (unequal, same),
        "equal size, unequal performance": (equal, apart),
        "unequal size, unequal performance": (unequal, apart),
    }
