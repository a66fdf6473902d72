"""What a target is: its parts against masks on rows."""

import numpy as np
import pytest

from equipoise.methods.numerics import FloatArray
from equipoise.methods.targets import (
    Complement,
    Constant,
    Custom,
    InfluenceSums,
    Overall,
    Reference,
    Target,
)
from tests.unit.methods.inference.naive import TARGETS, Rows, make_rows, targets_of


def cell_sums(rows: Rows, x: FloatArray) -> FloatArray:
    return np.bincount(rows.cell, weights=x, minlength=rows.cells).astype(np.float64)


@pytest.mark.parametrize("name", TARGETS)
def test_parts_are_disjoint_masks_of_the_rows(name: str) -> None:
    rows = make_rows(1, weighted=True)
    target = targets_of(rows)[name]
    x = rows.weight * rows.value
    found = target.parts(cell_sums(rows, x), rows.sums)
    for group in range(4):
        own, both, other = rows.parts(target, group)
        # a part that cannot exist is left out: everyone has nobody outside, others share nobody
        aim = {
            Constant: [own],
            Overall: [both, other],
            Complement: [own, other],
            Reference: [own, both, other],
        }[type(target)]
        np.testing.assert_allclose(found[:, group], [x[mask].sum() for mask in aim], atol=1e-9)


@pytest.mark.parametrize("name", TARGETS)
def test_group_and_target_are_made_of_their_parts(name: str) -> None:
    rows = make_rows(2, weighted=True)
    target = targets_of(rows)[name]
    cells = cell_sums(rows, rows.weight)
    parts = target.parts(cells, rows.sums)
    for group in range(4):
        own = rows.weight[rows.member(group)].sum()
        assert parts[np.array(target.group), group].sum() == pytest.approx(own)
        other = rows.weight[rows.compared(target, group)].sum()
        assert parts[np.array(target.against), group].sum() == pytest.approx(other)
    inside = rows.sums(cells)[None]
    if target.estimated:
        aim = [rows.weight[rows.compared(target, g)].sum() for g in range(4)]
        found = np.broadcast_to(target.total(cells[None], inside), (1, 4))
        np.testing.assert_allclose(found[0], aim)


def test_batches_are_added_up_like_single_tables() -> None:
    rows = make_rows(3)
    cells = np.stack([cell_sums(rows, rows.value**p) for p in range(3)])
    for target in targets_of(rows).values():
        together = target.parts(cells, rows.sums)
        for i in range(3):
            np.testing.assert_array_equal(together[:, i], target.parts(cells[i], rows.sums))


def test_what_is_left_of_everybody_is_nobody() -> None:
    """Differences of rounded sums leave slivers; a sliver is no row."""
    weight = np.array([0.1] * 3 + [0.2] * 7)

    def everyone(x: FloatArray) -> FloatArray:
        # added in another order
        return np.asarray(x[..., ::-1].cumsum(axis=-1)[..., -1:])

    for target in (Overall(), Complement(), Reference(cells=np.ones(10, dtype=bool))):
        assert target.parts(weight, everyone)[-1, 0] == 0.0


def test_numbers_and_kinds() -> None:
    nothing = np.zeros(0)
    psi = InfluenceSums(rows=4.0, total=nothing, product=nothing, sum=2.0, square=5.0)
    made: list[Target] = [Constant(value=0.3), Custom(value=0.7, influence=psi)]
    assert [x.number for x in made] == [0.3, 0.7]
    assert not any(x.estimated for x in made)
    values = np.array([1.0, -1.0, 2.0, 0.5])
    psi = InfluenceSums(
        rows=4.0,
        total=nothing,
        product=nothing,
        sum=float(values.sum()),
        square=float((values**2).sum()),
    )
    assert psi.variance == pytest.approx(np.var(values) / 4)
    # shares count where group or target are made of several parts
    mixed = [Overall(), Reference(cells=np.ones(1, dtype=bool)), Complement(), Constant(value=0.0)]
    assert [x.mixed for x in mixed] == [True, True, False, False]
