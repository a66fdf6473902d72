"""Audits of simulated cells without a table in between, verdicts and output, for paper 000."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import equipoise as eq
from equipoise.audits._bench import Bench, assemble
from equipoise.cells import Axis, Cells
from equipoise.claims.dimension import Dimension
from equipoise.methods import bootstrap
from equipoise.methods.arrays import FloatArray, IntArray

SEED = 20230501
SIZES = (100, 200, 400, 800, 1600)


def bench_of(
    claim: eq.Claim,
    levels: Sequence[tuple[Any, ...]],
    index: IntArray,
    cell: IntArray | None = None,
    value: FloatArray | None = None,
    counts: tuple[IntArray, IntArray] | None = None,
) -> Bench:
    """A bench from rows (their cell and metric), or from rows and ones per cell."""
    axes = tuple(_axis(d, found) for d, found in zip(claim.dimensions(), levels, strict=True))
    if counts is not None:
        rows, total = (x.astype(np.float64) for x in counts)
        square = total
    else:
        if cell is None or value is None:
            raise ValueError("give rows or counts")
        rows, total, square = (
            np.bincount(cell, x, minlength=len(index)) for x in (value * 0 + 1, value, value**2)
        )
    cells = Cells(
        metric=claim.metric,
        axes=axes,
        index=index,
        present=rows,
        rows=rows,
        weight=rows,
        total=total,
        square=square,
        weight2=rows,
        total2=total,
        square2=square,
        zero_one=counts is not None,
        weighted=False,
        scanned=int(rows.sum()),
        excluded={},
        source="a simulated world",
    )
    return assemble(claim, cells, lambda: _rows(cell, value))


def _rows(cell: IntArray | None, value: FloatArray | None) -> bootstrap.RowData:
    if cell is None or value is None:
        raise ValueError("a bench made from counts has no rows")
    return bootstrap.canonical_rows(cell, value)


def _axis(dimension: Dimension, levels: tuple[Any, ...]) -> Axis:
    return Axis(dimension=dimension, levels=levels, asked=dimension)


def bench_of_intervals(claim: eq.Claim, edges: FloatArray, **data: Any) -> Bench:
    """A bench whose cells are the ranges between neighbouring edges."""
    pairs = tuple(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    return bench_of(claim, [pairs], np.arange(len(pairs))[:, None], **data)
