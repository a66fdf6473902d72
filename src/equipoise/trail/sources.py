"""From what a user has (a path, a frame, a relation) to a lazy frame and a name for it."""

import contextlib
import csv
import functools
import glob
import gzip
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import narwhals as nw

from equipoise._validate import listing, short
from equipoise.errors import TrailError
from equipoise.trail.connections import DATABASE, is_connection, open_connection, spark_times
from equipoise.trail.engine import engine_errors, new_duckdb, quoted
from equipoise.trail.secrets import expand
from equipoise.trail.trail import Frame

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


def open_source(source: Any, table: str | None = None) -> tuple[Frame, str]:
    """A lazy frame over ``source`` and words that name it."""
    if isinstance(source, str | Path) and is_connection(str(source)):
        return open_connection(str(source), table)
    if table is not None:
        raise TrailError(
            f"table={table!r} names a table of a database; {_kind(source)} holds only one. "
            "Leave it out, or pass a connection string such as postgres://user@host/database."
        )
    if isinstance(source, str | Path):
        return _open_path(_not_empty(expand(str(source))))
    _refuse_repeated(_names(source), "The table")
    frame = nw.from_native(_told_types(source), pass_through=True)
    if isinstance(frame, nw.LazyFrame) and frame.implementation.is_spark_like():
        frame = nw.from_native(spark_times(frame.to_native()))
    if not isinstance(frame, nw.DataFrame | nw.LazyFrame):
        raise TrailError(
            f"A trail cannot be read from {type(source).__name__}. Pass a path, a pandas, Polars "
            "or PyArrow table, a DuckDB relation, a PySpark DataFrame or an Ibis table."
        )
    return frame.lazy(), f"a {frame.implementation.name.lower()} table"


def _not_empty(path: str) -> str:
    # an empty path would mean the current folder, which nobody asked for
    if not path.strip():
        raise TrailError("The path is empty. Pass the path of a CSV or Parquet file, or a folder.")
    return path


def _kind(source: Any) -> str:
    return repr(str(source)) if isinstance(source, str | Path) else f"a {type(source).__name__}"


def _told_types(table: Any) -> Any:
    """A pandas table whose columns of Python objects have the type that the objects have.

    In pandas, truth values beside missing ones, and decimals, are mere objects.
    """
    objects = _object_columns(table)
    if not objects:
        return table
    from pandas.api.types import infer_dtype

    numbers = ("boolean", "integer", "floating", "decimal", "mixed-integer-float")
    kinds = {name: infer_dtype(table[name], skipna=True) for name in objects}
    told = {
        name: (table[name].map(float, na_action="ignore") if kind == "decimal" else table[name])
        for name, kind in kinds.items()
        if kind in numbers
    }
    return table.assign(**{name: column.convert_dtypes() for name, column in told.items()})


def _object_columns(table: Any) -> list[Any]:
    if not nw.dependencies.is_pandas_dataframe(table):
        return []
    # names that are no text are refused later, with a message of their own
    return [
        name
        for name, kind in table.dtypes.items()
        if isinstance(name, str) and str(kind) == "object"
    ]


def _names(table: Any) -> list[Any]:
    """The column names of a table as its engine gives them, before anyone makes them unique."""
    if hasattr(table, "collect_schema"):
        return list(table.collect_schema())
    return list(getattr(table, "column_names", getattr(table, "columns", ())))


def _open_path(path: str) -> tuple[Frame, str]:
    with engine_errors(f"The path {short(path)!r}"):
        files = _files(path)
    suffixes = {_suffix(file) for file in files}
    if len(suffixes) > 1:
        raise TrailError(
            f"{path!r} holds files of different kinds: {listing(sorted(suffixes))}. "
            "Pass a glob that matches one kind."
        )
    unknown = suffixes - {*PARQUET, *CSV}
    if unknown:
        raise TrailError(
            f"{path!r} is of no kind that can be read ({listing(sorted(unknown))}). "
            f"Pass a file that ends in {', '.join((*PARQUET, *CSV, *DATABASE))}."
        )
    opened = _parquet(files, Path(path)) if suffixes <= set(PARQUET) else _csv(files)
    return opened, f"{Path(path).name or path}"


def _files(path: str) -> list[str]:
    place = Path(path)
    if place.is_dir():
        found = sorted(str(p) for p in place.rglob("*") if _suffix(str(p)) in PARQUET + CSV)
        what = f"The folder {path!r} holds no CSV or Parquet file. Pass one that does."
    elif place.is_file():
        found, what = [path], ""
    else:
        found = sorted(file for file in glob.glob(path, recursive=True) if Path(file).is_file())
        what = (
            f"No file or folder {path!r}. "
            "Pass the path of a CSV or Parquet file, a folder or a glob."
        )
    if not found:
        raise TrailError(what)
    return found


def _suffix(file: str) -> str:
    name = Path(file).name.lower()
    for known in PARQUET + CSV:
        if name.endswith(known):
            return known
    return Path(name).suffix or "no suffix"


def _lazy(connection: Any, relation: Any) -> Frame:
    import duckdb

    if any("TIME ZONE" in str(kind) for kind in relation.types):
        # Points in time are grouped by on one clock; DuckDB without zones has no other anyway.
        with contextlib.suppress(duckdb.Error):
            connection.execute("SET TimeZone = 'UTC'")
    frame: Frame = nw.from_native(relation)
    return frame


def _parquet(files: list[str], place: Path) -> Frame:
    connection = new_duckdb()
    with engine_errors(_named(files)):
        columns = connection.execute(
            "SELECT file_name, name, type, logical_type FROM parquet_schema(?) "
            "WHERE num_children IS NULL OR num_children = 0",
            [[_literal(file) for file in files]],
        ).fetchall()
        _same_schema(columns)
        relation = connection.from_parquet(
            [_literal(file) for file in files], hive_partitioning=_in_partitions(files, place)
        )
    return _lazy(connection, relation)


def _in_partitions(files: list[str], place: Path) -> bool:
    """Whether a folder is cut into folders such as ``year=2020``, whose names are values."""
    return place.is_dir() and all(
        "=" in Path(file).relative_to(place).parts[0] and Path(file).parent != place
        for file in files
    )


def _same_schema(columns: list[tuple[str, str, str, str]]) -> None:
    schemas: dict[str, dict[str, tuple[str, str]]] = {}
    for file, name, physical, logical in columns:
        _refuse_repeated([*schemas.get(file, {}), name], Path(file).name)
        schemas.setdefault(file, {})[name] = (physical, logical)
    first, *others = schemas
    for other in others:
        _refuse_different(first, schemas[first], other, schemas[other])


def _csv(files: list[str]) -> Frame:
    connection = new_duckdb()
    with engine_errors(_named(files)):
        headers = {file: _header(connection, file) for file in files}
        first, *others = files
        for other in others:
            _refuse_different(
                first, dict(enumerate(headers[first])), other, dict(enumerate(headers[other]))
            )
        relation = _read_csv(connection, files)
        if relation.limit(1).count("*").fetchall()[0][0] == 0:
            raise TrailError(
                f"{_named(files)} has no rows. A CSV file needs a header line and rows."
            )
    return _lazy(connection, relation)


def _read_csv(connection: Any, files: list[str]) -> Any:
    # The whole file decides each column's type: a late "n/a" must not end an audit half-way.
    read = functools.partial(
        connection.read_csv, [_literal(file) for file in files], sample_size=-1, header=True
    )
    relation = read()
    named = zip(relation.columns, relation.types, strict=True)
    truths = [name for name, kind in named if str(kind) == "BOOLEAN"]
    if not truths:
        return relation
    # DuckDB takes yes/no and t/f for truth values too, and with them goes the reader's wording.
    text = read(dtype=dict.fromkeys(truths, "VARCHAR"))
    tests = [f"bool_and(lower({quoted(name)}) IN ('true', 'false'))" for name in truths]
    plain = text.aggregate(", ".join(tests))
    worded = [n for n, only in zip(truths, plain.fetchall()[0], strict=True) if only is False]
    return read(dtype=dict.fromkeys(worded, "VARCHAR")) if worded else relation


def _header(connection: Any, file: str) -> list[str]:
    """The names in the first line, as they stand there: an engine would make them unique."""
    if Path(file).stat().st_size == 0:
        raise TrailError(f"{Path(file).name} is empty. A CSV file needs a header line and rows.")
    sniff = "SELECT Delimiter, Quote FROM sniff_csv(?)"
    delimiter, quoting = connection.execute(sniff, [_literal(file)]).fetchall()[0]
    quote = quoting if len(quoting or "") == 1 and quoting != "\0" else '"'
    opener = gzip.open if file.lower().endswith(".gz") else open
    with opener(file, "rt", newline="", encoding="utf-8-sig", errors="replace") as lines:
        header = next(csv.reader(lines, delimiter=delimiter, quotechar=quote), [])
    _refuse_repeated(header, Path(file).name)
    if len(header) == 1 and any(sign in header[0] for sign in ",;|\t"):
        raise TrailError(
            f"{Path(file).name} could not be read: its first line {header[0]!r} could not be cut "
            "into columns. A quotation mark may be left open, or lines may differ in length."
        )
    return header


def _refuse_different(first: str, one: dict[Any, Any], second: str, two: dict[Any, Any]) -> None:
    places = [place for place in one.keys() | two.keys() if one.get(place) != two.get(place)]
    names = {n for p in places for n in (_column_at(one, p), _column_at(two, p)) if n is not None}
    if names:
        raise TrailError(
            f"The files do not share one schema: {Path(first).name} and {Path(second).name} differ "
            f"in {listing(sorted(names))}. Read them one by one, or rewrite them with one schema."
        )


def _column_at(schema: dict[Any, Any], place: Any) -> str | None:
    """The column's name: the key of a typed schema, the entry of a plain list of names."""
    return place if isinstance(place, str) else schema.get(place)


def _literal(file: str) -> str:
    """A path in which an engine finds no wildcard."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in file)


def _refuse_repeated(names: Sequence[Any], called: str) -> None:
    # Engines of the SQL kind do not tell "Age" from "age".
    times = Counter(str(name).lower() for name in names)
    repeated = sorted({str(name) for name in names if times[str(name).lower()] > 1})
    if repeated:
        raise TrailError(
            f"{called} has more than one column named {listing(repeated)}. "
            "Rename them so that each column can be told apart."
        )


def _named(files: list[str]) -> str:
    return Path(files[0]).name if len(files) == 1 else f"{Path(files[0]).name} and others"
