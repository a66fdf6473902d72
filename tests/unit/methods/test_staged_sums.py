"""Sums in stages are those of plain loops, whatever the attributes and groups."""

import numpy as np
import pytest

from equipoise.methods.numerics import staged_sums


def _groups(rng: np.random.Generator, levels: list[int], depth: int, number: int) -> np.ndarray:
    """Groups that bind up to ``depth`` attributes, some of them empty."""
    made = np.tile(levels, (number, 1))
    for group in made:
        bound = rng.choice(len(levels), rng.integers(1, depth + 1), replace=False)
        group[bound] = [rng.integers(levels[attribute]) for attribute in bound]
    return np.unique(made, axis=0)


def _naive(index: np.ndarray, levels: list[int], groups: np.ndarray, x: np.ndarray) -> np.ndarray:
    sums = np.zeros((*x.shape[:-1], len(groups)))
    for place, group in enumerate(groups):
        for cell, at in enumerate(index):
            if all(g in (a, free) for g, a, free in zip(group, at, levels, strict=True)):
                sums[..., place] += x[..., cell]
    return sums


@pytest.mark.parametrize(
    ("levels", "depth", "cells"),
    [
        ([2], 1, 5),
        ([2, 3], 2, 9),
        ([3, 1, 4], 1, 30),
        ([3, 2, 2, 4, 3, 2, 2], 3, 200),
        ([2] * 12, 2, 150),
        ([40, 2, 3, 2, 30], 5, 60),
    ],
)
def test_sums_in_stages_are_those_of_plain_loops(levels: list[int], depth: int, cells: int) -> None:
    rng = np.random.default_rng(cells)
    index = np.stack([rng.integers(0, size, cells) for size in levels], axis=1)
    groups = _groups(rng, levels, depth, 120)
    sums = staged_sums(index, levels, groups)
    whole = rng.integers(0, 50, (2, 35, cells)).astype(float)
    # integers are added without rounding, so the way cannot show
    np.testing.assert_array_equal(sums(whole), _naive(index, levels, groups, whole))
    real = rng.standard_normal(cells)
    np.testing.assert_allclose(sums(real), _naive(index, levels, groups, real), atol=1e-12)
    # one array gives the same digits alone as among others
    np.testing.assert_array_equal(sums(np.stack([real] * 3))[1], sums(real))


def test_attributes_that_are_free_are_summed_out_once_for_many_groups() -> None:
    rng = np.random.default_rng(1)
    levels = [3] * 9
    index = rng.integers(0, 3, (5000, 9))
    groups = _groups(rng, levels, 3, 4000)
    kinds = len(np.unique(groups != levels, axis=0))
    assert staged_sums(index, levels, groups).additions < kinds * len(index) / 4
