"""The array types that the mathematics speaks, and the one thing it asks of a group collection."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[Any]


class GroupSums(Protocol):
    """Sums cell values over every group of a collection.

    ``sums(x)`` takes an array whose last axis runs over the cells and returns one whose last axis
    runs over the groups, in the collection's order. It is linear, and a group's sum never depends
    on which other groups are in the collection.
    """

    def __call__(self, x: FloatArray, /) -> FloatArray: ...
