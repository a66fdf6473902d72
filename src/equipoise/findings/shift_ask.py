"""Questions to a tilt audit: weights, groups and populations in the coordinates of the span."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._codec import canonical
from equipoise._validate import known_name, listing
from equipoise.errors import ClaimError, OptionError
from equipoise.findings.shift_kernels import NON_NEGATIVE, Covariate, build_kernel
from equipoise.findings.shift_lazy import tilts
from equipoise.findings.shift_space import ShiftBasis, ShiftSpace
from equipoise.findings.shift_tables import encode_table
from equipoise.methods.arrays import BoolArray, FloatArray

if TYPE_CHECKING:
    from equipoise.findings.shift import Shift

#: Points of another population treated at a time.
_BLOCK = 4096


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """A distribution of covariates that a tilt should approach."""

    label: str
    """What it is called."""
    where: Mapping[str, Any]
    """The group as data, if it is one."""
    wanted: FloatArray
    """Mean of the features in it."""
    space: ShiftSpace | None = None
    """The rows, if the question is about them."""
    on_rows: FloatArray | None = None
    """Its density against the audited population on each row, where known."""
    uncovered: float | None = None
    """Share of it that is unlike every row audited."""

    def distance(self, found: tilts.Closest) -> float | None:
        """Share of the tilted population that lies elsewhere than the one asked about."""
        if self.on_rows is None or self.space is None:
            return None
        share, tilt = self.space.share, np.maximum(found.values, 0.0)
        # Half the absolute differences of two distributions: their distance in total variation.
        apart = np.abs(tilt / (share @ tilt) - self.on_rows / (share @ self.on_rows))
        return float(share @ apart / 2)

    def mismatch(self, basis: ShiftBasis, found: tilts.Closest) -> float | None:
        """What remains of the kernel's distance between the populations."""
        if self.on_rows is not None:
            return None
        everyone = basis.mean
        # The kernel's distance between two populations is that of their mean features.
        before = float(np.linalg.norm(everyone - self.wanted))
        mean = float(everyone @ found.coordinates)
        after = float(np.linalg.norm(basis.once @ found.coordinates / mean - self.wanted))
        return after / before if before > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sections:
    """A mixture of kernel sections."""

    coordinates: FloatArray
    """Its part in the span."""
    values: FloatArray | None = None
    """Its value on each row, if it may leave the span."""
    norm: float | None = None
    """Its squared norm, if it may leave the span."""


def section_coordinates(
    finding: Shift, weights: FloatArray, at: Mapping[str, Sequence[Any]] | None
) -> Sections:
    """A tilt given by weights on kernel sections."""
    if weights.ndim != 1 or not np.all(np.isfinite(weights)):
        raise OptionError("Weights on kernel sections are a list of finite numbers.")
    if at is None:
        return _kept_sections(finding, weights)
    space = _rows_of(finding, "weights on sections at points of your own")
    points = encode_table(finding.covariates, at)[0]
    if len(points) != len(weights):
        raise OptionError(f"There are {len(points)} points and {len(weights)} weights.")
    values = tilts.section_sums(space.kernel, space.points, points, weights)
    if not _surely(finding, weights):
        other = points_between(finding)
        there = tilts.section_sums(space.kernel, other, points, weights)
        _refuse_negative(finding, values, other, there)
    features = tilts.features_of(space.kernel, finding.basis.pivots, finding.basis.corner, points)
    norm = float(weights @ tilts.section_sums(space.kernel, points, points, weights))
    return Sections(coordinates=features.T @ weights, values=np.maximum(values, 0.0), norm=norm)


def _kept_sections(finding: Shift, weights: FloatArray) -> Sections:
    if len(weights) != finding.rank:
        raise OptionError(
            f"There are {finding.rank} kernel sections, listed by sections(); got {len(weights)} "
            "weights. Pass at=… for sections elsewhere."
        )
    coordinates = finding.basis.corner.T @ weights
    if not _surely(finding, weights):
        rows = finding.basis.corner if finding.space is None else finding.space.features
        other = points_between(finding)
        there = features_between(finding, other) @ coordinates
        _refuse_negative(finding, rows @ coordinates, other, there)
    return Sections(coordinates=coordinates)


def _surely(finding: Shift, weights: FloatArray) -> bool:
    """Whether a mixture of sections is non-negative everywhere, without looking."""
    return weights.min() >= 0 and all(part.form in NON_NEGATIVE for part in finding.kernel)


def points_between(finding: Shift, offset: float = 0.5) -> FloatArray:
    """Points of the support where no row lies; none where the kernel cannot be evaluated."""
    if finding.space is None and any(part.form == "function" for part in finding.kernel):
        return finding.basis.pivots[:0]
    points = finding.basis.pivots if finding.space is None else finding.space.points
    fixed = [i for i, c in enumerate(finding.covariates) if c.levels is not None]
    return tilts.points_between(points, fixed, offset=offset)


def features_between(finding: Shift, points: FloatArray) -> FloatArray:
    """Coordinates of these points in the span."""
    if not len(points):
        return np.zeros((0, finding.rank))
    basis = finding.basis
    return tilts.features_of(_kernel_of(finding), basis.pivots, basis.corner, points)


def _kernel_of(finding: Shift) -> tilts.Kernel:
    if finding.space is not None:
        return finding.space.kernel
    return build_kernel(finding.kernel, [c.name for c in finding.covariates])


def _refuse_negative(
    finding: Shift, values: FloatArray, other: FloatArray, there: FloatArray
) -> None:
    # Sums of kernel values that cancel leave rounding errors of either sign.
    limit = -tilts.TOLERATED * np.abs(values).max()
    negative = values < limit
    if negative.any():
        raise OptionError(
            f"The tilt is negative on {int(negative.sum()):,} of {len(values):,} rows; weights of "
            "people cannot be negative."
        )
    if len(there) and there.min() < limit:
        raise OptionError(
            "The tilt is positive on the rows but negative between them, near "
            f"{point_words(finding, other[np.argmin(there)])}; weights of people cannot be "
            "negative."
        )


def point_words(finding: Shift, point: FloatArray) -> str:
    """A point of the covariates in words."""
    pairs = zip(finding.covariates, point, strict=True)
    return ", ".join(
        f"{c.name} {x:.4g}" if c.levels is None else str(c.decode(float(x))) for c, x in pairs
    )


def weight_question(finding: Shift, tilt: Callable[..., Any], name: str) -> Question:
    """A tilt given by a function of the covariates."""
    space = _rows_of(finding, "a tilt given as a function")
    values = np.asarray(tilt(space.columns(finding.covariates)), dtype=np.float64)
    label = name or getattr(tilt, "__name__", "") or "a tilt"
    return _on_rows(finding, space, values, "a tilt" if label == "<lambda>" else label, {})


def group_question(finding: Shift, group: Any, where: Mapping[str, Any], name: str) -> Question:
    """A group given by a function or by covariates."""
    space = _rows_of(finding, "a group")
    if callable(group):
        inside = np.asarray(group(space.columns(finding.covariates)))
        label = name or "the group"
        return _on_rows(finding, space, inside.astype(np.float64), label, {})
    if group is not None and not isinstance(group, Mapping):
        raise OptionError(f"A group is a function or covariates by name; got {group!r}.")
    asked = {**(group or {}), **where}
    if not asked:
        raise OptionError("Which group? Name covariates, such as ask_group(age=(18, 25)).")
    inside = np.ones(len(space.points), dtype=bool)
    for column, value in asked.items():
        position = _position(finding.covariates, column)
        inside &= _holds(finding.covariates[position], space.points[:, position], value)
    label = name or ", ".join(_words(column, value) for column, value in asked.items())
    return _on_rows(finding, space, inside.astype(np.float64), label, asked)


def _on_rows(
    finding: Shift, space: ShiftSpace, values: FloatArray, label: str, where: Mapping[str, Any]
) -> Question:
    if values.shape != (len(space.points),) or not np.all(np.isfinite(values)):
        raise OptionError(
            f"{label}: expected a finite number for each of {len(space.points):,} rows (rows with "
            f"equal covariates and metric are one); got an array of shape {values.shape}."
        )
    if values.min() < 0:
        raise OptionError(
            f"{label}: a tilt must not be negative; the least value is {values.min():g}."
        )
    mass = space.share * values
    if mass.sum() <= 0:
        raise ClaimError(f"{label}: no row audited lies there.")
    plain = {
        key: list(value) if isinstance(value, tuple) else value for key, value in where.items()
    }
    return Question(
        label=label,
        where=plain,
        wanted=mass @ space.features / mass.sum(),
        space=space,
        on_rows=values,
    )


def population_question(finding: Shift, table: Any, name: str) -> Question:
    """Another population, given by a table with the covariates."""
    points, mass = encode_table(finding.covariates, table)
    kernel = _kernel_of(finding)
    wanted, alike = np.zeros(finding.rank), 0.0
    for start in range(0, len(points), _BLOCK):
        part, weight = points[start : start + _BLOCK], mass[start : start + _BLOCK]
        features = tilts.features_of(kernel, finding.basis.pivots, finding.basis.corner, part)
        # Of a point's kernel the span explains all where rows were audited, nothing far from them.
        own = np.maximum(kernel.diagonal(part), 1e-300)
        wanted += weight @ features
        alike += float(weight @ np.minimum((features**2).sum(axis=1) / own, 1.0))
    total = mass.sum()
    if alike <= 1e-6 * total:
        raise ClaimError("That population is unlike every row audited: no tilt leads there.")
    return Question(
        label=name or "the other population",
        where={},
        wanted=wanted / total,
        uncovered=max(0.0, 1 - alike / float(total)),
    )


def _rows_of(finding: Shift, what: str) -> ShiftSpace:
    if finding.space is None:
        raise OptionError(
            f"A finding that was read back does not hold the rows, which {what} needs. It answers "
            "weights on sections() and ask_population; run the audit again for the rest."
        )
    return finding.space


def _position(covariates: Sequence[Covariate], name: str) -> int:
    names = [covariate.name for covariate in covariates]
    return names.index(known_name("Covariate", name, names, ClaimError))


def _holds(covariate: Covariate, codes: FloatArray, value: Any) -> BoolArray:
    if isinstance(value, list | set | frozenset):
        parts = [_holds(covariate, codes, each) for each in value]
        return np.any(parts, axis=0) if parts else np.zeros(len(codes), dtype=bool)
    if isinstance(value, tuple):
        if covariate.levels is not None or len(value) != 2:
            raise ClaimError(f"{covariate.name}: a range is a pair of numbers; got {value!r}.")
        return np.asarray((codes >= value[0]) & (codes <= value[1]))
    if covariate.levels is None:
        return np.asarray(codes == float(value))
    wanted = canonical(value)
    if wanted not in covariate.levels:
        raise ClaimError(
            f"{covariate.name} has no level {value!r}. There is: {listing(covariate.levels)}."
        )
    return np.asarray(codes == covariate.levels.index(wanted))


def _words(name: str, value: Any) -> str:
    if isinstance(value, tuple) and len(value) == 2:
        return f"{name} {value[0]:g} to {value[1]:g}"
    if isinstance(value, list | set | frozenset):
        return " or ".join(_words(name, each) for each in value)
    return value if isinstance(value, str) else f"{name} {value}"
