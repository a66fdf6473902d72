"""Values to plain dictionaries and back: the one format of plans, evidence and findings.

A registered frozen dataclass becomes ``{"kind": name, field: value, …}`` with the fields that
differ from their defaults; tuples become lists, and infinities the words "inf" and "-inf" inside
``{"number": …}``. A mapping whose own keys could be mistaken for these is written as
``{"mapping": [[key, value], …]}``. A class with a ``shorthand`` method may write itself as a bare
word, or as what it was made from, instead; whoever holds such a value reads that back. Reading
refuses unknown kinds and unknown fields by name.

What an annotation allows: plain data held to it, and the same told as a JSON Schema.

A field of a frozen class says once, by its annotation, what a file may hold in its place. Evidence,
rules, packs and plans are read by it, and the schemas with which editors and other programs check
such files are made of it. Where two kinds of files differ, each has a `Format` of its own.
"""

import dataclasses
import datetime
import decimal
import enum
import functools
import math
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from equipoise._validate import did_you_mean, known_name, listing, short
from equipoise.errors import ClaimError

T = TypeVar("T")

#: What a plan, a table or JSON has for one value.
Scalar = None | bool | int | float | str

_KINDS: dict[str, type] = {}
_NAMES: dict[type, str] = {}


def kind(name: str) -> Callable[[type[T]], type[T]]:
    """Class decorator: give a frozen dataclass its name in the plain format."""

    def register(cls: type[T]) -> type[T]:
        _KINDS[name] = cls
        _NAMES[cls] = name
        return cls

    return register


class Written:
    """A value that a plan can hold."""

    __slots__ = ()

    def to_plan(self) -> Any:
        """Plain form, which `equipoise.from_plan` reads."""
        return to_plain(self)

    def quoted(self) -> Any:
        """Plain form to quote in a result: what has none is named, not written out."""
        return to_plain(self, other=lambda value: f"a {type(value).__name__}")


def canonical(value: object) -> Any:
    """One form for equal values: plain Python, whole numbers as int, NaN as missing.

    >>> canonical(np.float64(3.0)), canonical(float("nan")), canonical(decimal.Decimal("1.50"))
    (3, None, 1.5)
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int):
        return value
    if _is_missing(value):
        return None
    if isinstance(value, float | decimal.Decimal):
        # Engines disagree on whether a column is of whole numbers; 3 and 3.0 are one level.
        number = float(value)
        return int(number) if number.is_integer() else number
    if isinstance(value, datetime.datetime):
        return _moment(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value)


def to_plain(value: object, other: Callable[[object], object] | None = None) -> Any:
    """A plain dictionary, list or scalar that `from_plain` turns back into ``value``.

    ``other`` says what to write for a value that has no plain form, which is otherwise an error.
    """
    again = functools.partial(to_plain, other=other)
    brief = value.shorthand() if hasattr(value, "shorthand") else None
    if brief is not None:
        return brief if isinstance(brief, str) else again(brief)
    if type(value) in _NAMES:
        return {"kind": _NAMES[type(value)], **_plain_fields(value, again)}
    if isinstance(value, Mapping):
        return _plain_mapping({str(key): again(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return [again(item) for item in value]
    return _plain_scalar(value, other)


def _plain_fields(value: object, again: Callable[[object], object]) -> dict[str, object]:
    """The fields of a dataclass in plain form, those at their defaults left out."""
    cls: type = type(value)
    return {
        field.name: again(getattr(value, field.name))
        for field in dataclasses.fields(cls)
        # An option added later leaves what was written before, and its hash, as they are.
        if not at_default(field, getattr(value, field.name))
    }


def _plain_mapping(mapping: dict[str, object]) -> dict[str, object]:
    # A table may well have a column called "kind" or "number".
    if {"kind", "number", "mapping"} & mapping.keys():
        return {"mapping": [[key, item] for key, item in mapping.items()]}
    return mapping


def from_plain(data: object) -> Any:
    """The value that `to_plain` wrote.

    >>> from_plain([1, {"number": "inf"}])
    (1, inf)
    """
    if isinstance(data, Mapping):
        if "kind" in data:
            return _decode_kind(data)
        if set(data) == {"number"}:
            return _number(data["number"])
        if set(data) == {"mapping"}:
            return {str(key): from_plain(item) for key, item in _pairs(data["mapping"])}
        return {key: from_plain(item) for key, item in data.items()}
    if isinstance(data, list | tuple):
        # Values are frozen, and a list in one of them would not be.
        return tuple(from_plain(item) for item in data)
    return data


def _pairs(listed: object) -> list[tuple[object, object]]:
    if isinstance(listed, list | tuple) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 for pair in listed
    ):
        return list(listed)
    raise ClaimError(f"'mapping' must list pairs of a key and a value; got {listed!r:.80}.")


def build(cls: type, data: Mapping[str, object], called: str) -> object:
    """Make ``cls`` from plain fields; unknown or missing fields are named in the error."""
    if not isinstance(data, Mapping):
        raise ClaimError(f"{called} must be a mapping of its fields; got {data!r}.")
    fields = {field.name: field for field in dataclasses.fields(cls)}
    for name in data:
        known_name(f"{called} field", name, fields, ClaimError)
    missing = [n for n, f in fields.items() if n not in data and not _has_default(f)]
    if missing:
        raise ClaimError(f"{called} needs {listing(missing)}; got {listing(data)}.")
    try:
        return cls(**{name: from_plain(item) for name, item in data.items()})
    except (TypeError, ValueError, AttributeError) as error:
        raise ClaimError(f"{called} cannot be made from {dict(data)!r}: {error}.") from error


def made_from(cls: Callable[..., T], /, *given: object, **fields: object) -> T:
    """A value that converts and checks its own fields, from what a caller or a plan file gave."""
    return cls(*given, **fields)


def _decode_kind(data: Mapping[str, str]) -> object:
    name = known_name("Kind", data["kind"], _KINDS, ClaimError)
    return build(_KINDS[name], {key: v for key, v in data.items() if key != "kind"}, name)


def _plain_scalar(value: object, other: Callable[[object], object] | None) -> object:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if other is not None:
        return other(value)
    raise ClaimError(
        f"{type(value).__name__} {value!r} cannot be written to a plan. Plans hold columns, "
        "numbers and formulas written as text; compute the column beforehand, "
        "or write the formula as text."
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except (TypeError, ValueError, OverflowError) as error:
        raise ClaimError(f"Expected a number such as 'inf'; got {short(repr(text))}.") from error


def _is_missing(value: object) -> bool:
    # pandas has its own missing values, which are equal to nothing, themselves included.
    if type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | decimal.Decimal) and math.isnan(value)


def _moment(value: datetime.datetime) -> str:
    """A point in time; one that is a whole day reads as that day, whatever type stores it."""
    plain = value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value
    whole_day = plain.time() == datetime.time() and not getattr(plain, "nanosecond", 0)
    return plain.date().isoformat() if whole_day else plain.isoformat()


def _has_default(field: "dataclasses.Field[object]") -> bool:
    return (
        field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
    )


def at_default(field: "dataclasses.Field[object]", value: object) -> bool:
    """Whether a value is its field's default, and of the same type."""
    if field.default is not dataclasses.MISSING:
        # True == 1 == 1.0 to Python; in a file they are three different things.
        return type(value) is type(field.default) and bool(value == field.default)
    if field.default_factory is not dataclasses.MISSING:
        return bool(value == field.default_factory())
    return False


#: The version of JSON Schema that schemas of ours follow.
DRAFT = "https://json-schema.org/draft/2020-12/schema"

Keys = tuple[str | int, ...]
Reader = Callable[[object, Keys], object]
Schema = dict[str, object]

#: What a message calls a scalar, and what JSON Schema does.
_SCALARS: dict[object, tuple[str, str]] = {
    float: ("a number", "number"),
    int: ("a whole number", "integer"),
    bool: ("true or false", "boolean"),
    str: ("text", "string"),
    types.NoneType: ("nothing", "null"),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that does not fit."""

    path: Keys
    """The keys that lead to it."""
    words: str
    """What is wrong with it, to follow its name: "must be text; got 5"."""


class Misfit(Exception):  # noqa: N818 (whoever reads the file makes an error of it)
    """What does not fit, by its place in the data; a reader of files knows how to name that."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(*faults)
        self.faults = faults


def unknown(path: Keys, known: Iterable[str]) -> Fault:
    """The fault of a field that nobody reads.

    >>> unknown(("lable",), ["label", "score"]).words
    "does not exist here. Did you mean 'label'? There is: 'label', 'score'"
    """
    fields = list(known)
    hint = did_you_mean(short(str(path[-1])), fields)
    return Fault(path, f"does not exist here.{hint} There is: {listing(fields, most=30)}")


class Format:
    """A kind of file: how it holds numbers, mappings, parts and what has no stated type."""

    #: The JSON Schema of a number.
    number_schema: ClassVar[Schema] = {"type": "number"}

    def number(self, data: object, path: Keys) -> object:
        """A number, whole or not."""
        # To Python a truth value is a whole number; to a reader of the file it is not.
        if isinstance(data, float | int) and not isinstance(data, bool):
            return data
        raise self.misfit(path, in_words(float), data)

    def mapping(self, read: Reader, data: object, path: Keys) -> Mapping[str, object]:
        """A mapping of names to values of one type."""
        if not isinstance(data, Mapping):
            raise self.misfit(path, "a mapping", data)
        return {key: read(item, (*path, key)) for key, item in data.items()}

    def part(self, cls: type, data: object, path: Keys) -> object:
        """A value of a frozen class, from its fields."""
        raise NotImplementedError

    def part_schema(self, cls: type, parts: dict[str, Schema]) -> Schema:
        """The schema of such a value; definitions that it refers to go into ``parts``."""
        raise NotImplementedError

    def anything(self, data: object, _path: Keys) -> object:
        """A value of which the annotation says nothing."""
        return data

    def said(self, data: object) -> str:
        """What came, for a message."""
        return short(repr(data))

    def misfit(self, path: Keys, expected: str, data: object) -> Misfit:
        """The error that something else than expected came."""
        return Misfit(Fault(path, f"must be {expected}; got {self.said(data)}"))

    def reader(self, hint: object) -> Reader:
        """The function that reads what an annotation allows, or raises `Misfit`.

        >>> Format().reader(tuple[str, ...])(["a", "b"], ())
        ('a', 'b')
        """
        origin, inner = get_origin(hint), get_args(hint)
        if hint is float:
            return self.number
        if isinstance(hint, type) and hint in _SCALARS:
            return functools.partial(self._scalar, hint)
        if origin in (Union, types.UnionType):
            return self._either(hint, inner)
        if origin is Literal:
            return functools.partial(self._one_of, inner)
        if origin is tuple and inner[-1] is not ...:
            return functools.partial(self._fixed, [self.reader(part) for part in inner])
        if origin in (tuple, list):
            return functools.partial(self._list, origin, self.reader(inner[0]))
        if origin in (Mapping, dict):
            return functools.partial(self.mapping, self.reader(inner[1]))
        if origin is np.ndarray:
            return self._array
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return functools.partial(self._member, hint)
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            return functools.partial(self.part, hint)
        return self.anything

    def _scalar(self, kind: type, data: object, path: Keys) -> object:
        if isinstance(data, kind) and (kind is bool or not isinstance(data, bool)):
            return data
        raise self.misfit(path, in_words(kind), data)

    def _either(self, hint: object, parts: Sequence[object]) -> Reader:
        """What one of several annotations allows; where one allows anything, all is as it came."""
        given = [part for part in parts if part is not types.NoneType]
        readers = [self.reader(part) for part in given]
        if self.anything in readers:
            return self.anything
        read: Reader = functools.partial(self._first_to_fit, hint, readers)
        if len(given) == 1:
            read = readers[0]
        elif all(isinstance(part, type) and dataclasses.is_dataclass(part) for part in given):
            read = functools.partial(self._by_marks, [p for p in given if isinstance(p, type)])
        if len(readers) == len(parts):
            return read
        return lambda data, path: None if data is None else read(data, path)

    def _first_to_fit(
        self, hint: object, readers: list[Reader], data: object, path: Keys
    ) -> object:
        for read in readers:
            try:
                return read(data, path)
            except Misfit:
                continue
        raise self.misfit(path, in_words(hint), data)

    def _by_marks(self, classes: Sequence[type], data: object, path: Keys) -> object:
        """The class that the marks in the data name: fields that each class allows one word."""
        if isinstance(data, tuple(classes)):
            return data
        if not isinstance(data, Mapping):
            raise self.misfit(path, "a mapping", data)
        left = list(classes)
        for name in dict.fromkeys(name for cls in classes for name in _marks(cls)):
            known = dict.fromkeys(_marks(cls)[name] for cls in left if name in _marks(cls))
            if known:
                mark = self._one_of(tuple(known), data.get(name), (*path, name))
                left = [cls for cls in left if _marks(cls).get(name, mark) == mark]
        return self.part(left[0], data, path)

    def _one_of(self, known: tuple[object, ...], data: object, path: Keys) -> object:
        if data in known:
            return known[known.index(data)]
        raise self.misfit(path, _choice_in_words(known), data)

    def _member(self, kind: type[enum.Enum], data: object, path: Keys) -> enum.Enum:
        return kind(self._one_of(tuple(member.value for member in kind), data, path))

    def _list(self, made: type, read: Reader, data: object, path: Keys) -> Sequence[object]:
        if not isinstance(data, list | tuple):
            raise self.misfit(path, "a list", data)
        items = [read(item, (*path, i)) for i, item in enumerate(data)]
        return items if made is list else tuple(items)

    def _fixed(self, readers: list[Reader], data: object, path: Keys) -> tuple[object, ...]:
        if not isinstance(data, list | tuple) or len(data) != len(readers):
            raise self.misfit(path, f"a list of {len(readers)}", data)
        pairs = zip(readers, data, strict=True)
        return tuple(read(item, (*path, i)) for i, (read, item) in enumerate(pairs))

    def _array(self, data: object, path: Keys) -> object:
        try:
            return np.array(data, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise self.misfit(path, "numbers in equal rows", data) from error

    def schema(self, hint: object, parts: dict[str, Schema]) -> Schema:
        """The JSON Schema of what an annotation allows; definitions go into ``parts``.

        >>> Format().schema(tuple[int, ...] | None, {})
        {'anyOf': [{'type': 'array', 'items': {'type': 'integer'}}, {'type': 'null'}]}
        """
        origin, inner = get_origin(hint), get_args(hint)
        if hint is float:
            return dict(self.number_schema)
        if isinstance(hint, type) and hint in _SCALARS:
            return {"type": _SCALARS[hint][1]}
        if origin in (Union, types.UnionType):
            return {"anyOf": [self.schema(part, parts) for part in inner]}
        if origin is Literal:
            return {"enum": [*inner]}
        if origin is tuple and inner[-1] is not ...:
            each = [self.schema(part, parts) for part in inner]
            size = len(each)
            return {"type": "array", "prefixItems": each, "minItems": size, "maxItems": size}
        if origin in (tuple, list):
            return {"type": "array", "items": self.schema(inner[0], parts)}
        if origin is dict:
            return {"type": "object", "additionalProperties": self.schema(inner[1], parts)}
        if origin is Mapping:
            # a claim may be quoted in its place
            return {"type": "object"}
        if origin is np.ndarray:
            return {"type": "array"}
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return {"enum": [member.value for member in hint]}
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            return self.part_schema(hint, parts)
        return {}


@functools.cache
def _marks(cls: type) -> Mapping[str, object]:
    """The fields of a class that can hold one word only, and the word."""
    literals = {n: get_args(h) for n, h in get_type_hints(cls).items() if get_origin(h) is Literal}
    return {name: words[0] for name, words in literals.items() if len(words) == 1}


def in_words(hint: object) -> str:
    """What an annotation allows, in plain words.

    >>> in_words(list[str] | float | None)
    'a list of text or a number'
    """
    origin, inner = get_origin(hint), get_args(hint)
    if hint in _SCALARS:
        return _SCALARS[hint][0]
    if origin in (Union, types.UnionType):
        said = (in_words(part) for part in inner if part is not types.NoneType)
        return " or ".join(dict.fromkeys(said))
    if origin is Literal:
        return _choice_in_words(inner)
    if origin in (tuple, list):
        return "a list" if Any in inner else f"a list of {in_words(inner[0])}"
    return "a mapping"


def _choice_in_words(known: Sequence[object]) -> str:
    return repr(known[0]) if len(known) == 1 else f"one of {listing(known)}"
