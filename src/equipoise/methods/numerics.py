"""Shared numerics: array types, sums over groups, random streams in chunks, quantiles."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

# --- The array types that the mathematics speaks, and the one thing it asks of a group collection

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[Any]


class GroupSums(Protocol):
    """Sums cell values over every group of a collection.

    ``sums(x)`` takes an array whose last axis runs over the cells and returns one whose last axis
    runs over the groups, in the collection's order. It is linear, and a group's sum never depends
    on which other groups are in the collection.
    """

    def __call__(self, x: FloatArray, /) -> FloatArray: ...


# --- Sums over groups by sparse matrices: from the cells, or by way of tables summed already ---


@dataclass(frozen=True, slots=True, eq=False)
class SparseSums:
    """Sums by a sparse groups × cells matrix, for collections without a product structure."""

    matrix: Any

    def __call__(self, x: FloatArray, /) -> FloatArray:
        """Sum ``x`` over each group."""
        flat = x.reshape(-1, x.shape[-1])
        sums = np.asarray((self.matrix @ flat.T).T)
        return sums.reshape(*x.shape[:-1], self.matrix.shape[0])


def sparse_sums(
    group: IntArray, cell: IntArray, groups: int, cells: int, weight: FloatArray | None = None
) -> SparseSums:
    """The operator for the given (group, cell) pairs, each cell weighing one unless said."""
    from scipy.sparse import csr_array

    entries = np.ones(len(group)) if weight is None else weight
    return SparseSums(csr_array((entries, (group, cell)), shape=(groups, cells)))


_TOGETHER = 32
"""Arrays that are summed at once: few enough that their sums stay in the cache."""


@dataclass(frozen=True, slots=True, eq=False)
class StagedSums:
    """Sums over combinations of attributes, each from the smallest table that can give them.

    Cells are summed into tables of some attributes, these into tables of fewer, and so on, so that
    the attributes that most groups leave free are summed out once for all of these groups.
    """

    stages: tuple[Any, ...]
    """Sparse matrices: the first one sums cells, each other one the sums of the one before."""
    take: IntArray
    """Where the groups stand among the sums of all stages."""

    @property
    def additions(self) -> int:
        """How many numbers are added for one array."""
        return sum(int(stage.nnz) for stage in self.stages)

    def __call__(self, x: FloatArray, /) -> FloatArray:
        """Sum ``x`` over each group."""
        flat = x.reshape(-1, x.shape[-1])
        sums = np.empty((len(flat), len(self.take)))
        for start in range(0, len(flat), _TOGETHER):
            part = np.ascontiguousarray(flat[start : start + _TOGETHER].T)
            every = list(accumulate(self.stages, lambda known, stage: stage @ known, initial=part))
            sums[start : start + _TOGETHER] = np.concatenate(every[1:])[self.take].T
        return sums.reshape(*x.shape[:-1], len(self.take))


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Sums over all combinations of some attributes."""

    attributes: tuple[int, ...]
    index: IntArray
    """The level of every attribute in each entry; only those of its own attributes mean much."""
    stage: int
    start: int
    """Where its entries begin among those of its stage."""
    place: IntArray
    """The entry that each entry of the table it is summed from belongs to."""
    source: int
    """Where the entries of that table begin."""


def staged_sums(index: IntArray, levels: Sequence[int], groups: IntArray) -> StagedSums:
    """The operator for groups ``(G, attributes)``, each of a level, or ``levels`` where it is free.

    ``index`` has the level of each cell, ``(C, attributes)``.

    >>> index = np.array([[0, 0], [0, 1], [1, 1]])
    >>> sums = staged_sums(index, (2, 2), np.array([[0, 2], [2, 1], [1, 1]]))
    >>> sums(np.array([1.0, 10.0, 100.0])).tolist()
    [11.0, 110.0, 100.0]
    """
    kinds, kind = np.unique(groups != np.array(levels), axis=0, return_inverse=True)
    members = [np.flatnonzero(kind.reshape(-1) == number) for number in range(len(kinds))]
    wanted = {tuple(np.flatnonzero(k).tolist()): m for k, m in zip(kinds, members, strict=True)}
    largest = max(map(len, wanted))
    widest = [attributes for attributes in wanted if len(attributes) == largest]
    every = tuple(range(len(levels)))
    tables = [_Table(every, index, 0, 0, np.empty(0, dtype=np.int64), 0)]
    sizes = [len(index)]
    stage, entry = np.empty(len(groups), dtype=np.int64), np.empty(len(groups), dtype=np.int64)
    none = np.empty(0, dtype=np.int64)
    by_way = _between(every, float(len(index)), widest, levels)[1]
    for attributes in [*by_way, *sorted(wanted, key=len, reverse=True)]:
        here = wanted.get(attributes, none)
        table, found = _summed(tables, attributes, groups[here], levels, sizes)
        tables.append(table)
        stage[here], entry[here] = table.stage, table.start + found
    starts = np.cumsum([0, *sizes[1:]])
    return StagedSums(_matrices(tables, sizes), starts[stage - 1] + entry)


def _summed(
    tables: Sequence[_Table],
    attributes: tuple[int, ...],
    groups: IntArray,
    levels: Sequence[int],
    sizes: list[int],
) -> tuple[_Table, IntArray]:
    """A table of some attributes from the smallest that has them, and where groups are in it."""
    source = min(
        (table for table in tables if set(attributes) <= set(table.attributes)),
        key=lambda table: len(table.index),
    )
    # groups stand beside the entries, so that one that is empty has an entry too
    entries = np.concatenate([source.index, groups])
    first, place = np.unique(
        alike(entries, levels, attributes), return_index=True, return_inverse=True
    )[1:]
    place = place.reshape(-1)
    stage, cut = source.stage + 1, len(source.index)
    sizes.extend([0] * (stage + 1 - len(sizes)))
    table = _Table(attributes, entries[first], stage, sizes[stage], place[:cut], source.start)
    sizes[stage] += first.size
    return table, place[cut:]


def _matrices(tables: Sequence[_Table], sizes: Sequence[int]) -> tuple[Any, ...]:
    """What sums the entries of each stage into those of the next."""
    from scipy.sparse import csr_array

    matrices = []
    for stage in range(1, len(sizes)):
        here = [table for table in tables if table.stage == stage]
        rows = np.concatenate([table.start + table.place for table in here])
        columns = np.concatenate([table.source + np.arange(len(table.place)) for table in here])
        shape = (sizes[stage], sizes[stage - 1])
        matrices.append(csr_array((np.ones(len(rows)), (rows, columns)), shape=shape))
    return tuple(matrices)


def _between(
    known: tuple[int, ...],
    size: float,
    wanted: Sequence[tuple[int, ...]],
    levels: Sequence[int],
) -> tuple[float, list[tuple[int, ...]]]:
    """Tables of more attributes by way of which those wanted cost least, and about that cost.

    With the attributes in one block more than a wanted table has attributes, each wanted table
    leaves out some block; all that leave out the same one are summed from what is left.
    """
    direct = size * len(wanted), list[tuple[int, ...]]()
    blocks = _blocks(known, len(wanted[0]) + 1, levels)
    if len(wanted) <= len(blocks):
        return direct
    cost, by_way, rest = 0.0, list[tuple[int, ...]](), set(wanted)
    for block in blocks:
        left = tuple(attribute for attribute in known if attribute not in block)
        mine = sorted(attributes for attributes in rest if set(attributes) <= set(left))
        rest.difference_update(mine)
        if not mine:
            continue
        smaller = min(size, float(math.prod(levels[attribute] for attribute in left)))
        more, further = _between(left, smaller, mine, levels)
        if size + more < size * len(mine):
            cost, by_way = cost + size + more, [*by_way, left, *further]
        else:
            cost += size * len(mine)
    return min((cost, by_way), direct, key=lambda found: found[0])


def _blocks(known: Sequence[int], number: int, levels: Sequence[int]) -> list[list[int]]:
    """Attributes in blocks with about as many combinations each, the largest first."""
    blocks: list[list[int]] = [[] for _ in range(number)]
    spans = [1] * number
    for attribute in sorted(known, key=lambda a: -levels[a]):
        least = spans.index(min(spans))
        blocks[least].append(attribute)
        spans[least] *= levels[attribute]
    return [block for _, block in sorted(zip(spans, blocks, strict=True), reverse=True)]


def alike(index: IntArray, levels: Sequence[int], chosen: Sequence[int]) -> IntArray:
    """One number for each row, alike where the chosen columns are, and in their order.

    >>> alike(np.array([[1, 7], [0, 7], [1, 7]]), (2, 8), (0, 1)).tolist()
    [16, 7, 16]
    """
    keys = np.zeros(len(index), dtype=np.int64)
    span = 1
    for column in chosen:
        span *= int(levels[column]) + 1
        if span >= 1 << 62:
            # as many numbers as there are different keys, so that the next factor fits again
            keys = np.unique(keys, return_inverse=True)[1].reshape(-1)
            span = (int(keys.max(initial=0)) + 1) * (int(levels[column]) + 1)
        keys = keys * (int(levels[column]) + 1) + index[:, column]
    return keys


# --- Random streams in fixed chunks, so that neither blocks nor threads can change an answer ---

CHUNK = 32
"""Resamples drawn from one stream. Part of the definition of the results: never tune it."""

BLOCK_NUMBERS = 1 << 22
"""How many numbers one array of a block may hold (32 MB of floats)."""

Progress = Callable[[int], None]
"""Called with the number of resamples finished so far; may raise to stop."""


def child(seed: np.random.SeedSequence, number: int) -> np.random.SeedSequence:
    """The seed of one chunk; the parent is copied, not consumed.

    >>> child(np.random.SeedSequence(1), 2).spawn_key
    (2,)
    """
    # built by hand because spawn() advances a counter inside the caller's object
    return np.random.SeedSequence(
        seed.entropy, spawn_key=(*seed.spawn_key, number), pool_size=seed.pool_size
    )


# --- The quantile of the papers: inf{x : F(x) ≥ q} ---


def quantile(values: FloatArray, q: float) -> float:
    """Smallest x with at least a share q of the values at or below it.

    >>> quantile(np.array([4.0, 1.0, 3.0, 2.0]), 0.5)
    2.0
    >>> quantile(np.array([4.0, 1.0, 3.0, 2.0]), 0.51)
    3.0
    """
    # Cherian and Candès define it so before (3); interpolating would give another critical value.
    return float(np.partition(values, rank(values.size, q))[rank(values.size, q)])


def over(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """Quotient, NaN where the divisor is not positive.

    >>> over(np.array([1.0, 1.0]), np.array([2.0, 0.0])).tolist()
    [0.5, nan]
    """
    out = np.full(np.broadcast_shapes(np.shape(top), np.shape(bottom)), np.nan)
    np.divide(top, bottom, out=out, where=bottom > 0)
    return out


def over_or_zero(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """Quotient, zero where the divisor is not positive.

    >>> over_or_zero(np.array([1.0, 1.0]), np.array([4.0, 0.0])).tolist()
    [0.25, 0.0]
    """
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


def normal_score(tail: FloatArray) -> FloatArray:
    """Normal scores of tail probabilities, finite for any.

    >>> normal_score(np.array([0.5, 0.025, 0.0])).round(2).tolist()
    [-0.0, 1.96, 37.05]
    """
    return np.asarray(-ndtri(np.clip(tail, 1e-300, 1 - 1e-16)))


def rank(size: int, q: float) -> int:
    """Index of that quantile among the sorted values.

    >>> rank(500, 0.9), rank(100, 0.55)
    (449, 54)
    """
    # 0.55 × 100 must be 55, not the hair above it that floating point makes of it
    return min(size - 1, max(0, math.ceil(q * size - 1e-9) - 1))


def column_medians(values: FloatArray) -> FloatArray:
    """Median of each column in the same sense, leaving NaN out; NaN for a column without values.

    >>> column_medians(np.array([[1.0, np.nan], [5.0, 2.0], [3.0, np.nan]])).tolist()
    [3.0, 2.0]
    """
    counts = np.sum(~np.isnan(values), axis=0)
    out = np.full(values.shape[1], np.nan)
    for count in np.unique(counts[counts > 0]):
        chosen = np.flatnonzero(counts == count)
        # Line 9 of Algorithm 4 asks for Quantile(0.5): the lower of two middle values.
        k = rank(int(count), 0.5)
        # few columns at a time: partition copies; it puts NaN last
        for start in range(0, chosen.size, 1024):
            part = chosen[start : start + 1024]
            out[part] = np.partition(values[:, part], k, axis=0)[k]
    return out


def per_mille(values: FloatArray) -> tuple[float, ...]:
    """The quantiles of the levels 0.1 %, 0.2 % … 99.9 %; empty without values.

    >>> len(per_mille(np.arange(50.0))), per_mille(np.arange(50.0))[899]
    (999, 44.0)
    """
    if values.size == 0:
        return ()
    ordered = np.sort(values)
    return tuple(float(ordered[rank(values.size, i / 1000)]) for i in range(1, 1000))


# --- Rows of a table of whole numbers, added up where they are alike ---


def merge(index: IntArray, totals: dict[str, FloatArray]) -> tuple[IntArray, dict[str, FloatArray]]:
    """Add up grouped rows that fall into the same cell, cells in the order of their levels."""
    cells, place = distinct_rows(index)
    distinct = {id(values): values for values in totals.values()}
    # Adding in a fixed order makes the sums independent of the order an engine returned rows in.
    order = np.lexsort((*distinct.values(), place))
    place = place[order]

    def added(values: FloatArray) -> FloatArray:
        return np.bincount(place, values[order], len(cells)).astype(np.float64)

    return cells.astype(np.int64), each_once(added, totals)


def distinct_rows(index: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct rows of a table of whole numbers in order, and which of them each row is."""
    low = index.min(axis=0, initial=0)
    size = index.max(axis=0, initial=0) - low + 1
    if float(np.prod(size.astype(np.float64))) >= 2.0**62:
        rows, place = np.unique(index, axis=0, return_inverse=True)
        return rows.astype(np.int64), place.reshape(-1)
    # one number for each row sorts as the row does, and much quicker
    steps = np.append(np.cumprod(size[::-1])[::-1][1:], 1)[: len(size)]
    _, first, place = np.unique((index - low) @ steps, return_index=True, return_inverse=True)
    return index[first].astype(np.int64), place.reshape(-1)


def each_once(
    change: Callable[[FloatArray], FloatArray], sums: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """Every array changed, one with several names only once.

    Without weights the sums of all orders are the same arrays, and stay so.
    """
    changed = {key: change(values) for key, values in {id(v): v for v in sums.values()}.items()}
    return {name: changed[id(values)] for name, values in sums.items()}


def shortest_cuts(values: FloatArray, place: IntArray) -> tuple[float, ...]:
    """Cuts that leave each wanted share below them: right above the values at these places."""
    above = np.unique(place + 1)
    above = above[above < len(values)]
    if above.size == 0:
        # one value alone needs a cut all the same
        return (float(values[-1]),)
    return tuple(_short_cut(float(values[i - 1]), float(values[i])) for i in above)


def _short_cut(below: float, at: float) -> float:
    """The number of fewest digits that parts two neighbouring values as the upper one does.

    >>> _short_cut(3.2, 3.9000000954), _short_cut(17.0, 18.0), _short_cut(0.2799, 0.28)
    (3.9, 18.0, 0.28)
    """
    for digits in range(-6, 12):
        short = math.floor(round(at * 10.0**digits, 6)) / 10.0**digits
        if below < short <= at:
            return short
    return float(at)
