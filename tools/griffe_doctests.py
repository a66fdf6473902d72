"""For the reference pages: examples that stand in a docstring without a heading become code.

mkdocstrings reads docstrings in numpy style, in which examples have a section of their own. Short
docstrings here end in a bare example, which Markdown would take for quotations.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Extension: Any = object
else:
    try:
        from griffe import Extension
    except ImportError:  # the tests do without the requirements of the documentation
        Extension = object

EXAMPLE = re.compile(r"(?:^|(?<=\n\n))(>>> (?:.+\n?)+)")


def fenced(text: str) -> str:
    """The docstring with its bare examples as blocks of code."""
    if re.search(r"^Examples\n-+$", text, re.MULTILINE):
        return text
    return EXAMPLE.sub(lambda found: f"```pycon\n{found[1].rstrip()}\n```\n", text).rstrip()


class Doctests(Extension):  # type: ignore[misc]
    """Called by mkdocstrings for every object it shows."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Put the examples of the object's docstring into blocks."""
        if not obj.is_alias and obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
