"""Evidence over time, by enumeration: its mean under every null is at most one."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.special import comb

from equipoise.methods.sequential import (
    Stream,
    log_bets,
    log_capital,
    log_detector,
    reach,
    sequence_bounds,
    sequence_path,
    stream_of,
)
from equipoise.methods.targets import (
    Complement,
    Constant,
    Overall,
    Reference,
    compare,
    plain_moments,
)

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
EXACT: dict[str, Any] = {"zero_one": True, "ends": (0.0, 1.0)}


def sums(x: Any) -> Any:
    """The one group: the first two cells."""
    return np.asarray(x)[..., :2].sum(axis=-1, keepdims=True)


def stream(n: Any, k: Any, target: Any, *, relative: bool = False, **kind: Any) -> Stream:
    """Batches of the one group, from rows and ones ``(T, cells)``."""
    cells = plain_moments(*(np.array(x, dtype=float) for x in (n, k, k, k)))
    return stream_of(cells, target, sums, relative=relative, **(kind or EXACT))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(
    ("relative", "limit"), [(False, 0.1), (False, -0.2), (True, 0.8), (True, 1.3)]
)
@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize("sizes", SIZES)
def test_the_mean_is_at_most_one_under_every_null(
    name: str, relative: bool, limit: float, above: bool, sizes: tuple[int, ...]
) -> None:
    outcomes = np.array(list(itertools.product(*(range(n + 1) for n in sizes))), dtype=float)
    n = np.array(sizes, dtype=float)
    target, at = TARGETS[name], np.array([limit])
    past_n, past_k = np.array([7.0, 3.0, 5.0, 4.0]), np.array([2.0, 1.0, 4.0, 0.0])
    values = []
    for ones in outcomes:
        told = stream([past_n, n], [past_k, ones], target, relative=relative)
        values.append(np.exp(log_bets(told, at, above=above)[:, 1, 0]))
    evidence = np.array(values)
    ways = np.prod([comb(n[j], outcomes[:, j]) for j in range(n.size)], axis=0)
    used = [j for j in range(n.size) if sizes[j]]
    for rates in itertools.product(RATES[::3], repeat=len(used)):
        theta = np.zeros(n.size)
        theta[used] = rates
        found = compare(plain_moments(n, *[n * theta] * 3), target, sums, relative=relative)
        factor = found.factor(at)
        contrast = found.mean - factor * found.theta if found.target.estimated else found.mean
        contrast = contrast - found.aim(at)
        if (contrast[0] if above else -contrast[0]) > 1e-12:
            continue
        chance = ways * np.prod(theta**outcomes * (1 - theta) ** (n - outcomes), axis=1)
        assert (chance @ evidence).max() <= 1 + 1e-9


@pytest.mark.parametrize("rates", [(0.3, 0.3), (0.5, 0.2), (0.1, 0.8)])
def test_a_bounded_metric_has_a_mean_of_at_most_one_as_well(rates: tuple[float, float]) -> None:
    # three rows of the group and two of the others, each -1, 0 or 1
    values = np.array([-1.0, 0.0, 1.0])
    chances = [np.array([(1 - r) ** 2, 2 * r * (1 - r), r**2]) for r in rates]
    gap = float(2 * (rates[0] - rates[1]))
    mean = 0.0
    for drawn in itertools.product(range(3), repeat=5):
        x = values[list(drawn)]
        chance = np.prod([chances[0 if i < 3 else 1][j] for i, j in enumerate(drawn)])
        s = [[4.0, 0.0, 4.0, 0.0], [3.0, 0.0, 2.0, 0.0]]
        total = [[1.0, 0.0, -1.0, 0.0], [x[:3].sum(), 0.0, x[3:].sum(), 0.0]]
        square = [[2.0, 0.0, 3.0, 0.0], [(x[:3] ** 2).sum(), 0.0, (x[3:] ** 2).sum(), 0.0]]
        cells = plain_moments(*(np.array(v) for v in (s, total, square, square)))
        told = stream_of(
            cells, Complement(), sums, relative=False, zero_one=False, ends=(-1.0, 1.0)
        )
        mean = mean + chance * np.exp(log_bets(told, np.array([gap]), above=True)[:, 1, 0])
    assert np.max(mean) <= 1 + 1e-9


def two_groups(rng: Any, rows: Any, rates: Any, times: int, streams: int) -> Stream:
    """Many streams at once: the group is one part, the reference the other."""
    n = np.array(rows, dtype=float)[:, None, None] * np.ones((2, times, streams))
    k = rng.binomial(n.astype(int), np.array(rates)[:, None, None]).astype(float)
    empty = np.zeros_like(n[:1])
    parts = [np.concatenate([x[:1], empty, x[1:]]) for x in (n, k, k, k)]
    target = Reference(cells=np.zeros(1, dtype=bool))
    return Stream(target=target, relative=True, sums=plain_moments(*parts), **EXACT)


def test_what_has_been_seen_stays_as_it_was_and_groups_do_not_meet() -> None:
    made = two_groups(np.random.default_rng(1), (5, 30), (0.2, 0.5), 8, 4)
    limit = np.full(4, 0.8)
    whole = log_bets(made, limit, above=False)
    first = made.pooled(list(range(8)))
    np.testing.assert_allclose(log_bets(first, limit, above=False), whole)
    alone = log_bets(made.some([2]), limit[:1], above=False)
    np.testing.assert_allclose(alone[..., 0], whole[..., 2])
    early = made.pooled(list(range(8)))
    cut = Stream(
        target=made.target, relative=True,
        sums=plain_moments(*[getattr(early.sums, n)[:, :5] for n in
                             ("rows", "total", "square2", "cube3")]), **EXACT,
    )  # fmt: skip
    np.testing.assert_allclose(log_bets(cut, limit, above=False), whole[:, :5])


def test_streams_at_the_limit_are_rarely_accused_and_others_are() -> None:
    rng = np.random.default_rng(2)
    limit = np.full(400, 0.8)

    def share(rate: float) -> float:
        made = two_groups(rng, (20, 100), (rate, 0.5), 40, 400)
        told = log_capital(log_bets(made, limit, above=False))
        return float((told >= np.log(20)).any(axis=0).mean())

    assert share(0.4) <= 0.05
    assert share(0.25) >= 0.95


def test_a_detector_finds_a_late_change_sooner_and_grows_by_one_at_most() -> None:
    rng = np.random.default_rng(3)
    before = two_groups(rng, (100, 100), (0.42, 0.5), 52, 200)
    after = two_groups(rng, (100, 100), (0.3, 0.5), 30, 200)
    both = plain_moments(
        *(
            np.concatenate([getattr(s.sums, n) for s in (before, after)], axis=1)
            for n in ("rows", "total", "square2", "cube3")
        )
    )
    joined = Stream(target=before.target, relative=True, sums=both, **EXACT)
    limit = np.full(200, 0.8)
    lately = log_detector(log_bets(joined, limit, above=False, window=26)) >= np.log(104)
    ever = log_capital(log_bets(joined, limit, above=False)) >= np.log(20)
    assert np.median(lately.argmax(axis=0)) - 52 <= 6
    assert np.median(lately.argmax(axis=0)) < np.median(
        np.where(ever.any(axis=0), ever.argmax(axis=0), 82)
    )
    # a batch that says next to nothing
    nothing = log_detector(np.full((7, 5, 1), 1e-18))
    np.testing.assert_allclose(np.exp(nothing[:, 0]), [1, 2, 3, 4, 5])


@pytest.mark.parametrize("relative", [False, True])
def test_confidence_sequences_hold_the_truth_and_close_in_on_it(relative: bool) -> None:
    rng = np.random.default_rng(4)
    made = two_groups(rng, (50, 200), (0.3, 0.5), 60, 300)
    made = Stream(target=made.target, relative=relative, sums=made.sums, **EXACT)
    truth, possible = (0.6, (0.0, np.inf)) if relative else (-0.2, (-1.0, 1.0))
    low, high = sequence_bounds(made, np.full(300, 0.025), possible)
    assert ((low > truth) | (high < truth)).mean() <= 0.05
    # 3,000 and 12,000 rows: a fixed interval is about 0.04 wide on the scale of gaps
    assert np.nanmedian(high - low) < (0.17 if relative else 0.09)
    path = sequence_path(made.some([0, 1]), np.full(2, 0.025), possible, np.array([0, 9, 59]))
    assert path[0].shape == (3, 2)
    assert (np.diff(path[0], axis=0) >= -1e-12).all()
    assert (np.diff(path[1], axis=0) <= 1e-12)[~np.isnan(np.diff(path[1], axis=0))].all()


def test_a_limit_that_no_rates_keep_is_ruled_out() -> None:
    # against everyone, a group of 80 % of the rows can be at most 20 points apart
    n = np.array([[80.0, 0.0, 20.0, 0.0]] * 10)
    low, high = sequence_bounds(stream(n, n * 0.5, Overall()), np.array([0.025]), (-1.0, 1.0))
    assert -0.2 <= low[0] < 0 < high[0] <= 0.2


def test_what_would_have_been_found_by_now_is_found_about_half_the_time() -> None:
    rng = np.random.default_rng(5)
    made = two_groups(rng, (50, 200), (0.4, 0.5), 30, 400)
    limit = np.full(400, 0.8)
    far = float(np.median(reach(made, limit, np.full(400, 0.05), above=False)))
    assert 0.5 < far < 0.8
    worse = two_groups(rng, (50, 200), (0.5 * far, 0.5), 30, 400)
    told = log_capital(log_bets(worse, limit, above=False)) >= np.log(20)
    assert 0.35 <= told.any(axis=0).mean() <= 0.9


def test_weighted_rows_are_rarely_accused_at_the_limit() -> None:
    rng = np.random.default_rng(6)
    times, streams = 60, 300
    w = rng.lognormal(0, 0.7, size=(times, 2, 40, streams))
    x = (rng.random(w.shape) < 0.3).astype(float)

    def added(v: Any) -> Any:
        return np.moveaxis(v.sum(axis=2), 1, 0)

    rows = np.full((2, times, streams), 40.0)
    sums_ = {f"{n}{o}": added(w**p * y) for o, p in (("", 1), ("2", 2), ("3", 3))
             for n, y in (("weight", 1.0), ("total", x), ("square", x))}  # fmt: skip
    sums_.pop("square")
    empty = np.zeros((1, times, streams))
    every = {"rows": rows, **sums_, "cube3": sums_["total3"]}
    from equipoise.methods.targets import Moments

    parts = Moments(**{n: np.concatenate([v[:1], empty, v[1:]]) for n, v in every.items()})
    made = Stream(
        target=Reference(cells=np.zeros(1, dtype=bool)), relative=False,
        sums=parts, zero_one=True, ends=None,
    )  # fmt: skip
    told = log_capital(log_bets(made, np.zeros(streams), above=True)) >= np.log(20)
    assert told.any(axis=0).mean() <= 0.06
