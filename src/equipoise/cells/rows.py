"""Rows, for methods that cannot work from totals: their columns, features and samples."""

import importlib.util
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import narwhals as nw
import numpy as np
from scipy.special import betainc

from equipoise._codec import canonical
from equipoise._validate import columns_named
from equipoise.cells.gather import (
    MAX_CELLS,
    all_cells,
    gather,
    query_for,
    ranged,
    scan_of,
    what_is_read,
)
from equipoise.cells.groups import Feature, steady_weights
from equipoise.cells.query import (
    MOST_WEIGHT,
    NOTHING,
    Columns,
    Order,
    Query,
    Scan,
    by_kind,
    cluster_codes,
    code,
    distinct_metrics,
    floats,
    is_local,
    numbers,
    promised_range,
    value_of,
)
from equipoise.cells.tally import Axis, Cells, Tallied, rows_behind
from equipoise.claims.claim import Claim, only_means
from equipoise.claims.groups import Dimension, Levels, Ordered, Tilt, Values
from equipoise.claims.metric import Metric
from equipoise.errors import ClaimError, TrailError
from equipoise.methods.numerics import AnyArray, BoolArray, FloatArray, IntArray, distinct_rows
from equipoise.trail import Trail
from equipoise.trail.engine import Frame, engine_errors, fetch, objects, one_moment
from equipoise.trail.trail import RESERVED, expect_trail, is_text, not_nan, truth_number

# --- Single rows from an engine: all of them up to a limit, or a sample that every engine agrees
# on ---
#
# Engines have no row in common but its content, and no hash in common at all. So equal rows are
# counted by the engine, each distinct row gets a number between 0 and 1 that is worked out from
# its content in whole-number arithmetic, and only rows whose number is small enough leave the
# engine. How many of the equal rows are kept is then drawn here. Every row has the same chance,
# whatever engine holds it, and the same seed gives the same rows.

#: More rows than this are not pulled to this machine.
MAX_ROWS = 5_000_000
MAX_LEARNT = 1_000_000
#: Rows from which a sample is drawn by the engine, and by how much it is larger there.
THIN_ABOVE = 1_000_000
OVERSAMPLE = 4
#: Columns of text with more levels than this do not take part in the choice of rows.
_MOST_LEVELS = 1_000

# The largest prime below 2³¹: products of two smaller numbers fit into 64 bits on every engine.
_PRIME = 2**31 - 1
_ROUNDS = 3
_HASH = f"{RESERVED}hash"


def fetch_rows(
    query: Query,
    further: Mapping[str, nw.Expr],
    *,
    sample: int | None = None,
    seed: np.random.SeedSequence | None = None,
) -> tuple[Columns, int]:
    """The rows on which the query's metric counts, and how many of them stayed in the engine.

    A sample is drawn by whoever asks for it; here rows are only thinned, evenly, to a few times as
    many where there are more than a machine should hold.
    """
    frame, source = _countable(query.rows(further)), query.trail.source
    if sample is None or seed is None:
        table = fetch(frame.head(MAX_ROWS + 1), source)
        if len(table["value"]) > MAX_ROWS:
            raise TrailError(
                f"This audit needs single rows, and there are more than {MAX_ROWS:,}. Pass "
                "sample=200_000 and rng=7 to audit that many, drawn at random."
            )
        return table, 0
    number = _number(frame, source)
    if number <= max(THIN_ABOVE, OVERSAMPLE * sample):
        return fetch(frame, source), 0
    table = _thinned(frame, source, OVERSAMPLE * sample / number, seed)
    return table, number - int(table["count"].sum())


def _countable(frame: Frame) -> Frame:
    """A pandas table as an Arrow table where that is possible: pandas knows fewer sums on Arrow."""
    if frame.implementation.is_pandas() and importlib.util.find_spec("pyarrow"):
        from pyarrow import ArrowException  # type: ignore[import-untyped]

        try:
            arrow: Frame = nw.from_native(frame.collect().to_arrow()).lazy()
        except ArrowException:
            # columns of mixed objects, which are refused where they are read
            return frame
        return arrow
    return frame


def _number(frame: Frame, source: str) -> int:
    with engine_errors(source):
        total = nw.col("count").sum() if "count" in frame.columns else nw.len()
        counted = frame.select(total.alias("n"))
    return round(float(fetch(counted, source)["n"][0] or 0))


def _thinned(frame: Frame, source: str, chance: float, seed: np.random.SeedSequence) -> Columns:
    """Rows of which each was kept with the same chance, equal ones as one with a count."""
    # the caller's draws must not depend on whether rows were thinned
    rng = _own_stream(seed, 1 << 30)
    with engine_errors(source):
        names = [name for name in frame.columns if name != "count"]
        copies = nw.col("count").sum() if "count" in frame.columns else nw.len()
        grouped = frame.group_by(*names).agg(copies.alias("count"))
        grouped = grouped.filter(nw.col("count") > 0)
        hashed = _with_hash(grouped, names, source, rng)
        bound = nw.col("count").cast(nw.Float64) * (chance * _PRIME)
        kept = hashed.filter(nw.col(_HASH).cast(nw.Float64) < bound)
        kept = kept.select(*names, "count")
    table = fetch(kept, source)
    table = {name: column[content_order(table)] for name, column in table.items()}
    drawn = _drawn(np.rint(floats(table["count"])), chance, rng)
    table["count"] = drawn
    return {name: column[drawn > 0] for name, column in table.items()}


def _drawn(count: FloatArray, chance: float, rng: np.random.Generator) -> IntArray:
    """How many of the equal rows are kept, given that some may be.

    A distinct row came through with the chance q = min(1, count · chance). With the chance
    (1 − (1 − chance)^count) / q at least one is kept, and then as many as a binomial draw has that
    is not zero.
    """
    uniform = rng.random(len(count))
    many = count * chance >= 1
    drawn = rng.binomial(np.where(many, count, 0).astype(np.int64), chance)
    # the others by inversion, the upper tail enlarged by what was lost on the way
    tail = np.where(many, np.inf, uniform * count * chance)
    reached = tail < _at_least(1, count, chance)
    while reached.any():
        drawn[reached] += 1
        reached &= tail < _at_least(drawn + 1, count, chance)
    return np.asarray(drawn, dtype=np.int64)


def _at_least(number: int | IntArray, count: FloatArray, chance: float) -> FloatArray:
    """The chance of at least ``number`` of ``count`` draws."""
    possible = np.asarray(number) <= count
    tail = betainc(number, np.where(possible, count - number + 1, 1.0), chance)
    return np.where(possible, tail, 0.0)


def _own_stream(seed: np.random.SeedSequence, number: int) -> np.random.Generator:
    """A stream numbered far from those that an audit spawns."""
    own = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number))
    return np.random.default_rng(own)


def content_order(table: Columns) -> IntArray:
    """Rows by their content."""
    keys = []
    for column in (code(array) for name, array in table.items() if name != "count"):
        levels = sorted(column.levels, key=lambda v: (v is None, isinstance(v, str), v or 0))
        keys.append(column.place({level: i for i, level in enumerate(levels)}, -1))
    return np.lexsort(keys[::-1]).astype(np.int64)


def _with_hash(frame: Frame, names: list[str], source: str, rng: np.random.Generator) -> Frame:
    """The rows with a number below the prime that depends on all they hold."""
    schema = frame.collect_schema()
    start = nw.lit(int(rng.integers(1, _PRIME))).cast(nw.Int64)
    frame = frame.with_columns(**{_HASH: start})
    for name in names:
        # a step for each column: Spark Connect refuses expressions that are nested too deeply
        state = nw.col(_HASH)
        for number in _codes(frame, name, schema[name], source):
            state = (state * int(rng.integers(2, _PRIME)) + number) % _PRIME
        frame = frame.with_columns(**{_HASH: state})
    hashed, square = nw.col(_HASH), nw.col(f"{RESERVED}square")
    for _ in range(_ROUNDS):
        # x⁵ permutes the numbers below this prime, and takes the straight lines out of them;
        # a column for each square, so that no engine writes out the same product again and again
        further = int(rng.integers(1, _PRIME))
        frame = frame.with_columns(**{f"{RESERVED}square": hashed * hashed % _PRIME})
        fifth = square * square % _PRIME * hashed % _PRIME
        frame = frame.with_columns(**{_HASH: (fifth + further) % _PRIME})
    return frame


def _codes(frame: Frame, name: str, dtype: nw.dtypes.DType, source: str) -> list[nw.Expr]:
    """A column as whole numbers between 0 and the prime."""
    column = nw.col(name)
    if name in ("value", "extra"):
        # worked out by the engine, so the last digits may differ; what is kept does not
        return _float_codes((column * 2.0**20 + 0.5).floor())
    if isinstance(dtype, nw.Boolean):
        return [_or_else(truth_number(column).cast(nw.Int64))]
    if dtype.is_integer():
        # engines disagree on the sign of a remainder
        return [_or_else((column.cast(nw.Int64) % _PRIME + _PRIME) % _PRIME)]
    if dtype.is_numeric():
        return _float_codes(column.cast(nw.Float64))
    if is_text(dtype):
        return _level_codes(frame, name, source)
    return []


def _float_codes(value: nw.Expr) -> list[nw.Expr]:
    """The whole part and two pieces of the fraction; all of it is exact in binary."""
    finite = not_nan(value) & (value.abs() < 2.0**62)
    whole = value.floor()
    fraction = (value - whole) * 2.0**30
    upper = fraction.floor()
    parts = (
        whole - (whole / 2.0**30).floor() * 2.0**30,
        upper,
        ((fraction - upper) * 2.0**22).floor(),
    )
    return [_or_else(nw.when(finite).then(part).cast(nw.Int64)) for part in parts]


def _level_codes(frame: Frame, name: str, source: str) -> list[nw.Expr]:
    """The position of a text among all of them, in the order of their letters."""
    found = fetch(frame.select(name).unique().head(_MOST_LEVELS + 1), source)[name]
    levels = sorted({v for v in map(canonical, found.tolist()) if v is not None})
    if len(found) > _MOST_LEVELS:
        return []
    code = nw.lit(0).cast(nw.Int64)
    for position, level in enumerate(levels, start=1):
        here = nw.col(name) == level
        code = nw.when(here).then(nw.lit(position).cast(nw.Int64)).otherwise(code)
    return [_or_else(code)]


def _or_else(code: nw.Expr) -> nw.Expr:
    """The code, or one of its own where the value is missing."""
    return nw.when(~code.is_null()).then(code).otherwise(nw.lit(_PRIME - 1).cast(nw.Int64))


# --- The one table of single rows: what was fetched, coded once, and what was left out ---


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowTable:
    """The rows on which a metric counts: an array for each column."""

    value: FloatArray
    """The metric."""
    weight: FloatArray | None
    """Sampling weight, if the trail has one."""
    count: IntArray | None
    """How many rows each row stands for, if that may be more than one."""
    cluster: IntArray | None = None
    """Number of each row's cluster, in the order of their names; -1 where it is missing."""
    cell: IntArray
    """Position of each row's cell; zero where no cells were given."""
    columns: Columns
    """What else was asked for, by name, as the engine gave it."""
    matrix: FloatArray
    """Rows × features, once they are made from the columns."""
    features: tuple["Feature", ...] = ()
    """What each column of the matrix is."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """Rows left out because something was missing, by reason."""
    left: int = 0
    """Rows that were not fetched or not drawn, since a sample was asked for."""

    def __len__(self) -> int:
        return len(self.value)

    @property
    def counts(self) -> IntArray:
        """How many rows each row stands for."""
        return np.ones(len(self), dtype=np.int64) if self.count is None else self.count

    @property
    def weights(self) -> FloatArray:
        """Sampling weights, one where there are none."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @property
    def extra(self) -> FloatArray | None:
        """The value of a further formula, NaN where it is missing, if one was asked for."""
        return numbers(self.columns["extra"]) if "extra" in self.columns else None

    def part(self, rows: IntArray | BoolArray) -> "RowTable":
        """Some of the rows, in the order given."""
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        return replace(
            self,
            columns={name: column[rows] for name, column in self.columns.items()},
            **{name: array[rows] for name, array in arrays.items() if array is not None},
        )

    def one_by_one(self, rows: IntArray) -> IntArray:
        """Positions of rows, each as often as rows that it stands for."""
        return np.repeat(rows, self.counts[rows])

    def complete(self, known: BoolArray, present: Mapping[str, BoolArray]) -> "RowTable":
        """The rows that have everything; one that lacks several things is counted once."""
        missing = {}
        for name, here in present.items():
            lost = int(self.counts[known & ~here].sum())
            if lost:
                missing[f"missing {name}"] = lost
            known = known & here
        return replace(self.part(known), missing=missing)

    def sampled(
        self, sample: int | None, seed: np.random.SeedSequence, order: IntArray | None = None
    ) -> "RowTable":
        """Exactly ``sample`` of the rows, drawn at random; all of them if they are not more.

        ``order`` is one that does not depend on how the engine gave the rows.
        """
        number = int(self.counts.sum())
        if sample is None or number <= sample:
            return self
        order = np.lexsort((self.weights, self.value, *self.matrix.T)) if order is None else order
        drawn = np.empty_like(self.counts)
        drawn[order] = _own_stream(seed, 1 << 31).multivariate_hypergeometric(
            self.counts[order], sample
        )
        kept = replace(self, count=drawn, left=self.left + number - sample)
        return kept.part(drawn > 0)


_ARRAYS = ("value", "weight", "count", "cluster", "cell", "matrix")


def pull_table(
    trail: Trail,
    metric: Metric,
    further: Mapping[str, nw.Expr],
    *,
    cells: Cells | None = None,
    order: Order = by_kind,
    sample: int | None = None,
    seed: np.random.SeedSequence | None = None,
) -> RowTable:
    """The rows of a metric with further columns, clusters, and the cells they are in if given.

    With ``sample``, at least about as many rows come, of which the caller draws the sample.
    """
    axes = () if cells is None else cells.axes
    query = Query(trail, tuple(axis.dimension for axis in axes), (metric,))
    if trail.roles.cluster is not None:
        further = {**further, "cluster": trail.key(trail.roles.cluster)}
    table, left = fetch_rows(query, further, sample=sample, seed=seed)
    return replace(row_table(table, further, cells, order), left=left)


def pull_rows(
    source: Trail | Tallied, metric: Metric, cells: Cells, extra: str | None = None
) -> RowTable:
    """The rows behind the cells of a metric."""
    trail = rows_behind(source)
    # A table of counts is short however many people it speaks of.
    if cells.counted > MAX_ROWS and trail.roles.count is None:
        raise TrailError(
            f"This method needs the rows themselves, and there are {cells.counted:,}, more than "
            f"{MAX_ROWS:,}. Use one that works from totals: method=Bootstrap(engine='moments')."
        )
    query = Query(trail, tuple(axis.dimension for axis in cells.axes), (metric,))
    further = {} if extra is None else {"extra": formula_of(trail, extra)}
    return row_table(fetch(query.rows(further), trail.source), further, cells)


def pull_factors(
    source: Trail | Tallied, metric: Metric, cells: Cells, names: Sequence[str]
) -> RowTable:
    """The rows behind the cells of a metric, one by one, with the named columns as features.

    They come in an order that depends on their values only. Where a number is missing the median
    stands in and a feature says so.
    """
    trail = rows_behind(source)
    if cells.counted > MAX_LEARNT:
        raise TrailError(
            f"Models are learnt from single rows, and there are {cells.counted:,}, more than "
            f"{MAX_LEARNT:,}. Give columns that form strata instead, or read a sample."
        )
    further = feature_keys(trail, [trail.attribute(name) for name in names])
    table = pull_table(trail, metric, further, cells=cells)
    parts = [_filled(*_encode(name, table.columns[f"feature{i}"])) for i, name in enumerate(names)]
    matrix = np.concatenate([part for part, _ in parts], axis=1) if parts else table.matrix
    features = tuple(feature for _, found in parts for feature in found)
    endless = [f.column for f, x in zip(features, matrix.T, strict=True) if np.isinf(x).any()]
    if endless:
        raise TrailError(
            f"The factor {endless[0]!r} holds infinite numbers, from which nothing can be learnt. "
            "Replace them, or take the column out of factors(…)."
        )
    table = replace(table, columns={}, matrix=matrix, features=features)
    # rows whose metric, weight or cluster is missing are counted where cells are
    known = np.isfinite(table.value) & (table.cell >= 0) & (table.weights > 0)
    if table.cluster is not None:
        known &= table.cluster >= 0
    table = table.part(table.one_by_one(np.flatnonzero(known)))
    if table.cluster is not None:
        table = replace(table, cluster=renumbered(table.cluster))
    ties = [] if table.cluster is None else [table.cluster.astype(np.float64)]
    keys = (*table.matrix.T, table.weights, *ties, table.value, table.cell.astype(np.float64))
    return table.part(np.lexsort(keys))


def formula_of(trail: Trail, text: str, called: str = "a further formula") -> nw.Expr:
    """The value of a formula on each row."""
    return value_of(trail, Metric(name=called, value=text))


def row_table(
    table: Columns, further: Iterable[str], cells: Cells | None, order: Order = by_kind
) -> RowTable:
    """Fetched columns as a table; those named in ``further`` are kept as they are.

    ``order`` is that of the clusters, which decides in what order they are added up.
    """
    value = numbers(table["value"])
    cell = np.zeros(len(value), dtype=np.int64)
    if cells is not None:
        codes = [level_codes(axis, table[f"key{i}"]) for i, axis in enumerate(cells.axes)]
        index = np.array(codes, dtype=np.int64).reshape(len(codes), len(value)).T
        cell = cell_numbers(index, cells.index)
    return RowTable(
        value=value,
        weight=numbers(table["weight"]) if "weight" in table else None,
        count=numbers(table["count"]).astype(np.int64) if "count" in table else None,
        cluster=cluster_codes(table["cluster"], order) if "cluster" in table else None,
        cell=cell,
        columns={name: table[name] for name in further},
        matrix=np.zeros((len(value), 0)),
    )


def level_codes(axis: Axis, column: AnyArray) -> IntArray:
    """Level positions of raw key values; missing ones come after the last level of a line."""
    dimension = axis.dimension
    if isinstance(dimension, Tilt):
        column = steady_weights(column)
    by_value = isinstance(dimension, Levels | Values | Tilt) or (
        isinstance(dimension, Ordered) and dimension.edges is None
    )
    # ranges come by their number
    known = [level for level in axis.levels if by_value or level is not None]
    place = {level if by_value else i: i for i, level in enumerate(known)}
    return code(column).place(place, len(known))


def cell_numbers(index: IntArray, cells: IntArray) -> IntArray:
    """Position of each row's levels among the cells, which are sorted."""
    both = np.concatenate([cells, index])
    _, inverse = np.unique(both, axis=0, return_inverse=True)
    # The cells come first and are all different, so each marks its own number.
    number = np.empty(len(cells), dtype=np.int64)
    number[inverse.reshape(-1)[: len(cells)]] = np.arange(len(cells))
    return number[inverse.reshape(-1)[len(cells) :]]


# --- One look: all rows by one query, grouped here for what is counted, and one by one ---


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Look:
    """What one query saw of a table: all rows. Where they are too many, there is only the table."""

    query: Query
    """What is counted, of the claims in their order."""
    asked: tuple[Dimension, ...]
    """What rows are cut by, as it was asked for."""
    metric: Metric
    """The metric whose rows are wanted one by one."""
    further: Mapping[str, nw.Expr]
    """What else is wanted of each of these rows."""
    table: Columns | None
    """All rows; None where the table is asked again for each thing."""

    def cells(self, claims: Sequence[Claim]) -> tuple[Cells, ...]:
        """The cells of claims, which are the first of those looked for."""
        if self.table is None:
            return gather(self.query.trail, claims)
        number = len(dict.fromkeys(d for claim in claims for d in claim.dimensions()))
        some = replace(
            self.query,
            dimensions=self.query.dimensions[:number],
            metrics=distinct_metrics(claims),
        )
        return all_cells(_scanned(some, self.asked[:number], self.table), claims)

    def along(self, line: Ordered) -> Trail | Tallied:
        """The counts of everything looked for, with the values of a number put into ranges."""
        trail = self.query.trail
        if self.table is None:
            return trail
        place = self.asked.index(Ordered(line.column))
        # zero has no sign here
        value = numbers(self.table[f"key{place}"]) + 0.0
        key = self.table[f"key{place}"]
        found = ranged(line, line.column, *_occurring(value, self.table))
        if isinstance(found, Ordered) and found.edges is not None:
            first, *inner, last = found.edges
            inside = (value >= first) & (value <= last)
            codes = np.searchsorted(inner, value, side="right")
            key = np.where(inside, codes, np.nan)
        dimensions, asked = list(self.query.dimensions), list(self.asked)
        dimensions[place], asked[place] = found, line
        query = replace(self.query, dimensions=tuple(dimensions))
        scan = _scanned(query, tuple(asked), {**self.table, f"key{place}": key})
        return Tallied(scan=scan, trail=trail)

    def rows(
        self,
        *,
        cells: Cells | None = None,
        order: Order = by_kind,
        sample: int | None = None,
        seed: np.random.SeedSequence | None = None,
    ) -> RowTable:
        """The rows of the metric, as `pull_table` gives them."""
        query, metric, table = self.query, self.metric, self.table
        if table is None:
            return pull_table(
                query.trail,
                metric,
                self.further,
                cells=cells,
                order=order,
                sample=sample,
                seed=seed,
            )
        here, place = _counts_here(table, metric, query), _place(metric, query)
        keys = (f"key{i}" for i in range(0 if cells is None else len(cells.axes)))
        wanted = {n: n for n in (*keys, "weight", "count", "cluster", *self.further) if n in table}
        wanted["value"] = "value" if place is None else f"m{place}_value"
        further = [n for n in wanted if n in self.further or n == "cluster"]
        found = {name: table[held][here] for name, held in wanted.items()}
        return row_table(found, further, cells, order)


@contextmanager
def one_look(
    trail: Trail,
    claims: Sequence[Claim],
    metric: Metric,
    further: Mapping[str, nw.Expr],
    *,
    most: int | None = None,
    sample: int | None = None,
) -> Iterator[Look]:
    """All rows of a table by one query, for the cells of the claims and the rows of a metric.

    Where there are more than ``most``, five million unless told, or so many that the engine thins
    out a sample, they stay where they are: cells and rows are asked for apart, while the table is
    held still.
    """
    only_means(claims)
    query, asked = query_for(expect_trail(trail), claims)
    look = Look(query=query, asked=asked, metric=metric, further=further, table=None)
    limit = most or MAX_ROWS if sample is None else max(THIN_ABOVE, OVERSAMPLE * sample)
    what_is_read(query)
    table = _every_row(look, limit)
    if table is not None and sample is not None:
        here = _counts_here(table, metric, query)
        number = numbers(table["count"])[here].sum() if "count" in table else here.sum()
        table = table if number <= limit else None
    if table is not None:
        yield replace(look, table=table)
        return
    with one_moment(trail.frame, trail.source):
        yield look


def _every_row(look: Look, limit: int) -> Columns | None:
    """All rows, unless they are more than ``limit``."""
    query, further = look.query, dict(look.further)
    trail = query.trail
    if _place(look.metric, query) is None:
        # not among what is summed: what it is where it counts
        value = query.value(look.metric)
        further |= {"value": value, "counted": ~value.is_null()}
    table = fetch(_countable(query.every_row(further)).head(limit + 1), trail.source)
    return table if len(next(iter(table.values()))) <= min(limit, MAX_CELLS) else None


def _place(metric: Metric, query: Query) -> int | None:
    """The position of a metric among those that the engine would have summed."""
    places = (i for i, m in enumerate(query.metrics) if m is metric and not is_local(m))
    return next(places, None)


def _counts_here(table: Columns, metric: Metric, query: Query) -> BoolArray:
    """The rows on which a metric counts; one that stands for nobody is none."""
    place = _place(metric, query)
    here = table["counted" if place is None else f"m{place}_known"].astype(bool)
    return here & (numbers(table["count"]) > 0) if "count" in table else here


def _occurring(value: FloatArray, table: Columns) -> tuple[FloatArray, FloatArray]:
    """The finite values that occur, in order, and how many rows have each."""
    counts = np.nan_to_num(numbers(table["count"])) if "count" in table else np.ones(len(value))
    kept = np.isfinite(value) & (counts > 0)
    values, place = np.unique(value[kept], return_inverse=True)
    return values, np.bincount(place.reshape(-1), counts[kept]).astype(np.float64)


def _scanned(query: Query, asked: tuple[Dimension, ...], table: Columns) -> Scan:
    """All rows as a scan, grouped as an engine would have grouped them."""
    return scan_of(query, asked, what_is_read(query), _grouped(query, table))


def _grouped(query: Query, table: Columns) -> Columns:
    """All rows grouped by their keys, and what they add up to: what `Query.frame` asks for."""
    with np.errstate(all="ignore"):
        sums, real = _row_sums(query, table)
    names = [name for name in query.keys() if name in table]  # noqa: SIM118
    coded = {name: code(table[name]) for name in names if name != "key"}
    index = np.stack(
        [c.codes for c in coded.values()] or [np.zeros(len(sums["present"]), dtype=np.int64)],
        axis=1,
    )
    rows, place = distinct_rows(index)
    # Adding in a fixed order makes the sums independent of the order of the rows.
    order = np.lexsort((*real, place))
    place = place[order]
    added = {n: np.bincount(place, x[order], len(rows)) for n, x in sums.items()}
    keys = zip(coded.items(), rows.T, strict=False)
    return {n: objects(c.levels)[at] for (n, c), at in keys} | added


def _row_sums(query: Query, table: Columns) -> tuple[Columns, list[FloatArray]]:
    """What each row adds to each sum, and the real numbers of which that is made."""
    given = {role: numbers(table[role]) for role in ("count", "weight") if role in table}
    known = {role: np.where(np.isnan(x), 0.0, x) for role, x in given.items()}
    frequency = known.get("count", np.ones(len(next(iter(table.values())))))
    sums: Columns = {"present": frequency}
    for role, x in given.items():
        sums[f"missing_{role}"] = np.where(np.isnan(x), frequency if role == "weight" else 1, 0)
        bad = (x > MOST_WEIGHT) | ((x > 0) & (x < 1 / MOST_WEIGHT))
        bad = np.isinf(x) | (x != np.floor(x)) if role == "count" else bad
        sums[f"bad_{role}"] = ~np.isnan(x) & (bad | (x < 0))
    masses = {"": frequency}
    if "weight" in known:
        w = known["weight"]
        masses = {"": frequency * w, "2": frequency * (w * w), "3": frequency * (w * w * w)}
        sums |= {f"weight{order}": mass for order, mass in masses.items()}
    real = [known[role] for role in known]
    for i, metric in enumerate(query.metrics):
        if not is_local(metric):
            here = table[f"m{i}_known"].astype(bool)
            value = np.where(here, numbers(table[f"m{i}_value"]), 0.0)
            found = {"rows": here * frequency, **_metric_sums(metric, value, here, masses)}
            sums |= {f"m{i}_{name}": x for name, x in found.items()}
            held = (n for n in table if n.startswith(f"m{i}_") and n not in sums)
            for name in held:
                sums[name] = table[name].astype(bool) * (1.0 if "outside" in name else frequency)
            real.append(value)
    return sums, real


def _metric_sums(
    metric: Metric, value: FloatArray, known: BoolArray, masses: Mapping[str, FloatArray]
) -> Columns:
    """What each row adds to the sums of a metric; its value is zero where there is none."""
    sums: Columns = {}
    for order, mass in masses.items():
        sums |= {f"weight{order}": known * mass, f"total{order}": mass * value}
        sums[f"square{order}"] = mass * value * value
    if not metric.zero_one:
        last = [*masses.values()][-1]
        sums["cube3"] = last * np.where(np.abs(value) > NOTHING, value * value * value, 0.0)
        if not metric.in_unit:
            sums["other"] = known & (value != 0) & (value != 1)
    low, high = promised_range(metric)
    if low is not None:
        sums["below"] = known & (value < low)
    if high is not None:
        sums["above"] = known & (value > high)
    if metric.values:
        sums["strange"] = known & ~np.isin(value, metric.values)
    return sums


# --- Features of single rows as a numeric matrix ---

#: A text column with more levels than this is refused as a feature.
MAX_FEATURE_LEVELS = 100


def feature_keys(trail: Trail, names: Sequence[str]) -> dict[str, nw.Expr]:
    """Columns by names that no other column of a query has."""
    return {f"feature{i}": trail.key(trail.attribute(name)) for i, name in enumerate(names)}


def chosen_features(trail: Trail, names: Sequence[str]) -> list[str]:
    """The columns that are named as features, at least one."""
    chosen = [trail.attribute(name) for name in columns_named("features", names)]
    if not chosen:
        raise ClaimError("At least one feature is needed.")
    return chosen


def pull_features(
    look: Look,
    names: Sequence[str],
    *,
    sample: int | None = None,
    seed: np.random.SeedSequence | None = None,
    needed: Sequence[str] | None = None,
) -> RowTable:
    """The rows of a look at some columns, by their `feature_keys`, with these as features.

    With ``sample``, at least about as many rows come, of which the caller draws the sample. Rows
    without a number of the columns ``needed``, all of them unless told, are left out; where another
    number is missing, the median stands in and a feature says so.
    """
    table = look.rows(sample=sample, seed=seed)
    if len(table) == 0:
        raise ClaimError(f"Metric {look.metric.name!r} counts on no row.")
    parts = {name: _encode(name, table.columns[f"feature{i}"]) for i, name in enumerate(names)}
    if needed is not None:
        parts = {n: part if n in needed else _filled(*part) for n, part in parts.items()}
    # A missing text is no loss: it is a row of zeros, none of the levels.
    present = {n: np.asarray(~np.isnan(x).any(axis=1)) for n, (x, _) in parts.items()}
    table = replace(
        table,
        columns={},
        matrix=np.concatenate([matrix for matrix, _ in parts.values()], axis=1),
        features=tuple(feature for _, features in parts.values() for feature in features),
    ).complete(np.ones(len(table), dtype=bool), present)
    cluster = table.cluster
    if cluster is None:
        return table
    # the rows that have none were counted where cells were
    known = cluster >= 0
    return replace(table.part(known), cluster=renumbered(cluster[known]))


def renumbered(codes: IntArray) -> IntArray:
    """The codes that occur, numbered from zero in their order."""
    return np.unique(codes, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _encode(name: str, column: AnyArray) -> tuple[FloatArray, list[Feature]]:
    if column.dtype != object:
        return numbers(column)[:, None], [Feature(name)]
    coded = code(column)
    levels = sorted(level for level in coded.levels if isinstance(level, str))
    if not levels:
        return numbers(coded.each(coded.levels))[:, None], [Feature(name)]
    if len(levels) > MAX_FEATURE_LEVELS:
        raise ClaimError(
            f"Feature {name!r} has {len(levels):,} levels, more than {MAX_FEATURE_LEVELS}. "
            "Group them, or leave it out."
        )
    matrix = np.array([[float(value == level) for level in levels] for value in coded.levels])
    return matrix[coded.codes], [Feature(name, level) for level in levels]


def _filled(matrix: FloatArray, features: list[Feature]) -> tuple[FloatArray, list[Feature]]:
    """Numbers that are missing become the median, and a second column says where."""
    gone = np.isnan(matrix).any(axis=1)
    if not gone.any():
        return matrix, features
    middle = float(np.median(matrix[~gone])) if not gone.all() else 0.0
    filled = np.column_stack([np.where(gone, middle, matrix[:, 0]), gone.astype(np.float64)])
    return filled, [*features, Feature(features[0].column, missing=True)]
