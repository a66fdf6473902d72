"""The JSON Schema of evidence, from the annotations that its reader goes by."""

import dataclasses
import enum
import types
from collections.abc import Mapping
from typing import Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from equipoise.findings.evidence import SCHEMA
from equipoise.findings.finding import NOT_STORED, Finding, kinds_of_findings

DRAFT = "https://json-schema.org/draft/2020-12/schema"

#: Infinite numbers are written as a mapping, since JSON has none.
_INFINITE = {"type": "object", "required": ["number"], "properties": {"number": {"type": "string"}}}
_SCALARS: dict[object, dict[str, object]] = {
    float: {"anyOf": [{"type": "number"}, _INFINITE]},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    str: {"type": "string"},
    types.NoneType: {"type": "null"},
}

Schema = dict[str, object]


def evidence_schema() -> Schema:
    """What an evidence file of this version holds.

    >>> schema = evidence_schema()
    >>> schema["properties"]["schema"]["const"]
    'equipoise-evidence/1'
    >>> "bounds" in schema["$defs"]
    True
    """
    # ours alone, and sorted: neither what others added nor what was imported first must show
    known = sorted(kinds_of_findings().items())
    kinds = {kind: cls for kind, cls in known if cls.__module__.startswith("equipoise.")}
    parts: dict[str, Schema] = {}
    definitions = {kind.replace(" ", "_"): _finding(cls, parts) for kind, cls in kinds.items()}
    text, some_text = {"type": "string"}, {"type": ["string", "null"]}
    entry = {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "asked", "finding"],
        "properties": {
            "name": text,
            "asked": {"enum": ["confirmatory", "exploratory"]},
            "finding": {"oneOf": [{"$ref": f"#/$defs/{name}"} for name in definitions]},
        },
    }
    properties: Schema = {
        "schema": {"const": SCHEMA},
        "title": text,
        "verdict": {"enum": ["kept", "exceeded", "undetermined"]},
        "created": text,
        "plan_hash": some_text,
        "fingerprint": text,
        "input": {
            "type": "object",
            "additionalProperties": False,
            "required": ["name", "sha256"],
            "properties": {"name": text, "sha256": text},
        },
        "versions": {"type": "object", "additionalProperties": text},
        "plan": {"type": ["object", "null"]},
        "notes": {"type": "array", "items": text},
        "entries": {"type": "array", "items": entry},
        "seal": text,
    }
    return {
        "$schema": DRAFT,
        "$id": f"urn:{SCHEMA.replace('/', ':')}",
        "title": "Evidence of an audit by equipoise",
        "type": "object",
        "additionalProperties": False,
        "required": [name for name in properties if name not in ("input", "notes")],
        "properties": properties,
        "$defs": {**definitions, **dict(sorted(parts.items()))},
    }


def _finding(cls: type[Finding], parts: dict[str, Schema]) -> Schema:
    made = _fields(cls, parts)
    rows = {"type": "array", "items": _of(cls.row_type, parts)}
    properties = {"kind": {"const": cls.kind}, **made["properties"], "rows": rows}  # type: ignore[dict-item]
    return {**made, "required": ["kind", *made["required"]], "properties": properties}  # type: ignore[misc]


def _fields(cls: type, parts: dict[str, Schema]) -> Schema:
    """An object with the fields of a class; those that have a default may be missing."""
    hints, missing = get_type_hints(cls), dataclasses.MISSING
    fields = [f for f in dataclasses.fields(cls) if f.metadata != NOT_STORED]
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [f.name for f in fields if f.default is missing is f.default_factory],
        "properties": {f.name: _of(hints[f.name], parts) for f in fields},
    }


def _of(hint: object, parts: dict[str, Schema]) -> Schema:
    origin, inner = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and hint in _SCALARS:
        return dict(_SCALARS[hint])
    if origin in (Union, types.UnionType):
        return {"anyOf": [_of(part, parts) for part in inner]}
    if origin is Literal:
        return {"enum": [*inner]}
    if origin is tuple and inner[-1] is ...:
        return {"type": "array", "items": _of(inner[0], parts)}
    if origin is tuple:
        each = [_of(part, parts) for part in inner]
        return {"type": "array", "prefixItems": each, "minItems": len(each), "maxItems": len(each)}
    if origin is Mapping:
        return {"type": "object"}
    if origin is np.ndarray:
        return {"type": "array"}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        name = f"part_{hint.__name__}"
        if name not in parts:
            parts[name] = {}  # a class may hold others of its kind
            parts[name] = _fields(hint, parts)
        return {"$ref": f"#/$defs/{name}"}
    return {}
