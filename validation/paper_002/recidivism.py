"""The COMPAS design of section 5: cells, models and group metrics, from the bundled counts.

African-American and Caucasian people screened within 30 days. A cell is sex × race × age ×
priors × charge × outcome; cells that differ only in sex or race are comparable, at no cost.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib import resources
from itertools import product

import numpy as np
from sklearn.linear_model import LogisticRegression

from equipoise.methods.numerics import FloatArray, IntArray
from equipoise.methods.transport import Classes, Problem, prepare, within_classes

SEXES, RACES = ("Male", "Female"), ("African-American", "Caucasian")
LEVELS = {
    "age": ("Less than 25", "25 - 45", "Greater than 45"),
    "priors": ("0", "1 to 3", "More than 3"),
    "charge": ("Felony", "Misdemeanor"),
}
# columns of the models, in the order of `_features`
FEATURES = (
    "female",
    "Caucasian",
    "under 25",
    "25 to 45",
    "over 45",
    "no priors",
    "1 to 3 priors",
    "more than 3 priors",
    "felony",
)
DELTA = 0.0365


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """The cells of the audit, people with each profile and either outcome."""

    profiles: list[tuple[str, str, str, str, str]]
    outcome: IntArray
    features: FloatArray
    caucasian: IntArray
    counts: IntArray
    moves: Classes

    def problem(self, predicted: IntArray) -> Problem:
        """The auditor's problem with 0/1 loss."""
        return prepare(self.moves, (predicted != self.outcome).astype(float))


def load() -> Cells:
    """Read the bundled counts."""
    path = resources.files("equipoise") / "datasets" / "compas.csv"
    with path.open(encoding="utf-8") as handle:
        table = [row for row in csv.DictReader(handle) if row["screened"] == "1"]
    profiles = list(product(SEXES, RACES, *LEVELS.values()))
    cells = [(profile, y) for profile in profiles for y in (0, 1)]
    place = {cell: i for i, cell in enumerate(cells)}
    counts = np.zeros(len(cells), dtype=np.int64)
    for row in table:
        key = (row["sex"], row["race"], row["age"], row["priors"], row["charge"])
        if row["race"] in RACES:
            counts[place[key, int(row["reoffended"])]] += int(row["n"])
    return Cells(
        profiles=[profile for profile, _ in cells],
        outcome=np.array([y for _, y in cells]),
        features=_features([profile for profile, _ in cells]),
        caucasian=np.array([int(profile[1] == "Caucasian") for profile, _ in cells]),
        counts=counts,
        moves=within_classes([str((*profile[2:], y)) for profile, y in cells]),
    )


def _features(profiles: list[tuple[str, str, str, str, str]]) -> FloatArray:
    columns = [[p[0] == "Female" for p in profiles], [p[1] == "Caucasian" for p in profiles]]
    for k, names in enumerate(LEVELS.values()):
        # indicators of every level, as one-hot coding gives them; one for a two-level attribute
        for name in names if len(names) > 2 else names[:1]:
            columns.append([p[2 + k] == name for p in profiles])
    return np.array(columns, dtype=float).T


def fit(
    cells: Cells,
    train: IntArray,
    *,
    weight: FloatArray | None = None,
    lasso: float | None = None,
) -> IntArray:
    """Logistic regression on the training counts; its prediction in every cell."""
    model = fitted(cells, train, weight=weight, lasso=lasso)
    return np.asarray(model.predict(cells.features), dtype=np.int64)


def fitted(
    cells: Cells,
    train: IntArray,
    *,
    weight: FloatArray | None = None,
    lasso: float | None = None,
) -> LogisticRegression:
    """The fitted regression itself, with an ℓ₁ penalty if asked."""
    used = train > 0
    model = (
        LogisticRegression(solver="liblinear")
        if lasso is None
        else LogisticRegression(solver="liblinear", C=lasso, l1_ratio=1.0, random_state=0)
    )
    share = train * (1.0 if weight is None else weight)
    return model.fit(cells.features[used], cells.outcome[used], sample_weight=share[used])


def reweighing(cells: Cells, train: IntArray) -> FloatArray:
    """Weights that make race and outcome independent in the training data."""
    total, weight = train.sum(), np.ones(train.size)
    for race, y in product((0, 1), (0, 1)):
        a, b = cells.caucasian == race, cells.outcome == y
        joint = train[a & b].sum() / total
        weight[a & b] = train[a].sum() * train[b].sum() / total**2 / joint
    return weight


def split(counts: IntArray, share: float, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """A random part of the rows and the rest, from counts."""
    part = rng.multivariate_hypergeometric(counts, round(share * int(counts.sum())))
    return part, counts - part


def group_metrics(cells: Cells, counts: IntArray, predicted: IntArray) -> dict[str, float]:
    """Accuracy and the three group metrics; not to re-offend is the favourable outcome."""
    good, truth = predicted == 0, cells.outcome == 0

    def rate(condition: IntArray) -> tuple[float, float]:
        both = [
            counts[condition & good & (cells.caucasian == r)].sum()
            / counts[condition & (cells.caucasian == r)].sum()
            for r in (0, 1)
        ]
        return both[0], both[1]

    chosen, true_rate, false_rate = rate(truth | ~truth), rate(truth), rate(~truth)
    equal = true_rate[0] - true_rate[1]
    return {
        "accuracy": float(counts[predicted == cells.outcome].sum() / counts.sum()),
        "average_odds": float((equal + false_rate[0] - false_rate[1]) / 2),
        "equal_opportunity": float(equal),
        "statistical_parity": float(chosen[0] - chosen[1]),
    }
