"""Commands that audit: demo, audit, run, check."""

import enum
import json as json_format
import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise._files import write_together
from equipoise._validate import short
from equipoise.cli import options
from equipoise.cli.options import Leave
from equipoise.cli.show import Steps, say, show_evidence, show_files
from equipoise.errors import OptionError
from equipoise.findings.evidence import Asked, Evidence
from equipoise.report import Report
from equipoise.report import report as make_report
from equipoise.trail.engine import scrub, without_password

if TYPE_CHECKING:
    from equipoise.plan import Plan


class Undetermined(enum.StrEnum):
    """What absence of evidence means for a release."""

    PASS = "pass"
    FAIL = "fail"


def demo(
    out: options.Out = Path("out"), force: options.Force = False, quiet: options.Quiet = False
) -> None:
    """Audit the bundled COMPAS counts and write a report: a first look in half a minute."""
    from equipoise.plan import Plan

    bundled = files("equipoise.plan") / "demo.yaml"
    plan = Plan.parse(bundled.read_text(encoding="utf-8"), bundled.name)
    # the bundled counts are well known: nothing about them was fixed before looking
    evidence = _perform(plan, asked="exploratory", quiet=quiet)
    written, _ = _write(evidence, out, None, force)
    if not quiet:
        show_evidence(evidence)
        show_files(written)
        say(f"Open {written[1]} in a browser.", style="bold")


def audit(
    data: options.Source,
    across: Annotated[str, typer.Option(help="Attributes that form groups: race,sex.")],
    table: options.Table = None,
    label: options.Label = None,
    prediction: options.Prediction = None,
    score: options.Score = None,
    weight: options.Weight = None,
    count: options.Count = None,
    cluster: options.Cluster = None,
    positive: options.Positive = None,
    encoding: options.Encoding = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="Metric; may be given several times.")
    ] = None,
    tolerance: Annotated[float, typer.Option(min=0, help="Disparity that is tolerated.")] = 0.10,
    level: Annotated[float, typer.Option(help="Confidence of bounds.")] = 0.95,
    fdr: Annotated[float, typer.Option(help="Share of flags that may be false.")] = 0.10,
    seed: Annotated[int, typer.Option(min=0, help="Start of all randomness.")] = 7,
    title: Annotated[str | None, typer.Option(help="Title of the report.")] = None,
    out: options.Out = Path("out"),
    suppress: options.Suppress = None,
    full_evidence: options.FullEvidence = None,
    force: options.Force = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Audit a table without a plan: flags and bounds for each metric, and a report.

    The results count as exploratory; write a plan (`equipoise plan init DATA`) to fix the questions
    before looking.
    """
    from equipoise.plan import Plan
    from equipoise.plan.draft import usual_metrics

    roles = options.given(
        label=label,
        prediction=prediction,
        score=score,
        weight=weight,
        count=count,
        cluster=cluster,
        positive=_number_or_word(positive),
    )
    audits = _usual_audits(
        across=options.names(across),
        metrics=metric or usual_metrics(roles),
        tolerance=tolerance,
        level=level,
        fdr=fdr,
    )
    plan = Plan.from_plain(
        {
            "equipoise": 1,
            "title": title or f"Audit of {table or Path(without_password(data)).name}",
            "seed": seed,
            "trail": {"source": data, **options.given(table=table, encoding=encoding), **roles},
            "audits": audits,
        },
        "this command",
    )
    evidence = _perform(plan, asked="exploratory", quiet=quiet or json)
    show_and_write(evidence, out, suppress, json, quiet, force, full_evidence)


def run(
    plan: options.Plan,
    data: options.Data = None,
    table: options.Table = None,
    hash: options.Hash = None,
    out: options.Out = Path("out"),
    suppress: options.Suppress = None,
    full_evidence: options.FullEvidence = None,
    force: options.Force = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Run a plan and write evidence.json and report.html."""
    evidence = _perform_file(plan, hash, data, table, quiet or json)
    show_and_write(evidence, out, suppress, json, quiet, force, full_evidence)


def check(
    plan: options.Plan,
    data: options.Data = None,
    table: options.Table = None,
    hash: options.Hash = None,
    allow: options.Allow = None,
    undetermined: Annotated[
        Undetermined | None,
        typer.Option(help="What undetermined means: pass (exit 0) or fail (exit 1)."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for evidence and report; none if not given.")
    ] = None,
    suppress: options.Suppress = None,
    full_evidence: options.FullEvidence = None,
    force: options.Force = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Gate a release: run a plan and leave with an exit code.

    0: all limits are shown to be kept. 1: a violation is shown. 2: undetermined. 3: error.
    The plan is not trusted: without --allow it reads no file outside its folder, opens no
    connection and sees no environment variable.
    """
    from equipoise.plan import gate

    evidence = _perform_file(plan, hash, data, table, quiet or json, allow=allow or ())
    judged = gate(evidence, None if undetermined is None else undetermined.value)
    show_and_write(evidence, out, suppress, json, quiet, force, full_evidence)
    if not (json or quiet):
        say(f"exit {int(judged.code)}: {judged.words}", style="bold")
    raise Leave(judged.code)


def _perform_file(
    plan: Path,
    hash: str | None,
    data: str | None,
    table: str | None,
    quiet: bool,
    allow: Sequence[str] | None = None,
) -> Evidence:
    """Run the plan in a file, if it is the one that was registered."""
    from equipoise.plan import Plan

    read = Plan.load(plan)
    # A shorter beginning could be met by chance, or by trying.
    if hash is not None and (len(hash) < 8 or not read.hash.startswith(hash.lower())):
        raise OptionError(
            f"The plan {plan.name} has the hash {read.hash}, not {hash}: it is not the one that "
            "was registered. (At least 8 characters are compared.)"
        )
    return _perform(read, folder=plan.parent, data=data, table=table, allow=allow, quiet=quiet)


def _perform(
    plan: "Plan",
    *,
    folder: Path = Path(),
    data: str | None = None,
    table: str | None = None,
    asked: Asked = "confirmatory",
    allow: Sequence[str] | None = None,
    quiet: bool = False,
) -> Evidence:
    from equipoise.plan import run as perform

    with Steps(quiet) as tell:
        return perform(
            plan,
            folder=folder,
            data=data,
            table=table,
            asked=asked,
            allow=allow,
            tell=tell,
            progress=False if quiet else None,
        )


def _write(
    evidence: Evidence,
    out: Path,
    suppress: int | None,
    force: bool = False,
    full: Path | None = None,
) -> tuple[list[Path], Report]:
    target = out / "evidence.json"
    if not force:
        _refuse_other(out, target, evidence)
    # made before anything is written, so that a failure leaves no half of the two
    page = make_report(evidence, suppress=suppress)
    whole = f"{evidence.to_json()}\n"
    texts = {target: page.published or whole, out / "report.html": page.html}
    kinds = ["evidence", "page"]
    if full is not None:
        texts, kinds = {**texts, full: whole}, [*kinds, "evidence"]
    return write_together(texts, force=force, kinds=kinds), page


def _refuse_other(out: Path, target: Path, evidence: Evidence) -> None:
    """Refuse to replace the evidence of another audit, or to write where a link leads."""
    how = "Pass another --out, or --force."
    if out.is_symlink():
        raise OptionError(f"{out} is a link to {os.readlink(out)}. {how}")
    try:
        stored = json_format.loads(target.read_bytes())
    except (OSError, ValueError, RecursionError):
        # nothing there, or nothing of ours, which is looked at when it is written
        return
    if isinstance(stored, dict) and stored.get("plan_hash") != evidence.plan_hash:
        title = short(scrub(str(stored.get("title"))))
        raise OptionError(f"{target} is the evidence of another plan ({title!r}). {how}")


def show_and_write(
    evidence: Evidence,
    out: Path | None,
    suppress: int | None,
    json: bool,
    quiet: bool,
    force: bool = False,
    full: Path | None = None,
) -> None:
    """Write evidence and page if asked to, and show what was found."""
    if full is not None and suppress is None:
        raise OptionError("--full-evidence is for --suppress; without it the evidence is full.")
    written: list[Path] = []
    told = None if suppress is None else make_report(evidence, suppress=suppress)
    if out is not None:
        written, _ = _write(evidence, out, suppress, force, full)
    if json:
        typer.echo(evidence.to_json() if told is None else told.published)
    elif not quiet:
        show_evidence(evidence, None if told is None else told.told)
        show_files(Path(os.path.relpath(path)) for path in written)
    if full is not None:
        say(f"{full} holds the small groups: keep it where the rows are kept.", style="yellow")


def _usual_audits(
    *, across: list[str], metrics: Sequence[str], tolerance: float, level: float, fdr: float
) -> list[dict[str, object]]:
    if not across:
        raise OptionError("--across needs at least one attribute, such as --across race,sex.")
    if not metrics:
        raise OptionError("Name the columns: --prediction, and --label if the truth is known.")
    made: list[dict[str, object]] = []
    for metric in metrics:
        words = metric.replace("_", " ")
        claim = {"kind": "gap", "metric": metric, "across": across}
        limits = {"outside": [-tolerance, tolerance], "fdr": fdr}
        bounds = {"tolerance": tolerance, "level": level}
        made.append({"audit": "flag", "name": f"flags: {words}", "claim": claim, **limits})
        made.append({"audit": "certify", "name": f"bounds: {words}", "claim": claim, **bounds})
    return made


def _number_or_word(text: str | None) -> str | int | None:
    """A value of the label as typed: whole numbers are numbers."""
    if text is None:
        return None
    # A shell has no types: what looks like a whole number is meant as one.
    return int(text) if text.lstrip("-").isdigit() else text
