"""A calibration audit under way: fit residual models, test, and see which columns matter."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from equipoise.audits._calibration.finding import Outcome, combined
from equipoise.audits._calibration.named_tests import (
    SHARES,
    Options,
    line_statistic,
    statistics_of,
)
from equipoise.audits._calibration.residual_models import Candidate, Part, fit_models
from equipoise.audits._calibration.rows import AuditRows, null_of
from equipoise.methods import cusum
from equipoise.methods.cusum import Null
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray

#: Numbers that permuted copies of the inputs may hold at once.
MAX_COPIED = 20_000_000
#: How many times as many draws are made of learnt subgroups that no draw reaches: their part of the
#: error is small, so that their p-value must be finer.
FINER = 10


class Steps:
    """Counts steps, for the progress bar."""

    def __init__(self, tell: Callable[[int], None], total: int) -> None:
        self._tell, self._total, self.done = tell, total, 0

    def one(self) -> None:
        self.add(1)

    def add(self, number: int) -> None:
        self.done += number
        self._tell(self.done)

    def finish(self) -> None:
        if self.done < self._total:
            self.add(self._total - self.done)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Work:
    """An audit under way."""

    rows: AuditRows
    options: Options
    step: Steps

    def run(
        self,
        pool: list[Candidate],
        parts: list[Part],
        fitting: np.random.SeedSequence,
        testing: np.random.SeedSequence,
    ) -> Outcome:
        """Fit, predict, and test."""
        whole, held = streams(testing, 2)
        if not self.options.test.portfolio:
            return self._by_models(pool, parts, fitting, testing)
        learnt = self._by_models(pool, parts, fitting, held, name="learnt") if parts else None
        return combined(self._by_all_rows(whole), learnt)

    def _by_all_rows(self, seed: np.random.SeedSequence) -> Outcome:
        """Test what needs nothing learnt, on all rows."""
        every = np.ones(len(self.rows), dtype=bool)
        null = null_of(self.rows, every, self.options.tolerance)
        tests = statistics_of(self.rows, null, cusum.Side(self.options.side))
        found = cusum.run_test(
            *tests.values(),
            null=null,
            draws=self.options.draws,
            seed=seed,
            shares=[SHARES[name] for name in tests],
            progress=self._progress(),
        )
        name = list(tests)[found.chosen]
        return Outcome(
            found=found,
            statistic=tests[name],
            scale=cusum.Scale.STANDARD,
            null=null,
            tested=every,
            fitted=None,
            component=name,
            components=tuple(zip(tests, found.alone, strict=True)),
        )

    def _by_models(
        self,
        pool: list[Candidate],
        parts: list[Part],
        fitting: np.random.SeedSequence,
        testing: np.random.SeedSequence,
        name: str = "",
    ) -> Outcome:
        """Test what residual models have learnt, or what the score alone says."""
        rows = self.rows
        fitted, residuals, every, tested = None, None, None, np.ones(len(rows), dtype=bool)
        if pool:
            fitted = fit_models(
                pool, parts, rows.matrix, rows.outcome, rows.score, seed=fitting, tell=self.step.one
            )
            guess = fitted.everywhere(rows.matrix, rows.score, self.step.one)
            tested = np.any([part.test for part in parts], axis=0)
            residuals = fitted.own(guess)[:, tested]
            every = guess if len(parts) > 1 else None
        null = null_of(rows, tested, self.options.tolerance)
        statistics = self.statistics(residuals, null, every)
        found = cusum.run_test(
            *statistics,
            null=null,
            draws=self.options.draws,
            seed=testing,
            finer=FINER if name else 1,
            progress=self._progress(),
        )
        return Outcome(
            found=found,
            statistic=statistics[found.chosen],
            scale=self.options.test.scales[found.chosen],
            null=null,
            tested=tested,
            fitted=fitted,
            component=name or None,
            components=((name, found.p),) if name else (),
        )

    def _progress(self) -> Callable[[int], None]:
        start, draws = self.step.done, self.options.draws
        return lambda done: self.step.add(start + min(done, draws) - self.step.done)

    def statistics(
        self, residuals: FloatArray | None, null: Null, every: FloatArray | None = None
    ) -> tuple[cusum.Cusum | cusum.Binned, ...]:
        """The statistics of these residuals."""
        options, side = self.options, cusum.Side(self.options.side)
        return options.test.build(residuals, null, side, options.least, options.bins, every)

    def importance(self, outcome: Outcome, seed: np.random.SeedSequence) -> dict[str, float]:
        """How far the statistic drops when a column is permuted, on average."""
        fitted, rows, repeats = outcome.fitted, self.rows, self.options.importance
        if not repeats or outcome.found.statistic <= 0:
            return {}
        if fitted is None or isinstance(outcome.statistic, cusum.Scan | cusum.Axes):
            return self._left_out(outcome)
        observed = outcome.null.observed[None, :]
        # before and after alike without the correction for folds, which is not what is asked
        before = float(outcome.statistic.values(observed)[0])
        drops = dict.fromkeys(rows.columns, 0.0)
        for child in streams(seed, repeats):
            order = _shuffled(outcome.tested, child)
            for columns in _together(rows):
                copies = _permuted(rows, columns, order)
                guess = fitted.residuals(copies, rows.score, _silent)[:, :, outcome.tested]
                for column, residuals in zip(columns, guess, strict=True):
                    statistic = self.statistics(residuals, outcome.null)[outcome.found.chosen]
                    after = float(statistic.values(observed)[0])
                    drops[column] += (before - after) / repeats
                self.step.add(len(columns))
        return drops

    def _left_out(self, outcome: Outcome) -> dict[str, float]:
        """How far the statistic drops when a column is not looked at."""
        rows, null, statistic = self.rows, outcome.null, outcome.statistic
        if isinstance(statistic, cusum.Scan):
            return {
                column: outcome.found.statistic - statistic.without(place, null)
                for place, column in enumerate(rows.columns)
            }
        if not isinstance(statistic, cusum.Axes) or outcome.component != "line":
            return {}
        drops = {}
        for column in rows.columns:
            rest = line_statistic(rows, null, cusum.Side(self.options.side), without=column)
            after = 0.0 if rest is None else rest.observed(null)
            drops[column] = outcome.found.statistic - after
        return drops


def streams(seed: np.random.SeedSequence, number: int) -> list[np.random.SeedSequence]:
    """So many independent seeds; the one given is copied, not consumed."""
    return [
        np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, i)) for i in range(number)
    ]


def _silent() -> None:
    """A step too small to tell of."""


def _shuffled(tested: BoolArray, seed: np.random.SeedSequence) -> IntArray:
    order = np.arange(tested.size)
    order[tested] = np.random.default_rng(seed).permutation(order[tested])
    return order


def _together(rows: AuditRows) -> list[tuple[str, ...]]:
    """Columns whose permuted copies are held in memory at once."""
    size = max(1, MAX_COPIED // rows.matrix.size)
    return [rows.columns[i : i + size] for i in range(0, len(rows.columns), size)]


def _permuted(rows: AuditRows, columns: tuple[str, ...], order: IntArray) -> FloatArray:
    """A copy of the inputs for each of these columns, with that column permuted."""
    copies = np.repeat(rows.matrix[None], len(columns), axis=0)
    for copy, column in zip(copies, columns, strict=True):
        at = rows.inputs(column)
        copy[:, at] = rows.matrix[order][:, at]
    return copies
