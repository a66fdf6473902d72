"""Random tables, most of them malformed in one way or another."""

import datetime
import decimal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

Rng = np.random.Generator
Values = list[Any]

WORDS = [
    "",
    " ",
    "a",
    "b",
    "A",
    "nan",
    "None",
    "NULL",
    "true",
    "1",
    "0.5",
    "-inf",
    "naïve",
    "😀👩🏽‍⚖️",
    "שלום \u202eevil\u202c العربية",
    "two\nlines\r\n\ttab",
    "quote\"d 'twice'",
    "a, b; c | d",
    "<script>alert(1)</script>",
    "{{ 7 * 7 }} ${HOME} %s {}",
    "x" * 5000,
    "\x00nul\x1b[31m",
    "[0, 1)",
    "a or b",
    "(missing)",
]
ODD_FLOATS = [0.0, -0.0, 1.0, 0.5, 2.5, -1.0, 1e308, -1e308, 5e-324, 1e-300, 1e16, np.nan, np.inf]
ODD_INTS = [0, 1, 2, -1, 7, 255, 2**31, -(2**31), 2**53 + 1, 2**62, -(2**63), 2**63 - 1]
EPOCH = datetime.datetime(2020, 1, 1)
ZONE = datetime.timezone(datetime.timedelta(hours=5, minutes=30))


def pick(rng: Rng, among: Any) -> Any:
    """One of several, without numpy turning it into something else."""
    return among[int(rng.integers(len(among)))]


def chance(rng: Rng, share: float) -> bool:
    return bool(rng.random() < share)


def mostly(rng: Rng, good: Any, strange: Any, share: float = 0.06) -> Any:
    """One of the values that make sense; now and then one that does not."""
    return pick(rng, strange if chance(rng, share) else good)


def _draws(rng: Rng, n: int, among: Any) -> Values:
    return [pick(rng, among) for _ in range(n)]


def _moments(rng: Rng, n: int, zone: Any = None) -> Values:
    steps = [datetime.timedelta(hours=8 * int(step)) for step in rng.integers(0, 90, n)]
    return [(EPOCH + step).replace(tzinfo=zone) for step in steps]


#: Kinds of column: each makes n plain Python values.
KINDS: dict[str, Callable[[Rng, int], Values]] = {
    "bits": lambda r, n: r.integers(0, 2, n).tolist(),
    "truths": lambda r, n: _draws(r, n, (True, False)),
    "truths or none": lambda r, n: _draws(r, n, (True, False, None)),
    "bits or none": lambda r, n: _draws(r, n, (0, 1, None)),
    "unit": lambda r, n: r.random(n).tolist(),
    "normal": lambda r, n: r.normal(size=n).tolist(),
    "coarse": lambda r, n: r.integers(0, 4, n).astype(float).tolist(),
    "odd floats": lambda r, n: _draws(r, n, ODD_FLOATS),
    "floats or none": lambda r, n: _draws(r, n, (0.25, 0.5, np.nan, None)),
    "odd ints": lambda r, n: _draws(r, n, ODD_INTS),
    "counts": lambda r, n: r.integers(0, 4, n).tolist(),
    "fractions": lambda r, n: _draws(r, n, (0, 1, 2.5, -1)),
    "letters": lambda r, n: _draws(r, n, ("a", "b", "c")),
    "letters or none": lambda r, n: _draws(r, n, ("a", "b", None)),
    "words": lambda r, n: _draws(r, n, WORDS),
    "decimals": lambda r, n: _draws(r, n, (decimal.Decimal("0.5"), decimal.Decimal("1.25"), None)),
    "dates": lambda r, n: [m.date() for m in _moments(r, n)],
    "moments": lambda r, n: _moments(r, n),
    "zoned": lambda r, n: _moments(r, n, ZONE),
    "durations": lambda r, n: [datetime.timedelta(hours=int(h)) for h in r.integers(0, 3, n)],
    "times": lambda r, n: [datetime.time(int(h)) for h in r.integers(0, 3, n)],
    "lists": lambda r, n: _draws(r, n, ([1, 2], [], [3])),
    "structs": lambda r, n: _draws(r, n, ({"a": 1}, {"a": 2})),
    "bytes": lambda r, n: _draws(r, n, (b"a", b"\xff\x00")),
    "nothing": lambda r, n: [None] * n,
    "not a number": lambda r, n: [float("nan")] * n,
    "constant": lambda r, n: [1] * n,
    "mixed": lambda r, n: _draws(r, n, (1, "a", 2.5, None, True, (1, 2), b"x", float("nan"))),
    "ones and words": lambda r, n: _draws(r, n, (1, "1", True)),
}
#: What each column usually is; one that is replaced is malformed.
USUAL = {
    "y": "bits",
    "p": "bits",
    "s": "unit",
    "g": "letters",
    "h": "letters or none",
    "x": "normal",
    "w": "unit",
    "k": "counts",
    "c": "letters",
    "lo": "normal",
    "hi": "normal",
}
ROLES = {
    "label": "y",
    "prediction": "p",
    "score": "s",
    "low": "lo",
    "high": "hi",
    "weight": "w",
    "count": "k",
    "cluster": "c",
}
NAMES = [
    "",
    " ",
    "label",
    "score",
    "weight",
    "value",
    "kind",
    "number",
    "mapping",
    "present",
    "key0",
    "cluster",
    "rows",
    "where",
    "a b",
    "a.b",
    'quote"d',
    "it's",
    "two\nlines",
    "😀",
    "\u202eevil",
    "G",
    "y" * 3000,
    "__equipoise_key0",
    "1",
    "nan",
    "*",
    "select",
    "{x}",
    "\\",
    "n",
    "column_0",
]


@dataclass(slots=True)
class Table:
    """Columns as plain values, before an engine holds them."""

    columns: dict[Any, Values]
    kinds: dict[Any, str]
    twice: Any = None
    """A column that occurs a second time."""


def random_table(rng: Rng, spoilt: float = 0.5, rows: int | None = None) -> Table:
    """The usual columns, some spoilt, some gone, some strangely named."""
    n = pick(rng, (0, 1, 2, 3, 5, 8, 12, 20, 30)) if rows is None else rows
    kinds: dict[Any, str] = dict(USUAL)
    if chance(rng, spoilt):
        for name in rng.choice(list(USUAL), int(rng.integers(1, 4)), replace=False):
            kinds[str(name)] = pick(rng, list(KINDS))
    table = Table({name: KINDS[kind](rng, n) for name, kind in kinds.items()}, kinds)
    if chance(rng, spoilt * 0.4):
        _spoil_names(rng, table, n)
    return table


def _spoil_names(rng: Rng, table: Table, n: int) -> None:
    how = int(rng.integers(4))
    if how == 0:
        table.columns.pop(pick(rng, list(USUAL)))
    elif how == 1:
        table.twice = pick(rng, list(table.columns))
    else:
        name, kind = pick(rng, NAMES), pick(rng, list(KINDS))
        table.columns[name] = KINDS[kind](rng, n)
        table.kinds[name] = kind


def tame(rng: Rng, spoilt: float = 0.0, rows: int | None = None) -> Table:
    """A table whose values can mostly be audited."""
    return random_table(rng, spoilt, pick(rng, (2, 4, 8, 14, 24, 30)) if rows is None else rows)


# --- the engines that hold them ----------------------------------------------------------------


def to_pandas(rng: Rng, table: Table) -> pd.DataFrame:
    made = {name: _pandas_column(rng, values) for name, values in table.columns.items()}
    frame = pd.DataFrame(made)
    if table.twice is not None:
        frame = pd.concat([frame, frame[[table.twice]]], axis=1)
    if chance(rng, 0.1):
        frame.index = pd.Index(rng.integers(0, 3, len(frame)), name="g")
    if chance(rng, 0.04):
        frame.columns = pd.MultiIndex.from_product([["top"], frame.columns])
    elif chance(rng, 0.04):
        frame.columns = pd.Index(range(frame.shape[1]))
    return frame


_PANDAS_TYPES = (
    "category",
    "Int64",
    "Float64",
    "boolean",
    "string",
    "float32",
    "int8",
    "complex128",
    "Sparse[float]",
    "datetime64[ns, Europe/Paris]",
    "period[D]",
    "int64[pyarrow]",
    "uint64",
)


def _pandas_column(rng: Rng, values: Values) -> Any:
    column = pd.Series(values, dtype=object) if chance(rng, 0.25) else pd.Series(values)
    if chance(rng, 0.1):
        try:
            return column.astype(pick(rng, _PANDAS_TYPES))
        except Exception:
            return column
    return column


_POLARS_TYPES = (
    pl.Categorical,
    pl.Float32,
    pl.Int8,
    pl.UInt64,
    pl.Int128,
    pl.Object,
    pl.String,
    pl.Null,
    pl.Decimal(10, 2),
    pl.Datetime("ms", "Asia/Kolkata"),
)


def to_polars(rng: Rng, table: Table) -> pl.DataFrame:
    return pl.DataFrame(
        [_polars_column(rng, str(name), values) for name, values in table.columns.items()]
    )


def _polars_column(rng: Rng, name: str, values: Values) -> pl.Series:
    try:
        column = pl.Series(name, values)
    except Exception:
        column = pl.Series(name, values, dtype=pl.Object)
    if chance(rng, 0.08):
        kind = pick(rng, _POLARS_TYPES)
        try:
            return pl.Series(name, values, dtype=kind, strict=False)
        except Exception:
            return column
    return column


def to_arrow(rng: Rng, table: Table) -> pa.Table:
    names, columns = [], []
    for name, values in table.columns.items():
        try:
            column = pa.array(values, from_pandas=chance(rng, 0.3))
        except (pa.ArrowException, ValueError, TypeError):
            column = pa.array([None if value is None else repr(value) for value in values])
        if chance(rng, 0.1):
            column = column.dictionary_encode() if pa.types.is_string(column.type) else column
        names.append(str(name))
        columns.append(column)
    if table.twice is not None:
        names.append(str(table.twice))
        columns.append(columns[names.index(str(table.twice))])
    return pa.table(columns, names=names)


def to_duckdb(rng: Rng, table: Table) -> Any:
    table.twice = None
    table.columns = {name: values for name, values in table.columns.items() if name != ""}
    return duckdb.connect().from_arrow(to_arrow(rng, table))


ENGINES: dict[str, Callable[[Rng, Table], Any]] = {
    "polars": to_polars,
    "lazy": lambda rng, table: to_polars(rng, table).lazy(),
    "pandas": to_pandas,
    "arrow": to_arrow,
    "duckdb": to_duckdb,
}


def source_of(rng: Rng, table: Table, engine: str | None = None) -> Any:
    """The table in one of the engines; the cheaper ones more often."""
    usual = ("polars", "polars", "lazy", "pandas", "arrow", "arrow", "duckdb")
    return ENGINES[engine or pick(rng, usual)](rng, table)


def snapshot(source: Any) -> Any:
    """A copy to compare with afterwards; engines whose tables cannot change need none."""
    if isinstance(source, pd.DataFrame):
        return source.copy(deep=True)
    return source.clone() if isinstance(source, pl.DataFrame) else None


def unchanged(source: Any, before: Any) -> None:
    if isinstance(source, pd.DataFrame):
        pd.testing.assert_frame_equal(source, before, check_exact=True)
    elif isinstance(source, pl.DataFrame) and pl.Object not in source.dtypes:
        assert source.equals(before)


def random_roles(
    rng: Rng, table: Table, wrong: float = 0.3, further: float = 0.12
) -> dict[str, Any]:
    """Roles as they should be; some missing, wrong, taken twice or of a strange type."""
    roles: dict[str, Any] = {name: ROLES[name] for name in ("label", "prediction", "score")}
    for name in ("weight", "count", "cluster", "low", "high"):
        if chance(rng, further):
            roles[name] = ROLES[name]
    if chance(rng, wrong):
        name = pick(rng, list(ROLES))
        strange = ("nowhere", "Y", "", None, 5, ["y"], "y")
        roles[name] = pick(rng, [*table.columns, *strange])
    if chance(rng, wrong * 0.5):
        roles["positive"] = pick(
            rng, (1, "a", True, 0, None, {"label": "a"}, {"lable": 1}, 2.5, float("nan"), b"x", [1])
        )
    if chance(rng, wrong * 0.3):
        roles["attributes"] = pick(rng, (["g"], ["g", "g"], "g", [], ["nowhere"], [3], None, ["y"]))
    return roles


def write_file(rng: Rng, table: Table, folder: Path) -> Path:
    """A CSV or Parquet file of the table, often with broken content."""
    arrow, path = to_arrow(rng, table), folder / f"table{pick(rng, SUFFIXES)}"
    if path.suffix in (".parquet", ".pq"):
        _write_parquet(arrow, path)
    else:
        path.write_bytes(_csv_bytes(rng, table))
    if chance(rng, 0.5):
        path.write_bytes(_broken(rng, path.read_bytes()))
    return path


SUFFIXES = (".csv", ".csv", ".tsv", ".parquet", ".pq", ".csv.gz", ".txt", "")


def _write_parquet(table: pa.Table, path: Path) -> None:
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    try:
        pq.write_table(table, path)
    except (pa.ArrowException, ValueError):
        path.write_bytes(b"PAR1")


def _csv_bytes(rng: Rng, table: Table) -> bytes:
    sign = pick(rng, (",", ",", ";", "\t", "|"))
    names = [str(name) for name in table.columns]
    rows = zip(*table.columns.values(), strict=True)
    lines = [sign.join(names), *(sign.join(_csv_cell(v) for v in row) for row in rows)]
    text = pick(rng, ("\n", "\n", "\r\n", "\r")).join(lines)
    return text.encode(pick(rng, ("utf-8", "utf-8", "utf-8-sig", "utf-16")), "replace")


def _csv_cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',;\t|"\r\n') else text


def _broken(rng: Rng, content: bytes) -> bytes:
    """Cut off, overwritten, doubled, emptied, or with foreign bytes in the middle."""
    place = int(rng.integers(len(content) + 1))
    noise = bytes(rng.integers(0, 256, int(rng.integers(1, 30))).astype(np.uint8))
    return pick(
        rng,
        (
            content[:place],
            content[:place] + noise + content[place:],
            content[:place] + noise + content[place + len(noise) :],
            content + content,
            b"",
            content[:place] + b'"' + content[place:],
            content[:place] + b"\x00" + content[place:],
            noise,
            content[:place] + b",,,\n" + content[place:],
        ),
    )
