"""Point values from cells: each group's metric, and the target it is compared with."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from equipoise._validate import did_you_mean, listing
from equipoise.cells.cells import Axis, Cells
from equipoise.cells.groups import Collection, level_where
from equipoise.claims import Claim, Metric
from equipoise.claims import target as targets
from equipoise.claims.claim import Gap
from equipoise.claims.target import Complement, Constant, Custom, Overall, Reference, Target
from equipoise.errors import ClaimError
from equipoise.methods.numerics import BoolArray, FloatArray

# --- Point values from cells: each group's metric, and the target it is compared with ---


def group_means(cells: Cells, collection: Collection) -> FloatArray:
    """Each group's metric; NaN where it counts on no row."""
    sums = collection.sums
    return _share(sums(cells.total), sums(cells.weight), sums(cells.rows))


def overall_mean(cells: Cells) -> float:
    """The metric over everyone; NaN if all weights are zero."""
    return float(_share(cells.total.sum(), cells.weight.sum(), cells.rows.sum()))


def target_values(target: Target, cells: Cells, collection: Collection) -> FloatArray:
    """What each group is compared with; NaN where the target counts on no row."""
    size = len(collection)
    match target:
        case Constant(value=value):
            plain = np.full(size, value)
        case Custom(estimate=estimate):
            plain = np.full(size, estimate)
        case Overall():
            plain = np.full(size, overall_mean(cells))
        case Reference(where=where):
            inside = reference_cells(where, cells)
            parts = [a[inside].sum() for a in (cells.total, cells.weight, cells.rows)]
            plain = np.full(size, _share(*parts))
        case Complement():
            arrays = (cells.total, cells.weight, cells.rows)
            plain = _share(*(array.sum() - collection.sums(array) for array in arrays))
        case _:
            raise ClaimError(f"{type(target).__name__} is not a target that cells can give.")
    return target.scale * plain


def reference_cells(where: Mapping[str, object], cells: Cells) -> BoolArray:
    """Which cells make up a reference group; an error names the values that exist."""
    inside = np.ones(len(cells), dtype=bool)
    for name, value in where.items():
        position = cells.axis(name)
        if position < 0:
            raise ClaimError(
                f"The cells were not cut by {name!r}, but by "
                f"{listing(axis.name for axis in cells.axes)}."
            )
        inside &= cells.index[:, position] == _level(cells.axes[position], value)
    if not cells.rows[inside].sum():
        named = ", ".join(f"{name}={value!r}" for name, value in where.items())
        raise ClaimError(
            f"The reference group {named} has no row on which {cells.metric.name!r} counts. "
            "Choose another reference."
        )
    return inside


def _level(axis: Axis, value: object) -> int:
    levels = [level_where(axis, position) for position in range(len(axis))]
    for position, level in enumerate(levels):
        # True == 1 in Python, but the level "true" is not the level 1
        if level == value and isinstance(level, bool) == isinstance(value, bool):
            return position
    hint = did_you_mean(str(value), [v for v in levels if isinstance(v, str)])
    raise ClaimError(f"{axis.name} has no level {value!r}.{hint} There is: {listing(levels)}.")


def _share(total: ArrayLike, weight: ArrayLike, rows: ArrayLike) -> FloatArray:
    top, bottom = np.asarray(total, dtype=np.float64), np.asarray(weight, dtype=np.float64)
    share: FloatArray = np.full(bottom.shape, np.nan)
    # Rows are counted exactly; a weight left over from a subtraction may be mere rounding.
    np.divide(top, bottom, out=share, where=(bottom > 0) & (np.asarray(rows) > 0))
    return share


# --- What must be summed beside a metric when the target is a number with an influence function
# ---


def influence_formula(claim: Claim) -> str | None:
    """The influence function of a custom target; None for every other target."""
    return claim.target.influence if isinstance(claim.target, targets.Custom) else None


def influence_claims(claim: Claim) -> list[Claim]:
    """The influence values, and their product with the metric, as metrics to be summed.

    They count on exactly the rows on which the claim's metric counts.
    """
    formula = influence_formula(claim)
    if formula is None:
        return []
    value = _text(claim.metric)
    # Zero times the value changes no sum, but counts on the same rows as the value does.
    both = [f"({formula}) + 0 * ({value})", f"({formula}) * ({value})"]
    return [_summed(claim, f"influence {i}", text) for i, text in enumerate(both)]


def _summed(claim: Claim, name: str, formula: str) -> Claim:
    metric = claim.metric
    made = Metric(name=name, value=formula, where=metric.where, binary=metric.binary)
    return Gap(metric=made, across=claim.across, target=targets.overall())


def _text(metric: Metric) -> str:
    if isinstance(metric.value, str) and not metric.clipped:
        return metric.value
    raise ClaimError(
        "A custom target needs a metric written as a formula, without clip; "
        f"{metric.name!r} is not."
    )
