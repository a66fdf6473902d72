"""The likelihood band: against direct maximisation, at the ends of the range, and in simulation."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import bdtr, xlogy

from equipoise.methods.inference.counts import constrained_rates
from equipoise.methods.published.likelihood import (
    Parts,
    band,
    band_parts,
    known_roots,
    normal_critical,
    part_roots,
)
from equipoise.methods.published.likelihood.bounds import bartlett

CASES: list[tuple[Any, list[float], list[float], float]] = [
    ("complement", [40.0, 100.0], [10.0, 40.0], 1.0),
    ("complement", [12.0, 60.0], [11.0, 20.0], 0.8),
    ("overall", [40.0, 100.0], [10.0, 40.0], 1.0),
    ("overall", [150.0, 30.0], [90.0, 6.0], 1.0),
    ("overall", [15.0, 300.0], [7.0, 60.0], 0.8),
    ("reference", [40.0, 20.0, 70.0], [10.0, 9.0, 40.0], 1.0),
]


def disparity(
    against: str, rates: Any, shares: Any, scale: float, relative: bool
) -> tuple[float, float]:
    if against == "reference":
        mean = (shares[:2] @ rates[:2]) / shares[:2].sum()
        theta = (shares[1:] @ rates[1:]) / shares[1:].sum()
    else:
        mean = rates[0]
        theta = rates[1] if against == "complement" else shares @ rates / shares.sum()
    return (mean / (scale * theta) if relative else mean - scale * theta), mean


def directly(
    against: str, rows: Any, ones: Any, scale: float, relative: bool, cut: float, sign: float
) -> float:
    """The largest disparity inside the likelihood region, by a general-purpose optimiser."""
    rows, ones = np.array(rows), np.array(ones)
    k = rows.size

    def unpack(v: Any) -> tuple[Any, Any]:
        return 1 / (1 + np.exp(-v[:k])), np.exp(v[k:]) / np.exp(v[k:]).sum()

    def lost(v: Any) -> float:
        r, s = unpack(v)
        m = ones / rows
        dev = xlogy(ones, m / r) + xlogy(rows - ones, (1 - m) / (1 - r))
        return float(2 * (dev.sum() + xlogy(rows, rows / rows.sum() / s).sum()))

    start = np.concatenate([np.log((ones + 0.1) / (rows - ones + 0.1)), np.log(rows)])
    search: Any = minimize
    found = search(
        lambda v: -sign * disparity(against, *unpack(v), scale, relative)[0],
        start,
        method="SLSQP",
        # The optimiser's trial steps must stay where the likelihood is a number.
        bounds=[(-20.0, 20.0)] * start.size,
        constraints=[{"type": "ineq", "fun": lambda v: cut**2 - lost(v)}],
        options={"maxiter": 500, "ftol": 1e-13},
    )
    return float(disparity(against, *unpack(found.x), scale, relative)[0])


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize(("against", "rows", "ones", "scale"), CASES)
def test_bounds_are_the_extremes_of_the_likelihood_region(
    against: Any, rows: list[float], ones: list[float], scale: float, relative: bool
) -> None:
    parts = Parts(
        rows=np.array(rows)[:, None],
        ones=np.array(ones)[:, None],
        against=against,
        scale=scale,
        relative=relative,
    )
    ends = band(parts, 2.5, calibrated=False)
    for end, sign in zip(ends, (-1.0, 1.0), strict=True):
        aim = directly(against, rows, ones, scale, relative, 2.5, sign)
        assert end[0] == pytest.approx(aim, abs=2e-5)


def test_a_known_target_inverts_the_binomial_ratio() -> None:
    rng = np.random.default_rng(1)
    n = rng.integers(1, 400, 500).astype(float)
    k = rng.binomial(n.astype(int), 0.3).astype(float)
    parts = Parts(rows=n[None], ones=k[None], against="known", value=0.2)
    low, high = band(parts, 3.0, calibrated=False)
    assert np.all((low >= -0.2 - 1e-12) & (high <= 0.8 + 1e-12))
    inner = k > 0
    assert np.allclose(known_roots(k, n, low + 0.2, calibrated=False)[inner], 3.0, atol=1e-8)
    inner = k < n
    assert np.allclose(known_roots(k, n, high + 0.2, calibrated=False)[inner], -3.0, atol=1e-8)
    assert np.all(low[k == 0] == -0.2)
    assert np.allclose(high[k == n], 0.8)


def test_no_rows_no_bounds() -> None:
    parts = Parts(
        rows=np.array([[0.0, 5.0], [5.0, 0.0]]),
        ones=np.array([[0.0, 5.0], [1.0, 0.0]]),
        against="complement",
    )
    low, high = band(parts, 2.0)
    assert np.isnan(low).all()
    assert np.isnan(high).all()


@pytest.mark.parametrize("rate", [0.3, 0.05])
def test_all_bounds_hold_at_once(rate: float) -> None:
    """Misses of a nominal 0.05, 1000 worlds: accept what has a chance of at least 1e-4."""
    rng = np.random.default_rng(2026)
    member = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 1]], float)
    share = np.array([0.5, 0.3, 0.19, 0.01])

    def sums(x: Any) -> Any:
        return x @ member.T

    cells = rng.multinomial(500, share, size=1000).astype(float)
    ones = rng.binomial(cells.astype(int), rate).astype(float)
    cut = normal_critical(0.95, "sidak", len(member))
    pieces = [band_parts(n, k, sums, "overall") for n, k in zip(cells, ones, strict=True)]
    every = Parts(
        rows=np.concatenate([x.rows for x in pieces], axis=1),
        ones=np.concatenate([x.ones for x in pieces], axis=1),
        against="overall",
    )
    low, high = (x.reshape(1000, -1) for x in band(every, cut))
    wrong = int(((low > 1e-9) | (high < -1e-9)).any(axis=1).sum())
    assert bdtr(wrong - 1, 1000, 0.05) < 1 - 1e-4
    assert wrong > 10


def test_calibrated_bounds_invert_the_ratio_divided_by_its_mean() -> None:
    n, k = np.array([12.0, 40.0, 300.0]), np.array([3.0, 20.0, 60.0])
    parts = Parts(rows=n[None], ones=k[None], against="known", value=0.0)
    for end, sign in zip(band(parts, 2.0), (1.0, -1.0), strict=True):
        ratio = known_roots(k, n, end, calibrated=False) ** 2 / bartlett(parts)
        assert np.allclose(ratio, 2.0**2, atol=1e-7)
        assert np.all(np.sign(k / n - end) == sign)


def test_the_factor_is_the_mean_of_the_ratio_up_to_the_square_of_one_over_n() -> None:
    for n in (50, 100, 200):
        k = np.arange(n + 1.0)
        rate = 0.3
        chance = np.diff(np.concatenate([[0.0], bdtr(k, n, rate)]))
        rows, rates = np.full(n + 1, float(n)), np.full(n + 1, rate)
        mean = float(chance @ known_roots(k, rows, rates, calibrated=False) ** 2)
        # half a row of either kind is added inside, so the count is chosen to hit the rate
        ones = rate * (n + 1) - 0.5
        parts = Parts(rows=np.array([[float(n)]]), ones=np.array([[ones]]), against="known")
        assert abs(mean - float(bartlett(parts)[0])) < 4 / n**2


def test_the_factor_of_a_group_without_ones_is_that_of_half_a_row() -> None:
    none = Parts(rows=np.array([[10.0]]), ones=np.array([[0.0]]), against="known")
    variance = 0.5 / 11 * (1 - 0.5 / 11)
    assert bartlett(none)[0] == pytest.approx(1 + (1 - variance) / (60 * variance))


@pytest.mark.parametrize("against", ["known", "overall", "complement", "reference"])
@pytest.mark.parametrize("critical", [0.5, 2.0, 4.0])
def test_a_bound_at_a_critical_value_has_that_signed_root(against: str, critical: float) -> None:
    rng = np.random.default_rng(11)
    sizes = 3 if against == "reference" else 1 if against == "known" else 2
    rows = rng.integers(3, 400, size=(sizes, 30)).astype(float)
    parts = Parts(
        rows=rows,
        ones=rng.binomial(rows.astype(int), 0.3).astype(float),
        against=against,  # type: ignore[arg-type]
        value=0.3,
    )
    for end, root in zip(band(parts, critical), (critical, -critical), strict=True):
        found = np.array(
            [part_roots(parts.some(np.arange(30) == i), float(end[i]))[0] for i in range(30)]
        )
        # where no value is excluded the bound is the end of the range
        inner = np.abs(np.abs(end - (0 if against != "known" else -0.3)) - 1) > 1e-6
        assert np.allclose(found[inner], root, atol=2e-5)


def test_shares_are_profiled_too() -> None:
    """Against a search over the group's share of everybody, for a limit that is not zero."""
    rows, ones, limit = np.array([[60.0], [140.0]]), np.array([[30.0], [35.0]]), 0.05
    parts = Parts(rows=rows, ones=ones, against="overall")

    def at(share: float) -> float:
        a = np.array([[1 - share], [share - 1]])
        rates, _ = constrained_rates(rows, ones / rows, a, np.array([limit]))
        k, rest = ones, rows - ones
        fit = xlogy(k, k / rows / rates) + xlogy(rest, rest / rows / (1 - rates))
        own = 2 * (60 * np.log(0.3 / share) + 140 * np.log(0.7 / (1 - share)))
        return float(2 * fit.sum() + own)

    least = minimize_scalar(at, bounds=(0.1, 0.6), method="bounded", options={"xatol": 1e-9}).fun
    root = part_roots(parts, limit, calibrated=False)[0]
    assert root**2 == pytest.approx(least, abs=1e-6)
    # holding the share fixed gives another answer
    assert abs(at(0.3) - least) > 1e-4
