"""Several claims as one question: each at its share of the error, the worst told for each group."""

from collections.abc import Callable
from typing import Any

from equipoise._rng import Rng, Seed, seed_of
from equipoise.claims import Claim, Together
from equipoise.findings.finding import Finding
from equipoise.findings.joint import Joint, JointGroup
from equipoise.findings.verdict import Verdict

_ORDER = [str(Verdict.SHOWN_NOT), "flagged", str(Verdict.UNDETERMINED), "bounded", "not flagged"]


def jointly(
    together: Together,
    audit: Callable[[Claim, float, Seed], Finding],
    error: float,
    rng: Rng,
    promise: str,
) -> Joint:
    """Audit each claim at its share of the error, and join the answers.

    Splitting the error makes the joint promise hold whatever the dependence between the claims.
    """
    share = error / len(together.claims)
    # a seed that is drawn here is drawn once, so that the one recorded repeats every part
    same = seed_of(rng).number if rng is None else rng
    parts = {c.metric.words: audit(c, share, seed_of(same)) for c in together.claims}
    first = next(iter(parts.values()))
    return Joint(
        claim=together.quoted(),
        question=together.name,
        guarantee=promise,
        assumptions=first.assumptions,
        provenance=first.provenance,
        rows=_worst(parts),
        name=together.name,
        parts={"kind": "parts", **{name: part.to_dict() for name, part in parts.items()}},
    )


def _worst(parts: dict[str, Finding]) -> tuple[JointGroup, ...]:
    found: dict[str, list[tuple[str, Any]]] = {}
    for name, part in parts.items():
        for row in part.rows:
            found.setdefault(row.group, []).append((name, row))
    return tuple(_row(*max(rows, key=_badness)) for rows in found.values())


def _row(metric: str, row: Any) -> JointGroup:
    return JointGroup(
        group=row.group,
        where=row.where,
        metric=metric,
        n=row.n,
        value=row.value,
        disparity=row.disparity,
        verdict=_verdict(row),
        note=row.note,
    )


def _verdict(row: Any) -> str:
    if hasattr(row, "flagged"):
        return "flagged" if row.flagged else "not flagged"
    if hasattr(row, "certified"):
        return str(Verdict.SHOWN if row.certified else Verdict.UNDETERMINED)
    return "bounded" if row.verdict is None else str(row.verdict)


def _badness(pair: tuple[str, Any]) -> tuple[int, float]:
    """Worse verdicts first, then larger disparities."""
    verdict = _verdict(pair[1])
    rank = len(_ORDER) - _ORDER.index(verdict) if verdict in _ORDER else 0
    return rank, abs(pair[1].disparity or 0.0)
