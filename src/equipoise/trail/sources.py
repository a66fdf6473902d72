"""From what a user has (a path, a frame, a relation) to a lazy frame and a name for it."""

import csv
import datetime
import glob
import hashlib
import json
import sqlite3
import tempfile
import zipfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import narwhals as nw

from equipoise._files import note_input
from equipoise._validate import did_you_mean, listing, short
from equipoise.errors import OptionError, TrailError
from equipoise.trail.delimited import (
    PREAMBLE,
    bounded,
    called_in_messages,
    fits,
    literal_path,
    open_delimited,
    refuse_bombs,
    refuse_different,
    refuse_repeated,
    skipped_note,
)
from equipoise.trail.engine import (
    DATABASE,
    Frame,
    chosen_table,
    database_file,
    engine_errors,
    expand,
    is_connection,
    needed,
    new_duckdb,
    open_connection,
    quoted,
    spark_times,
    without_password,
)
from equipoise.trail.fields import WORDS, Reading, any_kind, decide, typed

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

# --- Files of other kinds than CSV: Parquet, JSON, Arrow, workbooks, SQLite and zip ---

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".tsv", ".tab", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
JSON = (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz")
ARROW = (".feather", ".arrow", ".ipc")
WORKBOOK = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
#: Every ending that can be read, databases aside.
KNOWN = (*PARQUET, *CSV, *JSON, *ARROW, *WORKBOOK, ".zip", ".eval")
#: Endings of files that are read together, as a folder or by a glob. A folder's text files
#: are seldom tables.
TOGETHER = (*PARQUET, *(e for e in CSV if not e.startswith(".txt")), *JSON[:2])
#: What can stand in a zip file.
INSIDE = (*PARQUET, *CSV, *JSON)

Read = tuple[Frame, tuple[str, ...]]
NamedRead = tuple[Frame, str, tuple[str, ...]]


class WrittenText(str):
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


#: What is said where an engine's own words say nothing to whoever made the file.
_DAMAGED = "It may be damaged, or of another kind than its name says: save it again, or as CSV."

# --- Parquet ---


def open_parquet(files: list[str], place: Path, *, temporary: bool = False) -> Frame:
    """A lazy frame over Parquet files of one schema; a temporary one is kept in memory."""
    connection = new_duckdb()
    with engine_errors(called_in_messages(files), _DAMAGED):
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
    refuse_bombs(files)
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


def read_arrow(file: str) -> object:
    """A table from a file of Feather or Arrow IPC."""
    arrow = needed("pyarrow", "arrow", "A file of Feather or Arrow")
    feather = needed("pyarrow.feather", "arrow", "A file of Feather or Arrow")
    with engine_errors(Path(file).name, _DAMAGED):
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
    with engine_errors(path.name, _DAMAGED):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for part in archive.namelist():
                    with archive.open(part) as inside:
                        deque(bounded(inside, str(path)), maxlen=0)
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
        return WrittenText(value.isoformat(sep=" "))
    if isinstance(value, datetime.date | datetime.time):
        return WrittenText(value.isoformat())
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
    return isinstance(value, str) and not isinstance(value, WrittenText) and value not in WORDS


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
                    for piece in bounded(inside, file):
                        out.write(piece)
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


# --- What a file held: its digest, and whether a plan that came from elsewhere may open it ---


def input_digest(source: str) -> dict[str, str] | None:
    """Name and SHA-256 of the file behind a source; None if it is a server.

    Of several files it is the digest of the lines that ``sha256sum`` prints for them.
    """
    files = _local_files(expand(source))
    if files is None:
        return None
    with engine_errors(Path(files[0]).name):
        lines = sorted(f"{_sha256(file)}  {Path(file).name}\n" for file in files)
    alone = len(lines) == 1
    digest = lines[0].split()[0] if alone else hashlib.sha256("".join(lines).encode()).hexdigest()
    return {"name": Path(files[0]).name if alone else Path(source).name, "sha256": digest}


def _local_files(source: str) -> list[str] | None:
    if not is_connection(source):
        return files_of(source)
    found = database_file(source)
    return None if found is None else [str(found[0])]


def _sha256(file: str) -> str:
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def refuse_unsafe(source: str, folder: Path, allow: Sequence[str]) -> None:
    """Refuse what a plan written by somebody else must not reach without being allowed to.

    Inside the plan's folder files may be read; everything else has to be named in ``allow``, word
    for word, or stand in a folder named there.
    """
    if source in allow:
        return
    why = f"The plan's source {without_password(source)!r}"
    how = (
        "A plan or evidence from elsewhere is not trusted with that. If it is meant, pass --allow "
        "with the source as the plan writes it (or a folder), or the rows themselves with --data."
    )
    if "${" in source:
        raise TrailError(f"{why} asks for an environment variable. {how}")
    scheme, _, rest = source.partition("://")
    if rest and scheme.lower() not in ("duckdb", "sqlite"):
        raise TrailError(f"{why} would open a connection. {how}")
    # a path is followed through every link before it is judged
    roots = [folder.resolve(), *(Path(one).resolve() for one in allow if "://" not in one)]
    place = Path(rest) if rest else folder / source
    reached = _found(str(place)) if _inside(place, roots) else []
    for file in [str(place), *reached]:
        if not _inside(Path(file), roots):
            raise TrailError(f"{why} lies outside the plan's folder. {how}")


def _found(path: str) -> list[str]:
    # what is not there is told when it is opened
    with suppress(TrailError, OSError, ValueError):
        return files_of(path)
    return []


def _inside(file: Path, roots: Sequence[Path]) -> bool:
    try:
        place = file.resolve()
    except (OSError, ValueError, RuntimeError):
        return False
    return any(place.is_relative_to(root) for root in roots)


# --- From what a user has (a path, a frame, a relation) to a lazy frame and a name for it ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A table that was found."""

    frame: Frame
    """Its rows, on the engine that holds them."""
    words: str
    """What it was read from."""
    notes: tuple[str, ...] = ()
    """What was decided in reading it."""
    cluster: str | None = None
    """Column whose equal values mark rows that are not independent, where the kind of file says."""


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
        files = files_of(path)
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
    if suffix == ".eval" or (suffix == ".jsonl" and all(map(_is_harness, files))):
        return _open_evaluation(files, reading)
    if suffix in JSON:
        frame, notes = open_json(files, reading)
        return Opened(frame=frame, words="", notes=notes)
    if suffix in PARQUET:
        return Opened(frame=open_parquet(files, place), words="")
    return replace(_open_frame(read_arrow(files[0])), words="")


def _is_harness(file: str) -> bool:
    """Whether JSON lines may be a log of the LM Evaluation Harness: by name, then by content."""
    if not Path(file).name.startswith("samples_"):
        return False
    from equipoise.trail.evaluations import is_harness

    return is_harness(file)


def _open_evaluation(files: list[str], reading: Reading) -> Opened:
    """The answers in a log of an evaluation; those to one item belong together."""
    # few tables are logs
    from equipoise.trail.evaluations import harness_rows, inspect_rows, repeated

    with engine_errors(Path(files[0]).name), tempfile.TemporaryDirectory() as folder:
        rows, told = (
            inspect_rows(files[0]) if suffix_of(files[0]) == ".eval" else (harness_rows(files), ())
        )
        made = Path(folder) / "samples.jsonl"
        with made.open("w", encoding="utf-8") as out:
            out.writelines(json.dumps(row) + "\n" for row in rows)
        frame, more = open_json([str(made)], reading, temporary=True)
    many = repeated(rows)
    said = ("Answers to one item are not independent: items are clusters.",) if many else ()
    once = ("pass@k stands in the first row of each item.",) if _passes(rows) else ()
    notes = tuple(f"{one[0].upper()}{one[1:]}." for one in told)
    # what is wrong with the log is part of what findings say they are made of
    return Opened(
        frame=frame,
        words=f"{Path(files[0]).name} ({'; '.join(told)})" if told else "",
        notes=(*notes, *said, *once, *more),
        cluster="item" if many else None,
    )


def _passes(rows: Sequence[Mapping[str, object]]) -> bool:
    return any(".pass@" in name for name in rows[0])


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


def files_of(path: str) -> list[str]:
    """The files that a path, a folder or a glob means."""
    place = Path(path)
    if place.is_dir():
        every = (str(p) for p in place.rglob("*") if suffix_of(str(p)) in TOGETHER)
        # a pipe would wait for somebody to write
        found = sorted(file for file in every if Path(file).is_file())
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
    for file in found:
        note_input(file)
    return found
