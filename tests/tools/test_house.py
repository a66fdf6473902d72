"""What is counted, and that CONTRIBUTING.md still says what there is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tools import house

SOURCE = '''"""A module
of two lines."""

import os  # noqa: F401

#: Seconds.
LIMIT = 5


def wait(
    seconds: int,  # whole ones: a clock without fractions
) -> int:
    """Wait."""
    # a reason
    text = """not
    a docstring"""
    return len(text)


class Field:
    """A class."""

    size: int
    """Its size."""

    def loose(self, other):
        return other
'''


def test_docstrings_comments_and_blank_lines_are_no_code() -> None:
    # import, LIMIT, def (3), text (2), return, class, size, def, return
    assert house.code_lines(SOURCE, ast.parse(SOURCE)) == 12


def test_notes_to_a_tool_are_no_comments() -> None:
    assert house.comment_lines(SOURCE) == 3


def test_functions_are_measured_without_their_docstrings() -> None:
    wait, loose = (n for n in ast.walk(ast.parse(SOURCE)) if isinstance(n, ast.FunctionDef))
    assert (house.body_lines(wait), house.body_lines(loose)) == (7, 2)
    assert (house.is_typed(wait), house.is_typed(loose)) == (True, False)


def _shape(text: str) -> str:
    return re.sub(r"[\d.]+|\s+", " ", text)


def _numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]


def test_the_page_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    page = house.PAGE.read_text()
    house.main(["--markdown"])
    now = capsys.readouterr().out
    written = page.split(house.BEGIN)[1].split(house.END)[0]
    assert _shape(written).split() == _shape(now).split()
    for said, true in zip(_numbers(written), _numbers(now), strict=True):
        # a day's work may not make the page wrong, a month's must
        assert said == pytest.approx(true, rel=0.1, abs=1.0), "make house ARGS=--write"


def test_writing_replaces_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{house.BEGIN}old\n{house.END}after\n")
    monkeypatch.setattr(house, "PAGE", page)
    house.main(["--write"])
    first = page.read_text()
    house.main(["--write"])
    assert page.read_text() == first
    assert first.startswith("before\n")
    assert first.endswith("after\n")
    assert "old\n" not in first
    assert "cells/ ──► methods/" in first
