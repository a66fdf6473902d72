"""Values to plain dictionaries and back: the one format of plans, evidence and findings.

A registered frozen dataclass becomes ``{"kind": name, field: value, …}`` with the fields that
differ from their defaults; tuples become lists, and infinities the words "inf" and "-inf" inside
``{"number": …}``. A mapping whose own keys could be mistaken for these is written as
``{"mapping": [[key, value], …]}``. A class with a ``shorthand`` method may write itself as a bare
word, or as what it was made from, instead; whoever holds such a value reads that back. Reading
refuses unknown kinds and unknown fields by name.
"""

import dataclasses
import datetime
import decimal
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from equipoise._validate import known_name, listing, short
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
