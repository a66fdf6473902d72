"""Files of other kinds than CSV: Parquet, JSON, Arrow, workbooks, SQLite and zip."""

import csv
import datetime
import shutil
import sqlite3
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import narwhals as nw

from equipoise._validate import did_you_mean, listing
from equipoise.errors import OptionError, TrailError
from equipoise.trail.databases import chosen_table, needed
from equipoise.trail.delimited import PREAMBLE, fits, open_delimited, skipped_note
from equipoise.trail.engine import Frame, engine_errors, new_duckdb, quoted
from equipoise.trail.fields import WORDS, Reading, any_kind, decide, typed
from equipoise.trail.schemas import (
    called_in_messages,
    literal_path,
    refuse_different,
    refuse_repeated,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".tsv", ".tab", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
JSON = (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz")
ARROW = (".feather", ".arrow", ".ipc")
WORKBOOK = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
#: Every ending that can be read, databases aside.
KNOWN = (*PARQUET, *CSV, *JSON, *ARROW, *WORKBOOK, ".zip")
#: Endings of files that are read together, as a folder or by a glob. A folder's text files
#: are seldom tables.
TOGETHER = (*PARQUET, *(e for e in CSV if not e.startswith(".txt")), *JSON[:2])
#: What can stand in a zip file.
INSIDE = (*PARQUET, *CSV, *JSON)

Read = tuple[Frame, tuple[str, ...]]
NamedRead = tuple[Frame, str, tuple[str, ...]]


class Written(str):
    """A value that was no text, and is written as one."""

    __slots__ = ()


#: What is written into a field.
Text = str | int | float | None


def suffix_of(file: str) -> str:
    """The ending that says what a file is."""
    name = Path(file).name.lower()
    # the longest first: .csv.gz ends in .gz too
    for known in sorted(KNOWN, key=len, reverse=True):
        if name.endswith(known):
            return known
    return Path(name).suffix or "no suffix"


# --- Parquet ---


def open_parquet(files: list[str], place: Path, *, temporary: bool = False) -> Frame:
    """A lazy frame over Parquet files of one schema; a temporary one is kept in memory."""
    connection = new_duckdb()
    with engine_errors(called_in_messages(files)):
        columns = connection.execute(
            "SELECT file_name, name, type, logical_type FROM parquet_schema(?) "
            "WHERE num_children IS NULL OR num_children = 0",
            [[literal_path(file) for file in files]],
        ).fetchall()
        _same_schema(columns)
        relation = connection.from_parquet(
            [literal_path(file) for file in files], hive_partitioning=_in_partitions(files, place)
        )
        return _lazy(connection, _kept(connection, relation) if temporary else relation)


def _in_partitions(files: list[str], place: Path) -> bool:
    """Whether a folder is cut into folders such as ``year=2020``, whose names are values."""
    return place.is_dir() and all(
        "=" in Path(file).relative_to(place).parts[0] and Path(file).parent != place
        for file in files
    )


def _same_schema(columns: list[tuple[str, str, str, str]]) -> None:
    schemas: dict[str, dict[str, tuple[str, str]]] = {}
    for file, name, physical, logical in columns:
        refuse_repeated([*schemas.get(file, {}), name], Path(file).name)
        schemas.setdefault(file, {})[name] = (physical, logical)
    first, *others = schemas
    for other in others:
        refuse_different(first, schemas[first].items(), other, schemas[other].items())


def _lazy(connection: "DuckDBPyConnection", relation: "DuckDBPyRelation") -> Frame:
    import duckdb

    if any("TIME ZONE" in str(kind) for kind in relation.types):
        # Points in time are grouped by on one clock; DuckDB without zones has no other anyway.
        with suppress(duckdb.Error):
            connection.execute("SET TimeZone = 'UTC'")
    return nw.from_native(relation)


def _kept(connection: "DuckDBPyConnection", relation: "DuckDBPyRelation") -> "DuckDBPyRelation":
    relation.create("kept")
    return connection.table("kept")


# --- JSON: one object in each line, or a list of them ---


def open_json(files: list[str], reading: Reading, *, temporary: bool = False) -> Read:
    """A lazy frame over files of JSON objects, and what was decided in reading them."""
    connection = new_duckdb()
    lines = "newline_delimited" if suffix_of(files[0]) not in (".json", ".json.gz") else "auto"
    with engine_errors(called_in_messages(files)):
        connection.execute("SET TimeZone = 'UTC'")
        relation = connection.sql(
            f"FROM read_json(?, format = '{lines}', sample_size = -1)",
            params=[[literal_path(file) for file in files]],
        )
        refuse_repeated(relation.columns, called_in_messages(files))
        if relation.columns == ["json"]:
            raise TrailError(
                f"{called_in_messages(files)} holds no table: each line, or each entry of a list, "
                "must be an object with the columns as its keys."
            )
        if temporary or fits(connection, files):
            relation = _kept(connection, relation)
        return _without_mixtures(connection, relation, reading)


def _without_mixtures(
    connection: "DuckDBPyConnection", relation: "DuckDBPyRelation", reading: Reading
) -> Read:
    """Columns that hold numbers beside words are text; they may be numbers beside "NA"."""
    named = [*zip(relation.columns, map(str, relation.types), strict=True)]
    mixed = [name for name, kind in named if kind == "JSON"]
    words = {name for name, kind in named if kind == "VARCHAR"}
    plain = [
        f"{quoted(n)} ->> '$' AS {quoted(n)}" if n in mixed else quoted(n) for n in relation.columns
    ]
    relation.create_view("entries")
    connection.execute(f"CREATE VIEW fields AS SELECT {', '.join(plain)} FROM entries")
    columns = [any_kind(name, numbers=name in mixed) for name in (*mixed, *words)]
    decided = decide(connection, "fields", columns, reading)
    query = typed("fields", relation.columns, decided.columns)
    return nw.from_native(connection.sql(query)), decided.notes


# --- Arrow ---


def read_arrow(file: str) -> Any:
    """A table from a file of Feather or Arrow IPC."""
    arrow = needed("pyarrow", "arrow", "A file of Feather or Arrow")
    feather = needed("pyarrow.feather", "arrow", "A file of Feather or Arrow")
    with engine_errors(Path(file).name):
        try:
            return feather.read_table(file)
        except arrow.ArrowInvalid:
            # a stream, which has no table of contents at its end
            with arrow.OSFile(file, "rb") as stream:
                return arrow.ipc.open_stream(stream).read_all()


# --- Workbooks and SQLite: their values written as text, and read with the types of text ---


def open_workbook(path: Path, table: str | None, reading: Reading) -> NamedRead:
    """The table on a sheet of a workbook; one that is alone need not be named."""
    calamine = needed("python_calamine", "excel", f"A workbook ({path.suffix})")
    with engine_errors(path.name):
        book = calamine.CalamineWorkbook.from_path(str(path))
        sheets = {n: book.get_sheet_by_name(n).to_python() for n in book.sheet_names}
    filled = {name: rows for name, rows in sheets.items() if rows}
    sheet = _one_of(table, [*filled], path.name, "sheet")
    names, rows, skipped = _below_title([[plain_text(v) for v in row] for row in filled[sheet]])
    words = path.name if len(filled) == 1 else f"sheet {sheet!r} of {path.name}"
    frame, notes = _through_text(names, rows, words, reading)
    return frame, words, (*skipped_note(skipped), *notes)


def open_sqlite(path: Path, table: str | None, reading: Reading) -> NamedRead:
    """A table of an SQLite database; one that is alone need not be named."""
    address = f"file:{quote(str(path.resolve()))}?mode=ro"
    with engine_errors(path.name), closing(sqlite3.connect(address, uri=True)) as connection:
        # a text that is not UTF-8 spoils its own signs only
        connection.text_factory = lambda text: text.decode("utf-8", "replace")
        found = connection.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
            "AND name NOT LIKE 'sqlite_%'"
        )
        _, name = chosen_table(table, [("main", name) for (name,) in found], path.name, "main")
        rows = connection.execute(f"SELECT * FROM {quoted(name)}")
        names = [column[0] for column in rows.description]
        words = f"table {name!r} of {path.name}"
        made = ([plain_text(value) for value in row] for row in rows)
        return _named(words, _through_text(names, made, words, reading))


def _named(words: str, read: Read) -> NamedRead:
    return read[0], words, read[1]


def _below_title(rows: list[list[Text]]) -> tuple[list[str], list[list[Text]], int]:
    """The header, the rows below it, and how many lines stand above it."""
    filled = [i for i, row in enumerate(rows[:PREAMBLE]) if all(row)]
    # a title fills a part of its line only; a header may lack the name of its first column
    first = next((i for i, row in enumerate(rows) if any(row)), 0)
    at = filled[0] if filled and not rows[first][-1] else first
    header = [str(name or "") or f"column{i}" for i, name in enumerate(rows[at])]
    return header, rows[at + 1 :], at


def plain_text(value: object) -> Text:
    """A value of a cell as a CSV file would have it, None where there is none.

    >>> plain_text(3.0), plain_text(True), plain_text("a"), plain_text("")
    (3, 'true', 'a', None)
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, datetime.datetime):
        return Written(value.isoformat(sep=" "))
    if isinstance(value, datetime.date | datetime.time):
        return Written(value.isoformat())
    if isinstance(value, bytes):
        raise TrailError(
            f"A field holds {len(value):,} bytes that are no text, which no audit can use. Make a "
            "view without that column, and name it with table=…."
        )
    return (
        value
        if isinstance(value, int | float)
        else (str(value) if value is not None else None) or None
    )


def _through_text(
    names: Sequence[str], rows: Iterable[Sequence[Text]], called: str, reading: Reading
) -> Read:
    if reading.encoding is not None:
        raise OptionError(f"encoding= is for CSV files; {called} says itself. Leave it out.")
    refuse_repeated(names, called)
    words: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.csv"
        with file.open("w", encoding="utf-8", newline="") as stream:
            out = csv.writer(stream)
            out.writerow(names)
            for row in rows:
                if any(value is not None for value in row):
                    out.writerow(row)
                    words.update(n for n, v in zip(names, row, strict=True) if _is_word(v))
        # what was text stays text, also where it looks like a number, as a postcode does
        return open_delimited(
            [str(file)], reading, words=frozenset(words), called=called, ours=True
        )


def _is_word(value: Text) -> bool:
    return isinstance(value, str) and not isinstance(value, Written) and value not in WORDS


# --- zip ---


@contextmanager
def unpacked(file: str, table: str | None) -> Iterator[tuple[str, str]]:
    """The one table in a zip file, or that called ``table``: its place for now, and its name."""
    called = Path(file).name
    with engine_errors(called), tempfile.TemporaryDirectory() as folder:
        try:
            with zipfile.ZipFile(file) as archive:
                # a Mac adds a folder of its own notes
                names = [n for n in archive.namelist() if not n.startswith("__MACOSX/")]
                tables = [n for n in names if suffix_of(n) in INSIDE]
                if not tables:
                    raise TrailError(
                        f"{called} holds no table: {listing(names)}. A table in a zip file may end "
                        f"in {', '.join(INSIDE)}."
                    )
                name = _one_of(table, tables, called, "table")
                made = Path(folder) / f"table{suffix_of(name)}"
                with archive.open(name) as inside, made.open("wb") as out:
                    shutil.copyfileobj(inside, out)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            # the last is how a password is asked for
            raise TrailError(f"{called} could not be read: {error}.") from error
        yield str(made), name


def _one_of(wanted: str | None, names: list[str], called: str, what: str) -> str:
    there = f"There is: {listing(names, most=20)}."
    if wanted is None and len(names) == 1:
        return names[0]
    if not names:
        raise TrailError(f"{called} has no rows on any sheet. A table needs a header and rows.")
    if wanted is None:
        raise TrailError(f"{called} holds several {what}s; say which with table=…. {there}")
    if wanted not in names:
        raise TrailError(f"{called} has no {what} {wanted!r}.{did_you_mean(wanted, names)} {there}")
    return wanted
