"""Tilts in `certify` and `flag`: groups as a special case, and weighted means beyond it."""

import importlib
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtr
from scipy.stats import t as student

import equipoise as eq
from equipoise.findings import from_json
from equipoise.methods.stored import StoredCounts
from tests.unit.audits.table import make_table
from tests.unit.methods.inference.naive import Part, shape_of_rows, turned, usual

# the verbs return one of several findings, which each test knows

N = 400
TABLE = make_table(n=N, seed=11).with_columns(
    heavy=pl.Series(np.round(np.random.default_rng(5).lognormal(size=N), 3)),
    young=pl.Series(np.random.default_rng(6).integers(0, 2, N)),
    nothing=pl.lit(0.0),
)
ROLES: dict[str, Any] = {"label": "label", "prediction": "prediction", "score": "score"}
TRAIL = eq.read(TABLE, **ROLES)
MASKS = eq.masks(young="age < 35", new="years < 3", women="sex == 'f' and age < 50")
SAME = eq.tilts(young="age < 35", new="7.5 * (years < 3)", women="sex == 'f' and age < 50")
MIXED = eq.tilts("heavy", older="age / 100", steep="exp(0 - years)", women="sex == 'f'")
WEIGHT = {
    "heavy": TABLE["heavy"].to_numpy(),
    "older": TABLE["age"].to_numpy() / 100,
    "steep": np.exp(-TABLE["years"].to_numpy().astype(float)),
    "women": (TABLE["sex"].to_numpy() == "f").astype(float),
}
VALUE = {
    "accuracy": (TABLE["label"] == TABLE["prediction"]).to_numpy().astype(float),
    "absolute_error": np.abs(TABLE["label"].to_numpy() - TABLE["score"].to_numpy()),
}


def numbers(finding: Any) -> list[dict[str, Any]]:
    """Everything about the rows but what they are called by."""
    names = [field for field in finding.row_type.__slots__ if field != "where"]
    return [{name: getattr(row, name) for name in names} for row in finding.rows]


CERTIFY = ["pivotal", "bootstrap", "bootstrap-unscaled", "euclidean"]
TARGETS = {
    "overall": eq.overall(),
    "constant": eq.constant(0.6),
    "reference": 0.9 * eq.reference(race="a"),
    "complement": eq.complement(),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("method", CERTIFY)
def test_indicators_give_the_numbers_of_groups_to_the_last_digit(method: Any, target: str) -> None:
    short: dict[str, Any] = {} if method == "euclidean" else {"resamples": 200}
    groups, tilts = (
        eq.certify(
            TRAIL,
            eq.gap("accuracy", across=across, target=TARGETS[target]),
            method=method,
            tolerance=0.2,
            rng=3,
            **short,
        )
        for across in (MASKS, SAME)
    )
    assert numbers(tilts) == numbers(groups)
    assert (tilts.quantiles, tilts.critical) == (groups.quantiles, groups.critical)


@pytest.mark.parametrize(
    ("metric", "roles"),
    [
        ("accuracy", {}),
        ("accuracy", {"weight": "weight"}),
        ("accuracy", {"cluster": "site"}),
        ("absolute_error", {}),
        ("absolute_error", {"weight": "weight"}),
    ],
)
def test_indicators_are_groups_with_every_default(metric: str, roles: dict[str, str]) -> None:
    trail = eq.read(TABLE, **ROLES, **roles)
    for verb, options in (
        (eq.certify, {"resamples": 100}),
        (eq.certify, {"method": "certificates", "tolerance": 0.2, "resamples": 100}),
        (eq.flag, {"above": 0.01}),
        (eq.flag, {"method": "bootstrap", "resamples": 100}),
    ):
        groups, tilts = (
            verb(trail, eq.gap(metric, across=across), rng=4, **options) for across in (MASKS, SAME)
        )
        assert numbers(tilts) == numbers(groups)
        assert tilts.engine == groups.engine
        assert tilts.method == groups.method


def test_indicators_are_groups_of_clusters() -> None:
    # an engine adds up the values of a cluster in an order of its own
    trail = eq.read(TABLE, cluster="site", **ROLES)
    claims = [eq.gap("absolute_error", across=across) for across in (MASKS, SAME)]
    groups, tilts = (eq.certify(trail, claim, resamples=100, rng=4) for claim in claims)
    for a, b in zip(groups.rows, tilts.rows, strict=True):
        assert (a.lower, a.upper) == pytest.approx((b.lower, b.upper), rel=1e-9)


def test_indicators_are_groups_in_ratios_and_in_the_other_verbs() -> None:
    ratio = [eq.ratio("selection_rate", across=across) for across in (MASKS, SAME)]
    groups, tilts = (eq.flag(TRAIL, claim, below=0.8) for claim in ratio)
    assert numbers(groups) == numbers(tilts)
    gap = [eq.gap("accuracy", across=across) for across in (MASKS, SAME)]
    described = [eq.describe(TRAIL, claim) for claim in gap]
    assert numbers(described[0]) == numbers(described[1])
    tested = [eq.joint_test(TRAIL, claim, rng=1) for claim in gap]
    assert tested[0].p == tested[1].p


def test_a_zero_one_column_is_a_group() -> None:
    column = eq.certify(TRAIL, eq.gap("accuracy", across=eq.tilts("young")), rng=1)
    formula = eq.certify(TRAIL, eq.gap("accuracy", across=eq.masks(young="young == 1")), rng=1)
    assert numbers(column) == numbers(formula)
    assert column.recipe is not None
    assert isinstance(column.recipe, StoredCounts)


def test_a_missing_attribute_is_outside_a_condition_as_outside_a_group() -> None:
    holes = TABLE.with_columns(age=pl.when(pl.col("years") == 4).then(None).otherwise("age"))
    trail = eq.read(holes, **ROLES)
    groups, tilts = (
        eq.certify(trail, eq.gap("accuracy", across=across), rng=2)
        for across in (eq.masks(young="age < 35"), eq.tilts(young="age < 35"))
    )
    assert numbers(groups) == numbers(tilts)
    with pytest.raises(eq.TrailError, match="missing or not a number"):
        eq.certify(trail, eq.gap("accuracy", across=eq.tilts(older="age / 100")), rng=2)


@pytest.mark.parametrize("metric", VALUE)
@pytest.mark.parametrize("weighted", [False, True])
def test_estimates_are_weighted_means(metric: str, weighted: bool) -> None:
    roles = {"weight": "weight"} if weighted else {}
    trail = eq.read(TABLE, **ROLES, **roles)
    w = TABLE["weight"].to_numpy() if weighted else np.ones(N)
    found = eq.certify(trail, eq.gap(metric, across=MIXED), resamples=50, rng=1)
    for row in found.rows:
        h = WEIGHT[row.group]
        assert row.value == pytest.approx(np.average(VALUE[metric], weights=w * h), rel=1e-9)
        assert row.target == pytest.approx(np.average(VALUE[metric], weights=w), rel=1e-9)
        assert row.n == round(float(h.sum() ** 2 / (h**2).sum()))


@pytest.mark.parametrize("metric", VALUE)
@pytest.mark.parametrize("target", ["overall", "constant", "reference"])
def test_bounds_are_those_of_the_influence_of_every_row(metric: str, target: str) -> None:
    """Welch's and Hall's numbers from rows, the rows of a tilt being what Kish makes of them."""
    claim = eq.gap(metric, across=MIXED, target=TARGETS[target])
    found = eq.certify(TRAIL, claim, rng=1)
    x, error = VALUE[metric], float(ndtr(-found.critical))
    other, scale = {
        "overall": (np.ones(N), 1.0),
        "constant": (np.zeros(N), 1.0),
        "reference": ((TABLE["race"].to_numpy() == "a").astype(float), 0.9),
    }[target]
    answered = [row for row in found.rows if not row.note]
    # lognormal weights are too much for the skewness of a rate, and little else is
    assert {row.group for row in found.rows} - {row.group for row in answered} <= {"heavy"}
    # no two rows have the same weights in all tilts, so that each is a cell, and a part, of its own
    assert TABLE.select("heavy", "age", "years", "sex").is_unique().all()
    everyone, one = shape_of_rows(x, np.ones(N), np.arange(N)), np.ones(1)
    for row in answered:
        h = WEIGHT[row.group]
        moves, slopes = h * (x - row.value) / h.sum(), h / h.sum()
        if other.any():
            theta = np.average(x, weights=other)
            moves = moves - scale * other * (x - theta) / other.sum()
            slopes = slopes - scale * other / other.sum()
        # the finding's own standard error, whatever small-sample factor is in it
        assert row.reach == pytest.approx(np.sqrt((moves**2).sum()), rel=0.02)
        parts = [Part(slope=float(a), weight=one, moves=moves[[i]]) for i, a in enumerate(slopes)]
        likely = [
            float((moves**3).sum()) / row.reach**3,
            *(usual(everyone, parts, way, tilted=True) for way in (1, -1)),
        ]
        for end, side in ((row.lower, 1), (row.upper, -1)):
            t = (row.disparity - end) / row.reach
            scores = [t, *(turned(t, g) for g in likely)]
            wide = max(float(student.sf(side * z, row.n / 2)) for z in scores)
            near = max(float(ndtr(-side * z)) for z in scores)
            # between a normal and Student's with half the rows as degrees of freedom
            assert near <= error * 1.1
            assert wide >= error * 0.9


def test_the_scale_of_a_tilt_does_not_matter() -> None:
    plain, scaled = (
        eq.certify(TRAIL, eq.gap("accuracy", across=eq.tilts(older=formula)), resamples=100, rng=1)
        for formula in ("age / 100", "age * 1000000")
    )
    for a, b in zip(plain.rows, scaled.rows, strict=True):
        assert (a.value, a.lower, a.upper) == pytest.approx((b.value, b.lower, b.upper), rel=1e-9)


def test_row_order_and_repeated_rows_change_nothing() -> None:
    claim = eq.gap("absolute_error", across=MIXED)
    plain = eq.certify(TRAIL, claim, resamples=60, rng=1)
    assert eq.certify(eq.read(TABLE[::-1], **ROLES), claim, resamples=60, rng=1) == plain
    twice = TABLE.with_columns(times=pl.Series([2] * N))
    counted = eq.certify(eq.read(twice, count="times", **ROLES), claim, resamples=60, rng=1)
    repeated = eq.certify(eq.read(pl.concat([TABLE, TABLE]), **ROLES), claim, resamples=60, rng=1)
    assert numbers(counted) == numbers(repeated)


def test_functions_weigh_like_formulas() -> None:
    across = eq.tilts(
        older=lambda c: c["age"] / 100,
        women=lambda c: c["sex"] == "f",
        columns=["age", "sex"],
    )
    claim = eq.gap("accuracy", across=across)
    ours = eq.certify(TRAIL, claim, resamples=200, rng=1)
    formulas = eq.tilts(older="age / 100", women="sex == 'f'")
    theirs = eq.certify(TRAIL, eq.gap("accuracy", across=formulas), resamples=200, rng=1)
    for a, b in zip(ours.rows, theirs.rows, strict=True):
        assert (a.group, a.n, a.note) == (b.group, b.n, b.note)
        assert (a.value, a.reach) == pytest.approx((b.value, b.reach), rel=1e-9)
    assert ours.claim["across"]["weights"][0]["function"] == "a function"
    assert from_json(ours.to_json()) == ours


def test_a_function_sees_missing_values() -> None:
    holes = TABLE.with_columns(
        age=pl.when(pl.col("years") == 4).then(None).otherwise("age"),
        sex=pl.when(pl.col("years") == 5).then(None).otherwise("sex"),
    )

    def known(columns: Any) -> Any:
        here = np.array([sex is not None for sex in columns["sex"]])
        return np.where(np.isnan(columns["age"]), 0.0, 1.0 + 0.5 * here)

    claim = eq.gap("accuracy", across=eq.tilts(known=known, columns=["age", "sex"]))
    (row,) = eq.certify(eq.read(holes, **ROLES), claim, resamples=50, rng=1).rows
    years = TABLE["years"].to_numpy()
    h = np.where(years == 4, 0.0, np.where(years == 5, 1.0, 1.5))
    assert row.value == pytest.approx(np.average(VALUE["accuracy"], weights=h), rel=1e-9)


def weights_of(bad: Any) -> eq.Trail:
    column = pl.Series("bad", [bad, *[1.0] * (N - 1)], dtype=pl.Float64)
    return eq.read(TABLE.with_columns(column), **ROLES)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (-0.5, "on 1 row on which the metric counts they are negative"),
        (float("nan"), "they are missing or not a number"),
        (None, "they are missing or not a number"),
        (float("inf"), "they are infinite"),
    ],
)
def test_bad_weights_are_refused_where_the_metric_counts(bad: Any, message: str) -> None:
    trail = weights_of(bad)
    for across in (eq.tilts("bad"), eq.tilts(bad=lambda c: c["bad"], columns=["bad"])):
        # a function's input comes as a level, which an infinite number may be too
        with pytest.raises(eq.TrailError, match=message):
            eq.certify(trail, eq.gap("accuracy", across=across), rng=1)
    label = int(TABLE["label"][0])
    elsewhere = "false_positive_rate" if label == 1 else "true_positive_rate"
    found = eq.certify(trail, eq.gap(elsewhere, across=eq.tilts("bad", older="age")), rng=1)
    assert found.ask("bad").n == sum(TABLE["label"].to_numpy() != label)


def test_a_tilt_without_weight_has_a_stated_outcome() -> None:
    across = eq.tilts("nothing", older="age / 100", nobody="age > 200")
    claim = eq.gap("accuracy", across=across)
    bounds = eq.certify(TRAIL, claim, resamples=50, tolerance=0.5, rng=1)
    flags = eq.flag(TRAIL, claim, rng=1)
    certificates = eq.certify(
        TRAIL, claim, method="certificates", tolerance=0.9, resamples=50, rng=1
    )
    for found in (bounds, flags, certificates):
        for name in ("nothing", "nobody"):
            row = found.ask(tilt=name)
            assert (row.n, row.value, row.disparity) == (0, None, None)
            assert row.note == "weight 0 on every row on which the metric counts"
    assert bounds.ask("nothing").lower is None
    assert not certificates.ask("nothing").certified
    assert "Nothing is said about 2 tilts" in " ".join(bounds.sentences())
    alone = eq.certify(TRAIL, eq.gap("accuracy", across=eq.tilts("nothing")), rng=1)
    assert alone.rows[0].upper is None


def test_one_dominant_row_certifies_nothing() -> None:
    trail = eq.read(
        TABLE.with_columns(one=pl.Series([1e9, *[1.0] * (N - 1)], dtype=pl.Float64)), **ROLES
    )
    claim = eq.gap("accuracy", across=eq.tilts("one", older="age"))
    bounds = eq.certify(trail, claim, tolerance=0.99, resamples=100, rng=1)
    assert bounds.ask("one").n == 1
    assert bounds.ask("one").verdict == "undetermined"
    certificates = eq.certify(trail, claim, method="certificates", tolerance=0.99, rng=1)
    assert not certificates.ask("one").certified
    assert not eq.flag(trail, claim).ask("one").flagged
    assert eq.flag(trail, claim).ask("one").p is None


def test_missing_columns_and_wrong_types_are_named() -> None:
    for across, message in (
        (eq.tilts("hevy"), "There is no column for .*Did you mean 'heavy'"),
        (eq.tilts(a="agee / 2"), "Did you mean 'age'"),
        (eq.tilts("sex"), "must give a number; .* gives text"),
        (eq.tilts(a=np.ones_like, columns=["hevy"]), "attribute 'hevy'.*Did you mean 'heavy'"),
    ):
        with pytest.raises(eq.EquipoiseError, match=message):
            eq.certify(TRAIL, eq.gap("accuracy", across=across), rng=1)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda c: c["years"], "asks for 'years'; it was given 'age'"),
        (lambda c: c["age"][:3], "must return one weight for each of"),
        (lambda c: 1.0, "must return one weight for each of"),
        (lambda c: c["age"] / c["age"].sum(), "by its own values alone"),
        (lambda c: c["age"] + "x", "failed"),
    ],
)
def test_bad_functions_are_refused(function: Any, message: str) -> None:
    across = eq.tilts(a=function, columns=["age"])
    with pytest.raises(eq.ClaimError, match=message):
        eq.certify(TRAIL, eq.gap("accuracy", across=across), rng=1)


def test_a_function_cannot_change_what_the_next_one_sees() -> None:
    def spoil(columns: Any) -> Any:
        columns["age"] *= 0
        return columns["age"] + 1

    across = eq.tilts(spoil=spoil, older=lambda c: c["age"], columns=["age"])
    found = eq.certify(TRAIL, eq.gap("accuracy", across=across), resamples=50, rng=1)
    expected = np.average(VALUE["accuracy"], weights=WEIGHT["older"])
    assert found.ask("older").value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("method", ["bootstrap", "likelihood", "likelihood-plugin", "euclidean"])
def test_methods_that_count_rows_are_refused(method: Any) -> None:
    claim = eq.gap("accuracy", across=MIXED)
    with pytest.raises(eq.OptionError, match="take method= 'pivotal', 'certificates', or none"):
        eq.certify(TRAIL, claim, method=method, rng=1)
    with pytest.raises(eq.OptionError, match="take method= 'pivotal', or none"):
        eq.flag(TRAIL, claim, method=method, rng=1)


def test_flags_are_the_bounds_read_backwards() -> None:
    claim = eq.gap("accuracy", across=MIXED, target=0.7)
    found = eq.flag(TRAIL, claim, above=0.05)
    assert found.engine == "no resampling"
    for row in found.rows:
        alone = eq.gap("accuracy", across=eq.tilts(one=f"{row.group}"), target=0.7)
        if row.group != "heavy":
            continue
        one = eq.certify(TRAIL, alone, side="lower", level=1 - row.p, rng=1).rows[0]
        assert one.lower == pytest.approx(0.05, abs=1e-3)


def test_what_needs_groups_says_so() -> None:
    claim = eq.gap("accuracy", across=MIXED)
    with pytest.raises(eq.OptionError, match="takes groups, or tilts that weigh by 0 and 1"):
        eq.describe(TRAIL, claim)
    with pytest.raises(eq.OptionError, match="takes groups, or tilts that weigh by 0 and 1"):
        eq.joint_test(TRAIL, claim, method="likelihood")
    found = eq.joint_test(TRAIL, claim, rng=1)
    assert found.tested == 4
    rarer = eq.gap("accuracy", across=eq.tilts("heavy", rare="heavy * heavy"))
    found = eq.joint_test(TRAIL, rarer, rng=1)
    assert found.tested == 1
    assert found.ask("rare").note.startswith("too skewed for its rows: about ")
    with pytest.raises(eq.ClaimError, match="tilts are groups that overlap"):
        eq.summarize(TRAIL, "accuracy", across=MIXED)
    with pytest.raises(eq.ClaimError, match="A tilt has no outside"):
        eq.certify(TRAIL, eq.gap("accuracy", across=MIXED, target=eq.complement()))
    with pytest.raises(eq.OptionError, match="AllRanges needs"):
        eq.certify(TRAIL, claim, method="all-ranges", tolerance=0.1, side="upper")


def test_targets_of_every_other_kind_work() -> None:
    # a tilt may share its name with the column of the reference group
    across = eq.tilts(race="age / 100", older="age")
    for target in (eq.reference(race="a"), eq.constant(0.5), eq.custom(0.7, "prediction - 0.4")):
        found = eq.certify(
            TRAIL, eq.gap("accuracy", across=across, target=target), resamples=50, rng=1
        )
        assert all(row.lower < row.disparity < row.upper for row in found.rows)
    reference = VALUE["accuracy"][TABLE["race"].to_numpy() == "a"].mean()
    flags = eq.flag(
        TRAIL,
        eq.ratio("accuracy", across=across, target=eq.reference(race="a")),
        above=1.0,
    )
    assert flags.rows[0].target == pytest.approx(reference)


def test_a_tilt_is_asked_for_by_its_name() -> None:
    found = eq.certify(TRAIL, eq.gap("accuracy", across=MIXED), resamples=50, rng=1)
    row = found.ask(tilt="older")
    assert row is found.ask("older")
    assert row.where == {"tilt": "older"}
    with pytest.raises(eq.ClaimError, match="No such group has tilt 'oldest'"):
        found.ask(tilt="oldest")
    with pytest.raises(eq.ClaimError, match="Did you mean 'older'"):
        found.ask("oldr")
    assert found.to_frame("polars")["tilt"].to_list() == ["heavy", "older", "steep", "women"]


def test_findings_speak_of_tilts() -> None:
    claim = eq.gap("accuracy", across=MIXED)
    bounds = eq.certify(TRAIL, claim, resamples=50, tolerance=0.3, rng=1)
    assert "for every one of the 4 tilts" in bounds.guarantee
    assert "every tilt's disparity" in bounds.sentences()[1]
    assert "collection of tilts" in " ".join(bounds.assumptions)
    assert "over all 4 tilts" in eq.flag(TRAIL, claim, rng=1).guarantee
    one = eq.gap("accuracy", across=eq.tilts("heavy"))
    assert "for the one tilt" in eq.certify(TRAIL, one, resamples=50, rng=1).guarantee
    for found in (
        bounds,
        eq.flag(TRAIL, claim, above=0.5),
        eq.certify(TRAIL, claim, method="certificates", tolerance=0.3, resamples=50, rng=1),
    ):
        words = " ".join((*found.sentences(), *found.assumptions))
        assert "tilt" in words
        assert "group" not in words
        assert from_json(found.to_json()) == found
        assert found.plot() is not None


def test_joined_claims_take_tilts() -> None:
    joined = eq.equalized_odds(across=eq.tilts(old=lambda c: c["age"], columns=["age"]))
    found = eq.certify(TRAIL, joined, resamples=50, rng=1)
    part = found.part("false positive rate")
    assert "the one tilt" in part.guarantee
    assert found.ask(tilt="old").group == "old"


def test_clusters_take_the_place_of_rows() -> None:
    trail = eq.read(TABLE, cluster="site", **ROLES)
    claim = eq.gap("accuracy", across=MIXED)
    found = eq.certify(trail, claim, resamples=50, rng=1)
    assert "clusters" in " ".join(found.assumptions)
    x, site = VALUE["accuracy"], TABLE["site"].to_numpy()
    for row in found.rows[1:]:
        h = WEIGHT[row.group]
        moves = []
        for s in np.unique(site):
            keep = site != s
            moved = np.average(x[keep], weights=h[keep]) - x[keep].mean() - row.disparity
            moves.append(moved)
        number = len(moves)
        aim = np.sqrt((number - 1) / number * np.sum(np.square(moves)))
        assert row.reach == pytest.approx(aim, rel=1e-6)
    assert all(row.p is not None for row in eq.flag(trail, claim, rng=1).rows[1:])


def test_too_many_distinct_weights_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("equipoise.cells.gather"), "MAX_CELLS", 100)
    with pytest.raises(eq.ClaimError, match=r"'heavy' alone has .* Round the weights"):
        eq.certify(TRAIL, eq.gap("accuracy", across=eq.tilts("heavy")), rng=1)


def test_a_row_that_stands_for_nobody_leaves_no_trace() -> None:
    some = TABLE.with_columns(
        times=pl.Series([0, *[1] * (N - 1)]), lonely=pl.Series([99.0, *[1.0, 2.0, 3.0] * 133])
    )
    claim = eq.gap("absolute_error", across=eq.tilts("lonely"))
    counted = eq.certify(eq.read(some, count="times", **ROLES), claim, resamples=50, rng=1)
    assert numbers(counted) == numbers(
        eq.certify(eq.read(some[1:], **ROLES), claim, resamples=50, rng=1)
    )
