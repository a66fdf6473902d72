"""Draws of √n × (value of a sample − value of the population), by four methods.

Every function splits its draws into chunks of fixed length and gives each chunk a generator of its
own, so that the answer depends neither on memory blocks nor on threads.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.transport.prices import Window
from equipoise.methods.transport.problem import BLOCK_NUMBERS, Problem
from equipoise.methods.transport.sample import Sample

CHUNK = 128
"""Draws made from one stream. Part of the definition of the results: never tune it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericalDraws:
    """What the numerical derivative method could draw.

    Attributes
    ----------
    draws
        The draws kept, possibly none.
    tries
        Normal vectors drawn to get them.
    step
        The step of the difference quotient.
    """

    draws: FloatArray
    tries: int
    step: float


def default_rows(n: int) -> int:
    """The m of the m-out-of-n bootstrap by the rule of thumb 2√n, never more than n.

    >>> default_rows(900), default_rows(2)
    (60, 2)
    """
    # Algorithm 1 of Xue, Yurochkin and Sun; m → ∞ and m/n → 0, as their Theorem 4.1 asks.
    return min(n, math.ceil(2 * math.sqrt(n)))


def resampled_draws(
    problem: Problem, sample: Sample, *, units: int, resamples: int, rng: np.random.Generator
) -> FloatArray:
    """Bootstrap of so many units out of n: the plain bootstrap when it is n.

    Examples
    --------
    >>> from equipoise.methods.transport import plain_sample, prepare, within_classes
    >>> p, sample = prepare(within_classes([0, 0]), [0, 1]), plain_sample([30, 70], 2)
    >>> d = resampled_draws(p, sample, units=20, resamples=500, rng=np.random.default_rng(1))
    >>> d.shape, bool(abs(d.std() - 0.458) < 0.05)
    ((500,), True)
    """
    centre = float(problem.values(sample.share))
    parts = [
        problem.values(sample.resampled(units, size, stream))
        for size, stream in _chunks(resamples, rng)
    ]
    return math.sqrt(units) * _settled(np.concatenate(parts) - centre, problem.scale)


def numerical_draws(
    problem: Problem,
    sample: Sample,
    *,
    resamples: int,
    rng: np.random.Generator,
    step: float | None = None,
    tries: int | None = None,
) -> NumericalDraws:
    """Difference quotients along normal vectors that stay inside the simplex.

    A vector is kept only if no weight becomes negative. With many cells that hardly ever happens,
    so the number of tries is bounded (by default 20 for each draw wanted).

    Parameters
    ----------
    problem
        The prepared problem.
    sample
        The rows, weighted rows or clusters.
    resamples
        Draws wanted.
    rng
        Source of randomness.
    step
        Step of the quotient; the rule of thumb n^(−1/4) by default.
    tries
        Largest number of vectors drawn.

    Examples
    --------
    >>> from equipoise.methods.transport import plain_sample, prepare, within_classes
    >>> p, sample = prepare(within_classes([0, 0]), [0, 1]), plain_sample([300, 700], 2)
    >>> found = numerical_draws(p, sample, resamples=200, rng=np.random.default_rng(1))
    >>> found.draws.size, found.tries <= 4000
    (200, True)
    """
    # Algorithm 2 of Xue, Yurochkin and Sun sets no limit, and with many cells would not end.
    weights, limit = sample.share, 20 * resamples if tries is None else tries
    # It must vanish more slowly than 1/√n for the quotient to find the derivative (Theorem 4.2).
    length = sample.n**-0.25 if step is None else step
    centre, kept, tried, have = float(problem.values(weights)), [np.empty(0)], 0, 0
    for size, stream in _chunks(limit, rng):
        moved = weights + length * sample.normals(size, stream)
        inside = moved[np.all(moved >= 0, axis=1)]
        kept.append(_settled(problem.values(inside) - centre, problem.scale) / length)
        have, tried = have + len(inside), tried + size
        if have >= resamples:
            break
    return NumericalDraws(draws=np.concatenate(kept)[:resamples], tries=tried, step=length)


def directional_draws(
    problem: Problem,
    sample: Sample,
    window: Window,
    *,
    resamples: int,
    rng: np.random.Generator,
) -> FloatArray:
    """The limit itself: smallest derivative over the window of prices, along normal vectors.

    Between two kinks the derivative is linear in the price, so the smallest is at a kink, and from
    one kink to the next it changes by their distance times the spending in between.
    """
    h, begin, count = problem.hulls, window.first, window.kinks.size - 1
    top, before = problem.gradient(float(window.kinks[0])), problem.spending(begin)
    row, width = h.row[begin : begin + count], h.width[begin : begin + count]
    falls = window.kinks[:-1] - window.kinks[1:]
    block = max(1, BLOCK_NUMBERS // max(1, count))
    parts = []
    for size, stream in _chunks(resamples, rng):
        normals = sample.normals(size, stream)
        for start in range(0, size, block):
            z = normals[start : start + block]
            # Theorem 3.4 of Xue, Yurochkin and Sun: the infimum of (λ + l) · z over the dual
            # optima, where λ + l is the gradient at a price.
            steps = np.cumsum(z[:, row] * width, axis=1) + (z @ before)[:, None]
            change = np.cumsum(steps * falls, axis=1)
            parts.append(z @ top + np.minimum(change.min(axis=1, initial=0.0), 0.0))
    return np.concatenate(parts)


def _settled(differences: FloatArray, scale: float) -> FloatArray:
    """Differences with rounding noise set to zero, so that noise never decides an interval."""
    return np.where(np.abs(differences) <= 1e-14 * scale, 0.0, differences)


def _chunks(number: int, rng: np.random.Generator) -> Iterator[tuple[int, np.random.Generator]]:
    streams = rng.spawn(-(-number // CHUNK))
    for i, stream in enumerate(streams):
        yield min(CHUNK, number - i * CHUNK), stream
