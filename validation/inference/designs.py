"""Designs for the inference core: how rows are drawn, who is compared with whom, what is true.

A design is drawn at random from a generator that knows nothing of the methods (sizes, rates,
overlaps, references, weights, clusters, skewness, numbers of groups), or named because it once
broke a promise. `judge` performs the defaults of `certify` and `flag` on one world of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtr

sys.path.insert(0, str(Path(__file__).parents[1]))

from equipoise._validate import seed_of
from equipoise.audits._common import answerable
from equipoise.methods.hypotheses import benjamini_hochberg
from equipoise.methods.inference.core import Core, core_of
from equipoise.methods.inference.student import ClusterSums, independent_score
from equipoise.methods.targets import (
    Complement,
    Constant,
    Moments,
    Overall,
    Reference,
    Target,
    plain_moments,
)

Floats = npt.NDArray[np.float64]
Rng = np.random.Generator
ERROR = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """One world: rows, or counts of 0/1 rows by cell."""

    cell: npt.NDArray[np.int64] | None = None
    value: Floats | None = None
    weight: Floats | None = None
    cluster: npt.NDArray[np.int64] | None = None
    size: Floats | None = None
    """Rows of each cell, where counts say everything."""
    ones: Floats | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """A population, how it is sampled, and what is asked of it."""

    name: str
    draw: Callable[[Rng], Rows]
    """One world."""
    cells: int
    """Number of cells."""
    members: Floats
    """Which cells each group consists of, ``(groups, cells)``."""
    target: Target
    """What groups are compared with."""
    truth: Floats
    """The true disparities."""
    zero_one: bool = True
    relative: bool = False

    def core(self, world: Rows) -> Core:
        """The core of one world."""
        clusters = None
        if world.size is not None and world.ones is not None:
            moments = plain_moments(world.size, world.ones, world.ones, world.ones)
        else:
            moments, clusters = sums_of(
                world.cell, world.value, world.weight, world.cluster, self.cells
            )
        return core_of(
            moments,
            self.target,
            lambda x: x @ self.members.T,
            relative=self.relative,
            zero_one=self.zero_one,
            weighted=world.weight is not None,
            clusters=clusters,
        )


def sums_of(
    cell: npt.NDArray[np.int64],
    x: Floats,
    w: Floats | None,
    cluster: npt.NDArray[np.int64] | None,
    cells: int,
) -> tuple[Moments, ClusterSums | None]:
    """What audits are made from: the sums of rows by cell, and by cluster where there are any."""

    def total(values: Floats) -> Floats:
        return np.bincount(cell, weights=values, minlength=cells)

    one = np.ones_like(x)
    if w is None:
        moments = plain_moments(*(total(v) for v in (one, x, x**2, x**3)))
    else:
        moments = Moments(
            rows=total(one),
            weight=total(w),
            total=total(w * x),
            weight2=total(w**2),
            total2=total(w**2 * x),
            square2=total(w**2 * x**2),
            weight3=total(w**3),
            total3=total(w**3 * x),
            square3=total(w**3 * x**2),
            cube3=total(w**3 * x**3),
        )
    if cluster is None:
        return moments, None
    key, place = np.unique(cluster * cells + cell, return_inverse=True)
    _, number = np.unique(key // cells, return_inverse=True)
    weight = one if w is None else w
    return moments, ClusterSums(
        cluster=number.astype(np.int64),
        cell=(key % cells).astype(np.int64),
        weight=np.bincount(place, weights=weight),
        total=np.bincount(place, weights=weight * x),
        cells=cells,
    )


def judge(design: Design, world: Rows, draws: int | None = None) -> dict[str, float]:
    """Whether the defaults are wrong in one world: bounds that miss, flags at the edge."""
    core = design.core(world)
    groups = design.truth.size
    guarded, critical, _ = answerable(core, 1 - ERROR, "both", draws, seed_of(1), False)
    tested = core.guarded(independent_score(1 - ERROR, 1, two_sided=False)).answered
    out = dict.fromkeys(("bounds", "above", "below", "outside", "answered"), 0.0)
    if tested.size == 0:
        return out
    up, down = (np.full(groups, np.nan) for _ in range(2))
    up[tested], down[tested] = core.pivot.tails(design.truth[tested], tested)
    both = np.minimum(2 * np.fmin(up, down), 1.0)
    used = guarded.answered
    small = float(ndtr(-critical.value))
    out["bounds"] = float(np.fmin(up, down)[used].min(initial=1.0) < small)
    for name, p in (("above", up), ("below", down), ("outside", both)):
        out[name] = float(np.nanmin(benjamini_hochberg(p)) <= ERROR)
    out["answered"] = used.size / groups
    return out


# --- the generator -------------------------------------------------------------------------------


def random_design(number: int, seed: int) -> Design:
    """The design of a number: anything an auditor might meet, and worse."""
    rng = np.random.default_rng([seed, number])
    kind = rng.choice(["counts", "counts", "counts", "weights", "clusters", "real"])
    return {"counts": _counts, "weights": _weights, "clusters": _clusters, "real": _real}[
        str(kind)
    ](rng, number)


def _rates(rng: Rng, number: int) -> Floats:
    """All alike, alike up to noise, or anything; sometimes near an end."""
    centre = float(rng.choice([0.002, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.998]))
    shape = rng.choice(["alike", "near", "any"])
    if shape == "alike":
        return np.full(number, centre)
    if shape == "near":
        logit = np.log(centre / (1 - centre)) + 0.5 * rng.normal(size=number)
        return np.asarray(1 / (1 + np.exp(-logit)))
    return np.asarray(rng.uniform(0.002, 0.998, number))


def _sizes(rng: Rng, number: int, most: float) -> npt.NDArray[np.int64]:
    """Sizes between 3 and many, by their logarithm."""
    low, high = np.log(3), np.log(rng.choice([30.0, 300.0, most]))
    return np.asarray(np.exp(rng.uniform(low, high, number)), dtype=np.int64) + 1


def _members(rng: Rng, cells: int) -> tuple[str, Floats]:
    """Each cell a group, random unions of cells, or unions that share a block."""
    shape = str(rng.choice(["apart", "apart", "unions", "block"]))
    if shape == "apart" or cells < 4:
        return "apart", np.eye(cells)
    groups = int(rng.integers(2, min(4 * cells, 300)))
    members = (rng.random((groups, cells)) < rng.uniform(0.1, 0.6)).astype(np.float64)
    if shape == "block":
        members[:, 0] = 1.0
    members = members[(members.sum(axis=1) > 0) & (members.sum(axis=1) < cells)]
    return shape, np.unique(members, axis=0)


def _target(rng: Rng, cells: int, mean: float) -> tuple[str, Target]:
    kind = str(rng.choice(["constant", "overall", "complement", "reference", "reference"]))
    scale = float(rng.choice([1.0, 1.0, 0.8]))
    if kind == "constant":
        return kind, Constant(value=mean)
    if kind == "overall":
        return kind, Overall(scale=scale)
    if kind == "complement":
        return kind, Complement(scale=scale)
    chosen = np.zeros(cells, dtype=bool)
    chosen[rng.integers(cells)] = True
    if rng.random() < 0.3:
        chosen |= rng.random(cells) < 0.3
    return kind, Reference(cells=chosen, scale=scale)


def true_disparities(
    target: Target, members: Floats, weight: Floats, mean: Floats, relative: bool
) -> Floats:
    """What is true of groups made of cells with these weights and means."""
    own = (members * weight * mean).sum(axis=1) / (members * weight).sum(axis=1)
    if isinstance(target, Constant):
        theta = np.full(own.shape, target.value)
    elif isinstance(target, Complement):
        rest = (1 - members) * weight
        theta = (rest * mean).sum(axis=1) / np.maximum(rest.sum(axis=1), 1e-300)
    else:
        chosen = target.members(len(mean))
        theta = np.full(own.shape, float((chosen * weight * mean).sum() / (chosen * weight).sum()))
    theta = target.scale * theta
    return own / theta if relative else own - theta


def _comparable(members: Floats, target: Target) -> Floats:
    """Groups that differ from their target, and have one."""
    if isinstance(target, Reference):
        same = (members == np.asarray(target.cells, dtype=np.float64)).all(axis=1)
        return members[~same]
    return members


def _counts(rng: Rng, number: int) -> Design:
    cells = int(np.exp(rng.uniform(np.log(2), np.log(rng.choice([12, 60, 400])))))
    rates, sizes = _rates(rng, cells), _sizes(rng, cells, 30_000.0)
    shape, members = _members(rng, cells)
    kind, target = _target(rng, cells, float(rates.mean()))
    members = _comparable(members, target)
    relative = bool(rng.random() < 0.35) and float(rates.min()) > 0.004
    drawn = bool(rng.random() < 0.5) or shape != "apart"
    share = sizes / sizes.sum()
    truth = true_disparities(target, members, share, rates, relative)

    def draw(world: Rng) -> Rows:
        size = world.multinomial(int(sizes.sum()), share) if drawn else sizes
        return Rows(
            size=size.astype(np.float64), ones=world.binomial(size, rates).astype(np.float64)
        )

    said = "ratio" if relative else "gap"
    name = (
        f"{number}: counts, {len(members)} {shape} of {cells} cells of "
        f"{sizes.min()}–{sizes.max()}, "
        f"rates {rates.min():.3g}–{rates.max():.3g}, {kind} × {target.scale:g}, {said}"
        f"{', sizes drawn' if drawn else ''}"
    )
    return Design(
        name=name,
        draw=draw,
        cells=cells,
        members=members,
        target=target,
        truth=truth,
        relative=relative,
    )


def _weights(rng: Rng, number: int) -> Design:
    cells = int(rng.integers(2, 25))
    rates, sizes = _rates(rng, cells), np.minimum(_sizes(rng, cells, 300.0), 400)
    kind, target = _target(rng, cells, 0.0)
    if isinstance(target, Constant):
        kind, target = "overall", Overall()
    spread, tilt = float(rng.choice([0.3, 1.0, 1.5])), float(rng.choice([1.0, 1.0, 3.0, 0.3]))
    members = _comparable(np.eye(cells), target)
    # rows with a one are sampled with other weights: a row's weight undoes it
    mean = rates * tilt / (rates * tilt + 1 - rates)
    weight = sizes * (rates * tilt + 1 - rates)
    truth = true_disparities(target, members, weight, mean, False)
    where = np.repeat(np.arange(cells), sizes)

    def draw(world: Rng) -> Rows:
        value = (world.random(where.size) < rates[where]).astype(np.float64)
        w = world.lognormal(0, spread, where.size) * np.where(value > 0, tilt, 1.0)
        return Rows(cell=where, value=value, weight=w)

    name = (
        f"{number}: weights (lognormal {spread:g}, ones × {tilt:g}), {cells} groups of "
        f"{sizes.min()}–{sizes.max()}, rates {rates.min():.3g}–{rates.max():.3g}, {kind}"
    )
    return Design(name=name, draw=draw, cells=cells, members=members, target=target, truth=truth)


def _clusters(rng: Rng, number: int) -> Design:
    clusters = int(rng.choice([6, 10, 20, 40, 100, 300]))
    groups = int(rng.integers(2, 9))
    rate = float(rng.choice([0.02, 0.1, 0.3, 0.5, 0.9]))
    inside, alike = float(rng.choice([0.01, 0.1, 0.4])), bool(rng.random() < 0.5)
    size, uneven = int(rng.choice([3, 10, 30])), float(rng.choice([0.0, 0.7]))
    kind, target = _target(rng, groups, rate)
    members = _comparable(np.eye(groups), target)
    if target.scale != 1.0:
        target = Overall()
    strength = (1 - inside) / inside
    shape = str(rng.choice(list(_SHAPES))) if rng.random() < 0.4 else ""
    if shape and isinstance(target, Constant):
        target = Constant(value=0.0)

    def draw(world: Rng) -> Rows:
        sizes = np.maximum(1, np.round(size * world.lognormal(0, uneven, clusters))).astype(int)
        cluster = np.repeat(np.arange(clusters), sizes)
        group = world.integers(0, groups, cluster.size)
        if not alike:
            group = np.repeat(world.permutation(np.arange(clusters) % groups), sizes)
        if shape:
            make, mean = _SHAPES[shape]
            noise = world.normal(size=cluster.size) * (1 - inside)
            return Rows(
                cell=group, value=make(world, clusters)[cluster] - mean + noise, cluster=cluster
            )
        level = betaincinv(rate * strength, (1 - rate) * strength, world.random(clusters))
        value = (world.random(cluster.size) < level[cluster]).astype(np.float64)
        return Rows(cell=group, value=value, cluster=cluster)

    name = (
        f"{number}: {clusters} clusters of about {size} (spread {uneven:g}), "
        f"correlation {inside:g}, {shape or f'rate {rate:g}'}, "
        f"{groups} groups {'inside' if alike else 'of whole'} clusters, {kind}"
    )
    return Design(
        name=name,
        draw=draw,
        cells=groups,
        members=members,
        target=target,
        truth=np.zeros(len(members)),
        zero_one=not shape,
    )


_SHAPES: dict[str, tuple[Callable[[Rng, int], Floats], float]] = {
    "normal": (lambda rng, n: rng.normal(size=n), 0.0),
    "exponential": (lambda rng, n: rng.exponential(size=n), 1.0),
    "lognormal 0.5": (lambda rng, n: rng.lognormal(0, 0.5, n), float(np.exp(0.125))),
    "lognormal 1": (lambda rng, n: rng.lognormal(0, 1.0, n), float(np.exp(0.5))),
    "Student 3": (lambda rng, n: rng.standard_t(3, n), 0.0),
    "spikes": (lambda rng, n: rng.normal(size=n) + 20 * (rng.random(n) < 0.01), 0.2),
    "Brier": (lambda rng, n: ((rng.random(n) < 0.1) - 0.1) ** 2, 0.09),
    "uniform": (lambda rng, n: rng.random(n), 0.5),
}


def _real(rng: Rng, number: int) -> Design:
    cells = int(rng.integers(2, 25))
    sizes = np.minimum(_sizes(rng, cells, 1500.0), 1500)
    shapes = [str(rng.choice(list(_SHAPES)))] * cells
    if rng.random() < 0.3:
        # not spikes: a group that misses them, alone in having them, shows nothing of them, and
        # no method can know (named.py shows what then happens)
        shapes = [str(x) for x in rng.choice([x for x in _SHAPES if x != "spikes"], cells)]
    scales = np.exp(rng.normal(size=cells) * float(rng.choice([0.0, 1.0])))
    kind, target = _target(rng, cells, 0.0)
    if target.scale != 1.0:
        target = Complement()
    members = _comparable(np.eye(cells), target)
    where = np.repeat(np.arange(cells), sizes)
    weighted = bool(rng.random() < 0.25)

    def draw(world: Rng) -> Rows:
        value = np.empty(where.size)
        for shape in sorted(set(shapes)):
            here = np.array([x == shape for x in shapes])[where]
            make, mean = _SHAPES[shape]
            value[here] = make(world, int(here.sum())) - mean
        value *= scales[where]
        w = world.lognormal(0, 0.7, where.size) if weighted else None
        return Rows(cell=where, value=value, weight=w)

    kinds = " and ".join(sorted(set(shapes)))
    name = (
        f"{number}: {kinds}{', weighted' if weighted else ''}, {cells} groups of "
        f"{sizes.min()}–{sizes.max()}, spreads {scales.min():.2g}–{scales.max():.2g}, {kind}"
    )
    return Design(
        name=name,
        draw=draw,
        cells=cells,
        members=members,
        target=target,
        truth=np.zeros(len(members)),
        zero_one=False,
    )


def worlds(design: Design, number: int, seed: list[int]) -> Iterator[Rows]:
    """So many worlds of a design."""
    for i in range(number):
        yield design.draw(np.random.default_rng([*seed, i]))


def measured(design: Design, number: int, seed: list[int], draws: int | None) -> dict[str, Any]:
    """How often the defaults are wrong in a design."""
    found = [judge(design, world, draws) for world in worlds(design, number, seed)]
    names = ("bounds", "above", "below", "outside", "answered")
    return {"design": design.name, "worlds": number} | {
        name: float(np.mean([one[name] for one in found])) for name in names
    }


def verdict(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its worst error, beside nominal + 1 point and three standard errors."""
    worst = max(row[name] for name in ("bounds", "above", "below", "outside"))
    bar = ERROR + 0.01 + 3 * float(np.sqrt(ERROR * (1 - ERROR) / row["worlds"]))
    return {**row, "worst": worst, "bar": bar, "agrees": worst <= bar}
