"""What `repair` learns: the rows dealt into two parts, candidates, and which to certify."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.special import ndtri

from equipoise.audits._common import finite
from equipoise.audits.compare import EVERY_ROW
from equipoise.cells import Cells, gather
from equipoise.cells.gather import overall_mean, reference_cells
from equipoise.cells.groups import Collection, form_groups
from equipoise.cells.query import (
    cluster_codes,
    column_of,
    counted_value,
    metric_columns,
    numbers,
    value_of,
)
from equipoise.cells.rows import MAX_ROWS, RowTable, content_order, pull_table
from equipoise.claims import Claim, Metric, Ratio, gap
from equipoise.claims.claim import Complement, Constant, Reference
from equipoise.claims.formula import parse
from equipoise.claims.groups import Condition, Intersections, Ordered
from equipoise.errors import ClaimError, OptionError, TrailError
from equipoise.findings.repair import GroupThreshold, How, Rule
from equipoise.findings.words import Ends, Side
from equipoise.methods.numerics import AnyArray, BoolArray, FloatArray, IntArray
from equipoise.methods.repair import (
    Potential,
    aligned,
    by_threshold,
    cheapest,
    few_knots,
    isotonic_knots,
    straight_knots,
    threshold_grid,
    worst_overrun,
)
from equipoise.trail import Trail
from equipoise.trail.engine import engine_errors, fetch, from_columns, objects
from equipoise.trail.trail import Roles as ColumnRoles
from equipoise.trail.trail import make_trail

#: Knots of the recalibrations that are tried beside the isotonic one.
KNOTS = (3, 5, 10)
#: A rule says yes, and no, to at least this share of as many as so far.
LEAST = 0.25
#: Rates at which thresholds by group are aligned.
RATES = 25


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked, checked."""

    claim: Claim
    loss: Metric
    how: How
    tolerance: float
    side: Side
    allowed: Ends
    level: float
    learn: float
    candidates: int
    tries: int


# --- The rows, here, and dealt into two parts ---

_NEW = ("repaired", "no", "yes", "before")


@dataclass(frozen=True, slots=True)
class RepairTable:
    """The columns that matter, one value per row, in an order that their values alone decide."""

    columns: dict[str, AnyArray]
    roles: ColumnRoles
    positive: Mapping[str, object]
    attributes: tuple[str, ...]
    source: str
    names: dict[str, str]
    """What the columns are called that are made here: repaired, no, yes, before."""
    knows: BoolArray
    """Which rows have a score."""

    def __len__(self) -> int:
        return len(self.knows)

    @property
    def scored(self) -> int:
        """Rows with a score, those that stand for several counted as often."""
        if self.roles.count is None:
            return int(self.knows.sum())
        return int(np.nansum(numbers(self.columns[self.roles.count])[self.knows]))

    @property
    def score(self) -> FloatArray:
        """The score of every row, NaN where it is missing."""
        return numbers(self.columns[self.roles.column("score")])

    @classmethod
    def of(cls, trail: Trail, claim: Claim, loss: Metric) -> "RepairTable":
        """Fetch what the claim, the loss and the roles read."""
        wanted = _needed(trail, claim, loss)
        with engine_errors(trail.source):
            said = {name: trail.key(name) for name in wanted}
            if trail.roles.prediction is not None:
                said["__now"] = trail.indicator("prediction")
            frame = trail.frame.select(**said).head(MAX_ROWS + 1)
        table = fetch(frame, trail.source)
        if len(next(iter(table.values()))) > MAX_ROWS:
            raise TrailError(f"repair needs single rows, and there are more than {MAX_ROWS:,}.")
        table = {name: _plain(column) for name, column in table.items()}
        names: dict[str, str] = {}
        for name in _NEW:
            called = name
            while called in trail.schema:
                called += "_"
            names[name] = called
        # content_order leaves out a column called count, and equal rows may have other counts
        order = content_order({f"column {i}": x for i, x in enumerate(table.values())})
        table = {name: column[order] for name, column in table.items()}
        if "__now" in table:
            table[names["before"]] = numbers(table.pop("__now"))
        score = numbers(table[trail.roles.column("score")])
        if np.isinf(score).any():
            raise TrailError(
                f"The score {trail.roles.score!r} holds infinite numbers, between which no "
                "threshold lies. Replace them."
            )
        positive = {k: v for k, v in trail.positive.items() if k != "prediction"}
        attributes = tuple(name for name in trail.attributes if name in table)
        here = np.isfinite(score)
        return cls(table, trail.roles, positive, attributes, trail.source, names, here)

    def dealt(self, share: float, rng: np.random.Generator) -> "tuple[RepairTable, RepairTable]":
        """Two parts: units are dealt at random, and a cluster stays whole."""
        count, cluster = self.roles.count, self.roles.cluster
        if cluster is not None:
            codes = cluster_codes(self.columns[cluster])
            units = int(codes.max(initial=-1)) + 1
            first = _drawn(units, share, rng, "clusters")
            # rows without a cluster are left out by certify, which counts them
            mine = np.where(codes >= 0, first[np.maximum(codes, 0)], False)
            return self.part(mine), self.part(~mine)
        if count is None:
            mine = _drawn(len(self), share, rng, "rows")
            return self.part(mine), self.part(~mine)
        copies = np.nan_to_num(numbers(self.columns[count])).astype(np.int64)
        if (copies < 0).any() or copies.sum() < 4:
            raise TrailError("repair needs a count of at least 0 in every row, and several rows.")
        number = min(max(round(share * int(copies.sum())), 1), int(copies.sum()) - 1)
        taken = rng.multivariate_hypergeometric(copies, number)
        return self._counted(taken), self._counted(copies - taken)

    def _counted(self, copies: IntArray) -> "RepairTable":
        made = dict(self.columns) | {str(self.roles.count): copies}
        return dataclasses.replace(self, columns=made).part(copies > 0)

    def part(self, rows: BoolArray) -> "RepairTable":
        """Some of the rows."""
        kept = {name: column[rows] for name, column in self.columns.items()}
        return dataclasses.replace(self, columns=kept, knows=self.knows[rows])

    def beside(self, others: "RepairTable") -> "RepairTable":
        """The same, and rows of another part that have their groups but no decision.

        So all groups of the table are formed, and those without a row here are told.
        """
        blank = np.full(len(others), np.nan)
        made = {
            name: np.concatenate([column, others.columns.get(name, blank)])
            for name, column in self.columns.items()
        }
        knows = np.concatenate([self.knows, np.zeros(len(others), dtype=bool)])
        return dataclasses.replace(self, columns=made, knows=knows)

    def with_column(self, name: str, values: AnyArray) -> "RepairTable":
        """The same with one more column, by the name that is kept for it."""
        return dataclasses.replace(self, columns={**self.columns, self.names[name]: values})

    def with_rule(self, rule: Rule) -> "RepairTable":
        """The same with what a rule makes of the scores; nothing where there is none."""
        return self.with_column("repaired", self.said(rule))

    def said(self, rule: Rule) -> FloatArray:
        """What a rule makes of every score, NaN where there is none."""
        groups = None
        if rule.how == "by_group":
            groups = {a: self.columns[a][self.knows].tolist() for a in rule.attributes}
        said = np.full(len(self), np.nan)
        said[self.knows] = rule.apply(self.score[self.knows], groups)
        return said

    def trail(self, how: How, column: str = "repaired") -> Trail:
        """A trail in which a column, made here or not, is the prediction, or the score."""
        return self.trails(how, column)[0]

    def trails(self, how: How, *columns: str) -> list[Trail]:
        """A trail for each of several columns, all of them on one table."""
        role = "score" if how == "recalibration" else "prediction"
        named = [self.names.get(column, column) for column in columns]
        # the decisions so far are not among the columns, but for what they mean
        roles = dataclasses.replace(self.roles, **{"prediction": None, role: named[0]})
        first = make_trail(
            from_columns(self.columns, self.source),
            roles=roles,
            attributes=self.attributes,
            positive=self.positive or None,
            source=self.source,
        )
        return [
            dataclasses.replace(first, roles=dataclasses.replace(roles, **{role: one}))
            for one in named
        ]


def _drawn(units: int, share: float, rng: np.random.Generator, what: str) -> BoolArray:
    if units < 4:
        raise TrailError(
            f"repair learns on some {what} and certifies on others, and there are only {units}."
        )
    number = min(max(round(share * units), 1), units - 1)
    first = np.zeros(units, dtype=bool)
    first[rng.permutation(units)[:number]] = True
    return first


def _needed(trail: Trail, claim: Claim, loss: Metric) -> list[str]:
    """The columns that are read by anything that is asked."""
    metrics = [claim.metric] + ([loss] if priced(trail.roles, loss) else [])
    wanted = [column for role, column in trail.roles if role != "prediction"]
    for metric in metrics:
        if not isinstance(metric.where, str | None):
            raise ClaimError("repair needs metrics whose rows are written as formulas.")
        with_prediction = trail
        if trail.roles.prediction is None:
            # whatever stands for it, only the names of the others are looked up
            roles = dataclasses.replace(trail.roles, prediction=trail.roles.score)
            with_prediction = dataclasses.replace(trail, roles=roles)
        found = metric_columns(with_prediction, metric)
        wanted += [c for c in found if c != with_prediction.roles.prediction]
    for dimension in claim.dimensions():
        if isinstance(dimension, Condition):
            wanted += [column_of(trail, r) for r in parse(dimension.formula).references]
        elif isinstance(dimension, Ordered) and dimension.role:
            wanted.append(trail.roles.column(dimension.column))
        else:
            wanted.append(trail.attribute(dimension.name))
    if trail.roles.prediction in wanted:
        raise OptionError(
            "Groups that depend on the prediction would be others under another rule; form them "
            "without it."
        )
    return list(dict.fromkeys(wanted))


def priced(roles: ColumnRoles, loss: Metric) -> bool:
    """Whether the loss can be told: all but the decision is known."""
    return "label" not in loss.names() or "label" in roles


def _plain(column: AnyArray) -> AnyArray:
    """A fetched column as an engine takes it: numbers with NaN, or plain objects."""
    if column.dtype != object:
        return column
    values = column.tolist()
    held = [v for v in values if v is not None]
    if held and all(isinstance(v, int | float) and not isinstance(v, bool) for v in held):
        return numbers(column)
    return objects([None if v is None else v for v in values])


# --- Candidates, and what the first part says of them ---


@dataclass(frozen=True, slots=True)
class LearntRule:
    """The rules to certify, in order, and what was seen of them on the first part."""

    rules: tuple[Rule, ...]
    losses: tuple[float | None, ...]
    overruns: tuple[float, ...]
    """By how much bounds would have gone beyond the tolerance; below zero if they would not."""
    candidates: int
    usual: Rule | None = None
    """The most accurate threshold, where nothing says how decisions are made so far."""


def thresholds_on(part: RepairTable, ask: Ask) -> LearntRule:
    """Thresholds on the score: one for all, or one for each group."""
    rows, cells = _told_both_ways(part, ask)
    return chosen_thresholds(
        rows, cells, ask, str(part.roles.score), clustered=part.roles.cluster is not None
    )


def chosen_thresholds(
    rows: RowTable, cells: Cells, ask: Ask, score: str, *, clustered: bool
) -> LearntRule:
    """The thresholds to certify, from rows with what they add if told no and if told yes."""
    sums, grid = _threshold_sums(rows, cells, ask)
    reach = _reaches(ask, len(sums.collection), clustered=clustered)
    ratio = math.sqrt(ask.learn / (1 - ask.learn))
    plain = np.tile(np.arange(len(grid))[:, None], (1, sums.cells))
    choices = plain if ask.how == "threshold" else np.concatenate([plain, sums.by_group(ask)])
    choices, best = _useful(choices, sums, rows, len(grid))
    if not len(choices):
        raise TrailError(
            f"No threshold on the score {score!r} decides anything: each of {len(grid)} tells "
            "nearly everybody the same, which makes all groups alike and is no repair. The score "
            "needs values on both sides of a threshold that says yes, and no, to at least "
            "a quarter as many as so far."
        )
    disparity, error, losses = sums.judged(choices, ask.claim)
    picked = cheapest(
        losses,
        lambda far: worst_overrun(disparity, error * ratio, far, ask.allowed),
        np.array(reach),
    )
    over = worst_overrun(disparity, error * ratio, reach[len(reach) // 2], ask.allowed)
    usual = None
    if "now" not in rows.columns:
        usual = Rule(how="threshold", score=score, threshold=float(grid[best]))
    return LearntRule(
        rules=tuple(sums.rule(choices[place], grid, score, ask) for place in picked),
        losses=tuple(finite(losses[place]) for place in picked),
        overruns=tuple(float(over[place]) for place in picked),
        candidates=len(choices),
        usual=usual,
    )


def _useful(choices: IntArray, sums: "_Sums", rows: RowTable, plain: int) -> tuple[IntArray, int]:
    """Choices that still decide something, and the most accurate of those that are for everyone.

    To tell nearly everybody the same makes all groups alike, and is no repair: a rule says yes, and
    no, to at least a quarter as many as so far (or as the most accurate threshold does).
    """
    share, losses = sums.told_yes(choices), sums.losses(choices)
    best = int(np.argmin(losses[:plain]))
    usual = float(share[best])
    if "now" in rows.columns:
        now, heavy = numbers(rows.columns["now"]), rows.weights * rows.counts
        known = ~np.isnan(now)
        usual = float(np.average(now[known], weights=heavy[known])) if known.any() else usual
    useful = (share >= usual * LEAST) & (1 - share >= (1 - usual) * LEAST)
    return choices[useful], best


def _reaches(ask: Ask, groups: int, *, clustered: bool) -> list[float]:
    """How many errors of room a candidate should have: more where several may be tried."""
    each = (1 - ask.level) / ask.tries / max(groups, 1) / 2
    # one error more, since the second part will not say quite what the first one did
    wide = (-float(ndtri(each)) + 1.0) * (1.25 if clustered else 1.0)
    return [wide] if ask.tries == 1 else np.linspace(wide - 2.0, wide + 1.0, ask.tries).tolist()


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums by threshold and cell: everything that a choice of thresholds adds up from."""

    collection: Collection
    cells: int
    total: FloatArray
    weight: FloatArray
    rows: FloatArray
    square2: FloatArray
    total2: FloatArray
    weight2: FloatArray
    lost: FloatArray
    known: FloatArray
    """Weight of rows whose loss is known."""
    yes: FloatArray
    """Weight of rows that are told yes."""
    heavy: float
    """Weight of all rows."""
    reference: BoolArray | None
    leaf: IntArray
    """The finest group of each cell."""
    leaves: tuple[dict[str, object], ...]

    def judged(self, choices: IntArray, claim: Claim) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Disparity and its error by choice and group, and the loss of each choice."""
        at = (choices, np.arange(self.cells)[None, :])
        sums = _Mean(*(getattr(self, f.name)[at] for f in dataclasses.fields(_Mean)))
        gaps, wide = _disparities(sums, claim, self.collection, self.reference)
        return gaps, wide, self.losses(choices)

    def losses(self, choices: IntArray) -> FloatArray:
        """The loss of each choice."""
        at = (choices, np.arange(self.cells)[None, :])
        with np.errstate(divide="ignore", invalid="ignore"):
            lost = self.lost[at].sum(axis=1) / self.known[at].sum(axis=1)
        return np.asarray(np.nan_to_num(lost, nan=np.inf))

    def told_yes(self, choices: IntArray) -> FloatArray:
        """The share of rows that each choice tells yes."""
        at = (choices, np.arange(self.cells)[None, :])
        return np.asarray(self.yes[at].sum(axis=1) / max(self.heavy, 1e-300))

    def by_group(self, ask: Ask) -> IntArray:
        """Choices that bring the rates of all groups to the same level, for several levels."""
        leaves = len(self.leaves)

        def summed(x: FloatArray) -> FloatArray:
            made = np.zeros((len(x), leaves))
            np.add.at(made.T, self.leaf, x.T)
            return made

        total, weight, rows, lost = map(summed, (self.total, self.weight, self.rows, self.lost))
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = total / weight
            every = total.sum(axis=1) / weight.sum(axis=1)
        reached = every[np.isfinite(every)]
        found = []
        for wanted in np.unique(np.quantile(reached, np.linspace(0.02, 0.98, RATES))):
            chosen = aligned(rate, rows, lost, float(wanted))
            common = int(np.nanargmin(np.abs(every - wanted)))
            found.append(np.where(chosen < 0, common, chosen)[self.leaf])
        return np.array(found, dtype=np.int64)

    def rule(self, choice: IntArray, grid: FloatArray, score: str, ask: Ask) -> Rule:
        """A choice of thresholds as a rule."""
        if ask.how == "threshold" or (choice == choice[0]).all():
            return Rule(how="threshold", score=score, threshold=float(grid[choice[0]]))
        by_leaf = {int(leaf): int(place) for leaf, place in zip(self.leaf, choice, strict=True)}
        # the commonest one stands for whoever is not listed
        places, often = np.unique(choice, return_counts=True)
        return Rule(
            how="by_group",
            score=score,
            threshold=float(grid[places[np.argmax(often)]]),
            attributes=tuple(self.leaves[0]),
            thresholds=tuple(
                GroupThreshold(where=where, threshold=float(grid[by_leaf[leaf]]))
                for leaf, where in enumerate(self.leaves)
            ),
        )


@dataclass(frozen=True, slots=True)
class _Mean:
    """Weighted means from sums."""

    total: FloatArray
    weight: FloatArray
    rows: FloatArray
    total2: FloatArray
    weight2: FloatArray
    square2: FloatArray

    @property
    def mean(self) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.rows > 0, self.total / self.weight, np.nan)

    @property
    def error(self) -> FloatArray:
        """Standard error; never nothing, since few rows may well be all alike."""
        mean = self.mean
        with np.errstate(divide="ignore", invalid="ignore"):
            seen = self.square2 - 2 * mean * self.total2 + mean**2 * self.weight2
            unseen = self.weight2 / np.maximum(self.rows, 1.0)
            return np.sqrt(np.maximum(seen, 0.0) + unseen) / self.weight

    def over(self, summed: Callable[[FloatArray], FloatArray]) -> "_Mean":
        """The same sums over sets of cells."""
        return _Mean(*(summed(getattr(self, f.name)) for f in dataclasses.fields(self)))

    def without(self, own: "_Mean") -> "_Mean":
        """The mean of everyone else."""
        pairs = ((getattr(self, f.name), getattr(own, f.name)) for f in dataclasses.fields(self))
        return _Mean(*(mine - theirs for mine, theirs in pairs))


def _disparities(
    cells: _Mean, claim: Claim, collection: Collection, reference: BoolArray | None
) -> tuple[FloatArray, FloatArray]:
    """Disparities and their errors, of shape (candidates, groups), from sums over cells."""
    own, target = cells.over(collection.sums), claim.target
    everyone = cells.over(lambda x: x.sum(axis=1, keepdims=True))
    if isinstance(target, Constant):
        centre, spread = np.full((1, 1), target.value), np.zeros((1, 1))
        same = np.zeros((1, 1), dtype=bool)
    else:
        other = everyone
        if isinstance(target, Complement):
            other = everyone.without(own)
        elif reference is not None:
            other = cells.over(lambda x: x[:, reference].sum(axis=1, keepdims=True))
        centre, spread = other.mean, other.error**2
        same = (other.rows == own.rows) & np.isclose(other.weight, own.weight)
    centre, spread = centre * target.scale, spread * target.scale**2
    value, error = own.mean, own.error
    with np.errstate(divide="ignore", invalid="ignore"):
        if isinstance(claim, Ratio):
            gaps = value / centre
            wide = np.sqrt(error**2 + gaps**2 * spread) / np.abs(centre)
        else:
            gaps, wide = value - centre, np.sqrt(error**2 + spread)
    # a group that is its own target differs from it by nothing
    return gaps, np.broadcast_to(np.where(same, 0.0, wide), gaps.shape)


def _reference(claim: Claim, cells: Cells) -> BoolArray | None:
    """The cells of the reference group, however many of their rows count."""
    if not isinstance(claim.target, Reference):
        return None
    return reference_cells(claim.target.where, dataclasses.replace(cells, rows=cells.present))


def _told_both_ways(part: RepairTable, ask: Ask) -> tuple[RowTable, Cells]:
    """The rows with what each adds to the metric and the loss if it is told no, and if yes."""
    known = part.part(part.knows)
    if not len(known):
        raise TrailError("No row of the first part has a score; nothing can be learnt.")
    score = str(part.roles.score)
    # a name of its own: formulas may read the score as well
    known = known.with_column("no", np.zeros(len(known))).with_column("yes", np.ones(len(known)))
    trails = dict(zip(("no", "yes"), known.trails(ask.how, "no", "yes"), strict=True))
    # all rows count here: a metric may have none under a rule that tells everybody no
    cells = gather(trails["no"], [dataclasses.replace(ask.claim, metric=EVERY_ROW)])[0]
    further = {name: counted_value(one, ask.claim.metric) for name, one in trails.items()}
    trail = trails["no"]
    labelled = priced(trail.roles, ask.loss)
    if labelled:
        further |= {f"{name}_lost": counted_value(t, ask.loss) for name, t in trails.items()}
    further["given"] = trail.number(score)
    before = known.names["before"]
    if before in known.columns:
        further["now"] = trail.number(before)
    elif not labelled:
        raise TrailError(
            "repair needs a label or a prediction besides the score: without either there is "
            "nothing that a rule should keep close to. Pass label=… or prediction=… to "
            "equipoise.read."
        )
    rows = pull_table(trail, EVERY_ROW, further, cells=cells)
    _check_direction(rows, numbers(rows.columns["given"]), score)
    return rows, cells


def _threshold_sums(rows: RowTable, cells: Cells, ask: Ask) -> tuple[_Sums, FloatArray]:
    """Everything about every threshold, from one look at the first part."""
    given, labelled = numbers(rows.columns["given"]), "no_lost" in rows.columns
    grid = threshold_grid(given, ask.candidates)
    reached = np.searchsorted(grid, given, side="right").astype(np.int64)
    weight, copies = rows.weights, rows.counts.astype(np.float64)

    def added(name: str, power: int, heavy: FloatArray) -> FloatArray:
        told = {side: numbers(rows.columns[side + name]) for side in ("no", "yes")}
        both = {
            s: np.where(np.isnan(v), 0.0, heavy * np.nan_to_num(v) ** power)
            for s, v in told.items()
        }
        return by_threshold(
            Potential(both["no"], both["yes"]), reached, rows.cell, len(grid), len(cells)
        )

    if labelled:
        lost, counted = added("_lost", 1, weight * copies), added("_lost", 0, weight * copies)
    else:
        # without labels a rule should change as few decisions as it can
        now = numbers(rows.columns["now"])
        told = np.where(np.isnan(now), 0.0, weight * copies)
        moved = Potential(told * (now == 1), told * (now == 0))
        lost = by_threshold(moved, reached, rows.cell, len(grid), len(cells))
        counted = by_threshold(Potential(told, told), reached, rows.cell, len(grid), len(cells))
    leaf, leaves = _leaves(ask.claim, cells) if ask.how == "by_group" else (np.zeros(0, int), ())
    sums = _Sums(
        collection=form_groups(ask.claim.across, cells),
        cells=len(cells),
        total=added("", 1, weight * copies),
        weight=added("", 0, weight * copies),
        rows=added("", 0, copies),
        square2=added("", 2, weight**2 * copies),
        total2=added("", 1, weight**2 * copies),
        weight2=added("", 0, weight**2 * copies),
        lost=lost,
        known=counted,
        yes=by_threshold(
            Potential(np.zeros_like(weight), weight * copies),
            reached,
            rows.cell,
            len(grid),
            len(cells),
        ),
        heavy=float((weight * copies).sum()),
        reference=_reference(ask.claim, cells),
        leaf=leaf,
        leaves=leaves,
    )
    return sums, grid


def _check_direction(rows: RowTable, score: FloatArray, called: str) -> None:
    """Refuse scores that fall where the decisions so far are yes."""
    if "now" not in rows.columns or not (rows.counts * rows.weights).sum() > 0:
        return
    now, heavy = numbers(rows.columns["now"]), rows.counts * rows.weights
    means = [
        float(np.average(score[now == side], weights=heavy[now == side]))
        if heavy[now == side].sum() > 0
        else math.nan
        for side in (0, 1)
    ]
    middle = float(np.average(score, weights=heavy))
    spread = math.sqrt(float(np.average((score - middle) ** 2, weights=heavy)))
    # decisions that have little to do with the score may well be repaired by it
    if means[1] < means[0] - spread / 2:
        raise TrailError(
            f"Rows that are told yes have lower scores than the others ({called!r}: {means[1]:.3g} "
            f"against {means[0]:.3g} on average), and thresholds say yes from a score on. Turn the "
            "score round, or name the other value with positive=…."
        )


def _leaves(claim: Claim, cells: Cells) -> tuple[IntArray, tuple[dict[str, object], ...]]:
    """The finest groups that attributes form: each cell's place among them, and their values."""
    attributes = cast(Intersections, claim.across).attributes
    at = [cells.cut_by(dimension) for dimension in attributes]
    found, leaf = np.unique(cells.index[:, at], axis=0, return_inverse=True)
    leaves = tuple(
        {cells.axes[i].name: cells.axes[i].levels[int(j)] for i, j in zip(at, row, strict=True)}
        for row in found
    )
    return leaf.reshape(-1).astype(np.int64), leaves


def recalibrations(part: RepairTable, ask: Ask) -> LearntRule:
    """Rising lines from score to label, each judged by its bounds on the first part."""
    known = part.part(part.knows)
    if "label" not in part.roles:
        raise TrailError(
            "A recalibration is learnt from labels; this trail has none. Pass label=… to "
            "equipoise.read."
        )
    if not len(known):
        raise TrailError("No row of the first part has a score; nothing can be learnt.")
    score = str(part.roles.score)
    trail = known.trail("recalibration", score)
    label = value_of(trail, Metric(name="label", value="label", by_role=True))
    rows = pull_table(trail, EVERY_ROW, {"label": label, "given": trail.number(score)})
    order = np.lexsort((numbers(rows.columns["label"]), numbers(rows.columns["given"])))
    rows = rows.part(order)
    x, y = numbers(rows.columns["given"]), numbers(rows.columns["label"])
    # what weighs nothing tells nothing
    told = np.isfinite(x) & np.isfinite(y) & (rows.weights * rows.counts > 0)
    x, y, w = x[told], y[told], (rows.weights * rows.counts)[told]
    if not len(x) or not w.sum() > 0:
        raise TrailError("No row of the first part has a score and a label.")
    rules = [_line(score, knots) for knots in rising_lines(x, y, w)]
    # a line that gives everybody the same score makes all groups alike, and is no repair
    rules = [rule for rule in dict.fromkeys(rules) if rule.knots[-1][1] > rule.knots[0][1]]
    if not rules:
        raise TrailError(
            f"The score {score!r} is the same for everybody in the first part; there is nothing "
            "to recalibrate."
        )
    losses, overruns = [], []
    lines_of = {f"{known.names['repaired']}{i}": known.said(rule) for i, rule in enumerate(rules)}
    every = dataclasses.replace(known, columns={**known.columns, **lines_of})
    for made in every.trails("recalibration", *lines_of):
        cells, lost = gather(made, [ask.claim, gap(ask.loss)])
        losses.append(overall_mean(lost))
        overruns.append(overrun_of(cells, ask, clustered=part.roles.cluster is not None))
    place = first_tried(losses, overruns)[: ask.tries]
    return LearntRule(
        rules=tuple(rules[i] for i in place),
        losses=tuple(finite(losses[i]) for i in place),
        overruns=tuple(overruns[i] for i in place),
        candidates=len(rules),
    )


def rising_lines(x: FloatArray, y: FloatArray, w: FloatArray) -> list[FloatArray]:
    """Knots of the lines that are looked at: scores as they are, then lines towards the labels."""
    ends = np.unique([x.min(), x.max()])
    lines = [straight_knots(x, y, w), isotonic_knots(x, y, w)]
    lines += [few_knots(x, y, w, number) for number in KNOTS]
    # a metric may take chances only, and no outcome is certain
    low, high = float(y.min()), float(y.max())
    room = (high - low) / 2 / (len(y) + 1)
    for knots in lines:
        knots[:, 1] = np.clip(knots[:, 1], low + room, high - room)
    return [np.stack([ends, ends], axis=1), *lines]


def overrun_of(cells: Cells, ask: Ask, *, clustered: bool) -> float:
    """By how much bounds on as many rows would most likely go beyond the tolerance."""
    collection = form_groups(ask.claim.across, cells)
    sums = _Mean(*(getattr(cells, f.name)[None, :] for f in dataclasses.fields(_Mean)))
    gaps, wide = _disparities(sums, ask.claim, collection, _reference(ask.claim, cells))
    (reach, *_) = _reaches(ask, len(collection), clustered=clustered)
    ratio = math.sqrt(ask.learn / (1 - ask.learn))
    return float(worst_overrun(gaps, wide * ratio, reach, ask.allowed)[0])


def first_tried(losses: Sequence[float], overruns: Sequence[float]) -> list[int]:
    """Candidates in the order in which they are certified: cheap ones with room come first."""
    return sorted(
        range(len(losses)),
        key=lambda i: (overruns[i] >= 0, losses[i] if overruns[i] < 0 else overruns[i], i),
    )


def _line(score: str, knots: FloatArray) -> Rule:
    rising = np.maximum.accumulate(knots[:, 1])
    pairs = zip(knots[:, 0].tolist(), rising.tolist(), strict=True)
    return Rule(how="recalibration", score=score, knots=tuple(pairs))
