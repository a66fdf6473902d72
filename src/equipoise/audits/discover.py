"""`discover`: find groups that nobody named, on one half of the rows; test them on the other."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from equipoise._rng import Rng, seed_of
from equipoise._validate import fraction, known_keywords, whole
from equipoise.audits._groups.bench import Bench, assemble
from equipoise.audits._groups.flags import flag_bench
from equipoise.audits._groups.options import Control, FlagOptions
from equipoise.audits._progress import Progress
from equipoise.cells import Axis, Cells, gather
from equipoise.cells.features import Feature, FeatureRows, draw_sample, pull_features
from equipoise.cells.steady import steady_cells
from equipoise.claims.claim import Gap
from equipoise.claims.dimension import Condition
from equipoise.claims.groups import Masks
from equipoise.claims.metric import Metric, as_metric
from equipoise.claims.target import Reference, Target, as_target, overall
from equipoise.errors import ClaimError, OptionError
from equipoise.findings.finding import Provenance
from equipoise.findings.flags import Flags
from equipoise.methods.arrays import FloatArray, IntArray
from equipoise.methods.published import bootstrap
from equipoise.trail import Trail
from equipoise.trail.trail import expect_trail


@known_keywords
def discover(
    trail: Trail,
    metric: Metric | str,
    *,
    features: Sequence[str],
    target: Any = None,
    above: float | None = None,
    below: float | None = None,
    outside: tuple[float, float] | None = None,
    fdr: float = 0.10,
    control: Control = "bh",
    method: Any = None,
    depth: int = 3,
    leaf_rows: int = 50,
    share: float = 0.5,
    sample: int | None = None,
    rng: Rng = None,
    progress: Progress = None,
) -> Flags:
    """Find groups with unusual performance, and test them on rows that were not used to find them.

    A tree of the metric on ``features`` is grown on a random part of the rows; its leaves are
    groups with readable rules. They are then flagged on the remaining rows, where they are fixed
    in advance, so the guarantee is that of `flag`.

    Parameters
    ----------
    trail, metric
        The audit trail and what is measured.
    features
        Columns the rules may use: numbers and text.
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
    'priors is More than 3 and race is African-American and age is 25 - 45'
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
    measured, compared = as_metric(metric), _compared(target)
    looked_at = _looked_at(trail, measured)
    seed = seed_of(rng)
    rows = pull_features(trail, measured, features, sample=sample, seed=seed.sequence)
    rows = draw_sample(rows, sample, seed.sequence)
    first = _split(rows, share, seed.sequence)
    tree = _grow(rows, first, depth, leaf_rows, seed.sequence)
    bench = _bench(trail, measured, compared, rows, rows.count - first, tree)
    found = flag_bench(bench, options, seed, progress)
    return dataclasses.replace(
        found,
        guarantee=f"{found.guarantee}. {_how(rows, first)}",
        provenance=_provenance(found.provenance, looked_at, rows),
    )


def _compared(target: Any) -> Target:
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


def _provenance(tested: Provenance, looked_at: Cells, rows: FeatureRows) -> Provenance:
    """Where the rows come from: the tested ones are counted, all of the table were looked at."""
    return dataclasses.replace(
        tested,
        scanned=looked_at.scanned,
        excluded={**looked_at.excluded, **rows.missing},
        ineligible=looked_at.ineligible,
    )


def _split(rows: FeatureRows, share: float, seed: np.random.SeedSequence) -> IntArray:
    """How many of the rows each row stands for are used to find groups."""
    # Sorted first, so that the order of the rows in the table does not matter.
    order = np.lexsort((rows.value, *rows.matrix.T))
    drawn = np.empty_like(rows.count)
    drawn[order] = np.random.default_rng(seed).binomial(rows.count[order], share)
    if not 0 < drawn.sum() < rows.count.sum():
        raise ClaimError(f"{int(rows.count.sum()):,} rows are too few to split into two parts.")
    return drawn


def _grow(
    rows: FeatureRows, used: IntArray, depth: int, leaf_rows: int, seed: np.random.SeedSequence
) -> Any:
    from sklearn.tree import DecisionTreeRegressor

    order = np.lexsort((rows.value, *rows.matrix.T))
    times = used[order]
    # Repeating rows makes the smallest leaf count people, not lines of an aggregated table.
    chosen = np.repeat(order, times)
    tree = DecisionTreeRegressor(
        max_depth=depth, min_samples_leaf=leaf_rows, random_state=int(seed.generate_state(1)[0])
    )
    return tree.fit(rows.matrix[chosen], rows.value[chosen], sample_weight=rows.weight[chosen])


def _rules(tree: Any, features: tuple[Feature, ...]) -> list[tuple[int, str, str]]:
    """Each leaf's number, its rule in words and as a formula, in the order of the numbers."""
    found: list[tuple[int, str, str]] = []
    _walk(tree.tree_, features, 0, {}, found)
    return sorted(found)


def _walk(
    tree: Any,
    features: tuple[Feature, ...],
    node: int,
    ranges: dict[int, tuple[float | None, float | None]],
    found: list[tuple[int, str, str]],
) -> None:
    left, right = int(tree.children_left[node]), int(tree.children_right[node])
    if left == right:
        parts = [features[f].rule(low, high) for f, (low, high) in ranges.items()]
        words = " and ".join(part[0] for part in parts) or "everyone"
        found.append((node, words, " and ".join(part[1] for part in parts) or "1 == 1"))
        return
    feature, cut = int(tree.feature[node]), float(tree.threshold[node])
    low, high = ranges.get(feature, (None, None))
    _walk(tree, features, left, {**ranges, feature: (low, cut)}, found)
    _walk(tree, features, right, {**ranges, feature: (cut, high)}, found)


def _bench(
    trail: Trail, metric: Metric, target: Target, rows: FeatureRows, kept: IntArray, tree: Any
) -> Bench:
    """The rows that were kept back, with the leaves as groups that were fixed before them."""
    rules = _rules(tree, rows.features)
    leaf = np.searchsorted([node for node, *_ in rules], tree.apply(rows.matrix)).astype(np.int64)
    conditions = tuple(Condition(words, formula) for _, words, formula in rules)
    claim = Gap(metric=metric, across=Masks(conditions=conditions), target=target)
    cells = steady_cells(_cells(trail, claim, rows, kept, leaf))
    return assemble(claim, cells, lambda: _row_data(rows, kept, leaf))


def _how(rows: FeatureRows, first: IntArray) -> str:
    found, every = int(first.sum()), int(rows.count.sum())
    said = f"Groups were found on {found:,} rows and tested on {every - found:,} others"
    return said + (f", drawn from {every + rows.left:,}" if rows.left else "")


def _cells(trail: Trail, claim: Gap, rows: FeatureRows, kept: IntArray, leaf: IntArray) -> Cells:
    """The second part of the rows as cells, one for each leaf."""
    size = len(claim.dimensions())
    weighted = trail.roles.weight is not None

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(leaf, weights=kept * values, minlength=size).astype(np.float64)

    w, x = rows.weight, rows.value
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


def _row_data(rows: FeatureRows, kept: IntArray, leaf: IntArray) -> bootstrap.RowData:
    used = kept > 0
    return bootstrap.canonical_rows(
        cell=leaf[used], value=rows.value[used], weight=rows.weight[used], count=kept[used]
    )
