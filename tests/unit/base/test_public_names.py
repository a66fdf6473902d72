"""Every public name says what it is, and every function shows how it is used."""

import inspect
import re
from pathlib import Path

import pytest

import equipoise as eq
from equipoise import audits

NAMES = [name for name in eq.__all__ if name != "__version__"]
REFERENCE = Path(__file__).parents[3] / "docs" / "reference"


def test_all_names_exist_and_are_listed() -> None:
    assert len(set(eq.__all__)) == len(eq.__all__)
    assert set(dir(eq)) == set(eq.__all__)
    for name in eq.__all__:
        assert getattr(eq, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'descrbe'"):
        _ = eq.descrbe  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", NAMES)
def test_public_names_have_docstrings(name: str) -> None:
    thing = getattr(eq, name)
    assert (inspect.getdoc(thing) or "").strip()
    if inspect.isclass(thing) and thing.__doc__ is not None:
        assert not thing.__doc__.startswith(f"{name}(")  # a dataclass would write its signature


@pytest.mark.parametrize("name", NAMES)
def test_public_names_show_an_example(name: str) -> None:
    assert ">>> " in (inspect.getdoc(getattr(eq, name)) or "")


@pytest.mark.parametrize("name", NAMES)
def test_public_names_are_in_the_reference(name: str) -> None:
    pages = "".join(page.read_text() for page in REFERENCE.glob("*.md"))
    assert re.search(rf"\b{name}\b", pages), f"no page of docs/reference speaks of {name}"


def test_the_verbs_are_those_of_audits() -> None:
    # the package writes them into its own list, but takes them from there
    assert set(audits.VERBS) < set(eq.__all__)
    assert all(getattr(eq, name) is audits.verb(name) for name in audits.VERBS)


def test_errors_are_few_and_of_one_family() -> None:
    errors = [getattr(eq, name) for name in NAMES if name.endswith("Error")]
    assert len(errors) == 5
    assert all(issubclass(error, eq.EquipoiseError) for error in errors)


FUNCTIONS = [name for name in NAMES if inspect.isfunction(getattr(eq, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_misspelt_option_is_an_error_of_ours(name: str) -> None:
    # those that take attributes by name cannot know which exist; each pack has options of its own
    if name not in ("kernel", "masks", "pack", "reference", "tilts"):
        with pytest.raises(eq.OptionError, match=f"{name}\\(\\) option 'misspelt' does not exist"):
            getattr(eq, name)(misspelt=1)


def test_examples_of_wrapped_functions_are_run() -> None:
    import doctest

    found = doctest.DocTestFinder().find(inspect.getmodule(eq.gap))
    assert any(test.name.endswith(".gap") and test.examples for test in found)
