"""Kernels as findings write them down, and the covariates they compare people by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise._codec import canonical
from equipoise.errors import EquipoiseError
from equipoise.findings.shift_lazy import tilts
from equipoise.methods.arrays import FloatArray

#: Forms whose values are never negative, so that mixtures of sections are tilts.
NON_NEGATIVE = ("gaussian", "laplace", "same")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPart:
    """One factor of a product kernel."""

    form: str
    """``gaussian``, ``laplace``, ``same`` (equal or not), the name of a kernel, or ``function``."""
    columns: tuple[str, ...]
    """The covariates it compares."""
    bandwidths: tuple[float, ...] = ()
    """The bandwidth of each, in its own units."""
    options: Mapping[str, Any] | None = None
    """Options of a kernel given by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Covariate:
    """One column that tilts may depend on."""

    name: str
    """The column."""
    levels: tuple[Any, ...] | None = None
    """The levels of a category; None for a number."""

    def encode(self, values: Sequence[Any]) -> FloatArray:
        """Numbers as they are, categories by position; −1 for a level that was not audited."""
        if self.levels is None:
            return np.array([np.nan if v is None else v for v in values], dtype=np.float64)
        # No row has the place −1, so an unknown level is unlike all of them.
        place = {level: i for i, level in enumerate(self.levels)}
        found = [place.get(canonical(value), -1) for value in values]
        return np.array(found, dtype=np.float64)

    def decode(self, code: float) -> Any:
        """The value behind a number."""
        return canonical(code) if self.levels is None else self.levels[int(code)]


def build_kernel(
    parts: Sequence[KernelPart],
    names: Sequence[str],
    functions: Mapping[int, Callable[..., Any]] | None = None,
) -> tilts.Kernel:
    """The kernel on encoded covariates; ``functions`` holds those that have no plain form."""
    made = []
    for i, part in enumerate(parts):
        columns = tuple(names.index(column) for column in part.columns)
        made.append((_one(part, (functions or {}).get(i)), columns))
    return tilts.Product(tuple(made))


def _one(part: KernelPart, function: Callable[..., Any] | None) -> tilts.Kernel:
    if part.form == "gaussian":
        return tilts.Gaussian(part.bandwidths)
    if part.form == "laplace":
        return tilts.Laplace(part.bandwidths)
    if part.form == "same":
        return tilts.Same()
    if function is not None:
        return tilts.Function(function)
    if part.form == "function":
        raise EquipoiseError(
            "This finding was made with a kernel of your own, which cannot be stored. Run the "
            "audit again to ask about tilts that it has to evaluate anew."
        )
    return tilts.Function(named_kernel(part.form, part.options or {}))


def kernel_words(parts: Sequence[KernelPart]) -> str:
    """The covariates with their bandwidths, or with the form of their kernel.

    >>> kernel_words([KernelPart(form="gaussian", columns=("age",), bandwidths=(5.0,))])
    'age (bandwidth 5)'
    """
    said = []
    for part in parts:
        if part.bandwidths:
            pairs = zip(part.columns, part.bandwidths, strict=True)
            said += [f"{column} (bandwidth {width:.3g})" for column, width in pairs]
        else:
            form = "equal or not" if part.form == "same" else part.form
            said += [f"{column} ({form})" for column in part.columns]
    return ", ".join(said)


def named_kernel(name: str, options: Mapping[str, Any]) -> Callable[..., Any]:
    """A pairwise kernel of scikit-learn."""
    from sklearn.metrics.pairwise import pairwise_kernels

    def values(x: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(pairwise_kernels(x, y, metric=name, **options))

    return values
