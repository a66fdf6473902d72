"""Operators from cells to groups: linear, exact, and never a dense cells × groups matrix."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.cells.views import View, box_positions
from equipoise.methods.arrays import FloatArray, GroupSums, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class ProductSums:
    """Sums over a product of axis views: fill a box with the cells, sum along each axis, pick."""

    order: IntArray
    """Cells sorted by their place in the box."""
    starts: IntArray
    """Where each place's run of cells begins in that order."""
    place: IntArray
    """The places that hold any cell."""
    views: tuple[View, ...]
    take: IntArray
    """Where the wanted groups stand among all combinations of choices."""
    all_taken: bool
    """Whether these are all the combinations, in their order."""

    def __call__(self, x: FloatArray, /) -> FloatArray:
        """Sum ``x`` over each group."""
        lead = x.shape[:-1]
        sizes = tuple(view.size for view in self.views)
        box = np.zeros((*lead, math.prod(sizes)))
        # Several cells may share a place, and assigning to a place twice would keep only the last.
        box[..., self.place] = np.add.reduceat(x[..., self.order], self.starts, axis=-1)
        box = box.reshape(*lead, *sizes)
        for position, view in enumerate(self.views):
            box = view.sum(box, len(lead) + position)
        flat = box.reshape(*lead, -1)
        return flat if self.all_taken else np.take(flat, self.take, axis=-1)


@dataclass(frozen=True, slots=True, eq=False)
class SparseSums:
    """Sums by a sparse groups × cells matrix, for collections without a product structure."""

    matrix: Any

    def __call__(self, x: FloatArray, /) -> FloatArray:
        """Sum ``x`` over each group."""
        flat = x.reshape(-1, x.shape[-1])
        sums = np.asarray((self.matrix @ flat.T).T)
        return sums.reshape(*x.shape[:-1], self.matrix.shape[0])


@dataclass(frozen=True, slots=True, eq=False)
class BinnedSums:
    """Sums over each group of another operator, once for each bin of a further axis."""

    inner: GroupSums
    code: IntArray
    """Each cell's bin; cells in no bin have a code beyond the last."""
    bins: int
    take: IntArray
    """Where the wanted groups stand among all (inner group, bin) pairs."""

    def __call__(self, x: FloatArray, /) -> FloatArray:
        """Sum ``x`` over each group."""
        inside = self.code == np.arange(self.bins)[:, None]
        by_bin = self.inner(np.where(inside, x[..., None, :], 0.0))
        sums: FloatArray = np.swapaxes(by_bin, -1, -2).reshape(*x.shape[:-1], -1)
        return sums[..., self.take]


def product_sums(index: IntArray, views: tuple[View, ...], take: IntArray) -> ProductSums:
    """The operator for the combinations ``take`` of the views' choices."""
    places = box_positions(index, tuple(view.size for view in views))
    order = np.argsort(places, kind="stable")
    place, starts = np.unique(places[order], return_index=True)
    # Taking everything in order would copy the largest array of a resampling loop for nothing.
    every = np.arange(math.prod(view.choices for view in views))
    same = np.array_equal(take, every)
    return ProductSums(order, starts.astype(np.int64), place, views, take, same)


def sparse_sums(
    group: IntArray, cell: IntArray, groups: int, cells: int, weight: FloatArray | None = None
) -> SparseSums:
    """The operator for the given (group, cell) pairs, each cell weighing one unless said."""
    from scipy.sparse import csr_array

    entries = np.ones(len(group)) if weight is None else weight
    return SparseSums(csr_array((entries, (group, cell)), shape=(groups, cells)))
