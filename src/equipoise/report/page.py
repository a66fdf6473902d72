"""The report: a page filled from findings, with everything it needs inside."""

import base64
import functools
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files

from equipoise._version import __version__
from equipoise.findings import Evidence, Verdict
from equipoise.findings.bounds import Bounds
from equipoise.findings.evidence import headlines, warnings_of
from equipoise.findings.flags import Flags
from equipoise.findings.words import clipped, tidy
from equipoise.report.suppress import Kept
from equipoise.report.view import CONCLUSIONS, left_out_words, section_of

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
    page = _template()(
        title=tidy(evidence.title),
        verdict=CONCLUSIONS[evidence.conclusion],
        tone=_TONES[evidence.conclusion],
        sentences=[tidy(sentence) for sentence in evidence.sentences()],
        headlines=[tidy(said) for said in headlines(told)][:MOST_HEADLINES],
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
