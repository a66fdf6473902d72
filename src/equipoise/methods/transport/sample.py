"""A sample of independent units: rows, weighted rows or clusters, and what they say of the shares.

The share of a cell is its weight over the weight of all (Hájek's estimate). A unit moves the shares
by its own weight in each cell, less the share of the cell times all of its weight; the products of
these moves, added over units, are the covariance of the shares. For rows of equal weight that is
the covariance of a multinomial distribution.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import pdtrc

from equipoise.methods.numerics import BoolArray, FloatArray, IntArray

# --- What the numbers handed in must satisfy; each message says what was expected and what came


def losses_within(losses: npt.ArrayLike, cells: int, bounds: tuple[float, float]) -> FloatArray:
    """The losses as floats, one finite number per cell inside the bounds."""
    low, high = bounds
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"loss bounds must be two finite numbers in order; got {bounds}")
    array = np.asarray(losses, dtype=np.float64)
    if array.shape != (cells,):
        raise ValueError(f"expected one loss per cell ({cells}); got shape {array.shape}")
    outside = ~((array >= low) & (array <= high))
    if np.any(outside):
        cell = first(outside)
        raise ValueError(f"losses must lie in [{low:g}, {high:g}]; cell {cell} has {array[cell]:g}")
    return array


def budget_within(budget: float) -> float:
    """The budget as a float: zero, positive or infinite."""
    value = float(budget)
    if math.isnan(value) or value < 0:
        raise ValueError(f"the budget must be zero, positive or infinite; got {value:g}")
    return value


def counts_within(counts: npt.ArrayLike, cells: int) -> IntArray:
    """Row counts per cell as whole numbers, at least one row in all."""
    array = np.asarray(counts, dtype=np.float64)
    if array.shape != (cells,):
        raise ValueError(f"expected one count per cell ({cells}); got shape {array.shape}")
    wrong = ~(np.isfinite(array) & (array >= 0))
    if np.any(wrong):
        cell = first(wrong)
        raise ValueError(f"counts must be finite and not negative; cell {cell} has {array[cell]:g}")
    if np.any(array != np.rint(array)):
        raise ValueError(f"counts must be whole numbers; cell {first(array != np.rint(array))}")
    if array.sum() < 1:
        raise ValueError("there are no rows: every count is zero")
    return array.astype(np.int64)


def costs_within(costs: FloatArray, what: str) -> None:
    """Costs are not NaN and not negative; infinite means forbidden."""
    if np.any(np.isnan(costs)):
        raise ValueError(f"costs must not be NaN; {what} {first(np.isnan(costs))} is")
    if np.any(costs < 0):
        raise ValueError(f"costs must not be negative; {what} {first(costs < 0)} is")


def level_within(level: float) -> float:
    """The error rate that belongs to a confidence level."""
    if not 0 < level < 1:
        raise ValueError(f"a confidence level lies strictly between 0 and 1; got {level:g}")
    return 1 - level


def first(mask: BoolArray) -> int:
    """Position of the first true entry, counted along the flattened array."""
    return int(np.flatnonzero(mask)[0])


# --- A sample of independent units: rows, weighted rows or clusters, and what they say of the
# shares ---


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """Independent units, alike ones listed once, and the shares of the cells they add up to.

    Attributes
    ----------
    share
        Estimated share of each cell.
    times
        How many units there are of each kind.
    holds
        Weight of one unit of each kind (row) in each cell (column).
    rows
        How many rows of equal weight the rows are worth, if they were independent.
    plain
        Whether units are rows of equal weight.
    """

    share: FloatArray
    times: IntArray
    holds: sparse.csr_array
    rows: float
    plain: bool

    @property
    def cells(self) -> int:
        """Number of cells."""
        return int(self.share.size)

    @property
    def n(self) -> int:
        """Number of independent units."""
        return int(self.times.sum())

    @property
    def weights(self) -> FloatArray:
        """Weight of one unit of each kind."""
        return np.asarray(self.holds.sum(axis=1), dtype=np.float64).reshape(-1)

    @property
    def total(self) -> float:
        """Weight of all units."""
        return float(self.times @ self.weights)

    @property
    def degrees(self) -> float:
        """Degrees of freedom of a standard error: as many units of equal weight, less one."""
        if self.plain:
            return math.inf
        return self.total**2 / float(self.times @ self.weights**2) - 1

    @property
    def units(self) -> IntArray:
        """How many units have weight in each cell."""
        return np.asarray((self.holds > 0).T.astype(np.int64) @ self.times, dtype=np.int64)

    def error(self, values: FloatArray) -> float:
        """Standard error of the mean of values, one for each cell."""
        return math.sqrt(float(self.times @ self._moves(values) ** 2))

    def worth(self, values: FloatArray) -> float:
        """How many independent rows of equal weight would have the same standard error.

        A sample that happens to show a rare value in few clusters, or in light rows, takes it for
        better known than it is. So it is never worth more than all shares are on average, nor more
        than the rows are; and where no unit differs from another, as many as if every unit were as
        heavy as the heaviest.
        """
        if self.plain:
            return float(self.n)
        centred = values - self.share @ values
        variance, error = float(self.share @ centred**2), self.error(values)
        if error <= 1e-12 * float(np.abs(values).max(initial=0.0)):
            return min(self.rows, self.total / float(self.weights.max()))
        return min(self.rows, self._usual(), variance / error**2)

    def _usual(self) -> float:
        """The same for all shares together: the traces of both covariances, one over the other."""
        held, whole = self.holds, self.weights
        own = np.asarray((held**2).sum(axis=1)).reshape(-1)
        cross = np.asarray(held @ self.share)
        square = float(self.share @ self.share)
        moved = (own - 2 * whole * cross + whole**2 * square) * (self._growth() / self.total) ** 2
        error = float(self.times @ moved)
        return (1 - square) / error if error > 0 else math.inf

    def normals(self, size: int, stream: np.random.Generator) -> FloatArray:
        """Normal vectors with the covariance of √n × the shares, one in each row."""
        scale = np.sqrt(self.times * self.n) * self._growth() / self.total
        if self._single():
            # Units of one cell each: only the variance of each cell's weight matters. For plain
            # rows √f g − f Σ √f g has the covariance diag(f) − f fᵀ, Σ(f) in Theorem 3.1 of Xue,
            # Yurochkin and Sun.
            squares = (scale * self.weights) ** 2
            variance = np.bincount(self.holds.indices, squares, minlength=self.cells)
            free = stream.standard_normal((size, self.cells)) * np.sqrt(variance)
            return np.asarray(free - free.sum(axis=1, keepdims=True) * self.share)
        pulls = stream.standard_normal((size, scale.size)) * scale
        moved = (self.holds.T @ pulls.T).T
        return np.asarray(moved - (pulls @ self.weights)[:, None] * self.share)

    def resampled(self, units: int, size: int, stream: np.random.Generator) -> FloatArray:
        """Shares of resamples of so many units, drawn with replacement; one in each row."""
        drawn = stream.multinomial(units, self.times / self.n, size=size).astype(np.float64)
        weight = (self.holds.T @ drawn.T).T
        return np.asarray(weight / weight.sum(axis=1, keepdims=True))

    def split(self, share: float, rng: np.random.Generator) -> tuple["Sample", "Sample"]:
        """Two parts drawn at random without replacement; the first has this share of the units."""
        part = rng.multivariate_hypergeometric(
            self.times, round(share * self.n), method="marginals"
        )
        return self.part(part), self.part(self.times - part)

    def part(self, times: IntArray) -> "Sample":
        """The same kinds of units, so many of each."""
        keep = times > 0
        if not np.any(keep):
            raise ValueError(f"a part of {self.n} units has none: there are too few to split")
        rows = self.rows * float(times @ self.weights) / self.total
        return _sample(self.holds[keep], times[keep], rows, self.plain)

    def moved(self, place: IntArray, cells: int) -> "Sample":
        """The same units among more cells, each cell at a new place."""
        held = self.holds
        holds = sparse.csr_array(
            (held.data, place[held.indices], held.indptr), (held.shape[0], cells)
        )
        return _sample(holds, self.times, self.rows, self.plain)

    def _moves(self, values: FloatArray) -> FloatArray:
        """What one unit of each kind does to the mean of values."""
        mean = float(self.share @ values)
        # centred first, so that rounding does not pass for a difference
        return np.asarray(self.holds @ (values - mean) * self._growth() / self.total)

    def _growth(self) -> FloatArray:
        """A heavy unit counts for more, as if it had been left out; with n − 1 over n units."""
        if self.plain:
            return np.ones(self.times.size)
        left = np.maximum(1 - self.weights / self.total, 1e-9)
        return np.asarray(math.sqrt(1 - 1 / self.n) / left)

    def _single(self) -> bool:
        return bool(np.all(np.diff(self.holds.indptr) == 1))


def plain_sample(counts: npt.ArrayLike, cells: int) -> Sample:
    """Rows of equal weight, so many in each cell.

    >>> plain_sample([3, 0, 1], 3).share.tolist()
    [0.75, 0.0, 0.25]
    """
    whole = counts_within(counts, cells)
    seen = np.flatnonzero(whole)
    holds = sparse.csr_array((np.ones(seen.size), (np.arange(seen.size), seen)), (seen.size, cells))
    return _sample(holds, whole[seen], float(whole.sum()), plain=True)


def unit_sample(
    unit: npt.ArrayLike,
    cell: npt.ArrayLike,
    weight: npt.ArrayLike,
    *,
    cells: int,
    times: npt.ArrayLike | None = None,
    rows: float | None = None,
) -> Sample:
    """Units that may be heavy or light, and have weight in several cells.

    Parameters
    ----------
    unit
        Kind of unit of each entry, numbered from 0.
    cell
        The cell in which the entry has weight.
    weight
        The weight that one unit of the kind has there; kinds without any are left out.
    cells
        Number of cells.
    times
        How many units there are of each kind; one of each by default.
    rows
        How many rows of equal weight all rows are worth, (Σ w)² / Σ w²; by default that of units.

    Examples
    --------
    >>> sample = unit_sample([0, 0, 1], [0, 1, 1], [1.0, 1.0, 2.0], cells=2)
    >>> sample.n, sample.share.tolist()
    (2, [0.25, 0.75])
    """
    w = np.asarray(weight, dtype=np.float64)
    wrong = ~(np.isfinite(w) & (w >= 0))
    if np.any(wrong):
        raise ValueError(f"weights must be finite and not negative; entry {first(wrong)} is not")
    units = np.asarray(unit, dtype=np.int64)
    number = int(units.max()) + 1 if units.size else 0
    holds = sparse.csr_array((w, (units, np.asarray(cell, dtype=np.int64))), (number, cells))
    holds.sum_duplicates()
    holds.eliminate_zeros()
    many = np.ones(number, dtype=np.int64) if times is None else np.asarray(times, dtype=np.int64)
    if many.shape != (number,):
        raise ValueError(f"expected one number of units per kind ({number}); got {many.shape}")
    heavy = (np.diff(holds.indptr) > 0) & (many > 0)
    if not np.any(heavy):
        raise ValueError("there are no rows: every weight is zero")
    found = _sample(holds[heavy], many[heavy], math.inf, plain=False)
    worth = found.degrees + 1 if rows is None else rows
    return _sample(found.holds, found.times, worth, plain=False)


def _sample(holds: sparse.csr_array, times: IntArray, rows: float, plain: bool) -> Sample:
    weight = np.asarray(holds.T @ times.astype(np.float64))
    return Sample(share=weight / weight.sum(), times=times, holds=holds, rows=rows, plain=plain)


# --- Whether losses seen once can be trusted: what rows of the same kind say about it ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Which kinds of people may show a loss that is not theirs, and how many of them.

    Attributes
    ----------
    kinds
        Kinds of people seen.
    repeats
        Those with two independent rows or more.
    cells
        Which cells have too few rows to rule it out.
    number
        How many of these at most.
    """

    kinds: int
    repeats: int
    cells: BoolArray
    number: int

    def explains(self, amounts: FloatArray, place: IntArray) -> float:
        """The most that the doubtful cells can amount to, each swaying the part it lies in.

        Parameters
        ----------
        amounts
            What each part amounts to.
        place
            The part that each cell lies in.
        """
        swayed = np.unique(place[self.cells])
        return float(np.sort(amounts[swayed])[::-1][: self.number].sum())


def doubt(units: IntArray, error: float) -> Doubt:
    """How far losses can be trusted if rows of the same kind always had the same one.

    Call the most likely loss of a kind its own, and D the chance that two of its rows disagree. If
    r kinds with two rows or more all agree, their mean D is at most 1 − (error / 4)^(1/r), or else
    what was seen had a chance below error / 4: a product of 1 − D is at most the power of its mean.
    Kinds with fewer rows are taken to be no noisier. A row has another loss than its kind's own
    with a chance of at most D; all m rows of a kind have the same other loss with a chance of at
    most D / 2^(m−1), since no second loss is more likely than a half, and of at most 1 / 2^m if
    m > 1.

    So the kinds with most rows can be trusted together, as long as the chances of an exception add
    up to error / 2. Of the others, the number of exceptions is a sum of independent events with
    known mean. Its tail is at most that of Poisson's distribution (Hoeffding 1956, Anderson and
    Samuels 1967), and the number given is exceeded with a chance of at most error / 4.

    Parameters
    ----------
    units
        Independent units in each cell; cells without any do not count.
    error
        The chance of being wrong that is allowed.

    Examples
    --------
    >>> doubt(np.array([1] * 40), 0.05).number, doubt(np.array([30] * 8), 0.05).number
    (40, 0)
    >>> found = doubt(np.array([1] * 3 + [20] * 100), 0.05)
    >>> found.number, int(found.cells.sum())
    (1, 3)
    """
    seen = units > 0
    kinds, repeats = int(np.count_nonzero(seen)), int(np.count_nonzero(units >= 2))
    if repeats == 0:
        return Doubt(kinds=kinds, repeats=0, cells=seen, number=kinds)
    disagree = -math.expm1(math.log(error / 4) / repeats)
    # beyond a thousand rows the chance is zero in floats
    halves = np.exp2(1.0 - np.minimum(units, 1000))
    chance = np.where(seen, halves * np.where(units > 1, min(disagree, 0.5), disagree), 0.0)
    order = np.argsort(chance, kind="stable")
    cells = np.zeros(units.size, dtype=np.bool_)
    cells[order] = np.cumsum(chance[order]) > error / 2
    number = _most(float(chance[cells].sum()), int(np.count_nonzero(cells)), error / 4)
    return Doubt(kinds=kinds, repeats=repeats, cells=cells, number=number)


def _most(mean: float, events: int, error: float) -> int:
    """A number that so many independent events with this mean exceed with at most this chance."""
    # Poisson's tail is the larger one only above the mean
    number = math.ceil(mean)
    while number < events and pdtrc(number, mean) > error:
        number += 1
    return min(number, events)
