"""The scan: every half-line and level of one column, and every pair of them of two columns.

Rows are counted into the cells of a table for each pair of columns; sums over half-lines, levels,
corners and the two diagonals of a cross are sums over cells. No outcome takes part in the choice of
cells, so the scan looks at all rows at once and its p-value is exact wherever the draws are.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import sparse

from equipoise.methods.cusum.statistic import Best, Null, Piece, Standard, standard
from equipoise.methods.cusum.testing import Side, one_sided
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray

# --- The scan: every half-line and level of one column, and every pair of them of two columns ---

TENTHS = tuple(i / 10 for i in range(1, 10))
"""Shares of rows at which half-lines end, where columns are looked at two at a time."""
TAILS = (0.02, 0.05, *TENTHS, 0.95, 0.98)
"""The same where a column is looked at alone."""
SMALL_SETS = 0.25
"""How far small sets are ahead. What is off in a large set shows along the score or along a line as
well, and other tests look there; what is off in a small one only a scan can see."""
MOST_SUMS = 40_000
"""About how many sums a scan of pairs may take; with more columns, half-lines are fewer."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Partition:
    """A column in bins, and the sets of bins that are looked at."""

    bins: IntArray
    """The bin of each row."""
    sets: FloatArray
    """Sets × bins: 1 where the bin is in the set. First come the half-lines up to each cut, then
    those beyond it, then single bins."""
    cuts: FloatArray
    """Where half-lines end."""
    singles: IntArray
    """The bin of each set that is a single one."""

    @property
    def width(self) -> int:
        """How many bins there are."""
        return int(self.sets.shape[1])


def half_lines(
    values: FloatArray, missing: BoolArray | None = None, shares: Sequence[float] = TENTHS
) -> Partition:
    """Both half-lines at each of some quantiles; missing values are a set of their own.

    >>> half_lines(np.array([1.0, 2.0, 2.0, 3.0]), shares=(0.5,)).sets.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    gone = np.zeros(values.size, dtype=bool) if missing is None else missing
    known = values[~gone]
    cuts = np.zeros(0)
    if known.size:
        # cuts are values that occur, so that sets are the same on every monotone scale
        cuts = np.unique(np.quantile(known, shares, method="inverted_cdf"))
        cuts = cuts[cuts < known.max()]
    bins = np.where(gone, cuts.size + 1, np.searchsorted(cuts, values, side="left"))
    width = cuts.size + 1 + int(gone.any())
    upto = (np.arange(width) <= np.arange(cuts.size)[:, None]).astype(np.float64)
    beyond = 1 - upto
    singles = np.zeros(0, dtype=np.int64)
    if gone.any():
        beyond[:, -1] = 0.0
        singles = np.array([width - 1])
    sets = np.concatenate([upto, beyond, np.eye(width)[singles]])
    return Partition(bins=bins.astype(np.int64), sets=sets, cuts=cuts, singles=singles)


def levels(codes: IntArray) -> Partition:
    """Each level of a column without order; with two levels they are the two half-lines.

    >>> levels(np.array([0, 2, 1])).sets.tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    width = int(codes.max(initial=0)) + 1
    if width == 2:
        return half_lines(codes.astype(np.float64), shares=(0.0,))
    singles = np.arange(width)
    return Partition(bins=codes, sets=np.eye(width), cuts=np.zeros(0), singles=singles)


def pair_shares(columns: int) -> tuple[float, ...]:
    """Quantiles for pairs of so many columns: nine, or fewer where pairs are many.

    >>> len(pair_shares(8)), len(pair_shares(20)), pair_shares(60)
    (9, 4, (0.5,))
    """
    pairs = max(1, columns * (columns - 1) // 2)
    cuts = int(np.clip(np.sqrt(MOST_SUMS / (10 * pairs)), 1, 9))
    return tuple((np.arange(1, cuts + 1) / (cuts + 1)).tolist())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Block:
    """The table of one or two columns, and the sets of either."""

    columns: tuple[int, ...]
    left: Partition
    right: FloatArray
    """Sets × bins of the second column; a single 1 where there is none."""
    crossed: int
    """Half-lines of the second column, if both have some and crosses are looked at."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.left.width, self.right.shape[1]

    @property
    def size(self) -> int:
        """How many directions there are."""
        return 2 * len(self.left.sets) * len(self.right) + 2 * self.left.cuts.size * self.crossed

    def asked(self, side: Side) -> BoolArray:
        """Which directions belong to a side; crosses belong to both sides only together."""
        sets = len(self.left.sets) * len(self.right)
        ways = [side is not Side.OVER, side is not Side.UNDER, side is Side.BOTH]
        return np.repeat(ways, [sets, sets, self.size - 2 * sets])

    def over_sets(self, table: FloatArray) -> FloatArray:
        """From sums over cells, cells × lines, to sums over pairs of sets."""
        lines = table.shape[1]
        first = self.left.sets @ table.reshape(self.shape[0], -1)
        return np.asarray(self.right @ first.reshape(-1, self.shape[1], lines))

    def directions(self, high: FloatArray, low: FloatArray, sign: float) -> FloatArray:
        """Too high, too low, and the two crosses; ``sign`` is that of the lower end's sums."""
        lines = high.shape[-1]
        parts = [high.reshape(-1, lines), sign * low.reshape(-1, lines)]
        if self.crossed:
            a, b = self.left.cuts.size, self.crossed
            (hi, lo), (near, far) = (high, low), (slice(0, a), slice(a, 2 * a))
            left, right = slice(0, b), slice(b, 2 * b)
            parts += [
                (hi[x, left] + hi[y, right] + sign * (lo[x, right] + lo[y, left])).reshape(
                    -1, lines
                )
                for x, y in ((near, far), (far, near))
            ]
        return np.concatenate(parts)

    def pieces(self, direction: int, second: Partition | None) -> tuple[Piece, ...]:
        """What a direction looks at: each piece a set of either column and which way."""
        a, b = len(self.left.sets), len(self.right)
        if direction < 2 * a * b:
            way, inside = divmod(direction, a * b)
            i, j = divmod(inside, b)
            return (self._piece(1 - 2 * way, i, j, second),)
        way, inside = divmod(direction - 2 * a * b, self.left.cuts.size * self.crossed)
        i, j = divmod(inside, self.crossed)
        far_i, far_j, sign = i + self.left.cuts.size, j + self.crossed, 1 - 2 * way
        return (
            self._piece(sign, i, j, second),
            self._piece(sign, far_i, far_j, second),
            self._piece(-sign, i, far_j, second),
            self._piece(-sign, far_i, j, second),
        )

    def _piece(self, sign: int, i: int, j: int, second: Partition | None) -> Piece:
        inside = self.left.sets[i, self.left.bins] > 0
        sets = [(self.columns[0], i)]
        if second is not None:
            inside = inside & (second.sets[j, second.bins] > 0)
            sets.append((self.columns[1], j))
        return Piece(members=np.flatnonzero(inside), sign=sign, sets=tuple(sets))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scan:
    """The statistic: the largest score over all directions."""

    partitions: tuple[Partition, ...]
    """The columns."""
    blocks: tuple[_Block, ...]
    table: sparse.csr_matrix
    """Cells of all tables × rows: 1 where the row is in the cell."""
    point: bool
    """Whether both ends of the tolerance are one."""
    standard: Standard
    """How sums are measured."""

    def sums(self, residuals: FloatArray) -> FloatArray:
        """Sums of each line of residuals: directions × lines."""
        return self._over(residuals, -1.0)

    def powers(self, second: FloatArray, third: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights are 1 and −1: squares add up, cubes keep their sign."""
        return self._over(second[None], 1.0)[:, 0], self._over(third[None], -1.0)[:, 0]

    def _over(self, lines: FloatArray, sign: float) -> FloatArray:
        n = self.table.shape[1]
        high = self.table @ np.ascontiguousarray(lines[:, :n].T)
        same = self.point and sign < 0
        low = high if same else self.table @ np.ascontiguousarray(lines[:, n:].T)
        found, start = [], 0
        for block in self.blocks:
            end = start + block.shape[0] * block.shape[1]
            up = block.over_sets(high[start:end])
            down = up if same else block.over_sets(low[start:end])
            found.append(block.directions(up, down, sign))
            start = end
        return np.concatenate(found)

    def values(self, residuals: FloatArray) -> FloatArray:
        """The statistic of each line of drawn residuals."""
        return np.asarray(self.standard.scores(self.sums(residuals)).max(axis=0))

    def scores(self, null: Null) -> FloatArray:
        """The score of every direction, of the rows as they are."""
        return self.standard.observed(self.sums(null.observed[None])[:, 0])

    def observed(self, null: Null) -> float:
        """The statistic of the rows as they are."""
        return float(self.scores(null).max())

    def best(self, null: Null) -> Best | None:
        """The subgroup of the largest score; None if no score is positive."""
        scores = self.scores(null)
        place = int(np.argmax(scores))
        if not scores[place] > 0:
            return None
        block, direction = self._block_of(place)
        second = self.partitions[block.columns[1]] if len(block.columns) > 1 else None
        pieces = block.pieces(direction, second)
        return Best(
            model=0,
            members=np.concatenate([piece.members for piece in pieces]),
            threshold=float(scores[place]),
            pieces=pieces,
            bonus=0.0 if self.standard.bonus is None else float(self.standard.bonus[place]),
        )

    def without(self, column: int, null: Null) -> float:
        """The statistic if one column were not looked at."""
        scores = self.scores(null)
        kept = [
            float(scores[start : start + block.size].max())
            for block, start in self._starts()
            if column not in block.columns and block.size
        ]
        return max([0.0, *kept])

    def _starts(self) -> Iterator[tuple[_Block, int]]:
        start = 0
        for block in self.blocks:
            yield block, start
            start += block.size

    def _block_of(self, place: int) -> tuple[_Block, int]:
        block, start = next((b, s) for b, s in self._starts() if place < s + b.size)
        return block, place - start


def scan(
    partitions: Sequence[Partition], null: Null, *, pairs: bool, side: Side = Side.BOTH
) -> Scan | None:
    """Look at every column alone, or at every pair; None if there is nothing to look at."""
    numbers = range(len(partitions))
    chosen = list(combinations(numbers, 2)) if pairs else [(i,) for i in numbers]
    blocks = [_block([partitions[i] for i in columns], columns) for columns in chosen]
    blocks = [block for block in blocks if block.size]
    if not blocks or not len(null):
        return None
    found = Scan(
        partitions=tuple(partitions),
        blocks=tuple(blocks),
        table=sparse.vstack([_cells(block, partitions) for block in blocks], format="csr"),
        point=null.point,
        standard=_UNKNOWN,
    )
    measured = standard(found, null)
    asked = np.concatenate([block.asked(side) for block in blocks])
    measured = dataclasses.replace(measured, open=measured.open & asked, bonus=_bonus(found, null))
    return dataclasses.replace(found, standard=measured) if measured.open.any() else None


def _bonus(found: Scan, null: Null) -> FloatArray:
    """What small sets have ahead of large ones: a part of what keeps maxima over sizes level."""
    size, _ = found.powers(np.tile(null.worth, 2), np.zeros(2 * len(null)))
    total = max(float(null.worth.sum()), 1e-300)
    share = np.clip(size / total, 1e-12, 1.0)
    return np.asarray(SMALL_SETS * np.sqrt(-2 * np.log(share)))


_UNKNOWN = Standard(
    spread=np.zeros(0),
    skewness=np.zeros(0),
    open=np.zeros(0, dtype=bool),
    turns=np.zeros((0, 0)),
)


def _block(columns: Sequence[Partition], numbers: tuple[int, ...]) -> _Block:
    left, right, crossed = columns[0], np.ones((1, 1)), 0
    if len(columns) > 1:
        right, crossed = columns[1].sets, columns[1].cuts.size
    return _Block(columns=numbers, left=left, right=right, crossed=crossed)


def _cells(block: _Block, partitions: Sequence[Partition]) -> sparse.csr_matrix:
    cell = partitions[block.columns[0]].bins
    if len(block.columns) > 1:
        cell = cell * block.shape[1] + partitions[block.columns[1]].bins
    n = cell.size
    shape = (block.shape[0] * block.shape[1], n)
    return sparse.csr_matrix((np.ones(n), (cell, np.arange(n))), shape=shape)


# --- Score tests along a few axes at once: recalibration, and a line in every input ---

#: What is left of an axis, of its length, when those before it are taken out, to count as one.
_INDEPENDENT = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Axes:
    """The statistic: the length of the scores along uncorrelated axes, whichever way is worse.

    Without a tolerance its square is the score test of a generalised linear model with these
    inputs, the prediction as its offset.
    """

    weights: FloatArray
    """Rows × axes."""
    ends: FloatArray
    """2n × directions: the axes, then the axes turned round, as they weigh either end."""
    standard: Standard
    """How sums are measured."""
    side: Side
    """Which violations are looked for."""

    def sums(self, residuals: FloatArray) -> FloatArray:
        """Sums of each line of residuals: directions × lines."""
        return np.asarray((residuals @ self.ends).T)

    def powers(self, second: FloatArray, third: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums of squared weights times the one, and of cubed weights times the other."""
        return second @ self.ends**2, third @ self.ends**3

    def values(self, residuals: FloatArray) -> FloatArray:
        """The statistic of each line of drawn residuals."""
        return _length(self.standard.scores(self.sums(residuals)))

    def scores(self, null: Null) -> FloatArray:
        """The score of every direction, of the rows as they are."""
        return self.standard.observed(self.sums(null.observed[None])[:, 0])

    def observed(self, null: Null) -> float:
        """The statistic of the rows as they are."""
        return float(_length(self.scores(null)[:, None])[0])

    def best(self, null: Null) -> Best | None:
        """Rows on either side of the line that fits best; None if no score is positive."""
        scores = np.maximum(self.scores(null), 0.0)
        axes = self.weights.shape[1]
        slope = scores[:axes] - scores[axes:]
        along = one_sided(np.round(self.weights @ slope, 12), self.side)
        if not along.any():
            return None
        order = np.argsort(-np.abs(along), kind="stable")
        members = order[along[order] != 0]
        pieces = tuple(
            Piece(members=members[way * along[members] > 0], sign=way, sets=())
            for way in (1, -1)
            if (way * along > 0).any()
        )
        return Best(model=0, members=members, threshold=0.0, pieces=pieces)


def _length(scores: FloatArray) -> FloatArray:
    up, down = np.split(np.maximum(scores, 0.0), 2)
    return np.asarray(np.sqrt((np.maximum(up, down) ** 2).sum(axis=0)))


def axes(inputs: FloatArray, null: Null, side: Side = Side.BOTH) -> Axes | None:
    """The statistic for rows × inputs, taken in order: each is freed of those before it.

    None if there is no axis, or outcomes do not vary.
    """
    weights = _uncorrelated(inputs, null)
    if not weights.size:
        return None
    turned = np.concatenate([weights, -weights], axis=1)
    up, down = np.maximum(turned, 0.0), np.minimum(turned, 0.0)
    ends = np.concatenate([one_sided(up, side), one_sided(down, side)])
    made = Axes(weights=weights, ends=ends, standard=_NONE, side=side)
    measured = standard(made, null, least=0.0, skewed=False)
    if not measured.open.any():
        return None
    return Axes(weights=weights, ends=ends, standard=measured, side=side)


_NONE = Standard(
    spread=np.zeros(0), skewness=np.zeros(0), open=np.zeros(0, dtype=bool), turns=np.zeros((0, 0))
)


def _uncorrelated(inputs: FloatArray, null: Null) -> FloatArray:
    """Columns whose sums of residuals have unit variance and no correlation, in the middle."""
    n = len(null)
    root = np.sqrt((null.variance[:n] + null.variance[n:]) / 2)
    found: list[FloatArray] = []
    for column in inputs.T:
        size = float(np.abs(column).max(initial=0.0))
        left = root * column / size if size > 0 else root * 0.0
        length = float(np.linalg.norm(left))
        # twice, since once leaves rounding behind where columns are nearly alike
        for _ in range(2):
            for axis in found:
                left = left - (axis @ left) * axis
        if length > 0 and np.linalg.norm(left) > _INDEPENDENT * length:
            found.append(left / np.linalg.norm(left))
    if not found:
        return np.zeros((n, 0))
    scaled = np.column_stack(found)
    return np.divide(scaled, root[:, None], out=np.zeros_like(scaled), where=root[:, None] > 0)
