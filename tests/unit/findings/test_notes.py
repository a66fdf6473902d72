"""Every kind of finding has a note."""

import dataclasses

import pytest

import equipoise as eq
from equipoise.findings import finding as findings
from equipoise.findings.words import NOTES, Note, note_of


def test_every_kind_has_a_note() -> None:
    kinds = {
        kind for kind, cls in findings._KINDS.items() if cls.__module__.startswith("equipoise.")
    }
    assert kinds <= set(NOTES)


@pytest.mark.parametrize("note", NOTES.values(), ids=lambda note: note.kind)
def test_notes_say_something_everywhere(note: Note) -> None:
    texts = [getattr(note, field.name) for field in dataclasses.fields(note)]
    assert all(texts)
    assert note.question.endswith("?")
    for text in (note.computed, note.reading, note.avoid):
        assert text.endswith(".")
    assert not note.paper.endswith(".")


def test_kinds_are_found_however_they_are_spelled() -> None:
    assert note_of("fair_choice") is note_of("fair choice") is NOTES["fair choice"]
    assert note_of("Joint test") is NOTES["joint_test"]
    with pytest.raises(eq.EquipoiseError, match=r"'flag' does not exist. Did you mean 'flags'"):
        note_of("flag")
