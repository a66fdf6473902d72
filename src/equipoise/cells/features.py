"""Features of single rows as a numeric matrix, each column of which can be put into words."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equipoise._codec import canonical
from equipoise._validate import columns_named
from equipoise.cells.merge import cluster_codes
from equipoise.cells.query import Query
from equipoise.cells.sampling import fetch_rows
from equipoise.cells.scan import plain_keys
from equipoise.claims.metric import Metric
from equipoise.errors import ClaimError
from equipoise.methods.arrays import AnyArray, BoolArray, FloatArray, IntArray
from equipoise.trail import Trail

#: A text column with more levels than this is refused as a feature.
MAX_FEATURE_LEVELS = 100


@dataclass(frozen=True, slots=True)
class Feature:
    """A column of the matrix: a number, whether text has a level, whether a number is missing."""

    column: str
    level: str | bool | None = None
    missing: bool = False
    """Whether it says that the column's number is missing."""

    def rule(self, low: float | None, high: float | None) -> tuple[str, str]:
        """In words and as a formula: the feature lies above ``low`` and not above ``high``."""
        name = f"column({self.column!r})"
        if self.missing:
            # a number that is missing equals nothing, itself included
            here = low is not None
            said = f"{self.column} is {'missing' if here else 'given'}"
            return said, f"not ({name} == {name})" if here else f"{name} == {name}"
        if self.level is not None:
            sign = "is" if low is not None else "is not"
            equal = "==" if low is not None else "!="
            return f"{self.column} {sign} {self.level}", f"{name} {equal} {self.level!r}"
        words, formula = [], []
        if low is not None:
            words.append(f"over {low:g}")
            formula.append(f"{name} > {low!r}")
        if high is not None:
            words.append(f"at most {high:g}")
            formula.append(f"{name} <= {high!r}")
        return f"{self.column} {' and '.join(words)}", " and ".join(formula)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureRows:
    """The rows on which a metric counts, with their features."""

    value: FloatArray
    """The metric."""
    weight: FloatArray
    """Sampling weight, one where there is none."""
    count: IntArray
    """How many rows each row stands for."""
    matrix: FloatArray
    """Rows × features."""
    features: tuple[Feature, ...]
    """What each column of the matrix is."""
    missing: dict[str, int]
    """Rows left out because a number was missing, by reason."""
    left: int = 0
    """Rows that were not fetched, since a sample was asked for."""
    cluster: IntArray | None = None
    """Number of each row's cluster, in the order of their names, if the trail has clusters."""


def pull_features(
    trail: Trail,
    metric: Metric,
    names: Sequence[str],
    *,
    sample: int | None = None,
    seed: np.random.SeedSequence | None = None,
    needed: Sequence[str] | None = None,
) -> FeatureRows:
    """The rows of a metric with the named columns as features.

    With ``sample``, at least about as many rows come, of which the caller draws the sample. Rows
    without a number of the columns ``needed``, all of them unless told, are left out; where another
    number is missing, the median stands in and a feature says so.
    """
    chosen = [trail.attribute(name) for name in columns_named("features", names)]
    if not chosen:
        raise ClaimError("At least one feature is needed.")
    query = Query(trail, (), (metric,))
    columns = {f"feature{i}": trail.key(name) for i, name in enumerate(chosen)}
    if trail.roles.cluster is not None:
        columns["cluster"] = trail.key(trail.roles.cluster)
    fetched = fetch_rows(query, columns, sample=sample, seed=seed)
    table = fetched.table
    if len(table["value"]) == 0:
        raise ClaimError(f"Metric {metric.name!r} counts on no row.")
    count = table["count"].astype(np.int64) if "count" in table else _ones(table["value"])
    weight = table["weight"].astype(np.float64) if "weight" in table else None
    parts = [_encode(name, table[f"feature{i}"]) for i, name in enumerate(chosen)]
    if needed is not None:
        parts = [part if part[1][0].column in needed else _filled(*part) for part in parts]
    known, missing = _complete(chosen, [part[0] for part in parts], count)
    cluster = cluster_codes(plain_keys(table["cluster"])) if "cluster" in table else None
    if cluster is not None:
        # the rows that have none were counted where cells were
        known &= cluster >= 0
        cluster = np.unique(cluster[known], return_inverse=True)[1].reshape(-1).astype(np.int64)
    return FeatureRows(
        value=table["value"].astype(np.float64)[known],
        weight=np.ones(int(known.sum())) if weight is None else weight[known],
        count=count[known],
        matrix=np.concatenate([part[0] for part in parts], axis=1)[known],
        features=tuple(feature for part in parts for feature in part[1]),
        missing=missing,
        left=fetched.left,
        cluster=cluster,
    )


def draw_sample(rows: FeatureRows, sample: int | None, seed: np.random.SeedSequence) -> FeatureRows:
    """Exactly ``sample`` of the rows, drawn at random; all of them if they are not more."""
    number = int(rows.count.sum())
    if sample is None or number <= sample:
        return rows
    # sorted first, so that the order in which an engine gave the rows does not matter
    order = np.lexsort((rows.weight, rows.value, *rows.matrix.T))
    # A stream of its own, numbered far from those that an audit spawns.
    stream = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 1 << 31))
    drawn = np.empty_like(rows.count)
    drawn[order] = np.random.default_rng(stream).multivariate_hypergeometric(
        rows.count[order], sample
    )
    kept = drawn > 0
    return dataclasses.replace(
        rows,
        value=rows.value[kept],
        weight=rows.weight[kept],
        count=drawn[kept],
        matrix=rows.matrix[kept],
        left=rows.left + number - sample,
    )


def _ones(like: AnyArray) -> IntArray:
    return np.ones(len(like), dtype=np.int64)


def _encode(name: str, column: AnyArray) -> tuple[FloatArray, list[Feature]]:
    values = [canonical(value) for value in column.tolist()]
    levels = sorted({value for value in values if isinstance(value, str)})
    if not levels:
        numbers = [np.nan if value is None else float(value) for value in values]
        return np.array(numbers, dtype=np.float64)[:, None], [Feature(name)]
    if len(levels) > MAX_FEATURE_LEVELS:
        raise ClaimError(
            f"Feature {name!r} has {len(levels):,} levels, more than {MAX_FEATURE_LEVELS}. "
            "Group them, or leave it out."
        )
    matrix = np.array([[float(value == level) for level in levels] for value in values])
    return matrix, [Feature(name, level) for level in levels]


def _filled(matrix: FloatArray, features: list[Feature]) -> tuple[FloatArray, list[Feature]]:
    """Numbers that are missing become the median, and a second column says where."""
    gone = np.isnan(matrix).any(axis=1)
    if not gone.any():
        return matrix, features
    middle = float(np.median(matrix[~gone])) if not gone.all() else 0.0
    filled = np.column_stack([np.where(gone, middle, matrix[:, 0]), gone.astype(np.float64)])
    return filled, [*features, Feature(features[0].column, missing=True)]


def _complete(
    names: Sequence[str], parts: Sequence[FloatArray], count: IntArray
) -> tuple[BoolArray, dict[str, int]]:
    """Rows without a missing number, and how many were lost to each column."""
    known: BoolArray = np.ones(len(count), dtype=bool)
    missing = {}
    for name, part in zip(names, parts, strict=True):
        # A missing text is no loss: it is a row of zeros, none of the levels.
        here = ~np.isnan(part).any(axis=1)
        lost = int(count[known & ~here].sum())
        if lost:
            missing[f"missing {name}"] = lost
        known &= here
    return known, missing
