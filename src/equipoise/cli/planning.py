"""Commands on plans: init, check, hash, schema."""

import json as json_format
from pathlib import Path
from typing import Annotated

import typer

from equipoise._files import write_atomically
from equipoise.cli import options
from equipoise.cli.show import say
from equipoise.errors import PlanError

app = typer.Typer(help="Write and check audit plans.", no_args_is_help=True)
PlanFile = Annotated[Path, typer.Argument(help="The plan, a YAML file.", metavar="PLAN")]


@app.command()
def init(
    data: Annotated[str, typer.Argument(help="CSV or Parquet file, folder, glob or database.")],
    table: options.Table = None,
    to: Annotated[Path, typer.Option(help="The plan to write.")] = Path("audit.yaml"),
    label: options.Label = None,
    prediction: options.Prediction = None,
    score: options.Score = None,
    weight: options.Weight = None,
    count: options.Count = None,
    force: Annotated[bool, typer.Option(help="Overwrite a plan that exists.")] = False,
) -> None:
    """Write a commented draft of a plan from the columns of a table."""
    from equipoise.plan import draft

    if to.exists() and not force:
        raise PlanError(f"{to} exists already. Pass --to another file, or --force to overwrite it.")
    roles = options.given(
        label=label, prediction=prediction, score=score, weight=weight, count=count
    )
    write_atomically(to, draft(data, to=to, table=table, **roles))
    say(f"wrote {to}; read it, edit it, then: equipoise run {to}")


@app.command()
def check(plan: PlanFile) -> None:
    """Check that a plan is well written, without touching the data."""
    from equipoise.plan import Plan

    read = Plan.load(plan)
    say(f"{plan.name} is a plan of {len(read.audits)} audits: {', '.join(read.names())}.")
    say(f"hash {read.hash}")


@app.command("hash")
def print_hash(plan: PlanFile) -> None:
    """Print the hash of a plan, to be registered before looking at the data."""
    from equipoise.plan import Plan

    typer.echo(Plan.load(plan).hash)


@app.command()
def schema() -> None:
    """Print the JSON schema of plans, for editors that check as one types."""
    from equipoise.plan import plan_schema

    typer.echo(json_format.dumps(plan_schema(), indent=2))
