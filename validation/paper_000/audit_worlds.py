"""Audits of simulated cells without a table in between, verdicts and output, for paper 000."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import bdtr, bdtrc

import equipoise as eq
from equipoise.audits._bench import Bench, assemble
from equipoise.cells import Axis, Cells
from equipoise.claims.dimension import Dimension
from equipoise.methods import bootstrap
from equipoise.methods.arrays import FloatArray, IntArray

RESULTS = Path(__file__).parent / "results"
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


def standard_error(share: float, count: int) -> float:
    """Monte-Carlo error of a share, never zero."""
    share = min(max(share, 1 / (count + 2)), 1 - 1 / (count + 2))
    return math.sqrt(share * (1 - share) / count)


def not_above(errors: int, count: int, nominal: float, error: float = 1e-3) -> bool:
    """Whether a number of errors is compatible with at most the nominal rate."""
    return errors == 0 or float(bdtrc(errors - 1, count, nominal)) > error


def within_band(errors: int, count: int, nominal: float, error: float = 1e-3) -> bool:
    """Whether a number of errors is compatible with exactly the nominal rate."""
    return (
        not_above(errors, count, nominal, error / 2)
        and float(bdtr(errors, count, nominal)) > error / 2
    )


def main(name: str, run: Callable[[bool], dict[str, Any]]) -> None:
    """Run one script from the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true", help="as many replicates as published")
    result = run(parser.parse_args().full)
    json.dump(result, sys.stdout, indent=1)
    print(f"\n{name}: {'agrees' if result['agrees'] else 'DIFFERS'}")


def write(name: str, result: dict[str, Any]) -> dict[str, Any]:
    """Write a result beside the script and hand it back."""
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(result, indent=1, allow_nan=False) + "\n"
    (RESULTS / f"{name}.json").write_text(text, encoding="utf-8")
    return result
