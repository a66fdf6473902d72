"""Commands that audit: demo, audit, run, check."""

import enum
import json as json_format
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise._files import add_to, refuse_twice, write_together
from equipoise._validate import short
from equipoise.cli import common
from equipoise.cli.common import (
    Harm,
    Leave,
    Steps,
    Undetermined,
    groups_of,
    in_words_of,
    say,
    show_evidence,
    show_files,
    show_pack,
)
from equipoise.errors import EquipoiseError, OptionError
from equipoise.findings.evidence import Asked, Evidence
from equipoise.report import report as make_report
from equipoise.trail.engine import queries_sent, scrub, without_password

if TYPE_CHECKING:
    from equipoise.plan import Plan
    from equipoise.report.exchange import GateRun
    from equipoise.report.suppress import Kept
    from equipoise.trail import Trail


class Unknown(enum.StrEnum):
    """What is made of people whose attributes are missing."""

    GROUP = "group"
    RANDOM = "random"
    WORST = "worst"


def demo(
    out: common.Out = Path("out"), force: common.Force = False, quiet: common.Quiet = False
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


def example(
    out: Annotated[Path, typer.Option(help="The table to write.")] = Path("decisions.csv"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite a table that exists.")] = False,
    quiet: common.Quiet = False,
) -> None:
    """Write the table of decisions that the documentation speaks of, and say what to try on it."""
    from equipoise.datasets import write_decisions

    common.refuse_to_overwrite(out, force)
    written = write_decisions(out)
    if quiet:
        return
    name = shlex.quote(os.path.relpath(written))
    say(f"wrote {os.path.relpath(written)}: 400 made-up people, what happened, and two models")
    say("Try, in this folder:", style="bold")
    for words in (
        f"equipoise audit {name} --label outcome --prediction new_says --across race,sex",
        f"equipoise audit {name} --prediction new_says --across race --tolerance 0.8 --ratio",
        f"equipoise plan init {name} --label outcome --prediction new_says",
        "equipoise check audit.yaml",
        "equipoise verify out/evidence.json",
    ):
        say(f"  {words}")


def audit(
    data: common.Source,
    across: common.Across,
    table: common.Table = None,
    label: common.Label = None,
    prediction: common.Prediction = None,
    score: common.Score = None,
    weight: common.Weight = None,
    count: common.Count = None,
    cluster: common.Cluster = None,
    pair: common.Pair = None,
    positive: common.Positive = None,
    encoding: common.Encoding = None,
    missing: common.Missing = None,
    metric: common.Metrics = None,
    reference: Annotated[
        str | None,
        typer.Option(
            help="Who groups are compared with: race=Caucasian, or overall, complement, highest."
        ),
    ] = None,
    ratio: common.Ratio = False,
    depth: common.Depth = None,
    bins: common.Bins = 4,
    harm: common.HarmOption = Harm.BOTH,
    unknown: Annotated[
        Unknown,
        typer.Option(
            help="People without an attribute: a group of their own, left out as if missing at "
            "random, or whatever would be worst."
        ),
    ] = Unknown.GROUP,
    tolerance: Annotated[
        float | None,
        typer.Option(min=0, help="Disparity that is tolerated: 0.10, or 0.8 for ratios."),
    ] = None,
    level: common.Level = 0.95,
    fdr: common.Fdr = 0.10,
    seed: common.Seed = 7,
    title: Annotated[str | None, typer.Option(help="Title of the report.")] = None,
    model: Annotated[
        str | None, typer.Option(help="What is audited, with its version, for the report.")
    ] = None,
    owner: Annotated[str | None, typer.Option(help="Who answers for it, for the report.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for evidence.json and report.html; out if not given, where a look at a "
            "table replaces the last one at it, and says so."
        ),
    ] = None,
    suppress: common.Suppress = None,
    full_evidence: common.FullEvidence = None,
    explain_query: Annotated[
        bool,
        typer.Option("--explain-query", help="Print every query that was sent to the engine."),
    ] = False,
    force: common.Force = False,
    json: common.Json = False,
    quiet: common.Quiet = False,
) -> None:
    """Audit a table without a plan: bounds for each metric, flags beyond a limit, and a report.

    Without --tolerance nothing is kept or exceeded: the bounds say who differs, and by how much.
    Attributes that are numbers of many values are cut into ranges (--bins). The results count as
    exploratory; write a plan (`equipoise plan init DATA`) to fix the questions before looking.
    Leaves with 0 when done, whatever is found; `equipoise check` makes an exit code of a limit.
    """
    from equipoise.plan import Plan
    from equipoise.plan.draft import AMOUNT_METRICS, amounts_in, fitting_metrics, usual_metrics
    from equipoise.plan.plan import TrailPlan
    from equipoise.plan.run import columns_read, open_trail

    roles = common.given(
        label=label,
        prediction=prediction,
        score=score,
        weight=weight,
        count=count,
        cluster=cluster,
        pair=pair,
        positive=common.positive_of(positive),
    )
    metrics, attributes = common.names_in(metric), common.attributes_in(across)
    if not (metrics or usual_metrics(roles)):
        raise OptionError(_nothing_decided(roles))
    _one_question(harm, tolerance, reference)
    file = common.given(table=table, encoding=encoding, missing=missing)
    place = {"source": data, **file, **roles}
    columns = common.columns_said(roles, attributes, reference)
    trail = open_trail(TrailPlan.from_plain(place), folder=Path(), columns=columns)
    amounts = amounts_in(trail, roles)
    limits = _Limits(
        tolerance=tolerance, ratio=ratio, harm=harm, level=level, fdr=fdr, share=not amounts
    )
    limits.remark()
    usual = AMOUNT_METRICS if amounts else metrics or fitting_metrics(trail, roles)
    common.one_direction(harm, metrics, usual)
    audits = _usual_audits(
        across=groups_of(trail, attributes, depth, bins),
        target=common.target_of(trail, reference),
        metrics=metrics or usual,
        limits=limits,
        unknown=unknown,
    )
    plan = Plan.from_plain(
        {
            "equipoise": 1,
            "title": title or f"Audit of {table or Path(without_password(data)).name}",
            "seed": seed,
            **common.given(model=common.given(name=model, owner=owner) or None),
            "trail": place,
            "audits": audits,
        },
        "this command",
    )
    # a metric of one's own may read any column, and then the plan is not done with these
    opened = trail if columns_read(plan) == columns else None
    with queries_sent() as queries:
        evidence = _perform(plan, asked="exploratory", quiet=quiet or json, trail=opened)
    for number, text in enumerate(queries if explain_query else (), 1):
        # beside the results, so that --json stays JSON
        typer.echo(f"-- query {number} of {len(queries)}\n{text}\n", err=True)
    # in the usual folder a look replaces another look at the same table
    folder, again = (Path("out"), True) if out is None else (out, False)
    show_and_write(
        evidence, folder, suppress, json, quiet, force, full_evidence,
        again=again, gate="`equipoise check`, with these questions in a plan,",
    )  # fmt: skip


def pack(
    name: Annotated[str, typer.Argument(help="ll144, four-fifths or performance.", metavar="PACK")],
    data: common.Source,
    table: common.Table = None,
    label: common.Label = None,
    prediction: common.Prediction = None,
    score: common.Score = None,
    count: common.Count = None,
    positive: common.Positive = None,
    encoding: common.Encoding = None,
    across: Annotated[
        str | None, typer.Option(help="Attributes that are compared: sex,race.")
    ] = None,
    given: Annotated[
        str | None, typer.Option(help="four-fifths: column of the requisition people compete in.")
    ] = None,
    sex: Annotated[str | None, typer.Option(help="ll144: column of sex.")] = None,
    race: Annotated[str | None, typer.Option(help="ll144: column of race or ethnicity.")] = None,
    rate: Annotated[str | None, typer.Option(help="ll144: selection or scoring.")] = None,
    unknown: Annotated[
        str | None, typer.Option(help="Words that mean an unknown category: unknown,declined.")
    ] = None,
    accept: Annotated[
        str | None, typer.Option(help="performance: lower limits, as sensitivity=0.8,auc=0.7.")
    ] = None,
    data_kind: Annotated[str | None, typer.Option(help="ll144: historical or test.")] = None,
    data_source: Annotated[
        str | None, typer.Option(help="ll144: where the data come from, in words.")
    ] = None,
    explanation: Annotated[
        str | None, typer.Option(help="ll144: explanation of the data, in words.")
    ] = None,
    audited: Annotated[str | None, typer.Option(help="ll144: date of the audit.")] = None,
    distributed: Annotated[
        str | None, typer.Option(help="ll144: distribution date of the tool.")
    ] = None,
    justification: Annotated[
        str | None,
        typer.Option(help="ll144: why categories under 2 % are left out of the ratios."),
    ] = None,
    level: common.Level = 0.95,
    seed: common.Seed = 7,
    out: Annotated[
        list[Path] | None,
        typer.Option(help="File to write: .md, .html, .csv, .json or .txt; may be repeated."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: common.Quiet = False,
) -> None:
    """Fill a pack: the tables that a rule asks for, then how sure one can be of them."""
    from equipoise.packs import pack as fill

    given_options = common.given(
        table=table, label=label, prediction=prediction, score=score, count=count,
        encoding=encoding, across=across, given=given, sex=sex, race=race, rate=rate,
        unknown=unknown, accept=accept, data_kind=data_kind, data_source=data_source,
        explanation=explanation, audited=audited, distributed=distributed,
        justification=justification,
    )  # fmt: skip
    roles = common.given(positive=common.positive_of(positive))
    found = fill(name, data, level=level, rng=seed, **given_options, **roles)
    written = [found.save(path) for path in out or ()]
    if json:
        typer.echo(found.to_json())
    elif not quiet:
        show_pack(found)
        show_files(written)


class RuleKind(enum.StrEnum):
    """What kind of rule is learnt."""

    THRESHOLD = "threshold"
    BY_GROUP = "by_group"
    RECALIBRATION = "recalibration"


def repair(
    data: common.Source,
    across: common.Across,
    tolerance: Annotated[float, typer.Option(help="Disparity that is tolerated: 0.10.")],
    metric: Annotated[str, typer.Option(help="What should be alike.")] = "selection_rate",
    table: common.Table = None,
    label: common.Label = None,
    prediction: common.Prediction = None,
    score: common.Score = None,
    weight: common.Weight = None,
    count: common.Count = None,
    cluster: common.Cluster = None,
    positive: common.Positive = None,
    encoding: common.Encoding = None,
    reference: Annotated[
        str | None,
        typer.Option(help="Who groups are compared with: race=Caucasian, overall or complement."),
    ] = None,
    rule: Annotated[
        RuleKind | None,
        typer.Option(
            help="One threshold for all, one for each group (unlawful in some places), or a "
            "recalibration of the scores."
        ),
    ] = None,
    learn: Annotated[float, typer.Option(help="Share of the rows to learn from.")] = 0.5,
    tries: Annotated[int, typer.Option(min=1, help="Rules to choose among; each costs.")] = 1,
    level: Annotated[float, typer.Option(help="Confidence of the certificate.")] = 0.95,
    seed: common.Seed = 7,
    out: Annotated[
        Path | None, typer.Option(help="File for the rule, as JSON; written if it is certified.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that exists.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the finding as JSON.")] = False,
    quiet: common.Quiet = False,
) -> None:
    """Learn another rule on some rows, certify it on the others, and store it.

    0: the rule is shown to keep the tolerance. 1: it is shown not to. 2: undetermined. 3: error.
    """
    from equipoise.audits.repair import repair as learn_rule
    from equipoise.claims import from_plan
    from equipoise.findings.words import Verdict
    from equipoise.plan import Exit
    from equipoise.plan.plan import TrailPlan
    from equipoise.plan.run import open_trail

    common.refuse_to_overwrite(out, force)
    roles = common.given(
        table=table, label=label, prediction=prediction, score=score, weight=weight, count=count,
        cluster=cluster, positive=common.positive_of(positive), encoding=encoding,
    )  # fmt: skip
    place = TrailPlan.from_plain({"source": data, **roles})
    trail = open_trail(place, folder=Path())
    target = common.target_of(trail, reference)
    asked = {"kind": "gap", "metric": metric, "across": common.names(across)}
    claim = from_plan(asked if target is None else {**asked, "target": target})
    found = learn_rule(
        trail,
        claim,
        tolerance=tolerance,
        rule=None if rule is None else rule.value,
        learn=learn,
        tries=tries,
        level=level,
        rng=seed,
    )
    kept = found.verdict is Verdict.KEPT
    written = [] if out is None or not kept or found.rule is None else [found.rule.save(out)]
    if json:
        typer.echo(found.to_json())
    elif not quiet:
        for sentence in found.sentences():
            say(sentence)
        show_files(written)
        if out is not None and not kept:
            say(f"{out} was not written: there is no certificate.", style="bold")
    exceeded = found.verdict is Verdict.EXCEEDED
    raise Leave(Exit.KEPT if kept else Exit.VIOLATION if exceeded else Exit.UNDETERMINED)


def run(
    plan: common.Plan,
    data: common.Data = None,
    table: common.Table = None,
    hash: common.Hash = None,
    out: common.Out = Path("out"),
    suppress: common.Suppress = None,
    full_evidence: common.FullEvidence = None,
    force: common.Force = False,
    json: common.Json = False,
    quiet: common.Quiet = False,
) -> None:
    """Run a plan and write evidence.json and report.html.

    Leaves with 0 when done, whatever is found; `equipoise check` makes an exit code of it.
    """
    refuse_twice([*_outputs(out), full_evidence])
    evidence = _perform_file(plan, hash, data, table, quiet or json)
    gate = f"`equipoise check {shlex.quote(str(plan))}`"
    show_and_write(evidence, out, suppress, json, quiet, force, full_evidence, gate=gate)


def check(
    plan: common.Plan,
    data: common.Data = None,
    table: common.Table = None,
    hash: common.Hash = None,
    allow: common.Allow = None,
    undetermined: Annotated[
        Undetermined | None,
        typer.Option(help="What undetermined means: pass (exit 0) or fail (exit 1)."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for evidence and report; none if not given.")
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(help="Write the verdicts here as tests, in JUnit's XML.")
    ] = None,
    sarif: Annotated[
        Path | None, typer.Option(help="Write them here as results of code scanning, in SARIF.")
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option(help="Add a summary in Markdown to this file, such as $GITHUB_STEP_SUMMARY."),
    ] = None,
    suppress: common.Suppress = None,
    full_evidence: common.FullEvidence = None,
    force: common.Force = False,
    json: common.Json = False,
    quiet: common.Quiet = False,
) -> None:
    """Gate a release: run a plan and leave with an exit code.

    0: all limits are shown to be kept. 1: a violation is shown. 2: undetermined. 3: error.
    The plan is not trusted: without --allow it reads no file outside its folder, opens no
    connection and sees no environment variable.
    """
    from equipoise.plan import gate

    refuse_twice([*_outputs(out), full_evidence, junit, sarif, summary])
    hides = suppress is not None
    build = _Build(plan=plan, junit=junit, sarif=sarif, summary=summary, force=force, hides=hides)
    with build.told_of_errors():
        evidence = _perform_file(plan, hash, data, table, quiet or json, allow=allow or ())
        judged = gate(evidence, None if undetermined is None else undetermined.value)
        told = show_and_write(evidence, out, suppress, json, quiet, force, full_evidence)
    words = common.gate_words(judged, told)
    code = int(judged.code)
    build.write(evidence, words, code, told, fails=undetermined is Undetermined.FAIL)
    if not (json or quiet):
        say(f"exit {code}: {words}", style="bold")
    raise Leave(judged.code)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Build:
    """What a build wants to be told of a gate, and where."""

    plan: Path
    junit: Path | None
    sarif: Path | None
    summary: Path | None
    force: bool
    hides: bool
    """Whether small groups are left out, so that no message may tell of them."""

    def write(
        self,
        evidence: Evidence,
        words: str,
        code: int,
        told: "Sequence[Kept] | None",
        *,
        fails: bool,
    ) -> None:
        """Tell of every audit; of groups that are hidden, what the page tells."""
        if self.junit is None and self.sarif is None and self.summary is None:
            return
        from equipoise.report.exchange import outcome_of

        place = self._place()
        self._files(outcome_of(evidence, words, code, place, undetermined_fails=fails, told=told))

    @contextmanager
    def told_of_errors(self) -> Iterator[None]:
        """What could not be asked is an error in every file, so that no old answer stays there."""
        try:
            yield
        except EquipoiseError as error:
            from equipoise.plan import Exit
            from equipoise.report.exchange import GateRun

            why = "the reason may tell of a few people, and is said where the command was run."
            if not self.hides:
                why = scrub(in_words_of(["check"], str(error)))
            words = f"The question could not be asked: {why}"
            self._files(
                GateRun(title=self.plan.name, words=words, code=int(Exit.ERROR), plan=self._place())
            )
            raise

    def _place(self) -> str:
        """The plan within the project; nothing of the machine's other folders."""
        inside = self.plan.resolve().is_relative_to(Path.cwd())
        return Path(os.path.relpath(self.plan)).as_posix() if inside else self.plan.name

    def _files(self, outcome: "GateRun") -> None:
        from equipoise.report.exchange import junit, sarif, summary

        texts = {
            path: make(outcome)
            for path, make in ((self.junit, junit), (self.sarif, sarif))
            if path is not None
        }
        kinds = [kind for kind in ("junit", "sarif") if getattr(self, kind) is not None]
        if texts:
            write_together(texts, force=self.force, kinds=kinds)
        if self.summary is not None:
            add_to(self.summary, summary(outcome))


def _outputs(out: Path | None) -> list[Path]:
    """What is written to a folder."""
    return [] if out is None else [out / "evidence.json", out / "report.html"]


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
    trail: "Trail | None" = None,
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
            trail=trail,
        )


def _write(
    evidence: Evidence,
    out: Path,
    suppress: int | None,
    force: bool = False,
    full: Path | None = None,
    *,
    again: bool = False,
) -> tuple[list[Path], str]:
    """Write evidence and page; what was written, and what it replaced that was no run of it."""
    target = out / "evidence.json"
    replaced = "" if force else _refuse_other(out, target, evidence, again=again)
    # made before anything is written, so that a failure leaves no half of the two
    page = make_report(evidence, suppress=suppress)
    whole = f"{evidence.to_json()}\n"
    texts = {target: page.published or whole, out / "report.html": page.html}
    kinds = ["evidence", "page"]
    if full is not None:
        texts, kinds = {**texts, full: whole}, [*kinds, "evidence"]
    return write_together(texts, force=force, kinds=kinds), replaced


def _refuse_other(out: Path, target: Path, evidence: Evidence, *, again: bool) -> str:
    """Refuse to replace the evidence of another audit, or to write where a link leads.

    ``again`` says that one look at a table may replace another, which the words returned then name.
    """
    how = "Pass another --out, or --force."
    if out.is_symlink():
        raise OptionError(f"{out} is a link to {os.readlink(out)}. {how}")
    if not target.is_file():
        # nothing there, or what is never replaced
        return ""
    try:
        stored = json_format.loads(target.read_bytes())
    except (OSError, ValueError, RecursionError):
        # nothing of ours, which is looked at when it is written
        return ""
    if not isinstance(stored, dict) or stored.get("plan_hash") == evidence.plan_hash:
        return ""
    title = short(scrub(str(stored.get("title"))))
    if again and _is_another_look(stored, evidence):
        return f"replaced the look of before, {title!r}, made {short(str(stored.get('created')))}"
    raise OptionError(f"{target} is the evidence of another plan ({title!r}). {how}")


def _is_another_look(stored: Mapping[str, object], evidence: Evidence) -> bool:
    """Whether both are exploratory looks at one table, of which the later may replace the first."""

    def source(plan: object) -> object:
        trail = plan.get("trail") if isinstance(plan, Mapping) else None
        return trail.get("source") if isinstance(trail, Mapping) else None

    entries = stored.get("entries")
    asked = {one.get("asked") for one in entries} if isinstance(entries, list) else set()
    every = asked | {entry.asked for entry in evidence.entries}
    same = source(stored.get("plan")) == source(evidence.plan)
    return every == {"exploratory"} and same and source(evidence.plan) is not None


def show_and_write(
    evidence: Evidence,
    out: Path | None,
    suppress: int | None,
    json: bool,
    quiet: bool,
    force: bool = False,
    full: Path | None = None,
    *,
    again: bool = False,
    gate: str = "",
) -> "Sequence[Kept] | None":
    """Write evidence and page if asked to, and show what was found.

    What may be told is returned, if small groups are hidden. ``gate`` is the command that makes an
    exit code of a limit that is not shown to be kept.
    """
    if full is not None and suppress is None:
        raise OptionError("--full-evidence is for --suppress; without it the evidence is full.")
    refuse_twice([*_outputs(out), full])
    written, replaced = list[Path](), ""
    page = None if suppress is None else make_report(evidence, suppress=suppress)
    told = None if page is None else page.told
    if out is not None:
        written, replaced = _write(evidence, out, suppress, force, full, again=again)
    if json:
        typer.echo(evidence.to_json() if page is None else page.published)
    elif not quiet:
        show_evidence(evidence, told)
        show_files(Path(os.path.relpath(path)) for path in written)
        for said in (replaced, common.needs_gate(evidence, told, gate)):
            if said:
                say(said, style="dim")
    if full is not None:
        say(f"{full} holds the small groups: keep it where the rows are kept.", style="yellow")
    return told


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    """What disparities are tolerated, and how surely it is asked."""

    tolerance: float | None
    ratio: bool
    harm: Harm
    level: float
    fdr: float
    share: bool
    """Whether disparities are in points, of which half a hundred is more than anybody means."""

    def for_flags(self) -> dict[str, object]:
        """The limits as `flag` takes them."""
        low, high = self._ends()
        if self.harm is Harm.BOTH:
            return {"outside": [low, high], "fdr": self.fdr}
        side = {"above": high} if self.harm is Harm.HIGH else {"below": low}
        return {**side, "fdr": self.fdr}

    def for_bounds(self) -> dict[str, object]:
        """The limits as `certify` takes them."""
        if not self.named:
            return {"level": self.level}
        low, high = self._ends()
        if self.harm is Harm.BOTH:
            return {"tolerance": low if self.ratio else high, "level": self.level}
        side, end = ("upper", high) if self.harm is Harm.HIGH else ("lower", low)
        return {"tolerance": end, "side": side, "level": self.level}

    def remark(self) -> None:
        """Ask back where a difference is tolerated that is so large that a ratio may be meant."""
        size = self.tolerance or 0.0
        if self.share and not self.ratio and size >= 0.5:
            typer.echo(
                f"note: --tolerance {size:g} allows differences of {100 * size:g} points. With "
                "--ratio it is the smallest ratio that is allowed.",
                err=True,
            )

    @property
    def named(self) -> bool:
        """Whether there is a limit to judge by; one that nobody named would be nobody's."""
        return self.tolerance is not None

    def _ends(self) -> tuple[float, float]:
        """The lowest and the highest disparity that is tolerated."""
        size = self._size
        return (size, 1 / size) if self.ratio else (-size, size)

    @property
    def _size(self) -> float:
        size = self.tolerance or 0.0
        if self.ratio and not 0 < size < 1:
            raise OptionError(
                "With --ratio the tolerance is the smallest ratio that is allowed, between 0 and "
                f"1, such as --tolerance 0.8; got {size:g}."
            )
        return size


def _usual_audits(
    *,
    across: object,
    target: object,
    metrics: Sequence[str],
    limits: _Limits,
    unknown: Unknown = Unknown.GROUP,
) -> list[dict[str, object]]:
    made: list[dict[str, object]] = []
    for metric in metrics:
        words = metric.replace("_", " ")
        kind = "ratio" if limits.ratio else "gap"
        claim = {"kind": kind, "metric": metric, "across": across}
        if target is not None:
            claim["target"] = target
        if unknown is not Unknown.GROUP:
            claim["unknown"] = str(unknown)
        of = {"claim": claim}
        if limits.named:
            # a flag says that a limit is exceeded; without one bounds tell who differs
            made.append({"audit": "flag", "name": f"flags: {words}", **of, **limits.for_flags()})
        made.append({"audit": "certify", "name": f"bounds: {words}", **of, **limits.for_bounds()})
    return made


def _one_question(harm: Harm, tolerance: float | None, reference: str | None) -> None:
    """Refuse a direction that no limit, or nobody, could have."""
    if harm is not Harm.BOTH and tolerance is None:
        raise OptionError(
            "--harm says on which side a limit counts, and no limit is named. Add --tolerance, "
            "such as --tolerance 0.1, or leave --harm out: bounds look both ways."
        )
    if reference == "highest" and harm is Harm.HIGH:
        raise OptionError(
            "Nobody is above the highest group, so there is nothing that --harm high could find. "
            "Leave it out, or compare with another group."
        )


def _nothing_decided(roles: Mapping[str, object]) -> str:
    """What to add where no column says what was decided."""
    columns = "--prediction names the column of decisions, --score that of the model's numbers"
    label = roles.get("label")
    if label is None and "score" in roles:
        return (
            "--score alone says how likely something is, and neither what was decided nor what "
            "happened. Add --label COLUMN (what turned out to be true) or --prediction COLUMN "
            "(what was decided), or ask for the score itself: --metric scoring_rate."
        )
    if label is None:
        return f"Name the columns: {columns}, --label what turned out to be true, if that is known."
    return (
        f"Name the columns: {columns}. --label alone says what happened and not what was decided; "
        f"if {label!r} is itself the decision, pass it by --prediction."
    )
