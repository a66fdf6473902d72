"""From what a user has (a path, a frame, a relation) to a lazy frame and a name for it."""

import contextlib
import csv
import functools
import glob
import gzip
import importlib
import socket
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

import narwhals as nw

from equipoise._validate import did_you_mean, known_name, listing, short
from equipoise.errors import TrailError
from equipoise.trail.engine import (
    HIDDEN,
    engine_errors,
    expand,
    new_duckdb,
    quoted,
    remember,
    remember_url,
    scrub,
)
from equipoise.trail.trail import Frame

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation
    from pyspark.sql import DataFrame as SparkFrame


# --- Tables on servers and in databases, by connection string ---

#: Endings of DuckDB's database files.
DATABASE = (".duckdb", ".ddb", ".db")
#: Seconds to wait for a server that does not answer.
PATIENCE = 10


def is_connection(source: str) -> bool:
    """Whether a source is a connection string or a database, which hold tables by name."""
    return "://" in source or source.lower().endswith(DATABASE)


def open_connection(source: str, table: str | None) -> tuple[Frame, str]:
    """A lazy frame over a table of a database, and words that name it without the password."""
    address = expand(source)
    remember_url(address)
    if "://" not in address:
        return _duckdb(address, table)
    scheme = address.split("://", 1)[0].lower()
    opener = _OPENERS[known_name("Kind of source", scheme, _OPENERS, TrailError)]
    return opener(address, table)


def _duckdb(address: str, table: str | None) -> tuple[Frame, str]:
    path = Path(address.split("://", 1)[-1])
    if not path.is_file():
        raise TrailError(
            f"There is no database {str(path)!r}. An absolute path has three slashes, as in "
            "duckdb:///data/decisions.duckdb."
        )
    with engine_errors(path.name):
        connection = new_duckdb(str(path), read_only=True)
        known = connection.execute(
            "SELECT table_schema, table_name FROM information_schema.tables"
        ).fetchall()
        chosen = _chosen(table, known, path.name, "main")
        connection.execute("SET TimeZone = 'UTC'")
        relation = connection.table(".".join(quoted(part) for part in chosen))
    return nw.from_native(relation), f"table {table!r} of {path.name}"


def _postgres(address: str, table: str | None) -> tuple[Frame, str]:
    ibis = _needed("ibis", "postgres", "PostgreSQL")
    words = scrub(address)
    with engine_errors(words):
        connection = ibis.postgres.connect(**_postgres_options(address))
        # the server is told when the trail is gone
        weakref.finalize(connection, connection.con.close)
        known = connection.raw_sql(
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_schema NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        schema, name = _chosen(table, known, words, "public")
        found = connection.table(name, database=schema)
    return nw.from_native(found), f"table {table!r} of {words}"


def _postgres_options(address: str) -> dict[str, str | int | None]:
    parts = urlsplit(address)
    further = {key: unquote(value) for key, value in parse_qsl(parts.query)}
    for name, value in further.items():
        if "password" in name.lower():
            remember(value)
    password = unquote(parts.password) if parts.password else None
    options: dict[str, str | int | None] = {
        "host": parts.hostname,
        "port": parts.port,
        "user": unquote(parts.username) if parts.username else None,
        # a plan quoted in evidence has lost its password; the environment may hold it
        "password": None if password == HIDDEN else password,
        "database": unquote(parts.path.lstrip("/")) or None,
        "connect_timeout": PATIENCE,
    }
    return {name: value for name, value in {**options, **further}.items() if value is not None}


def _spark(address: str, table: str | None) -> tuple[Frame, str]:
    _needed("pyspark", "spark", "Spark")
    from pyspark.sql import SparkSession

    master = address.split("://", 1)[1]
    # spark://local[2] means this machine, as Spark itself writes it
    master = master if master.startswith("local") else address
    return _session_table(SparkSession.builder.master(master).getOrCreate, address, table)


def _spark_connect(address: str, table: str | None) -> tuple[Frame, str]:
    _needed("pyspark", "spark", "Spark Connect")
    with engine_errors(scrub(address)):
        from pyspark.sql.connect.session import SparkSession
    return _session_table(SparkSession.builder.remote(address).getOrCreate, address, table)


def _session_table(
    start: Callable[[], object], address: str, table: str | None
) -> tuple[Frame, str]:
    words = scrub(address)
    if not table:
        raise TrailError(f"{words} needs table=…: the name of a table, or a path to Parquet files.")
    with engine_errors(words):
        _reach(address)
        session: Any = start()
        is_path = "/" in table or table.endswith(".parquet")
        frame = session.read.parquet(table) if is_path else session.table(table)
        # Connect asks for the schema here, and only then learns that there is no such table
        made: Frame = nw.from_native(spark_times(frame))
    return made, f"table {table!r} of {words}"


def spark_times(frame: "SparkFrame") -> "SparkFrame":
    """A Spark table whose points in time read as the clock in UTC.

    Spark shows them in the zone of the session, which no expression over them can leave.
    """
    from pyspark.sql.types import TimestampType

    with engine_errors("a pyspark table"):
        moments = [f.name for f in frame.schema.fields if isinstance(f.dataType, TimestampType)]
        # the function that reads SQL, in the form the table's session understands
        session = "connect." if ".connect." in type(frame).__module__ else ""
        expression = importlib.import_module(f"pyspark.sql.{session}functions").expr
        for name in moments:
            column = "`" + name.replace("`", "``") + "`"
            seconds = f"CAST(unix_micros({column}) AS DECIMAL(24, 0)) / 1000000"
            clock = f"TIMESTAMP_NTZ'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, {seconds})"
            frame = frame.withColumn(name, expression(clock))
    return frame


def _reach(address: str) -> None:
    """Fail at once where nobody listens; Spark's own clients go on trying for minutes."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port or (15002 if parts.scheme == "sc" else 7077)
    except ValueError:
        # local[2] is no host
        return
    if host is not None and not host.startswith("local["):
        socket.create_connection((host, port), timeout=PATIENCE).close()


_OPENERS: dict[str, Callable[[str, str | None], tuple[Frame, str]]] = {
    "postgres": _postgres,
    "postgresql": _postgres,
    "duckdb": _duckdb,
    "spark": _spark,
    "sc": _spark_connect,
}


def _chosen(
    table: str | None, known: list[tuple[str, str]], called: str, usual: str
) -> tuple[str, str]:
    """The table as (schema, name), or an error that says what there is."""
    names = sorted(name if schema == usual else f"{schema}.{name}" for schema, name in known)
    there = f"There is: {listing(names, most=20)}." if names else "It shows no tables."
    if not table:
        raise TrailError(f"{called} is a database; say which table with table=…. {there}")
    for schema, name in known:
        if table in (f"{schema}.{name}", name if schema == usual else None):
            return schema, name
    raise TrailError(f"{called} has no table {table!r}.{did_you_mean(table, names)} {there}")


def _needed(module: str, extra: str, called: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise TrailError(
            f"{called} needs packages that are not installed: pip install 'equipoise[{extra}]'."
        ) from error


# --- From what a user has (a path, a frame, a relation) to a lazy frame and a name for it ---

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


def open_source(source: object, table: str | None = None) -> tuple[Frame, str]:
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


def _kind(source: object) -> str:
    return repr(str(source)) if isinstance(source, str | Path) else f"a {type(source).__name__}"


def _told_types(table: object) -> object:
    """A pandas table whose columns of Python objects have the type that the objects have.

    In pandas, truth values beside missing ones, and decimals, are mere objects.
    """
    if not nw.dependencies.is_pandas_dataframe(table):
        return table
    # names that are no text are refused later, with a message of their own
    objects = [
        n for n, kind in table.dtypes.items() if isinstance(n, str) and str(kind) == "object"
    ]
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


def _names(table: object) -> list[object]:
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


def _lazy(connection: "DuckDBPyConnection", relation: "DuckDBPyRelation") -> Frame:
    import duckdb

    if any("TIME ZONE" in str(kind) for kind in relation.types):
        # Points in time are grouped by on one clock; DuckDB without zones has no other anyway.
        with contextlib.suppress(duckdb.Error):
            connection.execute("SET TimeZone = 'UTC'")
    return nw.from_native(relation)


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
        _refuse_different(first, schemas[first].items(), other, schemas[other].items())


def _csv(files: list[str]) -> Frame:
    connection = new_duckdb()
    with engine_errors(_named(files)):
        headers = {file: [*zip(_header(connection, file), count())] for file in files}
        first, *others = files
        for other in others:
            _refuse_different(first, headers[first], other, headers[other])
        relation = _read_csv(connection, files)
        if relation.limit(1).count("*").fetchall()[0][0] == 0:
            raise TrailError(
                f"{_named(files)} has no rows. A CSV file needs a header line and rows."
            )
    return _lazy(connection, relation)


def _read_csv(connection: "DuckDBPyConnection", files: list[str]) -> "DuckDBPyRelation":
    # The whole file decides each column's type: a late "n/a" must not end an audit half-way.
    # A list of files may be given as well, which DuckDB's own types do not say.
    places: Any = [_literal(file) for file in files]
    read = functools.partial(connection.read_csv, places, sample_size=-1, header=True)
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


def _header(connection: "DuckDBPyConnection", file: str) -> list[str]:
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


def _refuse_different(
    first: str, one: Iterable[tuple[str, object]], second: str, two: Iterable[tuple[str, object]]
) -> None:
    """Refuse two files whose columns, each with its type or its place, are not the same."""
    names = {name for name, _ in {*one} ^ {*two}}
    if names:
        raise TrailError(
            f"The files do not share one schema: {Path(first).name} and {Path(second).name} differ "
            f"in {listing(sorted(names))}. Read them one by one, or rewrite them with one schema."
        )


def _literal(file: str) -> str:
    """A path in which an engine finds no wildcard."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in file)


def _refuse_repeated(names: Sequence[object], called: str) -> None:
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
