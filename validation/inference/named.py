"""Every design that once broke a promise, again: 1000 worlds each.

At a nominal 5 %, `flag` and `certify` were wrong in these worlds in the share given as ``before``:
the first before the inference core, the last before its guards knew of all clusters and weights.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from designs import Design, Floats, Rng, Rows, measured, true_disparities, verdict
from records import main, write
from scipy.special import betaincinv

from equipoise.methods.targets import Complement, Constant, Overall, Reference, Target

SEED = 16
NOBODY_CAN_KNOW = "not judged: no method can know"


def counts(
    name: str,
    rates: list[float],
    sizes: list[int],
    target: Target,
    *,
    members: Floats | None = None,
    relative: bool = False,
    drawn: bool = False,
) -> Design:
    """0/1 rows in cells of given rates and sizes."""
    mean, size = np.array(rates), np.array(sizes)
    inside = np.eye(len(mean)) if members is None else members
    if isinstance(target, Reference) and members is None:
        inside = inside[~np.asarray(target.cells)]

    def draw(rng: Rng) -> Rows:
        n = rng.multinomial(size.sum(), size / size.sum()) if drawn else size
        return Rows(size=n.astype(np.float64), ones=rng.binomial(n, mean).astype(np.float64))

    truth = true_disparities(target, inside, size / size.sum(), mean, relative)
    return Design(
        name=name,
        draw=draw,
        cells=len(mean),
        members=inside,
        target=target,
        truth=truth,
        relative=relative,
    )


def weighted(name: str, rate: float, groups: int, size: int, spread: float, tilt: float) -> Design:
    """0/1 rows with lognormal weights; ``tilt`` multiplies the weights of ones."""
    where = np.repeat(np.arange(groups), size)

    def draw(rng: Rng) -> Rows:
        value = (rng.random(where.size) < rate).astype(np.float64)
        w = rng.lognormal(0, spread, where.size) * np.where(value > 0, tilt, 1.0)
        return Rows(cell=where, value=value, weight=w)

    return Design(
        name=name,
        draw=draw,
        cells=groups,
        members=np.eye(groups),
        target=Overall(),
        truth=np.zeros(groups),
    )


def clustered(
    name: str, number: int, size: int, rate: float, groups: int, target: Target, *, whole: bool
) -> Design:
    """Clusters whose rows share their luck, groups inside them or made of whole ones."""

    def draw(rng: Rng) -> Rows:
        cluster = np.repeat(np.arange(number), size)
        group = rng.integers(0, groups, cluster.size)
        if whole:
            group = np.repeat(rng.permutation(np.arange(number) % groups), size)
        level = betaincinv(4 * rate, 4 * (1 - rate), rng.random(number))
        value = (rng.random(cluster.size) < level[cluster]).astype(np.float64)
        return Rows(cell=group, value=value, cluster=cluster)

    return Design(
        name=name,
        draw=draw,
        cells=groups,
        members=np.eye(groups),
        target=target,
        truth=np.zeros(groups),
    )


def real(name: str, sizes: list[int], spread: float, target: Target) -> Design:
    """Lognormal rows, all groups alike."""
    where = np.repeat(np.arange(len(sizes)), sizes)

    def draw(rng: Rng) -> Rows:
        return Rows(cell=where, value=rng.lognormal(0, spread, where.size))

    return Design(
        name=name,
        draw=draw,
        cells=len(sizes),
        members=np.eye(len(sizes)),
        target=target,
        truth=np.zeros(len(sizes)),
        zero_one=False,
    )


def stratum(name: str, share: float, weight: float, size: int) -> Design:
    """Eight groups with a few rows of large weight, nearly all of which are ones."""
    where = np.repeat(np.arange(8), size)

    def draw(rng: Rng) -> Rows:
        heavy = rng.random(where.size) < share
        value = (rng.random(where.size) < np.where(heavy, 0.8, 0.05)).astype(np.float64)
        return Rows(cell=where, value=value, weight=np.where(heavy, weight, 1.0))

    return Design(
        name=name,
        draw=draw,
        cells=8,
        members=np.eye(8),
        target=Overall(),
        truth=np.zeros(8),
    )


def spiky_clusters(name: str, number: int, groups: int, target: Target) -> Design:
    """Groups of whole clusters, three in a hundred of which are far off."""
    cluster = np.repeat(np.arange(number), 5)

    def draw(rng: Rng) -> Rows:
        group = rng.permutation(np.arange(number) % groups)[cluster]
        level = 20 * (rng.random(number) < 0.03) + rng.normal(size=number) - 0.6
        value = level[cluster] + 0.3 * rng.normal(size=cluster.size)
        return Rows(cell=group, value=value, cluster=cluster)

    return Design(
        name=name,
        draw=draw,
        cells=groups,
        members=np.eye(groups),
        target=target,
        truth=np.zeros(groups),
        zero_one=False,
    )


def weighted_losses(name: str, size: int) -> Design:
    """Skewed losses with skewed weights, all groups alike."""
    where = np.repeat(np.arange(8), size)

    def draw(rng: Rng) -> Rows:
        value, weight = rng.lognormal(0, 0.7, where.size), rng.lognormal(0, 1.0, where.size)
        return Rows(cell=where, value=value, weight=weight)

    return Design(
        name=name,
        draw=draw,
        cells=8,
        members=np.eye(8),
        target=Overall(),
        truth=np.zeros(8),
        zero_one=False,
    )


def alone(name: str, groups: int, size: int) -> Design:
    """Normal groups, and one that alone has rare large values: often it shows none of them."""
    where = np.repeat(np.arange(groups), size)

    def draw(rng: Rng) -> Rows:
        value = rng.normal(size=where.size)
        value[where == 0] += 20 * (rng.random(size) < 0.01) - 0.2
        return Rows(cell=where, value=value)

    return Design(
        name=name,
        draw=draw,
        cells=groups,
        members=np.eye(groups),
        target=Constant(value=0.0),
        truth=np.zeros(groups),
        zero_one=False,
    )


def first(cells: int) -> Reference:
    """The first cell as the reference."""
    return Reference(cells=np.arange(cells) == 0)


def block(groups: int, big: int) -> Floats:
    """Masks that share one large block."""
    members = np.zeros((groups, groups + 1))
    members[:, 0] = 1.0
    members[np.arange(groups), 1 + np.arange(groups)] = 1.0
    _ = big
    return members


def nearly_all(rates: list[float], sizes: list[int], *, relative: bool) -> Design:
    """Nearly everybody is in one group, and whoever is not, by the luck of the sample."""
    few = " and ".join(f"{n} rows at {rate:.2f}" for n, rate in zip(sizes, rates, strict=True))
    name = f"nearly everybody in one group: {few}{', ratio' if relative else ''}"
    return counts(name, rates, sizes, Overall(), drawn=True, relative=relative)


def designs() -> Iterator[tuple[Design, str]]:
    """The designs of the record, with what they did before."""
    yield weighted("weights, 20 groups of 50, rate .04", 0.04, 20, 50, 1.0, 1.0), ".94"
    yield weighted("weights, 19 groups of 40, rate .1", 0.1, 19, 40, 1.0, 1.0), ".50"
    yield weighted("weights, 19 groups of 50, rate .04, spread 1.5", 0.04, 19, 50, 1.5, 1.0), ".71"
    yield weighted("informative weights, 15 groups of 50", 0.1, 15, 50, 0.3, 3.0), ".50"
    yield clustered("100 clusters of 10, rate .04", 100, 10, 0.04, 10, Overall(), whole=True), ".94"
    yield clustered("200 clusters of 5, inside", 200, 5, 0.3, 8, Overall(), whole=False), ".14"
    for number in (8, 12, 20):
        yield (
            clustered(f"{number} clusters of 30", number, 30, 0.3, 2, Complement(), whole=True),
            ".15–.19",
        )
        yield (
            clustered(
                f"{number} clusters of 30, known target",
                number,
                30,
                0.3,
                2,
                Constant(value=0.3),
                whole=False,
            ),
            ".11–.18",
        )
    yield real("lognormal, groups of 25–100", [25, 40, 60, 80, 100] * 2, 1.0, Overall()), ".13–.36"
    yield real("lognormal 0.5, groups of 25–100", [25, 40, 60, 80, 100] * 2, 0.5, Overall()), ".13"
    yield real("lognormal, groups of 4000", [4000] * 10, 1.0, Overall()), ".13"
    yield (
        counts(
            "masks sharing a large block of low rate",
            [0.01] + [0.5] * 10,
            [5000] + [50] * 10,
            Overall(),
            members=block(10, 5000),
            drawn=True,
        ),
        ".67",
    )
    yield (
        counts("reference of larger variance", [0.5] + [0.05] * 19, [200] + [1000] * 19, first(20)),
        ".21–.27",
    )
    yield (
        counts(
            "the same, ten times the rows",
            [0.5] + [0.05] * 19,
            [2000] + [10_000] * 19,
            first(20),
        ),
        ".21–.27",
    )
    yield (
        counts(
            "reference of smaller rate, ratio",
            [0.05] + [0.5] * 19,
            [300] + [100] * 19,
            first(20),
            relative=True,
        ),
        ".21–.27",
    )
    for rows, rate in ((3, 0.3), (10, 0.1), (30, 0.02)):
        yield (
            counts(f"reference of {rows} rows", [rate] * 20, [rows] + [100] * 19, first(20)),
            ".12–.21",
        )
    yield counts("everyone at the edge", [0.9, 0.1], [100, 100], Overall(), drawn=True), ".11–.13"
    yield (
        counts(
            "everyone at the edge, ratio",
            [0.9, 0.1],
            [50, 50],
            Overall(),
            drawn=True,
            relative=True,
        ),
        "–",
    )
    yield (
        counts("30 groups of 8, rate .05", [0.05] * 30, [8] * 30, Constant(value=0.05)),
        ".18 at .10",
    )
    yield counts("30 groups of 8 against the rest", [0.05] * 30, [8] * 30, Complement()), ".65"
    yield stratum("few rows of large weight, 8 groups of 100", 0.04, 25, 100), ".34"
    yield stratum("very few rows of large weight, 8 groups of 200", 0.02, 50, 200), ".34"
    yield spiky_clusters("spiky clusters, 5 groups of 30", 150, 5, Complement()), ".60"
    yield spiky_clusters("spiky clusters, a known target", 300, 6, Constant(value=0.0)), ".81"
    yield weighted_losses("lognormal losses and weights, groups of 80", 80), ".17"
    yield alone("one group alone has spikes", 10, 100), NOBODY_CAN_KNOW
    for rates, sizes in (
        ([0.10, 0.92], [2332, 48]),
        ([0.10, 0.50], [396, 4]),
        ([0.95, 0.05], [990, 10]),
        ([0.40, 0.45, 0.99], [900, 60, 40]),
    ):
        yield nearly_all(rates, sizes, relative=False), "valid, and no lower bound"
    yield nearly_all([0.10, 0.92], [2332, 48], relative=True), "valid, and no lower bound"


def one(task: tuple[int, int]) -> dict[str, Any]:
    """One design."""
    place, worlds = task
    design, before = list(designs())[place]
    row = {**verdict(measured(design, worlds, [SEED, place], 4000)), "before": before}
    return row | {"agrees": None} if before == NOBODY_CAN_KNOW else row


def run(full: bool = False) -> dict[str, Any]:
    """Measure them; ``full`` takes 1000 worlds instead of 100."""
    worlds = 1000 if full else 100
    number = len(list(designs()))
    with ProcessPoolExecutor(max_workers=2) as pool:
        rows = list(pool.map(one, [(i, worlds) for i in range(number)]))
    result = {
        "source": "designs that broke a promise",
        "seed": SEED,
        "worlds": worlds,
        "rows": rows,
        "agrees": all(row["agrees"] is not False for row in rows),
    }
    return write(__file__, "named", result, full)


if __name__ == "__main__":
    main("named designs", run)
