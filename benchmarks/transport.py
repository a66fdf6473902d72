"""Audit values by hulls and a knapsack against a linear programming solver (SciPy's HiGHS)."""

from pathlib import Path

from measure import Line, at_least, at_most, measure

_DENSE = """
    import os
    os.environ["OMP_NUM_THREADS"] = "1"
    import numpy as np
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix
    from equipoise.methods.transport import from_matrix, prepare
    from equipoise.methods.transport.answers import resampled_draws
    cells, resamples = 150, 1000
    rng = np.random.default_rng(0)
    points = rng.normal(size=(cells, 3))
    costs = ((points[:, None] - points) ** 2).sum(-1)
    # a third of the moves is forbidden, as between people with different outcomes
    costs[rng.random((cells, cells)) < 1 / 3] = np.inf
    np.fill_diagonal(costs, 0.0)
    losses = rng.random(cells)
    counts = rng.multinomial(5000, rng.dirichlet(np.ones(cells)))
"""
_OURS = """
    problem = prepare(from_matrix(costs), losses, budget=0.2)
    draws = resampled_draws(
        problem, counts, rows=142, resamples=resamples, rng=np.random.default_rng(1)
    )
    answer = draws.size
"""
# The same resamples' program; its matrices are built outside the clock and only f changes.
_SOLVER = """
    source, target = np.nonzero(np.isfinite(costs))
    rows = csr_matrix((np.ones(source.size), (source, np.arange(source.size))))
    spent = csr_matrix(costs[source, target][None, :])
    gain = losses[target] - losses[source]
    drawn = rng.multinomial(142, counts / counts.sum(), size={resamples}) / 142
"""
_SOLVE = """
    found = [
        -linprog(-gain, A_eq=rows, b_eq=f, A_ub=spent, b_ub=[0.2], method="highs").fun
        for f in drawn
    ]
    answer = found
"""
_AGREE = """
    problem = prepare(from_matrix(costs), losses, budget=0.2)
    found = [
        -linprog(-gain, A_eq=rows, b_eq=f, A_ub=spent, b_ub=[0.2], method="highs").fun
        for f in drawn
    ]
    answer = float(np.abs(problem.values(drawn) - found).max())
"""
_SPARSE = """
    import os
    os.environ["OMP_NUM_THREADS"] = "1"
    import numpy as np
    from equipoise.methods.transport import Method, from_neighbours, infer, prepare
    cells, each = 5000, 50
    rng = np.random.default_rng(0)
    source = np.repeat(np.arange(cells), each)
    target = (source + np.tile(np.arange(1, each + 1), cells)) % cells
    cost = rng.random(source.size)
    losses = rng.random(cells)
    counts = rng.multinomial(100_000, rng.dirichlet(np.ones(cells)))
"""
_WHOLE = """
    moves = from_neighbours(source, target, cost, cells=cells)
    problem = prepare(moves, losses, budget=0.2)
    found = infer(
        problem, counts, rng=np.random.default_rng(1), method=Method.{method}, resamples=1000
    )
    answer = found.interval(0.95)
"""
_SOLVED = 5


def run(folder: Path) -> list[Line]:
    """One resample against the solver; and thousands of cells."""
    ours = measure(_OURS, _DENSE)
    solver = measure(_SOLVE, _DENSE + _SOLVER.format(resamples=_SOLVED), repeat=2)
    gap = float(measure(_AGREE, _DENSE + _SOLVER.format(resamples=_SOLVED), repeat=1).answer)
    each, theirs = ours.cpu / 1000, solver.cpu / _SOLVED
    detail = f"{1e6 * each:.0f} µs against {1e3 * theirs:.0f} ms of CPU per resample"
    return [
        at_least("K = 150 cells, B = 1,000", theirs / each, 1000, "× faster than HiGHS", detail),
        at_most("the same, largest difference from HiGHS", gap, 1e-9, "in the value"),
        *_sparse("M_OUT_OF_N", "m-out-of-n bootstrap"),
        *_sparse("BOOTSTRAP", "bootstrap"),
        *_sparse("AUTO", "default method"),
    ]


def _sparse(method: str, name: str) -> list[Line]:
    done = measure(_WHOLE.format(method=method), _SPARSE)
    what = f"K = 5,000 cells × 50 comparable, B = 1,000, {name}"
    return [
        at_most(what, done.wall, 5, "s", f"{done.cpu:.2f} CPU s, building the hulls included"),
        at_most(f"{what}, peak memory", done.peak_mb, 1000, "MB"),
    ]
