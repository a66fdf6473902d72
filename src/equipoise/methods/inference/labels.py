"""Few gold labels and many cheap ones: prediction-powered rates of groups.

The cheap label tells of every row what the gold one tells of few. The rate from gold labels moves
by λ times what the cheap rate is among all rows less what it is among the labelled ones, with the λ
that makes the variance smallest (Angelopoulos and others 2023). Nothing is assumed about the cheap
label, only that gold labels were given without regard to the outcome.

A rate is a share of eligible rows, and a label may decide who is eligible. With value v and
eligibility e of each row, v − r e takes the part of the outcome. What the cheap label is worth is
told in rows: a rate whose variance is half that of gold labels alone has the tails of twice as
many, so that counts stay counts, and is never worth fewer than the gold labels alone.
"""

from dataclasses import dataclass, fields, replace

import numpy as np

from equipoise.methods.inference.core import Core, core_of
from equipoise.methods.inference.counts import CountPivot
from equipoise.methods.inference.orthogonal import ScoreDraws
from equipoise.methods.inference.student import LEAST_ROWS, Spread
from equipoise.methods.inference.unknown import PairCore, pair_core, sums_over
from equipoise.methods.numerics import BoolArray, FloatArray, GroupSums, IntArray, over
from equipoise.methods.targets import Moments, Opposite, Overall, Reference, Stated, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSums:
    """Sums of rows that have a cheap label, those with a gold one apart; all factors are 0 or 1."""

    labelled: FloatArray
    """Rows with a gold label."""
    eligible: FloatArray
    """Σ e of them, by the gold label."""
    value: FloatArray
    """Σ v, by the gold label."""
    cheap_eligible: FloatArray
    """Σ e of them, by the cheap label."""
    cheap_value: FloatArray
    """Σ v, by the cheap label."""
    value_value: FloatArray
    """Σ v v, one by either label."""
    value_eligible: FloatArray
    """Σ v e, v by the gold label."""
    eligible_value: FloatArray
    """Σ e v, e by the gold label."""
    eligible_eligible: FloatArray
    """Σ e e, one by either label."""
    rows: FloatArray
    """All rows."""
    all_eligible: FloatArray
    """Σ e of all, by the cheap label."""
    all_value: FloatArray
    """Σ v of all, by the cheap label."""

    def parts(self, target: Target, sums: GroupSums) -> "LabelSums":
        """Sums over the parts of every group."""
        return LabelSums(
            **{f.name: target.parts(getattr(self, f.name), sums) for f in fields(self)}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Powered:
    """Rates of parts from both kinds of labels, arrays of one shape."""

    rate: FloatArray
    """The rate; NaN without gold labels of eligible rows."""
    worth: FloatArray
    """How many eligible rows with gold labels would tell as much."""
    strength: FloatArray
    """λ: how far the cheap label is followed; zero where it does not help."""
    mean_eligible: FloatArray
    """Share of the rows that are eligible."""


UNSEEN = 0.5
"""Rows added to each way in which labels can differ: those not seen among few may exist."""


def powered(s: LabelSums) -> Powered:
    """Prediction-powered rates.

    >>> rows = {"labelled": 500, "eligible": 500, "value": 150, "cheap_eligible": 500}
    >>> rows |= {"cheap_value": 150, "value_value": 140, "value_eligible": 150}
    >>> rows |= {"eligible_value": 150, "eligible_eligible": 500, "rows": 5000}
    >>> rows |= {"all_eligible": 5000, "all_value": 1600}
    >>> found = powered(LabelSums(**{name: np.array([float(x)]) for name, x in rows.items()}))
    >>> found.rate.round(3).tolist(), found.worth.round().tolist()
    ([0.318], [1844.0])
    """
    n, every = np.maximum(s.labelled, 1.0), np.maximum(s.rows, 1.0)
    plain = over(s.value, s.eligible)
    own, rest, strength = _spreads(s, np.nan_to_num(plain))
    used = (rest < own) & (np.minimum(s.value, s.eligible - s.value) > 0)
    used &= s.eligible >= LEAST_ROWS
    share = s.eligible / n + strength * (s.all_eligible / every - s.cheap_eligible / n)
    # a share of eligible rows near zero says that the cheap label leads nowhere
    used &= share > 0.1 * s.eligible / n
    strength = np.where(used, strength, 0.0)
    top = s.value / n + strength * (s.all_value / every - s.cheap_value / n)
    share = np.where(used, share, s.eligible / n)
    rate = np.where(used, np.clip(over(top, share), 0.0, 1.0), plain)
    gain = np.where(used, np.nan_to_num(over(own, rest), nan=1.0), 1.0)
    return Powered(
        rate=rate,
        worth=s.eligible * np.maximum(gain, 1.0),
        strength=strength,
        mean_eligible=share,
    )


def _spreads(s: LabelSums, rate: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Variances of v − r e by gold labels alone and by both kinds, and the best λ."""
    table = _crossed(s)
    n = np.maximum(table.sum(axis=(0, 1)), 1.0)
    # not eligible, zero, one
    score = np.stack([np.zeros_like(rate), -rate, 1 - rate])
    gold, cheap = score[:, None], score[None, :]

    def mean(x: FloatArray) -> FloatArray:
        return np.asarray((table * x).sum(axis=(0, 1)) / n)

    gold, cheap = gold - mean(gold + 0 * cheap), cheap - mean(cheap + 0 * gold)
    own, spread, both = mean(gold**2 + 0 * cheap), mean(cheap**2 + 0 * gold), mean(gold * cheap)
    strength = np.nan_to_num(over(both, np.where(spread > 1e-12, spread, 0.0)))
    missed = (gold - strength * cheap) ** 2
    left = np.maximum(1 - s.labelled / np.maximum(s.rows, 1.0), 0.0)
    # what is not labelled shows λ f, the rest of the variance is what the cheap label misses
    loss = np.maximum(n - 1, 1.0) / np.maximum(n - 2, 1.0)
    rest = (left * mean(missed) + (1 - left) * own) * loss
    return own, rest, strength


def _crossed(s: LabelSums) -> FloatArray:
    """Labelled rows by what they are (not eligible, zero, one) by either label, ``(3, 3, …)``."""
    one_one, one_able, able_one = s.value_value, s.value_eligible, s.eligible_value
    both = s.eligible_eligible
    ones = [s.value - one_able, one_able - one_one, one_one]
    zeros = [
        s.eligible - s.value - (both - one_able),
        both - one_able - able_one + one_one,
        able_one - one_one,
    ]
    none = [
        s.labelled - s.eligible - (s.cheap_eligible - both),
        s.cheap_eligible - both - (s.cheap_value - able_one),
        s.cheap_value - able_one,
    ]
    table = np.array([none, zeros, ones], dtype=np.float64)
    possible = (table.sum(axis=1)[:, None] > 0) & (table.sum(axis=0)[None] > 0)
    differ = ~np.eye(3, dtype=bool).reshape(3, 3, *[1] * (table.ndim - 2))
    return np.asarray(table + UNSEEN * (possible & differ))


def powered_core(
    cells: LabelSums, target: Target, sums: GroupSums, *, relative: bool
) -> tuple[Core, Powered]:
    """The core of groups by both kinds of labels, and what the labels tell of every part."""
    parts = cells.parts(target, sums)
    told = powered(parts)
    mass = parts.rows * told.mean_eligible
    rate = np.nan_to_num(told.rate)
    # where labels decide who counts, shares are known by gold labels only
    everybody = bool((parts.eligible == parts.labelled).all())
    noise = mass if everybody else np.nan_to_num(over(mass**2, told.worth))
    total = mass * rate
    found = Stated(
        target=target,
        relative=relative,
        parts=Moments(
            rows=parts.eligible, weight=mass, total=total, weight2=noise, total2=total,
            square2=total, weight3=mass, total3=total, square3=total, cube3=total,
        ),
    )  # fmt: skip
    degrees = np.full(mass.shape[1], np.inf)
    pivot = CountPivot(comparison=found, rows=told.worth, degrees=degrees)
    covariance = _covariance(cells, parts, told, found, sums)
    outcomes = np.nan_to_num((found.in_group * parts.eligible).sum(axis=0))
    mean = np.nan_to_num(found.mean)
    core = Core(
        comparison=found,
        pivot=pivot,
        status=found.status.astype(np.int64),
        spread=Spread(
            variance=np.diag(covariance).copy(),
            skewness=np.zeros(mass.shape[1]),
            usual=np.zeros((2, mass.shape[1])),
            degrees=degrees,
        ),
        reach=np.full(mass.shape[1], np.inf),
        outcomes=outcomes * np.minimum(mean, 1 - mean),
        cells=ScoreDraws(covariance),
        sums=sums,
        counted=True,
    )
    return core, told


def _covariance(
    cells: LabelSums, parts: LabelSums, told: Powered, found: Stated, sums: GroupSums
) -> FloatArray:
    """Covariance of all groups' contrasts, from what every row does to each."""
    factor = found.factor(np.where(np.isfinite(found.estimate), found.estimate, 1.0))
    members = found.target.parts(np.eye(cells.rows.size), sums)
    slope = found.slopes(factor) * found.parts.weight
    effect = _effect(parts, told, slope)
    # moves of shares: a row more of a part than of others
    rates = np.nan_to_num(told.rate)
    drift = found.slopes(factor) * rates - found.intercepts(factor, rates)
    effect[..., 7] += drift * told.mean_eligible
    each = np.einsum("pcg,pgf->cgf", members, effect)
    products = _products(cells)
    return np.asarray(np.einsum("cgf,cfe,che->gh", each, products, each, optimize=True))


def _effect(parts: LabelSums, told: Powered, slope: FloatArray) -> FloatArray:
    """What a row does to the contrast, ``(parts, G, 8)``, by what describes it.

    That is v, e, cheap v, cheap e and one if it is labelled, then cheap v, cheap e and one.
    """
    r, lam = np.nan_to_num(told.rate), told.strength
    n, all_rows = np.maximum(parts.labelled, 1.0), np.maximum(parts.rows, 1.0)
    unit = slope / np.maximum(told.mean_eligible, 1e-12)
    cheap = (parts.all_value - r * parts.all_eligible) / all_rows
    gold = (parts.value - r * parts.eligible) / n
    first = gold - lam * (parts.cheap_value - r * parts.cheap_eligible) / n
    columns = (
        unit / n, -r * unit / n, -lam * unit / n, lam * r * unit / n, -first * unit / n,
        lam * unit / all_rows, -lam * r * unit / all_rows, -lam * cheap * unit / all_rows,
    )  # fmt: skip
    return np.stack(columns, axis=-1)


def _products(s: LabelSums) -> FloatArray:
    """Sums of products of what a row is described by, ``(C, 8, 8)``."""
    # of v, e, cheap v, cheap e and one among the labelled: v e is v, and so with the cheap ones
    v, e, cv, ce, one = s.value, s.eligible, s.cheap_value, s.cheap_eligible, s.labelled
    vv, ve, ev, ee = s.value_value, s.value_eligible, s.eligible_value, s.eligible_eligible
    gold = [
        [v, v, vv, ve, v],
        [v, e, ev, ee, e],
        [vv, ev, cv, cv, cv],
        [ve, ee, cv, ce, ce],
        [v, e, cv, ce, one],
    ]
    # with the cheap ones of all rows: the labelled part of them
    mixed = [[row[2], row[3], row[4]] for row in gold]
    every = [
        [s.all_value, s.all_value, s.all_value],
        [s.all_value, s.all_eligible, s.all_eligible],
        [s.all_value, s.all_eligible, s.rows],
    ]
    table = [[*a, *b] for a, b in zip(gold, mixed, strict=True)]
    table += [[*(row[i] for row in mixed), *every[i]] for i in range(3)]
    return np.moveaxis(np.array(table, dtype=np.float64), -1, 0)


# --- Rows without a label: both ends are plain rates, of the group at one, of others at the other


def worst_labels(
    known: Core,
    low: Moments,
    high: Moments,
    member: BoolArray,
    target: Target,
    *,
    relative: bool,
    weighted: bool = False,
) -> PairCore:
    """The core over all labels that rows without one may have.

    ``low`` and ``high`` are the cells as they are if every missing label makes rates lowest, or
    highest; ``member`` says of which cells each group is made, ``(C, G)``. Everyone is a target for
    metrics that count on every row: then who is in the group does not depend on labels.
    """
    both = Moments(
        **{
            f.name: np.concatenate([getattr(low, f.name), getattr(high, f.name)])
            for f in fields(low)
        }
    )
    if not weighted:
        # the sums are counts, which one array says
        both = replace(both, weight=both.rows, weight2=both.rows, weight3=both.rows)
    none = np.zeros_like(member)
    other = ~member
    if isinstance(target, Reference):
        other = other & np.asarray(target.cells)[:, None]
    ends = []
    for first in (True, False):
        own = np.concatenate([member, none] if first else [none, member])
        outside = np.concatenate([none, other] if first else [other, none])
        against = target
        if target.estimated:
            shared = own if isinstance(target, Overall) else np.zeros_like(own)
            against = Opposite(
                scale=target.scale, other=sums_over(shared | outside), both=sums_over(shared)
            )
        ends.append(
            core_of(
                both, against, sums_over(own), relative=relative, zero_one=True, weighted=weighted
            )
        )
    return pair_core(known, *ends)


# --- Labels that are seen by chance: who was hardly ever to be seen ---

ENOUGH = 5.0
"""People of small chances, the smallest first, of whom fewer than this were to be expected among
those observed: the observed ones say nothing about them."""


def hardly_seen(place: IntArray, other: IntArray, chance: FloatArray) -> BoolArray:
    """Which cells hold people of whom, with all of smaller chances, hardly any were to be seen.

    ``place`` is the range of chances of each cell, ``other`` what else it is, and ``chance`` the
    sum of the chances of its people.

    >>> place, other = np.array([0, 1, 2, 0]), np.array([0, 0, 0, 1])
    >>> hardly_seen(place, other, np.array([2.0, 2.5, 9.0, 7.0])).tolist()
    [True, True, False, False]
    """
    shape = (int(other.max(initial=0)) + 1, int(place.max(initial=0)) + 1)
    expected = np.zeros(shape)
    np.add.at(expected, (other, place), chance)
    return np.asarray(expected.cumsum(axis=1)[other, place] < ENOUGH)
