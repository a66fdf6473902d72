"""Probabilities in place of attributes: sharp ranges, two estimates, a check against truth."""

import dataclasses
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.optimize import linprog

import equipoise as eq
from equipoise.audits._groups.unknown import CUTS
from equipoise.errors import ClaimError, EquipoiseError, TrailError
from equipoise.methods.inference.unknown import ProxySums, joint_share, proxy_core, smaller_of
from equipoise.methods.targets import Complement, Constant

PROXY = {"race": {"A": "pa", "B": "pb", "C": "pc"}}


def _people(rows: int = 4000, seed: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    chance = rng.dirichlet([0.6, 0.4, 0.2], rows).round(6)
    chance[:, 2] = 1 - chance[:, 0] - chance[:, 1]
    who = (rng.random((rows, 1)) > chance.cumsum(axis=1)).sum(axis=1).clip(max=2)
    hired = (rng.random(rows) < np.array([0.5, 0.3, 0.4])[who]).astype(int)
    table = pd.DataFrame(np.clip(chance, 0, 1), columns=["pa", "pb", "pc"])
    table["hired"] = hired
    names = np.array(["A", "B", "C"], dtype=object)[who]
    names[rng.random(rows) > 0.3] = None
    table["stated"] = names
    return table


def _sums(rng: np.random.Generator, rows: float) -> tuple[ProxySums, Any, Any, Any]:
    """Cells of very many rows, in which nothing is left to chance; some do not count."""
    share, chance, rates = rng.dirichlet(np.ones(6)), rng.random(6), rng.dirichlet(np.ones(3), 6).T
    n = rows * share
    made = ProxySums(
        rows=n[:, None], chance=(n * chance)[:, None], chance2=(n * chance**2)[:, None],
        ones=(n * rates[0])[:, None], zeros=(n * rates[1])[:, None],
        chance_ones=(n * chance * rates[0])[:, None],
        chance_zeros=(n * chance * rates[1])[:, None], free=np.zeros(6, dtype=bool),
    )  # fmt: skip
    return made, share, chance, rates


@pytest.mark.parametrize("lowest", [True, False])
def test_ends_are_those_of_a_linear_programme(lowest: bool) -> None:
    rng = np.random.default_rng(5)
    for _ in range(10):
        cells, share, chance, rates = _sums(rng, 1e10)
        # people of the group by outcome (one, zero, not counted) and cell
        limits = [(0.0, float(x)) for x in (share * rates).ravel()]
        inside = np.hstack([np.eye(6)] * 3)
        ends = {}
        for name, target in (("own", Constant(value=0.0)), ("rest", Complement())):
            core = proxy_core(cells, target, None, relative=False)
            ends[name] = (core.low if lowest else core.high).comparison
        own, rest = ends["own"].mean[0], ends["rest"].theta[0]
        sign = 1 if lowest else -1
        ones, counted = np.repeat([1.0, 0.0, 0.0], 6), np.repeat([1.0, 1.0, 0.0], 6)
        # a ratio is at its end if nobody gains by it: the best of ones − ratio · counted is none
        gain = linprog(sign * (ones - own * counted), A_eq=inside, b_eq=share * chance,
                       bounds=limits)  # fmt: skip
        assert gain.fun == pytest.approx(0.0, abs=1e-4)
        all_ones, everyone = share @ rates[0], share @ (rates[0] + rates[1])
        loss = linprog(sign * (ones - rest * counted), A_eq=inside, b_eq=share * chance,
                       bounds=limits)  # fmt: skip
        # the others are at their other end at the same time
        assert sign * loss.fun == pytest.approx(all_ones - rest * everyone, abs=1e-4)


def test_people_without_probabilities_are_where_they_do_most() -> None:
    def sums(free: float) -> ProxySums:
        column = {name: np.array([[x], [0.0]]) for name, x in (
            ("rows", 1000.0), ("chance", 300.0), ("chance2", 300.0), ("ones", 400.0),
            ("zeros", 600.0), ("chance_ones", 150.0), ("chance_zeros", 150.0))}  # fmt: skip
        for name, x in (("rows", free), ("ones", 0.4 * free), ("zeros", 0.6 * free)):
            column[name][1] = x
        return ProxySums(**column, free=np.array([False, True]))

    known, more = (proxy_core(sums(x), Constant(value=0.0), None, False) for x in (0.0, 100.0))
    ones, counted = (known.high.comparison.parts.total, known.high.comparison.parts.rows)
    assert more.high.comparison.mean[0] == pytest.approx(
        (ones[0, 0] + 40) / (counted[0, 0] + 40), abs=1e-9
    )
    ones, counted = (known.low.comparison.parts.total, known.low.comparison.parts.rows)
    assert more.low.comparison.mean[0] == pytest.approx(ones[0, 0] / (counted[0, 0] + 60), abs=1e-9)


def test_few_people_without_an_event_have_the_tails_of_counts() -> None:
    # 40 rows with probability 0.8 and no event: nothing varies, and yet little is known
    columns = {
        "rows": [40, 1000], "chance": [32, 0], "chance2": [25.6, 0], "ones": [0, 80],
        "zeros": [40, 920], "chance_ones": [0, 0], "chance_zeros": [32, 0],
    }  # fmt: skip
    sums = {name: np.array(x, dtype=float)[:, None] for name, x in columns.items()}
    cells = ProxySums(**sums, free=np.array([False, False]))
    core = proxy_core(cells, Constant(value=0.0), None, relative=False)
    upper = core.bounds(1.96, (0.0, 1.0))[1][0]
    # as of 32 people, none of whom has the event
    assert upper == pytest.approx(1 - 0.025 ** (1 / 32), abs=0.01)


def test_ends_are_never_too_near_on_average() -> None:
    # both rates equal: the smaller of two estimates is too small, ours is not
    rng = np.random.default_rng(8)
    rows, worlds = 200, 4000
    chance = np.full(rows, 0.4)
    ones = rng.binomial(rows, 0.4, worlds).astype(float)[None]
    cells = ProxySums(
        rows=np.full((1, worlds), float(rows)), chance=np.full((1, worlds), chance.sum()),
        chance2=np.full((1, worlds), (chance**2).sum()), ones=ones, zeros=rows - ones,
        chance_ones=0.4 * ones, chance_zeros=0.4 * (rows - ones), free=np.array([False]),
    )  # fmt: skip
    plain = np.minimum(0.4, ones / rows)
    error = np.sqrt(0.24 / rows / worlds)
    assert plain.mean() < 0.4 - 10 * error
    assert abs(smaller_of(cells, ones / rows, 0.4 * ones / rows)[0].mean() - 0.4) < 4 * error
    low, high = (joint_share(cells, 1, lowest=lowest).value for lowest in (True, False))
    assert (low <= high + 1e-12).all()


def test_influence_is_what_a_row_does() -> None:
    table = _people(900)
    place = np.digitize(table["pa"], CUTS)

    def made(weight: Any) -> ProxySums:
        p, y = table["pa"].to_numpy(), table["hired"].to_numpy()
        columns = {
            "rows": weight, "chance": weight * p, "chance2": weight * p * p, "ones": weight * y,
            "zeros": weight * (1 - y), "chance_ones": weight * p * y,
            "chance_zeros": weight * p * (1 - y),
        }  # fmt: skip
        size = len(CUTS) + 1
        sums = {k: np.bincount(place, c, size)[:, None].astype(float) for k, c in columns.items()}
        return ProxySums(**sums, free=np.zeros(size, dtype=bool))

    plain = np.ones(len(table))
    for outcome in (0, 1):
        found = joint_share(made(plain), outcome, lowest=False)
        for row in (3, 400, 750):
            more = plain.copy()
            more[row] += 0.01
            end = joint_share(made(more), outcome, lowest=False).value
            moved = (end - found.value)[0] * len(table) / 0.01
            z, p, y = place[row], table["pa"][row], table["hired"][row]
            told = found.by[:, z, 0] @ np.array([1.0, p, y, 1 - y])
            # that a further row makes a cell's error smaller is of lower order
            assert moved == pytest.approx(told, abs=0.08)


@pytest.mark.parametrize("target", [eq.overall(), eq.complement(), eq.reference(race="A"), 0.4])
def test_every_engine_says_the_same(target: Any) -> None:
    table = _people()
    claim = eq.gap("selection_rate", across="race", target=target)
    connection = duckdb.connect()
    connection.register("people", table)
    found = [
        eq.certify(source, claim, prediction="hired", proxy=PROXY, tolerance=0.2, rng=1)
        for source in (table, pl.from_pandas(table), connection.sql("SELECT * FROM people"))
    ]
    assert found[0].rows == found[1].rows == found[2].rows
    for row, beside in zip(found[0].rows, found[0].unknown, strict=True):
        if row.reach is not None:
            assert row.lower < beside.lowest < row.disparity < beside.highest < row.upper
        assert beside.by_chance
    assert found[0].at(0.95).rows == found[0].rows
    assert any("but for probabilities" in text for text in found[0].sentences())
    assert "the probabilities of race are right" in " ".join(found[0].assumptions)


def test_estimates_bracket_and_truth_is_checked() -> None:
    table = _people(20_000)
    claim = eq.gap("selection_rate", across="race", target=eq.complement())
    trail = eq.read(table, prediction="hired", proxy=PROXY, truth={"race": "stated"})
    found = eq.certify(trail, claim, rng=1)
    stated = eq.read(table[table["stated"].notna()], prediction="hired")
    true = eq.certify(
        stated, eq.gap("selection_rate", across="stated", target=eq.complement()), rng=1
    )
    for row, beside, known in zip(found.rows, found.unknown, true.rows, strict=True):
        assert beside.calibration is not None
        assert beside.calibration > 0.001
        # membership and outcome go together here, and so do probability and outcome
        ends = sorted([row.disparity or 0.0, beside.regressed or 0.0])
        assert ends[0] - 0.03 < (known.disparity or 0.0) < ends[1] + 0.03
    table[["pa", "pb"]] = table[["pb", "pa"]]
    wrong = eq.certify(
        eq.read(table, prediction="hired", proxy=PROXY, truth={"race": "stated"}), claim, rng=1
    )
    assert any("not right" in text for text in wrong.sentences())
    assert not eq.flag(trail, claim).flagged


def test_bad_probabilities_are_refused() -> None:
    table, claim = _people(200), eq.gap("selection_rate", across="race")
    cases: list[tuple[pd.DataFrame, dict[str, Any], str]] = [
        (table.assign(pa=table["pa"] + 0.2), {}, "add up to one"),
        (table.assign(pa=table["pa"] - 2, pb=table["pb"] + 2), {}, "between 0 and 1"),
        (table.assign(race="A"), {}, "is a column of the table"),
        (table, {"proxy": {"race": {"A": "pa"}}}, "at least two values"),
        (table, {"proxy": {"race": {"A": "pa", "B": "pa"}}}, "the same column"),
        (table, {"proxy": {"race": {"A": "pa", "B": "stated"}}}, "must hold probabilities"),
        (table, {"proxy": {"race": {"A": "pa", "B": "px"}}}, "no column"),
        (table, {"proxy": ["pa"]}, "proxy takes attributes"),
        (table, {"truth": {"sex": "stated"}}, "truth takes attributes"),
        (table.assign(stated=None), {"truth": {"race": "stated"}}, "Nobody's"),
        (table.assign(pa=np.nan), {}, "counts on no row"),
        (table, {"weight": "pc", "proxy": {"race": {"A": "pa", "B": "pb"}}}, "weight"),
    ]
    for rows, options, words in cases:
        with pytest.raises(EquipoiseError, match=words):
            eq.certify(rows, claim, **{"prediction": "hired", "proxy": PROXY, **options})
    trail = eq.read(table.assign(sex="f"), prediction="hired", proxy=PROXY)
    with pytest.raises(ClaimError, match="audited alone"):
        eq.certify(trail, eq.gap("selection_rate", across=eq.intersections("race", "sex")))
    for verb in (eq.describe, eq.tally):
        with pytest.raises(TrailError, match="Only probabilities"):
            verb(trail, claim)
    some = eq.certify(
        table.assign(pa=table["pa"].where(table.index > 20)), claim, prediction="hired", proxy=PROXY
    )
    assert some.provenance.excluded == {}
    assert any(
        "21 rows that count have none, and may be of any group" in x for x in some.assumptions
    )
    left = dataclasses.replace(claim, unknown="random")
    few = eq.certify(
        table.assign(pa=table["pa"].where(table.index > 20)), left, prediction="hired", proxy=PROXY
    )
    assert few.provenance.excluded == {"missing pa": 21}
    for wide, narrow in zip(some.unknown, few.unknown, strict=True):
        assert wide.highest - wide.lowest > narrow.highest - narrow.lowest
