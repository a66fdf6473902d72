"""Against the highest group: whichever it is, ties included."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq


def table(rates: dict[str, tuple[int, float]], seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    groups = [g for g, (n, _) in rates.items() for _ in range(n)]
    hired = [int(rng.random() < p) for n, p in rates.values() for _ in range(n)]
    return pl.DataFrame({"g": groups, "s": [i % 2 for i in range(len(groups))], "hired": hired})


def certified(frame: pl.DataFrame, claim: Any = eq.ratio, **options: Any) -> Any:
    asked = claim("selection_rate", across="g", target=eq.highest(**options))
    return eq.certify(frame, asked, prediction="hired", rng=1)


def test_ratios_are_to_the_highest_and_none_is_above() -> None:
    frame = table({"a": (400, 0.6), "b": (400, 0.3), "c": (400, 0.58)})
    found = certified(frame)
    assert max(row.disparity for row in found) == 1
    low = found.ask(g="b")
    assert low.lower < 0.5 < low.upper < 0.65
    assert found.ask(g="c").upper == 1
    gaps = certified(frame, eq.gap)
    assert gaps.ask(g="b").disparity == pytest.approx(low.value - low.target)
    assert gaps.ask(g="b").upper < 0


def test_bounds_are_the_least_of_those_to_single_rivals() -> None:
    frame = table({"a": (200, 0.6), "b": (200, 0.4), "c": (150, 0.55)})
    found = certified(frame).ask(g="b")
    alone: list[Any] = []
    for rival in ("a", "c"):
        claim = eq.ratio("selection_rate", across="g", target=eq.reference(g=rival))
        alone.append(eq.certify(frame, claim, prediction="hired", rng=1).ask(g="b"))
    assert found.lower <= min(row.lower for row in alone) + 0.02
    assert found.upper >= min(row.upper for row in alone) - 1e-9


def test_small_groups_are_not_taken_for_the_highest() -> None:
    frame = table({"a": (500, 0.5), "b": (500, 0.4), "few": (9, 1.0)})
    assert certified(frame).ask(g="b").target == 1.0
    found = certified(frame, share=0.02)
    assert found.ask(g="b").target == pytest.approx(found.ask(g="a").value)
    assert found.ask(g="few").disparity == 1.0


def test_only_groups_of_the_same_attributes_are_rivals() -> None:
    frame = table({"a": (300, 0.6), "b": (300, 0.3)})
    claim = eq.ratio("selection_rate", across=eq.intersections("g", "s"), target="highest")
    found = eq.certify(frame, claim, prediction="hired", rng=1)
    sexes = [row for row in found if set(row.where) == {"s"} and row.disparity is not None]
    # neither sex is compared with group a, whose rate is twice theirs
    assert all((row.disparity or 0.0) > 0.7 for row in sexes)


def test_ties_are_rarely_told_apart() -> None:
    from equipoise.methods.inference.core import highest_core
    from equipoise.methods.targets import Highest, plain_moments

    rng = np.random.default_rng(4)
    number, worlds, missed = 6, 150, 0
    member = np.eye(number, dtype=bool)
    rivals = {j: np.arange(number) != j for j in range(number)}
    allowed = 1 - 0.95 ** (1 / number)
    for _ in range(worlds):
        n = np.full(number, 300.0)
        k = rng.binomial(300, 0.3, number).astype(float)
        core = highest_core(
            plain_moments(n, k, k, k), Highest(), lambda x: x, rivals, member,
            relative=True, zero_one=True, weighted=False,
        )  # fmt: skip
        missed += bool((core.tails(1.0)[1] < allowed / 2).any())
    assert missed / worlds <= 0.05 + 3 * (0.05 * 0.95 / worlds) ** 0.5


def test_what_cannot_be_compared_is_refused() -> None:
    frame = table({"a": (30, 0.5), "b": (30, 0.5)})
    asked = eq.gap("selection_rate", across="g", target="highest")
    with pytest.raises(eq.OptionError, match=r"knows no highest\(\)"):
        eq.shift(frame, asked, over="g", prediction="hired")
    with pytest.raises(eq.OptionError, match=r"knows no highest\(\)"):
        eq.certify(frame, asked, prediction="hired", method="bootstrap")
    with pytest.raises(eq.ClaimError, match="share"):
        eq.highest(share=2)
    with pytest.raises(eq.ClaimError, match="other people"):
        eq.gap("selection_rate", across="g", target="highest", given="s")
    lonely = eq.gap("selection_rate", across=eq.masks(young="s == 1"), target="highest")
    assert eq.certify(frame, lonely, prediction="hired", rng=1)[0].note


@pytest.mark.parametrize("kind", [eq.gap, eq.ratio])
def test_the_highest_group_itself_is_never_flagged_and_limits_lie_below(kind: Any) -> None:
    frame = table({"a": (400, 0.5), "b": (400, 0.2)})
    asked = kind("selection_rate", across="g", target="highest")
    both = (0.8, 1.25) if kind is eq.ratio else (-0.1, 0.1)
    for outside in (None, both):
        found = eq.flag(frame, asked, outside=outside, prediction="hired", rng=1)
        assert [row.group for row in found.flagged] == ["b"]
    with pytest.raises(eq.OptionError, match="Nobody is above the highest"):
        eq.flag(frame, asked, above=1.1 if kind is eq.ratio else 0.1, prediction="hired")
    with pytest.raises(eq.OptionError, match="Nobody is above the highest"):
        eq.certify(frame, asked, side="upper", tolerance=1.1, prediction="hired")
    tolerance = 0.8 if kind is eq.ratio else 0.05
    found = eq.certify(frame, asked, tolerance=tolerance, prediction="hired", rng=1)
    assert found.ask(g="a").verdict is not eq.Verdict.EXCEEDED
    assert found.ask(g="b").verdict is eq.Verdict.EXCEEDED
