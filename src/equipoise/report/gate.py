"""What a build shows of a gate: JUnit XML, SARIF, and a summary in Markdown."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from equipoise._version import __version__
from equipoise.findings import Evidence, Verdict
from equipoise.findings.words import tidy
from equipoise.report.suppress import Kept

SARIF_VERSION = "2.1.0"
SENTENCES = 4
"""Sentences of a finding that a build shows; the page has them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
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
class Outcome:
    """A gate that was run, or that could not be."""

    title: str
    words: str
    """Why the build passes or does not, in one sentence."""
    code: int
    """The exit code."""
    plan: str
    """The plan's file, as a path within the project."""
    digest: str = ""
    """The plan's hash."""
    cases: tuple[Case, ...] = ()
    """Empty if the question could not be asked."""


def outcome_of(
    evidence: Evidence,
    words: str,
    code: int,
    plan: str,
    *,
    undetermined_fails: bool = False,
    told: Sequence[Kept] | None = None,
) -> Outcome:
    """What a build shows of evidence; of groups that are hidden, only what may be ``told``."""
    found = [each.finding for each in (evidence.entries if told is None else told)]
    shown = [True] * len(found) if told is None else [kept.told for kept in told]
    return Outcome(
        title=evidence.title,
        words=words,
        code=code,
        plan=plan,
        digest=evidence.plan_hash or "",
        cases=tuple(
            Case(
                name=entry.name,
                verdict=entry.finding.conclusion,
                stops=evidence.stops(
                    entry.finding.conclusion, undetermined_fails=undetermined_fails
                ),
                said=tuple(tidy(said) for said in finding.sentences()[:SENTENCES]) if tell else (),
                short=tidy(finding.headline() or finding.sentences()[0]) if tell else "",
            )
            for entry, finding, tell in zip(evidence.entries, found, shown, strict=True)
        ),
    )


# --- JUnit ---------------------------------------------------------------------------------------


def junit(outcome: Outcome) -> str:
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


def _named(outcome: Outcome, name: str) -> dict[str, str]:
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


def sarif(outcome: Outcome) -> str:
    """A log of results, one for each audit, at the plan's file."""
    names = list(_RULES)
    invocation: dict[str, Any] = {"executionSuccessful": bool(outcome.cases)}
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


def summary(outcome: Outcome) -> str:
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
