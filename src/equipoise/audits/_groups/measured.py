"""Problems of measures that are no means: from cells cut by kinds of rows to the inference core."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from equipoise.audits._groups.problem import (
    Problem,
    cell_moments,
    highest_rivals,
    problem_of,
    weight_unit,
)
from equipoise.cells import Cells, Collection, gather
from equipoise.cells.tally import Axis, ClusterTable, Tallied, steady_cells
from equipoise.claims import Claim, Ratio
from equipoise.claims.claim import measure_claims
from equipoise.claims.groups import Answers, Graded
from equipoise.claims.measure import Measure
from equipoise.errors import ClaimError, OptionError
from equipoise.methods import measures
from equipoise.methods.inference import measures as m
from equipoise.methods.inference.core import Core, against_highest
from equipoise.methods.inference.ranks import QuantilePivot, Sorted, quantile_pivot
from equipoise.methods.numerics import FloatArray, IntArray, distinct_rows, merge
from equipoise.methods.published.bootstrap import RowData
from equipoise.methods.targets import Constant, Highest, Status, Target, compare
from equipoise.trail import Trail

MOST_NUMBERS = 4_000_000
"""Kinds times cells, or groups, that are followed; more ranges than that are put together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A measure with all that its core needs of the data."""

    measure: Measure
    make: Callable[[Target, Collection, bool], Core]
    """The core against a target that is not the highest group."""
    note: str = ""
    """What is not as exact as the sums themselves."""

    def core(self, problem: Problem) -> Core:
        """The core of a problem."""
        return self.against(problem.target, problem.collection, problem.claim, problem.cells)

    def against(self, target: Target, collection: Collection, claim: Claim, cells: Cells) -> Core:
        """The core against any target."""
        relative = isinstance(claim, Ratio)
        if not isinstance(target, Highest):
            return self.make(target, collection, relative)
        rivals, member = highest_rivals(cells, collection, claim)
        core = against_highest(
            lambda other: self.make(other, collection, relative),
            target,
            rivals,
            member,
            relative=relative,
        )
        return replace(core, cells=m.NoDraws(len(collection), len(cells)))

    def trust(self, many: bool, noun: str) -> str:
        """How far the error rate can be trusted, in words."""
        joint = f"; {noun}s are joined by normal scores with fitted correlations" if many else ""
        if self.measure.name == "quantile":
            joint = f"; {noun}s are joined as if independent" if many else ""
            return (
                "by exact binomial tests of the share of rows up to a number, joined over all that "
                f"the target's quantile may be{self.note}{joint}"
            )
        how = f"asymptotic, by each {noun}'s own influence values corrected for skewness"
        if self.measure.name == "expected_calibration_error":
            how += (
                ", and allowing for what noise adds to absolute values in ranges whose sign is open"
            )
        return (
            f"{how}, guarded by not answering {noun}s with few rows of some kind{self.note}{joint}"
        )


def measured_problem(trail: Trail | Tallied, claim: Claim) -> Problem:
    """Scan the rows once, cut by what the measure needs, and form the groups."""
    measure = claim.metric.measure
    assert isinstance(measure, Measure)
    if isinstance(trail, Trail) and trail.proxies:
        raise ClaimError(f"The {claim.metric.words} needs attributes that are known, not proxies.")
    asked = [claim, *measure_claims(claim)]
    fine = [steady_cells(x) for x in gather(trail, asked, kinds=True)]
    kinds = _kinds(fine[0], claim)
    cells = kinds.cells
    made = _asked(measure, fine, kinds)

    def no_rows() -> RowData:
        raise OptionError(f"The {claim.metric.words} is no mean of rows; leave method= out.")

    return replace(problem_of(claim, cells, no_rows), measured=made)


# --- Cells without what the measure cuts them by, and which of them each fine cell is in ---


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kinds:
    """Fine cells by place, which is a kind of row, and by cell of the groups."""

    cells: Cells
    """The cells of the groups."""
    cell: IntArray
    """Cell of each fine cell."""
    place: IntArray
    """Place of each fine cell; −1 where the value is missing."""
    places: int
    """Number of places."""
    axes: tuple[Axis, ...]
    """What they are cut by."""
    low: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Smallest value of each place, where places lie on a line."""
    high: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Largest value of each place."""
    exact: bool = True
    """Whether each place holds one value."""

    def dense(self, x: FloatArray) -> FloatArray:
        """Sums of fine cells by place and cell, ``(K, C)``."""
        out = np.zeros((self.places, len(self.cells)))
        known = self.place >= 0
        np.add.at(out, (self.place[known], self.cell[known]), x[known])
        return out


def _kinds(fine: Cells, claim: Claim) -> _Kinds:
    cut = [fine.cut_by(dimension) for dimension in claim.kinds()]
    kept = [i for i in range(len(fine.axes)) if i not in cut]
    index, cell = distinct_rows(fine.index[:, kept])
    cells = _merged(fine, kept, cell, len(index), index)
    axes = tuple(fine.axes[i] for i in cut)
    if not cut:
        return _Kinds(cells=cells, cell=cell, place=np.zeros_like(cell), places=1, axes=())
    if isinstance(axes[0].dimension, Answers):
        return _classes(fine, cells, cell, axes, cut)
    place = fine.index[:, cut[0]].astype(np.int64)
    if not isinstance(axes[0].dimension, Graded):
        number = sum(level is not None for level in axes[0].levels)
        place = np.where(place < number, place, -1)
        return _Kinds(cells=cells, cell=cell, place=place, places=number, axes=axes)
    return _graded(fine, cells, cell, axes[0], place)


def _merged(fine: Cells, kept: list[int], cell: IntArray, number: int, index: IntArray) -> Cells:
    done: dict[int, FloatArray] = {}

    def added(name: str) -> FloatArray:
        x = getattr(fine, name)
        # arrays that are one stay one
        if id(x) not in done:
            done[id(x)] = np.bincount(cell, x, number).astype(np.float64)
        return done[id(x)]

    table = fine.clusters
    if table is not None:
        pairs = np.stack([table.cluster, cell[table.cell]], axis=1)
        found, sums = merge(pairs, {n: getattr(table, n) for n in ("weight", "total", "square")})
        table = ClusterTable(cluster=found[:, 0], cell=found[:, 1], **sums)
    return replace(
        fine,
        axes=tuple(fine.axes[i] for i in kept),
        index=index,
        # its values are not what is measured
        zero_one=False,
        values=(),
        clusters=table,
        present=added("present"),
        rows=added("rows"),
        weight=added("weight"),
        total=added("total"),
        square=added("square"),
        weight2=added("weight2"),
        total2=added("total2"),
        square2=added("square2"),
        weight3=added("weight3"),
        total3=added("total3"),
        square3=added("square3"),
        cube3=added("cube3"),
    )


def _classes(
    fine: Cells, cells: Cells, cell: IntArray, axes: tuple[Axis, ...], cut: list[int]
) -> _Kinds:
    """Places are pairs of what is and what was said, over all classes that occur."""
    seen = {level for axis in axes for level in axis.levels if level is not None}
    texts = {isinstance(level, str) for level in seen}
    if len(texts) > 1:
        raise ClaimError("Label and prediction hold text and numbers; bring them to one type.")
    known = sorted(seen)
    number = {level: i for i, level in enumerate(known)}
    both = []
    for axis, position in zip(axes, cut, strict=True):
        code = np.array([number.get(level, -1) for level in axis.levels], dtype=np.int64)
        both.append(code[fine.index[:, position]])
    place = np.where((both[0] >= 0) & (both[1] >= 0), both[0] * len(known) + both[1], -1)
    return _Kinds(cells=cells, cell=cell, place=place, places=len(known) ** 2, axes=axes)


def _graded(fine: Cells, cells: Cells, cell: IntArray, axis: Axis, level: IntArray) -> _Kinds:
    """Places are values or narrow ranges, neighbours put together where they are too many."""
    dimension = axis.dimension
    assert isinstance(dimension, Graded)
    known = [x for x in axis.levels if x is not None]
    value = np.array(known, dtype=np.float64)
    low, high = value, value
    if dimension.times is not None and dimension.low is not None and dimension.scale is not None:
        ends = [
            dimension.low + dimension.scale * np.expm1((value + i) / dimension.times)
            for i in (0, 1)
        ]
        hair = 1e-9 * (np.abs(ends[1]) + dimension.scale)
        low, high = np.maximum(ends[0] - hair, dimension.low), ends[1] + hair
    place = np.where(level < len(known), level, -1)
    most = max(MOST_NUMBERS // max(len(cells), 1), 50)
    exact = dimension.times is None
    if len(known) > most:
        rows = np.bincount(place[place >= 0], fine.rows[place >= 0], len(known))
        middle = (np.cumsum(rows) - rows / 2) / max(float(rows.sum()), 1.0)
        _, group = np.unique((middle * most).astype(np.int64), return_inverse=True)
        group = group.reshape(-1)
        number = int(group.max()) + 1
        low, high = (
            np.array([pick(x[group == i]) for i in range(number)])
            for x, pick in ((low, np.min), (high, np.max))
        )
        place, exact = np.where(place >= 0, group[place], -1), False
    return _Kinds(
        cells=cells, cell=cell, place=place, places=len(low), axes=(axis,), low=low, high=high,
        exact=exact,
    )  # fmt: skip


# --- Each measure with its totals ---

Orders = tuple[FloatArray, FloatArray, FloatArray]


def _orders(cells: Cells, kinds: _Kinds, name: str) -> Orders:
    """A sum of the fine cells for the first three powers of the weights, by place and cell."""
    one = weight_unit(cells)
    plain = {"weight": "rows"} if not cells.weighted else {}
    first = plain.get(name, name)
    names = (first, f"{name}2", f"{name}3")
    a, b, c = (kinds.dense(getattr(cells, x)) / one**k for k, x in enumerate(names, start=1))
    return a, b, c


def _asked(measure: Measure, fine: list[Cells], kinds: _Kinds) -> Asked:
    if measure.name == "quantile":
        return _quantile(measure, fine[0], kinds)
    if measure.name == "standardised":
        return _standardised(measure, fine, kinds)
    made, totals, clusters = _totals(measure, fine, kinds)
    moments = cell_moments(kinds.cells)

    def make(target: Target, collection: Collection, relative: bool) -> Core:
        whole, what = totals, made
        most = max(MOST_NUMBERS // max(len(collection), 1), 50)
        if isinstance(what, measures.Area) and whole.kinds > 2 * most:
            if clusters is not None:
                raise OptionError(
                    "These are too many groups for the AUC of rows in clusters; ask for fewer."
                )
            whole, _ = whole.merged(most)
            what = replace(what, exact=False)
        return m.measure_core(
            moments, whole, what, target, collection.sums, relative=relative, clusters=clusters
        )

    note = ""
    if isinstance(made, measures.Area) and not made.exact:
        share = _tied(totals)
        note = (
            f"; scores in {kinds.places:,} ranges, which moves the {measure.name} of everyone by "
            f"at most {share * (2 if made.gini else 1):.2g}; bounds allow for that of each group"
        )
    return Asked(measure=measure, make=make, note=note)


def _tied(totals: measures.Totals) -> float:
    every = totals.first.sum(axis=-1, keepdims=True)
    return float(measures.Area(exact=False).slack(every, every)[0][0])


def _totals(
    measure: Measure, fine: list[Cells], kinds: _Kinds
) -> tuple[measures.Measure, measures.Totals, m.KindClusters | None]:
    if measure.name in ("auc", "gini"):
        return _area(measure, fine[0], kinds)
    if measure.name == "expected_calibration_error":
        return measures.CalibrationError(), *_of_one(fine[0], kinds)
    if measure.classes:
        return _macro(measure, fine[0], kinds)
    if measure.name == "actual_expected":
        return measures.Quotient(), *_of_two(fine, kinds)
    return _of_table(measure, fine, kinds)


def _area(
    measure: Measure, cells: Cells, kinds: _Kinds
) -> tuple[measures.Measure, measures.Totals, m.KindClusters | None]:
    every, ones = _orders(cells, kinds, "weight"), _orders(cells, kinds, "total")
    rows = tuple(
        np.concatenate([np.maximum(x - y, 0.0), y]) for x, y in zip(every, ones, strict=True)
    )
    side = np.repeat([0, 1], kinds.places)
    order = np.tile(np.arange(kinds.places), 2)
    totals = measures.counted_totals((rows[0], rows[1], rows[2]), side, order)
    made = measures.Area(gini=measure.name == "gini", exact=kinds.exact)
    table = cells.clusters
    if table is None:
        return made, totals, None
    place, unit = kinds.place[table.cell], weight_unit(cells)
    known = place >= 0
    weight = np.concatenate([table.weight - table.total, table.total])
    return (
        made,
        totals,
        _clusters(
            cluster=np.tile(table.cluster, 2),
            cell=np.tile(kinds.cell[table.cell], 2),
            kind=np.concatenate([place, place + kinds.places]),
            first=weight[None] / unit,
            weight=weight / unit,
            known=np.tile(known, 2) & (weight > 0),
        ),
    )


def _clusters(
    *,
    cluster: IntArray,
    cell: IntArray,
    kind: IntArray,
    first: FloatArray,
    weight: FloatArray,
    known: np.ndarray,
) -> m.KindClusters:
    _, number = np.unique(cluster[known], return_inverse=True)
    return m.KindClusters(
        cluster=number.reshape(-1).astype(np.int64),
        cell=cell[known],
        kind=kind[known],
        first=first[:, known],
        weight=weight[known],
    )


def _of_one(cells: Cells, kinds: _Kinds) -> tuple[measures.Totals, m.KindClusters | None]:
    """Rows by place with 1 and a number each."""
    w, t, q = (_orders(cells, kinds, name) for name in ("weight", "total", "square"))
    cube = kinds.dense(cells.cube3) / weight_unit(cells) ** 3
    second = np.stack([np.stack([w[1], t[1]], 1), np.stack([t[1], q[1]], 1)], 1)
    powers = (w[2], t[2], q[2], cube)
    third = np.stack(
        [
            np.stack([np.stack([powers[i + j + k] for k in (0, 1)], 1) for j in (0, 1)], 1)
            for i in (0, 1)
        ],
        1,
    )
    totals = measures.Totals(
        first=np.stack([w[0], t[0]], 1),
        second=second,
        third=third,
        weight=w[0],
        weight2=w[1],
        side=np.zeros(kinds.places, dtype=np.int64),
        order=np.arange(kinds.places),
    )
    table = cells.clusters
    if table is None:
        return totals, None
    unit, place = weight_unit(cells), kinds.place[table.cell]
    return totals, _clusters(
        cluster=table.cluster,
        cell=kinds.cell[table.cell],
        kind=place,
        first=np.stack([table.weight, table.total]) / unit,
        weight=table.weight / unit,
        known=place >= 0,
    )


def _of_two(fine: list[Cells], kinds: _Kinds) -> tuple[measures.Totals, m.KindClusters | None]:
    """Rows with two numbers each, whose products follow from sums and differences of both."""
    a, e, plus, less = fine
    one = weight_unit(a)

    def of(cells: Cells, name: str, order: int) -> FloatArray:
        return kinds.dense(getattr(cells, name)) / one**order

    mixed = (of(plus, "square2", 2) - of(less, "square2", 2)) / 4
    square = ((of(a, "square2", 2), mixed), (mixed, of(e, "square2", 2)))
    up, down = of(plus, "cube3", 3), of(less, "cube3", 3)
    aaa, eee = of(a, "cube3", 3), of(e, "cube3", 3)
    # (a + e)³ ± (a − e)³ = 2a³ + 6ae², 6a²e + 2e³
    aee, aae = ((up + down) / 2 - aaa) / 3, ((up - down) / 2 - eee) / 3
    powers = (aaa, aae, aee, eee)
    w = _orders(a, kinds, "weight")
    totals = measures.Totals(
        first=np.stack([of(a, "total", 1), of(e, "total", 1)], 1),
        second=np.stack([np.stack(row, 1) for row in square], 1),
        third=np.stack(
            [
                np.stack([np.stack([powers[i + j + k] for k in (0, 1)], 1) for j in (0, 1)], 1)
                for i in (0, 1)
            ],
            1,
        ),
        weight=w[0],
        weight2=w[1],
        side=np.zeros(1, dtype=np.int64),
        order=np.zeros(1, dtype=np.int64),
    )
    if a.clusters is None or e.clusters is None:
        return totals, None
    table = a.clusters
    return totals, _clusters(
        cluster=table.cluster,
        cell=kinds.cell[table.cell],
        kind=np.zeros_like(table.cell),
        first=np.stack([table.total, e.clusters.total]) / one,
        weight=table.weight / one,
        known=np.ones(table.cell.size, dtype=bool),
    )


def _macro(
    measure: Measure, cells: Cells, kinds: _Kinds
) -> tuple[measures.Measure, measures.Totals, m.KindClusters | None]:
    number = round(kinds.places**0.5)
    if number < 2:
        raise ClaimError(f"The {measure.name} needs at least two classes; there is one.")
    label, said = np.divmod(np.arange(kinds.places), number)
    side = said if measure.name == "macro_precision" else label
    totals = measures.counted_totals(_orders(cells, kinds, "weight"), side)
    # kinds of classes are no line, and are never put together
    totals = replace(totals, order=np.zeros(kinds.places, dtype=np.int64))
    made = measures.Macro(name=measure.name, classes=number)
    table = cells.clusters
    if table is None:
        return made, totals, None
    place, unit = kinds.place[table.cell], weight_unit(cells)
    return (
        made,
        totals,
        _clusters(
            cluster=table.cluster,
            cell=kinds.cell[table.cell],
            kind=place,
            first=table.weight[None] / unit,
            weight=table.weight / unit,
            known=place >= 0,
        ),
    )


def _of_table(
    measure: Measure, fine: list[Cells], kinds: _Kinds
) -> tuple[measures.Measure, measures.Totals, m.KindClusters | None]:
    """True negatives, false positives, false negatives, true positives."""
    both, label, said = (_orders(cells, kinds, "total") for cells in fine)
    every = _orders(fine[0], kinds, "weight")

    def four(b: FloatArray, y: FloatArray, p: FloatArray, n: FloatArray) -> FloatArray:
        return np.concatenate([np.maximum(x, 0.0) for x in (n - y - p + b, p - b, y - b, b)])

    rows = [four(*sums) for sums in zip(both, label, said, every, strict=True)]
    side = np.array(measures.SIDES[measure.name])
    totals = replace(
        measures.counted_totals((rows[0], rows[1], rows[2]), side),
        order=np.zeros(4, dtype=np.int64),
    )
    made = measures.OfTable(name=measure.name)
    tables = [cells.clusters for cells in fine]
    if tables[0] is None or tables[1] is None or tables[2] is None:
        return made, totals, None
    b, y, p = (table.total for table in tables if table is not None)
    weight = four(b, y, p, tables[0].weight) / weight_unit(fine[0])
    size = tables[0].cell.size
    return (
        made,
        totals,
        _clusters(
            cluster=np.tile(tables[0].cluster, 4),
            cell=np.tile(kinds.cell[tables[0].cell], 4),
            kind=np.repeat(np.arange(4), size),
            first=weight[None],
            weight=weight,
            known=weight > 0,
        ),
    )


def _quantile(measure: Measure, cells: Cells, kinds: _Kinds) -> Asked:
    if cells.clusters is not None:
        raise OptionError(
            "Quantiles take rows that are independent; read the trail without cluster=… or pair=…."
        )
    q = 0.5 if measure.q is None else measure.q
    weight, weight2, _ = _orders(cells, kinds, "weight")
    moments = cell_moments(kinds.cells)

    def make(target: Target, collection: Collection, relative: bool) -> Core:
        if kinds.places * len(collection) > 10 * MOST_NUMBERS:
            raise OptionError(
                f"{len(collection):,} groups are too many for quantiles of {kinds.places:,} "
                "different numbers; use fewer groups, or round the numbers."
            )
        plain = compare(moments, target, collection.sums, relative=relative)
        one = target.parts(weight, collection.sums)
        two = target.parts(weight2, collection.sums) if cells.weighted else None
        a, b = (np.array(x, dtype=np.float64) for x in (target.group, target.against))

        def line(times: FloatArray) -> Sorted:
            return Sorted(
                low=kinds.low,
                high=kinds.high,
                upto=_upto(times, one),
                upto2=None if two is None else _upto(times, two),
            )

        own = line(a)
        estimated = target.estimated
        other = line(b) if estimated else None
        shared = line(a * b) if bool((a * b).any()) else None
        value = own.quantile(q)
        beside = np.full(value.shape, target.number) if other is None else other.quantile(q)
        none = np.zeros((0, value.size))
        found = m.Measured(
            target=target, relative=relative, parts=plain.parts, value=value, beside=beside,
            slopes_own=none, slopes_other=none,
        )  # fmt: skip
        pivot = quantile_pivot(found, q, own, other, shared)
        return _quantile_core(found, pivot, q, collection)

    note = ""
    if not kinds.exact:
        note = f"; numbers in {kinds.places:,} narrow ranges, of which the worse end counts"
    return Asked(measure=measure, make=make, note=note)


def _upto(times: FloatArray, parts: FloatArray) -> FloatArray:
    rows = np.tensordot(times, parts, 1)
    return np.concatenate([np.zeros((1, rows.shape[1])), np.cumsum(rows, axis=0)])


LEAST_BEYOND = 4.0
"""Rows that must be expected on either side of a quantile for it to be bounded at all."""


def _quantile_core(
    found: m.Measured, pivot: QuantilePivot, q: float, collection: Collection
) -> Core:
    status = found.status
    ok = status == Status.OK
    few = _sizes(pivot.own, q) * min(q, 1 - q) < LEAST_BEYOND
    if pivot.other is not None:
        few |= _sizes(pivot.other, q) * min(q, 1 - q) < LEAST_BEYOND
    status = np.where(ok & few, int(Status.FEW_ROWS), status)
    zero = np.zeros(status.shape)
    return Core(
        comparison=found,
        pivot=pivot,
        status=status,
        spread=m.not_judged(status.size),
        reach=np.full(status.shape, np.inf),
        # what groups have in common is not followed up: as if independent
        outcomes=zero,
        cells=m.NoDraws(len(collection), len(collection)),
        sums=collection.sums,
        counted=False,
    )


def _sizes(line: Sorted, q: float) -> FloatArray:
    every = np.arange(line.weight.size)
    place = np.full(every.shape, line.low.size)
    return line.rows(q, place, every)[1]


def _standardised(measure: Measure, fine: list[Cells], kinds: _Kinds) -> Asked:
    if fine[0].clusters is not None:
        raise OptionError(
            "Standardised means take rows that are independent; read the trail without cluster=… "
            "or pair=…, or ask for the metric itself."
        )
    one, square, cube = fine
    unit = weight_unit(one) ** 2
    sums = (one.weight2, one.total2, one.square2, cube.total2, square.square2)
    powers = np.stack([kinds.dense(x)[0] / unit for x in sums])
    moments = cell_moments(kinds.cells)

    def make(target: Target, collection: Collection, relative: bool) -> Core:
        core = m.scaled_core(moments, powers, target, collection.sums, relative=relative)
        if core is None:
            raise ClaimError(
                f"{measure.of!r} does not vary, or lies too far from zero for how it varies, so "
                "that its standard deviation is not known well enough. Subtract a number near its "
                "mean, such as standardised('year - 2000')."
            )
        return core

    return Asked(measure=measure, make=make)


def overall_value(problem: Problem, asked: Asked) -> float:
    """The measure over all rows."""
    whole = Collection(
        groups=problem.collection.groups,
        views=problem.collection.views,
        choices=problem.collection.choices[:1],
        sums=lambda x: x.sum(axis=-1)[..., None],
    )
    return float(asked.make(Constant(value=0.0), whole, False).comparison.mean[0])
