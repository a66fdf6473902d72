"""p-values of every group under a null, and their adjustment for all the groups."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import ndtri

from equipoise._rng import Seed
from equipoise.audits._groups.bench import Bench, audit_of, cluster_data
from equipoise.audits._groups.likelihood_tests import contrast_of, likelihood_p_values
from equipoise.audits.methods import Bootstrap, BootstrapT, Euclidean, Likelihood, UnderNull
from equipoise.claims import target as targets
from equipoise.errors import OptionError
from equipoise.methods import bootstrap, nulls
from equipoise.methods.arrays import FloatArray
from equipoise.methods.multiplicity import (
    StepDown,
    benjamini_hochberg,
    benjamini_yekutieli,
    holm,
)

Control = Literal["bh", "by", "holm", "max-t"]
Test = Bootstrap | UnderNull | BootstrapT | Likelihood | Euclidean

_ADJUST = {"bh": benjamini_hochberg, "by": benjamini_yekutieli, "holm": holm}
#: Resamples behind step-down maxima when the method itself does not resample.
_STEP_DOWN_DRAWS = 5000


@dataclass(frozen=True, slots=True)
class Tested:
    """p-values and how they came about."""

    p: FloatArray
    """One p-value per group, NaN where it could not be tested."""
    engine: str
    """How resamples were drawn, or that none were needed."""
    reach: Callable[[float], nulls.Reachable] | None = None
    """What each group could have shown at most, for a p-value that had to be reached."""


def p_values(
    bench: Bench,
    method: Test,
    null: nulls.Null,
    seed: Seed,
    tell: bootstrap.Progress,
) -> Tested:
    """p-values of every group by the method."""
    if isinstance(method, UnderNull) and bench.tilted:
        return _tilted(bench, method, null)
    if isinstance(method, UnderNull):
        return _under_null(bench, method, null)
    if isinstance(method, Likelihood | Euclidean):
        return Tested(likelihood_p_values(bench, method, null), "no resampling")
    if isinstance(method, BootstrapT) and bench.cells.clusters is not None:
        return _clustered(bench, null)
    engine = method.engine if isinstance(method, Bootstrap) else "exact"
    audit = audit_of(bench, engine, method.resamples, seed, tell)
    run = bootstrap.algorithm_4 if isinstance(method, Bootstrap) else bootstrap.bootstrap_t
    return Tested(run(audit, null).p, audit.engine.name)


def _clustered(bench: Bench, null: nulls.Null) -> Tested:
    found = bootstrap.cluster_t(
        cluster_data(bench),
        bench.moments,
        bench.estimates,
        bench.target,
        bench.collection.sums,
        null,
    )
    return Tested(found.p, "no resampling; clusters left out one at a time")


def _tilted(bench: Bench, method: UnderNull, null: nulls.Null) -> Tested:
    if method.test not in ("auto", "score"):
        raise OptionError(
            f"test={method.test!r} counts rows, and a tilt weighs them. Use method='score'."
        )
    found = bootstrap.score_p_values(
        bench.moments, bench.estimates, bench.target, bench.collection.sums, null
    )
    return Tested(found.p, "no resampling")


def _under_null(bench: Bench, method: UnderNull, null: nulls.Null) -> Tested:
    rows, ones, sums = bench.cells.rows, bench.cells.total, bench.collection.sums
    target = bench.claim.target
    if isinstance(target, targets.Constant):
        tails = _KNOWN[method.test]
        known = np.full(len(bench.collection), target.value * target.scale)
        if method.test == "exact" and isinstance(null, nulls.Outside):
            p = nulls.exact_outside(sums(ones), sums(rows), known, null.low, null.high)
        else:
            p = nulls.known_target(sums(ones), sums(rows), known, null, tails)
        return Tested(p, "no resampling", _reach(sums(rows), known, null, tails))
    if method.test in ("mid-p", "exact"):
        raise OptionError(
            f"test={method.test!r} needs a known target; this one is estimated. "
            "Use method='likelihood-ratio' or 'score', or leave it out."
        )
    contrast = contrast_of(bench)
    test = _ESTIMATED[method.test]
    # How far a group could go at most is worked out as if the target were known.
    theta = np.nan_to_num(bench.estimates.target)
    tails = nulls.mid_p if method.test == "auto" else nulls.likelihood
    reach = _reach(sums(rows), theta, null, tails)
    return Tested(test(contrast, null), "no resampling", reach)


def _reach(
    rows: FloatArray, theta: FloatArray, null: nulls.Null, tails: nulls.RateTails
) -> Callable[[float], nulls.Reachable]:
    return lambda p: nulls.smallest_reachable(rows, theta, null, tails, alpha=p)


_KNOWN: dict[str, nulls.RateTails] = {
    "auto": nulls.mid_p,
    "mid-p": nulls.mid_p,
    "exact": nulls.exact,
    "likelihood": nulls.likelihood,
    "score": nulls.score,
}


_ESTIMATED = {
    "auto": nulls.careful_likelihood,
    "likelihood": nulls.profile_likelihood,
    "score": nulls.score_test,
}


def adjust(
    bench: Bench, p: FloatArray, null: nulls.Null, control: Control, method: Any, seed: Seed
) -> FloatArray:
    """p-values adjusted for all the groups."""
    if control != "max-t":
        return _ADJUST[control](p)
    if bench.cells.clusters is not None:
        raise OptionError("control='max-t' does not know clusters; use control='holm'.")
    return _step_down(bench, p, null, method, seed)


def _step_down(
    bench: Bench, p: FloatArray, null: nulls.Null, method: Any, seed: Seed
) -> FloatArray:
    """Adjusted p-values by step-down maxima under a common null.

    Each group's p-value is turned into a normal score; resamples of the standardised process, with
    the spread it has when no group differs, give the joint distribution of the scores.
    """
    two_sided = isinstance(null, nulls.Outside)
    statistic = -ndtri(np.clip(p / 2 if two_sided else p, 1e-300, 1 - 1e-16))
    pooled = bootstrap.pooled_moments(bench.moments)
    estimates = bootstrap.estimate_gaps(pooled, bench.target, bench.collection.sums)
    audit = bootstrap.Audit(
        engine=bootstrap.MomentsEngine(pooled, bench.influence),
        groups=estimates,
        target=bench.target,
        sums=bench.collection.sums,
        resamples=max(getattr(method, "resamples", 0), _STEP_DOWN_DRAWS),
        seed=seed.sequence,
    )
    sign = -1.0 if isinstance(null, nulls.Below) else 1.0
    step = StepDown(np.where(np.isnan(p), np.nan, statistic))
    for block in bootstrap.standardized_blocks(audit):
        step.add(np.abs(block) if two_sided else sign * block)
    return step.p_values()
