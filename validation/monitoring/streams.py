"""Streams to monitor: many independent ones at once, as the groups of one collection.

Evidence of a group needs nothing but the sums of its parts, so that a thousand streams are one
array with a thousand columns. A truth is a rate for each part, which may change with the batch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parents[1]))

from equipoise.methods.sequential import Stream, log_bets, log_capital, log_detector
from equipoise.methods.targets import Complement, Moments, Target, plain_moments

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Rng = np.random.Generator

ERROR = 0.05
TIMES = 104
ROWS = ((20, 200), (100, 100), (20, 20), (2000, 2000))
"""Rows of the group and of everyone else in a batch."""
RATES = (0.01, 0.05, 0.2, 0.5)
"""Rates of everyone else."""
MOST_NUMBERS = 500_000
"""Batches of all streams that are worked on at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a disparity must not exceed, or not fall below."""

    limit: float
    relative: bool
    above: bool
    other: float | None = None
    """The other end of a range; None where only one side is asked."""

    def at_limit(self, rate: float) -> float:
        """The group's rate that lies on the limit if everyone else has this rate."""
        return self.limit * rate if self.relative else self.limit + rate


FOUR_FIFTHS = Question(limit=0.8, relative=True, above=False)
NO_GAP = Question(limit=0.0, relative=False, above=True)
TOLERANCE = replace(FOUR_FIFTHS, other=1.25)
ANY_GAP = replace(NO_GAP, other=0.0)
QUESTIONS = {"ratio below 0.8": FOUR_FIFTHS, "gap above 0": NO_GAP}
RANGES = {"ratio outside 0.8 to 1.25": TOLERANCE, "any gap": ANY_GAP}


def counted(rows: Floats, ones: Floats, relative: bool, target: Target | None = None) -> Stream:
    """The stream of 0/1 rows, from numbers of rows and ones ``(parts, T, streams)``."""
    rows = np.broadcast_to(np.asarray(rows, dtype=np.float64), ones.shape)
    return Stream(
        target=target or Complement(),
        relative=relative,
        sums=plain_moments(rows, ones, ones, ones),
        zero_one=True,
        ends=(0.0, 1.0),
    )


def valued(
    rows: Floats, total: Floats, square: Floats, relative: bool, target: Target | None = None
) -> Stream:
    """The stream of a metric between 0 and 1, from sums and sums of squares."""
    rows = np.broadcast_to(np.asarray(rows, dtype=np.float64), total.shape)
    return Stream(
        target=target or Complement(),
        relative=relative,
        sums=plain_moments(rows, total, square, square),
        zero_one=False,
        ends=(0.0, 1.0),
    )


def estimated(sums: Moments, relative: bool, effect: Floats | None = None) -> Stream:
    """The stream of weighted or clustered rows, whose variance is estimated."""
    return Stream(
        target=Complement(),
        relative=relative,
        sums=sums,
        zero_one=True,
        ends=None,
        effect=effect,
    )


def columns(x: Any) -> Floats:
    """Numbers of each part, or of each part and batch, as arrays ``(parts, T or 1, 1 or S)``."""
    wide = np.asarray(x, dtype=np.float64)
    return np.asarray(wide.reshape(*wide.shape, *[1] * (3 - wide.ndim)))


def drawn(rng: Rng, rows: Any, rates: Any, times: int, streams: int) -> tuple[Floats, Floats]:
    """Rows and ones of every part, batch and stream."""
    shape = (len(rows), times, streams)
    n = np.broadcast_to(columns(rows), shape)
    p = np.broadcast_to(columns(rates), shape)
    return n, rng.binomial(n.astype(np.int64), p).astype(np.float64)


def told(stream: Stream, question: Question, *, window: int | None = None) -> Floats:
    """Logarithm of the evidence after every batch; with a window, of the detector."""
    read = log_capital if window is None else log_detector
    return _read(stream, question, window, read)


def _read(
    stream: Stream, question: Question, window: int | None, read: Callable[[Floats], Floats]
) -> Floats:
    sides = [(question.limit, question.above)]
    if question.other is not None:
        sides.append((question.other, not question.above))
    found = []
    for limit, above in sides:
        wanted = np.full(stream.shape[1], limit)
        found.append(read(log_bets(stream, wanted, above=above, window=window)))
    # the average of two such processes is one
    return found[0] if len(found) == 1 else np.asarray(np.logaddexp(*found) - np.log(2))


def first(alarms: Bools) -> Floats:
    """Batches until the first alarm of each stream, counted from one; infinite without any."""
    return np.where(alarms.any(axis=0), alarms.argmax(axis=0) + 1.0, np.inf)


def chunks(streams: int, times: int) -> list[int]:
    """Streams in portions that fit in memory."""
    size = max(1, MOST_NUMBERS // times)
    return [min(size, streams - start) for start in range(0, streams, size)]


def median(delay: Floats) -> float | None:
    """The median delay; None where fewer than half are ever found."""
    found = float(np.median(delay))
    return found if np.isfinite(found) else None


def share_row(share: float, streams: int, bar: float, full: bool) -> dict[str, Any]:
    """A share beside its bar, which the quick run widens by three standard errors."""
    allowed = bar if full else bar + 3 * (bar * (1 - bar) / streams) ** 0.5
    return {"share": share, "bar": round(allowed, 4), "agrees": share <= allowed}
