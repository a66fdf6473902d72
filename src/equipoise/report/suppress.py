"""What a page tells when small groups must not be found out.

Groups of fewer rows than the limit are left out, and so are as many others as it takes that no
small one can be worked out from all findings, metrics and totals of the page together, not even to
within the limit (`equipoise.report.disclosure`). Fingerprints, which a guess could be tried
against, are left out; numbers are rounded; findings whose sentences or targets rest on a hidden
group are withheld but for their conclusion. What groups of tilts and of single people are worth is
compared with the limit one by one.
"""

import dataclasses
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard

from equipoise.findings import Evidence, Finding, Provenance, Verdict
from equipoise.findings.bounds import Bounds
from equipoise.findings.joint_test import Joint, JointTest
from equipoise.findings.power import PlannedGroup, Power
from equipoise.findings.repair import Alternatives, Repair
from equipoise.findings.words import plural
from equipoise.report.ask import close_ranges
from equipoise.report.disclosure import ALL, Count, Key, Told, hidden


class Sized(Protocol):
    """A row of a finding that says of how many people it is."""

    group: str
    n: int


Pools = dict[str, set[Count]]
"""For each table of rows, the counts that are hidden."""


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
    """What must go, by table: findings about the same rows are looked at together."""
    tables: dict[str, dict[Count, Told]] = defaultdict(dict)
    alone: Pools = defaultdict(set)
    # rows that are in no group may be anybody's
    incomplete = {
        _pool(one)
        for one in _flattened(findings)
        if one.provenance.excluded or one.claim.get("unknown")
    }
    for finding in _flattened(findings):
        pool, metric = _pool(finding), _metric(finding)
        rows = [row for row in _sized(finding) if not _is_modelled(row)]
        alone[pool] |= {(metric, _key(row)) for row in rows if _size(row) < least}
        told = [row for row in _sized(finding) if _is_modelled(row)]
        for row in told:
            known = tables[pool].get((metric, _key(row)))
            if known is None or known.hits is None:
                tables[pool][metric, _key(row)] = Told(n=_size(row), hits=_hits(row))
        if told:
            total = finding.provenance.counted
            tables[pool][metric, ALL] = Told(n=total, hits=_all_hits(finding, total))
    return {
        pool: own
        | hidden(tables[pool], least, _ranges(tables[pool], least), gaps=pool in incomplete)
        for pool, own in alone.items()
    }


def _ranges(table: Mapping[Count, Told], least: int) -> set[Count]:
    """Of ranges that overlap, those whose differences are small, found without any programme."""
    gone: set[Count] = set()
    for metric in dict.fromkeys(metric for metric, _ in table):
        sizes = {key: told.n for (own, key), told in table.items() if own == metric}
        total = sizes.pop(ALL)
        wheres = {key: json.loads(key) for key in sizes}
        gone |= {(metric, key) for key in close_ranges(wheres, sizes, total, least)}
    return gone


def small(sizes: Mapping[Key, int], total: int, least: int) -> set[Key]:
    """Groups that must not be published, by their sizes."""
    table = {("", key): Told(n=n) for key, n in {**sizes, ALL: total}.items()}
    return {key for _, key in hidden(table, least, _ranges(table, least))}


def _is_modelled(row: Sized) -> bool:
    """Whether a row counts people with certain attributes, and nothing else about them."""
    return bool(getattr(row, "where", None)) and not (
        hasattr(row, "label") or hasattr(row, "effective")
    )


def _hits(row: object) -> int | None:
    """How many people a rate gives away; None if it is no rate of people."""
    value, n = getattr(row, "value", None), getattr(row, "n", 0)
    if not isinstance(value, float | int) or not -1e-9 <= value <= 1 + 1e-9:
        return None
    # with weights, or values between 0 and 1, this is seldom a whole number
    found = value * n
    return round(found) if abs(found - round(found)) < 1e-6 else None


def _all_hits(finding: Finding, total: int) -> int | None:
    """The same of everybody, where groups are compared with everybody or with all others."""
    for row in finding.rows:
        target, own = getattr(row, "target", None), _hits(row)
        if target is None or own is None or not isinstance(target, float | int):
            continue
        kind = _target(finding)
        others = total - row.n if kind == "complement" else total
        found = target * others + (own if kind == "complement" else 0)
        if kind in ("overall", "complement") and abs(found - round(found)) < 1e-6:
            return round(found)
    return None


def _target(finding: Finding) -> str:
    target = finding.claim.get("target", "overall")
    return str(target.get("kind")) if isinstance(target, Mapping) else str(target)


#: Tables beside a finding's own whose rates are of other columns: another model, cheap labels.
_FURTHER = ("changed", "labels")


def _kept(finding: Finding, gone: Pools, least: int) -> Kept:
    own, removed = _hidden(finding, gone), set[Key]()
    changes: dict[str, Any] = {"provenance": _unmarked(finding.provenance, finding, gone)}
    for field in dataclasses.fields(finding):
        value = getattr(finding, field.name)
        if _is_sized(value):
            stay = [row for row in value if _may_stay(row, own, least)]
            few = any(0 < (getattr(row, "unknown", 0) or 0) < least for row in stay)
            if few or (own and field.name in _FURTHER):
                # so few are unknown that their number must not be told; or these are rates of other
                # columns, which nobody weighed beside what is hidden
                stay = []
            changes[field.name] = tuple(_rounded(row) for row in stay)
            removed |= {_key(row) for row in value if _is_group(row)} & own
        elif isinstance(value, tuple) and any(hasattr(part, "excluded") for part in value):
            changes[field.name] = tuple(_unnamed(part) for part in value)
    # These hold, or were computed from, the counts of every group, small ones included.
    if isinstance(finding, Bounds):
        critical = None if finding.critical is None else float(f"{finding.critical:.3g}")
        changes |= {"recipe": None, "quantiles": (), "critical": critical}
    if isinstance(finding, JointTest):
        changes["region"] = None
    if isinstance(finding, Repair):
        # the certificate counts every group, and thresholds by group name them
        changes["certified"] = {}
        if removed and finding.rule is not None and finding.rule.how == "by_group":
            changes |= {"rule": None, "tried": ()}
    if isinstance(finding, Power) and removed:
        changes |= _without_whole(finding, changes["rows"])
    if isinstance(finding, Joint):
        parts = {name: _kept(finding.part(name), gone, least) for name in finding.names}
        plain = {name: part.finding.to_dict() for name, part in parts.items()}
        changes["parts"] = {**finding.parts, **plain}
    told = not (removed and _reads_by_place(finding)) and not _rests_on_hidden(finding, gone)
    if isinstance(finding, Alternatives) and removed:
        # the largest of all disparities may be that of a hidden group
        told, changes["rows"] = False, ()
    if not told:
        changes |= _emptied(finding)
    # The conclusion stays that of the whole: an audit does not pass by hiding whom it harms.
    made: Finding = dataclasses.replace(finding, **changes)
    return Kept(finding=made, removed=len(removed), conclusion=finding.conclusion, told=told)


def _without_whole(finding: Power, rows: Sequence[PlannedGroup]) -> dict[str, object]:
    """What a plan says of all groups together: the smallest decide it, and could be found by it."""
    whole = ("table_to_flag", "table_to_show", "budget", "width", "width_alike")
    assumed = None if finding.assumed is None else float(f"{finding.assumed:.3g}")
    return {
        **dict.fromkeys(whole),
        "assumed": assumed,
        "uncertainty": float(f"{finding.uncertainty:.3g}"),
        "rows": tuple(dataclasses.replace(row, labels=None) for row in rows),
    }


def _rests_on_hidden(finding: Finding, gone: Pools) -> bool:
    """Whether what a finding says of groups that are shown rests on one that is not."""
    for part in _flattened([finding]):
        pool, metric = gone.get(_pool(part), set()), _metric(part)
        if (metric, ALL) in pool:
            return True
        kind, some = _target(part), any(own == metric for own, _ in pool)
        if kind == "reference":
            target: Any = part.claim["target"]
            key = _text(target.get("where", {}))
            if (metric, key) in pool or key not in {_key(row) for row in _sized(part)}:
                return True
        # the mean of groups, the highest of them, groups like these: hidden ones take part
        elif some and (
            kind not in ("overall", "complement", "constant") or part.claim.get("given")
        ):
            return True
    return False


def _emptied(finding: Finding) -> dict[str, object]:
    """What is left of a finding that cannot be told: neither rows nor whom it compares with."""
    changes: dict[str, Any] = {
        field.name: ()
        for field in dataclasses.fields(finding)
        if _is_sized(getattr(finding, field.name))
    }
    if _target(finding) == "reference" or isinstance(finding, Joint):
        said = "a group that is too small to be named"
        claim = {name: part for name, part in finding.claim.items() if name != "target"}
        changes |= {"claim": claim, "question": f"{_metric(finding)} against {said}"}
        changes |= {"against": said} if hasattr(finding, "against") else {}
        changes |= {"parts": {}} if isinstance(finding, Joint) else {}
    return changes


def _unmarked(source: Provenance, finding: Finding, gone: Pools) -> Provenance:
    """Where a finding comes from, without anything a guess could be tried against."""
    pools = [gone.get(_pool(part), set()) for part in _flattened([finding])]
    told = not any((_metric(finding), ALL) in pool for pool in pools)
    counted = source.counted if told else 0
    return dataclasses.replace(
        source, scanned=counted, counted=counted, excluded={}, ineligible=0, cells=0, fingerprint=""
    )


def _rounded(row: Any) -> Any:
    """A row with numbers of three digits: bounds and p-values rounded to the safe side."""
    if not dataclasses.is_dataclass(row) or isinstance(row, type):
        return row
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(row):
        value = getattr(row, field.name)
        if isinstance(value, float) and math.isfinite(value) and value:
            step = 10.0 ** (math.floor(math.log10(abs(value))) - 2)
            turn = _TO_THE_SAFE_SIDE.get(field.name, round)
            changes[field.name] = float(f"{turn(value / step) * step:.12g}")
    if hasattr(row, "reach"):
        changes["reach"] = None
    return dataclasses.replace(row, **changes)


_TO_THE_SAFE_SIDE = {
    "lower": math.floor,
    "upper": math.ceil,
    "p": math.ceil,
    "p_adjusted": math.ceil,
}


def published(evidence: Evidence, kept: Sequence[Kept], least: int) -> str:
    """The data behind a page with small groups left out, as JSON: it cannot be verified."""
    made = {
        "schema": "equipoise-published/1",
        "title": evidence.title,
        "verdict": str(evidence.verdict),
        "created": evidence.created,
        "plan_hash": evidence.plan_hash,
        "versions": dict(evidence.versions),
        "suppress": least,
        "entries": [
            {
                "name": entry.name,
                "asked": entry.asked,
                "conclusion": None if one.conclusion is None else str(one.conclusion),
                "left out": one.removed,
                "finding": one.finding.to_dict() if one.told else None,
            }
            for entry, one in zip(evidence.entries, kept, strict=True)
        ],
    }
    return json.dumps(made, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _reads_by_place(finding: Finding) -> bool:
    """Whether rows are known by their place, not by attributes, so that none can be taken out."""
    return any(_is_group(row) and hasattr(row, "n") and not row.where for row in finding.rows)


def _hidden(finding: Finding, gone: Pools) -> set[Key]:
    found: set[Key] = set()
    for part in _flattened([finding]):
        found |= {key for metric, key in gone.get(_pool(part), ()) if metric == _metric(part)}
    return found


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
    # Sizes may be set against each other where they count rows of the same table.
    source = finding.provenance
    return _text([source.source, source.scanned])


def _metric(finding: Finding) -> str:
    metric = finding.claim.get("metric")
    return metric if isinstance(metric, str) else _text(metric)


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
