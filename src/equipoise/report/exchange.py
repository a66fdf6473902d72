"""What other tools take in: tables, a model card, a facet of OpenLineage, and the result of a gate.

Tables are CSV and Excel; a build shows a gate as JUnit XML, SARIF, or a summary in Markdown.
"""

import csv
import io
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import yaml

from equipoise._files import write_atomically, write_together
from equipoise._validate import listing
from equipoise._version import __version__
from equipoise.errors import EquipoiseError, OptionError
from equipoise.findings import Bounds, Evidence, Finding, Verdict
from equipoise.findings.evidence import SENSELESS, brief, first_headlines, stops, warnings_of
from equipoise.findings.words import tidy
from equipoise.report import report
from equipoise.report.ask import places_of_strongest, tables_of
from equipoise.report.suppress import Kept, published_verdict, sentences_of, suppressed

FORMS = ("csv", "xlsx", "model-card", "model-index", "openlineage")
"""What evidence can be turned into."""

MOST_GROUPS = 20
"""Groups of a finding that a card quotes, the strongest evidence first."""

Value = str | float | int | bool | None


# --- The tables of all findings ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """The rows of one finding, with all digits."""

    name: str
    """The finding's name in the evidence."""
    heads: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


def sheets_of(evidence: Evidence, kept: Sequence[Kept] | None = None) -> tuple[Sheet, ...]:
    """A sheet of verdicts, then one for each finding.

    >>> import equipoise as eq
    >>> found = eq.flag(eq.datasets.compas(), eq.gap("accuracy", across="sex"))
    >>> [sheet.name for sheet in sheets_of(eq.Evidence.of(found))]
    ['audit', 'flags']
    """
    told = _kept(evidence, None) if kept is None else kept
    first = Sheet(
        name="audit",
        heads=("name", "asked", "kind", "question", "verdict", "guarantee"),
        rows=tuple(
            (
                entry.name,
                entry.asked,
                entry.finding.kind,
                tidy(one.finding.question),
                _verdict(one.conclusion),
                tidy(one.finding.guarantee),
            )
            for entry, one in zip(evidence.entries, told, strict=True)
        ),
    )
    named = zip(evidence.entries, told, strict=True)
    return (first, *(_sheet(entry.name, one.finding) for entry, one in named if one.told))


def _sheet(name: str, finding: Finding) -> Sheet:
    rows: list[Mapping[str, object]] = [*finding.to_dict()["rows"]]
    heads = tuple(dict.fromkeys(head for row in rows for head in row))
    lines = tuple(tuple(_value(row.get(head)) for head in heads) for row in rows)
    return Sheet(name=name, heads=heads, rows=lines)


def _value(value: object) -> Value:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def csv_of(sheet: Sheet) -> str:
    r"""A sheet as CSV. Text that a spreadsheet would take for a formula begins with a quote mark.

    >>> csv_of(Sheet(name="s", heads=("group", "n"), rows=(("=1+1", 3),)))
    "group,n\r\n'=1+1,3\r\n"
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(sheet.heads)
    writer.writerows([_harmless(value) for value in row] for row in sheet.rows)
    return out.getvalue()


def _harmless(value: Value) -> Value:
    if not isinstance(value, str):
        return value
    return f"'{value}" if value.lstrip()[:1] in ("=", "+", "-", "@", "\t") else value


_SHEET_NAME = re.compile(r"[\[\]:*?/\\]")
# signs that XML has no way to write
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_OFFICE = "http://schemas.openxmlformats.org"
_MAIN = f"{_OFFICE}/spreadsheetml/2006/main"
_LINKS = f"{_OFFICE}/officeDocument/2006/relationships"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'


def xlsx_of(sheets: Sequence[Sheet]) -> bytes:
    """The sheets as an Excel workbook; text stays text, whatever it begins with."""
    names = _sheet_names([sheet.name for sheet in sheets])
    numbers = range(1, len(sheets) + 1)
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    part = '<Override PartName="/xl/{}.xml" ContentType="' + kind + '.{}+xml"/>'
    relation = '<Relationship Id="rId{}" Type="' + _LINKS + '/{}" Target="{}"/>'
    package = f"{_OFFICE}/package/2006"
    files = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        '<Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        + part.format("workbook", "sheet.main")
        + "".join(part.format(f"worksheets/sheet{i}", "worksheet") for i in numbers)
        + "</Types>",
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships">'
        + relation.format(1, "officeDocument", "xl/workbook.xml")
        + "</Relationships>",
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_LINKS}"><sheets>'
        + "".join(
            f'<sheet name="{_attribute(name)}" sheetId="{i}" r:id="rId{i}"/>'
            for i, name in zip(numbers, names, strict=True)
        )
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
        + "".join(relation.format(i, "worksheet", f"worksheets/sheet{i}.xml") for i in numbers)
        + "</Relationships>",
        **{
            f"xl/worksheets/sheet{i}.xml": _sheet_xml(sheet)
            for i, sheet in zip(numbers, sheets, strict=True)
        },
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            # one date for all: the same evidence gives the same bytes
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, (_HEAD + text).encode("utf-8"))
    return out.getvalue()


def _sheet_names(names: Sequence[str]) -> list[str]:
    """Names as Excel takes them: 31 signs at most, no two alike."""
    made: list[str] = []
    for name in names:
        base = _SHEET_NAME.sub(" ", _NO_XML.sub("", name)).strip(" '") or "finding"
        short, number = base[:31], 1
        while short.casefold() in {one.casefold() for one in made}:
            number += 1
            short = f"{base[: 31 - len(f' {number}')]} {number}"
        made.append(short)
    return made


def _sheet_xml(sheet: Sheet) -> str:
    lines = [sheet.heads, *sheet.rows]
    rows = "".join(f"<row>{''.join(_cell_xml(value) for value in row)}</row>" for row in lines)
    return f'<worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData></worksheet>'


#: Signs a cell of Excel may hold.
_LONGEST = 32_767


def _cell_xml(value: Value) -> str:
    if value is None:
        return "<c/>"
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    # Excel holds numbers as floats; a larger whole number would lose its last digits
    if isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**53):
        return f"<c><v>{value!r}</v></c>"
    text = escape(_NO_XML.sub("", str(value))[:_LONGEST])
    return f'<c t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'


def _attribute(text: str) -> str:
    return escape(text, {'"': "&quot;"})


# --- A model card --------------------------------------------------------------------------------


def model_card(evidence: Evidence, kept: Sequence[Kept] | None = None) -> str:
    """A section for a model card, in Markdown: verdict, who differs, tables, how to check it.

    >>> import equipoise as eq
    >>> found = eq.flag(eq.datasets.compas(), eq.gap("accuracy", across="sex"))
    >>> model_card(eq.Evidence.of(found)).splitlines()[0]
    '## Fairness audit'
    """
    told = _kept(evidence, None) if kept is None else kept
    shown = [one.finding for one in told if one.told]
    lines = ["## Fairness audit", "", _plain(sentences_of(evidence, told)[0]), ""]
    lines += [f"- {_plain(said)}" for said in first_headlines(shown, MOST_GROUPS)]
    lines += [f"- Note: {_plain(said)}" for said in warnings_of(shown)]
    lines += ["", "| audit | question | verdict |", "|---|---|---|"]
    for entry, one in zip(evidence.entries, told, strict=True):
        row = (entry.name, one.finding.question, _verdict(one.conclusion))
        lines.append(f"| {' | '.join(map(_plain, row))} |")
    for entry, one in zip(evidence.entries, told, strict=True):
        if one.told:
            lines += ["", f"### {_plain(entry.name)}", "", *_markdown_table(one.finding)]
            lines += ["", f"{_plain(one.finding.guarantee)}."]
    marks = [] if _hides(told) else [f"Seal of the evidence: {evidence.seal}."]
    planned = "none" if evidence.plan_hash is None else evidence.plan_hash
    lines += ["", f"Made with equipoise {evidence.versions.get('equipoise', __version__)}. "
              f"Plan: {planned}. {' '.join(marks)}".rstrip()]  # fmt: skip
    return "\n".join(lines) + "\n"


def _markdown_table(finding: Finding) -> list[str]:
    tables = tables_of(finding)
    if not tables:
        return []
    table = tables[0]
    heads = [name for name, _ in table.heads]
    lines = [f"| {' | '.join(map(_plain, heads))} |", f"|{'---|' * len(heads)}"]
    for row in table.rows[:MOST_GROUPS]:
        lines.append(f"| {' | '.join(_plain(cell.text) for cell in row)} |")
    more = table.total - min(len(table.rows), MOST_GROUPS)
    return [*lines, *(["", f"and {more:,} more."] if more > 0 else [])]


_MARKED = re.compile(r"([\\`*_{}\[\]<>#|])")


def _plain(text: object) -> str:
    """Text in which no sign means anything to Markdown or HTML."""
    return _MARKED.sub(r"\\\1", tidy(str(text))).replace("\\<", "&lt;").replace("\\>", "&gt;")


def model_index(evidence: Evidence, name: str, kept: Sequence[Kept] | None = None) -> str:
    """The ``model-index`` of a Hugging Face model card, as YAML: bounds of disparities.

    Only simultaneous bounds are quoted, since a number without them says nothing of its error.

    >>> import equipoise as eq
    >>> found = eq.certify(eq.datasets.compas(), eq.gap("accuracy", across="sex"), rng=1)
    >>> print(model_index(eq.Evidence.of(found), "my-model").splitlines()[1])
    - name: my-model
    """
    told = _kept(evidence, None) if kept is None else kept
    results = []
    for entry, one in zip(evidence.entries, told, strict=True):
        if isinstance(one.finding, Bounds) and one.told and one.finding.rows:
            source = tidy(one.finding.provenance.source)
            results.append(
                {
                    "task": {"type": "tabular-classification"},
                    "dataset": {"type": "tabular", "name": source},
                    "metrics": _indexed(entry.name, one.finding),
                }
            )
    if not results:
        raise EquipoiseError(
            "A model-index quotes bounds that hold for all groups at once, and the evidence has "
            "none; ask for them with certify."
        )
    made = {"model-index": [{"name": name, "results": results}]}
    return str(yaml.safe_dump(made, sort_keys=False, allow_unicode=True, width=100))


def _indexed(name: str, finding: Bounds) -> list[dict[str, object]]:
    strongest = [finding.rows[i] for i in places_of_strongest(finding.rows, MOST_GROUPS)]
    way = "ratio to" if finding.relative else "gap to"
    return [
        {
            "type": str(finding.claim["metric"]),
            "name": tidy(f"{finding.metric}, {way} {finding.against}, {row.group}"),
            "value": row.disparity,
            "args": {
                "group": tidy(row.group),
                "rows": row.n,
                "lower": row.lower,
                "upper": row.upper,
                "level": finding.level,
                "audit": tidy(name),
            },
            "verified": False,
        }
        for row in strongest
        if row.disparity is not None
    ]


# --- OpenLineage ---------------------------------------------------------------------------------

PRODUCER = f"urn:equipoise:{__version__}"
ASSERTIONS = "https://openlineage.io/spec/facets/1-0-1/DataQualityAssertionsDatasetFacet.json"


def openlineage(
    evidence: Evidence, kept: Sequence[Kept] | None = None
) -> dict[str, dict[str, object]]:
    """Facets of the data set that was audited, to be put into an OpenLineage event.

    ``dataQualityAssertions`` holds the audits that judged a limit and could tell. One that is
    undetermined neither holds nor fails, so it stands in ``equipoise_audit`` alone.

    >>> import equipoise as eq
    >>> claim = eq.gap("false_positive_rate", across="race")
    >>> found = eq.certify(eq.datasets.compas(), claim, tolerance=0.05, rng=1)
    >>> facets = openlineage(eq.Evidence.of(found))
    >>> [one["success"] for one in facets["dataQualityAssertions"]["assertions"]]
    [False]
    """
    told = _kept(evidence, None) if kept is None else kept
    named = [*zip(evidence.entries, told, strict=True)]
    assertions = [
        {
            "assertion": tidy(f"{entry.name}: {one.finding.question}"),
            "success": one.conclusion is Verdict.KEPT,
        }
        for entry, one in named
        if one.conclusion in (Verdict.KEPT, Verdict.EXCEEDED)
    ]
    own: dict[str, object] = {
        "_producer": PRODUCER,
        "_schemaURL": "urn:equipoise:facet:audit/1",
        "verdict": str(published_verdict(evidence, told)),
        "planHash": evidence.plan_hash,
        "seal": None if _hides(told) else evidence.seal,
        "audits": [
            {
                "name": entry.name,
                "kind": entry.finding.kind,
                "asked": entry.asked,
                "verdict": None if one.conclusion is None else str(one.conclusion),
                "guarantee": tidy(one.finding.guarantee),
            }
            for entry, one in named
        ],
    }
    quality: dict[str, object] = {
        "_producer": PRODUCER,
        "_schemaURL": ASSERTIONS,
        "assertions": assertions,
    }
    return {"dataQualityAssertions": quality, "equipoise_audit": own}


# --- Files ---------------------------------------------------------------------------------------


def export(
    evidence: Evidence,
    out: Path,
    form: str,
    *,
    model: str = "model",
    suppress: int | None = None,
    force: bool = False,
) -> list[Path]:
    """Write evidence in one of `FORMS`; CSV is a folder with a file for each finding."""
    if form not in FORMS:
        raise OptionError(f"form must be one of {', '.join(FORMS)}; got {form!r}.")
    try:
        return _exported(evidence, out, form, model, suppress, force)
    except EquipoiseError:
        raise
    except SENSELESS as error:
        if not evidence.stated:
            raise
        raise EquipoiseError(
            f"This evidence states something that cannot be exported ({type(error).__name__}): it "
            "was not written by equipoise, or by another version."
        ) from error


def _exported(
    evidence: Evidence, out: Path, form: str, model: str, suppress: int | None, force: bool
) -> list[Path]:
    kept = _kept(evidence, suppress)
    if form == "csv":
        sheets = sheets_of(evidence, kept)
        names = _sheet_names([sheet.name for sheet in sheets])
        texts: dict[Path, str | bytes] = {
            out / f"{name}.csv": csv_of(sheet) for name, sheet in zip(names, sheets, strict=True)
        }
        _refuse_left_over(out, texts, suppress)
        return write_together(texts, force=force, kinds=["table"] * len(texts))
    if form == "xlsx":
        made = xlsx_of(sheets_of(evidence, kept))
        return [write_atomically(out, made, force=force, kind="workbook")]
    text = {
        "model-card": lambda: model_card(evidence, kept),
        "model-index": lambda: model_index(evidence, model, kept),
        "openlineage": lambda: json.dumps(openlineage(evidence, kept), indent=1) + "\n",
    }[form]()
    return [write_atomically(out, text, force=force, kind=form)]


def _refuse_left_over(out: Path, texts: Iterable[Path], suppress: int | None) -> None:
    """Refuse a folder in which tables of an earlier export would show what is left out of this."""
    names = {path.name for path in texts}
    others = sorted(path.name for path in out.glob("*.csv") if path.name not in names)
    if suppress is not None and others:
        raise EquipoiseError(
            f"{str(out)!r} holds tables that this export does not write, and which may show small "
            f"groups: {listing(others)}. Name another folder, or take them away."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """An audit as trackers of experiments keep it."""

    evidence: Evidence
    files: tuple[Path, ...]
    """Evidence and page; with small groups left out, what may be published of both."""
    numbers: Mapping[str, int]
    verdict: str


@contextmanager
def for_tracker(
    results: Iterable[Finding | Evidence], suppress: int | None = None
) -> Iterator[Logged]:
    """Evidence and page as files that are there as long as a tracker takes to copy them."""
    given = [*results]
    if len(given) == 1 and isinstance(given[0], Evidence):
        made = given[0]
    else:
        made = Evidence.of(*(found for found in given if isinstance(found, Finding)))
    page = report(made, suppress=suppress)
    said = [one.conclusion for one in page.told]
    with TemporaryDirectory() as place:
        folder = Path(place)
        # the full evidence beside a page with small groups left out would give them away
        text = made.to_json() + "\n" if page.published is None else page.published
        files = (
            write_atomically(folder / "evidence.json", text),
            page.save(folder / "report.html"),
        )
        yield Logged(
            evidence=made,
            files=files,
            numbers={
                "equipoise.violations": said.count(Verdict.EXCEEDED),
                "equipoise.undetermined": said.count(Verdict.UNDETERMINED),
            },
            verdict=str(published_verdict(made, page.told)),
        )


def _kept(evidence: Evidence, suppress: int | None) -> list[Kept]:
    return suppressed([entry.finding for entry in evidence.entries], suppress)


def _verdict(conclusion: Verdict | None) -> str:
    return "no limit" if conclusion is None else str(conclusion)


def _hides(told: Sequence[Kept]) -> bool:
    """Whether small groups are left out, and with them what guesses could be tried on."""
    return any(not one.finding.provenance.fingerprint for one in told)


SARIF_VERSION = "2.1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildCase:
    """One audit as a build sees it."""

    name: str
    verdict: Verdict | None
    """None where no limit was set."""
    stops: bool
    """Whether it stops the build."""
    said: tuple[str, ...]
    short: str
    """Who differs and by how much, or the first sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRun:
    """A gate that was run, or that could not be."""

    title: str
    words: str
    """Why the build passes or does not, in one sentence."""
    code: int | None
    """The exit code; None where it rests on groups that are not told of."""
    plan: str
    """The plan's file, as a path within the project."""
    digest: str = ""
    """The plan's hash."""
    cases: tuple[BuildCase, ...] = ()
    """Empty if the question could not be asked."""


def outcome_of(
    evidence: Evidence,
    words: str,
    code: int,
    plan: str,
    *,
    undetermined_fails: bool = False,
    told: Sequence[Kept] | None = None,
) -> GateRun:
    """What a build shows of evidence; of groups that are hidden, only what may be ``told``."""
    kept = _kept(evidence, None) if told is None else told
    together = published_verdict(evidence, kept)
    if not all(one.whole for one in kept):
        # the gate rests on all groups: its code is for whoever ran it
        words, whole_code = sentences_of(evidence, kept)[0], None
    else:
        whole_code = code
    return GateRun(
        title=evidence.title,
        words=words,
        code=whole_code,
        plan=plan,
        digest=evidence.plan_hash or "",
        cases=tuple(
            BuildCase(
                name=entry.name,
                verdict=one.conclusion,
                stops=stops(one.conclusion, together, undetermined_fails=undetermined_fails),
                said=tuple(tidy(said) for said in brief(one.finding)),
                short=tidy(one.finding.headline() or one.finding.sentences()[0]),
            )
            for entry, one in zip(evidence.entries, kept, strict=True)
        ),
    )


# --- JUnit ---------------------------------------------------------------------------------------


def junit(outcome: GateRun) -> str:
    """A test suite in which every audit is a test; one that is undetermined counts as skipped."""
    cases = outcome.cases
    skipped = [case.verdict is Verdict.UNDETERMINED and not case.stops for case in cases]
    numbers = {
        "tests": len(cases) or 1,
        "failures": sum(case.stops for case in cases),
        "errors": int(not cases),
        "skipped": sum(skipped),
    }
    counts = {name: str(number) for name, number in numbers.items()}
    root = ElementTree.Element("testsuites", {"name": "equipoise", **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": _xml(outcome.title), **counts})
    if not cases:
        case = ElementTree.SubElement(suite, "testcase", _named(outcome, outcome.title))
        ElementTree.SubElement(case, "error", {"message": _xml(outcome.words), "type": "error"})
    for each, left in zip(cases, skipped, strict=True):
        case = ElementTree.SubElement(suite, "testcase", _named(outcome, each.name))
        text = _xml("\n".join(each.said))
        said = {"message": _xml(each.short or str(each.verdict))}
        if each.stops:
            kind = {"type": str(each.verdict)}
            ElementTree.SubElement(case, "failure", {**said, **kind}).text = text
        elif left:
            ElementTree.SubElement(case, "skipped", said).text = text
        else:
            ElementTree.SubElement(case, "system-out").text = text
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _named(outcome: GateRun, name: str) -> dict[str, str]:
    return {"classname": _xml(outcome.plan), "name": _xml(name)}


def _xml(text: str) -> str:
    """Without the signs that XML has no way to write."""
    return "".join(
        sign if sign in "\t\n\r" or " " <= sign <= "\ud7ff" or "\ue000" <= sign <= "\ufffd"
        or sign > "\uffff" else "\ufffd"
        for sign in text
    )  # fmt: skip


# --- SARIF ---------------------------------------------------------------------------------------

_RULES = {
    "exceeded": ("A limit is exceeded", "A disparity beyond the limit is shown."),
    "undetermined": ("Undetermined", "Neither that a limit is kept nor that it is not is shown."),
    "kept": ("A limit is kept", "Every disparity is shown to be within the limit."),
    "described": ("Not judged", "No limit was set."),
}
_KINDS = {"exceeded": "fail", "undetermined": "open", "kept": "pass", "described": "informational"}


def sarif(outcome: GateRun) -> str:
    """A log of results, one for each audit, at the plan's file."""
    names = list(_RULES)
    invocation: dict[str, Any] = {"executionSuccessful": bool(outcome.cases)}
    if outcome.code is not None:
        invocation["exitCode"] = outcome.code
    if not outcome.cases:
        notice = {"level": "error", "message": {"text": outcome.words}}
        invocation["toolExecutionNotifications"] = [notice]
    driver = {
        "name": "equipoise",
        "semanticVersion": __version__,
        "rules": [
            {"id": name, "shortDescription": {"text": short}, "fullDescription": {"text": long}}
            for name, (short, long) in _RULES.items()
        ],
    }
    results = []
    for case in outcome.cases:
        rule = "described" if case.verdict is None else str(case.verdict)
        kind = _KINDS[rule]
        if case.stops:
            kind = "fail"
        # a level other than none is only for what failed
        result = {
            "ruleId": rule,
            "ruleIndex": names.index(rule),
            "kind": kind,
            "level": "error" if kind == "fail" else "none",
            "message": {"text": f"{case.name}: {' '.join(case.said) or rule}"},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": outcome.plan}}}],
            "partialFingerprints": {"audit/v1": f"{outcome.digest}:{case.name}"},
        }
        results.append(result)
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "results": results,
        "columnKind": "unicodeCodePoints",
    }
    return json.dumps({"version": SARIF_VERSION, "runs": [run]}, indent=2, ensure_ascii=True) + "\n"


# --- Markdown ------------------------------------------------------------------------------------

_SIGNS = {
    Verdict.KEPT: "✅ kept",
    Verdict.EXCEEDED: "❌ exceeded",
    Verdict.UNDETERMINED: "❔ undetermined",
    None: "no limit",
}


def summary(outcome: GateRun) -> str:
    """A short page in Markdown: the verdict, then every audit's with who and how much."""
    lines = [f"## {_md(outcome.title)}", "", f"**{_md(outcome.words)}**"]
    if outcome.cases:
        lines += ["", "| audit | verdict | what was found |", "|---|---|---|"]
    for case in outcome.cases:
        lines.append(f"| {_md(case.name)} | {_SIGNS[case.verdict]} | {_md(case.short)} |")
    if outcome.digest:
        lines += ["", f"Plan `{outcome.digest[:16]}`, equipoise {__version__}."]
    return "\n".join(lines).rstrip() + "\n"


def _md(text: str) -> str:
    """Names and levels come from tables: nothing in them may become a mark, a link or a tag."""
    plain = " ".join(text.split())
    for sign in "\\`*_[]<>|#~":
        plain = plain.replace(sign, f"&#{ord(sign)};")
    return plain.replace("://", "&#58;//").replace("@", "&#64;")
