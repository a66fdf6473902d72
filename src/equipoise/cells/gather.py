"""`gather`: from a trail and claims to cells, in one scan."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike

from equipoise._validate import did_you_mean, known_keywords, listing, rows_text
from equipoise.cells.groups import Collection, encode, level_where, steady_weights
from equipoise.cells.query import (
    Columns,
    Query,
    Scan,
    cluster_codes,
    distinct_metrics,
    floats,
    key_of,
    metric_columns,
    numbers,
    ordered_column,
    plain_keys,
)
from equipoise.cells.tally import (
    Axis,
    Cells,
    ClusterTable,
    Tallied,
    Tally,
    by_outcome,
    steady_cells,
    total,
    totals_of,
    unweighted,
)
from equipoise.claims import claim as targets
from equipoise.claims.claim import Claim, Gap, Together, measure_claims, only_means, parts_of
from equipoise.claims.groups import (
    Answers,
    Binned,
    Condition,
    Dimension,
    Graded,
    Levels,
    Ordered,
    Overlap,
    Period,
    Tilt,
    Values,
)
from equipoise.claims.metric import Metric
from equipoise.errors import ClaimError, TrailError
from equipoise.methods.numerics import (
    AnyArray,
    BoolArray,
    FloatArray,
    IntArray,
    each_once,
    merge,
    shortest_cuts,
)
from equipoise.trail import Roles, Trail
from equipoise.trail.engine import engine_errors, fetch, number_of_levels
from equipoise.trail.trail import expect_trail

if TYPE_CHECKING:
    from equipoise.methods.inference.ranks import MedianSums, Middle

# --- Point values from cells: each group's metric, and the target it is compared with ---


def group_means(cells: Cells, collection: Collection) -> FloatArray:
    """Each group's metric; NaN where it counts on no row."""
    sums = collection.sums
    return _share(sums(cells.total), sums(cells.weight), sums(cells.rows))


def overall_mean(cells: Cells) -> float:
    """The metric over everyone; NaN if all weights are zero."""
    return float(_share(cells.total.sum(), cells.weight.sum(), cells.rows.sum()))


def target_values(target: targets.Target, cells: Cells, collection: Collection) -> FloatArray:
    """What each group is compared with; NaN where the target counts on no row."""
    size = len(collection)
    match target:
        case targets.Constant(value=value):
            plain = np.full(size, value)
        case targets.Custom(estimate=estimate):
            plain = np.full(size, estimate)
        case targets.Overall():
            plain = np.full(size, overall_mean(cells))
        case targets.Reference(where=where):
            inside = reference_cells(where, cells)
            parts = [a[inside].sum() for a in (cells.total, cells.weight, cells.rows)]
            plain = np.full(size, _share(*parts))
        case targets.Complement():
            arrays = (cells.total, cells.weight, cells.rows)
            plain = _share(*(array.sum() - collection.sums(array) for array in arrays))
        case _:
            raise ClaimError(f"{type(target).__name__} is not a target that cells can give.")
    return target.scale * plain


def reference_cells(where: Mapping[str, object], cells: Cells) -> BoolArray:
    """Which cells make up a reference group; an error names the values that exist."""
    inside = inside_of(where, cells.axes, cells.index)
    if not cells.rows[inside].sum():
        named = ", ".join(f"{name}={value!r}" for name, value in where.items())
        raise ClaimError(
            f"The reference group {named} has no row on which {cells.metric.name!r} counts. "
            "Choose another reference."
        )
    return inside


def inside_of(where: Mapping[str, object], axes: Sequence[Axis], index: IntArray) -> BoolArray:
    """Which rows of an index lie in a reference group."""
    inside = np.ones(len(index), dtype=bool)
    # a tilt is no attribute, however it is called
    names = [None if isinstance(axis.dimension, Tilt) else axis.name for axis in axes]
    for name, value in where.items():
        if name not in names:
            raise ClaimError(
                f"The cells were not cut by {name!r}, but by {listing(axis.name for axis in axes)}."
            )
        position = names.index(name)
        inside &= index[:, position] == level_of(axes[position], value)
    return inside


def level_of(axis: Axis, value: object) -> int:
    """The position of a level that is named as data; an error names those that exist."""
    levels = [level_where(axis, position) for position in range(len(axis))]
    for position, level in enumerate(levels):
        # True == 1 in Python, but the level "true" is not the level 1
        if level == value and isinstance(level, bool) == isinstance(value, bool):
            return position
    hint = did_you_mean(str(value), [v for v in levels if isinstance(v, str)])
    raise ClaimError(f"{axis.name} has no level {value!r}.{hint} There is: {listing(levels)}.")


def _share(total: ArrayLike, weight: ArrayLike, rows: ArrayLike) -> FloatArray:
    top, bottom = np.asarray(total, dtype=np.float64), np.asarray(weight, dtype=np.float64)
    share: FloatArray = np.full(bottom.shape, np.nan)
    # Rows are counted exactly; a weight left over from a subtraction may be mere rounding.
    np.divide(top, bottom, out=share, where=(bottom > 0) & (np.asarray(rows) > 0))
    return share


# --- What must be summed beside a metric when the target has an influence function ---


def influence_formula(claim: Claim) -> str | None:
    """The influence function of a custom target; None for every other target."""
    return claim.target.influence if isinstance(claim.target, targets.Custom) else None


def influence_claims(claim: Claim) -> list[Claim]:
    """The influence values, and their product with the metric, as metrics to be summed.

    They count on exactly the rows on which the claim's metric counts.
    """
    formula = influence_formula(claim)
    if formula is None:
        return []
    value = _text(claim.metric)
    # Zero times the value changes no sum, but counts on the same rows as the value does.
    both = [f"({formula}) + 0 * ({value})", f"({formula}) * ({value})"]
    return [_summed(claim, f"influence {i}", text) for i, text in enumerate(both)]


def _summed(claim: Claim, name: str, formula: str) -> Claim:
    metric = claim.metric
    made = Metric(name=name, value=formula, where=metric.where, binary=metric.binary)
    return Gap(metric=made, across=claim.across, target=targets.overall())


def _text(metric: Metric) -> str:
    if isinstance(metric.value, str) and not metric.clipped:
        return metric.value
    raise ClaimError(
        "A custom target needs a metric written as a formula, without clip; "
        f"{metric.name!r} is not."
    )


# --- What must be counted beside a change: the metric before, and the metric after ---


def side_claims(claim: Claim) -> list[Claim]:
    """The metric under either model, where the claim is about the difference row by row."""
    change = claim.metric.change
    if change is None or change.overlapping:
        return []
    return [Gap(metric=metric, across=claim.across) for metric in change.sides()]


# --- The share above the median of the whole sample: the median is found first ---


def median_claims(trail: Trail | Tallied, claim: Claim) -> "tuple[list[Claim], Middle]":
    """A claim about scoring rates with the median put in, and the median.

    After it come one about the rows near the median, and one for each other score that may be the
    median. Everybody with a score counts for it, whatever groups they are in.
    """
    # few audits ask for it, and it brings all of the inference core with it
    from equipoise.methods.inference.ranks import middle_of

    if isinstance(trail, Tallied):
        raise ClaimError("scoring_rate needs the scores themselves: pass the trail, not counts.")
    found = expect_trail(trail)
    for role in ("weight", "cluster"):
        if role in found.roles:
            raise ClaimError(f"scoring_rate takes no {role} column so far; read without {role}=….")
    column = found.roles.column("score")
    values, counts = _observed(found, Ordered("score", role=True), endless=False)
    if not values.size:
        raise TrailError(f"The score column {column!r} holds no number, so there is no median.")
    middle = middle_of(values, counts)
    texts = [
        f"score > {middle.median!r}",
        f"{middle.low!r} <= score and score <= {middle.high!r}",
        *(f"score > {other!r}" for other in middle.others),
    ]
    metrics = [replace(claim.metric, value=text) for text in texts]
    return [replace(claim, metric=metric) for metric in metrics], middle


def median_cells(
    trail: Trail | Tallied, claim: Claim
) -> "tuple[Claim, Cells, MedianSums | None, tuple[Cells, ...]]":
    """A claim about scoring rates with the median put in, its cells, and how the median may move.

    Last come the cells of the scores to which it may jump, where it jumps rather than moves.
    """
    from equipoise.methods.inference.ranks import MedianSums

    if claim.given or claim.across.weighs or isinstance(claim.target, targets.Custom):
        raise ClaimError("scoring_rate takes plain groups: no given=, no tilts, no custom target.")
    asked, middle = median_claims(trail, claim)
    cells, near, *others = map(steady_cells, gather(trail, asked))
    if middle.settled or others:
        return asked[0], cells, None, tuple(others)
    about = float(near.total.sum())
    sums = MedianSums(near=near.total, all_near=about, rows=float(near.rows.sum()))
    return asked[0], cells, sums, ()


# --- `gather`: from a trail and claims to cells, in one scan ---

#: More grouped rows than this are refused: the attributes cut the table too finely.
MAX_CELLS = 1_000_000


def gather(
    trail: Trail | Tallied, claims: Sequence[Claim], *, pairs: bool = False, kinds: bool = False
) -> tuple[Cells, ...]:
    """The cells of each claim's metric, over the dimensions of all the claims, in one scan.

    Counts that were tallied before are taken as they are, and no table is looked at. With
    ``pairs``, claims against a reference group are about differences between partners; with
    ``kinds``, the caller knows measures that are no means.
    """
    if not kinds:
        only_means(claims)
    if isinstance(trail, Tallied):
        return all_cells(trail.scan.narrowed(claims), claims, pairs=pairs)
    return all_cells(scan_for(expect_trail(trail), claims), claims, pairs=pairs)


def scan_for(
    trail: Trail,
    claims: Sequence[Claim],
    limit: int | None = None,
    further: Sequence[Dimension] = (),
) -> Scan:
    """One look at the table, for everything that the claims ask, cut by ``further`` as well."""
    query, wanted = query_for(trail, claims, further)
    return _scan(query, wanted, limit or MAX_CELLS)


def query_for(
    trail: Trail, claims: Sequence[Claim], further: Sequence[Dimension] = ()
) -> tuple[Query, tuple[Dimension, ...]]:
    """What the claims ask of a table, and the dimensions as they were asked for."""
    if trail.roles.observed is not None and any("label" in c.metric.names() for c in claims):
        raise ClaimError(
            "Labels were observed with logged chances (observed=…), by which certify, flag and "
            "joint_test weigh rows of a trail; this audit does not. Read without observed=…."
        )
    named = [d for claim in claims for d in claim.dimensions()]
    wanted = tuple(dict.fromkeys([*named, *further]))
    dimensions = tuple(_with_edges(trail, dimension) for dimension in wanted)
    # claims with the same metric share its sums
    return Query(trail, dimensions, distinct_metrics(claims)), wanted


@known_keywords
def tally(trail: Trail, *claims: Claim | Together) -> Tallied:
    """Count what the claims ask, in one scan; audits then take the counts in place of the trail.

    Parameters
    ----------
    trail
        The audit trail.
    claims
        Everything that will be asked. Metrics of label and prediction alone need not all be named:
        counts for one of them serve the others.

    Examples
    --------
    >>> import equipoise as eq
    >>> claim = eq.gap("false_positive_rate", across=eq.intersections("race", "sex"))
    >>> counts = eq.tally(eq.datasets.compas(), claim)
    >>> eq.certify(counts, claim, rng=7).rows == eq.certify(eq.datasets.compas(), claim, rng=7).rows
    True
    """
    return tallied_within(expect_trail(trail), claims, MAX_CELLS)


def tallied_within(trail: Trail, claims: Sequence[Claim | Together], limit: int) -> Tallied:
    """The counts of the claims, refused where they are more than ``limit``."""
    asked = [part for claim in claims for part in parts_of(claim)]
    if not asked:
        raise ClaimError("tally needs at least one claim: what is to be counted?")
    every = [
        part
        for claim in asked
        for part in (
            claim,
            *influence_claims(claim),
            *side_claims(claim),
            *measure_claims(claim),
        )
    ]
    return Tallied(scan=scan_for(trail, every, limit), trail=trail)


def all_cells(
    scan: Scan, claims: Sequence[Claim], *, may_be_none: bool = False, pairs: bool = False
) -> tuple[Cells, ...]:
    """The cells of each claim's metric; ``may_be_none`` allows for metrics that count on no row."""
    axes, index = _axes(scan)
    clusters = cluster_codes(scan.table["cluster"]) if "cluster" in scan.table else None
    made: dict[tuple[int, bool], Cells] = {}
    # metrics that no claim asks for by name, as in stored counts, are checked all the same
    asked = [(scan.position(claim.metric), claim.unknown == "worst") for claim in claims]
    rest = [(i, False) for i in range(len(scan.metrics)) if all(i != place for place, _ in asked)]
    for position, cut in dict.fromkeys([*asked, *rest]):
        made[position, cut] = _cells(scan, position, axes, index, clusters, may_be_none, cut=cut)
    return tuple(
        _paired(scan, claim, axes, index, clusters)
        if pairs and by_pairs(scan.roles, claim)
        else made[one]
        for claim, one in zip(claims, asked, strict=True)
    )


def by_pairs(roles: Roles, claim: Claim) -> bool:
    """Whether a claim is about differences between partners."""
    plain = isinstance(claim, Gap) and isinstance(claim.target, targets.Reference)
    return plain and claim.target.scale == 1 and not claim.given and roles.pair is not None


def _paired(
    scan: Scan,
    claim: Claim,
    axes: tuple[Axis, ...],
    index: IntArray,
    clusters: IntArray | None,
) -> Cells:
    """The cells of differences between rows and their partners in the reference group.

    A pair stands where its row outside the reference stands, and is counted once.
    """
    position = scan.position(claim.metric)
    metric, table = scan.metrics[position], scan.table
    odd = claim.across.weighs or claim.unknown != "group"
    if scan.weighted or metric.change is not None or odd:
        raise ClaimError(
            "Pairs are compared without weights, by plain metrics, in plain groups and without "
            "unknown=. Read the trail with cluster= in place of pair=."
        )
    assert isinstance(claim.target, targets.Reference)
    counted = totals_of(scan, position)
    own = "pair" in table
    pair = cluster_codes(table["pair" if own else "cluster"])
    if not own or clusters is None:
        clusters = None
    else:
        counted = _without_cluster(counted, clusters < 0)
    _check_pairs(scan, pair, clusters)
    inside = inside_of(claim.target.where, axes, index)
    rows = np.where(pair >= 0, counted.rows, 0.0)
    number = int(pair.max(initial=-1)) + 1
    place = np.maximum(pair, 0)

    def by_pair(values: FloatArray) -> FloatArray:
        return np.bincount(place, values, max(number, 1)).astype(np.float64)[place]

    there, here = by_pair(rows * inside), by_pair(rows * ~inside)
    whole = (there == 1) & (here == 1)
    chosen = whole & ~inside & (rows > 0)
    value = np.where(chosen, counted.moments["total"], 0.0)
    partner = np.where(chosen, by_pair(np.where(inside, counted.moments["total"], 0.0)), 0.0)
    lost = {
        "missing pair": float(counted.rows[pair < 0].sum()),
        "without a partner": float(rows[there + here == 1].sum()),
        "paired within or outside the reference": float(rows[(there + here == 2) & ~whole].sum()),
        "counted with their partners": float(chosen.sum()),
    }
    excluded = counted.excluded | {why: round(many) for why, many in lost.items() if many}
    sides = [
        _differences(scan, metric, axes, index, chosen, x, excluded, clusters, counted.zero_one)
        for x in (partner, value)
    ]
    made = _differences(
        scan, metric, axes, index, chosen, value - partner, excluded, clusters, False
    )
    _check_anybody(metric, _tally_of(chosen, value, False), table["present"], excluded)
    if counted.zero_one:
        return replace(made, values=(-1.0, 0.0, 1.0), sides=(sides[0], sides[1]))
    _, cell = np.unique(index, axis=0, return_inverse=True)
    each = cell.reshape(-1)[chosen].astype(np.int64), (value - partner)[chosen]
    return replace(made, sides=(sides[0], sides[1]), differences=each)


def _check_pairs(scan: Scan, pair: IntArray, clusters: IntArray | None) -> None:
    """Refuse pairs of more than two rows, and pairs that lie in two clusters."""
    known = pair >= 0
    size = np.bincount(pair[known], scan.table["present"][known])
    column = scan.roles.pair
    if bool((size > 2).any()):
        raise TrailError(
            f"A pair has two rows, but {int((size > 2).sum()):,} values of the pair column "
            f"{column!r} stand in more, one in {int(size.max()):,}. Give every pair a value of its "
            "own, or name sets of more rows as cluster=."
        )
    if clusters is not None:
        found = np.unique(np.stack([pair[known], clusters[known]]), axis=1)[0]
        if bool((np.bincount(found) > 1).any()):
            raise TrailError(
                f"Some pairs of {column!r} lie in two clusters of {scan.roles.cluster!r}. Clusters "
                "hold whole pairs."
            )


def _tally_of(chosen: BoolArray, value: FloatArray, zero_one: bool) -> Tally:
    rows = chosen.astype(np.float64)
    moments = unweighted(rows, value, value**2, None if zero_one else value**3)
    return Tally(rows=rows, moments=moments, excluded={}, zero_one=zero_one)


def _differences(
    scan: Scan,
    metric: Metric,
    axes: tuple[Axis, ...],
    index: IntArray,
    chosen: BoolArray,
    value: FloatArray,
    excluded: Mapping[str, int],
    clusters: IntArray | None,
    zero_one: bool,
) -> Cells:
    """The cells of one value for each pair."""
    counted = replace(_tally_of(chosen, value, zero_one), excluded=dict(excluded))
    return _from_tally(scan, metric, axes, index, clusters, counted)


def _scan(query: Query, asked: tuple[Dimension, ...], limit: int) -> Scan:
    reads = what_is_read(query)
    table = fetch(query.frame(limit), query.trail.source)
    if len(table["present"]) > limit:
        # to name the worst attribute costs a scan for each, which a mere attempt does not need
        wanted = limit >= MAX_CELLS
        raise ClaimError(_too_fine(query, limit) if wanted else f"More than {limit:,} cells.")
    return scan_of(query, asked, reads, table)


def scan_of(
    query: Query, asked: tuple[Dimension, ...], reads: tuple[tuple[str, ...], ...], table: Columns
) -> Scan:
    """Grouped rows as a scan, keys in one form; an error where counts or weights are none."""
    _check_rows(query, table)
    present, uncounted = floats(table["present"]), total(table, "missing_count")
    if not present.sum():
        without = f": {uncounted:,} have no count" if uncounted else ""
        raise TrailError(f"{query.trail.source} has no rows{without}. An audit needs at least one.")
    keys = query.keys()
    plain = {
        name: _plain_key(query, name, table[name]) if name in keys else floats(table[name])
        for name in table
        if name != "key" and not name.startswith(("bad_", "missing_count"))
    }
    return Scan(
        dimensions=query.dimensions,
        asked=asked,
        metrics=query.metrics,
        reads=reads,
        roles=query.trail.roles,
        positive=query.trail.positive,
        source=query.trail.source,
        # A row that stands for nobody must leave no trace, not even its level.
        table={name: column[present > 0] for name, column in plain.items()},
        uncounted=uncounted,
    )


def _plain_key(query: Query, name: str, column: AnyArray) -> AnyArray:
    place = int(name.removeprefix("key")) if name.startswith("key") else -1
    tilted = place >= 0 and isinstance(query.dimensions[place], Tilt)
    return plain_keys(steady_weights(column) if tilted else column)


def what_is_read(query: Query) -> tuple[tuple[str, ...], ...]:
    """For each metric what it reads, as messages call it; an error if it cannot."""
    return tuple(_reads(query.trail, metric) for metric in query.metrics)


def _reads(trail: Trail, metric: Metric) -> tuple[str, ...]:
    """What a metric reads, as messages call it; an error if it cannot."""
    for role in metric.binary:
        trail.indicator(role)
    columns = metric_columns(trail, metric)
    for column in metric.models:
        trail.model_indicator(column)
    return tuple(_called(trail, column) for column in columns)


def _called(trail: Trail, column: str) -> str:
    roles = [role for role, name in trail.roles if name == column]
    return roles[0] if roles else column


def _check_rows(query: Query, table: Columns) -> None:
    for role, rule in (
        ("count", "whole numbers of at least 0"),
        ("weight", "finite numbers of at least 0, from 1e-60 to 1e60 where not 0"),
    ):
        bad = total(table, f"bad_{role}")
        if bad:
            column = query.trail.roles.column(role)
            raise TrailError(
                f"The {role} column {column!r} must hold {rule}; {rows_text(bad)} "
                f"{'does' if bad == 1 else 'do'} not. "
                "Correct or remove them."
            )


def _axes(scan: Scan) -> tuple[tuple[Axis, ...], IntArray]:
    axes, codes = [], []
    for position, (dimension, asked) in enumerate(zip(scan.dimensions, scan.asked, strict=True)):
        levels, code = _levels(dimension, scan.table[f"key{position}"])
        axes.append(Axis(dimension=dimension, levels=levels, asked=asked))
        codes.append(code)
    return tuple(axes), np.stack(codes, axis=1)


def _levels(dimension: Dimension, column: AnyArray) -> tuple[tuple[object, ...], IntArray]:
    if isinstance(dimension, Answers):
        return encode(column, dimension.name, "Classes are few; these look like numbers.", most=100)
    if isinstance(dimension, Levels):
        name = dimension.column
        advice = f"Leave it out, or cut it into ranges with binned({name!r}, cuts=…)."
        return encode(column, name, advice)
    if isinstance(dimension, Condition):
        return (False, True), column.astype(np.int64)
    if isinstance(dimension, Values | Tilt | Period | Overlap | Graded):
        return encode(column, dimension.name, "", most=MAX_CELLS)
    if isinstance(dimension, Ordered) and dimension.edges is None:
        levels, codes = encode(column, dimension.column, "Pass edges=… or a number as grid=….")
        # Missing is no point of the line: it takes the position after the last one.
        return tuple(level for level in levels if level is not None), codes
    bounds = _bounds(dimension)
    values = column.tolist()
    codes = np.array([len(bounds) if v is None else v for v in values], dtype=np.int64)
    # a missing value is a level of an attribute, but no part of a line
    named = isinstance(dimension, Binned) and None in values
    return (*bounds, None) if named else bounds, codes


def _bounds(dimension: Binned | Ordered) -> tuple[tuple[float | None, float | None], ...]:
    ends = (None, *dimension.cuts, None) if isinstance(dimension, Binned) else dimension.edges or ()
    return tuple(itertools.pairwise(ends))


def _cells(
    scan: Scan,
    position: int,
    axes: tuple[Axis, ...],
    index: IntArray,
    clusters: IntArray | None,
    may_be_none: bool,
    cut: bool = False,
) -> Cells:
    """The cells of one metric, ``cut`` by its outcome too where that is asked for."""
    counted = totals_of(scan, position)
    if clusters is not None:
        counted = _without_cluster(counted, clusters < 0)
    metric = scan.metrics[position]
    made = _from_tally(scan, metric, axes, index, clusters, counted, cut=cut)
    if not may_be_none:
        _check_anybody(metric, counted, scan.table["present"], made.excluded)
    return made


def _from_tally(
    scan: Scan,
    metric: Metric,
    axes: tuple[Axis, ...],
    index: IntArray,
    clusters: IntArray | None,
    counted: Tally,
    cut: bool = False,
) -> Cells:
    table = scan.table
    present = table["present"]
    lost = {"missing count": scan.uncounted, "missing weight": total(table, "missing_weight")}
    excluded = {name: rows for name, rows in {**lost, **counted.excluded}.items() if rows}
    if cut:
        parts = by_outcome(counted, metric, scan.weighted)
        # rows on which the metric does not count have no outcome: they are with the zeros
        present = np.concatenate([present - parts[1].rows, parts[1].rows])
        index = np.concatenate([np.insert(index, index.shape[1], y, axis=1) for y in (0, 1)])
        clusters = None if clusters is None else np.tile(clusters, 2)
        counted = _joined(*parts)
    sums = {"present": present, "rows": counted.rows, **counted.moments}
    merged_index, merged = merge(index, sums)
    by_cluster = None
    if clusters is not None:
        by_cluster = cluster_table(clusters, index, counted.rows, counted.moments)
    return Cells(
        metric=metric,
        axes=axes,
        index=merged_index[:, : len(axes)],
        ones=merged_index[:, -1] == 1 if cut else None,
        zero_one=counted.zero_one,
        weighted=scan.weighted,
        scanned=round(float(present.sum())) + scan.uncounted,
        excluded=excluded,
        source=scan.source,
        clusters=by_cluster,
        values=counted.values,
        sides=None,
        differences=None,
        **merged,
    )


def _joined(zeros: Tally, ones: Tally) -> Tally:
    """Totals by outcome, one after the other."""
    moments = {
        name: np.concatenate([zeros.moments[name], ones.moments[name]]) for name in ones.moments
    }
    return replace(ones, rows=np.concatenate([zeros.rows, ones.rows]), moments=moments)


def _without_cluster(counted: Tally, unknown: BoolArray) -> Tally:
    """Rows whose cluster is not known cannot be resampled, so they do not count."""
    missing = {"missing cluster": round(float(counted.rows[unknown].sum()))}
    return Tally(
        rows=np.where(unknown, 0.0, counted.rows),
        moments=each_once(lambda sums: np.where(unknown, 0.0, sums), counted.moments),
        excluded=counted.excluded | missing,
        zero_one=counted.zero_one,
        values=counted.values,
    )


def _check_anybody(
    metric: Metric, counted: Tally, present: FloatArray, excluded: Mapping[str, int]
) -> None:
    if not counted.rows.sum():
        lost = ", ".join(f"{rows:,} {why}" for why, rows in excluded.items()) or "none excluded"
        where = f" (rows where {metric.where})" if isinstance(metric.where, str) else ""
        raise ClaimError(
            f"Metric {metric.name!r}{where} counts on no row: of "
            f"{rows_text(round(float(present.sum())))}, {lost}. Check the columns it reads."
        )
    if not counted.moments["weight"].sum():
        raise TrailError(
            f"All rows on which metric {metric.name!r} counts have weight 0. "
            "Name another weight column, or none."
        )


def _with_edges(trail: Trail, dimension: Dimension) -> Dimension:
    """Replace a number of quantiles by the edges found in the data."""
    if isinstance(dimension, Graded):
        return _with_ranges(trail, dimension)
    if not isinstance(dimension, Ordered | Binned) or dimension.quantiles is None:
        return dimension
    every = Ordered(dimension.column, role=isinstance(dimension, Ordered) and dimension.role)
    column = ordered_column(trail, every)
    return ranged(dimension, column, *_observed(trail, every))


def ranged(
    dimension: Ordered | Binned, column: str, values: FloatArray, counts: FloatArray
) -> Ordered | Binned:
    """Ranges of about equally many rows, from the distinct values and how many rows have each."""
    if dimension.quantiles is None:
        return dimension
    if len(values) == 0:
        raise TrailError(f"Column {column!r} has no finite value to form ranges from.")
    # The inverse of the distribution function: exact, and the same on every engine.
    share = np.cumsum(counts) / counts.sum()
    wanted = np.arange(1, dimension.quantiles) / dimension.quantiles
    # A sum that should equal the wanted share may fall short of it by rounding.
    place = np.searchsorted(share, wanted - 1e-12)
    if isinstance(dimension, Binned):
        return Binned(column, shortest_cuts(values, place))
    inner = values[place]
    edges = np.unique(np.concatenate(([values[0]], inner, [values[-1]])))
    if len(edges) < 2:
        raise ClaimError(f"Column {column!r} has one value only, {values[0]:g}; there is no range.")
    return Ordered(dimension.column, edges=tuple(map(float, edges)), role=dimension.role)


#: Where only the order of a number counts, more values than this are put into so many ranges.
MAX_GRADES, RANGES = 10_000, 4000


def _with_ranges(trail: Trail, graded: Graded) -> Graded:
    """A number of few values as it is, any other by narrow ranges."""
    value = key_of(trail, graded)
    with engine_errors(trail.source):
        level = nw.col("level")
        some = trail.frame.select(level=value).unique().head(MAX_GRADES + 1)
        if len(fetch(some, trail.source)["level"]) <= MAX_GRADES:
            return graded
        ends = trail.frame.select(level=value).select(
            low=level.min(), high=level.max(), mean=level.mean()
        )
    low, high, mean = (float(x[0]) for x in fetch(ends, trail.source).values())
    if not np.isfinite([low, high, mean]).all():
        raise TrailError(f"{graded.name!r} holds infinite numbers. Replace them with finite ones.")
    # the mean is added in any order, and a power of two does as well
    scale = 2.0 ** round(math.log2(mean - low))
    times = RANGES / math.log1p((high - low) / scale)
    return Graded(graded.formula, low=low, scale=scale, times=times)


def _observed(
    trail: Trail, every: Ordered, *, endless: bool = True
) -> tuple[FloatArray, FloatArray]:
    """The distinct finite values of a number in order, and how many rows have each."""
    table = fetch(Query(trail, (every,), ()).frame(MAX_CELLS), trail.source)
    if len(table["present"]) > MAX_CELLS:
        raise ClaimError(
            f"{every.column!r} has more than {MAX_CELLS:,} different values, too many to find "
            "quantiles from. Pass edges=… instead of grid=…."
        )
    values, counts = numbers(table["key0"]), floats(table["present"])
    if not endless and bool((np.isinf(values) & (counts > 0)).any()):
        raise TrailError(
            f"The column {ordered_column(trail, every)!r} holds infinite numbers, so that a median "
            "of the others would be none of all. Replace them with finite ones."
        )
    keep = np.isfinite(values) & (counts > 0)
    order = np.argsort(values[keep])
    return values[keep][order], counts[keep][order]


def _too_fine(query: Query, limit: int) -> str:
    """Name the key that cuts most finely; asked only once the limit is passed."""
    called = {f"key{i}": dimension.name for i, dimension in enumerate(query.dimensions)}
    sizes = {}
    for key, expression in query.keys().items():
        number = number_of_levels(query.trail.frame, expression, query.trail.source)
        sizes[called.get(key, key)] = number
    worst = max(sizes, key=lambda name: sizes[name])
    advice = "Leave it out, or cut it into ranges with binned(…)."
    if any(isinstance(dimension, Tilt | Values) for dimension in query.dimensions):
        advice = "Round the weights, such as (x - x % 5) / 100, or audit a sample."
    return (
        f"The attributes cut the table into more than {limit:,} cells; {worst!r} alone has "
        f"{sizes[worst]:,} levels. {advice}"
    )


def cluster_table(
    clusters: IntArray, index: IntArray, counts: FloatArray, moments: dict[str, FloatArray]
) -> ClusterTable:
    """Totals by cluster and cell."""
    _, cell = np.unique(index, axis=0, return_inverse=True)
    kept = counts > 0
    pairs = np.stack([clusters[kept], cell.reshape(-1)[kept]], axis=1)
    totals = {name: moments[name][kept] for name in ("weight", "total", "square")}
    found, merged = merge(pairs, totals)
    # Clusters without a counted row say nothing, so the others are numbered anew.
    _, cluster = np.unique(found[:, 0], return_inverse=True)
    return ClusterTable(cluster=cluster.reshape(-1).astype(np.int64), cell=found[:, 1], **merged)
