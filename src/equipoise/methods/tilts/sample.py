"""What the tilt process needs of the rows: features, metric, influence of the target, counts."""

from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import FloatArray, IntArray

#: Rows treated at a time where a product with all features would not fit.
_BLOCK_ROWS = 16_384


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TiltSample:
    """Rows as the tilt process sees them, equal rows merged into one with a count.

    A tilt h has coordinates β, and its value on a row is the row's features times β. Sampling
    weights are part of the features: they multiply the tilt.
    """

    features: FloatArray
    """Rows × rank; with sampling weights of mean one, each row times its weight."""
    values: FloatArray
    """The metric minus its mean over everyone."""
    influence: FloatArray
    """First-order effect of each row on the target, averaging zero; zeros for a known target."""
    counts: FloatArray
    """How many rows each row stands for."""
    paired: FloatArray
    """How much each row counts in the target, with mean one for the average over everyone: the
    target's influence is this times the metric minus the target. Zeros for a known target."""
    clusters: IntArray | None = None
    """Number of each row's cluster, if whole clusters are resampled."""
    apart: float = 0.0
    """Mean square of the influence that is not ``paired`` with the metric, over its variance."""

    @property
    def n(self) -> float:
        """Number of rows."""
        return float(self.counts.sum())

    @property
    def rank(self) -> int:
        """Columns of the features."""
        return int(self.features.shape[1])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TiltMoments:
    """Averages over the rows from which every tilt in the span can be estimated."""

    n: float
    """Number of rows."""
    mean: FloatArray
    """Mean of the features: a tilt's mean is its product with the coordinates."""
    cross: FloatArray
    """Mean of features times the metric."""
    second: FloatArray
    """Mean of the products of features: the mean square of a tilt is a quadratic form in it."""
    centred: FloatArray
    """The same of features minus what the target counts already, the form behind the scale: the
    mean square of h − P h · r, with r how much a row counts in the target."""


def moments_of(sample: TiltSample) -> TiltMoments:
    """Averages over the rows, in blocks.

    Against the average over everyone the constant tilt has no error, and no centred square:

    >>> values = np.array([1.0, -1.0, 0.0, 0.0])
    >>> rows = TiltSample(
    ...     features=np.ones((4, 1)), values=values, influence=values, counts=np.ones(4),
    ...     paired=np.ones(4),
    ... )
    >>> moments_of(rows).second.tolist(), moments_of(rows).centred.tolist()
    ([[1.0]], [[0.0]])
    """
    share = sample.counts / sample.n
    second = np.zeros((sample.rank, sample.rank))
    for rows in row_blocks(len(share)):
        part = sample.features[rows]
        second += part.T @ (part * share[rows, None])
    mean = share @ sample.features
    # (f − m r)(f − m r)ᵀ multiplied out: one pass over the rows does for both forms.
    shared = np.outer(mean, (share * sample.paired) @ sample.features)
    counted = float(share @ sample.paired**2) + sample.apart
    return TiltMoments(
        n=sample.n,
        mean=mean,
        cross=(share * sample.values) @ sample.features,
        second=second,
        centred=second - shared - shared.T + counted * np.outer(mean, mean),
    )


def row_blocks(n: int, size: int = _BLOCK_ROWS) -> list[slice]:
    """All rows, some at a time.

    >>> row_blocks(3, 2)
    [slice(0, 2, None), slice(2, 4, None)]
    """
    return [slice(start, start + size) for start in range(0, n, size)]
