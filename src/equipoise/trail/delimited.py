"""Tables written as text: how the file is written, and its rows with types.

Types come from a sample, and the file is then read once with them. If a later field does not fit,
the file is read as text and every field decides.

A file is kept in DuckDB's memory if its text takes no more than an eighth of it; a larger one stays
where it is, and each query reads it again.
"""

import codecs
import csv
import gzip
import io
import os
import tempfile
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import narwhals as nw

from equipoise._validate import listing
from equipoise.errors import OptionError, TrailError
from equipoise.trail.engine import Frame, engine_errors, new_duckdb, quoted
from equipoise.trail.fields import (
    COMMA,
    DAY,
    SAMPLE,
    TEXT,
    TRUTH,
    WHOLE,
    WORDS,
    Column,
    Kind,
    Reading,
    cast_kind,
    decide,
    sql_list,
    sql_text,
    typed,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# --- What tables must have to be read: columns that can be told apart, one schema for all files ---


def refuse_repeated(names: Sequence[object], called: str) -> None:
    """Refuse a table in which two columns have one name."""
    # Engines of the SQL kind do not tell "Age" from "age".
    times = Counter(str(name).lower() for name in names)
    repeated = sorted({str(name) for name in names if times[str(name).lower()] > 1})
    if repeated:
        raise TrailError(
            f"{called} has more than one column named {listing(repeated)}. "
            "Rename them so that each column can be told apart."
        )


def refuse_different(
    first: str, one: Iterable[tuple[str, object]], second: str, two: Iterable[tuple[str, object]]
) -> None:
    """Refuse two files whose columns, each with its type or its place, are not the same."""
    names = {name for name, _ in {*one} ^ {*two}}
    if names:
        raise TrailError(
            f"The files do not share one schema: {Path(first).name} and {Path(second).name} differ "
            f"in {listing(sorted(names))}. Read them one by one, or rewrite them with one schema."
        )


def literal_path(file: str) -> str:
    """A path in which an engine finds no wildcard.

    >>> literal_path("what?.csv")
    'what[?].csv'
    """
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in file)


def called_in_messages(files: list[str]) -> str:
    """Files as messages call them.

    >>> called_in_messages(["data/a.csv", "data/b.csv"])
    'a.csv and others'
    """
    return Path(files[0]).name if len(files) == 1 else f"{Path(files[0]).name} and others"


# --- Packed files: none may unpack to more than is stated ---

#: How many times its size a packed file may unpack to, unless `EQUIPOISE_UNPACK` says more.
TIMES = 100
#: What any packed file may unpack to.
ALWAYS = 100_000_000


def bounded(stream: IO[bytes], file: str) -> Iterator[bytes]:
    """What a packed file holds, piece by piece, as long as it is not too much."""
    times, done = _times(), 0
    most = max(ALWAYS, times * Path(file).stat().st_size)
    while piece := stream.read(1 << 20):
        done += len(piece)
        if done > most:
            raise TrailError(
                f"{Path(file).name} unpacks to more than {most / 1e6:,.0f} MB, over {times:,} "
                "times its size, as files do that are made to fill a machine. If it is right, "
                f"set EQUIPOISE_UNPACK={10 * times} to let it be more."
            )
        yield piece


def _times() -> int:
    said = os.environ.get("EQUIPOISE_UNPACK", str(TIMES))
    if not said.isdecimal() or not 1 <= int(said) <= 10**9:
        raise OptionError(
            "EQUIPOISE_UNPACK is how many times its size a packed file may unpack to, a whole "
            f"number such as 1000; got {said!r}."
        )
    return int(said)


def refuse_bombs(files: Iterable[str]) -> None:
    """Refuse gzip files that are damaged, or unpack to too much, before an engine reads them."""
    for file in files:
        if file.lower().endswith(".gz"):
            _unpack_once(file)


def _unpack_once(file: str) -> None:
    with engine_errors(Path(file).name):
        try:
            with byte_stream(file) as stream:
                deque(bounded(stream, file), maxlen=0)
        except EOFError as error:
            raise TrailError(
                f"{Path(file).name} could not be read: its end is missing. Copy it again."
            ) from error


# --- Text files that are not UTF-8: what they are written in, and the same text as UTF-8 ---

#: Bytes that are looked at first; a sign that is not UTF-8 may still come later.
BEGINNING = 1 << 20

# The longer marks first: that of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ADVICE = "Pass encoding=…, such as 'cp1252', 'latin-1' or 'utf-16', or save it as UTF-8."


def known_encoding(name: object) -> str:
    """The name of an encoding as Python has it; anything else is refused.

    >>> known_encoding("Windows-1252")
    'cp1252'
    """
    try:
        # the lookup knows ways to pack bytes as well, which are no encodings of text
        "".encode(str(name))
        return codecs.lookup(str(name)).name
    except (LookupError, ValueError, TypeError) as error:
        raise OptionError(
            f"encoding={name!r} is not known. There is 'utf-8', 'utf-16', 'cp1252', 'latin-1' and "
            "whatever else Python can decode."
        ) from error


def encoding_of(file: str, *, throughout: bool = False) -> str:
    """What a text file is written in, by its first bytes, or by all of them.

    A mark at the beginning decides, else zeros beside every other byte (UTF-16), else whether it is
    UTF-8. What is neither is taken for cp1252, which Windows writes in Western Europe and America,
    or for Latin-1 where it has bytes that cp1252 does not.
    """
    with byte_stream(file) as stream:
        beginning = stream.read(BEGINNING)
        marked = _marked(beginning)
        if marked is not None:
            return marked
        if b"\0" in beginning:
            return _wide(beginning, file)
        decoder, piece = codecs.getincrementaldecoder("utf-8")(), beginning
        try:
            while piece:
                decoder.decode(piece)
                piece = stream.read(BEGINNING) if throughout else b""
            # a sign cut in two at the end of a sample is not at the end of the file
            decoder.decode(b"", final=throughout or len(beginning) < BEGINNING)
        except UnicodeDecodeError:
            # bytes that cp1252 leaves open
            return "latin-1" if {*piece} & {*b"\x81\x8d\x8f\x90\x9d"} else "cp1252"
    return "utf-8"


def _wide(beginning: bytes, file: str) -> str:
    """UTF-16 without a mark has a zero beside most letters; other zeros are no text."""
    half = len(beginning) // 2
    even, odd = beginning[0::2].count(0), beginning[1::2].count(0)
    if half and max(even, odd) > 0.3 * half and min(even, odd) < 0.05 * half:
        return "utf-16-be" if even > odd else "utf-16-le"
    raise TrailError(
        f"{Path(file).name} could not be read: it holds bytes of zero, which no CSV file in UTF-8 "
        f"has; it may be of another kind than its name says. {_ADVICE}"
    )


def write_utf8(file: str, encoding: str, made: Path) -> None:
    """Write the text of a file again as UTF-8."""
    try:
        with (
            byte_stream(file) as stream,
            codecs.getreader(encoding)(stream) as text,
            made.open("w", encoding="utf-8", newline="") as out,
        ):
            while piece := text.read(BEGINNING):
                out.write(piece)
    except UnicodeError as error:
        raise TrailError(
            f"{Path(file).name} could not be read: it is not written in {encoding} ({error}). "
            f"{_ADVICE}"
        ) from error


def byte_stream(file: str) -> IO[bytes]:
    """The bytes of a file, unpacked if gzip packed them."""
    if file.lower().endswith(".gz"):
        return cast(IO[bytes], gzip.open(file, "rb"))
    return open(file, "rb")


# --- Tables written as text: how the file is written, and its rows with types ---

#: The part of DuckDB's memory that a file's text may take to be kept there.
KEPT = 1 / 8
#: Bytes of text that a byte of a gzip file holds, about.
PACKED = 8
#: Lines among which the header is looked for.
PREAMBLE = 50


#: Columns that whoever reads a file is going to ask for; None where that is not known.
_WANTED: ContextVar[frozenset[str] | None] = ContextVar("wanted", default=None)


#: What columns are usually called that say how many people a line stands for.
COUNT_NAMES = ("count", "n", "people", "applicants", "persons", "cases", "freq", "frequency")


@contextmanager
def only(columns: frozenset[str] | None) -> Iterator[None]:
    """Read nothing of a text file but these columns, if it has them all.

    Where one is missing, the others are read too, so that a message can name them.
    """
    token = _WANTED.set(columns)
    try:
        yield
    finally:
        _WANTED.reset(token)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How a file is written."""

    delimiter: str
    quote: str
    escape: str
    comment: str
    skip: int
    dates: str | None
    times: str | None
    columns: tuple[tuple[str, str], ...]
    """Names and the types that a sample has."""

    def layout(self) -> tuple[object, ...]:
        """What files that are read together must share."""
        return self.delimiter, self.quote, self.comment, self.skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Which files, and what is known about them."""

    files: list[str]
    reading: Reading
    called: str
    words: frozenset[str]
    temporary: bool
    ours: bool


def open_delimited(
    files: list[str],
    reading: Reading,
    *,
    called: str | None = None,
    words: frozenset[str] = frozenset(),
    temporary: bool = False,
    ours: bool = False,
) -> tuple[Frame, tuple[str, ...]]:
    """A lazy frame over text files of one schema, and what was decided in reading them.

    ``words`` names columns that are known to hold text, so that no number is made of them;
    ``temporary`` files are gone afterwards, and so always kept in memory, as are those that we
    wrote ourselves (``ours``), whose form is known.
    """
    import duckdb

    refuse_bombs(files)
    asked = _Asked(
        files=files,
        reading=reading,
        called=called or called_in_messages(files),
        words=words,
        temporary=temporary or ours,
        ours=ours,
    )
    # what is written again as UTF-8 is kept in memory, and need not outlive this
    with engine_errors(asked.called), tempfile.TemporaryDirectory() as folder:
        connection = new_duckdb()
        kept = asked.temporary or fits(connection, files)
        # nobody sees a sign of another encoding late in a file that is not read to its end here
        encodings = _encodings(asked, throughout=not kept)
        try:
            return _open(connection, asked, encodings, kept, Path(folder))
        except duckdb.Error:
            late = _encodings(asked, throughout=True)
            if late == encodings:
                _refuse_encoding(asked)
                raise
            return _open(new_duckdb(), asked, late, kept, Path(folder))


def _encodings(asked: _Asked, throughout: bool) -> list[str]:
    given = "utf-8" if asked.ours else asked.reading.encoding
    if given is not None and not asked.ours:
        _refuse_contradicted(asked.files, given)
    return [given or encoding_of(file, throughout=throughout) for file in asked.files]


def _refuse_contradicted(files: Sequence[str], given: str) -> None:
    """Refuse an encoding that the mark at the beginning of a file says is another."""
    for file in files:
        with byte_stream(file) as stream:
            marked = _marked(stream.read(4))
        # UTF-16 is named with and without the order of its bytes
        if marked is not None and not given.startswith(marked):
            raise TrailError(
                f"{Path(file).name} begins with the mark of {marked}, and is not written in "
                f"{given}. Pass encoding={marked!r}, or leave encoding= out."
            )


def _marked(beginning: bytes) -> str | None:
    return next((name for mark, name in _MARKS if beginning.startswith(mark)), None)


def _refuse_encoding(asked: _Asked) -> None:
    """Say so where a file is not in the encoding that the caller named."""
    for file in asked.files if asked.reading.encoding == "utf-8" else ():
        if (found := encoding_of(file, throughout=True)) != "utf-8":
            raise TrailError(
                f"{Path(file).name} could not be read: it is not written in utf-8. It may be "
                f"{found}. Pass encoding={found!r}, or leave encoding= out."
            )


def _open(
    connection: "DuckDBPyConnection", asked: _Asked, encodings: list[str], kept: bool, folder: Path
) -> tuple[Frame, tuple[str, ...]]:
    # points in time without a zone are meant in UTC, and shown so
    connection.execute("SET TimeZone = 'UTC'")
    texts = [_as_utf8(*pair, folder) for pair in zip(asked.files, encodings, count(), strict=False)]
    named = zip(asked.files, texts, strict=True)
    form = _shared({file: _form(connection, text, file, asked) for file, text in named})
    table = _Table(
        connection=connection,
        files=texts,
        form=form,
        asked=asked,
        kept=kept or texts != asked.files,
    )
    frame, notes = table.opened()
    return frame, (*_encoding_notes(asked, encodings), *skipped_note(form.skip), *notes)


def _as_utf8(file: str, encoding: str, number: int, folder: Path) -> str:
    if Path(file).stat().st_size == 0:
        raise TrailError(f"{Path(file).name} is empty. A CSV file needs a header line and rows.")
    if encoding in ("utf-8", "utf-8-sig"):
        return file
    made = folder / f"{number}.csv"
    write_utf8(file, encoding, made)
    return str(made)


def fits(connection: "DuckDBPyConnection", files: Sequence[str]) -> bool:
    """Whether the files' text is small beside the memory that DuckDB may use."""
    said = connection.execute("SELECT current_setting('memory_limit')").fetchall()[0][0]
    number, unit = str(said).split()
    room: float = float(number) * 1024 ** ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB").index(unit)
    packed = [PACKED if file.lower().endswith(".gz") else 1 for file in files]
    size = sum(Path(f).stat().st_size * p for f, p in zip(files, packed, strict=True))
    return bool(size <= KEPT * room)


# --- How a file is written: delimiter, quotation marks, header ---


def _form(connection: "DuckDBPyConnection", text: str, file: str, asked: _Asked) -> Form:
    known = "delim = ',', quote = '\"', escape = '\"', skip = 0" if asked.ours else ""
    form = _sniffed(connection, text, asked.reading, known)
    header = _header(text, form)
    padded = len(header) > 1 and not header[-1].strip() and not asked.ours
    later = _below_padding(text, form) if padded else None
    if later is not None:
        form = _sniffed(connection, text, asked.reading, f"skip = {later}")
        header = _header(text, form)
    elif form.skip:
        _refuse_ragged(_lines(text, form), form.skip, Path(file).name)
    if not header:
        raise TrailError(f"{Path(file).name} is empty. A CSV file needs a header line and rows.")
    _refuse_rows(header, Path(file).name)
    refuse_repeated(header, Path(file).name)
    if not asked.ours and len(header) == 1 and any(sign in header[0] for sign in ",;|\t"):
        raise TrailError(
            f"{Path(file).name} could not be read: its first line {header[0]!r} could not be cut "
            f"into columns. {_uneven(text, header[0])}"
        )
    return form


def _uneven(text: str, header: str) -> str:
    """The first line that has other fields than the header, if there is one near the beginning."""
    sign = max(",;|\t", key=header.count)
    with (
        byte_stream(text) as stream,
        io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="") as lines,
    ):
        rows = csv.reader(lines, delimiter=sign)
        first = next((len(row) for row in rows if row), 0)
        for row in islice(rows, SAMPLE):
            if row and len(row) != first:
                fields = f"{len(row):,} field{'' if len(row) == 1 else 's'}"
                return (
                    f"Line {rows.line_num:,} has {fields} where the first has "
                    f"{first}. A field with the delimiter in it needs quotation marks."
                )
    return "A quotation mark may be left open, or lines may differ in length."


def _sniffed(connection: "DuckDBPyConnection", text: str, reading: Reading, known: str) -> Form:
    further = f", {known}" if known else ""
    found = connection.execute(
        "SELECT Delimiter, Quote, Escape, Comment, SkipRows, DateFormat, TimestampFormat, Columns "
        f"FROM sniff_csv(?, header = true, nullstr = {sql_list(_nothing(reading))}{further})",
        [literal_path(text)],
    ).fetchall()[0]
    delimiter, quote, escape, comment, skipped, dates, times, columns = found
    # a sample without quotation marks does not say that there are none
    quote = _sign(quote) or '"'
    return Form(
        delimiter=delimiter,
        quote=quote,
        escape=_sign(escape) or quote,
        comment=_sign(comment),
        skip=skipped,
        dates=dates,
        times=times,
        columns=tuple((column["name"], column["type"]) for column in columns),
    )


def _sign(said: str | None) -> str:
    # DuckDB says "(empty)" for none
    return said if said is not None and len(said) == 1 and said != "\0" else ""


def _nothing(reading: Reading) -> tuple[str, ...]:
    """What a sample's types do not depend on."""
    return ("", *(WORDS if reading.missing is None else reading.missing))


def _lines(text: str, form: Form) -> list[list[str]]:
    """The first lines, cut into fields; an empty one where a line is blank."""
    with (
        byte_stream(text) as stream,
        io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="") as lines,
    ):
        rows = csv.reader(lines, delimiter=form.delimiter, quotechar=form.quote)
        return [*islice(rows, form.skip + PREAMBLE)]


def _header(text: str, form: Form) -> list[str]:
    """The names as they stand there: an engine would make them unique."""
    lines = _lines(text, form)[form.skip :]
    return next((line for line in lines if line), [])


def _below_padding(text: str, form: Form) -> int | None:
    """The line of the header under a title that was padded with delimiters, as Excel writes it."""
    lines = _lines(text, form)
    whole = (i for i, line in enumerate(lines) if len(line) > 1 and all(x.strip() for x in line))
    return next((i for i in whole if i > form.skip and len(lines[i]) == len(form.columns)), None)


def _refuse_ragged(lines: list[list[str]], skip: int, called: str) -> None:
    """Refuse lines of different length that only look like a title above a table.

    A title is shorter than the header, and a header has no numbers.
    """
    title, header = lines[:skip], next((line for line in lines[skip:] if line), [])
    if any(map(_is_number, header)) or any(len(line) >= len(header) for line in title):
        lengths = sorted({len(line) for line in (*title, header) if line})
        raise TrailError(
            f"{called} could not be read: its lines have different numbers of fields "
            f"({', '.join(map(str, lengths))}). A field with the delimiter in it needs quotation "
            "marks."
        )


def _refuse_rows(header: list[str], called: str) -> None:
    """Refuse a first line whose names repeat and are numbers: it is a row."""
    times = Counter(header)
    if any(times[name] > 1 and _is_number(name) for name in header):
        raise TrailError(
            f"The first line of {called} seems to be a row, not the names of columns: "
            f"{listing(header)}. Write a line with the names above it."
        )


def _is_number(name: str) -> bool:
    return name.strip().lstrip("+-").replace(".", "", 1).isdigit()


def _shared(forms: dict[str, Form]) -> Form:
    """The form of files that are read together; they must have the same columns in one order."""
    (first, form), *others = forms.items()
    for other, its in others:
        names, its_names = ([n for n, _ in f.columns] for f in (form, its))
        refuse_different(first, zip(names, count()), other, zip(its_names, count()))
        if form.layout() != its.layout():
            raise TrailError(
                f"{Path(first).name} and {Path(other).name} differ in how they are written "
                "(delimiter, quotation marks or lines before the header). Read them one by one."
            )
    return form


def _encoding_notes(asked: _Asked, encodings: list[str]) -> list[str]:
    if asked.reading.encoding is not None:
        return []
    return [
        f"{Path(file).name} is not UTF-8 and was read as {encoding}. If names look wrong, name the "
        "encoding."
        for file, encoding in zip(asked.files, encodings, strict=True)
        if encoding != "utf-8"
    ]


def skipped_note(lines: int) -> list[str]:
    """What is said of lines before the header."""
    if not lines:
        return []
    said = "1 line before the header was" if lines == 1 else f"{lines} lines before the header were"
    return [f"{said} skipped."]


# --- The rows, with the types that they have ---


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """Files of one form, on their way to a table with types."""

    connection: "DuckDBPyConnection"
    files: Sequence[str]
    form: Form
    asked: _Asked
    kept: bool

    def opened(self) -> tuple[Frame, tuple[str, ...]]:
        """The rows with their types, and what was decided about them."""
        chosen = self._chosen()
        columns = [
            _column(*named, self.form, self.asked.words)
            for named in self.form.columns
            if named[0] in chosen
        ]
        source, sure = self._read(columns)
        if not self.connection.execute(f"SELECT 1 FROM {source} LIMIT 1").fetchall():
            raise TrailError(
                f"{self.asked.called} has no rows. A CSV file needs a header line and rows."
            )
        decided = decide(
            self.connection,
            source,
            [column for column in columns if column.name not in sure],
            self.asked.reading,
            comma=self.form.delimiter != ",",
            words=self.asked.words,
        )
        if not self.kept:
            query = typed(source, chosen, decided.columns)
            return nw.from_native(self.connection.sql(query)), decided.notes
        for column in decided.columns:
            self._change_type(column, column.kind.sql)
        return nw.from_native(self.connection.table(source)), decided.notes

    def _chosen(self) -> list[str]:
        """The columns that are read, in the order of the file."""
        every, wanted = [name for name, _ in self.form.columns], _WANTED.get()
        whole = wanted is None or self.asked.ours or not wanted <= {*every}
        # counts of people are missed where nobody names them
        named = {*(wanted or ()), *(name for name in every if name.lower() in COUNT_NAMES)}
        return every if whole else [name for name in every if name in named]

    def _read(self, columns: list[Column]) -> tuple[str, set[str]]:
        """SQL for the rows, and the columns that already have their type."""
        import duckdb

        text = dict.fromkeys((name for name, _ in self.form.columns), "VARCHAR")
        if not self.kept:
            return self._reader(text), set()
        sure = [column for column in columns if column.kind.reader and column.kind != TEXT]
        try:
            self._load({**text, **{column.name: column.kind.reader for column in sure}})
            exact = self._are_exact([column for column in sure if column.kind.exact])
        except duckdb.ConversionException:
            exact = False
        if exact:
            for column in sure:
                if column.kind.exact:
                    self._change_type(column, "{x}")
            return "fields", {column.name for column in sure}
        # a field beyond the sample is of another type: now every field is looked at
        self._load(text)
        return "fields", set()

    def _load(self, types: dict[str, str]) -> None:
        chosen = ", ".join(map(quoted, self._chosen()))
        self.connection.execute(
            f"CREATE OR REPLACE TABLE fields AS SELECT {chosen} FROM {self._reader(types)}"
        )

    def _are_exact(self, columns: list[Column]) -> bool:
        tests = [column.kind.exact.format(x=quoted(column.name)) for column in columns]
        said = ", ".join(["count(*)", *(f"bool_and({test})" for test in tests)])
        # nothing, which is neither true nor false, is said of a column without any value
        return False not in self.connection.execute(f"SELECT {said} FROM fields").fetchall()[0][1:]

    def _change_type(self, column: Column, sql: str) -> None:
        name = quoted(column.name)
        made = f"CAST({sql.format(x=name)} AS {column.kind.type})"
        self.connection.execute(
            f"ALTER TABLE fields ALTER {name} SET DATA TYPE {column.kind.type} USING {made}"
        )

    def _reader(self, types: dict[str, str]) -> str:
        form, given = self.form, self.asked.reading.missing or ()
        columns = ", ".join(f"{sql_text(name)}: '{kind}'" for name, kind in types.items())
        options = {
            "auto_detect": "false",
            "header": "true",
            "skip": str(form.skip),
            "delim": sql_text(form.delimiter),
            "quote": sql_text(form.quote),
            "escape": sql_text(form.escape),
            "nullstr": sql_list(("", *given)),
            "columns": f"{{{columns}}}",
        }
        if form.comment:
            options["comment"] = sql_text(form.comment)
        if form.dates:
            options["dateformat"] = sql_text(form.dates)
        if form.times:
            options["timestampformat"] = sql_text(form.times)
        said = ", ".join(f"{name} = {value}" for name, value in options.items())
        return f"read_csv({sql_list([literal_path(file) for file in self.files])}, {said})"


def _column(name: str, kind: str, form: Form, words: frozenset[str]) -> Column:
    kinds: list[Kind] = []
    if name in words and kind in ("BIGINT", "DOUBLE"):
        kind = "VARCHAR"
    if kind == "BOOLEAN":
        # DuckDB takes yes/no and t/f for truth values too, and with them goes the reader's wording
        kinds = [TRUTH]
    elif kind == "DATE":
        kinds = [*_dates("DATE", form.dates), cast_kind("TIMESTAMP")]
        # another form of times would be asked of the dates as well
        kinds[0] = kinds[0]._replace(reader="") if form.times else kinds[0]
    elif kind.startswith("TIMESTAMP"):
        kinds = _dates(kind, form.times if kind == "TIMESTAMP" else None)
    elif kind != "VARCHAR":
        kinds = [WHOLE, cast_kind("DOUBLE")] if kind == "BIGINT" else [cast_kind(kind)]
        kinds += [COMMA] if form.delimiter != "," else []
    return Column(name=name, kinds=(*kinds, TEXT))


def _dates(kind: str, form: str | None) -> list[Kind]:
    if form is None:
        return [DAY if kind == "DATE" else cast_kind(kind)]
    # a sample whose days are all below 13 does not tell days from months
    swapped = "".join({"%d": "%m", "%m": "%d"}.get(p, p) for p in _parts(form))
    made = [f"TRY_CAST(try_strptime({{x}}, {sql_text(f)}) AS {kind})" for f in (form, swapped)]
    return [Kind(kind, made[0], reader=kind), Kind(kind, made[1])]


def _parts(form: str) -> list[str]:
    """A format cut into its letters with their sign: ``%d/%m`` gives ``%d``, ``/``, ``%m``."""
    cut = form.split("%")
    return [cut[0], *(piece for p in cut[1:] for piece in (f"%{p[:1]}", p[1:]))]
