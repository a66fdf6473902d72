"""`power`: what an audit of so many rows can show, and how many rows it would take."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from scipy.special import ndtr, ndtri

from equipoise._validate import Rng, Seed, fraction, known_keywords, modest, seed_of, whole
from equipoise.audits._common import (
    Critical,
    RoleKeywords,
    TrailLike,
    answerable,
    as_source,
    critical_scores,
    finite,
    possible_limit,
    possible_range,
)
from equipoise.audits._groups.problem import (
    CONTROLS,
    CertifyOptions,
    Control,
    FlagOptions,
    Problem,
    about,
    group_fields,
    notes_of,
    set_up,
)
from equipoise.audits.flag import (
    common_rate,
    could_show,
    nearest_reach,
    next_step,
    plain_counts,
    question_of,
)
from equipoise.audits.guess import Guess, guessed
from equipoise.cells.tally import Tallied
from equipoise.claims import Claim, Together, as_claim
from equipoise.claims.claim import Constant as _Constant
from equipoise.claims.claim import Highest as _Highest
from equipoise.errors import OptionError
from equipoise.findings.power import MoreGroups, PlannedGroup, Power
from equipoise.findings.words import Side, level_text, percent, tolerated
from equipoise.methods.hypotheses import Above, Below, Null, Outside, inverse_e_values
from equipoise.methods.inference.core import Core
from equipoise.methods.inference.student import JointLaw, independent_score
from equipoise.methods.numerics import BoolArray, FloatArray
from equipoise.methods.planning import (
    NEVER,
    Begin,
    Chance,
    Question,
    Reached,
    ToFlag,
    ToShow,
    best_split,
    both_ways,
    chance,
    coefficients,
    gap_by_normal,
    moved_along,
    root_by_normal,
    smallest_flagged,
    step_down,
    step_up,
    times_larger,
    whole_rows,
)
from equipoise.methods.simulated import CountSimulator, ScoreSimulator, Simulator, worlds_for
from equipoise.methods.targets import Before, Custom, Highest

# --- What is asked ---


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Everything but the data and the claim."""

    bounds: CertifyOptions
    flags: FlagOptions
    power: float
    disparity: float | None
    budget: int | None
    more: tuple[int, ...] | None

    def __post_init__(self) -> None:
        fraction("power", self.power)
        if not 0.2 <= self.power <= 0.99:
            raise OptionError(f"power must lie between 0.2 and 0.99; got {self.power!r}.")
        if self.disparity is not None:
            modest("disparity", self.disparity)
        if self.budget is not None:
            whole("budget", self.budget)
        for number in self.more or ():
            whole("more", number)


@known_keywords
def power(
    trail: TrailLike | Tallied | Guess,
    claim: Claim,
    *,
    above: float | None = None,
    below: float | None = None,
    outside: tuple[float, float] | None = None,
    disparity: float | None = None,
    tolerance: float | None = None,
    side: Side = "both",
    power: float = 0.8,
    level: float = 0.95,
    fdr: float = 0.10,
    control: Control = "bh",
    budget: int | None = None,
    more: Sequence[int] | None = None,
    rng: Rng = None,
    **roles: Unpack[RoleKeywords],
) -> Power:
    """How many rows: what an audit can show with these, and what it would take to show more.

    The audit is simulated as it will be run: tables in which one group has a disparity and nobody
    else has. Tables grow, or shrink, as a whole: every group by the same factor.

    Parameters
    ----------
    trail, claim
        The audit trail or its counts, whose sizes and rates are taken as they are, or a table of
        guessed ones from [`guess`][equipoise.guess]; and the question, as in `flag` and `certify`.
    above, below, outside, fdr, control
        What is to be flagged, and with what control, as in `flag`. For each group the smallest
        disparity beyond these limits is named that would be flagged with the stated power.
    disparity
        A disparity that should be flagged: how many rows would that take? Below zero, or a ratio
        below 1, for groups below their target.
    tolerance, side, level
        What is to be shown to be kept, as in `certify`: how many rows would that take, of a group
        without disparity?
    power
        The chance of showing what is there.
    budget
        Rows that can be collected, or labelled, in all: how are they split over the groups so that
        the widest bound is as narrow as can be?
    more
        Numbers of further groups, whose cost is to be told; as many again, and four and nine times
        as many, if not given.
    rng
        Seed; the same seed gives the same answer. If not given, one is drawn and recorded.

    Examples
    --------
    >>> import equipoise as eq
    >>> claim = eq.gap(eq.false_positive_rate, across="race")
    >>> found = eq.power(eq.datasets.compas(), claim, tolerance=0.1, rng=7)
    >>> largest, smallest = found.ask("Caucasian"), found.ask("Asian")
    >>> 0.03 < largest.above < 0.05, smallest.above > 0.2, largest.kept > 0.9
    (True, True, True)
    """
    asked = _Asked(
        bounds=CertifyOptions(level=level, side=side, tolerance=tolerance, method=None),
        flags=FlagOptions(
            above=above, below=below, outside=outside, fdr=fdr, control=control, method=None,
            min_rows=None, resamples=None,
        ),
        power=power,
        disparity=disparity,
        budget=budget,
        more=None if more is None else tuple(more),
    )  # fmt: skip
    if isinstance(claim, Together):
        raise OptionError("power plans one claim; ask it for each part of this one.")
    question = as_claim(claim)
    if isinstance(question.target, _Highest):
        raise OptionError(
            "power knows no highest(), since nobody knows yet which group that will be. Plan "
            "against reference(…), the group that is likely to be it."
        )
    asked.bounds.check_claim(question)
    if asked.disparity is not None:
        possible_limit("disparity", asked.disparity, question, possible_range(question))
    if isinstance(trail, Guess):
        if roles:
            raise OptionError("A guess says already what its columns mean; leave out the roles.")
        problem = guessed(trail, question)
    else:
        problem = set_up(as_source(trail, roles), question)
    _possible_target(problem)
    if question.unknown != "group" or question.unlabelled != "out" or problem.trust:
        raise OptionError(
            "power plans audits whose groups and labels are known: no unknown=, unlabelled=, "
            "proxies or cheap labels."
        )
    return _plan(problem, asked, seed_of(rng))


def _possible_target(problem: Problem) -> None:
    """Refuse to plan for groups at a rate that none can have."""
    target = problem.claim.target
    if not isinstance(target, _Constant) or not problem.cells.zero_one:
        return
    rate = target.scale * target.value
    if not 0 <= rate <= 1:
        raise OptionError(f"No group can have the target's rate of {rate:g}; plan against another.")


# --- The plan of a problem ---

MOST_CELLS = 120
"""Cells up to which counts are simulated; beyond, scores are."""
MOST_SEARCHED = 8
"""Groups that are simulated one by one; of more, those of a range of sizes."""
SOME, FEWEST, MANY = 5, 2, 500
"""How many of more groups are simulated, and how many if there are many."""
MOST_EFFECTS = 20_000_000


def _plan(problem: Problem, asked: _Asked, seed: Seed) -> Power:
    null, words = question_of(problem, asked.flags)
    core, critical, score = _answered(problem, asked, seed)
    used = core.answered
    plans = [_Plan() for _ in range(core.status.size)]
    of: Simulator | None = None
    flags = _to_flag(core, null, asked.flags, seed)
    show = _to_show(problem, asked, critical)
    even = _even(problem)
    stated = _beyond(asked.disparity, null)
    if used.size:
        of = _simulator(problem, core, seed, even)
        _search_all(of, used.tolist(), plans, flags, show, asked, stated, even)
    rows = np.asarray(core.comparison.rows)
    split = _split(problem, core, critical, asked)
    notes = notes_of(core, score, problem.claim.metric, problem.noun)
    threshold = asked.flags.fdr * next_step(asked.flags.control, 0, max(used.size, 1))
    reach = could_show(problem, null, threshold)
    counted = isinstance(of, CountSimulator)
    made = tuple(
        _row(fields, plans[i], asked, notes[i], rows[i], None if split is None else split.labels[i],
             None if problem.relative else nearest_reach(reach, i))
        for i, fields in enumerate(group_fields(problem))
    )  # fmt: skip
    error = max((plan.error for plan in plans), default=0.0)
    total = float(problem.cells.rows.sum())
    return Power(
        **about(problem, seed.number),
        guarantee=_guarantee(asked, counted, error),
        assumptions=_assumptions(problem, asked, of, used.size),
        rows=made,
        share=problem.share,
        relative=problem.relative,
        null=words,
        limits=tuple(dict.fromkeys(null.limits)),
        power=asked.power,
        rate=asked.flags.fdr,
        control=CONTROLS[asked.flags.control],
        level=asked.bounds.level,
        side=asked.bounds.side,
        tolerance=asked.bounds.tolerance,
        stated=asked.disparity,
        assumed=of.rate if isinstance(of, CountSimulator) else None,
        engine=_ENGINES[counted],
        uncertainty=error,
        table_to_flag=_whole_table([plan.to_flag for plan in plans], total),
        table_to_show=_whole_table([plan.to_show for plan in plans], total),
        budget=asked.budget,
        width=None if split is None else finite(split.width),
        width_alike=None if split is None else finite(split.alike),
        more=_more(flags, asked, used.size),
    )


_ENGINES = {
    True: "the audit on simulated counts: quick scores fitted to its tails, close cases by them",
    False: "normal scores of all groups with the errors that the audit states for these rows",
}


def _answered(problem: Problem, asked: _Asked, seed: Seed) -> tuple[Core, Critical, float]:
    """The groups that can be audited, and the critical score of bounds on all of them."""
    return answerable(problem.core, asked.bounds.level, asked.bounds.side, None, seed, False)


def _beyond(disparity: float | None, null: Null) -> tuple[float, float] | None:
    """A stated disparity and how far beyond the limit it is."""
    if disparity is None:
        return None
    low, high = min(null.limits), max(null.limits)
    over = disparity - high if not isinstance(null, Below) else -np.inf
    under = low - disparity if not isinstance(null, Above) else -np.inf
    margin = float(max(over, under))
    if margin <= 0:
        raise OptionError(
            f"disparity={disparity:g} is not beyond the limit, so no number of rows flags it. "
            "Name one that should be flagged; below the target it is negative, or a ratio under 1."
        )
    return disparity, margin


def _even(problem: Problem) -> float:
    """The disparity of a group that is like all others."""
    scale = problem.target.scale
    if not problem.target.estimated:
        return 1.0 if problem.relative else 0.0
    if problem.relative:
        return 1 / scale
    cells = problem.cells
    mean = float(cells.total.sum()) / max(float(cells.weight.sum()), 1e-300)
    return (1 - scale) * (common_rate(problem) if cells.zero_one else mean)


def _simulator(problem: Problem, core: Core, seed: Seed, even: float) -> Simulator:
    used, cells = core.answered, problem.cells
    if plain_counts(problem) and len(cells) <= MOST_CELLS and used.size <= MOST_CELLS:
        return CountSimulator(
            rows=cells.rows,
            rate=common_rate(problem),
            member=_members(problem)[:, used],
            target=problem.target,
            relative=problem.relative,
            seed=seed.sequence,
        )
    law = core.law(draws=worlds_for(used.size), seed=seed.sequence)
    if isinstance(law, JointLaw):
        # doubt about correlations is for critical values; tables have those that there are
        law = dataclasses.replace(law, apart=np.zeros_like(law.apart))
    scores = np.concatenate([*law.scores()])
    sure = core.counted and cells.clusters is None
    low, high = possible_range(problem.claim, cells.zero_one)
    return ScoreSimulator(
        errors=core.pivot.error[used],
        degrees=np.full(used.size, np.inf) if sure else core.spread.degrees[used],
        scores=scores,
        even=even,
        along=_along(problem, core),
        possible=(-np.inf if low is None else low, np.inf if high is None else high),
        seed=seed.sequence,
    )


def _along(problem: Problem, core: Core) -> FloatArray:
    """How far other disparities move with that of one group, where cells say so."""
    used, cells = core.answered, problem.cells
    odd = bool(problem.claim.given) or problem.tilted or cells.sides is not None
    odd = odd or isinstance(problem.target, Before | Custom)
    if odd or len(cells) * used.size > MOST_EFFECTS:
        return np.eye(used.size)
    member = _members(problem)[:, used]
    return moved_along(member, coefficients(cells.weight, member, problem.target))


def _members(problem: Problem) -> BoolArray:
    """Which cells each group is made of, ``(C, G)``."""
    size = len(problem.cells)
    blocks = [
        problem.collection.sums(np.eye(min(256, size - start), size, start)) > 0
        for start in range(0, size, 256)
    ]
    return np.concatenate(blocks)


def _to_flag(core: Core, null: Null, options: FlagOptions, seed: Seed) -> ToFlag:
    def same(p: FloatArray) -> FloatArray:
        return p

    def harmonic(others: FloatArray, rate: float) -> FloatArray:
        return step_up(others, rate / float(np.sum(1 / np.arange(1, others.shape[1] + 2))))

    steps: Callable[[FloatArray, float], FloatArray] = step_up
    if options.control == "by":
        steps = harmonic
    elif options.control == "holm":
        steps = step_down
    elif options.control == "max-t":
        steps = _by_maxima(core, null, options, seed)
    adjust = inverse_e_values if options.control == "e-bh" else same
    return ToFlag(null=null, rate=options.fdr, adjust=adjust, steps=steps)


def _by_maxima(
    core: Core, null: Null, options: FlagOptions, seed: Seed
) -> Callable[[FloatArray, float], FloatArray]:
    """Holm's steps, none below what the maximum over all groups allows."""
    two = isinstance(null, Outside)
    found = critical_scores(core, 1 - options.fdr, "both" if two else "lower", None, seed, False)
    first = 0.0 if not core.answered.size else _tail(found.value) * (2 if two else 1)
    number = core.answered.size

    def steps(others: FloatArray, rate: float) -> FloatArray:
        own = step_down(others, rate)
        return np.maximum(own, first) if others.shape[1] + 1 == number else own

    return steps


def _tail(score: float) -> float:
    return float(ndtr(-score))


def _to_show(problem: Problem, asked: _Asked, critical: Critical) -> ToShow | None:
    tolerance, side = asked.bounds.tolerance, asked.bounds.side
    if tolerance is None:
        return None
    low, high = tolerated(tolerance, side, problem.relative)
    return ToShow(low=low, high=high, critical=critical.value)


# --- Searches, of every group or of some of many ---


@dataclass(slots=True)
class _Plan:
    """What was found of one group; None where it was not asked, NaN where nothing suffices."""

    above: float | None = None
    below: float | None = None
    gap_error: float | None = None
    chance: float | None = None
    to_flag: float | None = None
    kept: float | None = None
    to_show: float | None = None
    rows_error: float | None = None
    error: float = 0.0
    """Largest Monte-Carlo error of a chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """One kind of search: where it begins, what it finds, and the chance at present."""

    name: str
    begin: Callable[[int], Begin | None]
    find: Callable[[int], Reached]
    told: Callable[[float], float]
    """From what normal theory speaks of to what is told."""
    now: Callable[[int], Chance] | None = None
    present: Callable[[float], float] | None = None
    """The chance at present, by how many times the table must be as large."""


def _search_all(
    of: Simulator,
    used: list[int],
    plans: list[_Plan],
    flags: ToFlag,
    show: ToShow | None,
    asked: _Asked,
    stated: tuple[float, float] | None,
    even: float,
) -> None:
    kinds = _gap_kinds(of, flags, asked.power)
    if stated is not None:
        kinds.append(_rows_kind("to_flag", of, flags, stated[0], stated[1], asked.power))
    if show is not None:
        ends = [end for end in (show.low, show.high) if end is not None]
        inside = (show.low is None or even > show.low) and (show.high is None or even < show.high)
        margin = min(abs(even - end) for end in ends)
        if inside:
            kinds.append(_rows_kind("to_show", of, show, None, margin, asked.power))
    for kind in kinds:
        _search(kind, of, used, plans)


def _gap_kinds(of: Simulator, flags: ToFlag, power: float) -> list[_Kind]:
    limits = flags.null.limits

    def make(up: bool) -> _Kind:
        sign, limit = (1.0, max(limits)) if up else (-1.0, min(limits))
        return _Kind(
            name="above" if up else "below",
            begin=lambda g: gap_by_normal(of, flags, g, power, up),
            find=lambda g: smallest_flagged(of, flags, g, power, up),
            told=lambda x: limit + sign * x,
        )

    ways = [] if isinstance(flags.null, Below) else [True]
    ways += [] if isinstance(flags.null, Above) else [False]
    return [make(up) for up in ways]


def _rows_kind(
    name: str, of: Simulator, ask: Question, disparity: float | None, margin: float, power: float
) -> _Kind:
    needed = ask.needed(of.groups)
    far = needed + both_ways(ask, power)
    both = both_ways(ask, power) != float(ndtri(power))

    def present(times: float) -> float:
        # the score of the chance rises with the root of the rows
        one = _tail(needed - far / np.sqrt(times))
        return max(2 * one - 1, 0.0) if both else one

    def possible(g: int) -> bool:
        low, high = of.ends(g)
        return disparity is None or low <= disparity <= high

    def find(g: int) -> Reached:
        return times_larger(of, ask, g, disparity, power, margin) if possible(g) else NEVER

    def begin(g: int) -> Begin | None:
        return root_by_normal(of, ask, g, disparity, power, margin) if possible(g) else None

    return _Kind(
        name=name,
        begin=begin,
        find=find,
        told=lambda x: x * x,
        now=lambda g: chance(of, ask, g, disparity),
        present=present,
    )


def _simulated(groups: int) -> int:
    """How many of so many groups are simulated one by one."""
    if groups <= MOST_SEARCHED:
        return groups
    return SOME if groups <= MANY else FEWEST


def _search(kind: _Kind, of: Simulator, used: list[int], plans: list[_Plan]) -> None:
    """Search group by group; of many, in some, and the others in proportion to them."""
    begins = [kind.begin(g) for g in range(of.groups)]
    able = [g for g, begin in enumerate(begins) if begin is not None]
    chosen = able
    most = _simulated(of.groups)
    if len(able) > most:
        order = sorted(able, key=lambda g: begins[g].at)  # type: ignore[union-attr]
        place = np.linspace(0, len(order) - 1, most).round().astype(int)
        # groups that are alike are simulated once
        alike = {f"{begins[order[i]]}": order[i] for i in place.tolist()}
        chosen = [*alike.values()]
    done = {g: kind.find(g) for g in chosen}
    for g, begin in enumerate(begins):
        plan = plans[used[g]]
        found = done.get(g) or _between(kind, begin, begins, done)
        _note(plan, kind, found, g, simulated=g in done)


def _between(
    kind: _Kind, begin: Begin | None, begins: list[Begin | None], done: dict[int, Reached]
) -> Reached:
    """By normal theory, times what simulation found more or less in groups like this one."""
    if begin is None:
        return NEVER
    pairs = [
        (np.log(known.at), found.at / kind.told(known.at), found)
        for g, found in done.items()
        if (known := begins[g]) is not None and np.isfinite(found.at)
    ]
    if kind.name in ("above", "below"):
        zero = kind.told(0.0)
        pairs = [
            (where, (found.at - zero) / (kind.told(np.exp(where)) - zero), found)
            for where, _, found in pairs
        ]
    if not pairs:
        return NEVER
    pairs.sort(key=lambda pair: pair[0])
    where = np.log(begin.at)
    times = float(np.interp(where, [p[0] for p in pairs], [p[1] for p in pairs]))
    near = min(pairs, key=lambda pair: abs(pair[0] - where))[2]
    lost = [g for g, found in done.items() if not np.isfinite(found.at)]
    if any((known := begins[g]) is not None and begin.at >= known.at for g in lost):
        # a group that was simulated could show less with less, and it was not enough
        return NEVER
    if kind.name in ("above", "below"):
        if begin.at * times >= begin.end:
            return NEVER
        return Reached(at=kind.told(begin.at * times), chance=near.chance, slope=near.slope)
    return Reached(at=kind.told(begin.at) * times, chance=near.chance, slope=near.slope)


def _note(plan: _Plan, kind: _Kind, found: Reached, g: int, *, simulated: bool) -> None:
    setattr(plan, kind.name, found.at)
    known = bool(np.isfinite(found.at))
    if known:
        plan.error = max(plan.error, found.chance.error)
    if kind.name in ("above", "below"):
        if known:
            plan.gap_error = max(plan.gap_error or 0.0, found.error)
        return
    if known:
        plan.rows_error = max(plan.rows_error or 0.0, found.error / found.at)
    now = None
    if kind.now is not None and simulated:
        here = kind.now(g)
        now, plan.error = here.value, max(plan.error, here.error)
    elif kind.present is not None and known:
        now = kind.present(found.at)
    if kind.name == "to_flag":
        plan.chance = now
    else:
        plan.kept = now


# --- A budget, and more groups ---


@dataclass(frozen=True, slots=True, kw_only=True)
class _Split:
    labels: list[int | None]
    width: float
    alike: float


def _split(problem: Problem, core: Core, critical: Critical, asked: _Asked) -> _Split | None:
    if asked.budget is None or not core.answered.size:
        return None
    cells, target = problem.cells, problem.target
    odd = problem.claim.given or problem.tilted or cells.weighted or cells.clusters is not None
    if odd or cells.sides is not None or isinstance(target, Highest | Before | Custom):
        raise OptionError(
            "budget= splits rows over plain groups that are compared with everyone, everyone else, "
            "a reference or a number: no given=, weights, clusters, pairs, tilts, highest()."
        )
    used = core.answered
    if len(cells) * used.size > MOST_EFFECTS:
        raise OptionError(f"budget= cannot be split over {len(cells):,} cells; use fewer groups.")
    member = _members(problem)
    rows = np.maximum(cells.rows, 1.0)
    mean = cells.total / rows
    spread = np.maximum(cells.square / rows - mean**2, 0.0)
    if cells.zero_one:
        pulled = (cells.total + 0.5) / (cells.rows + 1)
        spread = pulled * (1 - pulled)
    spread = np.where(cells.rows > 0, spread, 0.0)
    effect = coefficients(cells.rows, member[:, used], target) ** 2 * spread
    if not bool(effect.sum() > 0):
        raise OptionError("No cell has any spread, so every split of the budget is as good.")
    best = best_split(effect, float(asked.budget))
    alike = asked.budget * cells.rows / cells.rows.sum()
    unit = 1.0
    if problem.relative:
        theta = np.nan_to_num(core.comparison.theta[used])
        unit = float(np.min(problem.target.scale * theta[theta > 0], initial=np.inf))
    wide = [critical.value * _widest(effect, x) / unit for x in (best, alike)]
    numbers = whole_rows(best, asked.budget)
    inside = (member * numbers[:, None]).sum(axis=0)
    answered = set(used.tolist())
    # a reference has no answer of its own, but rows it needs
    shown = [
        int(number) if g in answered or number else None for g, number in enumerate(inside.tolist())
    ]
    return _Split(labels=shown, width=wide[0], alike=wide[1])


def _widest(effect: FloatArray, rows: FloatArray) -> float:
    each = np.divide(effect, rows, out=np.zeros_like(effect), where=rows > 0)
    return float(np.sqrt(each.sum(axis=1).max()))


def _more(flags: ToFlag, asked: _Asked, number: int) -> tuple[MoreGroups, ...]:
    """How much further, or how many more rows, by normal theory."""
    if not number:
        return ()
    power, level, two = asked.power, asked.bounds.level, asked.bounds.side == "both"
    own = float(ndtri(power))
    within = float(ndtri((1 + power) / 2)) if two else own

    def far(groups: int) -> tuple[float, float]:
        return (
            flags.needed(groups) + own,
            max(independent_score(level, groups, two), 0.0) + within,
        )

    def times(groups: int) -> MoreGroups:
        here, there = far(number), far(groups)
        gap, show = there[0] / here[0], there[1] / here[1]
        return MoreGroups(groups=groups, gap=gap, rows_to_flag=gap**2, rows_to_show=show**2)

    chosen = asked.more if asked.more is not None else (number, 4 * number, 9 * number)
    return tuple(times(number + one) for one in chosen)


# --- Rows and words ---


def _row(
    fields: Mapping[str, object],
    plan: _Plan,
    asked: _Asked,
    note: str,
    rows: float,
    labels: int | None,
    reachable: float | None,
) -> PlannedGroup:
    return PlannedGroup(
        **fields,  # type: ignore[arg-type]
        above=_known(plan.above),
        below=_known(plan.below),
        error=_known(plan.gap_error),
        reachable=reachable,
        chance=_known(plan.chance),
        rows_to_flag=_times(plan.to_flag, rows),
        kept=_known(plan.kept),
        rows_to_show=_times(plan.to_show, rows),
        rows_error=_known(plan.rows_error),
        labels=labels,
        note=note or _never(plan, asked),
    )


def _known(value: float | None) -> float | None:
    return None if value is None else finite(value)


def _times(times: float | None, rows: float) -> int | None:
    return None if times is None or not np.isfinite(times) else max(round(times * rows), 1)


def _whole_table(times: Sequence[float | None], rows: float) -> int | None:
    """The table that suffices for every group for which any does."""
    known = [x for x in times if x is not None and np.isfinite(x)]
    return round(max(known) * rows) if known else None


def _never(plan: _Plan, asked: _Asked) -> str:
    said = []
    for name, words in (("above", "above"), ("below", "below")):
        value = getattr(plan, name)
        if value is not None and not np.isfinite(value):
            said.append(f"no disparity {words} the limit is flagged with this power")
    if plan.to_flag is not None and not np.isfinite(plan.to_flag):
        said.append("the stated disparity is impossible here, or takes too large a table")
    if asked.bounds.tolerance is not None and not np.isfinite(plan.to_show or np.nan):
        said.append("no table shows the tolerance to be kept")
    return "; ".join(said)


def _guarantee(asked: _Asked, counted: bool, error: float) -> str:
    how = "by simulation of the audit itself" if counted else "by normal scores"
    return (
        f"Chances are worked out {how}, with a Monte-Carlo error of at most "
        f"{percent(error, 2).replace(' %', ' points')}; flags have a rate of false ones of "
        f"{level_text(asked.flags.fdr)}, bounds {level_text(asked.bounds.level)} confidence"
    )


def _assumptions(
    problem: Problem, asked: _Asked, of: Simulator | None, number: int
) -> tuple[str, ...]:
    noun = problem.noun
    said = [
        *problem.assumptions,
        f"in every simulated table one {noun} has a disparity and all others are alike; if others "
        "differ as well, flags come more easily",
        "all groups grow by the same factor where rows are to be added",
    ]
    if isinstance(of, CountSimulator):
        said.append(f"all who have no disparity have a rate of {percent(of.rate)}")
    else:
        said.append(
            "standard errors are those of these rows, and fall with the root of their number"
        )
    if number > MOST_SEARCHED:
        said.append(
            f"of {number:,} {noun}s {_simulated(number)} of all sizes are simulated, and the "
            "others are set in proportion to them"
        )
    return tuple(said)
