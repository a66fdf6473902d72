"""What an audit of several claims says: the worst of them for each group."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from equipoise._validate import known_name
from equipoise.findings.finding import Finding, from_dict
from equipoise.findings.lookup import find_row
from equipoise.findings.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class JointGroup:
    """One group, and the claim on which it does worst."""

    group: str
    """The group in words."""
    where: Mapping[str, Any]
    """The group as data: attribute → value, or → ends of a range."""
    metric: str
    """The metric on which the group does worst."""
    n: int
    """Rows of the group on which that metric counts."""
    value: float | None
    """The group's value of that metric."""
    disparity: float | None
    """Its disparity."""
    verdict: str
    """What is shown of the group: its worst verdict, or whether it is flagged."""
    note: str = ""
    """Why a number is missing or weak."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint(Finding):
    """Several claims audited as one: the guarantee covers all of them together."""

    kind: ClassVar[str] = "joint"
    row_type: ClassVar[type] = JointGroup
    columns: ClassVar[tuple[str, ...]] = (
        "group",
        "metric",
        "n",
        "value",
        "disparity",
        "verdict",
        "note",
    )

    name: str
    """What the claims are together, such as equalized odds."""
    parts: Mapping[str, Any]
    """The finding of each claim in plain form, by metric."""

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics, one for each claim."""
        # The mapping has a kind among its keys, which keeps its findings in plain form.
        return tuple(name for name in self.parts if name != "kind")

    def part(self, metric: str) -> Finding:
        """The finding of one claim, with all its numbers."""
        return from_dict(self.parts[known_name("Part", metric, self.names)])

    @property
    def conclusion(self) -> Verdict | None:
        """The worst conclusion of the parts; shown only if every part is."""
        said = [self.part(name).conclusion for name in self.names]
        if Verdict.SHOWN_NOT in said:
            return Verdict.SHOWN_NOT
        if all(conclusion is None for conclusion in said):
            return None
        every = all(conclusion is Verdict.SHOWN for conclusion in said)
        return Verdict.SHOWN if every else Verdict.UNDETERMINED

    def ask(self, group: Mapping[str, Any] | str | None = None, /, **where: Any) -> JointGroup:
        """The worst of one group, named by its attributes, its range or its label."""
        row: JointGroup = find_row(self.rows, group, where)
        return row

    def plot(self) -> Any:
        """The charts of all parts, one below the other."""
        import altair as alt

        specs = [self.part(name).plot().to_dict() for name in self.names]
        # Only the whole may say how it is configured and hold the data of its parts.
        whole = {key: specs[0][key] for key in ("$schema", "config")}
        whole["datasets"] = {k: v for spec in specs for k, v in spec["datasets"].items()}
        parts = [{key: v for key, v in spec.items() if key not in whole} for spec in specs]
        return alt.VConcatChart.from_dict({**whole, "vconcat": parts})

    def sentences(self) -> tuple[str, ...]:
        """The joint guarantee, then what each claim shows."""
        said = [f"{self.name.capitalize()}. {self.guarantee}."]
        for name in self.names:
            said += [f"{name.capitalize()}: {sentence}" for sentence in self._of(name)]
        return tuple(said)

    def _of(self, name: str) -> tuple[str, ...]:
        part = self.part(name)
        # The part's own guarantee is at the stricter level that makes the joint one hold.
        return tuple(s for s in part.sentences() if not s.startswith(part.guarantee))
