"""From what a user has (a path, a frame, a relation) to a lazy frame and a name for it."""

import csv
import glob
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import narwhals as nw

from equipoise._validate import listing
from equipoise.errors import TrailError
from equipoise.trail.engine import engine_errors
from equipoise.trail.trail import Frame

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


def open_source(source: Any) -> tuple[Frame, str]:
    """A lazy frame over ``source`` and words that name it."""
    if isinstance(source, str | Path):
        return _open_path(str(source))
    _refuse_repeated(getattr(source, "columns", ()), "The table")
    try:
        frame = nw.from_native(source)
    except TypeError as error:
        raise TrailError(
            f"A trail cannot be read from {type(source).__name__}. Pass a path, a pandas, Polars "
            "or PyArrow table, a DuckDB relation, a PySpark DataFrame or an Ibis table."
        ) from error
    if not isinstance(frame, nw.DataFrame | nw.LazyFrame):
        raise TrailError(f"A trail needs a whole table; got {type(source).__name__}.")
    return frame.lazy(), f"a {frame.implementation.name.lower()} table"


def _open_path(path: str) -> tuple[Frame, str]:
    files = _files(path)
    suffixes = {_suffix(file) for file in files}
    if len(suffixes) > 1:
        raise TrailError(f"{path!r} holds files of different kinds: {listing(sorted(suffixes))}.")
    opened = _parquet(files) if suffixes <= set(PARQUET) else _csv(files)
    return opened, f"{Path(path).name or path}"


def _files(path: str) -> list[str]:
    place = Path(path)
    if place.is_dir():
        found = sorted(str(p) for p in place.rglob("*") if _suffix(str(p)) in PARQUET + CSV)
        what = f"The folder {path!r} holds no CSV or Parquet file."
    elif place.is_file():
        found, what = [path], ""
    else:
        found = sorted(glob.glob(path, recursive=True))
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


def _parquet(files: list[str]) -> Frame:
    import duckdb

    connection = duckdb.connect()
    with engine_errors(_named(files)):
        columns = connection.execute(
            "SELECT file_name, name, type, logical_type FROM parquet_schema(?) "
            "WHERE num_children IS NULL OR num_children = 0",
            [files],
        ).fetchall()
        _same_schema(columns)
        relation = connection.from_parquet(files)
    return nw.from_native(relation)


def _same_schema(columns: list[tuple[str, str, str, str]]) -> None:
    schemas: dict[str, dict[str, tuple[str, str]]] = {}
    for file, name, physical, logical in columns:
        _refuse_repeated([*schemas.get(file, {}), name], Path(file).name)
        schemas.setdefault(file, {})[name] = (physical, logical)
    first, *others = schemas
    for other in others:
        differing = {
            name
            for name in schemas[first].keys() | schemas[other].keys()
            if schemas[first].get(name) != schemas[other].get(name)
        }
        if differing:
            raise TrailError(
                f"The Parquet files do not share one schema: {Path(first).name} and "
                f"{Path(other).name} differ in {listing(sorted(differing))}. "
                "Read them one by one, or rewrite them with one schema."
            )


def _csv(files: list[str]) -> Frame:
    import duckdb

    connection = duckdb.connect()
    with engine_errors(_named(files)):
        for file in files:
            _check_csv(connection, file)
        # The whole file decides each column's type: a late "n/a" must not end an audit half-way.
        relation = connection.read_csv(files, sample_size=-1, header=True)  # type: ignore[arg-type]
    return nw.from_native(relation)


def _check_csv(connection: Any, file: str) -> None:
    if Path(file).stat().st_size == 0:
        raise TrailError(f"{Path(file).name} is empty. A CSV file needs a header line and rows.")
    sniffed = connection.execute("SELECT Delimiter, Quote FROM sniff_csv(?)", [file]).fetchall()
    if file.lower().endswith(".gz"):
        return
    delimiter, quoting = sniffed[0]
    quote = quoting if len(quoting or "") == 1 and quoting != "\0" else '"'
    with open(file, newline="", encoding="utf-8", errors="replace") as lines:
        header = next(csv.reader(lines, delimiter=delimiter, quotechar=quote), [])
    _refuse_repeated(header, Path(file).name)


def _refuse_repeated(names: Iterable[Any], called: str) -> None:
    repeated = sorted(str(name) for name, times in Counter(names).items() if times > 1)
    if repeated:
        raise TrailError(
            f"{called} has more than one column named {listing(repeated)}. "
            "Rename them so that each column can be told apart."
        )


def _named(files: list[str]) -> str:
    return Path(files[0]).name if len(files) == 1 else f"{Path(files[0]).name} and others"
