"""Plain data with something wrong in it."""

import copy
import math
from typing import Any

from tests.fuzz.tables import Rng, pick

#: Values that stand where others should.
PLAIN: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2**80,
    10**400,
    0.5,
    -0.0,
    1e308,
    math.nan,
    math.inf,
    "",
    "a",
    "x",
    "accuracy",
    "overall",
    "inf",
    "😀",
    "w" * 2000,
    "'; DROP TABLE rows; --",
    [],
    [1],
    ["g"],
    ["g", "g"],
    [[1, 2], [3]],
    [None],
    {},
    {"kind": "gap"},
    {"kind": "metric"},
    {"kind": "nothing"},
    {"kind": []},
    {"kind": {}},
    {"number": "inf"},
    {"number": "nan"},
    {"number": "x"},
    {"number": []},
    {"mapping": [["a", 1]]},
    {"mapping": 5},
    {"mapping": [1]},
    {"a": {"b": {"c": [{"d": None}]}}},
    {"1": 1},
)


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in nested lists and mappings."""
    found = [path]
    if isinstance(data, dict):
        for key, item in data.items():
            found += places(item, (*path, key))
    elif isinstance(data, list):
        for i, item in enumerate(data):
            found += places(item, (*path, i))
    return found


def mutated(rng: Rng, data: Any, most: int = 2) -> Any:
    """A copy in which one or two things were replaced, removed, renamed, doubled or moved."""
    made = copy.deepcopy(data)
    for _ in range(int(rng.integers(1, most + 1))):
        made = _once(rng, made)
    return made


def _once(rng: Rng, data: Any) -> Any:
    path = pick(rng, places(data))
    if not path:
        return copy.deepcopy(pick(rng, PLAIN)) if rng.random() < 0.02 else data
    holder = data
    for step in path[:-1]:
        holder = holder[step]
    key, how = path[-1], int(rng.integers(6))
    if how <= 2:
        holder[key] = copy.deepcopy(pick(rng, PLAIN))
    elif how == 3:
        del holder[key]
    elif how == 4 and isinstance(holder, dict):
        holder[pick(rng, ("kind", "rows", "level", "zz", "", "number", str(key)[:-1]))] = (
            holder.pop(key)
        )
    else:
        at = pick(rng, places(data))
        holder[key] = copy.deepcopy(_at(data, at)) if len(at) > 1 else None
    return data


def _at(data: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        data = data[step]
    return data
