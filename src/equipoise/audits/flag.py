"""What groups of given sizes could show: the one place that every verb asks.

`flag`: which groups differ, with control over how many flags are false.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, Unpack, overload

import numpy as np

from equipoise._codec import to_plain
from equipoise._validate import Rng, Seed, known_keywords, modest, seed_of
from equipoise.audits._common import (
    Progress,
    RoleKeywords,
    TrailLike,
    answerable,
    as_source,
    below_highest,
    finite,
    jointly,
    possible_limit,
    possible_range,
    progress_bar,
    sensible_limit,
    stepped_down,
)
from equipoise.audits._groups.given import exchangeable
from equipoise.audits._groups.likelihood import WRONG, audit_of, likelihood_p_values
from equipoise.audits._groups.problem import (
    CONTROLS,
    Control,
    FlagOptions,
    Population,
    Problem,
    about,
    adjusted_groups,
    changed_groups,
    check_method,
    group_fields,
    method_target,
    notes_of,
    published_notes,
    set_up,
    unknown_beside,
)
from equipoise.audits.methods import (
    Bootstrap,
    Euclidean,
    Likelihood,
    Pivotal,
    as_method,
    exactness,
    with_resamples,
)
from equipoise.cells.tally import Tallied
from equipoise.claims import Claim, Ratio, Together, as_claim
from equipoise.claims.claim import Gap
from equipoise.errors import OptionError
from equipoise.findings.flags import FlaggedGroup, Flags
from equipoise.findings.joint_test import Joint
from equipoise.findings.words import difference, level_text, unsigned
from equipoise.methods.hypotheses import (
    Above,
    Below,
    Null,
    Outside,
    Reachable,
    Tails,
    benjamini_hochberg,
    benjamini_yekutieli,
    dealt_tails,
    e_benjamini_hochberg,
    holm,
    smallest_reachable,
)
from equipoise.methods.inference.core import Core
from equipoise.methods.inference.counts import FlipPivot
from equipoise.methods.inference.strata import Adjusted, conditional_tails
from equipoise.methods.inference.student import LEAST_ROWS, independent_score
from equipoise.methods.numerics import BoolArray, FloatArray
from equipoise.methods.published.bootstrap import algorithm_4
from equipoise.methods.targets import Before, Constant, Custom, Highest, Status


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


def nearest_reach(reach: Reachable | None, i: int) -> float | None:
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


# --- Flags on the groups of a problem: question, tests, adjustment, and the finding in words ---

Test = Pivotal | Bootstrap | Likelihood | Euclidean
Adjust = Callable[[FloatArray], FloatArray]

_ADJUST: dict[str, Adjust] = {
    "bh": benjamini_hochberg,
    "by": benjamini_yekutieli,
    "e-bh": e_benjamini_hochberg,
    "holm": holm,
}


def flag_groups(problem: Problem, options: FlagOptions, seed: Seed, progress: Progress) -> Flags:
    """Flag the groups of a problem."""
    chosen = _method(problem, options)
    null, words = question_of(problem, options)
    # few pairs of partners answer one question only
    signs = isinstance(chosen, Pivotal) and null == Outside(low=0.0, high=0.0)
    every = exchangeable(problem) if signs and problem.cells.sides is not None else problem.core
    core, score = _answered(every, options, chosen, null, seed)
    p = _p_values(problem, core, chosen, null, options, seed, progress)
    small = _too_small(problem, chosen, options.min_rows)
    p = np.where(small, np.nan, p)
    if options.control == "max-t":
        adjusted = stepped_down(core, p, null, _draws(chosen), seed)
    else:
        adjusted = _ADJUST[options.control](p)
    if isinstance(chosen, Pivotal):
        notes = notes_of(core, score, problem.claim.metric, problem.noun)
    else:
        notes = list(published_notes(problem, ~np.isnan(p) | small, chosen))
    notes = _notes(notes, p, small)
    return Flags(
        **about(problem, seed.number),
        guarantee=_guarantee(options, chosen, problem),
        assumptions=(
            *_assumptions(problem, options, chosen),
            *([_SIGNS] if isinstance(core.pivot, FlipPivot) else []),
        ),
        rows=_rows(problem, null, p, adjusted, options, notes),
        share=problem.share,
        relative=problem.relative,
        null=words,
        rate=options.fdr,
        control=CONTROLS[options.control],
        method=to_plain(chosen),
        engine="no resampling",
        adjusted=adjusted_groups(problem),
        changed=changed_groups(problem),
        **unknown_beside(problem),
    )


def _answered(
    every: Core, options: FlagOptions, chosen: Test, null: Null, seed: Seed
) -> tuple[Core, float]:
    """The core without groups that are too skewed ever to be flagged, and the score they miss."""
    two_sided = isinstance(null, Outside)
    if options.control == "max-t":
        draws, side = _draws(chosen), "both" if two_sided else "lower"
        core, _, score = answerable(every, 1 - options.fdr, side, draws, seed, False)
        return core, score
    # with all others flagged a group needs no more than the rate itself
    score = independent_score(1 - options.fdr, 1, two_sided)
    return every.guarded(score), score


def _draws(chosen: Test) -> int | None:
    return chosen.resamples if isinstance(chosen, Pivotal) else None


def _method(problem: Problem, options: FlagOptions) -> Test:
    allowed = (Pivotal, Bootstrap, Likelihood, Euclidean)
    asked = as_method(Pivotal() if options.method is None else options.method, allowed, "flag")
    chosen = with_resamples(asked, options.resamples)
    assert isinstance(chosen, allowed)
    check_method(problem, chosen, {"pivotal": Pivotal})
    if options.dealt and not isinstance(chosen, Pivotal):
        raise OptionError("population='these rows' has a test of its own; leave method= out.")
    if options.dealt and (problem.claim.unknown != "group" or problem.trust):
        raise OptionError(
            "population='these rows' needs people and labels that are known: no unknown=, "
            "unlabelled=, proxies or cheap labels."
        )
    return chosen


def limits_in(
    claim: Claim, options: FlagOptions
) -> tuple[float | None, float | None, tuple[float, float] | None]:
    """The limits above, below and outside which groups are flagged, if the claim can have them."""
    above = None if options.above is None else modest("above", options.above)
    below = None if options.below is None else modest("below", options.below)
    outside = None if options.outside is None else _range(options.outside)
    if above is not None:
        sensible_limit("above", above, claim, upward=True)
    if below is not None:
        sensible_limit("below", below, claim, upward=False)
    even = 1.0 if isinstance(claim, Ratio) else 0.0
    if below_highest(claim) and below is None:
        # only the lower end of a range can be passed; the upper one would flag the highest itself
        below, outside = min((outside or (even,))[0], even), None
    # the upper end first, which is the one that people name
    for limit in (above, below, *reversed(outside or ())):
        if limit is not None and limit != even:
            possible_limit("limit", limit, claim, possible_range(claim))
    return above, below, outside


def question_of(problem: Problem, options: FlagOptions) -> tuple[Null, str]:
    """The null in numbers and in words."""
    above, below, outside = limits_in(problem.claim, options)
    if problem.relative:
        return _ratio_question(above, below, outside)
    share = problem.share
    if above is not None:
        return Above(limit=above), _limit_words(above, "above", "below", share)
    if below is not None:
        return Below(limit=below), _limit_words(-below, "below", "above", share)
    low, high = outside or (0.0, 0.0)
    words = (
        "different from"
        if low == high == 0
        else f"outside {difference(low, share)} to {difference(high, share)} of"
    )
    return Outside(low=low, high=high), words


def _limit_words(limit: float, way: str, other: str, share: bool) -> str:
    """How far beyond the target a flagged group lies; a limit on the other side allows for less."""
    if limit == 0:
        return way
    if limit > 0:
        return f"more than {unsigned(limit, share)} {way}"
    return f"{way}, or less than {unsigned(-limit, share)} {other},"


def _ratio_question(
    above: float | None, below: float | None, outside: tuple[float, float] | None
) -> tuple[Null, str]:
    if outside is not None:
        low, high = outside
        if low <= 0:
            raise OptionError(f"The limits of a ratio must be above 0; got {outside!r}.")
        return Outside(low=low, high=high), f"outside {low:g} to {high:g} times"
    if above is None and below is None:
        return Outside(low=1.0, high=1.0), "different from"
    factor = float(above if above is not None else below or 0.0)
    if factor <= 0:
        raise OptionError(f"The limit of a ratio must be above 0; got {factor!r}.")
    if above is not None:
        return Above(limit=factor), f"more than {factor:g} times"
    return Below(limit=factor), f"less than {factor:g} times"


def _range(outside: object) -> tuple[float, float]:
    if not isinstance(outside, tuple | list) or len(outside) != 2:
        raise OptionError(f"outside must be a pair (low, high); got {outside!r}.")
    low, high = modest("outside", outside[0]), modest("outside", outside[1])
    if low > high:
        raise OptionError(f"outside needs low ≤ high; got {outside!r}.")
    return low, high


# --- p-values ------------------------------------------------------------------------------------


def _p_values(
    problem: Problem,
    core: Core,
    method: Test,
    null: Null,
    options: FlagOptions,
    seed: Seed,
    progress: Progress,
) -> FloatArray:
    """One p-value per group, NaN where it could not be tested."""
    if isinstance(method, Pivotal):
        tails = _dealt(problem, core, null) if options.dealt else core.tails
        return null.p_value(tails)
    # the published tests know gaps only: μ/θ against c is μ − cθ against zero (Fieller)
    moved, at_zero = (_as_gap(problem, null)) if problem.relative else (problem, null)
    if isinstance(method, Likelihood | Euclidean):
        p = likelihood_p_values(moved, method, at_zero)
    else:
        with progress_bar(progress, method.resamples, "flag") as tell:
            audit = audit_of(moved, method.engine, method.resamples, seed, tell)
            p = algorithm_4(audit, at_zero).p
    # the approximation of a test that does not count is worth nothing on a single row
    alone = (Status.EMPTY, Status.NO_TARGET, Status.IDENTICAL, Status.SINGLE)
    return np.where(np.isin(moved.estimates.status, alone), np.nan, p)


def _as_gap(problem: Problem, null: Null) -> tuple[Problem, Null]:
    if isinstance(null, Outside):
        raise OptionError("For a ratio this method needs above= or below=, such as below=0.8.")
    target = problem.claim.target * null.limit
    claim = Gap(metric=problem.claim.metric, across=problem.claim.across, target=target)
    scaled = method_target(target, problem.cells, problem.influence)
    moved = dataclasses.replace(problem, claim=claim, target=scaled)
    return moved, Above(limit=0.0) if isinstance(null, Above) else Below(limit=0.0)


def _dealt(problem: Problem, core: Core, null: Null) -> Callable[[float], Tails]:
    """Tails given all margins, for the one null they are about: no difference at all."""
    even = 1.0 if problem.relative else 0.0
    target, found = problem.target, core.comparison
    if not core.counted or problem.cells.weighted or problem.cells.clusters is not None:
        raise OptionError(
            "population='these rows' needs a 0/1 metric without weights and clusters."
        )
    if not target.estimated or target.scale != 1.0:
        raise OptionError(
            "population='these rows' compares with rows: everyone, everyone else or a reference "
            "group, not with a number or a scaled target."
        )
    if any(limit != even for limit in null.limits):
        raise OptionError(
            "population='these rows' asks whether outcomes could have been dealt without regard "
            f"to the group, so the limit can only be {even:g}."
        )
    if problem.claim.given:
        assert isinstance(found, Adjusted)
        up, down = conditional_tails(found.strata)
        able = core.status == Status.OK
        return lambda limit: (np.where(able, up, np.nan), np.where(able, down, np.nan))
    both = [a and b for a, b in zip(target.group, target.against, strict=True)]
    if len(both) == 3 and bool((found.parts.rows[1] > 0).any()):
        overlap = (found.parts.rows[1] > 0) & (core.status == Status.OK)
        if bool(overlap.any()):
            raise OptionError(
                "population='these rows' needs a reference that shares no row with the groups."
            )
    rows, ones = found.parts.rows, found.parts.total
    up, down = dealt_tails((found.in_group * ones).sum(0), found.rows, ones.sum(0), rows.sum(0))
    able = core.status == Status.OK
    return lambda limit: (np.where(able, up, np.nan), np.where(able, down, np.nan))


def _too_small(problem: Problem, method: Test, min_rows: int | None) -> BoolArray:
    least = min_rows if min_rows is not None else getattr(method, "min_rows", 1)
    if min_rows is None and isinstance(method, Likelihood) and problem.moments.binary:
        # counts have an answer at any size
        least = 1
    return np.asarray(problem.core.comparison.rows < least)


# --- rows ----------------------------------------------------------------------------------------


def _notes(notes: list[str], p: FloatArray, small: BoolArray) -> list[str]:
    """Why a group was not tested."""
    return [
        "fewer rows than the minimum"
        if few and not note
        else note or ("no spread to test with" if np.isnan(each) else "")
        for note, each, few in zip(notes, p.tolist(), small.tolist(), strict=True)
    ]


def _rows(
    problem: Problem,
    null: Null,
    p: FloatArray,
    adjusted: FloatArray,
    options: FlagOptions,
    notes: list[str],
) -> tuple[FlaggedGroup, ...]:
    # a p-value of exactly the rate must count as such, whatever the last digit is
    flagged = np.nan_to_num(adjusted, nan=1.0) <= options.fdr * (1 + 1e-9)
    tested = max(int((~np.isnan(p)).sum()), 1)
    threshold = options.fdr * next_step(options.control, int(flagged.sum()), tested)
    reach = could_show(problem, null, threshold)
    # Holm's step is a guide to the maxima of dependent groups; beyond the rate itself none can go.
    never = options.fdr if options.control == "max-t" else threshold
    return tuple(
        FlaggedGroup(
            **fields,
            p=finite(p[i]),
            p_adjusted=finite(adjusted[i]),
            flagged=bool(flagged[i]),
            note=notes[i] or _out_of_reach(reach, i, never),
            reachable=None if problem.relative else nearest_reach(reach, i),
        )
        for i, fields in enumerate(group_fields(problem))
    )


def next_step(control: str, flagged: int, tested: int) -> float:
    """Share of the rate that one more group would have to reach, given those flagged."""
    if control == "bh":
        return min(flagged + 1, tested) / tested
    if control in ("by", "e-bh"):
        every = float(np.sum(1 / np.arange(1, tested + 1)))
        return min(flagged + 1, tested) / (tested * every)
    # Holm's next step; step-down maxima of dependent groups may reach a little further.
    return 1 / max(tested - flagged, 1)


def _out_of_reach(reach: Reachable | None, i: int, threshold: float) -> str:
    if reach is None or not reach.smallest_p[i] > threshold:
        return ""
    return "too small to be flagged whatever the outcome"


# --- words ---------------------------------------------------------------------------------------


def _guarantee(options: FlagOptions, method: Test, problem: Problem) -> str:
    rate = level_text(options.fdr)
    number = len(problem.collection)
    groups = f"all {number:,} {problem.noun}s" if number > 1 else f"the one {problem.noun}"
    if options.control in ("bh", "by", "e-bh"):
        first = f"On average at most {rate} of the flags are false, over {groups}"
    else:
        first = f"The chance of any false flag is at most {rate}, over {groups}"
    if isinstance(method, Bootstrap):
        small = f"in small {problem.noun}s these p-values are too small"
        return f"{first}; {small}, and this does not hold"
    if isinstance(method, Likelihood) and method.target == "plug-in":
        return f"{first}; {WRONG}, and this does not hold"
    return first


_SIGNS = (
    f"fewer than {LEAST_ROWS} pairs are judged by all signs that their differences could have: "
    "exact where partners are exchangeable, so that a flag says that they are not treated alike, "
    "and nothing about the mean"
)


def _assumptions(problem: Problem, options: FlagOptions, method: Test) -> tuple[str, ...]:
    if options.dealt:
        return (
            "speaks of exactly these rows: outcomes dealt without regard to the group, all margins "
            "as they are; exact",
            problem.assumptions[1],
            *_dependence(problem, options),
        )
    trust = f"p-values {exactness(problem, many=False)}" if isinstance(method, Pivotal) else ""
    return (*problem.assumptions, *([trust] if trust else []), *_dependence(problem, options))


def _dependence(problem: Problem, options: FlagOptions) -> list[str]:
    if options.control != "bh":
        return []
    # Benjamini and Yekutieli (2001): BH holds under positive regression dependence
    return [
        f"false discovery rate proved if the {problem.noun}s' estimates are positively dependent, "
        f"measured to hold for {problem.noun}s against everyone ('by' and 'e-bh' hold under any "
        "dependence)"
    ]


# --- `flag`: which groups differ, with control over how many flags are false ---

FlagMethod = (
    Literal["pivotal", "bootstrap", "bootstrap-unscaled"]
    | Literal["likelihood", "likelihood-plugin", "euclidean"]
    | Pivotal
    | Bootstrap
    | Likelihood
    | Euclidean
)


class _Options(RoleKeywords, total=False):
    """All options: none of them changes what kind of finding comes back."""

    above: float | None
    below: float | None
    outside: tuple[float, float] | None
    fdr: float
    control: Control
    population: Population
    method: FlagMethod | None
    min_rows: int | None
    resamples: int | None
    rng: Rng
    progress: Progress


@overload
def flag(trail: TrailLike | Tallied, claim: Claim, **options: Unpack[_Options]) -> Flags: ...
@overload
def flag(trail: TrailLike | Tallied, claim: Together, **options: Unpack[_Options]) -> Joint: ...
@overload
def flag(
    trail: TrailLike | Tallied, claim: Claim | Together, **options: Unpack[_Options]
) -> Flags | Joint: ...
@known_keywords
def flag(
    trail: TrailLike | Tallied,
    claim: Claim | Together,
    *,
    above: float | None = None,
    below: float | None = None,
    outside: tuple[float, float] | None = None,
    fdr: float = 0.10,
    control: Control = "bh",
    population: Population = "people like these",
    method: FlagMethod | None = None,
    min_rows: int | None = None,
    resamples: int | None = None,
    rng: Rng = None,
    progress: Progress = None,
    **roles: Unpack[RoleKeywords],
) -> Flags | Joint:
    """Flag the groups whose disparity lies above, below or outside a limit.

    Parameters
    ----------
    trail, claim
        The audit trail, or its counts from `tally`, and the question. A path or a table will do as
        well, with what its columns mean as further keywords: ``label="hired"``, as in `read`.
    above, below, outside
        What to flag: disparities above a limit, below one, or outside a range. ``outside=(0, 0)``
        flags any difference. With none given, that is what is asked. For a ratio claim limits are
        ratios: ``below=0.8`` flags groups under four fifths of the target.
    fdr
        The rate of false flags that is controlled.
    control
        ``"bh"`` (false discovery rate; the default), ``"by"`` and ``"e-bh"`` (the same under any
        dependence between groups), ``"holm"`` or ``"max-t"`` (chance of any false flag at all).
    population
        Whom the flags speak of. ``"people like these"``: the population of which the rows are a
        sample. ``"these rows"``: exactly the people in the table; a flag then says that their
        outcomes can hardly have been dealt without regard to the group (all margins given).
    method
        How p-values are computed, as a value or by name: `Pivotal` (the default), or as published
        `Bootstrap`, whose p-values are too small in small groups, `Likelihood` and `Euclidean`.
    min_rows
        Leave out groups with fewer rows; the default method needs no minimum.
    resamples, rng, progress
        As in `certify`.

    Examples
    --------
    >>> import equipoise as eq
    >>> claim = eq.gap(eq.false_positive_rate, across=eq.intersections("race", "sex", "age"))
    >>> flags = eq.flag(eq.datasets.compas(), claim, above=0.05, fdr=0.10)
    >>> flags.flagged[0].group
    'Less than 25'
    """
    options = FlagOptions(
        above=above,
        below=below,
        outside=outside,
        fdr=fdr,
        control=control,
        population=population,
        method=method,
        min_rows=min_rows,
        resamples=resamples,
    )
    source = as_source(trail, roles)
    if not isinstance(claim, Together):
        return flag_groups(set_up(source, as_claim(claim)), options, seed_of(rng), progress)

    def part(each: Claim, error: float, seed: Seed) -> Flags:
        return flag_groups(set_up(source, each), replace(options, fdr=error), seed, progress)

    promise = f"The stated rate of false flags, {level_text(fdr)}, covers all claims together"
    return jointly(claim, part, fdr, rng, promise)
