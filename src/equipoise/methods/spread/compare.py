"""Is one spread larger than another? Both are resampled together, so their errors cancel rightly.

That is so for variances. The other measures have no smooth estimate whose errors could cancel: the
interval for their difference runs from the one's lower to the other's upper end, at half the error
each, which holds whatever the spreads have in common.

Drawing whole rows makes a group's size random. A group that draws no row at all takes an
independent draw of its own size instead, which happens only to groups of a few rows.
"""

from dataclasses import dataclass

import numpy as np

from equipoise.methods.numerics import AnyArray, FloatArray, IntArray
from equipoise.methods.spread.recommended import check_level, summarize_spread
from equipoise.methods.spread.sample import GroupSample, Meta, no_spread, sample_from_sums
from equipoise.methods.spread.variance import (
    Draws,
    bootstrap_draws,
    corrected_variance,
    double_corrected,
    double_factor,
    in_chunks,
    sample_variance,
)

# --- Is one spread larger than another? Both are resampled together, so their errors cancel
# rightly ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """The difference of two measures of spread.

    Attributes
    ----------
    first
        Corrected value of the first, a variance not cut off at zero; None if it has none.
    second
        The same of the second.
    difference
        ``first`` − ``second``; None if either has none.
    lower
        Lower end of the interval for the difference; may be infinite.
    upper
        Upper end of the interval for the difference; may be infinite.
    first_sample
        The groups that counted for the first, and those left out.
    second_sample
        The groups that counted for the second, and those left out.
    level
        Confidence level.
    resamples
        Number of joint resamples.
    """

    first: float | None
    second: float | None
    difference: float | None
    lower: float
    upper: float
    first_sample: GroupSample
    second_sample: GroupSample
    level: float
    resamples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sums:
    """Resampled sizes, totals and square totals; the last axis runs over the groups."""

    size: FloatArray
    total: FloatArray
    square: FloatArray


def compare_attributes(
    n: IntArray,
    total: FloatArray,
    square: FloatArray | None,
    first: IntArray,
    second: IntArray,
    *,
    binary: bool,
    rng: np.random.Generator,
    level: float = 0.95,
    resamples: int = 1000,
) -> Contrast:
    """Compare the spread across two attributes of the same rows.

    Parameters
    ----------
    n
        Rows in each cell of the two attributes crossed.
    total
        Sum of the metric per cell.
    square
        Sum of its squares per cell; not needed for a 0/1 metric.
    first
        Group of each cell by the first attribute, numbered from 0.
    second
        Group of each cell by the second attribute, numbered from 0.
    binary
        Whether the metric takes the values 0 and 1 only.
    rng
        Source of randomness.
    level
        Confidence level.
    resamples
        Number of joint resamples of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> n, s = np.array([90, 90, 90, 90]), np.array([20.0, 22, 70, 69])
    >>> c = compare_attributes(n, s, None, np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]),
    ...                        binary=True, rng=np.random.default_rng(1))
    >>> 0 < c.lower < c.difference < c.upper
    True
    """
    check_level(level)
    if square is None and not binary:
        raise ValueError("a metric that is not 0/1 needs the sums of its squares")
    q = total if square is None else square
    samples = [_grouped(label, n, total, q, binary) for label in (first, second)]
    joint, *spare, own = rng.spawn(4)
    rates = _drawn_rates(np.asarray(n), total, (first, second)) if binary else None
    cells = _cell_draws(np.asarray(n), total, q, rates, resamples, joint)
    twice = [
        _double_corrected(_regroup(cells, label, sample), sample, stream)
        for label, sample, stream in zip((first, second), samples, spare, strict=True)
    ]
    return contrast(samples[0], samples[1], (twice[0], twice[1]), level, own)


def compare_models(
    count: IntArray,
    values: FloatArray,
    *,
    binary: bool,
    rng: np.random.Generator,
    eligible: AnyArray | None = None,
    level: float = 0.95,
    resamples: int = 1000,
) -> dict[tuple[int, int], Contrast]:
    """Compare the spread of two or more models on the same rows, pair by pair.

    Parameters
    ----------
    count
        Rows per group and joint outcome, shape (groups, outcomes). For two models with 0/1
        metrics the outcomes are (0, 0), (0, 1), (1, 0) and (1, 1).
    values
        Metric of each model at each outcome, shape (outcomes, models).
    binary
        Whether the metrics take the values 0 and 1 only.
    rng
        Source of randomness.
    eligible
        Whether a row with that outcome counts for that model, shape (outcomes, models);
        all count by default.
    level
        Confidence level of each pair's interval.
    resamples
        Number of joint resamples of the rows within the groups.

    Returns
    -------
        The contrast of each pair of models, keyed by their positions. All models are judged on the
        groups that are usable for every one of them.

    Examples
    --------
    >>> import numpy as np
    >>> count = np.array([[40, 10, 10, 40], [40, 10, 50, 0], [50, 0, 10, 40]])
    >>> values = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    >>> c = compare_models(count, values, binary=True, rng=np.random.default_rng(1))[0, 1]
    >>> c.first < c.second and c.upper > c.lower
    True
    """
    check_level(level)
    count, values = np.asarray(count), np.asarray(values, dtype=np.float64)
    counts_for = np.ones(values.shape) if eligible is None else np.asarray(eligible, dtype=float)
    value = np.where(counts_for > 0, values, 0.0)
    usable = np.flatnonzero(((count @ counts_for) >= 2).all(axis=1))
    samples = [
        _model_sample(count, value[:, m], counts_for[:, m], usable, binary)
        for m in range(values.shape[1])
    ]
    joint, own, *spare = rng.spawn(2 + len(samples))
    shares = _drawn_shares(count[usable], value, counts_for, binary)
    drawn = _outcome_draws(count[usable].sum(axis=1), shares, resamples, joint)
    twice = [
        _double_corrected(_model_sums(drawn, value[:, m], counts_for[:, m]), samples[m], spare[m])
        for m in range(len(samples))
    ]
    pairs = [(i, j) for i in range(len(samples)) for j in range(i + 1, len(samples))]
    return {
        (i, j): contrast(samples[i], samples[j], (twice[i], twice[j]), level, own) for i, j in pairs
    }


def compare_moved(
    samples: list[GroupSample],
    covariance: FloatArray,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    resamples: int = 1000,
) -> dict[tuple[int, int], Contrast]:
    """Compare variances pair by pair, given how all the group means move together.

    Parameters
    ----------
    samples
        The groups of every side.
    covariance
        Covariance of all the group means, side by side in the order of ``samples``.
    rng
        Source of randomness.
    level
        Confidence level of each pair's interval.
    resamples
        Number of joint draws.

    Examples
    --------
    >>> import numpy as np
    >>> n = np.array([90, 90])
    >>> sides = [sample_from_sums(n, np.array(t), binary=True) for t in ([20.0, 80], [44.0, 46])]
    >>> noise = np.diag(np.concatenate([s.spread / s.size for s in sides]))
    >>> c = compare_moved(sides, noise, rng=np.random.default_rng(1))[0, 1]
    >>> 0 < c.lower < c.difference < c.upper
    True
    """
    check_level(level)
    value, vector = np.linalg.eigh(covariance)
    # what is left of nothing by rounding is nothing, so that copies move together
    root = vector * np.sqrt(np.where(value > 1e-12 * value.max(initial=0.0), value, 0.0))
    stops = np.cumsum([s.groups for s in samples])[:-1]

    def chunk(count: int, stream: np.random.Generator) -> tuple[FloatArray, ...]:
        moved = root @ stream.standard_normal((covariance.shape[0], count))
        parts = zip(samples, np.split(moved, stops), strict=True)
        return tuple(np.var(s.mean[:, None] + part, axis=0, ddof=1) for s, part in parts)

    drawn = in_chunks(chunk, resamples, rng)
    pairs = [(i, j) for i in range(len(samples)) for j in range(i + 1, len(samples))]
    own = rng.spawn(1)[0]
    return {
        (i, j): contrast(samples[i], samples[j], (drawn[i], drawn[j]), level, own) for i, j in pairs
    }


def contrast_measure(
    first: GroupSample,
    second: GroupSample,
    kind: Meta,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    alpha: float = 2.0,
    resamples: int = 1000,
) -> Contrast:
    """Compare any measure of two samples, whatever they share.

    Examples
    --------
    >>> import numpy as np
    >>> n = np.array([900, 900])
    >>> ones = ([200.0, 800.0], [440.0, 460.0])
    >>> sides = [sample_from_sums(n, np.array(t), binary=True) for t in ones]
    >>> c = contrast_measure(*sides, Meta.DIFFERENCE, rng=np.random.default_rng(1))
    >>> 0.4 < c.lower < c.difference < c.upper
    True
    """
    each = (1 + level) / 2
    streams = rng.spawn(2)
    found = [
        summarize_spread(s, kind, rng=stream, level=each, alpha=alpha, resamples=resamples)
        for s, stream in zip((first, second), streams, strict=True)
    ]
    ends = [
        (no_spread(kind), np.inf) if f.interval is None else (f.interval.lower, f.interval.upper)
        for f in found
    ]
    one, two = (f.corrected for f in found)
    return Contrast(
        first=one,
        second=two,
        difference=None if one is None or two is None else one - two,
        lower=ends[0][0] - ends[1][1],
        upper=ends[0][1] - ends[1][0],
        first_sample=first,
        second_sample=second,
        level=level,
        resamples=resamples,
    )


def contrast(
    first: GroupSample,
    second: GroupSample,
    draws: tuple[FloatArray, FloatArray],
    level: float,
    rng: np.random.Generator,
) -> Contrast:
    """The difference of two variances that were resampled together.

    Its interval is the wider of two: centred deviations of the resamples around the unbiased
    difference, and the ends of both variances' own intervals, their distances added as correlated
    errors (Zou and Donner). A small group whose rows are nearly all alike hardly moves in
    resamples; its own interval knows better.
    """
    tail = (1 - level) / 2
    gaps = draws[0] - draws[1]
    # Centred, so that what bias the resamples have left does not move the interval.
    low, high = np.quantile(gaps - gaps.mean(), [tail, 1 - tail])
    one, two = sample_variance(first), sample_variance(second)
    low, high = one - two + float(low), one - two + float(high)
    own = _own_ends(first, second, draws, (one, two), level, rng)
    return Contrast(
        first=one,
        second=two,
        difference=one - two,
        lower=min(low, own[0]),
        upper=max(high, own[1]),
        first_sample=first,
        second_sample=second,
        level=level,
        resamples=gaps.size,
    )


def _own_ends(
    first: GroupSample,
    second: GroupSample,
    draws: tuple[FloatArray, FloatArray],
    values: tuple[float, float],
    level: float,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Ends for the difference from the two intervals and the correlation of the two."""
    gap = values[0] - values[1]
    if np.allclose(*draws, rtol=1e-9, atol=0.0):
        return gap, gap  # one and the same thing, but for rounding
    if np.ptp(draws[0]) == 0 or np.ptp(draws[1]) == 0:
        together = 0.0
    else:
        together = float(np.clip(np.corrcoef(draws[0], draws[1])[0, 1], 0.0, 1.0))
    below, above = [], []
    for sample, value, stream in zip((first, second), values, rng.spawn(2), strict=True):
        found = summarize_spread(
            sample, Meta.VARIANCE, rng=stream, level=level, resamples=min(draws[0].size, 400)
        ).interval
        ends = (0.0, np.inf) if found is None else (found.lower, found.upper)
        below.append(max(value - ends[0], 0.0))
        above.append(max(ends[1] - value, 0.0))

    def error(one: float, two: float) -> float:
        if not np.isfinite(one + two):
            return np.inf
        return float(np.sqrt(max(one**2 + two**2 - 2 * together * one * two, 0.0)))

    return gap - error(below[0], above[1]), gap + error(above[0], below[1])


def _grouped(
    label: IntArray, n: IntArray, total: FloatArray, square: FloatArray, binary: bool
) -> GroupSample:
    size, sums, squares = (
        np.asarray(np.bincount(label, weights=x), dtype=np.float64) for x in (n, total, square)
    )
    return sample_from_sums(size.astype(np.int64), sums, squares, binary=binary)


def _cell_draws(
    n: IntArray,
    total: FloatArray,
    square: FloatArray,
    rates: FloatArray | None,
    resamples: int,
    rng: np.random.Generator,
) -> _Sums:
    rows = int(n.sum())
    safe = np.maximum(n, 1)
    mean = total / safe
    spread = np.maximum(square / safe - mean**2, 0.0)

    def chunk(count: int, stream: np.random.Generator) -> tuple[FloatArray, ...]:
        size = stream.multinomial(rows, n / rows, size=count).T.astype(np.float64)
        if rates is not None:
            # A multinomial over cell × {0, 1} is a multinomial over cells, then a binomial in each.
            hits = stream.binomial(size.astype(np.int64), rates[:, None])
            return size, hits.astype(np.float64), hits.astype(np.float64)
        noise = stream.standard_normal(size.shape)
        drawn = size * mean[:, None] + np.sqrt(size * spread[:, None]) * noise
        # Σ L² = n L̄² + Σ (L − L̄)², the last part put at its expectation (n − 1) σ².
        inner = drawn**2 / np.maximum(size, 1) + np.maximum(size - 1, 0) * spread[:, None]
        return size, drawn, inner

    size, drawn, inner = in_chunks(chunk, resamples, rng)
    return _Sums(size=size, total=drawn, square=inner)


def _drawn_rates(n: IntArray, total: FloatArray, labels: tuple[IntArray, ...]) -> FloatArray:
    """Rates of the cells to draw from: those seen, but none of zero or one for a whole group.

    A group whose outcomes are all alike would be drawn alike every time, as if its rate were known.
    Half a row of each outcome, added to the group, lets it vary.
    """
    rates = np.clip(total / np.maximum(n, 1), 0.0, 1.0)
    for label in labels:
        size, ones = (np.bincount(label, weights=x)[label] for x in (n, total))
        alike = (ones <= 0) | (ones >= size)
        rates = np.where(alike, (ones + 0.5) / (size + 1), rates)
    return rates


def _regroup(cells: _Sums, label: IntArray, sample: GroupSample) -> _Sums:
    member = np.equal.outer(label, sample.kept).astype(np.float64)
    return _Sums(size=cells.size @ member, total=cells.total @ member, square=cells.square @ member)


def _model_sample(
    count: IntArray, value: FloatArray, counts_for: FloatArray, usable: IntArray, binary: bool
) -> GroupSample:
    # Groups unusable for any model are emptied here, so that each sample lists them as left out.
    size = np.zeros(count.shape[0], dtype=np.int64)
    size[usable] = (count[usable] @ counts_for).astype(np.int64)
    total, square = np.zeros(size.size), np.zeros(size.size)
    total[usable], square[usable] = count[usable] @ value, count[usable] @ value**2
    return sample_from_sums(size, total, square, binary=binary)


def _drawn_shares(
    count: IntArray, value: FloatArray, counts_for: FloatArray, binary: bool
) -> FloatArray:
    """Shares of the joint outcomes to draw from; half a row of each where a model's are all alike.

    Which joint outcome an unseen value comes with is taken from all groups together.
    """
    filled = count.astype(np.float64)
    for m in range(value.shape[1] if binary else 0):
        for unseen in (0.0, 1.0):
            there = (counts_for[:, m] > 0) & (value[:, m] == unseen)
            alike = ~count[:, there].any(axis=1)
            if there.any() and alike.any():
                own = count[alike] * counts_for[:, m]
                filled[alike] += 0.5 * own / own.sum(axis=1, keepdims=True)
                common = np.maximum(count.sum(axis=0), 1e-9) * there
                filled[alike] += 0.5 * common / common.sum()
    return np.asarray(filled / filled.sum(axis=1, keepdims=True))


def _outcome_draws(
    size: IntArray, share: FloatArray, resamples: int, rng: np.random.Generator
) -> FloatArray:
    """Rows of each joint outcome per group, shape (resamples, groups, outcomes)."""

    def chunk(number: int, stream: np.random.Generator) -> tuple[FloatArray, ...]:
        drawn = stream.multinomial(size, share, size=(number, size.size))
        return (np.moveaxis(drawn, 0, -1).astype(np.float64),)

    (drawn,) = in_chunks(chunk, resamples, rng)
    return drawn


def _model_sums(drawn: FloatArray, value: FloatArray, counts_for: FloatArray) -> _Sums:
    return _Sums(size=drawn @ counts_for, total=drawn @ value, square=drawn @ value**2)


def _double_corrected(sums: _Sums, sample: GroupSample, rng: np.random.Generator) -> FloatArray:
    resamples = sums.size.shape[0]
    empty = sums.size == 0
    spare = bootstrap_draws(sample, resamples, rng)
    size = np.where(empty, sample.size, sums.size)
    mean = np.where(empty, spare.mean, sums.total / size)
    second = np.maximum(sums.square / size - mean**2, 0.0)
    spread = np.where(empty, spare.spread, mean * (1 - mean) if sample.binary else second)
    factor = double_factor(sample.size, unbiased=False, drawn=size)
    return corrected_variance(mean, spread, factor)


# --- Comparing models on the same rows when the metric is a real number: paired resampled rows

_ROWS_AT_ONCE = 1_000_000
_WORK = 200_000_000


def compare_model_rows(
    values: FloatArray,
    group: IntArray,
    groups: int,
    *,
    binary: bool,
    rng: np.random.Generator,
    level: float = 0.95,
    resamples: int = 1000,
) -> dict[tuple[int, int], Contrast]:
    """Compare the spread of two or more models on the same rows, pair by pair.

    Rows are resampled within the groups, the same rows for every model. Where that would take too
    long (rows × resamples), group means are drawn from their joint normal distribution instead.

    Parameters
    ----------
    values
        The metric of each model on each row, shape (rows, models).
    group
        The group of each row, numbered 0 to ``groups`` − 1.
    groups
        Number of groups.
    binary
        Whether the metric takes the values 0 and 1 only.
    rng
        Source of randomness.
    level
        Confidence level of each pair's interval.
    resamples
        Number of joint resamples.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> group = np.repeat([0, 1, 2], 200)
    >>> good, bad = rng.normal(size=600), rng.normal(size=600) + group
    >>> c = compare_model_rows(np.stack([good, bad], 1), group, 3, binary=False, rng=rng)[0, 1]
    >>> c.upper < 0
    True
    """
    check_level(level)
    size = np.bincount(group, minlength=groups)
    samples = [
        sample_from_sums(
            size,
            *_sums(group, groups, column, column**2),
            binary=binary,
        )
        for column in values.T
    ]
    parts = [values[group == g] for g in samples[0].kept]
    draw = _paired_rows if values.shape[0] * resamples <= _WORK else _paired_normals
    drawn, own = draw(parts, resamples, rng), rng.spawn(1)[0]
    twice = [
        double_corrected(d, s.size, unbiased=True) for d, s in zip(drawn, samples, strict=True)
    ]
    pairs = [(i, j) for i in range(len(samples)) for j in range(i + 1, len(samples))]
    return {
        (i, j): contrast(samples[i], samples[j], (twice[i], twice[j]), level, own) for i, j in pairs
    }


def _sums(group: IntArray, groups: int, *columns: FloatArray) -> list[FloatArray]:
    return [
        np.asarray(np.bincount(group, weights=column, minlength=groups), dtype=np.float64)
        for column in columns
    ]


def _paired_rows(parts: list[FloatArray], resamples: int, rng: np.random.Generator) -> list[Draws]:
    def chunk(count: int, stream: np.random.Generator) -> tuple[FloatArray, ...]:
        moments = [_resample(part, count, stream) for part in parts]
        # From (groups, moments and models, resamples) to one array for each moment and model.
        return tuple(np.moveaxis(np.stack(moments), 1, 0))

    return _as_draws(in_chunks(chunk, resamples, rng))


def _resample(part: FloatArray, count: int, stream: np.random.Generator) -> FloatArray:
    block = max(1, _ROWS_AT_ONCE // part.size)
    filled = []
    for start in range(0, count, block):
        shape = (min(block, count - start), part.shape[0])
        rows = part[stream.integers(0, part.shape[0], size=shape)]
        mean = rows.mean(axis=1)
        filled.append(np.concatenate([mean, (rows**2).mean(axis=1) - mean**2], axis=1))
    return np.concatenate(filled).T


def _paired_normals(
    parts: list[FloatArray], resamples: int, rng: np.random.Generator
) -> list[Draws]:
    centres = np.stack([part.mean(axis=0) for part in parts])
    roots = np.stack([_root(np.cov(part.T, ddof=0) / part.shape[0]) for part in parts])
    # What the variance of a resample, divisor n, is on average.
    spreads = np.stack([part.var(axis=0) * (1 - 1 / part.shape[0]) for part in parts])

    def chunk(count: int, stream: np.random.Generator) -> tuple[FloatArray, ...]:
        noise = stream.standard_normal((*centres.shape, count))
        mean = centres[:, :, None] + roots @ noise
        fixed = np.broadcast_to(spreads[:, :, None], mean.shape)
        return tuple(np.moveaxis(np.concatenate([mean, fixed], axis=1), 1, 0))

    return _as_draws(in_chunks(chunk, resamples, rng))


def _root(covariance: FloatArray) -> FloatArray:
    """A square root that also exists for models that agree on every row."""
    value, vector = np.linalg.eigh(np.atleast_2d(covariance))
    return np.asarray(vector * np.sqrt(np.maximum(value, 0.0)))


def _as_draws(moments: tuple[FloatArray, ...]) -> list[Draws]:
    models = len(moments) // 2
    return [
        Draws(mean=moments[m], spread=np.maximum(moments[models + m], 0.0)) for m in range(models)
    ]
