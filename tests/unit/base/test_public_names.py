"""Every public name says what it is, and every function shows how it is used."""

import inspect
import types

import pytest

import equipoise as eq


def test_all_names_exist_and_are_listed() -> None:
    assert len(set(eq.__all__)) == len(eq.__all__)
    assert set(dir(eq)) >= set(eq.__all__)
    for name in eq.__all__:
        assert getattr(eq, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'descrbe'"):
        _ = eq.descrbe


@pytest.mark.parametrize("name", [name for name in eq.__all__ if name != "__version__"])
def test_public_names_have_docstrings(name: str) -> None:
    thing = getattr(eq, name)
    assert (inspect.getdoc(thing) or "").strip()
    if inspect.isclass(thing) and thing.__doc__ is not None:
        assert not thing.__doc__.startswith(f"{name}(")  # a dataclass would write its signature


@pytest.mark.parametrize(
    "name", [n for n in eq.__all__ if isinstance(getattr(eq, n), types.FunctionType)]
)
def test_public_functions_show_an_example(name: str) -> None:
    assert ">>> " in (inspect.getdoc(getattr(eq, name)) or "")


def test_examples_of_wrapped_functions_are_run() -> None:
    import doctest

    found = doctest.DocTestFinder().find(inspect.getmodule(eq.gap))
    assert any(test.name.endswith(".gap") and test.examples for test in found)
