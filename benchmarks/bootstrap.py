"""Bounds and flags by bootstrap: against fairaudit and Fairlearn, and as the rows grow."""

from pathlib import Path

from measure import Line, Measured, at_least, at_most, measure
from peers import python_of

_COVERAGE = """
    import numpy as np
    rng = np.random.default_rng(1)
    n = {n}
    x = rng.random(n)
    hit = (rng.random(n) < 0.9).astype(int)
"""
_INTERVALS_OURS = """
    import polars as pl
    import equipoise as eq
    frame = pl.DataFrame(dict(x=x, hit=hit))
    trail = eq.read(frame, prediction="hit")
    across = eq.intervals("x", edges=np.linspace(0, 1, 51))
    claim = eq.gap(eq.selection_rate, across=across, target=eq.constant(0.9))
    # The first call imports what it needs; the audit is what is compared.
    eq.certify(eq.read(frame.head(200), prediction="hit"), claim, method="bootstrap", resamples=20, rng=0)
"""
_INTERVALS_THEIRS = """
    from fairaudit import Auditor, Metric
    from fairaudit.groups import get_rectangles
    metric = Metric("hit", lambda z, y: (z == y).flatten().astype(float), lambda z, y, x: np.full(len(z), 0.9))
    grid = {0: np.linspace(0, 1, 51)[1:-1]}
"""
_RUN_OURS = """
    result = eq.certify(trail, claim, level=0.9, side="lower", method="bootstrap", resamples=500, rng=0)
    answer = (len(result), round(result.critical, 6))
"""
_RUN_THEIRS = """
    X, Y = x[:, None], np.ones((n, 1))
    groups = get_rectangles(X, grid)
    auditor = Auditor(X, Y, hit[:, None], metric)
    auditor.calibrate_groups(0.1, "upper", groups, bootstrap_params={"B": 500, "student": "prob_bound", "prob_threshold": 0.01, "w_0": 1e9})
    # Our result holds the bound of every group; theirs is asked for them one by one.
    bounds = [auditor.query_group(g) for g in range(groups.shape[1])]
    answer = len(bounds)
"""

_PEOPLE = """
    import numpy as np
    rng = np.random.default_rng(2)
    n = {n}
    race = np.array(["a", "b", "c", "d"])[rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])]
    sex = np.array(["f", "m"])[rng.integers(0, 2, n)]
    age = np.array(["young", "middle", "old"])[rng.choice(3, n, p=[0.25, 0.5, 0.25])]
    wrong = (rng.random(n) < 0.3).astype(int)
"""
_FLAGS_OURS = """
    import polars as pl
    import equipoise as eq
    frame = pl.DataFrame(dict(race=race, sex=sex, age=age, wrong=wrong))
    trail = eq.read(frame, prediction="wrong")
    claim = eq.gap(eq.selection_rate, across=eq.intersections("race", "sex", "age"))
    eq.flag(eq.read(frame.head(200), prediction="wrong"), claim)
"""
_FLAGS_THEIRS = """
    from fairaudit import Auditor, Metric
    from fairaudit.groups import get_intersections
    metric = Metric("wrong", lambda z, y: z.flatten().astype(float), lambda z, y, x: z.flatten().astype(float))
    X = np.stack([race, sex, age], axis=1)
"""
_FAIRLEARN = """
    import pandas as pd
    from fairlearn.metrics import MetricFrame, selection_rate
    people = pd.DataFrame(dict(race=race, sex=sex, age=age))
    people["all"] = people.race + people.sex + people.age
"""


def run(folder: Path) -> list[Line]:
    """All figures of the bootstrap."""
    return [*_intervals(), *_flags(), *_fairlearn(), *_flat(), *_many_groups()]


def _intervals() -> list[Line]:
    lines = []
    for n, aim in ((1600, 100), (10_000, 0), (100_000, 500)):
        base = _COVERAGE.format(n=n)
        ours = measure(_RUN_OURS, base + _INTERVALS_OURS)
        theirs = measure(
            _RUN_THEIRS, base + _INTERVALS_THEIRS, python=python_of("fairaudit"), repeat=1
        )
        lines += _beside(
            f"1,275 intervals, n = {n:,}, 500 resamples", ours, theirs, aim, "fairaudit"
        )
    return lines


def _flags() -> list[Line]:
    base = _PEOPLE.format(n=6172)
    ours = measure("answer = len(eq.flag(trail, claim, above=0.05))", base + _FLAGS_OURS)
    same = measure(
        'answer = len(eq.flag(trail, claim, above=0.05, method="bootstrap", resamples=500, rng=0))',
        base + _FLAGS_OURS,
    )
    run_theirs = """
    groups = get_intersections(X, discretization={})
    auditor = Auditor(X, np.ones((n, 1)), wrong[:, None], metric)
    flags, _ = auditor.flag_groups(groups, "lower", 0.1, 0.05, {"B": 500, "student": "mad", "student_threshold": -np.inf})
    answer = groups.shape[1]
    """
    theirs = measure(run_theirs, base + _FLAGS_THEIRS, python=python_of("fairaudit"), repeat=1)
    return [
        *_beside("flags, n = 6,172, default", ours, theirs, 0, "fairaudit"),
        *_beside("flags, n = 6,172, the same method", same, theirs, 0, "fairaudit"),
    ]


def _fairlearn() -> list[Line]:
    base = _PEOPLE.format(n=10_000)
    ours = measure(
        'answer = len(eq.certify(trail, claim, method="bootstrap", resamples=500, rng=0))',
        base + _FLAGS_OURS,
    )
    run_theirs = """
    frame = MetricFrame(metrics=selection_rate, y_true=wrong, y_pred=wrong, sensitive_features=people[["race", "sex", "age"]],
                        n_boot=500, ci_quantiles=[0.05, 0.95], random_state=0)
    answer = len(frame.by_group)
    """
    theirs = measure(run_theirs, base + _FAIRLEARN, python=python_of("fairlearn"), repeat=1)
    return _beside(
        "intervals for intersections, n = 10,000, 500 resamples", ours, theirs, 300, "Fairlearn"
    )


_MADE = """
    import numpy as np
    import polars as pl
    import equipoise as eq
    # Counts stand for the rows, as they do once the cells exist.
    sizes = np.full((24, 2), {n} // 48)
    frame = pl.DataFrame(dict(
        race=np.repeat(list("abcd"), 12), sex=np.tile(np.repeat(list("fm"), 6), 4),
        age=np.tile(list("xyz"), 16), hit=np.tile([0, 1, 1, 0, 1, 0], 8), rows=np.full(48, {n} // 48)))
    trail = eq.read(frame, prediction="hit", count="rows")
    claim = eq.gap(eq.selection_rate, across=eq.intersections("race", "sex", "age"))
    eq.certify(trail, claim, method="bootstrap", resamples=20, rng=0)
"""


def _flat() -> list[Line]:
    code = 'answer = len(eq.certify(trail, claim, method="bootstrap", resamples=500, rng=0))'
    small, large = (measure(code, _MADE.format(n=n), repeat=5) for n in (10_000, 10_000_000))
    detail = f"{1000 * large.cpu:.0f} ms against {1000 * small.cpu:.0f} ms"
    return [
        at_most("500 resamples, n = 10⁷ against n = 10⁴", large.cpu / small.cpu, 1.5, "×", detail)
    ]


_MANY = """
    import numpy as np
    import polars as pl
    import equipoise as eq
    rng = np.random.default_rng(3)
    n = 200_000
    frame = pl.DataFrame({f"a{i}": rng.integers(0, 9, n).astype(str) for i in range(5)})
    frame = frame.with_columns(hit=pl.Series(rng.integers(0, 2, n)))
    trail = eq.read(frame, prediction="hit")
    claim = eq.gap(eq.selection_rate, across=eq.intersections(*(f"a{i}" for i in range(5))))
"""


def _many_groups() -> list[Line]:
    done = measure(
        'answer = len(eq.certify(trail, claim, method="bootstrap", resamples=1000, rng=0))',
        _MANY,
        repeat=1,
    )
    what = f"bounds for {int(done.answer):,} groups, 1,000 resamples"
    return [at_most(f"{what}, peak memory", done.peak_mb, 2000, "MB", f"{done.cpu:.0f} CPU s")]


def _beside(what: str, ours: Measured, theirs: Measured, aim: float, peer: str) -> list[Line]:
    detail = f"{1000 * ours.cpu:.0f} ms against {theirs.cpu:.1f} s of CPU"
    ratio = theirs.cpu / ours.cpu
    return [
        at_least(what, ratio, aim, f"× faster than {peer}", detail),
        at_most(
            f"{what}, peak memory", ours.peak_mb, 500, "MB", f"{peer} {theirs.peak_mb:,.0f} MB"
        ),
    ]
