"""Batches of one question, period after period, and the ledger: one append-only file of them.

Each entry is sealed with the hash of the one before; nobody's key is in that, so whoever rewrites
all that follows, or leaves out the last, is found only beside a digest or signature from before.
The first line says what is asked; every further line is a batch: its period, its cells, and two
hashes. An entry is one write at the end of the file, under a lock, so that several processes may
add at once; a crash leaves at most an unfinished last line, which the next entry replaces.
"""

import contextlib
import datetime
import hashlib
import json
import mmap
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from equipoise._codec import canonical, from_plain, to_plain
from equipoise._files import locked, open_file, why, write_atomically
from equipoise._validate import listing, rows_text, short
from equipoise.cells.gather import all_cells, scan_for
from equipoise.cells.groups import sort_levels
from equipoise.cells.query import Scan
from equipoise.cells.tally import Axis, Cells, ClusterTable, steady_cells
from equipoise.claims.claim import Claim, only_means
from equipoise.claims.groups import Binned, Condition, Dimension, Ordered, Period, Unit
from equipoise.errors import ClaimError, EquipoiseError, TrailError
from equipoise.methods.numerics import FloatArray, IntArray
from equipoise.trail import Trail

#: The sums of cells, and those of them that rows without weights need.
SUMS: tuple[str, ...] = (
    *("present", "rows", "weight", "total", "square"),
    *("weight2", "total2", "square2", "weight3", "total3", "square3", "cube3"),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batches:
    """One question's cells in every batch, oldest first."""

    claim: Claim
    """The question."""
    periods: tuple[str, ...]
    """The name of each batch."""
    cells: tuple[Cells, ...]
    """Its cells."""
    undated: int = 0
    """Rows without a period, which are in no batch."""

    def __len__(self) -> int:
        return len(self.periods)


# --- From one table ---


def batches_of(
    trail: Trail, claims: Sequence[Claim], column: str, unit: Unit | None
) -> list[Batches]:
    """The batches of every claim, from one look at a table with a column of periods."""
    cut = Period(column, dated=unit is not None)
    fixed_edges(claims)
    only_means(claims)
    scan = scan_for(trail, claims, further=(cut,))
    # the scan may hold the column as an attribute as well, which stays
    place = scan.dimensions.index(cut)
    key = f"key{place}"
    days = scan.table[key].tolist()
    names = {
        day: None if day is None else period_of(day, unit, column) for day in dict.fromkeys(days)
    }
    known = np.array([names[day] is not None for day in days], dtype=bool)
    undated = round(float(scan.table["present"][~known].sum()))
    periods = sorted({name for name in names.values() if name is not None}, key=_order(names))
    if not periods:
        raise TrailError(f"Column {column!r} names no period: it is empty on every row.")
    number = {name: i for i, name in enumerate(periods)}
    code = np.array([number.get(names[day] or "", -1) for day in days], dtype=np.int64)
    keys = [f"key{i}" for i in range(len(scan.dimensions)) if i != place]
    renamed = {old: f"key{new}" for new, old in enumerate(keys)}
    made: list[tuple[Cells, ...]] = []
    for i in range(len(periods)):
        here = code == i
        table = {renamed.get(n, n): x[here] for n, x in scan.table.items() if n != key}
        part = replace(
            scan,
            dimensions=tuple(d for j, d in enumerate(scan.dimensions) if j != place),
            asked=tuple(d for j, d in enumerate(scan.asked) if j != place),
            table=table,
            uncounted=0,
        )
        made.append(_batch(part, claims))
    return [
        Batches(
            claim=claim,
            periods=tuple(periods),
            cells=tuple(cells[i] for cells in made),
            undated=undated,
        )
        for i, claim in enumerate(claims)
    ]


def one_batch(trail: Trail, claims: Sequence[Claim]) -> tuple[Cells, ...]:
    """The cells of every claim, all rows being one batch."""
    fixed_edges(claims)
    only_means(claims)
    return _batch(scan_for(trail, claims), claims)


def _batch(scan: Scan, claims: Sequence[Claim]) -> tuple[Cells, ...]:
    """Cells as a batch keeps them: the same from every engine, whatever file they came from."""
    made = []
    for claim in claims:
        # each by its own attributes, whatever the others ask
        (cells,) = all_cells(scan.narrowed([claim]), [claim], may_be_none=True)
        made.append(replace(steady_cells(cells), source="a batch"))
    return tuple(made)


def fixed_edges(claims: Sequence[Claim]) -> None:
    """Refuse ranges whose edges each batch would find for itself."""
    for claim in claims:
        for dimension in claim.dimensions():
            if isinstance(dimension, Ordered | Binned) and dimension.quantiles is not None:
                raise ClaimError(
                    f"The ranges of {dimension.name!r} would be other ones in every batch. Pass "
                    f"{'cuts' if isinstance(dimension, Binned) else 'edges'}=… instead of a number "
                    "of ranges."
                )


def _order(names: Mapping[Any, str | None]) -> Callable[[str], float | str]:
    """The order of periods: dates and numbers by size, names by letters."""
    first: dict[str, Any] = {}
    for value, name in names.items():
        if name is not None and (name not in first or value < first[name]):
            first[name] = value
    kinds = {isinstance(value, str) for value in first.values()}
    if len(kinds) > 1:
        raise TrailError("The column of periods mixes text and numbers. Convert it to one type.")
    return first.__getitem__


def period_of(value: object, unit: Unit | None, column: str) -> str:
    """The period that a day belongs to, or the name of a batch as it stands.

    >>> [period_of("2026-11-15", unit, "day") for unit in ("month", "week", "quarter", None)]
    ['2026-11', '2026-W46', '2026-Q4', '2026-11-15']
    """
    text = str(canonical(value))
    if unit is None:
        return text
    try:
        day = datetime.date.fromisoformat(text if len(text) != 7 else f"{text}-01")
        if len(text) == 7 and unit in ("day", "week"):
            raise ValueError("a month")
    except ValueError as error:
        raise TrailError(
            f"Column {column!r} must hold dates such as 2026-11-15 to be cut by {unit}; it holds "
            f"{short(repr(value))}. Name a column of dates, or one of batch names as period=."
        ) from error
    year, week, _ = day.isocalendar()
    return {
        "day": day.isoformat(),
        "week": f"{year}-W{week:02d}",
        "month": f"{day.year}-{day.month:02d}",
        "quarter": f"{day.year}-Q{(day.month + 2) // 3}",
        "year": str(day.year),
    }[unit]


# --- As plain data ---


def cells_to_plain(cells: Cells) -> dict[str, object]:
    """The cells of a batch as plain data; what the claim says already stays out."""
    needed = SUMS if cells.weighted else ("present", "rows", "total", "square", "cube3")
    if cells.zero_one:
        twice = {"square", "square2", "square3", "cube3"}
        needed = tuple(name for name in needed if name not in twice)
    data: dict[str, Any] = {
        "levels": [_levels_to_plain(axis) for axis in cells.axes],
        "index": cells.index.T.tolist(),
        **{name: _numbers(getattr(cells, name)) for name in needed},
        "scanned": cells.scanned,
        "excluded": dict(sorted(cells.excluded.items())),
        "zero_one": cells.zero_one,
        "weighted": cells.weighted,
        "fingerprint": cells.fingerprint(),
    }
    if cells.clusters is not None:
        table = cells.clusters
        data["clusters"] = {
            "cluster": table.cluster.tolist(),
            "cell": table.cell.tolist(),
            **{n: _numbers(getattr(table, n)) for n in ("weight", "total", "square")},
        }
    return data


def cells_from_plain(data: Mapping[str, Any], claim: Claim, called: str) -> Cells:
    """The cells that `cells_to_plain` wrote, of the claim they answer."""
    try:
        # an attribute and its claim may share a dimension with others of the plan
        dimensions = tuple(dict.fromkeys(claim.dimensions()))
        index = np.array(data["index"], dtype=np.int64).reshape(len(data["index"]), -1).T
        sums = {n: np.array(data[n], dtype=np.float64) for n in SUMS if n in data}
        rows, total = sums["rows"], sums["total"]
        sums.setdefault("weight", rows)
        sums.setdefault("square", total)
        for order in "23":
            for name in ("weight", "total", "square"):
                same = name == "square" and data["zero_one"]
                sums.setdefault(f"{name}{order}", sums[f"total{order}"] if same else sums[name])
        sums.setdefault("cube3", sums["total3"])
        table = data.get("clusters")
        found = Cells(
            metric=claim.metric,
            axes=tuple(
                Axis(dimension=d, levels=_levels_from_plain(d, levels), asked=d)
                for d, levels in zip(dimensions, data["levels"], strict=True)
            ),
            index=index,
            zero_one=bool(data["zero_one"]),
            weighted=bool(data["weighted"]),
            scanned=int(data["scanned"]),
            excluded={str(k): int(v) for k, v in data["excluded"].items()},
            source="a batch",
            clusters=None if table is None else _clusters(table),
            values=claim.metric.values,
            sides=None,
            differences=None,
            ones=None,
            **sums,
        )
        lengths = {len(x) for x in sums.values()} | {len(index)}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TrailError(f"{called} is damaged: {short(repr(error))}.") from error
    if len(lengths) != 1 or index.shape[1] != len(dimensions):
        raise TrailError(f"{called} is damaged: its columns differ in length.")
    return found


def _clusters(table: Mapping[str, Any]) -> ClusterTable:
    return ClusterTable(
        cluster=np.array(table["cluster"], dtype=np.int64),
        cell=np.array(table["cell"], dtype=np.int64),
        **{n: np.array(table[n], dtype=np.float64) for n in ("weight", "total", "square")},
    )


def _levels_to_plain(axis: Axis) -> list[object]:
    # ranges and conditions follow from the claim; only whether some value is missing does not
    plain: list[Any] = to_plain(list(axis.levels))
    return plain


def _levels_from_plain(dimension: Dimension, levels: Sequence[object]) -> tuple[Any, ...]:
    return tuple(from_plain(list(levels)))


def _numbers(x: FloatArray) -> list[float] | list[int]:
    whole = np.rint(x)
    if bool((whole == x).all()) and bool((np.abs(x) < 2**53).all()):
        counts: list[int] = whole.astype(np.int64).tolist()
        return counts
    numbers: list[float] = x.tolist()
    return numbers


# --- All batches together ---


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stacked:
    """Cells that all batches share, and the sums of each batch in them."""

    cells: Cells
    """The cells of all batches added up."""
    sums: Mapping[str, FloatArray]
    """Sums of every cell in every batch, ``(T, C)``; those that are one array are one here."""
    cluster_batch: IntArray | None
    """The batch of each entry of the cells' cluster table."""

    @property
    def by_batch(self) -> Cells:
        """The cells with the sums of every batch instead of their own."""
        changes: dict[str, Any] = dict(self.sums)
        return replace(self.cells, **changes)

    def between(self, start: int, stop: int) -> Cells:
        """The cells of some consecutive batches alone."""
        done = {id(x): x[start:stop].sum(axis=0) for x in self.sums.values()}
        changes: dict[str, Any] = {name: done[id(x)] for name, x in self.sums.items()}
        table = self.cells.clusters
        if table is not None and self.cluster_batch is not None:
            here = (self.cluster_batch >= start) & (self.cluster_batch < stop)
            _, cluster = np.unique(table.cluster[here], return_inverse=True)
            changes["clusters"] = ClusterTable(
                cluster=cluster.reshape(-1).astype(np.int64),
                **{n: getattr(table, n)[here] for n in ("cell", "weight", "total", "square")},
            )
        return replace(self.cells, **changes)


def stacked(batches: Batches) -> Stacked:
    """The batches side by side, on the levels that any of them has."""
    parts = batches.cells
    if not parts:
        raise TrailError("There is no batch yet. Add one before asking what they show.")
    axes, shifts = _joint_axes(parts)
    counts = [len(cells) for cells in parts]
    batch = np.repeat(np.arange(len(parts)), counts)
    index = np.concatenate(
        [
            np.stack([shift[i][cells.index[:, j]] for j, shift in enumerate(shifts)], axis=1)
            if shifts
            else cells.index
            for i, cells in enumerate(parts)
        ]
    )
    weighted, zero_one = parts[0].weighted, all(cells.zero_one for cells in parts)
    if len({cells.weighted for cells in parts}) > 1:
        raise TrailError("Some batches have weights and some have none.")
    base, place = _distinct(index, [len(axis) + 1 for axis in axes])
    flat = batch * len(base) + place
    size = len(parts) * len(base)

    def added(name: str) -> FloatArray:
        every = np.concatenate([getattr(cells, name) for cells in parts])
        return np.bincount(flat, every, size).astype(np.float64).reshape(len(parts), -1)

    sums = {name: added(name) for name in ("present", "rows")}
    sums["weight"] = added("weight") if weighted else sums["rows"]
    sums["total"] = added("total")
    sums["square"] = sums["total"] if zero_one and not weighted else added("square")
    for order in "23":
        for name in ("weight", "total", "square"):
            sums[f"{name}{order}"] = added(f"{name}{order}") if weighted else sums[name]
    sums["cube3"] = sums["total3"] if zero_one else added("cube3")
    clusters, of_batch = _joint_clusters(parts, place, counts)
    excluded: dict[str, int] = {}
    for cells in parts:
        for reason, rows in cells.excluded.items():
            excluded[reason] = excluded.get(reason, 0) + rows
    if batches.undated:
        excluded["missing period"] = batches.undated
    together = Cells(
        metric=parts[0].metric,
        axes=axes,
        index=base.astype(np.int64),
        zero_one=zero_one,
        weighted=weighted,
        scanned=sum(cells.scanned for cells in parts) + batches.undated,
        excluded=dict(sorted(excluded.items())),
        source=batches_text(batches.periods),
        clusters=clusters,
        values=parts[0].values,
        **{name: x.sum(axis=0) for name, x in sums.items()},
    )
    if not together.counted:
        raise ClaimError(
            f"Metric {together.metric.name!r} counts on no row of {together.source}: of "
            f"{rows_text(together.scanned)}, {listing(excluded) or 'none'} left out."
        )
    return Stacked(cells=together, sums=sums, cluster_batch=of_batch)


def _distinct(index: IntArray, sizes: Sequence[int]) -> tuple[IntArray, IntArray]:
    """The distinct cells in the order of their levels, and which of them each entry is."""
    size = int(np.prod([float(n) for n in sizes])) if sizes else 1
    if not sizes or size > 10_000_000:
        cells, place = np.unique(index, axis=0, return_inverse=True)
        return cells, place.reshape(-1)
    # few levels: a number for every possible cell, and no sorting
    code = np.ravel_multi_index(tuple(index.T), tuple(sizes))
    there = np.flatnonzero(np.bincount(code, minlength=size))
    number = np.zeros(size, dtype=np.int64)
    number[there] = np.arange(there.size)
    return np.stack(np.unravel_index(there, tuple(sizes)), axis=1), number[code]


def batches_text(periods: Sequence[str]) -> str:
    """How many batches, and from when to when.

    >>> batches_text(["2026-01", "2026-02"])
    '2 batches (2026-01 to 2026-02)'
    """
    if len(periods) == 1:
        return f"1 batch ({periods[0]})"
    return f"{len(periods):,} batches ({periods[0]} to {periods[-1]})"


def _joint_axes(parts: Sequence[Cells]) -> tuple[tuple[Axis, ...], list[list[IntArray]]]:
    """Axes with the levels of all batches, and where each batch's levels stand on them."""
    axes: list[Axis] = []
    shifts: list[list[IntArray]] = []
    for j, first in enumerate(parts[0].axes):
        dimension = first.dimension
        every = [cells.axes[j].levels for cells in parts]
        levels = _joint_levels(dimension, list(dict.fromkeys(every)))
        position = {_key(level): i for i, level in enumerate(levels)}
        places: dict[tuple[Any, ...], IntArray] = {}
        for found in every:
            if found not in places:
                # one place more: values that are missing or in no range come after the last
                inside = [position[_key(level)] for level in found]
                places[found] = np.array([*inside, len(levels)], dtype=np.int64)
        axes.append(Axis(dimension=dimension, levels=levels, asked=first.asked))
        shifts.append([places[found] for found in every])
    return tuple(axes), shifts


def _key(level: object) -> tuple[str, object]:
    # true is no 1
    return type(level).__name__ if isinstance(level, bool) else "", level


def _joint_levels(dimension: Dimension, found: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    if isinstance(dimension, Condition):
        return False, True
    if isinstance(dimension, Binned) or (isinstance(dimension, Ordered) and dimension.edges):
        # all batches have the same ranges, and some perhaps a missing value
        return max(found, key=len)
    return sort_levels({level for levels in found for level in levels}, dimension.name)


def _joint_clusters(
    parts: Sequence[Cells], place: IntArray, counts: Sequence[int]
) -> tuple[ClusterTable | None, IntArray | None]:
    """Clusters of all batches; one that comes again in another batch counts as another."""
    if parts[0].clusters is None:
        return None, None
    ends = np.cumsum([0, *counts])
    columns: dict[str, list[Any]] = {
        n: [] for n in ("cluster", "cell", "weight", "total", "square")
    }
    of_batch: list[IntArray] = []
    first = 0
    for i, (cells, (start, stop)) in enumerate(zip(parts, pairwise(ends), strict=True)):
        table = cells.clusters
        if table is None:
            raise TrailError("Some batches have clusters and some have none.")
        columns["cluster"].append(table.cluster + first)
        columns["cell"].append(place[start:stop][table.cell])
        for name in ("weight", "total", "square"):
            columns[name].append(getattr(table, name))
        of_batch.append(np.full(len(table.cluster), i, dtype=np.int64))
        first += int(table.cluster.max(initial=-1)) + 1
    joined = {name: np.concatenate(x) for name, x in columns.items()}
    return ClusterTable(**joined), np.concatenate(of_batch)


def merged_cells(parts: Sequence[Cells], claim: Claim) -> Cells:
    """One batch's cells from those of several places."""
    together = stacked(Batches(claim=claim, periods=("",) * len(parts), cells=tuple(parts)))
    return replace(together.cells, source="a batch")


def digest_text(data: object) -> str:
    """Plain data in the one form of which digests are taken."""
    return json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


FORMAT = "equipoise ledger"
VERSION = 1

Added = Literal["added", "already there"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """A ledger file.

    >>> import tempfile, equipoise as eq
    >>> path = Path(tempfile.mkdtemp()) / "hiring.ledger"
    >>> claim = eq.gap("selection_rate", across="sex")
    >>> ledger = Ledger.start(path, [claim])
    >>> rows = eq.from_arrays(None, [1, 0, 1], sensitive_features={"sex": ["f", "m", "f"]})
    >>> ledger.add(rows, "2026-11")
    'added'
    >>> ledger.periods
    ('2026-11',)
    """

    path: Path
    """Where it is."""
    claims: tuple[Claim, ...]
    """What is asked of every batch."""
    plan: Mapping[str, Any] | None
    """The plan it was started with, if any."""
    seal: str
    """Hash of the first line."""

    @classmethod
    def start(
        cls, path: str | Path, claims: Sequence[Claim], plan: Mapping[str, Any] | None = None
    ) -> "Ledger":
        """Begin a ledger; one that exists is never overwritten."""
        place = Path(path)
        if not claims:
            raise TrailError("A ledger needs at least one claim: what is to be counted?")
        header: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "claims": [claim.to_plan() for claim in claims],
            "plan": plan,
        }
        header["hash"] = _hash(header)
        with locked(place) as file:
            if file.seek(0, os.SEEK_END):
                raise TrailError(f"{str(place)!r} exists already. Name another file.")
            _write(file, header)
        return cls.open(place)

    @classmethod
    def open(cls, path: str | Path) -> "Ledger":
        """A ledger that exists."""
        place = Path(path)
        try:
            with open_file(place, "ledger") as file:
                first = file.readline()
        except EquipoiseError as error:
            reason = error.__cause__
            said = f"The ledger {str(place)!r} cannot be read: "
            raise TrailError(
                f"{said}{why(reason)}." if isinstance(reason, OSError) else str(error)
            ) from error
        header = _line(first, f"The first line of {place.name}")
        if header.get("format") != FORMAT:
            raise TrailError(f"{str(place)!r} is no ledger of equipoise.")
        if header.get("version") != VERSION:
            raise TrailError(
                f"{place.name} has the ledger version {header.get('version')!r}; "
                f"this one reads {VERSION}."
            )
        if header.get("hash") != _hash(header):
            raise TrailError(f"The first line of {place.name} was changed after it was written.")
        return cls(
            path=place,
            claims=tuple(from_plain(claim) for claim in header["claims"]),
            plan=header.get("plan"),
            seal=str(header["hash"]),
        )

    # --- adding ---

    def add(self, trail: Trail, period: str, *, late: bool = False) -> Added:
        """Add all rows of a trail as the batch of a period.

        The same rows a second time change nothing. Other rows of a period that is there are refused
        unless they are ``late``, an entry of its own after what is there.
        """
        return self.append(period, one_batch(trail, self.claims), late=late)

    def add_all(self, trail: Trail, column: str, unit: Unit | None = None) -> dict[str, Added]:
        """Add every period of a table with a column of dates or batch names."""
        found = batches_of(trail, self.claims, column, unit)
        every = zip(*(one.cells for one in found), strict=True)
        return {
            period: self.append(period, cells)
            for period, cells in zip(found[0].periods, every, strict=True)
        }

    def append(self, period: str, cells: Sequence[Cells], *, late: bool = False) -> Added:
        """Add the cells of every claim as one entry."""
        name = str(period).strip()
        if not name or not name.isprintable() or len(name) > 200:
            raise TrailError(
                f"A period is a short name such as 2026-11; got {short(repr(period))}."
            )
        plain = [cells_to_plain(one) for one in cells]
        content = _digest(plain)
        with locked(self.path) as file:
            last = _last_entry(file)
            before = str(last.get("period", ""))
            # while names rise, one that is higher than the last is there for the first time
            rising = bool(last.get("rising", True)) and name > before
            known = [] if rising else _entries_of(file, name)
            if content in {entry["content"] for entry in known}:
                return "already there"
            if known and not late:
                raise TrailError(
                    f"{self.path.name} has a batch {name!r} already, with other rows. A ledger is "
                    "never changed: add rows that came late as late, or name another period."
                )
            if late and not known:
                raise TrailError(
                    f"{self.path.name} has no batch {name!r} that these rows could be late for."
                )
            entry: dict[str, Any] = {
                "period": name,
                "late": len(known),
                "rising": rising,
                "content": content,
                "previous": last["hash"],
                "cells": plain,
            }
            entry["hash"] = _hash(entry)
            _write(file, entry)
        return "added"

    # --- reading ---

    @property
    def periods(self) -> tuple[str, ...]:
        """The name of every entry, in the order in which they were added."""
        return tuple(_called(entry) for entry in self.entries())

    def batches(self, claim: Claim) -> Batches:
        """The batches of one of the ledger's claims."""
        plain = [known.to_plan() for known in self.claims]
        if claim.to_plan() not in plain:
            words = listing(known.words for known in self.claims)
            raise TrailError(f"This ledger was not started for {claim.words!r}, but for {words}.")
        place = plain.index(claim.to_plan())
        names, cells = [], []
        for entry in self.entries():
            names.append(_called(entry))
            called = f"Batch {names[-1]!r} of {self.path.name}"
            cells.append(cells_from_plain(entry["cells"][place], claim, called))
        return Batches(claim=claim, periods=tuple(names), cells=tuple(cells))

    def entries(self) -> Iterator[dict[str, Any]]:
        """Every entry that was finished, oldest first."""
        with open_file(self.path, "ledger") as file:
            file.readline()
            for number, line in enumerate(file, start=2):
                if not line.endswith(b"\n"):
                    return  # the writer died, or is still at it
                entry = _line(line, f"Line {number} of {self.path.name}")
                if not {"period", "late", "content", "previous", "cells", "hash"} <= set(entry):
                    raise TrailError(f"Line {number} of {self.path.name} is no batch.")
                yield entry

    def digests(self) -> list[str]:
        """The digest of the first line and of every entry; the last stands for all before it."""
        return [self.seal, *(str(entry["hash"]) for entry in self.entries())]

    def problems(self) -> list[str]:
        """What does not fit together: entries changed, left out or put in elsewhere."""
        found, before = [], self.seal
        for entry in self.entries():
            called = f"batch {_called(entry)!r}"
            if entry["hash"] != _hash(entry):
                found.append(f"{called} was changed after it was written")
            elif entry["previous"] != before:
                found.append(f"{called} does not follow the entry before it")
            elif entry["content"] != _digest(entry["cells"]):
                found.append(f"{called} does not hold what its digest says")
            else:
                found += [
                    f"{called} holds other cells than its fingerprint says"
                    for claim, data in zip(self.claims, entry["cells"], strict=True)
                    if cells_from_plain(data, claim, called).fingerprint() != data["fingerprint"]
                ]
            before = entry["hash"]
        return found


def merge_ledgers(paths: Sequence[str | Path], out: str | Path) -> Ledger:
    """One ledger from those of several places, which ask the same: the same period is one batch."""
    ledgers = [Ledger.open(path) for path in paths]
    if len(ledgers) < 2:
        raise TrailError("merge takes at least two ledgers.")
    first = ledgers[0]
    for other in ledgers[1:]:
        if [c.to_plan() for c in other.claims] != [c.to_plan() for c in first.claims]:
            raise TrailError(
                f"{other.path.name} asks other questions than {first.path.name}. Ledgers are "
                "merged if they were started with the same claims."
            )
    if Path(out).exists():
        raise TrailError(f"{str(out)!r} exists already. Name another file.")
    found: dict[str, list[list[Cells]]] = {}
    for ledger in ledgers:
        for entry in ledger.entries():
            called = f"Batch {_called(entry)!r} of {ledger.path.name}"
            cells = [
                cells_from_plain(data, claim, called)
                for claim, data in zip(ledger.claims, entry["cells"], strict=True)
            ]
            found.setdefault(_called(entry), []).append(cells)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "claims": [claim.to_plan() for claim in first.claims],
        "plan": first.plan,
    }
    lines = [{**header, "hash": _hash(header)}]
    for name in sorted(found):
        parts = found[name]
        plain = [
            cells_to_plain(merged_cells([place[i] for place in parts], claim))
            for i, claim in enumerate(first.claims)
        ]
        entry = {
            "period": name,
            "late": 0,
            "rising": True,
            "content": _digest(plain),
            "previous": lines[-1]["hash"],
            "cells": plain,
        }
        lines.append({**entry, "hash": _hash(entry)})
    write_atomically(out, "".join(_text(line) for line in lines))
    return Ledger.open(out)


def is_ledger(source: object) -> bool:
    """Whether a source is the path of a ledger file."""
    if not isinstance(source, str | Path):
        return False
    with contextlib.suppress(EquipoiseError), open_file(source, "ledger") as file:
        return file.read(200).startswith(f'{{"format":"{FORMAT}"'.encode())
    return False


# --- Lines ---


def _text(entry: Mapping[str, object]) -> str:
    # in the order of the fields: an entry begins with its period, by which it is found
    return json.dumps(entry, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


def _write(file: IO[bytes], entry: Mapping[str, object]) -> None:
    file.seek(0, os.SEEK_END)
    file.write(_text(entry).encode())
    file.flush()
    os.fsync(file.fileno())


def _line(line: bytes, called: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise TrailError(f"{called} is damaged: {short(str(error))}.") from error
    if not isinstance(found, dict):
        raise TrailError(f"{called} is damaged: it holds no mapping.")
    return found


def _called(entry: Mapping[str, object]) -> str:
    return str(entry["period"]) + (f" (late {entry['late']})" if entry["late"] else "")


def _hash(entry: Mapping[str, object]) -> str:
    return _digest({key: value for key, value in entry.items() if key != "hash"})


def _digest(data: object) -> str:
    return hashlib.sha256(digest_text(data).encode()).hexdigest()


def _last_entry(file: IO[bytes]) -> dict[str, Any]:
    """The last finished line; what a crash left after it of an unfinished one is cut off."""
    size = file.seek(0, os.SEEK_END)
    end = _line_end(file, size)
    if end < size:
        file.truncate(end)
    start = _line_end(file, end - 1)
    file.seek(start)
    return _line(file.read(end - start), "The last line")


def _line_end(file: IO[bytes], before: int) -> int:
    """Where the last line that ends before some place ends; the beginning if none does."""
    while before > 0:
        step = min(before, 1 << 16)
        file.seek(before - step)
        at = file.read(step).rfind(b"\n")
        if at >= 0:
            return before - step + at + 1
        before -= step
    return 0


def _entries_of(file: IO[bytes], period: str) -> list[dict[str, Any]]:
    """The entries of one period, found without reading the others."""
    begin = b'\n{"period":' + json.dumps(period, ensure_ascii=False).encode() + b","
    file.seek(0, os.SEEK_END)
    if not file.tell():
        return []
    found = []
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as seen:
        at = seen.find(begin)
        while at >= 0:
            end = seen.find(b"\n", at + 1)
            found.append(_line(seen[at + 1 : end], f"The batch {period!r}"))
            at = seen.find(begin, end)
    return found
