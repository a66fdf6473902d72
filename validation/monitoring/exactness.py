"""The mean of a batch's factor, by enumeration of everything that the batch can bring.

Bets are exact if no factor of any stake has a mean above one while the limit is kept. For small
parts all outcomes can be listed, so this is arithmetic, not simulation: every size of the parts,
every target, both sides, limits near the ends of what is possible, after different pasts; at rates
on a grid, and at rates exactly on the limit, where the mean is largest.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from records import main, write
from streams import Floats, counted, valued

from equipoise.methods.sequential import log_bets
from equipoise.methods.targets import Complement, Constant, Overall, Reference, Target

BAR = 1 + 1e-9
EPSILON = 1e-9
GRID = np.array([0.0, 1e-6, 0.003, 0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95, 0.999, 1.0])
GAPS = (-0.999, -0.9, -0.3, -0.01, 0.0, 0.01, 0.1, 0.5, 0.95, 1 - 1e-7)
RATIOS = (1e-6, 0.02, 0.5, 0.8, 1.0, 1.25, 3.0, 50.0)
PASTS = ((0, 0.0), (1, 0.0), (1, 1.0), (7, 0.3), (1000, 0.0), (1000, 0.01), (1000, 0.5))
"""Rows of every part before the batch, and the share of ones; parts are also made to disagree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A target, a side and the limits that are tried."""

    name: str
    target: Target
    relative: bool
    above: bool
    limits: tuple[float, ...]

    @property
    def parts(self) -> int:
        """Parts of a group and its target."""
        return len(self.target.group)

    def contrast(self, rows: Floats, rates: Floats, limit: float) -> Floats:
        """How far means lie beyond the limit, written down from the definition alone."""
        own, other = (np.array(x, dtype=float) for x in (self.target.group, self.target.against))
        mean = np.tensordot(own * rows, rates, axes=1) / (own * rows).sum()
        theta = np.asarray(self.target.number)
        if self.target.estimated:
            theta = np.tensordot(other * rows, rates, axes=1) / (other * rows).sum()
        theta = self.target.scale * theta
        beyond = mean - limit * theta if self.relative else mean - theta - limit
        return np.asarray(beyond if self.above else -beyond)


def cases() -> Iterator[Case]:
    """Every target, gap and ratio, above and below."""
    where = np.array([True])
    targets: dict[str, Target] = {
        "everyone else": Complement(),
        "everyone else, scaled": Complement(scale=0.8),
        "everyone": Overall(),
        "everyone, scaled": Overall(scale=1.25),
        "constant": Constant(value=0.3),
        "constant, scaled": Constant(value=0.9, scale=0.8),
        "overlapping reference": Reference(cells=where),
        "overlapping reference, scaled": Reference(cells=where, scale=0.8),
    }
    for (name, target), relative, above in itertools.product(
        targets.items(), (False, True), (True, False)
    ):
        yield Case(
            name=f"{name}, {'ratio' if relative else 'gap'} {'above' if above else 'below'}",
            target=target,
            relative=relative,
            above=above,
            limits=RATIOS if relative else GAPS,
        )


def pasts(parts: int) -> Floats:
    """Rows and ones of an earlier batch, ``(2, pasts, parts)``; some with parts that disagree."""
    found = [([n] * parts, [n * p] * parts) for n, p in PASTS]
    for flip in (0, 1):
        found.append(([200] * parts, [200.0 * ((j + flip) % 2) for j in range(parts)]))
        found.append(([1000, *[3] * (parts - 1)], [300.0, *[1.0 + flip] * (parts - 1)]))
    return np.array(found, dtype=np.float64).transpose(1, 0, 2)


def sizes(parts: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Rows of the parts; parts may be empty as long as somebody is there."""
    yield from (n for n in itertools.product(range(largest + 1), repeat=parts) if sum(n))


def factors(case: Case, rows: tuple[int, ...], outcomes: Floats, square: Floats | None) -> Floats:
    """Factors ``(stakes, pasts, limits, outcomes)`` of a batch that may end in each outcome."""
    before, limits = pasts(case.parts), np.array(case.limits)
    shape = (case.parts, before.shape[1], limits.size, outcomes.shape[1])

    def both(earlier: Floats, now: Floats) -> Floats:
        wide = np.broadcast_to(earlier.T[:, :, None, None], shape)
        here = np.broadcast_to(now[:, None, None, :], shape)
        return np.stack([wide, here], axis=1).reshape(case.parts, 2, -1)

    n = both(before[0], np.array(rows, dtype=np.float64)[:, None])
    total = both(before[1], outcomes)
    if square is None:
        stream = counted(n, total, case.relative, case.target)
    else:
        stream = valued(n, total, both(before[1], square), case.relative, case.target)
    limit = np.broadcast_to(limits[None, :, None], shape[1:]).ravel()
    bets = log_bets(stream, limit, above=case.above)[:, 1]
    return np.exp(bets).reshape(-1, *shape[1:])


def kept(case: Case, rows: Floats, limit: float) -> Floats:
    """Rates that keep the limit, ``(parts, rates)``: a grid, and points exactly on the limit."""
    grid = np.array(list(itertools.product(GRID, repeat=case.parts))).T
    found = [grid]
    for j in range(case.parts):
        # the contrast is linear: where does it vanish if only this part's rate moves?
        low, high = grid.copy(), grid.copy()
        low[j], high[j] = 0.0, 1.0
        start, end = (case.contrast(rows, x, limit) for x in (low, high))
        rise = np.where(end == start, 1.0, end - start)
        at = np.where(end == start, -1.0, -start / rise)
        found.append(np.where(np.arange(case.parts)[:, None] == j, at, grid))
    every = np.unique(np.concatenate(found, axis=1), axis=1)
    inside = ((every >= 0) & (every <= 1)).all(axis=0)
    every = every[:, inside]
    return every[:, case.contrast(rows, every, limit) <= 1e-15]


def asked(case: Case, rows: tuple[int, ...]) -> bool:
    """Whether the group and its target have rows."""
    own = sum(n for n, here in zip(rows, case.target.group, strict=True) if here)
    other = sum(n for n, here in zip(rows, case.target.against, strict=True) if here)
    return own > 0 and (other > 0 or not case.target.estimated)


def largest_mean(case: Case, rows: tuple[int, ...]) -> tuple[float, dict[str, Any]]:
    """The largest mean over stakes, pasts, limits and rates for one size of the parts."""
    outcomes = np.array(list(itertools.product(*(range(n + 1) for n in rows))), dtype=float).T
    factor = factors(case, rows, outcomes, None)
    if not asked(case, rows):
        return float(factor.max()), {"rows": rows}
    worst, where = -np.inf, {}
    for i, limit in enumerate(case.limits):
        rates = kept(case, np.array(rows, dtype=np.float64), limit)
        if rates.shape[1] == 0:
            continue
        chance = np.ones((outcomes.shape[1], rates.shape[1]))
        for j, n in enumerate(rows):
            chance *= binom.pmf(outcomes[j][:, None], n, rates[j])
        mean = factor[:, :, i] @ chance
        if mean.max() > worst:
            worst = float(mean.max())
            _, past, rate = np.unravel_index(int(mean.argmax()), mean.shape)
            where = {
                "rows": rows,
                "limit": limit,
                "past": pasts(case.parts)[:, past].tolist(),
                "rates": rates[:, rate].tolist(),
            }
    return worst, where


# --- A metric of three values ---


def three(n: int) -> Floats:
    """How often 0, 1/2 and 1 come in n rows, ``(outcomes, 3)``."""
    return np.array(
        [(n - a - b, a, b) for a in range(n + 1) for b in range(n + 1 - a)], dtype=np.float64
    )


def laws(mean: float) -> Floats:
    """Chances of 0, 1/2 and 1 with a given mean, from the widest to the narrowest."""
    wide = np.array([1 - mean, 0.0, mean])
    narrow = np.array([max(1 - 2 * mean, 0.0), 1 - abs(2 * mean - 1), max(2 * mean - 1, 0.0)])
    return np.array([wide, (wide + narrow) / 2, narrow])


def chances(counts: Floats, law: Floats) -> Floats:
    """Multinomial chance of each outcome."""
    n = int(counts[0].sum())
    ways = np.array([_ways(n, row) for row in counts])
    return np.asarray(ways * np.prod(law**counts, axis=1))


def _ways(n: int, row: Floats) -> float:
    size = [int(np.prod(np.arange(1, int(m) + 1))) for m in (n, *row)]
    return size[0] / (size[1] * size[2] * size[3])


def largest_mean_of_values(case: Case, rows: tuple[int, ...]) -> tuple[float, dict[str, Any]]:
    """As for counts, with rows of 0, 1/2 or 1."""
    lists = [three(n) for n in rows]
    total = np.array([[0.5 * c[1] + c[2] for c in cs] for cs in itertools.product(*lists)]).T
    square = np.array([[0.25 * c[1] + c[2] for c in cs] for cs in itertools.product(*lists)]).T
    factor = factors(case, rows, total, square)
    if not asked(case, rows):
        return float(factor.max()), {"rows": rows}
    worst, where = -np.inf, {}
    for i, limit in enumerate(case.limits):
        rates = kept(case, np.array(rows, dtype=np.float64), limit)
        # the points nearest the limit are the ones that can matter
        near = np.argsort(-case.contrast(np.array(rows, dtype=float), rates, limit))[:60]
        for rate in rates[:, near].T:
            for kinds in itertools.product(range(3), repeat=case.parts):
                chance = np.ones(1)
                for counts, p, kind in zip(lists, rate, kinds, strict=True):
                    chance = np.outer(chance, chances(counts, laws(p)[kind])).ravel()
                mean = float((factor[:, :, i] @ chance).max())
                if mean > worst:
                    worst, where = mean, {"rows": rows, "limit": limit, "rates": rate.tolist()}
    return worst, where


def run(full: bool = False) -> dict[str, Any]:
    """List everything; the quick run has smaller parts."""
    largest = {1: 6, 2: 6, 3: 5} if full else {1: 6, 2: 3, 3: 1}
    of_values = {1: 4, 2: 2, 3: 1} if full else {1: 2, 2: 1, 3: 0}
    rows: list[dict[str, Any]] = []
    for case in cases():
        for kind, mean_of, up_to in (
            ("0 or 1", largest_mean, largest),
            ("0, 1/2 or 1", largest_mean_of_values, of_values),
        ):
            designs = list(sizes(case.parts, up_to[case.parts]))
            if not designs:
                continue
            worst, where = max((mean_of(case, n) for n in designs), key=lambda x: x[0])
            rows.append(
                {
                    "case": case.name,
                    "metric": kind,
                    "sizes": len(designs),
                    "largest mean less one": worst - 1,
                    "where": where,
                    "agrees": worst <= BAR,
                }
            )
    result = {
        "source": "exactness",
        "bar": EPSILON,
        "largest mean less one": max(row["largest mean less one"] for row in rows),
        "rows": rows,
        "agrees": all(row["agrees"] for row in rows),
    }
    return write(__file__, "exactness", result, full)


if __name__ == "__main__":
    main("exactness", run)
