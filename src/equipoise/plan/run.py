"""Performing a plan: each audit in order, all findings kept."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from equipoise import audits, datasets
from equipoise._validate import known_name
from equipoise.cells import Tallied
from equipoise.errors import EquipoiseError, PlanError
from equipoise.findings.evidence import Asked, Evidence, assemble
from equipoise.findings.finding import Finding
from equipoise.plan.plan import AuditPlan, Plan, TrailPlan
from equipoise.plan.sharing import shared_counts
from equipoise.trail import Trail, read
from equipoise.trail.connections import is_connection

BUNDLED = {"equipoise:compas": datasets.compas, "equipoise:adult": datasets.adult_predictions}

Tell = Callable[[str, int, int], None]


def run(
    plan: Plan,
    *,
    folder: str | Path = ".",
    data: str | None = None,
    table: str | None = None,
    asked: Asked = "confirmatory",
    tell: Tell | None = None,
    progress: bool | None = None,
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
    tell
        Called with the name of each audit as it begins, its number, and how many there are.
    progress
        Whether audits show a bar; if not given, where someone is watching.

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
    trail = open_trail(plan.trail, folder=Path(folder), data=data, table=table)
    counts = shared_counts(trail, plan.audits)
    found: list[tuple[str, Asked, Finding]] = []
    for i, (name, audit) in enumerate(zip(plan.names(), plan.audits, strict=True)):
        if tell is not None:
            tell(name, i, len(plan.audits))
        rows = counts.get(i, trail)
        found.append((name, asked, perform(rows, audit, plan.seed, name, progress)))
    return assemble(plan.title, found, plan=plan.to_plain(), plan_hash=plan.hash)


def perform(
    trail: Trail | Tallied,
    audit: AuditPlan,
    seed: int,
    name: str,
    progress: bool | None = None,
) -> Finding:
    """One audit of a plan; an error names it."""
    verb = getattr(audits, audit.audit)
    # Every audit starts from the plan's seed, so leaving one out changes no number of another.
    supplied = {"rng": seed, "progress": progress}
    known = inspect.signature(verb).parameters
    options = audit.options() | {k: v for k, v in supplied.items() if k in known}
    try:
        finding: Finding = verb(trail, **options)
    except EquipoiseError as error:
        raise type(error)(f"{name}: {error}") from error
    return finding


def open_trail(
    asked: TrailPlan, *, folder: Path, data: str | None = None, table: str | None = None
) -> Trail:
    """The trail of a plan, from where it says or from ``data``."""
    roles: dict[str, Any] = asked.model_dump(exclude_unset=True, exclude={"source", "table"})
    if data is None and table is None and asked.source.startswith("equipoise:"):
        return _bundled(asked.source, roles)
    source = _place(asked.source, folder) if data is None else data
    # the plan's table is one of its own database, not of a file given instead
    chosen = table or (asked.table if data is None or is_connection(data) else None)
    return read(source, table=chosen, **roles)


def _place(source: str, folder: Path) -> str:
    return source if "://" in source or source.startswith("${") else str(folder / source)


def _bundled(source: str, roles: dict[str, Any]) -> Trail:
    trail = BUNDLED[known_name("Bundled source", source, BUNDLED, PlanError)]()
    if not roles:
        return trail
    # roles that are not given keep what the bundled table says
    return read(trail, **{**dict(trail.roles), **roles})
