"""One self-contained HTML file: verdict, findings, charts, tables, and questions asked in the page.

Nothing heavy is imported here: findings, templates and charts are loaded when a report is made.
"""

from __future__ import annotations

import dataclasses
import html
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise._files import write_atomically
from equipoise._validate import known_keywords, short, whole
from equipoise.errors import EquipoiseError, OptionError

if TYPE_CHECKING:
    from equipoise.findings import Evidence, Finding
    from equipoise.report.suppress import Kept

__all__ = ["Report", "report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A report as one self-contained HTML page.

    >>> import equipoise as eq
    >>> found = eq.describe(eq.datasets.compas(), eq.gap("accuracy", across="sex"))
    >>> eq.report(found, title="Accuracy by sex").title
    'Accuracy by sex'
    """

    title: str
    """What the page is called."""
    html: str = field(repr=False)
    """The whole page: text, tables, charts and the scripts they need."""
    suppressed: int
    """Groups left out of the page because they are small, or would give small ones away."""
    published: str | None = field(default=None, repr=False)
    """With small groups left out: the data of the page as JSON, to be handed out beside it."""
    told: tuple[Kept, ...] = field(default=(), repr=False)
    """What the page tells of each finding."""

    def save(self, path: str | Path) -> Path:
        """Write the page to a file: all of it or, if anything fails, nothing."""
        return write_atomically(path, self.html)

    def _repr_html_(self) -> str:
        # a frame of its own keeps the page's styles and scripts out of the notebook
        return (
            f'<iframe title="{html.escape(self.title)}" width="100%" height="720" '
            f'srcdoc="{html.escape(self.html)}"></iframe>'
        )


@known_keywords
def report(
    *findings: Finding | Evidence,
    title: str | None = None,
    suppress: int | None = None,
    signer: str | None = None,
) -> Report:
    """Findings, or the evidence of an audit, as one HTML file that needs no network.

    Parameters
    ----------
    findings
        Findings in the order to be read, or a single `Evidence`.
    title
        What was audited, in words; the title of the evidence if not given.
    suppress
        Leave out groups of fewer rows than this, and as many others as would give them away.
    signer
        Who signed the evidence, in words to be quoted on the page.

    Examples
    --------
    >>> import equipoise as eq
    >>> found = eq.flag(eq.datasets.compas(), eq.gap("false_positive_rate", across="race"))
    >>> page = eq.report(found, title="COMPAS", suppress=10)
    >>> page.title, page.suppressed, "Native American" in page.html
    ('COMPAS', 2, False)
    """
    # templates and charts come in when a page is made
    from equipoise.findings.evidence import SENSELESS
    from equipoise.report.page import render
    from equipoise.report.suppress import published, suppressed

    evidence = _evidence(findings, title)
    if suppress is not None:
        whole("suppress", suppress, least=2)
    try:
        kept = suppressed([entry.finding for entry in evidence.entries], suppress)
        page = render(evidence, kept, suppress, signer)
    except EquipoiseError:
        raise
    except SENSELESS as error:
        if not evidence.stated:
            raise
        # read from a file, which may say anything
        raise EquipoiseError(
            "This evidence states something of which no page can be made "
            f"({type(error).__name__}: {short(str(error))}): it was not written by equipoise, or "
            "by another version."
        ) from error
    return Report(
        title=evidence.title,
        html=page,
        suppressed=sum(one.removed for one in kept),
        published=None if suppress is None else published(evidence, kept, suppress),
        told=tuple(kept),
    )


def _evidence(findings: tuple[Finding | Evidence, ...], title: str | None) -> Evidence:
    """The evidence handed in, or one made of the findings."""
    from equipoise.findings import Evidence, Finding

    if len(findings) == 1 and isinstance(findings[0], Evidence):
        given = findings[0]
        return given if title is None else dataclasses.replace(given, title=title)
    single = [found for found in findings if isinstance(found, Finding)]
    if not findings or len(single) < len(findings):
        raise OptionError(
            "report takes findings, such as flag(…) returns, or one Evidence; "
            f"got {', '.join(type(found).__name__ for found in findings) or 'nothing'}."
        )
    return Evidence.of(*single, title="Audit" if title is None else title)
