"""The gate: what evidence means for a release, as an exit code."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from equipoise.findings.evidence import Evidence
from equipoise.findings.verdict import Verdict


class Exit(IntEnum):
    """Exit codes of every command."""

    SHOWN = 0
    """All limits are shown to be kept, or the command did what it should."""
    VIOLATION = 1
    """A violation is shown."""
    UNDETERMINED = 2
    """Neither is shown."""
    ERROR = 3
    """The question could not be asked, or the answer not be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Whether a release may pass, and why."""

    code: Exit
    """Exit code."""
    words: str
    """The reason in one sentence."""


def gate(evidence: Evidence, undetermined: Literal["pass", "fail"] | None = None) -> Gate:
    """Judge evidence; ``undetermined`` says what absence of evidence means for the release.

    >>> import equipoise as eq
    >>> claim = eq.gap("false_positive_rate", across="race")
    >>> bounds = eq.certify(eq.datasets.compas(), claim, tolerance=0.05, rng=7)
    >>> gate(eq.Evidence.of(bounds)).code
    <Exit.VIOLATION: 1>
    """
    code = {
        Verdict.SHOWN: Exit.SHOWN,
        Verdict.SHOWN_NOT: Exit.VIOLATION,
        Verdict.UNDETERMINED: Exit.UNDETERMINED,
    }[evidence.verdict]
    words = evidence.sentences()[0]
    if code is not Exit.UNDETERMINED or undetermined is None:
        return Gate(code=code, words=words)
    if undetermined == "pass":
        return Gate(code=Exit.SHOWN, words=f"{words} Let through, since undetermined may pass.")
    return Gate(code=Exit.VIOLATION, words=f"{words} Stopped, since undetermined must fail.")
