"""Tables on servers and in databases, by connection string or by file."""

import importlib
import socket
import weakref
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

import narwhals as nw

from equipoise._validate import did_you_mean, known_name, listing
from equipoise.errors import TrailError
from equipoise.trail.engine import (
    HIDDEN,
    Frame,
    engine_errors,
    expand,
    new_duckdb,
    quoted,
    remember,
    remember_url,
    scrub,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame as SparkFrame

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
    address = expand(source)
    remember_url(address)
    scheme = address.split("://", 1)[0].lower() if "://" in address else "duckdb"
    opener = _OPENERS[known_name("Kind of source", scheme, _OPENERS, TrailError)]
    return opener(address, table)


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
        relation = connection.table(".".join(quoted(part) for part in chosen))
    return nw.from_native(relation), f"table {table or chosen[1]!r} of {path.name}"


def _postgres(address: str, table: str | None) -> tuple[Frame, str]:
    ibis = needed("ibis", "postgres", "PostgreSQL")
    words = scrub(address)
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
