"""Monitoring by a plan: a ledger started from it, batches added, everything performed from it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from equipoise import audits
from equipoise.cells.ledger import Added, Ledger
from equipoise.claims import Claim
from equipoise.claims.claim import as_claim
from equipoise.errors import EquipoiseError, OptionError, PlanError
from equipoise.findings.evidence import Evidence, assemble
from equipoise.plan.plan import AuditPlan, Plan
from equipoise.plan.run import Difference, Verification, compared_with, open_trail

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
