"""From what a user has (a path, a frame, a relation) to a lazy frame and a name for it."""

import glob
from dataclasses import dataclass, replace
from pathlib import Path

import narwhals as nw

from equipoise._validate import listing, short
from equipoise.errors import OptionError, TrailError
from equipoise.trail.databases import (
    DATABASE,
    database_file,
    is_connection,
    open_connection,
    spark_times,
)
from equipoise.trail.delimited import open_delimited
from equipoise.trail.engine import Frame, engine_errors, expand
from equipoise.trail.fields import Reading
from equipoise.trail.files import (
    CSV,
    JSON,
    KNOWN,
    PARQUET,
    TOGETHER,
    WORKBOOK,
    open_json,
    open_parquet,
    open_sqlite,
    open_workbook,
    read_arrow,
    suffix_of,
    unpacked,
)
from equipoise.trail.schemas import refuse_repeated


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A table that was found."""

    frame: Frame
    """Its rows, on the engine that holds them."""
    words: str
    """What it was read from."""
    notes: tuple[str, ...] = ()
    """What was decided in reading it."""


def has_tables(source: str) -> bool:
    """Whether a source may hold several tables by name: a database, a workbook, a zip file."""
    return is_connection(source) or source.lower().endswith((*WORKBOOK, ".zip"))


def open_source(source: object, table: str | None = None, reading: Reading | None = None) -> Opened:
    """A lazy frame over ``source``, words that name it, and what was decided on the way."""
    path = str(source) if isinstance(source, str | Path) else None
    if table is not None and (path is None or not has_tables(path)):
        raise TrailError(
            f"table={table!r} names a table of a database; {_kind(source)} holds only one. "
            "Leave it out, or pass a connection string such as postgres://user@host/database."
        )
    if path is not None and is_connection(path):
        return _open_database(path, table, reading or Reading())
    if path is not None:
        return _open_path(_not_empty(expand(path)), table, reading or Reading())
    _refuse_reading(reading, _kind(source))
    return _open_frame(source)


def _open_database(source: str, table: str | None, reading: Reading) -> Opened:
    found = database_file(source)
    if found is not None and found[1]:
        frame, words, notes = open_sqlite(found[0], table, reading)
        return Opened(frame=frame, words=words, notes=notes)
    _refuse_reading(reading, "a database")
    frame, words = open_connection(source, table)
    return Opened(frame=frame, words=words)


def _refuse_reading(reading: Reading | None, called: str) -> None:
    for name in ("encoding", "missing"):
        if reading is not None and getattr(reading, name) is not None:
            raise OptionError(
                f"{name}= says how text is to be read, such as a CSV file; {called} has types of "
                "its own. Leave it out."
            )


def _open_frame(source: object) -> Opened:
    refuse_repeated(_names(source), "The table")
    frame = nw.from_native(_told_types(source), pass_through=True)
    if isinstance(frame, nw.LazyFrame) and frame.implementation.is_spark_like():
        frame = nw.from_native(spark_times(frame.to_native()))
    if not isinstance(frame, nw.DataFrame | nw.LazyFrame):
        raise TrailError(
            f"A trail cannot be read from {type(source).__name__}. Pass a path, a pandas, Polars "
            "or PyArrow table, a DuckDB relation, a PySpark DataFrame or an Ibis table."
        )
    return Opened(frame=frame.lazy(), words=f"a {frame.implementation.name.lower()} table")


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


def _open_path(path: str, table: str | None, reading: Reading) -> Opened:
    with engine_errors(f"The path {short(path)!r}"):
        files = _files(path)
    suffixes = {suffix_of(file) for file in files}
    if len(suffixes) > 1:
        raise TrailError(
            f"{path!r} holds files of different kinds: {listing(sorted(suffixes))}. "
            "Pass a glob that matches one kind."
        )
    unknown = suffixes - {*KNOWN}
    if unknown:
        raise TrailError(
            f"{path!r} is of no kind that can be read ({listing(sorted(unknown))}). "
            f"Pass a file that ends in {', '.join((*KNOWN, *DATABASE))}."
        )
    if len(files) > 1 and not suffixes <= {*TOGETHER}:
        raise TrailError(
            f"{path!r} matches {len(files):,} files; of {listing(suffixes)}, one can be read at a "
            f"time. Several files at once may end in {', '.join(TOGETHER)}."
        )
    opened = _open_files(files, Path(path), table, reading)
    return replace(opened, words=opened.words or Path(path).name or path)


def _open_files(files: list[str], place: Path, table: str | None, reading: Reading) -> Opened:
    """The table in files of one kind; ``words`` is empty where the file's own name says enough."""
    suffix = suffix_of(files[0])
    if suffix == ".zip":
        return _open_zip(files[0], table, reading)
    if suffix in WORKBOOK:
        frame, words, notes = open_workbook(Path(files[0]), table, reading)
        return Opened(frame=frame, words=words, notes=notes)
    if suffix in CSV:
        frame, notes = open_delimited(files, reading)
        return Opened(frame=frame, words="", notes=notes)
    _refuse_reading(reading, f"a file that ends in {suffix}")
    if suffix in JSON:
        frame, notes = open_json(files, reading)
        return Opened(frame=frame, words="", notes=notes)
    if suffix in PARQUET:
        return Opened(frame=open_parquet(files, place), words="")
    return replace(_open_frame(read_arrow(files[0])), words="")


def _open_zip(file: str, table: str | None, reading: Reading) -> Opened:
    with unpacked(file, table) as (inside, name):
        suffix = suffix_of(inside)
        if suffix in CSV:
            frame, notes = open_delimited([inside], reading, temporary=True)
        else:
            _refuse_reading(reading, f"a file that ends in {suffix}")
            if suffix in JSON:
                frame, notes = open_json([inside], reading, temporary=True)
            else:
                frame, notes = open_parquet([inside], Path(inside), temporary=True), ()
    return Opened(frame=frame, words=f"{name} in {Path(file).name}", notes=notes)


def _files(path: str) -> list[str]:
    place = Path(path)
    if place.is_dir():
        found = sorted(str(p) for p in place.rglob("*") if suffix_of(str(p)) in TOGETHER)
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
