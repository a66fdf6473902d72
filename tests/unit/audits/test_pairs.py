"""Role `pair`: rows against their partners, beside plain loops over pairs."""

import itertools

import numpy as np
import polars as pl
import pytest

import equipoise as eq

WHITE = eq.reference(race="White")


def _pairs(number: int = 120, seed: int = 3) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    called = (rng.random((number, 2)) < [0.5, 0.35]).astype(int)
    other = rng.choice(["Black", "Asian"], number)
    city = rng.choice(["here", "there"], number)
    return pl.DataFrame(
        [
            {"pair": i, "race": race, "city": city[i], "called": int(called[i, j]), "ad": i // 4}
            for i in range(number)
            for j, race in enumerate(("White", other[i]))
        ]
    )


def test_differences_are_those_between_partners() -> None:
    table = _pairs()
    trail = eq.read(table, prediction="called", pair="pair", attributes=["race", "city"])
    claim = eq.gap("selection_rate", across=eq.intersections("race", "city"), target=WHITE)
    for found in (
        eq.certify(trail, claim, rng=1),
        eq.flag(trail, claim),
        eq.describe(trail, claim),
    ):
        for row in found.rows:
            own, partner = [], []
            for _, both in table.group_by("pair"):
                one = both.filter(pl.col("race") != "White").to_dicts()[0]
                if all(one[name] == value for name, value in row.where.items()):
                    own.append(one["called"])
                    partner.append(both.filter(pl.col("race") == "White")["called"][0])
            assert row.n == len(own)
            if own:
                assert row.value == pytest.approx(np.mean(own))
                assert row.target == pytest.approx(np.mean(partner))
                assert row.disparity == pytest.approx(np.mean(own) - np.mean(partner))
    white = eq.certify(trail, claim, rng=1).ask(race="White")
    assert white.note == "the group is its own target"


def test_one_group_of_pairs_is_judged_by_counts_and_clusters_by_clusters() -> None:
    table = _pairs().with_columns(race=pl.col("race").replace("Asian", "Black"))
    claim = eq.gap("selection_rate", across="race", target=WHITE)
    trail = eq.read(table, prediction="called", pair="pair", attributes=["race"])
    row = eq.flag(trail, claim).rows[0]
    wide = table.pivot("race", index="pair", values="called")
    plus, minus = (
        int((wide["Black"] > wide["White"]).sum()),
        int((wide["Black"] < wide["White"]).sum()),
    )
    by_hand = pl.DataFrame({"d": [1] * plus + [-1] * minus + [0] * (120 - plus - minus), "g": "x"})
    metric = eq.metric("d", "d", values=(-1, 0, 1))
    other = eq.flag(eq.read(by_hand, attributes=["g", "d"]), eq.gap(metric, across="g", target=0))
    assert row.p == pytest.approx(other.rows[0].p)
    assert "pairs are independent" in eq.flag(trail, claim).assumptions[0]
    tied = eq.read(table, prediction="called", pair="pair", cluster="ad", attributes=["race"])
    assert "clusters are independent" in eq.flag(tied, claim).assumptions[0]
    # against everyone else pairs are clusters
    plain = eq.certify(trail, eq.gap("selection_rate", across="race"), rng=1)
    clusters = eq.read(table, prediction="called", cluster="pair", attributes=["race"])
    same = eq.certify(clusters, eq.gap("selection_rate", across="race"), rng=1)
    assert plain.rows == same.rows
    counts = eq.Tallied.from_json(eq.tally(tied, claim).to_json())
    assert eq.flag(counts, claim).rows == eq.flag(tied, claim).rows


def test_real_valued_metrics_of_pairs() -> None:
    rng = np.random.default_rng(5)
    table = pl.DataFrame(
        {"pair": np.repeat(np.arange(60), 2), "race": ["White", "Black"] * 60, "s": rng.random(120)}
    )
    trail = eq.read(table, score="s", pair="pair", attributes=["race"])
    row = eq.certify(
        trail, eq.gap(eq.metric("s", "score"), across="race", target=WHITE), rng=1
    ).rows[0]
    wide = table.pivot("race", index="pair", values="s")
    gaps = (wide["Black"] - wide["White"]).to_numpy()
    assert row.disparity == pytest.approx(gaps.mean())
    assert row.reach == pytest.approx(gaps.std(ddof=1) / np.sqrt(60), rel=1e-6)


def _few(gaps: np.ndarray) -> eq.Trail:
    table = pl.DataFrame(
        {
            "pair": np.repeat(np.arange(gaps.size), 2),
            "race": ["White", "Black"] * gaps.size,
            "s": np.stack([np.zeros(gaps.size), gaps], axis=1).ravel(),
        }
    )
    return eq.read(table, score="s", pair="pair", attributes=["race"])


@pytest.mark.parametrize("low", [None, -3.0])
def test_few_pairs_of_numbers_are_judged_by_all_their_signs(low: float | None) -> None:
    gaps = np.array([0.4, 1.3, -0.2, 0.9, 2.0, 0.7, 0.1])
    metric = eq.metric("s", "score", low=low, high=None if low is None else 3.0)
    claim = eq.gap(metric, across="race", target=WHITE)
    signs = itertools.product([-1, 1], repeat=7)
    high = [float(np.dot(s, np.abs(gaps))) >= gaps.sum() - 1e-12 for s in signs]
    found = eq.flag(_few(gaps), claim)
    assert found.rows[0].p == pytest.approx(2 * np.mean(high))
    assert "not treated alike" in found.assumptions[-1]
    # differences that are all alike are as telling, and none at all says nothing
    assert eq.flag(_few(np.full(7, 0.5)), claim).rows[0].p == pytest.approx(2 / 2**7)
    assert eq.flag(_few(np.zeros(7)), claim).rows[0].p == 1
    with pytest.raises(eq.TrailError, match="pair='gone'"):
        eq.read(pl.DataFrame({"s": [1.0, 2.0]}), score="s", pair="gone")


def test_few_pairs_of_numbers_say_nothing_about_the_size_of_a_mean() -> None:
    # partners differ by +0.05, but for one in ten that loses 0.45: a mean of 0, and no symmetry
    gaps = np.array([0.05] * 18 + [-0.45])
    claim = eq.gap(eq.metric("s", "score", low=-1, high=1), across="race", target=WHITE)
    trail = _few(gaps)
    row = eq.certify(trail, claim, tolerance=0.1, rng=1).rows[0]
    assert (row.lower, row.upper, str(row.verdict)) == (None, None, "undetermined")
    assert "which takes 20" in row.note
    for limit in ({"above": 0.0}, {"below": 0.0}, {"outside": (-0.01, 0.01)}):
        for control in ("holm", "max-t"):
            silent = eq.flag(trail, claim, control=control, rng=1, **limit).rows[0]
            assert (silent.p, silent.flagged) == (None, False)
    assert eq.flag(trail, claim).rows[0].p is not None
    # as soon as there are twenty, their spread and skewness decide
    enough = eq.certify(_few(np.linspace(-1, 1, 20)), claim, rng=1).rows[0]
    assert enough.lower is not None


def test_rows_without_a_partner_are_counted_and_reported() -> None:
    table = pl.DataFrame(
        {
            "pair": [1, 1, 2, 3, 3, 4, 4, None, 5, 5],
            "race": [*("White", "Black", "Black", "Black", "Black"),
                     *("White", "White", "Black", "Black", "White")],
            "called": [1, 0, 1, 1, 0, 1, 1, 0, 0, None],
        }
    )  # fmt: skip
    trail = eq.read(table, prediction="called", pair="pair", attributes=["race"])
    found = eq.describe(trail, eq.gap("selection_rate", across="race", target=WHITE))
    assert found.rows[0].n == 1
    assert found.provenance.excluded == {
        "missing prediction": 1,
        "missing pair": 1,
        "without a partner": 2,
        "paired within or outside the reference": 4,
        "counted with their partners": 1,
    }
    assert found.provenance.left_out().startswith("Rows count as 1 pair. 8 rows were left out")


@pytest.mark.parametrize(
    ("column", "values", "roles", "message"),
    [
        ("pair", [1, 1, 1, 2], {}, "one in 3"),
        ("ad", [1, 2, 3, 3], {"cluster": "ad"}, "two clusters"),
        ("w", [1.0, 1.0, 2.0, 1.0], {"weight": "w"}, "without weights"),
    ],
)
def test_pairs_of_three_in_two_clusters_or_with_weights_are_refused(
    column: str, values: list[float], roles: dict[str, str], message: str
) -> None:
    table = pl.DataFrame({"pair": [1, 1, 2, 2], "race": ["White", "Black"] * 2, "c": [1, 0, 1, 1]})
    trail = eq.read(
        table.with_columns(pl.Series(column, values)), prediction="c", pair="pair", **roles
    )
    with pytest.raises(eq.EquipoiseError, match=message):
        eq.certify(trail, eq.gap("selection_rate", across="race", target=WHITE), rng=1)


def test_letters_of_application() -> None:
    trail = eq.datasets.callbacks()
    claim = eq.gap("selection_rate", across="race", target=WHITE)
    row = eq.certify(trail, claim, rng=1).rows[0]
    assert (row.n, round(row.disparity or 0, 3)) == (2435, -0.032)
    # as published: 9.65 % against 6.45 %; the standard error with advertisements as clusters
    assert (round(row.target or 0, 4), round(row.value or 0, 4)) == (0.0965, 0.0645)
    assert round(row.reach or 0, 4) == 0.0062
