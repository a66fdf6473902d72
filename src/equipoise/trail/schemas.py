"""What tables must have to be read: columns that can be told apart, one schema for all files."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from equipoise._validate import listing
from equipoise.errors import TrailError


def refuse_repeated(names: Sequence[object], called: str) -> None:
    """Refuse a table in which two columns have one name."""
    # Engines of the SQL kind do not tell "Age" from "age".
    times = Counter(str(name).lower() for name in names)
    repeated = sorted({str(name) for name in names if times[str(name).lower()] > 1})
    if repeated:
        raise TrailError(
            f"{called} has more than one column named {listing(repeated)}. "
            "Rename them so that each column can be told apart."
        )


def refuse_different(
    first: str, one: Iterable[tuple[str, object]], second: str, two: Iterable[tuple[str, object]]
) -> None:
    """Refuse two files whose columns, each with its type or its place, are not the same."""
    names = {name for name, _ in {*one} ^ {*two}}
    if names:
        raise TrailError(
            f"The files do not share one schema: {Path(first).name} and {Path(second).name} differ "
            f"in {listing(sorted(names))}. Read them one by one, or rewrite them with one schema."
        )


def literal_path(file: str) -> str:
    """A path in which an engine finds no wildcard.

    >>> literal_path("what?.csv")
    'what[?].csv'
    """
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in file)


def called_in_messages(files: list[str]) -> str:
    """Files as messages call them.

    >>> called_in_messages(["data/a.csv", "data/b.csv"])
    'a.csv and others'
    """
    return Path(files[0]).name if len(files) == 1 else f"{Path(files[0]).name} and others"
