"""Intervals group by group by empirical or Euclidean likelihood, as published and corrected."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.audits._groups.bench import Bench
from equipoise.audits._groups.samples import own_values, pseudo_values
from equipoise.audits.methods import Euclidean, Likelihood
from equipoise.claims import target as targets
from equipoise.errors import OptionError
from equipoise.findings.words import level_text
from equipoise.methods.arrays import BoolArray, FloatArray
from equipoise.methods.inference.comparison import Status
from equipoise.methods.published import bootstrap, likelihood
from equipoise.methods.targets import Complement, Constant, Overall, Reference

WRONG = (
    "as published: the estimated target is taken for the truth, so these intervals cover too "
    "rarely against other groups and too often against everybody"
)
_NOTHING: Mapping[str, Any] = {"engine": "", "guarantee": "", "assumption": ""}
_FAMILIES = {"sidak": "Šidák's", "bonferroni": "Bonferroni's"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Bounds of every group, and how they came about."""

    lower: FloatArray
    upper: FloatArray
    reach: FloatArray
    critical: float
    engine: str
    recipe: Mapping[str, Any] | None
    guarantee: str
    assumption: str
    quantiles: tuple[float, ...] = ()
    """Critical values of the levels 0.1 %, 0.2 % … 99.9 %, where there is a distribution."""
    against: FloatArray | None = None
    """Bounds on the other side of a one-sided limit, which may show that it is not kept."""
    notes: tuple[str, ...] = ()
    """Why nothing is said about each group; empty if there is nothing of the kind."""


def band_applies(bench: Bench) -> bool:
    """Whether counts say all there is to say: a 0/1 metric without weights or clusters."""
    counted = bench.moments.binary and bench.cells.clusters is None and not bench.tilted
    return counted and not isinstance(bench.claim.target, targets.Custom)


def likelihood_bounds(
    bench: Bench, method: Likelihood | Euclidean, level: float, side: str
) -> Found:
    """Intervals of every group by the method."""
    number = len(bench.collection)
    critical = likelihood.normal_critical(level, method.family, number, two_sided=side == "both")
    shared: dict[str, Any] = {
        "engine": "no resampling",
        "guarantee": _guarantee(bench, method, level),
        "assumption": "large-sample approximation of the likelihood ratio by χ²",
    }
    family = {"family": method.family, "groups": number}
    if isinstance(method, Euclidean):
        return _euclidean(bench, method, critical, side, family, shared)
    if bench.relative:
        raise OptionError("Likelihood intervals are for gaps; leave method= out for ratios.")
    plugged = method.target == "plug-in" and not isinstance(bench.target, Constant)
    if band_applies(bench) and not plugged:
        recipe = _recipe(bench, calibrated=method.calibration == "auto", plugged=False)
        return _from_counts(bench, critical, side, {**recipe, **family}, **shared)
    low, high = real_interval(bench, method, critical)
    return _found(bench, low, high, critical, side, None, shared)


def _from_counts(
    bench: Bench, critical: float, side: str, recipe: Mapping[str, Any], **rest: Any
) -> Found:
    low, high = likelihood.band(_parts_of(recipe), critical, calibrated=recipe["calibrated"])
    usable = comparable(bench)
    low, high = np.where(usable, low, np.nan), np.where(usable, high, np.nan)
    return _found(bench, low, high, critical, side, recipe, rest)


def comparable(bench: Bench) -> BoolArray:
    """Groups with an estimate, and a target other than the group itself."""
    bad = (Status.EMPTY, Status.NO_TARGET, Status.IDENTICAL)
    return ~np.isnan(bench.estimates.estimate) & ~np.isin(bench.estimates.status, bad)


def counted_parts(bench: Bench) -> likelihood.Parts:
    """The disjoint parts behind every group of a 0/1 metric."""
    return _parts_of(_recipe(bench, calibrated=True, plugged=False))


_AGAINST = {Overall: "overall", Complement: "complement", Reference: "reference"}


def _recipe(bench: Bench, *, calibrated: bool, plugged: bool) -> dict[str, Any]:
    target = bench.target
    against = "known" if plugged else _AGAINST.get(type(target), "known")
    reference = target.cells if isinstance(target, Reference) else None
    rows, ones, sums = bench.cells.rows, bench.cells.total, bench.collection.sums
    parts = likelihood.parts_of(rows, ones, sums, against, reference=reference)  # type: ignore[arg-type]
    return {
        "kind": "band",
        "rows": np.rint(parts.rows).astype(int).tolist(),
        "ones": np.rint(parts.ones).astype(int).tolist(),
        "against": against,
        "scale": 1.0 if plugged else float(getattr(target, "scale", 1.0)),
        "value": float(getattr(target, "value", 0.0)),
        "relative": bench.relative,
        "calibrated": calibrated,
    }


def _parts_of(recipe: Mapping[str, Any]) -> likelihood.Parts:
    return likelihood.Parts(
        rows=np.array(recipe["rows"], dtype=np.float64),
        ones=np.array(recipe["ones"], dtype=np.float64),
        against=recipe["against"],
        scale=recipe["scale"],
        value=recipe["value"],
        relative=recipe["relative"],
    )


def ends_at(bench: Bench, method: Likelihood, critical: float) -> tuple[FloatArray, FloatArray]:
    """Ends of every group's interval at a critical value of the signed root."""
    plugged = method.target == "plug-in" and not isinstance(bench.target, Constant)
    if not band_applies(bench) or plugged:
        return real_interval(bench, method, critical)
    recipe = _recipe(bench, calibrated=method.calibration == "auto", plugged=False)
    found = _from_counts(bench, critical, "both", recipe, **_NOTHING)
    return found.lower, found.upper


def real_interval(
    bench: Bench, method: Likelihood, critical: float
) -> tuple[FloatArray, FloatArray]:
    """Intervals from the rows: of the group's values, or of pseudo-values."""
    low, high = (np.full(len(bench.collection), np.nan) for _ in range(2))
    known = isinstance(bench.target, Constant)
    plain = known or method.target == "plug-in"
    for chosen, groups in own_values(bench) if plain else pseudo_values(bench):
        adjust = likelihood.adjustment(groups) if method.calibration == "auto" else None
        ends = likelihood.mean_interval(groups, critical, adjust)
        shift = bench.estimates.target[chosen] if plain else 0.0
        low[chosen], high[chosen] = ends[0] - shift, ends[1] - shift
    few = bench.estimates.rows < (1 if bench.moments.binary else method.min_rows)
    return np.where(few, np.nan, low), np.where(few, np.nan, high)


def _euclidean(
    bench: Bench,
    method: Euclidean,
    critical: float,
    side: str,
    family: Mapping[str, Any],
    shared: Mapping[str, Any],
) -> Found:
    error, degrees = errors_of(bench, method)
    estimate = bench.estimates.estimate
    low, high = likelihood.student_interval(estimate, error, degrees, critical)
    recipe = {
        "kind": "student",
        "estimate": np.nan_to_num(estimate).tolist(),
        "error": error.tolist(),
        "degrees": np.minimum(degrees, 1e9).tolist(),
        **family,
    }
    return _found(bench, low, high, critical, side, recipe, shared)


def errors_of(bench: Bench, method: Euclidean) -> tuple[FloatArray, FloatArray]:
    """Standard errors and degrees of freedom; zero where nothing says how values vary."""
    if bench.cells.clusters is not None:
        raise OptionError("Euclidean likelihood does not know clusters; use method='bootstrap'.")
    found = bench.estimates
    # a group whose values are all the same has a spread only through its target
    own = bootstrap.estimate_gaps(bench.moments, Constant(value=0.0), bench.collection.sums)
    error = np.where(own.variance > 0, np.nan_to_num(found.standard_error), 0.0)
    degrees = found.rows - 1 if method.calibration == "auto" else np.full(error.shape, np.inf)
    return error, np.where(found.rows > 1, degrees, 0.0)


def _found(
    bench: Bench,
    low: FloatArray,
    high: FloatArray,
    critical: float,
    side: str,
    recipe: Mapping[str, Any] | None,
    shared: Mapping[str, Any],
) -> Found:
    none = np.full(low.shape, np.nan)
    with np.errstate(invalid="ignore"):
        half = (high - low) / 2 / max(critical, 1e-9)
    return Found(
        lower=low if side != "upper" else none,
        upper=high if side != "lower" else none,
        # open at one end is still a bound
        reach=np.where(np.isinf(half), 1e9, half),
        critical=critical,
        recipe=recipe,
        **shared,
    )


def _guarantee(bench: Bench, method: Likelihood | Euclidean, level: float) -> str:
    number = len(bench.collection)
    plugged = isinstance(method, Likelihood) and method.target == "plug-in"
    warning = f"; {WRONG}" if plugged and not isinstance(bench.target, Constant) else ""
    if method.family == "pointwise" or number == 1:
        said = f"With {level_text(level)} confidence each interval holds, one group at a time"
        return said + warning
    return (
        f"With {level_text(level)} confidence all intervals hold at once, for every one of the "
        f"{number:,} groups, by {_FAMILIES[method.family]} inequality{warning}"
    )
