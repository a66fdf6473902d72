"""Whether losses seen once can be trusted: what rows of the same kind say about it.

A loss read off a table is taken to belong to its kind of people. Where the model is noisy, or knows
more than the features, it belongs to the row, and the worst of several rows is then bad by chance.
Rows of one kind that disagree would show it; where hardly any kind has two rows, none can.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import pdtrc

from equipoise.methods.numerics import BoolArray, FloatArray, IntArray


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
