"""How far apart a few groups could be: the largest spread within reach of the observed means.

Of all group means that the data do not speak against (a joint likelihood region, cut at the
one-sided critical value of a single number), take those that differ most. This is the upper end of
the profile-likelihood interval. It finds by itself that a small group may be far out, which no path
through the observed means would. With many groups it is too wide.
"""

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.spread.limits import mean_limits, one_sided_z
from equipoise.methods.spread.sample import GroupSample

_ROUNDS = 4
_HALVINGS = 80


def furthest_means(sample: GroupSample, tail: float) -> FloatArray:
    """Group means with the largest variance within the region of one-sided level ``tail``.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([20, 900]), np.array([9.0, 450.0]), binary=True)
    >>> furthest_means(s, 0.025).round(2).tolist()
    [0.23, 0.5]
    """
    z = one_sided_z(tail)
    low, high = mean_limits(sample, z)
    y = sample.mean
    down, up = (y - low) / z, (high - y) / z
    error = (down + up) / 2
    step = np.zeros_like(y)
    for _ in range(_ROUNDS):
        step = _furthest_step(y, error, z)
        # Rates near 0 and 1 reach further one way than the other.
        error = np.where(step < 0, down, up)
    return np.clip(y + step, low, high)


def _furthest_step(y: FloatArray, error: FloatArray, z: float) -> FloatArray:
    """Maximise the variance of y + d over the ellipsoid Σ(d/error)² ≤ z²."""
    count = y.size
    centring = np.eye(count) - 1 / count
    value, vector = np.linalg.eigh(error[:, None] * centring * error)
    pull = vector.T @ (error * (centring @ y))
    top = value[-1]

    def move(multiplier: float) -> FloatArray:
        gap = np.maximum(multiplier - value, 1e-300)
        return np.asarray(np.divide(pull, gap, out=np.zeros_like(pull), where=pull != 0))

    # At the far end every gap is at least |pull|/z, so the step is no longer than z.
    near, far = top * (1 + 1e-9), top + float(np.linalg.norm(pull)) / z
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        near, far = (middle, far) if np.linalg.norm(move(middle)) > z else (near, middle)
    found = move(far)
    # Where the observed means say nothing about the loudest direction, it is taken as it is.
    spare = max(z**2 - float(found @ found), 0.0)
    found[-1] += np.copysign(np.sqrt(spare + found[-1] ** 2) - abs(found[-1]), found[-1])
    return np.asarray(error * (vector @ found))
