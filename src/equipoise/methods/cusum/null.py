"""What is left of each outcome beyond the tolerance, and how it varies at the edge of the null."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from equipoise.methods.numerics import FloatArray, IntArray

WORTH_OF_A_ROW = 0.1
"""What a real outcome adds to the size of a subgroup: as much as one of risk 0.11 or 0.89."""

Draw = Callable[[np.random.Generator, int], FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Null:
    """Residuals of n rows in both directions, and draws of them under the null hypothesis.

    Arrays of length 2n hold first the residuals from the upper end of what is tolerated, which
    count where the outcome is thought too high for its prediction, then those from the lower end.
    """

    predicted: FloatArray
    """The prediction of each row."""
    low: FloatArray
    """Lowest expected outcome that is tolerated."""
    high: FloatArray
    """Highest expected outcome that is tolerated."""
    observed: FloatArray
    """Outcome minus upper end, then outcome minus lower end."""
    variance: FloatArray
    """Variance of the same at the edge of the null hypothesis."""
    draw: Draw
    """Residuals of ``size`` draws, one draw to a line. Both ends share their randomness, so that
    they bound every outcome the null hypothesis allows."""
    exact: bool
    """Whether the draws have the distribution of the edge itself, and not only its limit."""
    third: FloatArray
    """Third central moment at the edge, in the order of ``observed``."""
    worth: FloatArray
    """What each row adds to the size of a subgroup: its variance, for outcomes 0 or 1."""
    cluster: IntArray | None = None
    """Rows that vary together, numbered from 0; None where every row varies alone."""
    coins: tuple[FloatArray, FloatArray] | None = None
    """Variance and third moment of outcomes 0 or 1 if everybody's clusters were equally tied, where
    there are clusters."""

    def __len__(self) -> int:
        return len(self.predicted)

    @property
    def point(self) -> bool:
        """Whether the null hypothesis leaves no room, so that both ends are one."""
        return bool(np.array_equal(self.low, self.high))


def bernoulli_null(
    outcome: FloatArray,
    predicted: FloatArray,
    *,
    tolerance: float,
    weight: FloatArray | None = None,
) -> Null:
    """Outcomes 0 or 1 and predicted risks: the edge is a coin with risk ± tolerance.

    Weights multiply residuals, drawn ones as well.

    >>> null = bernoulli_null(np.array([1.0, 0.0]), np.array([0.5, 0.98]), tolerance=0.05)
    >>> null.observed.round(2).tolist()
    [0.45, -1.0, 0.55, -0.93]
    """
    y, p = _aligned(outcome, predicted, tolerance)
    if not np.isin(y, (0.0, 1.0)).all() or p.min(initial=0.0) < 0 or p.max(initial=0.0) > 1:
        raise ValueError("outcomes must be 0 or 1, and predicted risks lie between 0 and 1")
    # Projected into [0, 1] as after (2) of Feng and others.
    low, high = np.clip(p - tolerance, 0.0, 1.0), np.clip(p + tolerance, 0.0, 1.0)
    ends = np.concatenate([high, low])
    times = None if weight is None else np.tile(_weights(weight, p.size), 2)
    each = np.ones(2 * p.size) if times is None else times

    def draw(rng: np.random.Generator, size: int) -> FloatArray:
        uniform = rng.random((size, p.size))
        drawn = np.empty((size, 2 * p.size))
        # One uniform for both ends, as in Theorem 4 of Feng and others: every outcome that the null
        # allows lies between the two.
        np.less(uniform, high, out=drawn[:, : p.size], casting="unsafe")
        np.less(uniform, low, out=drawn[:, p.size :], casting="unsafe")
        drawn -= ends
        if times is not None:
            drawn *= times
        return drawn

    return Null(
        predicted=p,
        low=low,
        high=high,
        observed=each * (np.tile(y, 2) - ends),
        variance=each**2 * ends * (1 - ends),
        draw=draw,
        exact=True,
        third=each**3 * ends * (1 - ends) * (1 - 2 * ends),
        worth=np.maximum(high * (1 - high), low * (1 - low)),
    )


def sign_flip_null(
    outcome: FloatArray,
    predicted: FloatArray,
    *,
    tolerance: float,
    weight: FloatArray | None = None,
    cluster: IntArray | None = None,
    risks: bool = False,
) -> Null:
    """Real outcomes: at the edge a residual is as likely as the same with its sign changed.

    Exact for symmetric errors, right for large samples for others. Rows of a cluster, of real or
    of 0/1 outcomes, change their signs together; ``risks`` says that predictions are risks, so that
    outcomes vary at least as coins do. A handful of rows of risk 0.97 that all came true shows next
    to no variance of its own.

    >>> null = sign_flip_null(np.array([3.0, 0.0]), np.array([1.0, 1.0]), tolerance=0.5)
    >>> null.observed.tolist()
    [1.5, -1.5, 2.5, -0.5]
    """
    y, f = _aligned(outcome, predicted, tolerance)
    each = np.ones(f.size) if weight is None else _weights(weight, f.size)
    observed = np.concatenate([each * (y - f - tolerance), each * (y - f + tolerance)])
    low, high = f - tolerance, f + tolerance
    coins = None
    if risks:
        ends, times = np.clip(np.concatenate([high, low]), 0.0, 1.0), np.tile(each, 2)
        observed = times * (np.tile(y, 2) - ends)
        high, low = ends[: f.size], ends[f.size :]
        spread = ends * (1 - ends)
        alike = _design_effect(each * (y - f), each**2 * np.clip(f * (1 - f), 0.0, None), cluster)
        coins = alike * times**2 * spread, alike**2 * times**3 * spread * (1 - 2 * ends)
    units = f.size if cluster is None else int(cluster.max(initial=-1)) + 1

    def draw(rng: np.random.Generator, size: int) -> FloatArray:
        signs = 2.0 * rng.integers(0, 2, (size, units), dtype=np.int8) - 1
        if cluster is not None:
            signs = signs[:, cluster]
        return np.asarray(np.tile(signs, 2) * observed, dtype=np.float64)

    return Null(
        predicted=f,
        low=low,
        high=high,
        observed=observed,
        # flipping a sign leaves the square alone, so the scale is the same in every draw
        variance=observed**2,
        draw=draw,
        exact=False,
        third=observed**3,
        worth=np.full(f.size, WORTH_OF_A_ROW),
        cluster=cluster,
        coins=coins,
    )


def _aligned(
    outcome: FloatArray, predicted: FloatArray, tolerance: float
) -> tuple[FloatArray, FloatArray]:
    y, p = np.asarray(outcome, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if y.shape != p.shape or y.ndim != 1:
        raise ValueError(f"outcomes and predictions differ in shape: {y.shape} and {p.shape}")
    if not np.isfinite(y).all() or not np.isfinite(p).all():
        raise ValueError("outcomes and predictions must be finite")
    if not 0 <= tolerance < np.inf:
        raise ValueError(f"the tolerance must be at least 0; got {tolerance}")
    return y, p


def _design_effect(residual: FloatArray, variance: FloatArray, cluster: IntArray | None) -> float:
    """How many times as much everybody's sum varies as if no rows varied together; at least 1."""
    total = float(variance.sum())
    if cluster is None or not total > 0:
        return 1.0
    return max(1.0, float((np.bincount(cluster, residual) ** 2).sum()) / total)


def _weights(weight: FloatArray, rows: int) -> FloatArray:
    w = np.asarray(weight, dtype=np.float64)
    if w.shape != (rows,) or not np.isfinite(w).all() or (w < 0).any() or not (w > 0).any():
        raise ValueError(f"weights must be finite and at least 0, one for each of {rows} rows")
    # scaled to a mean of one, so that neither huge nor tiny weights lose digits
    return np.asarray(w / w.mean(), dtype=np.float64)
