"""Whether an odds ratio is the same in all strata, by looking at every table that is possible."""

import itertools
import math
from collections.abc import Iterable

from scipy.optimize import brentq

from equipoise.methods.numerics import IntArray


def sameness_by_enumeration(n1: IntArray, n0: IntArray, k1: IntArray, k0: IntArray) -> float:
    """All tables with these margins and as many ones of the group; the odds cancel out."""
    ones = (k1 + k0).tolist()
    ranges = [
        range(max(0, m - b), min(a, m) + 1)
        for a, b, m in zip(n1.tolist(), n0.tolist(), ones, strict=True)
    ]

    def weight(log: float) -> list[list[float]]:
        out = []
        for a, b, m, ks in zip(n1.tolist(), n0.tolist(), ones, ranges, strict=True):
            ways = [math.log(math.comb(a, k) * math.comb(b, m - k)) + log * k for k in ks]
            raw = [math.exp(way - max(ways)) for way in ways]
            out.append([x / sum(raw) for x in raw])
        return out

    def expected(log: float) -> list[float]:
        pairs = zip(weight(log), ranges, strict=True)
        return [sum(w * k for w, k in zip(ws, ks, strict=True)) for ws, ks in pairs]

    log = brentq(lambda t: sum(expected(t)) - k1.sum(), -20, 20, xtol=1e-13)
    laws, means = weight(log), expected(log)
    spread = [
        sum(w * (k - e) ** 2 for w, k in zip(ws, ks, strict=True))
        for ws, ks, e in zip(laws, ranges, means, strict=True)
    ]

    def far(counts: Iterable[float]) -> float:
        return sum((k - e) ** 2 / v for k, e, v in zip(counts, means, spread, strict=True))

    seen, all_, beyond = far(k1.tolist()), 0.0, 0.0
    for counts in itertools.product(*ranges):
        if sum(counts) == k1.sum():
            chance = math.prod(
                ws[k - ks[0]] for ws, ks, k in zip(laws, ranges, counts, strict=True)
            )
            all_, beyond = all_ + chance, beyond + chance * (far(counts) >= seen - 1e-7)
    return beyond / all_
