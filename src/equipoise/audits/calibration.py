"""`calibration`: whether a model is reliable for everyone, in subgroups nobody named as well."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from equipoise._rng import Rng, seed_of
from equipoise._validate import known_keywords, whole
from equipoise.audits._calibration_finding import Outcome, finding_of
from equipoise.audits._calibration_rows import AuditRows, pull_audit_rows
from equipoise.audits._calibration_tests import CalibrationTest, Options, options_of
from equipoise.audits._progress import Progress, progress_bar
from equipoise.audits._residual_models import (
    Candidate,
    Part,
    as_pool,
    default_pool,
    fit_models,
)
from equipoise.errors import ClaimError, OptionError
from equipoise.findings.calibration import Calibration
from equipoise.methods import cusum
from equipoise.methods.arrays import BoolArray, FloatArray, IntArray
from equipoise.methods.cusum import Null
from equipoise.trail import Trail

#: Numbers that permuted copies of the inputs may hold at once.
MAX_COPIED = 20_000_000


@known_keywords
def calibration(
    trail: Trail,
    *,
    features: Any = None,
    tolerance: float = 0.05,
    side: Literal["both", "under", "over"] = "both",
    level: float = 0.90,
    method: str = "cusum",
    models: Any = None,
    folds: int = 4,
    split: float | None = None,
    min_prevalence: float | None = None,
    bins: int = 10,
    draws: int = 1000,
    importance: int = 2,
    sample: int | None = None,
    rng: Rng = None,
    progress: Progress = None,
) -> Calibration:
    """Test whether any subgroup, known or unknown, is miscalibrated by more than a tolerance.

    Residual models learn from some of the rows where outcomes differ from scores; on the other
    rows, ordered by what the models predict, scores are added up. The largest sum over all models
    and thresholds is compared with draws from the worst model that is still within the tolerance.

    Parameters
    ----------
    trail
        The audit trail, with a label and a score. Labels 0 and 1 need scores between 0 and 1; with
        other numbers as labels, the score is a prediction of their mean.
    features
        Columns by which subgroups may be described, numbers or text; the trail's attributes by
        default. The score is always used as well.
    tolerance
        How far expected outcome and score may be apart.
    side
        ``"under"`` looks for people whose outcome is under-estimated, ``"over"`` for the opposite.
    level
        Confidence level: without any violation, one is declared with a chance of 1 - level at most.
    method
        ``"cusum"``, or ``"cusum-standardised"`` for standardised sums alone, or
        ``"cusum-published"`` for raw ones that do not allow for noise folds share. For comparison:
        ``"simple-score"``, ``"multicalibration"``, ``"chi-squared"`` with residual models;
        ``"platt"``, ``"hosmer-lemeshow"`` along the score alone.
    models
        scikit-learn regressors (of the residual) and classifiers (of the label), a list or a
        mapping from names; forests and kernel logistic regressions by default.
    folds
        Number of folds: each is tested by models fitted on the others.
    split
        Instead of folds, the share of the rows to fit on; only the rest is tested. Exact in
        samples of any size, with less power.
    min_prevalence
        Look only at subgroups with more than this share of the rows; 0.02 by default, 0 as
        published.
    bins
        Bins of the chi-squared tests.
    draws
        Monte-Carlo draws.
    importance
        How often each column is permuted to see what the statistic owes to it; 0 leaves it out.
    sample
        Audit at most so many rows, drawn at random.
    rng, progress
        As in `certify`.

    Examples
    --------
    >>> import equipoise as eq
    >>> import polars as pl
    >>> from equipoise.worlds import interaction_risks
    >>> found = eq.calibration(
    ...     eq.read(pl.DataFrame(interaction_risks(800, rng=1)), label="y", score="score"),
    ...     features=["x0", "x1", "x2", "x3"],
    ...     draws=200,
    ...     rng=7,
    ... )
    >>> str(found.verdict), found.p < 0.1
    ('shown not', True)
    """
    options = options_of(
        tolerance=tolerance,
        side=side,
        level=level,
        method=method,
        folds=folds,
        split=split,
        least=min_prevalence,
        bins=bins,
        draws=draws,
        importance=importance,
    )
    if sample is not None:
        whole("sample", sample)
    seed = seed_of(rng)
    drawn, shuffled, fitted, tested, permuted = _streams(seed.sequence, 5)
    rows = pull_audit_rows(trail, features, sample, drawn, seed.number)
    pool = _pool(options.test, models, rows)
    parts = _parts(options, rows, shuffled)
    total = _steps(pool, parts, rows, options)
    with progress_bar(progress, total, "calibration") as tell:
        work = _Work(rows=rows, options=options, step=_Steps(tell, total))
        outcome = work.run(pool, parts, fitted, tested)
        drops = work.importance(outcome, permuted)
        work.step.finish()
    return finding_of(rows, options, outcome, drops)


class _Steps:
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
class _Work:
    """An audit under way."""

    rows: AuditRows
    options: Options
    step: _Steps

    def run(
        self,
        pool: list[Candidate],
        parts: list[Part],
        fitting: np.random.SeedSequence,
        testing: np.random.SeedSequence,
    ) -> Outcome:
        """Fit, predict, and test."""
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
        null = _null(rows, tested, self.options.tolerance)
        statistics = self.statistics(residuals, null, every)
        start = self.step.done
        found = cusum.run_test(
            *statistics,
            null=null,
            draws=self.options.draws,
            seed=testing,
            progress=lambda done: self.step.add(start + done - self.step.done),
        )
        return Outcome(
            found=found,
            statistic=statistics[found.chosen],
            scale=self.options.test.scales[found.chosen],
            null=null,
            tested=tested,
            fitted=fitted,
        )

    def statistics(
        self, residuals: FloatArray | None, null: Null, every: FloatArray | None = None
    ) -> tuple[cusum.Cusum | cusum.Binned, ...]:
        """The statistics of these residuals."""
        options = self.options
        return options.test.build(residuals, null, options.side, options.least, options.bins, every)

    def importance(self, outcome: Outcome, seed: np.random.SeedSequence) -> dict[str, float]:
        """How far the statistic drops when a column is permuted, on average."""
        fitted, rows, repeats = outcome.fitted, self.rows, self.options.importance
        if fitted is None or not repeats or outcome.found.statistic <= 0:
            return {}
        observed = outcome.null.observed[None, :]
        # before and after alike without the correction for folds, which is not what is asked
        before = float(outcome.statistic.values(observed)[0])
        drops = dict.fromkeys(rows.columns, 0.0)
        for child in _streams(seed, repeats):
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


def _streams(seed: np.random.SeedSequence, number: int) -> list[np.random.SeedSequence]:
    return [
        np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, i)) for i in range(number)
    ]


def _pool(test: CalibrationTest, models: Any, rows: AuditRows) -> list[Candidate]:
    if not test.adaptive:
        if models is not None:
            raise OptionError("This method looks along the score alone and takes no models=….")
        return []
    if models is None:
        return default_pool(rows.matrix.shape[1], rows.binary)
    return as_pool(models, rows.binary)


def _parts(options: Options, rows: AuditRows, seed: np.random.SeedSequence) -> list[Part]:
    n, rng = len(rows), np.random.default_rng(seed)
    if not options.test.adaptive:
        return []
    if options.split is not None:
        fit = cusum.split_rows(n, options.split, rng)
        _check_size(n, min(int(fit.sum()), int((~fit).sum())), "a split")
        return [Part(fit=fit, test=~fit)]
    _check_size(n, n // options.folds, f"{options.folds} folds")
    fold = cusum.stratified_folds(_strata(rows), options.folds, rng)
    masks: list[BoolArray] = [fold == k for k in range(options.folds)]
    return [Part(fit=~mask, test=mask) for mask in masks]


def _strata(rows: AuditRows) -> FloatArray:
    """Labels; for real ones whether they lie above the score."""
    return rows.outcome if rows.binary else (rows.outcome > rows.score).astype(np.float64)


def _check_size(rows: int, smallest: int, into: str) -> None:
    if smallest < 2:
        raise ClaimError(
            f"{rows:,} rows are too few for {into}: every part needs at least 2. "
            "Use fewer folds, or method='platt', which needs none."
        )


def _null(rows: AuditRows, tested: BoolArray, tolerance: float) -> Null:
    make = cusum.bernoulli_null if rows.binary else cusum.sign_flip_null
    return make(rows.outcome[tested], rows.score[tested], tolerance=tolerance)


def _steps(pool: list[Candidate], parts: list[Part], rows: AuditRows, options: Options) -> int:
    """Steps of an audit: fits, predictions, draws, permuted columns."""
    permuted = options.importance * len(rows.columns) if pool else 0
    return 2 * len(pool) * len(parts) + options.draws + permuted


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
