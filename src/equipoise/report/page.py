"""What the page shows of each finding, in the order it shows it.

The report: a page filled from findings, with everything it needs inside.
"""

import base64
import functools
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from equipoise._version import __version__
from equipoise.errors import EquipoiseError
from equipoise.findings import Entry, Evidence, Finding, Verdict
from equipoise.findings.bounds import Bounds
from equipoise.findings.charts import MOST
from equipoise.findings.evidence import first_headlines, warnings_of
from equipoise.findings.flags import Flags
from equipoise.findings.joint_test import Joint
from equipoise.findings.words import NOTES, Note, be, clipped, level_text, plural, tidy
from equipoise.report.ask import Ask, Table, ask_of, tables_of, tidied
from equipoise.report.suppress import Kept, conclusion_of, sentences_of

# --- Charts of findings as data for the page, with words for those who do not see them ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart."""

    title: str
    """What it shows."""
    subtitle: str
    """What is guaranteed, or left out."""
    spec: dict[str, object] | None
    """The Vega-Lite chart, without the title, which the page sets in its own type."""
    drawn: str = ""
    """The chart as a piece of the page, where it needs no library."""


def chart_of(finding: Finding) -> Chart | None:
    """The chart of a finding; None if it has none."""
    drawn = finding.drawn()
    if drawn:
        return Chart(
            title=_capital(tidy(finding.question)),
            subtitle=_drawn_words(finding),
            spec=None,
            drawn=drawn,
        )
    try:
        spec: Any = tidied(finding.plot().to_dict())
    except (EquipoiseError, NotImplementedError):
        # a finding without anything to draw, or of a kind without charts, is still worth reading
        return None
    title = spec.pop("title", {})
    if isinstance(title, str):
        title = {"text": title}
    return Chart(
        title=_line(title.get("text", "")) or finding.question.capitalize(),
        subtitle=_line(title.get("subtitle", "")),
        spec=spec,
    )


def _drawn_words(finding: Finding) -> str:
    number = len(finding)
    if number <= MOST:
        return f"{plural(number, finding.noun)}, from the lowest to the highest."
    return (
        f"The {MOST} {finding.noun}s of {number:,} that say most: flagged ones, those beyond the "
        "limit, then those with the strongest evidence; the table has more."
    )


def _line(text: str | list[str]) -> str:
    return text if isinstance(text, str) else " ".join(text)


# --- What the page shows of each finding, in the order it shows it ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """A short word with a sign, so that nothing is said by colour alone."""

    sign: str
    text: str
    tone: str
    """Which colours it takes: alert, calm, unsure or quiet."""


CONCLUSIONS = {
    Verdict.EXCEEDED: Badge(sign="✕", text="Limit exceeded", tone="alert"),
    Verdict.KEPT: Badge(sign="✓", text="Limit kept", tone="calm"),
    Verdict.UNDETERMINED: Badge(sign="?", text="Undetermined", tone="unsure"),
    None: Badge(sign="–", text="No limit", tone="quiet"),
}
ASKED = {
    "confirmatory": Badge(sign="●", text="Confirmatory: fixed in the plan", tone="quiet"),
    "exploratory": Badge(sign="○", text="Exploratory: asked after looking", tone="quiet"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimPart:
    """One of the claims of a joint finding: its numbers and its questions."""

    id: str
    name: str
    tables: tuple[Table, ...]
    ask: Ask | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One finding on the page."""

    id: str
    """Anchor on the page."""
    name: str
    """The name under which it was asked for."""
    title: str
    """Its kind in plain words."""
    heading: str
    """The question."""
    conclusion: Badge
    asked: Badge
    sentences: tuple[str, ...]
    apart: str
    """Why a flag and a bound on the same group seem to disagree; empty if none do."""
    chart: Chart | None
    tables: tuple[Table, ...]
    ask: Ask | None
    parts: tuple[ClaimPart, ...]
    guarantee: str
    assumptions: tuple[str, ...]
    note: Note | None
    provenance: tuple[tuple[str, str], ...]


def section_of(
    number: int, entry: Entry, kept: Kept, least: int | None, beside: Sequence[Kept] = ()
) -> Section:
    """Everything the page shows of one finding, some of which depends on those beside it."""
    finding, note = kept.finding, NOTES.get(kept.finding.kind)
    return Section(
        id=f"finding-{number}",
        name=tidy(entry.name),
        title=note.title if note else finding.kind.replace("_", " ").capitalize(),
        heading=_capital(tidy(finding.question)) or tidy(entry.name),
        conclusion=CONCLUSIONS[kept.conclusion],
        asked=ASKED[entry.asked],
        sentences=_sentences(kept, least),
        apart=tidy(_apart(finding, [other.finding for other in beside])) if kept.told else "",
        chart=chart_of(finding) if kept.told else None,
        tables=tables_of(finding),
        ask=ask_of(finding),
        parts=_parts(f"finding-{number}", finding),
        guarantee=_capital(tidy(finding.guarantee)),
        assumptions=tuple(map(tidy, finding.assumptions)),
        note=note,
        provenance=_provenance(finding),
    )


def _apart(finding: Finding, others: Sequence[Finding]) -> str:
    """Why flags and bounds on the same claim differ, said where the bounds stand."""
    if not isinstance(finding, Bounds) or finding.tolerance is None:
        return ""
    flags = [f for f in others if isinstance(f, Flags) and f.claim == finding.claim]
    flagged = {row.group for found in flags for row in found.flagged}
    exceeded = {row.group for row in finding.rows if row.verdict is Verdict.EXCEEDED}
    only = [row.group for row in finding.rows if row.group in flagged - exceeded]
    if not only:
        return ""
    rate = level_text(flags[0].rate)
    return (
        f"{plural(len(only), 'group')} flagged above {be(len(only))} not shown here to exceed the "
        f"limit ({'; '.join(only[:3])}{'; …' if len(only) > 3 else ''}). That is no contradiction: "
        f"of the flags {rate} may be false, while these bounds promise that not one of "
        f"{plural(len(finding), 'group')} is wrong, and so must be wider."
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sentences(kept: Kept, least: int | None) -> tuple[str, ...]:
    return (*map(tidy, kept.finding.sentences()), *_suppression(kept, least))


def _suppression(kept: Kept, least: int | None) -> list[str]:
    if least is None or not kept.removed:
        return []
    return [
        f"{plural(kept.removed, 'group')} {be(kept.removed)} left out of this report, having "
        f"fewer than {least} rows or giving away one that has; nothing here speaks of them."
    ]


def _parts(anchor: str, finding: Finding) -> tuple[ClaimPart, ...]:
    if not isinstance(finding, Joint):
        return ()
    found = [finding.part(name) for name in finding.names]
    return tuple(
        ClaimPart(
            id=f"{anchor}-part-{i}",
            name=_capital(tidy(name)),
            tables=tables_of(part),
            ask=ask_of(part),
        )
        for i, (name, part) in enumerate(zip(finding.names, found, strict=True), start=1)
    )


def _provenance(finding: Finding) -> tuple[tuple[str, str], ...]:
    source = finding.provenance
    method = getattr(finding, "method", None)
    # without a fingerprint the page leaves small groups out, and with them what tells of them
    whole = bool(source.fingerprint)
    pairs = [
        ("Rows from", source.source),
        ("Rows looked at", f"{source.scanned:,}" if whole else ""),
        ("Rows on which the metric counts", f"{source.counted:,}" if source.counted else ""),
        ("Rows left out", left_out_words(source.excluded) if whole else "not told here"),
        ("Rows on which it does not count", f"{source.ineligible:,}" if whole else ""),
        ("Cells", f"{source.cells:,}" if whole else ""),
        ("Fingerprint of the cells", source.fingerprint),
        ("Seed", "none needed" if source.seed is None else str(source.seed)),
        ("Method", "" if method is None else _method_words(method)),
        ("Resampling", str(getattr(finding, "engine", ""))),
        ("equipoise", source.version),
    ]
    return tuple((name, tidy(text)) for name, text in pairs if text)


def left_out_words(excluded: Mapping[str, int]) -> str:
    """Rows left out, by reason."""
    return ", ".join(f"{rows:,} {reason}" for reason, rows in excluded.items()) or "none"


def _method_words(method: object) -> str:
    if not isinstance(method, dict):
        return str(method)
    options = [f"{name} {value}" for name, value in method.items() if name != "kind"]
    return ", ".join([str(method.get("kind", "")), *options])


# --- The page: templates filled, styles, scripts and data embedded, everything else forbidden ---

_SCRIPTS = ("page.js", "tables.js", "charts.js", "ask.js")


def render(
    evidence: Evidence, kept: Sequence[Kept], least: int | None, signer: str | None = None
) -> str:
    """The whole page as text."""
    sections = [
        section_of(number, entry, one, least, kept)
        for number, (entry, one) in enumerate(zip(evidence.entries, kept, strict=True), start=1)
    ]
    needed = any(section.chart and section.chart.spec for section in sections)
    scripts = [*([_bundle()] if needed else []), _own_scripts()]
    told = [one.finding for one in kept if one.told]
    conclusion = conclusion_of(evidence, kept)
    page = _template()(
        title=tidy(evidence.title),
        verdict=CONCLUSIONS[conclusion],
        tone=_TONES[conclusion],
        sentences=[tidy(sentence) for sentence in sentences_of(evidence, kept)],
        headlines=[tidy(said) for said in first_headlines(told, MOST_HEADLINES)],
        warnings=[tidy(said) for said in warnings_of(told)],
        model=_model(evidence),
        questions=_questions(evidence, kept, () if least is not None else evidence.notes),
        notes={section.note.kind: section.note for section in sections if section.note},
        glossary=GLOSSARY,
        facts=_facts(evidence, sum(one.removed for one in kept), least, signer),
        sections=sections,
        style=_static("report.css"),
        scripts=scripts,
        policy=_policy(scripts),
        version=__version__,
    )
    # no table may smuggle in what UTF-8 cannot hold
    return page.encode("utf-8", "replace").decode("utf-8")


def _model(evidence: Evidence) -> list[tuple[str, str]]:
    """What the plan says about the model."""
    said = (evidence.plan or {}).get("model") or {}
    names = {"name": "Model", "version": "Version", "owner": "Owner", "purpose": "Purpose"}
    return [(names[key], tidy(str(value))) for key, value in said.items() if key in names]


def _questions(
    evidence: Evidence, kept: Sequence[Kept], notes: Sequence[str]
) -> list[tuple[str, str]]:
    """What the columns mean, everyone's own rates, who is in the table, and what is missing."""
    trail = (evidence.plan or {}).get("trail") or {}
    facts = [(said, str(trail[role])) for role, said in _ROLE_WORDS.items() if trail.get(role)]
    facts += [
        (f"{when.capitalize()} (the model's column)", str(column))
        for when, column in ((evidence.plan or {}).get("models") or {}).items()
        if column is not None
    ]
    if "positive" in trail:
        positive = trail["positive"]
        pairs = positive.items() if isinstance(positive, Mapping) else [("", positive)]
        facts.append(("Counts as positive", ", ".join(f"{r} {v}".strip() for r, v in pairs)))
    facts += _everyone(kept)
    facts += _people(kept)
    facts += [("Read like this", " ".join(notes))] if notes else []
    return [(name, tidy(text)) for name, text in facts]


def _everyone(kept: Sequence[Kept]) -> list[tuple[str, str]]:
    """The value of each metric that groups are compared with, where it is everyone's."""
    found: dict[str, str] = {}
    for one in kept:
        finding = one.finding
        if isinstance(finding, Bounds | Flags) and finding.against == "everyone":
            targets = {row.target for row in finding.rows if row.target is not None}
            if len(targets) == 1:
                found[finding.metric] = finding.value_text(targets.pop())
    said = "; ".join(f"{metric} {value}" for metric, value in found.items())
    return [("Everyone", said)] if said else []


def _people(kept: Sequence[Kept]) -> list[tuple[str, str]]:
    """Rows of each level of an attribute, from the finding whose metric counts on most rows."""
    listed = [one.finding for one in kept if isinstance(one.finding, Bounds | Flags)]
    if not listed:
        return []
    widest = max(listed, key=lambda finding: finding.provenance.counted)
    levels: dict[str, list[str]] = {}
    for row in widest.rows:
        if len(row.where) == 1:
            (name,) = row.where
            levels.setdefault(name, []).append(f"{row.group} ({row.n:,})")
    # an error rate counts on some rows only, and nobody should take these for all people
    some = f", for the {widest.metric}" if widest.provenance.ineligible else ""
    return [(f"Rows by {name}{some}", _first(texts)) for name, texts in levels.items()]


def _first(texts: Sequence[str]) -> str:
    more = len(texts) - MOST_LEVELS
    return ", ".join(texts[:MOST_LEVELS]) + (f" and {more:,} more" if more > 0 else "")


#: Claims that the first lines of the page are about.
MOST_HEADLINES = 4
#: Levels of an attribute whose rows are listed.
MOST_LEVELS = 30
_ROLE_WORDS = {
    "label": "Label (what happened)",
    "prediction": "Prediction (what was decided)",
    "score": "Score (the model's number)",
    "weight": "Weight",
    "count": "Count",
    "cluster": "Cluster",
    "pair": "Pair",
    "proxy_label": "Cheap label",
    "observed": "Chance that the label was observed",
}
GLOSSARY = (
    (
        "Disparity",
        "A group's rate less the rate it is compared with, in percentage points; as a "
        "ratio, the one divided by the other.",
    ),
    (
        "Bounds",
        "A range in which the disparity lies, with the confidence stated. Where it says "
        "\u201cat once\u201d, all ranges of the table are right together.",
    ),
    (
        "Flag",
        "A group whose disparity is larger than tolerated, by a test. Of many flags a stated "
        "share may be false on average.",
    ),
    (
        "Limit kept, exceeded, undetermined",
        "The data show that the disparity is within what is "
        "tolerated, show that it is not, or show neither. Undetermined is not fair.",
    ),
    (
        "Adjusted p",
        "The chance of such an outcome if there were no disparity beyond the limit, "
        "raised for the number of groups looked at.",
    ),
    (
        "Confirmatory, exploratory",
        "Asked in a plan before anyone looked, or asked afterwards. Only "
        "the first kind keeps its promise when one looks for something to report.",
    ),
    ("n", "Rows of the group on which the metric counts."),
)

_TONES = {
    Verdict.EXCEEDED: "alert",
    Verdict.KEPT: "calm",
    Verdict.UNDETERMINED: "unsure",
    None: "unsure",
}


def _facts(
    evidence: Evidence, removed: int, least: int | None, signer: str | None
) -> list[tuple[str, str]]:
    """What was audited, as names and values."""
    sources = [entry.finding.provenance for entry in evidence.entries]
    several = dict.fromkeys(
        f"{source.source}: {source.scanned:,} rows looked at; "
        f"left out: {left_out_words(source.excluded)}"
        if least is None
        else source.source
        for source in sources
    )
    kept_back = "left out with the small groups: guesses could be tried against it"
    facts = [
        ("Rows", "; ".join(several) or "none"),
        ("Plan", evidence.plan_hash or "none: nothing was fixed beforehand"),
        ("Data fingerprint", evidence.fingerprint if least is None else kept_back),
        (
            "Seal",
            f"{evidence.seal}, a digest without a key: it shows slips, not forgeries"
            if least is None
            else kept_back,
        ),
        ("Signed", signer or "not signed, as far as this page knows"),
        ("Made", evidence.created),
        ("With", ", ".join(f"{name} {number}" for name, number in evidence.versions.items())),
    ]
    if least is not None:
        facts.append(
            (
                "Suppression",
                f"groups of fewer than {least} rows, and those that would give them away to within "
                f"{least} rows, are left out: {removed:,} over all findings",
            )
        )
    return [(name, tidy(text)) for name, text in facts]


@functools.cache
def _template() -> Callable[..., str]:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    made = Environment(
        loader=FunctionLoader(lambda name: _read("templates", name)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(json=embedded, clipped=clipped)
    return made.get_template("report.html").render


def embedded(data: object) -> str:
    """Data as JSON that stands safely inside a script element.

    >>> print(embedded(["<b>"]).replace(chr(92), "|"))
    ["|u003cb|u003e"]
    """
    from markupsafe import Markup

    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def _policy(scripts: Sequence[str]) -> str:
    """Only these scripts may run, and nothing may be fetched from anywhere."""
    # Scripts are allowed by their digest, so that no text of a table can ever become one. Styles
    # are not: the charts write them into their elements, and a style alone can fetch nothing here.
    digests = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {digests}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@functools.cache
def _bundle() -> str:
    """The chart libraries, from the wheel that has them; two seconds the first time."""
    import vl_convert

    made: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # the page's own copy must not end the element that holds it
    return made.replace("</script", "<\\/script")


@functools.cache
def _own_scripts() -> str:
    return "\n".join(_static(name) for name in _SCRIPTS)


@functools.cache
def _static(name: str) -> str:
    return _read("static", name)


def _read(folder: str, name: str) -> str:
    return (files("equipoise.report") / folder / name).read_text(encoding="utf-8")
