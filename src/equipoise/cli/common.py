"""Options that several commands share, and how commands end.

What the commands print: verdict, sentences, tables that fit the terminal.
"""

import enum
import io
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypeVar, cast

import typer
from rich.console import Console
from rich.padding import Padding
from rich.status import Status
from rich.table import Table as Grid
from rich.text import Text

from equipoise._validate import short
from equipoise.errors import OptionError
from equipoise.findings.evidence import Entry, Evidence, brief, first_headlines, warnings_of
from equipoise.findings.finding import Finding
from equipoise.findings.joint_test import Joint
from equipoise.findings.words import (
    Verdict,
    cell_text,
    head_text,
    telling_order,
    unit_of,
    unit_text,
)

if TYPE_CHECKING:
    from equipoise.packs import PackResult
    from equipoise.plan import Gate
    from equipoise.plan.run import Exit
    from equipoise.report.suppress import Kept
    from equipoise.trail import Trail

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
Missing = Annotated[
    list[str] | None,
    typer.Option(
        help="Word that means a missing value in every column of a text file, instead of NA and "
        "the like; may be given several times."
    ),
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
Across = Annotated[str, typer.Option(help="Attributes that form groups: race,sex.")]
Metrics = Annotated[
    list[str] | None,
    typer.Option(help="Metric, or several with commas between; may be given several times."),
]
Ratio = Annotated[
    bool, typer.Option("--ratio", help="Compare by ratios, as the four-fifths rule does.")
]
Depth = Annotated[int | None, typer.Option(min=1, help="How many attributes a group may combine.")]
Bins = Annotated[
    int, typer.Option(min=2, help="Ranges of about equally many rows a number is cut into.")
]
Level = Annotated[float, typer.Option(help="Confidence of bounds.")]
Fdr = Annotated[float, typer.Option(help="Share of flags that may be false.")]
Seed = Annotated[int, typer.Option(min=0, help="Start of all randomness.")]


class Undetermined(enum.StrEnum):
    """What absence of evidence means for a release."""

    PASS = "pass"
    FAIL = "fail"


class Harm(enum.StrEnum):
    """The direction of a disparity that is worse for those concerned."""

    HIGH = "high"
    LOW = "low"
    BOTH = "both"


HarmOption = Annotated[
    Harm,
    typer.Option(
        help="Which disparities count as harm: high, low or both; with several metrics, name in "
        "--metric what it is about."
    ),
]


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


#: What a metric's own direction reads as.
_HARMS = {
    Harm.HIGH: "where it is higher",
    Harm.LOW: "where it is lower",
    Harm.BOTH: "either way",
}


def one_direction(harm: Harm, named: Sequence[str], usual: Sequence[str]) -> None:
    """Refuse one direction for several metrics that nobody named, of which each has its own."""
    if harm is Harm.BOTH or named or len(usual) < 2:
        return
    from equipoise.claims.metric import as_metric

    own = {name: Harm(as_metric(name).harm) for name in usual}
    said = "; ".join(f"{name} harms {_HARMS[own[name]]}" for name in usual)
    first = next((name for name in usual if own[name] is not Harm.BOTH), usual[0])
    way = harm if own[first] is Harm.BOTH else own[first]
    raise OptionError(
        f"--harm {harm} would stand for {len(usual)} metrics that nobody named, and they do not "
        f"all harm the same way: {said}. Name what it is about, such as --metric {first} "
        f"--harm {way}, or leave --harm out: then the limit counts on both sides."
    )


def names_in(given: list[str] | None) -> list[str]:
    """What an option names that may be given several times, with commas between."""
    return [name for text in given or () for name in names(text)]


def attributes_in(across: str) -> list[str]:
    """The attributes that form groups."""
    found = names(across)
    if not found:
        raise OptionError("--across needs at least one attribute, such as --across race,sex.")
    return found


def refuse_to_overwrite(out: Path | None, force: bool) -> None:
    """Refuse to write where a file is, unless told to."""
    if out is not None and out.exists() and not force:
        raise OptionError(f"{out} exists already. Pass another --out, or --force to overwrite it.")


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


def needs_gate(evidence: Evidence, told: "Sequence[Kept] | None", gate: str) -> str:
    """Where to have an exit code, if a limit is not shown to be kept and this command has none."""
    from equipoise.report.suppress import conclusion_of, suppressed

    kept = [*(told or suppressed([entry.finding for entry in evidence.entries], None))]
    settled = conclusion_of(evidence, kept) in (None, Verdict.KEPT)
    return "" if settled or not gate else f"{gate} makes this an exit code."


def gate_words(judged: "Gate", told: "Sequence[Kept] | None") -> str:
    """Why a gate leaves with its code, and on whom that rests where groups are hidden."""
    if all(one.whole for one in told or ()):
        return judged.words
    return f"{judged.words} (This counts the groups that are not published, too.)"


#: Signs of a group's name for which there is always room.
_NAME = 14
#: Rows of a finding that are printed; the report has all of them.
ROWS = 12
#: Claims of which the first lines say who differs, and by how much.
HEADLINES = 4

_SIGNS = {
    Verdict.KEPT: ("✓ kept", "green"),
    Verdict.EXCEEDED: ("✗ exceeded", "red"),
    Verdict.UNDETERMINED: ("? undetermined", "yellow"),
    None: ("· no limit", "dim"),
}


def console() -> Console:
    """Standard output, as wide as it is."""
    # Colours mean verdicts here; rich would also colour every number.
    return Console(highlight=False)


def complain(message: str) -> None:
    """An error, on standard error."""
    Console(stderr=True, highlight=False).print(
        Text("error: ", style="bold red") + Text(printable(message)), soft_wrap=True
    )


def say(message: str, style: str = "") -> None:
    """One line on standard output."""
    console().print(Text(printable(message), style=style), soft_wrap=True)


#: Commands that take the meaning of columns as options; all others read it from a plan.
_WITH_OPTIONS = (("audit",), ("plan", "init"), ("pack",), ("power",))
#: Those of them that take words for missing values.
_WITH_WORDS = (("audit",), ("plan", "init"))
#: What errors call a column's role in Python: ``Pass label=… to equipoise.read``.
_ROLE = re.compile(
    r"(?:\b(?P<pass>[Pp]ass) )?\b(?P<role>label|prediction|score|low|high|weight|count|cluster|pair"
    r"|proxy_label|observed|table|attributes|positive|encoding|missing)=(?P<value>…|\[…\]|'[^']*')"
    r"(?: to\s+equipoise\.read)?"
)

#: What is said in other words altogether: in Python, with options, and in a plan.
_PHRASES = (
    (
        "positive={'label': …, 'prediction': …}",
        "--positive label=WORD --positive prediction=WORD",
        "`positive: {label: …, prediction: …}` under `trail:` in the plan",
    ),
    (
        "Use fewer attributes, a smaller depth= or a coarser grid=, or pass max_groups=… to allow "
        "as many.",
        "Name fewer attributes in --across, or let groups combine fewer, as with --depth 2.",
        "Name fewer attributes under `across:`, or write `across: {kind: intersections, "
        "attributes: […], depth: 2}`.",
    ),
    (
        "Pass attributes=[…] to equipoise.read to add it",
        "Name one of them in --across, or write a plan: its `trail:` may list other `attributes:`",
        "Write `attributes: […]` under `trail:` in the plan to add it",
    ),
)
#: A role that is spoken of without a value, as in ``Read the trail without cluster=.``
_BARE = re.compile(
    r"\b(label|prediction|score|weight|count|cluster|pair|positive|encoding|missing|unknown)="
    r"(?=[\s,.;)]|$)"
)
#: Which value of one column counts as 1, and what is made of unknown people.
_POSITIVE_OF = re.compile(r"\bpositive=\{'(\w+)': ([^{},…]+)\}")
_UNKNOWN_AS = re.compile(r"\bunknown='(\w+)'")
#: What a command calls the plan that it makes of its options, and which nobody wrote.
_OWN_PLAN = "this command: "
#: What packs call their further options in Python.
_FURTHER = re.compile(r"\b([a-z_]+)=(?=…)")


def in_words_of(arguments: Sequence[str], message: str) -> str:
    """An error that tells Python's caller what to pass, for whoever typed a command.

    >>> in_words_of(["audit", "d.csv"], "Pass positive=… to equipoise.read to say which is 1.")
    'Pass --positive … to say which is 1.'
    >>> in_words_of(["run", "plan.yaml"], "Pass label=… to equipoise.read.")
    'Write `label: …` under `trail:` in the plan.'
    """
    options, words = (
        any(tuple(arguments[: len(command)]) == command for command in those)
        for those in (_WITH_OPTIONS, _WITH_WORDS)
    )
    for python, command, plan in _PHRASES:
        message = message.replace(python, command if options else plan)

    def said(found: re.Match[str]) -> str:
        role, value, verb = found["role"], found["value"], found["pass"] or ""
        # no command has an option for the first three, and few have one for the last
        absent = ("attributes", "low", "high", *(() if words else ("missing",)))
        if options and role not in absent:
            return f"{verb} --{role} {value}".strip()
        verb = {"Pass": "Write ", "pass": "write "}.get(verb, verb)
        return f"{verb}`{role}: {value}` under `trail:` in the plan"

    message = message.removeprefix(_OWN_PLAN)
    for pattern, command, plan in (
        (_POSITIVE_OF, r"--positive \1=\2", r"`positive: {\1: \2}` under `trail:`"),
        (_UNKNOWN_AS, r"--unknown \1", r"`unknown: \1`"),
    ):
        message = pattern.sub(command if options else plan, message)
    told = _BARE.sub(r"--\1" if options else r"`\1:`", _ROLE.sub(said, message))
    if list(arguments[:1]) == ["pack"]:
        told = _FURTHER.sub(lambda found: f"--{found[1].replace('_', '-')} ", told)
    return told


class Outlet:
    """A stream that falls silent when nobody reads it any more, as in ``equipoise check … | head``.

    What a command found does not depend on whether someone reads it to the end; so its exit code
    must not either.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write, or drop what nobody reads."""
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            return self._dropped(len(text))

    def flush(self) -> None:
        """Send on what was written."""
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._dropped(0)

    def _dropped(self, written: int) -> int:
        # what is still in the buffer must go somewhere, or every later flush fails again
        os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
        return written


def outlet(stream: TextIO) -> TextIO:
    """The stream, silent once nobody reads it, with a ? for signs that it cannot write."""
    # what was found does not depend on the signs that a log file or an old terminal knows
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")
    return cast(TextIO, Outlet(stream))


def printable(text: str) -> str:
    """Text without characters that would steer the terminal.

    >>> printable("a" + chr(27) + "[2Jb")
    'a�[2Jb'
    """
    return "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text)


def show_evidence(evidence: Evidence, told: "Sequence[Kept] | None" = None) -> None:
    """The verdict, then every finding in short; only what is ``told``, if that is given."""
    from equipoise.report.suppress import conclusion_of, sentences_of, suppressed

    out = console()
    kept = [*(told or suppressed([entry.finding for entry in evidence.entries], None))]
    sign, style = _SIGNS[conclusion_of(evidence, kept)]
    out.print(Text(printable(evidence.title), style="bold"))
    out.print(Text(sign, style=f"bold {style}"))
    found = [one.finding for one in kept]
    verdict, *rest = sentences_of(evidence, kept)
    first = [short(said, 400) for said in first_headlines(found, HEADLINES)]
    for sentence in (verdict, *first, *rest):
        out.print(Padding(Text(printable(sentence)), (0, 0, 0, 2)))
    # notes may count single rows
    notes = evidence.notes if told is None else ()
    for sentence in (*warnings_of(found), *notes):
        out.print(Padding(Text(f"! {printable(sentence)}", style="yellow"), (0, 0, 0, 2)))
    for entry, one in zip(evidence.entries, kept, strict=True):
        _show_entry(out, entry, one)


def _show_entry(out: Console, entry: Entry, kept: "Kept") -> None:
    finding = kept.finding
    sign, style = _SIGNS[kept.conclusion]
    out.print()
    heading = Text(printable(entry.name), style="bold") + Text(f"  {sign}", style=style)
    out.print(heading + Text(f"  ({entry.asked})", style="dim"))
    for sentence in brief(finding):
        out.print(Padding(Text(printable(sentence)), (0, 0, 0, 2)))
    _show_rows(out, finding)


def _show_rows(out: Console, finding: Finding) -> None:
    rows = telling(finding)
    if rows:
        columns = finding.terse or finding.columns
        units = {column: unit_of(finding, column) for column in columns}
        narrow = _crowded(out, rows, columns, units)
        out.print(Padding(table(rows, columns, units, narrow=narrow), (0, 0, 0, 2)))
    if len(rows) < len(finding):
        out.print(Padding(Text(f"{len(rows)} of {len(finding):,} rows", style="dim"), (0, 0, 0, 2)))


def _crowded(
    out: Console, rows: Sequence[object], columns: Sequence[str], units: Mapping[str, str]
) -> bool:
    """Whether numbers with their heads leave no room for the names of groups."""
    numbers = table(rows, [name for name in columns if name not in ("group", "note")], units)
    # measured where there is room, since a table never says that it needs more than there is
    needed = out.measure(numbers, options=out.options.update(width=10_000)).maximum
    return needed + _NAME + 4 > out.width


def show_finding(finding: Finding) -> None:
    """One finding that is no evidence: its words and its rows."""
    out = console()
    for sentence in finding.sentences():
        out.print(Padding(Text(printable(sentence)), (0, 0, 0, 2)))
    _show_rows(out, finding)
    out.print()


def telling(finding: Finding) -> list[object]:
    """The rows that say most: violations first, then the largest disparities."""
    if finding.kind == "power":
        # nothing is found yet, so the largest groups say most
        return sorted(finding.rows, key=lambda row: -row.n)[:ROWS]
    if isinstance(finding, Joint):
        return [*finding.by_evidence()[:ROWS]]
    relative = bool(getattr(finding, "relative", False))
    return sorted(finding.rows, key=lambda row: telling_order(row, relative))[:ROWS]


def table(
    rows: Sequence[object],
    columns: Iterable[str],
    units: Mapping[str, str] | None = None,
    *,
    folded: bool = False,
    narrow: bool = False,
) -> Grid:
    """Rows of a finding as a table that fits the terminal; ``folded`` breaks long heads.

    ``narrow`` breaks them at every blank, so that room is left for the names of groups.
    """
    units = {} if units is None else units
    made = Grid(box=None, pad_edge=False, header_style="dim")
    shown = [c for c in columns if any(getattr(row, c) not in (None, "") for row in rows)]
    head = "\n" if narrow else "\n("
    for column in shown:
        numeric = all(isinstance(getattr(row, column), int | float | None) for row in rows)
        made.add_column(
            # a unit on a line of its own leaves more room for names
            _folded(rows, column)
            if folded
            else head_text(column, units.get(column, "")).replace(" " if narrow else " (", head),
            justify="right" if numeric else "left",
            no_wrap=numeric,
            overflow="ellipsis",
            max_width=None if numeric else 44,
            min_width=min(_longest(rows, column), _NAME) if column == "group" else None,
        )
    for row in rows:
        texts = (unit_text(getattr(row, column), units.get(column, "")) for column in shown)
        made.add_row(*(Text(printable(_one_line(text))) for text in texts))
    return made


def _longest(rows: Sequence[object], column: str) -> int:
    return max((len(cell_text(getattr(row, column))) for row in rows), default=0)


def _folded(rows: Sequence[object], column: str) -> str:
    """The head of a column in lines no longer than its cells, or than its longest word."""
    cells = [cell_text(getattr(row, column)) for row in rows]
    return "\n".join(textwrap.wrap(column, max(map(len, [*column.split(), *cells]))))


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 80 else text[:79] + "…"


def show_files(paths: Iterable[Path]) -> None:
    """Where things were written."""
    for path in paths:
        say(f"wrote {path}", style="dim")


def show_pack(result: "PackResult") -> None:
    """A filled pack: its words and its tables, in their order."""
    out = console()
    for block in result.blocks():
        text = Text(printable(block.text), style="" if block.kind == "paragraph" else "bold")
        if block.kind in ("heading", "table"):
            out.print()
        if block.kind == "fact":
            text = text + Text(": ", style="bold") + Text(printable(block.value))
        out.print(text)
        if block.table is not None:
            if block.value:
                out.print(Text(printable(block.value), style="dim"))
            drawn = table(
                cast(Sequence[object], block.table.rows()), block.table.columns, folded=True
            )
            out.print(Padding(drawn, (0, 0, 0, 2)))


class Steps:
    """Says on standard error which audit is running, where someone is watching."""

    def __init__(self, quiet: bool) -> None:
        self._status: Status | None = None
        # In a log file a line that rewrites itself is only noise.
        if not quiet and sys.stderr.isatty():
            self._status = Console(stderr=True).status("")

    def __enter__(self) -> "Steps":
        if self._status:
            self._status.start()
        return self

    def __exit__(self, *problem: object) -> None:
        if self._status:
            self._status.stop()

    def __call__(self, name: str, number: int, total: int) -> None:
        """Take note that an audit begins."""
        if self._status:
            self._status.update(Text(f"{number + 1} of {total}: {printable(name)}"))


def columns_said(
    roles: Mapping[str, object], attributes: Sequence[str], reference: str | None
) -> frozenset[str]:
    """The columns that are named on the command line."""
    named = {str(column) for role, column in roles.items() if role != "positive"}
    return frozenset({*named, *attributes, *(name.strip() for name, _, _ in _parts_of(reference))})


def _parts_of(reference: str | None) -> list[tuple[str, str, str]]:
    """The parts of a reference group; none if it is a word or not given."""
    if reference is None or reference in ("overall", "complement", "highest"):
        return []
    return [part.partition("=") for part in names(reference)]


def target_of(trail: "Trail", reference: str | None) -> object:
    """Who groups are compared with, as a plan says it."""
    pairs = _parts_of(reference)
    if reference is None or reference in ("overall", "complement", "highest"):
        return reference
    if not pairs or not all(name and sign and value for name, sign, value in pairs):
        raise OptionError(
            "--reference names a group, such as --reference race=Caucasian,sex=Male, or is one of "
            f"overall, complement and highest; got {reference!r}."
        )
    where = {name.strip(): value.strip() for name, _, value in pairs}
    numeric = {n for n in where if n in trail.schema and trail.schema[n].is_numeric()}
    return {
        "kind": "reference",
        "where": {n: number_or_word(v) if n in numeric else v for n, v in where.items()},
    }


def groups_of(trail: "Trail", attributes: Sequence[str], depth: int | None, bins: int) -> object:
    """The attributes, numbers of many values cut into ranges."""
    from equipoise.plan.draft import look

    # levels are counted to cut numbers, and every level of a word is a group anyway
    numbers = [n for n in attributes if n in trail.schema and trail.schema[n].is_numeric()]
    seen = {column.name: column for column in look(trail, numbers)}
    # one that does not exist is named by the audit, with what does
    made = [seen[name].attribute(bins) if name in seen else name for name in attributes]
    if depth is None:
        return made
    return {"kind": "intersections", "attributes": made, "depth": depth}
