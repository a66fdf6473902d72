"""The ledger: one append-only file of batches, each entry sealed with the hash of the one before.

The first line says what is asked; every further line is a batch: its period, its cells, and two
hashes. An entry is one write at the end of the file, under a lock, so that several processes may
add at once; what a crash leaves behind is at most an unfinished last line, which nobody reads and
the next entry replaces.
"""

import contextlib
import hashlib
import json
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from equipoise._codec import from_plain
from equipoise._files import locked, write_atomically
from equipoise._validate import listing, short
from equipoise.cells.batches import (
    Batches,
    batches_of,
    cells_from_plain,
    cells_to_plain,
    digest_text,
    merged_cells,
    one_batch,
)
from equipoise.cells.tally import Cells
from equipoise.claims.claim import Claim
from equipoise.claims.groups import Unit
from equipoise.errors import TrailError
from equipoise.trail import Trail

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
            with place.open("rb") as file:
                first = file.readline()
        except OSError as error:
            raise TrailError(f"The ledger {str(place)!r} cannot be read: {error}.") from error
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
        with self.path.open("rb") as file:
            file.readline()
            for number, line in enumerate(file, start=2):
                if not line.endswith(b"\n"):
                    return  # the writer died, or is still at it
                entry = _line(line, f"Line {number} of {self.path.name}")
                if not {"period", "late", "content", "previous", "cells", "hash"} <= set(entry):
                    raise TrailError(f"Line {number} of {self.path.name} is no batch.")
                yield entry

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
    with contextlib.suppress(OSError, ValueError), Path(source).open("rb") as file:
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
