"""Thinning by content: every row has the same chance, equal rows independently of each other."""

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.cells import rows as sampling
from equipoise.cells.query import Query
from tests.unit.cells.looks import pulled

N = 20_000


@pytest.fixture(scope="module")
def trail() -> eq.Trail:
    rng = np.random.default_rng(4)
    # runs of whole numbers, rows that are all different, and one row that is there 5,000 times
    number = np.concatenate([np.arange(5000), rng.random(10_000), np.full(5000, 7.0)])
    return eq.read(pl.DataFrame({"y": np.zeros(N), "x": number}), label="y")


def _kept(trail: eq.Trail, seed: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    monkeypatch.setattr(sampling, "THIN_ABOVE", 10)
    query = Query(trail, (), (eq.metric("y", "label"),))
    further = {"feature0": trail.key("x")}
    table, _ = sampling.fetch_rows(query, further, sample=500, seed=np.random.SeedSequence(seed))
    x, count = table["feature0"].astype(float), table["count"]
    runs = (x == np.floor(x)) & (x != 7)
    return {
        "all": count.sum(),
        "runs": count[runs & (x < 5000)].sum(),
        "even": count[runs & (x % 2 == 0)].sum(),
        "repeated": count[x == 7].sum(),
    }


def test_every_kind_of_row_is_kept_at_its_rate(
    trail: eq.Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    # chance 0.1; means of 60 seeds must lie within 4.5 standard errors
    worlds = [_kept(trail, seed, monkeypatch) for seed in range(60)]
    for kind, rows in (("all", N), ("runs", 4999), ("even", 2500), ("repeated", 5001)):
        counts = np.array([world[kind] for world in worlds])
        error = np.sqrt(rows * 0.1 * 0.9 / len(worlds))
        assert abs(counts.mean() - rows * 0.1) < 4.5 * error, kind
        # neither clumped nor spread too evenly: χ² of 59 degrees, beyond 1e-5 either way
        ratio = counts.var(ddof=1) / (rows * 0.1 * 0.9)
        assert 0.36 < ratio < 2.1, (kind, ratio)


def test_the_same_seed_gives_the_same_rows_and_another_one_others(
    trail: eq.Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _kept(trail, 3, monkeypatch) == _kept(trail, 3, monkeypatch)
    assert _kept(trail, 3, monkeypatch) != _kept(trail, 4, monkeypatch)


def test_draws_of_equal_rows_are_binomial_given_that_they_came_through() -> None:
    rng = np.random.default_rng(9)
    for count, chance in ((1, 0.2), (3, 0.1), (8, 0.1), (40, 0.1)):
        through = min(1.0, count * chance)
        number = 40_000
        came = int(rng.binomial(number, through))
        drawn = sampling._drawn(np.full(came, float(count)), chance, rng)
        assert 0 <= drawn.min() <= drawn.max() <= count
        error = np.sqrt(count * chance * (1 - chance) / number)
        assert abs(drawn.sum() / number - count * chance) < 4.5 * error
        none = 1 - np.count_nonzero(drawn) / number
        expected = (1 - chance) ** count
        assert abs(none - expected) < 4.5 * np.sqrt(expected * (1 - expected) / number)


def test_a_sample_has_exactly_as_many_rows(trail: eq.Trail) -> None:
    seed = np.random.SeedSequence(1)
    rows = pulled(trail, eq.metric("y", "label"), ["x"], sample=300, seed=seed)
    drawn = rows.sampled(300, seed)
    assert (drawn.counts.sum(), drawn.left) == (300, N - 300)
    assert rows.sampled(N, seed) is rows


def test_a_table_without_enough_rows_is_taken_whole(trail: eq.Trail) -> None:
    seed = np.random.SeedSequence(1)
    rows = pulled(trail, eq.metric("y", "label"), ["x"], sample=300_000, seed=seed)
    assert (rows.counts.sum(), rows.left) == (N, 0)


def test_what_the_engine_worked_out_may_differ_in_the_last_digit() -> None:
    values = np.random.default_rng(2).random(4000) + 0.1
    made = []
    for last in (values, np.nextafter(values, 2)):
        frame = eq.read(pl.DataFrame({"value": last, "age": np.arange(4000)})).frame
        hashed = sampling._with_hash(frame, ["value", "age"], "x", np.random.default_rng(5))
        made.append(hashed.collect()[sampling._HASH].to_numpy())
    np.testing.assert_array_equal(made[0], made[1])
    assert len(np.unique(made[0])) >= 3998
    uniform = np.sort(made[0] / sampling._PRIME)
    # Kolmogorov's distance at 4,000 points, beyond 1e-5
    assert np.abs(uniform - np.arange(1, 4001) / 4000).max() < 2.5 / np.sqrt(4000)


def test_the_order_of_the_rows_does_not_change_a_sample() -> None:
    rng = np.random.default_rng(8)
    table = pl.DataFrame({"y": rng.random(2000), "x": rng.random(2000)})
    seed = np.random.SeedSequence(1)
    samples = []
    for rows in (table, table.sample(fraction=1, shuffle=True, seed=2)):
        found = pulled(eq.read(rows, label="y"), eq.metric("y", "label"), ["x"])
        drawn = found.sampled(200, seed)
        samples.append(sorted(zip(drawn.value.tolist(), drawn.matrix[:, 0].tolist(), strict=True)))
    assert samples[0] == samples[1]
