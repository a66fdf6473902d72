"""Table 4: the percentile that the critical value of a tilt audit realises, and ours beside it.

Model (16): x on {0, 0.01, …, 1}, y normal about a line with variance x, squared errors of a fitted
line, Gaussian tilts with bandwidth 1, 0.5 and 0.1. "unscaled" is Algorithm 5, and with an estimated
target Algorithm 8 with the square of the tilt's mean in place of the identity. "rescaled" is the
default. The truth is known, so the supremum of the process between sample and population is too.

Half-widths: for tilts toward ranges of x, of growing roughness, both methods on one sample.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from audit_worlds import SEED, SIZES
from records import agreed, main, not_above, standard_error, write

from equipoise.audits.shift import FLOOR
from equipoise.methods import tilts
from equipoise.methods.numerics import FloatArray
from equipoise.methods.tilts import draws as tilt_draws
from equipoise.worlds import linear_world

PUBLISHED = {
    1.0: (0.92, 0.945, 0.94, 0.89, 0.91),
    0.5: (0.93, 0.955, 0.935, 0.885, 0.915),
    0.1: (0.95, 0.95, 0.935, 0.93, 0.95),
}
LEVEL, RESAMPLES = 0.9, 500
POINTS = np.arange(101) / 100
RANGES = ((0.0, 1.0), (0.2, 0.6), (0.0, 0.3), (0.7, 0.9), (0.45, 0.55))
Held = dict[tuple[str, str], int]


def run(full: bool = False) -> dict[str, Any]:
    """Reproduce the table, add estimated targets and the default, then compare half-widths."""
    rng = np.random.default_rng(SEED)
    rows: list[dict[str, Any]] = []
    trials = 200 if full else 40
    for width in PUBLISHED:
        features = tilts.factor_kernel(tilts.Gaussian((width,)), POINTS[:, None]).features
        for column, n in enumerate(SIZES):
            held: Held = {}
            for trial in range(trials):
                _trial(rng, features, n, trial, held)
            rows += [
                _row(width, column, n, key, count, trials) for key, count in sorted(held.items())
            ]
    rows += _half_widths(rng)
    result = {
        "source": "Table 4",
        "nominal": LEVEL,
        "trials": trials,
        "rows": rows,
        "agrees": agreed(rows),
    }
    return write(__file__, "table_4", result, full)


def _trial(rng: np.random.Generator, features: FloatArray, n: int, trial: int, held: Held) -> None:
    """One sample; count for each method and target whether the critical value held."""
    slip = linear_world(rng, heteroskedastic=True).slip
    place = rng.integers(0, 101, n)
    loss = (rng.standard_normal(n) * np.sqrt(POINTS[place]) - slip * POINTS[place]) ** 2
    truth = POINTS + slip**2 * POINTS**2
    seed = np.random.SeedSequence([SEED, trial, n])
    for target in ("known", "overall"):
        sample = _sample(features[place], loss, target)
        happened = _deviation(features, truth, loss, tilt_draws.moments_of(sample), target)
        for method in (tilts.Method.UNSCALED, tilts.Method.RESCALED):
            found = _audit(sample, method, seed)
            value = _supremum(found, features, truth - loss.mean(), happened)
            for side, seen in (("lower", value[1]), ("upper", -value[0])):
                key = (f"{method}, {side} bounds", target)
                critical = tilts.critical_value(found.draws, LEVEL, side)
                held[key] = held.get(key, 0) + bool(seen <= critical)


def _sample(features: FloatArray, loss: FloatArray, target: str) -> tilts.TiltSample:
    values = loss - loss.mean()
    return tilts.TiltSample(
        features=features,
        values=values,
        influence=values if target == "overall" else np.zeros_like(values),
        counts=np.ones(len(values)),
        paired=np.full(len(values), 1.0 if target == "overall" else 0.0),
    )


def _audit(
    sample: tilts.TiltSample, method: tilts.Method, seed: np.random.SeedSequence
) -> tilts.TiltAudit:
    return tilts.audit_tilts(
        sample,
        tilts.RowTilts(sample),
        method=method,
        floor=FLOOR,
        resamples=RESAMPLES,
        seed=seed,
    )


def _deviation(
    features: FloatArray,
    truth: FloatArray,
    loss: FloatArray,
    moments: tilts.TiltMoments,
    target: str,
) -> tilt_draws.Deviations:
    """Averages of the sample minus those of the population."""
    mean, cross = features.mean(axis=0), (truth - loss.mean()) @ features / len(truth)
    moved = loss.mean() - truth.mean() if target == "overall" else 0.0
    return tilt_draws.Deviations(
        mean=(moments.mean - mean)[None],
        cross=(moments.cross - cross)[None],
        target=np.array([moved]),
        spread=np.ones(1),
    )


def _supremum(
    found: tilts.TiltAudit,
    features: FloatArray,
    truth: FloatArray,
    happened: tilt_draws.Deviations,
) -> FloatArray:
    if found.method is tilts.Method.UNSCALED:
        population = tilts.TiltMoments(
            n=1.0,
            mean=features.mean(axis=0),
            cross=truth @ features / len(truth),
            second=features.T @ features / len(truth),
            # The unscaled process has no scale, and does not look at this.
            centred=features.T @ features / len(truth),
        )
        return tilt_draws.unscaled_extremes(population, happened)[0]
    grid = tilt_draws.make_grid(found.moments, FLOOR)
    ends = (float(truth.min()), float(truth.max()))
    return tilts.rescaled_extremes(grid, found.moments, ends, happened)[0]


def _row(
    width: float, column: int, n: int, key: tuple[str, str], held: int, trials: int
) -> dict[str, Any]:
    method, target = key
    share = held / trials
    published = method == "unscaled, lower bounds" and target == "known"
    # The published table is within its own error of 200 trials; small samples fall short of the
    # nominal level in it as in ours, so agreement is asked for from n = 400 on.
    enough = n >= 400
    return {
        "bandwidth": width,
        "n": n,
        "target": target,
        "method": method,
        "published": PUBLISHED[width][column] if published else None,
        "ours": round(share, 4),
        "monte_carlo_error": round(standard_error(share, trials), 4),
        "agrees": not_above(trials - held, trials, 1 - LEVEL) if enough else None,
    }


def _half_widths(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Tilts toward ranges, n = 1,000, bandwidths as in the table."""
    rows = []
    for width in PUBLISHED:
        place = rng.integers(0, 101, 1000)
        loss = (rng.standard_normal(1000) * np.sqrt(POINTS[place])) ** 2
        features = tilts.factor_kernel(tilts.Gaussian((width,)), POINTS[:, None]).features[place]
        sample = _sample(features, loss, "known")
        seed = np.random.SeedSequence(SEED)
        found = {m: _audit(sample, m, seed) for m in (tilts.Method.UNSCALED, tilts.Method.RESCALED)}
        for start, stop in RANGES:
            inside = (POINTS[place] >= start) & (POINTS[place] <= stop)
            rows += _tilts_toward(sample, found, inside, width, (start, stop))
    return rows


def _tilts_toward(
    sample: tilts.TiltSample,
    found: dict[tilts.Method, tilts.TiltAudit],
    inside: Any,
    width: float,
    ends: tuple[float, float],
) -> list[dict[str, Any]]:
    rows = []
    moments = found[tilts.Method.UNSCALED].moments
    wanted = sample.features[inside].mean(axis=0)
    for tilt in tilts.closest_tilts(sample.features, moments.second, wanted, (1e-3, 1e-5)):
        beta = tilt.coordinates
        mean, norm = float(moments.mean @ beta), float(beta @ beta)
        square = float(beta @ moments.second @ beta)
        scales = {
            tilts.Method.UNSCALED: norm,
            tilts.Method.RESCALED: float(tilt_draws.scale_of(mean, square, norm, FLOOR)),
        }
        half = {
            method: tilts.critical_value(audit.draws, LEVEL, "lower") * scales[method] / mean**2
            for method, audit in found.items()
        }
        old, new = half[tilts.Method.UNSCALED], half[tilts.Method.RESCALED]
        rows.append(
            {
                "bandwidth": width,
                "n": 1000,
                "target": "known",
                "method": f"half-width, tilt toward [{ends[0]:g}, {ends[1]:g}]",
                "effective_share": round(mean**2 / square, 3),
                "unscaled": round(old, 4),
                "rescaled": round(new, 4),
                "ratio": round(old / new, 2),
                "agrees": None,
            }
        )
    return rows


if __name__ == "__main__":
    main("table 4", run)
