"""`repair`: a rule learnt on one part of the rows, and certified on the other."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Unpack, cast

import numpy as np
from scipy.special import ndtri

from equipoise._validate import Rng, Seed, fraction, known_keywords, known_name, seed_of, whole
from equipoise.audits._common import (
    Progress,
    Roles,
    TrailLike,
    as_trail,
    finite,
    plain_claim,
    progress_bar,
)
from equipoise.audits._groups.problem import CertifyOptions
from equipoise.audits.certify import certify
from equipoise.audits.compare import EVERY_ROW
from equipoise.audits.describe import describe
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
from equipoise.cells.tally import Tallied
from equipoise.claims import Claim, Metric, Ratio, as_claim, change, gap
from equipoise.claims.formula import parse
from equipoise.claims.groups import Condition, Intersections, Levels, Ordered
from equipoise.claims.metric import MetricLike, as_metric, error_rate, squared_error
from equipoise.claims.target import Complement, Constant, Overall, Reference
from equipoise.errors import ClaimError, OptionError, TrailError
from equipoise.findings.bounds import Bounds
from equipoise.findings.repair import (
    GroupThreshold,
    How,
    Price,
    Repair,
    RepairedGroup,
    Rule,
    TriedRule,
)
from equipoise.findings.words import Ends, Side, Verdict, level_text, tolerated
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
from equipoise.trail.engine import engine_errors, fetch, objects
from equipoise.trail.trail import Roles as ColumnRoles
from equipoise.trail.trail import from_columns, make_trail

Asked = Literal["threshold", "by_group", "recalibration"]
#: Knots of the recalibrations that are tried beside the isotonic one.
KNOTS = (3, 5, 10)
#: Rates at which thresholds by group are aligned.
RATES = 25


@known_keywords
def repair(
    trail: TrailLike | Tallied,
    claim: Claim,
    *,
    tolerance: float,
    rule: Asked | None = None,
    side: Side = "both",
    level: float = 0.95,
    learn: float = 0.5,
    candidates: int = 100,
    tries: int = 1,
    loss: MetricLike | None = None,
    rng: Rng = None,
    progress: Progress = None,
    **roles: Unpack[Roles],
) -> Repair:
    """Learn another rule on one part of the rows, and certify its decisions on the other.

    The certificate is that of `certify`, on rows that had no part in learning or choosing the rule,
    and so holds however many candidates were looked at.

    Parameters
    ----------
    trail, claim, tolerance, side, level
        As in `certify`. The trail needs a score; with a label or a prediction the price of the rule
        can be told.
    rule
        ``"threshold"``: one threshold on the score for everyone, the default where the metric reads
        the prediction. ``"by_group"``: one for each group, only if asked for, since in some places
        that is unlawful. ``"recalibration"``: new scores along a line that never falls and is the
        same for everyone, where the metric reads the score.
    learn
        The share of the rows (or clusters, where the trail names them) to learn from.
    candidates
        The most thresholds that are looked at.
    tries
        How many candidates the second part may choose among. Each is certified at a level that
        pays for the choice.
    loss
        What a rule should lose little of: the error rate, or the squared error of a score, if not
        given.
    rng, progress
        As in `certify`. The same seed deals the same rows, in whatever order they come.

    Examples
    --------
    >>> import numpy as np, polars as pl
    >>> import equipoise as eq
    >>> draw = np.random.default_rng(1)
    >>> score = draw.random(4000)
    >>> table = pl.DataFrame({
    ...     "sex": draw.choice(["f", "m"], 4000),
    ...     "score": score,
    ...     "paid": (draw.random(4000) < score).astype(int),
    ... })
    >>> trail = eq.read(table, label="paid", score="score")
    >>> found = eq.repair(trail, eq.gap("selection_rate", across="sex"), tolerance=0.1, rng=7)
    >>> str(found.verdict), found.rule.how
    ('kept', 'threshold')
    """
    asked = plain_claim(as_claim(claim), "repair")
    options = CertifyOptions(level=level, side=side, tolerance=tolerance, method=None)
    options.check_claim(asked)
    how = _how(asked, rule)
    fraction("learn", learn)
    whole("candidates", candidates, least=2, most=10_000)
    whole("tries", tries, least=1, most=100)
    lost = _loss(loss, how)
    seed, source = seed_of(rng), as_trail(trail, roles)
    _check_trail(source, asked)
    allowed = tolerated(tolerance, side, isinstance(asked, Ratio))
    ask = _Ask(asked, lost, how, allowed, level, learn, candidates, tries)
    with progress_bar(progress, tries + 2, "repair") as tell:
        table = _Table.of(source, asked, lost)
        first, second = table.dealt(learn, np.random.default_rng(seed.sequence))
        learnt = _recalibrations(first, ask) if how == "recalibration" else _thresholds(first, ask)
        tell(1)
        judged = []
        for place, one in enumerate(learnt.rules):
            applied = second.with_rule(one)
            judged.append(
                certify(
                    applied.trail(how),
                    asked,
                    tolerance=tolerance,
                    side=side,
                    level=1 - (1 - level) / len(learnt.rules),
                    rng=_own(seed, place),
                )
            )
            tell(2 + place)
    best = _best(learnt, judged)
    return _finding(source, ask, side, tolerance, seed, (first, second), learnt, judged, best)


@dataclass(frozen=True, slots=True)
class _Ask:
    """What is asked, checked."""

    claim: Claim
    loss: Metric
    how: How
    allowed: Ends
    level: float
    learn: float
    candidates: int
    tries: int


def _how(claim: Claim, rule: str | None) -> How:
    if claim.across.weighs:
        raise OptionError("repair takes groups; for tilts there are certify and flag.")
    if not isinstance(claim.target, Overall | Complement | Reference | Constant):
        raise OptionError(
            "repair compares with a number, everyone, complement() or reference(…); got "
            f"{claim.target.words}."
        )
    if claim.metric.change is not None:
        raise ClaimError("repair makes new decisions; ask about the metric itself, no change.")
    read = [name for name in ("prediction", "score") if name in claim.metric.names()]
    if not isinstance(claim.metric.value, str):
        raise ClaimError("repair needs a metric whose value is written as a formula.")
    if not read:
        raise ClaimError(
            f"No rule can repair {claim.metric.name!r}: it reads neither prediction nor score."
        )
    usual: How = "threshold" if "prediction" in read else "recalibration"
    if rule is None:
        return usual
    chosen = cast(How, known_name("rule", rule, ("threshold", "by_group", "recalibration")))
    if (chosen == "recalibration") != (usual == "recalibration"):
        raise OptionError(
            f"{claim.metric.name!r} reads the {read[0]}, which rule={chosen!r} does not change; "
            f"use rule={usual!r}. (For decisions a recalibration is one more threshold.)"
        )
    if chosen == "by_group":
        across = claim.across
        plain = isinstance(across, Intersections)
        if not plain or not all(isinstance(a, Levels) for a in cast(Intersections, across).attributes):
            raise OptionError(
                "Thresholds by group need groups formed by values of attributes: across='race', or "
                "intersections(…)."
            )
    return chosen


def _loss(loss: MetricLike | None, how: How) -> Metric:
    usual, role = (squared_error, "score") if how == "recalibration" else (error_rate, "prediction")
    found = usual if loss is None else as_metric(loss)
    if role not in found.names() or found.change is not None or not isinstance(found.value, str):
        raise OptionError(f"loss= must be a metric that reads the {role}; got {found.name!r}.")
    if found.harm == "low":
        raise OptionError(f"loss= must be a loss, and more {found.words} is better.")
    return found


def _check_trail(trail: Trail, claim: Claim) -> None:
    trail.roles.column("score")
    for role in ("pair", "proxy_label", "observed"):
        if role in trail.roles:
            raise OptionError(f"repair knows no {role}=; read the trail without it.")
    named = [d.name for d in claim.dimensions() if d.name in trail.proxies]
    if named:
        raise OptionError(f"repair needs known groups; only probabilities of {named[0]!r} are.")


def _own(seed: Seed, place: int) -> int:
    """A seed for each certificate, so that none depends on how many there are."""
    return int(np.random.SeedSequence([*_words(seed), place]).generate_state(1)[0])


def _words(seed: Seed) -> list[int]:
    return [int(word) for word in seed.sequence.generate_state(4)]


# --- The rows, here, and dealt into two parts ---

_NEW = ("repaired", "no", "yes", "before")


@dataclass(frozen=True, slots=True)
class _Table:
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
    def rows(self) -> int:
        """Rows, those that stand for several counted as often."""
        if self.roles.count is None:
            return len(self)
        return int(np.nansum(numbers(self.columns[self.roles.count])))

    @property
    def score(self) -> FloatArray:
        """The score of every row, NaN where it is missing."""
        return numbers(self.columns[self.roles.column("score")])

    @classmethod
    def of(cls, trail: Trail, claim: Claim, loss: Metric) -> "_Table":
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

    def dealt(self, share: float, rng: np.random.Generator) -> "tuple[_Table, _Table]":
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

    def _counted(self, copies: IntArray) -> "_Table":
        made = dict(self.columns) | {str(self.roles.count): copies}
        return dataclasses.replace(self, columns=made).part(copies > 0)

    def part(self, rows: BoolArray) -> "_Table":
        """Some of the rows."""
        kept = {name: column[rows] for name, column in self.columns.items()}
        return dataclasses.replace(self, columns=kept, knows=self.knows[rows])

    def with_column(self, name: str, values: AnyArray) -> "_Table":
        """The same with one more column, by the name that is kept for it."""
        return dataclasses.replace(self, columns={**self.columns, self.names[name]: values})

    def with_rule(self, rule: Rule) -> "_Table":
        """The same with what a rule makes of the scores; nothing where there is none."""
        groups = None
        if rule.how == "by_group":
            groups = {a: self.columns[a][self.knows].tolist() for a in rule.attributes}
        said = np.full(len(self), np.nan)
        said[self.knows] = rule.apply(self.score[self.knows], groups)
        return self.with_column("repaired", said)

    def trail(self, how: How, column: str = "repaired") -> Trail:
        """A trail in which a column made here is the prediction, or the score."""
        named = self.names.get(column, column)
        role = "score" if how == "recalibration" else "prediction"
        roles = dataclasses.replace(self.roles, **{role: named})
        if roles.prediction is not None and roles.prediction not in self.columns:
            roles = dataclasses.replace(roles, prediction=None)
        return make_trail(
            from_columns(self.columns, self.source),
            roles=roles,
            attributes=self.attributes,
            positive=self.positive or None,
            source=self.source,
        )


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
    metrics = [claim.metric] + ([loss] if _priced(trail, loss) else [])
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


def _priced(trail: Trail, loss: Metric) -> bool:
    """Whether the loss can be told: all but the decision is known."""
    names = [name for name in loss.names() if name != "prediction"]
    return not ("label" in names and "label" not in trail.roles)


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
class _Learnt:
    """The rules to certify, in order, and what was seen of them on the first part."""

    rules: tuple[Rule, ...]
    losses: tuple[float | None, ...]
    overruns: tuple[float, ...]
    """By how much bounds would have gone beyond the tolerance; below zero if they would not."""
    candidates: int
    usual: Rule | None = None
    """The most accurate threshold, where nothing says how decisions are made so far."""


def _thresholds(part: _Table, ask: _Ask) -> _Learnt:
    """Thresholds on the score: one for all, or one for each group."""
    sums, grid, score = _threshold_sums(part, ask)
    reach = _reaches(ask, len(sums.collection), clustered=part.roles.cluster is not None)
    ratio = math.sqrt(ask.learn / (1 - ask.learn))
    plain = np.tile(np.arange(len(grid))[:, None], (1, sums.cells))
    choices = plain if ask.how == "threshold" else np.concatenate([plain, sums.by_group(ask)])
    disparity, error, losses = sums.judged(choices, ask.claim)
    picked = cheapest(
        losses,
        lambda far: worst_overrun(disparity, error * ratio, far, ask.allowed),
        np.array(reach),
    )
    usual_reach = reach[min(len(reach) - 1, len(reach) // 2)]
    over = worst_overrun(disparity, error * ratio, usual_reach, ask.allowed)
    usual = None
    if part.names["before"] not in part.columns and sums.labelled:
        usual = Rule(how="threshold", score=score, threshold=float(grid[np.argmin(losses[: len(grid)])]))
    return _Learnt(
        rules=tuple(sums.rule(choices[place], grid, score, ask) for place in picked),
        losses=tuple(finite(losses[place]) for place in picked),
        overruns=tuple(float(over[place]) for place in picked),
        candidates=len(choices),
        usual=usual,
    )


def _reaches(ask: _Ask, groups: int, *, clustered: bool) -> list[float]:
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
    reference: BoolArray | None
    leaf: IntArray
    """The finest group of each cell."""
    leaves: tuple[dict[str, object], ...]
    labelled: bool

    def judged(
        self, choices: IntArray, claim: Claim
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Disparity and its error by choice and group, and the loss of each choice."""
        at = (choices, np.arange(self.cells)[None, :])
        parts = [getattr(self, name)[at] for name in
                 ("total", "weight", "rows", "total2", "weight2", "square2")]  # fmt: skip
        own = _Mean(*(self.collection.sums(x) for x in parts))
        everyone = _Mean(*(x.sum(axis=1, keepdims=True) for x in parts))
        target, scale = claim.target, claim.target.scale
        if isinstance(target, Constant):
            centre, spread = np.full((1, 1), target.value), np.zeros((1, 1))
            same = np.zeros((1, 1), dtype=bool)
        else:
            other = everyone
            if isinstance(target, Complement):
                other = everyone.without(own)
            elif self.reference is not None:
                inside = self.reference
                other = _Mean(*(x[:, inside].sum(axis=1, keepdims=True) for x in parts))
            centre, spread = other.mean, other.error**2
            same = (other.rows == own.rows) & np.isclose(other.weight, own.weight)
        centre, spread = centre * scale, spread * scale**2
        value, error = own.mean, own.error
        with np.errstate(divide="ignore", invalid="ignore"):
            if isinstance(claim, Ratio):
                gap_, wide = value / centre, np.sqrt(error**2 + (value / centre) ** 2 * spread)
                wide = wide / np.abs(centre)
            else:
                gap_, wide = value - centre, np.sqrt(error**2 + spread)
            lost = self.lost[at].sum(axis=1) / self.known[at].sum(axis=1)
        wide = np.where(same, 0.0, wide)
        return gap_, np.broadcast_to(wide, gap_.shape), np.nan_to_num(lost, nan=np.inf)

    def by_group(self, ask: _Ask) -> IntArray:
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

    def rule(self, choice: IntArray, grid: FloatArray, score: str, ask: _Ask) -> Rule:
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

    def without(self, own: "_Mean") -> "_Mean":
        """The mean of everyone else."""
        pairs = ((getattr(self, f.name), getattr(own, f.name)) for f in dataclasses.fields(self))
        return _Mean(*(mine - theirs for mine, theirs in pairs))


def _threshold_sums(part: _Table, ask: _Ask) -> tuple[_Sums, FloatArray, str]:
    """Everything about every threshold, from one look at the first part."""
    known = part.part(part.knows)
    if not len(known):
        raise TrailError("No row of the first part has a score; nothing can be learnt.")
    score = str(part.roles.score)
    # a name of its own: formulas may read the score as well
    known = known.with_column("no", np.zeros(len(known))).with_column("yes", np.ones(len(known)))
    trails = {name: known.trail(ask.how, name) for name in ("no", "yes")}
    cells = gather(trails["no"], [ask.claim])[0]
    collection = form_groups(ask.claim.across, cells)
    further = {name: counted_value(one, ask.claim.metric) for name, one in trails.items()}
    trail = trails["no"]
    labelled = _priced(trail, ask.loss)
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
    given = numbers(rows.columns["given"])
    _check_direction(rows, given, score)
    grid = threshold_grid(given, ask.candidates)
    reached = np.searchsorted(grid, given, side="right").astype(np.int64)
    weight, copies = rows.weights, rows.counts.astype(np.float64)

    def added(name: str, power: int, heavy: FloatArray) -> FloatArray:
        told = {side: numbers(rows.columns[side + name]) for side in ("no", "yes")}
        both = {s: np.where(np.isnan(v), 0.0, heavy * np.nan_to_num(v) ** power) for s, v in told.items()}
        return by_threshold(Potential(both["no"], both["yes"]), reached, rows.cell, len(grid), len(cells))

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
    target = ask.claim.target
    sums = _Sums(
        collection=collection,
        cells=len(cells),
        total=added("", 1, weight * copies),
        weight=added("", 0, weight * copies),
        rows=added("", 0, copies),
        square2=added("", 2, weight**2 * copies),
        total2=added("", 1, weight**2 * copies),
        weight2=added("", 0, weight**2 * copies),
        lost=lost,
        known=counted,
        reference=reference_cells(target.where, _counting(cells))
        if isinstance(target, Reference)
        else None,
        leaf=leaf,
        leaves=leaves,
        labelled=labelled,
    )
    return sums, grid, score


def _counting(cells: Cells) -> Cells:
    """The same cells, in each of which all rows count: who is in a group is asked, not how many."""
    return dataclasses.replace(cells, rows=cells.present)


def _check_direction(rows: RowTable, score: FloatArray, called: str) -> None:
    """Refuse scores that fall where the decisions so far are yes."""
    if "now" not in rows.columns:
        return
    now, heavy = numbers(rows.columns["now"]), rows.counts * rows.weights
    means = [
        float(np.average(score[now == side], weights=heavy[now == side]))
        if heavy[now == side].sum() > 0
        else math.nan
        for side in (0, 1)
    ]
    if means[1] < means[0]:
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


def _recalibrations(part: _Table, ask: _Ask) -> _Learnt:
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
    told = np.isfinite(x) & np.isfinite(y)
    x, y, w = x[told], y[told], (rows.weights * rows.counts)[told]
    if not len(x) or not w.sum() > 0:
        raise TrailError("No row of the first part has a score and a label.")
    ends = np.unique([x.min(), x.max()])
    lines = [np.stack([ends, ends], axis=1), straight_knots(x, y, w), isotonic_knots(x, y, w)]
    lines += [few_knots(x, y, w, number) for number in KNOTS]
    rules = [_line(score, knots) for knots in lines]
    rules = list(dict.fromkeys(rules))
    losses, overruns = [], []
    for rule in rules:
        made = known.with_rule(rule).trail("recalibration")
        found = certify(made, ask.claim, level=ask.level, resamples=200, rng=0)
        losses.append(overall_mean(gather(made, [gap(ask.loss)])[0]))
        overruns.append(_beyond(found, ask.allowed))
    place = sorted(
        range(len(rules)),
        key=lambda i: (overruns[i] >= 0, losses[i] if overruns[i] < 0 else overruns[i], i),
    )[: ask.tries]
    return _Learnt(
        rules=tuple(rules[i] for i in place),
        losses=tuple(finite(losses[i]) for i in place),
        overruns=tuple(overruns[i] for i in place),
        candidates=len(rules),
    )


def _line(score: str, knots: FloatArray) -> Rule:
    rising = np.maximum.accumulate(knots[:, 1])
    pairs = zip(knots[:, 0].tolist(), rising.tolist(), strict=True)
    return Rule(how="recalibration", score=score, knots=tuple(pairs))


def _beyond(found: Bounds, allowed: Ends) -> float:
    """By how much bounds go beyond what is allowed, in the worst group that is compared."""
    low, high = allowed
    over = [-math.inf]
    for row in found.rows:
        if row.reach is None and row.note:
            over.append(-math.inf if row.disparity in (0.0, 1.0) else math.inf)
            continue
        if high is not None:
            over.append(math.inf if row.upper is None else row.upper - high)
        if low is not None:
            over.append(math.inf if row.lower is None else low - row.lower)
    return max(over)


# --- What was found ---


def _best(learnt: _Learnt, judged: list[Bounds]) -> int:
    """The certified rule that lost least; where none is certified, the one with most room."""
    kept = [i for i, found in enumerate(judged) if found.verdict is Verdict.KEPT]
    if kept:
        return min(kept, key=lambda i: (math.inf if learnt.losses[i] is None else learnt.losses[i]))
    return min(range(len(judged)), key=lambda i: (learnt.overruns[i], i))


def _finding(
    trail: Trail,
    ask: _Ask,
    side: Side,
    tolerance: float,
    seed: Seed,
    parts: tuple[_Table, _Table],
    learnt: _Learnt,
    judged: list[Bounds],
    best: int,
) -> Repair:
    first, second = parts
    certificate, rule = judged[best], learnt.rules[best]
    applied = second.with_rule(rule)
    level = 1 - (1 - ask.level) / len(judged)
    return Repair(
        claim=ask.claim.quoted(),
        question=f"{ask.claim.words}, repaired by a {_KINDS[rule.how]}",
        guarantee=(
            f"If the rule does not keep the tolerance, the chance of a certificate is at most "
            f"{level_text(round(1 - ask.level, 12))}, however many candidates were looked at"
        ),
        assumptions=(
            *certificate.assumptions,
            f"the two parts were dealt at random by {_unit(trail)}, so that neither tells of the "
            "other",
        ),
        provenance=dataclasses.replace(certificate.provenance, seed=seed.number),
        rows=_rows(certificate, _before(applied, ask)),
        metric=certificate.metric,
        against=certificate.against,
        share=certificate.share,
        relative=certificate.relative,
        rule=rule,
        level=level if len(judged) == 1 else ask.level,
        side=side,
        tolerance=tolerance,
        learnt_on=first.rows,
        certified_on=second.rows,
        unit=_unit(trail),
        candidates=learnt.candidates,
        tries=len(judged),
        within=learnt.overruns[best] < 0,
        price=_price(applied, ask, learnt.usual, _own(seed, 1 << 20)),
        tried=tuple(
            TriedRule(
                rule=one.words,
                loss=learnt.losses[i],
                worst=finite(learnt.overruns[i]),
                verdict=judged[i].verdict,
                chosen=i == best,
            )
            for i, one in enumerate(learnt.rules)
        ),
        certified=certificate.to_dict(),
    )


_KINDS = {
    "threshold": "threshold for everyone",
    "by_group": "threshold for each group",
    "recalibration": "recalibration for everyone",
}


def _unit(trail: Trail) -> str:
    return "rows" if trail.roles.cluster is None else "clusters"


def _before(applied: _Table, ask: _Ask) -> Mapping[str, tuple[float | None, float | None]]:
    """Every group's metric and disparity as decided so far, on the rows of the certificate."""
    recalibrates = ask.how == "recalibration"
    column = str(applied.roles.score) if recalibrates else applied.names["before"]
    if column not in applied.columns:
        return {}
    trail = applied.trail(ask.how, column)
    try:
        found = describe(trail, ask.claim)
    except ClaimError:
        # such as decisions under which the metric counts on no row
        return {}
    return {row.group: (row.value, row.disparity) for row in found.rows}


def _rows(
    certificate: Bounds, before: Mapping[str, tuple[float | None, float | None]]
) -> tuple[RepairedGroup, ...]:
    return tuple(
        RepairedGroup(
            group=row.group,
            where=row.where,
            n=row.n,
            value=row.value,
            target=row.target,
            disparity=row.disparity,
            before=before.get(row.group, (None, None))[0],
            disparity_before=before.get(row.group, (None, None))[1],
            lower=row.lower,
            upper=row.upper,
            verdict=row.verdict,
            note=row.note,
        )
        for row in certificate.rows
    )


def _price(applied: _Table, ask: _Ask, usual: Rule | None, seed: int) -> Price | None:
    """What the rule costs on the rows of the certificate, row by row."""
    recalibrates = ask.how == "recalibration"
    if not _priced_here(applied, ask.loss):
        return None
    if recalibrates:
        before, compared = str(applied.roles.score), "with the scores as they are"
    elif applied.names["before"] in applied.columns:
        before, compared = applied.names["before"], "as decided so far"
    elif usual is not None:
        said = np.full(len(applied), np.nan)
        said[applied.knows] = usual.apply(applied.score[applied.knows])
        applied = applied.with_column("before", said)
        before = applied.names["before"]
        compared = f"with the most accurate threshold ({usual.threshold:.4g})"
    else:
        return None
    moved = change(ask.loss, before=before, after=applied.names["repaired"])
    try:
        found = certify(applied.trail(ask.how), gap(moved), level=ask.level, rng=seed)
    except (ClaimError, TrailError):
        return None
    row, both = found.rows[0], found.changed[0] if found.changed else None
    return Price(
        loss=ask.loss.words,
        compared=compared,
        share=ask.loss.zero_one,
        before=None if both is None else both.before,
        after=None if both is None else both.after,
        change=row.disparity,
        lower=row.lower,
        upper=row.upper,
        note=row.note,
    )


def _priced_here(applied: _Table, loss: Metric) -> bool:
    return "label" not in loss.names() or "label" in applied.roles

