"""Talking to an engine: fetch a small table as arrays, and turn its errors into ours."""

import atexit
import functools
import importlib
import json
import os
import re
import socket
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

import narwhals as nw
import numpy as np
import numpy.typing as npt
from narwhals.typing import IntoSeries

from equipoise._files import note_input
from equipoise._validate import did_you_mean, known_name, listing
from equipoise.errors import EquipoiseError, TrailError

if TYPE_CHECKING:
    import duckdb
    from pyspark.sql import DataFrame as SparkFrame

# --- Passwords: taken from the environment, remembered so that no message shows them ---

#: What stands where a password was.
HIDDEN = "***"

_VARIABLE = re.compile(r"\$\{(\w+)\}")
# user:password@ of a URL; the password may hold any sign but a blank
_IN_URL = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s:/?#@]*:)([^\s'\"]*)@", re.IGNORECASE)
# the same where the address was mistyped: with one slash, or none
_MISTYPED = re.compile(r"((?<![\w.%+-])[\w.%+-]+:)(?!/)([^\s'\"]+)@(?=[\w\[$])")
# of Spark what stands alone before the @ is a token, and nobody's name
_TOKEN = re.compile(r"(\b(?:spark|sc)(?:\+\w+)?:/{1,2})([^\s:/?#@'\"]+)@", re.IGNORECASE)
_NAMES = r"[\w-]*(?:password|passwd|pwd|token|secret|api[-_]?key|authorization|credential)[\w-]*"
# name=value, name: value and "name": "value", quoted or not
_PARAMETER = re.compile(
    rf"(\b(?:{_NAMES}|sig|x-\w+-signature)['\"]?\s*(?:=|:(?!//))\s*(?:(?:basic|bearer)\s+)?)"
    r"(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\s&;,'\"]+)",
    re.IGNORECASE,
)
# what follows the @ of a URL: a host, perhaps a port, a path without @, and options
_AFTER_USER = re.compile(
    r"(?:\[[^\]@]*\]|[^\s@:/?#\[\]]*|\$\{\w+\})?(?::[\w${}]+)?(?:/[^@?#]*)?(?:\?[^=@]+=.*)?",
    re.DOTALL,
)

# scheme:/user:password@host, and what Spark is called with
_ONE_SLASH = re.compile(r"((?:[a-z][\w+.-]*:/+)?[\w.%+-]+:)(?!/)(.+)(@[^@/]+.*)", re.I | re.DOTALL)
_ALONE = re.compile(rf"{_TOKEN.pattern[:-1]}(@.*)", re.I | re.DOTALL)

# Engines quote what they were given in errors of their own, so what must not be shown is kept here.
_KNOWN: set[str] = set()


def expand(source: str) -> str:
    """Put the values of environment variables where ``${NAME}`` stands.

    >>> os.environ["EQUIPOISE_DOCTEST"] = "h"
    >>> expand("postgres://auditor@${EQUIPOISE_DOCTEST}/db")
    'postgres://auditor@h/db'
    """

    def value(found: "re.Match[str]") -> str:
        name = found.group(1)
        if name not in os.environ:
            raise TrailError(
                f"The source {without_password(source)!r} needs the environment variable {name}, "
                "which is not set."
            )
        return os.environ[name]

    return _VARIABLE.sub(value, source)


def remember(secret: str | None) -> None:
    """Keep a password out of every message from now on, in whatever form it is quoted."""
    if secret and secret != HIDDEN:
        plain = {secret, unquote(secret)}
        written = {quote(one, safe="") for one in plain} | {quote_plus(one) for one in plain}
        escaped = {form(one)[1:-1] for one in plain for form in (repr, json.dumps)}
        _KNOWN.update(plain | written | escaped)


def parted(address: str) -> tuple[str, str | None, str]:
    """A connection string as what stands before its password, the password, and the rest.

    The password may hold any sign: it ends at the first @ after which a host follows.

    >>> parted("postgres://auditor:p/w#@1@db/decisions")
    ('postgres://auditor:', 'p/w#@1', '@db/decisions')
    """
    mistyped = None if "://" in address else _ONE_SLASH.fullmatch(address)
    token = mistyped or _ALONE.fullmatch(address)
    if token is not None:
        return token[1], token[2], token[3]
    begin = address.find("://") + 3
    colon, at = address.find(":", begin), address.find("@", begin)
    if begin < 3 or not begin <= colon < at or "/" in address[begin:colon]:
        return address, None, ""
    while at >= 0:
        if _AFTER_USER.fullmatch(address, at + 1):
            return address[: colon + 1], address[colon + 1 : at], address[at:]
        at = address.find("@", at + 1)
    return address, None, ""


def without_password(source: str) -> str:
    """A source as it may be written down: with ``***`` for a password that stands in it."""
    before, password, rest = parted(source)
    told = password is None or password == "" or _VARIABLE.fullmatch(password)
    # by its form alone: what this process has seen before must not change how a plan reads
    return _by_form(before + (password or "" if told else HIDDEN) + rest)


def remember_url(url: str) -> None:
    """Keep the password of a connection string, if it has one, out of every message."""
    _, password, _ = parted(url)
    if password is not None:
        remember(expand(password))
        remember(password)


def scrub(text: str) -> str:
    """The text without passwords, those of connection strings and those that were used.

    >>> scrub("cannot reach postgres://auditor:hunter2@db/decisions?sslpassword=x")
    'cannot reach postgres://auditor:***@db/decisions?sslpassword=***'
    """
    # longest first: one password may be a part of another
    for secret in sorted(_KNOWN, key=len, reverse=True):
        # a short one would tear up ordinary words; the patterns below still catch it in a URL
        if len(secret) >= 4:
            text = text.replace(secret, HIDDEN)
    return _by_form(text)


def _by_form(text: str) -> str:
    for pattern in (_IN_URL, _MISTYPED, _TOKEN):
        text = pattern.sub(lambda found: f"{found.group(1)}{_hidden(found.group(2))}@", text)
    return _PARAMETER.sub(lambda found: f"{found.group(1)}{_hidden(found.group(2))}", text)


def _hidden(secret: str) -> str:
    # the name of an environment variable tells nothing, and whoever repeats the audit needs it
    bare = secret.strip("'\"")
    if not bare or bare == HIDDEN or _VARIABLE.fullmatch(bare):
        return secret
    quoting = secret[0] if len(secret) > 1 and secret[0] in "'\"" else ""
    return f"{quoting}{HIDDEN}{quoting}"


# --- Talking to an engine: fetch a small table as arrays, and turn its errors into ours ---

AnyArray = npt.NDArray[Any]
Frame = nw.LazyFrame[Any]

# DuckDB's types whose values NumPy holds without loss; it has none for dates, decimals and sums of
# whole numbers.
_SAME_IN_NUMPY = {"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DOUBLE", "VARCHAR"}
# The packages whose errors mean that the table, not the audit, is at fault.
_ENGINES = (
    "duckdb",
    "_duckdb",
    "polars",
    "pyarrow",
    "pandas",
    "pyspark",
    "py4j",
    "ibis",
    "narwhals",
    "psycopg",
    "sqlglot",
    "grpc",
    "sqlite3",
    "zlib",
    "gzip",
    "zipfile",
    "_csv",
    "python_calamine",
)


@contextmanager
def engine_errors(source: str, advice: str = "") -> Iterator[None]:
    """Turn an engine's exception into a `TrailError` that names the source, and says what to do.

    Numbers that overflow or do not exist are found in the sums, so numpy need not warn of them.
    """
    try:
        with np.errstate(all="ignore"):
            yield
    except (EquipoiseError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of polars is no Exception
        if not _is_engine_error(error):
            raise
        said = f"{source} could not be read: {_brief(error)}"
        if isinstance(error, RecursionError):
            said = f"{source} could not be read: more was asked at once than its engine takes in. "
            said += "Ask for fewer groups, ranges or conditions, or pass the table as a data frame."
        said += f"{'' if said.endswith('.') else '.'} {advice}" if advice else ""
        # a traceback shows the cause as well, so one that tells a password is left out
        cause = error if scrub(str(error)) == str(error) else None
        raise TrailError(said) from cause


def new_duckdb() -> "duckdb.DuckDBPyConnection":
    """A DuckDB connection in memory that keeps to itself.

    By itself it would draw progress bars on standard output, and fetch extensions from the
    internet for files that it cannot read.
    """
    import duckdb

    atexit.register(_forget_types)
    return _without_bar(
        duckdb.connect(
            ":memory:",
            config={"autoload_known_extensions": False, "autoinstall_known_extensions": False},
        )
    )


def _without_bar(connection: "duckdb.DuckDBPyConnection") -> "duckdb.DuckDBPyConnection":
    import duckdb

    # In a notebook without ipywidgets there is no bar, and DuckDB refuses even to switch it off.
    with suppress(duckdb.Error):
        connection.execute("SET enable_progress_bar = false")
    return connection


def _arrays_duckdb() -> "duckdb.DuckDBPyConnection":
    """A connection for arrays in memory; all of them are in one engine.

    To start an engine takes longer than to audit a small table. What is registered with one
    connection no other sees, and it goes with the connection.
    """
    # a process that was split off cannot use the engine of the other
    return _without_bar(_shared_duckdb(os.getpid()).cursor())


@functools.cache
def _shared_duckdb(process: int) -> "duckdb.DuckDBPyConnection":
    return new_duckdb()


def from_columns(columns: dict[str, AnyArray], source: str) -> Frame:
    """A table of arrays."""
    connection = _arrays_duckdb()
    with engine_errors(source):
        # any column name must do, also one that an engine would read as a number or a keyword
        plain = {f"column_{i}": values for i, values in enumerate(columns.values())}
        connection.register("arrays", plain)
        named = ", ".join(f"column_{i} AS {quoted(name)}" for i, name in enumerate(columns))
        return nw.from_native(connection.sql(f"SELECT {named} FROM arrays"))


def _forget_types() -> None:
    """Empty what narwhals remembers: DuckDB 2 complains at exit of types that are still in use."""
    atexit.unregister(_forget_types)
    _shared_duckdb.cache_clear()
    for name, module in [*sys.modules.items()]:
        if name.startswith("narwhals."):
            for thing in [*vars(module).values()]:
                if isinstance(thing, functools._lru_cache_wrapper):
                    thing.cache_clear()


#: Where the text of every query goes, while somebody asks for it.
_ASKED: list[list[str]] = []


@contextmanager
def queries_sent() -> Iterator[list[str]]:
    """The text of every query that is sent meanwhile, without passwords."""
    _ASKED.append([])
    try:
        yield _ASKED[-1]
    finally:
        _ASKED.pop()


def _query_text(frame: Frame) -> str:
    """A query as its engine writes it: SQL, or the plan of an engine without SQL."""
    native, made = frame.to_native(), frame.implementation
    if made.is_duckdb():
        return str(native.sql_query())
    if made.is_ibis():
        return str(native.compile())
    if made.is_spark_like():
        return str(native._explain_string(extended=True)) if _is_connected(native) else str(
            native._jdf.queryExecution().toString()
        )  # fmt: skip
    return str(native.explain()) if made.is_polars() else f"a plan of {made}"


def _is_connected(native: Any) -> bool:
    return "connect" in type(native).__module__


def fetch(frame: Frame, source: str) -> dict[str, AnyArray]:
    """Run a query and return its columns as arrays.

    Numbers of which none is missing come as an array of numbers, any other column as one of plain
    objects, None where a value is missing. DuckDB and Spark answer without Arrow, so that neither
    pyarrow nor pandas is required.
    """
    with engine_errors(source):
        for asked in _ASKED:
            asked.append(scrub(_query_text(frame)))
        native = frame.to_native()
        if frame.implementation.is_duckdb():
            if all(str(kind) in _SAME_IN_NUMPY for kind in native.types):
                return {name: unmasked(column) for name, column in native.fetchnumpy().items()}
            return _columns(frame.columns, native.fetchall())
        if frame.implementation.is_spark_like():
            return _columns(frame.columns, native.collect())
        if frame.implementation.is_ibis() and native.get_backend().name == "postgres":
            return _columns(frame.columns, _postgres_rows(frame))
        table = frame.collect()
        return {name: _from_series(table[name]) for name in table.columns}


def unmasked(column: AnyArray) -> AnyArray:
    """A column of DuckDB, which hides what is missing under a mask."""
    gone = np.ma.getmaskarray(column)
    if not gone.any():
        return np.asarray(column)
    made = np.asarray(column).astype(object)
    made[gone] = None
    return made


def _from_series(column: nw.Series[IntoSeries]) -> AnyArray:
    if column.dtype in (nw.Float64, nw.Int64, nw.Boolean) and not column.null_count():
        return column.to_numpy()
    return objects(column.to_list())


def number_of_levels(frame: Frame, value: nw.Expr, source: str) -> int:
    """How many different values an expression has, missing counted as one."""
    with engine_errors(source):
        # not by the engine's own count of distinct values, which Ibis cannot ask PostgreSQL for
        levels = frame.select(level=value).unique().select(nw.len().alias("levels"))
    return int(fetch(levels, source)["levels"][0])


def _postgres_rows(frame: Frame) -> list[tuple[object, ...]]:
    """The rows as PostgreSQL gives them.

    A sum of whole numbers has type numeric there, which Ibis cannot turn into what it expects.
    """
    native = frame.to_native()
    with native.get_backend().raw_sql(native.compile()) as cursor:
        return [*cursor.fetchall()]


def objects(values: Sequence[object]) -> AnyArray:
    """An array of values as they are; numpy would make numbers or further dimensions of them."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def quoted(name: str) -> str:
    """A name as SQL writes it, whatever signs it holds.

    >>> quoted("days late")
    '"days late"'
    """
    return '"' + name.replace('"', '""') + '"'


def _columns(names: list[str], rows: list[tuple[object, ...]]) -> dict[str, AnyArray]:
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    return {name: objects(column) for name, column in zip(names, columns, strict=True)}


def _brief(error: BaseException) -> str:
    """The beginning of an engine's message, which may run over many lines."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("The search space")]
    text = scrub(" ".join(lines[:3])) or type(error).__name__
    return text if len(text) <= 400 else text[:399] + "…"


def _is_engine_error(error: BaseException) -> bool:
    modules = {cls.__module__.split(".")[0] for cls in type(error).__mro__}
    known = bool(modules & {*_ENGINES, "pyo3_runtime"})
    return known or isinstance(error, OSError) or _from_engine(error)


def _from_engine(error: BaseException) -> bool:
    """Whether a plain exception, such as a TypeError, came out of an engine's own code."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    inside = trace.tb_frame.f_globals.get("__name__", "") if trace is not None else ""
    return inside.split(".")[0] in _ENGINES


# --- Tables on servers and in databases, by connection string or by file ---

#: Endings of database files, of DuckDB's and of SQLite's.
DATABASE = (".duckdb", ".ddb", ".db", ".sqlite", ".sqlite3", ".db3")
#: Seconds to wait for a server that does not answer.
PATIENCE = 10


def is_connection(source: str) -> bool:
    """Whether a source is a connection string or a database, which hold tables by name."""
    return "://" in source or source.lower().endswith(DATABASE)


def database_file(source: str) -> tuple[Path, bool] | None:
    """The file of a database and whether it is SQLite's; None if the source is no such file."""
    address = expand(source)
    if "://" in address and address.split("://", 1)[0].lower() not in ("duckdb", "sqlite"):
        return None
    path = Path(address.split("://", 1)[-1])
    note_input(path)
    if not path.is_file():
        raise TrailError(
            f"There is no database {str(path)!r}. An absolute path has three slashes, as in "
            "duckdb:///data/decisions.duckdb."
        )
    with engine_errors(path.name), path.open("rb") as stream:
        beginning = stream.read(16)
    # not by its name: both kinds end in .db, and DuckDB would look for an extension to read SQLite
    if beginning.startswith(b"SQLite format 3"):
        return path, True
    if beginning[8:12] == b"DUCK":
        return path, False
    raise TrailError(
        f"{path.name} could not be read: it is neither a database of DuckDB nor one of SQLite. "
        "Give a table in a file the ending of its kind, such as .csv or .parquet."
    )


def open_connection(source: str, table: str | None) -> tuple[Frame, str]:
    """A lazy frame over a table of a database, and words that name it without the password."""
    remember_url(source)
    scheme = source.split("://", 1)[0].lower() if "://" in source else "duckdb"
    opener = _OPENERS[known_name("Kind of source", scheme, _OPENERS, TrailError)]
    # where a password is wanted apart, what a variable holds is taken as it is
    return opener(source if opener is _postgres else expand(source), table)


def _duckdb(address: str, table: str | None) -> tuple[Frame, str]:
    path = Path(address.split("://", 1)[-1])
    with engine_errors(path.name):
        # in an instance of its own, whose settings are no business of a caller's connection
        connection = new_duckdb()
        # views may call their database by its name, which is the file's
        name = path.stem if path.stem not in ("memory", "system", "temp") else "source"
        place = str(path).replace("'", "''")
        connection.execute(f"ATTACH '{place}' AS {quoted(name)} (READ_ONLY)")
        connection.execute(f"USE {quoted(name)}")
        known = connection.execute(
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_catalog = ?",
            [name],
        ).fetchall()
        chosen = chosen_table(table, known, path.name, "main")
        connection.execute("SET TimeZone = 'UTC'")
        # A view in a database from elsewhere may name any file, or an extension that opens others;
        # from here on only the attached file itself can be read, and nothing can be set again.
        connection.execute("SET allow_community_extensions = false")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        relation = connection.table(".".join(quoted(part) for part in chosen))
    return nw.from_native(relation), f"table {table or chosen[1]!r} of {path.name}"


def _postgres(address: str, table: str | None) -> tuple[Frame, str]:
    ibis = needed("ibis", "postgres", "PostgreSQL")
    words = without_password(expand("".join(p or "" for p in _hidden_parts(address))))
    with engine_errors(words):
        connection = ibis.postgres.connect(**_postgres_options(address))
        # the server is told when the trail is gone
        weakref.finalize(connection, connection.con.close)
        known = connection.raw_sql(
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_schema NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        schema, name = chosen_table(table, known, words, "public")
        found = connection.table(name, database=schema)
    return nw.from_native(found), f"table {table or name!r} of {words}"


def _hidden_parts(address: str) -> tuple[str, str | None, str]:
    before, password, rest = parted(address)
    return before, None if password is None else HIDDEN, rest


def _postgres_options(address: str) -> dict[str, str | int | None]:
    _, password, _ = parted(address)
    # the password is taken out before the rest is read as a URL, in which it could not stand
    parts = urlsplit(expand("".join(part or "" for part in _hidden_parts(address))))
    further = {key: unquote(value) for key, value in parse_qsl(parts.query)}
    for name, value in further.items():
        if "password" in name.lower():
            remember(value)
    try:
        port = parts.port
    except ValueError as error:
        raise TrailError(f"The port of {without_password(address)!r} is no number.") from error
    options: dict[str, str | int | None] = {
        "host": parts.hostname,
        "port": port,
        "user": unquote(parts.username) if parts.username else None,
        # a plan quoted in evidence has lost its password; the environment may hold it
        "password": None if password in (None, HIDDEN) else _in_the_clear(str(password)),
        "database": unquote(parts.path.lstrip("/")) or None,
        "connect_timeout": PATIENCE,
    }
    return {name: value for name, value in {**options, **further}.items() if value is not None}


def _in_the_clear(password: str) -> str:
    """A password as it is: what stands in a URL is decoded, what a variable holds is not."""
    pieces = re.split(r"(\$\{\w+\})", password)
    return "".join(expand(p) if _VARIABLE.fullmatch(p) else unquote(p) for p in pieces)


def _spark(address: str, table: str | None) -> tuple[Frame, str]:
    needed("pyspark", "spark", "Spark")
    from pyspark.sql import SparkSession

    master = address.split("://", 1)[1]
    # spark://local[2] means this machine, as Spark itself writes it
    master = master if master.startswith("local") else address
    return _session_table(SparkSession.builder.master(master).getOrCreate, address, table)


def _spark_connect(address: str, table: str | None) -> tuple[Frame, str]:
    needed("pyspark", "spark", "Spark Connect")
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


@contextmanager
def one_moment(frame: Frame, source: str) -> Iterator[None]:
    """All queries inside see the same rows, or there is an error that says they did not.

    PostgreSQL gives a snapshot. What the rows were is looked at before and after all the same: a
    query that fails ends the snapshot, and Spark has none. (Of files, digests are compared.)
    Inside another such moment this is no moment of its own.
    """
    native = frame.to_native()
    postgres = frame.implementation.is_ibis() and native.get_backend().name == "postgres"
    connection = native.get_backend().con if postgres else None
    held = threading.get_ident(), source if connection is None else id(connection)
    if frame.implementation.is_duckdb() or held in _HELD:
        yield
        return
    with engine_errors(source):
        if connection is not None:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        before = _row_marks(frame)
    _HELD.append(held)
    try:
        yield
        with engine_errors(source):
            after = _row_marks(frame)
    finally:
        _HELD.remove(held)
        if connection is not None:
            with suppress(Exception):
                connection.rollback()
    if before != after:
        raise TrailError(changed_words(source))


#: Sources and connections that are held still, by thread.
_HELD: list[tuple[int, str | int]] = []


def changed_words(source: str) -> str:
    """What is said of rows that did not stay the same during an audit."""
    return (
        f"{source} changed while it was audited, so that audits saw different rows. Run again when "
        "nothing writes to it, or audit a copy."
    )


def _row_marks(frame: Frame) -> object:
    """How many rows there are, and a sum over digests of all of them, in whatever order."""
    native = frame.to_native()
    if frame.implementation.is_spark_like():
        # Spark takes no digest of a map or a variant, and no audit can ask for one
        usable = [name for name, kind in native.dtypes if not re.search("map<|variant", kind)]
        names = ", ".join("`" + name.replace("`", "``") + "`" for name in usable) or "0"
        marks = f"sum(CAST(xxhash64({names}) AS DECIMAL(38, 0)))"
        return [tuple(row) for row in native.selectExpr("count(*)", marks).collect()]
    if frame.implementation.is_ibis() and native.get_backend().name == "postgres":
        rows = f"SELECT count(*), sum(hashtextextended(t::text, 0)) FROM ({native.compile()}) t"
        with native.get_backend().raw_sql(rows) as cursor:
            return cursor.fetchall()
    return None


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


def chosen_table(
    table: str | None, known: list[tuple[str, str]], called: str, usual: str
) -> tuple[str, str]:
    """The table as (schema, name), or an error that says what there is."""
    names = sorted(name if schema == usual else f"{schema}.{name}" for schema, name in known)
    there = f"There is: {listing(names, most=20)}." if names else "It shows no tables."
    if not table and len(known) == 1:
        return known[0]
    if not table:
        raise TrailError(f"{called} is a database; say which table with table=…. {there}")
    for schema, name in known:
        if table in (f"{schema}.{name}", name if schema == usual else None):
            return schema, name
    raise TrailError(f"{called} has no table {table!r}.{did_you_mean(table, names)} {there}")


def needed(module: str, extra: str, called: str) -> ModuleType:
    """A package that only some need; an error says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise TrailError(
            f"{called} needs packages that are not installed: pip install 'equipoise[{extra}]'."
        ) from error
