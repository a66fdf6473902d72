"""Counts instead of rows: the same findings to the last digit, also merged from several places."""

from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.cells import Cells, gather
from equipoise.cells.tally import steady_cells
from equipoise.claims import Ratio
from tests.conformance.cases import CASES, TABLE

FIRST, SECOND = ("weight", "total", "square"), ("weight2", "total2", "square2")
SUMS = ("present", "rows", *FIRST, *SECOND, "weight3", "total3", "square3", "cube3")
# Functions have no written form, expressions neither: such counts stay where they were made.
UNWRITTEN = ("expression",)
# Each place finds edges of its own.
OWN_EDGES = ("intervals, grid", "boxes")


def _roles_of(case: str) -> str:
    return repr(sorted(CASES[case][0].items(), key=str))


@pytest.fixture(scope="module")
def tallied() -> dict[str, eq.Tallied]:
    """For each set of roles, one tally of all the claims that are asked with it."""
    found = {}
    for name in {_roles_of(case) for case in CASES}:
        cases = [case for case in CASES if _roles_of(case) == name]
        trail = eq.read(TABLE, **CASES[cases[0]][0])
        found[name] = eq.tally(trail, *(CASES[case][1] for case in cases))
    return found


def same_cells(found: Cells, wanted: Cells) -> None:
    assert [axis.levels for axis in found.axes] == [axis.levels for axis in wanted.axes]
    assert [axis.dimension for axis in found.axes] == [axis.dimension for axis in wanted.axes]
    np.testing.assert_array_equal(found.index, wanted.index)
    found, wanted = steady_cells(found), steady_cells(wanted)
    for name in SUMS:
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)
    assert found.excluded == wanted.excluded
    assert (found.scanned, found.counted) == (wanted.scanned, wanted.counted)
    assert (found.zero_one, found.weighted) == (wanted.zero_one, wanted.weighted)
    assert found.fingerprint() == wanted.fingerprint()


@pytest.mark.parametrize("case", CASES)
def test_counts_narrow_to_the_cells_of_each_claim(
    case: str, tallied: dict[str, eq.Tallied]
) -> None:
    roles, claim = CASES[case]
    (found,) = gather(tallied[_roles_of(case)], [claim])
    (wanted,) = gather(eq.read(TABLE, **roles), [claim])
    assert found.counted > 50
    same_cells(found, wanted)


def _resampled(rows: Any, claim: eq.Claim) -> bool:
    """Whether p-values come from resamples: those of plain 0/1 metrics do not."""
    (cells,) = gather(rows, [claim])
    return not cells.zero_one or cells.weighted or cells.clusters is not None


def _findings(rows: Any, claim: eq.Claim) -> list[eq.Finding]:
    options: dict[str, Any] = {"resamples": 40} if _resampled(rows, claim) else {}
    options |= {"below": 0.8} if isinstance(claim, Ratio) else {}
    return [
        eq.certify(rows, claim, resamples=40, rng=5),
        eq.flag(rows, claim, rng=5, **options),
        eq.describe(rows, claim),
    ]


# the weights of these tilts are missing on some rows, which no audit takes
@pytest.mark.parametrize("case", [case for case in CASES if case != "tilts"])
def test_audits_of_counts_are_audits_of_rows(case: str, tallied: dict[str, eq.Tallied]) -> None:
    roles, claim = CASES[case]
    trail = eq.read(TABLE, **roles)
    assert _findings(tallied[_roles_of(case)], claim) == _findings(trail, claim)


@pytest.mark.parametrize("case", [c for c in CASES if c not in (*UNWRITTEN, *OWN_EDGES)])
def test_merged_counts_are_the_counts_of_everyone(case: str) -> None:
    roles, claim = CASES[case]
    parts = [TABLE.slice(0, 150), TABLE.slice(150, 1), TABLE.slice(151, 300), TABLE.slice(451)]
    assert sum(part.num_rows for part in parts) == TABLE.num_rows
    counts = [eq.tally(eq.read(part, **roles), claim) for part in parts]
    sent = [eq.Tallied.from_json(part.to_json()) for part in counts]
    merged = eq.merge(*sent)
    assert merged.rows == sum(part.rows for part in counts)
    (found,) = gather(merged, [claim])
    (wanted,) = gather(eq.read(TABLE, **roles), [claim])
    same_cells(found, wanted)


def test_a_merged_audit_is_the_pooled_audit() -> None:
    roles, claim = CASES["binary rates"]
    halves = [TABLE.slice(0, 222), TABLE.slice(222)]
    merged = eq.merge(*(eq.tally(eq.read(half, **roles), claim) for half in halves))
    pooled = eq.read(TABLE, **roles)
    assert _findings(merged, claim) == _findings(pooled, claim)
    joint = [eq.joint_test(rows, claim, rng=3) for rows in (merged, pooled)]
    assert joint[0] == joint[1]


def test_the_order_of_places_does_not_matter() -> None:
    roles, claim = CASES["weights, summed"]
    parts = [eq.tally(eq.read(TABLE.slice(i, 120), **roles), claim) for i in range(0, 600, 120)]
    there, back = eq.merge(*parts), eq.merge(*reversed(parts))
    assert eq.describe(there, claim).rows == eq.describe(back, claim).rows
    (one,), (other,) = gather(there, [claim]), gather(back, [claim])
    np.testing.assert_array_equal(one.total, other.total)
