"""The report: a page filled from findings, with everything it needs inside."""

import base64
import functools
import hashlib
import json
from collections.abc import Callable, Sequence
from importlib.resources import files

from equipoise._version import __version__
from equipoise.findings import Evidence, Verdict
from equipoise.report.suppress import Kept
from equipoise.report.tables import clipped, tidy
from equipoise.report.view import CONCLUSIONS, left_out_words, section_of

# --- The page: templates filled, styles, scripts and data embedded, everything else forbidden ---

_SCRIPTS = ("page.js", "tables.js", "charts.js", "ask.js")


def render(
    evidence: Evidence, kept: Sequence[Kept], least: int | None, signer: str | None = None
) -> str:
    """The whole page as text."""
    sections = [
        section_of(number, entry, one, least)
        for number, (entry, one) in enumerate(zip(evidence.entries, kept, strict=True), start=1)
    ]
    scripts = [*([_bundle()] if any(s.chart for s in sections) else []), _own_scripts()]
    page = _template()(
        title=tidy(evidence.title),
        verdict=CONCLUSIONS[evidence.verdict],
        tone=_TONES[evidence.verdict],
        sentences=[tidy(sentence) for sentence in evidence.sentences()],
        facts=_facts(evidence, sum(one.removed for one in kept), least, signer),
        sections=sections,
        style=_static("report.css"),
        scripts=scripts,
        policy=_policy(scripts),
        version=__version__,
    )
    # no table may smuggle in what UTF-8 cannot hold
    return page.encode("utf-8", "replace").decode("utf-8")


_TONES = {Verdict.EXCEEDED: "alert", Verdict.KEPT: "calm", Verdict.UNDETERMINED: "unsure"}


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
