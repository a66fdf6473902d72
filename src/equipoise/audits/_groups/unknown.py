"""Groups some of whose members are unknown: from a claim and its cells to what can be said."""

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property

import narwhals as nw
import numpy as np

from equipoise._validate import Seed, rows_text
from equipoise.audits._common import answerable, finite, groups_only, possible_range
from equipoise.audits._groups.problem import (
    Beside,
    CertifyOptions,
    Problem,
    cell_moments,
    cluster_sums,
    group_fields,
    make_core,
    method_target,
    set_up,
    weight_unit,
)
from equipoise.cells import Cells, Collection, form_groups, gather
from equipoise.cells.gather import all_cells, level_of, scan_for
from equipoise.cells.groups import EveryLevel
from equipoise.cells.query import is_local
from equipoise.cells.tally import Axis, Tallied, outcome_of, steady_cells
from equipoise.claims import Claim, Metric, Ratio
from equipoise.claims import claim as targets
from equipoise.claims.claim import Gap
from equipoise.claims.groups import Binned, Dimension, Intersections, Levels
from equipoise.errors import ClaimError, OptionError, TrailError
from equipoise.findings.adjusted import LabelledGroup, UnknownGroup
from equipoise.findings.words import CHEAP_ONLY, Verdict, judged, tolerated
from equipoise.methods.inference.core import Core
from equipoise.methods.inference.labels import LabelSums, Powered, powered_core
from equipoise.methods.inference.unknown import (
    Membership,
    PairCore,
    ProxySums,
    Unsure,
    calibration,
    members,
    proxy_core,
    regressed,
    sums_over,
    tipping_point,
    worst_labels,
)
from equipoise.methods.numerics import BoolArray, FloatArray, GroupSums, IntArray
from equipoise.methods.published.bootstrap import RowData
from equipoise.methods.targets import (
    Complement,
    Moments,
    Opposite,
    Overall,
    Reference,
    Status,
    Target,
    over,
    plain_moments,
)
from equipoise.trail import Trail
from equipoise.trail.trail import RESERVED, Proxy

MOST_PAIRS = 50_000_000
"""Cells times groups of which it may be asked who belongs."""


def of_the_known(claim: Claim, cells: Cells, collection: Collection) -> Collection:
    """The groups of a collection but for those of the unknown."""
    keep = np.ones(len(collection), dtype=bool)
    for view, column in zip(collection.views, collection.choices.T, strict=True):
        keep &= column != _missing(view.axis.levels)
    if not keep.any():
        names = ", ".join(view.axis.name for view in collection.views)
        raise ClaimError(
            f"Nobody's {names} is known, so there is no group to speak of. Check the column, or "
            "name another attribute."
        )
    if len(cells) * len(collection) > MOST_PAIRS:
        raise ClaimError(
            f"unknown={claim.unknown!r} looks at every group in every cell, and "
            f"{len(collection):,} groups in {len(cells):,} cells are too many. Use fewer "
            "attributes, or a lower depth."
        )
    chosen, inner = np.flatnonzero(keep), collection.sums
    return dataclasses.replace(
        collection, choices=collection.choices[chosen], sums=_some(inner, chosen)
    )


def _some(inner: GroupSums, chosen: np.ndarray) -> GroupSums:
    def added(x: FloatArray, /) -> FloatArray:
        return np.asarray(np.take(inner(x), chosen, axis=-1))

    return added


def _missing(levels: tuple[object, ...]) -> int:
    """The place of the level that means unknown, or -1."""
    return next((i for i, level in enumerate(levels) if level is None), -1)


# --- Who is of each group, and who may be ---


def who_belongs(cells: Cells, collection: Collection) -> Membership:
    """Which cells are of each group, and which may be."""
    choices = np.full((len(collection), len(cells.axes)), -1, dtype=np.int64)
    for view, column in zip(collection.views, collection.choices.T, strict=True):
        place = cells.cut_by(view.axis.dimension)
        choices[:, place] = np.where(view.free()[column], -1, column)
    return members(cells.index, _unknown_levels(cells), choices)


def _unknown_levels(cells: Cells) -> np.ndarray:
    return np.array([_missing(axis.levels) for axis in cells.axes], dtype=np.int64)


def _reference(claim: Claim, cells: Cells) -> Membership | None:
    if not isinstance(claim.target, targets.Reference):
        return None
    choice = np.full((1, len(cells.axes)), -1, dtype=np.int64)
    for name, value in claim.target.where.items():
        place = cells.axis(name)
        choice[0, place] = level_of(cells.axes[place], value)
    return members(cells.index, _unknown_levels(cells), choice)


def unsure_of(problem: Problem) -> Unsure:
    """A problem whose cells are cut by outcome, in the form that the mathematics takes."""
    cells = problem.cells
    assert cells.ones is not None
    return Unsure(
        cells=cell_moments(cells),
        ones=cells.ones,
        who=who_belongs(cells, problem.collection),
        target=problem.target,
        reference=_reference(problem.claim, cells),
        relative=problem.relative,
        weighted=cells.weighted,
        clusters=cluster_sums(cells, problem.target),
    )


def unknown_core(problem: Problem) -> Core:
    """The core of the known, or of the worst that the unknown can do."""
    if problem.claim.unknown == "worst":
        return unsure_of(problem).worst()
    target = problem.target
    if isinstance(target, Complement):
        who = who_belongs(problem.cells, problem.collection)
        outside = ~who.sure & ~who.maybe
        none = sums_over(np.zeros_like(outside))
        target = Opposite(scale=target.scale, other=sums_over(outside), both=none)
    return make_core(
        problem.cells, target, problem.collection, relative=problem.relative, claim=problem.claim
    )


# --- What is said of every group beside its bounds ---


def unknown_groups(
    problem: Problem, options: CertifyOptions | None = None, seed: Seed | None = None
) -> Beside:
    """What findings say of people, or labels, that are not known."""
    if isinstance(problem, CheapProblem):
        return {"unknown": (), "labels": labelled_groups(problem)}
    if isinstance(problem, ProxyProblem):
        return {"unknown": proxy_groups(problem), "labels": ()}
    if isinstance(problem, UnlabelledProblem):
        return {"unknown": unlabelled_groups(problem), "labels": ()}
    return {"unknown": _missing_groups(problem, options, seed), "labels": ()}


def _missing_groups(
    problem: Problem, options: CertifyOptions | None, seed: Seed | None
) -> tuple[UnknownGroup, ...]:
    """How many may be of each group, how far they can move it, and what it takes.

    With the options of bounds also the bounds among the known, and the tipping point.
    """
    about = group_fields(problem)
    maybe = _maybe_rows(problem)
    core = problem.core
    if not isinstance(core, PairCore):
        return tuple(
            UnknownGroup(
                group=f["group"],
                where=f["where"],
                n=f["n"],
                unknown=round(float(rows)),
                left_out=True,
            )
            for f, rows in zip(about, maybe.tolist(), strict=True)
        )
    lowest, highest = _open_ends(core)
    told = _beside(problem, options, seed) if options is not None and seed is not None else None
    none = [None] * len(about)
    lower, upper, tipping = (none,) * 3 if told is None else told
    return tuple(
        UnknownGroup(
            group=f["group"],
            where=f["where"],
            n=f["n"],
            unknown=round(float(maybe[i])),
            lowest=finite(lowest[i]),
            highest=finite(highest[i]),
            lower=lower[i],
            upper=upper[i],
            tipping=tipping[i],
        )
        for i, f in enumerate(about)
    )


def _open_ends(core: PairCore) -> tuple[FloatArray, FloatArray]:
    """How far the unknown alone leave every disparity open; NaN for a group without an answer."""
    able = core.status == Status.OK
    low, high = (np.where(able, one.pivot.estimate, np.nan) for one in (core.low, core.high))
    return low, high


def _maybe_rows(problem: Problem) -> FloatArray:
    return np.asarray(problem.cells.rows @ who_belongs(problem.cells, problem.collection).maybe)


Ends = list[float | None]


def _beside(problem: Problem, options: CertifyOptions, seed: Seed) -> tuple[Ends, Ends, Ends]:
    """Bounds among the known, all at once, and how unevenly the unknown must be spread."""
    unsure = unsure_of(problem)
    core, critical, _ = answerable(
        unsure.known(), options.level, options.side, options.method.resamples, seed, False
    )
    low, high = (np.full(core.status.shape, np.nan) for _ in range(2))
    if core.answered.size:
        limits = possible_range(problem.claim, True)
        low, high = core.bounds(critical.value, _open(limits))
    none = np.full(low.shape, np.nan)
    tipping = none if options.tolerance is None else _tipping(unsure, core, low, high, options)
    shown = (
        low if options.side != "upper" else none,
        high if options.side != "lower" else none,
        tipping,
    )
    lower, upper, tips = ([finite(x) for x in column.tolist()] for column in shown)
    return lower, upper, tips


def _open(limits: tuple[float | None, float | None]) -> tuple[float, float]:
    low, high = limits
    return (-np.inf if low is None else low), (np.inf if high is None else high)


def _tipping(
    unsure: Unsure, core: Core, low: FloatArray, high: FloatArray, options: CertifyOptions
) -> FloatArray:
    """The odds ratio at which the verdict among the known would no longer hold, for each group."""
    assert options.tolerance is not None
    allowed = tolerated(options.tolerance, options.side, unsure.relative)
    seen = core.comparison.estimate

    def until(bound: FloatArray, limit: float | None, *, lowest: bool) -> FloatArray:
        if limit is None:
            return np.full(seen.shape, np.inf)
        return tipping_point(unsure, bound, seen, limit, lowest=lowest)

    down_to_low = until(low, allowed[0], lowest=True)
    up_to_high = until(high, allowed[1], lowest=False)
    down_to_high = until(low, allowed[1], lowest=True)
    up_to_low = until(high, allowed[0], lowest=False)
    kept = np.fmin(down_to_low, up_to_high)
    verdicts = [
        judged(finite(a), finite(b), allowed)
        for a, b in zip(low.tolist(), high.tolist(), strict=True)
    ]
    above = _above(low, allowed[1])
    exceeded = np.where(above, down_to_high, up_to_low)
    is_kept = np.array([v is Verdict.KEPT for v in verdicts])
    is_exceeded = np.array([v is Verdict.EXCEEDED for v in verdicts])
    return np.where(is_kept, kept, np.where(is_exceeded, exceeded, np.nan))


def _above(low: FloatArray, limit: float | None) -> BoolArray:
    return np.zeros(low.shape, dtype=bool) if limit is None else np.asarray(low > limit)


# --- Attributes of which only probabilities are known ---

CUTS = tuple(i / 20 for i in range(1, 20))
"""Rows are counted by ranges of their probabilities."""
CLOSE = 0.01
"""Probabilities of a row may add up to one plus or minus this."""
TRUST = (
    "near that of as many counts as the ends of the sharp (Fréchet) range over cells of similar "
    "probability are worth, corrected for the smaller of two estimates being too small (asymptotic "
    "in the rows of these cells); groups are joined as if independent"
)


def roundabout(trail: Trail | Tallied, claim: Claim) -> Problem | None:
    """The problem of a claim whose attribute, or whose label, is known in a roundabout way."""
    by_chance = isinstance(trail, Trail) and any(
        dimension.name in trail.proxies for dimension in claim.dimensions()
    )
    by_label = "label" in claim.metric.names()
    ways = {
        "probabilities of groups": by_chance,
        "proxy_label=": by_label and trail.roles.proxy_label is not None,
        "observed=": by_label and trail.roles.observed is not None,
        "unlabelled='worst'": claim.unlabelled == "worst",
    }
    if len(named := [name for name, asked in ways.items() if asked]) > 1:
        raise ClaimError(f"{' and '.join(named)} cannot be combined so far; leave out all but one.")
    if by_chance:
        assert isinstance(trail, Trail)
        return by_proxies(trail, claim)
    if claim.unlabelled == "worst":
        return by_missing_labels(trail, claim)
    if ways["observed="]:
        return by_logged_chances(trail, claim)
    return by_cheap_labels(trail, claim) if ways["proxy_label="] else None


@dataclass(frozen=True, kw_only=True)
class MadeProblem(Problem):
    """A problem whose core is made in a way of its own."""

    made: Core

    @cached_property
    def core(self) -> Core:
        """The core as it was made."""
        return self.made


@dataclass(frozen=True, kw_only=True)
class ProxyProblem(MadeProblem):
    """A problem whose groups are known by probabilities only."""

    sums: ProxySums
    calibration: FloatArray | None


def by_proxies(trail: Trail, claim: Claim) -> ProxyProblem:
    """Scan the rows once, by ranges of their probabilities, and bound every group."""
    name = _the_attribute(trail, claim)
    proxy = trail.proxies[name]
    levels, columns = tuple(proxy.columns), tuple(proxy.columns.values())
    # the columns behind the attribute form the cells, though no groups
    behind = [*columns, *([] if proxy.truth is None else [proxy.truth])]
    counted = dataclasses.replace(trail, proxies={}, attributes=tuple(behind))
    loose = claim.unknown != "random"
    asked = _proxy_claims(claim, proxy)
    first, *found = gather(counted, [_counted_rows(claim, proxy, loose=loose), *asked.values()])
    cells, known = steady_cells(first), map(steady_cells, found)
    scan = _Scanned(every=cells, known=dict(zip(asked, known, strict=True)))
    bad = scan.total("wrong").sum()
    if bad > 0:
        raise TrailError(
            f"The probabilities of {name} ({', '.join(columns)}) must lie between 0 and 1 and add "
            f"up to one in every row; in {rows_text(round(float(bad)))} they do not. "
            "Correct them, or add a column for everyone else."
        )
    if not cells.zero_one:
        raise ClaimError(
            f"Probabilities take metrics that are 0 or 1, and {claim.metric.name!r} has other "
            "values."
        )
    sums = scan.sums(len(columns), loose=loose)
    axis = Axis(dimension=Levels(name), levels=levels)
    reference = None
    if isinstance(claim.target, targets.Reference):
        reference = level_of(axis, claim.target.where[name])
        target: Target = Opposite(scale=claim.target.scale, other=_nothing, both=_nothing)
    else:
        target = method_target(claim.target, cells, None)
    collection = Collection(
        groups=claim.across,
        views=(EveryLevel(axis),),
        choices=np.arange(len(levels), dtype=np.int64)[:, None],
        sums=_nothing,
    )
    relative = isinstance(claim, Ratio)
    return ProxyProblem(
        claim=claim, cells=cells, collection=collection, target=target, influence=None,
        rows=_no_rows, trust=TRUST, sums=sums,
        granted=_granted(name, round(scan.loose) if loose else 0),
        made=proxy_core(sums, target, reference, relative),
        calibration=_calibration(scan, proxy),
    )  # fmt: skip


def _granted(name: str, loose: int) -> str:
    said = (
        f"the probabilities of {name} are right for these people: of all with probability p, "
        "whether they count for the metric or not, a share p is of the group"
    )
    if not loose:
        return said
    have = "row that counts has" if loose == 1 else "rows that count have"
    return f"{said} ({loose:,} {have} none, and may be of any group)"


def _nothing(x: FloatArray, /) -> FloatArray:
    return x


def _no_rows() -> RowData:
    raise OptionError("With probabilities in place of attributes there are no rows to resample.")


def _the_attribute(trail: Trail, claim: Claim) -> str:
    """The one attribute that is asked for, if all else can be answered."""
    names = [dimension.name for dimension in claim.dimensions()]
    if not isinstance(claim.across, Intersections) or len(names) > 1:
        raise ClaimError(
            f"An attribute that is known by probabilities is audited alone: across={names[0]!r}, "
            "with everyone, complement(), reference(…) or a number as target."
        )
    if claim.given or isinstance(claim.target, targets.Highest | targets.Custom):
        raise ClaimError(
            f"Probabilities of {names[0]!r} take no given=, no highest() and no custom(…)."
        )
    for role in ("weight", "cluster"):
        if role in trail.roles:
            raise ClaimError(f"Probabilities take no {role} column so far; read without {role}=….")
    return names[0]


def _cut_by(proxy: Proxy) -> Intersections:
    """Cells by ranges of every probability, and by the attribute where it is known after all."""
    cut: list[Dimension] = [Binned(column, CUTS) for column in proxy.columns.values()]
    cut += [] if proxy.truth is None else [Levels(proxy.truth)]
    return Intersections(attributes=tuple(cut))


def _counted_rows(claim: Claim, proxy: Proxy, *, loose: bool) -> Claim:
    """The metric itself; without ``loose`` on the rows whose probabilities are known."""
    metric = claim.metric
    if not loose and isinstance(metric.value, str):
        every = " + ".join(f"column({c!r})" for c in proxy.columns.values())
        metric = dataclasses.replace(metric, value=f"({metric.value}) + 0 * ({every})")
    return Gap(metric=metric, across=_cut_by(proxy))


def _proxy_claims(claim: Claim, proxy: Proxy) -> dict[str, Claim]:
    """What one scan adds up of rows whose probabilities are all known.

    Rows that do not count for the metric are there as well: probabilities are right among everyone,
    not given a label.
    """
    metric, names = claim.metric, [f"column({c!r})" for c in proxy.columns.values()]
    if not isinstance(metric.value, str) or metric.clipped:
        raise ClaimError("Probabilities take a metric that is written as a formula, without clip.")
    if not isinstance(metric.where, str | None):
        raise ClaimError("Probabilities take a metric whose rows are written as a formula.")
    every = " + ".join(names)
    some = metric.where is not None
    one = f"({metric.where}) * ({metric.value})" if some else f"({metric.value})"
    counted = f"({metric.where}) * 1"
    outside = " or ".join(f"{p} < 0 or {p} > 1" for p in names)
    formulas = {
        "wrong": f"({outside} or abs({every} - 1) > {CLOSE}) * 1",
        "rows": "1",
        "ones": one,
    }
    formulas |= {"counted": counted} if some else {}
    for i, p in enumerate(names):
        formulas |= {f"chance {i}": p, f"ones {i}": f"{p} * ({one})"}
        formulas |= {f"counted {i}": f"{p} * ({counted})"} if some else {}
    known = f"0 * ({one} + {every})"
    made = {
        name: Metric(
            name=name, value=f"{text} + {known}", binary=metric.binary, by_role=metric.by_role,
            # all but probabilities are, or the metric itself is refused
            zero_one=name in ("wrong", "rows", "ones", "counted"),
        )
        for name, text in formulas.items()
    }  # fmt: skip
    return {name: Gap(metric=one, across=_cut_by(proxy)) for name, one in made.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scanned:
    """What one scan of rows with probabilities brought."""

    every: Cells
    """The metric itself."""
    known: Mapping[str, Cells]
    """What `_proxy_claims` asks, of rows whose probabilities are known."""

    def total(self, name: str, group: int | None = None) -> FloatArray:
        """A sum by cell; where every row counts, those that count are all."""
        key = name if group is None else f"{name} {group}"
        if key not in self.known:
            key = key.replace("counted", "rows" if group is None else "chance")
        return self.known[key].total

    @property
    def loose(self) -> float:
        """Rows that count and have no probabilities."""
        return float(self.every.rows.sum() - self.total("counted").sum())

    def sums(self, groups: int, *, loose: bool) -> ProxySums:
        """Sums over the ranges of each group's own probability; then of people without any."""
        size, index = len(CUTS) + 1, self.known["rows"].index

        def table(values: Callable[[int], FloatArray], last: float = 0.0) -> FloatArray:
            made = [np.bincount(index[:, g], values(g), size)[:size] for g in range(groups)]
            return np.vstack([np.stack(made, axis=1), np.full((1, groups), last)])

        without = self.loose if loose else 0.0
        ones = float(self.every.total.sum() - self.total("ones").sum()) if loose else 0.0
        return ProxySums(
            # rows without probabilities that do not count are nobody's
            rows=table(lambda _: self.total("rows"), without),
            chance=table(lambda g: self.total("chance", g)),
            chance2=table(lambda g: self.known[f"chance {g}"].square),
            ones=table(lambda _: self.total("ones"), ones),
            zeros=table(lambda _: self.total("counted") - self.total("ones"), without - ones),
            chance_ones=table(lambda g: self.total("ones", g)),
            chance_zeros=table(lambda g: self.total("counted", g) - self.total("ones", g)),
            free=np.arange(size + 1) == size,
        )


def _calibration(scan: _Scanned, proxy: Proxy) -> FloatArray | None:
    """p-values of the probabilities where the attribute is known after all."""
    if proxy.truth is None:
        return None
    cells = scan.known["rows"]
    place = cells.axis(proxy.truth)
    levels = [None if level is None else str(level) for level in cells.axes[place].levels]
    known = np.array([level is not None for level in levels])[cells.index[:, place]]
    if not (cells.rows * known).sum():
        raise TrailError(
            f"Nobody's {proxy.truth!r} is known, so it checks nothing; leave out truth=."
        )
    size = len(CUTS) + 1
    columns = []
    for g, level in enumerate(proxy.columns):
        here = levels.index(level) if level in levels else -2
        hit = cells.rows * (cells.index[:, place] == here)
        chance = scan.known[f"chance {g}"]
        sums = (chance.total * known, chance.square * known, hit)
        columns.append([np.bincount(cells.index[:, g], x, size)[:size] for x in sums])
    return calibration(*np.stack(columns, axis=2).astype(np.float64))


def proxy_groups(problem: ProxyProblem) -> tuple[UnknownGroup, ...]:
    """What probabilities leave open of every group, and two estimates that may bracket it."""
    target = problem.target
    assert isinstance(problem.made, PairCore)
    lowest, highest = _open_ends(problem.made)
    slope, sums = regressed(problem.sums), problem.sums
    # given a label, probabilities need not be right
    plain = not problem.relative and target.scale == 1 and target.estimated
    plain = plain and problem.claim.metric.where is None
    if isinstance(target, Overall):
        people = sums.rows[~sums.free].sum(axis=0)
        slope = slope * (1 - over(sums.chance.sum(axis=0), people))
    elif not isinstance(target, Complement):
        plain = False
    checked = problem.calibration
    return tuple(
        UnknownGroup(
            group=fields["group"],
            where=fields["where"],
            n=fields["n"],
            unknown=problem.cells.counted,
            lowest=finite(lowest[i]),
            highest=finite(highest[i]),
            regressed=finite(slope[i]) if plain else None,
            by_chance=True,
            calibration=None if checked is None else finite(checked[i]),
        )
        for i, fields in enumerate(group_fields(problem))
    )


# --- Few gold labels, many cheap ones ---

CHEAP = (
    "near that of as many counts as both kinds of labels are worth (prediction-powered; asymptotic "
    "in the rows with true labels); groups are joined by normal scores with fitted correlations"
)


GOLD = "which rows have a true label does not depend on the outcome, within each group"


@dataclass(frozen=True, kw_only=True)
class CheapProblem(MadeProblem):
    """A problem whose labels are known of few rows, and guessed of many."""

    labels: Powered
    """What both kinds of labels tell of every part of every group."""


def by_cheap_labels(trail: Trail | Tallied, claim: Claim) -> CheapProblem:
    """Scan the rows once, by both kinds of labels, and join what they tell."""
    metric = claim.metric
    if not is_local(metric):
        raise ClaimError(
            f"A proxy_label takes metrics of label and prediction, such as accuracy; "
            f"{metric.name!r} reads more. Read without proxy_label=…."
        )
    if (
        claim.given
        or claim.unknown != "group"
        or isinstance(claim.target, targets.Highest | targets.Custom)
    ):
        raise ClaimError(
            "A proxy_label takes no given=, unknown=, highest() or custom(…) so far; leave them "
            "out, or read without proxy_label=…."
        )
    for role in ("weight", "cluster"):
        if role in trail.roles:
            raise ClaimError(f"A proxy_label takes no {role} column so far; read without {role}=….")
    found = gather(trail, [claim, *_label_claims(claim), *_cheap_rows(claim)])
    cells = _renamed(found[0], *(one.rows.sum() for one in found[-2:]))
    if not cells.zero_one:
        raise ClaimError(f"A proxy_label takes metrics that are 0 or 1; {metric.name!r} is not.")
    sums = LabelSums(
        **{f.name: each.total for f, each in zip(fields(LabelSums), found[1:-2], strict=True)}
    )
    collection = form_groups(claim.across, cells)
    groups_only(collection, "A proxy_label")
    target = method_target(claim.target, cells, None)
    core, told = powered_core(sums, target, collection.sums, relative=isinstance(claim, Ratio))
    return CheapProblem(
        claim=claim, cells=cells, collection=collection, target=target, influence=None,
        rows=_no_rows, trust=CHEAP, granted=GOLD, made=core, labels=told,
    )  # fmt: skip


def labelled_groups(problem: CheapProblem) -> tuple[LabelledGroup, ...]:
    """Every group by its true labels alone, and what both kinds are worth."""
    # of parts, the first is the group where it is one part, and all but what it shares else
    inside = problem.core.comparison.in_group
    worth = (inside * problem.labels.worth).sum(axis=0)
    rows = problem.collection.sums(problem.cells.rows)
    gold = over(problem.collection.sums(problem.cells.total), rows)
    strength = over((inside * problem.labels.strength * problem.labels.worth).sum(axis=0), worth)
    return tuple(
        LabelledGroup(
            group=one["group"],
            where=one["where"],
            n=round(float(rows[i])),
            gold=finite(gold[i]),
            worth=float(worth[i]),
            followed=float(np.nan_to_num(strength[i])),
        )
        for i, one in enumerate(group_fields(problem))
    )


def _renamed(cells: Cells, cheap: float, both: float) -> Cells:
    """The cells of the gold labels; rows without one may still tell what the cheap label says."""
    excluded = dict(cells.excluded)
    lost, only = excluded.pop("missing label", 0), round(cheap - both)
    neither = {"missing label": lost - only} if lost > only else {}
    more = {CHEAP_ONLY: only} if only else {}
    return dataclasses.replace(cells, excluded={**excluded, **neither, **more})


def _cheap_rows(claim: Claim) -> list[Claim]:
    """Rows with a cheap label, and those of them with a gold one."""
    others = tuple(role for role in claim.metric.binary if role != "label")
    return [
        _sum_of(claim, f"judged {i}", "1", roles)
        for i, roles in enumerate(((*others, "proxy_label"), ("label", *others, "proxy_label")))
    ]


def _sum_of(claim: Claim, name: str, text: str, roles: tuple[str, ...]) -> Claim:
    """A sum over the rows that have a value in each of some roles."""
    known = f" + 0 * ({' + '.join(roles)})" if roles else ""
    metric = Metric(name=name, binary=roles, value=f"{text}{known}", zero_one=True)
    return Gap(metric=metric, across=claim.across, target=claim.target)


def _label_claims(claim: Claim) -> list[Claim]:
    """What `LabelSums` holds, in its order: products of value and eligibility by both labels."""
    metric = claim.metric
    value, where = str(metric.value), str(metric.where or "1 == 1")
    gold = {"e": f"({where}) * 1", "v": f"({where}) * ({value})"}
    cheap = {name: re.sub(r"\blabel\b", "proxy_label", text) for name, text in gold.items()}
    both = [("v", "v"), ("v", "e"), ("e", "v"), ("e", "e")]
    others = tuple(role for role in metric.binary if role != "label")
    # a row that the judge skipped counts by its true label, and tells nothing else
    true = {"labelled": "1", "eligible": gold["e"], "value": gold["v"]}
    crossed = [cheap["e"], cheap["v"], *(f"({gold[a]}) * ({cheap[b]})" for a, b in both)]
    made = [(name, text, ("label", *others)) for name, text in true.items()]
    made += [
        (f"both {i}", text, ("label", *others, "proxy_label")) for i, text in enumerate(crossed)
    ]
    made += [("rows", "1", others)]
    made += [(f"cheap {x}", cheap[x], (*others, "proxy_label")) for x in ("e", "v")]
    return [_sum_of(claim, *one) for one in made]


# --- Labels that are missing, as where outcomes are seen of the accepted only ---

UNLABELLED = (
    "as that of counts, of the group and of those it is compared with, at the worst labels; "
    "groups are joined by normal scores with fitted correlations"
)


@dataclass(frozen=True, kw_only=True)
class UnlabelledProblem(MadeProblem):
    """A problem some of whose rows have no label."""

    without: FloatArray
    """Rows of each group without a label."""


def by_missing_labels(trail: Trail | Tallied, claim: Claim) -> UnlabelledProblem:
    """Scan the rows once; rows without a label get the one that is worst."""
    metric, relative = claim.metric, isinstance(claim, Ratio)
    if not is_local(metric) or "prediction" not in metric.binary:
        raise ClaimError(
            "unlabelled='worst' takes metrics of label and prediction, such as "
            f"false_positive_rate; got {metric.name!r}."
        )
    for role in ("weight", "cluster"):
        if role in trail.roles:
            raise ClaimError(f"unlabelled='worst' takes no {role} column so far.")
    gold, *counted = gather(trail, [dataclasses.replace(claim, unlabelled="out"), *_counts(claim)])
    if not gold.zero_one:
        raise ClaimError(f"unlabelled='worst' takes metrics that are 0 or 1, not {metric.name!r}.")
    rows, ones, labelled, labelled_ones = (cells.total for cells in counted)
    no_label = {0: (rows - ones) - (labelled - labelled_ones), 1: ones - labelled_ones}
    low, high = (_at_worst(metric, gold, no_label, lowest=lowest) for lowest in (True, False))
    gold = _with_unlabelled(gold, sum(map(np.sum, no_label.values())))
    collection = form_groups(claim.across, gold)
    target = method_target(claim.target, gold, None)
    member = np.asarray(collection.sums(np.eye(len(gold))) > 0)
    _refuse_overlap(member, target)
    known = make_core(gold, target, collection, relative=relative)
    return UnlabelledProblem(
        claim=claim, cells=gold, collection=collection, target=target, influence=None,
        rows=_no_rows, trust=UNLABELLED,
        made=worst_labels(known, low, high, member, target, relative=relative),
        without=collection.sums(no_label[0] + no_label[1]),
    )  # fmt: skip


def _with_unlabelled(gold: Cells, taken: float) -> Cells:
    """The cells without the word that rows were left out which bounds allow for."""
    lost = gold.excluded.get("missing label", 0) - round(float(taken))
    others = {reason: n for reason, n in gold.excluded.items() if reason != "missing label"}
    return dataclasses.replace(
        gold, excluded={**others, **({"missing label": lost} if lost > 0 else {})}
    )


def _counts(claim: Claim) -> list[Claim]:
    """All rows, those that were decided for, and the same of rows with a label."""
    asked = [
        (("prediction",), "prediction * 0 + 1"),
        (("prediction",), "prediction"),
        (("label", "prediction"), "(label + prediction) * 0 + 1"),
        (("label", "prediction"), "prediction + 0 * label"),
    ]
    return [
        Gap(
            metric=Metric(name=f"rows {i}", value=text, binary=roles),
            across=claim.across,
            target=claim.target,
        )
        for i, (roles, text) in enumerate(asked)
    ]


def _refuse_overlap(member: BoolArray, target: Target) -> None:
    """Refuse a reference that has rows of other groups: a row has one label, not two."""
    if _overlaps(member, target):
        raise ClaimError(
            "unlabelled='worst' needs a reference that shares no row with the other groups. Use "
            "complement(), or groups of one attribute."
        )


def _overlaps(member: BoolArray, target: Target) -> bool:
    if not isinstance(target, Reference):
        return False
    inside = np.asarray(target.cells)[:, None]
    some, same = (member & inside).any(axis=0), (member == inside).all(axis=0)
    return bool((some & ~same).any())


def _at_worst(
    metric: Metric, gold: Cells, no_label: Mapping[int, FloatArray], *, lowest: bool
) -> Moments:
    """The cells if every missing label makes the rate lowest, or highest."""
    eligible, ones = _worst_counts(metric, no_label, lowest=lowest)
    rows, total = gold.rows + eligible, gold.total + ones
    return plain_moments(rows, total, total, total)


def _worst_counts(
    metric: Metric, no_label: Mapping[int, FloatArray], *, lowest: bool
) -> tuple[FloatArray, FloatArray]:
    """How many of the rows without a label count, and their ones, at the worst labels."""
    rows = total = np.zeros_like(no_label[0])
    for prediction, number in no_label.items():
        options = [outcome_of(metric, label, prediction) for label in (0, 1)]
        # out of the way is better than against it, and for it is best
        best = min if lowest else max
        eligible, value = best(options, key=lambda one: (2 * one[1] - 1) * one[0])
        rows, total = rows + eligible * number, total + eligible * value * number
    return rows, total


def unlabelled_groups(problem: UnlabelledProblem) -> tuple[UnknownGroup, ...]:
    """How many have no label, and what that leaves open."""
    assert isinstance(problem.made, PairCore)
    lowest, highest = _open_ends(problem.made)
    return tuple(
        UnknownGroup(
            group=one["group"],
            where=one["where"],
            n=one["n"],
            unknown=round(float(problem.without[i])),
            lowest=finite(lowest[i]),
            highest=finite(highest[i]),
            what="labels",
        )
        for i, one in enumerate(group_fields(problem))
    )


INVERSE = f"{RESERVED}inverse"
LOGGED = (
    "the logged chances of being observed are right, and what else decided who was observed does "
    "not go with the outcome"
)


def by_logged_chances(trail: Trail | Tallied, claim: Claim) -> Problem:
    """The problem of the rows with a label, each weighed by one over its chance to have one."""
    if isinstance(trail, Tallied):
        raise ClaimError("Rows are weighed by observed=… in a trail; these are counts.")
    column, label = str(trail.roles.observed), trail.roles.column("label")
    chance = trail.number(column)
    right = trail.present(column) & (chance > 0) & (chance <= 1)
    # a weight below zero is refused where rows are read; rows without a label do not count anyway
    inverse = nw.when(right).then(1 / chance).otherwise(nw.lit(-1.0))
    inverse = nw.when(trail.present(label)).then(inverse).otherwise(nw.lit(1.0))
    if trail.roles.weight is not None:
        inverse = inverse * trail.number(trail.roles.weight)
    weighed = dataclasses.replace(
        trail,
        frame=trail.frame.with_columns(inverse.alias(INVERSE)),
        schema={**trail.schema, INVERSE: nw.Float64()},
        roles=dataclasses.replace(trail.roles, weight=INVERSE, observed=None),
    )
    try:
        problem = set_up(weighed, claim)
    except TrailError as error:
        if INVERSE not in str(error):
            raise
        raise TrailError(
            f"The observed column {column!r} must hold chances above 0 and at most 1 wherever "
            "there is a label. Correct these rows, or remove them."
        ) from error
    chances = _all_chances(trail, claim, problem.cells)
    rare = _with_hardly_seen(trail, weighed, claim, chances.misfit)
    if rare is not None:
        return rare
    cells = dataclasses.replace(problem.cells, weight2=problem.cells.weight2 * chances.heavier)
    return dataclasses.replace(problem, cells=cells, granted=LOGGED + chances.misfit)


RARELY = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
"""Rows are counted by ranges of their chances to be observed."""
ENOUGH = 5.0
"""People of small chances, the smallest first, of whom fewer than this were to be expected among
those observed: the observed ones say nothing about them."""
HARDLY = (
    f"; people with chances so small that fewer than {ENOUGH:g} of their cell were to be expected "
    "among the observed may have any label"
)


def _with_hardly_seen(
    trail: Trail, weighed: Trail, claim: Claim, misfit: str
) -> "UnlabelledProblem | None":
    """The problem in which people who were hardly ever to be seen may have any label.

    The others are weighed by one over their chance. None if there is nobody of the kind, or the
    question is one for which worst labels are not known.
    """
    metric, roles = claim.metric, trail.roles
    asked = is_local(metric) and "prediction" in metric.binary and not claim.given
    everyone = isinstance(claim.target, targets.Overall)
    known = isinstance(claim.target, targets.Complement | targets.Reference | targets.Constant)
    if not asked or not (known or (everyone and metric.where is None)) or claim.unknown != "group":
        return None
    if roles.weight is not None or roles.cluster is not None:
        return None
    cut = Binned(str(roles.observed), RARELY)
    with_chance = (*trail.attributes, str(roles.observed))
    plain, weighed = (
        dataclasses.replace(
            one, attributes=with_chance, roles=dataclasses.replace(one.roles, observed=None)
        )
        for one in (trail, weighed)
    )
    chance = f"column({roles.observed!r})"
    counts = [*_counts(claim)[:2], _sum_of(claim, "chance", chance, ("prediction",))]
    counts[2] = dataclasses.replace(
        counts[2], metric=dataclasses.replace(counts[2].metric, zero_one=False)
    )
    rows, ones, chances = map(
        steady_cells, all_cells(scan_for(plain, counts, further=[cut]), counts)
    )
    hidden = _hardly_seen(rows, chances.total, rows.cut_by(cut))
    if not rows.total[hidden].sum():
        return None
    (gold,) = all_cells(scan_for(weighed, [claim], further=[cut]), [claim])
    gold = _spread_over(steady_cells(gold), rows, ~hidden)
    no_label = {
        0: np.where(hidden, rows.total - ones.total, 0.0), 1: np.where(hidden, ones.total, 0.0)
    }  # fmt: skip
    collection = form_groups(claim.across, gold)
    target = method_target(claim.target, gold, None)
    member = np.asarray(collection.sums(np.eye(len(gold))) > 0)
    if _overlaps(member, target):
        return None
    relative = isinstance(claim, Ratio)
    low, high = (
        _weighed_at_worst(metric, gold, no_label, lowest=lowest) for lowest in (True, False)
    )
    middle = make_core(gold, target, collection, relative=relative)
    return UnlabelledProblem(
        claim=claim, cells=gold, collection=collection, target=target, influence=None,
        rows=_no_rows, trust=UNLABELLED, granted=LOGGED + HARDLY + misfit,
        made=worst_labels(middle, low, high, member, target, relative=relative, weighted=True),
        without=collection.sums(no_label[0] + no_label[1]),
    )  # fmt: skip


def _hardly_seen(cells: Cells, chance: FloatArray, axis: int) -> BoolArray:
    """Cells of small chances in which, with all smaller ones, hardly anybody was to be seen."""
    place = cells.index[:, axis]
    _, other = np.unique(np.delete(cells.index, axis, axis=1), axis=0, return_inverse=True)
    other = other.reshape(-1)
    expected = np.zeros((int(other.max(initial=0)) + 1, len(RARELY) + 2))
    np.add.at(expected, (other, place), chance)
    return np.asarray((expected.cumsum(axis=1)[other, place] < ENOUGH) & (place < len(RARELY)))


def _spread_over(found: Cells, every: Cells, keep: BoolArray) -> Cells:
    """The cells among others that are cut alike; nothing in those that are not kept."""
    place = _places(every, found)

    def spread(x: FloatArray) -> FloatArray:
        made = np.zeros(len(every))
        made[place] = x
        return np.where(keep, made, 0.0)

    return dataclasses.replace(
        found,
        axes=every.axes,
        index=every.index,
        present=every.present,
        rows=spread(found.rows),
        weight=spread(found.weight),
        total=spread(found.total),
        square=spread(found.square),
        weight2=spread(found.weight2),
        total2=spread(found.total2),
        square2=spread(found.square2),
        weight3=spread(found.weight3),
        total3=spread(found.total3),
        square3=spread(found.square3),
        cube3=spread(found.cube3),
    )


def _weighed_at_worst(
    metric: Metric, gold: Cells, no_label: Mapping[int, FloatArray], *, lowest: bool
) -> Moments:
    """Weighed cells if every missing label, of a row that weighs one, is as bad as it can be."""
    unit = weight_unit(gold)
    eligible, total = _worst_counts(metric, no_label, lowest=lowest)
    made = cell_moments(gold)
    more = {"rows": eligible}
    for power, names in enumerate(
        (("weight", "total"), ("weight2", "total2", "square2"),
         ("weight3", "total3", "square3", "cube3")), 1
    ):  # fmt: skip
        more |= {
            name: (eligible if name.startswith("weight") else total) / unit**power for name in names
        }
    return Moments(**{f.name: getattr(made, f.name) + more[f.name] for f in fields(made)})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chances:
    """What the logged chances of all rows say, whether they were observed or not."""

    heavier: FloatArray
    """How many times what they are squared weights of each cell were to be expected to add up to;
    at least 1."""
    misfit: str
    """That more, or fewer, were observed than the chances allow, in words; empty if they fit."""


MISFIT = 4.0
"""Standard deviations from which the number of observed rows is told not to fit their chances."""


def _all_chances(trail: Trail, claim: Claim, cells: Cells) -> _Chances:
    """Chances of everybody: rows that were hardly ever to be seen are heavy, seen or not.

    Weights of the rows that happened to be observed do not show how heavy the others would have
    been; one over the chance, summed over all rows, is what squared weights come to on average.
    """
    roles, chance = trail.roles, f"column({str(trail.roles.observed)!r})"
    weight = "1" if roles.weight is None else f"column({roles.weight!r})"
    plain = dataclasses.replace(
        trail, roles=dataclasses.replace(roles, weight=None, observed=None, cluster=None)
    )
    asked = {
        "squares": Metric(name="squares", value=f"{weight} * {weight} / {chance}"),
        "chance": Metric(name="chance", value=f"{chance} + 0 * {weight}"),
        "seen": Metric(
            name="seen", value=f"label * 0 + {weight} * {weight} / {chance} / {chance}",
            binary=("label",),
        ),
    }  # fmt: skip
    claims = [dataclasses.replace(claim, metric=metric) for metric in asked.values()]
    found = dict(zip(asked, map(steady_cells, gather(plain, claims)), strict=True))
    place = _places(found["chance"], cells)
    heavier = over(found["squares"].total[place], found["seen"].total[place])
    seen, expected = found["seen"].rows.sum(), found["chance"].total.sum()
    spread = math.sqrt(max(float(expected - found["chance"].square.sum()), 1.0))
    misfit = ""
    if abs(seen - expected) > MISFIT * spread:
        misfit = f"; yet {seen:,.0f} rows were observed where chances add up to {expected:,.0f}"
    return _Chances(heavier=np.fmax(np.nan_to_num(heavier), 1.0), misfit=misfit)


def _places(found: Cells, cells: Cells) -> IntArray:
    """Where each of some cells is among others that are cut alike."""

    def keys(one: Cells) -> list[tuple[object, ...]]:
        levels = [axis.levels for axis in one.axes]
        return [tuple(x[i] for x, i in zip(levels, row, strict=True)) for row in one.index.tolist()]

    at = {key: i for i, key in enumerate(keys(found))}
    return np.array([at[key] for key in keys(cells)], dtype=np.int64)
