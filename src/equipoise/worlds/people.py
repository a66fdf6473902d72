"""People of three attributes, in forty overlapping groups, some of them of a handful of rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from equipoise.claims import Groups, intersections
from equipoise.errors import OptionError

Floats = npt.NDArray[np.float64]
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
