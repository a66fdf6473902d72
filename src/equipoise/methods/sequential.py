"""Evidence over time: look after every batch, for as long as one likes.

A batch brings n rows to every part of a group and its target, then k ones. That a disparity keeps
its limit says a·θ ≤ c of the parts' rates θ, with a and c known from the limit and the n. Let θ̂ be
a guess made before the ones are seen, and θ° the rates that keep the limit and are closest to it:
those that minimise Σ n KL(θ̂ ‖ θ). The batch's evidence is the likelihood ratio

    e = Π Bin(k; n, θ̂) / Bin(k; n, θ°).

Its mean is at most one under all rates that keep the limit, however small the batch is. With
u = (θ̂ − θ°) / (θ° (1 − θ°)) the mean at rates θ is Π (1 + (θ − θ°) u)^n ≤ exp(Σ n (θ − θ°) u), and
n u is the multiplier λ ≥ 0 times a, so that the exponent is λ (a·θ − a·θ°) = λ (a·θ − c) ≤ 0. Rows
of one part may have different rates, since only their mean counts: a product of unequal factors is
at most the power of their mean. Products of such e over batches are therefore above 1/α with a
chance of at most α, ever (Ville), and so are averages of products. The truth may move as it likes
as long as it keeps the limit.

Guesses: for each of several contrasts beyond the limit, the most likely rates that have it, given
all earlier batches. Each makes a product of its own; the evidence is their average.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, xlog1py, xlogy

from equipoise.methods.inference.comparison import Comparison
from equipoise.methods.inference.counts import constrained_rates
from equipoise.methods.numerics import FloatArray

STEPS = np.geomspace(0.01, 0.5, 8)
"""How far beyond the limit guesses lie, as shares of the way to the largest possible contrast."""
PRIOR = 1.0
"""Rows that every part is taken to have had before the first batch, half of them ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One batch: the parts of every group, and the null about them, arrays ``(parts, G)``."""

    rows: FloatArray
    """Rows of every part."""
    ones: FloatArray
    """Ones among them."""
    slope: FloatArray
    """a: what a unit of each part's rate does to the contrast."""
    limit: FloatArray
    """c: the largest contrast that keeps the limit, ``(G,)``."""


def batch_of(found: Comparison, limit: float, *, above: bool) -> Batch:
    """A batch of counts, and the null that every disparity is at most (or at least) a limit.

    >>> from equipoise.methods.inference.comparison import compare, plain_moments
    >>> from equipoise.methods.targets import Constant
    >>> cells = plain_moments(*(np.array([x]) for x in (10.0, 4.0, 4.0, 4.0)))
    >>> batch = batch_of(compare(cells, Constant(value=0.2), lambda x: x), 0.1, above=True)
    >>> batch.slope.tolist(), batch.limit.round(3).tolist()
    ([[1.0]], [0.3])
    """
    wanted = np.full(found.parts.rows.shape[1], limit)
    slope = found.slopes(found.factor(wanted)) * found.parts.weight
    slope = np.where((np.abs(slope) > 1e-12) & (found.parts.rows > 0), slope, 0.0)
    sign = 1.0 if above else -1.0
    return Batch(
        rows=found.parts.rows,
        ones=found.parts.total,
        slope=sign * slope,
        limit=sign * found.aim(wanted),
    )


def log_evidence(batches: Sequence[Batch], steps: FloatArray = STEPS) -> FloatArray:
    """Logarithm of every group's evidence after each batch, ``(T, G)``.

    >>> four = [np.array([[x], [y]]) for x, y in ((50.0, 50.0), (40.0, 10.0), (1.0, -1.0))]
    >>> batch = Batch(rows=four[0], ones=four[1], slope=four[2], limit=np.zeros(1))
    >>> log_evidence([batch, batch])[:, 0].round(1).tolist()
    [16.5, 35.1]
    """
    rows, ones = np.zeros_like(batches[0].rows), np.zeros_like(batches[0].rows)
    running = np.zeros((steps.size, rows.shape[1]))
    out = np.zeros((len(batches), rows.shape[1]))
    for time, batch in enumerate(batches):
        running += batch_evidence(batch, rows, ones, steps)
        out[time] = logsumexp(running, axis=0) - np.log(steps.size)
        rows, ones = rows + batch.rows, ones + batch.ones
    return out


def batch_evidence(
    batch: Batch, rows: FloatArray, ones: FloatArray, steps: FloatArray
) -> FloatArray:
    """Logarithm of a batch's e-value for each guess and group, given all earlier rows and ones."""
    known = rows + PRIOR
    mean = (ones + PRIOR / 2) / known
    groups = batch.rows.shape[1]
    # every guess of every group as a group of its own
    each = np.tile(np.arange(groups), steps.size)
    slope, n, k = batch.slope[:, each], batch.rows[:, each], batch.ones[:, each]
    highest = np.maximum(slope, 0).sum(axis=0)
    lowest = np.minimum(slope, 0).sum(axis=0)
    limit = batch.limit[each]
    aim = limit + np.repeat(steps, groups) * (highest - limit)
    guess, _ = constrained_rates(known[:, each], mean[:, each], slope, aim)
    # a rate of exactly 0 or 1 would stake all on one row
    guess = np.clip(guess, 1e-6, 1 - 1e-6)
    nearest, _ = constrained_rates(n, guess, slope, limit)
    told = xlogy(k, guess / nearest) + xlog1py(n - k, -guess) - xlog1py(n - k, -nearest)
    # a limit that no rates exceed, or none keep, is no question; nor is a guess within it
    asked = (limit > lowest) & (limit < highest) & ((slope * guess).sum(axis=0) > limit)
    return np.where(asked, np.where(slope != 0, told, 0.0).sum(axis=0), 0.0).reshape(
        steps.size, groups
    )
