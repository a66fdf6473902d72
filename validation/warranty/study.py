"""The statistical warranty: how often each audit is wrong, where designs are drawn anew each day.

    python validation/warranty/study.py [--full] [--only AUDIT …]

Each promise is put to the test in designs that a generator draws at random, by what users call and
with its defaults: 10 000 worlds of a promise, a thousand where an audit takes long. The seed is the
day of the run, so that next month's run is a new examination; every figure names its seed. Two
figures count: over all designs, and in the worst, each with the highest chance of an error that is
compatible with the count at 99 % confidence. With --only, the other figures stay as they were.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(1, str(Path(__file__).parents[2]))
# every core has a process; threads that wait for one another took a quarter of the time
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["POLARS_MAX_THREADS"] = "1"

from validation.records import write
from validation.warranty.promise import CONFIDENCE, examine
from validation.warranty.promises import PROMISES

STORED = Path(__file__).parent / "results" / "warranty.json"
QUICK = {"designs": 2, "worlds": 10}


def run(
    full: bool = False, only: list[str] | None = None, worlds: int | None = None
) -> dict[str, Any]:
    """Examine promises; ``full`` takes thousands of worlds of each instead of twenty."""
    seed = int(os.environ.get("EQUIPOISE_SEED") or f"{datetime.date.today():%Y%m%d}")
    known = [promise.audit for promise in PROMISES]
    if strange := [name for name in only or () if name not in known]:
        raise SystemExit(f"No promise is called {strange[0]!r}. There is: {', '.join(known)}.")
    kept = _stored() if only else {}
    for audit in only or known:
        # one after the other, so that what is done is stored when time runs out
        one = [p for p in PROMISES if p.audit == audit]
        (row,) = examine(one, seed, **({"worlds": worlds} if full else QUICK))
        kept[audit] = {**row, "seed": seed}
        print(json.dumps(kept[audit]), file=sys.stderr, flush=True)
        result = _result([kept[name] for name in known if name in kept], full)
    return result


def _stored() -> dict[str, dict[str, Any]]:
    if not STORED.exists():
        return {}
    return {row["audit"]: row for row in json.loads(STORED.read_text(encoding="utf-8"))["rows"]}


def _result(rows: list[dict[str, Any]], full: bool) -> dict[str, Any]:
    result = {
        "source": "statistical warranty",
        "confidence": CONFIDENCE,
        "rows": rows,
        "agrees": all(row["agrees"] for row in rows),
    }
    return write(__file__, "warranty", result, full)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true", help="thousands of worlds of each promise")
    parser.add_argument("--only", nargs="+", help="the audits to examine, as the table calls them")
    parser.add_argument("--worlds", type=int, help="worlds of each design, at most")
    asked = parser.parse_args()
    found = run(asked.full, asked.only, asked.worlds)
    print(f"warranty: {'agrees' if found['agrees'] else 'DIFFERS'}")
