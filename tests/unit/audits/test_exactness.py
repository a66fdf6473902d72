"""What `certify` stores of its resamples has the distribution of a row-by-row bootstrap."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp

import equipoise as eq
from equipoise.findings.bounds import Bounds
from tests.unit.audits.oracle import Oracle, member
from tests.unit.audits.table import make_table

# the verbs return one of several findings, which each test knows
certify_: Any = eq.certify

TABLE = make_table()
DRAWS = 700
# some sixty comparisons: a right programme fails one in about twenty thousand runs
ALARM = 1e-6
FORMS = {"bootstrap": "studentized", "bootstrap-published": "published"}
ROLES = {"label": "label", "prediction": "prediction", "score": "score"}
ACROSS: dict[str, Any] = {
    "intersections": eq.intersections("race", "sex"),
    "intervals": eq.intervals("age", edges=(20, 30, 40, 50, 60)),
    "thresholds": eq.thresholds("age", edges=(20, 30, 45, 60)),
    "boxes": eq.boxes("age", "years", edges={"age": (20, 40, 60), "years": (0, 4, 9)}),
    "masks": eq.masks(young="age < 35", new="years < 3", both="age < 35 and years < 3"),
    "bins": eq.bins(eq.intersections("sex"), number=4),
}
VALUE = {
    "accuracy": (TABLE["label"] == TABLE["prediction"]).to_numpy().astype(float),
    "absolute_error": np.abs(TABLE["label"].to_numpy() - TABLE["score"].to_numpy()),
}
MASKS = {
    "young": TABLE["age"].to_numpy() < 35,
    "new": TABLE["years"].to_numpy() < 3,
}
MASKS["both"] = MASKS["young"] & MASKS["new"]
TARGETS: dict[str, tuple[Any, dict[str, Any]]] = {
    "constant": (eq.constant(0.6), {"target": "constant", "known": 0.6}),
    "overall": (eq.overall(), {"target": "overall"}),
    "scaled": (0.8 * eq.overall(), {"target": "overall", "factor": 0.8}),
    "reference": (
        eq.reference(race="a"),
        {"target": "reference", "reference": TABLE["race"].to_numpy() == "a"},
    ),
    "complement": (eq.complement(), {"target": "complement"}),
}
CASES = [
    *[("accuracy", "intersections", target) for target in TARGETS],
    *[("absolute_error", "intersections", target) for target in TARGETS],
    *[("accuracy", kind, "overall") for kind in list(ACROSS)[1:]],
    ("absolute_error", "intervals", "constant"),
    ("absolute_error", "masks", "reference"),
    ("absolute_error", "thresholds", "complement"),
]


def groups_of(found: Bounds) -> list[Any]:
    """Membership of the audited groups; a group compared with itself never moves."""
    rows = [row for row in found.rows if row.reach]
    return [MASKS[row.group] if row.group in MASKS else member(TABLE, row.where) for row in rows]


def same_law(ours: Bounds, low: np.ndarray, high: np.ndarray) -> bool:
    drawn = np.array(ours.draws)
    pairs = ((drawn[:, 0], low), (drawn[:, 1], high))
    # counts give t a lattice of values, which rounding errors must not split
    return all(ks_2samp(np.round(a, 9), np.round(b, 9)).pvalue > ALARM for a, b in pairs)


@pytest.mark.parametrize(("metric", "kind", "target"), CASES)
@pytest.mark.parametrize("form", ["bootstrap", "bootstrap-published"])
def test_the_process_has_the_naive_distribution(
    metric: str, kind: str, target: str, form: str
) -> None:
    goal, options = TARGETS[target]
    claim = eq.gap(metric, across=ACROSS[kind], target=goal)
    found = certify_(eq.read(TABLE, **ROLES), claim, method=form, resamples=2000, rng=5)
    assert isinstance(found, Bounds)
    oracle = Oracle(VALUE[metric], groups_of(found), **options)
    low, high = oracle.extremes(FORMS[form], DRAWS, seed=8)
    if any(row.reach == 0 for row in found.rows):
        # a group that is its own target stands still at zero
        low, high = np.minimum(low, 0), np.maximum(high, 0)
    assert same_law(found, low, high)


@pytest.mark.parametrize("form", ["bootstrap", "bootstrap-published"])
def test_weights_are_resampled_with_their_rows(form: str) -> None:
    claim = eq.gap("accuracy", across=ACROSS["intersections"])
    trail = eq.read(TABLE, weight="weight", **ROLES)
    found = certify_(trail, claim, method=form, resamples=2000, rng=5)
    assert isinstance(found, Bounds)
    oracle = Oracle(
        VALUE["accuracy"], groups_of(found), "overall", weight=TABLE["weight"].to_numpy()
    )
    assert same_law(
        found,
        *oracle.extremes(FORMS[form], DRAWS, seed=8),
    )


def test_clusters_are_resampled_whole() -> None:
    claim = eq.gap("accuracy", across=ACROSS["intersections"])
    found = certify_(eq.read(TABLE, cluster="site", **ROLES), claim, resamples=2000, rng=5)
    assert isinstance(found, Bounds)
    assert found.engine == "clusters"
    assert found.method["studentized"] is False
    oracle = Oracle(VALUE["accuracy"], groups_of(found), "overall")
    low, high = oracle.extremes("published", DRAWS, 8, cluster=TABLE["site"].to_numpy())
    assert same_law(found, low, high)


def test_a_wrong_distribution_would_be_noticed() -> None:
    claim = eq.gap("accuracy", across=ACROSS["intersections"])
    found = certify_(eq.read(TABLE, **ROLES), claim, resamples=2000, rng=5)
    assert isinstance(found, Bounds)
    oracle = Oracle(VALUE["accuracy"], groups_of(found), "complement")
    assert not same_law(found, *oracle.extremes("studentized", DRAWS, seed=8))


def test_counts_are_repeated_rows() -> None:
    claim = eq.gap("accuracy", across=ACROSS["intersections"])
    counted = TABLE.group_by("race", "sex", "label", "prediction").len("people")
    one = certify_(eq.read(TABLE, label="label", prediction="prediction"), claim, rng=5)
    two = certify_(
        eq.read(counted, label="label", prediction="prediction", count="people"), claim, rng=5
    )
    assert [(r.lower, r.upper) for r in one.rows] == [(r.lower, r.upper) for r in two.rows]
