"""Tables that a reader brings to a tilt audit, as the encoded covariates it was made with."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from equipoise._validate import listing
from equipoise.errors import ClaimError, OptionError
from equipoise.findings.shift_kernels import Covariate
from equipoise.methods.arrays import FloatArray


def encode_table(covariates: Sequence[Covariate], table: Any) -> tuple[FloatArray, FloatArray]:
    """Encoded covariates of the complete rows of a table, and how much each row counts."""
    columns, mass = _columns(covariates, table)
    encoded = [c.encode(values) for c, values in zip(covariates, columns, strict=True)]
    if len({len(values) for values in encoded}) > 1:
        raise OptionError("The covariates have columns of different lengths.")
    points = np.column_stack(encoded)
    known = np.all(np.isfinite(points), axis=1)
    counts = np.ones(len(points)) if mass is None else mass
    if not (counts[known] > 0).any():
        raise ClaimError("The table has no row with a value of every covariate.")
    return points[known], counts[known]


def _columns(
    covariates: Sequence[Covariate], table: Any
) -> tuple[list[list[Any]], FloatArray | None]:
    names = [covariate.name for covariate in covariates]
    if isinstance(table, Mapping):
        _check_columns(names, list(table))
        return [list(table[name]) for name in names], None
    import narwhals as nw

    # A trail carries its frame and says which columns count; a bare table does neither.
    frame = nw.from_native(getattr(table, "frame", table))
    _check_columns(names, frame.collect_schema().names())
    roles = getattr(table, "roles", None)
    counted = [c for c in (getattr(roles, "count", None), getattr(roles, "weight", None)) if c]
    chosen = frame.select(*names, *counted)
    found = chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen
    mass = None
    for column in counted:
        # A row without a count or a weight stands for nobody.
        part = np.array(
            [0.0 if v is None else v for v in found[column].to_list()], dtype=np.float64
        )
        mass = part if mass is None else mass * part
    return [found[name].to_list() for name in names], mass


def _check_columns(names: Sequence[str], there: Sequence[str]) -> None:
    missing = [name for name in names if name not in there]
    if missing:
        raise ClaimError(
            f"The table lacks the covariates {listing(missing)}. It has: {listing(there)}."
        )
