"""What the page shows of each finding, in the order it shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.errors import EquipoiseError
from equipoise.findings import Entry, Finding, Verdict
from equipoise.findings.bounds import Bounds
from equipoise.findings.charts.ranked import MOST
from equipoise.findings.flags import Flags
from equipoise.findings.joint_test import Joint
from equipoise.findings.words import NOTES, Note, be, level_text, plural, tidy
from equipoise.report.ask import Ask, ask_of
from equipoise.report.suppress import Kept
from equipoise.report.tables import Table, tables_of, tidied

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
class Part:
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
    parts: tuple[Part, ...]
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
        f"limit ({', '.join(only[:3])}{' …' if len(only) > 3 else ''}). That is no contradiction: "
        f"of the flags {rate} may be false, while these bounds promise that not one of "
        f"{plural(len(finding), 'group')} is wrong, and so must be wider."
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sentences(kept: Kept, least: int | None) -> tuple[str, ...]:
    # Sentences that name what was taken out would give it away.
    said = kept.finding.sentences() if kept.told else ()
    return (*map(tidy, said), *_suppression(kept, least))


def _suppression(kept: Kept, least: int | None) -> list[str]:
    if least is None or not kept.removed:
        return []
    return [
        f"{plural(kept.removed, 'group')} {be(kept.removed)} left out of this report, having "
        f"fewer than {least} rows or giving away one that has; the conclusion and the guarantee "
        "still cover them."
    ]


def _parts(anchor: str, finding: Finding) -> tuple[Part, ...]:
    if not isinstance(finding, Joint):
        return ()
    found = [finding.part(name) for name in finding.names]
    return tuple(
        Part(
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
