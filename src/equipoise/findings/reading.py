"""Plain data read back into the frozen class that wrote it, every field held to its type.

What a field may hold is what its annotation says, so a class with a new field needs no code here,
and a file that was edited by hand is refused by the name of the field that is wrong.
"""

import dataclasses
import enum
import functools
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from equipoise._codec import from_plain
from equipoise._validate import known_name, listing, short
from equipoise.errors import EquipoiseError

T = TypeVar("T")
Reader = Callable[[Any, str], Any]

#: What JSON has for a scalar, and what a message calls it.
_SCALARS: dict[Any, tuple[tuple[type, ...], str]] = {
    float: ((float, int), "a number"),
    int: ((int,), "a whole number"),
    bool: ((bool,), "true or false"),
    str: ((str,), "text"),
}


def read_back(cls: type[T], data: Any, called: str) -> T:
    """The value of class ``cls`` whose fields ``data`` holds.

    >>> from equipoise.findings import Provenance
    >>> read_back(Provenance, {"version": 1}, "provenance")
    Traceback (most recent call last):
    equipoise.errors.EquipoiseError: provenance field 'version' must be text; got 1.
    """
    if not isinstance(data, Mapping):
        raise EquipoiseError(f"{called} must be a mapping of its fields; got {_said(data)}.")
    made_of: Any = cls
    readers, needed = _readers(made_of)
    for name in data:
        if name not in readers:
            known_name(f"{called} field", short(str(name)), readers, EquipoiseError)
    made = {name: readers[name](item, f"{called} field {name!r}") for name, item in data.items()}
    missing = [name for name in readers if name in needed and name not in made]
    if missing:
        word = "field" if len(missing) == 1 else "fields"
        raise EquipoiseError(f"{called} lacks the {word} {listing(missing)}.")
    return cls(**made)


def is_quoted(value: Any) -> bool:
    """Whether a mapping is a claim or a method in plain form, which a finding quotes as it is."""
    return isinstance(value, Mapping) and "kind" in value


@functools.cache
def _readers(cls: Any) -> tuple[dict[str, Reader], frozenset[str]]:
    """How each field of a class is read, and which must be there; worked out once for all rows."""
    hints, missing = get_type_hints(cls), dataclasses.MISSING
    fields = dataclasses.fields(cls)
    needed = [f.name for f in fields if f.default is missing is f.default_factory]
    return {f.name: _reader(hints[f.name]) for f in fields}, frozenset(needed)


def _reader(hint: Any) -> Reader:
    origin, inner = get_origin(hint), get_args(hint)
    if hint in _SCALARS:
        return functools.partial(_scalar, hint)
    if origin in (Union, types.UnionType):
        (only,) = (_reader(part) for part in inner if part is not types.NoneType)
        return lambda data, place: None if data is None else only(data, place)
    if origin is Literal:
        return functools.partial(_one_of, inner)
    if origin is tuple and inner[-1] is ...:
        return functools.partial(_list, _reader(inner[0]))
    if origin is tuple:
        return functools.partial(_fixed, [_reader(part) for part in inner])
    if origin is Mapping:
        return functools.partial(_mapping, _reader(inner[1]))
    if origin is np.ndarray:
        return _array
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return functools.partial(_member, hint)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return functools.partial(_part, hint)
    return _anything


def _scalar(kind: type, data: Any, place: str) -> Any:
    # Infinite numbers are written as a mapping, since JSON has none.
    value = from_plain(data) if isinstance(data, Mapping) else data
    fitting, words = _SCALARS[kind]
    # To Python a truth value is a whole number; to a reader of the file it is not.
    if isinstance(value, fitting) and (kind is bool or not isinstance(value, bool)):
        return value
    raise EquipoiseError(f"{place} must be {words}; got {_said(data)}.")


def _one_of(known: tuple[Any, ...], data: Any, place: str) -> Any:
    if data in known:
        return data
    raise EquipoiseError(f"{place} must be one of {listing(known)}; got {_said(data)}.")


def _member(kind: type[enum.Enum], data: Any, place: str) -> enum.Enum:
    return kind(_one_of(tuple(member.value for member in kind), data, place))


def _list(read: Reader, data: Any, place: str) -> tuple[Any, ...]:
    if not isinstance(data, list | tuple):
        raise EquipoiseError(f"{place} must be a list; got {_said(data)}.")
    return tuple(read(item, place) for item in data)


def _fixed(readers: list[Reader], data: Any, place: str) -> tuple[Any, ...]:
    if not isinstance(data, list | tuple) or len(data) != len(readers):
        raise EquipoiseError(f"{place} must be a list of {len(readers)}; got {_said(data)}.")
    return tuple(read(item, place) for read, item in zip(readers, data, strict=True))


def _mapping(read: Reader, data: Any, place: str) -> Mapping[str, Any]:
    if is_quoted(data):
        return data  # type: ignore[no-any-return]
    plain = from_plain(data)
    if not isinstance(plain, Mapping):
        raise EquipoiseError(f"{place} must be a mapping; got {_said(data)}.")
    if read is _anything:
        return plain
    return {key: read(item, f"{place}, {_said(key)},") for key, item in plain.items()}


def _array(data: Any, place: str) -> Any:
    try:
        return np.array(data, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        said = f"{place} must be numbers in equal rows; got {_said(data)}."
        raise EquipoiseError(said) from error


def _part(cls: type, data: Any, place: str) -> Any:
    return data if isinstance(data, cls) else read_back(cls, data, place)


def _anything(data: Any, _place: str) -> Any:
    return from_plain(data)


def _said(data: Any) -> str:
    return short(repr(data))
