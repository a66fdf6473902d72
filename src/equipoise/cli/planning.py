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
