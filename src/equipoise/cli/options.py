"""Options that several commands share, and how commands end."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from equipoise.errors import OptionError

if TYPE_CHECKING:
    from equipoise.plan.run import Exit

T = TypeVar("T")
#: Columns that hold two values, each of which may have a word of its own for 1.
_ROLES = ("label", "prediction")


# --- Options that several commands share, and how they are read ---

Plan = Annotated[Path, typer.Argument(help="The plan, a YAML file.", metavar="PLAN")]
Plans = Annotated[list[Path], typer.Argument(help="Plans, YAML files.", metavar="PLAN...")]
Source = Annotated[
    str,
    typer.Argument(
        help="A table: CSV, Parquet, Excel, JSON lines …, folder, glob or database.", metavar="DATA"
    ),
]
Label = Annotated[str | None, typer.Option(help="Column with what really happened.")]
Prediction = Annotated[str | None, typer.Option(help="Column with what the model decided.")]
Score = Annotated[str | None, typer.Option(help="Column with the model's number before deciding.")]
Weight = Annotated[str | None, typer.Option(help="Column with sampling weights.")]
Count = Annotated[str | None, typer.Option(help="Column with how many identical rows a row is.")]
Cluster = Annotated[
    str | None, typer.Option(help="Column whose equal values mark rows that are not independent.")
]
Pair = Annotated[
    str | None, typer.Option(help="Column whose equal values join two rows, such as twins.")
]
Positive = Annotated[
    list[str] | None,
    typer.Option(
        help="Value of label and prediction that counts as 1, if a word; where they differ, "
        "label=Good and prediction=Yes, each with an option of its own."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the evidence as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Suppress = Annotated[
    int | None,
    typer.Option(min=2, help="Leave groups with fewer rows than this out of report and evidence."),
]
FullEvidence = Annotated[
    Path | None,
    typer.Option(
        help="With --suppress: also write the full evidence, small groups included, here."
    ),
]
Data = Annotated[str | None, typer.Option(help="The rows, if they are not where the plan says.")]
Table = Annotated[str | None, typer.Option(help="Name of the table, if the data holds several.")]
Encoding = Annotated[
    str | None, typer.Option(help="What a CSV file is written in, such as cp1252.")
]
Hash = Annotated[str | None, typer.Option(help="Refuse to run unless the plan has this hash.")]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        help="A source outside its folder that the plan may open, as the plan writes it, or a "
        "folder; may be given several times.",
        envvar="EQUIPOISE_ALLOW",
        show_envvar=True,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that hold something else.")]
Out = Annotated[Path, typer.Option(help="Folder for evidence.json and report.html.")]


def names(text: str | None) -> list[str]:
    """Names separated by commas.

    >>> names("race, sex")
    ['race', 'sex']
    """
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def number_or_word(text: str) -> str | int:
    """A value of the label as typed: whole numbers are numbers."""
    # A shell has no types: what looks like a whole number is meant as one.
    return int(text) if text.lstrip("-").isdigit() else text


def positive_of(given: list[str] | None) -> str | int | dict[str, str | int] | None:
    """Which value counts as 1: one for both columns, or one for each.

    >>> positive_of(["yes"]), positive_of(["label=Good", "prediction=1"])
    ('yes', {'label': 'Good', 'prediction': 1})
    """
    parts = [one.partition("=") for one in given or ()]
    named = {role: number_or_word(value) for role, sign, value in parts if sign and role in _ROLES}
    if not given or (len(given) == 1 and not named):
        return number_or_word(given[0]) if given else None
    if len(named) < len(given):
        raise OptionError(
            "--positive takes one value, or one for each column, as in --positive label=Good "
            f"--positive prediction=Yes; got {' and '.join(given)}."
        )
    return named


def given(**roles: T | None) -> dict[str, T]:
    """The options that were given."""
    return {name: value for name, value in roles.items() if value is not None}


# --- Leaving a command with a verdict ---

#: Exit codes as `equipoise.plan.Exit` has them: plans bring in half a second of imports, which
#: `--help` and a mistyped command should not wait for.
DONE, ERROR = 0, 3


class Leave(Exception):  # noqa: N818 (not an error)
    """A command is done, and its exit code says what it found."""

    def __init__(self, code: "Exit") -> None:
        super().__init__(int(code))
        self.code = code
