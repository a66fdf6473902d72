"""Numbers of `certify` against definitions written row by row: the default, and the bootstrap."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtr
from scipy.stats import beta, ks_2samp
from scipy.stats import t as student

import equipoise as eq
from equipoise.findings.bounds import BoundedGroup, Bounds
from equipoise.methods.numerics import BoolArray, FloatArray
from tests.unit.audits.oracle import Oracle, member
from tests.unit.audits.table import make_table
from tests.unit.methods.inference.naive import Part, kish, shape_of_rows, turned, usual

# the verbs return one of several findings, which each test knows

TABLE = make_table()
LARGE = make_table(900)
DRAWS = 700
# some thirty comparisons: a right programme fails one in about thirty thousand runs
ALARM = 1e-6
ROLES = {"label": "label", "prediction": "prediction", "score": "score"}
ACROSS: dict[str, Any] = {
    "intersections": eq.intersections("race", "sex"),
    "intervals": eq.intervals("age", edges=(20, 30, 40, 50, 60)),
    "thresholds": eq.thresholds("age", edges=(20, 30, 45, 60)),
    "boxes": eq.boxes("age", "years", edges={"age": (20, 40, 60), "years": (0, 4, 9)}),
    "masks": eq.masks(young="age < 35", new="years < 3", both="age < 35 and years < 3"),
    "bins": eq.bins(eq.intersections("sex"), number=4),
}


def value_of(table: pl.DataFrame, metric: str) -> FloatArray:
    if metric == "accuracy":
        return (table["label"] == table["prediction"]).to_numpy().astype(float)
    return np.abs(table["label"].to_numpy() - table["score"].to_numpy())


TARGETS: dict[str, tuple[Any, dict[str, Any]]] = {
    "constant": (eq.constant(0.6), {"target": "constant", "known": 0.6}),
    "overall": (eq.overall(), {"target": "overall"}),
    "scaled": (0.8 * eq.overall(), {"target": "overall", "factor": 0.8}),
    "reference": (eq.reference(race="a"), {"target": "reference"}),
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


def inside(table: pl.DataFrame, row: BoundedGroup) -> BoolArray:
    age, years = table["age"].to_numpy(), table["years"].to_numpy()
    masks = {"young": age < 35, "new": years < 3, "both": (age < 35) & (years < 3)}
    return masks[row.group] if row.group in masks else member(table, row.where)


def oracle_of(
    table: pl.DataFrame,
    found: Bounds,
    metric: str,
    weight: FloatArray | None = None,
    **options: Any,
) -> Oracle:
    # a group compared with itself never moves
    groups = [inside(table, row) for row in found.rows if row.reach]
    if options["target"] == "reference":
        options["reference"] = table["race"].to_numpy() == "a"
    return Oracle(value_of(table, metric), groups, weight=weight, **options)


# --- the default ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("metric", "kind", "target"), CASES)
def test_estimates_are_those_of_the_rows(metric: str, kind: str, target: str) -> None:
    goal, options = TARGETS[target]
    claim = eq.gap(metric, across=ACROSS[kind], target=goal)
    found = eq.certify(eq.read(LARGE, **ROLES), claim, rng=5)
    answered = [row for row in found.rows if row.reach]
    oracle = oracle_of(LARGE, found, metric, **options)
    assert len(answered) >= 2
    for row, group, gap in zip(answered, oracle.groups, oracle.before, strict=True):
        assert row.n == group.sum()
        assert row.disparity == pytest.approx(gap)
        assert row.lower <= row.disparity <= row.upper


@pytest.mark.parametrize("kind", ["intersections", "masks"])
def test_bounds_of_rates_against_a_number_are_exact(kind: str) -> None:
    claim = eq.gap("accuracy", across=ACROSS[kind], target=0.6)
    found = eq.certify(eq.read(TABLE, **ROLES), claim, rng=5)
    error = float(ndtr(-found.critical))
    correct = value_of(TABLE, "accuracy")
    for row in found.rows:
        group = inside(TABLE, row)
        n, k = int(group.sum()), int(correct[group].sum())
        low = beta.ppf(error, k, n - k + 1) if k else 0.0
        high = beta.ppf(1 - error, k + 1, n - k) if k < n else 1.0
        assert (row.lower, row.upper) == pytest.approx((low - 0.6, high - 0.6), abs=2e-4)


@pytest.mark.parametrize("target", ["constant", "complement"])
@pytest.mark.parametrize("weighted", [False, True])
def test_bounds_of_real_values_are_welchs_with_halls_transformation(
    target: str, weighted: bool
) -> None:
    goal, _ = TARGETS[target]
    claim = eq.gap("absolute_error", across=ACROSS["intersections"], target=goal)
    more = {"weight": "weight"} if weighted else {}
    found = eq.certify(eq.read(LARGE, **ROLES, **more), claim, rng=5)
    x = value_of(LARGE, "absolute_error")
    weight = LARGE["weight"].to_numpy() if weighted else np.ones(x.size)
    error = float(ndtr(-found.critical))
    # the groups are disjoint, and so they are the cells
    cell = sum(i * inside(LARGE, row) for i, row in enumerate(found.rows))
    everyone = shape_of_rows(x, weight, np.asarray(cell))
    for row in found.rows:
        group = inside(LARGE, row)
        members = [group] if target == "constant" else [group, ~group]
        each, sizes, parts, cubes = [], [], [], 0.0
        for sign, part in zip((1, -1), members, strict=False):
            w = weight[part] / weight[part].sum()
            moves = sign * w * (x[part] - (w @ x[part]))
            size = kish(w)
            each.append(float((moves**2).sum()) * size / (size - 1))
            sizes.append(size)
            parts.append(Part(slope=sign, weight=w, moves=moves))
            cubes += float((moves**3).sum())
        variance = sum(each)
        degrees = variance**2 / sum(v**2 / (n - 1) for v, n in zip(each, sizes, strict=True))
        likely = [cubes / variance**1.5, *(usual(everyone, parts, way) for way in (1, -1))]
        assert row.reach == pytest.approx(np.sqrt(variance))
        for end, side in ((row.lower, 1), (row.upper, -1)):
            t = (row.disparity - end) / np.sqrt(variance)
            scores = [t, *(turned(t, g) for g in likely)]
            tail = max(float(student.sf(side * z, degrees)) for z in scores)
            assert tail == pytest.approx(error, rel=2e-3)


# --- the bootstrap as published -------------------------------------------------------------------


def same_law(sides: dict[str, Bounds], low: FloatArray, high: FloatArray) -> bool:
    """Critical values of all levels, whose table is as good as a sample of a thousand."""
    pairs = ((sides["lower"].quantiles, high), (sides["upper"].quantiles, -low))
    # counts give t a lattice of values, which rounding errors must not split
    return all(ks_2samp(np.round(np.array(a), 9), np.round(b, 9)).pvalue > ALARM for a, b in pairs)


def both_sides(trail: eq.Trail, claim: Any) -> dict[str, Bounds]:
    return {
        side: eq.certify(trail, claim, method="bootstrap", side=side, resamples=2000, rng=5)
        for side in ("lower", "upper")
    }


@pytest.mark.parametrize(("metric", "kind", "target"), CASES)
def test_the_process_has_the_naive_distribution(metric: str, kind: str, target: str) -> None:
    goal, options = TARGETS[target]
    claim = eq.gap(metric, across=ACROSS[kind], target=goal)
    found = both_sides(eq.read(TABLE, **ROLES), claim)
    oracle = oracle_of(TABLE, found["lower"], metric, **options)
    low, high = oracle.extremes(DRAWS, seed=8)
    if any(row.note == "the group is its own target" for row in found["lower"].rows):
        # such a group stands still at zero
        low, high = np.minimum(low, 0), np.maximum(high, 0)
    assert same_law(found, low, high)


def test_weights_are_resampled_with_their_rows() -> None:
    claim = eq.gap("accuracy", across=ACROSS["intersections"])
    found = both_sides(eq.read(TABLE, weight="weight", **ROLES), claim)
    weight = TABLE["weight"].to_numpy()
    oracle = oracle_of(TABLE, found["lower"], "accuracy", weight, target="overall")
    assert same_law(found, *oracle.extremes(DRAWS, seed=8))


def test_clusters_are_resampled_whole() -> None:
    claim = eq.gap("accuracy", across=ACROSS["intersections"])
    found = both_sides(eq.read(TABLE, cluster="site", **ROLES), claim)
    assert found["lower"].engine == "clusters"
    oracle = oracle_of(TABLE, found["lower"], "accuracy", target="overall")
    low, high = oracle.extremes(DRAWS, 8, cluster=TABLE["site"].to_numpy())
    assert same_law(found, low, high)


def test_a_wrong_distribution_would_be_noticed() -> None:
    claim = eq.gap("accuracy", across=ACROSS["intersections"])
    found = both_sides(eq.read(TABLE, **ROLES), claim)
    oracle = oracle_of(TABLE, found["lower"], "accuracy", target="complement")
    assert not same_law(found, *oracle.extremes(DRAWS, seed=8))


@pytest.mark.parametrize("method", ["pivotal", "bootstrap"])
def test_counts_are_repeated_rows(method: Any) -> None:
    claim = eq.gap("accuracy", across=ACROSS["intersections"])
    counted = TABLE.group_by("race", "sex", "label", "prediction").len("people")
    roles: dict[str, Any] = {"label": "label", "prediction": "prediction"}
    one, two = (
        eq.certify(trail, claim, method=method, rng=5)
        for trail in (eq.read(TABLE, **roles), eq.read(counted, count="people", **roles))
    )
    assert [(r.lower, r.upper) for r in one.rows] == [(r.lower, r.upper) for r in two.rows]


def test_the_scale_of_weights_does_not_matter_to_clusters_either() -> None:
    draw = np.random.default_rng(8)
    frame = pl.DataFrame(
        {
            "g": draw.choice(["a", "b", "c"], 300),
            "p": draw.integers(0, 2, 300),
            "c": draw.integers(0, 60, 300),
            "w": draw.uniform(0.5, 2.0, 300),
        }
    )
    claim = eq.gap(eq.selection_rate, across="g", target=eq.complement())
    found = [
        eq.certify(
            eq.read(table, prediction="p", cluster="c", weight="w", attributes=["g"]), claim, rng=1
        ).rows
        for table in (frame, frame.with_columns(w=pl.col("w") * 2.0**40))
    ]
    assert [(r.lower, r.upper) for r in found[0]] == [(r.lower, r.upper) for r in found[1]]
