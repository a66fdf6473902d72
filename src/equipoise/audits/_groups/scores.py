"""Scores of all groups together: the critical value that bounds share, and adjusted p-values."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from equipoise._rng import Seed
from equipoise.audits._groups.bench import Bench
from equipoise.audits._progress import Progress, progress_bar
from equipoise.methods.arrays import FloatArray
from equipoise.methods.hypotheses import Null, Outside
from equipoise.methods.inference.core import Core
from equipoise.methods.inference.joint import affordable_draws, independent_score
from equipoise.methods.multiplicity import StepDown, holm
from equipoise.methods.quantiles import per_mille, quantile
from equipoise.methods.targets import Constant, Overall


@dataclass(frozen=True, slots=True, kw_only=True)
class Critical:
    """The score that all groups' bounds share."""

    value: float
    """The critical score at the level asked for."""
    quantiles: tuple[float, ...]
    """The same at the levels 0.1 %, 0.2 % … 99.9 %."""


def critical_scores(
    core: Core, level: float, side: str, draws: int | None, seed: Seed, progress: Progress
) -> Critical:
    """Critical scores of the answered groups, never above those of independent groups."""
    number = core.answered.size
    if number == 0:
        return Critical(value=float("nan"), quantiles=())
    two_sided = side == "both"
    if number == 1:
        table = tuple(independent_score(i / 1000, 1, two_sided) for i in range(1, 1000))
        return Critical(value=max(independent_score(level, 1, two_sided), 0.0), quantiles=table)
    times = draws or affordable_draws(core.status.size)
    lowest, highest, done = np.empty(times), np.empty(times), 0
    with progress_bar(progress, times, "certify") as tell:
        for block in core.law(draws=times, seed=seed.sequence).scores():
            part = slice(done, done + len(block))
            lowest[part], highest[part] = block.min(axis=1), block.max(axis=1)
            done += len(block)
            tell(done)
    # scores are symmetric, so one side has twice the draws
    one = np.concatenate([highest, -lowest])
    largest = np.maximum(highest, -lowest) if two_sided else one
    capped = [
        min(q, independent_score((i + 1) / 1000, number, two_sided))
        for i, q in enumerate(per_mille(largest))
    ]
    value = min(quantile(largest, level), independent_score(level, number, two_sided))
    return Critical(value=max(value, 0.0), quantiles=tuple(max(q, 0.0) for q in capped))


def answerable(
    core: Core, level: float, side: str, draws: int | None, seed: Seed, progress: Progress
) -> tuple[Core, Critical, float]:
    """The core without groups too skewed for the score that all groups together would need.

    Also the critical scores of those that are left, and the score that decided.
    """
    every = critical_scores(core, level, side, draws, seed, progress)
    left = core.guarded(every.value)
    if left is core:
        return core, every, every.value
    return left, critical_scores(left, level, side, draws, seed, progress), every.value


def stepped_down(
    core: Core, p: FloatArray, null: Null, draws: int | None, seed: Seed
) -> FloatArray:
    """Adjusted p-values by step-down maxima of the scores, never above Holm's."""
    used = core.answered
    two_sided = isinstance(null, Outside)
    statistic = -ndtri(np.clip(p / 2 if two_sided else p, 1e-300, 1 - 1e-16))
    step = StepDown(np.where(np.isnan(p[used]), np.nan, statistic[used]))
    out = np.full(p.shape, np.nan)
    if used.size:
        times = draws or affordable_draws(core.status.size)
        for block in core.law(draws=times, seed=seed.sequence).scores():
            step.add(np.abs(block) if two_sided else block)
            if not two_sided:
                # scores are symmetric: the other side is a second draw
                step.add(-block)
        out[used] = step.p_values()
    return np.asarray(np.maximum(np.fmin(out, holm(p)), p))


def exactness(bench: Bench, *, many: bool) -> str:
    """How far the error rate can be trusted, in words."""
    core, noun = bench.core, bench.noun
    joint = f"; {noun}s are joined by normal scores with fitted correlations" if many else ""
    if bench.cells.clusters is not None:
        return (
            "asymptotic in the number of clusters, guarded by leaving each out once and by their "
            f"effective number{joint}"
        )
    if not core.counted:
        return (
            f"asymptotic, by each {noun}'s own spread corrected for skewness, guarded by not "
            f"answering {noun}s too skewed for their rows{joint}"
        )
    if not bench.cells.zero_one:
        return f"near exact in each group, by tails of counts of its few values{joint}"
    if bench.cells.weighted:
        return f"asymptotic, by counts that weighted rows are worth{joint}"
    if isinstance(bench.target, Constant):
        return f"exact in each group, by binomial tails{joint}"
    drawn = ""
    if isinstance(bench.target, Overall):
        # enumerated too, with the group's size drawn: a ratio at rates of 0.99 and 0.33 is worst
        drawn = " (0.4 points if the groups' shares are drawn as well)"
    return (
        "near exact in each group: over all tables of up to 40 rows a part the error exceeds the "
        f"nominal one by less than half a point{drawn}{joint}"
    )
