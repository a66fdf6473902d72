"""Six worlds in which a score is off in six ways, and the tests that are made for each of them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import polars as pl
from scipy.special import chdtrc, expit, logit, ndtr
from sklearn.tree import DecisionTreeRegressor

from equipoise.methods.numerics import FloatArray

WORLDS: Mapping[str, str] = {
    "corner": "+0.30 where two inputs are both high, 6 % of rows",
    "slope": "log odds 0.75 times as steep as the score says",
    "cell": "+0.25 in one level of twenty, 5 % of rows",
    "tail": "+0.25 in the highest 5 % of a skewed input",
    "linear": "a weak line in three inputs",
    "cross": "+0.07 and −0.07 in opposite quarters",
}
LEVELS = 20


def draw(world: str | None, n: int, rng: np.random.Generator) -> pl.DataFrame:
    """Seven inputs, a score and an outcome; without a world, the score is the risk."""
    x = rng.normal(size=(n, 4))
    skewed = np.exp(rng.normal(size=n))
    flag = (rng.random(n) < 0.4).astype(float)
    level = rng.integers(0, LEVELS, n)
    score = expit(-0.5 + 0.8 * x[:, 0] + 0.6 * x[:, 1] + 0.4 * (flag - 0.4))
    off = {
        "corner": 0.30 * ((x[:, 1] > 0.70) & (x[:, 2] > 0.70)),
        "slope": expit(0.75 * logit(score)) - score,
        "cell": 0.25 * (level == 3),
        "tail": 0.25 * (skewed > np.exp(1.645)),
        "linear": expit(logit(score) + 0.12 * (x[:, 0] - x[:, 2] + x[:, 3])) - score,
        "cross": 0.07 * np.sign(x[:, 2] * x[:, 3]),
    }
    risk = np.clip(score + (off[world] if world is not None else 0.0), 0, 1)
    columns = {f"x{i}": x[:, i] for i in range(4)}
    columns |= {"skewed": skewed, "flag": flag, "level": [f"level {i:02d}" for i in level]}
    y = (rng.random(n) < risk).astype(int)
    return pl.DataFrame({**columns, "score": score, "y": y})


INPUTS = ("x0", "x1", "x2", "x3", "skewed", "flag", "level")


def specialised(table: pl.DataFrame, draws: int, rng: np.random.Generator) -> dict[str, float]:
    """p-values of the tests that are made for one kind of violation, at tolerance zero."""
    y, score = table["y"].to_numpy().astype(float), table["score"].to_numpy()
    numbers = [table[name].to_numpy() for name in INPUTS[:-1]]
    level = table["level"].to_numpy()
    ones, odds = np.ones(len(y)), logit(score)
    return {
        "recalibration test": score_test(np.column_stack([ones, odds]), y, score),
        "GLM score test": score_test(np.column_stack([ones, odds, *numbers]), y, score),
        "plain scan": plain_scan([*numbers, score], level, y, score, draws, rng),
        "held-out tree": held_out_tree(table, y, score, rng),
    }


def score_test(inputs: FloatArray, y: FloatArray, p: FloatArray) -> float:
    """Rao's score test of a logistic regression with the score as offset."""
    root = np.sqrt(p * (1 - p))
    # the log odds of the score may be a line in the inputs, which then count once
    basis, sizes, _ = np.linalg.svd(root[:, None] * inputs, full_matrices=False)
    along = ((y - p) / root) @ basis[:, sizes > 1e-9 * sizes[0]]
    return float(chdtrc(along.size, along @ along))


def plain_scan(
    numbers: list[FloatArray],
    level: np.ndarray,
    y: FloatArray,
    p: FloatArray,
    draws: int,
    rng: np.random.Generator,
) -> float:
    """The largest |z| over half-lines at nine quantiles, levels and all pairs of them."""
    outcomes = np.vstack([y, rng.random((draws, y.size)) < p]) - p
    columns = [_half_lines(x) for x in numbers] + [level == one for one in np.unique(level)]
    family = [[half] for half in columns[len(numbers) :]]
    # a level and another level of the same column have nobody in common
    sets = [np.atleast_2d(c) for c in columns[: len(numbers)]] + [np.concatenate(family)]
    largest = np.zeros(draws + 1)
    variance = p * (1 - p)
    for alone in sets:
        largest = np.maximum(largest, _largest(alone, outcomes, variance))
    for one, two in combinations(sets, 2):
        for half in one:
            largest = np.maximum(largest, _largest(two & half, outcomes, variance))
    return float(np.mean(largest >= largest[0] - 1e-9))


def _half_lines(x: FloatArray) -> np.ndarray:
    cuts = np.unique(np.quantile(x, np.arange(1, 10) / 10, method="inverted_cdf"))
    low = x <= cuts[cuts < x.max()][:, None]
    return np.concatenate([low, ~low])


def _largest(sets: np.ndarray, outcomes: FloatArray, variance: FloatArray) -> FloatArray:
    spread = sets @ variance
    sets, spread = sets[spread > 2], spread[spread > 2]
    if not len(sets):
        return np.zeros(len(outcomes))
    sums = outcomes.astype(np.float32) @ sets.T.astype(np.float32)
    return np.abs(sums / np.sqrt(spread).astype(np.float32)).max(axis=1)


def held_out_tree(
    table: pl.DataFrame, y: FloatArray, p: FloatArray, rng: np.random.Generator
) -> float:
    """A tree of the residual on half of the rows; its leaves on the others, by Bonferroni."""
    x = table.select(INPUTS).to_dummies("level").to_numpy().astype(float)
    x = np.column_stack([x, p])
    learn = np.zeros(y.size, dtype=bool)
    learn[rng.permutation(y.size)[: y.size // 2]] = True
    tree = DecisionTreeRegressor(max_depth=3, min_samples_leaf=10, random_state=0)
    leaf = tree.fit(x[learn], (y - p)[learn]).apply(x[~learn])
    found, residual, variance = np.unique(leaf), (y - p)[~learn], (p * (1 - p))[~learn]
    z = [residual[leaf == k].sum() / np.sqrt(variance[leaf == k].sum()) for k in found]
    return float(min(1.0, len(found) * 2 * ndtr(-np.abs(z).max())))
