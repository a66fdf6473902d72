"""What it costs to move from one cell to another, from the ``cost`` argument of a verb."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from equipoise.audits._individual.people import People
from equipoise.errors import OptionError
from equipoise.methods import transport
from equipoise.methods.arrays import FloatArray, IntArray

FAIR_METRIC = "fair-metric"
_MOST_PAIRS = 4_000_000


@contextmanager
def checked_input() -> Iterator[None]:
    """What the mathematics refuses becomes an error that names the option."""
    try:
        yield
    except ValueError as error:
        text = str(error)
        raise OptionError(f"{text[0].upper()}{text[1:]}.") from error


def moves_of(people: People, cost: Any) -> transport.Moves:
    """The moves that ``cost`` allows."""
    with checked_input():
        if cost is None:
            return transport.within_classes(people.classes())
        if isinstance(cost, str):
            return _fair_metric(people, cost)
        if callable(cost):
            return _by_function(people, cost)
        return _by_matrix(people, cost)


def cost_words(cost: Any, varied: str) -> str:
    """How people are compared, in words."""
    if cost is None:
        return f"people who share the label and everything but {varied}"
    if isinstance(cost, str):
        return f"people who share the label, at a distance blind to {varied} and its proxies"
    kind = "a function" if callable(cost) else "a matrix"
    return f"people at the costs given by {kind}"


def _by_matrix(people: People, cost: Any) -> transport.Neighbours:
    try:
        matrix = np.asarray(cost, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise OptionError(
            "cost must be None, 'fair-metric', a function of two people, or a matrix of numbers; "
            f"got {type(cost).__name__}."
        ) from error
    if matrix.shape != (len(people), len(people)):
        raise OptionError(
            f"cost must have one row and one column for each of the {len(people):,} cells, in the "
            f"order of the finding's cells; got shape {matrix.shape}."
        )
    return transport.from_matrix(matrix)


def _same_label(people: People) -> tuple[IntArray, IntArray]:
    sizes = np.bincount(people.label)
    if int((sizes**2).sum()) > _MOST_PAIRS:
        raise OptionError(
            f"A cost between all pairs of {len(people):,} cells is too much to compute. "
            "Use fewer features, or cost=None."
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


def _fair_metric(people: People, cost: str) -> transport.Neighbours:
    if cost != FAIR_METRIC:
        raise OptionError(f"cost as text can only be {FAIR_METRIC!r}; got {cost!r}.")
    _same_label(people)
    rest = [i for i in range(len(people.features)) if i not in people.varied]
    if not rest:
        raise OptionError("A fair metric needs a feature that is not varied; features= has none.")
    features = _numbers(people, rest)
    sensitive = _numbers(people, list(people.varied))
    directions = transport.sensitive_directions(features, sensitive, people.counts)
    if directions.shape[1] == 0:
        # Nothing betrays the varied features, so nothing is projected out.
        directions = np.zeros((features.shape[1], 1))
    return transport.fair_costs(features, directions, classes=people.label)


def _numbers(people: People, positions: list[int]) -> FloatArray:
    """Features as columns of unit variance; categories become indicators."""
    columns = []
    for i in positions:
        levels, codes = people.features[i].levels, people.index[:, i]
        if all(isinstance(level, int | float) for level in levels):
            columns.append(np.array(levels, dtype=np.float64)[codes])
        else:
            columns += [(codes == k).astype(np.float64) for k in range(len(levels))]
    table = np.stack(columns, axis=1)
    mean = np.average(table, axis=0, weights=people.counts)
    spread = np.sqrt(np.average((table - mean) ** 2, axis=0, weights=people.counts))
    # A level nobody has does not vary; it keeps its own unit.
    return np.asarray((table - mean) / np.where(spread > 0, spread, 1.0))
