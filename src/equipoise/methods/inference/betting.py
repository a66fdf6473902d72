"""Exact bounds on the mean of a bounded metric, at any number of rows and for any distribution.

Somebody who bets against "the mean is m" gains little if it is true: by Ville's inequality the
chance that a capital of 1 ever grows to 1/α is at most α. The bounds are the means against which
betting did not pay (Waudby-Smith and Ramdas 2024). Each bet may depend on the rows before it, so
rows come in random order; capital is averaged over several orders, which is as exact.
"""

import numpy as np

from equipoise.methods.arrays import FloatArray

MOST = 0.75
"""Largest share of the capital that one row may cost."""
ORDERS, NUMBERS = 20, 2_000_000
"""Orders of the rows, and how many numbers they may fill together."""
STEPS = 40
"""Halvings of the range in which a bound lies."""


def betting_bounds(
    value: FloatArray, low: float, high: float, error: float, rng: np.random.Generator
) -> tuple[float, float]:
    """Lower and upper bound on the mean of values between ``low`` and ``high``.

    Each of the two is wrong with a chance of at most ``error``.

    >>> x = np.tile([0.0, 0.2, 0.4], 100)
    >>> low, high = betting_bounds(x, 0.0, 1.0, 0.025, np.random.default_rng(1))
    >>> bool(0.16 < low < 0.2 < high < 0.24)
    True
    """
    if value.size == 0 or not high > low:
        return low, high
    x = np.clip((value - low) / (high - low), 0.0, 1.0)
    below = _lower(x, error, rng)
    above = 1 - _lower(1 - x, error, rng)
    return low + (high - low) * below, low + (high - low) * above


def _lower(x: FloatArray, error: float, rng: np.random.Generator) -> float:
    """The largest mean against which it paid to bet, for values in [0, 1]."""
    mean, aim = float(x.mean()), -np.log(error)
    if mean <= 0:
        return 0.0
    times = int(np.clip(NUMBERS // x.size, 1, ORDERS))
    rows = np.stack([rng.permutation(x) for _ in range(times)])
    bets = _bets(rows, aim)
    # capital falls with the mean that is bet against, so what paid lies below what did not
    paid, open_ = 0.0, mean
    for _ in range(STEPS):
        middle = (paid + open_) / 2
        gain = np.minimum(bets, MOST / middle) * (rows - middle)
        capital = np.log1p(gain).sum(axis=1)
        if np.logaddexp.reduce(capital) - np.log(times) >= aim:
            paid = middle
        else:
            open_ = middle
    return paid


def _bets(rows: FloatArray, aim: float) -> FloatArray:
    """How much is bet on every row, from the spread of the rows before it."""
    number = np.arange(1.0, rows.shape[1] + 1)
    mean = (0.5 + np.cumsum(rows, axis=1)) / (number + 1)
    spread = (0.25 + np.cumsum((rows - mean) ** 2, axis=1)) / (number + 1)
    before = np.concatenate([np.full((len(rows), 1), 0.25), spread[:, :-1]], axis=1)
    return np.asarray(np.sqrt(2 * aim / (rows.shape[1] * before)))
