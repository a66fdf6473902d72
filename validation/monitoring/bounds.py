"""How often the bounds after the last batch miss a disparity that never moved.

Rates and sizes may move from batch to batch as long as the disparity does not. Bounds come from at
most 120 batches; beyond that neighbours are joined, and a mixture of unlike batches would show.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from records import main, write
from streams import ERROR, Floats, chunks, counted, drawn, share_row

from equipoise.methods.sequential import sequence_bounds

SEED = 85
POSSIBLE = {False: (-1.0, 1.0), True: (0.0, np.inf)}


def worlds() -> Iterator[tuple[str, Floats, Floats, bool, float]]:
    """Name, rows and rates ``(2, T)``, whether a ratio is asked for, and the disparity."""
    for times in (24, 104, 240):
        even, flat = np.arange(times) % 2 == 0, np.ones(times)
        still = np.stack([20 * flat, 200 * flat])
        yield f"{times} alike, gap", still, np.stack([0.3 * flat, 0.3 * flat]), False, 0.0
        yield f"{times} alike, ratio", still, np.stack([0.04 * flat, 0.05 * flat]), True, 0.8
        rows = np.stack([np.where(even, 80, 20), np.where(even, 20, 80)]).astype(np.float64)
        rate = np.where(even, 0.7, 0.3)
        yield f"{times} of two kinds in turn, gap", rows, np.stack([rate, rate]), False, 0.0
        yield f"{times} of two kinds in turn, ratio", rows, np.stack([0.8 * rate, rate]), True, 0.8
        slow = np.linspace(0.2, 0.8, times)
        rows = np.stack([np.round(100 * slow), np.round(100 * (1 - slow))])
        yield f"{times} that drift, gap", rows, np.stack([slow, slow]), False, 0.0


def run(full: bool = False) -> dict[str, Any]:
    """Measure them; the quick run has 60 streams of each and wider bars."""
    streams = 1000 if full else 60
    rows = []
    for place, (name, size, rates, relative, truth) in enumerate(worlds()):
        rng = np.random.default_rng([SEED, place])
        missed, wide = [], []
        for part in chunks(streams, size.shape[1]):
            n, k = drawn(rng, size, rates, size.shape[1], part)
            # each side is promised half of the error
            stream = counted(n, k, relative)
            low, high = sequence_bounds(stream, ERROR / 2, POSSIBLE[relative])
            missed.append((low > truth) | (high < truth))
            wide.append(high - low)
        share = float(np.concatenate(missed).mean())
        width = float(np.nanmedian(np.concatenate(wide)))
        rows.append({"world": name, **share_row(share, streams, ERROR, full), "width": width})
    result = {
        "source": "bounds",
        "seed": SEED,
        "streams": streams,
        "rows": rows,
        "agrees": all(row["agrees"] for row in rows),
    }
    return write(__file__, "bounds", result, full)


if __name__ == "__main__":
    main("bounds", run)
