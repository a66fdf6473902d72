"""Performing a plan, judging it at the gate, and performing it again to verify evidence."""

import datetime
import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any, Literal

from equipoise import audits, datasets
from equipoise._validate import known_name, short
from equipoise.cells import Tallied
from equipoise.cells.gather import tallied_within
from equipoise.cells.ledger import Added, Ledger
from equipoise.claims import Claim, gap
from equipoise.claims.claim import as_claim, parts_of
from equipoise.claims.groups import Binned, Dimension, Levels
from equipoise.errors import EquipoiseError, OptionError, PlanError, TrailError
from equipoise.findings.evidence import Asked, Evidence, assemble
from equipoise.findings.finding import Finding
from equipoise.findings.words import SELF_TARGET, Verdict
from equipoise.plan.plan import AuditPlan, Plan, TrailPlan
from equipoise.trail import Trail, read
from equipoise.trail.delimited import only
from equipoise.trail.engine import changed_words, one_moment
from equipoise.trail.sources import has_tables, input_digest, refuse_unsafe
from equipoise.trail.trail import ROLE_NAMES

# --- One scan for all group audits of a plan ---

#: Grouped rows up to which audits share a scan; beyond, a scan of their own is quicker.
MOST_CELLS = 100_000

Shared = Mapping[int, tuple[Claim, ...]]


def shared_counts(trail: Trail, audits: Sequence[AuditPlan]) -> dict[int, Tallied]:
    """Counts for the audits, by position, that can work from them; the others need the trail.

    What goes wrong here goes wrong again in the audit itself, whose error has its name.
    """
    asked = {i: claims for i, audit in enumerate(audits) if (claims := _claims(audit))}
    # measures that cut rows by a score, or by pay, would cut everybody else's cells as finely
    fine = {i: claims for i, claims in asked.items() if any(claim.kinds() for claim in claims)}
    plain = {i: claims for i, claims in asked.items() if i not in fine}
    together = _tallied(trail, plain)
    found: dict[int, Tallied] = {} if together is None else together
    for part in [*_alike(fine), *(_alike(plain) if together is None else [])]:
        found |= _tallied(trail, part) or {}
    return found


def _tallied(trail: Trail, asked: Shared) -> dict[int, Tallied] | None:
    """One tally for all of them, or None if there cannot be one."""
    every = [claim for claims in asked.values() for claim in claims]
    if len(every) < 2:
        # nothing to share
        return {}
    try:
        counts = tallied_within(trail, every, MOST_CELLS)
    except EquipoiseError:
        return None
    return dict.fromkeys(asked, counts)


def _alike(asked: Shared) -> list[Shared]:
    """The audits that cut the table in the same way."""
    found: dict[frozenset[Dimension], dict[int, tuple[Claim, ...]]] = {}
    for i, claims in asked.items():
        cut = frozenset(dimension for claim in claims for dimension in claim.dimensions())
        found.setdefault(cut, {})[i] = claims
    return list(found.values())


def _claims(audit: AuditPlan) -> tuple[Claim, ...]:
    """What an audit counts; nothing if it needs rows, or cannot be asked."""
    options = audit.options()
    try:
        if audit.audit in ("describe", "flag", "certify", "joint_test", "power"):
            return parts_of(options["claim"])
        if audit.audit == "summarize":
            return (gap(options["metric"], across=options["across"]),)
        if audit.audit == "compare" and options.get("models") is None:
            return tuple(gap(options["metric"], across=one) for one in options["across"])
    except (EquipoiseError, KeyError, TypeError):
        # the audit itself will say what is wrong
        return ()
    return ()


# --- Performing a plan: each audit in order, all findings kept ---

BUNDLED = {
    "equipoise:compas": datasets.compas,
    "equipoise:adult": datasets.adult_predictions,
    "equipoise:mortgages": datasets.mortgages,
}

Tell = Callable[[str, int, int], None]


def run(
    plan: Plan,
    *,
    folder: str | Path = ".",
    data: str | None = None,
    table: str | None = None,
    asked: Asked = "confirmatory",
    allow: Sequence[str] | None = None,
    tell: Tell | None = None,
    progress: bool | None = None,
    trail: Trail | None = None,
) -> Evidence:
    """Perform every audit of a plan.

    Parameters
    ----------
    plan
        What to do.
    folder
        Where relative paths of the plan start; usually the folder of the plan.
    data
        Another source for the rows, if they are not where the plan says.
    table
        Another table, if ``data`` or the plan's source is a database.
    asked
        Whether the plan was fixed before looking at the outcomes.
    allow
        For a plan that somebody else wrote: the sources outside its folder that it may open, word
        for word, and folders it may read; an empty list for none. Without it the plan is trusted.
    tell
        Called with the name of each audit as it begins, its number, and how many there are.
    progress
        Whether audits show a bar; if not given, where someone is watching.
    trail
        The rows as the plan would open them, if they are open already.

    Examples
    --------
    >>> from equipoise.plan import Plan, run
    >>> plan = Plan.parse('''
    ... equipoise: 1
    ... seed: 7
    ... trail: {source: "equipoise:compas"}
    ... audits:
    ...   - audit: flag
    ...     claim: {kind: gap, metric: false_positive_rate, across: [race]}
    ... ''')
    >>> run(plan).entries[0].finding.flagged[0].group
    'African-American'
    """
    bundled = _is_bundled(plan.trail, data, table)
    source = _place(plan.trail.source, Path(folder)) if data is None else data
    if allow is not None:
        refuse_reaching(plan.trail, Path(folder), data, table, allow)
    digest = None if bundled else input_digest(source)
    if trail is None:
        trail = open_trail(
            plan.trail,
            folder=Path(folder),
            data=data,
            table=table,
            columns=columns_read(plan),
        )
    with one_moment(trail.frame, trail.source):
        found = _perform_all(trail, plan, asked, tell, progress)
    # Some files are read once and others at every question; a digest tells for all of them.
    if digest is not None and input_digest(source) != digest:
        raise TrailError(changed_words(trail.source))
    return assemble(
        plan.title,
        found,
        plan=plan.to_plain(),
        plan_hash=plan.hash,
        notes=(*trail.notes, *_alike_levels(finding for _, _, finding in found)),
        input=digest,
    )


def _alike_levels(findings: Iterable[Finding]) -> list[str]:
    """Levels that differ in capitals or blanks alone, which most likely are one."""
    seen: dict[str, dict[str, None]] = {}
    for finding in findings:
        for row in finding.rows:
            for name, level in getattr(row, "where", {}).items():
                if isinstance(level, str):
                    seen.setdefault(name, {})[level] = None
    said = []
    for name, levels in seen.items():
        plain: dict[str, list[str]] = {}
        for level in levels:
            plain.setdefault("".join(level.split()).casefold(), []).append(level)
        alike = [", ".join(map(repr, sorted(same))) for same in plain.values() if len(same) > 1]
        if alike:
            said.append(
                f"{name} has levels that differ in capitals or blanks alone, and count as groups "
                f"apart: {'; '.join(alike[:5])}."
            )
    return said


def _perform_all(
    trail: Trail, plan: Plan, asked: Asked, tell: Tell | None, progress: bool | None
) -> list[tuple[str, Asked, Finding]]:
    counts = shared_counts(trail, plan.audits)
    found: list[tuple[str, Asked, Finding]] = []
    for i, (name, audit) in enumerate(zip(plan.names(), plan.audits, strict=True)):
        if tell is not None:
            tell(name, i, len(plan.audits))
        rows = counts.get(i, trail)
        found.append((name, asked, perform(rows, audit, plan.seed, name, progress)))
    return found


def perform(
    trail: Trail | Tallied,
    audit: AuditPlan,
    seed: int,
    name: str,
    progress: bool | None = None,
) -> Finding:
    """One audit of a plan; an error names it."""
    verb = audits.verb(audit.audit)
    # Every audit starts from the plan's seed, so leaving one out changes no number of another.
    supplied = {"rng": seed, "progress": progress}
    known = inspect.signature(verb).parameters
    options = audit.options() | {k: v for k, v in supplied.items() if k in known}
    try:
        found = verb(trail, **options)
    except EquipoiseError as error:
        raise type(error)(f"{name}: {error}") from error
    if found.rows and all(getattr(row, "note", "") == SELF_TARGET for row in found.rows):
        # a gate that asks nothing would never close, and never say so
        raise PlanError(
            f"{name}: every group is its own target, so nothing is compared. Name other groups in "
            "`across:`, or another `target:`."
        )
    return found


def refuse_reaching(
    asked: TrailPlan, folder: Path, data: str | None, table: str | None, allow: Sequence[str]
) -> None:
    """Refuse a plan that somebody else wrote, if its rows are not where it may look."""
    if data is None and not _is_bundled(asked, data, table):
        refuse_unsafe(asked.source, folder, allow)


def open_trail(
    asked: TrailPlan,
    *,
    folder: Path,
    data: str | None = None,
    table: str | None = None,
    columns: frozenset[str] | None = None,
) -> Trail:
    """The trail of a plan, from where it says or from ``data``.

    ``columns`` are all that will be asked for, if that is known.
    """
    roles: dict[str, Any] = asked.roles()
    if _is_bundled(asked, data, table):
        trail = BUNDLED[known_name("Bundled source", asked.source, BUNDLED, PlanError)]()
        # roles that are not given keep what the bundled table says
        return read(trail, **{**dict(trail.roles), **roles}) if roles else trail
    source = _place(asked.source, folder) if data is None else data
    # the plan's table is one of its own database, not of a file given instead
    chosen = table or (asked.table if data is None or has_tables(data) else None)
    with only(columns):
        return read(source, table=chosen, **roles)


def columns_read(plan: Plan) -> frozenset[str] | None:
    """The columns that a plan names, where its audits read no others; None where they may."""
    asked = plan.trail.roles()
    if plan.models or any(asked.get(name) for name in ("attributes", "proxy", "truth")):
        return None
    named = {str(asked[role]) for role in ROLE_NAMES if asked.get(role)}
    for audit in plan.audits:
        claims = _claims(audit)
        cut = [dimension for claim in claims for dimension in claim.dimensions()]
        by_role = all(
            claim.metric.by_role and not (claim.metric.models or claim.given) for claim in claims
        )
        if not (claims and by_role and all(isinstance(d, Levels | Binned) for d in cut)):
            return None
        named |= {dimension.name for dimension in cut}
    return frozenset(named)


def _is_bundled(asked: TrailPlan, data: str | None, table: str | None) -> bool:
    return data is None and table is None and asked.source.startswith("equipoise:")


def _place(source: str, folder: Path) -> str:
    return source if "://" in source or source.startswith("${") else str(folder / source)


# --- What can be judged of a plan without its rows ---


def check_limits(plan: Plan) -> None:
    """Refuse limits that the audits of a plan would refuse, before any row is there."""
    for name, audit in zip(plan.names(), plan.audits, strict=True):
        try:
            _check_limits(audit)
        except EquipoiseError as error:
            raise type(error)(f"{name}: {error}") from error


def _check_limits(audit: AuditPlan) -> None:
    # imported here: a plan that is only read needs no mathematics
    from equipoise.audits._groups.problem import CertifyOptions, FlagOptions
    from equipoise.audits.flag import limits_in

    asked = audit.options()
    for claim in _claims(audit):
        if audit.audit == "certify":
            level, side = asked.get("level", 0.95), asked.get("side", "both")
            tolerance = asked.get("tolerance")
            CertifyOptions(level=level, side=side, tolerance=tolerance, method=None).check_claim(
                claim
            )
        if audit.audit == "flag":
            options = FlagOptions(
                above=asked.get("above"), below=asked.get("below"), outside=asked.get("outside"),
                fdr=0.1, control="bh", method=None, min_rows=None, resamples=None,
            )  # fmt: skip
            limits_in(claim, options)


# --- The gate: what evidence means for a release, as an exit code ---


class Exit(IntEnum):
    """Exit codes of every command."""

    KEPT = 0
    """All limits are shown to be kept, or the command did what it should."""
    VIOLATION = 1
    """A violation is shown."""
    UNDETERMINED = 2
    """Neither is shown."""
    ERROR = 3
    """The question could not be asked, or the answer not be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Whether a release may pass, and why."""

    code: Exit
    """Exit code."""
    words: str
    """The reason in one sentence."""


def gate(evidence: Evidence, undetermined: Literal["pass", "fail"] | None = None) -> Gate:
    """Judge evidence; ``undetermined`` says what absence of evidence means for the release.

    >>> import equipoise as eq
    >>> claim = eq.gap("false_positive_rate", across="race")
    >>> bounds = eq.certify(eq.datasets.compas(), claim, tolerance=0.05, rng=7)
    >>> gate(eq.Evidence.of(bounds)).code
    <Exit.VIOLATION: 1>
    """
    code = {
        Verdict.KEPT: Exit.KEPT,
        Verdict.EXCEEDED: Exit.VIOLATION,
        Verdict.UNDETERMINED: Exit.UNDETERMINED,
    }[evidence.verdict]
    words = evidence.sentences()[0]
    if code is not Exit.UNDETERMINED or undetermined is None:
        return Gate(code=code, words=words)
    if undetermined == "pass":
        return Gate(code=Exit.KEPT, words=f"{words} Let through, since undetermined may pass.")
    return Gate(code=Exit.VIOLATION, words=f"{words} Stopped, since undetermined must fail.")


# --- Re-performance: run the plan of an evidence file again and compare every number ---

#: Difference, as a share of a number, that another processor's rounding may cause. Every number
#: that is not the same to the last digit is counted and told.
ROUNDING = 1e-9
#: What counts as nothing, as a share of the numbers beside it: those that cancel have no share of
#: their own to be judged by.
_NOTHING = 1e-12
#: Chances below which none is told from none at all.
_SMALLEST = 1e-300
#: Names of chances, and of numbers that are in no unit of the metric.
_CHANCE = re.compile(r"^p$|^p_|_p$")
_UNITLESS = re.compile(rf"{_CHANCE.pattern}|^(level|rate|alpha|fdr|power|critical|share)$")

#: Fields that say where and by which version, not what was found; they are compared apart.
_CIRCUMSTANCE = ("version", "source")
#: Seconds by which clocks may differ.
_CLOCKS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One value that did not come out again."""

    where: str
    """The finding and the field in it."""
    stated: object
    """What the evidence says."""
    again: object
    """What came out when it was performed again."""

    def __str__(self) -> str:
        return f"{self.where}: the evidence says {self.stated!r}, again it is {self.again!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What performing an audit again showed."""

    differences: tuple[Difference, ...]
    """Everything that did not come out the same."""
    compared: int
    """How many values were compared."""
    not_performed: tuple[str, ...]
    """What the evidence states that was not performed again: findings outside the plan, another
    version or another file than here. Whoever wrote it may have invented it."""
    stated: tuple[str, ...] = ()
    """What nothing but a signature can show: when it was made, and that the plan came first."""
    rounded: int = 0
    """How many numbers were not the same to the last digit, though within rounding."""

    @property
    def holds(self) -> bool:
        """Whether everything that was performed again came out the same."""
        return not self.differences

    @property
    def complete(self) -> bool:
        """Whether everything came out the same, and nothing was left that was not performed."""
        return self.holds and not self.not_performed


def verify(
    evidence: Evidence,
    *,
    plan: Plan | None = None,
    folder: str | Path = ".",
    data: str | None = None,
    table: str | None = None,
    allow: Sequence[str] = (),
    tell: Tell | None = None,
) -> Verification:
    """Perform the plan again and compare everything with the evidence.

    ``plan`` is the plan as registered elsewhere, if it is to be compared too; otherwise the one
    quoted in the evidence is performed. Neither is trusted: ``allow`` names what may be opened
    outside ``folder``.
    """
    if evidence.plan is None:
        raise EquipoiseError(
            "This evidence quotes no plan, so there is nothing to perform again. Only audits run "
            "by `equipoise run`, `check` or `audit` can be verified."
        )
    quoted = Plan.from_plain(evidence.plan, "the plan in the evidence")
    differences = [*_plan_differences(evidence, quoted, plan)]
    # a broken seal must not hide which number was changed, so the audits run all the same
    performed = run(plan or quoted, folder=folder, data=data, table=table, allow=allow, tell=tell)
    found = compared_with(evidence, performed, differences, elsewhere=data is not None)
    return found if plan is None else replace(found, stated=found.stated[:1])


def compared_with(
    evidence: Evidence,
    performed: Evidence,
    differences: Sequence[Difference] = (),
    *,
    elsewhere: bool = False,
) -> Verification:
    """Every value of evidence beside what came out when it was performed again.

    ``elsewhere`` says that the rows were read from another place than the evidence names.
    """
    again = {entry.name: entry.finding.to_dict() for entry in performed.entries}
    compared = rounded = 0
    differences = [*differences, *_circumstances(evidence, performed)]
    for entry in evidence.entries:
        if entry.name in again:
            pairs = list(_pairs(entry.finding.to_dict(), again[entry.name], (entry.name,)))
            compared += len(pairs)
            differences += [_difference(*pair[:3]) for pair in pairs if not _same(*pair)]
            rounded += sum(_same(*pair) and pair[1] != pair[2] for pair in pairs)
    stated = [entry.name for entry in evidence.entries]
    missing = [
        Difference(where=name, stated="not in it", again="a finding")
        for name in again
        if name not in stated
    ]
    if not missing and [name for name in stated if name in again] != [*again]:
        missing = [_difference(("order of findings",), ", ".join(stated), ", ".join(again))]
    places = [*_places(evidence, performed)]
    later = [entry.name for entry in evidence.entries if entry.name not in again]
    return Verification(
        differences=(*differences, *missing, *([] if elsewhere else places)),
        compared=compared,
        not_performed=(
            *later,
            *(str(one) for one in _versions(evidence, performed)),
            *(str(one) for one in (places if elsewhere else [])),
        ),
        stated=(
            f"made {evidence.created}",
            *_confirmatory(evidence),
        ),
        rounded=rounded,
    )


def _confirmatory(evidence: Evidence) -> list[str]:
    number = sum(entry.asked == "confirmatory" for entry in evidence.entries)
    if not number:
        return ["none confirmatory: all was asked after looking"]
    return [f"{number} confirmatory: the plan was fixed before looking"]


def _circumstances(evidence: Evidence, performed: Evidence) -> Iterator[Difference]:
    """What the evidence says of itself that cannot be so."""
    if evidence.notes != performed.notes:
        yield _difference(("notes",), " ".join(evidence.notes), " ".join(performed.notes))
    planned = {entry.name for entry in performed.entries}
    asked = {entry.asked for entry in evidence.entries if entry.name in planned}
    for entry in evidence.entries:
        # a run marks all its findings alike, and what no plan asked for was asked later
        if entry.asked == "confirmatory" and (entry.name not in planned or len(asked) > 1):
            yield _difference((entry.name, "asked"), entry.asked, "exploratory")
        own = entry.finding.provenance.version
        if own != evidence.versions.get("equipoise"):
            yield _difference(
                (entry.name, "version"), own, f"{evidence.versions.get('equipoise')} in versions"
            )
    try:
        made = datetime.datetime.fromisoformat(evidence.created)
        late = (made - datetime.datetime.now(datetime.UTC)).total_seconds() > _CLOCKS
    except (ValueError, TypeError, OverflowError):
        yield _difference(("created",), evidence.created, "a point in universal time")
    else:
        if late:
            yield _difference(("created",), evidence.created, f"not before {performed.created}")


def _versions(evidence: Evidence, performed: Evidence) -> Iterator[Difference]:
    """Packages of other versions than here: the same numbers do not show who made them."""
    for name in dict.fromkeys((*evidence.versions, *performed.versions)):
        stated, here = evidence.versions.get(name), performed.versions.get(name)
        if stated != here:
            yield _difference(("version of " + short(name, 40),), stated, here)


def _places(evidence: Evidence, performed: Evidence) -> Iterator[Difference]:
    """Where the rows came from: by name, and by the digest of the file."""
    sources = {entry.name: entry.finding.provenance.source for entry in performed.entries}
    for entry in evidence.entries:
        stated, here = entry.finding.provenance.source, sources.get(entry.name)
        if here is not None and stated != here:
            yield _difference((entry.name, "source"), stated, here)
    if evidence.input is not None and evidence.input != performed.input:
        yield _difference(("input",), _file(evidence.input), _file(performed.input))


def _file(input: Mapping[str, str] | None) -> str:
    return "no file" if input is None else f"{input['name']} with SHA-256 {input['sha256']}"


def _plan_differences(evidence: Evidence, quoted: Plan, plan: Plan | None) -> Iterator[Difference]:
    if evidence.plan_hash != quoted.hash:
        yield Difference(where="plan hash", stated=evidence.plan_hash, again=quoted.hash)
    # What the plan's hash leaves out must not be in it either: a plan is quoted as it is read.
    if evidence.plan != quoted.to_plain():
        yield Difference(where="plan", stated="fields that were changed", again="the plan as read")
    if plan is not None and plan.hash != evidence.plan_hash:
        yield Difference(where="plan", stated=evidence.plan_hash, again=plan.hash)
    if evidence.title != quoted.title:
        yield Difference(where="title", stated=evidence.title, again=quoted.title)
    if plan is not None and {entry.asked for entry in evidence.entries} == {"exploratory"}:
        # a plan that was registered was fixed before looking
        yield Difference(where="asked", stated="exploratory", again="confirmatory")
    if evidence.input is None and _names_file(quoted.trail):
        yield Difference(where="input", stated="no digest", again="that of the file of the plan")
    for name, stated, given in evidence.contradictions():
        yield Difference(where=name, stated=stated, again=given)


def _names_file(trail: TrailPlan) -> bool:
    """Whether a plan's rows are in a file, whose digest its evidence must state."""
    source = trail.source
    scheme = source.split("://", 1)[0].lower() if "://" in source else ""
    return not source.startswith(("equipoise:", "${")) and scheme in ("", "duckdb", "sqlite")


Place = tuple[str, ...]
_LISTS = (list, tuple)


_Pair = tuple[Place, object, object, float]
"""A place, what is stated there, what came out, and the size of the numbers beside it."""


def _pairs(stated: object, again: object, place: Place, size: float = 0.0) -> Iterator[_Pair]:
    """Every value of two results side by side."""
    if isinstance(stated, Mapping) and isinstance(again, Mapping):
        size = _size(again.items())
        for key in dict.fromkeys((*stated, *again)):
            if not (place[-1] == "provenance" and key in _CIRCUMSTANCE):
                yield from _pairs(stated.get(key), again.get(key), (*place, str(key)), size)
    elif isinstance(stated, _LISTS) and isinstance(again, _LISTS) and len(stated) == len(again):
        size = _size((place[-1], item) for item in again)
        for i, (one, other) in enumerate(zip(stated, again, strict=True)):
            yield from _pairs(one, other, (*place, _label(one, i)), size)
    else:
        yield place, stated, again, size


def _size(items: Iterable[tuple[object, object]]) -> float:
    """The largest of numbers that stand together; shares that were asked for are in no unit."""
    return max(
        (
            abs(value)
            for name, value in items
            if isinstance(value, float) and math.isfinite(value) and not _UNITLESS.search(str(name))
        ),
        default=0.0,
    )


def _label(item: object, i: int) -> str:
    """A row by its group, other items by their number."""
    return str(item["group"]) if isinstance(item, Mapping) and "group" in item else str(i + 1)


def _same(place: Place, stated: object, again: object, size: float) -> bool:
    numbers = (int, float)
    # True == 1, but a flag that became a number did not come out the same.
    if isinstance(stated, bool) or isinstance(again, bool):
        return stated is again
    if isinstance(stated, numbers) and isinstance(again, numbers):
        if any(_CHANCE.search(name) for name in place[-2:]):
            # of small chances the logarithm is what is computed
            if min(stated, again) <= _SMALLEST:
                return stated == again or 0 <= max(stated, again) <= _SMALLEST
            one, other = math.log(stated), math.log(again)
            return abs(one - other) <= ROUNDING * max(1.0, abs(other))
        return math.isclose(stated, again, rel_tol=ROUNDING, abs_tol=_NOTHING * size)
    return bool(stated == again)


def _difference(place: Place, stated: object, again: object) -> Difference:
    return Difference(where=" / ".join(place), stated=_short(stated), again=_short(again))


def _short(value: object) -> object:
    if isinstance(value, _LISTS):
        return f"{len(value)} entries"
    if isinstance(value, str) and len(value) > 200:
        return value[:200] + "…"
    return value


# --- Monitoring by a plan: a ledger started from it, batches added, everything perfor ---

#: Options of `monitor` that say how a table is cut into batches, which a ledger knows.
_CUTTING = ("time", "period")


def start_ledger(plan: Plan, path: str | Path) -> Ledger:
    """Begin a ledger for the monitor audits of a plan."""
    watched = _watched(plan)
    if not watched:
        raise PlanError(
            "The plan has no `audit: monitor`, so there is nothing to keep a ledger of."
        )
    claims: list[Claim] = []
    for _, audit in watched:
        claim = as_claim(audit.options()["claim"])
        if claim not in claims:
            claims.append(claim)
    return Ledger.start(path, claims, plan.to_plain())


def add_batch(
    ledger: Ledger,
    data: str | None,
    *,
    table: str | None = None,
    period: str | None = None,
    time: str | None = None,
    late: bool = False,
) -> Mapping[str, Added]:
    """Add the rows of a file or table: as one batch, or cut into batches by a column.

    With ``time`` the period is a unit such as month; without, it is the name of the one batch. If
    neither is given the plan says how rows form batches.
    """
    plan = _plan(ledger)
    trail = open_trail(plan.trail, folder=Path(), data=data, table=table)
    if period is not None and time is None:
        return {period: ledger.add(trail, period, late=late)}
    if late:
        raise OptionError("Late rows belong to one period: name it.")
    # imported here: the verb knows how rows form batches
    from equipoise.audits.monitor import batch_column

    if time is None and period is None:
        options = _watched(plan)[0][1].options()
        time, period = options.get("time"), options.get("period")
    column, unit = batch_column(time, period)
    return ledger.add_all(trail, column, unit)


def run_ledger(ledger: Ledger) -> Evidence:
    """Perform the monitor audits of the ledger's plan on all its batches."""
    plan = _plan(ledger)
    verb = audits.verb("monitor")
    found = []
    for name, audit in _watched(plan):
        asked = {k: v for k, v in audit.options().items() if k not in _CUTTING}
        claim = as_claim(asked.pop("claim"))
        try:
            finding = verb(ledger.batches(claim), claim, rng=plan.seed, **asked)
        except EquipoiseError as error:
            raise type(error)(f"{name}: {error}") from error
        found.append((name, "confirmatory", finding))
    listed: Any = found
    return assemble(plan.title, listed, plan=plan.to_plain(), plan_hash=plan.hash)


def verify_ledger(ledger: Ledger, evidence: Evidence | None = None) -> Verification:
    """Check every seal of a ledger and, if evidence is given, perform it again from the batches."""
    problems = [
        Difference(where=problem, stated="the ledger", again="something else")
        for problem in ledger.problems()
    ]
    if evidence is None:
        return Verification(
            differences=tuple(problems), compared=len(ledger.periods), not_performed=()
        )
    return compared_with(evidence, run_ledger(ledger), problems)


def _plan(ledger: Ledger) -> Plan:
    if ledger.plan is None:
        raise PlanError(
            f"{ledger.path.name} was started without a plan. Ask it with eq.monitor(ledger, claim)."
        )
    return Plan.from_plain(ledger.plan, f"the plan in {ledger.path.name}")


def _watched(plan: Plan) -> list[tuple[str, AuditPlan]]:
    pairs = zip(plan.names(), plan.audits, strict=True)
    return [(name, audit) for name, audit in pairs if audit.audit == "monitor"]
