"""From a tested statistic to a finding: verdict, subgroup, charts."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.audits._calibration.named_tests import WORDS, Options
from equipoise.audits._calibration.residual_models import Fitted
from equipoise.audits._calibration.rows import AuditRows
from equipoise.audits._calibration.subgroup import curve_of, profile_of, rules_of
from equipoise.audits._fields import finite, independent
from equipoise.findings.calibration import (
    CalibratedGroup,
    Calibration,
    ControlPath,
    CurvePoint,
    ImportantColumn,
    Rule,
)
from equipoise.findings.verdict import Verdict
from equipoise.methods import cusum
from equipoise.methods.arrays import BoolArray, IntArray
from equipoise.methods.cusum import Null, Tested

#: Points of a control chart's line.
CHART_POINTS = 150
SUBGROUP, REST = "the detected subgroup", "everyone else"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """What testing gave."""

    found: Tested
    """The statistic, its p-value and the best subgroup, by position among the tested rows."""
    statistic: cusum.Cusum | cusum.Binned
    """The statistic that says most."""
    scale: cusum.Scale
    """How its sums are made comparable."""
    null: Null
    """Residuals of the tested rows."""
    tested: BoolArray
    """Which rows were tested."""
    fitted: Fitted | None
    """The residual models, if the method uses any."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the residual models."""
        return () if self.fitted is None else self.fitted.names


def finding_of(
    rows: AuditRows, options: Options, outcome: Outcome, drops: dict[str, float]
) -> Calibration:
    """Everything the audit has to say."""
    found, where = outcome.found, np.flatnonzero(outcome.tested)
    members = np.zeros(0, dtype=np.int64) if found.best is None else where[found.best.members]
    signs = _signs(outcome, rows)
    return Calibration(
        claim=_claim(rows, options),
        question=_question(rows, options),
        guarantee=_guarantee(rows, options),
        assumptions=_assumptions(rows, options),
        provenance=rows.provenance,
        rows=tuple(_groups(rows, where, members, signs)),
        tolerance=options.tolerance,
        side=str(options.side),
        level=options.level,
        verdict=Verdict.SHOWN_NOT if found.p <= 1 - options.level + 1e-12 else Verdict.UNDETERMINED,
        p=found.p,
        statistic=found.statistic,
        critical=finite(found.critical(1 - options.level)),
        reason=_reason(outcome),
        method=options.method,
        method_words=WORDS[options.method],
        scale=str(outcome.scale),
        min_prevalence=options.test.prevalence(options.least, outcome.scale),
        folds=_folds(options),
        split=options.split if options.test.adaptive else None,
        draws=options.draws,
        tested=where.size,
        share=rows.binary,
        models=outcome.names,
        model=None if found.best is None else _model_name(outcome, found.best.model),
        rules=tuple(_rules(rows, members, signs)),
        profile=tuple(profile_of(rows, members)) if members.size else (),
        paths=tuple(_paths(outcome)),
        importance=tuple(
            ImportantColumn(column=name, drop=drop)
            for name, drop in sorted(drops.items(), key=lambda item: -item[1])
        ),
        curves=tuple(_curves(rows, where, members)),
    )


def _signs(outcome: Outcome, rows: AuditRows) -> IntArray:
    """+1 where the detected subgroup is thought under-estimated, −1 where over-estimated."""
    signs = np.zeros(len(rows), dtype=np.int64)
    best = outcome.found.best
    if best is not None and isinstance(outcome.statistic, cusum.Cusum):
        weights = outcome.statistic.weights[best.model, best.members]
        signs[np.flatnonzero(outcome.tested)[best.members]] = np.sign(weights)
    return signs


def _groups(
    rows: AuditRows, where: IntArray, members: IntArray, signs: IntArray
) -> list[CalibratedGroup]:
    rest = np.setdiff1d(where, members)
    groups = [(SUBGROUP, members), (REST, rest), ("everyone tested", where)]
    both = (signs > 0).any() and (signs < 0).any()
    if both:
        groups[1:1] = [
            ("its members thought under-estimated", np.flatnonzero(signs > 0)),
            ("its members thought over-estimated", np.flatnonzero(signs < 0)),
        ]
    return [_group(rows, name, chosen, where.size) for name, chosen in groups if chosen.size]


def _group(rows: AuditRows, name: str, chosen: IntArray, tested: int) -> CalibratedGroup:
    value, target = float(rows.outcome[chosen].mean()), float(rows.score[chosen].mean())
    return CalibratedGroup(
        group=name,
        where={},
        n=chosen.size,
        share=chosen.size / tested,
        value=value,
        target=target,
        disparity=value - target,
    )


def _rules(rows: AuditRows, members: IntArray, signs: IntArray) -> list[Rule]:
    if not members.size:
        return []
    return [*rules_of(rows, signs > 0, "under"), *rules_of(rows, signs < 0, "over")]


def _curves(rows: AuditRows, where: IntArray, members: IntArray) -> list[CurvePoint]:
    if not members.size:
        return curve_of(rows.score[where], rows.outcome[where], "everyone tested")
    rest = np.setdiff1d(where, members)
    return [
        *curve_of(rows.score[members], rows.outcome[members], SUBGROUP),
        *curve_of(rows.score[rest], rows.outcome[rest], REST),
    ]


def _paths(outcome: Outcome) -> list[ControlPath]:
    """The control chart: for each model, the sum at thresholds from the worst rows on."""
    if not isinstance(outcome.statistic, cusum.Cusum):
        return []
    lines = []
    for path in outcome.statistic.paths:
        sums = path.observed(outcome.null)
        # the peak is always kept, whatever else is thinned out
        steps = np.linspace(0, sums.size - 1, min(sums.size, CHART_POINTS)).round().astype(int)
        kept = np.unique([*steps, int(np.argmax(sums))])
        lines.append(
            ControlPath(
                model=_model_name(outcome, path.model),
                share=tuple(((path.ends[kept] + 1) / len(outcome.null)).tolist()),
                value=tuple(sums[kept].tolist()),
            )
        )
    return lines


def _model_name(outcome: Outcome, model: int) -> str:
    return outcome.names[model] if outcome.names else f"recalibration axis {model + 1}"


def _reason(outcome: Outcome) -> str:
    statistic = outcome.statistic
    if isinstance(statistic, cusum.Cusum) and not statistic.paths:
        return "no residual model predicts a violation in enough rows, so p is 1"
    if outcome.found.statistic <= 0:
        return "wherever a violation was predicted, outcomes say the opposite, so p is 1"
    return f"{outcome.found.drawn.size:,} draws at the edge of the tolerance"


def _folds(options: Options) -> int | None:
    return options.folds if options.test.adaptive and options.split is None else None


def _claim(rows: AuditRows, options: Options) -> dict[str, Any]:
    return {
        "kind": "calibration",
        "features": list(rows.columns[1:]),
        "tolerance": options.tolerance,
        "side": str(options.side),
        "method": options.method,
        "folds": _folds(options),
        "split": options.split,
        "min_prevalence": options.least,
    }


def _question(rows: AuditRows, options: Options) -> str:
    way = {"both": "differs from", "under": "exceeds", "over": "falls short of"}[str(options.side)]
    what = "true risk" if rows.binary else "expected outcome"
    return f"whether in some subgroup the {what} {way} the score by more than {options.tolerance:g}"


def _guarantee(rows: AuditRows, options: Options) -> str:
    error = f"{100 * (1 - options.level):.10g} %"
    asymptotic = "for large samples"
    if rows.binary and (options.split is not None or not options.test.adaptive):
        asymptotic = "in samples of any size"
    return (
        f"If nobody's expected outcome is further from the score than the tolerance, a violation "
        f"is declared with a chance of {error} at most, {asymptotic}. A violation that is not "
        "declared may still be there"
    )


def _assumptions(rows: AuditRows, options: Options) -> tuple[str, ...]:
    symmetric = () if rows.binary else ("residuals are symmetric, or rows are many",)
    stable = ("residual models fitted on different folds agree as rows grow in number",)
    return (
        independent(),
        "the model was not fitted on these rows",
        *(stable if _folds(options) is not None else ()),
        *symmetric,
    )
