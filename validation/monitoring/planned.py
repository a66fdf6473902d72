"""Planned looks: alarms of streams on the limit, and how soon a disparity is found.

Scores are those of the inference core on everything seen so far, boundaries those of
`methods.sequential`. Boundaries depend on the sizes of the batches and hardly on their outcomes, so
they are worked out a few times for each design, not for each stream, from batches with the expected
numbers of ones. (With boundaries from each stream's own batches alarms are no more frequent.) Tails
are worked out only where a plain score is above 1, far below any boundary. Looks at which the verb
refuses to test, for want of expected rows, raise no alarm here either.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from records import main, write
from streams import (
    ERROR,
    FOUR_FIFTHS,
    NO_GAP,
    Bools,
    Floats,
    Question,
    Rng,
    chunks,
    drawn,
    first,
    median,
    share_row,
)

from equipoise.audits.monitor import _scores
from equipoise.methods.inference.core import Core, core_of
from equipoise.methods.inference.counts import CountPivot
from equipoise.methods.sequential import LEAST, BatchSums, boundaries
from equipoise.methods.targets import Comparison, Complement, plain_moments

SEED, BAR, LOOKS = 83, 0.055, (12, 24)
RATES, ROWS = (0.05, 0.2, 0.5), (50, 200, 500)
SETS = 4
"""Boundaries are drawn so many times in a full run, since every user draws their own."""
SCREEN = 1.0
"""Plain scores below this are not worked out further."""
BEYOND = {"ratio": 0.65, "gap": 0.1}
"""What is to be found: a ratio, and a gap of so many times the square root of the rate."""


# --- Scores ---


def scores_of(n: Floats, k: Floats, question: Question) -> Floats:
    """The core's one-sided scores of cumulated counts ``(2, T, S)`` of a group and all others."""
    shape = n.shape[1:]
    rows, ones = (x.reshape(2, -1) for x in (n, k))
    plain = np.where(_plain(rows, ones, question) > SCREEN, 1.0, 0.0)
    chosen = np.flatnonzero(plain)
    out = np.full(rows.shape[1], -np.inf)
    if chosen.size:
        few, some = rows[:, chosen], ones[:, chosen]
        found = Comparison(
            target=Complement(),
            relative=question.relative,
            parts=plain_moments(few, some, some, some),
        )
        pivot = CountPivot(comparison=found, rows=few, degrees=np.full(chosen.size, np.inf))
        tails = pivot.tails(np.full(chosen.size, question.limit), np.arange(chosen.size))
        p = tails[0] if question.above else tails[1]
        out[chosen] = -ndtri(np.clip(p, 1e-300, 1 - 1e-16))
    return out.reshape(shape)


def _plain(rows: Floats, ones: Floats, question: Question) -> Floats:
    rate = (ones + 0.5) / (rows + 1)
    factor = question.limit if question.relative else 1.0
    gap = rate[0] - factor * rate[1] - (0.0 if question.relative else question.limit)
    variance = rate[0] * (1 - rate[0]) / rows[0] + factor**2 * rate[1] * (1 - rate[1]) / rows[1]
    return np.asarray((gap if question.above else -gap) / np.sqrt(variance))


def plenty(n: Floats, k: Floats) -> Bools:
    """Where the verb tests, by the verb's own rule; ``(T, S)`` from parts ``(2, T, S)``."""
    mean = k.sum(axis=0) / n.sum(axis=0)
    least = LEAST / np.maximum(np.minimum(mean, 1 - mean), 1e-12)
    return np.asarray(n.min(axis=0) >= least)


# --- Boundaries ---


def expected_core(
    rows: Sequence[float], rates: Sequence[float], relative: bool, groups: int
) -> Core:
    """The core of a batch that has as many ones as expected."""
    n, p = np.array(rows, dtype=np.float64), np.array(rates)
    k = n * p
    only = np.eye(n.size)[:groups]
    return core_of(
        plain_moments(n, k, k, k),
        Complement(),
        lambda x: x @ only.T,
        relative=relative,
        zero_one=True,
        weighted=False,
    )


def critical_scores(core: Core, looks: int, begin: int, groups: int, seed: int = 0) -> Floats:
    """Boundaries of equal batches, if nothing is tested before the look ``begin``."""
    piece = BatchSums(
        groups=np.arange(groups),
        information=1 / core.pivot.error**2,
        scores=_scores(core),
    )
    tested = [np.full(groups, look >= begin) for look in range(looks)]
    return boundaries(
        [piece] * looks,
        tested,
        error=ERROR,
        looks=looks,
        two_sided=False,
        seed=np.random.SeedSequence([SEED, seed]),
    )


# --- Designs ---


def one_group(
    rng: Rng, question: Question, rows: int, rate: float, own: float, streams: int
) -> tuple[Floats, Bools]:
    """Scores of one group beside as many others at each look, and where it is tested."""
    return _cumulated(rng, [rows, rows], [own, rate], streams, lambda x: x, question)


def eight_groups(
    rng: Rng, question: Question, rows: int, rate: float, own: float, streams: int
) -> tuple[Floats, Bools]:
    """Scores of eight groups beside everyone else; one group may differ from the others."""
    rates = [own, *[rate] * 7]

    def parts(x: Floats) -> Floats:
        every = x.sum(axis=0, keepdims=True)
        return np.stack([x, every - x]).transpose(0, 2, 3, 1).reshape(2, max(LOOKS), -1)

    return _cumulated(rng, [rows] * 8, rates, streams, parts, question)


def _cumulated(
    rng: Rng, rows: Any, rates: Any, streams: int, parts: Any, question: Question
) -> tuple[Floats, Bools]:
    n, k = drawn(rng, rows, rates, max(LOOKS), streams)
    n, k = (parts(np.cumsum(x, axis=1)) for x in (n, k))
    return scores_of(n, k, question), plenty(n, k)


def measured(
    groups: int, question: Question, rows: int, rate: float, streams: int, seed: list[int]
) -> Iterator[dict[str, Any]]:
    """Alarms on the limit, and the delay beyond it, for either number of looks."""
    limit = question.at_limit(rate)
    beyond = BEYOND["ratio"] * rate if question.relative else rate + BEYOND["gap"] * rate**0.5
    draw = one_group if groups == 1 else eight_groups
    kinds = [("limit", limit, streams), ("beyond", beyond, min(streams, 1000))]
    found: dict[str, list[tuple[Floats, Bools]]] = {}
    for place, (kind, own, number) in enumerate(kinds):
        rng = np.random.default_rng([*seed, place])
        portions = chunks(number, max(LOOKS) * groups)
        found[kind] = [draw(rng, question, rows, rate, own, part) for part in portions]
    core = expected_core(
        [rows, rows] if groups == 1 else [rows] * 8,
        [limit, rate] if groups == 1 else [rate] * 8,
        question.relative,
        groups,
    )
    # the first look at which most streams are tested
    begin = int(np.argmax(found["limit"][0][1].mean(axis=1) > 0.5))
    sets = SETS if streams > 1000 else 1
    for looks in LOOKS:
        critical = np.stack(
            [critical_scores(core, looks, begin, groups, seed) for seed in range(sets)], axis=1
        )
        when = {kind: _first_alarms(portions, critical, groups, kind == "beyond")
                for kind, portions in found.items()}  # fmt: skip
        yield {
            "question": "ratio below 0.8" if question.relative else "gap above 0",
            "groups": groups,
            "rows": rows,
            "rate": rate,
            "looks": looks,
            "first look tested": begin + 1,
            "share": float(np.isfinite(when["limit"]).mean()),
            "delay": median(when["beyond"]),
        }


def _first_alarms(
    portions: list[tuple[Floats, Bools]], critical: Floats, groups: int, only_first: bool
) -> Floats:
    """Looks to the first alarm: of anybody, or of the one group that differs."""
    looks, sets = critical.shape
    found = []
    for scores, tested in portions:
        shape = (looks, -1, groups)
        score = np.where(tested, scores, -np.inf)[:looks].reshape(shape)
        drawn_set = np.arange(score.shape[1]) % sets
        crossed = score >= critical[:, drawn_set, None]
        found.append(first(crossed[..., 0] if only_first else np.asarray(crossed.any(axis=2))))
    return np.concatenate(found)


def designs() -> Iterator[tuple[int, Question, int, float]]:
    """One group and eight, a ratio and a gap; all eight are on the limit only of a gap of 0."""
    for rows, rate in itertools.product(ROWS, RATES):
        yield 1, FOUR_FIFTHS, rows, rate
        yield 1, NO_GAP, rows, rate
    for rows, rate in itertools.product(ROWS, RATES):
        yield 8, NO_GAP, rows, rate


def run(full: bool = False) -> dict[str, Any]:
    """Measure all designs; the quick run has 300 streams of each and a wider bar."""
    streams = 10_000 if full else 300
    rows = []
    for place, (groups, question, size, rate) in enumerate(designs()):
        for row in measured(groups, question, size, rate, streams, [SEED, place]):
            rows.append(row | share_row(row["share"], streams, BAR, full))
    result = {
        "source": "planned",
        "seed": SEED,
        "streams": streams,
        "rows": rows,
        "agrees": all(row["agrees"] for row in rows),
    }
    return write(__file__, "planned", result, full)


if __name__ == "__main__":
    main("planned", run)
