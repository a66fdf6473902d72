"""Who is unknown: a million rows with probabilities in place of groups, and few true labels beside ppi-python.

The scan is set beside the plain group-by that the same cells need. Prediction-powered rates are set
beside those of `ppi-python`, on the same rows of one group: how often a 95 % interval misses, and how
wide it is.
"""

import json
import subprocess
import tempfile
import textwrap
from pathlib import Path
from typing import Any

from measure import Line, at_least, at_most, measure
from peers import PeerError, last_line, python_of

ROWS = 1_000_000
WORLDS = 1000
#: Rows, true labels among them, rate, chance that the cheap label is wrong.
JUDGES = (
    (2000, 100, 0.3, 0.0),
    (2000, 100, 0.3, 0.05),
    (2000, 100, 0.3, 0.2),
    (2000, 100, 0.3, 0.5),
    (2000, 40, 0.1, 0.05),
)

_TABLE = """
    import numpy as np
    import polars as pl
    import duckdb
    import equipoise as eq
    rng = np.random.default_rng(3)
    n = {rows}
    chance = rng.beta(0.5, 0.8, n)
    frame = pl.DataFrame(dict(
        p_black=chance, p_other=1 - chance, region=rng.integers(0, 5, n), hired=(rng.random(n) < 0.3 + 0.1 * chance).astype(int),
    ))
    roles = dict(prediction="hired", proxy=dict(race=dict(Black="p_black", Other="p_other")))
    few = eq.read(frame.head(500), **roles)
    claim = eq.gap(eq.selection_rate, across="race", target=eq.overall())
    eq.certify(few, claim, rng=0)
    con = duckdb.connect()
    con.register("t", frame.to_arrow())
    con.execute("CREATE TABLE people AS SELECT * FROM t")
    con.execute("SET threads TO 2")
    relation = con.table("people")
"""
_OURS = """
    found = eq.certify(eq.read(relation, **roles), claim, rng=0)
    answer = found.provenance.counted
"""
# what the sums of similar probabilities take: one pass, twenty cells for each of the two levels
_BARE = """
    sums = ", ".join(f"sum({p}), sum({p} * {p}), sum(hired), sum({p} * hired)" for p in ("p_black", "p_other"))
    answer = con.execute(
        f"SELECT least(floor(p_black * 20), 19), least(floor(p_other * 20), 19), count(*), {sums} FROM people GROUP BY 1, 2"
    ).fetchall()[0][0]
"""
_THEIRS = """
import json, sys
import numpy as np
from ppi_py import ppi_mean_ci
rows = np.load(sys.argv[1])
ends = []
for y, f, rest in zip(rows["gold"], rows["cheap"], rows["rest"]):
    low, high = ppi_mean_ci(y, f, rest, alpha=0.05)
    ends.append((float(np.ravel(low)[0]), float(np.ravel(high)[0])))
print(json.dumps(ends))
"""


def run(folder: Path) -> list[Line]:
    """The scan with probabilities, then intervals from few true labels."""
    ours = measure(_OURS, _TABLE.format(rows=ROWS))
    bare = measure(_BARE, _TABLE.format(rows=ROWS))
    if ours.answer != str(ROWS):
        raise RuntimeError(f"{ours.answer} rows were counted instead of {ROWS}")
    detail = f"{ours.cpu:.2f} against {bare.cpu:.2f} CPU s"
    # one query, with squares and cubes of every probability besides: what it costs, without an aim
    what = f"certify with probabilities, {ROWS:,} rows in one scan, beside a bare GROUP BY"
    lines = [at_least(what, ours.cpu / bare.cpu, 0, "×", detail)]
    for place, judge in enumerate(JUDGES):
        lines += _beside(place, *judge)
    return lines


def _beside(place: int, rows: int, gold: int, rate: float, wrong: float) -> list[Line]:
    import numpy as np

    rng = np.random.default_rng([20_261_118, place])
    true = (rng.random((WORLDS, rows)) < rate).astype(float)
    cheap = np.where(rng.random(true.shape) < wrong, 1 - true, true)
    what = f"{gold} true labels of {rows:,}, rate {rate:g}, {wrong:.0%} of cheap labels wrong"
    ours = np.array([_own(true[i], cheap[i], gold) for i in range(WORLDS)])
    alone = np.array([_own(true[i], None, gold) for i in range(WORLDS)])
    lines = [
        at_most(f"{what}: intervals that miss", 100 * _missed(ours, rate), 6 + _slack(6), "%"),
        at_most(
            f"{what}: width beside true labels alone",
            float(np.median(_width(ours) / _width(alone))),
            1.02,
            "×",
        ),
    ]
    try:
        theirs = np.array(
            _peer({"gold": true[:, :gold], "cheap": cheap[:, :gold], "rest": cheap[:, gold:]})
        )
    except PeerError as problem:
        return [*lines, Line(what=f"{what}: ppi-python", figure=str(problem), aim="–", met=True)]
    detail = f"which misses in {100 * _missed(theirs, rate):.1f} %, for 5 % promised"
    ratio = float(np.median(_width(ours)) / max(np.median(_width(theirs)), 1e-12))
    return [*lines, at_least(f"{what}: width beside ppi-python's", ratio, 0, "×", detail)]


def _own(true: Any, cheap: Any, gold: int) -> tuple[float, float]:
    import numpy as np
    import polars as pl

    import equipoise as eq

    label = [*true[:gold].astype(int).tolist(), *[None] * (len(true) - gold)]
    columns: dict[str, Any] = {
        "group": ["all"] * len(label),
        "label": pl.Series(label, dtype=pl.Int64),
    }
    # accuracy of a model that always says yes: the rate of the label
    columns["says"] = np.ones(len(label), dtype=int)
    roles: dict[str, Any] = {"label": "label", "prediction": "says"}
    if cheap is not None:
        columns["judge"] = np.asarray(cheap, dtype=int)
        roles["proxy_label"] = "judge"
    trail = eq.read(pl.DataFrame(columns), **roles)
    claim = eq.gap(eq.accuracy, across="group", target=eq.constant(0.0))
    (row,) = eq.certify(trail, claim, rng=0).rows
    if row.lower is None or row.upper is None:
        raise RuntimeError(f"no interval: {row.note}")
    return row.lower, row.upper


def _missed(ends: Any, rate: float) -> float:
    return float(((ends[:, 0] > rate) | (ends[:, 1] < rate)).mean())


def _slack(percent: float) -> float:
    return float(3 * (percent * (100 - percent) / WORLDS) ** 0.5)


def _width(ends: Any) -> Any:
    return ends[:, 1] - ends[:, 0]


def _peer(arrays: dict[str, Any]) -> list[tuple[float, float]]:
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.npz"
        np.savez(file, **arrays)
        done = subprocess.run(
            [python_of("ppi"), "-c", textwrap.dedent(_THEIRS), str(file)],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise PeerError(f"did not run: {last_line(done.stderr)}")
    found: list[tuple[float, float]] = json.loads(done.stdout.splitlines()[-1])
    return found
