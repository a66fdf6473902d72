"""What the numbers handed in must satisfy; each message says what was expected and what came."""

import math

import numpy as np
import numpy.typing as npt

from equipoise.methods.arrays import BoolArray, FloatArray, IntArray


def losses_within(losses: npt.ArrayLike, cells: int, bounds: tuple[float, float]) -> FloatArray:
    """The losses as floats, one finite number per cell inside the bounds."""
    low, high = bounds
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"loss bounds must be two finite numbers in order; got {bounds}")
    array = np.asarray(losses, dtype=np.float64)
    if array.shape != (cells,):
        raise ValueError(f"expected one loss per cell ({cells}); got shape {array.shape}")
    outside = ~((array >= low) & (array <= high))
    if np.any(outside):
        cell = first(outside)
        raise ValueError(f"losses must lie in [{low:g}, {high:g}]; cell {cell} has {array[cell]:g}")
    return array


def budget_within(budget: float) -> float:
    """The budget as a float: zero, positive or infinite."""
    value = float(budget)
    if math.isnan(value) or value < 0:
        raise ValueError(f"the budget must be zero, positive or infinite; got {value:g}")
    return value


def counts_within(counts: npt.ArrayLike, cells: int) -> IntArray:
    """Row counts per cell as whole numbers, at least one row in all."""
    array = np.asarray(counts, dtype=np.float64)
    if array.shape != (cells,):
        raise ValueError(f"expected one count per cell ({cells}); got shape {array.shape}")
    wrong = ~(np.isfinite(array) & (array >= 0))
    if np.any(wrong):
        cell = first(wrong)
        raise ValueError(f"counts must be finite and not negative; cell {cell} has {array[cell]:g}")
    if np.any(array != np.rint(array)):
        raise ValueError(f"counts must be whole numbers; cell {first(array != np.rint(array))}")
    if array.sum() < 1:
        raise ValueError("there are no rows: every count is zero")
    return array.astype(np.int64)


def costs_within(costs: FloatArray, what: str) -> None:
    """Costs are not NaN and not negative; infinite means forbidden."""
    if np.any(np.isnan(costs)):
        raise ValueError(f"costs must not be NaN; {what} {first(np.isnan(costs))} is")
    if np.any(costs < 0):
        raise ValueError(f"costs must not be negative; {what} {first(costs < 0)} is")


def level_within(level: float) -> float:
    """The error rate that belongs to a confidence level."""
    if not 0 < level < 1:
        raise ValueError(f"a confidence level lies strictly between 0 and 1; got {level:g}")
    return 1 - level


def first(mask: BoolArray) -> int:
    """Position of the first true entry, counted along the flattened array."""
    return int(np.flatnonzero(mask)[0])
