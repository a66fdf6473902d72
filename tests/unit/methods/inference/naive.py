"""Plain definitions, row by row and table by table: slow, and easy to check by eye."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import beta, binom, norm

from equipoise.methods.numerics import BoolArray, FloatArray, GroupSums, IntArray
from equipoise.methods.targets import (
    Complement,
    Constant,
    Moments,
    Overall,
    Reference,
    Target,
    plain_moments,
)

# --- binomials -----------------------------------------------------------------------------------


def chances(n: float, rate: float) -> list[tuple[float, float]]:
    """Shares and chances of a binomial; a fraction of a row gives differences of beta tails."""
    if n == int(n):
        return [(k / n, float(binom.pmf(k, int(n), rate))) for k in range(int(n) + 1)]
    top = int(np.ceil(n))
    at_most = [float(beta.sf(rate, k + 1, n - k)) if k < n else 1.0 for k in range(top + 1)]
    steps = np.diff([0.0, *at_most])
    return [(min(k / n, 1.0), float(p)) for k, p in enumerate(steps)]


def written_out(
    rows: list[float], rates: list[float], a: list[float], seen: float, noise: float
) -> tuple[float, float]:
    """P(Σ a k/n + noise ≥ seen) and P(… ≤ seen), by a loop over all outcomes."""
    up = down = 0.0
    hair = 1e-11 * (sum(map(abs, a)) + abs(seen))
    for outcome in product(*(chances(n, p) for n, p in zip(rows, rates, strict=True))):
        value = sum(x * share for x, (share, _) in zip(a, outcome, strict=True))
        chance = float(np.prod([p for _, p in outcome]))
        if noise > 0:
            up += chance * float(norm.sf((seen - value) / np.sqrt(noise)))
            down += chance * float(norm.cdf((seen - value) / np.sqrt(noise)))
        else:
            up += chance * (value >= seen - hair)
            down += chance * (value <= seen + hair)
    return up, down


def two_part_tails(
    n: tuple[int, int], k: tuple[int, int], delta: float, theta: float, factor: float = 1.0
) -> tuple[float, float]:
    """Tails of k₁/n₁ − factor·k₂/n₂ over all tables, the target's rate being ``theta``."""
    rates = [factor * theta + delta, theta]
    seen = k[0] / n[0] - factor * k[1] / n[1]
    return written_out([float(x) for x in n], rates, [1.0, -factor], seen, 0.0)


def most_likely_theta(
    n: tuple[int, int], k: tuple[int, int], delta: float, factor: float = 1.0
) -> float:
    """The target's rate that makes the table most likely if μ = factor·θ + δ."""
    low = max(0.0, -delta / factor)
    high = min(1.0, (1 - delta) / factor)

    def lost(theta: float) -> float:
        mu = np.clip(factor * theta + delta, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            return -float(binom.logpmf(k[0], n[0], mu) + binom.logpmf(k[1], n[1], theta))

    found = minimize_scalar(lost, bounds=(low, high), method="bounded", options={"xatol": 1e-12})
    # the search keeps off the ends, where the most likely value often is
    return float(min((low, float(found.x), high), key=lost))


# --- rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows in cells, with values and weights, and groups as tables of cells."""

    cell: IntArray
    value: FloatArray
    weight: FloatArray
    groups: BoolArray
    """Which cells each group consists of, shape ``(G, C)``."""
    reference: BoolArray
    """Which cells make up the reference group."""

    @property
    def cells(self) -> int:
        return self.groups.shape[1]

    def moments(self) -> Moments:
        if bool((self.weight == 1).all()):
            powers = [self._sum(self.value**p) for p in range(4)]
            return plain_moments(*powers)
        names = {
            "rows": (0, 0),
            "weight": (1, 0),
            "total": (1, 1),
            "weight2": (2, 0),
            "total2": (2, 1),
            "square2": (2, 2),
            "weight3": (3, 0),
            "total3": (3, 1),
            "square3": (3, 2),
            "cube3": (3, 3),
        }
        return Moments(
            **{name: self._sum(self.weight**i * self.value**j) for name, (i, j) in names.items()}
        )

    def _sum(self, x: FloatArray) -> FloatArray:
        return np.bincount(self.cell, weights=x, minlength=self.cells).astype(np.float64)

    @property
    def sums(self) -> GroupSums:
        table = self.groups.astype(np.float64)
        return lambda x: np.asarray(x @ table.T)

    def member(self, group: int) -> BoolArray:
        return np.asarray(self.groups[group][self.cell])

    def compared(self, target: Target, group: int) -> BoolArray:
        """Rows of a group's target, none if it is a number."""
        if isinstance(target, Constant):
            return np.zeros(self.cell.size, dtype=bool)
        if isinstance(target, Overall):
            return np.ones(self.cell.size, dtype=bool)
        if isinstance(target, Complement):
            return ~self.member(group)
        return np.asarray(self.reference[self.cell])

    def mean(self, inside: BoolArray) -> float:
        return float(np.average(self.value[inside], weights=self.weight[inside]))

    def theta(self, target: Target, group: int) -> float:
        if isinstance(target, Constant):
            return target.value
        return self.mean(self.compared(target, group))

    def estimate(self, target: Target, group: int, relative: bool) -> float:
        mean, theta = self.mean(self.member(group)), target.scale * self.theta(target, group)
        return mean / theta if relative else mean - theta

    def influence(self, target: Target, group: int, factor: float) -> FloatArray:
        """How much each row moves mean − factor · target."""
        out = np.zeros(self.cell.size)
        for inside, times in ((self.member(group), 1.0), (self.compared(target, group), -factor)):
            if inside.any():
                w = np.where(inside, self.weight, 0.0)
                out = out + times * w * (self.value - self.mean(inside)) / w.sum()
        return out

    def parts(self, target: Target, group: int) -> list[BoolArray]:
        """Disjoint masks of the rows that matter: group only, both, target only."""
        own, other = self.member(group), self.compared(target, group)
        return [own & ~other, own & other, other & ~own]


def make_rows(
    seed: int,
    n: int = 160,
    *,
    draw: Callable[[np.random.Generator, int], FloatArray] | None = None,
    weighted: bool = False,
) -> Rows:
    """A table of six cells with four overlapping groups."""
    rng = np.random.default_rng(seed)
    groups = np.array(
        [[1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 1, 0, 1, 0, 1]], dtype=bool
    )
    cell = rng.choice(6, size=n, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
    value = rng.gamma(2.0, 0.5, n) if draw is None else draw(rng, n)
    return Rows(
        cell=cell,
        value=value + 0.2 * (cell == 1) * (draw is None),
        weight=rng.lognormal(0.0, 0.5, n) if weighted else np.ones(n),
        groups=groups,
        reference=np.array([False, True, True, False, False, False]),
    )


def targets_of(rows: Rows) -> dict[str, Target]:
    return {
        "constant": Constant(value=0.4),
        "overall": Overall(),
        "scaled": Overall(scale=0.8),
        "complement": Complement(),
        "reference": Reference(cells=rows.reference),
    }


TARGETS = ["constant", "overall", "scaled", "complement", "reference"]

# --- skewness ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Part:
    """Rows that pull at an estimate alike."""

    slope: float
    """How much the estimate rises with a unit of weight times metric."""
    weight: FloatArray
    moves: FloatArray
    """How much each row moves the estimate."""


def kish(weight: FloatArray) -> float:
    """How many rows of equal weight these are worth."""
    return float(weight.sum() ** 2 / (weight**2).sum())


def turned(t: float, g: float) -> float:
    """Hall (1992), held where it becomes flat."""
    if g != 0 and t * g < -3:
        t = -3 / g
    return t + g * t**2 / 3 + g**2 * t**3 / 27 + g / 6


def usual(shape: float, parts: list[Part], way: int, *, tilted: bool = False) -> float:
    """Skewness from the parts that pull one way, if all rows had this shape.

    The cells of a tilt, of a row or two, are all taken to have one spread.
    """
    seen = alike = square = square_alike = 0.0
    for part in parts:
        a, w = part.slope, part.weight
        own = float((part.moves**2).sum())
        square += own
        # rows count with their average weight
        each, n = a * w.mean(), w.size
        square_alike += n * each**2
        if way * a > 0 and abs(a) > 1e-12:
            seen += way * n * (own / n) ** 1.5
            alike += n * each**3
    both = 0.0 if tilted else seen / square**1.5, alike / square_alike**1.5
    return float(shape * max(both, key=abs))


def shape_of_rows(value: FloatArray, weight: FloatArray, cell: IntArray) -> float:
    """Skewness of all rows about the means of their cells, or that of the typical cell."""
    inside = [cell == c for c in np.unique(cell)]
    sizes = [max(kish(weight[mask]), 1.0) for mask in inside]
    moves, squares, cubes, each, noise = np.zeros(value.size), 0.0, 0.0, [], 0.0
    for mask, n in zip(inside, sizes, strict=True):
        x, w = value[mask], weight[mask]
        moves[mask] = w * (x - np.average(x, weights=w))
        # central moments of n rows fall short by (n − 1)/n and (n − 1)(n − 2)/n²
        worth2 = w.size * (n - 1) / n
        worth3 = w.size * (n - 1) * max(n - 2, 0.0) / n**2
        squares, cubes = squares + worth2, cubes + worth3
        second = (moves[mask] ** 2).sum() / worth2 if np.ptp(x) > 0 else 0.0
        third = (moves[mask] ** 3).sum() / worth3 if worth3 > 0 else 0.0
        each.append(third / second**1.5 if second > 0 else 0.0)
        # n normal rows of variance v have third moments that vary by 6 n v³
        noise += 6 * n * ((moves[mask] ** 2).sum() / n) ** 3 if second > 0 else 0.0
    if cubes < weight.size / 2:
        # five rows to a cell show no shape: then it is that about the mean of all
        moves = weight * (value - np.average(value, weights=weight))
        squares = cubes = float(weight.size)
        each = []
        noise = 6 * sum(sizes) * ((moves**2).sum() / sum(sizes)) ** 3
    pooled = (moves**3).sum() / cubes / ((moves**2).sum() / squares) ** 1.5
    beyond = pooled**2 - noise / sum(sizes) ** 2 / ((moves**2).sum() / sum(sizes)) ** 3
    pooled = np.sign(pooled) * np.sqrt(max(beyond, 0.0))
    # n rows without skewness show a squared one of 6/n by chance
    known = [(n, g) for n, g in zip(sizes, each, strict=False) if g != 0]
    square = sum(n * g**2 - 6 for n, g in known) / sum(sizes)
    typical = np.sign(sum(n * g for n, g in known)) * np.sqrt(max(square, 0.0))
    return float(max(pooled, typical, key=abs))
