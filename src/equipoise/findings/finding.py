"""The base of every result: a frozen value that can be read, tabulated, stored and restored."""

import dataclasses
import functools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from importlib.util import find_spec
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Protocol,
    TypeGuard,
    TypeVar,
    get_args,
    get_type_hints,
)

import numpy as np

from equipoise._codec import (
    Fault,
    Format,
    Keys,
    Misfit,
    Reader,
    Scalar,
    Schema,
    from_plain,
    made_from,
    to_plain,
    unknown,
)
from equipoise._validate import did_you_mean, listing, names_extra, short
from equipoise.errors import ClaimError, EquipoiseError, OptionError
from equipoise.findings import words
from equipoise.findings.words import (
    Verdict,
    amount,
    cell_text,
    difference,
    disparity_text,
    is_change,
    left_out,
    plural,
)

if TYPE_CHECKING:
    from altair.typing import ChartType

    Chart = ChartType
else:  # Altair is imported when something is drawn
    Chart = "altair.typing.ChartType"

# --- Rows as a table: aligned text for terminals, HTML for notebooks ---

#: Characters of a name that fit beside the numbers of a row.
_WIDEST = 48


def text_table(rows: Sequence[object], columns: Sequence[str]) -> str:
    """Aligned plain text in which long names are cut."""
    heads = [column.replace("_", " ") for column in columns]
    body = [[_cut(cell_text(getattr(row, column))) for column in columns] for row in rows]
    widths = [max(len(line[i]) for line in [heads, *body]) for i in range(len(columns))]
    numeric = [_is_numeric(rows, column) for column in columns]
    return "\n".join(_line(line, widths, numeric) for line in [heads, *body])


def html_table(rows: Sequence[object], columns: Sequence[str]) -> str:
    """An HTML table with every value escaped."""
    head = "".join(f'<th scope="col">{escape(c.replace("_", " "))}</th>' for c in columns)
    body = "".join(
        "<tr>"
        + "".join(f"<td>{escape(cell_text(getattr(row, c)))}</td>" for c in columns)
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _line(cells: list[str], widths: list[int], numeric: list[bool]) -> str:
    pairs = zip(cells, widths, numeric, strict=True)
    return "  ".join(c.rjust(w) if right else c.ljust(w) for c, w, right in pairs).rstrip()


def _is_numeric(rows: Sequence[object], column: str) -> bool:
    values = [getattr(row, column) for row in rows if getattr(row, column) is not None]
    return bool(values) and all(isinstance(value, int | float) for value in values)


def _cut(text: str) -> str:
    # Line breaks in a group's name must not break the table.
    flat = " ".join(text.split())
    return flat if len(flat) <= _WIDEST else flat[: _WIDEST - 1] + "…"


# --- Plain data read back into the frozen class that wrote it, every field held to its type ---
#
# What a field may hold is what its annotation says, so a class with a new field needs no code
# here, and a file that was edited by hand is refused by the name of the field that is wrong.

T = TypeVar("T")

#: How a field is marked that holds what only the audit itself has at hand.
NOT_STORED = {"stored": False}
#: How a field is marked that few findings have a use for: it is written if it holds something.
IF_ANY = {"stored": "if any"}


def read_back(cls: type[T], data: object, called: str) -> T:
    """The value of class ``cls`` whose fields ``data`` holds.

    >>> from equipoise.findings import Provenance
    >>> read_back(Provenance, {"version": 1}, "provenance")
    Traceback (most recent call last):
    equipoise.errors.EquipoiseError: provenance field 'version' must be text; got 1.
    """
    try:
        return STORED.fields(cls, data, ())
    except Misfit as misfit:
        first = misfit.faults[0]
        named = (key for key in first.path if isinstance(key, str))
        place = "".join(f" field {short(key)!r}" for key in named)
        raise EquipoiseError(f"{called}{place} {first.words}.") from misfit


def is_quoted(value: object) -> TypeGuard[Mapping[str, object]]:
    """Whether a mapping is a claim or a method in plain form, which a finding quotes as it is."""
    return isinstance(value, Mapping) and "kind" in value


#: Infinite numbers are written as a mapping, since JSON has none.
_INFINITE = {"type": "object", "required": ["number"], "properties": {"number": {"type": "string"}}}


class Stored(Format):
    """Findings and what belongs to them, as they stand in evidence."""

    number_schema: ClassVar[Schema] = {"anyOf": [{"type": "number"}, _INFINITE]}

    def number(self, data: object, path: Keys) -> object:
        """A number, or the mapping that stands for an infinite one."""
        return super().number(from_plain(data) if isinstance(data, Mapping) else data, path)

    def mapping(self, read: Reader, data: object, path: Keys) -> Mapping[str, object]:
        """A mapping, or a claim in its place."""
        if is_quoted(data):
            return data
        plain = from_plain(data)
        if not isinstance(plain, Mapping):
            raise self.misfit(path, "a mapping", data)
        # what has no type was turned back into values above
        return super().mapping(_as_it_is if read == self.anything else read, plain, path)

    def anything(self, data: object, _path: Keys) -> object:
        """The value that plain data stand for."""
        return from_plain(data)

    def part(self, cls: type, data: object, path: Keys) -> object:
        """A part of a finding, which may have been read already."""
        if isinstance(data, cls):
            return data
        if issubclass(cls, Finding) and isinstance(data, Mapping):
            found = from_dict(data)
            if isinstance(found, cls):
                return found
            raise self.misfit((*path, "kind"), repr(cls.kind), data.get("kind"))
        return self.fields(cls, data, path)

    def fields(self, cls: type[T], data: object, path: Keys) -> T:
        """The value of a class whose fields ``data`` holds."""
        if not isinstance(data, Mapping):
            raise self.misfit(path, "a mapping of its fields", data)
        made_of: type = cls
        readers, needed = _readers(made_of)
        for name in data:
            if name not in readers:
                raise Misfit(unknown((*path, str(name)), readers))
        made = {name: readers[name](item, (*path, name)) for name, item in data.items()}
        missing = [name for name in readers if name in needed and name not in made]
        if missing:
            word = "field" if len(missing) == 1 else "fields"
            raise Misfit(Fault(path, f"lacks the {word} {listing(missing)}"))
        return made_from(cls, **made)

    def part_schema(self, cls: type, parts: dict[str, Schema]) -> Schema:
        """A reference to the definition of a part."""
        if issubclass(cls, Finding):
            # evidence has a definition for each kind of finding
            return {"$ref": f"#/$defs/{cls.kind.replace(' ', '_')}"}
        name = f"part_{cls.__name__}"
        if name not in parts:
            parts[name] = {}  # a class may hold others of its kind
            parts[name] = self.fields_schema(cls, parts)
        return {"$ref": f"#/$defs/{name}"}

    def fields_schema(self, cls: type, parts: dict[str, Schema]) -> Schema:
        """An object with the fields of a class; those that have a default may be missing."""
        hints, missing = get_type_hints(cls), dataclasses.MISSING
        fields = [f for f in dataclasses.fields(cls) if f.metadata != NOT_STORED]
        return {
            "type": "object",
            "additionalProperties": False,
            "required": [f.name for f in fields if f.default is missing is f.default_factory],
            "properties": {f.name: self.schema(hints[f.name], parts) for f in fields},
        }


STORED = Stored()


@functools.cache
def _readers(cls: type) -> tuple[dict[str, Reader], frozenset[str]]:
    """How each field of a class is read, and which must be there; worked out once for all rows."""
    hints, missing = get_type_hints(cls), dataclasses.MISSING
    fields = dataclasses.fields(cls)
    needed = [f.name for f in fields if f.default is missing is f.default_factory]
    return {f.name: STORED.reader(hints[f.name]) for f in fields}, frozenset(needed)


def _as_it_is(data: object, _path: Keys) -> object:
    return data


# --- The base of every result: a frozen value that can be read, tabulated, stored and restored

#: The columns that every table of compared groups begins with.
COMPARED = ("group", "n", "value", "disparity")

Row = TypeVar("Row")
Named = TypeVar("Named", bound="HasName")
_KINDS: dict[str, type["Finding"]] = {}
#: The modules with kinds of findings, read when one of another kind is met in a file.
_PLACES = (
    "bounds calibration describe flags individual joint_test monitoring power repair shift summary"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a finding comes from: enough to perform it again."""

    version: str
    """Version of equipoise."""
    source: str
    """What the rows were read from."""
    scanned: int
    """Rows looked at."""
    counted: int
    """Rows on which the metric counts."""
    excluded: Mapping[str, int]
    """Rows left out, by reason."""
    ineligible: int
    """Rows that are complete but on which the metric does not count."""
    cells: int
    """Cells the rows were reduced to."""
    fingerprint: str
    """Digest of the cells: the same from every engine and in every row order."""
    seed: int | None = None
    """The ``rng=`` that gives the same answer again."""

    def based_on(self) -> str:
        """A sentence on the rows that were used."""
        return f"Based on {plural(self.counted, 'row')} of {self.source}."

    @property
    def lost(self) -> int:
        """Rows left out, for whatever reason."""
        return sum(n for why, n in self.excluded.items() if why not in words.COUNTED)

    def left_out(self) -> str:
        """A sentence on the rows that were not."""
        if not self.fingerprint:
            # as published with small groups left out, which such numbers could give away
            return "How many rows were left out is not told here."
        return left_out(self.excluded, self.ineligible)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Finding:
    """What every audit returns: rows, the guarantee they come with, and where they come from.

    >>> import equipoise as eq
    >>> found = eq.describe(eq.datasets.compas(), eq.gap("accuracy", across="sex"))
    >>> found
    <Description: accuracy against everyone; 2 rows>
    >>> [row.group for row in found], found[0].n
    (['Female', 'Male'], 1175)
    """

    kind: ClassVar[str]
    """What a file calls this kind of finding."""
    columns: ClassVar[tuple[str, ...]]
    """The fields of a row that a table shows."""
    terse: ClassVar[tuple[str, ...]] = ()
    """Those that a terminal shows, where they are others."""
    row_type: ClassVar[type]
    """The class of the rows, which a subclass names in brackets."""
    retired: ClassVar[Mapping[str, str]] = {}
    """What versions before wrote by a name that is gone, and what to do about it."""

    claim: Mapping[str, Any]
    """The claim in plan form."""
    question: str
    """The claim in words."""
    guarantee: str
    """What holds, with what confidence, for which groups."""
    assumptions: tuple[str, ...]
    """What the guarantee rests on."""
    provenance: Provenance
    """Where the numbers come from."""
    rows: tuple[Any, ...]
    """One entry per group, in the order of the collection."""

    def __init_subclass__(cls) -> None:
        super(Finding, cls).__init_subclass__()
        for base in cls.__dict__.get("__orig_bases__", ()):
            for named in get_args(base):
                cls.row_type = named
        # A slotted dataclass is made twice; the second class, which is the real one, wins.
        if "kind" in cls.__dict__:
            _KINDS[cls.kind] = cls

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.question}; {plural(len(self), 'row')}>"

    @property
    def noun(self) -> str:
        """What a row is about: a group, or a tilt."""
        across = self.claim.get("across")
        return "tilt" if isinstance(across, Mapping) and across.get("kind") == "tilts" else "group"

    @property
    def given(self) -> str:
        """The legitimate factors that were given, in words; empty without any."""
        named = []
        for one in self.claim.get("given", ()):
            columns = (one,) if isinstance(one, str) else one.get("columns", (one.get("column"),))
            named += [str(column) for column in columns]
        return f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else "".join(named)

    @property
    def conclusion(self) -> Verdict | None:
        """What is shown about the limit; None if the audit sets none.

        Gates, tests, badges and exports read it. It is the verdict, where there is one; an audit
        that can only find violations is undetermined when it finds none.
        """
        found: Verdict | None = getattr(self, "verdict", None)
        return found

    @property
    def silent(self) -> bool:
        """Whether it can only find violations, and found none: beside others it weighs nothing."""
        return False

    def sentences(self) -> tuple[str, ...]:
        """The finding in plain words, most important first."""
        raise NotImplementedError

    def cautions(self) -> list[str]:
        """What is peculiar to this finding and must be known before its numbers."""
        return []

    @names_extra
    def plot(self) -> Chart:
        """The finding as an Altair chart."""
        raise NotImplementedError

    def drawn(self) -> str:
        """The finding as a chart of plain HTML and SVG; empty if there is none of that kind."""
        return ""

    @property
    def sureness(self) -> float:
        """Where its headline stands among those of other findings, the surest first."""
        return 0.0

    def headline(self) -> str:
        """Who differs most, and by how much, in one sentence; empty if there is nothing to say."""
        return ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, which `equipoise.findings.from_dict` reads back."""
        data: dict[str, Any] = {"kind": self.kind}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.metadata != NOT_STORED and (value or field.metadata != IF_ANY):
                data[field.name] = value if is_quoted(value) else _plain(value)
        return data

    def to_json(self, indent: int | None = None) -> str:
        """The finding as JSON text, which `equipoise.findings.from_json` reads back."""
        # Python would write NaN, which is no JSON and which others could not read.
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=indent)

    def to_frame(self, backend: str | None = None) -> Any:
        """The rows as a data frame: pandas, Polars or PyArrow, whichever is asked for or installed.

        Attributes become columns of their own, empty where a group leaves them free.
        """
        return frame_of(self._columns(), backend)

    def __str__(self) -> str:
        table = text_table(self.rows[:40], self.columns)
        more = f"\n… and {len(self) - 40:,} more" if len(self) > 40 else ""
        return "\n".join([*self.sentences(), "", table + more])

    def _repr_html_(self) -> str:
        words = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences())
        return f"<div>{words}{self._picture()}{html_table(self.rows[:200], self.columns)}</div>"

    def _picture(self) -> str:
        """The chart as it can be shown without a network."""
        made = self.drawn()
        if made:
            return made
        from equipoise.findings.charts import svg_of

        try:
            return svg_of(self.plot())
        except (EquipoiseError, NotImplementedError):
            # a finding without anything to draw is still worth reading
            return ""

    def _columns(self) -> dict[str, list[Scalar]]:
        names = [field.name for field in dataclasses.fields(self.row_type) if field.name != "where"]
        columns = {name: [_plain_scalar(getattr(row, name)) for row in self.rows] for name in names}
        for name in dict.fromkeys(name for row in self.rows for name in row.where):
            title = name
            # A table may well have a column called n or value.
            while title in columns:
                title = f"where {title}"
            columns[title] = [_plain_scalar(row.where.get(name)) for row in self.rows]
        return {title: _one_type(values) for title, values in columns.items()}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FindingOf(Finding, Generic[Row]):
    """A finding that says what its rows are; they are also what it is a sequence of."""

    rows: tuple[Row, ...]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, place: int) -> Row:
        return self.rows[place]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MetricFinding(FindingOf[Row]):
    """A finding about one metric."""

    metric: str
    """The metric in words."""

    def value_text(self, value: float | None) -> str:
        """A value of the metric: of shares a percentage, of changes of shares points."""
        share = bool(getattr(self, "share", False))
        if value is None or not is_change(self.claim):
            return amount(value, share)
        return difference(value, share)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ComparedFinding(MetricFinding[Row]):
    """A finding about how far a metric is from a target."""

    against: str
    """The target in words."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DisparityFinding(ComparedFinding[Row]):
    """A finding about disparities that are differences, or ratios."""

    share: bool
    """Whether the metric is a share, read in percentage points."""
    relative: bool
    """Whether disparities are ratios rather than differences."""

    def say(self, value: float) -> str:
        """A disparity in words."""
        return disparity_text(value, self.relative, self.share)


class ByGroup(Generic[Named]):
    """What findings have whose rows are groups: any of them can be asked for."""

    __slots__ = ()

    rows: tuple[Named, ...]

    def ask(self, group: Mapping[str, object] | str | None = None, /, **where: object) -> Named:
        """The row of one group, named by its attributes, its range or its label.

        >>> import equipoise as eq
        >>> found = eq.describe(eq.datasets.compas(), eq.gap("accuracy", across="sex"))
        >>> found.ask(sex="Male").n
        4997
        """
        return find_row(self.rows, group, where)


def kinds_of_findings() -> Mapping[str, type[Finding]]:
    """The classes of findings, by the name each has in a file; others may have added some."""
    for place in _PLACES.split():
        import_module(f"equipoise.findings.{place}")
    return _KINDS


def from_dict(data: Mapping[str, object]) -> Finding:
    """The finding that `Finding.to_dict` wrote.

    >>> import equipoise as eq
    >>> found = eq.describe(eq.datasets.compas(), eq.gap("accuracy", across="sex"))
    >>> from_dict(found.to_dict()) == found
    True
    """
    if not isinstance(data, Mapping):
        raise EquipoiseError(f"This is not a finding but a {type(data).__name__}.")
    known = _KINDS if str(data.get("kind")) in _KINDS else kinds_of_findings()
    cls = known.get(str(data.get("kind")))
    if cls is None:
        raise EquipoiseError(
            f"{data.get('kind')!r} is not a kind of finding. There is: {', '.join(_KINDS)}."
        )
    fields = {name: value for name, value in data.items() if name != "kind"}
    for name, held in cls.retired.items():
        if name in fields:
            raise EquipoiseError(f"This {cls.kind} is of a version before: it holds {held}.")
    if "rows" in fields:
        fields["rows"] = _rows(cls, fields["rows"])
    return read_back(cls, fields, cls.kind)


def _rows(cls: type[Finding], rows: object) -> tuple[object, ...]:
    if not isinstance(rows, list | tuple):
        raise EquipoiseError(f"The rows of a {cls.kind} must be a list; got {short(repr(rows))}.")
    return tuple(read_back(cls.row_type, row, f"{cls.kind} row") for row in rows)


def from_json(text: str) -> Finding:
    """The finding that `Finding.to_json` wrote."""
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except (json.JSONDecodeError, RecursionError) as error:
        raise EquipoiseError(f"This is not a finding: {error}.") from error
    return from_dict(data)


def _no_constant(word: str) -> float:
    raise EquipoiseError(f"A finding holds no {word}; this text was not written by equipoise.")


_BACKENDS = ("pandas", "polars", "pyarrow")


def frame_of(columns: Mapping[str, Sequence[object]], backend: str | None) -> Any:
    """Columns as a data frame of the kind asked for, or of one that is installed."""
    import narwhals as nw

    chosen = backend or _installed_backend()
    if chosen not in _BACKENDS or not find_spec(chosen):
        raise OptionError(
            f"backend must be one of {', '.join(_BACKENDS)}, and installed; got {backend!r}."
        )
    return nw.from_dict(columns, backend=chosen).to_native()  # type: ignore[arg-type]


def _installed_backend() -> str:
    for name in _BACKENDS:
        if find_spec(name):
            return name
    raise EquipoiseError("to_frame needs pandas, polars or pyarrow; install one of them.")


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if isinstance(value, Finding):
            return value.to_dict()
        held = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {f.name: _plain(item) for f, item in held if f.metadata != IF_ANY or item}
    if isinstance(value, tuple):
        # long tables of numbers are written as they are
        numbers = {*map(type, value)} <= {int, float} and all(map(math.isfinite, value))
        return list(value) if numbers else [_plain(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray) else to_plain(value)


def _plain_scalar(value: object) -> Scalar:
    if isinstance(value, Mapping | tuple):
        return json.dumps(to_plain(value), ensure_ascii=False)
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _one_type(values: list[Scalar]) -> list[Scalar]:
    """Whole numbers beside others become floats: a column of a frame has one type."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    return values if len(kinds) < 2 else [None if value is None else str(value) for value in values]


# --- What rows of different findings have in common, under the same names everywhere ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Who a row is about, and how many rows of the table that is."""

    group: str
    """The group in words."""
    where: Mapping[str, Any]
    """The group as data: attribute → value, or → ends of a range; empty if it has no such form."""
    n: int
    """Rows of the group on which the metric counts; how many rows a tilt's weights are worth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedGroup(Group):
    """A group and how far its metric is from what it is compared with."""

    value: float | None
    """The group's metric; None if it counts on no row."""
    target: float | None
    """What it is compared with; None if there is nothing to compare with."""
    disparity: float | None
    """Value minus target, or value divided by target for a ratio."""


class HasName(Protocol):
    """A row of a group: it has a name, and a form as data."""

    @property
    def group(self) -> str:
        """The group in words."""

    @property
    def where(self) -> Mapping[str, Any]:
        """The group as data."""


class AboutEveryone:
    """A row that is about all groups at once, not about those with certain attributes."""

    __slots__ = ()

    @property
    def where(self) -> Mapping[str, Any]:
        """No attribute tells these people apart."""
        return {}


# --- Finding one group among the rows of a result, however the user names it ---


def find_row(
    rows: Sequence[Named], group: Mapping[str, object] | str | None, where: Mapping[str, object]
) -> Named:
    """The row of a group given by label, by attributes, or by the ends of ranges."""
    if isinstance(group, str):
        return _by_label(rows, group)
    wanted = {**(group or {}), **where}
    fitting = [row for row in rows if set(row.where) == set(wanted)]
    if not fitting:
        raise ClaimError(_no_such_attributes(rows, wanted))
    for name, value in wanted.items():
        fitting = _narrow(fitting, name, value)
    return fitting[0]


def _by_label(rows: Sequence[Named], label: str) -> Named:
    for row in rows:
        if row.group == label:
            return row
    # as levels read without their attributes, if only one group reads like that
    bare = [row for row in rows if ", ".join(map(str, row.where.values())) == label]
    if len(bare) == 1:
        return bare[0]
    labels = [row.group for row in rows]
    raise ClaimError(
        f"There is no group {label!r} in this collection of {len(rows):,}."
        f"{did_you_mean(label, labels)}"
    )


def _narrow(rows: list[Named], name: str, value: object) -> list[Named]:
    if isinstance(value, tuple | list) and len(value) == 2:
        return _by_range(rows, name, value[0], value[1])
    kept = [row for row in rows if _same(row.where[name], value)]
    if not kept:
        levels = dict.fromkeys(str(row.where[name]) for row in rows)
        raise ClaimError(f"No such group has {name} {value!r}. There is: {listing(levels)}.")
    return kept


def _by_range(rows: list[Named], name: str, low: float, high: float) -> list[Named]:
    """Rows whose range is [low, high]: the widest run of data points inside, or the exact edges."""
    ranges = [row for row in rows if isinstance(row.where[name], Mapping)]
    inside = [row for row in ranges if _within(row.where[name], low, high)]
    if not inside:
        ends = sorted({end for row in ranges for end in row.where[name].values()})
        raise ClaimError(
            f"No range of {name} lies in [{low}, {high}]. End points: {listing(ends)}."
        )
    # Between data points nobody lies, so any ends mean the widest run of points inside them. A grid
    # has people everywhere: ends that are not on it would cut through a cell.
    best = max(inside, key=lambda row: _end(row.where[name]) - row.where[name]["from"])
    found = best.where[name]
    if "below" in found and not (_near(found["from"], low) and _near(found["below"], high)):
        ends = sorted({end for row in ranges for end in row.where[name].values()})
        raise ClaimError(
            f"The ranges of {name} lie on a grid, and [{low}, {high}) is not on it. "
            f"End points: {listing(ends)}."
        )
    return [row for row in inside if row.where[name] == found]


def _within(found: Mapping[str, float], low: float, high: float) -> bool:
    if "from" not in found:
        return False
    begins = found["from"] >= low or _near(found["from"], low)
    return bool(begins and (_end(found) <= high or _near(_end(found), high)))


def _near(end: float, asked: float) -> bool:
    """Whether two ends are the same but for rounding: a grid may hold 0.6000000000000001."""
    return math.isclose(end, asked, rel_tol=1e-12, abs_tol=1e-12)


def _end(found: Mapping[str, float]) -> float:
    return found["to"] if "to" in found else found.get("below", float("inf"))


def range_width(found: Mapping[str, float]) -> float:
    """How wide a range is, from end to end."""
    return float(_end(found) - found["from"])


def _same(found: object, wanted: object) -> bool:
    # To Python true equals 1; in a table they are different levels.
    return bool(found == wanted) and isinstance(found, bool) == isinstance(wanted, bool)


def _no_such_attributes(rows: Sequence[Named], wanted: Mapping[str, object]) -> str:
    known = dict.fromkeys(name for row in rows for name in row.where)
    strange = [name for name in wanted if name not in known]
    if strange:
        hint = did_you_mean(strange[0], known)
        return (
            f"{listing(strange)} is no attribute of this audit.{hint} There is: {listing(known)}."
        )
    return (
        f"No group of this collection is formed by {listing(wanted)} together and has a row. "
        f"The collection is fixed when the audit is run; there are {len(rows):,} groups in it."
    )
