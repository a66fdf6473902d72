"""Examples in docstrings become code on the reference pages."""

from tools.griffe_doctests import fenced


def test_a_bare_example_is_fenced() -> None:
    text = "Add.\n\n>>> 1 + 1\n2\n\nMore."
    assert fenced(text) == "Add.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore."


def test_two_examples_are_two_blocks() -> None:
    assert fenced(">>> 1\n1\n\n>>> 2\n2").count("```pycon") == 2


def test_a_section_of_examples_is_left_alone() -> None:
    text = "Add.\n\nExamples\n--------\n>>> 1 + 1\n2"
    assert fenced(text) == text


def test_text_without_examples_is_left_alone() -> None:
    assert fenced("Compare a >> b.\n\nAnd more.") == "Compare a >> b.\n\nAnd more."
