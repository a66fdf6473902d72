"""What stands beside the groups of a finding: each without its factors, or before and after."""

from dataclasses import replace

import numpy as np

from equipoise.audits._common import finite
from equipoise.audits._groups.problem import Problem, cell_moments, group_fields, strata_of
from equipoise.cells.gather import group_means, inside_of
from equipoise.cells.groups import level_text
from equipoise.claims.claim import Reference
from equipoise.claims.groups import Factors
from equipoise.findings.adjusted import AdjustedGroup, ChangedGroup
from equipoise.methods.inference.core import Core
from equipoise.methods.inference.counts import FlipPivot
from equipoise.methods.inference.orthogonal import Residual, e_value
from equipoise.methods.inference.strata import Adjusted, Sameness, homogeneity
from equipoise.methods.inference.student import LEAST_ROWS
from equipoise.methods.numerics import FloatArray
from equipoise.methods.targets import Status, compare


def both_sides(problem: Problem) -> tuple[ChangedGroup, ...]:
    """What every group's metric was before and is after, or is among its pairs."""
    found = problem.core.comparison
    before, after = found.theta, found.mean
    if problem.sides is not None:
        before, after = (group_means(cells, problem.collection) for cells in problem.sides)
    return tuple(
        ChangedGroup(
            group=fields["group"],
            where=fields["where"],
            n=fields["n"],
            before=finite(before[i]),
            after=finite(after[i]),
            change=finite(found.estimate[i]),
        )
        for i, fields in enumerate(group_fields(problem))
    )


def without_partners(problem: Problem, core: Core) -> Core:
    """The core of pairs, in which the reference group has no difference of its own."""
    target, cells = problem.claim.target, problem.cells
    assert isinstance(target, Reference)
    inside = inside_of(target.where, cells.axes, cells.index)
    outside = problem.collection.sums(np.where(inside, 0.0, cells.present))
    same = (outside == 0) & (problem.collection.sums(cells.present) > 0)
    status = np.where(core.status == Status.FEW_ROWS, int(Status.FEW_PAIRS), core.status)
    return replace(core, status=np.where(same, int(Status.IDENTICAL), status))


def exchangeable(problem: Problem) -> Core:
    """The core with groups of few pairs, for the one question that all their signs answer.

    That is whether partners are treated alike. Signs say nothing about how large a mean difference
    is: skewed differences of mean 0 are no more symmetric about 0 than about anything else.
    """
    core, pairs = problem.core, problem.cells.differences
    rows = core.comparison.rows
    few = (core.status == Status.FEW_PAIRS) & (rows > 1) & (rows < LEAST_ROWS)
    if pairs is None or problem.cells.clusters is not None or not bool(few.any()):
        return core
    cell, value = pairs
    member = problem.collection.sums(np.eye(len(problem.cells))) > 0
    values = {int(g): value[member[cell, g]] for g in np.flatnonzero(few)}
    many = core.pivot
    pivot = FlipPivot(
        estimate=many.estimate, error=many.error, many=many.tails, few=few, values=values
    )
    return replace(
        core,
        pivot=pivot,
        status=np.where(few, int(Status.OK), core.status),
        reach=np.where(few, np.inf, core.reach),
    )


def without_factors(problem: Problem) -> tuple[AdjustedGroup, ...]:
    """Every group without the factors that are given."""
    found = problem.core.comparison
    plain = compare(
        cell_moments(problem.cells), problem.target, problem.collection.sums,
        relative=problem.relative,
    ).estimate  # fmt: skip
    if isinstance(found, Residual):
        return _by_rows(problem, found, plain)
    assert isinstance(found, Adjusted)
    strata = found.strata
    # against everyone the part of composition is that of the group's own share, too
    known = not problem.relative and problem.target.scale == 1.0
    part = strata.explained * strata.dilution if known else np.full(plain.shape, np.nan)
    same, named, unknown = homogeneity(strata), _stratum_names(problem), _unknown(problem)
    return tuple(
        AdjustedGroup(
            group=fields["group"],
            where=fields["where"],
            n=fields["n"],
            unadjusted=finite(plain[i]),
            explained=finite(part[i]),
            strata=int((strata.group_rows[:, i] > 0).sum()),
            shared=int(strata.overlap[:, i].sum()),
            apart=int(strata.apart[i]),
            same=finite(same.p[i]),
            differing=_differing(same, i, named),
            unknown=int(unknown[i]),
        )
        for i, fields in enumerate(group_fields(problem))
    )


def _unknown(problem: Problem) -> FloatArray:
    """Rows of every group of which a column that forms strata is missing."""
    cells = problem.cells
    gone = np.zeros(len(cells), dtype=bool)
    for one in problem.claim.given:
        if not isinstance(one, Factors):
            axis = cells.cut_by(one)
            missing = [i for i, level in enumerate(cells.axes[axis].levels) if level is None]
            gone |= np.isin(cells.index[:, axis], missing)
    return np.asarray(problem.collection.sums(np.where(gone, cells.rows, 0.0)))


def _stratum_names(problem: Problem) -> list[str]:
    """Every stratum in words, in the order of their numbers."""
    cells = problem.cells
    place, _ = strata_of(cells, problem.claim)
    axes = [cells.cut_by(one) for one in problem.claim.given if not isinstance(one, Factors)]
    first = np.unique(place, return_index=True)[1]
    return [
        ", ".join(
            level_text(cells.axes[axis].dimension, cells.axes[axis].levels[level], told_apart=False)
            for axis, level in zip(axes, cells.index[cell, axes].tolist(), strict=True)
        )
        for cell in first.tolist()
    ]


def _differing(same: Sameness, group: int, named: list[str]) -> tuple[str, ...]:
    """Strata that depart from what all have by more than chance does in any of them."""
    apart = same.apart[:, group]
    chance = 0.05 / max(int((apart < 1).sum()), 1)
    most = np.argsort(apart, kind="stable")
    return tuple(named[s] for s in most.tolist() if apart[s] < chance)


def _by_rows(problem: Problem, found: Residual, plain: FloatArray) -> tuple[AdjustedGroup, ...]:
    """What factors explain, how open they leave who is who, and what could still be hidden."""
    known, told = problem.cells.zero_one, found.state == Status.OK
    unknown = _unknown(problem)
    return tuple(
        AdjustedGroup(
            group=fields["group"],
            where=fields["where"],
            n=fields["n"],
            unadjusted=finite(plain[i]),
            # where nothing is said of what is left, nothing is said of what is not
            explained=finite(plain[i] - found.gap[i]) if told[i] else None,
            compared=finite(found.information[i]),
            smallest=finite(found.smallest[i]),
            hidden=finite(e_value(found.level[i], found.theta[i])) if known and told[i] else None,
            unknown=int(unknown[i]),
        )
        for i, fields in enumerate(group_fields(problem))
    )
