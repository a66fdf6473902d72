"""`monitor`: look after every batch, for as long as one likes, without crying wolf."""

import dataclasses
from dataclasses import dataclass
from typing import Literal, Unpack

import numpy as np

from equipoise._validate import Rng, fraction, known_keywords, known_name, listing, seed_of, whole
from equipoise.audits._common import (
    RoleKeywords,
    TrailLike,
    as_trail,
    finite,
    groups_only,
    plain_claim,
    possible_range,
)
from equipoise.audits._groups.problem import (
    FlagOptions,
    Problem,
    about,
    cell_moments,
    group_fields,
    make_core,
    notes_of,
    problem_of,
)
from equipoise.audits.flag import question_of
from equipoise.cells.ledger import Batches, Ledger, Stacked, batches_of, is_ledger, stacked
from equipoise.claims import Claim, as_claim
from equipoise.claims import claim as targets
from equipoise.claims.groups import Unit
from equipoise.errors import OptionError
from equipoise.findings.monitoring import MonitoredGroup, Monitoring, Reading, State, promise
from equipoise.findings.words import judged, tolerated
from equipoise.methods.hypotheses import Above, Below, Null, Outside
from equipoise.methods.inference.core import Core
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray, normal_score
from equipoise.methods.published.bootstrap import RowData
from equipoise.methods.sequential import (
    BURN_IN,
    LEAST,
    BatchSums,
    Scores,
    Stream,
    boundaries,
    e_bh,
    error_shares,
    log_bets,
    log_capital,
    log_detector,
    reach,
    sequence_bounds,
    sequence_path,
    stream_of,
)
from equipoise.methods.targets import Moments, Status

UNITS = ("day", "week", "month", "quarter", "year")
RUN_LENGTH = 104
"""Batches to a false alarm if nothing else is asked: two years of weeks."""
WINDOW = 26
"""Batches that guesses about the present are made from."""
MOST_PERIODS = 240
"""Batches at which histories are kept; of more, as many evenly spread."""
BANDS = 4
"""Groups whose confidence sequence is kept over time."""
LEAST_CLUSTERS = 20.0
MOST_BOUNDED = 60_000
"""Groups times batches for which bounds are worked out; of more, the groups with most evidence."""
MOST_BANDED = 12_000
"""The same for bounds over time."""


@known_keywords
def monitor(
    trail: TrailLike | Ledger | Batches,
    claim: Claim,
    *,
    above: float | None = None,
    below: float | None = None,
    outside: tuple[float, float] | None = None,
    tolerance: float | None = None,
    time: str | None = None,
    period: str | None = None,
    reading: Literal["ever", "lately", "planned"] | None = None,
    run_length: int | None = None,
    looks: int | None = None,
    window: int | None = None,
    level: float = 0.95,
    rng: Rng = None,
    **roles: Unpack[RoleKeywords],
) -> Monitoring:
    """Watch groups over time: evidence after every batch, and alarms that are rarely false.

    Parameters
    ----------
    trail
        The rows, with a column that says when: a trail, a path or a table as in the other verbs. Or
        a ledger, to which batches were added one by one, or the path of one.
    claim
        The question. Ranges need fixed ``edges``, since every batch must be cut alike.
    above, below, outside, tolerance
        What raises an alarm: disparities above a limit, below one, or outside a range; the default
        is any difference. A ``tolerance`` of 0.05 is the range from -0.05 to 0.05, one of 0.8 for a
        ratio that from 0.8 to 1.25; groups may then also be shown to keep it.
    time, period
        How rows form batches. ``period`` names a column of batch names, or with ``time``, a column
        of dates, it is ``"day"``, ``"week"``, ``"month"``, ``"quarter"`` or ``"year"``.
    reading
        What is promised. ``"ever"`` (the default): the chance of any false alarm, from the first
        batch to the last that ever comes. ``"lately"``: false alarms are rare but may come; what
        has begun lately is found sooner. ``"planned"``: a fixed number of ``looks``, one after each
        batch; quickest, and by approximation.
    run_length
        For ``"lately"``: how many batches lie between false alarms, on average at least.
    looks
        For ``"planned"``: how many looks there will be in all.
    window
        Bounds are made of so many last batches instead of all. For ``"lately"`` guesses about the
        present, too.
    level
        Confidence of bounds; alarms have one less this as their error.
    rng
        Start of the draws that planned looks need.

    Examples
    --------
    >>> import equipoise as eq
    >>> claim = eq.gap("false_positive_rate", across=eq.intersections("race", "sex", depth=1))
    >>> found = eq.monitor(eq.datasets.compas_by_month(), claim, above=0.05, period="month")
    >>> [(row.group, row.raised) for row in found.alarms]
    [('African-American', '2013-02')]
    """
    asked = _asked(claim, level, reading, run_length, looks, window)
    batches = _batches(trail, asked.claim, time, period, roles)
    if asked.looks is not None and len(batches) > asked.looks:
        raise OptionError(
            f"There are {len(batches)} batches, and {asked.looks} looks were planned. More looks "
            "than planned have no error rate: plan more next time, or read them as 'ever'."
        )
    stack = stacked(batches)
    problem = problem_of(asked.claim, stack.cells, _no_rows)
    groups_only(problem.collection, "monitor")
    null, words = _null(problem, above, below, outside, tolerance)
    stream = _stream(problem, stack)
    if asked.reading == "planned":
        found = _planned(problem, stack, null, asked, seed_of(rng).sequence)
    else:
        found = _open_ended(stream, null, asked)
    return _finding(problem, batches, stream, null, words, tolerance, asked, found)


# --- What is asked ---


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The options, checked."""

    claim: Claim
    reading: Reading
    level: float
    run_length: int | None
    looks: int | None
    window: int | None

    @property
    def error(self) -> float:
        """Chance of a false alarm."""
        return 1 - self.level


def _asked(
    claim: Claim,
    level: float,
    reading: Reading | None,
    run_length: int | None,
    looks: int | None,
    window: int | None,
) -> _Asked:
    question = plain_claim(as_claim(claim), "monitor")
    fraction("level", level)
    if isinstance(question.target, targets.Custom):
        raise OptionError("monitor knows no custom(…) target: its error is not one of batches.")
    for name, number in (("run_length", run_length), ("looks", looks), ("window", window)):
        if number is not None:
            whole(name, number, least=1 if name == "window" else 2)
    if run_length is not None and looks is not None:
        raise OptionError("run_length= belongs to reading='lately', looks= to reading='planned'.")
    implied: Reading = "ever" if run_length is None else "lately"
    implied = "planned" if looks is not None else implied
    chosen = implied if reading is None else reading
    known_name("reading", chosen, ("ever", "lately", "planned"))
    if chosen != implied and implied != "ever":
        name = "run_length" if implied == "lately" else "looks"
        raise OptionError(f"{name}= belongs to reading={implied!r}; got reading={chosen!r}.")
    if chosen == "planned" and looks is None:
        raise OptionError("reading='planned' needs looks=: how many looks there will be in all.")
    return _Asked(
        claim=question,
        reading=chosen,
        level=level,
        run_length=(run_length or RUN_LENGTH) if chosen == "lately" else None,
        looks=looks,
        window=window,
    )


def _batches(
    source: TrailLike | Ledger | Batches,
    claim: Claim,
    time: str | None,
    period: str | None,
    roles: RoleKeywords,
) -> Batches:
    if isinstance(source, Batches | Ledger) or is_ledger(source):
        if time is not None or period is not None or roles:
            given = [*(["time"] if time else []), *(["period"] if period else []), *roles]
            raise OptionError(
                f"A ledger knows its batches and columns; leave out {listing(given)}."
            )
        if isinstance(source, Batches):
            return source
        return (source if isinstance(source, Ledger) else Ledger.open(str(source))).batches(claim)
    trail = as_trail(source, roles)
    column, unit = batch_column(time, period)
    (found,) = batches_of(trail, [claim], column, unit)
    return found


def batch_column(time: str | None, period: str | None) -> tuple[str, Unit | None]:
    """The column that says when, and the unit of time by which its dates are cut."""
    if time is None and period is None:
        raise OptionError(
            "Say how rows form batches: period='month' with time= a column of dates, or period= a "
            "column of batch names."
        )
    if time is None:
        return str(period), None
    if period is None:
        return time, None
    known_name("period, where time= is given,", period, UNITS)
    unit: Unit = period  # type: ignore[assignment]
    return time, unit


def _null(
    problem: Problem,
    above: float | None,
    below: float | None,
    outside: tuple[float, float] | None,
    tolerance: float | None,
) -> tuple[Null, str]:
    if tolerance is not None:
        if not (above is None and below is None and outside is None):
            raise OptionError("Pass one of above=, below=, outside= and tolerance=.")
        whole_range = tolerance > 0 and not (problem.relative and tolerance >= 1)
        if not whole_range:
            words = "a share such as 0.8, between 0 and 1" if problem.relative else "above 0"
            raise OptionError(f"tolerance must be {words}; got {tolerance!r}.")
        low, high = tolerated(tolerance, "both", problem.relative)
        outside = (low or 0.0, high or 0.0)
    options = FlagOptions(
        above=above, below=below, outside=outside, fdr=0.05, control="e-bh",
        method=None, min_rows=None, resamples=None,
    )  # fmt: skip
    return question_of(problem, options)


# --- Evidence ---


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evidence:
    """What a reading found, arrays of shape ``(T, G)`` or ``(G,)``."""

    history: FloatArray
    """Decimal logarithm of the evidence; for planned looks the score."""
    alarms: BoolArray
    """Which groups are in alarm after each batch."""
    needed: FloatArray
    """What a group needs now, in the unit of the history."""
    threshold: float
    """What the first alarm needs."""
    tested: BoolArray
    """Which groups were ever compared."""
    together: float | None
    bounds: tuple[FloatArray, FloatArray] | None = None
    notes: tuple[str, ...] = ()


def _stream(problem: Problem, stack: Stacked) -> Stream:
    cells, claim = problem.cells, problem.claim
    plain = not cells.weighted and cells.clusters is None
    low, high = claim.metric.low, claim.metric.high
    ends = None
    if plain and cells.zero_one:
        ends = (0.0, 1.0)
    elif plain and low is not None and high is not None:
        ends = (float(low), float(high))
    return stream_of(
        cell_moments(stack.by_batch),
        problem.target,
        problem.collection.sums,
        relative=problem.relative,
        zero_one=cells.zero_one,
        ends=ends,
        effect=_effect(problem, stack),
    )


def _effect(problem: Problem, stack: Stacked) -> FloatArray | None:
    """How many times larger clusters make the variance of a contrast, as known at each batch."""
    table, batch = problem.cells.clusters, stack.cluster_batch
    if table is None or batch is None:
        return None
    found, sums = problem.core.comparison, problem.collection.sums
    factor = found.factor(np.where(np.isfinite(found.estimate), found.estimate, 1.0))
    times, size = len(stack.sums["rows"]), len(problem.cells)
    number = int(table.cluster.max()) + 1
    of_cluster = np.zeros(number, dtype=np.int64)
    of_cluster[table.cluster] = batch
    moved, met = (np.zeros((times, found.estimate.size)) for _ in range(2))
    one = cell_moments(problem.cells).weight.sum() / max(problem.cells.weight.sum(), 1e-300)
    block = max(1, 2_000_000 // max(size, found.estimate.size))
    for start in range(0, number, block):
        here = (table.cluster >= start) & (table.cluster < start + block)
        rows = min(block, number - start)
        place = (table.cluster[here] - start) * size + table.cell[here]
        weight = np.bincount(place, table.weight[here] * one, rows * size).reshape(rows, size)
        total = np.bincount(place, table.total[here] * one, rows * size).reshape(rows, size)
        move = found.moves(weight.astype(np.float64), total.astype(np.float64), factor, sums)
        times_of = of_cluster[start : start + rows]
        np.add.at(moved, times_of, move**2)
        np.add.at(met, times_of, move != 0)
    moved = moved * np.divide(met, met - 1, out=np.ones_like(met), where=met > 1)
    m = cell_moments(stack.by_batch).parts(problem.target, sums)
    slope = found.slopes(factor)[:, None]
    mean = np.divide(found.parts.total, found.parts.weight, out=np.zeros_like(found.parts.total),
                     where=found.parts.weight > 0)[:, None]  # fmt: skip
    alone = (slope**2 * (m.square2 - 2 * mean * m.total2 + mean**2 * m.weight2)).sum(axis=0)
    top, bottom = np.cumsum(moved, axis=0), np.cumsum(alone, axis=0)
    effect = np.maximum(np.divide(top, bottom, out=np.ones_like(top), where=bottom > 0), 1.0)
    return np.where(np.cumsum(met, axis=0) >= LEAST_CLUSTERS, effect, np.inf)


def _open_ended(stream: Stream, null: Null, asked: _Asked) -> _Evidence:
    lately = asked.reading == "lately"
    window = (asked.window or WINDOW) if lately else None
    read = log_detector if lately else log_capital
    told: list[FloatArray] = []
    tested = np.zeros(stream.shape[1], dtype=bool)
    for limit, above in _sides(null):
        bets = log_bets(stream, np.full(stream.shape[1], limit), above=above, window=window)
        tested |= (bets != 0).any(axis=(0, 1))
        told.append(read(bets))
    # the average of two such processes is one
    history = np.logaddexp(told[0], told[1]) - np.log(2) if len(told) == 2 else told[0]
    shares = error_shares(stream)
    weighed = np.where(tested, history + np.log(shares), -np.inf)
    if lately:
        alarms = weighed >= np.log(float(asked.run_length or RUN_LENGTH))
        at_last = np.log(float(asked.run_length or RUN_LENGTH)) - np.log(shares)
    else:
        alarms, at_last = e_bh(weighed, asked.error)
        at_last = at_last - np.log(shares)
    needed = float(-np.log(shares.max()) - np.log(asked.error))
    if lately:
        needed = float(at_last.min())
    together = float(np.logaddexp.reduce(weighed[-1])) if tested.any() else None
    return _Evidence(
        history=history / np.log(10),
        alarms=alarms,
        needed=at_last / np.log(10),
        threshold=float(needed / np.log(10)),
        tested=tested,
        together=None if together is None else _evidence(together / np.log(10)),
    )


def _sides(null: Null) -> list[tuple[float, bool]]:
    if isinstance(null, Above):
        return [(null.limit, True)]
    if isinstance(null, Below):
        return [(null.limit, False)]
    return [(null.high, True), (null.low, False)]


# --- Planned looks ---


def _planned(
    problem: Problem, stack: Stacked, null: Null, asked: _Asked, seed: np.random.SeedSequence
) -> _Evidence:
    """Scores of everything seen so far, against boundaries that share the error over the looks."""
    two_sided = isinstance(null, Outside)
    times, groups = len(stack.sums["rows"]), len(problem.collection)
    scores, tested = np.full((times, groups), np.nan), np.zeros((times, groups), dtype=bool)
    pieces: list[BatchSums] = []
    for k in range(times):
        core = _core(problem, stack, k, k + 1)
        used = core.answered
        information = np.zeros(groups)
        information[used] = 1 / np.maximum(core.pivot.error[used], 1e-12) ** 2
        pieces.append(
            BatchSums(
                groups=used,
                information=information,
                scores=_scores(core),
            )
        )
        so_far = _core(problem, stack, 0, k + 1)
        p = null.p_value(so_far.tails)
        with np.errstate(invalid="ignore"):
            scores[k] = normal_score(p / 2 if two_sided else p)
        tested[k] = ~np.isnan(p) & _plenty(problem, stack, k + 1)
    if not bool(tested.any()):
        raise OptionError(
            "Every group has too few rows of either outcome for planned looks, whose joint law is "
            "an approximation. reading='ever' is exact at any size."
        )
    critical = boundaries(
        pieces, list(tested), error=asked.error, looks=asked.looks or times,
        two_sided=two_sided, seed=seed,
    )  # fmt: skip
    alarms = tested & (scores >= critical[:, None])
    # once the boundary is crossed the question is answered
    alarms = np.logical_or.accumulate(alarms, axis=0)
    last = float(critical[-1])
    final = _core(problem, stack, 0, times)
    limits = _possible(problem)
    nothing = np.full(groups, np.nan)
    low, high = final.bounds(last, limits) if np.isfinite(last) else (nothing, nothing)
    ever = np.asarray(tested.any(axis=0))
    notes = notes_of(final, last, problem.claim.metric, problem.noun)
    few = "too few rows of either outcome for planned looks; reading='ever' is exact"
    return _Evidence(
        history=np.where(tested, scores, np.nan),
        alarms=alarms,
        needed=np.full(groups, last),
        threshold=last,
        tested=ever,
        together=None,
        bounds=(np.where(ever, low, np.nan), np.where(ever, high, np.nan)),
        notes=tuple(n or ("" if ok else few) for n, ok in zip(notes, ever.tolist(), strict=True)),
    )


def _scores(core: Core) -> Scores:
    return lambda draws, seed: iter(core.law(draws=draws, seed=seed).scores())


def _core(problem: Problem, stack: Stacked, start: int, stop: int) -> Core:
    """The inference core of some consecutive batches."""
    cells = stack.between(start, stop)
    return make_core(cells, problem.target, problem.collection, relative=problem.relative)


def _plenty(problem: Problem, stack: Stacked, stop: int) -> BoolArray:
    """Which groups have enough rows of either outcome, in every part, for normal joint scores."""
    cells = stack.between(0, stop)
    parts = problem.target.parts(cells.rows, problem.collection.sums)
    mean = float(cells.total.sum() / max(cells.weight.sum(), 1e-300))
    least = LEAST / max(min(mean, 1 - mean), 1e-12) if cells.zero_one else 5 * LEAST
    # parts without any row are no part of the comparison
    return np.asarray(np.where(parts > 0, parts, np.inf).min(axis=0) >= least)


# --- The finding ---


def _smallest(rows: FloatArray) -> int | None:
    """Rows of the smallest part of any batch that has any."""
    there = rows[rows > 0]
    return int(there.min()) if there.size else None


def _finding(
    problem: Problem,
    batches: Batches,
    stream: Stream,
    null: Null,
    words: str,
    tolerance: float | None,
    asked: _Asked,
    found: _Evidence,
) -> Monitoring:
    times = len(batches)
    shown = np.unique(np.linspace(0, times - 1, min(times, MOST_PERIODS)).round().astype(int))
    shares = error_shares(stream)
    # bounds of either side, of all groups, at once
    error = asked.error * shares / 2
    bounds, many = _last_bounds(problem, stream, found, error, asked.window)
    seen = _reachable(stream, null, asked.error * shares) if asked.reading == "ever" else None
    bands = _bands(problem, stream, found, error, shown) if asked.reading == "ever" else {}
    raised = np.where(found.alarms.any(axis=0), found.alarms.argmax(axis=0), -1)
    notes = found.notes or tuple(_notes(problem, found))
    rows = []
    for i, fields in enumerate(group_fields(problem)):
        low, high = finite(bounds[0][i]), finite(bounds[1][i])
        rows.append(
            MonitoredGroup(
                **fields,
                evidence=_last_evidence(found, i, asked.reading),
                needed=_unit(float(found.needed[i]), asked.reading) if found.tested[i] else None,
                alarm=bool(found.alarms[-1, i]),
                raised=batches.periods[raised[i]] if raised[i] >= 0 else None,
                lower=low,
                upper=high,
                state=_state(found, i, low, high, tolerance, problem.relative),
                reachable=None if seen is None else finite(seen[i]),
                note=notes[i] or (_TOO_MANY if many[i] else ""),
                history=tuple(
                    round(float(x), 4) if np.isfinite(x) else None for x in found.history[shown, i]
                ),
                band=bands.get(i, ()),
                smallest=_smallest(stream.sums.rows[:, :, i]),
            )
        )
    return Monitoring(
        **about(problem, None),
        guarantee=promise(asked.reading, asked.level, asked.run_length, asked.looks),
        assumptions=_assumptions(problem, stream, asked),
        rows=tuple(rows),
        share=problem.cells.zero_one,
        relative=problem.relative,
        null=words,
        reading=asked.reading,
        level=asked.level,
        batches=times,
        periods=tuple(batches.periods[int(i)] for i in shown),
        threshold=found.threshold,
        limits=tuple(dict.fromkeys(null.limits)),
        tolerance=tolerance,
        run_length=asked.run_length,
        looks=asked.looks,
        together=found.together,
    )


def _last_bounds(
    problem: Problem, stream: Stream, found: _Evidence, error: FloatArray, window: int | None
) -> tuple[tuple[FloatArray, FloatArray], BoolArray]:
    """The bounds after the last batch, and the groups for which they would take too long."""
    if found.bounds is not None:
        return found.bounds, np.zeros(len(error), dtype=bool)
    recent = stream if window is None else _last(stream, window)
    return _bounds(problem, recent, found, error)


_TOO_MANY = "no bounds, of so many groups and batches; window= gives them for the last batches"


def _bounds(
    problem: Problem, stream: Stream, found: _Evidence, error: FloatArray
) -> tuple[tuple[FloatArray, FloatArray], BoolArray]:
    """Bounds of as many groups as is quick, and which have none for that reason."""
    order = np.argsort(-found.history[-1], kind="stable")
    order = np.array([i for i in order.tolist() if found.tested[i]], dtype=np.int64)
    chosen = order[: max(MOST_BOUNDED // stream.shape[0], BANDS)]
    low, high = (np.full(error.shape, np.nan) for _ in range(2))
    if chosen.size:
        part = stream.some(chosen.tolist())
        low[chosen], high[chosen] = sequence_bounds(part, error[chosen], _possible(problem))
    many = np.zeros(error.shape, dtype=bool)
    many[order[chosen.size :]] = True
    return (low, high), many


def _last(stream: Stream, window: int) -> Stream:
    sums = {n: getattr(stream.sums, n)[:, -window:] for n in Moments.__dataclass_fields__}
    effect = None if stream.effect is None else stream.effect[-window:]
    return dataclasses.replace(stream, sums=Moments(**sums), effect=effect)


def _possible(problem: Problem) -> tuple[float, float]:
    low, high = possible_range(problem.claim, problem.cells.zero_one)
    return -np.inf if low is None else low, np.inf if high is None else high


def _reachable(stream: Stream, null: Null, error: FloatArray) -> FloatArray:
    """The nearest disparity beyond a limit that would most likely have been found."""
    found = [
        reach(stream, np.full(stream.shape[1], limit), error, above=above)
        for limit, above in _sides(null)
    ]
    return found[0]


def _bands(
    problem: Problem, stream: Stream, found: _Evidence, error: FloatArray, shown: IntArray
) -> dict[int, tuple[tuple[float | None, float | None], ...]]:
    """Confidence sequences over time of the groups with most evidence."""
    order = [int(i) for i in np.argsort(-found.history[-1], kind="stable") if found.tested[i]]
    chosen = order[: min(BANDS, max(MOST_BANDED // stream.shape[0], 1))]
    if not chosen:
        return {}
    low, high = sequence_path(stream.some(chosen), error[chosen], _possible(problem), shown)
    return {
        group: tuple((finite(a), finite(b)) for a, b in zip(low[:, j], high[:, j], strict=True))
        for j, group in enumerate(chosen)
    }


def _evidence(power: float) -> float:
    """Evidence from its decimal logarithm, within what a number can be."""
    return float(10 ** np.clip(power, -300, 300))


def _unit(value: float, reading: Reading) -> float | None:
    if not np.isfinite(value):
        return None
    return value if reading == "planned" else _evidence(value)


def _last_evidence(found: _Evidence, i: int, reading: Reading) -> float | None:
    if not found.tested[i]:
        return None
    known = found.history[:, i][np.isfinite(found.history[:, i])]
    return _unit(float(known[-1]), reading) if known.size else None


def _state(
    found: _Evidence,
    i: int,
    low: float | None,
    high: float | None,
    tolerance: float | None,
    relative: bool,
) -> State:
    if found.alarms[-1, i]:
        return State.ALARM
    if tolerance is None:
        return State.QUIET
    allowed = tolerated(tolerance, "both", relative)
    kept = judged(low, high, allowed) == "kept"
    return State.KEPT if kept else State.QUIET


def _notes(problem: Problem, found: _Evidence) -> list[str]:
    notes = notes_of(problem.core, 0.0, problem.claim.metric, problem.noun)
    unanswerable = (Status.EMPTY, Status.NO_TARGET, Status.IDENTICAL)
    status = problem.core.status
    return [
        (note if code in unanswerable else "never rows enough to bet on") if not tested else ""
        for note, tested, code in zip(notes, found.tested.tolist(), status.tolist(), strict=True)
    ]


def _assumptions(problem: Problem, stream: Stream, asked: _Asked) -> tuple[str, ...]:
    cells = problem.cells
    unit = "clusters" if cells.clusters is not None else "rows"
    rows = (
        f"{unit} are independent of one another, within a batch and from batch to batch; the "
        "populations behind the batches may drift"
    )
    fixed = f"the collection of {problem.noun}s and the limit were fixed before the first batch"
    if asked.reading == "planned":
        trust = (
            "asymptotic: near exact tails at each look, joined over looks and groups by normal "
            "scores; groups with few rows of either outcome are not tested"
        )
    elif stream.exact and stream.zero_one:
        trust = "exact for batches of any size: bets on 0/1 rows"
    elif stream.exact:
        trust = "exact for batches of any size: bets on a bounded metric (Fan's inequality)"
    else:
        why = "weights" if cells.weighted else "a metric without bounds"
        why = "clusters" if cells.clusters is not None else why
        trust = (
            f"asymptotic: with {why} the variance has to be estimated; nothing is bet before "
            f"{BURN_IN:.0f} rows"
        )
    bounds = (
        "bounds are for disparities that do not drift; of one that does, a lower bound says that "
        "some batch exceeded it"
    )
    if asked.window is not None:
        bounds = f"bounds are of the last {asked.window} batches, and hold at each look on its own"
    return rows, fixed, trust, bounds


def _no_rows() -> RowData:
    raise OptionError("monitor works from totals.")
