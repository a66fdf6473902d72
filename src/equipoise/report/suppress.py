"""Small groups are left out, and so are groups from which they could be worked out.

A group of fewer rows than the limit is removed. So is the smallest published child of a parent if
parent less published children leaves a small remainder; and of ranges only those are kept whose
ends lie so far apart that no difference of two of them is small. Differences of three or more
published numbers of several attributes are not followed up.
"""

import dataclasses
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard

from equipoise.findings import Finding, Verdict
from equipoise.findings.bounds import Bounds
from equipoise.findings.joint_test import Joint, JointTest
from equipoise.findings.words import plural
from equipoise.report.ask import close_ranges, overlapping


class Sized(Protocol):
    """A row of a finding that says of how many people it is."""

    group: str
    n: int


Key = str
Pools = dict[str, set[Key]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A finding as it may be published."""

    finding: Finding
    """The finding without what was suppressed."""
    removed: int
    """How many groups were suppressed."""
    conclusion: Verdict | None
    """What the whole finding shows, suppressed groups included."""
    told: bool = True
    """Whether its sentences and its chart still hold of what is left."""


def suppressed(findings: Sequence[Finding], least: int | None) -> list[Kept]:
    """The findings without groups of fewer than ``least`` rows; as they are if it is None."""
    if least is None:
        return [Kept(finding=f, removed=0, conclusion=f.conclusion) for f in findings]
    gone = _gone(findings, least)
    return [_kept(finding, gone, least) for finding in findings]


def _gone(findings: Sequence[Finding], least: int) -> Pools:
    """What must go, by metric and table: findings about the same rows are looked at together."""
    sizes: dict[str, dict[Key, int]] = defaultdict(dict)
    totals: dict[str, int] = {}
    for finding in _flattened(findings):
        pool = _pool(finding)
        totals[pool] = finding.provenance.counted
        for row in _sized(finding):
            sizes[pool][_key(row)] = _size(row)
    return {pool: small(found, totals[pool], least) for pool, found in sizes.items()}


def small(sizes: Mapping[Key, int], total: int, least: int) -> set[Key]:
    """Groups that must not be published, by their sizes."""
    wheres = {key: json.loads(key) for key in sizes}
    gone = {key for key, n in sizes.items() if n < least}
    gone |= close_ranges(wheres, sizes, total, least)
    families = _families(wheres)
    known = {**sizes, _text({}): total}
    # What is removed may make another remainder small, so it is looked at again until none is.
    while True:
        more = {_weakest(parent, kids, known, gone, least) for parent, kids in families} - {None}
        if not more:
            return gone
        gone |= {key for key in more if key is not None}


def _families(wheres: Mapping[Key, Mapping[str, object]]) -> list[tuple[Key, list[Key]]]:
    """Each group with the groups that split it by one more attribute."""
    found: dict[tuple[Key, str], list[Key]] = defaultdict(list)
    overlaps = overlapping(wheres.values())
    for key, where in wheres.items():
        for name in where:
            # ranges that overlap do not split their parent
            if name not in overlaps:
                parent = {other: value for other, value in where.items() if other != name}
                found[_text(parent), name].append(key)
    return [(parent, kids) for (parent, _), kids in found.items()]


def _weakest(
    parent: Key, kids: list[Key], sizes: Mapping[Key, int], gone: set[Key], least: int
) -> Key | None:
    """The child to remove because its siblings would give something away; None if none would."""
    shown = [kid for kid in kids if kid not in gone]
    if parent not in sizes or not shown:
        return None
    rest = sizes[parent] - sum(sizes[kid] for kid in shown)
    # a parent that is hidden must not be the sum of what is shown
    told = rest == 0 if parent in gone else 0 < rest < least
    # The smallest, which costs the reader least.
    return min(shown, key=lambda kid: (sizes[kid], kid)) if told else None


def _kept(finding: Finding, gone: Pools, least: int) -> Kept:
    own, removed = _hidden(finding, gone), set[Key]()
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(finding):
        value = getattr(finding, field.name)
        if _is_sized(value):
            changes[field.name] = tuple(row for row in value if _may_stay(row, own, least))
            removed |= {_key(row) for row in value if _is_group(row)} & own
        elif isinstance(value, tuple) and any(hasattr(part, "excluded") for part in value):
            changes[field.name] = tuple(_unnamed(part) for part in value)
    # Both hold the counts of every group, small ones included.
    if isinstance(finding, Bounds):
        changes["recipe"] = None
    if isinstance(finding, JointTest):
        changes["region"] = None
    if isinstance(finding, Joint):
        parts = {name: _kept(finding.part(name), gone, least) for name in finding.names}
        plain = {name: part.finding.to_dict() for name, part in parts.items()}
        changes["parts"] = {**finding.parts, **plain}
    told = not (removed and _reads_by_place(finding))
    if not told:
        changes = {
            name: () if _is_sized(getattr(finding, name)) else changes[name] for name in changes
        }
    # The conclusion stays that of the whole: an audit does not pass by hiding whom it harms.
    made: Finding = dataclasses.replace(finding, **changes)
    return Kept(finding=made, removed=len(removed), conclusion=finding.conclusion, told=told)


def _reads_by_place(finding: Finding) -> bool:
    """Whether rows are known by their place, not by attributes, so that none can be taken out."""
    return any(_is_group(row) and hasattr(row, "n") and not row.where for row in finding.rows)


def _hidden(finding: Finding, gone: Pools) -> set[Key]:
    return set().union(*(gone.get(_pool(part), set()) for part in _flattened([finding])))


def _flattened(findings: Iterable[Finding]) -> list[Finding]:
    """Findings, those with parts replaced by their parts."""
    found: list[Finding] = []
    for finding in findings:
        if isinstance(finding, Joint):
            found += _flattened(finding.part(name) for name in finding.names)
        else:
            found.append(finding)
    return found


def _pool(finding: Finding) -> str:
    # Sizes may be set against each other only where they count the same rows of the same table.
    source = finding.provenance
    return _text([finding.claim.get("metric"), source.source, source.counted])


def _sized(finding: Finding) -> list[Sized]:
    """Every group in a finding, with its size: rows, groups, cells."""
    fields = (getattr(finding, field.name) for field in dataclasses.fields(finding))
    return [row for value in fields if _is_sized(value) for row in value if _is_group(row)]


def _is_sized(value: object) -> TypeGuard[tuple[Sized, ...]]:
    return isinstance(value, tuple) and bool(value) and hasattr(value[0], "n")


def _size(row: Sized) -> int:
    """Rows behind a row of a finding; for a tilt, as many as tell as much."""
    effective = getattr(row, "effective", None)
    return int(row.n if effective is None else min(row.n, effective))


def _is_group(row: Sized) -> bool:
    return hasattr(row, "where")


def _key(row: Sized) -> Key:
    return _text(_place(getattr(row, "where", None) or {"group": row.group}, row))


def _place(where: Mapping[str, object], row: Sized) -> dict[str, object]:
    # people with the same features but another label are other people
    return {**where, "label": row.label} if hasattr(row, "label") else dict(where)


def _may_stay(row: Sized, gone: set[Key], least: int) -> bool:
    """Whether a row neither is about a group that must go nor mentions one."""
    if not _is_group(row):
        return _size(row) >= least
    mentioned = [_key(row)]
    if hasattr(row, "where_to"):
        mentioned.append(_text(_place(row.where_to, row)))
    return not any(key in gone for key in mentioned)


def _unnamed(part: object) -> object:
    """A part of a finding that lists groups as text, without their names."""
    known: Any = part
    if not getattr(known, "excluded", ()):
        return part
    said = f"{plural(len(known.excluded), 'group')} whose names are suppressed here"
    return dataclasses.replace(known, excluded=(said,))


def _text(value: object) -> Key:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
