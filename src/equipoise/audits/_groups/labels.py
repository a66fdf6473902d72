"""Labels that are missing, cheap, or seen by a logged chance: the problems that they make."""

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields

import narwhals as nw
import numpy as np

from equipoise.audits._common import finite, groups_only
from equipoise.audits._groups.problem import (
    MadeProblem,
    Problem,
    cell_moments,
    group_fields,
    make_core,
    method_target,
    no_rows,
    set_up,
    weight_unit,
)
from equipoise.cells import Cells, form_groups, gather
from equipoise.cells.gather import all_cells, scan_for
from equipoise.cells.query import is_local
from equipoise.cells.tally import Tallied, steady_cells, worth_of_outcome
from equipoise.claims import Claim, Metric, Ratio
from equipoise.claims import claim as targets
from equipoise.claims.claim import Gap
from equipoise.claims.groups import Binned
from equipoise.errors import ClaimError, TrailError
from equipoise.findings.adjusted import LabelledGroup, UnknownGroup
from equipoise.findings.words import CHEAP_ONLY
from equipoise.methods.inference.labels import (
    ENOUGH,
    LabelSums,
    Powered,
    hardly_seen,
    powered_core,
    worst_labels,
)
from equipoise.methods.inference.unknown import PairCore
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray, over
from equipoise.methods.targets import Moments, Reference, Target, plain_moments
from equipoise.trail import Trail
from equipoise.trail.trail import RESERVED

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
        rows=no_rows, trust=CHEAP, granted=GOLD, made=core, labels=told,
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
        rows=no_rows, trust=UNLABELLED,
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
        options = [worth_of_outcome(metric, label, prediction) for label in (0, 1)]
        # out of the way is better than against it, and for it is best
        best = min if lowest else max
        eligible, value = best(options, key=lambda one: (2 * one[1] - 1) * one[0])
        rows, total = rows + eligible * number, total + eligible * value * number
    return rows, total


def unlabelled_groups(problem: UnlabelledProblem) -> tuple[UnknownGroup, ...]:
    """How many have no label, and what that leaves open."""
    assert isinstance(problem.made, PairCore)
    lowest, highest = problem.made.ends()
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
        rows=no_rows, trust=UNLABELLED, granted=LOGGED + HARDLY + misfit,
        made=worst_labels(middle, low, high, member, target, relative=relative, weighted=True),
        without=collection.sums(no_label[0] + no_label[1]),
    )  # fmt: skip


def _hardly_seen(cells: Cells, chance: FloatArray, axis: int) -> BoolArray:
    """Cells of small chances in which, with all smaller ones, hardly anybody was to be seen."""
    place = cells.index[:, axis]
    _, other = np.unique(np.delete(cells.index, axis, axis=1), axis=0, return_inverse=True)
    return hardly_seen(place, other.reshape(-1), chance) & (place < len(RARELY))


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
