"""Rows of the groups, for real-valued likelihood: a group's own values, or pseudo-values."""

from collections.abc import Iterator

import numpy as np

from equipoise.audits._groups.bench import Bench
from equipoise.errors import OptionError
from equipoise.methods.arrays import BoolArray, FloatArray, IntArray
from equipoise.methods.inference.comparison import Status
from equipoise.methods.published import bootstrap, likelihood
from equipoise.methods.targets import Complement, Constant, Custom, Overall, Reference

#: Values handled at a time.
_BLOCK = 4_000_000
#: Cells × groups up to which memberships are written out.
_MEMBERSHIPS = 50_000_000

Batch = tuple[IntArray, likelihood.Segments]


def membership(bench: Bench) -> BoolArray:
    """Which cells each group consists of, shape ``(G, C)``."""
    if bench.moments.rows.size * len(bench.collection) > _MEMBERSHIPS:
        raise OptionError(
            "This method lists the rows of every group, which is too much for a collection of "
            f"{len(bench.collection):,} groups. Use method='euclidean' or 'bootstrap'."
        )
    return np.asarray(bench.collection.sums(np.eye(bench.moments.rows.size)).T > 0.5)


def rows_of(bench: Bench) -> bootstrap.RowData:
    """The rows, if likelihood can be used on them at all."""
    if bench.cells.clusters is not None or bench.cells.weighted:
        raise OptionError(
            "Empirical likelihood needs rows without weights and clusters. certify and flag take "
            "such rows with method='bootstrap'."
        )
    return counted_rows(bench)


def counted_rows(bench: Bench) -> bootstrap.RowData:
    """The rows; of a 0/1 metric the zeros and ones of each cell, with how often they occurred."""
    if not bench.moments.binary:
        return bench.rows()
    rows, ones = np.rint(bench.cells.rows), np.rint(bench.cells.total)
    number = rows.size
    return bootstrap.RowData(
        cell=np.repeat(np.arange(number), 2),
        value=np.tile([0.0, 1.0], number),
        count=np.stack([rows - ones, ones], axis=1).ravel().astype(np.int64),
    )


def own_values(bench: Bench) -> Iterator[Batch]:
    """The values of each group that has rows, some groups at a time."""
    rows, member = rows_of(bench), membership(bench)
    sizes = member.astype(np.float64) @ np.bincount(rows.cell, minlength=member.shape[1])
    for chosen in _batches(sizes, bench):
        inside = [np.flatnonzero(member[i][rows.cell]) for i in chosen]
        take = np.concatenate(inside)
        yield chosen, _segments([x.size for x in inside], rows.value[take], rows.count, take)


def pseudo_values(bench: Bench) -> Iterator[Batch]:
    """ε̂ + influence of every row, for each group: their mean is ε̂, whatever the target."""
    rows, member = rows_of(bench), membership(bench)
    number = rows.value.size
    for chosen in _batches(np.where(bench.estimates.rows > 0, number, 0.0), bench):
        values = [
            influence(bench, rows, member[i], i) + bench.estimates.estimate[i] for i in chosen
        ]
        take = np.tile(np.arange(number), chosen.size)
        groups = _segments([number] * chosen.size, np.concatenate(values), rows.count, take)
        yield (
            chosen,
            likelihood.Segments(
                value=groups.value,
                start=groups.start,
                count=groups.count,
                worth=bench.estimates.rows[chosen],
            ),
        )


def joint_scores(
    bench: Bench, rows: bootstrap.RowData, member: BoolArray, used: IntArray, plugged: bool
) -> likelihood.Scores:
    """What each row says about each disparity, as a function of its value.

    Unlike influence values these use the target in place of the group's own mean, so that groups
    made of each other's rows depend on each other exactly.
    """
    if bench.moments.binary and rows.count is not None:
        # outcomes of cells that nobody is in are not even possible
        seen = bench.cells.rows[rows.cell] > 0
        rows = bootstrap.RowData(
            cell=rows.cell[seen], value=rows.value[seen], count=rows.count[seen]
        )
    count = np.ones(rows.value.size) if rows.count is None else rows.count.astype(np.float64)
    pairs = [_score(bench, rows, c, int(i), plugged) for c, i in zip(member, used, strict=True)]
    empty = [np.zeros((rows.value.size, 0))] * 2
    zero, slope = (np.stack(x, axis=1) for x in zip(*pairs, strict=True)) if pairs else empty
    known = isinstance(bench.target, Constant) or plugged
    apart = known and not bool((member.sum(axis=0) > 1).any())
    # a group of two ones could have had a zero: with 0/1 metrics all outcomes are known
    return likelihood.Scores(
        zero=zero, slope=slope, count=count, disjoint=apart, support=bench.moments.binary
    )


def _score(
    bench: Bench, rows: bootstrap.RowData, cells: BoolArray, group: int, plugged: bool
) -> tuple[FloatArray, FloatArray]:
    """Scores at zero, and how they fall with the disparity."""
    found, x = bench.estimates, rows.value
    inside, share = cells[rows.cell], float(found.share[group])
    target = bench.target
    if isinstance(target, Complement) and target.scale == 1 and not plugged:
        # with θ the mean of everybody and p the share, μ(G) = θ + (1 − p)ε and μ(rest) = θ − pε
        theta, p = float(bench.cells.total.sum() / bench.cells.rows.sum()), share
        zero = np.where(inside, (x - theta) / p, -(x - theta) / (1 - p))
        return zero, np.where(inside, (1 - p) / p, p / (1 - p))
    theta = float(found.target[group])
    own, slope = np.where(inside, x - theta, 0.0) / share, np.where(inside, 1 / share, 0.0)
    if plugged:
        return own, slope
    centred = np.where(inside, x - found.mean[group], 0.0) / share
    return np.asarray(own - (centred - influence(bench, rows, cells, group))), slope


def influence(bench: Bench, rows: bootstrap.RowData, cells: BoolArray, group: int) -> FloatArray:
    """Influence values of one group's disparity."""
    found, x = bench.estimates, rows.value
    inside = cells[rows.cell]
    share = float(found.share[group])
    own = np.where(inside, x - found.mean[group], 0.0) / share
    target = bench.target
    theta = found.target[group]
    match target:
        case Constant():
            return own
        case Overall(scale=scale):
            # every row moves the overall mean, the group's own included
            return np.asarray(own - (scale * x - theta))
        case Complement(scale=scale):
            return np.asarray(own - np.where(inside, 0.0, scale * x - theta) / (1 - share))
        case Reference(cells=reference, scale=scale):
            there = reference[rows.cell]
            part = float(bench.cells.rows[reference].sum()) / float(bench.cells.rows.sum())
            return np.asarray(own - np.where(there, scale * x - theta, 0.0) / part)
        case Custom(scale=scale) if rows.influence is not None:
            return np.asarray(own - scale * (rows.influence - rows.influence.mean()))
    raise OptionError("Likelihood cannot use this target; use method='bootstrap'.")


def _batches(sizes: FloatArray, bench: Bench) -> Iterator[IntArray]:
    """Groups that have an estimate and differ from their target, in batches of bearable size."""
    status = bench.estimates.status
    bad = (Status.EMPTY, Status.NO_TARGET, Status.IDENTICAL)
    useful = np.flatnonzero((sizes > 0) & ~np.isin(status, bad))
    if useful.size == 0:
        return
    part = (np.cumsum(sizes[useful]) // _BLOCK).astype(np.int64)
    for number in np.unique(part):
        yield useful[part == number]


def _segments(
    sizes: list[int], value: FloatArray, count: IntArray | None, take: IntArray
) -> likelihood.Segments:
    start = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    times = None if count is None else count[take].astype(np.float64)
    if times is None or bool((times > 0).all()):
        return likelihood.Segments(value=value, start=start, count=times)
    # values that never occurred must not widen the range of the data
    keep = times > 0
    kept = np.add.reduceat(keep.astype(np.int64), start)
    begin = np.concatenate([[0], np.cumsum(kept)[:-1]]).astype(np.int64)
    return likelihood.Segments(value=value[keep], start=begin, count=times[keep])
