"""Groups some of whose members are unknown: from a claim and its cells to what can be said."""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from equipoise._validate import Seed
from equipoise.audits._common import answerable, finite, possible_range
from equipoise.cells import Cells, Collection
from equipoise.cells.gather import level_of
from equipoise.claims import Claim
from equipoise.claims import target as targets
from equipoise.errors import ClaimError
from equipoise.findings.adjusted import UnknownGroup
from equipoise.findings.words import Verdict, judged, tolerated
from equipoise.methods.inference.core import Core
from equipoise.methods.inference.unknown import (
    Membership,
    PairCore,
    Unsure,
    members,
    sums_over,
    tipping_point,
)
from equipoise.methods.numerics import BoolArray, FloatArray, GroupSums
from equipoise.methods.targets import Complement, Opposite

if TYPE_CHECKING:
    from equipoise.audits._groups.problem import CertifyOptions, Problem

MOST_PAIRS = 50_000_000
"""Cells times groups of which it may be asked who belongs."""


def of_the_known(claim: Claim, cells: Cells, collection: Collection) -> Collection:
    """The groups of a collection but for those of the unknown."""
    keep = np.ones(len(collection), dtype=bool)
    for view, column in zip(collection.views, collection.choices.T, strict=True):
        keep &= column != _missing(view.axis.levels)
    if not keep.any():
        names = ", ".join(view.axis.name for view in collection.views)
        raise ClaimError(
            f"Nobody's {names} is known, so there is no group to speak of. Check the column, or "
            "name another attribute."
        )
    if len(cells) * len(collection) > MOST_PAIRS:
        raise ClaimError(
            f"unknown={claim.unknown!r} looks at every group in every cell, and "
            f"{len(collection):,} groups in {len(cells):,} cells are too many. Use fewer "
            "attributes, or a lower depth."
        )
    chosen, inner = np.flatnonzero(keep), collection.sums
    return dataclasses.replace(
        collection, choices=collection.choices[chosen], sums=_some(inner, chosen)
    )


def _some(inner: GroupSums, chosen: np.ndarray) -> GroupSums:
    def added(x: FloatArray, /) -> FloatArray:
        return np.asarray(np.take(inner(x), chosen, axis=-1))

    return added


def _missing(levels: tuple[object, ...]) -> int:
    """The place of the level that means unknown, or -1."""
    return next((i for i, level in enumerate(levels) if level is None), -1)


# --- Who is of each group, and who may be ---


def who_belongs(cells: Cells, collection: Collection) -> Membership:
    """Which cells are of each group, and which may be."""
    choices = np.full((len(collection), len(cells.axes)), -1, dtype=np.int64)
    for view, column in zip(collection.views, collection.choices.T, strict=True):
        place = cells.cut_by(view.axis.dimension)
        choices[:, place] = np.where(view.free()[column], -1, column)
    return members(cells.index, _unknown_levels(cells), choices)


def _unknown_levels(cells: Cells) -> np.ndarray:
    return np.array([_missing(axis.levels) for axis in cells.axes], dtype=np.int64)


def _reference(claim: Claim, cells: Cells) -> Membership | None:
    if not isinstance(claim.target, targets.Reference):
        return None
    choice = np.full((1, len(cells.axes)), -1, dtype=np.int64)
    for name, value in claim.target.where.items():
        place = cells.axis(name)
        choice[0, place] = level_of(cells.axes[place], value)
    return members(cells.index, _unknown_levels(cells), choice)


def unsure_of(problem: "Problem") -> Unsure:
    """A problem whose cells are cut by outcome, in the form that the mathematics takes."""
    from equipoise.audits._groups.problem import cell_moments, cluster_sums

    cells = problem.cells
    assert cells.ones is not None
    return Unsure(
        cells=cell_moments(cells),
        ones=cells.ones,
        who=who_belongs(cells, problem.collection),
        target=problem.target,
        reference=_reference(problem.claim, cells),
        relative=problem.relative,
        weighted=cells.weighted,
        clusters=cluster_sums(cells, problem.target),
    )


def unknown_core(problem: "Problem") -> Core:
    """The core of the known, or of the worst that the unknown can do."""
    from equipoise.audits._groups.problem import make_core

    if problem.claim.unknown == "worst":
        return unsure_of(problem).worst()
    target = problem.target
    if isinstance(target, Complement):
        who = who_belongs(problem.cells, problem.collection)
        outside = ~who.sure & ~who.maybe
        none = sums_over(np.zeros_like(outside))
        target = Opposite(scale=target.scale, other=sums_over(outside), both=none)
    return make_core(
        problem.cells, target, problem.collection, relative=problem.relative, claim=problem.claim
    )


# --- What is said of every group beside its bounds ---


def unknown_groups(
    problem: "Problem", options: "CertifyOptions | None" = None, seed: Seed | None = None
) -> tuple[UnknownGroup, ...]:
    """How many may be of each group, how far they can move it, and what it takes.

    With the options of bounds also the bounds among the known, and the tipping point.
    """
    from equipoise.audits._groups.problem import group_fields

    fields = group_fields(problem)
    maybe = _maybe_rows(problem)
    core = problem.core
    if not isinstance(core, PairCore):
        return tuple(
            UnknownGroup(group=f["group"], where=f["where"], n=f["n"], unknown=round(float(rows)))
            for f, rows in zip(fields, maybe.tolist(), strict=True)
        )
    lowest, highest = (one.comparison.estimate for one in (core.low, core.high))
    told = _beside(problem, options, seed) if options is not None and seed is not None else None
    none = [None] * len(fields)
    lower, upper, tipping = (none,) * 3 if told is None else told
    return tuple(
        UnknownGroup(
            group=f["group"],
            where=f["where"],
            n=f["n"],
            unknown=round(float(maybe[i])),
            lowest=finite(lowest[i]),
            highest=finite(highest[i]),
            lower=lower[i],
            upper=upper[i],
            tipping=tipping[i],
        )
        for i, f in enumerate(fields)
    )


def _maybe_rows(problem: "Problem") -> FloatArray:
    return np.asarray(problem.cells.rows @ who_belongs(problem.cells, problem.collection).maybe)


Ends = list[float | None]


def _beside(problem: "Problem", options: "CertifyOptions", seed: Seed) -> tuple[Ends, Ends, Ends]:
    """Bounds among the known, all at once, and how unevenly the unknown must be spread."""
    unsure = unsure_of(problem)
    core, critical, _ = answerable(
        unsure.known(), options.level, options.side, options.method.resamples, seed, False
    )
    low, high = (np.full(core.status.shape, np.nan) for _ in range(2))
    if core.answered.size:
        limits = possible_range(problem.claim, True)
        low, high = core.bounds(critical.value, _open(limits))
    none = np.full(low.shape, np.nan)
    tipping = none if options.tolerance is None else _tipping(unsure, core, low, high, options)
    shown = (
        low if options.side != "upper" else none,
        high if options.side != "lower" else none,
        tipping,
    )
    lower, upper, tips = ([finite(x) for x in column.tolist()] for column in shown)
    return lower, upper, tips


def _open(limits: tuple[float | None, float | None]) -> tuple[float, float]:
    low, high = limits
    return (-np.inf if low is None else low), (np.inf if high is None else high)


def _tipping(
    unsure: Unsure, core: Core, low: FloatArray, high: FloatArray, options: "CertifyOptions"
) -> FloatArray:
    """The odds ratio at which the verdict among the known would no longer hold, for each group."""
    assert options.tolerance is not None
    allowed = tolerated(options.tolerance, options.side, unsure.relative)
    seen = core.comparison.estimate

    def until(bound: FloatArray, limit: float | None, *, lowest: bool) -> FloatArray:
        if limit is None:
            return np.full(seen.shape, np.inf)
        return tipping_point(unsure, bound, seen, limit, lowest=lowest)

    down_to_low = until(low, allowed[0], lowest=True)
    up_to_high = until(high, allowed[1], lowest=False)
    down_to_high = until(low, allowed[1], lowest=True)
    up_to_low = until(high, allowed[0], lowest=False)
    kept = np.fmin(down_to_low, up_to_high)
    verdicts = [
        judged(finite(a), finite(b), allowed)
        for a, b in zip(low.tolist(), high.tolist(), strict=True)
    ]
    above = _above(low, allowed[1])
    exceeded = np.where(above, down_to_high, up_to_low)
    is_kept = np.array([v is Verdict.KEPT for v in verdicts])
    is_exceeded = np.array([v is Verdict.EXCEEDED for v in verdicts])
    return np.where(is_kept, kept, np.where(is_exceeded, exceeded, np.nan))


def _above(low: FloatArray, limit: float | None) -> BoolArray:
    return np.zeros(low.shape, dtype=bool) if limit is None else np.asarray(low > limit)
