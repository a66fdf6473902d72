"""Empirical likelihood: many groups, many rows, one joint test."""

from pathlib import Path

from measure import Line, at_least, at_most, measure

_NUMPY = """
import numpy as np
rng = np.random.default_rng(1)
"""
_JOINT = (
    _NUMPY
    + """
n, m = {n}, 10
x, loss = rng.random(n), rng.normal(size=n) ** 2
group = (x * m).astype(int)

def plain_newton(g):
    # one multiplier per group, all in one Newton iteration over the rows
    n, m = g.shape
    at = np.zeros(m)
    for _ in range(50):
        first, second = np.zeros(m), np.zeros((m, m))
        for row in g:
            z = 1 + row @ at
            first += row / z
            second -= np.outer(row, row) / z**2
        step = np.linalg.solve(second, -first)
        at = at + step
        if np.abs(step).max() < 1e-10:
            break
    return 2 * np.log(1 + g @ at).sum()

def matrix_newton(g):
    # the same with matrix products in place of the loop over rows
    at = np.zeros(g.shape[1])
    for _ in range(50):
        scaled = g / (1 + g @ at)[:, None]
        step = np.linalg.solve(scaled.T @ scaled, scaled.sum(axis=0))
        at = at + step
        if np.abs(step).max() < 1e-10:
            break
    return 2 * np.log(1 + g @ at).sum()
"""
)


def run(folder: Path) -> list[Line]:
    """The aims of the likelihood audits."""
    return [*_joint(), _p_values(), _interval(), *_band()]


def _joint() -> list[Line]:
    ours = """
from equipoise.methods.published.likelihood import segments
from equipoise.methods.published.likelihood.mean import joint_disjoint
groups = segments([loss[group == j] for j in range(m)])
joint_disjoint(groups, np.ones(m))
"""
    runs = {}
    for n in (2000, 4000):
        setup = _JOINT.format(n=n) + ours
        code = "for _ in range(50): answer = joint_disjoint(groups, np.ones(m)).statistic"
        runs[n] = measure(code, setup).cpu / 50
    slow = measure(
        "answer = plain_newton((group[:, None] == np.arange(m)) * (loss - 1)[:, None])",
        _JOINT.format(n=4000),
    )
    matrix = measure(
        "for _ in range(20): answer = matrix_newton((group[:, None] == np.arange(m)) * (loss - 1)[:, None])",
        _JOINT.format(n=4000),
    )
    return [
        at_least(
            "joint EL, 10 disjoint groups, 4000 rows, against a 10-dimensional Newton in matrix products",
            matrix.cpu / 20 / runs[4000],
            50,
            "×",
        ),
        at_least(
            "joint EL, 10 disjoint groups, 4000 rows, against a row-by-row 10-dimensional Newton",
            slow.cpu / runs[4000],
            50,
            "×",
        ),
        at_most("joint EL, 10 disjoint groups, 2000 rows", 1000 * runs[2000], 3, "ms"),
    ]


def _p_values() -> Line:
    setup = (
        _NUMPY
        + """
from equipoise.methods.hypotheses import Above, normal_tails
from equipoise.methods.published.likelihood import known_roots
n = rng.integers(1, 500, 10_000).astype(float)
k = rng.binomial(n.astype(int), 0.3).astype(float)
theta = np.full(10_000, 0.3)
def p_values():
    return Above(limit=0.0).p_value(lambda limit: normal_tails(known_roots(k, n, theta + limit)))
p_values()
"""
    )
    code = "for _ in range(20): answer = p_values()[0]"
    return at_most(
        "p-values of 10 000 groups, 0/1 metric", 1000 * measure(code, setup).cpu / 20, 10, "ms"
    )


def _interval() -> Line:
    setup = (
        _NUMPY
        + """
from equipoise.methods.published.likelihood import mean_interval, segments
groups = segments([rng.exponential(size=1_000_000)])
"""
    )
    found = measure("answer = mean_interval(groups, 1.96)", setup)
    return at_most("one interval on 10⁶ real values", found.wall, 0.5, "s")


def _band() -> list[Line]:
    setup = (
        _NUMPY
        + """
from equipoise.methods.published.likelihood import Parts, band
n = rng.integers(1, 500, 100_000).astype(float)
k = rng.binomial(n.astype(int), 0.2).astype(float)
def parts(against):
    rows = n[None] if against == "known" else np.stack([n, 20_000 - n])
    ones = k[None] if against == "known" else np.stack([k, np.minimum(4000 - k, 20_000 - n)])
    return Parts(rows=rows, ones=ones, against=against, value=0.2)
"""
    )
    return [
        at_most(
            f"band of 100 000 groups, {against} target",
            measure(f"answer = band(parts({against!r}), 4.0)", setup).wall,
            2,
            "s",
        )
        for against in ("known", "complement", "overall")
    ]
