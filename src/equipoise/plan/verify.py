"""Re-performance: run the plan of an evidence file again and compare every number."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.errors import EquipoiseError
from equipoise.findings.evidence import Evidence
from equipoise.plan.plan import Plan
from equipoise.plan.run import Tell, run

#: Relative difference that another processor's rounding may cause.
ROUNDING = 1e-9

#: Fields that say where and by which version, not what was found.
_CIRCUMSTANCE = ("version", "source")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One value that did not come out again."""

    where: str
    """The finding and the field in it."""
    stated: Any
    """What the evidence says."""
    again: Any
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
    """Findings that were added later, outside the plan, and so cannot be performed from it."""

    @property
    def holds(self) -> bool:
        """Whether everything came out the same."""
        return not self.differences


def verify(
    evidence: Evidence,
    *,
    plan: Plan | None = None,
    folder: str | Path = ".",
    data: str | None = None,
    table: str | None = None,
    tell: Tell | None = None,
) -> Verification:
    """Perform the plan again and compare everything with the evidence.

    ``plan`` is the plan as registered elsewhere, if it is to be compared too; otherwise the one
    quoted in the evidence is performed.
    """
    if evidence.plan is None:
        raise EquipoiseError(
            "This evidence quotes no plan, so there is nothing to perform again. Only audits run "
            "by `equipoise run`, `check` or `audit` can be verified."
        )
    quoted = Plan.from_plain(evidence.plan, "the plan in the evidence")
    differences = [*_plan_differences(evidence, quoted, plan)]
    # a broken seal must not hide which number was changed, so the audits run all the same
    performed = run(plan or quoted, folder=folder, data=data, table=table, tell=tell)
    again = {entry.name: entry.finding.to_dict() for entry in performed.entries}
    compared = 0
    for entry in evidence.entries:
        if entry.name in again:
            pairs = list(_pairs(entry.finding.to_dict(), again.pop(entry.name), (entry.name,)))
            compared += len(pairs)
            differences += [_difference(*pair) for pair in pairs if not _same(*pair[1:])]
    missing = [Difference(where=n, stated="not in it", again="a finding") for n in again]
    named = {entry.name for entry in performed.entries}
    later = tuple(entry.name for entry in evidence.entries if entry.name not in named)
    return Verification(
        differences=(*differences, *missing), compared=compared, not_performed=later
    )


def _plan_differences(evidence: Evidence, quoted: Plan, plan: Plan | None) -> Iterator[Difference]:
    if evidence.plan_hash != quoted.hash:
        yield Difference(where="plan hash", stated=evidence.plan_hash, again=quoted.hash)
    if plan is not None and plan.hash != evidence.plan_hash:
        yield Difference(where="plan", stated=evidence.plan_hash, again=plan.hash)
    if evidence.title != quoted.title:
        yield Difference(where="title", stated=evidence.title, again=quoted.title)
    for name, stated, given in evidence.contradictions():
        yield Difference(where=name, stated=stated, again=given)


Place = tuple[str, ...]


def _pairs(stated: Any, again: Any, place: Place) -> Iterator[tuple[Place, Any, Any]]:
    """Every value of two results side by side."""
    if isinstance(stated, Mapping) and isinstance(again, Mapping):
        for key in dict.fromkeys((*stated, *again)):
            if not (place[-1] == "provenance" and key in _CIRCUMSTANCE):
                yield from _pairs(stated.get(key), again.get(key), (*place, str(key)))
    elif _is_list(stated) and _is_list(again) and len(stated) == len(again):
        for i, (one, other) in enumerate(zip(stated, again, strict=True)):
            yield from _pairs(one, other, (*place, _label(one, i)))
    else:
        yield place, stated, again


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _label(item: Any, i: int) -> str:
    """A row by its group, other items by their number."""
    return str(item["group"]) if isinstance(item, Mapping) and "group" in item else str(i + 1)


def _same(stated: Any, again: Any) -> bool:
    numbers = (int, float)
    # True == 1, but a flag that became a number did not come out the same.
    if isinstance(stated, bool) or isinstance(again, bool):
        return stated is again
    if isinstance(stated, numbers) and isinstance(again, numbers):
        # A number near zero has no relative size, so there the difference itself is judged.
        return math.isclose(stated, again, rel_tol=ROUNDING, abs_tol=ROUNDING)
    return bool(stated == again)


def _difference(place: Place, stated: Any, again: Any) -> Difference:
    return Difference(where=" / ".join(place), stated=_short(stated), again=_short(again))


def _short(value: Any) -> Any:
    if _is_list(value):
        return f"{len(value)} entries"
    if isinstance(value, str) and len(value) > 200:
        return value[:200] + "…"
    return value
