"""Charts of findings as data for the page, with words for those who do not see them."""

from dataclasses import dataclass
from typing import Any

from equipoise.errors import EquipoiseError
from equipoise.findings import Finding
from equipoise.report.text import tidied


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart."""

    title: str
    """What it shows."""
    subtitle: str
    """What is guaranteed, or left out."""
    spec: dict[str, Any]
    """The Vega-Lite chart, without the title, which the page sets in its own type."""


def chart_of(finding: Finding) -> Chart | None:
    """The chart of a finding; None if it has none."""
    try:
        spec = tidied(finding.plot().to_dict())
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


def _line(text: str | list[str]) -> str:
    return text if isinstance(text, str) else " ".join(text)
