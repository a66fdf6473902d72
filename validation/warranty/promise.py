"""A promise, how its worlds are run, and how sure the count is.

A promise draws designs at random, and of each design many worlds. Counted is in how many worlds the
audit was wrong. From a count follows the highest chance of an error that is compatible with it at
99 % confidence (Clopper and Pearson); for the worst of several designs, at 99 % for all of them at
once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv

from equipoise.errors import EquipoiseError

Rng = np.random.Generator
World = Callable[[Rng], "bool | None"]
"""One world: whether the audit is wrong in it; None where it gives no answer."""
CONFIDENCE = 0.99
PORTION = 50
"""Worlds that a process is given at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What an audit promises, and where it is put to the test."""

    audit: str
    """The audit, as it is called."""
    wrong: str
    """What counts as an error."""
    draw: Callable[[Rng], tuple[str, World]]
    """A design at random: in words, and its worlds."""
    nominal: float = 0.05
    designs: int = 10
    worlds: int = 1000
    """Worlds of each design."""


def at_most(errors: int, worlds: int, confidence: float = CONFIDENCE) -> float:
    """The highest chance of an error that a count leaves open.

    >>> round(at_most(50, 1000), 4), at_most(5, 5)
    (0.0684, 1.0)
    """
    if errors >= worlds:
        return 1.0
    return float(betaincinv(errors + 1, worlds - errors, confidence))


def examine(
    promises: Sequence[Promise], seed: int, designs: int | None = None, worlds: int | None = None
) -> list[dict[str, Any]]:
    """Run every design of every promise; numbers of designs and worlds may be made smaller."""
    tasks = []
    for promise in promises:
        size = min(promise.worlds, worlds or promise.worlds)
        for d in range(min(promise.designs, designs or promise.designs)):
            tasks += [
                (promise.audit, d, start, min(PORTION, size - start), seed)
                for start in range(0, size, PORTION)
            ]
    found: dict[tuple[str, int], dict[str, Any]] = {}
    with ProcessPoolExecutor(max_workers=int(os.environ.get("WORKERS", "2"))) as pool:
        for (audit, d, *_), part in zip(tasks, pool.map(_portion, tasks), strict=True):
            row = found.setdefault(
                (audit, d), {"design": part["design"], **dict.fromkeys(COUNTS, 0)}
            )
            for name in COUNTS:
                row[name] += part[name]
    return [
        summed(one, [row for (audit, _), row in found.items() if audit == one.audit])
        for one in promises
    ]


COUNTS = ("worlds", "errors", "answered", "seconds")


def _portion(task: tuple[str, int, int, int, int]) -> dict[str, Any]:
    # what promises are made of cannot be sent to another process
    from validation.warranty.promises import PROMISES

    audit, design, start, number, seed = task
    promise = next(one for one in PROMISES if one.audit == audit)
    key = [seed, *promise.audit.encode(), design]
    words, world = promise.draw(np.random.default_rng(key))
    begun, errors, answered = time.process_time(), 0, 0
    for i in range(start, start + number):
        try:
            wrong = world(np.random.default_rng([*key, i]))
        except EquipoiseError:
            wrong = None  # refused, and said so
        errors, answered = errors + bool(wrong), answered + (wrong is not None)
    spent = time.process_time() - begun
    return {
        "design": words, "worlds": number, "errors": errors, "answered": answered, "seconds": spent
    }  # fmt: skip


def summed(promise: Promise, designs: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The counts of a promise: over all its designs, and in the worst."""
    rows = sorted(designs, key=lambda row: -row["errors"] / row["worlds"])
    worlds, errors = (sum(row[name] for row in rows) for name in ("worlds", "errors"))
    each = 1 - (1 - CONFIDENCE) / len(rows)
    highest = max(at_most(row["errors"], row["worlds"], each) for row in rows)
    return {
        "audit": promise.audit,
        "wrong": promise.wrong,
        "nominal": promise.nominal,
        "designs": len(rows),
        "worlds": worlds,
        "errors": round(errors / worlds, 4),
        "at most": round(at_most(errors, worlds), 4),
        "worst design": round(rows[0]["errors"] / rows[0]["worlds"], 4),
        "worst at most": round(highest, 4),
        "which": rows[0]["design"],
        "answered": round(sum(row["answered"] for row in rows) / worlds, 3),
        "cpu seconds": round(sum(row["seconds"] for row in rows)),
        "agrees": _kept(promise, rows),
    }


def _kept(promise: Promise, rows: Sequence[dict[str, Any]]) -> bool:
    """Whether no design shows an error above nominal and a point, at 99 % for all at once."""
    each = 1 - (1 - CONFIDENCE) / len(rows)
    bar = promise.nominal + 0.01
    return all(1 - at_most(r["worlds"] - r["errors"], r["worlds"], each) <= bar for r in rows)
