"""How often a stream on the limit ever raises an alarm, looked at after each of 104 batches.

The promise of the reading "ever" is at most 5 %, whatever the sizes, the rates and the drift inside
the limit. Rows whose variance has to be estimated (weights, clusters) are asymptotic and have a bar
of 6 %.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from records import main, write
from streams import (
    ERROR,
    FOUR_FIFTHS,
    NO_GAP,
    QUESTIONS,
    RANGES,
    RATES,
    ROWS,
    TIMES,
    Floats,
    Question,
    Rng,
    chunks,
    columns,
    counted,
    drawn,
    estimated,
    share_row,
    told,
    valued,
)

from equipoise.audits.monitor import LEAST_CLUSTERS
from equipoise.methods.sequential import e_bh, error_shares
from equipoise.methods.targets import Complement, Moments, Overall, Target

SEED, BAR, ASYMPTOTIC = 81, 0.05, 0.06
BELOW = replace(NO_GAP, above=False)
JOINING, EVERY = 8, 200
"""Groups that come one after the other, and after how many batches the next one does."""
#: Evidence of so many streams, ``(T, streams)``.
World = Callable[[Rng, int], Floats]


def on_limit(question: Question, rows: tuple[int, int], rate: float) -> World:
    """0/1 rows of a group that lies exactly on the limit."""

    def evidence(rng: Rng, streams: int) -> Floats:
        n, k = drawn(rng, rows, [question.at_limit(rate), rate], TIMES, streams)
        return told(counted(n, k, question.relative), question)

    return evidence


def drifting(rows: tuple[int, int], inside: bool) -> World:
    """Everyone's rate wanders; the ratio stays at 0.8, or wanders above it and comes back."""

    def evidence(rng: Rng, streams: int) -> Floats:
        walk = np.cumsum(rng.normal(0, 0.25, (TIMES, streams)), axis=0)
        rate = 0.05 + 0.6 / (1 + np.exp(-walk))
        ratio = np.full(rate.shape, 0.8)
        if inside:
            ratio += 0.2 * np.abs(np.sin(np.cumsum(rng.normal(0, 0.2, rate.shape), axis=0)))
        n, k = drawn(rng, rows, np.stack([ratio * rate, rate]), TIMES, streams)
        return told(counted(n, k, True), FOUR_FIFTHS)

    return evidence


def changing(rate: float) -> World:
    """Batches of changing size, often without any row of the group."""

    def evidence(rng: Rng, streams: int) -> Floats:
        shape = (TIMES, streams)
        rows = np.stack([rng.poisson(0.7, shape), rng.poisson(rng.choice([1, 9, 90], shape))])
        n, k = drawn(rng, rows, [0.8 * rate, rate], TIMES, streams)
        return told(counted(n, k, True), FOUR_FIFTHS)

    return evidence


def bounded(rows: tuple[int, int], mean: float, question: Question) -> World:
    """A metric between 0 and 1 with beta laws of different width."""

    def evidence(rng: Rng, streams: int) -> Floats:
        total, square = np.zeros((2, TIMES, streams)), np.zeros((2, TIMES, streams))
        for j, (n, m, size) in enumerate(
            zip(rows, (question.at_limit(mean), mean), (0.7, 3.0), strict=True)
        ):
            x = rng.beta(m * size, (1 - m) * size, (n, TIMES, streams))
            total[j], square[j] = x.sum(axis=0), (x**2).sum(axis=0)
        return told(valued(columns(rows), total, square, question.relative), question)

    return evidence


# --- Estimated variances ---


def weighted(rows: tuple[int, int], rate: float, question: Question, heavy: float | None) -> World:
    """0/1 rows with weights; with ``heavy``, a few weigh so much and have ones more often.

    A weighted mean is then biased by a share of one over the rows of its batch, in every batch.
    """

    def evidence(rng: Rng, streams: int) -> Floats:
        sums: dict[str, list[Floats]] = {name: [] for name in Moments.__dataclass_fields__}
        for n, p in zip(rows, (question.at_limit(rate), rate), strict=True):
            shape = (n, TIMES, streams)
            if heavy is not None:
                # half of all weight is heavy, so that the weighted mean is the rate
                few = rng.random(shape) < 1 / (1 + heavy)
                w = np.where(few, heavy, 1.0)
                x = (rng.random(shape) < p * np.where(few, 1.5, 0.5)).astype(np.float64)
            else:
                w = np.exp(rng.normal(0, 0.6, shape))
                x = (rng.random(shape) < p).astype(np.float64)
            sums["rows"].append(np.full((TIMES, streams), float(n)))
            for power, end in ((1, ""), (2, "2"), (3, "3")):
                sums["weight" + end].append((w**power).sum(axis=0))
                sums["total" + end].append((w**power * x).sum(axis=0))
            for name, power in (("square2", 2), ("square3", 3), ("cube3", 3)):
                sums[name].append((w**power * x).sum(axis=0))
        moments = Moments(**{name: np.stack(x) for name, x in sums.items()})
        return told(estimated(moments, question.relative), question)

    return evidence


LOSSES: dict[str, Callable[[Rng, tuple[int, ...]], Floats]] = {
    "squared normal errors": lambda rng, shape: rng.standard_normal(shape) ** 2,
    "lognormal losses": lambda rng, shape: rng.lognormal(0.0, 1.0, shape),
}
"""Metrics without bounds, the second with long tails."""


def unbounded(
    rows: tuple[int, int], law: Callable[[Rng, tuple[int, ...]], Floats], question: Question
) -> World:
    """A metric without bounds, with the same law for everyone."""

    def evidence(rng: Rng, streams: int) -> Floats:
        total, square = [], []
        for n in rows:
            x = law(rng, (n, TIMES, streams))
            total.append(x.sum(axis=0))
            square.append((x**2).sum(axis=0))
        stream = valued(columns(rows), np.stack(total), np.stack(square), question.relative)
        return told(replace(stream, ends=None), question)

    return evidence


def clustered(clusters: tuple[int, int], size: int, rate: float, question: Question) -> World:
    """0/1 rows in clusters that differ: the rate of a cluster has a beta law."""

    def evidence(rng: Rng, streams: int) -> Floats:
        means = (question.at_limit(rate), rate)
        shape = (TIMES, streams)
        of_cluster = [
            rng.binomial(size, rng.beta(4 * p, 4 * (1 - p), (c, *shape))).astype(np.float64)
            for c, p in zip(clusters, means, strict=True)
        ]
        ones = np.stack([x.sum(axis=0) for x in of_cluster])
        rows = np.broadcast_to(columns(clusters) * size, ones.shape)
        plain = counted(rows, ones, question.relative).sums
        effect = effect_of(of_cluster, size, rows, ones, question)
        return told(estimated(plain, question.relative, effect), question)

    return evidence


def effect_of(
    of_cluster: list[Floats], size: int, rows: Floats, ones: Floats, question: Question
) -> Floats:
    """How many times larger clusters make the variance, worked out as the verb does."""
    mean = ones.sum(axis=1, keepdims=True) / rows.sum(axis=1, keepdims=True)
    factor = np.where(question.relative, mean[0] / np.maximum(mean[1], 1e-12), 1.0)
    slope = np.stack([np.ones_like(factor), -factor]) / rows.sum(axis=1, keepdims=True)
    moved = sum(
        slope[j] ** 2 * ((x - size * mean[j]) ** 2).sum(axis=0) for j, x in enumerate(of_cluster)
    )
    met = float(sum(len(x) for x in of_cluster))
    moved = moved * met / (met - 1)
    alone = (slope**2 * (ones - 2 * mean * ones + mean**2 * rows)).sum(axis=0)
    top, bottom = np.cumsum(moved, axis=0), np.cumsum(alone, axis=0)
    effect = np.maximum(np.divide(top, bottom, out=np.ones_like(top), where=bottom > 0), 1.0)
    enough = met * np.arange(1, TIMES + 1)[:, None] >= LEAST_CLUSTERS
    return np.where(enough, effect, np.inf)


# --- Many groups ---


def overlapping() -> Floats:
    """40 groups from three attributes of 5, 3 and 2 values: single values and pairs of them."""
    values = np.array(list(itertools.product(range(5), range(3), range(2))))
    found = []
    for j, size in enumerate((5, 3, 2)):
        found += [values[:, j] == v for v in range(size)]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        pairs = itertools.product(np.unique(values[:, i]), np.unique(values[:, j]))
        found += [(values[:, i] == a) & (values[:, j] == b) for a, b in pairs]
    return np.array(found[:40], dtype=np.float64)


def many(rate: float, question: Question, target: Target, size: float) -> World:
    """Any alarm of any of 40 groups that share their rows, by e-BH; all limits are kept."""
    members = overlapping()

    def evidence(rng: Rng, streams: int) -> Floats:
        shape = (TIMES, streams, members.shape[1])
        rows = rng.poisson(size * rng.gamma(1.0, 1.0, members.shape[1]), shape)
        ones = rng.binomial(rows, rate).astype(np.float64)

        def parts(x: Floats) -> Floats:
            return target.parts(x, lambda y: y @ members.T).reshape(2, TIMES, -1)

        n, k = parts(rows.astype(np.float64)), parts(ones)
        stream = counted(n, k, question.relative, target)
        every = told(stream, question).reshape(TIMES, streams, -1)
        shares = error_shares(stream).reshape(streams, -1)
        shares = np.log(shares / shares.sum(axis=1, keepdims=True))
        alarms = [e_bh(every[:, s] + shares[s], ERROR)[0].any(axis=1) for s in range(streams)]
        return np.where(np.stack(alarms, axis=1), np.inf, 0.0)

    return evidence


def joining(rate: float) -> World:
    """Groups that turn up one by one, looked at by e-BH after every batch."""
    begin = EVERY * np.arange(JOINING)
    times = EVERY * JOINING

    def evidence(rng: Rng, streams: int) -> Floats:
        every = np.empty((times, streams, JOINING))
        for group, start in enumerate(begin):
            rows = np.broadcast_to(np.where(np.arange(times) < start, 0.0, 20.0), (2, times))
            n, k = drawn(rng, rows, [rate, rate], times, streams)
            every[:, :, group] = told(counted(n, k, False), NO_GAP)
        # shares as the verb gives them, by when each group has its first row
        rows = np.where(np.arange(times)[:, None] < begin, 0.0, 20.0)
        stream = counted(np.stack([rows, rows]), np.zeros((2, times, JOINING)), False)
        shares = np.log(error_shares(stream))
        alarms = [e_bh(every[:, s] + shares, ERROR)[0].any(axis=1) for s in range(streams)]
        return np.where(np.stack(alarms, axis=1), np.inf, 0.0)

    return evidence


# --- All of them ---


def worlds() -> Iterator[tuple[str, World, float, int]]:
    """Name, world, bar, and how many numbers a stream takes in memory."""
    both = {**QUESTIONS, **RANGES}
    for (name, question), rows, rate in itertools.product(both.items(), ROWS, RATES):
        words = f"{name}, {rows[0]} and {rows[1]} rows, rate {rate}"
        yield words, on_limit(question, rows, rate), BAR, TIMES
    for rows in ((20, 200), (100, 100)):
        for inside in (False, True):
            where = "ratio wanders above 0.8" if inside else "ratio stays 0.8"
            words = f"drift, {where}, {rows[0]} and {rows[1]} rows"
            yield words, drifting(rows, inside), BAR, TIMES
    for rate in (0.05, 0.5):
        yield f"few rows, often none, rate {rate}", changing(rate), BAR, TIMES
    for rate, size in ((0.05, 10.0), (0.5, 2.0)):
        for target in (Complement(), Overall()):
            words = f"40 groups, {type(target).__name__.lower()}, rate {rate}, {size:g} rows a cell"
            yield words, many(rate, RANGES["any gap"], target, size), BAR, 40 * TIMES
    words = f"{JOINING} groups, one more after every {EVERY} batches"
    yield words, joining(0.5), BAR, EVERY * JOINING * JOINING
    for rows, mean in (((20, 200), 0.2), ((20, 20), 0.5), ((100, 100), 0.05)):
        words = f"values in 0 to 1, {rows[0]} and {rows[1]} rows, mean {mean}"
        yield words + ", ratio", bounded(rows, mean, FOUR_FIFTHS), BAR, TIMES * max(rows)
        yield words + ", gap", bounded(rows, mean, NO_GAP), BAR, TIMES * max(rows)
    for rows, rate in (((20, 200), 0.2), ((100, 100), 0.05), ((20, 20), 0.05)):
        for heavy in (None, 3.0, 9.0):
            kind = "weights" if heavy is None else f"weights of 1 and {heavy:g} tied to the metric"
            words = f"{kind}, {rows[0]} and {rows[1]} rows, rate {rate}"
            size = TIMES * max(rows)
            yield words + ", ratio", weighted(rows, rate, FOUR_FIFTHS, heavy), ASYMPTOTIC, size
            yield words + ", gap below", weighted(rows, rate, BELOW, heavy), ASYMPTOTIC, size
    for rows in ((20, 200), (100, 100)):
        for name, law in LOSSES.items():
            words = f"{name}, {rows[0]} and {rows[1]} rows, gap"
            size = TIMES * max(rows)
            yield words + " above", unbounded(rows, law, NO_GAP), ASYMPTOTIC, size
            yield words + " below", unbounded(rows, law, BELOW), ASYMPTOTIC, size
    for clusters, each, rate in (
        ((20, 40), 5, 0.3),
        ((6, 6), 5, 0.3),
        ((20, 20), 5, 0.05),
        # rows enough in the first batch, and clusters enough only later
        ((4, 4), 20, 0.3),
    ):
        words = f"clusters of {each}, {clusters[0]} and {clusters[1]} a batch, rate {rate}"
        size = TIMES * max(clusters)
        yield words + ", ratio", clustered(clusters, each, rate, FOUR_FIFTHS), ASYMPTOTIC, size
        yield words + ", gap", clustered(clusters, each, rate, NO_GAP), ASYMPTOTIC, size


def run(full: bool = False) -> dict[str, Any]:
    """Measure them all; the quick run has 300 streams of each and wider bars."""
    streams = 10_000 if full else 300
    rows = []
    for place, (name, world, bar, size) in enumerate(worlds()):
        rng = np.random.default_rng([SEED, place])
        found = [world(rng, part) for part in chunks(streams, size)]
        known = all(not np.isnan(x).any() for x in found)
        share = float(np.mean(np.concatenate([(x >= -np.log(ERROR)).any(axis=0) for x in found])))
        row = {"world": name, **share_row(share, streams, bar, full), "known": known}
        row["agrees"] = row["agrees"] and known
        rows.append(row)
    result = {
        "source": "false_alarms",
        "seed": SEED,
        "streams": streams,
        "batches": TIMES,
        "rows": rows,
        "agrees": all(row["agrees"] for row in rows),
    }
    return write(__file__, "false_alarms", result, full)


if __name__ == "__main__":
    main("false_alarms", run)
