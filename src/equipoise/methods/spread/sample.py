"""What the summaries need of each group: its size, its mean and its rows' variance."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from equipoise.methods.arrays import BoolArray, FloatArray, IntArray


class Exclusion(StrEnum):
    """Why a group takes no part in a summary."""

    EMPTY = "no rows"
    SINGLE = "one row: its sampling error cannot be estimated"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSample:
    """The usable groups of one audit.

    Attributes
    ----------
    size
        Rows per group; with weights or clusters what they are worth, rounded down.
    mean
        Mean of the metric per group.
    spread
        Variance of the metric among a group's rows, divisor ``size``.
    binary
        Whether the metric takes the values 0 and 1 only.
    kept
        Positions of the usable groups in the arrays handed in.
    excluded
        Positions of the groups left out.
    reasons
        Why each of them was left out, in the order of ``excluded``.
    """

    size: IntArray
    mean: FloatArray
    spread: FloatArray
    binary: bool
    kept: IntArray
    excluded: IntArray
    reasons: tuple[Exclusion, ...]

    @property
    def groups(self) -> int:
        """Number of usable groups."""
        return int(self.size.size)

    @property
    def overall(self) -> float:
        """Mean of the metric over all rows of the usable groups."""
        return float(np.average(self.mean, weights=self.size))

    @property
    def constant(self) -> bool:
        """Whether every row has the same value, so that resampling can show no error at all."""
        return bool(np.all(self.spread == 0) and np.ptp(self.mean) == 0)

    @property
    def frozen(self) -> bool:
        """Whether no group has any variation among its own rows."""
        return bool(np.all(self.spread == 0))


def sample_from_sums(
    n: IntArray, total: FloatArray, square: FloatArray | None = None, *, binary: bool
) -> GroupSample:
    """Build the sample from row counts, totals and (for real metrics) square totals.

    Parameters
    ----------
    n
        Rows per group; frequency counts included.
    total
        Sum of the metric per group.
    square
        Sum of its squares per group; not needed for a 0/1 metric.
    binary
        Whether the metric takes the values 0 and 1 only.

    Examples
    --------
    >>> import numpy as np
    >>> s = sample_from_sums(np.array([4, 1, 5]), np.array([1.0, 1.0, 4.0]), binary=True)
    >>> s.mean.tolist(), s.excluded.tolist(), s.reasons[0].value
    ([0.25, 0.8], [1], 'one row: its sampling error cannot be estimated')
    """
    n = np.asarray(n)
    return sample_from_worth(n, total, square, n, binary=binary)


def sample_from_worth(
    weight: FloatArray | IntArray,
    total: FloatArray,
    square: FloatArray | None,
    worth: FloatArray | IntArray,
    *,
    binary: bool,
) -> GroupSample:
    """Build the sample from Σw, ΣwL and ΣwL², and how many plain rows each group is worth.

    The worth is rounded down so that the intervals err on the wide side.

    Examples
    --------
    >>> import numpy as np
    >>> half = np.array([2.0, 3.0])
    >>> s = sample_from_worth(half, half / 2, None, np.array([4.0, 6.9]), binary=True)
    >>> s.size.tolist(), s.mean.tolist()
    ([4, 6], [0.5, 0.5])
    """
    weight, total, worth = (np.asarray(x, dtype=np.float64) for x in (weight, total, worth))
    square = _squares(total, square, binary)
    _check(weight, total, square, worth, binary)
    # The small allowance keeps whole numbers that were computed from rounding down.
    size = np.floor(worth * (1 + 1e-12) + 1e-9).astype(np.int64)
    kept = np.flatnonzero(size >= 2)
    excluded = np.flatnonzero(size < 2)
    if kept.size < 2:
        raise ValueError(_too_few(size, kept.size))
    mean = total[kept] / weight[kept]
    spread = mean * (1 - mean) if binary else _spread(mean, square[kept] / weight[kept])
    return GroupSample(
        size=size[kept],
        mean=mean,
        spread=spread,
        binary=binary,
        kept=kept.astype(np.int64),
        excluded=excluded.astype(np.int64),
        reasons=tuple(Exclusion.EMPTY if size[i] < 1 else Exclusion.SINGLE for i in excluded),
    )


def _squares(total: FloatArray, square: FloatArray | None, binary: bool) -> FloatArray:
    if square is not None:
        return np.asarray(square, dtype=np.float64)
    if not binary:
        raise ValueError("a metric that is not 0/1 needs the sums of its squares")
    return total


def _check(
    weight: FloatArray,
    total: FloatArray,
    square: FloatArray,
    worth: FloatArray,
    binary: bool,
) -> None:
    columns = {"sizes": weight, "totals": total, "squares": square, "worths": worth}
    for name, values in columns.items():
        if values.ndim != 1 or values.shape != weight.shape:
            raise ValueError(f"{name} must be one number per group; got shape {values.shape}")
        if not np.all(np.isfinite(values)):
            raise ValueError(f"{name} must be finite; group {_first(~np.isfinite(values))} is not")
    if np.any(weight < 0):
        raise ValueError(f"sizes must not be negative; group {_first(weight < 0)} is")
    outside = (total < 0) | (total > weight * (1 + 1e-12))
    if binary and np.any(outside):
        raise ValueError(
            f"a 0/1 metric has totals between 0 and the size; group {_first(outside)} has not"
        )


def _first(mask: BoolArray) -> int:
    return int(np.flatnonzero(mask)[0])


def _spread(mean: FloatArray, second: FloatArray) -> FloatArray:
    spread = second - mean**2
    # A difference of two large numbers: below this it is rounding, not variation.
    spread[spread < 1e-13 * second] = 0.0
    return spread


def _too_few(size: IntArray, usable: int) -> str:
    if size.size and np.all(size == 1):
        return "every group has one row, so no sampling error can be estimated"
    return f"a spread needs at least two groups of two or more rows; got {usable} of {size.size}"
