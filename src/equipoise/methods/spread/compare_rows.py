"""Comparing models on the same rows when the metric is a real number: paired resampled rows."""

import numpy as np

from equipoise.methods.arrays import FloatArray, IntArray
from equipoise.methods.spread.compare import Contrast, contrast
from equipoise.methods.spread.draws import Draws, in_chunks
from equipoise.methods.spread.sample import sample_from_sums
from equipoise.methods.spread.summary import check_level
from equipoise.methods.spread.variance import double_corrected

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
    drawn = draw(parts, resamples, rng)
    twice = [
        double_corrected(d, s.size, unbiased=True) for d, s in zip(drawn, samples, strict=True)
    ]
    pairs = [(i, j) for i in range(len(samples)) for j in range(i + 1, len(samples))]
    return {(i, j): contrast(samples[i], samples[j], twice[i] - twice[j], level) for i, j in pairs}


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
