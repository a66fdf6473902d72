"""One scan for all group audits of a plan."""

from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.cells import Tallied
from equipoise.cells.gather import tallied_within
from equipoise.claims import Claim, gap
from equipoise.claims.claim import parts_of
from equipoise.errors import EquipoiseError
from equipoise.plan.plan import AuditPlan
from equipoise.trail import Trail

#: Grouped rows up to which audits share a scan; beyond, a scan of their own is quicker.
MOST_CELLS = 100_000

Asked = Mapping[int, tuple[Claim, ...]]


def shared_counts(trail: Trail, audits: Sequence[AuditPlan]) -> dict[int, Tallied]:
    """Counts for the audits, by position, that can work from them; the others need the trail.

    What goes wrong here goes wrong again in the audit itself, whose error has its name.
    """
    asked = {i: claims for i, audit in enumerate(audits) if (claims := _claims(audit))}
    together = _tallied(trail, asked)
    if together is not None:
        return together
    found: dict[int, Tallied] = {}
    for part in _alike(asked):
        found |= _tallied(trail, part) or {}
    return found


def _tallied(trail: Trail, asked: Asked) -> dict[int, Tallied] | None:
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


def _alike(asked: Asked) -> list[Asked]:
    """The audits that cut the table in the same way."""
    found: dict[Any, dict[int, tuple[Claim, ...]]] = {}
    for i, claims in asked.items():
        cut = frozenset(dimension for claim in claims for dimension in claim.dimensions())
        found.setdefault(cut, {})[i] = claims
    return list(found.values())


def _claims(audit: AuditPlan) -> tuple[Claim, ...]:
    """What an audit counts; nothing if it needs rows, or cannot be asked."""
    options = audit.options()
    try:
        if audit.audit in ("describe", "flag", "certify", "joint_test"):
            return parts_of(options["claim"])
        if audit.audit == "summarize":
            return (gap(options["metric"], across=options["across"]),)
        if audit.audit == "compare" and options.get("models") is None:
            return tuple(gap(options["metric"], across=one) for one in options["across"])
    except (EquipoiseError, KeyError, TypeError):
        # the audit itself will say what is wrong
        return ()
    return ()
