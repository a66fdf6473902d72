"""How far the furthest of many groups may stray: maxima of correlated normals, read off the cells.

If every cell had the same spread, a cell's total would be normal with variance n_c. Summed over a
group, divided by its size, less the target made of the same draws, and standardised, the draws have
the correlation of the groups' estimates. No row is resampled, and a group of two rows is as normal
as one of a million.
"""

from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import BoolArray, FloatArray, GroupSums
from equipoise.methods.bootstrap.streams import BLOCK_NUMBERS, CHUNK, Progress

NUMBERS = 100_000_000
"""Draws times groups that are affordable; larger collections get fewer draws."""
MOST_DRAWS, LEAST_DRAWS = 5000, 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What the groups are compared with, as weights on cell totals: θ = Σ weight · total."""

    kind: str
    """``known``, ``overall``, ``reference`` or ``complement``."""
    scale: float = 1.0
    """Factor on the target."""
    reference: BoolArray | None = None
    """Cells of the reference group, shape ``(C,)``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Maxima:
    """Extremes of the standardised process in each draw, shape ``(B,)``."""

    lowest: FloatArray
    """Smallest value over the groups."""
    highest: FloatArray
    """Largest value over the groups."""


def affordable_draws(groups: int) -> int:
    """How many draws a collection gets if nothing else is said.

    >>> affordable_draws(80), affordable_draws(1_000_000)
    (5000, 1000)
    """
    return int(np.clip(NUMBERS // max(groups, 1), LEAST_DRAWS, MOST_DRAWS))


def normal_maxima(
    rows: FloatArray,
    sums: GroupSums,
    against: Comparison,
    *,
    draws: int,
    seed: np.random.SeedSequence,
    progress: Progress | None = None,
) -> Maxima:
    """Extremes over the groups of correlated standard normals.

    >>> found = normal_maxima(
    ...     np.array([50.0, 50.0]),
    ...     lambda x: x,
    ...     Comparison(kind="known"),
    ...     draws=4000,
    ...     seed=np.random.SeedSequence(1),
    ... )
    >>> bool(abs(np.quantile(found.highest, 0.95) - 1.954) < 0.06)
    True
    """
    error = standard_errors(rows, sums, against)
    used = error > 0
    lowest, highest = np.zeros(draws), np.zeros(draws)
    if not bool(used.any()):
        return Maxima(lowest=lowest, highest=highest)
    root, done = np.sqrt(rows), 0
    block = max(1, min(CHUNK, BLOCK_NUMBERS // error.size))
    for chunk in range(-(-draws // CHUNK)):
        key = (*seed.spawn_key, chunk)
        rng = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=key))
        z = root * rng.standard_normal((min(CHUNK, draws - done), rows.size))
        for start in range(0, len(z), block):
            part = z[start : start + block]
            moved = _moves(part, rows, sums, against, used, error)
            here = slice(done + start, done + start + len(part))
            lowest[here], highest[here] = moved.min(axis=1), moved.max(axis=1)
        done += len(z)
        if progress is not None:
            progress(done)
    return Maxima(lowest=lowest, highest=highest)


def standard_errors(rows: FloatArray, sums: GroupSums, against: Comparison) -> FloatArray:
    """Spread of each group's disparity when single rows have spread one; 0 where there is none.

    >>> standard_errors(np.array([4.0, 12.0]), lambda x: x, Comparison(kind="overall")).round(3)
    array([0.433, 0.144])
    """
    n, total, c = sums(rows), float(rows.sum()), against.scale
    own = _over(1.0, n)
    if against.kind == "known":
        return np.sqrt(own)
    if against.kind == "overall":
        # Var(X̄_G − cX̄) = 1/n_G + c²/n − 2c/n, since the group's rows are among all n.
        variance = own + (c * c - 2 * c) * _over(1.0, np.full_like(n, total))
    elif against.kind == "complement":
        # No row is both in the group and outside it: no covariance.
        variance = np.where(n < total, own + c * c * _over(1.0, total - n), 0.0)
    else:
        chosen = np.zeros(rows.size, bool) if against.reference is None else against.reference
        inside = np.where(chosen, rows, 0.0)
        there = float(inside.sum())
        # Cov(X̄_G, X̄_R) = n(G ∩ R)/(n(G) n(R)).
        both = _over(sums(inside), n * there)
        variance = own + c * c * _over(1.0, np.full_like(n, there)) - 2 * c * both
    # a group compared with itself cancels up to rounding
    return np.where((n > 0) & (variance > 1e-12 * own), np.sqrt(np.maximum(variance, 0.0)), 0.0)


def _moves(
    z: FloatArray,
    rows: FloatArray,
    sums: GroupSums,
    against: Comparison,
    used: BoolArray,
    error: FloatArray,
) -> FloatArray:
    n, mine = sums(rows), sums(z)
    moved = _over(mine, n)
    if against.kind == "complement":
        rest = z.sum(axis=1, keepdims=True) - mine
        moved = moved - against.scale * _over(rest, rows.sum() - n)
    elif against.kind != "known":
        chosen = np.ones(rows.size, bool) if against.reference is None else against.reference
        theta = z[:, chosen].sum(axis=1, keepdims=True) / max(float(rows[chosen].sum()), 1.0)
        moved = moved - against.scale * theta
    if not bool(used.all()):
        moved, error = moved[:, used], error[used]
    return np.asarray(moved / error)


def _over(top: FloatArray | float, bottom: FloatArray) -> FloatArray:
    """Quotient, 0 where the divisor is not positive."""
    shape = np.broadcast_shapes(np.shape(top), bottom.shape)
    return np.divide(top, bottom, out=np.zeros(shape), where=bottom > 0)
