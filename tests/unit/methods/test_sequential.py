"""Evidence over time, by enumeration: its mean under every null is at most one."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.special import comb

from equipoise.methods.inference.comparison import compare, plain_moments
from equipoise.methods.sequential import STEPS, Batch, batch_evidence, batch_of, log_evidence
from equipoise.methods.targets import Complement, Constant, Overall, Reference

RATES = np.linspace(0.02, 0.98, 13)
# cells: the group outside the reference, in it, and the rest of the reference; and everybody else
SIZES = [(3, 0, 4, 0), (2, 2, 3, 0), (1, 0, 9, 0), (5, 1, 1, 2)]
REFERENCE = np.array([False, True, True, False])
TARGETS: dict[str, Any] = {
    "constant": Constant(value=0.4),
    "overall": Overall(),
    "complement": Complement(),
    "reference": Reference(cells=REFERENCE),
    "four fifths": Reference(cells=REFERENCE, scale=0.8),
}


def sums(x: Any) -> Any:
    """The one group: the first two cells."""
    return np.asarray(x)[..., :2].sum(axis=-1, keepdims=True)


def batch(
    sizes: Any, ones: Any, target: Any, limit: float, *, relative: bool, above: bool
) -> Batch:
    n, k = np.array(sizes, dtype=float), np.array(ones, dtype=float)
    found = compare(plain_moments(n, k, k, k), target, sums, relative=relative)
    return batch_of(found, limit, above=above)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(
    ("relative", "limit"), [(False, 0.1), (False, -0.2), (True, 0.8), (True, 1.3)]
)
@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize("sizes", SIZES)
def test_the_mean_is_at_most_one_under_every_null(
    name: str, relative: bool, limit: float, above: bool, sizes: tuple[int, ...]
) -> None:
    ranges = [range(n + 1) for n in sizes]
    outcomes = np.array(list(itertools.product(*ranges)), dtype=float)
    n = np.array(sizes, dtype=float)
    past: Any = np.array([[7.0], [3.0], [5.0]])
    values = []
    for ones in outcomes:
        now = batch(sizes, ones, TARGETS[name], limit, relative=relative, above=above)
        parts = now.rows.shape[0]
        told = batch_evidence(now, past[:parts], past[:parts] * 0.3, STEPS)
        values.append(np.exp(told[:, 0]))
    evidence = np.array(values)
    ways = np.prod([comb(n[j], outcomes[:, j]) for j in range(n.size)], axis=0)
    some = batch(sizes, n * 0, TARGETS[name], limit, relative=relative, above=above)
    used = [j for j in range(n.size) if sizes[j]]
    for rates in itertools.product(RATES[::3], repeat=len(used)):
        theta = np.zeros(n.size)
        theta[used] = rates
        # the parts' rates follow from the cells'
        full = compare(
            plain_moments(n, n * theta, n * theta, n * theta),
            TARGETS[name],
            sums,
            relative=relative,
        )
        mean = np.divide(
            full.parts.total, full.parts.rows, out=np.zeros_like(full.parts.rows),
            where=full.parts.rows > 0,
        )  # fmt: skip
        if (some.slope * mean).sum(axis=0)[0] > some.limit[0] + 1e-12:
            continue
        chance = ways * np.prod(theta**outcomes * (1 - theta) ** (n - outcomes), axis=1)
        assert (chance @ evidence).max() <= 1 + 1e-9


def test_products_add_up_and_may_be_split_over_groups() -> None:
    rng = np.random.default_rng(1)
    made = []
    for _ in range(5):
        n = rng.integers(1, 30, size=(2, 3)).astype(float)
        k = np.floor(n * rng.random((2, 3)))
        slope = np.array([[1.0], [-0.8]]) * np.ones(3)
        made.append(Batch(rows=n, ones=k, slope=slope, limit=np.zeros(3)))
    whole = log_evidence(made)
    for group in range(3):
        alone = [
            Batch(
                rows=b.rows[:, [group]], ones=b.ones[:, [group]],
                slope=b.slope[:, [group]], limit=b.limit[[group]],
            )
            for b in made
        ]  # fmt: skip
        np.testing.assert_allclose(log_evidence(alone)[:, 0], whole[:, group], atol=1e-9)
    # what has been seen stays as it was, whatever comes later
    np.testing.assert_array_equal(log_evidence(made[:3]), whole[:3])


def test_streams_at_the_limit_are_rarely_accused_and_others_are() -> None:
    rng = np.random.default_rng(2)

    def share(rate: float) -> float:
        made = []
        for _ in range(40):
            n = np.array([[20.0], [100.0]]) * np.ones(400)
            k = rng.binomial(n.astype(int), np.array([[rate], [0.5]])).astype(float)
            slope = np.array([[-1.0], [0.8]]) * np.ones(400)
            made.append(Batch(rows=n, ones=k, slope=slope, limit=np.zeros(400)))
        return float((log_evidence(made) >= np.log(20)).any(axis=0).mean())

    assert share(0.4) <= 0.05
    assert share(0.25) >= 0.95
