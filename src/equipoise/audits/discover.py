"""`discover`: find groups that nobody named, on one half of the rows; test them on the other."""

import dataclasses
from collections.abc import Sequence
from typing import Unpack

import numpy as np

from equipoise._validate import Rng, fraction, known_keywords, seed_of, whole
from equipoise.audits._common import Progress, Roles, TrailLike, as_trail
from equipoise.audits._groups.problem import Control, FlagOptions, assemble
from equipoise.audits.flag import FlagMethod, flag_groups
from equipoise.cells import Axis, Cells, gather
from equipoise.cells.rows import RowTable, leaf_rules, pull_features
from equipoise.cells.tally import steady_cells
from equipoise.claims.claim import Claim, Gap
from equipoise.claims.groups import Condition, Masks
from equipoise.claims.metric import Metric, as_metric
from equipoise.claims.target import Reference, Target, TargetLike, as_target, overall
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
    **roles: Unpack[Roles],
) -> Flags:
    """Find groups with unusual performance, and test them on rows that were not used to find them.

    A tree of the metric on ``features`` is grown on a random part of the rows; its leaves are
    groups with readable rules. They are then flagged on the remaining rows, where they are fixed
    in advance, so the guarantee is that of `flag`.

    Parameters
    ----------
    trail, metric
        The audit trail, or a path or table as in `certify`; and what is measured, or a claim that
        says that and the target: ``gap("accuracy", target=0.9)``.
    features
        Columns the rules may use, numbers and text; all attributes if not given.
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
    measured, compared = _asked(metric, target)
    source, seed = as_trail(trail, roles), seed_of(rng)
    looked_at = _looked_at(source, measured)
    chosen = source.attributes if features is None else features
    rows = pull_features(source, measured, chosen, sample=sample, seed=seed.sequence)
    rows = rows.sampled(sample, seed.sequence)
    first = _split(rows, share, seed.sequence)
    leaves, leaf = _grow(rows, first, depth, leaf_rows, seed.sequence)
    claim = Gap(metric=measured, across=Masks(conditions=leaves), target=compared)
    kept = rows.counts - first
    # The rows that were kept back, with the leaves as groups that were fixed before them.
    cells = steady_cells(_cells(source, claim, rows, kept, leaf))
    problem = assemble(claim, cells, lambda: _row_data(rows, kept, leaf))
    found = flag_groups(problem, options, seed, progress)
    return dataclasses.replace(
        found,
        guarantee=f"{found.guarantee}. {_how(rows, first)}",
        provenance=_provenance(found.provenance, looked_at, rows),
    )


def _asked(question: Metric | str | Claim, target: TargetLike | None) -> tuple[Metric, Target]:
    """What is measured, and what it is compared with."""
    if not isinstance(question, Claim):
        return as_metric(question), _compared(target)
    if target is not None:
        raise OptionError("The claim names the target already; leave out target=.")
    if not isinstance(question, Gap):
        raise ClaimError("discover flags gaps; compare with a scaled target instead of a ratio.")
    return question.metric, _compared(question.target)


def _compared(target: TargetLike | None) -> Target:
    compared = overall() if target is None else as_target(target)
    if isinstance(compared, Reference):
        raise OptionError(
            "discover compares with everyone, everyone else or a number; got "
            f"{compared.words}. Use target=overall(), complement() or a number."
        )
    return compared


def _looked_at(trail: Trail, metric: Metric) -> Cells:
    """All rows counted; unusable ones are refused before a tree is grown on them."""
    (cells,) = gather(expect_trail(trail), [Gap(metric=metric)])
    if trail.roles.cluster is not None:
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


def _grow(
    rows: RowTable, used: IntArray, depth: int, leaf_rows: int, seed: np.random.SeedSequence
) -> tuple[tuple[Condition, ...], IntArray]:
    """The leaves of a tree as conditions, and the leaf of each row."""
    from sklearn.tree import DecisionTreeRegressor

    order = _in_order(rows)
    # Repeating rows makes the smallest leaf count people, not lines of an aggregated table.
    chosen = np.repeat(order, used[order])
    tree = DecisionTreeRegressor(
        max_depth=depth, min_samples_leaf=leaf_rows, random_state=int(seed.generate_state(1)[0])
    )
    tree.fit(rows.matrix[chosen], rows.value[chosen], sample_weight=rows.weights[chosen])
    rules = leaf_rules(tree.tree_, rows.features)
    leaf = np.searchsorted(list(rules), tree.apply(rows.matrix)).astype(np.int64)
    return tuple(Condition(words, formula) for words, formula in rules.values()), leaf


def _how(rows: RowTable, first: IntArray) -> str:
    found, every = int(first.sum()), int(rows.counts.sum())
    said = f"Groups were found on {found:,} rows and tested on {every - found:,} others"
    return said + (f", drawn from {every + rows.left:,}" if rows.left else "")


def _cells(trail: Trail, claim: Gap, rows: RowTable, kept: IntArray, leaf: IntArray) -> Cells:
    """The second part of the rows as cells, one for each leaf."""
    size = len(claim.dimensions())
    weighted = trail.roles.weight is not None
    # sums of weights depend in their last digits on the order in which they are added up
    order = _in_order(rows)

    def total(values: FloatArray) -> FloatArray:
        summed = np.bincount(leaf[order], weights=(kept * values)[order], minlength=size)
        return summed.astype(np.float64)

    w, x = rows.weights, rows.value
    return Cells(
        metric=claim.metric,
        axes=tuple(Axis(dimension=d, levels=(False, True), asked=d) for d in claim.dimensions()),
        index=np.eye(size, dtype=np.int64),
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


def _row_data(rows: RowTable, kept: IntArray, leaf: IntArray) -> bootstrap.RowData:
    used = kept > 0
    return bootstrap.canonical_rows(
        cell=leaf[used], value=rows.value[used], weight=rows.weights[used], count=kept[used]
    )
