"""Strong calibration: the Monte-Carlo test against loops, and the whole audit against the authors' settings."""

from pathlib import Path

from measure import Line, at_least, at_most, measure

_GIVEN = """
    import os
    os.environ["OMP_NUM_THREADS"] = "1"
    import numpy as np
    from equipoise.methods import cusum
    n, models, draws, delta = 8000, 11, {draws}, 0.05
    rng = np.random.default_rng(0)
    p = rng.random(n)
    y = (rng.random(n) < p).astype(float)
    residuals = rng.normal(0, 0.1, (models, n))
    null = cusum.bernoulli_null(y, p, tolerance=delta)
    weights = cusum.violations(residuals, null)
"""
_OURS = """
    statistic = cusum.cusum(weights, null, scale=cusum.Scale.{scale})
    found = cusum.run_test(statistic, null=null, draws=draws, seed=np.random.SeedSequence(1))
    answer = found.p
"""
# Theorem 4 as it stands: a uniform for each row; for each model the outcomes at the edge its sign
# picks; rows from the largest predicted violation on; the largest running sum. Plain Python lists,
# sorted once outside the clock.
_LOOP_SETUP = """
    order = [sorted((i for i in range(n) if g[i] != 0), key=lambda i: -abs(g[i])) for g in weights]
    w, risk = weights.tolist(), p.tolist()
"""
_LOOP = """
    largest = []
    for b in range(draws):
        u = rng.random(n).tolist()
        best = 0.0
        for m in range(models):
            g, total, after = w[m], 0.0, None
            for i in order[m]:
                if after is not None and abs(g[i]) != after and total > best:
                    best = total
                q = min(max(risk[i] + (delta if g[i] > 0 else -delta), 0.0), 1.0)
                total += ((1.0 if u[i] <= q else 0.0) - q) * g[i]
                after = abs(g[i])
            best = max(best, total)
        largest.append(best / n)
    answer = max(largest)
"""
# the same with a numpy cumulative sum in place of the innermost loop (which ignores ties)
_ARRAYS = """
    largest = []
    for b in range(draws):
        u = rng.random(n)
        best = 0.0
        for g in weights:
            q = np.clip(p + delta * np.sign(g), 0, 1)
            scores = ((u <= q) - q) * g
            best = max(best, np.cumsum(scores[np.argsort(-np.abs(g))]).max())
        largest.append(best / n)
    answer = max(largest)
"""
# What sup over thresholds says when it is read literally: a sum for every threshold.
_LITERAL = """
    u, best = rng.random(n), 0.0
    g = weights[0]
    q = np.clip(p + delta * np.sign(g), 0, 1)
    for gamma in np.unique(np.abs(g[g != 0])):
        h = g * (np.abs(g) >= gamma)
        best = max(best, ((u <= q) - q) @ h / n)
    answer = best
"""
_WORLD = """
    import os
    {threads}
    import numpy as np
    import polars as pl
    import sklearn.ensemble, sklearn.kernel_approximation, sklearn.linear_model, sklearn.pipeline
    import equipoise as eq
    from equipoise.worlds import interaction_risks
    table = pl.DataFrame(interaction_risks(2000, rng=1)).drop("risk")
    features = ["x" + str(i) for i in range(10)]
    trail = eq.read(table, label="y", score="score")
    eq.calibration
"""
_AUDIT = """
    found = eq.calibration(trail, features=features, rng=7)
    answer = found.p
"""
# Two widths, two depths, two sides, two kinds of test, four folds: 64 forests of a hundred trees.
_AUTHORS = """
    from itertools import product
    from sklearn.ensemble import RandomForestRegressor
    from equipoise.methods import cusum
    x = np.column_stack([table["score"], *(table[name] for name in features)])
    p, y = table["score"].to_numpy(), table["y"].to_numpy()
    fold = cusum.stratified_folds(y, 4, np.random.default_rng(1))
    for test, side in product(("cusum", "simple"), ("upper", "lower")):
        guess = np.zeros((4, len(y)))
        for m, (width, depth) in enumerate(product((5, 10), (4, 8))):
            for k in range(4):
                forest = RandomForestRegressor(100, max_features=width, max_depth=depth, random_state=0)
                forest.fit(x[fold != k], (y - p)[fold != k])
                guess[m, fold == k] = forest.predict(x[fold == k])
        sign = 1 if side == "upper" else -1
        best = 0.0
        for b in range(400):
            q = np.clip(p + 0.05 * sign, 0, 1)
            drawn = np.random.default_rng(b).random(len(y)) <= q
            for g in guess:
                h = np.maximum(sign * g, 0)
                scores = ((drawn - q) * sign * h)[np.argsort(-h)]
                best = max(best, np.cumsum(scores).max() if test == "cusum" else scores.sum())
    answer = best
"""
_FEW = 3


def run(folder: Path) -> list[Line]:
    """Given predictions; then everything."""
    ours = measure(_OURS.format(scale="RAW"), _GIVEN.format(draws=1000))
    default = measure(_OURS.format(scale="STANDARD"), _GIVEN.format(draws=1000))
    few = _GIVEN.format(draws=_FEW)
    loop = 1000 / _FEW * measure(_LOOP, few + _LOOP_SETUP, repeat=2).cpu
    arrays = 1000 / 50 * measure(_ARRAYS, _GIVEN.format(draws=50), repeat=2).cpu
    literal = 1000 * 11 * measure(_LITERAL, few, repeat=1).cpu
    what = "n = 8,000, 11 models, B = 1,000, predictions given"
    audit = measure(_AUDIT, _WORLD.format(threads=""))
    single = 'os.environ["OMP_NUM_THREADS"] = "1"'
    authors = measure(_AUTHORS, _WORLD.format(threads=single), repeat=1)
    spent = f"{audit.cpu:.1f} against {authors.cpu:.1f} CPU s, {audit.wall:.1f} s on the clock"
    return [
        at_least(
            f"{what}, against a running sum in plain Python",
            loop / ours.cpu,
            50,
            "×",
            f"{ours.cpu:.2f} against {loop:.0f} CPU s, the loop timed on {_FEW} draws",
        ),
        at_least(
            f"{what}, against a sum for each threshold",
            literal / ours.cpu,
            50,
            "×",
            f"against {literal:,.0f} CPU s, timed on one draw of one model",
        ),
        at_least(
            f"{what}, against a loop of numpy cumulative sums",
            arrays / ours.cpu,
            0,
            "×",
            f"against {arrays:.1f} CPU s, timed on 50 draws",
        ),
        at_most(f"{what}, standardised sums", default.cpu, 2, "CPU s"),
        at_least(
            "the whole default audit, n = 2,000, importance included",
            authors.cpu / audit.cpu,
            5,
            "× less CPU than 64 forests of 100 trees and 400 draws",
            spent,
        ),
    ]
