"""`flag`: which groups differ, with control over how many flags are false."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise._codec import to_plain
from equipoise._rng import Rng, Seed, seed_of
from equipoise._validate import fraction, known_keywords, known_name, modest, whole
from equipoise.audits._bench import (
    Bench,
    check_method,
    finite,
    group_fields,
    method_target,
    set_up,
    status_note,
)
from equipoise.audits._likelihood import WRONG
from equipoise.audits._progress import Progress, progress_bar
from equipoise.audits._provenance import provenance_of
from equipoise.audits._testing import Control, Test, Tested, adjust, p_values
from equipoise.audits._together import jointly
from equipoise.audits.methods import (
    Bootstrap,
    BootstrapT,
    Euclidean,
    Likelihood,
    UnderNull,
    as_method,
)
from equipoise.cells.tallied import Tallied
from equipoise.claims import Claim, Together, as_claim
from equipoise.claims import target as targets
from equipoise.errors import OptionError
from equipoise.findings.flags import FlaggedGroup, Flags
from equipoise.findings.joint import Joint
from equipoise.findings.words import difference, level_text, unsigned
from equipoise.methods import bootstrap, nulls
from equipoise.methods.arrays import BoolArray, FloatArray
from equipoise.trail import Trail

_CONTROLS = {
    "bh": "false discovery rate (Benjamini–Hochberg)",
    "by": "false discovery rate under any dependence (Benjamini–Yekutieli)",
    "holm": "familywise error (Holm)",
    "max-t": "familywise error (step-down maxima)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagOptions:
    """Everything about a flagging audit but the data and the claim."""

    above: float | None
    below: float | None
    outside: tuple[float, float] | None
    fdr: float
    control: Control
    method: Any
    min_rows: int | None
    resamples: int | None

    def __post_init__(self) -> None:
        fraction("fdr", self.fdr)
        known_name("control", self.control, tuple(_CONTROLS))
        if sum(x is not None for x in (self.above, self.below, self.outside)) > 1:
            raise OptionError("Pass one of above=, below= and outside=.")
        if self.min_rows is not None:
            whole("min_rows", self.min_rows)


@known_keywords
def flag(
    trail: Trail | Tallied,
    claim: Claim | Together,
    *,
    above: float | None = None,
    below: float | None = None,
    outside: tuple[float, float] | None = None,
    fdr: float = 0.10,
    control: Control = "bh",
    method: Any = None,
    min_rows: int | None = None,
    resamples: int | None = None,
    rng: Rng = None,
    progress: Progress = None,
) -> Flags | Joint:
    """Flag the groups whose disparity lies above, below or outside a limit.

    Parameters
    ----------
    trail, claim
        The audit trail, or its counts from `tally`, and the question.
    above, below, outside
        What to flag: disparities above a limit, below one, or outside a range. ``outside=(0, 0)``
        flags any difference. With none given, that is what is asked. For a ratio claim limits are
        ratios: ``below=0.8`` flags groups under four fifths of the target.
    fdr
        The rate of false flags that is controlled.
    control
        ``"bh"`` (false discovery rate; the default), ``"by"`` (under any dependence), ``"holm"`` or
        ``"max-t"`` (chance of any false flag at all).
    method
        How p-values are computed, as a value or by name. The default takes the spread under the
        null, which is right in groups of any size: `UnderNull` for 0/1 metrics, `BootstrapT` for
        others. `Bootstrap` is the published form, whose p-values are too small in
        small groups; `Likelihood` and `Euclidean` are the empirical likelihoods.
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
    if isinstance(claim, Together):
        same = seed_of(rng).number if rng is None else rng
        return jointly(
            claim,
            lambda part, error: flag(
                trail,
                part,
                above=above,
                below=below,
                outside=outside,
                fdr=error,
                control=control,
                method=method,
                min_rows=min_rows,
                resamples=resamples,
                rng=same,
                progress=progress,
            ),
            fraction("fdr", fdr),
            f"The stated rate of false flags, {level_text(fdr)}, covers all claims together",
        )
    options = FlagOptions(
        above=above,
        below=below,
        outside=outside,
        fdr=fdr,
        control=control,
        method=method,
        min_rows=min_rows,
        resamples=resamples,
    )
    seed = seed_of(rng)
    return flag_bench(set_up(trail, as_claim(claim)), options, seed, progress)


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
        control=_CONTROLS[options.control],
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


_TILTABLE = {"score": UnderNull, "bootstrap-t": BootstrapT, "bootstrap": Bootstrap}


def _method(bench: Bench, options: FlagOptions) -> Test:
    counted = bench.moments.binary and bench.cells.clusters is None
    known = not isinstance(bench.claim.target, targets.Custom)
    default = UnderNull() if counted and known else BootstrapT()
    allowed = (Bootstrap, UnderNull, BootstrapT, Likelihood, Euclidean)
    chosen: Test = as_method(default if options.method is None else options.method, allowed, "flag")
    check_method(bench, chosen, _TILTABLE)
    if isinstance(chosen, UnderNull) and not (counted and known):
        raise OptionError(
            "Tests under the null need a 0/1 metric without weights or clusters and a target that "
            "is not custom. Use method='bootstrap-t'."
        )
    if options.resamples is not None:
        if isinstance(chosen, UnderNull | Likelihood | Euclidean):
            raise OptionError("resamples= has no meaning here: this method does not resample.")
        chosen = dataclasses.replace(chosen, resamples=options.resamples)
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
    """μ / θ against c is μ − cθ against zero, which needs no division."""
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
    return tuple(
        FlaggedGroup(
            **fields,
            p=finite(p[i]),
            p_adjusted=finite(adjusted[i]),
            flagged=bool(flagged[i]),
            note=_note(bench, i, bool(np.isnan(tested.p[i])), bool(small[i]))
            or _out_of_reach(reach, i, threshold),
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
    unit = "clusters" if bench.cells.clusters is not None else "rows"
    said = [
        f"{unit} are independent draws from the population audited",
        f"the collection of {bench.noun}s was fixed before looking at the outcomes",
    ]
    if control == "bh":
        estimates = f"the {bench.noun}s' estimates"
        said.append(f"{estimates} are positively dependent or nearly so (use 'by' if not)")
    return tuple(said)
