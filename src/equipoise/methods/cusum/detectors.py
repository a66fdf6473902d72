"""Where to look: signed weights of rows, positive where outcomes are thought too high."""

from enum import StrEnum

import numpy as np
from scipy.special import logit

from equipoise.methods.arrays import FloatArray
from equipoise.methods.cusum.null import Null

#: Digits to which predicted residuals count; smaller differences are rounding, hence ties.
DIGITS = 12


class Side(StrEnum):
    """Which violations are looked for."""

    BOTH = "both"
    """Either."""
    UNDER = "under"
    """Expected outcomes above the prediction: the model under-estimates."""
    OVER = "over"
    """Expected outcomes below the prediction: the model over-estimates."""


def violations(residuals: FloatArray, null: Null, side: Side = Side.BOTH) -> FloatArray:
    """By how much each row is predicted to break the tolerance: models × rows, zero if it is not.

    ``residuals`` are predicted means of outcome minus prediction, one line per model, each made
    without the row's own outcome.

    >>> from equipoise.methods.cusum.null import bernoulli_null
    >>> null = bernoulli_null(np.zeros(3), np.array([0.5, 0.5, 0.97]), tolerance=0.05)
    >>> violations(np.array([[0.02, -0.15, 0.2]]), null).round(3).tolist()
    [[0.0, -0.1, 0.0]]
    """
    lines = np.atleast_2d(np.asarray(residuals, dtype=np.float64))
    if lines.shape[1] != len(null) or not np.isfinite(lines).all():
        raise ValueError(f"predicted residuals must be finite, one for each of {len(null)} rows")
    guess = lines + null.predicted
    if null.exact:
        np.clip(guess, 0.0, 1.0, out=guess)
    # Section 2.1 of Feng and others: the expected score is largest for p₀ − p̂_δ, measured from the
    # edge of the tolerance. Their (7) weighs by the predicted residual itself.
    beyond = np.where(guess > null.high, guess - null.high, np.minimum(guess - null.low, 0.0))
    return one_sided(np.asarray(np.round(beyond, DIGITS), dtype=np.float64), side)


def one_sided(weights: FloatArray, side: Side) -> FloatArray:
    """The weights with those of the side that is not looked for set to zero."""
    if side is Side.UNDER:
        return np.maximum(weights, 0.0)
    return np.minimum(weights, 0.0) if side is Side.OVER else weights


def recalibration_axes(null: Null, side: Side = Side.BOTH) -> FloatArray:
    """Weights that need no residual model: the level and the slope of a recalibration.

    Too high or too low everywhere, too steep or too flat along the log odds of the prediction (the
    prediction itself, centred, for real outcomes): the directions of Platt's scaling.

    >>> from equipoise.methods.cusum.null import bernoulli_null
    >>> null = bernoulli_null(np.zeros(2), np.array([0.5, 0.9]), tolerance=0.05)
    >>> recalibration_axes(null, Side.UNDER).round(2).tolist()
    [[1.0, 1.0], [0.0, 2.2]]
    """
    p = null.predicted
    slope = risk_axis(p, risks=null.exact)
    axes = np.round(np.stack([np.ones_like(p), -np.ones_like(p), slope, -slope]), DIGITS)
    weights = one_sided(np.asarray(axes, dtype=np.float64), side)
    return weights[np.any(weights != 0, axis=1)]


def risk_axis(predicted: FloatArray, *, risks: bool) -> FloatArray:
    """Predictions on the scale on which a recalibration is a line: log odds, or centred numbers.

    >>> risk_axis(np.array([0.5, 0.9]), risks=True).round(2).tolist()
    [0.0, 2.2]
    """
    if not risks:
        return np.asarray(predicted - predicted.mean(), dtype=np.float64)
    # risks of 0 and 1 have infinite log odds; a sample cannot tell them from these
    return np.asarray(logit(np.clip(predicted, 1e-4, 1 - 1e-4)), dtype=np.float64)
