"""Exact bounds for bounded metrics: every mean by betting, and disparities from two of them."""

import numpy as np

from equipoise._rng import Seed
from equipoise.audits._groups.bench import Bench, notes_of
from equipoise.audits._groups.likelihood import Found
from equipoise.audits._groups.samples import counted_rows, membership
from equipoise.errors import OptionError
from equipoise.methods.arrays import BoolArray, IntArray
from equipoise.methods.inference.betting import betting_bounds
from equipoise.methods.inference.comparison import Status
from equipoise.methods.targets import Complement, Custom

_NO_ANSWER = (Status.EMPTY, Status.NO_TARGET, Status.IDENTICAL, Status.ZERO_TARGET)


def bounds_by_betting(bench: Bench, level: float, side: str, seed: Seed) -> Found:
    """Bounds that hold for groups of any size, whatever the metric's distribution."""
    low, high = _range(bench)
    status = bench.core.comparison.status
    chosen = np.flatnonzero(~np.isin(status, _NO_ANSWER))
    lower, upper = (np.full(status.shape, np.nan) for _ in range(2))
    member = membership(bench)
    others = _targets(bench, member, chosen)
    # every mean is bounded on every side that is asked for, each at its share of the error
    means = chosen.size + len(others)
    error = (1 - level) / max(means * (2 if side == "both" else 1), 1)
    rows = counted_rows(bench)
    rng = np.random.default_rng(seed.sequence)

    def mean_within(cells: BoolArray) -> tuple[float, float]:
        here = cells[rows.cell]
        times = None if rows.count is None else rows.count[here]
        value = rows.value[here] if times is None else np.repeat(rows.value[here], times)
        return betting_bounds(value, low, high, error, rng)

    against = [mean_within(cells) for cells in others]
    known = (bench.target.number,) * 2
    for place, group in enumerate(chosen):
        own = mean_within(member[group])
        target = against[place if len(against) > 1 else 0] if against else known
        lower[group], upper[group] = _disparity(own, target, bench)
    return Found(
        lower=lower if side != "upper" else np.full_like(lower, np.nan),
        upper=upper if side != "lower" else np.full_like(upper, np.nan),
        reach=np.where(np.isnan(lower), np.nan, (upper - lower) / 2),
        critical=float("nan"),
        engine="betting on the rows in random orders",
        recipe=None,
        guarantee="",
        assumption=(
            "error rate exact at any number of rows, for any distribution between "
            f"{low:g} and {high:g}"
        ),
        notes=_notes(bench, chosen),
    )


def _range(bench: Bench) -> tuple[float, float]:
    metric = bench.claim.metric
    if metric.low is None or metric.high is None:
        raise OptionError(
            f"Betting needs a metric with a smallest and a largest value, and {metric.words} has "
            "no such limits. Bound it with .clip(low, high), or leave method= out."
        )
    if why := can_bet(bench):
        raise OptionError(f"Betting {why} Leave method= out.")
    return metric.low, metric.high


def can_bet(bench: Bench) -> str:
    """What is in the way of betting, but for the range of the metric; empty if nothing."""
    if bench.cells.weighted or bench.cells.clusters is not None:
        return "needs independent rows that count alike, and these have weights or clusters."
    if isinstance(bench.target, Custom):
        return "does not know a custom target."
    return "counts rows, and a tilt weighs them." if bench.tilted else ""


def _targets(bench: Bench, member: BoolArray, chosen: IntArray) -> list[BoolArray]:
    """Cells of what groups are compared with: one set for all, or one for each."""
    if isinstance(bench.target, Complement):
        return [~member[group] for group in chosen]
    if not bench.target.estimated:
        return []
    return [bench.target.members(member.shape[1]) > 0]


def _disparity(
    own: tuple[float, float], target: tuple[float, float], bench: Bench
) -> tuple[float, float]:
    low, high = (bench.target.scale * x for x in sorted(target))
    if not bench.relative:
        return own[0] - high, own[1] - low
    if low > 0:
        corners = [one / other for one in own for other in (low, high)]
        return min(corners), max(corners)
    # a target that may be zero bounds nothing but how small a ratio is
    return own[0] / high if own[0] >= 0 < high else -np.inf, np.inf


def _notes(bench: Bench, chosen: IntArray) -> tuple[str, ...]:
    said: list[str] = notes_of(bench.core, 0.0, bench.claim.metric, bench.noun)
    answered = np.zeros(len(said), dtype=bool)
    answered[chosen] = True
    return tuple("" if yes else note for yes, note in zip(answered, said, strict=True))
