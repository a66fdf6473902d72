"""The cells of a claim as atoms, for collections in which every group is a choice on each axis."""

from typing import Any

import numpy as np

from equipoise.audits._groups.bench import Bench
from equipoise.cells.views import EachBin, EveryLevel, Ranges, View, level_where, range_where
from equipoise.cells.words import number_text
from equipoise.claims.groups import Bins, Boxes, Groups, Intersections, Intervals, Thresholds
from equipoise.findings.atoms import AtomAxis, Atoms, Form
from equipoise.methods import bootstrap
from equipoise.methods.arrays import IntArray


def atoms_of(bench: Bench) -> Atoms | None:
    """The atoms of an audit of counts; None if groups are not choices on axes."""
    views, groups = bench.collection.views, bench.collection.groups
    plain = isinstance(groups, Intersections | Intervals | Thresholds | Boxes)
    binned = isinstance(groups, Bins) and isinstance(groups.groups, Intersections)
    if not (plain or binned) or not all(
        isinstance(view, EveryLevel | EachBin | Ranges) for view in views
    ):
        return None
    shared = bench.collection.shared_levels()
    places = [_place(bench, view) for view in views]
    inside = bench.target.cells if isinstance(bench.target, bootstrap.Reference) else None
    columns = [*places, *([] if inside is None else [inside.astype(np.int64)])]
    # cells may be cut by more attributes than the groups, as where a reference needs them
    codes, atom = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    rows, ones = (
        np.rint(np.bincount(atom.reshape(-1), weights=x, minlength=len(codes))).astype(int).tolist()
        for x in (bench.cells.rows, bench.cells.total)
    )
    return Atoms(
        axes=tuple(_axis(view, groups, shared) for view in views),
        depth=_depth(groups, len(views)),
        codes=tuple(tuple(codes[:, i].tolist()) for i in range(len(views))),
        rows=tuple(rows),
        ones=tuple(ones),
        inside=() if inside is None else tuple((codes[:, -1] == 1).tolist()),
    )


def _place(bench: Bench, view: View) -> IntArray:
    position = next(i for i, axis in enumerate(bench.cells.axes) if axis is view.axis)
    return np.asarray(bench.cells.index[:, position], dtype=np.int64)


def _depth(groups: Groups, axes: int) -> int:
    if isinstance(groups, Bins):
        return _depth(groups.groups, axes - 1) + 1
    return min(getattr(groups, "depth", None) or axes, axes)


def _axis(view: View, groups: Groups, shared: frozenset[str]) -> AtomAxis:
    if isinstance(view, Ranges):
        return _runs(view, "half-lines" if isinstance(groups, Thresholds) else "ranges")
    every = range(len(view.axis))
    values = tuple(level_where(view.axis, place) for place in every)
    return AtomAxis(
        name=view.axis.name,
        form="bins" if isinstance(view, EachBin) else "levels",
        values=values,
        texts=tuple(view.text(i, not _is_shared(values[i], shared)) for i in every),
    )


def _is_shared(value: Any, shared: frozenset[str]) -> bool:
    return isinstance(value, str) and value in shared


def _runs(view: Ranges, form: Form) -> AtomAxis:
    points = [range_where(view.axis, i, i + 1) for i in range(len(view.axis))]
    highs = [point.get("to", point.get("below", 0.0)) for point in points]
    return AtomAxis(
        name=view.axis.name,
        form=form,
        values=tuple((point["from"], high) for point, high in zip(points, highs, strict=True)),
        texts=tuple(number_text(point["from"]) for point in points),
        ends=tuple(map(number_text, highs)),
        closed=tuple("to" in point for point in points),
    )
