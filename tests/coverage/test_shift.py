"""Errors of `shift` where the truth is known: tilts near everyone, and monotone weights.

One fixed seed and a binomial band: more errors than the upper end of the band have a chance below
1e-5 if the error rate is the nominal one.
"""

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import bdtrc

import equipoise as eq

WORLDS, N, NOMINAL = 100, 300, 0.10
GRID = np.arange(60) / 59
RATE = 0.2 + 0.3 * GRID
MOST = next(k for k in range(WORLDS + 1) if bdtrc(k, WORLDS, NOMINAL) < 1e-5)


def samples() -> list[eq.Trail]:
    rng = np.random.default_rng(20260518)
    trails = []
    for _ in range(WORLDS):
        place = rng.integers(0, 60, N)
        wrong = (rng.random(N) < RATE[place]).astype(int)
        trails.append(eq.read(pl.DataFrame({"x": GRID[place], "wrong": wrong}), prediction="wrong"))
    return trails


def missed(answer: Any, weights: Any) -> bool:
    truth = float(np.average(RATE, weights=weights) - RATE.mean())
    return not (answer.lower - 1e-12 <= truth <= answer.upper + 1e-12)


def half_width(answer: Any) -> float:
    return float(answer.upper - answer.lower) / 2


@pytest.mark.slow
def test_tilts_near_everyone_hold_and_are_narrow() -> None:
    wrong, widths = 0, []
    for seed, trail in enumerate(samples()):
        over = eq.gaussian("x", bandwidth=5)
        found = eq.shift(trail, eq.gap(eq.selection_rate), over=over, rng=seed, resamples=300)
        answers = [(found.ask_tilt([1.0], at={"x": [c]}), c) for c in (0.0, 0.5, 1.0)]
        wrong += any(missed(a, np.exp(-0.5 * ((GRID - c) / 5) ** 2)) for a, c in answers)
        widths += [half_width(a) for a, _ in answers]
    assert wrong <= MOST
    assert np.median(widths) < 0.005


@pytest.mark.slow
def test_random_monotone_weights_hold_all_at_once() -> None:
    wrong = 0
    for seed, trail in enumerate(samples()):
        found = eq.shift(trail, eq.gap(eq.selection_rate), over=eq.monotone("x", grid=15), rng=seed)
        place = np.searchsorted([s.start for s in found.stretches[1:]], GRID, side="right")
        rng = np.random.default_rng(seed)
        steps = rng.random((20, len(found.stretches))) ** rng.choice([1, 5, 20], (20, 1))
        rising = np.cumsum(steps, axis=1)
        wrong += any(
            missed(found.ask_tilt(weights), weights[place])
            for weights in (*rising, *rising[:, ::-1])
        )
    assert wrong <= MOST
