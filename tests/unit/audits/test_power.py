"""`power`: what an audit can show, and how many rows it would take."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.errors import ClaimError, EquipoiseError, OptionError, TrailError
from equipoise.findings import from_json
from equipoise.findings.power import Power

CLAIM = eq.gap("false_positive_rate", across="race")


def two(n: tuple[int, int] = (300, 3000), rate: float = 0.3) -> eq.Guess:
    return eq.guess({"g": ["a", "b"], "n": [*n], "rate": [rate, rate]})


AGAINST = eq.gap("selection_rate", across="g", target=eq.reference(g="b"))


@pytest.fixture(scope="module")
def compas() -> Power:
    return eq.power(eq.datasets.compas(), CLAIM, tolerance=0.1, disparity=0.08, budget=2000, rng=7)


def test_larger_groups_show_smaller_gaps(compas: Power) -> None:
    rows = sorted((row for row in compas if row.above is not None), key=lambda row: row.n)
    gaps = [row.above for row in rows if row.above is not None]
    assert gaps == sorted(gaps, reverse=True)
    assert all(row.reachable is not None for row in rows)


def test_chance_and_rows_agree(compas: Power) -> None:
    for row in compas:
        assert row.rows_to_flag is not None
        assert row.chance is not None
        assert (row.rows_to_flag <= row.n) == (row.chance >= 0.795)
        assert row.rows_to_show is not None
        assert row.kept is not None
        assert (row.rows_to_show <= row.n) == (row.kept >= 0.795)


def test_a_budget_is_spent_and_widths_fall(compas: Power) -> None:
    assert sum(row.labels or 0 for row in compas) == 2000
    assert compas.width is not None
    assert compas.width_alike is not None
    assert compas.width < compas.width_alike


def test_more_groups_cost_more(compas: Power) -> None:
    assert [one.groups for one in compas.more] == [12, 30, 60]
    cost = [one.rows_to_flag for one in compas.more]
    assert 1 < cost[0] < cost[1] < cost[2]
    assert all(one.rows_to_flag == pytest.approx(one.gap**2) for one in compas.more)
    chosen = eq.power(two(), AGAINST, more=[3], rng=1)
    assert [one.groups for one in chosen.more] == [4]


def test_it_is_a_finding(compas: Power, tmp_path: Path) -> None:
    assert from_json(compas.to_json()) == compas
    assert repr(compas) == "<Power: false positive rate against everyone; 6 rows>"
    assert len(compas.to_frame("polars")) == 6
    words = " ".join(compas.sentences())
    assert "Monte-Carlo error" in words
    assert "80 % power" in words
    assert compas.conclusion is None
    page = eq.report(compas)
    assert "Native American" in page.html
    assert compas.plot().to_dict()


def test_what_rests_on_small_groups_is_not_published(compas: Power) -> None:
    page = eq.report(compas, suppress=30)
    (entry,) = json.loads(page.published or "")["entries"]
    # rows of large groups rest on all groups too, through the simulated law of them together
    assert entry["finding"] is None
    assert entry["left out"] >= 1
    assert "Not published." in page.html
    assert "Asian" not in page.html


def test_the_same_seed_gives_the_same_answer() -> None:
    first, again = (eq.power(two(), AGAINST, disparity=0.05, rng=3) for _ in range(2))
    assert first == again
    other = eq.power(two(), AGAINST, disparity=0.05, rng=4)
    near = (first.ask("a").rows_to_flag or 0) / (other.ask("a").rows_to_flag or 1)
    assert near == pytest.approx(1, abs=0.02)


def test_a_table_and_a_guess_of_its_counts_agree() -> None:
    table = pl.DataFrame({"g": ["a", "a", "b", "b"], "p": [1, 0, 1, 0], "n": [90, 210, 900, 2100]})
    options: dict[str, Any] = {"disparity": 0.05, "tolerance": 0.05, "budget": 100, "rng": 7}
    real = eq.power(table, AGAINST, prediction="p", count="n", **options)
    trail = eq.read(table, prediction="p", count="n", attributes=["g"])
    counts = eq.power(eq.tally(trail, AGAINST), AGAINST, **options)
    assert real.rows == eq.power(two(), AGAINST, **options).rows == counts.rows


def test_the_flag_it_names_is_flagged() -> None:
    """A table of the size named, with exactly the disparity named and half a power's luck more."""
    row = eq.power(two(), AGAINST, disparity=0.1, rng=7).ask("a")
    n = row.rows_to_flag or 0
    ones = round(n * 0.4)
    table = {"g": ["a", "a", "b", "b"], "p": [1, 0, 1, 0], "n": [ones, n - ones, 3 * n, 7 * n]}
    found = eq.flag(pl.DataFrame(table), AGAINST, prediction="p", count="n")
    assert found.ask("a").flagged


def test_sizes_are_those_of_the_textbook_where_counts_are_large() -> None:
    found = eq.power(two((500, 500), 0.5), AGAINST, disparity=0.05, fdr=0.05, rng=7)
    assert found.ask("a").rows_to_flag == pytest.approx(1564.7, rel=0.03)


@pytest.mark.parametrize("control", ["bh", "by", "e-bh", "holm", "max-t"])
def test_every_control_is_planned(control: Any) -> None:
    found = eq.power(two((400, 500)), eq.gap("selection_rate", across="g"), control=control, rng=1)
    assert 0.02 < (found.ask("a").above or 0) < 0.15


def test_amounts_weights_clusters_and_factors_are_planned_by_their_errors() -> None:
    rng = np.random.default_rng(1)
    n = 600
    table = pl.DataFrame(
        {
            "g": rng.choice(["a", "b"], n),
            "y": rng.normal(size=n),
            "s": rng.normal(size=n),
            "p": rng.integers(0, 2, n),
            "w": rng.uniform(0.5, 2, n),
            "c": rng.integers(0, 100, n),
            "f": rng.choice(["x", "y"], n),
        }
    )
    claims: list[tuple[eq.Claim, dict[str, Any]]] = [
        (eq.gap("residual", across="g", target=eq.complement()), {"label": "y", "score": "s"}),
        (eq.gap("selection_rate", across="g"), {"prediction": "p", "weight": "w"}),
        (eq.gap("selection_rate", across="g"), {"prediction": "p", "cluster": "c"}),
        (eq.gap("selection_rate", across="g", target=eq.complement(), given="f"),
         {"prediction": "p"}),
    ]  # fmt: skip
    for claim, roles in claims:
        found = eq.power(table, claim, tolerance=0.3, rng=1, **roles)
        assert found.assumed is None
        for row in found:
            assert row.above is not None
            assert row.rows_to_show is not None
            bound = eq.certify(table, claim, rng=1, **roles).ask(row.group)
            assert bound.upper is not None
            assert bound.lower is not None
            # flags need less than bounds on all groups, and power more than half
            assert 0.5 < row.above / ((bound.upper - bound.lower) / 2) < 2


def test_an_amount_is_guessed_with_its_spread() -> None:
    table: dict[str, list[Any]] = {
        "g": ["a", "b"],
        "n": [300, 3000],
        "pay": [30.0, 33.0],
        "sd": [10.0, 12.0],
    }
    guess = eq.guess(table, rate="pay", spread="sd")
    claim = eq.gap("residual", across="g", target=eq.reference(g="b"))
    found = eq.power(guess, claim, fdr=0.05, rng=1).ask("a")
    error = np.sqrt(100 / 300 + 144 / 3000)
    assert found.above == pytest.approx(error * (1.96 + 0.8416), rel=0.03)


def test_many_groups_are_planned_from_some_of_all_sizes() -> None:
    sizes = [50 + 20 * i for i in range(30)]
    table: dict[str, list[Any]] = {
        "g": [f"g{i:02d}" for i in range(30)],
        "n": sizes,
        "rate": [0.3] * 30,
    }
    found = eq.power(eq.guess(table), eq.gap("selection_rate", across="g"), rng=1)
    gaps = [row.above for row in found]
    assert all(gap is not None for gap in gaps)
    assert np.all(np.diff(np.array(gaps, dtype=float)) < 0.002)
    assert any("30 groups 5 of all sizes" in said for said in found.assumptions)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"power": 1.0}, "power must lie"),
        ({"power": 0.05}, "between 0.2 and 0.99"),
        ({"budget": 0}, "budget must be a whole number"),
        ({"budget": 2.5}, "budget must be a whole number"),
        ({"disparity": 0.0}, "not beyond the limit"),
        ({"above": 0.1, "disparity": 0.05}, "not beyond the limit"),
        ({"above": 0.1, "below": -0.1}, "Pass one of"),
        ({"disparity": "much"}, "disparity must be a number"),
        ({"tolerance": -0.1}, "tolerance must be above 0"),
        ({"tolerance": 5.0}, "tolerance must lie between"),
        ({"more": [0]}, "more must be a whole number"),
        ({"level": 1.5}, "level must lie"),
        ({"gap": 0.1}, "gap"),
        ({"label": "y"}, "leave out the roles"),
    ],
)
def test_bad_options_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(EquipoiseError, match=said):
        eq.power(two(), AGAINST, rng=1, **change)


@pytest.mark.parametrize(
    ("claim", "error"),
    [
        (eq.equalized_odds(across="g"), OptionError),
        (eq.gap("selection_rate", across="g", target=eq.highest()), OptionError),
        (eq.gap("selection_rate", across="g", unknown="random"), OptionError),
        (eq.gap("selection_rate", across="g", target=eq.complement(), given="f"), ClaimError),
        (eq.gap("residual", across="g"), ClaimError),
        (eq.gap("selection_rate", across="sex"), EquipoiseError),
    ],
)
def test_claims_that_cannot_be_planned_are_refused(claim: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        eq.power(two(), claim, rng=1)


@pytest.mark.parametrize(
    "made",
    [
        lambda: eq.guess({"g": ["a"], "rate": [0.1]}),
        lambda: eq.guess({"g": ["a"], "n": [5]}),
        lambda: eq.guess({"g": ["a", "b"], "n": [5], "rate": [0.1]}),
        lambda: eq.power(eq.guess({"g": ["a"], "n": [5], "rate": [1.4]}), _own(), rng=1),
        lambda: eq.power(eq.guess({"g": ["a"], "n": [-5], "rate": [0.4]}), _own(), rng=1),
        lambda: eq.power(eq.guess({"g": ["a"], "n": [2.5], "rate": [0.4]}), _own(), rng=1),
        lambda: eq.power(eq.guess({"g": ["a"], "n": [5], "rate": [float("nan")]}), _own(), rng=1),
        lambda: eq.power(eq.guess({"g": ["a"], "n": [5], "rate": ["much"]}), _own(), rng=1),
    ],
)
def test_bad_guesses_are_refused(made: Callable[[], object]) -> None:
    with pytest.raises((TrailError, ClaimError, OptionError)):
        made()


def _own() -> eq.Claim:
    return eq.gap("selection_rate", across="g", target=0.3)


def test_degenerate_tables_get_no_promise() -> None:
    """Nobody has the outcome, one row, an empty group, one group against everyone."""
    for table in (
        {"g": ["a", "b"], "p": [0, 0], "n": [50, 60]},
        {"g": ["a", "b"], "p": [0, 1], "n": [1, 1]},
        {"g": ["a", "a"], "p": [0, 1], "n": [30, 30]},
    ):
        for claim in (eq.gap("selection_rate", across="g"), AGAINST):
            if "b" not in table["g"] and claim is AGAINST:
                continue
            found = eq.power(
                pl.DataFrame(table), claim, prediction="p", count="n", disparity=0.3,
                tolerance=0.2, rng=1,
            )  # fmt: skip
            # refuses numbers that are none
            assert json.loads(found.to_json())["kind"] == "power"
            for row in found:
                assert row.kept is None or row.n > 20 or row.kept < 0.5


def test_three_rows_beside_millions_flag_what_three_rows_can() -> None:
    """One of three is flagged, none is not: the power is the chance of at least one."""
    guess = eq.guess({"g": ["a", "b"], "n": [3, 10_000_000], "rate": [0.01, 0.01]})
    found = eq.power(guess, eq.gap("selection_rate", across="g"), disparity=0.1, rng=1).ask("a")
    assert found.above == pytest.approx(1 - 0.2 ** (1 / 3) - 0.01, abs=0.01)
    assert found.below is None
    assert found.chance == pytest.approx(1 - 0.89**3, abs=0.02)


def test_a_target_that_no_rate_can_be_is_refused() -> None:
    with pytest.raises(OptionError, match="rate of 5"):
        eq.power(two(), eq.gap("selection_rate", across="g", target=5.0), rng=1)


def test_a_plan_holds_it_and_verify_performs_it_again(tmp_path: Path) -> None:
    from equipoise.plan import Plan, run, verify

    text = """
equipoise: 1
seed: 7
trail: {source: "equipoise:compas"}
audits:
  - audit: power
    claim: {kind: gap, metric: false_positive_rate, across: [sex]}
    disparity: 0.05
    tolerance: 0.05
    budget: 900
"""
    evidence = run(Plan.parse(text))
    found = evidence.entries[0].finding
    assert isinstance(found, Power)
    assert sum(row.labels or 0 for row in found) == 900
    stored = eq.Evidence.from_json(evidence.to_json())
    assert verify(stored).complete
    assert "Female" in eq.report(evidence).html
    with pytest.raises(EquipoiseError, match="line 8"):
        Plan.parse(text.replace("disparity: 0.05", "power: 2"))


def test_two_groups_that_are_each_others_mirror_are_one_question() -> None:
    # both have the same p-value in every table, so two tests cost no more than one at 10 %
    made = eq.guess({"g": ["a", "b"], "n": [120, 500], "rate": [10.0, 10.0], "sd": [4.0, 4.0]},
                    spread="sd")  # fmt: skip
    claim = eq.gap("residual", across="g", target=eq.complement())
    found = eq.power(made, claim, power=0.8, rng=7).ask(g="a")
    error = 4 * np.sqrt(1 / 120 + 1 / 500)
    assert found.above == pytest.approx((1.645 + 0.8416) * error, rel=0.03)
