"""The portfolio: tests that look at all rows at once, beside subgroups learnt on half of them.

Recalibration, a line in every input, scans of one column and of two need nothing learnt, so all
rows test. Their p-values on shared draws are divided by shares, the smallest counts, and is
compared with that of every draw: exact wherever the draws are. What residual models learnt is
tested on the other half with draws of its own; both answers are put together by Bonferroni's
inequality, so that nothing needs to be known of how they depend on each other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.audits._calibration.rows import AuditRows
from equipoise.methods import cusum
from equipoise.methods.arrays import BoolArray, FloatArray, IntArray
from equipoise.methods.cusum import Null, Partition, Side
from equipoise.methods.cusum.testing import Statistic

#: How much each test's p-value counts beside the others. A test of few degrees of freedom loses
#: more power by a smaller share than a scan of thousands of sets, so it has a larger one.
SHARES: Mapping[str, float] = {
    "recalibration": 1.2,
    "line": 3.0,
    "one column": 0.7,
    "two columns": 0.5,
    # no draw has such an outcome, so that a large share costs the others nothing
    "impossible": 10.0,
}
#: What each test is, in words.
COMPONENTS: Mapping[str, str] = {
    "recalibration": "level and slope along the score",
    "line": "a line in every input",
    "one column": "half-lines and levels of one column",
    "two columns": "corners and crosses of two columns",
    "impossible": "outcomes that the score rules out",
    "learnt": "subgroups learnt on other rows",
}
#: The part of the error that goes to what residual models learnt.
LEARNT_SHARE = 0.05
#: Columns of text with more levels than this are scanned, but are no inputs of the line.
MAX_LINE_LEVELS = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Impossible:
    """The statistic: how many outcomes the null hypothesis gives no chance at all."""

    where: IntArray
    signs: IntArray

    def values(self, residuals: FloatArray) -> FloatArray:
        """No draw has such an outcome."""
        return np.zeros(len(residuals))

    def observed(self, null: Null) -> float:
        """How many there are."""
        return float(self.where.size)

    def best(self, null: Null) -> cusum.Best | None:
        """The rows themselves."""
        pieces = cusum.pieces_of(self.where, self.signs.astype(np.float64))
        return cusum.Best(model=0, members=self.where, threshold=0.0, pieces=pieces)


def statistics_of(rows: AuditRows, null: Null, side: Side) -> dict[str, Statistic]:
    """The tests that look at all rows, by name; those with nothing to look at are left out."""
    pairs = cusum.pair_shares(len(rows.columns))
    found: dict[str, Statistic | None] = {
        "recalibration": cusum.axes(recalibration_inputs(rows), null, side),
        "line": line_statistic(rows, null, side),
        "one column": cusum.scan(partitions(rows, cusum.TAILS), null, pairs=False, side=side),
        "two columns": cusum.scan(partitions(rows, pairs), null, pairs=True, side=side),
        "impossible": _impossible(null, side),
    }
    kept = {name: test for name, test in found.items() if test is not None}
    # outcomes that cannot vary, or next to no rows: there is nothing to look at, and p is 1
    return kept or {"recalibration": cusum.cusum(np.zeros((1, len(null))), null)}


def shares_of(names: list[str]) -> list[float]:
    """The shares of these tests."""
    return [SHARES[name] for name in names]


def recalibration_inputs(rows: AuditRows) -> FloatArray:
    """Level and slope of Platt's recalibration: a constant, and the log odds of the score."""
    risk = cusum.risk_axis(rows.score, risks=rows.binary)
    return np.column_stack([np.ones(len(rows)), risk])


def line_statistic(
    rows: AuditRows, null: Null, side: Side, without: str | None = None
) -> cusum.Axes | None:
    """Numbers, one of two levels, and what is missing, after level and slope."""
    score, *others = rows.columns
    inputs = recalibration_inputs(rows)[:, : 1 if without == score else 2]
    kept = []
    for column in others:
        at = rows.inputs(column)
        text = [i for i in at if rows.features[i].level is not None]
        if column != without and len(text) <= MAX_LINE_LEVELS:
            kept += [int(i) for i in at]
    return cusum.axes(np.column_stack([inputs, rows.matrix[:, kept]]), null, side)


def partitions(rows: AuditRows, shares: tuple[float, ...]) -> list[Partition]:
    """Every column in half-lines or levels, the score first."""
    return [_partition(rows, column, shares) for column in rows.columns]


def _partition(rows: AuditRows, column: str, shares: tuple[float, ...]) -> Partition:
    at = rows.inputs(column)
    first = rows.features[at[0]]
    if first.level is not None:
        return cusum.levels(level_codes(rows, at))
    missing: BoolArray | None = None
    if len(at) > 1:
        missing = rows.matrix[:, at[1]] > 0
    return cusum.half_lines(rows.matrix[:, at[0]], missing, shares)


def level_codes(rows: AuditRows, at: IntArray) -> IntArray:
    """The level of each row; one more where there is none."""
    inside = rows.matrix[:, at]
    return np.where(inside.any(axis=1), inside.argmax(axis=1), len(at)).astype(np.int64)


def words_of(rows: AuditRows, sets: tuple[tuple[int, int], ...], parts: Sequence[Partition]) -> str:
    """Sets of some columns in words."""
    return " and ".join(_set_words(rows, column, parts[column], s) for column, s in sets)


def _set_words(rows: AuditRows, column: int, part: Partition, number: int) -> str:
    at = rows.inputs(rows.columns[column])
    feature = rows.features[at[0]]
    cuts = part.cuts.size
    if feature.level is not None:
        level = int(part.singles[number - 2 * cuts]) if number >= 2 * cuts else number
        if level < len(at):
            return str(rows.features[at[level]].rule(0.5, None)[0])
        return f"{feature.column} is missing"
    if number >= 2 * cuts:
        return f"{feature.column} is missing"
    cut = float(f"{part.cuts[number % cuts]:.6g}")
    return str(feature.rule(*((None, cut) if number < cuts else (cut, None)))[0])


def _impossible(null: Null, side: Side) -> Impossible | None:
    n = len(null)
    if not null.exact:
        return None
    under = (null.high <= 0) & (null.observed[:n] > 0) & (side is not Side.OVER)
    over = (null.low >= 1) & (null.observed[n:] < 0) & (side is not Side.UNDER)
    where = np.flatnonzero(under | over)
    if not where.size:
        return None
    return Impossible(where=where, signs=np.where(under[where], 1, -1))
