"""What findings keep as plain data, and how it answers again: at another level, at other values."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import numpy as np

from equipoise.methods.inference.core import ClusterPivot, Core, OverlapPivot, Pivot, bounds
from equipoise.methods.inference.counts import CountPivot
from equipoise.methods.inference.multinomial import FewValuedPivot
from equipoise.methods.inference.orthogonal import Residual
from equipoise.methods.inference.student import LeftOut, StudentPivot
from equipoise.methods.inference.unknown import ContrastPivot, EitherPivot, PairCore, PairPivot
from equipoise.methods.numerics import FloatArray
from equipoise.methods.published import likelihood
from equipoise.methods.targets import (
    Comparison,
    Complement,
    Constant,
    Custom,
    Moments,
    Overall,
    Reference,
    Target,
)

_TARGETS: Mapping[str, Callable[[float, float], Target]] = {
    "constant": lambda scale, value: Constant(scale=scale, value=value),
    "overall": lambda scale, value: Overall(scale=scale),
    "complement": lambda scale, value: Complement(scale=scale),
    # the parts are stored, so that nobody asks which cells they came from
    "before": lambda scale, value: Reference(scale=scale, cells=np.zeros(0, dtype=bool)),
    "opposite": lambda scale, value: Reference(scale=scale, cells=np.zeros(0, dtype=bool)),
    "reference": lambda scale, value: Reference(scale=scale, cells=np.zeros(0, dtype=bool)),
}


def stored(core: Core) -> dict[str, object] | None:
    """The pivot of a core as plain data; None where it would be too much or is not known.

    >>> from equipoise.methods.inference.core import core_of
    >>> from equipoise.methods.targets import plain_moments
    >>> counts = plain_moments(*[np.array([40.0]), *[np.array([10.0])] * 3])
    >>> options = {"relative": False, "zero_one": True, "weighted": False}
    >>> core = core_of(counts, Constant(value=0.2), lambda x: x, **options)
    >>> kept = stored(core)
    >>> kept["form"], bool(restored_bounds(kept, 1.96, (-1.0, 1.0))[0][0] < 0)
    ('counts', True)
    """
    found, pivot = core.comparison, core.pivot
    if found.tilts is not None or isinstance(found.target, Custom) or isinstance(found, Residual):
        return None
    if isinstance(core, PairCore):
        return _pair(core)
    target = found.target
    data: dict[str, object] = {
        "kind": "pivot",
        "target": type(target).__name__.lower(),
        "scale": target.scale,
        "value": target.number,
        "relative": found.relative,
        "answered": core.answered.tolist(),
    }
    m = found.parts
    if isinstance(pivot, EitherPivot):
        normal = {
            name: np.nan_to_num(getattr(pivot.normal, name)).tolist()
            for name in ("mean", "theta", "variances")
        }
        counts = stored(replace(core, pivot=pivot.counts))
        return None if counts is None else {**counts, "normal": normal}
    if isinstance(pivot, OverlapPivot):
        data["few"], pivot = pivot.few.tolist(), pivot.many
    plain = isinstance(pivot, CountPivot) and m.weight is m.rows and pivot.rows is m.rows
    if isinstance(pivot, CountPivot) and plain and bool(np.isinf(pivot.degrees).all()):
        return data | {"form": "counts", "rows": _whole(m.rows), "ones": _whole(m.total)}
    if isinstance(pivot, CountPivot):
        names = ("rows", "weight", "total", "weight2")
        degrees = np.where(np.isinf(pivot.degrees), 1e9, pivot.degrees)
        extra = {"worth": pivot.rows.tolist(), "degrees": degrees.tolist()}
        return data | {"form": "worth", **_plain(m, names), **extra}
    if isinstance(pivot, FewValuedPivot):
        sums = _plain(m, ("rows", "total", "square2"))
        return data | {"form": "values", "values": list(pivot.values), **sums}
    if isinstance(pivot, StudentPivot):
        sums = _plain(m, tuple(f.name for f in fields(m)))
        return data | {"form": "spread", "shape": pivot.shape, **sums}
    if isinstance(pivot, ClusterPivot):
        sums = _plain(m, ("rows", "weight", "total", "weight2"))
        return data | {"form": "clusters", **sums, **_left_out(pivot.left_out)}
    return _measure(core, data)


def _left_out(left: LeftOut) -> dict[str, object]:
    return {
        "powers": [x.tolist() for x in left.powers],
        "sizes": left.sizes.tolist(),
        "clusters": left.clusters,
        "blank": left.blank.tolist(),
        "shape": left.shape,
    }


def _measure(core: Core, data: dict[str, object]) -> dict[str, object] | None:
    """The pivot of a measure that is no mean; quantiles would take all their rows."""
    # few audits ask for one
    from equipoise.methods.inference.measures import MeasurePivot

    found, pivot = core.comparison, core.pivot
    if not isinstance(pivot, MeasurePivot):
        return None
    spreads = pivot.spreads
    made = {
        "form": "measure",
        **_plain(found.parts, ("rows", "weight", "total", "weight2")),
        "mean": np.nan_to_num(found.mean).tolist(),
        "theta": np.nan_to_num(found.theta).tolist(),
        "slack": np.nan_to_num(pivot.slack).tolist(),
    }
    if isinstance(spreads, LeftOut):
        return data | made | _left_out(spreads)
    arrays = {name: getattr(spreads, name) for name in ("square", "cube", "size")}
    sums = {name: np.nan_to_num(x).tolist() for name, x in arrays.items()}
    return data | made | sums | {"shape": spreads.shape}


def _restored_measure(data: Mapping[str, Any], found: Comparison) -> Pivot:
    from equipoise.methods.inference.measures import Forms, Measured, MeasurePivot, Spreads

    def array(name: str) -> FloatArray:
        return np.array(data[name], dtype=np.float64)

    none = np.zeros((0, found.rows.size))
    same = Measured(
        target=found.target,
        relative=found.relative,
        parts=found.parts,
        value=array("mean"),
        beside=array("theta"),
        slopes_own=none,
        slopes_other=none,
    )
    spreads: Spreads
    if "powers" in data:
        spreads = _restored_left_out(data)
    else:
        sums = (array(name) for name in ("square", "cube", "size"))
        square, cube, size = sums
        spreads = Forms(square=square, cube=cube, size=size, shape=float(data["shape"]), found=same)
    return MeasurePivot(comparison=same, spreads=spreads, slack=array("slack"))


def _with_normal(counts: CountPivot, data: Mapping[str, Any]) -> EitherPivot:
    arrays = {name: np.array(x, dtype=np.float64) for name, x in data.items()}
    return EitherPivot(
        normal=ContrastPivot(**arrays, relative=counts.comparison.relative), counts=counts
    )


def _restored_left_out(data: Mapping[str, Any]) -> LeftOut:
    return LeftOut(
        powers=tuple(np.array(x, dtype=np.float64) for x in data["powers"]),
        sizes=np.array(data["sizes"], dtype=np.float64),
        clusters=int(data["clusters"]),
        blank=np.array(data["blank"], dtype=np.float64),
        shape=float(data["shape"]),
    )


def _pair(core: PairCore) -> dict[str, object] | None:
    """Both ends, and where searches between them start."""
    low, high = stored(core.low), stored(core.high)
    if low is None or high is None:
        return None
    where = (core.pivot.estimate, core.pivot.error)
    estimate, error = (np.nan_to_num(x, posinf=0.0, neginf=0.0).tolist() for x in where)
    return {
        "kind": "pivot",
        "form": "pair",
        "answered": core.answered.tolist(),
        "estimate": estimate,
        "error": error,
        "low": low,
        "high": high,
    }


@contextmanager
def _undamaged() -> Iterator[None]:
    """Data in a file that somebody edited may lack something, or hold what does not fit."""
    try:
        yield
    except (LookupError, TypeError) as error:
        said = f"{type(error).__name__}: {error}"
        raise ValueError(f"What was kept to read this again is damaged ({said})") from error


@_undamaged()
def restored_bounds(
    data: Mapping[str, Any], critical: float, possible: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Bounds of every group at a critical value, from stored data; NaN without an answer."""
    if data["kind"] == "band":
        return likelihood.band(stored_parts(data), critical, calibrated=data["calibrated"])
    if data["kind"] == "student":
        columns = (data[name] for name in ("estimate", "error", "degrees"))
        estimate, error, degrees = (np.array(x, dtype=np.float64) for x in columns)
        return likelihood.student_interval(estimate, error, degrees, critical)
    if data["kind"] != "pivot":
        raise ValueError(f"{data['kind']!r} is not a way to make bounds")
    pivot, size = _restored(data)
    low, high = np.full(size, np.nan), np.full(size, np.nan)
    chosen = np.array(data["answered"], dtype=np.int64)
    if chosen.size:
        low[chosen], high[chosen] = bounds(pivot, chosen, critical, possible)
    return low, high


def _restored(data: Mapping[str, Any]) -> tuple[Pivot, int]:
    if data["form"] == "pair":
        (low, size), (high, _) = (_restored(data[end]) for end in ("low", "high"))
        estimate, error = (np.array(data[n], dtype=np.float64) for n in ("estimate", "error"))
        return PairPivot(estimate=estimate, error=error, low=low, high=high), size
    target = _TARGETS[data["target"]](data["scale"], data["value"])
    arrays = {
        name: np.array(data[name], dtype=np.float64)
        for name in (f.name for f in fields(Moments))
        if name in data
    }
    rows = arrays["rows"]
    if data["form"] == "counts":
        arrays |= {"total": np.array(data["ones"], dtype=np.float64)}
    none = np.zeros_like(rows)
    arrays.setdefault("weight", rows)
    arrays.setdefault("weight2", rows)
    moments = Moments(**{f.name: arrays.get(f.name, none) for f in fields(Moments)})
    found = Comparison(target=target, relative=data["relative"], parts=moments)
    size = rows.shape[1]
    if data["form"] == "counts":
        return CountPivot(comparison=found, rows=rows, degrees=np.full(size, np.inf)), size
    if data["form"] == "worth":
        degrees = np.array(data["degrees"], dtype=np.float64)
        worth = np.array(data["worth"], dtype=np.float64)
        degrees = np.where(degrees >= 1e9, np.inf, degrees)
        counts = CountPivot(comparison=found, rows=worth, degrees=degrees)
        return (_with_normal(counts, data["normal"]) if "normal" in data else counts), size
    if data["form"] == "values":
        return FewValuedPivot(comparison=found, values=tuple(data["values"])), size
    if data["form"] == "spread":
        spread = StudentPivot(comparison=found, shape=float(data["shape"]))
        if "few" not in data:
            return spread, size
        few = np.array(data["few"], dtype=bool)
        return OverlapPivot(comparison=found, many=spread, few=few), size
    if data["form"] == "measure":
        return _restored_measure(data, found), size
    return ClusterPivot(comparison=found, left_out=_restored_left_out(data)), size


def stored_parts(data: Mapping[str, Any]) -> likelihood.Parts:
    """The counts behind a band, from stored data."""
    return likelihood.Parts(
        rows=np.array(data["rows"], dtype=np.float64),
        ones=np.array(data["ones"], dtype=np.float64),
        against=data["against"],
        scale=data["scale"],
        value=data["value"],
        relative=data["relative"],
    )


@_undamaged()
def family_critical(data: Mapping[str, Any], level: float, side: str) -> float:
    """The critical value of normal scores that makes a family of intervals hold."""
    return likelihood.normal_critical(
        level, data["family"], data["groups"], two_sided=side == "both"
    )


def quantile_at(quantiles: tuple[float, ...], level: float) -> float | None:
    """The critical value of a level, from a table of 0.1 %, 0.2 % … 99.9 %.

    Between two entries the larger one is taken; beyond the last there is none.

    >>> quantile_at(tuple(range(1, 1000)), 0.9), quantile_at(tuple(range(1, 1000)), 0.9002)
    (900, 901)
    """
    # 0.9 of 1000 may come out as 900.0000000000001, which would take the next one
    position = math.ceil(level * 1000 - 1e-9) - 1
    return None if position >= len(quantiles) else quantiles[max(position, 0)]


@_undamaged()
def region_statistic(region: Mapping[str, Any], values: Mapping[int, float]) -> float:
    """The joint statistic at values of some disparities, the others being free."""
    chosen = np.array(list(values), dtype=np.int64)
    at = np.array(list(values.values()), dtype=np.float64)

    def arrays(*names: str) -> dict[str, Any]:
        return {name: np.array(region[name], dtype=np.float64) for name in names}

    if region["kind"] == "euclidean":
        kept = arrays("estimate", "zero", "cross", "slope")
        moments = likelihood.Moments(rows=region["rows"], **kept)
        return likelihood.euclidean_at(moments, at, chosen).statistic
    if region["kind"] != "likelihood":
        raise ValueError(f"{region['kind']!r} is not a kind of region")
    scores = likelihood.Scores(**arrays("zero", "slope", "count"), support=True)
    # A constraint left out is profiled: its disparity takes the most likely value.
    return likelihood.likelihood_at(scores.some(chosen), at).statistic


def _plain(m: Moments, names: tuple[str, ...]) -> dict[str, object]:
    return {name: getattr(m, name).tolist() for name in names}


def _whole(x: FloatArray) -> list[list[int]]:
    out: list[list[int]] = np.rint(x).astype(np.int64).tolist()
    return out
