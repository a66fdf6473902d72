"""False alarms of calibration audits, and that they find what is there.

One fixed seed and a binomial band: with W worlds at the nominal rate, more false alarms than the
upper end of the band have a chance below 1e-5. The residual models are few and quick; the full pool
is in validation/.
"""

from functools import cache

import numpy as np
import polars as pl
import pytest
from scipy.special import bdtrc
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import equipoise as eq
from equipoise.worlds import boundary_risks, interaction_risks, segment_risks

MODELS = {
    "tree of outcomes": DecisionTreeClassifier(max_depth=4, min_samples_leaf=10),
    "tree of residuals": DecisionTreeRegressor(max_depth=3, min_samples_leaf=10),
    "line": LogisticRegression(),
}
SEED, WORLDS, N = 20260106, 80, 300


def most(count: int, nominal: float) -> int:
    """The largest number of errors that is compatible with the nominal rate."""
    return next(k for k in range(count + 1) if bdtrc(k, count, nominal) < 1e-5)


@cache
def trails(name: str, worlds: int, n: int) -> list[eq.Trail]:
    make = {"edge": boundary_risks, "segments": segment_risks, "corner": interaction_risks}[name]
    rng = np.random.default_rng(SEED)
    tables = (make(n, rng=rng) for _ in range(worlds))
    frames = (pl.DataFrame(table).drop("risk") for table in tables)
    return [eq.read(frame, label="y", score="score") for frame in frames]


def p_values(name: str, worlds: int, n: int, **options: object) -> np.ndarray:
    given = {"models": MODELS, "resamples": 99, "importance": 0, **options}
    found = (eq.calibration(t, rng=i, **given) for i, t in enumerate(trails(name, worlds, n)))  # type: ignore[arg-type]
    return np.array([finding.p for finding in found])


@pytest.mark.slow
@pytest.mark.parametrize("side", ["upper", "both"])
@pytest.mark.parametrize("split", [None, 0.6])
def test_false_alarms_at_the_edge_of_the_tolerance(side: str, split: float | None) -> None:
    p = p_values("edge", WORLDS, N, tolerance=0.025, side=side, split=split)
    assert (p <= 0.1).sum() <= most(WORLDS, 0.1)


@pytest.mark.slow
def test_false_alarms_in_48_segments() -> None:
    p = p_values("segments", WORLDS, N, tolerance=0.0)
    assert (p <= 0.1).sum() <= most(WORLDS, 0.1)
    # the draws are not merely conservative: some p-values are small
    assert (p <= 0.5).sum() >= 10


@pytest.mark.slow
def test_folds_without_a_correction_would_be_caught() -> None:
    published = p_values("segments", WORLDS, N, tolerance=0.0, method="cusum-published")
    corrected = p_values("segments", WORLDS, N, tolerance=0.0, method="cusum")
    assert (published <= 0.1).sum() > (corrected <= 0.1).sum()


def test_a_corner_is_found_more_often_than_along_the_score_alone() -> None:
    ours = p_values("corner", 12, 800, tolerance=0.05)
    assert (ours <= 0.1).sum() >= 10
    for method in ("platt", "hosmer-lemeshow"):
        other = p_values("corner", 12, 800, tolerance=0.05, method=method, models=None)
        assert (other <= 0.1).sum() <= (ours <= 0.1).sum() - 4


def test_a_test_that_fits_on_the_rows_it_tests_would_be_caught() -> None:
    # without separate rows the same statistic is wrong almost always: the band has teeth
    from equipoise.methods import cusum

    wrong = 0
    for i in range(20):
        table = boundary_risks(N, rng=i, tolerance=0.0)
        x = np.column_stack([table[f"x{j}"] for j in range(10)])
        y, score = np.asarray(table["y"], dtype=float), np.asarray(table["score"], dtype=float)
        guess = DecisionTreeRegressor(max_depth=4, random_state=0).fit(x, y - score).predict(x)
        null = cusum.bernoulli_null(y, score, tolerance=0.0)
        statistic = cusum.cusum(cusum.violations(guess[None], null), null, prevalence=0.02)
        wrong += (
            cusum.run_test(statistic, null=null, draws=99, seed=np.random.SeedSequence(i)).p <= 0.1
        )
    assert wrong > most(20, 0.1)
