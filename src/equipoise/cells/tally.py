"""Metrics counted over grouped rows, and such counts kept, merged and audited later."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import numpy as np

from equipoise._codec import canonical, from_plain, to_plain
from equipoise._validate import LARGEST, known_keywords, listing, rows_text
from equipoise.cells.query import (
    Columns,
    Scan,
    floats,
    is_local,
    model_columns,
    plain_keys,
    regrouped,
    unit_columns,
)
from equipoise.claims.formula import Mention, Term, as_number, as_truth, parse
from equipoise.claims.groups import Dimension, Levels, Tilt
from equipoise.claims.metric import Metric, as_metric
from equipoise.errors import ClaimError, TrailError
from equipoise.methods.numerics import AnyArray, BoolArray, FloatArray, IntArray, each_once
from equipoise.trail import Roles, Trail
from equipoise.trail.engine import objects
from equipoise.trail.fields import advice_on_values
from equipoise.trail.trail import expect_trail, model_positive

# --- One metric on the grouped rows: what it counts, what it adds up to, what it leaves out ---

_POWERS = ("weight", "total", "square")
#: Of each order of the weights. Rows are added in the order of their last sums, so the third order
#: comes first: it has no say in the digits of the others.
_ORDERS = ("3", "", "2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Totals of one metric; arrays have one entry per grouped row."""

    rows: FloatArray
    """Rows on which the metric counts."""
    moments: dict[str, FloatArray]
    """Weighted sums, by the names they have in the cells."""
    excluded: dict[str, int]
    """Rows left out because the metric reads something that is missing."""
    zero_one: bool
    """Whether every value is 0 or 1."""
    values: tuple[float, ...] = ()
    """All the values there can be, where they are few and known."""


def totals_of(scan: Scan, position: int) -> Tally:
    """The totals of the metric at ``position`` of the scan."""
    metric = scan.metrics[position]
    if is_local(metric):
        return _local(scan, metric)
    prefix, reads = f"m{position}_", scan.reads[position]
    _check_metric(scan, metric, reads, prefix)
    return _pushed(scan, metric, reads, prefix)


def total(table: Columns, name: str) -> int:
    """A fetched column of counts, added up; zero if it was not asked for."""
    return round(float(floats(table[name]).sum())) if name in table else 0


def _local(scan: Scan, metric: Metric) -> Tally:
    """A metric of two-valued roles, worked out on the grouped rows themselves."""
    table = scan.table
    roles = {Mention(role): _indicator(scan, role) for role in scan.two_valued}
    roles |= {Mention(name, "column"): _model(scan, name) for name in metric.models}
    frequency = table["present"]
    if scan.weighted:
        frequency = frequency - table["missing_weight"]
    complete = np.ones(len(frequency), dtype=bool)
    excluded: dict[str, int] = {}
    read = [Mention(role) for role in metric.binary]
    for part in (*read, *(Mention(name, "column") for name in metric.models)):
        # A row that lacks several roles is counted once, under the first of them.
        missing = np.isnan(roles[part])
        excluded[f"missing {part.name}"] = round(float(frequency[complete & missing].sum()))
        complete &= ~missing
    counts = complete & as_truth(_on_arrays(metric.where or "1 == 1", roles))
    # Where the metric does not count its value may not exist, and is thrown away.
    with np.errstate(all="ignore"):
        value = np.where(counts, as_number(_on_arrays(metric.value, roles)), 0.0)
    if metric.clipped:
        value = np.clip(value, metric.low, metric.high)
    if not np.all(np.abs(value) <= LARGEST):
        raise TrailError(
            f"Metric {metric.name!r} is infinite, too large, or not a number on some rows. "
            "Bound it with .clip(low, high)."
        )
    zero_one = not _others(metric) and bool(np.isin(value[counts], (0.0, 1.0)).all())
    moments = _local_moments(scan, frequency, value, zero_one)
    return Tally(
        rows=np.where(counts, frequency, 0.0),
        moments=each_once(lambda sums: np.where(counts, sums, 0.0), moments),
        excluded=excluded,
        zero_one=zero_one,
        values=_few(value[counts]),
    )


def _others(metric: Metric) -> bool:
    """Whether a metric can be something else than 0 and 1, whatever it happens to be."""
    differs = metric.change is not None and not metric.overlapping
    return differs or not set(metric.values) <= {0.0, 1.0}


def worth_of_outcome(metric: Metric, label: int, prediction: int) -> tuple[float, float]:
    """Whether a metric of label and prediction counts on a row, and its value there."""
    if metric.models:
        raise ClaimError(
            f"The {metric.words} needs the labels themselves, not cheap or missing ones."
        )
    roles = {
        Mention("label"): np.array([float(label)]),
        Mention("prediction"): np.array([float(prediction)]),
    }
    eligible = bool(as_truth(_on_arrays(metric.where or "1 == 1", roles)).all())
    with np.errstate(all="ignore"):
        value = float(np.ravel(as_number(_on_arrays(metric.value, roles)))[0])
    return float(eligible), value if eligible else 0.0


def by_outcome(counted: Tally, metric: Metric, weighted: bool) -> tuple[Tally, Tally]:
    """The totals of a 0/1 metric over rows of outcome 0, and over those of outcome 1."""
    if not counted.zero_one:
        raise ClaimError(
            f"unknown='worst' takes metrics that are 0 or 1, and {metric.name!r} has other values. "
            "Ask for a rate, such as metric('late', 'days > 30'), or unknown='random'."
        )
    whole = counted.moments
    ones = whole["total"]
    if weighted:
        # metrics of label and prediction have one outcome in each grouped row
        if not bool(((ones == 0) | (ones == whole["weight"])).all()):
            raise ClaimError(
                "unknown='worst' on rows with weights takes metrics of label and prediction, such "
                f"as selection_rate; how many rows are 1 is not counted of {metric.name!r}."
            )
        ones = np.where(ones > 0, counted.rows, 0.0)
    # over ones a sum of any power of the metric is that of the weights
    last = {name: name[-1] if name[-1] in _ORDERS else "" for name in whole}
    above = {name: whole[f"total{order}"] for name, order in last.items()}
    below = {name: whole[name] - above[name] for name in whole}
    return (
        replace(counted, rows=counted.rows - ones, moments=below),
        replace(counted, rows=ones, moments=above),
    )


def _few(value: FloatArray) -> tuple[float, ...]:
    """The values found, if they are among −1, 0 and 1."""
    # differences of 0/1 roles; other values that occur say nothing of those that could
    return (-1.0, 0.0, 1.0) if bool(np.isin(value, (-1.0, 0.0, 1.0)).all()) else ()


def _local_moments(
    scan: Scan, frequency: FloatArray, value: FloatArray, zero_one: bool
) -> dict[str, FloatArray]:
    if not scan.weighted:
        cube = None if zero_one else frequency * value**3
        return unweighted(frequency, frequency * value, frequency * value**2, cube)
    # the cube of a huge weight is infinite, and then so are the sums of third order, or unknown
    with np.errstate(over="ignore", invalid="ignore"):
        moments = {
            f"{name}{order}": scan.table[f"weight{order}"] * value**power
            for order in _ORDERS
            for power, name in enumerate(_POWERS)
        }
        cube = moments["total3"] if zero_one else scan.table["weight3"] * value**3
    return {"cube3": cube, **moments}


def unweighted(
    rows: FloatArray, total: FloatArray, square: FloatArray, cube: FloatArray | None
) -> dict[str, FloatArray]:
    """Without weights the weight is the number of rows, and so are its square and its cube.

    Where the metric is 0 or 1 there is no need of a cube.
    """
    sums = dict(zip(_POWERS, (rows, total, square), strict=True))
    every = {f"{name}{order}": x for order in _ORDERS for name, x in sums.items()}
    return {"cube3": total if cube is None else cube, **every}


def _pushed(scan: Scan, metric: Metric, reads: tuple[str, ...], prefix: str) -> Tally:
    """A metric that the engine has summed."""
    table = scan.table
    rows = table[f"{prefix}rows"]
    zero_one = metric.zero_one or (not _others(metric) and _only_zero_one(metric, table, prefix))
    cube = None if zero_one else table[f"{prefix}cube3"]
    if scan.weighted:
        names = [f"{name}{order}" for order in _ORDERS for name in _POWERS]
        moments = {name: table[f"{prefix}{name}"] for name in names}
        moments = {"cube3": moments["total3"] if cube is None else cube, **moments}
    else:
        moments = unweighted(rows, table[f"{prefix}total"], table[f"{prefix}square"], cube)
    # Each column is counted among the rows that have all before it, so the losses add up.
    present = [total(table, "present") - total(table, "missing_weight")]
    present += [total(table, f"{prefix}present{i}") for i in range(len(reads))]
    excluded = {f"missing {name}": present[i] - present[i + 1] for i, name in enumerate(reads)}
    return Tally(
        rows=rows, moments=moments, excluded=excluded, zero_one=zero_one, values=metric.values
    )


def _only_zero_one(metric: Metric, table: Columns, prefix: str) -> bool:
    if metric.in_unit:
        # Between 0 and 1 a square is smaller than its root, so equal sums leave only 0 and 1.
        return bool(np.array_equal(table[f"{prefix}total"], table[f"{prefix}square"]))
    return total(table, f"{prefix}other") == 0


def _check_metric(scan: Scan, metric: Metric, reads: tuple[str, ...], prefix: str) -> None:
    table = scan.table
    for role in scan.two_valued:
        if role in metric.binary:
            _indicator(scan, role)
    for column in metric.models:
        _model(scan, column)
    for role, column in unit_columns(scan.roles, metric).items():
        outside = total(table, f"{prefix}outside_{role}")
        if outside:
            called = role if metric.change is None else "score"
            raise TrailError(
                f"Metric {metric.name!r} needs a {called} between 0 and 1; {rows_text(outside)} "
                f"of column {column!r} lie outside. Rescale the column if it is a probability in "
                "another unit, such as per cent. A rank such as a decile is none, however it is "
                "scaled: leave this metric out and ask for another, such as auc."
            )
    _check_defined(metric, reads, table, prefix)
    for side, end in (("below", metric.low), ("above", metric.high)):
        beyond = total(table, f"{prefix}{side}")
        if beyond:
            raise TrailError(
                f"Metric {metric.name!r} says its values are never {side} {end:g}; on "
                f"{rows_text(beyond)} they are. Correct these rows, or bound the metric with "
                ".clip(low, high)."
            )
    strange = total(table, f"{prefix}strange")
    if strange:
        known = ", ".join(f"{value:g}" for value in metric.values)
        raise TrailError(
            f"Metric {metric.name!r} says its values are {known}; on {rows_text(strange)} it is "
            "something else. Correct these rows, or leave values= out."
        )


def _check_defined(metric: Metric, reads: tuple[str, ...], table: Columns, prefix: str) -> None:
    # One infinite or undefined value makes the sum of squares infinite, undefined or absent.
    finite = bool((table[f"{prefix}square"] <= LARGEST**2).all())
    last = f"{prefix}present{len(reads) - 1}"
    expected = total(table, f"{prefix}expected" if f"{prefix}expected" in table else last)
    if finite and expected == total(table, f"{prefix}rows"):
        return
    advice = "Correct these rows, or bound the metric with .clip(low, high)."
    if metric.measure is not None:
        advice = "Correct these rows."
    elif isinstance(metric.value, nw.Expr):
        advice = "If these rows are to be left out, say so with where=…."
    elif finite:
        advice = "Correct these rows, or leave them out with where=…."
    raise TrailError(
        f"Metric {metric.name!r} is infinite, too large, or not a number on some rows. {advice}"
    )


def _indicator(scan: Scan, role: str) -> FloatArray:
    """A two-valued role as 0, 1 and NaN (missing), after checking that it has two values."""
    called = f"{role} column {scan.roles.column(role)!r}"
    return _zero_one(scan.table[role].tolist(), called, scan.positive.get(role))


def _model(scan: Scan, column: str) -> FloatArray:
    """What a model says, read as the prediction is."""
    place = model_columns(scan.metrics).index(column)
    values = scan.table[f"model{place}"].tolist()
    words = any(isinstance(value, str) for value in values)
    return _zero_one(values, f"model column {column!r}", model_positive(scan.positive, words))


def _zero_one(values: Sequence[object], called: str, given: object) -> FloatArray:
    found = {value for value in values if value is not None}
    positive = canonical(1 if given is None else given)
    held = listing(sorted(found, key=str), most=5)
    if given is not None and found and positive not in found:
        raise TrailError(
            f"positive={positive!r} does not occur in the {called}, which holds {held}. Columns "
            "of different words have one each: positive={'label': …, 'prediction': …}."
        )
    # 1 and 2 may be codes for no and yes or the reverse; only 0 and 1 speak for themselves.
    allowed = {0, 1} if given is None else found
    if len(found) > 2 or not found <= allowed:
        raise TrailError(
            f"The {called} must hold two values, 0/1 or another pair with "
            f"positive=…; it holds {len(found):,}: {held}."
            f"{advice_on_values(called.partition(' ')[0], found)}"
        )
    return np.array([np.nan if v is None else float(v == positive) for v in values])


def _on_arrays(formula: str | nw.Expr, roles: dict[Mention, FloatArray]) -> Term:
    if not isinstance(formula, str):
        raise ClaimError("Only formulas written as text are worked out here.")

    def operand(reference: Mention) -> Term:
        return Term(roles[reference], "number")

    return parse(formula).evaluate(operand, np.float64)


# --- Tallied: the counts of claims without the rows, to be kept, shared and merged ---

_FORMAT = "equipoise counts"
_VERSION = 2
#: Version 1 had no sums of third order. Counts of rates on rows without weights need none.
_READ = (1, _VERSION)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tallied:
    """The counts of some claims: all that a group audit needs of a table.

    Made by [`tally`][equipoise.tally], and taken by every group audit in place of a trail.

    >>> import equipoise as eq
    >>> counts = eq.tally(eq.datasets.compas(), eq.gap("accuracy", across="sex"))
    >>> counts
    Tallied(6,172 rows of the bundled COMPAS counts; 'accuracy'; by 'sex')
    >>> Tallied.from_json(counts.to_json()).rows
    6172
    """

    scan: Scan = field(repr=False)
    """The grouped rows."""
    trail: Trail | None = field(default=None, repr=False)
    """Where the rows are, for methods that need them; counts from elsewhere have none."""

    def __repr__(self) -> str:
        metrics = listing(metric.name for metric in self.scan.metrics)
        cut = listing(dict.fromkeys(d.name for d in self.scan.dimensions))
        return f"Tallied({self.rows:,} rows of {self.source}; {metrics}; by {cut})"

    def __len__(self) -> int:
        return len(self.scan.table["present"])

    @property
    def rows(self) -> int:
        """Rows that were counted, frequencies included."""
        return round(float(self.scan.table["present"].sum())) + self.scan.uncounted

    @property
    def source(self) -> str:
        """What the rows were read from."""
        return self.scan.source

    @property
    def roles(self) -> Roles:
        """Which column played which part."""
        return self.scan.roles

    def to_dict(self) -> dict[str, object]:
        """Everything as plain data, which `from_dict` reads."""
        scan = self.scan
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "source": scan.source,
            "roles": dict(scan.roles),
            "positive": to_plain(dict(scan.positive)),
            **{n: to_plain(getattr(scan, n)) for n in ("dimensions", "asked", "metrics", "reads")},
            "uncounted": scan.uncounted,
            "counts": {n: to_plain(column.tolist()) for n, column in scan.table.items()},
        }

    def to_json(self) -> str:
        """Everything as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Tallied":
        """The counts that `to_dict` wrote."""
        _check_format(data)
        # Counts come from other places, so anything at all may stand in them.
        try:
            scan = Scan(
                dimensions=_dimensions(data["dimensions"]),
                asked=_dimensions(data["asked"]),
                metrics=tuple(as_metric(metric) for metric in data["metrics"]),
                reads=from_plain(data["reads"]),
                roles=Roles(**data["roles"]),
                positive=from_plain(data["positive"]),
                source=str(data["source"]),
                table=_table(data["counts"]),
                uncounted=int(data["uncounted"]),
            )
            _check_orders(scan, data["version"])
            return cls(scan=_checked(scan))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TrailError(f"These counts are damaged: {error!r}.") from error

    @classmethod
    def from_json(cls, text: str) -> "Tallied":
        """The counts that `to_json` wrote."""
        try:
            return cls.from_dict(json.loads(text))
        except json.JSONDecodeError as error:
            raise TrailError(f"These counts are no JSON: {error}.") from error


def rows_behind(trail: Trail | Tallied) -> Trail:
    """The trail whose rows a method needs; counts alone have none."""
    if isinstance(trail, Tallied) and trail.trail is not None:
        return trail.trail
    if isinstance(trail, Tallied):
        raise TrailError(
            "This method needs single rows, and these are counts. Pass the trail, or a method that "
            "works from totals, such as method=Bootstrap(engine='moments')."
        )
    return expect_trail(trail)


@known_keywords
def merge(*parts: Tallied) -> Tallied:
    """Counts from several places as one, equal to the counts of all their rows together.

    Each place tallies the same claims on its own rows, with the same roles, and shares the counts
    alone: `Tallied.to_json` there, `Tallied.from_json` here. Clusters with the same name are taken
    for the same cluster.

    Examples
    --------
    >>> import equipoise as eq
    >>> claim = eq.gap("accuracy", across="sex")
    >>> north, south = (
    ...     eq.tally(eq.from_arrays(y, p, sensitive_features={"sex": s}), claim)
    ...     for y, p, s in (([0, 1], [0, 0], ["f", "m"]), ([1], [1], ["f"]))
    ... )
    >>> [row.n for row in eq.describe(eq.merge(north, south), claim).rows]
    [2, 1]
    """
    if not parts or not all(isinstance(part, Tallied) for part in parts):
        kinds = listing(type(part).__name__ for part in parts)
        raise TrailError(f"merge takes counts, such as tally(…) gives; got {kinds}.")
    scans = [part.scan for part in parts]
    first = scans[0]
    for scan in scans[1:]:
        _check_same(first, scan)
    keys = {name: _joined(scans, name) for name in first.key_columns()}
    for name, column in keys.items():
        _check_kinds(_called(first, name), column)
    sums = {name: _joined(scans, name) for name in first.sum_columns()}
    sources = list(dict.fromkeys(scan.source for scan in scans))
    named = sources[0] if len(sources) == 1 else " and ".join(sources)
    together = replace(
        first,
        table=regrouped(keys, sums),
        source=named if len(sources) <= 3 else f"{len(scans)} places",
        uncounted=sum(scan.uncounted for scan in scans),
    )
    # Without a trail: the rows stayed where they were counted.
    return Tallied(scan=together)


def _joined(scans: Sequence[Scan], name: str) -> AnyArray:
    return np.concatenate([scan.table[name] for scan in scans])


def _called(scan: Scan, key: str) -> str:
    number = key.removeprefix("key")
    return scan.dimensions[int(number)].name if number.isdigit() else key


def _check_same(first: Scan, other: Scan) -> None:
    """Refuse counts of different questions, saying in what they differ."""
    # Expressions have no equality, so one is the same as another only if it is that very object.
    pairs = {
        "metrics": (to_plain(first.metrics, other=id), to_plain(other.metrics, other=id)),
        "attributes": (to_plain(first.asked), to_plain(other.asked)),
        "roles": (dict(first.roles), dict(other.roles)),
        "values that count as 1": (dict(first.positive), dict(other.positive)),
    }
    for what, (one, two) in pairs.items():
        if one != two:
            raise TrailError(
                f"Counts of different {what} cannot be merged: {first.source} has {one}, "
                f"{other.source} has {two}. Tally the same claims, in the same order and with the "
                "same roles, in every place."
            )
    if first.dimensions != other.dimensions:
        raise TrailError(
            f"{first.source} and {other.source} found different edges for the same ranges, each "
            "in its own rows. Pass edges=… to the claim, the same in every place."
        )
    if set(first.table) != set(other.table):
        raise TrailError(f"{first.source} and {other.source} were tallied by different versions.")


def _check_kinds(called: str, column: AnyArray) -> None:
    kinds = {_kind(value) for value in column.tolist() if value is not None}
    if len(kinds) > 1:
        raise TrailError(
            f"{called!r} holds {listing(sorted(kinds))} in different places. Bring the column to "
            "one type everywhere."
        )


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "truth values"
    return "text" if isinstance(value, str) else "numbers"


def _check_format(data: Mapping[str, object]) -> None:
    if not isinstance(data, Mapping) or data.get("format") != _FORMAT:
        raise TrailError("These are no counts of equipoise: expected what Tallied.to_dict gives.")
    if data.get("version") not in _READ:
        raise _other_version(data.get("version"))


def _check_orders(scan: Scan, version: int) -> None:
    """Refuse counts of the version before where they lack sums that audits need."""
    if version != _VERSION and not scan.third_sums() <= set(scan.table):
        raise _other_version(version)


def _other_version(version: object) -> TrailError:
    return TrailError(
        f"These counts have the format version {version!r}; this one reads {_VERSION}."
    )


def _dimensions(plain: Sequence[object]) -> tuple[Dimension, ...]:
    return tuple(Levels(d) if isinstance(d, str) else from_plain(d) for d in plain)


def _table(plain: Mapping[str, Sequence[object]]) -> Columns:
    return {str(name): objects(from_plain(list(values))) for name, values in plain.items()}


def _checked(scan: Scan) -> Scan:
    """Keys and sums in the forms that a look at a table gives, and as many of each."""
    lengths = {len(column) for column in scan.table.values()}
    keys = scan.key_columns()
    expected = {f"key{i}" for i in range(len(scan.dimensions))} | {"present"} | scan.third_sums()
    if len(lengths) != 1 or not expected <= set(scan.table):
        raise TrailError("These counts are damaged: columns are missing or differ in length.")
    table = {n: plain_keys(c) if n in keys else floats(c) for n, c in scan.table.items()}
    if bool((table["present"] < 0).any()) or not np.isfinite(table["present"]).all():
        raise TrailError("These counts are damaged: some number of rows is negative.")
    return replace(scan, table=table)


# --- Cells: the totals from which every group audit is computed ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One dimension with the levels found in the data, in a fixed order."""

    dimension: Dimension
    levels: tuple[Any, ...]
    """Values of the attribute, or (from, to) pairs for ranges; None is the missing level."""
    asked: Dimension | None = None
    """The dimension as it was asked for, where the data had to say what its edges are."""

    @property
    def name(self) -> str:
        """The attribute's name."""
        return self.dimension.name

    def __len__(self) -> int:
        return len(self.levels)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterTable:
    """Totals by cluster and cell, sorted by cluster, one entry per pair that has rows."""

    cluster: IntArray
    """Number of the cluster."""
    cell: IntArray
    """Position of the cell."""
    weight: FloatArray
    """Sum of weights."""
    total: FloatArray
    """Weighted sum of the metric."""
    square: FloatArray
    """Weighted sum of its square."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """Totals of one metric over the atoms of the population.

    Arrays have one entry per cell. Without sampling weights ``weight``, ``weight2`` and ``weight3``
    equal ``rows``, and the totals with a 2 or a 3 equal those without.
    """

    metric: Metric
    axes: tuple[Axis, ...]
    index: IntArray = field(repr=False)
    """Level position of each cell along each axis: shape (cells, axes)."""
    present: FloatArray = field(repr=False)
    """Rows in the table, whether or not the metric counts on them."""
    rows: FloatArray = field(repr=False)
    """Rows on which the metric counts."""
    weight: FloatArray = field(repr=False)
    """Sum of weights."""
    total: FloatArray = field(repr=False)
    """Weighted sum of the metric."""
    square: FloatArray = field(repr=False)
    """Weighted sum of its square."""
    weight2: FloatArray = field(repr=False)
    """Sum of squared weights."""
    total2: FloatArray = field(repr=False)
    """Sum of the metric times the squared weight."""
    square2: FloatArray = field(repr=False)
    """Sum of the squared metric times the squared weight."""
    weight3: FloatArray = field(repr=False)
    """Sum of cubed weights."""
    total3: FloatArray = field(repr=False)
    """Sum of the metric times the cubed weight."""
    square3: FloatArray = field(repr=False)
    """Sum of the squared metric times the cubed weight."""
    cube3: FloatArray = field(repr=False)
    """Sum of the cubed metric times the cubed weight; equal to ``total3`` if it is 0 or 1."""
    zero_one: bool
    """Whether every value of the metric is 0 or 1."""
    weighted: bool
    """Whether rows carry sampling weights."""
    scanned: int
    """Rows looked at, counting frequencies."""
    excluded: Mapping[str, int]
    """Rows left out, by reason."""
    source: str
    """What the rows were read from."""
    clusters: ClusterTable | None = field(default=None, repr=False)
    """Totals by cluster, if the trail has a cluster column."""
    values: tuple[float, ...] = ()
    """All the values that the metric can take, where they are few and known."""
    sides: "tuple[Cells, Cells] | None" = field(default=None, repr=False)
    """Where rows are pairs: the partners' metric, and that of the group itself."""
    differences: tuple[IntArray, FloatArray] | None = field(default=None, repr=False)
    """Where pairs are no counts: the cell and the difference of each."""
    ones: BoolArray | None = field(default=None, repr=False)
    """Where cells are cut by outcome too: those of outcome 1."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def counted(self) -> int:
        """Rows on which the metric counts, over all cells."""
        return round(float(self.rows.sum()))

    @property
    def ineligible(self) -> int:
        """Rows that are complete but on which the metric does not count."""
        return self.scanned - self.counted - sum(self.excluded.values())

    def axis(self, name: str) -> int:
        """Position of the attribute called ``name``, or -1; a tilt is none, however called."""
        names = [None if isinstance(a.dimension, Tilt) else a.name for a in self.axes]
        return names.index(name) if name in names else -1

    def cut_by(self, dimension: Dimension) -> int:
        """Position of the axis that a collection asks for."""
        for position, axis in enumerate(self.axes):
            if dimension in (axis.dimension, axis.asked):
                return position
        raise ClaimError(
            f"The cells were not cut by {dimension.name!r}; gather them for this claim."
        )

    def fingerprint(self) -> str:
        """A digest of the cells: the same from every engine and in every row order.

        Sums of second and third order stay out of it: they are of the same rows.
        """
        content = {
            "metric": self.metric.name,
            # Written out, so that the levels 1 and '1' do not look the same.
            "axes": [[axis.name, [repr(level) for level in axis.levels]] for axis in self.axes],
            "index": self.index.tolist(),
            "counts": [array.astype(np.int64).tolist() for array in (self.present, self.rows)],
            "totals": self._rounded(),
            "scanned": self.scanned,
            "excluded": dict(sorted(self.excluded.items())),
        }
        text = json.dumps(content, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def _rounded(self) -> list[list[str]]:
        """The totals to seven digits, since engines add the same numbers in different orders.

        A total may cancel to nearly nothing, so it is measured against the size of what was added.
        """
        size = np.sqrt(self.weight * self.square)
        share = np.divide(self.total, size, out=np.zeros_like(size), where=size > 0)
        return [
            [f"{value:.7g}" for value in self.weight],
            [f"{round(value, 7) + 0.0:.7f}" for value in share],
            [f"{value:.7g}" for value in self.square],
        ]


# --- Sums that do not depend on the order in which rows were added up ---

#: Binary digits that are kept: engines agree on them for any number of rows met in practice.
DIGITS = 33


def steady(x: FloatArray, size: FloatArray) -> FloatArray:
    """Sums to 33 binary digits: engines and threads add the same rows in different orders.

    Without this the last digits of a real-valued metric would differ from run to run.

    >>> one, other = (steady(np.array([x]), np.array([1.0])) for x in (0.1 + 0.2, 0.3))
    >>> bool(one == other)
    True
    """
    known = (size > 0) & np.isfinite(size)
    unit = np.exp2(np.ceil(np.log2(np.where(known, size, 1.0))) - DIGITS)
    # sums too small for so many digits are kept to those that floats have
    unit = np.maximum(unit, np.finfo(np.float64).smallest_subnormal)
    # a size that is no float, since the weights are too large for their powers, tells nothing
    return np.where(known, np.round(np.where(known, x, 0.0) / unit) * unit, x)


def steady_cells(cells: Cells) -> Cells:
    """The cells as audits take them: the same to the last digit from every engine.

    Counts are exact anyway; sums of real numbers are rounded.
    """
    if cells.zero_one and not cells.weighted:
        return cells
    table = cells.clusters
    if table is not None:
        table = replace(table, **_sums(table.weight, table.total, table.square))
    plain = _sums(cells.weight, cells.total, cells.square)
    second = _sums(cells.weight2, cells.total2, cells.square2, order="2")
    third = _sums(cells.weight3, cells.total3, cells.square3, order="3")
    cube = third["total3"] if cells.zero_one else _cube(cells)
    return replace(cells, clusters=table, **plain, **second, **third, cube3=cube)


def _sums(
    weight: FloatArray, total: FloatArray, square: FloatArray, order: str = ""
) -> dict[str, Any]:
    return {
        f"weight{order}": steady(weight, weight),
        # A sum of signed values may cancel, so it is rounded in units of what was added up.
        f"total{order}": steady(total, _between(weight, square)),
        f"square{order}": steady(square, square),
    }


def _between(weight: FloatArray, square: FloatArray) -> FloatArray:
    """The geometric mean, also where the product of two powers of weights is none of a float."""
    with np.errstate(over="ignore", invalid="ignore"):
        product = weight * square
        usual = (product >= np.finfo(np.float64).tiny) & np.isfinite(product)
        return np.where(usual, np.sqrt(product), np.sqrt(weight) * np.sqrt(square))


def _cube(cells: Cells) -> FloatArray:
    """The sums of cubes, in units of what was added up.

    The cubes, taken without their signs, add up to at least what they would if all values were
    equally large; where a few outweigh the others, they show in the sum itself.
    """
    weight, square, cube = cells.weight3, cells.square3, cells.cube3
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.divide(square, weight, out=np.zeros_like(square), where=weight > 0)
        size = np.maximum(np.abs(cube), square * np.sqrt(mean))
    return steady(cube, size)
