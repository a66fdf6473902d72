"""Commands that plan: how many rows an audit takes, of a table, a guess or a plan.

Commands that watch over time: monitor start, add, show, check, verify, merge.
"""

import json as json_format
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.cli import common
from equipoise.cli.auditing import show_and_write
from equipoise.cli.common import Harm, Leave, Undetermined, groups_of, say, show_finding
from equipoise.cli.evidence_commands import show_verification
from equipoise.errors import EquipoiseError, OptionError, PlanError

if TYPE_CHECKING:
    from equipoise.audits.guess import Guess
    from equipoise.cells.ledger import Ledger
    from equipoise.findings.finding import Finding
    from equipoise.plan.plan import AuditPlan

Wanted = Annotated[float, typer.Option(help="Chance of showing what is there.")]
Rows = Annotated[
    str | None,
    typer.Option("--n", help="DATA is a guess: column with the rows each group will have."),
]
Rate = Annotated[
    str | None, typer.Option(help="DATA is a guess: column with the rate of each group.")
]
Spread = Annotated[
    str | None,
    typer.Option(help="DATA is a guess, of no rate: column with the standard deviation."),
]
Budget = Annotated[
    int | None, typer.Option(min=1, help="Rows to be split over the groups in the best way.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")]


def power(
    data: common.Source,
    across: common.Across,
    table: common.Table = None,
    label: common.Label = None,
    prediction: common.Prediction = None,
    score: common.Score = None,
    weight: common.Weight = None,
    count: common.Count = None,
    cluster: common.Cluster = None,
    positive: common.Positive = None,
    encoding: common.Encoding = None,
    n: Rows = None,
    rate: Rate = None,
    spread: Spread = None,
    metric: common.Metrics = None,
    reference: Annotated[
        str | None,
        typer.Option(help="Who groups are compared with: race=Caucasian, overall or complement."),
    ] = None,
    ratio: common.Ratio = False,
    depth: common.Depth = None,
    bins: common.Bins = 4,
    harm: common.HarmOption = Harm.BOTH,
    disparity: Annotated[
        float | None,
        typer.Option(help="Disparity that should be flagged: 0.05, -0.05, or 0.7 for ratios."),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(min=0, help="Disparity to be shown kept: 0.10, or 0.8 for ratios."),
    ] = None,
    power: Wanted = 0.8,
    level: common.Level = 0.95,
    fdr: common.Fdr = 0.10,
    budget: Budget = None,
    seed: common.Seed = 7,
    json: AsJson = False,
    quiet: common.Quiet = False,
) -> None:
    """How many rows: what an audit of a table, or of a guess, can show, and what it would take.

    With --n and --rate DATA is a guess, one line for each group. Flags are of any difference, in
    the direction of --harm; --disparity and --tolerance ask for the rows to flag, or to show, so
    much.
    """
    from equipoise.audits.guess import guess
    from equipoise.claims import from_plan
    from equipoise.plan.draft import usual_metrics
    from equipoise.plan.plan import TrailPlan
    from equipoise.plan.run import open_trail

    roles = common.given(
        label=label, prediction=prediction, score=score, weight=weight, count=count,
        cluster=cluster, positive=common.positive_of(positive),
    )  # fmt: skip
    if (n is None) != (rate is None) or (roles and n is not None):
        raise OptionError("A guess has --n and --rate, and no columns of labels or predictions.")
    names = common.names_in(metric)
    if not (names or n is not None or usual_metrics(roles)):
        raise OptionError("Name the columns: --prediction, and --label if the truth is known.")
    attributes = common.attributes_in(across)
    expected: Guess | None = None
    if n is not None and rate is not None:
        expected = guess(data, n=n, rate=rate, spread=spread)
        trail, usual = expected.trail, ["selection_rate"]
    else:
        place = {"source": data, **common.given(table=table, encoding=encoding), **roles}
        trail = open_trail(TrailPlan.from_plain(place), folder=Path())
        usual = [*usual_metrics(roles)]
    common.one_direction(harm, names, usual)
    asked = {
        **_directed(harm, ratio, tolerance), "disparity": disparity, "power": power,
        "level": level, "fdr": fdr, "budget": budget,
    }  # fmt: skip
    found = []
    for name in names or usual:
        claim = {
            "kind": "ratio" if ratio else "gap",
            "metric": name,
            "across": groups_of(trail, attributes, depth, bins),
            **({} if reference is None else {"target": common.target_of(trail, reference)}),
        }
        found.append(_perform(expected or trail, {"claim": from_plan(claim), **asked}, seed))
    _show(found, json, quiet)


def _directed(harm: Harm, ratio: bool, tolerance: float | None) -> dict[str, object]:
    """Limits of flags at no difference, and the tolerance, in the direction that harms."""
    even = 1.0 if ratio else 0.0
    if harm is Harm.BOTH:
        return {"tolerance": tolerance}
    if tolerance is None:
        return {"above": even} if harm is Harm.HIGH else {"below": even}
    if harm is Harm.HIGH:
        return {"above": even, "side": "upper", "tolerance": 1 / tolerance if ratio else tolerance}
    return {"below": even, "side": "lower", "tolerance": tolerance if ratio else -tolerance}


def plan_power(
    plan: common.Plan,
    data: common.Data = None,
    table: common.Table = None,
    guess: Annotated[
        Path | None,
        typer.Option(help="A table of guessed sizes and rates, where there are no rows yet."),
    ] = None,
    n: Annotated[str, typer.Option("--n", help="In the guess: column with rows.")] = "n",
    rate: Annotated[str, typer.Option(help="In the guess: column with rates.")] = "rate",
    spread: Annotated[
        str | None, typer.Option(help="In the guess: column with standard deviations.")
    ] = None,
    disparity: Annotated[
        float | None, typer.Option(help="Disparity that should be flagged.")
    ] = None,
    power: Wanted = 0.8,
    budget: Budget = None,
    allow: common.Allow = None,
    json: AsJson = False,
    quiet: common.Quiet = False,
) -> None:
    """How many rows the audits of a plan take: flags, bounds and power, each as it is written.

    The plan is not trusted: without --allow it reads no file outside its folder, opens no
    connection and sees no environment variable.
    """
    from equipoise.audits.guess import guess as guessed
    from equipoise.plan import Plan
    from equipoise.plan.run import open_trail, refuse_reaching

    read = Plan.load(plan)
    chosen = [
        (name, audit)
        for name, audit in zip(read.names(), read.audits, strict=True)
        if audit.audit in ("flag", "certify", "power")
    ]
    if not chosen:
        raise PlanError(f"{plan.name} has no audit that can be planned: flag, certify or power.")
    expected = None if guess is None else guessed(guess, n=n, rate=rate, spread=spread)
    if expected is None:
        refuse_reaching(read.trail, plan.parent, data, table, allow or ())
    source = (
        open_trail(read.trail, folder=plan.parent, data=data, table=table)
        if expected is None
        else expected
    )
    found = []
    for name, audit in chosen:
        if not (json or quiet):
            say(name, style="bold")
        one = _planned(source, audit, read.seed, name, disparity, power, budget)
        found.append(one)
        if not (json or quiet):
            show_finding(one)
    if json:
        _show(found, json, quiet)


#: What `power` takes of an audit that is to be run.
_TAKEN = {
    "flag": ("claim", "above", "below", "outside", "fdr", "control"),
    "certify": ("claim", "level", "side", "tolerance"),
}


def _planned(
    source: object,
    audit: "AuditPlan",
    seed: int,
    name: str,
    disparity: float | None,
    power: float,
    budget: int | None,
) -> "Finding":
    written = audit.options()
    taken = {k: v for k, v in written.items() if k in _TAKEN.get(audit.audit, (*written,))}
    asked = common.given(disparity=disparity, budget=budget)
    if audit.audit == "certify":
        # what bounds show is a tolerance
        asked.pop("disparity", None)
    try:
        return _perform(source, {"power": power, **taken, **asked}, seed)
    except EquipoiseError as error:
        raise type(error)(f"{name}: {error}") from error


def _perform(source: object, asked: dict[str, object], seed: int) -> "Finding":
    from equipoise import audits

    return audits.verb("power")(source, **asked, rng=seed)


def _show(found: "list[Finding]", json: bool, quiet: bool) -> None:
    if json:
        typer.echo(json_format.dumps([one.to_dict() for one in found], ensure_ascii=False))
    elif not quiet:
        for one in found:
            show_finding(one)


app = typer.Typer(help="Watch groups over time, batch by batch.", no_args_is_help=True)

LedgerFile = Annotated[Path, typer.Argument(help="The ledger.", metavar="LEDGER")]
Folder = Annotated[
    Path | None, typer.Option(help="Folder for evidence and page; none if not given.")
]


@app.command()
def start(
    plan: common.Plan,
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
    data: common.Source,
    period: Annotated[
        str | None,
        typer.Option(help="Name of the batch, such as 2026-11; with --time: day, week, month …"),
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="Column of dates, to add every period of a long table.")
    ] = None,
    table: common.Table = None,
    late: Annotated[
        bool, typer.Option("--late", help="Rows that came late, for a period that is there.")
    ] = False,
    quiet: common.Quiet = False,
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
    suppress: common.Suppress = None,
    force: common.Force = False,
    json: common.Json = False,
    quiet: common.Quiet = False,
) -> None:
    """Show evidence over time and alarms; --out also writes evidence.json and report.html."""
    from equipoise.cells.ledger import Ledger
    from equipoise.plan.run import run_ledger

    gate = f"`equipoise monitor check {shlex.quote(str(ledger))}`"
    show_and_write(run_ledger(Ledger.open(ledger)), out, suppress, json, quiet, force, gate=gate)


@app.command()
def check(
    ledger: LedgerFile,
    undetermined: Annotated[
        Undetermined | None,
        typer.Option(help="What no alarm and no proof means: pass (exit 0) or fail (exit 1)."),
    ] = None,
    out: Folder = None,
    suppress: common.Suppress = None,
    force: common.Force = False,
    json: common.Json = False,
    quiet: common.Quiet = False,
) -> None:
    """Leave with an exit code: 0 shown to keep all limits, 1 an alarm, 2 neither, 3 error."""
    from equipoise.cells.ledger import Ledger
    from equipoise.plan import gate
    from equipoise.plan.run import run_ledger

    evidence = run_ledger(Ledger.open(ledger))
    told = show_and_write(evidence, out, suppress, json, quiet, force)
    judged = gate(evidence, None if undetermined is None else undetermined.value)
    if not (json or quiet):
        say(f"exit {int(judged.code)}: {common.gate_words(judged, told)}", style="bold")
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
    expect: Annotated[
        str | None,
        typer.Option(help="The digest of the last entry, as somebody noted it earlier."),
    ] = None,
    signer: Annotated[
        Path | None, typer.Option(help="Public key of whoever must have signed the ledger.")
    ] = None,
    signature: Annotated[
        Path | None, typer.Option(help="The signature; LEDGER.sig if not given.")
    ] = None,
    quiet: common.Quiet = False,
) -> None:
    """Check that entries fit together; perform evidence again if given.

    Seals have no key: they show damage and careless changes. That the last batches were left out,
    or all sealed again, shows only beside something from before: the digest of an entry that was
    noted then (--expect), or a signature (`equipoise sign LEDGER`, then --signer). Batches added
    since are no fault.
    """
    from equipoise.cells.ledger import Ledger
    from equipoise.findings.evidence import Evidence
    from equipoise.plan import Difference, Exit
    from equipoise.plan.run import verify_ledger

    stored = None if evidence is None else Evidence.load(evidence, strict=False)
    opened = Ledger.open(ledger)
    found = verify_ledger(opened, stored)
    digests = opened.digests()
    problems = [*_missing(digests, expect), *_unsigned(opened, signer, signature)]
    more = tuple(Difference(where=said, stated="before", again="now") for said in problems)
    found = replace(found, differences=(*more, *found.differences))
    if stored is not None:
        show_verification(found, allow_extra, quiet)
    for difference in found.differences[:20] if stored is None else ():
        say(difference.where, style="red")
    if found.differences or (found.not_performed and not allow_extra):
        raise Leave(Exit.VIOLATION)
    if stored is None and not quiet:
        number = "1 batch fits" if found.compared == 1 else f"{found.compared:,} batches fit"
        say(f"Verified: {number} together, from the first line on.", style="green")
    if not quiet:
        say(f"digest of the last of {len(digests) - 1:,} batches: {digests[-1]}")
        if expect is None and signer is None:
            say(
                "Nothing here shows that later batches were left out, or all sealed again: note "
                "the digest and pass it as --expect next time, or sign the ledger.",
                style="yellow",
            )


def _missing(digests: "list[str]", expect: str | None) -> list[str]:
    """What is wrong with a digest that somebody noted."""
    noted = (expect or "").strip().lower()
    if expect is not None and len(noted) < 16:
        raise OptionError("--expect takes a digest of 64 signs, or at least the first 16.")
    if expect is None or any(digest.startswith(noted) for digest in digests):
        return []
    return [f"no entry has the digest {noted[:16]}…: entries were left out or changed"]


def _unsigned(ledger: "Ledger", signer: Path | None, signature: Path | None) -> list[str]:
    """What is wrong with the signature of a ledger."""
    if signer is None:
        if signature is not None:
            raise OptionError("A signature shows nothing without a key: pass --signer KEY.pub.")
        return []
    from equipoise.plan import signing

    key, beside = signing.public_key(signer), Path(f"{ledger.path}.sig")
    within = ledger.path.parent if signature is None else None
    return signing.left_out(ledger, signing.read_signature(signature or beside, key, within=within))


@app.command()
def merge(
    ledgers: Annotated[list[Path], typer.Argument(help="Ledgers of several places.")],
    out: Annotated[Path, typer.Option(help="The ledger to write; it must not exist.")],
) -> None:
    """Join the ledgers of several places: the same period becomes one batch."""
    from equipoise.cells.ledger import merge_ledgers

    made = merge_ledgers(ledgers, out)
    say(f"wrote {out}: {len(made.periods)} batches of {len(ledgers)} ledgers")
