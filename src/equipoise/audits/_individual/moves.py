"""What it costs to move from one cell to another, from the ``cost`` argument of a verb."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise._validate import known_name, listing, real
from equipoise.audits._individual.people import People, find_people
from equipoise.audits.comparable import FairMetric
from equipoise.cells.cells import Axis
from equipoise.errors import OptionError
from equipoise.methods import transport
from equipoise.methods.arrays import FloatArray, IntArray

FAIR_METRIC = "fair-metric"
_MOST_PAIRS = 4_000_000
#: Resamples on which a metric is learnt again.
_RELEARNT = 999
#: A part of the distance that stands for nothing being known of it.
_ANYTHING = 1e6


@contextmanager
def checked_input() -> Iterator[None]:
    """What the mathematics refuses becomes an error that names the option."""
    try:
        yield
    except ValueError as error:
        text = str(error)
        raise OptionError(f"{text[0].upper()}{text[1:]}.") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Who is audited, and what their moves cost."""

    people: People
    """Those audited: all of them, or the part that was not used to learn a metric."""
    at: Callable[[float], transport.Moves]
    """The moves, if learnt distances are off by this part of the distance with nothing left out."""
    errors: FloatArray | None = None
    """Draws of how far they are off; None where the costs are known."""
    metric: str = ""
    """How the fair metric is known, in words; empty if there is none."""

    def off(self, alpha: float) -> float:
        """How far learnt distances are off at most, except with probability ``alpha``."""
        if self.errors is None:
            return 0.0
        # the sample counts among its draws: a rate too small for them knows nothing
        place = math.ceil((1 - alpha) * (self.errors.size + 1) - 1e-9)
        return float(np.sort(self.errors)[place - 1]) if place <= self.errors.size else _ANYTHING


def costs_of(people: People, cost: Any, rng: np.random.Generator) -> Costs:
    """The moves that ``cost`` allows."""
    with checked_input():
        if isinstance(cost, str):
            if cost != FAIR_METRIC:
                raise OptionError(f"cost as text can only be {FAIR_METRIC!r}; got {cost!r}.")
            return _fair(people, FairMetric(), rng)
        if isinstance(cost, FairMetric):
            return _fair(people, cost, rng)
        if cost is None:
            moves: transport.Moves = transport.within_classes(people.classes())
        elif callable(cost):
            moves = _by_function(people, cost)
        else:
            moves = _by_matrix(people, cost)
        return Costs(people=people, at=lambda off: moves)


def cost_words(cost: Any, varied: str) -> str:
    """How people are compared, in words."""
    if cost is None:
        return f"people who share the label and everything but {varied}"
    if isinstance(cost, str | FairMetric):
        return f"people who share the label, at a distance blind to {varied} and its proxies"
    kind = "a function" if callable(cost) else "a matrix"
    return f"people at the costs given by {kind}"


def _by_matrix(people: People, cost: Any) -> transport.Neighbours:
    try:
        matrix = np.asarray(cost, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise OptionError(
            "cost must be None, 'fair-metric', FairMetric(…), a function of two people, or a "
            f"matrix of numbers; got {type(cost).__name__}."
        ) from error
    if matrix.shape != (len(people), len(people)):
        raise OptionError(
            f"cost must have one row and one column for each of the {len(people):,} cells, in the "
            f"order of the finding's cells; got shape {matrix.shape}."
        )
    return transport.from_matrix(matrix)


def _pairs(people: People) -> int:
    return int((np.bincount(people.label) ** 2).sum())


def _same_label(people: People) -> tuple[IntArray, IntArray]:
    if _pairs(people) > _MOST_PAIRS:
        raise OptionError(
            f"A cost between all pairs of {len(people):,} cells is too much to compute. "
            "Use fewer features, cost=None, or FairMetric(neighbours=…)."
        )
    source, target = np.nonzero(people.label[:, None] == people.label)
    return source.astype(np.int64), target.astype(np.int64)


def _by_function(people: People, cost: Callable[[Any, Any], Any]) -> transport.Neighbours:
    source, target = _same_label(people)
    rows = [people.where(cell) for cell in range(len(people))]
    paid = np.array(
        [_cost(cost, rows[a], rows[b]) for a, b in zip(source, target, strict=True)],
        dtype=np.float64,
    )
    return transport.from_neighbours(source, target, paid, cells=len(people))


def _cost(cost: Callable[[Any, Any], Any], a: dict[str, Any], b: dict[str, Any]) -> float:
    try:
        return float(cost(dict(a), dict(b)))
    except Exception as error:
        raise OptionError(
            f"The cost failed on {a} and {b}: {type(error).__name__}: {error}"
        ) from error


def _fair(people: People, metric: FairMetric, rng: np.random.Generator) -> Costs:
    rest = [i for i in range(len(people.features)) if i not in people.varied]
    if not rest:
        raise OptionError("A fair metric needs a feature that is not varied; features= has none.")
    axes = [people.features[i] for i in rest]
    audited, errors = people, None
    if metric.directions is not None:
        units = np.ones(_numbers(people, axes).shape[1])
        directions = np.stack([_direction(d, axes) for d in metric.directions], axis=1)
        words = "the directions that do not count were given"
    else:
        learnt, learners, audited, words = _learnt_on(people, metric, rng)
        numbers, varied = _numbers(learners, axes), _numbers(learners, _varied_axes(people))
        found = transport.learn_metric(numbers, varied, learnt.share)
        units, directions = found.units, found.directions
        if metric.learn_from is None and metric.split is None:
            errors = transport.metric_errors(numbers, varied, learnt, resamples=_RELEARNT, rng=rng)
    points = _numbers(people, axes) / units
    listed = metric.neighbours
    if listed is None and _pairs(people) > _MOST_PAIRS:
        listed = max(1, _MOST_PAIRS // len(people))

    def at(off: float) -> transport.Moves:
        return transport.fair_costs(
            points, directions, classes=people.label, off=off, neighbours=listed
        )

    return Costs(people=audited, at=at, errors=errors, metric=words)


def _learnt_on(
    people: People, metric: FairMetric, rng: np.random.Generator
) -> tuple[transport.Sample, People, People, str]:
    """The rows a metric is learnt on, whose cells they are counted in, and those audited."""
    if metric.learn_from is not None:
        features = [axis.dimension for axis in people.features]
        vary = [axis.name for axis in _varied_axes(people)]
        other = find_people(metric.learn_from, features, vary, None)
        return other.sample, other, people, "it was learnt on another table and is taken as given"
    if metric.split is not None:
        first, second = people.sample.split(metric.split, rng)
        unit = "clusters" if people.cells.clusters is not None else "rows"
        words = (
            f"it was learnt on {first.n:,} {unit} drawn at random and is taken as given; the other "
            f"{second.n:,} were audited"
        )
        return first, people, people.only(second), words
    words = "it was learnt on the rows audited, and the bounds allow for its error"
    return people.sample, people, people, words


def _varied_axes(people: People) -> list[Axis]:
    return [people.features[i] for i in people.varied]


def _columns(axis: Axis) -> list[Any]:
    """The levels that get an indicator; a single None stands for a column of numbers."""
    plain = all(isinstance(level, int | float) for level in axis.levels)
    return [None] if plain else list(axis.levels)


def _numbers(people: People, axes: Sequence[Axis]) -> FloatArray:
    """Features as columns of numbers; categories, by the levels of ``axes``, become indicators."""
    names = [axis.name for axis in people.features]
    columns = []
    for axis in axes:
        i = names.index(axis.name)
        levels, codes = people.features[i].levels, people.index[:, i]
        if _columns(axis) == [None]:
            if not all(isinstance(level, int | float) for level in levels):
                raise OptionError(
                    f"Feature {axis.name!r} is a number in the rows audited, but not in the table "
                    "to learn from. Read both tables in the same way."
                )
            columns.append(np.array(levels, dtype=np.float64)[codes])
        else:
            held = np.array([str(level) for level in levels], dtype=object)[codes]
            columns += [(held == str(level)).astype(np.float64) for level in axis.levels]
    return np.stack(columns, axis=1)


def _direction(given: Any, axes: Sequence[Axis]) -> FloatArray:
    """One direction as numbers, in the order of the columns."""
    for name in given:
        known_name("Feature of a direction", name, [axis.name for axis in axes])
    out: list[float] = []
    for axis in axes:
        part, columns = given.get(axis.name, 0.0), _columns(axis)
        if columns == [None]:
            out.append(real(f"directions[{axis.name!r}]", part))
        elif part == 0:
            out += [0.0] * len(columns)
        else:
            out += _by_level(part, axis)
    if not any(out):
        raise OptionError(f"A direction must not be zero everywhere; got {given!r}.")
    return np.array(out)


def _by_level(part: Any, axis: Axis) -> list[float]:
    if not isinstance(part, dict):
        raise OptionError(
            f"{axis.name!r} is a category: a direction takes a number for each of its levels "
            f"({listing(axis.levels, 4)}) in a dictionary; got {part!r}."
        )
    unknown = [level for level in part if level not in axis.levels]
    if unknown:
        raise OptionError(
            f"{axis.name!r} has no level {listing(unknown)}; it has {listing(axis.levels, 6)}."
        )
    return [real(f"directions[{axis.name!r}]", part.get(level, 0.0)) for level in axis.levels]
