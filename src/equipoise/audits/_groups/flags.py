"""Flags on the groups of a bench: question, tests, adjustment, and the finding in words."""

import dataclasses
from typing import Any

import numpy as np

from equipoise._codec import to_plain
from equipoise._rng import Seed
from equipoise._validate import modest
from equipoise.audits._fields import finite, provenance_of
from equipoise.audits._groups.bench import (
    Bench,
    check_method,
    group_fields,
    method_target,
    status_note,
)
from equipoise.audits._groups.likelihood import WRONG
from equipoise.audits._groups.options import CONTROLS, FlagOptions
from equipoise.audits._groups.testing import Control, Test, Tested, adjust, p_values
from equipoise.audits._progress import Progress, progress_bar
from equipoise.audits.methods import (
    Bootstrap,
    BootstrapT,
    Euclidean,
    Likelihood,
    UnderNull,
    as_method,
    with_resamples,
)
from equipoise.claims import target as targets
from equipoise.errors import OptionError
from equipoise.findings.flags import FlaggedGroup, Flags
from equipoise.findings.words import difference, level_text, unsigned
from equipoise.methods import bootstrap, nulls
from equipoise.methods.arrays import BoolArray, FloatArray

_TILTABLE = {"score": UnderNull, "bootstrap-t": BootstrapT, "bootstrap": Bootstrap}


def flag_bench(bench: Bench, options: FlagOptions, seed: Seed, progress: Progress) -> Flags:
    """Flag the groups of a bench."""
    chosen = _method(bench, options)
    null, words, tested_bench = _question(bench, options)
    with progress_bar(progress, getattr(chosen, "resamples", 1), "flag") as tell:
        tested = p_values(tested_bench, chosen, null, seed, tell)
        tested = _only_compared(tested_bench, chosen, tested)
        small = _too_small(bench, chosen, options.min_rows)
        p = np.where(small, np.nan, tested.p)
        adjusted = adjust(tested_bench, p, null, options.control, chosen, seed)
    return Flags(
        claim=bench.claim.quoted(),
        question=bench.claim.words,
        guarantee=_guarantee(options, chosen, bench),
        assumptions=_assumptions(bench, options.control),
        provenance=provenance_of(bench.cells, seed.number),
        rows=_rows(bench, tested, p, adjusted, options, small),
        metric=bench.claim.metric.words,
        against=bench.claim.target.words,
        share=bench.cells.zero_one,
        relative=bench.relative,
        null=words,
        rate=options.fdr,
        control=CONTROLS[options.control],
        method=to_plain(chosen),
        engine=tested.engine,
    )


def _only_compared(bench: Bench, method: Test, tested: Tested) -> Tested:
    """No p-value without rows, or without anybody else to compare with, by any method."""
    alone = [bootstrap.Status[name] for name in ("EMPTY", "NO_TARGET", "IDENTICAL")]
    exact = isinstance(method, UnderNull) and method.test in ("auto", "mid-p", "exact")
    # the bootstrap-t has a minimum of its own
    careful = isinstance(method, BootstrapT) or (exact and not bench.tilted)
    if not careful:
        # the approximation of a test that does not count is worth nothing on a single row
        alone.append(bootstrap.Status.SINGLE)
    without = np.isin(bench.estimates.status, alone)
    return dataclasses.replace(tested, p=np.where(without, np.nan, tested.p))


def _method(bench: Bench, options: FlagOptions) -> Test:
    counted = bench.moments.binary and bench.cells.clusters is None
    known = not isinstance(bench.claim.target, targets.Custom)
    default = UnderNull() if counted and known else BootstrapT()
    allowed = (Bootstrap, UnderNull, BootstrapT, Likelihood, Euclidean)
    asked = as_method(default if options.method is None else options.method, allowed, "flag")
    chosen: Test = with_resamples(asked, options.resamples)
    check_method(bench, chosen, _TILTABLE)
    if isinstance(chosen, UnderNull) and not (counted and known):
        raise OptionError(
            "Tests under the null need a 0/1 metric without weights or clusters and a target that "
            "is not custom. Use method='bootstrap-t'."
        )
    return chosen


def _question(bench: Bench, options: FlagOptions) -> tuple[nulls.Null, str, Bench]:
    """The null in numbers and in words, and the bench on which it is tested."""
    above, below, outside = options.above, options.below, options.outside
    if bench.relative:
        return _ratio_question(bench, above, below, outside)
    share = bench.cells.zero_one
    if above is not None:
        limit = modest("above", above)
        return nulls.Above(limit=limit), _limit_words(limit, "above", "below", share), bench
    if below is not None:
        limit = modest("below", below)
        return nulls.Below(limit=limit), _limit_words(-limit, "below", "above", share), bench
    low, high = _range(outside)
    words = (
        "different from"
        if low == high == 0
        else f"outside {difference(low, share)} to {difference(high, share)} of"
    )
    return nulls.Outside(low=low, high=high), words, bench


def _limit_words(limit: float, way: str, other: str, share: bool) -> str:
    """How far beyond the target a flagged group lies; a limit on the other side allows for less."""
    if limit == 0:
        return way
    if limit > 0:
        return f"more than {unsigned(limit, share)} {way}"
    return f"{way}, or less than {unsigned(-limit, share)} {other},"


def _ratio_question(
    bench: Bench, above: float | None, below: float | None, outside: Any
) -> tuple[nulls.Null, str, Bench]:
    """μ / θ against c is μ − cθ against zero, which needs no division (Fieller)."""
    if outside is not None or (above is None and below is None):
        raise OptionError("For a ratio pass above= or below=, such as below=0.8.")
    factor = modest("above or below", above if above is not None else below)
    if factor <= 0:
        raise OptionError(f"The limit of a ratio must be above 0; got {factor!r}.")
    target = bench.claim.target * factor
    scaled = method_target(target, bench.cells, bench.influence)
    estimates = bootstrap.estimate_gaps(bench.moments, scaled, bench.collection.sums)
    claim = dataclasses.replace(bench.claim, target=target)
    moved = dataclasses.replace(bench, claim=claim, target=scaled, estimates=estimates)
    if above is not None:
        return nulls.Above(limit=0.0), f"more than {factor:g} times", moved
    return nulls.Below(limit=0.0), f"less than {factor:g} times", moved


def _range(outside: tuple[float, float] | None) -> tuple[float, float]:
    if outside is None:
        return 0.0, 0.0
    if not isinstance(outside, tuple | list) or len(outside) != 2:
        raise OptionError(f"outside must be a pair (low, high); got {outside!r}.")
    low, high = modest("outside", outside[0]), modest("outside", outside[1])
    if low > high:
        raise OptionError(f"outside needs low ≤ high; got {outside!r}.")
    return low, high


def _too_small(bench: Bench, method: Any, min_rows: int | None) -> BoolArray:
    least = min_rows if min_rows is not None else getattr(method, "min_rows", 1)
    if min_rows is None and isinstance(method, Likelihood) and bench.moments.binary:
        # counts have an answer at any size
        least = 1
    return np.asarray(bench.estimates.rows < least)


def _rows(
    bench: Bench,
    tested: Tested,
    p: FloatArray,
    adjusted: FloatArray,
    options: FlagOptions,
    small: BoolArray,
) -> tuple[FlaggedGroup, ...]:
    flagged = np.nan_to_num(adjusted, nan=1.0) <= options.fdr
    tested_groups = max(int((~np.isnan(p)).sum()), 1)
    threshold = options.fdr * _step(options.control, int(flagged.sum()), tested_groups)
    reach = None if tested.reach is None else tested.reach(threshold)
    # Holm's step is a guide to the maxima of dependent groups; beyond the rate itself none can go.
    never = options.fdr if options.control == "max-t" else threshold
    return tuple(
        FlaggedGroup(
            **fields,
            p=finite(p[i]),
            p_adjusted=finite(adjusted[i]),
            flagged=bool(flagged[i]),
            note=_note(bench, i, bool(np.isnan(tested.p[i])), bool(small[i]))
            or _out_of_reach(reach, i, never),
            reachable=None if bench.relative else _reachable(reach, i),
        )
        for i, fields in enumerate(group_fields(bench))
    )


def _step(control: Control, flagged: int, tested: int) -> float:
    """Share of the rate that one more group would have to reach, given those flagged."""
    if control == "bh":
        return min(flagged + 1, tested) / tested
    if control == "by":
        every = float(np.sum(1 / np.arange(1, tested + 1)))
        return min(flagged + 1, tested) / (tested * every)
    # Holm's next step; step-down maxima of dependent groups may reach a little further.
    return 1 / max(tested - flagged, 1)


def _note(bench: Bench, i: int, untested: bool, small: bool) -> str:
    if untested:
        said = "too few clusters" if bench.cells.clusters is not None else "no spread to test with"
        return status_note(bench, i) or said
    return "fewer rows than the minimum" if small else ""


def _out_of_reach(reach: nulls.Reachable | None, i: int, threshold: float) -> str:
    if reach is None or not reach.smallest_p[i] > threshold:
        return ""
    return "too small to be flagged whatever the outcome"


def _reachable(reach: nulls.Reachable | None, i: int) -> float | None:
    if reach is None:
        return None
    ends = reach.disparity_above[i], reach.disparity_below[i]
    known = [abs(float(end)) for end in ends if np.isfinite(end)]
    return min(known) if known else None


def _guarantee(options: FlagOptions, method: Test, bench: Bench) -> str:
    rate = level_text(options.fdr)
    number = len(bench.collection)
    groups = f"all {number:,} {bench.noun}s" if number > 1 else f"the one {bench.noun}"
    if options.control in ("bh", "by"):
        first = f"On average at most {rate} of the flags are false, over {groups}"
    else:
        first = f"The chance of any false flag is at most {rate}, over {groups}"
    if isinstance(method, Bootstrap):
        small = f"in small {bench.noun}s these p-values are too small"
        return f"{first}; {small}, and this does not hold"
    if isinstance(method, Likelihood) and method.target == "plug-in":
        return f"{first}; {WRONG}, and this does not hold"
    return first


def _assumptions(bench: Bench, control: Control) -> tuple[str, ...]:
    if control != "bh":
        return bench.assumptions
    estimates = f"the {bench.noun}s' estimates"
    # Benjamini and Yekutieli (2001): BH holds under positive regression dependence
    depend = f"{estimates} are positively dependent or nearly so (use 'by' if not)"
    return (*bench.assumptions, depend)
