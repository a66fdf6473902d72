"""The detected subgroup in words: a shallow tree that imitates it, and its worst members."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from equipoise.audits._calibration.rows import AuditRows
from equipoise.cells.features import Feature
from equipoise.findings.calibration import CurvePoint, ProfileLine, Rule
from equipoise.methods.arrays import BoolArray, FloatArray, IntArray

DEPTH = 3
#: Fewer rows than this have no common description worth reading.
MIN_DESCRIBED = 10
#: Share of the subgroup that counts as its worst members, and how many there are at least.
WORST_SHARE, WORST_ROWS = 0.1, 10
#: Bins of the calibration curves.
CURVE_BINS = 10

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


def curve_of(score: FloatArray, outcome: FloatArray, group: str) -> list[CurvePoint]:
    """Mean prediction and mean outcome in bins of about equally many rows."""
    points = []
    order = np.argsort(score, kind="stable")
    for part in np.array_split(order, min(CURVE_BINS, max(1, score.size // 5))):
        if part.size:
            points.append(
                CurvePoint(
                    group=group,
                    n=part.size,
                    predicted=float(score[part].mean()),
                    observed=float(outcome[part].mean()),
                )
            )
    return points
