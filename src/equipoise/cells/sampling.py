"""Single rows from an engine: all of them up to a limit, or a sample that every engine agrees on.

Engines have no row in common but its content, and no hash in common at all. So equal rows are
counted by the engine, each distinct row gets a number between 0 and 1 that is worked out from its
content in whole-number arithmetic, and only rows whose number is small enough leave the engine.
How many of the equal rows are kept is then drawn here. Every row has the same chance, whatever
engine holds it, and the same seed gives the same rows.
"""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from scipy.special import betainc

from equipoise._codec import canonical
from equipoise.cells.query import Query
from equipoise.cells.scan import Columns, floats, plain_keys
from equipoise.errors import TrailError
from equipoise.methods.arrays import AnyArray, FloatArray, IntArray
from equipoise.trail.engine import engine_errors, fetch
from equipoise.trail.roles import is_text
from equipoise.trail.trail import RESERVED, Frame, not_nan, truth_number

#: More rows than this are not pulled to this machine.
MAX_ROWS = 5_000_000
#: Rows from which a sample is drawn by the engine, and by how much it is larger there.
THIN_ABOVE = 1_000_000
OVERSAMPLE = 4
#: Columns of text with more levels than this do not take part in the choice of rows.
_MOST_LEVELS = 1_000

# The largest prime below 2³¹: products of two smaller numbers fit into 64 bits on every engine.
_PRIME = 2**31 - 1
_ROUNDS = 3
_HASH = f"{RESERVED}hash"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """Rows that were pulled."""

    table: Columns
    """Their columns; ``count`` says how many rows each stands for, where it is not one."""
    left: int
    """Rows that stayed in the engine, since a sample was asked for."""


def fetch_rows(
    query: Query,
    further: Mapping[str, nw.Expr],
    *,
    sample: int | None = None,
    seed: np.random.SeedSequence | None = None,
) -> Fetched:
    """The rows on which the query's metric counts, or enough of them to draw a sample from.

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
        return Fetched(table=table, left=0)
    number = _number(frame, source)
    if number <= max(THIN_ABOVE, OVERSAMPLE * sample):
        return Fetched(table=fetch(frame, source), left=0)
    table = _thinned(frame, source, OVERSAMPLE * sample / number, seed)
    return Fetched(table=table, left=number - int(table["count"].sum()))


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
    # a stream of its own: the caller's draws must not depend on whether rows were thinned
    stream = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 1 << 30))
    numbers = np.random.default_rng(stream)
    with engine_errors(source):
        names = [name for name in frame.columns if name != "count"]
        copies = nw.col("count").sum() if "count" in frame.columns else nw.len()
        grouped = frame.group_by(*names).agg(copies.alias("count"))
        grouped = grouped.filter(nw.col("count") > 0)
        hashed = _with_hash(grouped, names, source, numbers)
        bound = nw.col("count").cast(nw.Float64) * (chance * _PRIME)
        kept = hashed.filter(nw.col(_HASH).cast(nw.Float64) < bound)
        kept = kept.select(*names, "count")
    table = fetch(kept, source)
    table = {name: column[_order(table)] for name, column in table.items()}
    drawn = _drawn(np.rint(floats(table["count"])), chance, numbers)
    table["count"] = drawn
    return {name: column[drawn > 0] for name, column in table.items()}


def _drawn(count: FloatArray, chance: float, numbers: np.random.Generator) -> IntArray:
    """How many of the equal rows are kept, given that some may be.

    A distinct row came through with the chance q = min(1, count · chance). With the chance
    (1 − (1 − chance)^count) / q at least one is kept, and then as many as a binomial draw has that
    is not zero.
    """
    uniform = numbers.random(len(count))
    many = count * chance >= 1
    drawn = numbers.binomial(np.where(many, count, 0).astype(np.int64), chance)
    # the others by inversion, the upper tail enlarged by what was lost on the way
    tail = np.where(many, np.inf, uniform * count * chance)
    reached = tail < _at_least(1, count, chance)
    while reached.any():
        drawn[reached] += 1
        reached &= tail < _at_least(drawn + 1, count, chance)
    return np.asarray(drawn, dtype=np.int64)


def _at_least(number: Any, count: FloatArray, chance: float) -> FloatArray:
    """The chance of at least ``number`` of ``count`` draws."""
    possible = np.asarray(number) <= count
    tail = betainc(number, np.where(possible, count - number + 1, 1.0), chance)
    return np.where(possible, tail, 0.0)


def _order(table: Columns) -> IntArray:
    """Rows by their content."""
    keys = [_rank(plain_keys(column)) for name, column in table.items() if name != "count"]
    return np.lexsort(keys[::-1]).astype(np.int64)


def _rank(column: AnyArray) -> IntArray:
    values = column.tolist()
    levels = sorted(set(values), key=lambda v: (v is None, isinstance(v, str), v or 0))
    place = {value: i for i, value in enumerate(levels)}
    return np.array([place[value] for value in values], dtype=np.int64)


def _with_hash(frame: Frame, names: list[str], source: str, numbers: np.random.Generator) -> Frame:
    """The rows with a number below the prime that depends on all they hold."""
    schema = frame.collect_schema()
    start = nw.lit(int(numbers.integers(1, _PRIME))).cast(nw.Int64)
    frame = frame.with_columns(**{_HASH: start})
    for name in names:
        # a step for each column: Spark Connect refuses expressions that are nested too deeply
        state = nw.col(_HASH)
        for code in _codes(frame, name, schema[name], source):
            state = (state * int(numbers.integers(2, _PRIME)) + code) % _PRIME
        frame = frame.with_columns(**{_HASH: state})
    hashed, square = nw.col(_HASH), nw.col(f"{RESERVED}square")
    for _ in range(_ROUNDS):
        # x⁵ permutes the numbers below this prime, and takes the straight lines out of them;
        # a column for each square, so that no engine writes out the same product again and again
        further = int(numbers.integers(1, _PRIME))
        frame = frame.with_columns(**{f"{RESERVED}square": hashed * hashed % _PRIME})
        fifth = square * square % _PRIME * hashed % _PRIME
        frame = frame.with_columns(**{_HASH: (fifth + further) % _PRIME})
    return frame


def _codes(frame: Frame, name: str, dtype: Any, source: str) -> list[nw.Expr]:
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
