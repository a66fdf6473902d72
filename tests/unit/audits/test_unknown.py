"""Unknown people: the worst case is that of all assignments, and is told apart from few rows."""

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

import equipoise as eq
from equipoise.audits._groups.problem import set_up
from equipoise.audits._groups.unknown import unsure_of
from equipoise.errors import ClaimError, OptionError
from equipoise.methods.inference.unknown import PairCore, spread_disparity

LEVELS = {"race": ("A", "B"), "sex": ("F", "M")}
TARGETS = {
    "overall": eq.overall(),
    "complement": eq.complement(),
    "reference": eq.reference(race="A"),
    "elsewhere": eq.reference(sex="M"),
    "number": eq.constant(0.4),
    "scaled": 0.8 * eq.overall(),
}


def _tiny(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    known = pd.DataFrame(
        {
            "race": rng.choice(["A", "B"], 24),
            "sex": rng.choice(["F", "M"], 24),
            "hired": rng.integers(0, 2, 24),
        }
    )
    unsure = pd.DataFrame(
        {
            "race": [None, None, None, "B", "A", None],
            "sex": ["F", "M", "M", None, None, None],
            "hired": rng.integers(0, 2, 6),
        }
    )
    return pd.concat([known, unsure], ignore_index=True)


def _all_assignments(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The table with every way in which what is unknown could be."""
    holes = [(i, name) for name in LEVELS for i in table.index[table[name].isna()]]
    for chosen in itertools.product(*(LEVELS[name] for _, name in holes)):
        full = {name: table[name].to_numpy(dtype=object, copy=True) for name in LEVELS}
        for (row, name), level in zip(holes, chosen, strict=True):
            full[name][row] = level
        yield full


def _naive(
    full: dict[str, Any], hired: Any, where: Mapping[str, object], target: str, relative: bool
) -> float:
    def inside(group: Mapping[str, object]) -> Any:
        return np.logical_and.reduce([full[name] == level for name, level in group.items()])

    own = inside(where)
    other = {
        "overall": np.ones(len(hired), dtype=bool), "complement": ~own,
        "reference": full["race"] == "A", "elsewhere": full["sex"] == "M",
    }.get(target)  # fmt: skip
    if target == "scaled":
        theta = 0.8 * hired.mean()
    else:
        theta = 0.4 if other is None else hired[other].mean()
    rate = hired[own].mean()
    return float(rate / theta if relative else rate - theta)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("relative", [False, True])
def test_ends_are_those_of_all_assignments(target: str, relative: bool) -> None:
    table = _tiny(7 if relative else 3)
    across = eq.intersections("race", "sex")
    claim = (eq.ratio if relative else eq.gap)(
        "selection_rate", across=across, target=TARGETS[target], unknown="worst"
    )
    core = set_up(eq.read(table, prediction="hired"), claim).core
    assert isinstance(core, PairCore)
    wheres = set_up(eq.read(table, prediction="hired"), claim).collection.wheres()
    hired = table["hired"].to_numpy()
    seen: dict[int, list[float]] = {i: [] for i in range(len(wheres))}
    for full in _all_assignments(table):
        for i, where in enumerate(wheres):
            seen[i].append(_naive(full, hired, where, target, relative))
    named = {"reference": {"race": "A"}, "elsewhere": {"sex": "M"}}.get(target, {})
    for i, where in enumerate(wheres):
        low, high = core.low.comparison.estimate[i], core.high.comparison.estimate[i]
        shares = any(where.get(name) == level for name, level in named.items())
        if shares:
            # a group inside its reference takes it along: the ends may lie further out
            assert low <= min(seen[i]) + 1e-9
            assert high >= max(seen[i]) - 1e-9
        else:
            assert low == pytest.approx(min(seen[i]))
            assert high == pytest.approx(max(seen[i]))


def _people(rows: int = 3000, share: float = 0.08) -> pd.DataFrame:
    rng = np.random.default_rng(11)
    race = rng.choice(["A", "B", "C"], rows, p=[0.55, 0.35, 0.1]).astype(object)
    hired = (rng.random(rows) < np.where(race == "B", 0.25, 0.45)).astype(int)
    race[rng.random(rows) < share * (1 + hired)] = None
    weight = rng.random(rows) + 0.5
    place = rng.integers(0, 200, rows)
    return pd.DataFrame({"race": race, "hired": hired, "weight": weight, "place": place})


@pytest.mark.parametrize("roles", [{}, {"weight": "weight"}, {"cluster": "place"}])
def test_modes_beside_each_other(roles: dict[str, str]) -> None:
    trail = eq.read(_people(), prediction="hired", **roles)
    found = {
        mode: eq.certify(
            trail,
            eq.gap("selection_rate", across="race", target=eq.complement(), unknown=mode),
            tolerance=0.15,
            rng=1,
        )
        for mode in ("group", "random", "worst")
    }
    assert [row.where["race"] for row in found["group"].rows] == ["A", "B", "C", None]
    assert [row.where["race"] for row in found["worst"].rows] == ["A", "B", "C"]
    unknown = found["group"].rows[-1].n
    for random, worst, beside in zip(
        found["random"].rows, found["worst"].rows, found["worst"].unknown, strict=True
    ):
        assert beside.unknown == unknown
        assert worst.lower < beside.lowest < random.disparity < beside.highest < worst.upper
        assert beside.lower == pytest.approx(random.lower, abs=3e-3)
        assert worst.n == random.n
        assert worst.disparity == pytest.approx(random.disparity)
        # ignorance is no smaller for more confidence, sampling error is
        assert worst.lower < found["worst"].at(0.5).ask(worst.where).lower < beside.lowest
    for mode in found:
        assert any(f"race of {unknown:,} rows" in text for text in found[mode].sentences())
        chance = any("missing completely at random" in text for text in found[mode].sentences())
        assert chance == (mode == "random")
    # at the level they have, what is known beside them is not forgotten
    assert found["worst"].at(0.95).unknown == found["worst"].unknown


def test_everybody_known_is_as_usual() -> None:
    trail = eq.read(_people(share=0.0), prediction="hired")
    for target in (eq.complement(), eq.reference(race="A"), eq.overall()):
        usual, *others = (
            eq.certify(
                trail,
                eq.ratio("selection_rate", across="race", target=target, unknown=mode),
                rng=1,
            )
            for mode in ("group", "random", "worst")
        )
        for other in others:
            for a, b in zip(usual.rows, other.rows, strict=True):
                assert a.disparity == b.disparity
                assert (a.lower, a.upper) == pytest.approx(
                    (b.lower, b.upper), abs=5e-3
                ) or not a.reach


def test_verdicts_say_why_they_are_open() -> None:
    claim = eq.gap("selection_rate", across="race", unknown="worst")
    trail = eq.read(_people(share=0.03), prediction="hired")
    found = eq.certify(trail, claim, tolerance=0.08, rng=1)
    assert [found.reason(row) for row in found.rows] == [
        "unknown people",
        "few rows and unknown people",
        "unknown people",
    ]
    few = eq.certify(eq.read(_people(150, 0.0), prediction="hired"), claim, tolerance=0.2, rng=1)
    assert {few.reason(row) for row in few.rows if str(row.verdict) == "undetermined"} == {
        "few rows"
    }
    assert any("unknown people" in text for text in found.sentences())
    again = eq.findings.from_json(found.to_json())
    assert again == found
    assert again.reason(again.rows[1]) == found.reason(found.rows[1])
    assert "▬" in found.drawn()
    assert "lowest" in json.dumps(found.plot().to_dict())


def test_tipping_point_is_where_the_bound_meets_the_limit() -> None:
    trail = eq.read(_people(6000, 0.02), prediction="hired")
    claim = eq.gap("selection_rate", across="race", unknown="worst")
    found = eq.certify(trail, claim, tolerance=0.12, rng=1)
    unsure = unsure_of(set_up(trail, claim))
    place = next(i for i, one in enumerate(found.unknown) if one.tipping and one.tipping > 1)
    one, row = found.unknown[place], found.rows[place]
    down = one.lower >= 0.12 or (one.lower > -0.12 and row.disparity < 0)
    at = spread_disparity(unsure, np.full(len(found), one.tipping), lowest=down)[place]
    bound = at - row.disparity + (one.lower if down else one.upper)
    assert abs(bound) == pytest.approx(0.12, abs=1e-6)


def test_flags_hold_whoever_they_are() -> None:
    trail = eq.read(_people(), prediction="hired")
    flags = {
        mode: eq.flag(trail, eq.gap("selection_rate", across="race", unknown=mode), below=-0.02)
        for mode in ("random", "worst")
    }
    p = {mode: {row.group: row.p for row in found.rows} for mode, found in flags.items()}
    assert all(p["worst"][group] >= p["random"][group] - 1e-12 for group in p["random"])
    assert (
        eq.joint_test(trail, eq.gap("selection_rate", across="race", unknown="worst"), rng=1).p < 1
    )


def test_refusals_say_what_to_do() -> None:
    trail = eq.read(_people(), prediction="hired", score="weight")
    for options, words in (
        ({"across": eq.thresholds("place")}, "values of attributes"),
        ({"across": "race", "given": "place"}, "takes no given="),
        ({"across": "race", "target": eq.highest()}, "the highest group"),
        ({"across": "race", "target": eq.reference(race=None)}, "no reference"),
    ):
        with pytest.raises(ClaimError, match=words):
            eq.gap("selection_rate", unknown="worst", **options)
    with pytest.raises(ClaimError, match="'best'"):
        eq.gap("selection_rate", across="race", unknown="best")  # type: ignore[arg-type]
    worst = eq.gap("selection_rate", across="race", unknown="worst")
    for call in (
        lambda: eq.describe(trail, worst),
        lambda: eq.certify(trail, worst, method="likelihood"),
        lambda: eq.summarize(trail, worst),
        lambda: eq.flag(trail, worst, population="these rows"),
    ):
        with pytest.raises(OptionError, match="unknown="):
            call()
    with pytest.raises(ClaimError, match="0 or 1"):
        eq.certify(trail, eq.gap(eq.metric("x", "weight"), across="race", unknown="worst"))
    weighted = eq.read(_people(), prediction="hired", weight="weight")
    with pytest.raises(ClaimError, match="rows with weights"):
        eq.certify(weighted, eq.gap(eq.metric("far", "place > 9"), across="race", unknown="worst"))
    nobody = _people()
    nobody["race"] = None
    with pytest.raises(ClaimError, match="Nobody's race is known"):
        eq.certify(eq.read(nobody, prediction="hired"), worst)
    assert eq.from_plan(worst.to_plan()) == worst
    assert "unknown" not in eq.gap("selection_rate", across="race").to_plan()
