"""Choosing among models under a fairness constraint."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from equipoise.methods.arrays import BoolArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The model chosen, if any.

    Attributes
    ----------
    chosen
        Position of the model; None if none is a candidate.
    candidates
        Which models pass the test of δ-fairness.
    closest
        Position of the model with the smallest bound, of use when there is no candidate.
    """

    chosen: int | None
    candidates: BoolArray
    closest: int


def select_model(
    errors: npt.ArrayLike, bounds: npt.ArrayLike, values: npt.ArrayLike, *, delta: float
) -> Selection:
    """Pick the model with the smallest error among those whose bound does not exceed ``delta``.

    With lower confidence bounds a candidate is a model not shown to be unfair; with upper bounds, a
    model shown to be δ-fair. Of equal errors the smaller audit value wins.

    Parameters
    ----------
    errors
        Each model's error on validation data.
    bounds
        Each model's confidence bound for the audit value.
    values
        Each model's audit value.
    delta
        The largest audit value tolerated.

    Examples
    --------
    >>> select_model([0.34, 0.33, 0.35], [0.01, 0.05, 0.0], [0.02, 0.06, 0.0], delta=0.04).chosen
    0
    """
    table = [np.asarray(x, dtype=np.float64) for x in (errors, bounds, values)]
    if any(x.ndim != 1 or x.shape != table[0].shape or x.size == 0 for x in table):
        raise ValueError("expected one error, one bound and one audit value per model")
    if not all(np.all(np.isfinite(x)) for x in table):
        raise ValueError("errors, bounds and audit values must be finite")
    if not delta >= 0:
        raise ValueError(f"a tolerance is zero or positive; got {delta:g}")
    error, bound, value = table
    # Section 5.2 of Xue, Yurochkin and Sun: with lower bounds, the models that (4.2) retains.
    candidates = bound <= delta
    # lexsort sorts by its last key first
    order = np.lexsort((value, error))
    passing = order[candidates[order]]
    return Selection(
        chosen=int(passing[0]) if passing.size else None,
        candidates=candidates,
        closest=int(np.lexsort((error, value, bound))[0]),
    )
