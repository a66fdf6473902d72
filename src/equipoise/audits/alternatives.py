"""`alternatives`: which models lose little and have a smaller disparity than the present one."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Unpack

import narwhals as nw
import numpy as np

from equipoise._validate import (
    Rng,
    Seed,
    confidence,
    known_keywords,
    known_name,
    listing,
    modest,
    real,
    seed_of,
)
from equipoise.audits._common import (
    Progress,
    RoleKeywords,
    TrailLike,
    as_trail,
    drawn_units,
    finite,
    groups_only,
    independent,
    plain_claim,
    progress_bar,
    provenance_of,
)
from equipoise.audits.compare import EVERY_ROW, model_role
from equipoise.cells import Cells, gather
from equipoise.cells.gather import reference_cells
from equipoise.cells.groups import Collection, form_groups
from equipoise.cells.query import all_of, counted_value, numbers
from equipoise.cells.rows import RowTable, pull_table
from equipoise.claims import Claim, Metric, Ratio, as_claim, gap
from equipoise.claims.claim import Complement, Constant, Overall, Reference
from equipoise.claims.formula import with_column
from equipoise.claims.metric import MetricLike, as_metric, error_rate, squared_error
from equipoise.errors import ClaimError, OptionError, TrailError
from equipoise.findings.finding import Group
from equipoise.findings.repair import Alternative, Alternatives
from equipoise.findings.words import Side, level_text
from equipoise.methods.hypotheses import holm
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray
from equipoise.methods.repair import (
    Means,
    Smaller,
    contrasted,
    joint_means,
    largest_between,
    mean_between,
    near_best,
    smaller,
)
from equipoise.trail import Trail
from equipoise.trail.trail import require_column, truth_number

#: Means of all models in all groups beyond which their covariance is too large to keep.
MOST_MEANS = 1500
_SIGNS = {"both": (1, -1), "upper": (1,), "lower": (-1,)}


@known_keywords
def alternatives(
    trail: TrailLike,
    claim: Claim,
    *,
    models: Mapping[str, str],
    within: float = 0.01,
    present: str | None = None,
    loss: MetricLike | None = None,
    threshold: float | None = None,
    side: Side = "both",
    level: float = 0.95,
    rng: Rng = None,
    progress: Progress = None,
    **roles: Unpack[RoleKeywords],
) -> Alternatives:
    """Which candidates are nearly as good as the best model, and discriminate less than today's.

    A model's disparity is the largest of all groups. All models are compared row by row.

    Parameters
    ----------
    trail, claim
        As in `certify`; the claim says what is measured, between whom and against what (a number,
        everyone, ``complement()`` or ``reference(…)``), as a gap.
    models
        Candidates: a name for each, and its column of predictions (or scores, if the metric reads
        a score or ``threshold=`` is given).
    within
        The loss beyond that of the best model that is tolerated, such as 0.01.
    present
        Which of ``models`` is in use today; if not given, it is the trail's own prediction (or
        score), called ``present``.
    loss
        What models should lose little of: the error rate, or the squared error of scores, if not
        given.
    threshold
        Where the columns hold scores and the metric is one of predictions: the score from which on
        the answer is yes.
    side
        ``"both"``: disparities above and below count alike; ``"upper"`` or ``"lower"``: only those.
    level
        One less it is the chance that any model is wrongly shown to be within the margin and less
        discriminatory, for all candidates at once.
    rng, progress
        As in `certify`.

    Examples
    --------
    >>> import numpy as np, polars as pl
    >>> import equipoise as eq
    >>> draw = np.random.default_rng(1)
    >>> sex, merit = draw.choice(["f", "m"], 4000), draw.normal(size=4000)
    >>> table = pl.DataFrame({
    ...     "sex": sex,
    ...     "paid": (merit + draw.normal(size=4000) > 0).astype(int),
    ...     "old": (merit + 0.6 * (sex == "m") > 0.3).astype(int),
    ...     "new": (merit > 0).astype(int),
    ... })
    >>> trail = eq.read(table, label="paid", prediction="old", attributes=["sex"])
    >>> claim = eq.gap("selection_rate", across="sex")
    >>> found = eq.alternatives(trail, claim, models={"new": "new"}, rng=7)
    >>> [row.model for row in found.shown]
    ['new']
    """
    asked = plain_claim(as_claim(claim), "alternatives")
    _check_claim(asked)
    role = model_role(asked.metric)
    lost = _loss(loss, role)
    if threshold is not None:
        real("threshold", threshold)
        if role != "prediction":
            raise OptionError(
                f"{asked.metric.name!r} takes scores as they are; leave out threshold=."
            )
    modest("within", within)
    if within < 0:
        raise OptionError(f"within must be at least 0; got {within!r}.")
    confidence(level)
    known_name("side", side, tuple(_SIGNS))
    named = _named(models, present)
    seed, source = seed_of(rng), as_trail(trail, roles)
    columns, now = _columns(source, role, named, present, threshold)
    with progress_bar(progress, len(columns) + 1, "alternatives") as tell:
        data = _Data.of(source, asked, lost, role, columns, threshold)
        tell(1)
        compared = _Compared(within, _SIGNS[side], 1 - level, seed)
        rows = compared.rows(data, columns, now, tell)
    candidates = len(columns) - 1
    return Alternatives(
        claim=asked.quoted(),
        question=f"{asked.words}, among {candidates + 1} models",
        guarantee=(
            f"With {level_text(level)} confidence no model is wrongly shown to be within the "
            f"margin and less discriminatory, for all {candidates} candidates at once"
        ),
        assumptions=(
            independent(drawn_units(data.cells)),
            "every group has enough rows for Student's law, to which two made-up rows are added",
        ),
        provenance=dataclasses.replace(
            provenance_of(data.cells, seed.number), excluded=data.excluded
        ),
        rows=rows,
        metric=asked.metric.words,
        against=asked.target.words,
        share=data.cells.zero_one,
        loss=lost.words,
        loss_share=lost.zero_one,
        present=now,
        margin=within,
        side=side,
        level=level,
        rows_compared=data.compared,
        groups=data.groups,
    )


def _check_claim(claim: Claim) -> None:
    if isinstance(claim, Ratio):
        raise OptionError("alternatives compares gaps; pass gap(…) in place of ratio(…).")
    if not isinstance(claim.target, Overall | Complement | Reference | Constant):
        raise OptionError(
            "alternatives compares with a number, everyone, complement() or reference(…); got "
            f"{claim.target.words}."
        )
    metric = claim.metric
    if metric.change is not None:
        raise ClaimError("alternatives compares models itself; pass the metric, not its change.")
    if not isinstance(metric.value, str) or not isinstance(metric.where, str | None):
        raise ClaimError("alternatives needs a metric whose value and rows are formulas.")


def _loss(loss: MetricLike | None, role: str) -> Metric:
    found = (
        as_metric(loss)
        if loss is not None
        else error_rate
        if role == "prediction"
        else squared_error
    )
    if found.change is not None or not isinstance(found.value, str) or model_role(found) != role:
        raise OptionError(f"loss= must be a metric that reads the {role}; got {found.name!r}.")
    if (
        not isinstance(found.where, str | None)
        or role in Metric(name="rows", value="1", where=found.where).names()
    ):
        raise OptionError("loss= must count on the same rows for every model.")
    if found.harm == "low":
        raise OptionError(f"loss= must be a loss, and more {found.words} is better.")
    return found


def _named(models: object, present: str | None) -> dict[str, str]:
    least = 1 if present is None else 2
    if (
        not isinstance(models, Mapping)
        or len(models) < least
        or not all(isinstance(x, str) and x for pair in models.items() for x in pair)
    ):
        raise OptionError(
            "models takes a name and a column for each candidate, such as {'shallow': "
            f"'shallow_says'}}{', the present one among them' if least == 2 else ''}; got "
            f"{models!r}."
        )
    if present is not None and present not in models:
        raise OptionError(f"present= must be one of {listing(models)}; got {present!r}.")
    if present is None and "present" in models:
        raise OptionError(
            "A candidate is called 'present', as is the model in use. Rename it, or pass "
            "present='present' if it is that model."
        )
    if len(set(models.values())) < len(models):
        raise OptionError("Two models have the same column; a model is compared with others only.")
    return {str(name): str(column) for name, column in models.items()}


def _columns(
    trail: Trail, role: str, models: dict[str, str], present: str | None, threshold: float | None
) -> tuple[dict[str, str], str]:
    """Every model with its column, the present one first, and the name of that one."""
    for name, column in models.items():
        require_column(column, trail.schema, f"model {name!r}")
    if present is not None:
        return {present: models[present], **models}, present
    own = trail.roles.score if threshold is not None else getattr(trail.roles, role)
    if own is None:
        raise TrailError(
            f"Which model is in use? The trail has no {'score' if threshold is not None else role}"
            " column; pass present=… with one of the models, or name the column in equipoise.read."
        )
    same = [name for name, column in models.items() if column == own]
    if same:
        raise OptionError(
            f"Model {same[0]!r} is the trail's own column {own!r}, the present model. Leave it "
            f"out, or pass present={same[0]!r}."
        )
    return {"present": str(own), **models}, "present"


# --- The rows: what every model says of them, and how it loses ---


@dataclass(frozen=True, slots=True)
class _Data:
    """Means of all models: in every group, and their losses over everyone."""

    cells: Cells
    collection: Collection
    gaps: Means
    losses: Means
    groups: tuple[Group, ...]
    usable: IntArray
    """The groups of the collection that have rows for every model."""
    compared: int
    excluded: dict[str, int]

    @classmethod
    def of(
        cls,
        trail: Trail,
        claim: Claim,
        loss: Metric,
        role: str,
        columns: dict[str, str],
        threshold: float | None,
    ) -> "_Data":
        """One look at the rows, on which all models must have said something."""
        measured = [_of_model(claim.metric, role, c, threshold) for c in columns.values()]
        lost = [_of_model(loss, role, c, threshold) for c in columns.values()]
        # one scan checks all columns: two values, numbers, ranges
        own = [dataclasses.replace(claim, metric=one) for one in measured]
        cells = gather(trail, [*own, *(gap(one) for one in lost)])[0]
        collection = form_groups(claim.across, cells)
        groups_only(collection, "alternatives")
        further = {f"metric{i}": counted_value(trail, one) for i, one in enumerate(measured)}
        further |= {f"loss{i}": counted_value(trail, one) for i, one in enumerate(lost)}
        said = all_of(trail.present(column) for column in columns.values())
        further["said"] = nw.when(said).then(truth_number(said)).otherwise(nw.lit(0))
        rows = pull_table(trail, EVERY_ROW, further, cells=cells)
        rows, lost_rows = _usable(rows, columns)
        values, losses = (
            np.stack([numbers(rows.columns[f"{kind}{i}"]) for i in range(len(columns))], axis=1)
            for kind in ("metric", "loss")
        )
        losses[~np.isfinite(losses).all(axis=1)] = np.nan
        if not np.isfinite(losses).any():
            raise TrailError(f"The {loss.words} of no row is known; does the table have labels?")
        return cls._made(rows, values, losses, claim, loss, cells, collection, lost_rows)

    @classmethod
    def _made(
        cls,
        rows: RowTable,
        values: FloatArray,
        losses: FloatArray,
        claim: Claim,
        loss: Metric,
        cells: Cells,
        collection: Collection,
        lost: dict[str, int],
    ) -> "_Data":
        copies, weight = rows.counts.astype(np.float64), rows.weights
        order = _order(rows, values, losses)
        rows, values, losses = rows.part(order), values[order], losses[order]
        copies, weight = copies[order], weight[order]
        members, contrast, shift, own = _sets(claim, cells, collection)
        if members.shape[1] * values.shape[1] > MOST_MEANS:
            raise ClaimError(
                f"{values.shape[1]} models in {len(collection):,} groups are too many to compare "
                "jointly. Use fewer attributes, a smaller depth= or fewer models."
            )
        how = (weight, copies, rows.cluster)
        made = joint_means(values, *how, rows.cell, members, *_range(claim.metric, values))
        one = (np.zeros_like(rows.cell), np.ones((1, 1)))
        total = joint_means(losses, *how, *one, *_range(loss, losses))
        found = contrasted(made, contrast, shift, own)
        usable = np.flatnonzero(np.isfinite(found.mean).all(axis=0))
        usable = usable[~_same_as_target(claim, members, usable)]
        if np.isfinite(found.mean).all(axis=0).any() and not usable.size:
            raise ClaimError(
                "Every group is what it is compared with, so nothing is compared. Name other "
                "groups in across=, or another target=."
            )
        if not usable.size:
            raise ClaimError("No group has rows of every model on which the metric counts.")
        counted = np.isfinite(values).any(axis=1)
        size = np.bincount(
            rows.cell[counted], weights=copies[counted], minlength=len(cells)
        ).astype(np.float64)
        sizes = collection.sums(size)
        labels, wheres = collection.labels(), collection.wheres()
        groups = tuple(
            Group(group=labels[i], where=wheres[i], n=round(float(sizes[i]))) for i in usable
        )
        return cls(
            cells=cells,
            collection=collection,
            gaps=_only(found, usable),
            losses=total,
            groups=groups,
            usable=usable,
            compared=round(float(copies.sum())),
            excluded={**cells.excluded, **lost},
        )


def _usable(rows: RowTable, columns: Mapping[str, str]) -> tuple[RowTable, dict[str, int]]:
    """The rows of which every model says something, and how many others there were."""
    said = numbers(rows.columns["said"]) == 1
    here = said & (rows.weights > 0)
    if rows.cluster is not None:
        here &= rows.cluster >= 0
    if not here.any():
        raise TrailError(
            f"There is no row of which all models say something: {listing(columns.values())}. "
            "Models are compared on the same rows."
        )
    lost = int(rows.counts[~said].sum())
    kept = rows.part(here)
    if kept.cluster is not None:
        codes = np.unique(kept.cluster, return_inverse=True)[1]
        kept = dataclasses.replace(kept, cluster=codes.reshape(-1).astype(np.int64))
    return kept, {"without an answer of every model": lost} if lost else {}


def _order(rows: RowTable, values: FloatArray, losses: FloatArray) -> IntArray:
    """Rows by what they hold, so that sums do not depend on the order in which they came."""
    keys = [*values.T, *losses.T, rows.weights, rows.counts, rows.cell]
    keys += [] if rows.cluster is None else [rows.cluster]
    return np.lexsort(keys).astype(np.int64)


def _of_model(metric: Metric, role: str, column: str, threshold: float | None) -> Metric:
    """The metric with a model's column in place of the role."""
    plain = role == "prediction" and threshold is None and "prediction" in metric.binary
    where = metric.where
    return dataclasses.replace(
        metric,
        name=f"{metric.name} of {column}",
        value=with_column(str(metric.value), role, column, threshold),
        where=None if where is None else with_column(str(where), role, column, threshold),
        binary=tuple(one for one in metric.binary if one != role),
        unit=tuple(one for one in metric.unit if one != role),
        models=(column,) if plain else (),
    )


def _range(metric: Metric, values: FloatArray) -> tuple[float | None, float | None]:
    """The ends at which rows are added, where the metric has ends and the rows keep to them."""
    if metric.low is None or metric.high is None:
        return None, None
    known = values[np.isfinite(values)]
    inside = known.size > 0 and known.min() >= metric.low and known.max() <= metric.high
    return (metric.low, metric.high) if inside else (None, None)


def _sets(
    claim: Claim, cells: Cells, collection: Collection
) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
    """Sets of cells whose means matter, and disparities as differences of these means."""
    groups = len(collection)
    member = collection.sums(np.eye(len(cells)))
    target, scale = claim.target, claim.target.scale
    eye, shift = np.eye(groups), np.zeros(groups)
    places = np.arange(groups)
    if isinstance(target, Constant):
        return member, eye, shift - scale * target.value, places
    if isinstance(target, Complement):
        both = np.concatenate([member, 1.0 - member], axis=1)
        return both, np.concatenate([eye, -scale * eye], axis=1), shift, places
    inside = np.ones(len(cells))
    if isinstance(target, Reference):
        full = dataclasses.replace(cells, rows=cells.present)
        inside = reference_cells(target.where, full).astype(np.float64)
    both = np.concatenate([member, inside[:, None]], axis=1)
    return both, np.concatenate([eye, np.full((groups, 1), -scale)], axis=1), shift, places


def _same_as_target(claim: Claim, members: FloatArray, usable: IntArray) -> BoolArray:
    """Groups that are what they are compared with: the reference itself, or everyone."""
    if isinstance(claim.target, Constant | Complement) or claim.target.scale != 1:
        return np.zeros(len(usable), dtype=bool)
    return np.asarray((members[:, usable] == members[:, [-1]]).all(axis=0))


def _only(found: Means, groups: IntArray) -> Means:
    models, every = found.mean.shape
    flat = (np.arange(models)[:, None] * every + groups[None, :]).reshape(-1)
    return Means(
        found.mean[:, groups],
        found.moved[:, groups],
        found.covariance[np.ix_(flat, flat)],
        found.units[:, groups],
    )


# --- What is shown of every model ---


@dataclass(frozen=True, slots=True)
class _Compared:
    """How models are compared."""

    within: float
    signs: tuple[int, ...]
    error: float
    seed: Seed

    def rows(
        self, data: _Data, columns: Mapping[str, str], present: str, tell: Callable[[int], None]
    ) -> tuple[Alternative, ...]:
        """Every model, with what is shown of it."""
        now, models = list(columns).index(present), len(columns)
        others = [m for m in range(models) if m != now]
        each = self.error / len(others)
        p_loss, excess = near_best(data.losses, self.within, each)
        streams = self.seed.sequence.spawn(models)
        found: dict[int, Smaller] = {}
        for place, model in enumerate(others):
            rng = np.random.default_rng(streams[model])
            # a small part of the error finds out which comparisons are surely far off
            found[model] = smaller(data.gaps, model, now, self.signs, each, each / 20, rng)
            tell(2 + place)
        p_gap = np.array([found[m].p for m in others])
        shown = _Adjusted(
            both=dict(zip(others, holm(np.maximum(p_loss[others], p_gap)).tolist(), strict=True)),
            loss=dict(zip(others, holm(p_loss[others]).tolist(), strict=True)),
            gap=dict(zip(others, holm(p_gap).tolist(), strict=True)),
        )
        signed = np.concatenate([s * data.gaps.mean for s in self.signs], axis=1)
        largest, where = signed.max(axis=1), signed.argmax(axis=1) % len(data.groups)
        loss, made = data.losses.mean[:, 0], []
        for model, (name, column) in enumerate(columns.items()):
            # half of the error for the losses, half for the disparities, each shared by all models
            low, high = largest_between(data.gaps, model, self.signs, self.error / 2 / models)
            ends = mean_between(data.losses, model, self.error / 2 / models)
            one = found.get(model)
            made.append(
                Alternative(
                    model=name,
                    column=column,
                    loss=float(loss[model]),
                    loss_lower=finite(ends[0]),
                    loss_upper=finite(ends[1]),
                    excess=float(loss[model] - loss.min()),
                    excess_upper=finite(excess[model]),
                    disparity=float(largest[model]),
                    lower=finite(low),
                    upper=finite(high),
                    group=data.groups[int(where[model])].group,
                    change=None if one is None else float(largest[model] - largest[now]),
                    change_upper=None if one is None else finite(one.upper),
                    p_loss=None if one is None else float(p_loss[model]),
                    p_disparity=None if one is None else one.p,
                    p_adjusted=shown.both.get(model),
                    within=None if one is None else shown.loss[model] <= self.error,
                    less=None if one is None else shown.gap[model] <= self.error,
                    shown=one is not None and shown.both[model] <= self.error,
                    note="the model in use" if one is None else _note(one.upper),
                )
            )
        return tuple(made)


@dataclass(frozen=True, slots=True)
class _Adjusted:
    """Adjusted p-values by model."""

    both: dict[int, float]
    loss: dict[int, float]
    gap: dict[int, float]


def _note(upper: float) -> str:
    return "" if np.isfinite(upper) else "a group has too few rows"
