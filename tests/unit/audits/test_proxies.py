"""Probabilities in place of attributes: sharp ranges, two estimates, a check against truth."""

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
from equipoise.methods.targets import Complement, Overall

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
    """Cells of very many rows, in which nothing is left to chance."""
    share, chance, rate = rng.dirichlet(np.ones(6)), rng.random(6), rng.random(6)
    n = rows * share
    made = ProxySums(
        rows=n[:, None], chance=(n * chance)[:, None], chance2=(n * chance**2)[:, None],
        total=(n * rate)[:, None], both=(n * chance * rate)[:, None],
    )  # fmt: skip
    return made, share, chance, rate


@pytest.mark.parametrize("target", [Overall(), Complement(), Overall(scale=0.8)])
def test_ends_are_those_of_a_linear_programme(target: Any) -> None:
    rng = np.random.default_rng(5)
    for _ in range(10):
        cells, share, chance, rate = _sums(rng, 1e10)
        # x: people of the group by cell and outcome, of whom there are as many as are expected
        size = share.size
        inside = np.concatenate([np.eye(size), np.eye(size)], axis=1)
        limits = [(0.0, float(x)) for x in (*share * (1 - rate), *share * rate)]
        ones = np.concatenate([np.zeros(size), np.ones(size)])
        core = proxy_core(cells, target, None, relative=False)
        of_group, everyone = float(share @ chance), float(share @ rate)
        for sign, end in ((1, core.low), (-1, core.high)):
            found = linprog(sign * ones, A_eq=inside, b_eq=share * chance, bounds=limits)
            both = sign * found.fun
            other = everyone
            if isinstance(target, Complement):
                other = (everyone - both) / (1 - of_group)
            expected = both / of_group - target.scale * other
            assert end.pivot.estimate[0] == pytest.approx(expected, abs=1e-4)


def test_ends_are_never_too_near_on_average() -> None:
    # both rates equal: the smaller of two estimates is too small, ours is not
    rng = np.random.default_rng(8)
    rows, worlds = 200, 4000
    chance = np.full(rows, 0.4)
    ones = rng.binomial(rows, 0.4, worlds).astype(float)
    cells = ProxySums(
        rows=np.full((1, worlds), float(rows)), chance=np.full((1, worlds), chance.sum()),
        chance2=np.full((1, worlds), (chance**2).sum()), total=ones[None],
        both=0.4 * ones[None],
    )  # fmt: skip
    plain = np.minimum(0.4, ones / rows)
    error = np.sqrt(0.24 / rows / worlds)
    assert plain.mean() < 0.4 - 10 * error
    assert abs(smaller_of(cells, complement=False)[0].mean() - 0.4) < 4 * error
    low, high = (joint_share(cells, lowest=lowest).value for lowest in (True, False))
    assert (low <= high + 1e-12).all()


def test_influence_is_what_a_row_does() -> None:
    table = _people(900)
    place = np.digitize(table["pa"], CUTS)

    def made(weight: Any) -> ProxySums:
        p, y = table["pa"].to_numpy(), table["hired"].to_numpy()
        columns = (weight, weight * p, weight * p * p, weight * y, weight * p * y)
        names = ("rows", "chance", "chance2", "total", "both")
        sums = [np.bincount(place, c, len(CUTS) + 1)[:, None].astype(np.float64) for c in columns]
        return ProxySums(**dict(zip(names, sums, strict=True)))

    plain = np.ones(len(table))
    found = joint_share(made(plain), lowest=False)
    for row in (3, 400, 750):
        more = plain.copy()
        more[row] += 0.01
        moved = (joint_share(made(more), lowest=False).value - found.value)[0] * len(table) / 0.01
        z, p, y = place[row], table["pa"][row], table["hired"][row]
        told = found.plain[z, 0] + found.chance[z, 0] * p + found.outcome[z, 0] * y
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
    assert some.provenance.excluded == {"missing pa": 21}
