"""`calibration`: whether a model is reliable for everyone, in subgroups nobody named as well.

An audit under way fits residual models, tests, and sees which columns matter.
"""

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Unpack

import narwhals as nw
import numpy as np

from equipoise._validate import Rng, Seed, known_keywords, seed_of
from equipoise.audits._calibration.finding import (
    OutcomeOfTests,
    calibration_finding,
    combined,
    verdict_of_p,
)
from equipoise.audits._calibration.named_tests import (
    SHARES,
    AuditRows,
    CalibrationTest,
    Options,
    line_statistic,
    null_of,
    options_of,
    pull_audit_rows,
    statistics_of,
)
from equipoise.audits._calibration.residual_models import (
    Candidate,
    Part,
    as_pool,
    default_pool,
    fit_models,
    portfolio_pool,
)
from equipoise.audits._common import (
    Progress,
    RoleKeywords,
    TrailLike,
    as_trail,
    progress_bar,
    rows_alone,
)
from equipoise.errors import ClaimError, OptionError
from equipoise.findings.calibration import Calibration, ClassTest
from equipoise.findings.words import Side
from equipoise.methods import cusum
from equipoise.methods.cusum import Null
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray
from equipoise.trail import Trail
from equipoise.trail.trail import expect_trail, positive_values, truth_number

#: Numbers that permuted copies of the inputs may hold at once.
MAX_COPIED = 20_000_000
#: How many times as many draws are made of learnt subgroups that no draw reaches: their part of the
#: error is small, so that their p-value must be finer.
FINER = 10


class StepCounter:
    """Counts steps, for the progress bar."""

    def __init__(self, tell: Callable[[int], None], total: int) -> None:
        self._tell, self._total, self.done = tell, total, 0

    def one(self) -> None:
        """One step is done."""
        self.add(1)

    def add(self, number: int) -> None:
        """Some steps are done."""
        self.done += number
        self._tell(self.done)

    def finish(self) -> None:
        """Whatever was left out is done too."""
        if self.done < self._total:
            self.add(self._total - self.done)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Work:
    """An audit under way."""

    rows: AuditRows
    options: Options
    step: StepCounter

    def run(
        self,
        pool: list[Candidate],
        parts: list[Part],
        fitting: np.random.SeedSequence,
        testing: np.random.SeedSequence,
    ) -> OutcomeOfTests:
        """Fit, predict, and test."""
        whole, held = streams(testing, 2)
        if not self.options.test.portfolio:
            return self._by_models(pool, parts, fitting, testing)
        learnt = self._by_models(pool, parts, fitting, held, name="learnt") if parts else None
        return combined(self._by_all_rows(whole), learnt)

    def _by_all_rows(self, seed: np.random.SeedSequence) -> OutcomeOfTests:
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
        return OutcomeOfTests(
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
    ) -> OutcomeOfTests:
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
        return OutcomeOfTests(
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

    def importance(self, outcome: OutcomeOfTests, seed: np.random.SeedSequence) -> dict[str, float]:
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

    def _left_out(self, outcome: OutcomeOfTests) -> dict[str, float]:
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


# --- Labels of more than two classes: each against the rest, in one family ---

Audit = Callable[[Trail, Options], Calibration]


def class_family(
    trail: Trail, classes: Mapping[Any, str], options: Options, audit: Audit
) -> Calibration:
    """The finding of the class with the smallest p-value, all classes allowed for.

    Bonferroni's inequality holds whatever the classes have to do with each other, and theirs sum to
    one; no draw of all of them at once would be at the edge of every tolerance.
    """
    checked = expect_trail(trail)
    label = checked.roles.column("label")
    if not isinstance(classes, Mapping) or len(classes) < 2:
        raise OptionError(
            "classes must map at least two values of the label to the columns with their scores, "
            f"such as {{'a': 'score_a', 'b': 'score_b'}}; got {classes!r}."
        )
    narrower = dataclasses.replace(options, level=1 - (1 - options.level) / len(classes))
    found = {}
    for name, column in classes.items():
        if not isinstance(column, str) or column not in checked.schema:
            raise OptionError(
                f"classes[{name!r}] must be the column with the scores of that class; "
                f"got {column!r}. Columns: {', '.join(checked.schema)}."
            )
        found[name] = audit(_one_class(checked, label, name, column, classes.values()), narrower)
    lines = tuple(
        ClassTest(
            label=str(name),
            score=classes[name],
            p=min(1.0, len(classes) * one.p),
            verdict=verdict_of_p(one.p, narrower.level),
        )
        for name, one in found.items()
    )
    first = min(found.values(), key=lambda one: one.p)
    claim = {**first.claim, "classes": {str(name): column for name, column in classes.items()}}
    guarantee = first.guarantee.replace(
        f"{100 * (1 - narrower.level):.10g} %", f"{100 * (1 - options.level):.10g} %"
    )
    return dataclasses.replace(
        first,
        claim=claim,
        guarantee=guarantee,
        level=options.level,
        p=min(1.0, len(classes) * first.p),
        finest=len(classes) * first.finest,
        classes=lines,
    )


def _one_class(
    trail: Trail, label: str, name: object, column: str, scores: Collection[str]
) -> Trail:
    """The trail with "is this class" as the label, and the class's column as the score."""
    if trail.schema[label].is_numeric() and isinstance(name, str):
        # keys of a plan are text
        name = float(name) if name.replace(".", "", 1).lstrip("-").isdigit() else name
    roles = dataclasses.replace(trail.roles, score=column)
    value = positive_values({"label": name}, roles, trail.schema)["label"]
    own = f"{label} is {name:g}" if isinstance(name, float) else f"{label} is {name}"
    here = truth_number(trail.key(label) == value).cast(nw.Float64)
    frame = trail.frame.with_columns(nw.when(trail.present(label)).then(here).alias(own))
    # neither the label nor the scores of the other classes describe anybody
    kept = tuple(a for a in trail.attributes if a not in (label, *scores))
    return dataclasses.replace(
        trail,
        frame=frame,
        roles=dataclasses.replace(roles, label=own),
        positive={role: v for role, v in trail.positive.items() if role != "label"},
        schema=frame.collect_schema(),
        attributes=kept,
    )


# --- `calibration`: whether a model is reliable for everyone, in subgroups nobody named as well


CalibrationMethod = Literal[
    "portfolio",
    "cusum",
    "cusum-published",
    "cusum-standardised",
    "simple-score",
    "multicalibration",
    "chi-squared",
    "platt",
    "hosmer-lemeshow",
]


class Learner(Protocol):
    """A regressor or classifier of scikit-learn, or one like it."""

    def fit(self, x: FloatArray, y: FloatArray, /) -> object:
        """Learn from rows."""


#: Residual models of the caller's own, with or without names.
Learners = Sequence[Learner] | Mapping[str, Learner]


@known_keywords
def calibration(
    trail: TrailLike,
    *,
    features: Sequence[str] | None = None,
    level: float = 0.95,
    side: Side = "both",
    tolerance: float = 0.05,
    method: CalibrationMethod = "portfolio",
    models: Learners | None = None,
    folds: int = 4,
    split: float | None = None,
    min_prevalence: float | None = None,
    bins: int = 10,
    resamples: int = 1000,
    importance: int = 2,
    sample: int | None = None,
    classes: Mapping[Any, str] | None = None,
    numeric: bool = False,
    rng: Rng = None,
    progress: Progress = None,
    **roles: Unpack[RoleKeywords],
) -> Calibration:
    """Test whether any subgroup, known or unknown, is miscalibrated by more than a tolerance.

    Several tests look in different ways: along the score, along a line in every input, at every
    half-line and level of one column and of two, and at what residual models have learnt on half of
    the rows. All are compared with draws from the worst model that is still within the tolerance.

    Parameters
    ----------
    trail
        The audit trail, or a path or table as in `certify`, with a label and a score. Labels 0 and
        1 need scores between 0 and 1; with other numbers as labels, the score is a prediction of
        their mean. Weights and clusters are taken by the default method.
    features
        Columns by which subgroups may be described, numbers or text; the trail's attributes by
        default. The score is always used as well. Where a value is missing, that is a subgroup.
    level
        Confidence level: without any violation, one is declared with a chance of 1 - level at most.
    side
        ``"upper"`` looks for people whose outcomes lie above the score, which under-estimates them;
        ``"lower"`` for the opposite.
    tolerance
        How far expected outcome and score may be apart.
    method
        ``"portfolio"``. For comparison: ``"cusum-published"``, the adaptive score CUSUM test of
        Feng and others; ``"cusum"`` and ``"cusum-standardised"``, which allow for noise that folds
        share; ``"simple-score"``, ``"multicalibration"``, ``"chi-squared"`` with residual models;
        ``"platt"``, ``"hosmer-lemeshow"`` along the score alone.
    models
        scikit-learn regressors (of the residual) and classifiers (of the label), a list or a
        mapping from names; a tree, boosted trees, forests and a kernel logistic regression by
        default.
    folds
        Number of folds of methods that use them: each is tested by models fitted on the others.
    split
        The share of the rows that models are fitted on, half by default; what they learnt is tested
        on the rest. With a method that uses folds, one split instead of them.
    min_prevalence
        Look only at subgroups with more than this share of the rows; 0.02 by default, 0 as
        published.
    bins
        Bins of the chi-squared tests.
    resamples
        Monte-Carlo draws.
    importance
        How often each column is permuted to see what the statistic owes to it, where residual
        models found the subgroup; 0 leaves it out.
    sample
        Audit at most so many rows, drawn at random.
    classes
        For labels of more than two values, from each class to the column with its scores. Each
        class is tested against the rest, all in one family.
    numeric
        Whether labels of a few whole numbers are a quantity, whose mean the score predicts.
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
    ...     resamples=200,
    ...     rng=7,
    ... )
    >>> str(found.verdict), found.p < 0.1
    ('exceeded', True)
    """
    options = options_of(
        level=level,
        side=side,
        tolerance=tolerance,
        method=method,
        folds=folds,
        split=split,
        least=min_prevalence,
        bins=bins,
        draws=resamples,
        importance=importance,
        sample=sample,
        numeric=numeric,
    )
    seed, source = seed_of(rng), as_trail(trail, roles)
    if classes is None:
        return _audit(source, features, models, options, seed, progress)
    return class_family(
        source,
        classes,
        options,
        lambda one, narrower: _audit(one, features, models, narrower, seed, progress),
    )


def _audit(
    trail: Trail,
    features: Sequence[str] | None,
    models: Learners | None,
    options: Options,
    seed: Seed,
    progress: Progress,
) -> Calibration:
    """The audit of one label and one score."""
    if not options.test.portfolio:
        rows_alone(trail, f"The method {options.method!r} counts independent rows")
    drawn, shuffled, fitted, tested, permuted = streams(seed.sequence, 5)
    rows = pull_audit_rows(
        trail, features, options.sample, drawn, seed.number, numeric=options.numeric
    )
    if rows.binary and options.tolerance >= 1:
        raise OptionError(
            "Labels are 0 and 1 here, so that outcomes and scores are never 1 apart; got "
            f"tolerance={options.tolerance:g}. Points are hundredths: 5 points are 0.05."
        )
    pool = _pool(options.test, models, rows)
    parts = _parts(options, rows, shuffled)
    total = _steps(pool, parts, rows, options)
    with progress_bar(progress, total, "calibration") as tell:
        work = Work(rows=rows, options=options, step=StepCounter(tell, total))
        outcome = work.run(pool, parts, fitted, tested)
        drops = work.importance(outcome, permuted)
        work.step.finish()
    return calibration_finding(rows, options, outcome, drops)


def _pool(test: CalibrationTest, models: Learners | None, rows: AuditRows) -> list[Candidate]:
    if not test.adaptive:
        if models is not None:
            raise OptionError("This method looks along the score alone and takes no models=….")
        return []
    if models is None:
        make = portfolio_pool if test.portfolio else default_pool
        return make(rows.matrix.shape[1], rows.binary)
    return as_pool(models, rows.binary)


def _parts(options: Options, rows: AuditRows, seed: np.random.SeedSequence) -> list[Part]:
    n, rng = len(rows), np.random.default_rng(seed)
    if not options.test.adaptive:
        return []
    if options.split is not None:
        fit = _fitted_on(rows, options.split, rng)
        if options.test.portfolio and min(int(fit.sum()), int((~fit).sum())) < 2:
            # too few rows to learn from and to test; the other tests need all of them anyway
            return []
        _check_size(n, min(int(fit.sum()), int((~fit).sum())), "a split")
        return [Part(fit=fit, test=~fit)]
    _check_size(n, n // options.folds, f"{options.folds} folds")
    fold = cusum.stratified_folds(_strata(rows), options.folds, rng)
    masks: list[BoolArray] = [fold == k for k in range(options.folds)]
    return [Part(fit=~mask, test=mask) for mask in masks]


def _fitted_on(rows: AuditRows, share: float, rng: np.random.Generator) -> BoolArray:
    """Rows to learn from; a cluster is never on both sides."""
    if rows.cluster is None:
        return cusum.split_rows(len(rows), share, rng)
    return cusum.split_rows(int(rows.cluster.max()) + 1, share, rng)[rows.cluster]


def _strata(rows: AuditRows) -> FloatArray:
    """Labels; for real ones whether they lie above the score."""
    return rows.outcome if rows.binary else (rows.outcome > rows.score).astype(np.float64)


def _check_size(rows: int, smallest: int, into: str) -> None:
    if smallest < 2:
        raise ClaimError(
            f"{rows:,} rows are too few for {into}: every part needs at least 2. "
            "Use fewer folds, or method='platt', which needs none."
        )


def _steps(pool: list[Candidate], parts: list[Part], rows: AuditRows, options: Options) -> int:
    """Steps of an audit: fits, predictions, draws, permuted columns."""
    permuted = options.importance * len(rows.columns) if pool else 0
    tests = 2 if options.test.portfolio and parts else 1
    return 2 * len(pool) * len(parts) + tests * options.draws + permuted
