"""Commands on plans and evidence that exist: init, hash, verify, sign, report, explain."""

import json as json_format
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise._files import refuse_target, write_atomically
from equipoise.cli import common
from equipoise.cli.common import Leave, Steps, say, show_files
from equipoise.errors import EquipoiseError
from equipoise.findings.evidence import Entry, Evidence
from equipoise.findings.words import NOTES, note_of
from equipoise.report import report as make_report

if TYPE_CHECKING:
    from equipoise.plan import Difference, Verification

# --- Commands on evidence that exists: verify, report, explain ---

EvidenceFile = Annotated[
    Path,
    typer.Argument(help="An evidence.json written by run, check or audit.", metavar="EVIDENCE"),
]
#: Differences that are printed; all of them count.
MOST = 5


Signer = Annotated[
    Path | None, typer.Option(help="Public key of whoever must have signed the evidence.")
]


def verify(
    evidence: EvidenceFile,
    plan: Annotated[
        Path | None, typer.Option(help="The plan as registered, to be compared as well.")
    ] = None,
    data: common.Data = None,
    table: common.Table = None,
    allow: common.Allow = None,
    allow_extra: Annotated[
        bool,
        typer.Option("--allow-extra", help="Accept what cannot be performed again; it is listed."),
    ] = False,
    signer: Signer = None,
    signature: Annotated[
        Path | None, typer.Option(help="The signature; EVIDENCE.sig if not given.")
    ] = None,
    plan_signature: Annotated[
        Path | None, typer.Option(help="A signature of the plan, made before the run.")
    ] = None,
    authority: Annotated[
        Path | None, typer.Option(help="Certificate of the authority that gave time-stamps.")
    ] = None,
    quiet: common.Quiet = False,
) -> None:
    """Perform an audit again from its plan and data, and compare everything it states.

    Exit 0: everything came out the same. Exit 1: something differs, is not signed as it should be,
    or cannot be performed again. Relative paths in the plan start at the plan's folder, or else at
    the current folder, or at that of the evidence. The evidence is not trusted: without --allow
    nothing outside that folder is opened.
    """
    from equipoise.plan import Exit, Plan
    from equipoise.plan import verify as perform_again

    # A broken seal is one of the differences to be told, and no reason not to look.
    stored = Evidence.load(evidence, strict=False)
    registered = None if plan is None else Plan.load(plan)
    folder = _folder(stored, evidence, data) if plan is None else plan.parent
    shown = _signatures(stored, evidence, signer, signature, plan_signature, authority)
    with Steps(quiet) as tell:
        found = perform_again(
            stored,
            plan=registered,
            folder=folder,
            data=data,
            table=table,
            allow=allow or (),
            tell=tell,
        )
    found = replace(
        found,
        differences=(*shown.differences, *found.differences),
        # a signature answers for the time; a signed plan, for having been there first
        stated=tuple(one for one in found.stated if not one.startswith(shown.covered)),
    )
    show_verification(found, allow_extra, quiet, shown.words)
    if found.differences or (found.not_performed and not allow_extra):
        raise Leave(Exit.VIOLATION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What signatures show of evidence."""

    differences: tuple["Difference", ...] = ()
    covered: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


def _signatures(
    stored: Evidence,
    evidence: Path,
    signer: Path | None,
    signature: Path | None,
    plan_signature: Path | None,
    authority: Path | None,
) -> Shown:
    if signer is None:
        if signature is not None or plan_signature is not None:
            raise EquipoiseError("A signature shows nothing without a key: pass --signer KEY.pub.")
        return Shown()
    from equipoise.plan import signing
    from equipoise.plan.run import Difference

    key = signing.public_key(signer)
    own = signing.read_signature(
        signature or f"{evidence}.sig",
        key,
        authority=authority,
        # one that was not named came with the evidence
        within=evidence.parent if signature is None else None,
    )
    problems = [*signing.not_covered(evidence, stored, own)]
    covered, words = ["made "], [f"Signed by {own.words()}."]
    if plan_signature is not None:
        first = signing.read_signature(plan_signature, key, authority=authority)
        problems += signing.too_late(stored, first)
        covered.append("")
        words.append(f"The plan was signed by {first.words()}.")
    wrong = tuple(Difference(where=w, stated=said, again=again) for w, said, again in problems)
    return Shown(differences=wrong, covered=tuple(covered), words=tuple(words))


def show_verification(
    found: "Verification", allow_extra: bool, quiet: bool, signed: Sequence[str] = ()
) -> None:
    """Say what differs, what was not performed, and what no comparison can show."""
    if found.differences:
        say(_not_verified(found), style="bold red")
    for difference in found.differences[:MOST]:
        say(f"  {difference}", style="red")
    if len(found.differences) > MOST:
        say(f"  … and {len(found.differences) - MOST:,} more differences.", style="red")
    extra = "yellow" if allow_extra else "red"
    if not quiet or not allow_extra:
        for name in found.not_performed:
            say(f"Not performed again: {name}", style=extra)
    if found.not_performed and not allow_extra:
        say("What cannot be performed again may be invented; --allow-extra accepts it.", extra)
    if found.differences or (found.not_performed and not allow_extra) or quiet:
        return
    say(f"Verified: {found.compared:,} values came out the same.", style="green")
    if found.rounded:
        many = "1 number is" if found.rounded == 1 else f"{found.rounded:,} numbers are"
        say(
            f"Of these, {many} not the same to the last digit, but to nine: another processor may "
            "round so, and so may somebody's hand.",
            style="yellow",
        )
    for words in signed:
        say(words, style="green")
    if found.stated:
        say(f"Stated, and shown by nothing but a signature: {'; '.join(found.stated)}.")


def sign(
    file: Annotated[
        Path,
        typer.Argument(help="Evidence, a plan that is yet to be run, or a ledger.", metavar="FILE"),
    ],
    key: Annotated[Path, typer.Option(help="Your private key (Ed25519).")],
    page: Annotated[
        Path | None, typer.Option(help="A page of that evidence, to be signed with it.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The signature to write; FILE.sig if not given.")
    ] = None,
    force: common.Force = False,
) -> None:
    """Sign evidence, a plan before it is run, or a ledger as it is, with an Ed25519 key.

    The signature covers the digests of evidence, plan, data file and page; or every entry of the
    ledger. To show when it was
    made, have the signature file time-stamped (RFC 3161) and keep the answer as FILE.sig.tsr.
    """
    from equipoise.cells.ledger import is_ledger
    from equipoise.plan import signing

    private = signing.private_key(key)
    if is_ledger(file) and page is None:
        made = signing.sign_ledger(file, private)
    elif file.suffix.lower() == ".json":
        made = signing.sign_evidence(file, private, page=page)
    elif page is not None:
        raise EquipoiseError("A page belongs to evidence; a plan or a ledger is signed alone.")
    else:
        made = signing.sign_plan(file, private)
    target = out or file.with_name(f"{file.name}.sig")
    write_atomically(target, made, force=force, kind="signature")
    say(f"wrote {target}, signed by key {signing.key_id(private.public_key())[:16]}…")


def keygen(
    out: Annotated[Path, typer.Argument(help="The private key to write.", metavar="KEY")],
) -> None:
    """Make a pair of Ed25519 keys: KEY, to be kept secret, and KEY.pub, to be handed out."""
    from equipoise.plan import signing

    public = out.with_name(f"{out.name}.pub")
    for path in (out, public):
        if path.exists():
            raise EquipoiseError(f"{path} exists already; a key is never overwritten.")
    secret, shared = signing.new_key()
    write_atomically(out, secret.decode(), mode=0o600)
    write_atomically(public, shared.decode())
    say(f"wrote {out} (keep it secret) and {public} (hand it out)")


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
    said = f"Not verified: {values}"
    if not found.compared:
        return f"{said}; no finding could be compared:"
    said += f" of {found.compared:,} compared"
    if any(place.endswith("provenance / fingerprint") for place in places):
        return f"{said}. The rows are not those that were audited:"
    return f"{said}. The rows are the same; the evidence or the plan was changed:"


def report(
    evidence: EvidenceFile,
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("report.html"),
    suppress: common.Suppress = None,
    signature: Annotated[
        Path | None, typer.Option(help="A signature of the evidence, which the page then quotes.")
    ] = None,
    force: common.Force = False,
    quiet: common.Quiet = False,
) -> None:
    """Make the report of an evidence file: one HTML page that needs no network."""
    from equipoise.plan.signing import quoted_signature

    # before the page is made, which takes a while
    refuse_target(out, "page", force)
    signer = None if signature is None else quoted_signature(signature, evidence)
    page = make_report(Evidence.load(evidence), suppress=suppress, signer=signer)
    written = write_atomically(out, page.html, force=force, kind="page")
    if not quiet:
        show_files([written])


def export(
    evidence: EvidenceFile,
    out: Annotated[Path, typer.Argument(help="File to write; a folder for csv.", metavar="OUT")],
    form: Annotated[
        str,
        typer.Option(
            "--to", help="csv, xlsx, model-card, model-index or openlineage.", metavar="FORM"
        ),
    ],
    model: Annotated[str, typer.Option(help="Name of the model in a model-index.")] = "model",
    suppress: common.Suppress = None,
    force: common.Force = False,
    quiet: common.Quiet = False,
) -> None:
    """Turn evidence into what other tools take: tables, a model card, a facet of OpenLineage."""
    from equipoise.report import exchange

    stored = Evidence.load(evidence)
    written = exchange.export(stored, out, form, model=model, suppress=suppress, force=force)
    if not quiet:
        show_files(written)


def evidence_schema() -> None:
    """Print the JSON schema of evidence files, for whoever reads them with other tools."""
    from equipoise.findings import evidence as schemas

    typer.echo(json_format.dumps(schemas.evidence_schema(), indent=1, ensure_ascii=False))


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
    data: common.Source,
    table: common.Table = None,
    out: Annotated[Path, typer.Option(help="The plan to write.")] = Path("audit.yaml"),
    label: common.Label = None,
    prediction: common.Prediction = None,
    score: common.Score = None,
    weight: common.Weight = None,
    count: common.Count = None,
    positive: common.Positive = None,
    encoding: common.Encoding = None,
    missing: common.Missing = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a plan that exists.")] = False,
) -> None:
    """Write a commented draft of a plan from the columns of a table."""
    # Inside, here and below: help and mistyped commands should not wait for the mathematics.
    from equipoise.plan import draft

    common.refuse_to_overwrite(out, force)
    text = draft(
        data,
        out=out,
        table=table,
        label=label,
        prediction=prediction,
        score=score,
        weight=weight,
        count=count,
        positive=common.positive_of(positive),
        encoding=encoding,
        missing=missing,
    )
    write_atomically(out, text, force=force, kind="plan")
    say(f"wrote {out}; read it, edit it, then: equipoise run {out}")


@app.command()
def check(plans: common.Plans) -> None:
    """Check that plans are well written, without touching the data."""
    from equipoise.plan import Plan
    from equipoise.plan.run import check_limits

    for plan in plans:
        read = Plan.load(plan)
        check_limits(read)
        number = "1 audit" if len(read.audits) == 1 else f"{len(read.audits)} audits"
        say(f"{plan.name} is a plan of {number}: {', '.join(read.names())}.")
        say(f"hash {read.hash}")


@app.command("hash")
def print_hash(plan: common.Plan) -> None:
    """Print the hash of a plan, to be registered before looking at the data."""
    from equipoise.plan import Plan

    typer.echo(Plan.load(plan).hash)


@app.command()
def schema() -> None:
    """Print the JSON schema of plans, for editors that check as one types."""
    from equipoise.plan import plan_schema

    typer.echo(json_format.dumps(plan_schema(), indent=2))
