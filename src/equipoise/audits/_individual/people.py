"""Who is comparable with whom: cells of people by features and label."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise._validate import known_name, listing
from equipoise.audits._trail_checks import rows_alone
from equipoise.cells import Cells, gather
from equipoise.cells.cells import Axis
from equipoise.cells.merge import merge
from equipoise.cells.views import level_where
from equipoise.cells.words import level_text
from equipoise.claims import Metric, overall
from equipoise.claims.claim import Gap
from equipoise.claims.dimension import Dimension, Levels, as_dimension
from equipoise.claims.groups import Intersections
from equipoise.errors import ClaimError, OptionError
from equipoise.methods.arrays import BoolArray, FloatArray, IntArray
from equipoise.trail import Trail

#: More cells than this are refused, those without rows included.
MAX_PEOPLE = 200_000
#: Up to this many, a model is asked about every combination of levels there could be.
MAX_CROSS = 20_000
#: A feature with more levels than this is more likely a measurement than a kind of people.
MAX_LEVELS = 200

_LABEL = Metric(
    name="label", value="label", binary=("label",), by_role=True, zero_one=True, low=0.0, high=1.0
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class People:
    """Kinds of people: one cell for each combination of features and label."""

    features: tuple[Axis, ...]
    """The features, the varied ones included."""
    varied: tuple[int, ...]
    """Positions of the varied features."""
    index: IntArray
    """Level of each cell along each feature, and last its label, 0 or 1."""
    counts: IntArray
    """Rows of each cell."""
    losses: FloatArray | None
    """Mean loss of the rows of each cell; None if the trail was not asked for it."""
    mixed: int
    """Cells whose rows do not all have the same loss."""
    cells: Cells
    """The cells as gathered, for the record."""
    complete: bool = False
    """Whether every combination of levels is a cell."""

    def __len__(self) -> int:
        return len(self.index)

    @property
    def label(self) -> IntArray:
        """The label of each cell."""
        return self.index[:, -1]

    def classes(self) -> IntArray:
        """The class of each cell: label and every feature that is not varied."""
        rest = [i for i in range(self.index.shape[1]) if i not in self.varied]
        _, place = np.unique(self.index[:, rest], axis=0, return_inverse=True)
        return place.reshape(-1).astype(np.int64)

    def where(self, cell: int) -> dict[str, Any]:
        """The features of a cell as data."""
        return {
            axis.name: level_where(axis, int(self.index[cell, i]))
            for i, axis in enumerate(self.features)
        }

    def words(self, cell: int, only: Sequence[int] | None = None) -> str:
        """The features of a cell in words; ``only`` some of them if asked."""
        shared = _shared_texts(self.features)
        texts = []
        for i in range(len(self.features)) if only is None else only:
            axis = self.features[i]
            level = axis.levels[int(self.index[cell, i])]
            texts.append(level_text(axis.dimension, level, level not in shared))
        return ", ".join(texts)


def find_people(
    trail: Trail, features: Any, vary: Any, loss: Metric | None, max_levels: int = MAX_LEVELS
) -> People:
    """Gather the cells in one scan; ``loss`` is None when a model will be asked for losses."""
    chosen = _features(trail, features)
    varied = _varied(vary, chosen)
    label = trail.roles.column("label")
    # Here alone the label is one more attribute: comparable people share it.
    trail = dataclasses.replace(trail, attributes=(*trail.attributes, label))
    across = Intersections(attributes=(*chosen, Levels(label)))
    metrics = [_LABEL] if loss is None else [_LABEL, loss]
    found = gather(trail, [Gap(metric=m, across=across, target=overall()) for m in metrics])
    people = _from_cells(found, varied, loss)
    _check_levels(people, max_levels)
    return people


def with_unseen(people: People) -> People:
    """The same people, and those without rows on whom a model can be asked.

    All combinations of levels, since any of them may turn up in the population; if these are too
    many, those that differ from people in the table only where varied.
    """
    sizes = [len(axis) for axis in people.features]
    whole = 2 * math.prod(sizes) <= MAX_CROSS
    index = _every(*sizes, 2) if whole else _varied_everywhere(people)
    every, place = np.unique(np.concatenate([people.index, index]), axis=0, return_inverse=True)
    counts = np.zeros(len(every), dtype=np.int64)
    counts[place.reshape(-1)[: len(people)]] = people.counts
    return dataclasses.replace(
        people, index=every, counts=counts, losses=None, mixed=0, complete=whole
    )


def _every(*sizes: int) -> IntArray:
    """All combinations of positions, in order."""
    return np.indices(sizes).reshape(len(sizes), -1).T.astype(np.int64)


def _varied_everywhere(people: People) -> IntArray:
    """Each class of people in the table, at every combination of the varied levels."""
    combinations = _every(*(len(people.features[i]) for i in people.varied))
    _, first = np.unique(people.classes(), return_index=True)
    if first.size * len(combinations) > MAX_PEOPLE:
        raise ClaimError(
            f"The features make {first.size * len(combinations):,} kinds of people, more than "
            f"{MAX_PEOPLE:,}. Use fewer features, or fewer levels of those that are varied."
        )
    index = np.repeat(people.index[first], len(combinations), axis=0)
    index[:, list(people.varied)] = np.tile(combinations, (first.size, 1))
    return index


def _from_cells(found: Sequence[Cells], varied: tuple[int, ...], loss: Metric | None) -> People:
    labels, cells = found[0], found[-1]
    # A row counts if both the label and what the loss reads are known.
    keep = (labels.rows > 0) & (cells.rows > 0)
    raw = cells.index[keep].copy()
    raw[:, -1] = np.rint(labels.total[keep] / labels.rows[keep]).astype(np.int64)
    sums = {"rows": cells.rows[keep], "total": cells.total[keep], "square": cells.square[keep]}
    # Several values of the label may stand for 0.
    index, merged = merge(raw, sums)
    rows = merged["rows"]
    mean = merged["total"] / rows
    mixed = _spread(mean, merged["square"] / rows)
    return People(
        features=cells.axes[:-1],
        varied=varied,
        index=index,
        counts=np.rint(rows).astype(np.int64),
        losses=None if loss is None else mean,
        mixed=0 if loss is None else int(np.count_nonzero(mixed)),
        cells=cells,
    )


def _spread(mean: FloatArray, square: FloatArray) -> BoolArray:
    return np.asarray(square - mean**2 > 1e-9 * np.maximum(square, 1e-300))


def _features(trail: Trail, features: Any) -> tuple[Dimension, ...]:
    asked = trail.attributes if features is None else features
    if isinstance(asked, str) or not isinstance(asked, list | tuple) or not asked:
        raise OptionError(
            f"features must be a list of attributes, such as ['race', 'sex']; got {features!r}."
        )
    chosen = tuple(as_dimension(feature) for feature in asked)
    played = {column: role for role, column in trail.roles}
    for dimension in chosen:
        if dimension.name in played:
            raise ClaimError(
                f"{dimension.name!r} is the {played[dimension.name]} column, not a feature. "
                "People are compared by what the model knew about them."
            )
    return chosen


def _varied(vary: Any, features: Sequence[Dimension]) -> tuple[int, ...]:
    asked = [vary] if isinstance(vary, str) else vary
    if not isinstance(asked, list | tuple) or not asked:
        raise OptionError(
            f"vary names one or more features, such as ['race', 'sex']; got {vary!r}."
        )
    names = [dimension.name for dimension in features]
    for name in asked:
        known_name("Varied feature", name, names, ClaimError)
    if len(set(asked)) < len(asked):
        raise OptionError(f"vary names a feature twice: {listing(asked)}.")
    return tuple(sorted(names.index(name) for name in asked))


def _check_levels(people: People, most: int) -> None:
    for position, axis in enumerate(people.features):
        found = np.unique(people.index[:, position]).size
        if found > most:
            raise ClaimError(
                f"Feature {axis.name!r} has {found:,} levels, more than {most:,}: hardly anybody "
                f"would be comparable. Cut it into ranges with binned({axis.name!r}, cuts=…), or "
                "leave it out with features=…."
            )
    sizes = [np.unique(people.index[:, i]).size for i in people.varied]
    if math.prod(sizes) < 2:
        names = listing(people.features[i].name for i in people.varied)
        raise ClaimError(
            f"{names} has one level only, so nobody differs in it. Vary a feature with two or more."
        )


def _shared_texts(axes: Sequence[Axis]) -> frozenset[Any]:
    seen: set[Any] = set()
    shared: set[Any] = set()
    for axis in axes:
        texts = {level for level in axis.levels if isinstance(level, str)}
        shared |= seen & texts
        seen |= texts
    return frozenset(shared)


def check_trail(trail: Any) -> Trail:
    """Individual fairness counts people: no sampling weights and no clusters."""
    return rows_alone(trail, "An audit of individual fairness counts independent people")
