"""Talking to an engine: fetch a small table as arrays, and turn its errors into ours."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from equipoise.errors import EquipoiseError, TrailError
from equipoise.trail.secrets import scrub

AnyArray = npt.NDArray[Any]

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
)


@contextmanager
def engine_errors(source: str) -> Iterator[None]:
    """Turn an engine's exception into a `TrailError` that names the source.

    Numbers that overflow or do not exist are found in the sums, so numpy need not warn of them.
    """
    try:
        with np.errstate(all="ignore"):
            yield
    except EquipoiseError:
        raise
    except Exception as error:
        if not _is_engine_error(error):
            raise
        said = f"{source} could not be read: {_brief(error)}"
        # a traceback shows the cause as well, so one that tells a password is left out
        cause = error if scrub(str(error)) == str(error) else None
        raise TrailError(said) from cause


def new_duckdb(path: str = ":memory:", **options: Any) -> Any:
    """A DuckDB connection that keeps to itself: it would draw progress bars on standard output."""
    import duckdb

    connection = duckdb.connect(path, **options)
    connection.execute("SET enable_progress_bar = false")
    return connection


def fetch(frame: nw.LazyFrame[Any], source: str) -> dict[str, AnyArray]:
    """Run a query and return its columns as arrays, missing values as None.

    DuckDB and Spark answer without Arrow, so that neither pyarrow nor pandas is required.
    """
    with engine_errors(source):
        native = frame.to_native()
        if frame.implementation.is_duckdb():
            return _columns(frame.columns, native.fetchall())
        if frame.implementation.is_spark_like():
            return _columns(frame.columns, native.collect())
        if frame.implementation.is_ibis() and native.get_backend().name == "postgres":
            return _columns(frame.columns, _postgres_rows(native))
        table = frame.collect()
        return {name: objects(table[name].to_list()) for name in table.columns}


def number_of_levels(frame: nw.LazyFrame[Any], value: nw.Expr, source: str) -> int:
    """How many different values an expression has, missing counted as one."""
    with engine_errors(source):
        # not by the engine's own count of distinct values, which Ibis cannot ask PostgreSQL for
        levels = frame.select(level=value).unique().select(nw.len().alias("levels"))
    return int(fetch(levels, source)["levels"][0])


def _postgres_rows(native: Any) -> list[Any]:
    """The rows as PostgreSQL gives them.

    A sum of whole numbers has type numeric there, which Ibis cannot turn into what it expects.
    """
    backend = native.get_backend()
    with backend.raw_sql(native.compile()) as cursor:
        rows: list[Any] = cursor.fetchall()
    return rows


def objects(values: Sequence[Any]) -> AnyArray:
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


def _columns(names: list[str], rows: list[Any]) -> dict[str, AnyArray]:
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
    return bool(modules & set(_ENGINES)) or isinstance(error, OSError) or _from_engine(error)


def _from_engine(error: BaseException) -> bool:
    """Whether a plain exception, such as a TypeError, came out of an engine's own code."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    inside = trace.tb_frame.f_globals.get("__name__", "") if trace is not None else ""
    return inside.split(".")[0] in _ENGINES
