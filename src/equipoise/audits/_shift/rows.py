"""The rows of a tilt audit: covariates, metric, influence of the target, merged where equal."""

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise._codec import canonical
from equipoise.cells import Cells, gather
from equipoise.cells.expressions import value_of
from equipoise.cells.query import Query
from equipoise.cells.rows import cell_numbers, level_codes
from equipoise.cells.sampling import fetch_rows
from equipoise.cells.targets import reference_cells
from equipoise.claims import Claim, Metric
from equipoise.claims import target as targets
from equipoise.claims.claim import Gap
from equipoise.claims.groups import everyone
from equipoise.errors import ClaimError, TrailError
from equipoise.findings.shift_kernels import Covariate
from equipoise.methods.arrays import AnyArray, BoolArray, FloatArray, IntArray
from equipoise.trail import Trail
from equipoise.trail.trail import expect_trail

#: More rows than this are not audited without being asked to sample.
MAX_SHIFT_ROWS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShiftRows:
    """Rows on which the metric counts, equal ones merged, in an order of their own."""

    covariates: tuple[Covariate, ...]
    """What the columns of the points are."""
    points: FloatArray
    """Rows × covariates, categories by position."""
    values: FloatArray
    """The metric."""
    influence: FloatArray
    """First-order effect of each row on the target."""
    paired: FloatArray
    """How much each row counts in the target; zeros for a number."""
    apart: float
    """Mean square of the influence that is not paired with the metric, over its variance."""
    weights: FloatArray
    """Sampling weights with mean one; ones if there are none."""
    counts: FloatArray
    """How many rows each row stands for."""
    clusters: IntArray | None
    """Number of each row's cluster."""
    target: float
    """What the metric is compared with."""
    mean: float
    """The metric over everyone."""
    cells: Cells
    """The cells as gathered, for the record."""
    lost: dict[str, int]
    """Rows left out because a covariate was missing, by reason."""
    sampled: int | None
    """Rows drawn at random, if a sample was asked for."""

    @property
    def n(self) -> int:
        """Number of rows."""
        return round(float(self.counts.sum()))

    def fingerprint(self) -> str:
        """A digest of the rows, the same in every order."""
        columns = [self.points, self.values, self.influence, self.weights, self.counts]
        # Thirty binary digits: engines may differ in the last ones.
        digits, power = np.frexp(np.column_stack(columns))
        content = np.rint(digits * 2**30).astype(np.int64).tobytes() + power.tobytes()
        return hashlib.sha256(self.cells.fingerprint().encode() + content).hexdigest()


def pull_shift_rows(
    trail: Trail,
    claim: Claim,
    columns: Sequence[str],
    sample: int | None,
    seed: np.random.SeedSequence,
) -> ShiftRows:
    """Fetch the columns that are needed, leave out what is missing, merge what is equal."""
    if isinstance(claim.target, targets.Complement):
        raise ClaimError(
            "A tilt has no complement. Compare with overall(), a number, reference(…) or custom(…)."
        )
    plain = Gap(metric=claim.metric, across=everyone(), target=claim.target)
    (cells,) = gather(expect_trail(trail), [plain])
    if cells.counted > MAX_SHIFT_ROWS and sample is None and trail.roles.count is None:
        raise TrailError(
            f"There are {cells.counted:,} rows, more than {MAX_SHIFT_ROWS:,}. Pass sample=… to "
            "audit that many, drawn at random."
        )
    table = _fetch(trail, claim, cells, columns, sample, seed)
    covariates = tuple(
        _covariate(trail, name, table[f"feature{i}"]) for i, name in enumerate(columns)
    )
    points = np.column_stack(
        [c.encode(table[f"feature{i}"].tolist()) for i, c in enumerate(covariates)]
    )
    known, lost = _complete(trail, covariates, points, table)
    if not known.any():
        raise ClaimError(f"No row has a value of every covariate: {lost}.")
    drawn = _sampled(_raw(trail, claim, cells, table, points), known, sample, seed)
    return _finished(claim, cells, covariates, drawn, lost, sample)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Raw:
    """Columns before they are put in order."""

    points: FloatArray
    values: FloatArray
    weights: FloatArray
    counts: FloatArray
    clusters: IntArray | None
    extra: FloatArray
    """Whether a row is in the reference group, or the influence that was given."""

    def part(self, rows: IntArray | BoolArray) -> "_Raw":
        clusters = None if self.clusters is None else self.clusters[rows]
        return _Raw(
            points=self.points[rows],
            values=self.values[rows],
            weights=self.weights[rows],
            counts=self.counts[rows],
            clusters=clusters,
            extra=self.extra[rows],
        )


def _fetch(
    trail: Trail,
    claim: Claim,
    cells: Cells,
    columns: Sequence[str],
    sample: int | None,
    seed: np.random.SeedSequence,
) -> dict[str, AnyArray]:
    further = {f"feature{i}": trail.key(trail.attribute(name)) for i, name in enumerate(columns)}
    if isinstance(claim.target, targets.Custom):
        formula = Metric(name="the influence", value=claim.target.influence)
        further["extra"] = value_of(trail, formula)
    if trail.roles.cluster is not None:
        further["cluster"] = trail.key(trail.roles.cluster)
    query = Query(trail, tuple(axis.dimension for axis in cells.axes), (claim.metric,))
    return fetch_rows(query, further, sample=sample, seed=seed).table


def _raw(
    trail: Trail, claim: Claim, cells: Cells, table: dict[str, AnyArray], points: FloatArray
) -> _Raw:
    values = table["value"].astype(np.float64)
    ones = np.ones_like(values)
    extra = np.zeros_like(values)
    if isinstance(claim.target, targets.Reference):
        codes = [level_codes(axis, table[f"key{i}"]) for i, axis in enumerate(cells.axes)]
        number = cell_numbers(np.stack(codes, axis=1), cells.index)
        extra = reference_cells(claim.target.where, cells)[number].astype(np.float64)
    elif "extra" in table:
        extra = np.array([np.nan if v is None else v for v in table["extra"]], dtype=np.float64)
    return _Raw(
        points=points,
        values=values,
        weights=table["weight"].astype(np.float64) if "weight" in table else ones,
        counts=table["count"].astype(np.float64) if "count" in table else ones,
        clusters=_cluster_codes(table) if "cluster" in table else None,
        extra=extra,
    )


def _cluster_codes(table: dict[str, AnyArray]) -> IntArray:
    names = [repr(canonical(value)) for value in table["cluster"].tolist()]
    return np.unique(names, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _covariate(trail: Trail, name: str, column: AnyArray) -> Covariate:
    if trail.schema[name].is_numeric():
        return Covariate(name=name)
    levels = {canonical(value) for value in column.tolist()}
    # A missing category is a level of its own, as everywhere else.
    return Covariate(name=name, levels=tuple(sorted(levels, key=lambda v: (v is None, str(v)))))


def _complete(
    trail: Trail, covariates: Sequence[Covariate], points: FloatArray, table: dict[str, AnyArray]
) -> tuple[BoolArray, dict[str, int]]:
    count = table["count"].astype(np.float64) if "count" in table else np.ones(len(points))
    known = count > 0
    if "weight" in table:
        known &= table["weight"].astype(np.float64) > 0
    if "cluster" in table:
        known &= np.array([canonical(value) is not None for value in table["cluster"]])
    lost = {}
    for i, covariate in enumerate(covariates):
        here = np.isfinite(points[:, i])
        gone = round(float(count[known & ~here].sum()))
        if gone:
            lost[f"missing {covariate.name}"] = gone
        known &= here
    return known, lost


def _order(raw: _Raw) -> IntArray:
    clusters = np.zeros(len(raw.values)) if raw.clusters is None else raw.clusters
    keys = (clusters, raw.extra, raw.weights, raw.values, *raw.points.T[::-1])
    return np.lexsort(keys).astype(np.int64)


def _sampled(raw: _Raw, known: BoolArray, sample: int | None, seed: np.random.SeedSequence) -> _Raw:
    """The rows in their own order, equal ones merged, or a random part of them."""
    raw = raw.part(known)
    raw = raw.part(_order(raw))
    table = np.column_stack([raw.points, raw.values, raw.weights, raw.extra])
    if raw.clusters is not None:
        table = np.column_stack([table, raw.clusters])
    first = np.concatenate([[True], np.any(table[1:] != table[:-1], axis=1)])
    counts = np.add.reduceat(raw.counts, np.flatnonzero(first))
    raw = dataclasses.replace(raw.part(first), counts=counts)
    if sample is None or sample >= counts.sum():
        return raw
    stream = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 1 << 31))
    whole = counts.astype(np.int64)
    drawn = np.random.default_rng(stream).multivariate_hypergeometric(whole, sample)
    kept = dataclasses.replace(raw, counts=drawn.astype(np.float64))
    return kept.part(drawn > 0)


def _finished(
    claim: Claim,
    cells: Cells,
    covariates: tuple[Covariate, ...],
    raw: _Raw,
    lost: dict[str, int],
    sample: int | None,
) -> ShiftRows:
    n = raw.counts.sum()
    weights = raw.weights / (raw.counts @ raw.weights / n)
    mean = float(raw.counts @ (weights * raw.values) / n)
    against = _target(claim.target, raw, weights, mean)
    clusters = raw.clusters
    if clusters is not None:
        clusters = np.unique(clusters, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return ShiftRows(
        covariates=covariates,
        points=raw.points,
        values=raw.values,
        influence=against.influence,
        paired=against.paired,
        apart=against.apart,
        weights=weights,
        counts=raw.counts,
        clusters=clusters,
        target=against.value,
        mean=mean,
        cells=cells,
        lost=lost,
        sampled=None if sample is None or sample > n else int(n),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Against:
    """What the metric is compared with, and how the rows enter it."""

    value: float
    influence: FloatArray
    paired: FloatArray
    apart: float = 0.0

    def scaled(self, scale: float) -> "_Against":
        return _Against(
            value=scale * self.value,
            influence=scale * self.influence,
            paired=scale * self.paired,
            apart=scale**2 * self.apart,
        )


def _target(target: targets.Target, raw: _Raw, weights: FloatArray, mean: float) -> _Against:
    """The target's value, each row's influence on it, and how much each row counts in it."""
    n, none = raw.counts.sum(), np.zeros_like(raw.values)
    match target:
        case targets.Constant(value=value):
            found = _Against(value=value, influence=none, paired=none)
        case targets.Custom(estimate=value):
            if np.isnan(raw.extra).any():
                raise ClaimError("The influence of a custom target is missing on some rows.")
            influence = raw.extra - raw.counts @ raw.extra / n
            found = _custom(value, influence, raw, weights, mean)
        case targets.Reference():
            inside = weights * raw.extra
            share = raw.counts @ inside / n
            if share <= 0:
                raise ClaimError("No row of the reference group has every covariate.")
            paired = inside / share
            value = float(raw.counts @ (paired * raw.values) / n)
            found = _Against(value=value, influence=paired * (raw.values - value), paired=paired)
        case _:
            influence = weights * (raw.values - mean)
            found = _Against(value=mean, influence=influence, paired=weights)
    return found.scaled(target.scale)


def _custom(
    value: float, influence: FloatArray, raw: _Raw, weights: FloatArray, mean: float
) -> _Against:
    """A target of which only the influence is known: what of it follows the metric, by regression.

    For the influence of the average over everyone this is all of it, and the target is treated as
    that average is.
    """
    moved = weights * (raw.values - mean)
    square = float(raw.counts @ moved**2)
    if square <= 0:
        return _Against(value=value, influence=influence, paired=np.zeros_like(moved))
    slope = float(raw.counts @ (influence * moved)) / square
    rest = float(raw.counts @ (influence - slope * moved) ** 2)
    return _Against(
        value=value,
        influence=influence,
        paired=slope * weights,
        # In units of the variance of the metric, which the scale leaves to the critical value.
        apart=rest * float(raw.counts @ weights**2) / float(raw.counts.sum()) / square,
    )


def describe_point(covariates: Sequence[Covariate], point: FloatArray) -> dict[str, Any]:
    """The covariates of a row as data."""
    return {c.name: c.decode(float(x)) for c, x in zip(covariates, point, strict=True)}
