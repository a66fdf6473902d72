"""Tallied: the counts of claims without the rows, to be kept, shared and merged."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from equipoise._codec import from_plain, to_plain
from equipoise._validate import known_keywords, listing
from equipoise.cells.scan import Columns, Scan, floats, plain_keys, regrouped
from equipoise.claims.dimension import Dimension, Levels
from equipoise.claims.metric import as_metric
from equipoise.errors import TrailError
from equipoise.methods.arrays import AnyArray
from equipoise.trail import Roles, Trail
from equipoise.trail.engine import objects
from equipoise.trail.trail import expect_trail

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

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, which `from_dict` reads."""
        scan = self.scan
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "source": scan.source,
            "roles": dict(scan.roles),
            "positive": to_plain(dict(scan.positive)),
            "dimensions": to_plain(scan.dimensions),
            "asked": to_plain(scan.asked),
            "metrics": to_plain(scan.metrics),
            "reads": to_plain(scan.reads),
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


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "truth values"
    return "text" if isinstance(value, str) else "numbers"


def _check_format(data: Any) -> None:
    if not isinstance(data, Mapping) or data.get("format") != _FORMAT:
        raise TrailError("These are no counts of equipoise: expected what Tallied.to_dict gives.")
    if data.get("version") not in _READ:
        raise _other_version(data.get("version"))


def _check_orders(scan: Scan, version: int) -> None:
    """Refuse counts of the version before where they lack sums that audits need."""
    if version != _VERSION and not scan.third_sums() <= set(scan.table):
        raise _other_version(version)


def _other_version(version: Any) -> TrailError:
    return TrailError(
        f"These counts have the format version {version!r}; this one reads {_VERSION}."
    )


def _dimensions(plain: Sequence[Any]) -> tuple[Dimension, ...]:
    return tuple(Levels(d) if isinstance(d, str) else from_plain(d) for d in plain)


def _table(plain: Mapping[str, Sequence[Any]]) -> Columns:
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
