"""Tilt audits at the level of the verb."""

import json
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.errors import ClaimError, EquipoiseError, OptionError
from equipoise.findings import Shift, from_dict, from_json

RATE, FLOOR = 0.3, 0.02


def people(n: int = 600, seed: int = 1) -> Any:
    """Ages, prior offences and sex; errors grow with age."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(18, 70, n)
    wrong = (rng.random(n) < RATE + 0.004 * (age - 44)).astype(int)
    return pl.DataFrame(
        {
            "age": age,
            "priors": rng.integers(0, 6, n),
            "sex": rng.choice(["Female", "Male"], n, p=[0.3, 0.7]),
            "wrong": wrong,
            "cost": wrong * rng.random(n) * 3 + rng.random(n),
        }
    )


def audit(frame: Any = None, target: Any = None, **options: Any) -> Any:
    trail = eq.read(people() if frame is None else frame, prediction="wrong")
    chosen: dict[str, Any] = {"over": eq.gaussian("age", bandwidth=10), "rng": 3, "resamples": 200}
    return eq.shift(trail, eq.gap(eq.selection_rate, target=target), **(chosen | options))


def test_a_tilt_is_estimated_as_a_weighted_mean() -> None:
    frame = people()
    found = audit(frame)
    weights = np.random.default_rng(2).random(found.rank)
    centres = np.array([section["age"] for section in found.sections()])
    age, wrong = frame["age"].to_numpy(), frame["wrong"].to_numpy()
    h = np.exp(-0.5 * ((age[:, None] - centres) / 10) ** 2) @ weights
    asked = found.ask_tilt(weights)
    assert asked.value == pytest.approx(np.average(wrong, weights=h), abs=1e-9)
    assert asked.disparity == pytest.approx(asked.value - wrong.mean(), abs=1e-9)
    assert asked.effective == pytest.approx(h.sum() ** 2 / (h**2).sum(), rel=1e-6)
    norm = weights @ np.exp(-0.5 * ((centres[:, None] - centres) / 10) ** 2) @ weights
    # Against the average over everyone constants cancel, so the spread of the tilt is what counts.
    half = found.critical * (h.mean() * h.std() + FLOOR * norm) / h.mean() ** 2
    assert asked.upper - asked.disparity == pytest.approx(half, rel=1e-6)
    assert asked.disparity - asked.lower == pytest.approx(half, rel=1e-6)
    known = audit(frame, 0.3)
    half = known.critical * (h.mean() * np.sqrt(np.mean(h**2)) + FLOOR * norm) / h.mean() ** 2
    assert known.ask_tilt(weights).upper - known.ask_tilt(weights).disparity == pytest.approx(half)


def test_sections_elsewhere_are_estimated_exactly_and_allowed_for() -> None:
    frame = people()
    found = audit(frame, residual=1e-4)
    age, wrong = frame["age"].to_numpy(), frame["wrong"].to_numpy()
    h = np.exp(-0.5 * ((age - 30.0) / 10) ** 2) * 2 + np.exp(-0.5 * ((age - 61.5) / 10) ** 2)
    asked = found.ask_tilt([2.0, 1.0], at={"age": [30.0, 61.5]})
    assert asked.value == pytest.approx(np.average(wrong, weights=h), abs=1e-9)
    # Nearly all of the tilt lies in the span, where its scale is that of the whole.
    norm = 4 + 1 + 4 * np.exp(-0.5 * (31.5 / 10) ** 2)
    half = found.critical * (h.mean() * h.std() + FLOOR * norm) / h.mean() ** 2
    assert 0 < asked.beyond < 0.2 * half
    assert asked.upper - asked.disparity == pytest.approx(half + asked.beyond, rel=1e-3)
    whole = audit(frame).ask_tilt([2.0, 1.0], at={"age": [30.0, 61.5]})
    assert whole.beyond < 1e-4


@pytest.mark.parametrize("method", ["rescaled", "unscaled", "signed"])
@pytest.mark.parametrize("target", [None, 0.3, eq.reference(sex="Male")])
def test_no_resample_moves_a_tilt_further_than_its_bounds(method: str, target: Any) -> None:
    """Tilts outside the span, chosen after the resample to be moved by it as far as possible."""
    frame = people(250)
    # A critical value that forty resamples do not exceed by chance.
    found = audit(
        frame,
        target,
        over=eq.laplace("age", bandwidth=20),
        method=method,
        max_rank=15,
        level=0.999,
        resamples=2000,
    )
    space, rng = found.space, np.random.default_rng(8)
    n = len(space.values)
    worst = 0.0
    for _ in range(40):
        moved = np.bincount(rng.integers(0, n, n), minlength=n) - 1.0
        t = moved @ space.influence / n
        for sign in (1.0, -1.0):
            # Sections where resampling moves the metric, so that the tilt leans on its error.
            lean = np.maximum(sign * moved * space.values, 0.0) * (rng.random(n) < 0.3)
            ages = space.points[lean > 0, 0]
            asked = found.ask_tilt(lean[lean > 0], at={"age": ages})
            kernel = np.exp(-np.abs(space.points - ages) / 20)
            h = kernel @ lean[lean > 0]
            nu = np.mean(h * space.values) / h.mean()
            error = (np.mean(moved * h * (space.values - nu)) - t * h.mean()) / h.mean()
            half = (asked.reach * found.critical) + asked.beyond
            worst = max(worst, abs(error) / half)
    assert 0.05 < worst < 1


def test_ten_columns_are_answered_and_more_rows_answer_better() -> None:
    half = []
    for n in (500, 1500):
        rng = np.random.default_rng(n)
        names = [f"x{i}" for i in range(10)]
        frame = pl.DataFrame(rng.standard_normal((n, 10)), schema=names)
        frame = frame.with_columns(wrong=pl.Series((rng.random(n) < RATE).astype(int)))
        found = audit(frame, over=eq.laplace(*names))
        asked = found.ask_tilt([1.0], at={name: [0.1] for name in names})
        half.append((asked.upper - asked.lower) / 2)
    assert half[0] < 0.1
    assert half[1] < 0.75 * half[0]


def test_unscaled_bounds_are_the_published_ones() -> None:
    found = audit(people(3000), method="unscaled", target=0.3, side="lower")
    weights = np.zeros(found.rank)
    weights[0] = 1.0
    asked = found.ask_tilt(weights)
    mean = found.basis.mean @ found.basis.corner[0]
    assert asked.disparity - asked.lower == pytest.approx(found.critical / mean**2)
    # The bound does not depend on the size of the tilt.
    assert found.ask_tilt(5 * weights).lower == pytest.approx(asked.lower)
    assert asked.upper is None


def test_rescaled_bounds_are_far_tighter_for_small_parts_of_the_population() -> None:
    old, new = (audit(method=m, resamples=300) for m in ("unscaled", "rescaled"))
    # The same tilt, close to a tenth of the population.
    tilt = new.ask_group(age=(30, 35), penalty=1e-6)
    there = audit(method="unscaled", resamples=300).ask_group(age=(30, 35), penalty=1e-6)
    assert tilt.disparity == pytest.approx(there.disparity)
    assert tilt.effective < 0.5 * 600
    assert there.reach * old.critical > 4 * tilt.reach * new.critical


def test_errors_that_grow_with_age_are_found() -> None:
    found = audit(people(4000), resamples=300)
    old, young = found.ask_group(age=(55, 70)), found.ask_group(age=(18, 30))
    assert old.lower > 0 > young.upper
    assert "Most surely above, leaning toward age" in " ".join(found.sentences())
    assert "at least" in str(old)


def test_a_group_is_the_closest_non_negative_tilt() -> None:
    found = audit()
    asked = found.ask_group(age=[(18, 30), (50, 60)], name="two ranges")
    assert asked.group == "two ranges"
    assert 0 < asked.distance < 0.3
    assert asked.where == {"age": [(18, 30), (50, 60)]}
    closer = found.ask_group(age=[(18, 30), (50, 60)], penalty=1e-7)
    assert closer.distance < asked.distance
    same = found.ask_group(
        lambda c: ((c["age"] >= 18) & (c["age"] <= 30)) | ((c["age"] >= 50) & (c["age"] <= 60))
    )
    assert same.disparity == pytest.approx(asked.disparity)
    assert all(record["tilted"] >= 0 for record in asked.profile)


def test_categories_are_told_apart_entirely() -> None:
    frame = people()
    found = audit(frame, over=eq.gaussian("age", "sex", bandwidth=500))
    asked = found.ask_group(sex="Female")
    inside = frame.filter(pl.col("sex") == "Female")["wrong"].mean()
    assert asked.distance < 0.01
    assert asked.value == pytest.approx(inside, abs=0.01)
    with pytest.raises(ClaimError, match="no level 'female'"):
        found.ask_group(sex="female")


def test_another_population_is_approached() -> None:
    rng = np.random.default_rng(5)
    found = audit(people(2000))
    older = pl.DataFrame({"age": rng.triangular(18, 70, 70, 3000)})
    asked = found.ask_population(older, name="an older town")
    assert asked.mismatch < 0.1
    assert asked.uncovered < 0.01
    assert 0 < asked.effective < 2000
    truth = RATE + 0.004 * (float(np.mean(older["age"].to_numpy())) - 44)
    assert asked.value == pytest.approx(truth, abs=0.05)
    assert asked.lower <= truth - found.target <= asked.upper
    # Trails, mappings and other frames are read alike.
    same = found.ask_population({"age": older["age"].to_list()})
    assert same.value == asked.value
    assert found.ask_population(eq.read(older)).value == pytest.approx(asked.value)
    assert found.ask_population(older.to_pandas()).value == pytest.approx(asked.value)


def test_a_population_that_lies_elsewhere_is_said_to() -> None:
    found = audit()
    half = found.ask_population({"age": [30.0, 400.0]})
    assert half.uncovered == pytest.approx(0.5, abs=0.01)
    with pytest.raises(ClaimError, match="unlike every row"):
        found.ask_population({"age": [400.0]})
    with pytest.raises(ClaimError, match="lacks the covariates 'age'"):
        found.ask_population({"years": [1.0]})


def test_a_function_of_the_covariates_is_a_tilt() -> None:
    frame = people()
    found = audit(frame)
    asked = found.ask_tilt(lambda c: np.exp(-c["age"] / 20), name="toward the young")
    h = np.exp(-frame["age"].to_numpy() / 20)
    assert asked.value == pytest.approx(np.average(frame["wrong"], weights=h), abs=0.02)
    assert asked.distance < 0.06


@pytest.mark.parametrize("engine", ["exact", "moments"])
@pytest.mark.parametrize("method", ["rescaled", "unscaled", "signed"])
def test_the_order_of_the_rows_does_not_matter(engine: str, method: str) -> None:
    frame = people(200)
    shuffled = frame.sample(fraction=1, shuffle=True, seed=9)
    found = [
        audit(each, engine=engine, method=method, over=eq.gaussian("age", "sex"))
        for each in (frame, shuffled)
    ]
    assert found[0].to_json() == found[1].to_json()


def test_counts_are_repeated_rows() -> None:
    frame = people(300).select("priors", "sex", "wrong")
    grouped = frame.group_by("priors", "sex", "wrong").len("rows")
    options: dict[str, Any] = {"over": eq.laplace("priors", "sex"), "rng": 4, "resamples": 100}
    claim = eq.gap(eq.selection_rate)
    whole = eq.shift(eq.read(frame, prediction="wrong"), claim, **options)
    counted = eq.shift(eq.read(grouped, prediction="wrong", count="rows"), claim, **options)
    assert whole.critical == counted.critical
    assert whole.rows == counted.rows


def test_sampling_weights_weigh_tilts() -> None:
    frame = people(400).with_columns(w=pl.Series(np.random.default_rng(3).random(400) + 0.5))
    trail = eq.read(frame, prediction="wrong", weight="w")
    found = eq.shift(
        trail, eq.gap(eq.selection_rate), over=eq.gaussian("age", bandwidth=10), rng=1, resamples=50
    )
    centres = np.array([section["age"] for section in found.sections()])
    h = np.exp(-0.5 * ((frame["age"].to_numpy()[:, None] - centres) / 10) ** 2).sum(axis=1)
    weights = h * frame["w"].to_numpy()
    asked = found.ask_tilt(np.ones(found.rank))
    assert asked.value == pytest.approx(np.average(frame["wrong"], weights=weights), abs=1e-9)
    equal = eq.read(frame.with_columns(w=pl.lit(2.0)), prediction="wrong", weight="w")
    plain = audit(frame, over=eq.gaussian("age", bandwidth=10))
    again = eq.shift(
        equal,
        eq.gap(eq.selection_rate),
        over=eq.gaussian("age", bandwidth=10),
        rng=3,
        resamples=200,
    )
    assert again.critical == pytest.approx(plain.critical, rel=1e-9)


def test_clusters_are_resampled_whole() -> None:
    frame = people(400).with_columns(judge=pl.Series(np.arange(400) // 20))
    claim = eq.gap(eq.selection_rate, target=0.3)
    # Every cluster is one row twenty times, so the error is that of twenty rows.
    copied = frame.with_columns(pl.col("age", "wrong").gather(pl.Series(np.arange(400) // 20 * 20)))
    options: dict[str, Any] = {"over": eq.gaussian("age", bandwidth=10), "rng": 1}
    rows: Any = eq.shift(eq.read(copied, prediction="wrong"), claim, **options)
    clusters: Any = eq.shift(eq.read(copied, prediction="wrong", cluster="judge"), claim, **options)
    assert clusters.engine == "clusters"
    assert clusters.critical > 2.5 * rows.critical
    with pytest.raises(OptionError, match="cannot resample clusters"):
        eq.shift(
            eq.read(frame, prediction="wrong", cluster="judge"), claim, engine="moments", **options
        )


def test_targets_known_overall_reference_and_custom() -> None:
    frame = people(1000)
    mean = float(frame["wrong"].mean())
    known, overall = audit(frame, 0.3), audit(frame)
    assert known.target == 0.3
    assert overall.target == pytest.approx(mean)
    # With the average estimated along, the whole population differs from it by nothing.
    wide = eq.gaussian("age", bandwidth=5000)
    one = audit(frame, over=wide).ask_group(age=(18, 70))
    assert one.disparity == pytest.approx(0, abs=1e-6)
    assert one.upper < 0.01 < audit(frame, mean, over=wide).ask_group(age=(18, 70)).upper
    reference = audit(frame, eq.reference(sex="Male"))
    assert reference.target == pytest.approx(frame.filter(pl.col("sex") == "Male")["wrong"].mean())
    influence = frame.with_columns(psi=pl.col("wrong") - mean)
    custom = audit(influence, eq.custom(mean, "psi"))
    assert custom.critical == pytest.approx(overall.critical)
    scaled = audit(frame, 0.8 * eq.overall())
    assert scaled.target == pytest.approx(0.8 * mean)
    with pytest.raises(ClaimError, match="no complement"):
        audit(frame, eq.complement())


def test_bandwidths_are_found_and_recorded() -> None:
    found = audit(over=eq.gaussian("age", "priors"))
    (part,) = found.kernel
    assert part.columns == ("age", "priors")
    spread = people()["age"].std()
    assert 0.5 * spread < part.bandwidths[0] < 3 * spread
    assert f"age (bandwidth {part.bandwidths[0]:.3g})" in " ".join(found.sentences())
    given = audit(over=eq.gaussian("age", "priors", bandwidth=(5, 2)))
    assert given.kernel[0].bandwidths == (5.0, 2.0)


def test_kernels_of_scikit_learn_and_of_your_own_agree_with_ours() -> None:
    ours = audit()
    named = audit(over=eq.kernel("rbf", "age", gamma=1 / 200))
    own = audit(over=eq.kernel(lambda a, b: np.exp(-((a - b.T) ** 2) / 200), "age"))
    assert named.critical == pytest.approx(ours.critical, rel=1e-6)
    assert own.critical == pytest.approx(ours.critical, rel=1e-6)
    assert audit(over=eq.kernel("polynomial", "priors", degree=2)).rank == 3
    mixed = audit(over=eq.laplace("age", bandwidth=20) * eq.gaussian("sex"))
    assert [part.form for part in mixed.kernel] == ["laplace", "same"]
    assert audit(over="age").rank == audit(over=["age"]).rank


def test_another_level_and_side_cost_nothing() -> None:
    found = audit()
    higher = found.at(0.99)
    assert higher.critical > found.critical
    assert higher.rows[0].upper > found.rows[0].upper
    assert "99 %" in higher.guarantee
    again = audit(level=0.99)
    # the stored table has six digits, the last one rounded up
    assert again.critical <= higher.critical <= again.critical * (1 + 2e-5)
    for one, other in zip(again.rows, higher.rows, strict=True):
        assert other.lower <= one.lower
        assert other.upper >= one.upper
        assert other.upper == pytest.approx(one.upper, rel=1e-4)
    assert found.at(found.level) is found


def test_resamples_are_stored_as_a_short_table() -> None:
    found = audit(resamples=1000)
    assert len(found.quantiles) == 1000
    assert len(json.dumps(found.to_dict()["quantiles"])) < 12_000
    back: Any = from_json(found.to_json())
    assert back.at(0.5).critical == found.at(0.5).critical < found.critical
    assert len(audit(resamples=40).quantiles) == 40


def test_findings_that_hold_every_resample_are_refused_by_name() -> None:
    data = audit().to_dict()
    data["draws"] = [[-1.0, 1.0]]
    del data["quantiles"]
    with pytest.raises(EquipoiseError, match="a version before: it holds every resample; run the"):
        from_dict(data)
    emptied = audit().to_dict() | {"quantiles": []}
    with pytest.raises(OptionError, match="keep too little"):
        cast(Shift, from_dict(emptied)).at(0.5)


def test_a_finding_is_stored_without_the_rows() -> None:
    found = audit(over=eq.gaussian("age", "sex"))
    back = from_json(found.to_json())
    assert isinstance(back, Shift)
    assert back == found
    assert back.space is None
    assert back.ask_tilt(np.ones(found.rank)).lower == found.ask_tilt(np.ones(found.rank)).lower
    table = {"age": [30.0, 40.0], "sex": ["Male", "Female"]}
    assert back.ask_population(table).value == pytest.approx(
        found.ask_population(table).value, abs=0.05
    )
    with pytest.raises(OptionError, match="does not hold the rows"):
        back.ask_group(age=(18, 30))
    held = json.dumps(found.to_dict())
    assert len(json.loads(held)["basis"]["pivots"]) == found.rank


def test_a_stored_kernel_of_your_own_cannot_be_evaluated_again() -> None:
    found = audit(over=eq.kernel(lambda a, b: np.exp(-((a - b.T) ** 2) / 200), "age"))
    back = from_json(found.to_json())
    assert isinstance(back, Shift)
    assert back.ask_tilt(np.ones(found.rank)).value is not None
    with pytest.raises(eq.EquipoiseError, match="kernel of your own"):
        back.ask_population({"age": [30.0]})


def test_words_frames_and_charts() -> None:
    found = audit(over=eq.gaussian("age", "sex"))
    assert found.to_frame("polars").height == len(found)
    assert "With 95 % confidence all bounds hold at once" in str(found)
    assert "<table>" in found._repr_html_()
    assert found.plot().to_dict()["title"]["text"].startswith("Selection rate against everyone")
    chart = found.plot(found.ask_group(age=(18, 30), sex="Male")).to_dict()
    assert "age 18 to 30, Male" in chart["title"]["text"]
    assert "for all tilts at once" in chart["title"]["subtitle"]
    assert len(chart["vconcat"]) == 2


def test_a_sample_is_drawn_in_any_order_of_rows() -> None:
    frame = people(500)
    found = [
        audit(each, sample=100) for each in (frame, frame.sample(fraction=1, shuffle=True, seed=2))
    ]
    assert found[0].sampled == 100
    assert found[0].rows[0].n == 100
    assert found[0].to_json() == found[1].to_json()
    assert audit(frame, sample=10_000).sampled is None


def test_progress_is_told() -> None:
    seen: list[tuple[int, int]] = []
    audit(resamples=70, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (70, 70)


def test_what_the_sections_leave_out_is_said() -> None:
    assert audit().residual <= 1e-10
    rough = audit(over=eq.laplace("age"), max_rank=30)
    assert rough.rank == 30
    assert f"a share of {rough.residual:.1g} of the kernel" in " ".join(rough.sentences())


def test_rows_without_weight_leave_no_trace() -> None:
    frame = people(300).with_columns(w=pl.Series(np.tile([1.0, 1.0, 0.0], 100)))
    options: dict[str, Any] = {"over": eq.gaussian("age", bandwidth=10), "rng": 1, "resamples": 50}
    claim = eq.gap(eq.selection_rate)
    weighed = eq.shift(eq.read(frame, prediction="wrong", weight="w"), claim, **options)
    kept = eq.shift(eq.read(frame.filter(pl.col("w") > 0), prediction="wrong"), claim, **options)
    assert weighed.n == kept.n == 200
    assert weighed.critical == pytest.approx(kept.critical, rel=1e-9)
    assert weighed.rows[0].effective == pytest.approx(kept.rows[0].effective, rel=1e-9)


def test_every_source_gives_the_same_answer(tmp_path: Any) -> None:
    frame = people(200)
    frame.write_csv(tmp_path / "people.csv")
    sources = [frame, frame.to_pandas(), frame.to_arrow(), str(tmp_path / "people.csv")]
    found = [
        eq.shift(
            eq.read(source, prediction="wrong"),
            eq.gap(eq.selection_rate),
            over=eq.gaussian("age", "sex"),
            rng=1,
            resamples=50,
        )
        for source in sources
    ]
    assert all(each.rows == found[0].rows for each in found)
    assert len({each.provenance.fingerprint for each in found}) == 1


def test_real_metrics_are_audited() -> None:
    frame = people(1500)
    trail = eq.read(frame, prediction="wrong")
    claim = eq.gap(eq.metric("cost", "cost"), target=1.0)
    found = eq.shift(trail, claim, over=eq.gaussian("age", bandwidth=15), rng=1, resamples=200)
    assert found.limits == (None, None)
    asked = found.ask_group(age=(55, 70))
    inside = frame.filter(pl.col("age") >= 55)["cost"].mean()
    assert asked.value == pytest.approx(inside, abs=0.1)
    assert asked.lower < inside - 1.0 < asked.upper


def test_kernels_have_a_plain_form() -> None:
    for kernel in (
        eq.gaussian("age", "sex", bandwidth=5),
        eq.laplace("age", bandwidth=(5.0,)) * eq.gaussian("priors"),
        eq.kernel("polynomial", "age", degree=2),
    ):
        assert eq.from_plan(kernel.to_plan()) == kernel
    plain = audit(over={"kind": "gaussian", "columns": ["age"], "bandwidth": 10})
    assert plain.critical == audit().critical


def test_a_claim_without_groups_is_about_everyone() -> None:
    claim = eq.gap(eq.selection_rate, target=0.3)
    trail = eq.read(people(), prediction="wrong")
    (row,) = eq.describe(trail, claim).rows
    assert row.group == "everyone"
    assert row.n == 600


def test_few_rows_are_called_few() -> None:
    said = [" ".join(audit(people(n)).assumptions) for n in (300, 400)]
    assert "300 rows are few" in said[0]
    assert "few" not in said[1]


def test_tilts_that_are_negative_between_the_rows_are_refused_with_the_place() -> None:
    # Nobody is between 30 and 60, where this tilt is below zero.
    age = [*np.linspace(20, 30, 40), *np.linspace(60, 70, 40)]
    frame = pl.DataFrame({"age": age, "wrong": [0, 1] * 40})
    found = audit(frame, over=eq.gaussian("age", bandwidth=10))
    with pytest.raises(OptionError, match=r"negative between them, near age 4\d"):
        found.ask_tilt([1.0, -1.0, 1.0], at={"age": [25.0, 45.0, 65.0]})
    with pytest.raises(OptionError, match=r"negative on \d+ of 80 rows"):
        found.ask_tilt([1.0, -1.0], at={"age": [25.0, 65.0]})
    asked = found.ask_group(age=(20, 30))
    assert "no row lies" not in asked.note
