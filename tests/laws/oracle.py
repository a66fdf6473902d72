"""What the cells and groups must be, by plain loops over plain rows, sharing no code."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass
class Sums:
    """Totals of a metric over some rows."""

    present: int = 0
    rows: int = 0
    weight: float = 0.0
    total: float = 0.0
    square: float = 0.0
    weight3: float = 0.0
    total3: float = 0.0
    square3: float = 0.0
    cube3: float = 0.0


def sums(rows: Iterable[Row], value: Callable[[Row], float | None]) -> Sums:
    """Add up ``value`` (None where the metric does not count) over the rows."""
    found = Sums()
    for row in rows:
        times, weight = row.get("times", 1), row.get("w", 1.0)
        if times is None:
            continue
        found.present += times
        measured = value(row)
        if measured is None or weight is None:
            continue
        found.rows += times
        found.weight += times * weight
        found.total += times * weight * measured
        found.square += times * weight * measured**2
        found.weight3 += times * weight**3
        found.total3 += times * weight**3 * measured
        found.square3 += times * weight**3 * measured**2
        found.cube3 += times * weight**3 * measured**3
    return found


def missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def level(value: Any) -> Any:
    """A level as results write it: NaN is missing."""
    return None if missing(value) else value


def accuracy(row: Row) -> float | None:
    if missing(row["y"]) or missing(row["p"]):
        return None
    return 1.0 if row["y"] == row["p"] else 0.0


def false_positive_rate(row: Row) -> float | None:
    if missing(row["y"]) or missing(row["p"]) or row["y"] != 0:
        return None
    return float(row["p"])


def brier(row: Row) -> float | None:
    if missing(row["y"]) or missing(row["s"]):
        return None
    return float((row["y"] - row["s"]) ** 2)


def residual(row: Row) -> float | None:
    if missing(row["y"]) or missing(row["s"]):
        return None
    return float(row["y"] - row["s"])


METRICS: dict[str, Callable[[Row], float | None]] = {
    "accuracy": accuracy,
    "false_positive_rate": false_positive_rate,
    "brier": brier,
    "residual": residual,
}
