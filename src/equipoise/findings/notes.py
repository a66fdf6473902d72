"""Method notes: what each kind of finding answers, how, and when not to use it."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType

from equipoise._validate import known_name
from equipoise.errors import EquipoiseError


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a reader needs to know of one kind of finding."""

    kind: str
    """The kind of finding."""
    title: str
    """Its name in plain words."""
    question: str
    """The question it answers."""
    computed: str
    """What is computed, in a few sentences."""
    reading: str
    """How to read it."""
    avoid: str
    """When not to use it."""
    paper: str
    """Where the method comes from."""


def _read(text: str) -> dict[str, Note]:
    """The notes of a text: a heading for each kind, then its fields; further lines are indented."""
    notes = {}
    for part in text.split("# ")[1:]:
        kind, rest = part.split("\n", 1)
        lines = rest.replace("\n    ", " ").strip().split("\n")
        fields = dict(line.split(": ", 1) for line in lines)
        notes[kind] = Note(kind=kind, **fields)
    return notes


NOTES: Mapping[str, Note] = MappingProxyType(
    _read(files("equipoise.findings").joinpath("notes.txt").read_text(encoding="utf-8"))
)
"""The note of each kind of finding."""


def note_of(kind: str) -> Note:
    """The note of a kind of finding; an error says which kinds there are.

    >>> note_of("flags").title
    'Groups that are flagged'
    """
    spelled = {_plain(name): name for name in NOTES}
    name = spelled.get(_plain(str(kind)), str(kind))
    return NOTES[known_name("Kind of finding", name, NOTES, EquipoiseError)]


def _plain(name: str) -> str:
    return name.replace("_", " ").replace("-", " ").strip().lower()
