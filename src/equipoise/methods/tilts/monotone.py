"""Monotone tilts as mixtures of half-lines: bounds on all half-lines bound every one of them.

A weight h that rises with x is h₀ + Σ dₖ 1{x ≥ tₖ} with steps dₖ ≥ 0 at the cuts tₖ. If the
disparity of every half-line is at least lₖ, then P[1{x ≥ tₖ} (L − θ)] ≥ lₖ P(x ≥ tₖ) for all k at
once, and so P[h (L − θ)] ≥ P[g] with g = h₀ · (bound on everyone) + Σ dₖ lₖ 1{x ≥ tₖ}. The
disparity ε(h) is thus at least P[g] / P[h]: no further inference about outcomes, whichever h is
asked about.

P is the population, of which the shares between cuts are estimated. With ρ the ratio in the sample,
P[g] − ρ P[h] = (P − Pₙ)[g − ρ h], a sum of the steps of g − ρ h times the errors of P(x ≥ tₖ), each
at most z standard errors. For a single half-line g − ρ h = 0 and nothing is lost. The least lₖ of
the mixture is a bound without any of this, since ε(h) is an average of the half-lines' disparities.
"""

from dataclasses import dataclass

import numpy as np

from equipoise.methods.numerics import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HalfLines:
    """Simultaneous lower bounds on the disparity below each cut and from it up."""

    below: FloatArray
    """Of x under each cut; minus infinity where there is none."""
    above: FloatArray
    """Of x at or over each cut."""
    everyone: float | None = None
    """Of all rows together, if it is known otherwise."""


def lower_bound(
    weights: FloatArray, shares: FloatArray, errors: FloatArray, halves: HalfLines
) -> float:
    """The lower bound on the disparity under a monotone tilt; minus infinity if there is none.

    ``weights`` and ``shares`` of the population have one entry for each range between cuts, in
    order; ``errors`` bound by how much the share above each cut may be wrong.

    >>> halves = HalfLines(below=np.array([-0.3, -0.2]), above=np.array([-0.1, 0.1]))
    >>> shares, errors = np.array([0.4, 0.4, 0.2]), np.full(2, 0.01)
    >>> round(lower_bound(np.array([0.0, 0.0, 2.0]), shares, errors, halves), 3)
    0.1
    >>> round(lower_bound(np.array([0.0, 1.0, 2.0]), shares, errors, halves), 3)
    -0.053
    """
    least, made = _mixture(weights, shares, halves)
    if not np.isfinite(least):
        return -np.inf
    mean = float(shares @ weights)
    ratio = float(shares @ made) / mean
    slack = float(np.abs(np.diff(made - ratio * weights)) @ errors)
    # The mean of the tilt is estimated too; where it may be zero only the least bound is left.
    surely = mean - float(np.abs(np.diff(weights)) @ errors)
    if slack <= 1e-12 * mean:
        return ratio
    return max(ratio - slack / surely, least) if surely > 0 else least


def upper_bound(
    weights: FloatArray, shares: FloatArray, errors: FloatArray, halves: HalfLines
) -> float:
    """The upper bound, from upper bounds on the half-lines; infinity if there is none."""
    everyone = None if halves.everyone is None else -halves.everyone
    mirrored = HalfLines(below=-halves.below, above=-halves.above, everyone=everyone)
    return -lower_bound(weights, shares, errors, mirrored)


def _mixture(
    weights: FloatArray, shares: FloatArray, halves: HalfLines
) -> tuple[float, FloatArray]:
    """The least bound of the half-lines that make up a tilt, and g on each range."""
    steps = np.diff(weights)
    rising = weights[-1] >= weights[0]
    bounds, used = (halves.above, steps > 0) if rising else (halves.below, steps < 0)
    constant = float(min(weights[0], weights[-1]))
    least = [*bounds[used]]
    made = np.zeros(len(weights))
    if constant > 0:
        flat = _everyone(shares, halves)
        least += [*flat]
        made = made + constant * flat
    if not np.all(np.isfinite(least)):
        return -np.inf, made
    gained = np.where(used, np.abs(steps) * np.where(used, bounds, 0.0), 0.0)
    if rising:
        made[1:] += np.cumsum(gained)
    else:
        made[:-1] += np.cumsum(gained[::-1])[::-1]
    return float(min(least)), made


def _everyone(shares: FloatArray, halves: HalfLines) -> FloatArray:
    """A bound on everyone as a function of x: a number, or those of two half-lines that meet."""
    if halves.everyone is not None:
        return np.full(len(shares), halves.everyone)
    under = np.cumsum(shares)[:-1]
    answered = np.isfinite(halves.below) & np.isfinite(halves.above)
    below, above = (np.where(answered, x, 0.0) for x in (halves.below, halves.above))
    both = under * below + (shares.sum() - under) * above
    # All bounds hold at once, so the best pair may be chosen.
    best = int(np.argmax(np.where(answered, both, -np.inf)))
    place = np.arange(len(shares)) <= best
    return np.asarray(np.where(place, halves.below[best], halves.above[best]))


def share_errors(
    place: IntArray, weights: FloatArray, counts: FloatArray, clusters: IntArray | None, cuts: int
) -> FloatArray:
    """Standard errors of the weighted share above each cut, from each row's range.

    >>> share_errors(np.array([0, 1]), np.ones(2), np.array([50.0, 50.0]), None, 1).tolist()
    [0.05]
    """
    total = float(counts @ weights)
    found = []
    for cut in range(cuts):
        inside = (place > cut).astype(np.float64)
        moved = weights * (inside - counts @ (weights * inside) / total)
        if clusters is None:
            square = float(counts @ moved**2)
        else:
            square = float((np.bincount(clusters, counts * moved) ** 2).sum())
        found.append(np.sqrt(square) / total)
    return np.array(found)


def first_turn(weights: FloatArray) -> int | None:
    """Where weights that rise begin to fall, or the other way round; None if they never do.

    >>> first_turn(np.array([1.0, 2.0, 2.0, 1.5]))
    2
    >>> first_turn(np.array([3.0, 3.0, 1.0])) is None
    True
    """
    steps = np.diff(weights)
    moving = np.flatnonzero(steps)
    if not len(moving):
        return None
    turned = np.flatnonzero(np.sign(steps) == -np.sign(steps[moving[0]]))
    return int(turned[0]) if len(turned) else None
