"""How soon a disparity is found: ours beside what else could be done, on the same streams.

Every method looks after every batch with an error of 5 %. It counts as valid if its alarms on the
limit, in the same run, are at most 5 %. Open-ended methods may go on for ever; planned looks end
after 104, and the same test again and again is here to show what it costs.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import betaln, ndtr, ndtri, xlog1py, xlogy

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from planned import critical_scores, expected_core, plenty, scores_of
from records import main, standard_error, write
from streams import (
    ERROR,
    FOUR_FIFTHS,
    NO_GAP,
    TIMES,
    Bools,
    Floats,
    Question,
    Rng,
    columns,
    counted,
    first,
    median,
    told,
)

from equipoise.methods.inference.counts import constrained_rates

SEED, SLACK = 84, 1.1
ROWS = ((20, 200), (100, 100))
PUBLISHED = {("20/200", 0.7): 36, ("20/200", 0.6): 10, ("100/100", 0.7): 14, ("100/100", 0.6): 4}
"""Section 8 of the methods, at a base rate of 0.5 and a limit of 0.8."""
TENTH = 0.1
OPEN_ENDED = ("ours", "plug-in", "universal inference", "normal mixture", "pairs")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drawn:
    """Streams with their rows in the order in which they came."""

    rows: tuple[int, int]
    own: Floats
    """Ones of the group's rows, ``(T, pairs, S)``."""
    other: Floats
    """Share of ones among the other rows that are paired with each, alike."""
    question: Question
    excess: float
    """How far beyond the limit the contrast really is, or is said to be."""

    @property
    def ones(self) -> Floats:
        """Ones of both parts, ``(2, T, S)``."""
        each = self.rows[1] / self.own.shape[1]
        return np.stack([self.own.sum(axis=1), (self.other * each).sum(axis=1).round()])

    @property
    def size(self) -> Floats:
        """Rows of both parts, in the same shape."""
        return np.broadcast_to(columns(self.rows), (2, *self.own.shape[::2]))

    @property
    def slope(self) -> Floats:
        """The null says Σ slope · rate ≤ value."""
        factor = self.question.limit if self.question.relative else 1.0
        return (1.0 if self.question.above else -1.0) * np.array([1.0, -factor])

    @property
    def value(self) -> float:
        """What the contrast must not exceed."""
        sign = 1.0 if self.question.above else -1.0
        return 0.0 if self.question.relative else sign * self.question.limit


def draw(
    rng: Rng, rows: tuple[int, int], rates: tuple[float, float], question: Question, streams: int,
    excess: float,
) -> Drawn:  # fmt: skip
    """Rows of a group, each beside as many others as there are to a row."""
    shape = (TIMES, rows[0], streams)
    each = rows[1] // rows[0]
    own = (rng.random(shape, dtype=np.float32) < rates[0]).astype(np.float64)
    other = rng.binomial(each, rates[1], shape) / each
    return Drawn(rows=rows, own=own, other=other, question=question, excess=excess)


# --- Methods: batches at which each raises an alarm, (T, S) ---


def ours(x: Drawn) -> Bools:
    """The evidence of the package."""
    stream = counted(x.size, x.ones, x.question.relative)
    return np.asarray(told(stream, x.question) >= -np.log(ERROR))


def plug_in(x: Drawn) -> Bools:
    """Likelihood of the past's rates against the nearest rates on the limit."""
    n, k = x.size, x.ones
    before_n, before_k = (np.cumsum(y, axis=1) - y for y in (n, k))
    guess = (before_k + 0.5) / (before_n + 1)
    fitted = _projected(x, n, guess)
    log = xlogy(k, guess / fitted) + xlogy(n - k, (1 - guess) / (1 - fitted))
    return np.asarray(np.cumsum(log.sum(axis=0), axis=0) >= -np.log(ERROR))


def universal(x: Drawn) -> Bools:
    """A beta mixture of likelihoods over the largest likelihood that keeps the limit."""
    n, k = (np.cumsum(y, axis=1) for y in (x.size, x.ones))
    rate = np.clip(k / n, 1e-9, 1 - 1e-9)
    fitted = _projected(x, n, rate)
    mixture = betaln(k + 0.5, n - k + 0.5) - betaln(0.5, 0.5)
    best = xlogy(k, fitted) + xlog1py(n - k, -fitted)
    return np.asarray((mixture - best).sum(axis=0) >= -np.log(ERROR))


def _projected(x: Drawn, n: Floats, rates: Floats) -> Floats:
    """The most likely rates that keep the limit, by n rows of given rates."""
    flat = (2, -1)
    slope = np.broadcast_to(x.slope[:, None], (2, rates[0].size))
    value = np.full(rates[0].size, x.value)
    fitted, _ = constrained_rates(n.reshape(flat), rates.reshape(flat), slope, value)
    beyond = (slope * rates.reshape(flat)).sum(axis=0) > value
    kept = np.where(beyond, fitted, rates.reshape(flat)).reshape(rates.shape)
    return np.clip(kept, 1e-12, 1 - 1e-12)


def normal_mixture(x: Drawn) -> Bools:
    """Robbins' one-sided normal mixture, tuned to an excess of a tenth of a standard deviation."""
    return _mixture(x, None)


def tuned_mixture(x: Drawn) -> Bools:
    """The same, told the true excess: what nobody knows, as a mark to measure by."""
    return _mixture(x, x.excess)


def _mixture(x: Drawn, excess: float | None) -> Bools:
    n, k = (np.cumsum(y, axis=1) for y in (x.size, x.ones))
    rate = k / n
    slope = x.slope[:, None, None]
    variance = (slope**2 * rate * (1 - rate) / n).sum(axis=0)
    told_by = np.divide(1.0, variance, out=np.zeros_like(variance), where=variance > 0)
    score = told_by * ((slope * rate).sum(axis=0) - x.value)
    tuned: Any = excess
    if excess is None:
        tuned = TENTH * np.sqrt((slope**2 * rate * (1 - rate)).sum(axis=0))
    wide = 1 + told_by * tuned**2
    scaled = score * tuned / np.sqrt(wide)
    log = np.log(2) - np.log(wide) / 2 + scaled**2 / 2 + np.log(np.maximum(ndtr(scaled), 1e-300))
    return np.asarray(log >= -np.log(ERROR))


def pairs(x: Drawn) -> Bools:
    """A bet on every row of the group beside its other rows, with the stake of aGRAPA."""
    times, each, streams = x.own.shape
    d = (x.slope[0] * x.own + x.slope[1] * x.other - x.value).reshape(-1, streams)
    count = np.arange(times * each)[:, None]
    before, squares = (np.cumsum(y, axis=0) - y for y in (d, d**2))
    mean = before / (count + 1)
    second = (squares + 0.25) / (count + 1)
    lowest = np.minimum(x.slope, 0).sum() - x.value
    # half of what would risk everything, as its authors advise
    stake = np.clip(mean / second, 0.0, 0.5 / abs(lowest))
    log = np.cumsum(np.log1p(stake * d), axis=0)[each - 1 :: each]
    return np.asarray(log >= -np.log(ERROR))


@lru_cache(maxsize=1)
def _scores(x: Drawn) -> Floats:
    """The core's scores of everything seen so far; minus infinity where the verb does not test."""
    n, k = (np.cumsum(y, axis=1) for y in (x.size, x.ones))
    return np.where(plenty(n, k), scores_of(n, k, x.question), -np.inf)


@cache
def _boundaries(rows: tuple[int, int], question: Question) -> Floats:
    """Worked out once for each design, since outcomes hardly matter to them."""
    core = expected_core(rows, [question.at_limit(0.4), 0.4], question.relative, 1)
    return critical_scores(core, TIMES, 0, 1)


def planned(x: Drawn) -> Bools:
    """104 planned looks."""
    return np.asarray(_scores(x) >= _boundaries(x.rows, x.question)[:, None])


def naive(x: Drawn) -> Bools:
    """The same test at 5 % after every batch."""
    return np.asarray(_scores(x) >= -ndtri(ERROR))


METHODS: dict[str, Callable[[Drawn], Bools]] = {
    "ours": ours,
    "plug-in": plug_in,
    "universal inference": universal,
    "normal mixture": normal_mixture,
    "pairs": pairs,
    "normal mixture, told the truth": tuned_mixture,
    "planned looks": planned,
    "naive": naive,
}


# --- Designs ---


def measured(
    rows: tuple[int, int], base: float, question: Question, beyond: tuple[float, ...],
    streams: int, seed: list[int], full: bool,
) -> list[dict[str, Any]]:  # fmt: skip
    """All methods on the limit and beyond it."""
    limit = question.at_limit(base)
    found = []
    for effect in beyond:
        own = effect * base if question.relative else base + effect
        times = {}
        # the same draws for all methods, and on the limit as tuned for this effect
        for kind, rate in (("limit", limit), ("beyond", own)):
            rng = np.random.default_rng([*seed, int(1000 * rate)])
            when: dict[str, list[Floats]] = {name: [] for name in METHODS}
            for start in range(0, streams, 250):
                part = min(250, streams - start)
                x = draw(rng, rows, (rate, base), question, part, abs(own - limit))
                for name, method in METHODS.items():
                    when[name].append(first(method(x)))
            times[kind] = {name: np.concatenate(y) for name, y in when.items()}
        found.append(_row(rows, base, question, effect, times, streams, full))
    return found


def _row(
    rows: tuple[int, int], base: float, question: Question, effect: float,
    times: dict[str, dict[str, Floats]], streams: int, full: bool,
) -> dict[str, Any]:  # fmt: skip
    slack = 0.0 if full else 3 * standard_error(ERROR, streams)
    methods: dict[str, dict[str, Any]] = {
        name: {
            "delay": median(delay),
            "found": float(np.isfinite(delay).mean()),
            "false": float(np.isfinite(times["limit"][name]).mean()),
        }
        for name, delay in times["beyond"].items()
    }
    for one in methods.values():
        one["valid"] = one["false"] <= ERROR + slack
    valid = {n: methods[n] for n in OPEN_ENDED if n != "ours" and methods[n]["valid"]}
    row: dict[str, Any] = {
        "rows": f"{rows[0]}/{rows[1]}",
        "base": base,
        "question": "ratio below 0.8" if question.relative else "gap above 0",
        "truth": effect,
        "methods": methods,
        "best other": _best(valid),
        "published": PUBLISHED.get((f"{rows[0]}/{rows[1]}", effect)) if base == 0.5 else None,
    }
    return row | {"agrees": _keeps_up(row, times["beyond"]["ours"])}


def _best(valid: dict[str, dict[str, Any]]) -> str | None:
    """The quickest of the valid ones; where none finds half, the one that finds most."""
    return min(valid, key=lambda n: (valid[n]["delay"] or np.inf, -valid[n]["found"]), default=None)


def _keeps_up(row: dict[str, Any], delay: Floats) -> bool:
    mine = row["methods"]["ours"]
    if not mine["valid"]:
        return False
    good = True
    if row["best other"] is not None:
        best = row["methods"][row["best other"]]
        if best["delay"] is None:
            good = mine["delay"] is not None or mine["found"] * SLACK >= best["found"]
        else:
            allowed = SLACK * best["delay"] + (1 if best["delay"] < 10 else 0)
            good = mine["delay"] is not None and mine["delay"] <= allowed
    if row["published"] is not None:
        # the sampling error of a median: what its lower end would be
        lower = float(np.quantile(delay, 0.5 - 1.5 / delay.size**0.5))
        good = good and lower <= row["published"]
    return bool(good)


def run(full: bool = False) -> dict[str, Any]:
    """Measure all designs; the quick run has fewer streams."""
    streams = 2000 if full else 100
    rows = []
    for place, (size, base) in enumerate(itertools.product(ROWS, (0.5, 0.1))):
        for question, beyond in ((FOUR_FIFTHS, (0.7, 0.6)), (NO_GAP, (0.05, 0.1))):
            seed = [SEED, place, int(question.relative)]
            rows += measured(size, base, question, beyond, streams, seed, full)
    result = {
        "source": "delay",
        "seed": SEED,
        "streams": streams,
        "batches": TIMES,
        "rows": rows,
        "agrees": all(row["agrees"] for row in rows),
    }
    return write(__file__, "delay", result, full)


if __name__ == "__main__":
    main("delay", run)
