"""Summaries of spread: binomial draws from cells against a bootstrap of the rows."""

from pathlib import Path

from measure import Line, Measured, at_least, at_most, measure

GROUPS, RESAMPLES = 100, 500
SIZES = (10_000, 100_000, 1_000_000)

_ROWS = """
    import numpy as np
    import polars as pl
    import equipoise as eq
    from equipoise.methods.spread import Meta, meta_metric
    n, groups, resamples = {n}, 100, 500
    rng = np.random.default_rng(0)
    group = np.sort(rng.integers(0, groups, n))
    hit = (rng.random(n) < 0.2 + 0.006 * group).astype(np.int64)
    starts = np.searchsorted(group, np.arange(groups + 1))
    frame = pl.DataFrame(dict(team=group, hit=hit))
    trail = eq.read(frame, prediction="hit")
    # First use brings in the mathematics; both sides start warm.
    eq.summarize(trail, "selection_rate", across="team", resamples=20, rng=0)
"""
_OURS = """
    found = eq.summarize(trail, "selection_rate", across="team", resamples=resamples, rng=0)
    answer = found.resamples
"""
_LEAN = """
    from equipoise.methods.spread import bootstrap_draws, sample_from_sums
    size, total = np.bincount(group), np.bincount(group, weights=hit)
    sample = sample_from_sums(size, total, binary=True)
    draws = bootstrap_draws(sample, resamples, np.random.default_rng(0))
    answer = np.quantile(meta_metric(Meta.VARIANCE, draws.mean), [0.025, 0.975]).size
"""
# As one would write it: for every resample, the rows of every group drawn again and averaged.
_LOOP = """
    parts = [hit[a:b] for a, b in zip(starts[:-1], starts[1:])]
    drawn = []
    for _ in range({resamples}):
        means = [part[rng.integers(0, len(part), len(part))].mean() for part in parts]
        drawn.append(np.var(means, ddof=1))
    answer = np.quantile(drawn, [0.025, 0.975]).size
"""
# The same without the loop over groups: one draw of row numbers and one bincount per resample.
_VECTORISED = """
    size = np.diff(starts)
    first, width = np.repeat(starts[:-1], size), np.repeat(size, size)
    drawn = []
    for _ in range({resamples}):
        rows = first + (rng.random(n) * width).astype(np.int64)
        means = np.bincount(group, weights=hit[rows], minlength=groups) / size
        drawn.append(np.var(means, ddof=1))
    answer = np.quantile(drawn, [0.025, 0.975]).size
"""


def run(folder: Path) -> list[Line]:
    """The whole of `summarize`, and its resampling alone, against two bootstraps of rows."""
    ours, lean, lines = {}, {}, []
    for n in SIZES:
        setup = _ROWS.format(n=n)
        ours[n], lean[n] = measure(_OURS, setup), measure(_LEAN, setup)
        lines += _against(n, setup, ours[n], lean[n])
    small, large = SIZES[0], SIZES[-1]
    flat = lean[large].cpu / lean[small].cpu
    counted = {n: _from_counts(n) for n in (small, large)}
    detail = f"{1000 * counted[large].cpu:.0f} ms against {1000 * counted[small].cpu:.0f} ms"
    whole = counted[large].cpu / counted[small].cpu
    sizes = f"n = {large:,} against n = {small:,}"
    return [
        *lines,
        at_most(f"summarize from counts, {sizes}", whole, 1.3, "×", detail),
        at_most(f"counting the rows, then resampling, {sizes}", flat, 10, "×"),
    ]


def _against(n: int, setup: str, ours: Measured, lean: Measured) -> list[Line]:
    # A tenth of the resamples where the rows are many; the time per resample does not change.
    part = RESAMPLES if n < 1_000_000 else RESAMPLES // 10
    scale = RESAMPLES / part
    loop = measure(_LOOP.format(resamples=part), setup, repeat=1).cpu * scale
    fast = measure(_VECTORISED.format(resamples=part), setup, repeat=1).cpu * scale
    what = f"K = {GROUPS}, B = {RESAMPLES}, n = {n:,}"
    plain = "× a plain row bootstrap"
    detail = f"{1000 * lean.cpu:.0f} ms against {loop:.2f} s"
    better = f"{1000 * lean.cpu:.0f} ms against {fast:.2f} s"
    whole = f"{1000 * ours.cpu:.0f} ms; all six measures, every test and the shrinkage"
    return [
        at_least(f"variance interval, {what}", loop / lean.cpu, 20, plain, detail),
        at_least(f"the same, {what}", fast / lean.cpu, 0, "× a vectorised one", better),
        at_least(f"all of summarize, {what}", loop / ours.cpu, 0, f"{plain} of one", whole),
    ]


_COUNTS = """
    import numpy as np
    import polars as pl
    import equipoise as eq
    resamples = 500
    each = {n} // 100
    team = np.repeat(np.arange(100), 2)
    ones = np.round(each * (0.2 + 0.006 * np.arange(100))).astype(int)
    rows = np.stack([each - ones, ones], axis=1).reshape(-1)
    frame = pl.DataFrame(dict(team=team, hit=np.tile([0, 1], 100), rows=rows))
    trail = eq.read(frame, prediction="hit", count="rows")
    eq.summarize(trail, "selection_rate", across="team", resamples=20, rng=0)
"""


def _from_counts(n: int) -> Measured:
    return measure(_OURS, _COUNTS.format(n=n), repeat=5)
