"""Residual models: fitted once per part of the rows, and asked about the rest."""

import itertools
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from equipoise.errors import EquipoiseError, OptionError
from equipoise.methods.numerics import AnyArray, BoolArray, FloatArray

# --- A small random forest that may be fitted in threads ---
#
# scikit-learn's forests change the filters of warnings, which belong to the whole process, around
# every tree; several at once in threads get in each other's way. Single trees do not, and
# averaging them is all a forest is. Trees of 0/1 outcomes by squared error are those by Gini's
# index.


@dataclass(slots=True, kw_only=True)
class Forest:
    """Trees on resampled rows, averaged."""

    trees: int
    depth: int
    width: int
    """Columns that each split may choose from."""
    leaf_rows: int
    seed: int
    fitted: tuple[Any, ...] = ()

    def fit(self, matrix: FloatArray, wanted: FloatArray) -> Self:
        """Grow the trees."""
        from sklearn.tree import DecisionTreeRegressor

        rng = np.random.default_rng(self.seed)
        n, single = len(wanted), np.ascontiguousarray(matrix, dtype=np.float32)
        target = np.ascontiguousarray(wanted, dtype=np.float64)
        grown = []
        for seed in rng.integers(0, 2**31, self.trees):
            times = np.bincount(rng.integers(0, n, n), minlength=n).astype(np.float64)
            tree = DecisionTreeRegressor(
                max_depth=self.depth,
                max_features=self.width,
                min_samples_leaf=self.leaf_rows,
                random_state=int(seed),
            )
            grown.append(tree.fit(single, target, sample_weight=times, check_input=False))
        self.fitted = tuple(grown)
        return self

    def predict(self, matrix: FloatArray) -> FloatArray:
        """The mean of the trees."""
        single = np.ascontiguousarray(matrix, dtype=np.float32)
        total = np.zeros(len(matrix))
        for tree in self.fitted:
            total += tree.predict(single, check_input=False)
        return total / len(self.fitted)


# --- Residual models: fitted once per part of the rows, and asked about the rest ---

#: Trees of each default forest: thirty order rows about as well as a hundred.
TREES = 30
#: Rows in the smallest leaf of a default forest.
LEAF_ROWS = 10
#: Points on which the polynomial kernel is expanded.
LANDMARKS = 100

Tell = Callable[[], None]


class Learnt(Protocol):
    """A model that has been fitted."""

    def predict(self, matrix: FloatArray, /) -> AnyArray:
        """One answer for each row."""


class Unfitted(Protocol):
    """A model that has not."""

    def fit(self, matrix: FloatArray, wanted: AnyArray, /) -> Learnt:
        """The same, fitted."""


@runtime_checkable
class Classifies(Learnt, Protocol):
    """A fitted model that gives each class a probability."""

    classes_: AnyArray

    def predict_proba(self, matrix: FloatArray, /) -> AnyArray:
        """Rows × classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A kind of residual model."""

    name: str
    """How the finding calls it."""
    make: Callable[[int, int], Unfitted]
    """An unfitted estimator for so many rows, with a seed."""
    of_outcome: bool
    """Whether it predicts the outcome, and not the residual."""
    classifier: bool = False
    """Whether it is asked for probabilities."""
    threads: bool = False
    """Whether it may be fitted beside others in threads."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """Rows to fit on and rows to test on."""

    fit: BoolArray
    test: BoolArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """Models × parts, fitted."""

    candidates: tuple[Candidate, ...]
    parts: tuple[Part, ...]
    estimators: tuple[tuple[Any, ...], ...]
    """By model, then by part."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the models."""
        return tuple(candidate.name for candidate in self.candidates)

    def everywhere(self, matrix: FloatArray, score: FloatArray, tell: Tell) -> FloatArray:
        """What the models of each part predict for all rows: parts × models × rows."""
        found = np.empty((len(self.parts), len(self.candidates), len(matrix)))

        def ask(model: int, part: int) -> None:
            found[part, model] = self._guess(model, part, matrix, score)

        _work_through(ask, self.candidates, len(self.parts), tell)
        return found

    def own(self, everywhere: FloatArray) -> FloatArray:
        """Of these, the predictions for rows that were not fitted on: models × rows, else NaN."""
        found = np.full(everywhere.shape[1:], np.nan)
        for part, guess in zip(self.parts, everywhere, strict=True):
            found[:, part.test] = guess[:, part.test]
        return found

    def residuals(self, matrices: FloatArray, score: FloatArray, tell: Tell) -> FloatArray:
        """Predicted residuals: copies × models × rows, NaN where a row was only fitted on.

        ``matrices`` holds one or more versions of the inputs: copies × rows × inputs.
        """
        found = np.full((len(matrices), len(self.candidates), matrices.shape[1]), np.nan)

        def ask(model: int, part: int) -> None:
            rows = np.flatnonzero(self.parts[part].test)
            stacked = matrices[:, rows].reshape(-1, matrices.shape[2])
            guess = self._guess(model, part, stacked, np.tile(score[rows], len(matrices)))
            found[:, model, rows] = guess.reshape(len(matrices), rows.size)

        _work_through(ask, self.candidates, len(self.parts), tell)
        return found

    def _guess(self, model: int, part: int, matrix: FloatArray, score: FloatArray) -> FloatArray:
        candidate = self.candidates[model]
        guess = _predict(self.estimators[model][part], matrix, candidate)
        return guess - score if candidate.of_outcome else guess


def fit_models(
    candidates: Sequence[Candidate],
    parts: Sequence[Part],
    matrix: FloatArray,
    outcome: FloatArray,
    score: FloatArray,
    *,
    seed: np.random.SeedSequence,
    tell: Tell,
) -> Fitted:
    """Fit every candidate on every part, on all cores; the answer does not depend on how many."""
    seeds = np.random.default_rng(seed).integers(0, 2**31, (len(candidates), len(parts)))
    made: dict[tuple[int, int], Learnt] = {}

    def fit(model: int, part: int) -> None:
        candidate, rows = candidates[model], parts[part].fit
        wanted = outcome if candidate.of_outcome else outcome - score
        made[model, part] = _fit(candidate, matrix[rows], wanted[rows], int(seeds[model, part]))

    _work_through(fit, candidates, len(parts), tell)
    return Fitted(
        candidates=tuple(candidates),
        parts=tuple(parts),
        estimators=tuple(
            tuple(made[m, k] for k in range(len(parts))) for m in range(len(candidates))
        ),
    )


def default_pool(inputs: int, binary: bool) -> list[Candidate]:
    """The published grid: forests of two depths and widths, a kernel at three penalties.

    There is a forest of the residual and, for 0/1 outcomes, one of the outcome itself: the first
    finds what is off by a little in many rows, the second what is off by much in a few.
    """
    widths = dict.fromkeys((max(1, inputs // 2), max(1, inputs - 1)))
    kinds = (True, False) if binary else (False,)
    grid = itertools.product(kinds, widths, (4, 8))
    forests = [_forest(depth, width, classifier) for classifier, width, depth in grid]
    return [*forests, *(_kernel(penalty, binary) for penalty in (1000.0, 100.0, 10.0))]


def portfolio_pool(inputs: int, binary: bool) -> list[Candidate]:
    """A few unlike models: a tree, boosted trees, forests, and a line on a quadratic kernel."""
    width = max(1, inputs // 2)
    forests = [_forest(4, width, False), *([_forest(8, width, True)] if binary else [])]
    return [_tree(), _boosting(), *forests, _kernel(10.0, binary)]


def as_pool(models: object, binary: bool) -> list[Candidate]:
    """Candidates from a list of scikit-learn estimators, or a mapping from names to them."""
    if isinstance(models, Mapping):
        named = list(models.items())
    elif isinstance(models, Iterable) and not isinstance(models, str):
        named = [(None, model) for model in models]
    else:
        named = []
    if not named:
        raise OptionError(
            "models must be a list of scikit-learn regressors or classifiers, or a mapping from "
            f"names to them; got {models!r}."
        )
    return [_candidate(name, model, binary) for name, model in named]


def _candidate(name: object, model: object, binary: bool) -> Candidate:
    from sklearn.base import clone, is_classifier

    if isinstance(model, type) or not (hasattr(model, "fit") and hasattr(model, "predict")):
        raise OptionError(
            f"models must be scikit-learn estimators with fit and predict; got {model!r}."
        )
    classifier = bool(is_classifier(model))
    if classifier and not binary:
        raise OptionError(f"{model!r} is a classifier, and the label is a real number.")
    if classifier and not hasattr(model, "predict_proba"):
        raise OptionError(f"{model!r} is a classifier without predict_proba; use another one.")

    def make(rows: int, seed: int) -> Unfitted:
        made = clone(model)
        given = made.get_params()
        names = [key for key in given if key.split("__")[-1] == "random_state"]
        learner: Unfitted = made.set_params(**{key: seed for key in names if given[key] is None})
        return learner

    return Candidate(
        name=str(name or _brief(model)), make=make, of_outcome=classifier, classifier=classifier
    )


def _brief(model: object) -> str:
    text = " ".join(repr(model).split())
    return text if len(text) <= 60 else f"{type(model).__name__}(…)"


def _forest(depth: int, width: int, of_outcome: bool) -> Candidate:
    def make(rows: int, seed: int) -> Unfitted:
        return Forest(trees=TREES, depth=depth, width=width, leaf_rows=_leaf(rows), seed=seed)

    of = "outcome" if of_outcome else "residual"
    name = f"forest of the {of}, depth {depth}, {width} inputs a split"
    return Candidate(name=name, make=make, of_outcome=of_outcome, threads=True)


def _tree() -> Candidate:
    def make(rows: int, seed: int) -> Unfitted:
        from sklearn.tree import DecisionTreeRegressor

        learner: Unfitted = DecisionTreeRegressor(
            max_depth=3, min_samples_leaf=_leaf(rows), random_state=seed
        )
        return learner

    return Candidate(name="tree of the residual", make=make, of_outcome=False)


def _boosting() -> Candidate:
    def make(rows: int, seed: int) -> Unfitted:
        from sklearn.ensemble import GradientBoostingRegressor

        learner: Unfitted = GradientBoostingRegressor(
            n_estimators=40, max_depth=3, min_samples_leaf=_leaf(rows), random_state=seed
        )
        return learner

    return Candidate(name="boosted trees of the residual", make=make, of_outcome=False)


def _leaf(rows: int) -> int:
    return max(1, min(LEAF_ROWS, rows // 10))


def _kernel(penalty: float, binary: bool) -> Candidate:
    def make(rows: int, seed: int) -> Unfitted:
        from sklearn.kernel_approximation import Nystroem
        from sklearn.linear_model import LogisticRegression, Ridge
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        size = min(LANDMARKS, rows)
        kernel = Nystroem(kernel="poly", degree=2, coef0=1, n_components=size, random_state=seed)
        last = LogisticRegression(C=penalty, max_iter=300) if binary else Ridge(alpha=1 / penalty)
        learner: Unfitted = make_pipeline(StandardScaler(), kernel, last)
        return learner

    kind = "kernel logistic" if binary else "kernel ridge"
    return Candidate(
        name=f"{kind}, C = {penalty:g}", make=make, of_outcome=binary, classifier=binary
    )


class _Constant:
    """Stands in for a classifier where all outcomes of the part are the same."""

    def __init__(self, value: float) -> None:
        self.value = value

    def predict(self, matrix: FloatArray) -> FloatArray:
        return np.full(len(matrix), self.value)


def _fit(candidate: Candidate, matrix: FloatArray, wanted: FloatArray, seed: int) -> Learnt:
    if candidate.classifier and np.unique(wanted).size < 2:
        return _Constant(float(wanted[0]))
    made = candidate.make(len(matrix), seed)
    try:
        return made.fit(matrix, wanted.astype(np.int64) if candidate.classifier else wanted)
    except Exception as error:
        raise EquipoiseError(
            f"The residual model {candidate.name!r} could not be fitted to {len(matrix):,} rows: "
            f"{type(error).__name__}: {error}"
        ) from error


def _predict(estimator: Learnt, matrix: FloatArray, candidate: Candidate) -> FloatArray:
    if candidate.classifier and isinstance(estimator, Classifies):
        ones = list(estimator.classes_).index(1)
        guess = estimator.predict_proba(matrix)[:, ones]
    else:
        guess = np.asarray(estimator.predict(matrix), dtype=np.float64).reshape(len(matrix))
    if not np.isfinite(guess).all():
        raise EquipoiseError(
            f"The residual model {candidate.name!r} predicts values that are not finite."
        )
    return np.asarray(guess, dtype=np.float64)


def _work_through(
    work: Callable[[int, int], None],
    candidates: Sequence[Candidate],
    parts: int,
    tell: Tell,
) -> None:
    """Do the work of every model and part: in threads where models allow it, then the others.

    No piece of work depends on another, so the number of cores changes nothing.
    """
    import threadpoolctl  # type: ignore[import-untyped]
    from sklearn.exceptions import ConvergenceWarning

    every = list(itertools.product(range(len(candidates)), range(parts)))
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        futures = [pool.submit(work, *task) for task in every if candidates[task[0]].threads]
        try:
            for future in futures:
                future.result()
                tell()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    with warnings.catch_warnings(), threadpoolctl.threadpool_limits(1):
        # A model that has not quite converged is still a guess of where to look.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for task in every:
            if not candidates[task[0]].threads:
                work(*task)
                tell()
