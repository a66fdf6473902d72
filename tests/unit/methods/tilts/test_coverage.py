"""Realised percentiles of the critical value where the truth is known."""

import numpy as np
import pytest
from scipy.special import bdtr, bdtrc

from equipoise.methods.tilts import (
    Gaussian,
    Method,
    RowTilts,
    TiltMoments,
    TiltSample,
    audit_tilts,
    critical_value,
    factor_kernel,
)
from equipoise.methods.tilts.audit import rescaled_extremes
from equipoise.methods.tilts.draws import Deviations, make_grid, unscaled_extremes

WORLDS, N, LEVEL = 120, 600, 0.9
POINTS = np.arange(101) / 100


@pytest.mark.parametrize("estimated", [False, True])
def test_realised_percentile_is_the_nominal_one(estimated: bool) -> None:
    """x on 101 points, squared errors of a line with variance x; the null-hypothesis-free check."""
    rng = np.random.default_rng(2024)
    features = factor_kernel(Gaussian((0.5,)), POINTS[:, None]).features
    held = dict.fromkeys((Method.RESCALED, Method.UNSCALED), 0)
    for world in range(WORLDS):
        place = rng.integers(0, 101, N)
        loss = (rng.standard_normal(N) * np.sqrt(POINTS[place])) ** 2
        mean = float(loss.mean())
        values = loss - mean
        sample = TiltSample(
            features=features[place],
            values=values,
            influence=values if estimated else np.zeros(N),
            counts=np.ones(N),
            paired=np.ones(N) if estimated else np.zeros(N),
        )
        truth = TiltMoments(
            n=1.0,
            mean=features.mean(axis=0),
            cross=(POINTS - mean) @ features / 101,
            second=features.T @ features / 101,
            centred=np.cov(features.T, bias=True),
        )
        for method in held:
            found = audit_tilts(
                sample,
                RowTilts(sample),
                method=method,
                floor=0.001,
                resamples=300,
                seed=np.random.SeedSequence([7, world]),
            )
            moved = Deviations(
                mean=(found.moments.mean - truth.mean)[None],
                cross=(found.moments.cross - truth.cross)[None],
                target=np.array([mean - 0.5 if estimated else 0.0]),
                spread=np.ones(1),
            )
            if method is Method.UNSCALED:
                happened = unscaled_extremes(truth, moved)
            else:
                ends = (-mean, 1 - mean)
                grid = make_grid(found.moments, 0.001)
                happened = rescaled_extremes(grid, found.moments, ends, moved)
            held[method] += bool(happened[0, 1] <= critical_value(found.draws, LEVEL, "lower"))
    for count in held.values():
        # Two-sided, a false alarm once in two thousand.
        assert bdtr(count, WORLDS, LEVEL) > 2.5e-4
        assert bdtrc(count - 1, WORLDS, LEVEL) > 2.5e-4
