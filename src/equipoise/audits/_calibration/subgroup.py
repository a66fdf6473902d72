"""The detected subgroup in words: a shallow tree that imitates it, and its worst members."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from equipoise.audits._calibration.rows import AuditRows, null_of
from equipoise.cells.features import Feature
from equipoise.findings.calibration import CurvePoint, ProfileLine, Rule
from equipoise.methods import cusum
from equipoise.methods.arrays import BoolArray, IntArray

DEPTH = 3
#: Fewer rows than this have no common description worth reading.
MIN_DESCRIBED = 10
#: Share of the subgroup that counts as its worst members, and how many there are at least.
WORST_SHARE, WORST_ROWS = 0.1, 10
#: Bins of the calibration curves.
CURVE_BINS = 10
#: Strata of a column, for curves of their own.
STRATA = 3

Ranges = Mapping[int, tuple[float | None, float | None]]


def rules_of(rows: AuditRows, inside: BoolArray, direction: str) -> list[Rule]:
    """Rules of at most three conditions for who is inside, as far as a tree can tell."""
    from sklearn.tree import DecisionTreeClassifier

    if inside.sum() < MIN_DESCRIBED:
        return []
    tree = DecisionTreeClassifier(
        max_depth=DEPTH, min_samples_leaf=max(5, int(inside.sum()) // 10), random_state=0
    ).fit(rows.matrix, inside)
    leaf = tree.apply(rows.matrix)
    found = [
        _rule(words, leaf == node, inside, direction)
        for node, words in sorted(_leaves(tree.tree_, rows.features, 0, {}).items())
    ]
    mostly = [rule for rule in found if rule.inside > 0.5]
    # a subgroup too thin to fill any leaf is told by the leaf that has most of it
    chosen = mostly or [max(found, key=lambda rule: rule.inside)]
    return sorted(chosen, key=lambda rule: -rule.covers)


def _rule(words: str, where: BoolArray, inside: BoolArray, direction: str) -> Rule:
    both = int(np.count_nonzero(where & inside))
    return Rule(
        words=words,
        direction=direction,
        n=int(where.sum()),
        inside=both / int(where.sum()),
        covers=both / int(inside.sum()),
    )


def _leaves(tree: Any, features: tuple[Feature, ...], node: int, ranges: Ranges) -> dict[int, str]:
    left, right = int(tree.children_left[node]), int(tree.children_right[node])
    if left == right:
        parts = [features[f].rule(low, high)[0] for f, (low, high) in ranges.items()]
        return {node: " and ".join(parts) or "everyone"}
    feature, cut = int(tree.feature[node]), float(f"{tree.threshold[node]:.4g}")
    low, high = ranges.get(feature, (None, None))
    return {
        **_leaves(tree, features, left, {**ranges, feature: (low, cut)}),
        **_leaves(tree, features, right, {**ranges, feature: (cut, high)}),
    }


def profile_of(rows: AuditRows, members: IntArray) -> list[ProfileLine]:
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
            weight = None if rows.weight is None else rows.weight[part]
            points.append(
                CurvePoint(
                    group=group,
                    n=part.size,
                    predicted=float(np.average(rows.score[part], weights=weight)),
                    observed=float(np.average(rows.outcome[part], weights=weight)),
                    column=column,
                )
            )
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
