"""Commands on plans and evidence that exist: hash, init, verify, report, explain."""

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise._files import write_atomically
from equipoise.cli import options
from equipoise.cli.options import Leave
from equipoise.cli.show import Steps, say, show_files
from equipoise.errors import EquipoiseError, PlanError
from equipoise.findings.evidence import Entry, Evidence
from equipoise.findings.words import NOTES, note_of
from equipoise.report import report as make_report

if TYPE_CHECKING:
    from equipoise.plan import Verification

# --- Commands on evidence that exists: verify, report, explain ---

EvidenceFile = Annotated[
    Path,
    typer.Argument(help="An evidence.json written by run, check or audit.", metavar="EVIDENCE"),
]
#: Differences that are printed; all of them count.
MOST = 5


def verify(
    evidence: EvidenceFile,
    plan: Annotated[
        Path | None, typer.Option(help="The plan as registered, to be compared as well.")
    ] = None,
    data: options.Data = None,
    table: options.Table = None,
    quiet: options.Quiet = False,
) -> None:
    """Perform an audit again from its plan and data, and compare every number.

    Exit 0: everything came out the same. Exit 1: something differs, and what. Relative paths in the
    plan start at the plan's folder, or else at the current folder, or at those of the evidence.
    """
    from equipoise.plan import Exit, Plan
    from equipoise.plan import verify as perform_again

    # A broken seal is one of the differences to be told, and no reason not to look.
    stored = Evidence.load(evidence, strict=False)
    registered = None if plan is None else Plan.load(plan)
    folder = _folder(stored, evidence, data) if plan is None else plan.parent
    with Steps(quiet) as tell:
        found = perform_again(
            stored, plan=registered, folder=folder, data=data, table=table, tell=tell
        )
    if found.differences:
        say(_not_verified(found), style="bold red")
    for difference in found.differences[:MOST]:
        say(f"  {difference}", style="red")
    if len(found.differences) > MOST:
        say(f"  … and {len(found.differences) - MOST:,} more differences.", style="red")
    if found.differences:
        raise Leave(Exit.VIOLATION)
    if not quiet:
        say(f"Verified: {found.compared:,} values came out the same.", style="green")
        for name in found.not_performed:
            say(f"Not performed again, since no plan asked for it: {name}", style="yellow")


def _folder(stored: Evidence, evidence: Path, data: str | None) -> Path:
    """Where the paths of the quoted plan start: here, or beside the evidence."""
    source = str((stored.plan or {}).get("trail", {}).get("source", ""))
    if data is not None or not source or "://" in source or source.startswith(("equipoise:", "$")):
        return Path()
    beside = [Path(), evidence.parent, evidence.parent.parent]
    for folder in beside:
        if (folder / source).exists() or any(folder.glob(source) if "*" in source else ()):
            return folder
    raise EquipoiseError(
        f"The audit read {source}, which is neither here nor beside {evidence}. Say where it is: "
        f"equipoise verify {evidence} --data PATH."
    )


def _not_verified(found: "Verification") -> str:
    """What differs, in one line."""
    number, places = len(found.differences), [one.where for one in found.differences]
    values = "1 value differs" if number == 1 else f"{number:,} values differ"
    said = f"Not verified: {values} of {found.compared:,} compared"
    if any(place.endswith("provenance / fingerprint") for place in places):
        return f"{said}. The rows are not those that were audited:"
    return f"{said}. The rows are the same; the evidence or the plan was changed:"


def report(
    evidence: EvidenceFile,
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("report.html"),
    suppress: options.Suppress = None,
    quiet: options.Quiet = False,
) -> None:
    """Make the report of an evidence file: one HTML page that needs no network."""
    page = make_report(Evidence.load(evidence), suppress=suppress)
    written = page.save(out)
    if not quiet:
        show_files([written])


def explain(
    topic: Annotated[
        str,
        typer.Argument(help="A kind of finding, an audit, or an evidence file.", metavar="TOPIC"),
    ],
    name: Annotated[
        str | None, typer.Argument(help="A finding in the evidence file.", metavar="NAME")
    ] = None,
) -> None:
    """Explain a finding in plain words: what it says, what is guaranteed, how it is computed."""
    if not Path(topic).is_file():
        _explain_kind(topic)
        return
    stored = Evidence.load(Path(topic))
    for entry in stored.entries if name is None else [stored.entry(name)]:
        _explain_entry(entry)


#: The kind of finding each audit returns first of all.
KINDS = {
    "certify": "bounds",
    "flag": "flags",
    "discover": "flags",
    "describe": "description",
    "summarize": "summary",
    "compare": "comparison",
    "select_fair": "fair choice",
    "monitor": "monitoring",
}


def _explain_kind(topic: str) -> None:
    kind = KINDS.get(topic, topic)
    if kind not in NOTES:
        known = ", ".join(sorted({*NOTES, *KINDS}))
        raise EquipoiseError(
            f"{topic!r} is neither an evidence file nor a kind of finding. There is: {known}."
        )
    _print_note(kind)


def _explain_entry(entry: Entry) -> None:
    say(f"{entry.name} ({entry.asked})", style="bold")
    for sentence in entry.finding.sentences():
        say(f"  {sentence}")
    say(f"Guarantee: {entry.finding.guarantee}.")
    say(f"Assumptions: {'; '.join(entry.finding.assumptions)}.")
    _print_note(entry.finding.kind)
    say("")


def _print_note(kind: str) -> None:
    note = note_of(kind)
    say(note.title, style="bold")
    say(f"Question: {note.question}")
    say(f"What is computed: {note.computed}")
    say(f"How to read it: {note.reading}")
    say(f"When not to use it: {note.avoid}")
    say(f"Source: {note.paper}")


# --- Commands on plans: init, check, hash, schema ---

app = typer.Typer(help="Write and check audit plans.", no_args_is_help=True)


@app.command()
def init(
    data: options.Source,
    table: options.Table = None,
    out: Annotated[Path, typer.Option(help="The plan to write.")] = Path("audit.yaml"),
    label: options.Label = None,
    prediction: options.Prediction = None,
    score: options.Score = None,
    weight: options.Weight = None,
    count: options.Count = None,
    encoding: options.Encoding = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a plan that exists.")] = False,
) -> None:
    """Write a commented draft of a plan from the columns of a table."""
    # Inside, here and below: help and mistyped commands should not wait for the mathematics.
    from equipoise.plan import draft

    if out.exists() and not force:
        raise PlanError(f"{out} exists already. Pass another --out, or --force to overwrite it.")
    text = draft(
        data,
        out=out,
        table=table,
        label=label,
        prediction=prediction,
        score=score,
        weight=weight,
        count=count,
        encoding=encoding,
    )
    write_atomically(out, text)
    say(f"wrote {out}; read it, edit it, then: equipoise run {out}")


@app.command()
def check(plan: options.Plan) -> None:
    """Check that a plan is well written, without touching the data."""
    from equipoise.plan import Plan

    read = Plan.load(plan)
    number = "1 audit" if len(read.audits) == 1 else f"{len(read.audits)} audits"
    say(f"{plan.name} is a plan of {number}: {', '.join(read.names())}.")
    say(f"hash {read.hash}")


@app.command("hash")
def print_hash(plan: options.Plan) -> None:
    """Print the hash of a plan, to be registered before looking at the data."""
    from equipoise.plan import Plan

    typer.echo(Plan.load(plan).hash)


@app.command()
def schema() -> None:
    """Print the JSON schema of plans, for editors that check as one types."""
    from equipoise.plan import plan_schema

    typer.echo(json_format.dumps(plan_schema(), indent=2))
