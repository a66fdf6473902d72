"""Bounds made again from stored counts: for methods whose bounds are not estimate ± reach."""

import math
from collections.abc import Mapping
from typing import Any

from equipoise.errors import EquipoiseError, OptionError
from equipoise.findings.limits import Ends


def cook(recipe: Mapping[str, Any], critical: float, limits: Ends) -> list[Ends]:
    """Lower and upper ends of every group at a critical value."""
    # the mathematics is imported here so that reading findings stays light
    import numpy as np

    from equipoise.methods.published import likelihood

    if recipe["kind"] == "pivot":
        from equipoise.methods.inference.stored import restored_bounds

        possible = tuple(
            side * math.inf if end is None else end
            for side, end in zip((-1, 1), limits, strict=True)
        )
        low, high = restored_bounds(recipe, critical, (possible[0], possible[1]))
    elif recipe["kind"] == "band":
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
    from equipoise.methods.published.likelihood import normal_critical

    return normal_critical(level, recipe["family"], recipe["groups"], two_sided=side == "both")


def quantile_at(quantiles: tuple[float, ...], level: float) -> float:
    """The critical value of a level, from a table of 0.1 %, 0.2 % … 99.9 %.

    Between two entries the larger one is taken; beyond the last there is none.

    >>> quantile_at(tuple(range(1, 1000)), 0.9), quantile_at(tuple(range(1, 1000)), 0.9002)
    (900, 901)
    """
    # 0.9 of 1000 may come out as 900.0000000000001, which would take the next one
    position = math.ceil(level * 1000 - 1e-9) - 1
    if position >= len(quantiles):
        raise OptionError("These bounds can be read at levels up to 99.9 %; audit again for more.")
    return quantiles[max(position, 0)]


def region_statistic(region: Mapping[str, Any], values: Mapping[int, float]) -> float:
    """The joint statistic at values of some disparities, the others being free."""
    import numpy as np

    from equipoise.methods.published import likelihood

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
