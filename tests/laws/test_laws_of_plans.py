"""Laws of writing down: what is written is read back as it was."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.claims.claim import Target
from equipoise.claims.groups import Groups
from equipoise.claims.metric import METRICS
from equipoise.findings import from_dict, from_json
from tests.laws.oracle import Row
from tests.laws.tables import law, rows, trail_of

names = st.one_of(
    st.sampled_from(["race", "kind", "number", "mapping", "where", "n", "a b", "größe", '"; DROP']),
    st.text(min_size=1, max_size=8),
)
numbers = st.floats(-1e6, 1e6)
edges = st.lists(numbers, min_size=2, max_size=5, unique=True).map(sorted)
formulas = st.sampled_from(["x", "abs(label - score)", "label == 0 and x in (1, 2)", "not flag"])
levels = st.one_of(st.text(max_size=5), st.integers(), st.booleans(), numbers, st.none())
MEANS = [metric for metric in METRICS.values() if metric.measure is None]
metrics = st.one_of(
    st.sampled_from(MEANS),
    st.builds(
        lambda name, value, where: eq.metric(name, value, where=where),
        st.sampled_from(["mine", "accuracy"]),
        formulas,
        st.one_of(st.none(), formulas),
    ),
    st.sampled_from(MEANS).map(lambda m: m.clip(-0.25, 0.75)),
)
attributes = st.one_of(names, st.builds(lambda name, cuts: eq.binned(name, cuts), names, edges))
plain_groups: st.SearchStrategy[Groups] = st.one_of(
    st.lists(attributes, min_size=1, max_size=3, unique_by=lambda a: getattr(a, "column", a)).map(
        lambda chosen: eq.intersections(*chosen, depth=1)
    ),
    st.builds(lambda name, ends: eq.intervals(name, edges=ends), names, edges),
    st.builds(lambda name, grid: eq.thresholds(name, grid=grid), names, st.integers(1, 9)),
    st.builds(lambda name: eq.intervals(name, max_groups=7), names),
    st.lists(names, min_size=2, max_size=2, unique=True).map(lambda two: eq.boxes(*two, grid=3)),
    st.dictionaries(names.filter(str.strip), formulas, min_size=1, max_size=3).map(eq.masks),
)
tilts = st.one_of(
    st.dictionaries(names.filter(str.strip), formulas, min_size=1, max_size=3).map(eq.tilts),
    st.lists(names.filter(str.strip), min_size=1, max_size=3, unique=True).map(
        lambda columns: eq.tilts(*columns)
    ),
)
groups = st.one_of(
    plain_groups,
    tilts,
    st.builds(
        lambda inner, ends: eq.bins(inner, edges=ends),
        st.just(eq.intersections("sex")),
        edges,
    ),
)
targets: st.SearchStrategy[Target] = st.builds(
    lambda target, scale: scale * target,
    st.one_of(
        st.just(eq.overall()),
        st.just(eq.complement()),
        numbers.map(eq.constant),
        st.dictionaries(names, levels, min_size=1, max_size=2).map(eq.reference),
        st.builds(eq.custom, numbers, formulas),
    ),
    st.sampled_from([1.0, 0.8, -2.0]),
)


@law
@given(st.sampled_from([eq.gap, eq.ratio]), metrics, groups, targets)
def test_every_claim_survives_a_plan(make, metric, across, target) -> None:  # type: ignore[no-untyped-def]
    if make is eq.ratio and getattr(target, "value", None) == 0:
        target = eq.overall()
    claim = make(metric, across=across, target=target)
    written = json.loads(json.dumps(claim.to_plan(), allow_nan=False))
    back = eq.from_plan(written)
    assert back == claim
    assert hash(back) == hash(claim)
    assert repr(back) == repr(claim)
    for part in (claim.metric, claim.across, claim.target):
        assert eq.from_plan(part.to_plan()) == part


measures = st.one_of(
    st.sampled_from([metric for metric in METRICS.values() if metric.measure is not None]),
    st.builds(eq.quantile, formulas, st.floats(0.01, 0.99)),
    st.builds(eq.standardised, formulas),
    st.builds(eq.actual_over_expected, formulas, formulas),
    st.lists(st.floats(0.01, 0.99), min_size=1, max_size=4, unique=True).map(
        lambda inner: eq.calibration_error([0.0, *sorted(inner), 1.0])
    ),
)


@law
@given(st.sampled_from([eq.gap, eq.ratio]), measures, plain_groups)
def test_every_measure_survives_a_plan(make, metric, across) -> None:  # type: ignore[no-untyped-def]
    claim = make(metric, across=across, target=0.8 * eq.complement())
    back = eq.from_plan(json.loads(json.dumps(claim.to_plan(), allow_nan=False)))
    assert back == claim
    assert (hash(back), repr(back)) == (hash(claim), repr(claim))


def test_joined_claims_survive_a_plan() -> None:
    claim = eq.equalized_odds(across=("race", "sex"), target=eq.reference(kind="a", number=3))
    assert eq.from_plan(json.loads(json.dumps(claim.to_plan()))) == claim


@law
@given(rows, st.sampled_from(["kind", "number", "mapping", "n", "group"]))
def test_findings_survive_json(table: list[Row], name: str) -> None:
    renamed: list[Row] = [{**row, name: row["g"]} for row in table]
    import polars as pl

    frame = pl.DataFrame(renamed, infer_schema_length=None)
    trail = eq.read(frame, label="y", prediction="p", score="s")
    across = eq.intersections(name, eq.binned("x", cuts=(1, 4)))
    found = eq.describe(trail, eq.ratio("accuracy", across=across, target=eq.complement()))
    assert from_json(found.to_json()) == found
    assert from_dict(json.loads(found.to_json(indent=2))) == found
    assert {name, "x"} <= {key for row in found.rows for key in row.where}


def test_an_expression_is_named_in_a_finding_and_refused_by_a_plan() -> None:
    import narwhals as nw

    claim = eq.gap(eq.metric("twice", nw.col("z") * 2, where=~nw.col("z").is_null()), across="h")
    table: list[Row] = [
        {
            "g": "a",
            "h": h,
            "k": 1,
            "x": 1.0,
            "z": 2.0,
            "y": 1,
            "p": 1,
            "s": 0.5,
            "times": 1,
            "w": 1.0,
        }
        for h in "uv"
    ]
    found = eq.describe(trail_of(table), claim)
    assert [row.value for row in found.rows] == [4.0, 4.0]
    assert from_json(found.to_json()) == found
    with pytest.raises(eq.ClaimError, match="cannot be written to a plan"):
        claim.to_plan()
