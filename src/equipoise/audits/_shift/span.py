"""From covariates to the span of tilts: bandwidths, the kernel, and its factor."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.audits._shift.rows import ShiftRows
from equipoise.audits.kernels import (
    GaussianKernel,
    LaplaceKernel,
    OtherKernel,
    TiltKernel,
    bandwidths_of,
)
from equipoise.errors import ClaimError, OptionError
from equipoise.findings.shift_kernels import KernelPart, build_kernel, named_kernel
from equipoise.methods import tilts
from equipoise.methods.arrays import FloatArray

#: Rows between which distances are taken to find a bandwidth.
_MEASURED = 1000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Span:
    """The kernel and the sections that span its tilts."""

    parts: tuple[KernelPart, ...]
    """The kernel as it is written down."""
    kernel: tilts.Kernel
    """The kernel on encoded covariates."""
    factor: tilts.Factor
    """Its factor on the rows."""
    constant: tuple[str, ...]
    """Covariates that are the same on every row."""


def make_span(rows: ShiftRows, over: TiltKernel, residual: float, max_rank: int) -> Span:
    """Settle the bandwidths, then factor the kernel on the rows."""
    parts: list[KernelPart] = []
    functions: dict[int, Callable[..., Any]] = {}
    for each in over.factors_of():
        made = _parts(rows, each)
        if isinstance(each, OtherKernel):
            functions[len(parts)] = _function(each)
        parts += made
    kernel = build_kernel(parts, [c.name for c in rows.covariates], functions)
    try:
        # Only a kernel that is not known to be one needs the check.
        found = tilts.factor_kernel(
            kernel, rows.points, tolerance=residual, max_rank=max_rank, check=bool(functions)
        )
    except tilts.NotPositiveError as error:
        raise OptionError(f"The kernel cannot be used: {error}.") from error
    except Exception as error:
        if not functions:
            raise
        # a function of the caller's, or its options, may fail in any way
        raise OptionError(f"The kernel failed: {type(error).__name__}: {error}.") from error
    if found.rank == 0:
        raise OptionError("The kernel is zero on every row, so there is no tilt.")
    same = np.ptp(rows.points, axis=0) == 0
    constant = tuple(c.name for c, one in zip(rows.covariates, same, strict=True) if one)
    return Span(parts=tuple(parts), kernel=kernel, factor=found, constant=constant)


def _function(factor: OtherKernel) -> Callable[..., Any]:
    if isinstance(factor.function, str):
        return named_kernel(factor.function, factor.options or {})
    return factor.function


def _parts(rows: ShiftRows, factor: TiltKernel) -> list[KernelPart]:
    levels = {c.name: c.levels for c in rows.covariates}
    numbers = tuple(name for name in factor.columns if levels[name] is None)
    categories = tuple(name for name in factor.columns if levels[name] is not None)
    if isinstance(factor, OtherKernel):
        if categories:
            raise ClaimError(
                f"A kernel by name or function compares numbers; {categories[0]!r} is a category. "
                f'Multiply by gaussian("{categories[0]}"), which tells categories apart.'
            )
        return [_other(factor)]
    if not isinstance(factor, GaussianKernel | LaplaceKernel):
        raise OptionError(f"{type(factor).__name__} is not a kernel that tilts can use.")
    made = []
    if numbers:
        form = "gaussian" if isinstance(factor, GaussianKernel) else "laplace"
        widths = bandwidths_of(factor) or _medians(rows, numbers, form)
        chosen = tuple(widths[name] for name in numbers)
        made.append(KernelPart(form=form, columns=numbers, bandwidths=chosen))
    if categories:
        made.append(KernelPart(form="same", columns=categories))
    return made


def _other(factor: OtherKernel) -> KernelPart:
    if isinstance(factor.function, str):
        return KernelPart(form=factor.function, columns=factor.columns, options=factor.options)
    return KernelPart(form="function", columns=factor.columns)


def _medians(rows: ShiftRows, names: tuple[str, ...], form: str) -> Mapping[str, float]:
    """The median distance between people, spread over the covariates by their own spread."""
    places = [i for i, c in enumerate(rows.covariates) if c.name in names]
    order = [rows.covariates[i].name for i in places]
    x = rows.points[:, places]
    share = rows.counts / rows.counts.sum()
    spread = np.sqrt(np.maximum(share @ (x - share @ x) ** 2, 0.0))
    # A constant covariate has no distances; any bandwidth gives the same kernel.
    unit = np.where(spread > 1e-12 * (np.abs(x).max(axis=0) + 1e-300), spread, np.inf)
    median = _median_distance(x[_spaced(rows.counts)] / unit, form)
    widths = np.where(np.isfinite(unit), unit * median, 1.0)
    return {name: float(width) for name, width in zip(order, widths, strict=True)}


def _spaced(counts: FloatArray) -> Any:
    """Rows at equal distances in the order of the rows, those with large counts more often."""
    wanted = (np.arange(min(_MEASURED, int(counts.sum()))) + 0.5) / min(
        _MEASURED, int(counts.sum())
    )
    return np.searchsorted(np.cumsum(counts) / counts.sum(), wanted - 1e-12)


def _median_distance(x: FloatArray, form: str) -> float:
    total = np.zeros((len(x), len(x)))
    for column in x.T:
        apart = np.abs(column[:, None] - column[None, :])
        total += apart**2 if form == "gaussian" else apart
    distance = (np.sqrt(total) if form == "gaussian" else total)[np.triu_indices(len(x), 1)]
    if not distance.any():
        return 1.0
    median = float(np.median(distance))
    # With mostly equal rows the median is zero; the mean of the distances that there are is not.
    return median if median > 0 else float(distance[distance > 0].mean())
