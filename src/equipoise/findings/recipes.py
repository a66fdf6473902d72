"""Bounds made again from stored counts: for methods whose bounds are not estimate ± reach."""

import math
from collections.abc import Mapping
from typing import Any

from equipoise.errors import EquipoiseError
from equipoise.findings.limits import Ends


def cook(recipe: Mapping[str, Any], critical: float) -> list[Ends]:
    """Lower and upper ends of every group at a critical value."""
    # the mathematics is imported here so that reading findings stays light
    import numpy as np

    from equipoise.methods import likelihood

    if recipe["kind"] == "band":
        parts = likelihood.Parts(
            rows=np.array(recipe["rows"], dtype=np.float64),
            ones=np.array(recipe["ones"], dtype=np.float64),
            against=recipe["against"],
            scale=recipe["scale"],
            value=recipe["value"],
            relative=recipe["relative"],
        )
        low, high = likelihood.band(parts, critical, calibrated=recipe["calibrated"])
    elif recipe["kind"] == "student":
        columns = (recipe[name] for name in ("estimate", "error", "degrees"))
        estimate, error, degrees = (np.array(x, dtype=np.float64) for x in columns)
        low, high = likelihood.student_interval(estimate, error, degrees, critical)
    else:
        raise EquipoiseError(f"{recipe['kind']!r} is not a way to make bounds.")
    return [(_number(a), _number(b)) for a, b in zip(low.tolist(), high.tolist(), strict=True)]


def family_critical(recipe: Mapping[str, Any], level: float, side: str) -> float:
    """The critical value of normal scores that makes a family of intervals hold."""
    from equipoise.methods.likelihood import normal_critical

    return normal_critical(level, recipe["family"], recipe["groups"], two_sided=side == "both")


def quantile_of(ordered: list[float], level: float) -> float:
    """The smallest value whose share of draws at or below it reaches ``level``."""
    # 0.9 of 1000 draws may come out as 900.0000000000001, which would take the next one.
    position = math.ceil(level * len(ordered) - 1e-9) - 1
    return ordered[min(max(position, 0), len(ordered) - 1)]


def region_statistic(region: Mapping[str, Any], values: Mapping[int, float]) -> float:
    """The joint statistic at values of some disparities, the others being free."""
    import numpy as np

    from equipoise.methods import likelihood

    chosen = np.array(list(values), dtype=np.int64)
    at = np.array(list(values.values()), dtype=np.float64)

    def arrays(*names: str) -> dict[str, Any]:
        return {name: np.array(region[name], dtype=np.float64) for name in names}

    if region["kind"] == "euclidean":
        kept = arrays("estimate", "zero", "cross", "slope")
        moments = likelihood.Moments(rows=region["rows"], **kept)
        return likelihood.euclidean_at(moments, at, chosen).statistic
    if region["kind"] != "likelihood":
        raise EquipoiseError(f"{region['kind']!r} is not a kind of region.")
    scores = likelihood.Scores(**arrays("zero", "slope", "count"), support=True)
    # A constraint left out is profiled: its disparity takes the most likely value.
    return likelihood.likelihood_at(scores.some(chosen), at).statistic


def _number(x: float) -> float | None:
    # NaN compares as false, and so becomes None as well.
    return x if abs(x) < float("inf") else None
