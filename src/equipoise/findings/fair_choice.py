"""What `select_fair` says: which model errs least among those that treat people alike."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from equipoise.findings.charts.transport import trade_off
from equipoise.findings.finding import Finding
from equipoise.findings.rows import AboutEveryone
from equipoise.findings.verdict import Verdict
from equipoise.findings.words import amount, level_text, plural, unsigned

Bound = Literal["lower", "upper"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedModel(AboutEveryone):
    """One model: its error, its audit value, and whether it may be chosen."""

    model: str
    """Its name."""
    error: float
    """Its average loss."""
    value: float
    """Its audit value: how much higher the loss could be on comparable people."""
    lower: float | None
    """One-sided lower confidence bound for the audit value; None if there is no answer."""
    upper: float | None
    """One-sided upper confidence bound."""
    verdict: Verdict
    """Whether it is shown that the audit value is at most the tolerance."""
    candidate: bool
    """Whether the model meets the constraint."""
    chosen: bool
    """Whether it is the one chosen."""
    method: str
    """How the sampling error was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FairChoice(Finding):
    """The model chosen under a constraint on the audit value, and all it was chosen from."""

    kind: ClassVar[str] = "fair choice"
    row_type: ClassVar[type] = AuditedModel
    columns: ClassVar[tuple[str, ...]] = (
        "model",
        "error",
        "value",
        "lower",
        "upper",
        "verdict",
        "candidate",
        "chosen",
    )

    chosen: str | None
    """The model chosen; None if no model meets the constraint."""
    closest: str
    """The model with the smallest bound, of use when there is no choice."""
    tolerance: float
    """The audit value that is tolerated."""
    bound: Bound
    """Which bound must not exceed it."""
    level: float
    """Confidence level: of each bound for ``lower``, of all of them together for ``upper``."""
    loss: str
    """The loss in words."""
    share: bool
    """Whether the loss is 0 or 1, so that averages read as percentages."""
    vary: tuple[str, ...]
    """The features in which comparable people may differ."""
    features: tuple[str, ...]
    """All features, those included."""
    compared: str
    """Who is compared with whom, in words."""

    def row(self, model: str) -> AuditedModel | None:
        """The row of a model."""
        return next((row for row in self.rows if row.model == model), None)

    def sentences(self) -> tuple[str, ...]:
        """The choice, what it costs, and what the constraint means."""
        source = self.provenance
        return (
            self._choice_sentence(),
            *self._cost_sentence(),
            self._constraint_sentence(),
            "Models were chosen and judged on the same rows, which flatters the error of the one "
            "chosen; judge it again on rows of its own.",
            source.based_on(),
            source.left_out(),
        )

    def plot(self) -> Any:
        """Error, audit value and its bounds for each model in the order given."""
        series = (
            (self.loss, "error"),
            ("audit value", "value"),
            ("lower bound", "lower"),
            ("upper bound", "upper"),
        )
        records = [
            {
                "model": row.model,
                "series": name,
                "value": getattr(row, field),
                "chosen": "chosen" if row.chosen else "",
            }
            for name, field in series
            for row in self.rows
        ]
        return trade_off(
            records,
            self.tolerance,
            title=f"{self.loss.capitalize()} and audit value of {plural(len(self), 'model')}",
            subtitle=f"dashed across: the tolerance; large: chosen ({self.chosen or 'none'})",
        )

    def _choice_sentence(self) -> str:
        row = None if self.chosen is None else self.row(self.chosen)
        limit = unsigned(self.tolerance, self.share)
        if row is None:
            near = f"{self.closest} comes closest"
            return f"None of {plural(len(self), 'model')} meets the tolerance of {limit}; {near}."
        passed = sum(r.candidate for r in self.rows)
        return (
            f"{row.model} is chosen: of {plural(passed, 'model')} that {_meet(passed)} the "
            f"tolerance of {limit} it has the lowest {self.loss}, {amount(row.error, self.share)}; "
            f"comparing {self.compared} it could be {unsigned(row.value, self.share)} higher."
        )

    def _cost_sentence(self) -> list[str]:
        # Equal errors are settled as in the choice itself, by the smaller audit value.
        best = min(self.rows, key=lambda row: (row.error, row.value))
        row = None if self.chosen is None else self.row(self.chosen)
        if row is None or best.error == row.error:
            return []
        return [
            f"Without the constraint {best.model} would be chosen, with "
            f"{amount(best.error, self.share)} and an audit value of "
            f"{unsigned(best.value, self.share)}."
        ]

    def _constraint_sentence(self) -> str:
        if self.bound == "lower":
            return (
                "A model meets the tolerance if it is not shown to exceed it "
                f"({level_text(self.level)} for each model on its own), which does not show that "
                "it keeps to it."
            )
        return (
            "A model meets the tolerance if it is shown to keep to it, with "
            f"{level_text(self.level)} confidence for all models together."
        )


def _meet(number: int) -> str:
    return "meets" if number == 1 else "meet"
