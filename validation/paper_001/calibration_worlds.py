"""Worlds, one fit shared by all tests, verdicts and output for paper 001."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from equipoise.audits._calibration.named_tests import TESTS
from equipoise.audits._calibration.residual_models import Candidate, Part, default_pool, fit_models
from equipoise.methods import cusum
from equipoise.methods.numerics import FloatArray
from equipoise.worlds import RiskTable

SEED = 20260106
DRAWS = 199
ERROR = 0.10


def inputs(table: RiskTable) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Inputs of the residual models (the score first), scores and outcomes."""
    names = [name for name in table if name not in ("score", "risk", "y")]
    columns = [np.asarray(table["score"])]
    for name in names:
        values = np.asarray(table[name])
        if values.dtype.kind in "US":
            columns += [(values == level).astype(float) for level in np.unique(values)]
        else:
            columns.append(values)
    return np.column_stack(columns), columns[0], np.asarray(table["y"], dtype=np.float64)


def light_pool() -> list[Candidate]:
    """A third of the default models, for many samples of many rows."""
    every = default_pool(11, True)
    return [every[0], every[4], every[8], every[9]]


class World:
    """One sample with its residual models, fitted once and used by every test."""

    def __init__(self, table: RiskTable, seed: Sequence[int], pool: list[Candidate] | None = None):
        self.matrix, self.score, self.outcome = inputs(table)
        self.pool = default_pool(self.matrix.shape[1], True) if pool is None else pool
        self.seed = list(seed)
        self._made: dict[str, tuple[FloatArray, FloatArray, FloatArray | None]] = {}

    def residuals(self, how: str) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """Predicted residuals, the rows they are tested on, and what every fold predicts."""
        if how not in self._made:
            parts = self._parts(how)
            fitted = fit_models(
                self.pool,
                parts,
                self.matrix,
                self.outcome,
                self.score,
                seed=np.random.SeedSequence([*self.seed, 2]),
                tell=lambda: None,
            )
            every = fitted.everywhere(self.matrix, self.score, lambda: None)
            tested = np.any([part.test for part in parts], axis=0)
            kept = every if len(parts) > 1 else None
            self._made[how] = fitted.own(every)[:, tested], tested, kept
        return self._made[how]

    def _parts(self, how: str) -> list[Part]:
        rng, n = np.random.default_rng([*self.seed, 1]), len(self.score)
        if how == "split":
            fit = cusum.split_rows(n, 0.75, rng)
            return [Part(fit=fit, test=~fit)]
        fold = cusum.stratified_folds(self.outcome, 4, rng)
        return [Part(fit=fold != k, test=fold == k) for k in range(4)]

    def p(self, name: str, tolerance: float, side: str = "both", *, split: bool = False) -> float:
        """The p-value of one test, named like "chi-squared, 2 bins" or "cusum, uncorrected"."""
        method, *more = name.split(", ")
        test = TESTS[method]
        if "corrected" in more or "uncorrected" in more:
            test = dataclasses.replace(test, corrected="corrected" in more)
        bins = next((int(part.split()[0]) for part in more if part.endswith("bins")), 10)
        residuals, every, tested = None, None, np.ones(len(self.score), dtype=bool)
        if test.adaptive:
            how = "split" if split or test.split else "folds"
            residuals, tested, every = self.residuals(how)
        null = cusum.bernoulli_null(self.outcome[tested], self.score[tested], tolerance=tolerance)
        statistics = test.build(residuals, null, cusum.Side(side), None, bins, every)
        seed = np.random.SeedSequence([*self.seed, 3])
        return cusum.run_test(*statistics, null=null, draws=DRAWS, seed=seed).p
