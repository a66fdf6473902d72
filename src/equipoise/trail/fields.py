"""From fields of text to values: what type a column has, and which words mean that one is missing.

A word such as ``NA`` counts as missing where all other fields of its column are numbers, dates or
truth values. In a column of text it may be a value (Namibia, "None" as a category), so it stays
one; only in a label or a prediction it is no answer.
"""

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import narwhals as nw

from equipoise._validate import listing
from equipoise.trail.engine import Frame, fetch, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Words that stand where a number is not known.
WORDS = ("NA", "N/A", "n/a", "na", "#N/A", "<NA>", "NULL", "null", "None", "none", ".", "-", "?")
#: Those that are no answer either, in a label or a prediction that is text: "none" may be one.
NO_ANSWER = ("NA", "N/A", "n/a", "na", "#N/A", "<NA>", "NULL", "null")
#: Rows by which DuckDB guesses.
SAMPLE = 20_480

_DECIMAL_COMMA = r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How the caller wants text to be read."""

    encoding: str | None = None
    """What the file is written in; found out if not given."""
    missing: tuple[str, ...] | None = None
    """Words that are missing in every column; if not given, the usual ones where they must be."""
    answers: tuple[str, ...] = ()
    """Columns of label and prediction, in which a word such as NA is no answer."""


class Kind(NamedTuple):
    """A type that a column may have, and how its fields are read as such."""

    type: str
    """As SQL calls it."""
    sql: str
    """SQL that makes the value, or nothing if it is not of this type; {x} is the field."""
    reader: str = ""
    """The type by which DuckDB's own reader of CSV makes the same of it, if there is one."""
    exact: str = ""
    """SQL that is true of what that reader made, if it is of this type without loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column and the types it may have, the likeliest first; text is the last."""

    name: str
    """Its name."""
    kinds: tuple[Kind, ...]
    """What it may be."""

    @property
    def kind(self) -> Kind:
        """What it is, as far as is known."""
        return self.kinds[0]


TEXT = Kind("VARCHAR", "{x}", reader="VARCHAR")
TRUTH = Kind("BOOLEAN", "CASE lower({x}) WHEN 'true' THEN true WHEN 'false' THEN false END")
COMMA = Kind(
    "DOUBLE",
    f"CASE WHEN regexp_full_match({{x}}, '{_DECIMAL_COMMA}') "
    "THEN TRY_CAST(replace({x}, ',', '.') AS DOUBLE) END",
)


def cast_kind(kind: str) -> Kind:
    """A type that DuckDB reads by itself."""
    # a bare column would be cast by the reader of the file, which does not try but fails
    return Kind(kind, f"TRY_CAST(trim({{x}}) AS {kind})", reader=kind)


# DuckDB rounds 1.5 to a whole number, and cuts the time off a date, without a word. So numbers are
# read with their fractions and dates with their time, and become whole only if nothing is lost.
WHOLE = Kind(
    "BIGINT",
    "CASE WHEN NOT (contains({x}, '.') OR contains({x}, 'e') OR contains({x}, 'E')) "
    "THEN TRY_CAST({x} AS BIGINT) END",
    reader="DOUBLE",
    exact=f"{{x}} = trunc({{x}}) AND abs({{x}}) < {2**53}",
)
DAY = Kind(
    "DATE",
    "CASE WHEN length(trim({x})) <= 10 THEN TRY_CAST({x} AS DATE) END",
    reader="TIMESTAMP",
    exact="date_trunc('day', {x}) = {x}",
)
#: What a column may be of which a sample holds nothing.
_ANY = (WHOLE, cast_kind("DOUBLE"), DAY, cast_kind("TIMESTAMP"))


def any_kind(name: str, *, numbers: bool = True) -> Column:
    """A column that may be anything but truth values, or is text."""
    return Column(name=name, kinds=(*_ANY, TEXT) if numbers else (TEXT,))


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedTypes:
    """Columns whose types were found from all of their fields."""

    columns: tuple[Column, ...]
    notes: tuple[str, ...]


def decide(
    connection: "DuckDBPyConnection",
    source: str,
    columns: Sequence[Column],
    reading: Reading,
    *,
    comma: bool = False,
    words: frozenset[str] = frozenset(),
) -> DecidedTypes:
    """Find the types of columns that were read as text, and the words that mean missing."""
    missing = WORDS if reading.missing is None else ()
    text = [c for c in columns if c.kind == TEXT and c.name not in words]
    further = _from_sample(connection, source, text, missing, comma)
    columns = [further.get(c.name, c) for c in columns]
    done: dict[str, Column] = {}
    gone: dict[str, tuple[int, list[str]]] = {}
    while still := [c for c in columns if c.kind != TEXT and c.name not in done]:
        for column, counts in zip(still, _fields(connection, source, still, missing), strict=True):
            good, wrong, absent, said = counts
            if wrong or not good:
                columns[columns.index(column)] = replace(column, kinds=column.kinds[1:])
            else:
                done[column.name] = column
                gone |= {column.name: (absent, said)} if absent else {}
    answers = [c for c in columns if c.kind == TEXT and c.name in reading.answers and missing]
    for column, counts in zip(
        answers, _fields(connection, source, answers, NO_ANSWER), strict=True
    ):
        *_, absent, said = counts
        if absent:
            gone[column.name] = (absent, said)
            done[column.name] = replace(column, kinds=(_answer(),))
    words_only = [c.name for c in columns if c.kind == TEXT]
    notes = (
        *_missing_notes(gone),
        *_comma_notes(done),
        *_odd_notes(connection, source, words_only, comma=comma),
    )
    return DecidedTypes(columns=tuple(done.values()), notes=notes)


#: Share of numbers from which on a column of text is likely to be one of numbers.
NEARLY = 0.9
#: Words that may stand in it: codes of which a few have letters have many, and are text.
_FEW_WORDS = 3


def _odd_notes(
    connection: "DuckDBPyConnection", source: str, names: Sequence[str], *, comma: bool
) -> list[str]:
    """Remarks on columns that are text because of a word or two among numbers."""
    # most text is told by its beginning; only what is left is looked at to its end
    beginning = f"(FROM {source} LIMIT {SAMPLE})"
    near = [one.name for one in _odd_fields(connection, beginning, names, comma) if one.nearly]
    told = [one for one in _odd_fields(connection, source, near, comma) if one.nearly]
    return [one.note() for one in told if 0 < len(one.words) <= _FEW_WORDS]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Odd:
    """What a column of text holds beside numbers."""

    name: str
    numbers: int
    fields: int
    words: Sequence[str]

    @property
    def nearly(self) -> bool:
        """Whether nearly all of its fields are numbers."""
        return self.fields > 0 and self.numbers >= NEARLY * self.fields

    def note(self) -> str:
        """What is said of it; in Python's words and in those of the command line."""
        odd = self.fields - self.numbers
        words = listing(self.words)
        options = " ".join(f"--missing {shlex.quote(word)}" for word in self.words)
        return (
            f"In column {self.name!r}, {odd:,} of {self.fields:,} fields "
            f"{'is' if odd == 1 else 'are'} no number{'s' * (odd != 1)}: {words}. So it is read as "
            f"text; if {'that means' if len(self.words) == 1 else 'these mean'} a missing value, "
            f"say {options} (missing=[{words}] in Python and in plans)."
        )


def _odd_fields(
    connection: "DuckDBPyConnection", source: str, names: Sequence[str], comma: bool
) -> list[_Odd]:
    if not names:
        return []
    parts = []
    for name in map(quoted, names):
        number = f"TRY_CAST(trim({name}) AS DOUBLE) IS NOT NULL"
        if comma:
            number = f"({number} OR regexp_full_match(trim({name}), '{_DECIMAL_COMMA}'))"
        held = f"{name} IS NOT NULL AND trim({name}) <> ''"
        parts += [
            f"count(*) FILTER ({held} AND {number})",
            f"count(*) FILTER ({held})",
            # a few are enough to know that there are more
            f"list(DISTINCT {name}) FILTER ({held} AND NOT {number})[:{_FEW_WORDS + 1}]",
        ]
    row = connection.execute(f"SELECT {', '.join(parts)} FROM {source}").fetchall()[0]
    return [
        _Odd(name=name, numbers=row[i], fields=row[i + 1], words=sorted(row[i + 2] or []))
        for name, i in zip(names, range(0, len(row), 3), strict=True)
    ]


def _answer() -> Kind:
    return Kind("VARCHAR", f"CASE WHEN {{x}} NOT IN {_sql_tuple(NO_ANSWER)} THEN {{x}} END")


def _from_sample(
    connection: "DuckDBPyConnection",
    source: str,
    columns: list[Column],
    missing: Sequence[str],
    comma: bool,
) -> dict[str, Column]:
    """Columns that DuckDB takes for text and that may be numbers all the same.

    Their numbers have decimal commas, or they hold nothing in the sample.
    """
    if not columns:
        return {}
    parts = []
    for name in (quoted(column.name) for column in columns):
        held = f"{name} IS NOT NULL AND {name} NOT IN {_sql_tuple((*missing, ''))}"
        numbers = f"bool_and(regexp_full_match({name}, '{_DECIMAL_COMMA}')) FILTER ({held})"
        parts.append(f"count(*) FILTER ({held}), {numbers if comma else 'false'}")
    query = f"SELECT {', '.join(parts)} FROM (FROM {source} LIMIT {SAMPLE})"
    found = connection.execute(query).fetchall()[0]
    late = (*_ANY, TEXT)
    made: dict[str, Column] = {}
    for column, held, numbers in zip(columns, found[0::2], found[1::2], strict=True):
        if not held:
            made[column.name] = replace(column, kinds=late)
        elif numbers:
            made[column.name] = replace(column, kinds=(COMMA, TEXT))
    return made


def _fields(
    connection: "DuckDBPyConnection", source: str, columns: list[Column], missing: Sequence[str]
) -> list[tuple[int, int, int, list[str]]]:
    """For each column: fields of its kind, fields that are not, missing ones, and their words."""
    if not columns:
        return []
    parts = []
    for column in columns:
        name = quoted(column.name)
        value = column.kind.sql.format(x=name)
        word = f"{name} IN {_sql_tuple((*missing, ''))}"
        odd = f"({value}) IS NULL AND {name} IS NOT NULL"
        if column.kind == TEXT:
            odd = "true"
        parts += [
            f"count({value})",
            f"count(*) FILTER ({odd} AND NOT {word})",
            f"count(*) FILTER ({odd} AND {word})",
            f"list(DISTINCT {name} ORDER BY {name}) FILTER ({odd} AND {word})",
        ]
    row = connection.execute(f"SELECT {', '.join(parts)} FROM {source}").fetchall()[0]
    return [(row[i], row[i + 1], row[i + 2], row[i + 3] or []) for i in range(0, len(row), 4)]


def typed(source: str, names: Sequence[str], columns: Sequence[Column]) -> str:
    """SQL for the rows with the types that were found."""
    found = {column.name: column.kind.sql.format(x=quoted(column.name)) for column in columns}
    chosen = ", ".join(f"{found.get(name, quoted(name))} AS {quoted(name)}" for name in names)
    return f"SELECT {chosen} FROM {source}"


def _missing_notes(gone: dict[str, tuple[int, list[str]]]) -> list[str]:
    return [
        f"In column {name!r}, {number:,} field{'' if number == 1 else 's'} that "
        f"sa{'ys' if number == 1 else 'y'} {listing(said)} "
        f"{'was' if number == 1 else 'were'} taken as missing."
        for name, (number, said) in gone.items()
    ]


def _comma_notes(done: dict[str, Column]) -> list[str]:
    names = [name for name, column in done.items() if column.kind == COMMA]
    return [f"Decimal commas were read in {listing(names)}."] if names else []


def sql_text(value: str) -> str:
    """A text as SQL writes it.

    >>> sql_text("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def sql_list(values: Sequence[str]) -> str:
    """A list of texts as SQL writes it."""
    return f"[{', '.join(map(sql_text, values))}]"


def _sql_tuple(values: Sequence[str]) -> str:
    return f"({', '.join(map(sql_text, values))})"


#: Distinct texts that are looked at for a message.
_LOOKED_AT = 50
#: Values up to which a column may be one of classes.
_CLASSES = 20
_ONE_OF_SEVERAL = (
    "Make a column of two values from it. Of several classes one can ask for the metric "
    "macro_recall, or in Python for one of them by one_class."
)


def text_of_two(frame: Frame, column: str, source: str) -> str:
    """What is said of a label or prediction of text of which nobody said what counts as 1."""
    some = frame.select(level=nw.col(column).cast(nw.String)).unique().head(_LOOKED_AT)
    found = {str(value) for value in fetch(some, source)["level"] if value is not None}
    held = listing(sorted(found), most=5)
    if len(found) <= 2:
        return (
            f"holds text: {held}. Pass positive=… to equipoise.read to say which of its two values "
            "counts as 1."
        )
    many = f"at least {_LOOKED_AT - 1}" if len(found) >= _LOOKED_AT - 1 else str(len(found))
    return f"holds text of {many} values, where two are needed: {held}. {_ONE_OF_SEVERAL}"


def advice_on_values(role: str, found: Collection[object]) -> str:
    """What to do about a label or prediction that does not hold 0 and 1 or a pair."""
    numbers = [value for value in found if isinstance(value, int | float)]
    if len(numbers) < len(found):
        return f" {_ONE_OF_SEVERAL}" if 2 < len(found) <= _CLASSES else ""
    if len(numbers) == 2 and role in ("label", "prediction"):
        high = f"{max(numbers):g}"
        return f" Pass positive={{'{role}': {high}}} if {high} is the one that counts as 1."
    if len(numbers) <= 2:
        return ""
    scores = (
        "A number that decisions are made from is no decision: pass score=… for it."
        if role == "prediction"
        else "A label of amounts takes what the model said as score=… in place of a prediction, "
        "and metrics of numbers such as residual and absolute_error."
    )
    whole = all(float(value).is_integer() for value in numbers)
    classes = whole and len(numbers) <= _CLASSES
    return f" {scores}" + (f" {_ONE_OF_SEVERAL}" if classes else "")
