"""Synthetic worlds with a known truth: for validation, for documentation, and to try a plan on.

The outcome of the first ones is Poisson(sin²x + 0.1) + 0.03 x ε₁ + 25·1{u < 0.01} ε₂ with x uniform
on [0, 5]. In place of a fitted quantile forest stands a fixed band, mean ± q·√(variance of the
counts + 0.1), with q set so that it covers exactly 90 % of the population. Its coverage at every x
is a sum of normal probabilities, so the truth of every range of x is known.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from math import erf, factorial

import numpy as np
import numpy.typing as npt

from equipoise.claims import Groups, intersections
from equipoise.errors import OptionError

__all__ = [
    "ConformalWorld",
    "LinearWorld",
    "People",
    "RiskTable",
    "SkewedWorld",
    "boundary_risks",
    "boundary_world",
    "conformal_world",
    "coverage",
    "interaction_risks",
    "linear_world",
    "null_world",
    "planted",
    "segment_risks",
    "skewed_world",
    "uneven_world",
]


# --- Coverage of a 90 % prediction band over the counts of Romano, Patterson and Candès (2019)

Floats = npt.NDArray[np.float64]

WIDTH = 5.0
_POINTS = 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConformalWorld:
    """Coverage of the band in equal bins of x on [0, 5]."""

    rate: Floats
    """True coverage in each bin."""

    def draw(self, n: int, rng: np.random.Generator) -> tuple[npt.NDArray[np.int64], ...]:
        """Points and covered points of each bin in a sample of ``n``."""
        bins = len(self.rate)
        rows = rng.multinomial(n, np.full(bins, 1 / bins))
        return rows, rng.binomial(rows, self.rate)

    def value(self, start: int, stop: int) -> float:
        """True coverage over the bins start … stop − 1."""
        return float(self.rate[start:stop].mean())


def conformal_world(bins: int = 50) -> ConformalWorld:
    """The world cut into ``bins`` bins.

    >>> world = conformal_world()
    >>> round(world.value(0, 50), 6)
    0.9
    """
    x = (np.arange(bins * _POINTS) + 0.5) * WIDTH / (bins * _POINTS)
    low, high = 0.0, 10.0
    # a wider band covers more, so halving finds the width: 40 times leave an error of 1e-11
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _covered(x, middle).mean() < 0.9 else (low, middle)
    return ConformalWorld(rate=_covered(x, low).reshape(bins, _POINTS).mean(axis=1))


def _covered(x: Floats, q: float) -> Floats:
    mean = np.sin(x) ** 2 + 0.1
    reach = q * np.sqrt(mean + 0.1)
    return coverage(x, mean - reach, mean + reach)


def coverage(x: Floats, low: Floats, high: Floats) -> Floats:
    """The chance that the outcome at each x lies between two ends.

    >>> coverage(np.array([1.0]), np.array([-100.0]), np.array([100.0])).round(3).tolist()
    [1.0]
    """
    mean = np.sin(x) ** 2 + 0.1
    covered = np.zeros_like(x)
    # one count in a hundred has an error with standard deviation 25
    for part, noise in ((0.99, 0.03 * x), (0.01, np.hypot(0.03 * x, 25.0))):
        for count in range(8):
            chance = np.exp(-mean) * mean**count / factorial(count)
            above, below = ((end - count) / noise for end in (high, low))
            covered += part * chance * (_phi(above) - _phi(below))
    return covered


def _phi(z: Floats) -> Floats:
    return np.array([0.5 * (1 + erf(value / np.sqrt(2))) for value in z.tolist()])


# --- Squared errors of a line fitted to noisy points: the worlds in which certificates were tried


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearWorld:
    """x uniform on [0, 1], y normal about slope·x, predicted by slope·x plus a slip.

    The metric is the squared error of the prediction. Its mean over a range of x is known.
    """

    slip: float
    """Slope of the fitted line minus the true slope."""
    heteroskedastic: bool
    """Whether the variance of y is x (else it is 1)."""

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Points x and squared errors of a sample of ``n``."""
        x = rng.random(n)
        noise = rng.standard_normal(n) * (np.sqrt(x) if self.heteroskedastic else 1.0)
        return x, (noise - self.slip * x) ** 2

    def value(self, start: Floats, stop: Floats) -> Floats:
        """True mean squared error over x in [start, stop].

        >>> world = LinearWorld(slip=0.0, heteroskedastic=True)
        >>> world.value(np.array([0.0]), np.array([0.6])).tolist()
        [0.3]
        """
        bias = self.slip**2 * (start**2 + start * stop + stop**2) / 3
        return np.asarray(bias + ((start + stop) / 2 if self.heteroskedastic else 1.0))


def linear_world(
    rng: np.random.Generator, *, heteroskedastic: bool, training: int = 1000
) -> LinearWorld:
    """Fit a line through the origin to ``training`` points and keep how far it is off.

    >>> abs(linear_world(np.random.default_rng(1), heteroskedastic=False).slip) < 0.3
    True
    """
    x = rng.random(training)
    noise = rng.standard_normal(training) * (np.sqrt(x) if heteroskedastic else 1.0)
    return LinearWorld(slip=float(x @ noise / (x @ x)), heteroskedastic=heteroskedastic)


# --- People of three attributes, in forty overlapping groups, some of them of a handful of rows

Ints = npt.NDArray[np.int64]

LEVELS: Mapping[str, tuple[str, ...]] = {
    "race": ("A", "B", "C", "D"),
    "sex": ("F", "M"),
    "age": ("old", "young"),
}
_SHARES = ((0.61, 0.26, 0.13, 0.0), (0.45, 0.55), (0.6, 0.4))
#: Cells in which nobody lives; with them there are exactly forty intersections.
_EMPTY = {(3, 0, 0), (3, 0, 1), (2, 0, 0)}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class People:
    """A population cut into cells of race, sex and age, each with a known rate of ones."""

    index: Ints
    """Level of each cell along race, sex and age: shape (cells, 3)."""
    share: Floats
    """Share of the population in each cell."""
    rate: Floats
    """Chance that the metric is 1 in each cell."""

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Rows and ones of each cell in a sample of ``n`` people."""
        rows = rng.multinomial(n, self.share)
        return rows, rng.binomial(rows, self.rate)

    def groups(self) -> Groups:
        """All intersections of race, sex and age: forty of them."""
        return intersections(*LEVELS)

    def value(self, where: Mapping[str, str]) -> float:
        """The true rate of a group, named as results name it.

        >>> null_world(rate=0.25).value({"race": "B", "sex": "F"})
        0.25
        """
        inside = self._inside(where)
        return float((self.share * self.rate)[inside].sum() / self.share[inside].sum())

    def overall(self) -> float:
        """The true rate of everybody."""
        return float((self.share * self.rate).sum())

    def table(self, n: int, rng: np.random.Generator) -> dict[str, list[str] | list[int]]:
        """A sample as a table of counts: race, sex, age, ``outcome`` and ``people``."""
        rows, ones = self.draw(n, rng)
        columns: dict[str, list[str] | list[int]] = {
            name: [levels[i] for i in self.index[:, axis] for _ in (0, 1)]
            for axis, (name, levels) in enumerate(LEVELS.items())
        }
        columns["outcome"] = [0, 1] * len(rows)
        columns["people"] = np.stack([rows - ones, ones], axis=1).ravel().tolist()
        return columns

    def _inside(self, where: Mapping[str, str]) -> npt.NDArray[np.bool_]:
        keep = np.ones(len(self.share), dtype=bool)
        for axis, (name, levels) in enumerate(LEVELS.items()):
            if name in where:
                keep &= self.index[:, axis] == levels.index(where[name])
        return keep


def null_world(*, rate: float = 0.3, smallest: float = 0.0015) -> People:
    """Every group has the same rate, so that every flag and every missed bound is an error.

    ``smallest`` is the share of the smallest cell: 3/n gives a group of about three people in a
    sample of n. It is a cell of race D, which has one other, twice as large.

    >>> len(null_world().share)
    13
    """
    index, share = _cells(smallest)
    return People(index=index, share=share, rate=np.full(len(share), _chance(rate)))


def boundary_world(
    *, target: float = 0.25, limit: float = 0.05, smallest: float = 0.0015
) -> People:
    """Every group lies exactly ``limit`` above the known ``target``: the hardest true null.

    >>> round(boundary_world().value({"sex": "M"}) - 0.25, 9)
    0.05
    """
    return null_world(rate=target + limit, smallest=smallest)


def uneven_world(*, rate: float = 0.3, spread: float = 0.15, smallest: float = 0.0015) -> People:
    """Rates differ from cell to cell by up to ``spread``, in a fixed pattern.

    >>> world = uneven_world()
    >>> world.value({"race": "A"}) != world.value({"race": "B"})
    True
    """
    index, share = _cells(smallest)
    # a fixed irregular pattern over the cells, between −1 and 1
    pattern = np.cos(2.4 * np.arange(len(share)) + 0.7)
    rates = rate + spread * pattern
    return People(index=index, share=share, rate=np.clip(rates, 0.0, 1.0))


def planted(world: People, where: Mapping[str, str], gap: float) -> People:
    """The same world with the rate of one group raised by ``gap``.

    >>> round(planted(null_world(), {"race": "C"}, 0.1).value({"race": "C"}), 9)
    0.4
    """
    rate = np.where(world._inside(where), world.rate + gap, world.rate)
    return People(index=world.index, share=world.share, rate=rate)


def _cells(smallest: float) -> tuple[Ints, Floats]:
    if not 0 < smallest < 0.1:
        raise OptionError(f"smallest must lie between 0 and 0.1; got {smallest!r}.")
    sizes = [len(levels) for levels in LEVELS.values()]
    places = [cell for cell in product(*map(range, sizes)) if cell not in _EMPTY]
    share = np.array([np.prod([s[i] for s, i in zip(_SHARES, c, strict=True)]) for c in places])
    rare = [i for i, cell in enumerate(places) if cell[0] == 3]
    # The two cells of race D hold this much and twice as much, the others the rest.
    share *= (1 - 3 * smallest) / share.sum()
    share[rare] = [smallest, 2 * smallest]
    return np.array(places, dtype=np.int64), share


def _chance(rate: float) -> float:
    if not 0 <= rate <= 1:
        raise OptionError(f"rate must lie between 0 and 1; got {rate!r}.")
    return rate


# --- Risk scores with a known truth: reliable for everyone, at the edge of a tolerance, or not

RiskTable = dict[str, Floats | list[str]]
"""Columns: features, ``score``, ``risk`` (the truth) and the outcome ``y``."""

#: Coefficients of x0, x1, … in the worlds in which the tests were tried.
LINE = (0.6, 0.4, 0.2)


def interaction_risks(
    n: int, *, rng: int | np.random.Generator, score: Callable[[Floats], Floats] | None = None
) -> RiskTable:
    """Ten uniform features; a line in three of them holds except in a corner of two.

    The log odds are 0.6 x0 + 0.4 x2 + 0.2 x3, but 0.2 x1 where x1 < -2 and x2 > 2. ``score`` is a
    function of the matrix of features; by default a line that knows nothing of the corner.

    >>> table = interaction_risks(5, rng=1)
    >>> sorted(table)[:3], len(table["y"])
    (['risk', 'score', 'x0'], 5)
    """
    rng = np.random.default_rng(rng)
    x = rng.uniform(-5, 5, (n, 10))
    line = x[:, 0] * LINE[0] + x[:, 2] * LINE[1] + x[:, 3] * LINE[2]
    # Both conditions at once: x1 < -2 and -x2 < -2.
    corner = np.maximum(x[:, 1], -x[:, 2]) < -2
    risk = logistic(np.where(corner, 0.2 * x[:, 1], line))
    scores = logistic(line) if score is None else score(x)
    return _table(_columns(x), scores, risk, rng)


def boundary_risks(
    n: int,
    *,
    rng: int | np.random.Generator,
    tolerance: float = 0.025,
    score: Callable[[Floats], Floats] | None = None,
) -> RiskTable:
    """Everybody's risk is the score plus the tolerance: the hardest case that is still tolerated.

    >>> table = boundary_risks(4, rng=1, tolerance=0.1)
    >>> bool(np.all(table["risk"] <= table["score"] + 0.1))
    True
    """
    rng = np.random.default_rng(rng)
    x = rng.uniform(-5, 5, (n, 10))
    scores = logistic(x[:, :3] @ LINE) if score is None else score(x)
    return _table(_columns(x), scores, np.clip(scores + tolerance, 0, 1), rng)


def segment_risks(n: int, *, rng: int | np.random.Generator, levels: int = 6) -> RiskTable:
    """A perfectly calibrated score and two attributes that mean nothing.

    With six levels each they cut people into 48 overlapping segments.

    >>> sorted(segment_risks(3, rng=1))
    ['a', 'b', 'risk', 'score', 'y']
    """
    rng = np.random.default_rng(rng)
    names = [f"level {i + 1}" for i in range(levels)]
    columns = {name: rng.choice(names, n).tolist() for name in ("a", "b")}
    risk = rng.beta(2, 3, n)
    return _table(columns, risk, risk, rng)


def logistic(odds: Floats) -> Floats:
    """The probability with these log odds."""
    return np.asarray(1 / (1 + np.exp(-odds)))


def _columns(x: Floats) -> dict[str, Floats]:
    return {f"x{i}": x[:, i] for i in range(x.shape[1])}


def _table(
    columns: Mapping[str, Floats | list[str]],
    score: Floats,
    risk: Floats,
    rng: np.random.Generator,
) -> RiskTable:
    outcome = (rng.random(len(risk)) < risk).astype(np.float64)
    return {**columns, "score": score, "risk": risk, "y": outcome}


# --- A real-valued metric with a long right tail, the same in every group ---


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SkewedWorld:
    """Cells of given shares; the metric is gamma with mean 1 and the given shape everywhere."""

    share: Floats
    """Share of each cell."""
    shape: float
    """Shape of the gamma distribution: skewness is 2/√shape."""

    def draw(self, n: int, rng: np.random.Generator) -> tuple[npt.NDArray[np.int64], Floats]:
        """Cell and metric of each of ``n`` rows."""
        cell = rng.choice(len(self.share), size=n, p=self.share)
        return cell, rng.gamma(self.shape, 1 / self.shape, size=n)


def skewed_world(cells: int = 12, *, shape: float = 0.5) -> SkewedWorld:
    """Cells whose shares fall geometrically, so that some hold a handful of rows.

    >>> skewed_world(3).share.round(3).tolist()
    [0.571, 0.286, 0.143]
    """
    share = 0.5 ** np.arange(cells)
    return SkewedWorld(share=share / share.sum(), shape=shape)
