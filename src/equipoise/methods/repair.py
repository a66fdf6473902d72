"""Rules that turn scores into other decisions or other scores, learnt on one part of the rows.

Everything a threshold does to a mean can be had from two sums per cell and threshold: of the rows
that would be told yes, with the value they have then, and of the others, with the value they have
if told no. A recalibration is a rising line through a few knots.

Several models on the same rows: whose largest disparity is smaller, whose loss is near the best.

Every model has a mean in every group, and all of them are means of the same rows. From the sums of
values and weights over units (rows, or clusters) come all means, their disparities, and how they
move together; two further units' worth of rows, half at the lowest and half at the highest value,
keep small groups from looking certain (for two models on one group this is the correction of
Agresti and Min, for two groups that of Agresti and Caffo).

A model's largest disparity D is the largest of all ``sign · disparity``. That candidate b has a
smaller one than model a is false only if for some group and sign the candidate's disparity is at
least as large as every disparity of a. Each of these hypotheses is refuted by the best of the many
comparisons with a (their joint law pays for the choice; those that are surely far off cost little,
by the two steps of Romano, Shaikh and Wolf), and as all of them must be refuted, none pays for the
others. In the same way a loss within a margin of the best is one within the margin of every model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from equipoise.methods.numerics import FloatArray, IntArray

#: Rows below which a cell has no threshold of its own.
FEW = 20


def threshold_grid(score: FloatArray, number: int) -> FloatArray:
    """At most ``number`` thresholds between the scores, evenly spread over the rows.

    Every threshold lies between two scores that occur, so that none of them stands on an edge.

    >>> threshold_grid(np.array([0.1, 0.1, 0.3, 0.7]), 10).tolist()
    [0.1, 0.2, 0.5]
    """
    values, copies = np.unique(score, return_counts=True)
    if len(values) == 1:
        return values
    cuts = np.concatenate([values[:1], values[:-1] + np.diff(values) / 2])
    below = np.concatenate([[0], np.cumsum(copies)[:-1]])
    if len(cuts) <= number:
        return cuts
    wanted = np.linspace(0, below[-1], number)
    return cuts[np.unique(np.searchsorted(below, wanted, side="left"))]


@dataclass(frozen=True, slots=True)
class Potential:
    """What a row adds if it is told no, and if it is told yes: one array of two for each."""

    no: FloatArray
    yes: FloatArray


def by_threshold(
    added: Potential, reached: IntArray, cell: IntArray, thresholds: int, cells: int
) -> FloatArray:
    """Sums over the rows of every cell under every threshold, of shape (thresholds, cells).

    ``reached`` is how many of the thresholds, which rise, each row's score reaches.
    """
    size = (cells, thresholds + 1)
    place = cell * (thresholds + 1) + reached
    yes, no = (
        np.bincount(place, weights=x, minlength=cells * (thresholds + 1)).reshape(size)
        for x in (added.yes, added.no)
    )
    # the rows that reach more than j thresholds are told yes by threshold j
    told_yes = yes.sum(axis=1, keepdims=True) - np.cumsum(yes, axis=1)
    return np.asarray((told_yes + np.cumsum(no, axis=1))[:, :thresholds].T)


def aligned(rate: FloatArray, rows: FloatArray, loss: FloatArray, wanted: float) -> IntArray:
    """For every cell the threshold that brings its rate nearest to ``wanted``.

    Arrays are of shape (thresholds, cells). Among thresholds that come equally near the one with
    the least loss counts; -1 stands for cells with too few rows for a threshold of their own.
    """
    far = np.where(np.isnan(rate), np.inf, np.abs(rate - wanted))
    nearest = far.min(axis=0, keepdims=True)
    chosen = np.argmin(np.where(far <= nearest + 1e-12, loss, np.inf), axis=0)
    few = (rows.max(axis=0) < FEW) | ~np.isfinite(nearest[0])
    return np.where(few, -1, chosen).astype(np.int64)


# --- Recalibration: a line that never falls, through a few knots ---


def rising_means(value: FloatArray, weight: FloatArray) -> tuple[FloatArray, IntArray]:
    """The rising sequence nearest to ``value`` by weighted squares, and the blocks it consists of.

    >>> rising_means(np.array([1.0, 3.0, 2.0]), np.ones(3))[0].tolist()
    [1.0, 2.5, 2.5]
    """
    means: list[float] = []
    weights: list[float] = []
    sizes: list[int] = []
    for mean, heavy in zip(value.tolist(), weight.tolist(), strict=True):
        size = 1
        while means and means[-1] >= mean:
            before, own = means.pop(), weights.pop()
            mean = (before * own + mean * heavy) / (own + heavy)
            heavy += own
            size += sizes.pop()
        means.append(mean)
        weights.append(heavy)
        sizes.append(size)
    blocks = np.repeat(np.arange(len(sizes)), sizes)
    return np.repeat(means, sizes), blocks.astype(np.int64)


def isotonic_knots(score: FloatArray, label: FloatArray, weight: FloatArray) -> FloatArray:
    """Knots, of shape (knots, 2), of the rising function of the score nearest to the label.

    Each block of the fit has a knot at either end; between blocks the line rises evenly.
    """
    values, place = np.unique(score, return_inverse=True)
    heavy = np.bincount(place, weights=weight, minlength=len(values)).astype(np.float64)
    total = np.bincount(place, weights=weight * label, minlength=len(values))
    # scores whose rows weigh nothing tell nothing
    told = heavy > 0
    values, heavy, total = values[told], heavy[told], total[told]
    fitted, blocks = rising_means(total / heavy, heavy)
    first = np.flatnonzero(np.diff(blocks, prepend=-1))
    last = np.append(first[1:] - 1, len(values) - 1)
    ends = np.unique(np.concatenate([first, last]))
    return np.stack([values[ends], fitted[ends]], axis=1)


def few_knots(score: FloatArray, label: FloatArray, weight: FloatArray, number: int) -> FloatArray:
    """Knots at the mean score of at most ``number`` equally large sets of rows, in rising order."""
    order = np.argsort(score, kind="stable")
    s, y, w = score[order], label[order], weight[order]
    # equal scores stay together
    _, start = np.unique(s, return_index=True)
    share = (np.cumsum(w) - w)[start] / w.sum()
    bins = np.minimum((share * number).astype(np.int64), number - 1)
    row_bin = np.repeat(bins, np.diff(np.append(start, len(s))))
    _, at = np.unique(row_bin, return_inverse=True)
    heavy = np.bincount(at, weights=w).astype(np.float64)
    x, mean = (np.bincount(at, weights=w * z) / heavy for z in (s, y))
    fitted, _ = rising_means(mean, heavy)
    return np.stack([x, fitted], axis=1)


def straight_knots(score: FloatArray, label: FloatArray, weight: FloatArray) -> FloatArray:
    """Two knots of the straight line nearest to the label, which does not fall."""
    w = weight / weight.sum()
    centre, mean = float(w @ score), float(w @ label)
    spread = float(w @ (score - centre) ** 2)
    slope = max(float(w @ ((score - centre) * (label - mean))) / spread, 0.0) if spread else 0.0
    ends = np.unique([score.min(), score.max()])
    return np.stack([ends, mean + slope * (ends - centre)], axis=1)


def recalibrated(knots: FloatArray, score: FloatArray) -> FloatArray:
    """The line through the knots at the scores; level beyond the first and the last."""
    return np.asarray(np.interp(score, knots[:, 0], knots[:, 1]))


# --- Which candidate to certify: judged on the rows it was learnt on ---


def worst_overrun(
    disparity: FloatArray,
    error: FloatArray,
    reach: float,
    allowed: tuple[float | None, float | None],
) -> FloatArray:
    """By how much bounds of ``reach`` errors would go beyond what is allowed, in the worst group.

    Arrays are of shape (candidates, groups); below zero the candidate would most likely be
    certified. A group without an answer is none that could be certified.
    """
    low, high = allowed
    over = np.full(disparity.shape, -np.inf)
    if high is not None:
        over = np.maximum(over, disparity + reach * error - high)
    if low is not None:
        over = np.maximum(over, low - (disparity - reach * error))
    return np.asarray(np.where(np.isnan(over), np.inf, over).max(axis=1))


def cheapest(
    loss: FloatArray, overrun: Callable[[float], FloatArray], reaches: FloatArray
) -> list[int]:
    """For every reach the candidate of least loss that would be certified, each once, in order.

    Where none would be, the one that comes nearest. Candidates come by their place, and among
    equals the first counts, so that the answer depends on nothing else.
    """
    found: list[int] = []
    for reach in reaches.tolist():
        over = overrun(reach)
        fine = np.flatnonzero(over < 0)
        best = fine[np.argmin(loss[fine])] if fine.size else np.argmin(over)
        if int(best) not in found:
            found.append(int(best))
    return found


#: Units' worth of rows that are added to every group.
ADDED = 2.0
#: Draws of the joint law.
DRAWS = 4000
#: Comparisons of two models beyond which Bonferroni's inequality takes the place of draws.
MOST = 160


@dataclass(frozen=True, slots=True)
class Means:
    """Means of several models in several sets of rows, and how they move together."""

    mean: FloatArray
    """Shape (models, sets), as they are."""
    moved: FloatArray
    """The same with the rows that are added."""
    covariance: FloatArray
    """Covariance of ``moved``, flattened: shape (models · sets, models · sets)."""
    units: FloatArray
    """How many units each mean is worth, shape (models, sets)."""


def joint_means(
    value: FloatArray,
    weight: FloatArray,
    copies: FloatArray,
    unit: IntArray | None,
    cell: IntArray,
    members: FloatArray,
    low: float | None,
    high: float | None,
) -> Means:
    """The means of every model over every set of rows.

    ``value`` has shape (rows, models), NaN where a row does not count for a model. ``weight`` says
    how much each row counts, ``copies`` as how many rows it stands, ``unit`` which rows belong
    together, if any do. ``cell`` is where each row is, and ``members``, of shape (cells, sets),
    which cells make up each set. Where ``low`` and ``high`` are known, rows are added at both.
    """
    from scipy.sparse import csr_array, diags_array, hstack

    sets = csr_array(members)[cell]
    known = np.isfinite(value)
    heavy = weight if unit is None else weight * copies
    parts = []
    for model in range(value.shape[1]):
        counts = np.where(known[:, model], heavy, 0.0)
        parts += [diags_array(counts * np.nan_to_num(value[:, model])) @ sets]
        parts += [diags_array(counts) @ sets]
    sums = csr_array(hstack(parts))
    often = copies
    if unit is not None:
        size = (int(unit.max(initial=-1)) + 1, len(unit))
        sums = csr_array(csr_array((np.ones(len(unit)), (unit, np.arange(len(unit)))), size) @ sums)
        often = np.ones(size[0])
    total = np.asarray(sums.T @ often).reshape(value.shape[1], 2, -1)
    moments = np.asarray((sums.T @ (diags_array(often) @ sums)).todense())
    return _from_sums(total, moments.reshape(*total.shape, *total.shape), low, high)


def _from_sums(
    total: FloatArray, moments: FloatArray, low: float | None, high: float | None
) -> Means:
    """Means by the delta method from sums of values and weights, and sums of their products."""
    models, _, sets = total.shape
    values, weights = total[:, 0], total[:, 1]
    squares = np.einsum("msms->ms", moments[:, 1, :, :, 1, :])
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(weights > 0, values / weights, np.nan)
        # the size of a unit as it weighs in the mean, and how many of that size there are
        size = np.where(weights > 0, squares / weights, 0.0)
        units = np.where(squares > 0, weights**2 / squares, 0.0)
    if low is None or high is None:
        added, middle, wide = np.zeros_like(size), 0.0, 0.0
    else:
        added, middle, wide = ADDED * size, (low + high) / 2, ((high - low) / 2) ** 2
    moved_weight = weights + added
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.where(moved_weight > 0, (values + added * middle) / moved_weight, np.nan)
    centre = np.nan_to_num(moved)
    # Σ (v − m w)(v' − m' w') over units, from the four kinds of products
    left = moments[:, 0] - centre[:, :, None, None, None] * moments[:, 1]
    cross = left[:, :, :, 0] - centre[None, None] * left[:, :, :, 1]
    for place in range(sets):
        # rows added at both ends, as often alike as not: they tell of no two models together
        off = np.sqrt(size[:, place] * added[:, place])
        shift = off * (middle - centre[:, place])
        cross[:, place, :, place] += np.outer(shift, shift)
        cross[np.arange(models), place, np.arange(models), place] += off**2 * wide
    scale = np.where(moved_weight > 0, moved_weight, np.inf)
    covariance = cross / scale[:, :, None, None] / scale[None, None]
    worth = units + (ADDED if low is not None and high is not None else 0.0)
    # a variance of few units is too small by one of them
    bigger = np.sqrt(worth / np.maximum(worth - 1.0, 1e-9))
    covariance = covariance * bigger[:, :, None, None] * bigger[None, None]
    flat = covariance.reshape(models * sets, models * sets)
    return Means(mean, moved, np.asarray((flat + flat.T) / 2), worth)


def contrasted(found: Means, contrast: FloatArray, shift: FloatArray, own: IntArray) -> Means:
    """Linear functions of the means of every model, the same for all of them.

    ``contrast`` has shape (functions, sets), ``shift`` is added, and ``own`` is the set whose units
    say how much a function rests on.
    """
    models, sets = found.mean.shape
    used = np.abs(contrast) > 0

    def applied(mean: FloatArray) -> FloatArray:
        known = np.where(np.isnan(mean), 0.0, mean) @ contrast.T + shift
        return np.where((np.isnan(mean)[:, None, :] & used[None]).any(axis=2), np.nan, known)

    blocks = found.covariance.reshape(models, sets, models, sets)
    covariance = np.einsum("fs,msnt,gt->mfng", contrast, blocks, contrast, optimize=True)
    size = models * len(contrast)
    return Means(
        applied(found.mean),
        applied(found.moved),
        covariance.reshape(size, size),
        found.units[:, own],
    )


def _log_score(estimate: FloatArray, error: FloatArray, degrees: FloatArray) -> FloatArray:
    """How far estimates lie below zero, as a normal score of Student's law."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = -estimate / error
        lower = stdtr(degrees, -np.abs(t))
        score = np.where(t >= 0, -ndtri(lower), ndtri(lower))
    usable = (error > 0) & (degrees > 0) & np.isfinite(t)
    return np.where(usable, np.clip(score, -37.0, 37.0), -np.inf)


def _bound(
    estimate: FloatArray, error: FloatArray, degrees: FloatArray, critical: float
) -> FloatArray:
    """Upper bounds whose normal score is the critical one."""
    with np.errstate(invalid="ignore"):
        reach = stdtrit(np.maximum(degrees, 1e-9), ndtr(critical))
        bound = estimate + reach * error
    return np.where((error > 0) & (degrees > 0), bound, np.inf)


@dataclass(frozen=True, slots=True)
class Smaller:
    """Whether a candidate's largest disparity is smaller than that of another model."""

    p: float
    upper: float
    """Upper bound on the difference, at the level asked for."""


def smaller(
    found: Means,
    candidate: int,
    other: int,
    signs: tuple[int, ...],
    error: float,
    spare: float,
    rng: np.random.Generator,
) -> Smaller:
    """Test and bound the difference of two largest disparities.

    ``error`` is that of the bound; ``spare`` is spent on finding out which comparisons are surely
    far off, and is part of the p-value.
    """
    groups = found.mean.shape[1]
    one = candidate * groups + np.arange(groups)
    two = other * groups + np.arange(groups)
    picked = np.concatenate([one, two])
    cov = found.covariance[np.ix_(picked, picked)]
    sign = np.repeat(signs, groups).astype(np.float64)
    place = np.tile(np.arange(groups), len(signs))
    own, against = found.moved[candidate][place] * sign, found.moved[other][place] * sign
    degrees = (
        np.minimum(found.units[candidate][place][:, None], found.units[other][place][None, :]) - 1.0
    )
    if np.isnan(own).any() or np.isnan(against).any():
        return Smaller(1.0, np.inf)
    a, b = place, place + groups
    variance = (
        cov[a, a][:, None]
        + cov[b, b][None, :]
        - 2 * sign[:, None] * sign[None, :] * cov[np.ix_(a, b)]
    )
    spread = np.sqrt(np.maximum(variance, 0.0))
    estimate = own[:, None] - against[None, :]
    score = _log_score(estimate, spread, degrees)
    many = len(sign)
    bonferroni = np.minimum(many * ndtr(-score.max(axis=1)), 1.0)
    critical = float(-ndtri(error / many))
    if many <= MOST:
        p, joint = _joint(cov, sign, place, spread, score, error, spare, rng)
        bonferroni, critical = np.minimum(p, bonferroni), min(joint, critical)
    upper = _bound(estimate, spread, degrees, critical).min(axis=1).max()
    return Smaller(float(min(bonferroni.max(), 1.0)), float(upper))


def _joint(
    cov: FloatArray,
    sign: FloatArray,
    place: IntArray,
    spread: FloatArray,
    score: FloatArray,
    error: float,
    spare: float,
    rng: np.random.Generator,
) -> tuple[FloatArray, float]:
    """p-values of every hypothesis by the joint law, and one critical value for all of them."""
    values, vectors = np.linalg.eigh(cov)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = rng.standard_normal((DRAWS, len(cov))) @ root.T
    groups = len(cov) // 2
    own, against = draws[:, place] * sign, draws[:, place + groups] * sign
    sure = float(-ndtri(spare / len(sign)))
    p = np.ones(len(sign))
    critical = -np.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        for row in range(len(sign)):
            moved = (against - own[:, [row]]) / spread[row]
            moved = np.where(spread[row] > 0, moved, -np.inf)
            # what is surely far below cannot be what the best comparison was chosen for
            far = np.minimum(score[row] + sure, 0.0)
            highest = (moved + far).max(axis=1)
            p[row] = (1 + (highest >= score[row].max()).sum()) / (DRAWS + 1) + spare
            critical = max(critical, float(np.quantile(moved.max(axis=1), 1 - error)))
    return p, critical


def near_best(found: Means, margin: float, error: float) -> tuple[FloatArray, FloatArray]:
    """For every model: the p-value of losing more than the margin beyond the best, and a bound.

    ``found`` has one set of rows. All comparisons must be won, so none pays for the others.
    """
    loss, units = found.moved[:, 0], found.units[:, 0]
    variance = np.diag(found.covariance)
    gap = loss[:, None] - loss[None, :]
    spread = np.sqrt(np.maximum(variance[:, None] + variance[None, :] - 2 * found.covariance, 0.0))
    degrees = np.minimum(units[:, None], units[None, :]) - 1.0
    score = _log_score(gap - margin, spread, degrees)
    upper = _bound(gap, spread, degrees, float(-ndtri(error)))
    same = np.eye(len(loss), dtype=bool)
    p = np.where(same, 0.0, ndtr(-score)).max(axis=1)
    return p, np.where(same, 0.0, upper).max(axis=1)


def largest_between(
    found: Means, model: int, signs: tuple[int, ...], error: float
) -> tuple[float, float]:
    """Ends of a model's largest disparity, each end wrong with half of the error at most."""
    groups = found.mean.shape[1]
    at = model * groups + np.arange(groups)
    spread = np.sqrt(np.maximum(np.diag(found.covariance)[at], 0.0))
    degrees, estimate = found.units[model] - 1.0, found.moved[model]
    critical = float(-ndtri(error / 2 / (groups * len(signs))))
    upper = max(_bound(s * estimate, spread, degrees, critical).max() for s in signs)
    lower = max((-_bound(-s * estimate, spread, degrees, critical)).max() for s in signs)
    return float(lower), float(upper)


def mean_between(found: Means, model: int, error: float) -> tuple[float, float]:
    """Ends of a model's mean over one set of rows."""
    spread = np.sqrt(np.maximum(found.covariance[[model], [model]], 0.0))
    degrees, estimate = found.units[model] - 1.0, found.moved[model]
    critical = float(-ndtri(error / 2))
    upper = _bound(estimate, spread, degrees, critical)[0]
    return float(-_bound(-estimate, spread, degrees, critical)[0]), float(upper)
