"""Risk scores with a known truth: reliable for everyone, at the edge of a tolerance, or not."""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
RiskTable = dict[str, Floats | list[str]]
"""Columns: features, ``score``, ``risk`` (the truth) and the outcome ``y``."""

#: Coefficients of x0, x1, … in the worlds in which the tests were tried.
LINE = (0.6, 0.4, 0.2)


def interaction_risks(
    n: int, *, rng: int | np.random.Generator, score: Callable[[Floats], Floats] | None = None
) -> RiskTable:
    """Ten uniform features; a line in three of them holds except in a corner of two.

    The log odds are 0.6 x0 + 0.4 x2 + 0.2 x3, but 0.2 x1 where x1 < -2 and x2 > 2. ``score`` is a
    function of the matrix of features; by default a line that knows nothing of the corner.

    >>> table = interaction_risks(5, rng=1)
    >>> sorted(table)[:3], len(table["y"])
    (['risk', 'score', 'x0'], 5)
    """
    rng = np.random.default_rng(rng)
    x = rng.uniform(-5, 5, (n, 10))
    line = x[:, 0] * LINE[0] + x[:, 2] * LINE[1] + x[:, 3] * LINE[2]
    # Both conditions at once: x1 < -2 and -x2 < -2.
    corner = np.maximum(x[:, 1], -x[:, 2]) < -2
    risk = logistic(np.where(corner, 0.2 * x[:, 1], line))
    scores = logistic(line) if score is None else score(x)
    return _table(_columns(x), scores, risk, rng)


def boundary_risks(
    n: int,
    *,
    rng: int | np.random.Generator,
    tolerance: float = 0.025,
    score: Callable[[Floats], Floats] | None = None,
) -> RiskTable:
    """Everybody's risk is the score plus the tolerance: the hardest case that is still tolerated.

    >>> table = boundary_risks(4, rng=1, tolerance=0.1)
    >>> bool(np.all(table["risk"] <= table["score"] + 0.1))
    True
    """
    rng = np.random.default_rng(rng)
    x = rng.uniform(-5, 5, (n, 10))
    scores = logistic(x[:, :3] @ LINE) if score is None else score(x)
    return _table(_columns(x), scores, np.clip(scores + tolerance, 0, 1), rng)


def segment_risks(n: int, *, rng: int | np.random.Generator, levels: int = 6) -> RiskTable:
    """A perfectly calibrated score and two attributes that mean nothing.

    With six levels each they cut people into 48 overlapping segments.

    >>> sorted(segment_risks(3, rng=1))
    ['a', 'b', 'risk', 'score', 'y']
    """
    rng = np.random.default_rng(rng)
    names = [f"level {i + 1}" for i in range(levels)]
    columns = {name: rng.choice(names, n).tolist() for name in ("a", "b")}
    risk = rng.beta(2, 3, n)
    return _table(columns, risk, risk, rng)


def logistic(odds: Floats) -> Floats:
    """The probability with these log odds."""
    return np.asarray(1 / (1 + np.exp(-odds)))


def _columns(x: Floats) -> dict[str, Floats]:
    return {f"x{i}": x[:, i] for i in range(x.shape[1])}


def _table(
    columns: Mapping[str, Floats | list[str]],
    score: Floats,
    risk: Floats,
    rng: np.random.Generator,
) -> RiskTable:
    outcome = (rng.random(len(risk)) < risk).astype(np.float64)
    return {**columns, "score": score, "risk": risk, "y": outcome}
