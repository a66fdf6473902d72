"""`discover`: find groups that nobody named, on one half of the rows; test them on the other."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from equipoise._validate import (
    Rng,
    columns_named,
    fraction,
    known_keywords,
    listing,
    seed_of,
    whole,
)
from equipoise.audits._common import Progress, RoleKeywords, TrailLike, as_trail
from equipoise.audits._groups.problem import Control, FlagOptions, problem_of
from equipoise.audits.flag import FlagMethod, flag_groups
from equipoise.cells import Axis, Cells
from equipoise.cells.groups import Feature, leaf_rules
from equipoise.cells.rows import (
    Look,
    RowTable,
    chosen_features,
    feature_keys,
    one_look,
    pull_features,
)
from equipoise.cells.tally import steady_cells
from equipoise.claims.claim import Claim, Gap, Highest, Reference, TargetLike, as_target, overall
from equipoise.claims.groups import Binned, Condition, Factors, Masks
from equipoise.claims.metric import Metric, as_metric
from equipoise.errors import ClaimError, OptionError
from equipoise.findings.finding import Provenance
from equipoise.findings.flags import Flags
from equipoise.methods.numerics import FloatArray, IntArray
from equipoise.methods.published import bootstrap
from equipoise.trail import Trail
from equipoise.trail.trail import expect_trail


@known_keywords
def discover(
    trail: TrailLike,
    metric: Metric | str | Claim,
    *,
    features: Sequence[str] | None = None,
    target: TargetLike | None = None,
    above: float | None = None,
    below: float | None = None,
    outside: tuple[float, float] | None = None,
    fdr: float = 0.10,
    control: Control = "bh",
    method: FlagMethod | None = None,
    depth: int = 3,
    leaf_rows: int = 50,
    share: float = 0.5,
    sample: int | None = None,
    rng: Rng = None,
    progress: Progress = None,
    **roles: Unpack[RoleKeywords],
) -> Flags:
    """Find groups with unusual performance, and test them on rows that were not used to find them.

    A tree of the metric on ``features`` is grown on a random part of the rows; its leaves are
    groups with readable rules. They are then flagged on the remaining rows, where they are fixed
    in advance, so the guarantee is that of `flag`.

    Parameters
    ----------
    trail, metric
        The audit trail, or a path or table as in `certify`; and what is measured, or a claim that
        says that, the target and factors: ``gap("accuracy", given=["department"])``. Rules are
        sought in what given columns do not explain, and tested given all factors.
    features
        Columns the rules may use, numbers and text; if left out, all attributes that are not given.
    target, above, below, outside, fdr, control, method
        As in `gap` and `flag`.
    depth, leaf_rows
        How many conditions a rule may have, and how many rows a group must have in the first part.
    share
        Share of the rows used to find groups.
    sample
        Audit this many rows, drawn at random; needed where there are more than a machine holds.
    rng, progress
        As in `certify`.

    Examples
    --------
    >>> import equipoise as eq
    >>> found = eq.discover(
    ...     eq.datasets.compas(),
    ...     eq.false_positive_rate,
    ...     features=["race", "sex", "age", "priors"],
    ...     above=0.05,
    ...     rng=7,
    ... )
    >>> found.flagged[0].group
    'priors is More than 3 and race is African-American and age is not Greater than 45'
    """
    whole("depth", depth)
    whole("leaf_rows", leaf_rows)
    fraction("share", share)
    if sample is not None:
        whole("sample", sample, least=100)
    options = FlagOptions(
        above=above,
        below=below,
        outside=outside,
        fdr=fdr,
        control=control,
        method=method,
        min_rows=None,
        resamples=None,
    )
    asked = _asked(metric, target)
    source, seed = as_trail(trail, roles), seed_of(rng)
    chosen = _chosen(expect_trail(source), asked, features)
    wanted = chosen_features(source, [*chosen, *asked.given_columns])
    with one_look(
        source,
        [Gap(metric=asked.metric)],
        asked.metric,
        feature_keys(source, wanted),
        sample=sample,
    ) as look:
        looked_at = _looked_at(look)
        rows = pull_features(look, wanted, sample=sample, seed=seed.sequence)
    rows = rows.sampled(sample, seed.sequence)
    strata = _strata(rows, asked)
    first = _split(rows, share, seed.sequence)
    leaves, leaf = _grow(rows, chosen, strata, first, depth, leaf_rows, seed.sequence)
    claim = dataclasses.replace(asked, across=Masks(conditions=leaves))
    # The rows that were kept back, with the leaves as groups that were fixed before them.
    kept = rows.counts - first
    index, cell = _placed(leaf, len(leaves), strata)
    cells = steady_cells(_cells(source, claim, rows, kept, strata, index, cell))
    problem = problem_of(claim, cells, lambda: _row_data(rows, kept, cell))
    problem = dataclasses.replace(problem, table=lambda names: _alone(rows, kept, cell, names))
    found = flag_groups(problem, options, seed, progress)
    return dataclasses.replace(
        found,
        guarantee=f"{found.guarantee}. {_how(rows, first)}",
        provenance=_provenance(found.provenance, looked_at, rows),
    )


def _asked(question: Metric | str | Claim, target: TargetLike | None) -> Gap:
    """What is measured, what it is compared with, and given which factors."""
    if not isinstance(question, Claim):
        compared = overall() if target is None else as_target(target)
        asked = Gap(metric=as_metric(question), target=compared)
    elif target is not None:
        raise OptionError("The claim names the target already; leave out target=.")
    elif not isinstance(question, Gap):
        raise ClaimError("discover flags gaps; compare with a scaled target instead of a ratio.")
    else:
        asked = question
    if isinstance(asked.target, Reference | Highest):
        raise OptionError(
            "discover compares with everyone, everyone else or a number; got "
            f"{asked.target.words}. Use target=overall(), complement() or a number."
        )
    if any(isinstance(one, Binned) for one in asked.given):
        raise OptionError(
            "discover takes given= by names of columns, as they are. Add a column with the ranges, "
            "or use given=factors(…)."
        )
    return asked


def _chosen(trail: Trail, asked: Gap, features: Sequence[str] | None) -> list[str]:
    """The columns that rules may use: none that is given."""
    given = {trail.attribute(name) for name in asked.given_columns}
    if features is None:
        return [name for name in trail.attributes if name not in given]
    chosen = [trail.attribute(name) for name in columns_named("features", features)]
    both = [name for name in chosen if name in given]
    if both:
        raise ClaimError(
            f"{listing(both)} is given, so that no group can be formed by it. Leave it out of "
            "features= or of given=."
        )
    return chosen


def _looked_at(look: Look) -> Cells:
    """All rows counted; unusable ones are refused before a tree is grown on them."""
    (cells,) = look.cells([Gap(metric=look.metric)])
    if look.query.trail.roles.cluster is not None:
        raise OptionError(
            "discover splits the rows at random and takes them for independent, which rows of one "
            "cluster are not. Read the trail without cluster=, or name the groups and use flag."
        )
    return cells


def _provenance(tested: Provenance, looked_at: Cells, rows: RowTable) -> Provenance:
    """Where the rows come from: the tested ones are counted, all of the table were looked at."""
    return dataclasses.replace(
        tested,
        scanned=looked_at.scanned,
        excluded={**looked_at.excluded, **rows.missing},
        ineligible=looked_at.ineligible,
    )


def _split(rows: RowTable, share: float, seed: np.random.SeedSequence) -> IntArray:
    """How many of the rows each row stands for are used to find groups."""
    # Sorted first, so that the order of the rows in the table does not matter.
    order = _in_order(rows)
    drawn = np.empty_like(rows.counts)
    drawn[order] = np.random.default_rng(seed).binomial(rows.counts[order], share)
    if not 0 < drawn.sum() < rows.counts.sum():
        raise ClaimError(f"{int(rows.counts.sum()):,} rows are too few to split into two parts.")
    return drawn


def _in_order(rows: RowTable) -> IntArray:
    """The rows in an order of their own; those that are alike may change places."""
    return np.lexsort((rows.counts, rows.weights, rows.value, *rows.matrix.T))


@dataclass(frozen=True, kw_only=True)
class _Strata:
    """The strata that given columns form: none, or one axis for each column."""

    axes: tuple[Axis, ...]
    codes: IntArray
    """The level of each row, shape ``(rows, axes)``."""

    def number(self) -> IntArray:
        """The stratum of each row."""
        _, place = np.unique(self.codes, axis=0, return_inverse=True)
        return place.reshape(-1).astype(np.int64)


def _strata(rows: RowTable, asked: Gap) -> _Strata:
    """What each row's given columns are, read from the features that were made of them."""
    axes, codes = [], [np.empty((len(rows), 0), dtype=np.int64)]
    for one in asked.given:
        if isinstance(one, Factors):
            continue
        at = _columns_of(rows, (one.name,))
        known, place = np.unique(rows.matrix[:, at], axis=0, return_inverse=True)
        levels = tuple(_level([rows.features[i] for i in at], values) for values in known)
        axes.append(Axis(dimension=one, levels=levels, asked=one))
        codes.append(place.reshape(-1, 1).astype(np.int64))
    return _Strata(axes=tuple(axes), codes=np.concatenate(codes, axis=1))


def _columns_of(rows: RowTable, names: Sequence[str]) -> list[int]:
    """Positions in the matrix of what was made of some columns."""
    return [i for i, feature in enumerate(rows.features) if feature.column in names]


def _level(features: Sequence[Feature], values: FloatArray) -> object:
    """What a column says where its features are these: a level, nothing, or a number."""
    if features[0].level is None:
        return float(values[0])
    return next((f.level for f, here in zip(features, values, strict=True) if here), None)


def _grow(
    rows: RowTable,
    features: Sequence[str],
    strata: _Strata,
    used: IntArray,
    depth: int,
    leaf_rows: int,
    seed: np.random.SeedSequence,
) -> tuple[tuple[Condition, ...], IntArray]:
    """The leaves of a tree as conditions, and the leaf of each row."""
    from sklearn.tree import DecisionTreeRegressor

    order = _in_order(rows)
    # Repeating rows makes the smallest leaf count people, not lines of an aggregated table.
    chosen = np.repeat(order, used[order])
    at = _columns_of(rows, features)
    tree = DecisionTreeRegressor(
        max_depth=depth, min_samples_leaf=leaf_rows, random_state=int(seed.generate_state(1)[0])
    )
    value, weights = rows.value[chosen], rows.weights[chosen]
    if strata.axes:
        # what is common to a stratum is explained by it
        place = strata.number()[chosen]
        mean = np.bincount(place, value * weights) / np.maximum(np.bincount(place, weights), 1e-300)
        value = value - mean[place]
    tree.fit(rows.matrix[chosen][:, at], value, sample_weight=weights)
    rules = leaf_rules(tree.tree_, [rows.features[i] for i in at])
    leaf = np.searchsorted(list(rules), tree.apply(rows.matrix[:, at])).astype(np.int64)
    return tuple(Condition(words, formula) for words, formula in rules.values()), leaf


def _placed(leaf: IntArray, leaves: int, strata: _Strata) -> tuple[IntArray, IntArray]:
    """Cells by leaf and stratum: what each is on every axis, and the cell of each row."""
    # every leaf has a cell, if only an empty one, so that its group exists
    empty = np.zeros((leaves, strata.codes.shape[1]), dtype=np.int64)
    both = np.column_stack([np.r_[leaf, np.arange(leaves)], np.r_[strata.codes, empty]])
    cells, place = np.unique(both, axis=0, return_inverse=True)
    member = np.eye(leaves, dtype=np.int64)[cells[:, 0]]
    return np.column_stack([member, cells[:, 1:]]), place.reshape(-1)[: leaf.size].astype(np.int64)


def _how(rows: RowTable, first: IntArray) -> str:
    found, every = int(first.sum()), int(rows.counts.sum())
    said = f"Groups were found on {found:,} rows and tested on {every - found:,} others"
    return said + (f", drawn from {every + rows.left:,}" if rows.left else "")


def _cells(
    trail: Trail,
    claim: Gap,
    rows: RowTable,
    kept: IntArray,
    strata: _Strata,
    index: IntArray,
    cell: IntArray,
) -> Cells:
    """The second part of the rows as cells, one for each leaf and stratum."""
    weighted = trail.roles.weight is not None
    # sums of weights depend in their last digits on the order in which they are added up
    order = _in_order(rows)

    def total(values: FloatArray) -> FloatArray:
        summed = np.bincount(cell[order], weights=(kept * values)[order], minlength=len(index))
        return summed.astype(np.float64)

    w, x = rows.weights, rows.value
    masks = claim.across.dimensions()
    return Cells(
        metric=claim.metric,
        axes=(
            *(Axis(dimension=d, levels=(False, True), asked=d) for d in masks),
            *strata.axes,
        ),
        index=index,
        present=total(np.ones_like(x)),
        rows=total(np.ones_like(x)),
        weight=total(w),
        total=total(w * x),
        square=total(w * x**2),
        weight2=total(w**2),
        total2=total(w**2 * x),
        square2=total((w * x) ** 2),
        weight3=total(w**3),
        total3=total(w**3 * x),
        square3=total(w**3 * x**2),
        cube3=total((w * x) ** 3),
        zero_one=bool(np.isin(x, (0.0, 1.0)).all()),
        weighted=weighted,
        scanned=int(kept.sum()),
        excluded={},
        source=trail.source,
    )


def _row_data(rows: RowTable, kept: IntArray, cell: IntArray) -> bootstrap.RowData:
    used = kept > 0
    return bootstrap.canonical_rows(
        cell=cell[used], value=rows.value[used], weight=rows.weights[used], count=kept[used]
    )


def _alone(rows: RowTable, kept: IntArray, cell: IntArray, names: Sequence[str]) -> RowTable:
    """The rows that were kept back, each on its own, with some columns as features."""
    order = _in_order(rows)
    each = np.repeat(order, kept[order])
    at = _columns_of(rows, names)
    made = dataclasses.replace(
        rows.part(each), count=None, cell=cell[each], matrix=rows.matrix[each][:, at]
    )
    return dataclasses.replace(made, features=tuple(rows.features[i] for i in at))
