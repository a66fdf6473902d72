"""Packs: the tables that a rule asks for, as it defines them, and how sure one can be of them.

A pack is one file of this folder with a `Definition` called ``PACK``: a name, the rule in words, a
template, and a function that fills it from a trail. The table of the rule comes first, then one
with uncertainty from the inference core. A pack never says whether a rule is complied with.
"""

import csv
import dataclasses
import inspect
import io
import json
import math
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

from equipoise._files import write_atomically
from equipoise._validate import known_name, listing
from equipoise.audits._common import RoleKeywords, TrailLike, as_trail, rows_alone
from equipoise.cells import Cells
from equipoise.errors import EquipoiseError, OptionError
from equipoise.findings.finding import (
    Finding,
    Provenance,
    from_dict,
    html_table,
    read_back,
    text_table,
)
from equipoise.findings.words import cell_text, left_out
from equipoise.trail import Trail, from_arrays, read

Part = Literal["statutory", "uncertain"]

# --- What a pack gives ---


@dataclass(frozen=True, slots=True, kw_only=True)
class PackTable:
    """One table of a pack.

    >>> import equipoise as eq
    >>> table = eq.pack("four-fifths", eq.datasets.berkeley(), across="sex").table("sex")
    >>> table.columns[:3], table.column("selected")
    (('sex', 'applicants', 'selected'), [557, 1198])
    >>> table.row("Male")["applicants"]
    2691
    """

    name: str
    """What it is called, to be asked for."""
    part: Part
    """Whether the rule defines it, or it says how sure one can be."""
    caption: str
    """What it lists."""
    columns: tuple[str, ...]
    """The heads of its columns."""
    lines: tuple[tuple[Any, ...], ...]
    """A value for each column, None where there is none."""
    note: str = ""
    """What must be known to read it."""

    def column(self, name: str) -> list[Any]:
        """One column, from top to bottom."""
        place = self.columns.index(known_name("Column", name, self.columns))
        return [line[place] for line in self.lines]

    def row(self, *keys: object) -> dict[str, Any]:
        """The line that begins with these values, by column."""
        for line in self.lines:
            if line[: len(keys)] == keys:
                return dict(zip(self.columns, line, strict=True))
        raise OptionError(
            f"No line of {self.name!r} begins with {listing(keys)}. There is: "
            f"{listing(line[0] for line in self.lines)}."
        )

    def rows(self) -> list[SimpleNamespace]:
        """The lines as records, which is what tables are drawn from."""
        return [
            SimpleNamespace(**dict(zip(self.columns, line, strict=True))) for line in self.lines
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One piece of a filled template."""

    kind: Literal["title", "heading", "paragraph", "fact", "table"]
    text: str = ""
    """The words; the name of a fact."""
    value: str = ""
    """What a fact says."""
    table: PackTable | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PackResult:
    """A filled pack: facts, the tables of the rule, tables with uncertainty, and words.

    >>> import equipoise as eq
    >>> trail = eq.datasets.berkeley()
    >>> found = eq.pack("four-fifths", trail, across="sex")
    >>> found
    <PackResult: four-fifths; 3 tables>
    >>> round(found.table("sex").row("Female")["ratio to the highest"], 2)
    0.68
    """

    pack: str
    """The name of the pack."""
    title: str
    """What it is called in print."""
    rule: str
    """The rule that defines the first tables."""
    dated: str
    """Which state of the rule that is."""
    template: str
    """The order of the pieces."""
    facts: Mapping[str, str]
    """What is said once: where the data come from, dates, people left out."""
    tables: tuple[PackTable, ...]
    """The tables, those of the rule first."""
    words: tuple[str, ...]
    """What was found, in sentences."""
    provenance: Provenance
    """Where the numbers come from."""
    findings: tuple[Finding, ...]
    """The audits behind the tables with uncertainty, which `equipoise.report` takes."""

    def __repr__(self) -> str:
        return f"<PackResult: {self.pack}; {len(self.tables)} tables>"

    def table(self, name: str, part: Part = "statutory") -> PackTable:
        """A table by its name: that of the rule, or the one with uncertainty."""
        fitting = {table.name: table for table in self.tables if table.part == part}
        return fitting[known_name("Table", name, fitting)]

    def sentences(self) -> tuple[str, ...]:
        """What was found, then what must be known of the rule."""
        return (
            *self.words,
            f"Taken from {self.rule}, {self.dated}. Rules change: check that this is still it.",
            "Tables do not decide a case: no table says whether a rule is met, and this is no "
            "legal advice.",
        )

    def blocks(self) -> Iterator[Block]:
        """The template, filled piece by piece."""
        for line in filter(None, (line.strip() for line in self.template.splitlines())):
            if line in ("{statutory}", "{uncertain}"):
                wanted = line.strip("{}")
                yield from (
                    Block(kind="table", text=table.caption, value=table.note, table=table)
                    for table in self.tables
                    if table.part == wanted
                )
            elif line == "{facts}":
                for name, value in self.facts.items():
                    yield Block(kind="fact", text=name, value=value)
            elif line == "{sentences}":
                yield from (Block(kind="paragraph", text=said) for said in self.sentences())
            elif line == "{title}":
                yield Block(kind="title", text=self.title)
            elif line.startswith("# "):
                yield Block(kind="heading", text=line.removeprefix("# "))
            else:
                yield Block(kind="paragraph", text=line)

    def __str__(self) -> str:
        return "\n".join(_text_of(block) for block in self.blocks()).strip() + "\n"

    def to_markdown(self) -> str:
        """The filled template as Markdown."""
        return re.sub(r"\n{3,}", "\n\n", "\n".join(map(_markdown_of, self.blocks()))).strip() + "\n"

    def to_html(self) -> str:
        """The filled template as one page that needs nothing else."""
        body = "".join(map(_html_of, self.blocks()))
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f"<title>{escape(self.title)}</title><style>{_STYLE}</style></head>"
            f"<body>{body}</body></html>\n"
        )

    def _repr_html_(self) -> str:
        return f"<div>{''.join(map(_html_of, self.blocks()))}</div>"

    def to_csv(self) -> str:
        """All tables below each other, with the name of each in the first columns."""
        columns = list(dict.fromkeys(name for table in self.tables for name in table.columns))
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["table", "part", *columns])
        for table in self.tables:
            for line in table.lines:
                found = dict(zip(table.columns, line, strict=True))
                writer.writerow([table.name, table.part, *(found.get(name) for name in columns)])
        return out.getvalue()

    def to_dict(self) -> dict[str, object]:
        """Plain data, which `PackResult.from_dict` reads back."""
        data: dict[str, object] = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        data["facts"] = dict(self.facts)
        data["tables"] = [
            {**dataclasses.asdict(table), "lines": [list(line) for line in table.lines]}
            for table in self.tables
        ]
        data["provenance"] = dataclasses.asdict(self.provenance)
        data["findings"] = [finding.to_dict() for finding in self.findings]
        return {"kind": "pack", **data}

    def to_json(self, indent: int | None = None) -> str:
        """The same as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=indent)

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> "PackResult":
        """The result that `to_dict` wrote."""
        if not isinstance(data, Mapping) or data.get("kind") != "pack":
            raise EquipoiseError("This is not a pack that was filled and written as plain data.")
        fields: dict[str, Any] = {name: x for name, x in data.items() if name != "kind"}
        fields["findings"] = [from_dict(one) for one in fields.get("findings", ())]
        fields["tables"] = [
            {**one, "lines": [tuple(line) for line in one["lines"]]} for one in fields["tables"]
        ]
        return read_back(cls, fields, "pack")

    def save(self, path: str | Path) -> Path:
        """Write a file; its ending says what: .md, .html, .csv, .json or .txt."""
        kinds: dict[str, Callable[[], str]] = {
            ".md": self.to_markdown,
            ".html": self.to_html,
            ".csv": self.to_csv,
            ".json": self.to_json,
            ".txt": self.__str__,
        }
        ending = known_name("Kind of file", Path(path).suffix.lower(), kinds)
        return write_atomically(path, kinds[ending]())


_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;margin:1rem 0}td,th{border:1px solid #999;padding:.2rem .6rem;"
    "text-align:left}"
)


def _text_of(block: Block) -> str:
    if block.table is not None:
        drawn = text_table(cast(Sequence[object], block.table.rows()), block.table.columns)
        return "\n".join(["", *filter(None, (block.text, block.value)), "", drawn, ""])
    if block.kind == "fact":
        return f"{block.text}: {block.value}"
    return f"\n{block.text.upper()}\n" if block.kind == "heading" else block.text


def _markdown_of(block: Block) -> str:
    if block.table is not None:
        table = block.table
        rows = [table.columns, ["---"] * len(table.columns), *table.lines]
        drawn = "\n".join(
            f"| {' | '.join(_escaped(cell_text(cell)) for cell in line)} |" for line in rows
        )
        return f"\n**{_escaped(block.text)}**\n\n{_escaped(block.value)}\n\n{drawn}\n"
    if block.kind == "fact":
        return f"- {_escaped(block.text)}: {_escaped(block.value)}"
    marks = {"title": "# ", "heading": "## "}
    return f"\n{marks.get(block.kind, '')}{_escaped(block.text)}\n"


def _escaped(text: str) -> str:
    """Text from a table that must not be read as Markdown or HTML."""
    flat = " ".join(text.split())
    return re.sub(r"([|\\`*_<>\[\]])", r"\\\1", flat)


def _html_of(block: Block) -> str:
    if block.table is not None:
        note = f"<p>{escape(block.value)}</p>" if block.value else ""
        drawn = html_table(cast(Sequence[object], block.table.rows()), block.table.columns)
        return f"<h3>{escape(block.text)}</h3>{note}{drawn}"
    if block.kind == "fact":
        return f"<p><strong>{escape(block.text)}:</strong> {escape(block.value)}</p>"
    tag = {"title": "h1", "heading": "h2"}.get(block.kind, "p")
    return f"<{tag}>{escape(block.text)}</{tag}>"


# --- What a pack is, and how it is run ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """What the function of a pack works out."""

    facts: Mapping[str, str]
    tables: Sequence[PackTable]
    words: Sequence[str]
    provenance: Provenance
    findings: Sequence[Finding] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A pack: what it is called, the rule it follows, and how it is filled."""

    name: str
    """What it is asked for by."""
    title: str
    """What it is called in print."""
    rule: str
    """The rule, as it would be cited."""
    dated: str
    """Which state of the rule this is."""
    template: str
    """The pieces in their order; see `PackResult.blocks`."""
    fill: Callable[..., Filled]
    """Takes a trail, and options by name."""

    @property
    def options(self) -> tuple[str, ...]:
        """The options it takes beside the roles of columns."""
        return tuple(list(inspect.signature(self.fill).parameters)[1:])


def definitions() -> dict[str, Definition]:
    """Every pack by its name: one for each file of this folder.

    >>> sorted(definitions())
    ['four-fifths', 'll144', 'performance']
    """
    names = [found.name for found in pkgutil.iter_modules(__path__)]
    found: list[Definition] = [import_module(f"{__name__}.{name}").PACK for name in names]
    return {one.name: one for one in found}


def pack(name: str, trail: TrailLike, /, **options: object) -> PackResult:
    """Fill a pack: the tables that a rule asks for, then how sure one can be of them.

    Parameters
    ----------
    name
        ``"ll144"`` (bias audits of New York City, 6 RCNY 5-300 ff.), ``"four-fifths"`` (29 CFR
        1607.4 D) or ``"performance"`` (sensitivity, specificity, predictive values by subgroup).
    trail
        The audit trail; or a path or a table, with what its columns mean as further keywords.
    options
        What the pack takes, such as ``sex=`` and ``race=`` (ll144) or ``across=``, ``given=``
        (four-fifths); an option it does not know is refused with those it does.

    Examples
    --------
    >>> import equipoise as eq
    >>> found = eq.pack("four-fifths", eq.datasets.berkeley(), across="sex", given="department")
    >>> print(found.sentences()[0])
    By sex, Female is below four fifths of the highest rate, that of Male (0.68).
    """
    known = definitions()
    chosen = known[known_name("Pack", name, known)]
    roles = {key: value for key, value in options.items() if key in RoleKeywords.__annotations__}
    further = {key: value for key, value in options.items() if key not in roles}
    for key in further:
        known_name(f"Option of the pack {name!r}", key, chosen.options)
    source = as_trail(trail, cast(RoleKeywords, roles))
    rows_alone(source, "A pack counts people, each of them once,")
    filled = chosen.fill(source, **further)
    order = ("statutory", "uncertain")
    return PackResult(
        pack=chosen.name,
        title=chosen.title,
        rule=chosen.rule,
        dated=chosen.dated,
        template=chosen.template,
        facts=filled.facts,
        tables=tuple(sorted(filled.tables, key=lambda table: order.index(table.part))),
        words=tuple(filled.words),
        provenance=filled.provenance,
        findings=tuple(filled.findings),
    )


# --- What several packs need: columns that must be there, people counted, small tables to audit ---


def names_of(value: object, option: str) -> tuple[str, ...]:
    """Names of columns or words: one, several, or separated by commas."""
    listed = value.split(",") if isinstance(value, str) else value
    if not isinstance(listed, Sequence) or not all(isinstance(one, str) for one in listed):
        raise OptionError(
            f"{option} takes names of columns or words, separated by commas; got {value!r}."
        )
    return tuple(dict.fromkeys(one.strip() for one in listed if one.strip()))


def needed_column(trail: Trail, column: object, option: str, why: str) -> str:
    """A column that a rule cannot do without."""
    if isinstance(column, str) and column in trail.attributes:
        return column
    raise OptionError(
        f"{why} needs a column of {option}, and this table has no attribute {column!r}. Pass "
        f"{option}=…; there is: {listing(trail.attributes)}."
    )


def levels_of(cells: Cells) -> list[tuple[object, ...]]:
    """The categories of every cell, in the order of its axes."""
    return [
        tuple(axis.levels[int(place)] for axis, place in zip(cells.axes, index, strict=True))
        for index in cells.index
    ]


@dataclass(slots=True)
class Members:
    """People of one category."""

    people: int = 0
    ones: int = 0
    """Those who were selected, or who scored above the median."""
    further: tuple[int, ...] = ()
    """Those of whom something else is true, where it is counted."""

    def add(self, people: float, ones: float, *further: float) -> None:
        """Count some more."""
        self.people += round(people)
        self.ones += round(ones)
        before = self.further or (0,) * len(further)
        self.further = tuple(a + round(b) for a, b in zip(before, further, strict=True))

    @property
    def rate(self) -> float | None:
        """The share of ones; None without people."""
        return self.ones / self.people if self.people else None


def is_unknown(level: object, words: Sequence[str]) -> bool:
    """Whether a category says nothing: missing, or one of the words that mean so."""
    said = "" if level is None else str(level).strip().casefold()
    missing = level is None or (isinstance(level, float) and math.isnan(level))
    return missing or said in {"", *(word.strip().casefold() for word in words)}


def small_trail(
    columns: Mapping[str, Sequence[str]], ones: Sequence[int], counts: Sequence[int]
) -> Trail:
    """People counted by category and outcome, as a trail that audits take."""
    taken = {"prediction", "people"} & columns.keys()
    if taken:
        raise OptionError(f"A column of categories is called {listing(taken)}. Rename it.")
    found = from_arrays(y_pred=list(ones), sensitive_features={**columns, "people": list(counts)})
    return read(found, prediction="prediction", count="people", attributes=list(columns))


def from_source(finding: Finding, provenance: Provenance) -> Finding:
    """A finding on counts, named after the table they were counted from."""
    named = dataclasses.replace(finding.provenance, source=provenance.source)
    return dataclasses.replace(finding, provenance=named)


def uncounted_words(provenance: Provenance) -> str:
    """How many people could not be counted, and why."""
    lost = sum(provenance.excluded.values())
    return left_out(provenance.excluded, 0) if lost else "none"
