"""COMPAS figures of Cherian and Candès (2024), as their own programme gives them."""

from typing import Any

import pytest
from validation.paper_000.compas_groups import ACROSS, HIGH_FPR, LOW_PPV, PUBLISHED, merged

import equipoise as eq
from equipoise.findings.bounds import Bounds

# the verbs return one of several findings, which each test knows
FORMS = [{}, {**PUBLISHED, "rng": 3}]


@pytest.mark.parametrize("options", FORMS)
def test_thirteen_groups_have_a_false_positive_rate_five_points_above(options: dict) -> None:
    claim = eq.gap(eq.false_positive_rate, across=ACROSS)
    found = eq.flag(eq.datasets.compas(), claim, above=0.05, fdr=0.10, **options)
    assert {row.group for row in found.flagged} == HIGH_FPR
    assert found.provenance.counted == 3363


@pytest.mark.parametrize("options", FORMS)
def test_three_groups_have_a_predictive_value_five_points_below(options: dict) -> None:
    claim = eq.gap(eq.positive_predictive_value, across=ACROSS)
    found = eq.flag(eq.datasets.compas(), claim, below=-0.05, fdr=0.10, **options)
    assert {row.group for row in found.flagged} == LOW_PPV
    assert found.provenance.counted == 2751


@pytest.mark.parametrize("method", ["bootstrap", "pivotal"])
@pytest.mark.parametrize(("level", "bound"), [(0.95, 0.0187), (0.90, 0.027)])
def test_the_printed_bound_is_the_one_at_95_per_cent(
    level: float, bound: float, method: Any
) -> None:
    across = eq.masks({"African-American": "race == 'African-American'"})
    target = eq.reference(race="Caucasian")
    claim = eq.gap(eq.positive_predictive_value, across=across, target=target)
    options: dict[str, Any] = {
        "level": level,
        "side": "lower",
        "method": method,
        "resamples": 20_000,
        "rng": 1,
    }
    found = eq.certify(eq.datasets.compas(), claim, **options)
    assert isinstance(found, Bounds)
    (row,) = found.rows
    assert row.disparity == pytest.approx(0.0547, abs=5e-5)
    assert row.lower == pytest.approx(bound, abs=1.5e-3)


@pytest.mark.parametrize(("together", "expected"), [(True, 58), (False, 76)])
def test_how_many_groups_have_a_predictive_value(together: bool, expected: int) -> None:
    trail = merged() if together else eq.datasets.compas()
    claim = eq.gap(eq.positive_predictive_value, across=ACROSS)
    assert sum(row.n > 0 for row in eq.describe(trail, claim).rows) == expected
