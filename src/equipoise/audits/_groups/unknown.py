"""Groups some of whose members are unknown: from a claim and its cells to what can be said."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from equipoise._validate import Seed, rows_text
from equipoise.audits._common import answerable, finite, possible_range
from equipoise.audits._groups.labels import (
    CheapProblem,
    UnlabelledProblem,
    by_cheap_labels,
    by_logged_chances,
    by_missing_labels,
    labelled_groups,
    unlabelled_groups,
)
from equipoise.audits._groups.problem import (
    Beside,
    CertifyOptions,
    MadeProblem,
    Problem,
    cell_moments,
    cluster_sums,
    group_fields,
    make_core,
    method_target,
    no_rows,
)
from equipoise.cells import Cells, Collection, gather
from equipoise.cells.gather import level_of
from equipoise.cells.groups import EveryLevel
from equipoise.cells.tally import Axis, Tallied, steady_cells
from equipoise.claims import Claim, Metric, Ratio
from equipoise.claims import claim as targets
from equipoise.claims.claim import Gap
from equipoise.claims.groups import Binned, Dimension, Intersections, Levels
from equipoise.errors import ClaimError, TrailError
from equipoise.findings.adjusted import UnknownGroup
from equipoise.findings.words import Verdict, judged, tolerated
from equipoise.methods.inference.core import Core
from equipoise.methods.inference.unknown import (
    Membership,
    PairCore,
    ProxySums,
    Unsure,
    calibration,
    level_members,
    proxy_core,
    regressed,
    sums_over,
    tipping_point,
)
from equipoise.methods.numerics import BoolArray, FloatArray, GroupSums, over
from equipoise.methods.targets import Complement, Opposite, Overall, Target
from equipoise.trail import Trail
from equipoise.trail.trail import Proxy

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
    return level_members(cells.index, _unknown_levels(cells), choices)


def _unknown_levels(cells: Cells) -> np.ndarray:
    return np.array([_missing(axis.levels) for axis in cells.axes], dtype=np.int64)


def _reference(claim: Claim, cells: Cells) -> Membership | None:
    if not isinstance(claim.target, targets.Reference):
        return None
    choice = np.full((1, len(cells.axes)), -1, dtype=np.int64)
    for name, value in claim.target.where.items():
        place = cells.axis(name)
        choice[0, place] = level_of(cells.axes[place], value)
    return level_members(cells.index, _unknown_levels(cells), choice)


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
    lowest, highest = core.ends()
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
        rows=no_rows, trust=TRUST, sums=sums,
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
    lowest, highest = problem.made.ends()
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
