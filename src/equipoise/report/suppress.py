"""What a page tells when small groups must not be found out.

Groups of fewer rows than the limit are left out, and so are as many others as it takes that no
small one can be worked out from all findings, metrics and totals of the page together, not even to
within the limit (`equipoise.report.disclosure`). Fingerprints, which a guess could be tried
against, are left out; numbers are rounded. Where groups are hidden, the others are judged one by
one, each by counts that are shown, and what cannot be had in this way is withheld. What groups of
tilts and of single people are worth is compared with the limit one by one.
"""

import dataclasses
import itertools
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from equipoise.findings import Evidence, Finding, Provenance, Verdict
from equipoise.findings.bounds import Bounds, RangeCertificates
from equipoise.findings.calibration import Calibration
from equipoise.findings.describe import Description
from equipoise.findings.evidence import counted_words
from equipoise.findings.finding import is_quoted
from equipoise.findings.flags import CertificateList, Flags
from equipoise.findings.joint_test import Joint, JointTest
from equipoise.findings.monitoring import Monitoring
from equipoise.findings.repair import Repair
from equipoise.findings.shift import MonotoneShift, Shift
from equipoise.findings.summary import Comparison, Summary
from equipoise.findings.words import level_text, plural, together
from equipoise.report.differences import (
    Numbers,
    Sized,
    close_ranges,
    gives_away,
    names_a_value,
    opened,
    over_time,
    too_close,
    whole_curves,
)
from equipoise.report.disclosure import ALL, Count, Key, Told, hidden, in_text, is_rate


class Pools(dict[str, set[Count]]):
    """For each table of rows, the counts that are hidden."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        super().__init__()
        self.tables: dict[str, dict[Count, Told]] = defaultdict(dict)
        """For each table, what findings would tell of it."""
        self._places: dict[str, str] = {}
        for finding in findings:
            self._places[_mark(finding)] = self._placed(finding)

    def place(self, finding: Finding) -> str:
        """The table of a finding."""
        return self._places.get(_mark(finding), _pool(finding))

    def of(self, finding: Finding) -> set[Count]:
        """What is hidden of its table."""
        return self.get(self.place(finding), set())

    def _placed(self, finding: Finding) -> str:
        """The first table that its counts agree with: another prediction has others."""
        told = _told(finding)
        for number in itertools.count():
            place = f"{_pool(finding)} {number}"
            known = self.tables[place]
            if all(_agree(known[count], one) for count, one in told.items() if count in known):
                break
        for count, one in told.items():
            if count not in known or known[count].hits is None:
                known[count] = one
        return place


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A finding as it may be published."""

    finding: Finding
    """The finding without what was suppressed."""
    removed: int
    """How many groups were suppressed."""
    conclusion: Verdict | None
    """What is shown by what is published, and by nothing else."""
    told: bool = True
    """Whether anything is published but the question."""
    whole: bool = True
    """Whether it speaks of all groups, and not only of those that are shown."""


def suppressed(findings: Sequence[Finding], least: int | None) -> list[Kept]:
    """The findings without groups of fewer than ``least`` rows; as they are if it is None."""
    if least is None:
        return [Kept(finding=f, removed=0, conclusion=f.conclusion) for f in findings]
    gone, told, kept = _gone(findings, least), list[Numbers](), []
    for finding in findings:
        one = _kept(finding, gone, least)
        if one.told:
            parts = zip(_flattened([finding]), _flattened([one.finding]), strict=True)
            new = [_numbers(part, shown, gone.place(part)) for part, shown in parts]
            if any(gives_away(n, [*told, *new[:i]], least) for i, n in enumerate(new)):
                one = _untold(finding, gone)
            else:
                told += new
        kept.append(one)
    return kept


def _told(finding: Finding) -> dict[Count, Told]:
    """What a finding tells of groups that attributes form, and of everybody."""
    metric, found = _metric(finding), dict[Count, Told]()
    for row in _sized(finding):
        if _is_modelled(row):
            hits = _hits(row) if is_rate(metric) else None
            found[metric, _key(row)] = Told(n=_size(row), hits=hits)
    if found:
        total = finding.provenance.counted
        found[metric, ALL] = Told(n=total, hits=_all_hits(finding, total))
    return found


def _agree(one: Told, other: Told) -> bool:
    """Whether two counts may be those of the same people."""
    return one.n == other.n and (None in (one.hits, other.hits) or one.hits == other.hits)


def _gone(findings: Sequence[Finding], least: int) -> Pools:
    """What must go, by table: findings about the same rows are looked at together."""
    parts = _flattened(findings)
    gone = Pools(parts)
    tables = gone.tables
    totals: dict[str, dict[Count, Told]] = defaultdict(dict)
    alone: dict[str, set[Count]] = defaultdict(set)
    asked: dict[str, dict[str, None]] = defaultdict(dict)
    # rows that are in no group may be anybody's
    incomplete = {
        gone.place(one) for one in parts if one.provenance.excluded or one.claim.get("unknown")
    }
    for finding in parts:
        pool, metric = gone.place(finding), _metric(finding)
        rows = [row for row in _sized(finding) if not _is_modelled(row)]
        alone[pool] |= {(metric, _key(row)) for row in rows if _size(row) < least}
        asked[pool][metric] = None
        if not _told(finding):
            totals[pool].setdefault((metric, ALL), Told(n=finding.provenance.counted))
    for pool, own in alone.items():
        ranges = _ranges(tables[pool], least)
        gone[pool] = own | hidden(tables[pool], least, ranges, gaps=pool in incomplete)
    # the same people may be in several tables of the page: what is hidden in one is in all
    hidden_keys = {
        key
        for pool, table in tables.items()
        for _, key in table
        if key != ALL and all(count in gone[pool] for count in table if count[1] == key)
    }
    for pool in alone:
        table, gaps = tables[pool], pool in incomplete
        gone[pool] |= {count for count in table if count[1] in hidden_keys}
        every = {**totals[pool], **table}
        # of two questions the later goes
        in_order = {
            count: told
            for metric in asked[pool]
            for count, told in every.items()
            if count[0] == metric
        }
        near = too_close(in_order, gone[pool], least, gaps=gaps)
        gone[pool] |= {count for count in every if count[0] in near}
        gone[pool] |= {(metric, _ALONE) for metric in near}
    return gone


#: In the place of a group: that the metric alone is hidden, and no group of any other for its sake.
_ALONE: Key = "alone"


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
    if not is_rate(_metric(finding)):
        return None
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


# --- What of a finding may be told: a function of what is shown, and of nothing else ---
#
# A reader can perform the audit himself on every table that agrees with the page, and compare. So
# whatever depends on how people are split among hidden groups must not be on it, however rounded:
# no critical value, no p-value adjusted for all groups, no conclusion about them.

_WITHHELD = (
    "Not published. A few people could be found out: these numbers rest on groups that are left "
    "out, on values of single people, or on almost the same rows as others on this page."
)
#: Kinds whose numbers follow from the counts of their groups, where nobody is in two of them.
_SUMMED = (Bounds, CertificateList, Description, Flags, JointTest, Summary)


@dataclass(frozen=True, kw_only=True, repr=False)
class Withheld(Finding):
    """In the place of a finding of which nothing but its question may be told."""

    # no slots: the kind is that of the finding, and no kind of its own
    kind: str  # type: ignore[misc]
    columns = ("group",)

    def sentences(self) -> tuple[str, ...]:
        """Why there is nothing else."""
        return (_WITHHELD,)


def _kept(finding: Finding, gone: Pools, least: int) -> Kept:
    closed = all(_is_closed(part, gone) for part in _flattened([finding]))
    found = _without_marks(finding, least) if closed else _alone(finding, gone)
    if found is not None and names_a_value(finding, found, least):
        found, closed = None, False
    if found is not None and _names_few(found.to_dict(), least):
        # whatever the reason: a group that is too small is never published
        found, closed = None, False
    conclusion = finding.conclusion
    if not closed and conclusion is not None:
        # that all groups on the page keep a limit says nothing of the others
        shown = None if found is None else found.conclusion
        conclusion = Verdict.EXCEEDED if shown is Verdict.EXCEEDED else Verdict.UNDETERMINED
    if found is None:
        return _untold(finding, gone)
    return Kept(
        finding=_finished(found, gone),
        removed=_removed(finding, gone),
        conclusion=conclusion,
        whole=closed,
    )


def _untold(finding: Finding, gone: Pools) -> Kept:
    """In the place of a finding of which nothing may be told."""
    return Kept(
        finding=_finished(_withheld(finding), gone),
        removed=_removed(finding, gone),
        conclusion=None if finding.conclusion is None else Verdict.UNDETERMINED,
        told=False,
        whole=False,
    )


def _finished(finding: Finding, gone: Pools) -> Finding:
    """A finding, and all its parts, without marks that guesses could be tried on, and rounded."""
    changes: dict[str, Any] = {"provenance": _unmarked(finding.provenance, finding, gone)}
    if isinstance(finding, Joint):
        parts = {name: _finished(finding.part(name), gone).to_dict() for name in finding.names}
        changes["parts"] = {**finding.parts, **parts}
    if isinstance(finding, MonotoneShift):
        changes["halves"] = _finished(finding.halves, gone)
    made: Finding = _rounded(_without_ends(dataclasses.replace(finding, **changes)))
    return made


def _without_ends(finding: Finding) -> Finding:
    """Ranges that were cut by the rows begin and end at one person: without the first and last."""
    if not isinstance(finding, MonotoneShift) and '"quantiles"' not in in_text(finding.claim):
        return finding
    fields = {field.name: getattr(finding, field.name) for field in dataclasses.fields(finding)}
    listed = {name: rows for name, rows in fields.items() if _is_sized(rows)}
    ranges = [
        (name, value)
        for rows in listed.values()
        for row in rows
        for name, value in (getattr(row, "where", None) or {}).items()
        if isinstance(value, Mapping)
    ]
    first, last = dict[str, float](), dict[str, float]()
    for name, value in ranges:
        # of ranges that are open already no end is anybody's value
        first[name] = min(value.get("from", -math.inf), first.get(name, math.inf))
        last[name] = max(value.get("to", -math.inf), last.get(name, -math.inf))
    changes: dict[str, Any] = {
        name: tuple(opened(row, first, last) for row in rows) for name, rows in listed.items()
    }
    return dataclasses.replace(finding, **changes)


def _removed(finding: Finding, gone: Pools) -> int:
    hidden_keys = _hidden(finding, gone)
    named = {_key(row) for row in _sized(finding)}
    if isinstance(finding, Joint):
        named |= {_key(row) for part in _flattened([finding]) for row in _sized(part)}
    return len(named & hidden_keys)


def _is_closed(finding: Finding, gone: Pools) -> bool:
    """Whether everything that a finding says follows from counts that are shown."""
    if _rests_on_unlisted(finding) or _rests_on_single_people(finding):
        return False
    pool, metric = gone.of(finding), _metric(finding)
    if any(gone.values()) and _is_by_rule(finding):
        return False
    apart = {own for own, key in pool if key == _ALONE}
    if metric not in apart and all(own in apart for own, _ in pool):
        return True
    rows = _sized(finding)
    attributes = {_attributes(row) for row in rows}
    return (
        isinstance(finding, _SUMMED)
        and not any((metric, key) in pool for key in (ALL, *map(_key, rows)))
        and not any(finding.claim.get(name) for name in ("given", "unknown"))
        and len(attributes) == 1
        and is_rate(metric)
        and all(_is_modelled(row) and _hits(row) is not None for row in rows)
        and sum({_key(row): row.n for row in rows}.values()) == finding.provenance.counted
    )


def _rests_on_single_people(finding: Finding) -> bool:
    """Whether its numbers stand for values, or for so few rows, that single people are in them.

    Tilts around values of a number, ranges between any two values, and labels that a few rows lack.
    """
    if isinstance(finding, Shift):
        return any(isinstance(at, int | float) for row in finding.rows for at in row.where.values())
    if isinstance(finding, Repair) and finding.rule is not None and finding.rule.knots:
        return True
    # of how many rows the label is unknown, nothing says
    return isinstance(finding, RangeCertificates) or finding.claim.get("unlabelled") == "worst"


def _without_marks(finding: Finding, least: int) -> Finding:
    """A finding of which everything may be told, without what it was computed from."""
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(finding):
        value = getattr(finding, field.name)
        if _is_sized(value) and any(0 < (getattr(row, "unknown", 0) or 0) < least for row in value):
            # so few are unknown that their number must not be told
            changes[field.name] = ()
        elif isinstance(value, tuple) and any(hasattr(part, "excluded") for part in value):
            changes[field.name] = tuple(_unnamed(part) for part in value)
    if isinstance(finding, Bounds):
        changes |= {"recipe": None, "quantiles": ()}
    if isinstance(finding, JointTest):
        changes["region"] = None
    if isinstance(finding, Repair):
        # the certificate counts every group
        changes["certified"] = {}
    if isinstance(finding, Calibration):
        # a chart of sums over rows goes up or down by one row at a time
        changes["paths"] = ()
        changes["column_curves"] = whole_curves(finding, least)
    if isinstance(finding, MonotoneShift):
        changes["halves"] = _without_marks(finding.halves, least)
    if isinstance(finding, Monitoring):
        # a batch is a group too
        changes["rows"] = tuple(over_time(row, least) for row in finding.rows)
    if isinstance(finding, Joint):
        parts = {name: _without_marks(finding.part(name), least) for name in finding.names}
        changes["parts"] = {**finding.parts, **_plain_parts(parts)}
    return dataclasses.replace(finding, **changes)


def _plain_parts(parts: Mapping[str, Finding]) -> dict[str, object]:
    return {name: part.to_dict() for name, part in parts.items()}


def _alone(finding: Finding, gone: Pools) -> Finding | None:
    """The groups that are shown, each judged by its own counts and everybody's; None if it cannot.

    Errors are shared among all groups, hidden ones included (Bonferroni), so that what is shown
    holds at once and yet depends on no other group.
    """
    if isinstance(finding, Joint):
        parts = {name: _alone(finding.part(name), gone) for name in finding.names}
        known = {name: part for name, part in parts.items() if part is not None}
        if len(known) < len(parts):
            return None
        # which claim is worst for a group rests on bounds that are not shown
        return dataclasses.replace(finding, rows=(), parts={**finding.parts, **_plain_parts(known)})
    if _rests_on_hidden(finding, gone) or _reads_by_place(finding):
        return None
    own = _hidden(finding, gone)
    if isinstance(finding, Description):
        shown = tuple(row for row in finding.rows if _key(row) not in own)
        return dataclasses.replace(finding, rows=shown, adjusted=(), changed=())
    if isinstance(finding, Bounds):
        return _bounds_alone(finding, own)
    return _flags_alone(finding, own) if isinstance(finding, Flags) else None


_BESIDE: dict[str, Any] = {"adjusted": (), "changed": (), "unknown": (), "labels": ()}
_BY_ITSELF = "each group by itself, its share of the error that of one among {} (Bonferroni)"


def _bounds_alone(finding: Bounds, own: set[Key]) -> Bounds | None:
    number = len(finding.rows)
    places = [i for i, row in enumerate(finding.rows) if _key(row) not in own]
    recipe = finding.recipe_alone(places)
    if recipe is None:
        return None
    one = dataclasses.replace(
        finding,
        **_BESIDE,
        # the first two are about rows and groups, others about laws of all groups together
        assumptions=finding.assumptions[:2],
        rows=tuple(finding.rows[i] for i in places),
        recipe=recipe,
        quantiles=(),
        method={"kind": "pivotal", "family": "bonferroni"},
        engine="none",
        guarantee=f"With {level_text(finding.level)} confidence all bounds shown hold at once, "
        + _BY_ITSELF.format(number),
    )
    return dataclasses.replace(one.by_itself(number), recipe=None)


def _flags_alone(finding: Flags, own: set[Key]) -> Flags | None:
    # p-values of amounts and of weighted rows rest on the shape of everybody's values
    shown = [row for row in finding.rows if _key(row) not in own]
    counts = is_rate(_metric(finding)) and all(
        row.n == 0 or _hits(row) is not None for row in shown
    )
    if finding.method.get("kind") != "pivotal" or not counts:
        return None
    # the groups that are not shown count as if nothing spoke against them
    adjusted = _adjusted([None if _key(row) in own else row.p for row in finding.rows])
    rows = tuple(
        dataclasses.replace(
            row,
            p_adjusted=None if row.p is None else p,
            flagged=row.p is not None and p <= finding.rate * (1 + 1e-9),
            note="" if row.p is not None else row.note,
            reachable=None,
        )
        for row, p in zip(finding.rows, adjusted, strict=True)
        if _key(row) not in own
    )
    number = len(finding.rows)
    return dataclasses.replace(
        finding,
        **_BESIDE,
        assumptions=finding.assumptions[:2],
        rows=rows,
        control="family-wise error (Bonferroni)",
        guarantee=f"The chance of any false flag is at most {level_text(finding.rate)}, "
        + _BY_ITSELF.format(number),
    )


def _adjusted(p: Sequence[float | None]) -> list[float]:
    return [1.0 if each is None else min(each * len(p), 1.0) for each in p]


def _rests_on_unlisted(finding: Finding) -> bool:
    """Whether its numbers rest on groups that it does not list, so that nobody can count them.

    The groups behind a comparison of spreads; groups within strata of legitimate factors.
    """
    return isinstance(finding, Comparison) or bool(finding.claim.get("given"))


#: Counts of people that rows state of their group.
_COUNTS = ("n", "size", "apart", "unknown", "labelled")


def _names_few(data: object, least: int) -> bool:
    """Whether a group of fewer than ``least`` people stands anywhere in plain data."""
    if isinstance(data, Mapping):
        if "group" in data and any(0 < (_whole(data.get(name)) or 0) < least for name in _COUNTS):
            return True
        return any(_names_few(value, least) for value in data.values())
    return isinstance(data, list | tuple) and any(_names_few(value, least) for value in data)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


#: Kinds of groups that may be the same people as a hidden group, or all others, under any name.
_BY_RULE = ("masks", "leaves", "tilts")


def _is_by_rule(finding: Finding) -> bool:
    if isinstance(finding, Shift | MonotoneShift):
        # of these the claim names everybody, and the rows something else
        return False
    across = finding.claim.get("across")
    return isinstance(across, Mapping) and across.get("kind") in _BY_RULE


def _rests_on_hidden(finding: Finding, gone: Pools) -> bool:
    """Whether what a finding says of groups that are shown rests on one that is not."""
    pool, metric = gone.of(finding), _metric(finding)
    if (metric, ALL) in pool or any(finding.claim.get(name) for name in ("given", "unknown")):
        return True
    if any(gone.values()) and _is_by_rule(finding):
        return True
    kind = _target(finding)
    if kind == "reference":
        target: Any = finding.claim["target"]
        key = in_text(target.get("where", {}))
        return (metric, key) in pool or key not in {_key(row) for row in _sized(finding)}
    # the mean of groups, the highest of them, groups like these: hidden ones take part
    return kind not in ("overall", "complement", "constant")


def _withheld(finding: Finding) -> Withheld:
    claim, question = finding.claim, finding.question
    if _target(finding) == "reference":
        claim = {name: part for name, part in claim.items() if name != "target"}
        question = f"{getattr(finding, 'metric', _metric(finding))} against a group"
    if isinstance(finding, Joint):
        question = finding.name
    return Withheld(
        kind=finding.kind,
        claim=claim,
        question=question,
        guarantee="none, since nothing is published",
        assumptions=(),
        provenance=finding.provenance,
        rows=(),
    )


def _unmarked(source: Provenance, finding: Finding, gone: Pools) -> Provenance:
    """Where a finding comes from, without anything a guess could be tried against."""
    pools = [gone.of(part) for part in _flattened([finding])]
    told = not any((_metric(finding), ALL) in pool for pool in pools)
    told = told and not isinstance(finding, Withheld)
    counted = source.counted if told else 0
    return dataclasses.replace(
        source, scanned=counted, counted=counted, excluded={}, ineligible=0, cells=0, fingerprint=""
    )


#: What was asked, and stands in the plan: not rounded, since it tells of nobody.
_ASKED = ("level", "tolerance", "rate", "alpha", "at", "where", "where_to", "claim", "method")


def _rounded(value: Any, name: str = "") -> Any:
    """Numbers of three digits, wherever they stand: bounds and p-values to the safe side."""
    if name in _ASKED or is_quoted(value):
        return value
    if isinstance(value, float):
        return _three_digits(value, name)
    if isinstance(value, Mapping):
        return {key: _rounded(item, str(key)) for key, item in value.items()}
    if isinstance(value, tuple | list):
        ends = ("lower", "upper") if len(value) == 2 else ("",) * len(value)
        return type(value)(_rounded(item, end) for item, end in zip(value, ends, strict=True))
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    fields = dataclasses.fields(value)
    changes = {f.name: _rounded(getattr(value, f.name), f.name) for f in fields}
    if "reach" in changes:
        changes["reach"] = None
    return dataclasses.replace(value, **changes)


def _three_digits(value: float, name: str) -> float:
    if not value or not math.isfinite(value):
        return value
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 2)
    last = name.rpartition("_")[2]
    turn = {"lower": math.floor, "upper": math.ceil}.get(last, round)
    if last == "p" or name == "p_adjusted":
        turn = math.ceil
    return float(f"{turn(round(value / step, 9)) * step:.3g}")


def _numbers(finding: Finding, shown: Finding, table: str) -> Numbers:
    source, by_rule, metric = finding.provenance, _is_by_rule(finding), _metric(finding)
    rows = [row for row in _sized(shown) if _is_modelled(row) or (by_rule and _size(row))]
    sizes = {_key(row): row.n for row in rows}
    told = shown.provenance.counted > 0
    every = [row for row in _sized(finding) if is_rate(metric)]
    hits = {_key(row): _hits(row) for row in every}
    if told and sum(row.n for row in every) == source.counted:
        hits[ALL] = sum(n or 0 for n in hits.values())
    whole = source.counted + _kept_back(source)
    if isinstance(finding, Repair):
        whole = finding.learnt_on + finding.certified_on
    # rows that were drawn for testing say nothing of rows that were not
    drawn = isinstance(finding, Repair) or _kept_back(source) > 0
    return Numbers(
        metric=metric,
        table=table,
        sizes={**sizes, ALL: source.counted} if told else sizes,
        hits={key: n for key, n in hits.items() if n is not None and key in (ALL, *sizes)},
        left=_left(finding, sizes) if told else (),
        whole=whole,
        by_rule=by_rule and not drawn,
    )


def _left(finding: Finding, sizes: Mapping[Key, int]) -> tuple[int, ...]:
    """For each attribute with hidden groups, how many are in these."""
    wheres = {_key(row): _attributes(row) for row in _sized(finding) if _is_modelled(row)}
    found = []
    for names in {names for names in wheres.values() if len(names) == 1}:
        own = [key for key, formed_by in wheres.items() if formed_by == names]
        if any(key not in sizes for key in own):
            found.append(finding.provenance.counted - sum(sizes.get(key, 0) for key in own))
    return tuple(found)


def _attributes(row: Sized) -> tuple[str, ...]:
    return tuple(sorted(getattr(row, "where", {})))


def published_verdict(evidence: Evidence, kept: Sequence[Kept]) -> Verdict:
    """What the published findings show together."""
    if all(one.whole for one in kept):
        return evidence.verdict
    said = [one.conclusion for one in kept if not (one.whole and one.finding.silent)]
    return together(said)


def conclusion_of(evidence: Evidence, kept: Sequence[Kept]) -> Verdict | None:
    """The same; None if no finding has a limit to judge by."""
    return None if evidence.conclusion is None else published_verdict(evidence, kept)


def sentences_of(evidence: Evidence, kept: Sequence[Kept]) -> tuple[str, ...]:
    """The verdict of what is published in plain words, and what it rests on."""
    if all(one.whole for one in kept):
        return evidence.sentences()
    found, conclusion = [one.conclusion for one in kept], conclusion_of(evidence, kept)
    first = {
        None: "No limit was named, so none is kept or exceeded.",
        Verdict.EXCEEDED: "A violation is shown: at least one group on this page exceeds its "
        "limit.",
    }.get(conclusion, "Not told: groups are left out, and those on this page do not settle it.")
    return (first, *counted_words(found, [entry.asked for entry in evidence.entries]))


def published(evidence: Evidence, kept: Sequence[Kept], least: int) -> str:
    """The data behind a page with small groups left out, as JSON: it cannot be verified."""
    made = {
        "schema": "equipoise-published/1",
        "title": evidence.title,
        "verdict": str(published_verdict(evidence, kept)),
        "created": evidence.created,
        "plan_hash": evidence.plan_hash,
        "versions": dict(evidence.versions),
        "suppress": least,
        "entries": [
            {
                "name": entry.name,
                "asked": entry.asked,
                "conclusion": None if one.conclusion is None else str(one.conclusion),
                "of all groups": one.whole,
                "left out": one.removed,
                "finding": _plain(one.finding) if one.told else None,
            }
            for entry, one in zip(evidence.entries, kept, strict=True)
        ],
    }
    return json.dumps(made, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


#: What single rows could be worked out from: sums over tilts, and counts behind monotone ones.
_SUMS = ("basis", "space", "halves", "stretches")


def _plain(finding: Finding) -> dict[str, object]:
    return {name: part for name, part in finding.to_dict().items() if name not in _SUMS}


def _reads_by_place(finding: Finding) -> bool:
    """Whether rows are known by their place, not by attributes, so that none can be taken out."""
    return any(_is_group(row) and hasattr(row, "n") and not row.where for row in finding.rows)


def _hidden(finding: Finding, gone: Pools) -> set[Key]:
    found: set[Key] = set()
    for part in _flattened([finding]):
        found |= {key for metric, key in gone.of(part) if metric == _metric(part)}
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
    return in_text([source.source, source.scanned, _kept_back(source) > 0])


def _mark(finding: Finding) -> str:
    """What tells a question of the page from others."""
    return in_text([_pool(finding), _metric(finding), finding.provenance.fingerprint])


def _kept_back(source: Provenance) -> int:
    """Rows that are counted nowhere because something was learnt on them."""
    left_out = source.ineligible + sum(source.excluded.values())
    return max(source.scanned - left_out - source.counted, 0)


def _metric(finding: Finding) -> str:
    metric = finding.claim.get("metric")
    return metric if isinstance(metric, str) else in_text(metric)


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
    return in_text(_place(getattr(row, "where", None) or {"group": row.group}, row))


def _place(where: Mapping[str, object], row: Sized) -> dict[str, object]:
    # people with the same features but another label are other people
    return {**where, "label": row.label} if hasattr(row, "label") else dict(where)


def _unnamed(part: object) -> object:
    """A part of a finding that lists groups as text, without their names."""
    known: Any = part
    if not getattr(known, "excluded", ()):
        return part
    said = f"{plural(len(known.excluded), 'group')} whose names are suppressed here"
    return dataclasses.replace(known, excluded=(said,))
