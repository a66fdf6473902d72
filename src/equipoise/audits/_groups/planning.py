"""What groups of given sizes could show: the one place that every verb asks."""

import numpy as np

from equipoise.audits._groups.problem import Problem
from equipoise.methods.hypotheses import Above, Below, Null, Outside
from equipoise.methods.inference.tails import Reachable, smallest_reachable
from equipoise.methods.targets import Before, Constant, Custom, Highest


def plain_counts(problem: Problem) -> bool:
    """Whether counts of zeros and ones, of groups and what they are compared with, say all."""
    cells = problem.cells
    odd = bool(problem.claim.given) or isinstance(problem.target, Highest | Before | Custom)
    odd = odd or problem.tilted or problem.median is not None or bool(problem.medians)
    return (
        not odd
        and cells.zero_one
        and not cells.weighted
        and cells.clusters is None
        and cells.sides is None
        and problem.core.counted
    )


def could_show(problem: Problem, null: Null, threshold: float) -> Reachable | None:
    """What groups of these sizes could show at most, worked out as if the target were known."""
    core = problem.core
    plain = not problem.cells.weighted and problem.cells.clusters is None
    if problem.claim.given or isinstance(problem.target, Highest | Before):
        return None
    if problem.claim.unknown == "worst" or problem.trust:
        # what a group could show depends on more than its own rows
        return None
    if not core.counted or not plain or not problem.cells.zero_one:
        return None
    found = core.comparison
    theta = np.nan_to_num(found.target.scale * found.theta)
    if not problem.relative:
        return smallest_reachable(found.rows, theta, null, alpha=threshold)
    # a ratio of c is a gap of (c − 1) θ; one number serves all groups only if they share θ
    moved = [limit * float(theta.mean()) for limit in null.limits]
    at: Null = Outside(low=moved[0], high=moved[-1])
    if isinstance(null, Above):
        at = Above(limit=moved[0])
    elif isinstance(null, Below):
        at = Below(limit=moved[0])
    return smallest_reachable(found.rows, np.zeros_like(theta), at, alpha=threshold)


def nearest(reach: Reachable | None, i: int) -> float | None:
    """The smallest disparity, on either side, that one group could show; None if none."""
    if reach is None:
        return None
    ends = reach.disparity_above[i], reach.disparity_below[i]
    known = [abs(float(end)) for end in ends if np.isfinite(end)]
    return min(known) if known else None


def common_rate(problem: Problem) -> float:
    """The rate of all who have no disparity: that of the target, never quite zero or one."""
    cells, target = problem.cells, problem.target
    if isinstance(target, Constant):
        rate, rows = target.scale * target.value, float(cells.rows.sum())
    else:
        inside = target.members(len(cells))
        rows = float((inside * cells.rows).sum())
        rate = float((inside * cells.total).sum()) / max(rows, 1.0)
    least = 0.5 / (rows + 1)
    return float(np.clip(rate, least, 1 - least))
