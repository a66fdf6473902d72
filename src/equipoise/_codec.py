"""Values to plain dictionaries and back: the one format of plans, evidence and findings.

A registered frozen dataclass becomes ``{"kind": name, field: value, …}`` with the fields that
differ from their defaults; tuples become lists, and infinities the words "inf" and "-inf" inside
``{"number": …}``. A class with a ``shorthand`` method may write itself as a bare word instead;
whoever holds such a value reads the word back. Reading refuses unknown kinds and
unknown fields by name.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from equipoise._validate import known_name, listing
from equipoise.errors import ClaimError, EquipoiseError

T = TypeVar("T", bound=type)
Plain = dict[str, Any] | list[Any] | str | int | float | bool | None

_KINDS: dict[str, type] = {}
_NAMES: dict[type, str] = {}


def kind(name: str) -> Callable[[T], T]:
    """Class decorator: give a frozen dataclass its name in the plain format."""

    def register(cls: T) -> T:
        _KINDS[name] = cls
        _NAMES[cls] = name
        return cls

    return register


def kind_of(value: object) -> str:
    """The name under which a value's class is registered."""
    return _NAMES[type(value)]


def to_plain(value: Any) -> Any:
    """A plain dictionary, list or scalar that `from_plain` turns back into ``value``."""
    if hasattr(value, "shorthand") and value.shorthand() is not None:
        return value.shorthand()
    if type(value) in _NAMES:
        return {"kind": _NAMES[type(value)], **plain_fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    return _plain_scalar(value)


def plain_fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass in plain form, those at their defaults left out."""
    return {
        field.name: to_plain(getattr(value, field.name))
        for field in dataclasses.fields(value)
        if not _at_default(field, getattr(value, field.name))
    }


def from_plain(data: Any) -> Any:
    """The value that `to_plain` wrote.

    >>> from_plain([1, {"number": "inf"}])
    (1, inf)
    """
    if isinstance(data, Mapping):
        if "kind" in data:
            return _decode_kind(data)
        if set(data) == {"number"}:
            return float(data["number"])
        return {key: from_plain(item) for key, item in data.items()}
    if isinstance(data, list | tuple):
        return tuple(from_plain(item) for item in data)
    return data


def build(cls: type, data: Mapping[str, Any], called: str) -> Any:
    """Make ``cls`` from plain fields; unknown or missing fields are named in the error."""
    fields = {field.name: field for field in dataclasses.fields(cls)}
    for name in data:
        known_name(f"{called} field", name, fields, ClaimError)
    missing = [n for n, f in fields.items() if n not in data and not _has_default(f)]
    if missing:
        raise ClaimError(f"{called} needs {listing(missing)}; got {listing(data)}.")
    return cls(**{name: from_plain(item) for name, item in data.items()})


def _decode_kind(data: Mapping[str, Any]) -> Any:
    name = known_name("Kind", data["kind"], _KINDS, ClaimError)
    return build(_KINDS[name], {key: v for key, v in data.items() if key != "kind"}, name)


def _plain_scalar(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise EquipoiseError(
        f"{type(value).__name__} {value!r} cannot be written to a plan. Plans hold columns, "
        "numbers and formulas written as text; compute the column beforehand, "
        "or write the formula as text."
    )


def _has_default(field: "dataclasses.Field[Any]") -> bool:
    return (
        field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
    )


def _at_default(field: "dataclasses.Field[Any]", value: Any) -> bool:
    if field.default is not dataclasses.MISSING:
        return type(value) is type(field.default) and bool(value == field.default)
    if field.default_factory is not dataclasses.MISSING:
        return bool(value == field.default_factory())
    return False
