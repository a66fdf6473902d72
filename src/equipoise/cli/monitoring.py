"""Commands that watch over time: monitor start, add, show, check, verify, merge."""

from pathlib import Path
from typing import Annotated

import typer

from equipoise.cli import options
from equipoise.cli.auditing import Undetermined, show_and_write
from equipoise.cli.evidence_commands import show_verification
from equipoise.cli.options import Leave
from equipoise.cli.show import say

app = typer.Typer(help="Watch groups over time, batch by batch.", no_args_is_help=True)

LedgerFile = Annotated[Path, typer.Argument(help="The ledger.", metavar="LEDGER")]
Folder = Annotated[
    Path | None, typer.Option(help="Folder for evidence and page; none if not given.")
]


@app.command()
def start(
    plan: options.Plan,
    ledger: Annotated[Path, typer.Option(help="The ledger to begin; it must not exist.")],
) -> None:
    """Begin a ledger for the monitor audits of a plan."""
    from equipoise.plan import Plan
    from equipoise.plan.run import start_ledger

    made = start_ledger(Plan.load(plan), ledger)
    asked = "1 claim" if len(made.claims) == 1 else f"{len(made.claims)} claims"
    say(f"began {ledger} for {asked}; next: equipoise monitor add {ledger} DATA --period NAME")


@app.command()
def add(
    ledger: LedgerFile,
    data: options.Source,
    period: Annotated[
        str | None,
        typer.Option(help="Name of the batch, such as 2026-11; with --time: day, week, month …"),
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="Column of dates, to add every period of a long table.")
    ] = None,
    table: options.Table = None,
    late: Annotated[
        bool, typer.Option("--late", help="Rows that came late, for a period that is there.")
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    """Add a batch. The same rows a second time change nothing; other rows are refused."""
    from equipoise.cells.ledger import Ledger
    from equipoise.plan.run import add_batch

    told = add_batch(Ledger.open(ledger), data, table=table, period=period, time=time, late=late)
    if not quiet:
        for name, done in told.items():
            say(f"{name}: {done}")


@app.command()
def show(
    ledger: LedgerFile,
    out: Folder = None,
    suppress: options.Suppress = None,
    force: options.Force = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Show evidence over time and alarms; --out also writes evidence.json and report.html."""
    from equipoise.cells.ledger import Ledger
    from equipoise.plan.run import run_ledger

    show_and_write(run_ledger(Ledger.open(ledger)), out, suppress, json, quiet, force)


@app.command()
def check(
    ledger: LedgerFile,
    undetermined: Annotated[
        Undetermined | None,
        typer.Option(help="What no alarm and no proof means: pass (exit 0) or fail (exit 1)."),
    ] = None,
    out: Folder = None,
    suppress: options.Suppress = None,
    force: options.Force = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Leave with an exit code: 0 shown to keep all limits, 1 an alarm, 2 neither, 3 error."""
    from equipoise.cells.ledger import Ledger
    from equipoise.plan import gate
    from equipoise.plan.run import run_ledger

    evidence = run_ledger(Ledger.open(ledger))
    show_and_write(evidence, out, suppress, json, quiet, force)
    judged = gate(evidence, None if undetermined is None else undetermined.value)
    if not (json or quiet):
        say(f"exit {int(judged.code)}: {judged.words}", style="bold")
    raise Leave(judged.code)


@app.command()
def verify(
    ledger: LedgerFile,
    evidence: Annotated[
        Path | None, typer.Option(help="Evidence to perform again from the ledger.")
    ] = None,
    allow_extra: Annotated[
        bool,
        typer.Option("--allow-extra", help="Accept what cannot be performed again; it is listed."),
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    """Check that no entry was changed, left out or put in; perform evidence again if given."""
    from equipoise.cells.ledger import Ledger
    from equipoise.findings.evidence import Evidence
    from equipoise.plan import Exit
    from equipoise.plan.run import verify_ledger

    stored = None if evidence is None else Evidence.load(evidence, strict=False)
    found = verify_ledger(Ledger.open(ledger), stored)
    if stored is not None:
        show_verification(found, allow_extra, quiet)
    for difference in found.differences[:20] if stored is None else ():
        say(difference.where, style="red")
    if found.differences or (found.not_performed and not allow_extra):
        raise Leave(Exit.VIOLATION)
    if stored is None and not quiet:
        say(f"Verified: {found.compared:,} batches are as they were written.", style="green")


@app.command()
def merge(
    ledgers: Annotated[list[Path], typer.Argument(help="Ledgers of several places.")],
    out: Annotated[Path, typer.Option(help="The ledger to write; it must not exist.")],
) -> None:
    """Join the ledgers of several places: the same period becomes one batch."""
    from equipoise.cells.ledger import merge_ledgers

    made = merge_ledgers(ledgers, out)
    say(f"wrote {out}: {len(made.periods)} batches of {len(ledgers)} ledgers")
