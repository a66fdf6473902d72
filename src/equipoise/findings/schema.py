"""The JSON Schema of evidence, from the annotations that its reader goes by."""

from equipoise._codec import DRAFT, Schema
from equipoise.findings.evidence import SCHEMA
from equipoise.findings.finding import STORED, Finding, kinds_of_findings


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
    made = STORED.fields_schema(cls, parts)
    rows = {"type": "array", "items": STORED.schema(cls.row_type, parts)}
    properties = {"kind": {"const": cls.kind}, **made["properties"], "rows": rows}  # type: ignore[dict-item]
    return {**made, "required": ["kind", *made["required"]], "properties": properties}  # type: ignore[misc]
