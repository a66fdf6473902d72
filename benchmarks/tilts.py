"""Bounds under tilts of the covariates: against fairaudit, and at a hundred thousand rows.

Both sides run on one thread, so that CPU seconds compare. fairaudit's time is linear in the number of
resamples apart from one factorisation; at n = 5,000 it is measured at two small numbers of resamples
and extrapolated to 500, and the line says so.
"""

from pathlib import Path

from measure import Line, Measured, at_least, at_most, measure
from peers import python_of

RESAMPLES = 500
_DATA = """
    import os
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    import numpy as np
    rng = np.random.default_rng(1)
    n = {n}
    x = rng.random(n)
    z = rng.standard_normal(n)
    hit = (rng.random(n) < 0.9 - 0.05 * x).astype(int)
"""
_OURS = """
    import polars as pl
    import equipoise as eq
    frame = pl.DataFrame(dict(x=x, z=z, hit=hit))
    trail = eq.read(frame, prediction="hit")
    claim = eq.gap(eq.selection_rate, target=0.9)
    # The first call imports what it needs; the audit is what is compared.
    eq.shift(eq.read(frame.head(100), prediction="hit"), claim, over=eq.gaussian("x"), resamples=20, rng=0)
"""
_RUN_OURS = """
    result = eq.shift(trail, claim, over=eq.gaussian({over}, bandwidth=0.5), method="{method}",
                      side="lower", engine="{engine}", resamples={resamples}, rng=0, progress=False)
    answer = (result.rank, round(result.critical, 7))
"""
_THEIRS = """
    from fairaudit import Auditor, Metric
    metric = Metric("hit", lambda z, y: (z == y).flatten().astype(float), lambda z, y, x: np.full(len(z), 0.9))
"""
_RUN_THEIRS = """
    auditor = Auditor(x[:, None], np.ones((n, 1)), hit[:, None], metric)
    auditor.calibrate_rkhs(0.1, "upper", "rbf", {{"gamma": 2.0}}, {{"B": {resamples}, "student_threshold": None}})
    answer = round(float(auditor.critical_values[0]), 7)
"""


def run(folder: Path) -> list[Line]:
    """All figures of tilts."""
    return [*_beside(400, 0), *_beside(1600, 100), *_largest(), *_large()]


def _ours(n: int, method: str, **more: object) -> Measured:
    options: dict[str, object] = {
        "engine": "auto",
        "resamples": RESAMPLES,
        "over": '"x"',
        "method": method,
    }
    return measure(_RUN_OURS.format(**(options | more)), _DATA.format(n=n) + _OURS)


def _theirs(n: int, resamples: int) -> Measured:
    code = _RUN_THEIRS.format(resamples=resamples)
    return measure(code, _DATA.format(n=n) + _THEIRS, python=python_of("fairaudit"), repeat=1)


def _beside(n: int, aim: float) -> list[Line]:
    theirs = _theirs(n, RESAMPLES)
    lines = []
    for method in ("unscaled", "rescaled"):
        ours = _ours(n, method)
        detail = f"{1000 * ours.cpu:.0f} ms against {theirs.cpu:.1f} s of CPU"
        if method == "unscaled":
            detail += f"; critical values {ours.answer.split()[-1].rstrip(')')} and {theirs.answer}"
        what = f"tilts, {method}, n = {n:,}, {RESAMPLES} resamples"
        lines.append(at_least(what, theirs.cpu / ours.cpu, aim, "× faster than fairaudit", detail))
    return lines


def _largest() -> list[Line]:
    few, more = (_theirs(5000, resamples) for resamples in (5, 25))
    each = (more.cpu - few.cpu) / 20
    whole = few.cpu + (RESAMPLES - 5) * each
    lines = []
    for method in ("unscaled", "rescaled"):
        ours = _ours(5000, method)
        detail = (
            f"{1000 * ours.cpu:.0f} ms against {whole:.0f} s of CPU, extrapolated from {few.cpu:.1f} s "
            f"for 5 and {more.cpu:.1f} s for 25 resamples; {ours.peak_mb:.0f} MB against "
            f"{more.peak_mb:,.0f} MB"
        )
        what = f"tilts, {method}, n = 5,000, {RESAMPLES} resamples"
        lines.append(at_least(what, whole / ours.cpu, 1000, "× faster than fairaudit", detail))
    return lines


def _large() -> list[Line]:
    few, many = (_ours(100_000, "rescaled", engine="moments", resamples=b) for b in (200, 2000))
    wide = _ours(100_000, "rescaled", engine="moments", over='"x", "z"')
    detail = f"{many.wall:.2f} s for 2,000 resamples and {few.wall:.2f} s for 200"
    return [
        at_most(
            "tilts, n = 100,000, moments, ten times the resamples",
            many.wall / few.wall,
            1.2,
            "×",
            detail,
        ),
        at_most("tilts, n = 100,000, one covariate, peak memory", many.peak_mb, 1000, "MB"),
        at_most(
            f"tilts, n = 100,000, two covariates, rank and critical value {wide.answer}, peak memory",
            wide.peak_mb,
            1000,
            "MB",
            f"{wide.wall:.1f} s",
        ),
    ]
