"""From a tested statistic to a finding: verdict, subgroup, charts."""

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.audits._calibration.named_tests import (
    COMPONENTS,
    LEARNT_SHARE,
    WORDS,
    AuditRows,
    Options,
    null_of,
    sets_in_words,
)
from equipoise.audits._calibration.residual_models import Fitted
from equipoise.audits._common import finite, independent
from equipoise.cells.groups import leaf_rules
from equipoise.findings.calibration import (
    CalibratedGroup,
    Calibration,
    ComponentTest,
    ControlPath,
    CurvePoint,
    ImportantColumn,
    ProfileLine,
    SubgroupRule,
)
from equipoise.findings.words import Verdict
from equipoise.methods import cusum
from equipoise.methods.cusum import Null, Piece, Tested
from equipoise.methods.cusum.testing import Statistic
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray

# --- The detected subgroup in words: a shallow tree that imitates it, and its worst members ---

DEPTH = 3
#: Fewer rows than this have no common description worth reading.
MIN_DESCRIBED = 10
#: Share of the subgroup that counts as its worst members, and how many there are at least.
WORST_SHARE, WORST_ROWS = 0.1, 10
#: Bins of the calibration curves.
CURVE_BINS = 10
#: Strata of a column, for curves of their own.
STRATA = 3


def rules_of(rows: AuditRows, inside: BoolArray, direction: str) -> list[SubgroupRule]:
    """Rules of at most three conditions for who is inside, as far as a tree can tell."""
    from sklearn.tree import DecisionTreeClassifier

    if inside.sum() < MIN_DESCRIBED:
        return []
    tree = DecisionTreeClassifier(
        max_depth=DEPTH, min_samples_leaf=max(5, int(inside.sum()) // 10), random_state=0
    ).fit(rows.matrix, inside)
    leaf = tree.apply(rows.matrix)
    rules = leaf_rules(tree.tree_, rows.features, lambda cut: float(f"{cut:.4g}"))
    found = [_rule(said[0], leaf == node, inside, direction) for node, said in rules.items()]
    mostly = [rule for rule in found if rule.inside > 0.5]
    # a subgroup too thin to fill any leaf is told by the leaf that has most of it
    chosen = mostly or [max(found, key=lambda rule: rule.inside)]
    return sorted(chosen, key=lambda rule: -rule.covers)


def _rule(words: str, where: BoolArray, inside: BoolArray, direction: str) -> SubgroupRule:
    both = int(np.count_nonzero(where & inside))
    return SubgroupRule(
        words=words,
        direction=direction,
        n=int(where.sum()),
        inside=both / int(where.sum()),
        covers=both / int(inside.sum()),
    )


def common_traits(rows: AuditRows, members: IntArray) -> list[ProfileLine]:
    """What the worst members have in common: each column among them and among everybody."""
    number = min(members.size, max(WORST_ROWS, round(WORST_SHARE * members.size)))
    worst = members[:number]
    return [_profile_line(rows, column, worst) for column in rows.columns]


def _profile_line(rows: AuditRows, column: str, worst: IntArray) -> ProfileLine:
    at = rows.inputs(column)
    there, here = rows.matrix[:, at].mean(axis=0), rows.matrix[worst][:, at].mean(axis=0)
    most = int(np.argmax(here - there))
    level = rows.features[at[most]].level
    return ProfileLine(
        feature=column,
        level=None if level is None else str(level),
        worst=float(here[most]),
        everyone=float(there[most]),
        n=worst.size,
    )


def curve_of(
    rows: AuditRows, chosen: IntArray, group: str, column: str | None = None
) -> list[CurvePoint]:
    """Mean prediction and mean outcome in bins of about equally many rows."""
    points = []
    order = chosen[np.argsort(rows.score[chosen], kind="stable")]
    for part in np.array_split(order, min(CURVE_BINS, max(1, chosen.size // 5))):
        if part.size:
            point = CurvePoint(
                group=group,
                n=part.size,
                predicted=_mean(rows, rows.score, part),
                observed=_mean(rows, rows.outcome, part),
                column=column,
            )
            points.append(point)
    return points


def curves_by_column(rows: AuditRows, where: IntArray, columns: Sequence[str]) -> list[CurvePoint]:
    """Calibration curves stratified by columns: thirds of a number, the commonest levels of text.

    As in Figure 5 of the appendix of Feng and others.
    """
    found = []
    for column in columns:
        for words, inside in _strata(rows, column):
            chosen = where[inside[where]]
            if chosen.size >= MIN_DESCRIBED:
                found += curve_of(rows, chosen, words, column)
    return found


def _strata(rows: AuditRows, column: str) -> list[tuple[str, BoolArray]]:
    at = rows.inputs(column)
    first = rows.features[at[0]]
    if first.level is not None:
        common = sorted(at, key=lambda i: -rows.matrix[:, i].sum())[:STRATA]
        return [(rows.features[i].rule(0.5, None)[0], rows.matrix[:, i] > 0) for i in common]
    values = rows.matrix[:, at[0]]
    gone: BoolArray = rows.matrix[:, at[1]] > 0 if len(at) > 1 else np.zeros(len(rows), dtype=bool)
    thirds = tuple((np.arange(1, STRATA) / STRATA).tolist())
    part = cusum.half_lines(values, gone, thirds)
    edges = [None, *(float(f"{cut:.6g}") for cut in part.cuts), None]
    found = [
        (first.rule(low, high)[0], (part.bins == place) & ~gone)
        for place, (low, high) in enumerate(itertools.pairwise(edges))
        if part.cuts.size
    ]
    return [*found, *([(f"{column} is missing", gone)] if gone.any() else [])]


def least_disparity(
    rows: AuditRows, chosen: IntArray, way: int, tolerance: float, critical: float
) -> float:
    """The largest tolerance at which these rows' score still exceeds the critical one, signed."""
    side = cusum.Side.UNDER if way > 0 else cusum.Side.OVER
    together = cusum.levels(np.zeros(chosen.size, dtype=np.int64))

    def beyond(limit: float) -> bool:
        null = null_of(rows, chosen, limit)
        found = cusum.scan([together], null, pairs=False, side=side)
        return found is not None and found.observed(null) > critical

    low = tolerance
    high = tolerance + float(np.abs(rows.outcome[chosen] - rows.score[chosen]).max())
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) else (low, middle)
    return way * low


# --- From a tested statistic to a finding: verdict, subgroup, charts ---

#: Points of a control chart's line.
CHART_POINTS = 150
UNDER, OVER = "thought under-estimated", "thought over-estimated"
SUBGROUP, REST, EVERYONE = "the detected subgroup", "everyone else", "everyone tested"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OutcomeOfTests:
    """What testing gave."""

    found: Tested
    """The statistic, its p-value and the best subgroup, by position among the tested rows."""
    statistic: Statistic
    """The statistic that says most."""
    scale: cusum.Scale
    """How its sums are made comparable."""
    null: Null
    """Residuals of the tested rows."""
    tested: BoolArray
    """Which rows were tested."""
    fitted: Fitted | None
    """The residual models, if the method uses any."""
    component: str | None = None
    """The test of the portfolio that says most."""
    components: tuple[tuple[str, float], ...] = ()
    """Tests of the portfolio, each with its own p-value."""
    part: float = 1.0
    """The part of the error that these tests have."""
    learnt: "OutcomeOfTests | None" = None
    """What residual models gave, where other tests say more."""

    @property
    def p(self) -> float:
        """The p-value, all other tests allowed for."""
        return min(1.0, self.found.p / self.part)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the residual models."""
        models = self if self.fitted is not None or self.learnt is None else self.learnt
        return () if models.fitted is None else models.fitted.names

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The parts of the subgroup, by position among the tested rows."""
        return () if self.found.best is None else self.found.best.pieces

    def critical(self, level: float) -> float:
        """The value that the statistic must exceed."""
        return self.found.critical((1 - level) * self.part)


def combined(whole: OutcomeOfTests, learnt: OutcomeOfTests | None) -> OutcomeOfTests:
    """Tests on all rows and what models learnt, by Bonferroni's inequality."""
    if learnt is None:
        return whole
    parts = (
        dataclasses.replace(whole, part=1 - LEARNT_SHARE, learnt=learnt),
        dataclasses.replace(learnt, part=LEARNT_SHARE),
    )
    every = (*whole.components, *learnt.components)
    return dataclasses.replace(min(parts, key=lambda part: part.p), components=every)


def calibration_finding(
    rows: AuditRows, options: Options, outcome: OutcomeOfTests, drops: dict[str, float]
) -> Calibration:
    """Everything the audit has to say."""
    found, where = outcome.found, np.flatnonzero(outcome.tested)
    members = np.zeros(0, dtype=np.int64) if found.best is None else where[found.best.members]
    signs = _signs(outcome, rows)
    important = tuple(
        ImportantColumn(column=name, drop=drop)
        for name, drop in sorted(drops.items(), key=lambda item: -item[1])
    )
    return Calibration(
        claim=_claim(rows, options),
        question=_question(rows, options),
        guarantee=_guarantee(rows, options),
        assumptions=_assumptions(rows, options),
        provenance=rows.provenance,
        rows=tuple(_groups(rows, options, outcome, signs)),
        tolerance=options.tolerance,
        side=options.side,
        level=options.level,
        verdict=verdict_of_p(outcome.p, options.level),
        p=outcome.p,
        statistic=found.statistic,
        critical=finite(outcome.critical(options.level)),
        reason=_reason(outcome),
        method=options.method,
        method_words=WORDS[options.method],
        scale=str(outcome.scale),
        min_prevalence=options.test.prevalence(options.least, outcome.scale),
        folds=_folds(options),
        split=options.split if options.test.adaptive and outcome.names else None,
        draws=options.draws,
        tested=where.size,
        share=rows.binary,
        models=outcome.names,
        model=_model(outcome),
        component=outcome.component if members.size else None,
        components=tuple(
            ComponentTest(name=name, words=COMPONENTS[name], p=p) for name, p in outcome.components
        ),
        rules=tuple(_rules(rows, outcome, signs)),
        profile=tuple(common_traits(rows, members)) if members.size else (),
        paths=tuple(_paths(outcome)),
        path_critical=_path_critical(outcome, options.level),
        importance=important,
        curves=tuple(_curves(rows, where, members)),
        column_curves=tuple(curves_by_column(rows, where, _telling(rows, outcome, important))),
        classes=(),
        # what models learnt has a small part of the error, and cannot have a smaller p-value
        finest=1 / (options.draws + 1) / (1.0 if outcome.part == 1 else 1 - LEARNT_SHARE),
    )


def verdict_of_p(p: float, level: float) -> Verdict:
    """A violation is shown, or nothing is."""
    return Verdict.EXCEEDED if p <= 1 - level + 1e-12 else Verdict.UNDETERMINED


def _signs(outcome: OutcomeOfTests, rows: AuditRows) -> IntArray:
    """+1 where the detected subgroup is thought under-estimated, −1 where over-estimated."""
    signs, where = np.zeros(len(rows), dtype=np.int64), np.flatnonzero(outcome.tested)
    for piece in outcome.pieces:
        signs[where[piece.members]] = piece.sign
    return signs


def _groups(
    rows: AuditRows, options: Options, outcome: OutcomeOfTests, signs: IntArray
) -> list[CalibratedGroup]:
    """One line for each direction, never both in one; then everyone else, and all."""
    where = np.flatnonzero(outcome.tested)
    groups = []
    for name, way, direction in ((UNDER, 1, "under"), (OVER, -1, "over")):
        chosen = np.flatnonzero(signs == way)
        if chosen.size:
            group = _group(rows, name, chosen, where.size)
            groups.append(
                dataclasses.replace(
                    group,
                    direction=direction,
                    shrunken=_shrunken(group.disparity, way * options.tolerance, outcome),
                    least=_least(rows, chosen, way, options, outcome),
                )
            )
    groups.sort(key=lambda group: -abs(group.disparity) * np.sqrt(group.n))
    rest = where[signs[where] == 0]
    others = [(REST, rest), (EVERYONE, where)]
    return [*groups, *(_group(rows, name, some, where.size) for name, some in others if some.size)]


def _group(rows: AuditRows, name: str, chosen: IntArray, tested: int) -> CalibratedGroup:
    value, target = _mean(rows, rows.outcome, chosen), _mean(rows, rows.score, chosen)
    return CalibratedGroup(
        group=name,
        where={},
        n=chosen.size,
        share=chosen.size / tested,
        value=value,
        target=target,
        disparity=value - target,
    )


def _mean(rows: AuditRows, values: FloatArray, chosen: IntArray) -> float:
    weight = None if rows.weight is None else rows.weight[chosen]
    return float(np.average(values[chosen], weights=weight))


def _shrunken(disparity: float, edge: float, outcome: OutcomeOfTests) -> float:
    """The disparity less what the search alone would have found beyond the edge.

    James and Stein's factor, with the median of the draws for what chance gives.
    """
    chance, found = float(np.median(outcome.found.drawn)), outcome.found.statistic
    power = 2 if outcome.scale is cusum.Scale.STANDARD else 1
    left = 1 - min(1.0, max(0.0, chance / found)) ** power if found > 0 else 0.0
    beyond = disparity - edge
    # what lies within the tolerance was not searched for
    return edge + left * beyond if beyond * np.sign(edge or disparity) > 0 else disparity


def _least(
    rows: AuditRows, chosen: IntArray, way: int, options: Options, outcome: OutcomeOfTests
) -> float | None:
    """The smallest disparity that a scan of this level allows the set it found; None if no scan."""
    critical = outcome.critical(options.level)
    if not isinstance(outcome.statistic, cusum.Scan) or len(outcome.pieces) > 1:
        return None
    if not np.isfinite(critical) or outcome.found.statistic <= critical:
        return None
    ahead = 0.0 if outcome.found.best is None else outcome.found.best.bonus
    return least_disparity(rows, chosen, way, options.tolerance, critical - ahead)


def _rules(rows: AuditRows, outcome: OutcomeOfTests, signs: IntArray) -> list[SubgroupRule]:
    if isinstance(outcome.statistic, cusum.Scan):
        partitions = list(outcome.statistic.partitions)
        return [_exact_rule(rows, piece, partitions) for piece in outcome.pieces]
    if not outcome.pieces:
        return []
    return [*rules_of(rows, signs > 0, "under"), *rules_of(rows, signs < 0, "over")]


def _exact_rule(rows: AuditRows, piece: Piece, partitions: Sequence[cusum.BinSets]) -> SubgroupRule:
    return SubgroupRule(
        words=sets_in_words(rows, piece.sets, partitions),
        direction="under" if piece.sign > 0 else "over",
        n=piece.members.size,
        inside=1.0,
        covers=1.0,
    )


def _telling(
    rows: AuditRows, outcome: OutcomeOfTests, important: tuple[ImportantColumn, ...]
) -> list[str]:
    """The columns, beside the score, that tell the subgroup apart best."""
    others = [
        line.column for line in important if line.drop > 0 and line.column in rows.columns[1:]
    ]
    return others[:2]


def _curves(rows: AuditRows, where: IntArray, members: IntArray) -> list[CurvePoint]:
    if not members.size:
        return curve_of(rows, where, EVERYONE)
    rest = np.setdiff1d(where, members)
    return [*curve_of(rows, members, SUBGROUP), *curve_of(rows, rest, REST)]


def _charted(outcome: OutcomeOfTests) -> OutcomeOfTests:
    """Whose control chart is drawn: that of the residual models, where there are any."""
    return outcome if outcome.learnt is None else outcome.learnt


def _path_critical(outcome: OutcomeOfTests, level: float) -> float | None:
    charted = _charted(outcome)
    part = LEARNT_SHARE if outcome.component is not None else 1.0
    return finite(dataclasses.replace(charted, part=part).critical(level))


def _paths(outcome: OutcomeOfTests) -> list[ControlPath]:
    """The control chart: for each model, the sum at thresholds from the worst rows on."""
    charted = _charted(outcome)
    if not isinstance(charted.statistic, cusum.Cusum):
        return []
    lines = []
    for path in charted.statistic.paths:
        sums = path.observed(charted.null)
        # the peak is always kept, whatever else is thinned out
        steps = np.linspace(0, sums.size - 1, min(sums.size, CHART_POINTS)).round().astype(int)
        kept = np.unique([*steps, int(np.argmax(sums))])
        lines.append(
            ControlPath(
                model=_model_name(charted, path.model),
                share=tuple(((path.ends[kept] + 1) / len(charted.null)).tolist()),
                value=tuple(sums[kept].tolist()),
            )
        )
    return lines


def _model(outcome: OutcomeOfTests) -> str | None:
    """The residual model, or the recalibration axis, that found the subgroup."""
    if outcome.found.best is None or not isinstance(outcome.statistic, cusum.Cusum):
        return None
    return _model_name(outcome, outcome.found.best.model)


def _model_name(outcome: OutcomeOfTests, model: int) -> str:
    return outcome.names[model] if outcome.names else f"recalibration axis {model + 1}"


def _reason(outcome: OutcomeOfTests) -> str:
    statistic = outcome.statistic
    if isinstance(statistic, cusum.Cusum) and not statistic.paths:
        return "no residual model predicts a violation in enough rows, so p is 1"
    if outcome.found.statistic <= 0:
        return "wherever a violation was predicted, outcomes say the opposite, so p is 1"
    return f"{outcome.found.drawn.size:,} draws at the edge of the tolerance"


def _folds(options: Options) -> int | None:
    return options.folds if options.test.adaptive and options.split is None else None


def _claim(rows: AuditRows, options: Options) -> dict[str, object]:
    return {
        "kind": "calibration",
        "features": list(rows.columns[1:]),
        "tolerance": options.tolerance,
        "side": options.side,
        "method": options.method,
        "folds": _folds(options),
        "split": options.split,
        "min_prevalence": options.least,
    }


def _question(rows: AuditRows, options: Options) -> str:
    way = {"both": "differs from", "upper": "exceeds", "lower": "falls short of"}[options.side]
    what = "true risk" if rows.binary else "expected outcome"
    return f"whether in some subgroup the {what} {way} the score by more than {options.tolerance:g}"


def _guarantee(rows: AuditRows, options: Options) -> str:
    error = f"{100 * (1 - options.level):.10g} %"
    asymptotic = "for large samples" if rows.cluster is None else "for many clusters"
    known = rows.binary and rows.cluster is None
    if known and (options.split is not None or not options.test.adaptive):
        asymptotic = "in samples of any size"
    return (
        f"If nobody's expected outcome is further from the score than the tolerance, a violation "
        f"is declared with a chance of {error} at most, {asymptotic}. A violation that is not "
        "declared may still be there"
    )


def _assumptions(rows: AuditRows, options: Options) -> tuple[str, ...]:
    unit = "rows" if rows.cluster is None else "clusters"
    drawn = rows.binary and rows.cluster is None
    symmetric = () if drawn else (f"residuals are not too skewed for the number of {unit}",)
    stable = ("residual models fitted on different folds agree as rows grow in number",)
    weighted = ("given features and score, weights say nothing of the outcome",)
    return (
        independent(unit),
        "the model was not fitted on these rows",
        *(stable if _folds(options) is not None else ()),
        *(weighted if rows.weight is not None else ()),
        *symmetric,
    )
