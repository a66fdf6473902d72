"""The tests of strong calibration by name, and the rows they look at.

The rows hold outcome, score and features, in an order of their own; every test is one statistic
with different detectors.
"""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import narwhals as nw
import numpy as np

from equipoise._validate import confidence, fraction, known_name, real, whole, yes_or_no
from equipoise._version import __version__
from equipoise.cells.groups import Feature
from equipoise.cells.rows import (
    RowTable,
    chosen_features,
    feature_keys,
    one_look,
    pull_features,
    renumbered,
)
from equipoise.claims import Metric
from equipoise.claims.claim import Gap
from equipoise.errors import ClaimError, OptionError, TrailError
from equipoise.findings import Provenance
from equipoise.methods import cusum
from equipoise.methods.cusum import (
    BinSets,
    Null,
    Scale,
    Side,
    bernoulli_null,
    canonical_order,
    sign_flip_null,
)
from equipoise.methods.cusum.testing import Statistic
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray
from equipoise.trail import Trail
from equipoise.trail.trail import expect_trail, is_text

#: More rows than this are not audited without being asked for a sample.
MAX_AUDITED = 200_000
#: Labels with more than two and up to so many whole numbers may be classes or a quantity.
MAX_CLASSES = 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuditRows:
    """Rows sorted by their values, so that the order of the table does not matter."""

    outcome: FloatArray
    """What happened: 0 or 1, or a number."""
    score: FloatArray
    """What the model predicted."""
    matrix: FloatArray
    """Rows × inputs of the residual models; the score comes first."""
    features: tuple[Feature, ...]
    """What each input is."""
    binary: bool
    """Whether outcomes are 0 or 1."""
    provenance: Provenance
    """Where the rows come from."""
    weight: FloatArray | None = None
    """Sampling weights, if the trail has any."""
    cluster: IntArray | None = None
    """Number of each row's cluster, if the trail has any."""

    def __len__(self) -> int:
        return len(self.outcome)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns behind the inputs, in order."""
        return tuple(dict.fromkeys(feature.column for feature in self.features))

    def inputs(self, column: str) -> IntArray:
        """Positions of the inputs that come from a column."""
        return np.flatnonzero([feature.column == column for feature in self.features])


def null_of(rows: AuditRows, chosen: BoolArray | IntArray, tolerance: float) -> Null:
    """Residuals of some rows, and how they are drawn."""
    y, p = rows.outcome[chosen], rows.score[chosen]
    weight = None if rows.weight is None else rows.weight[chosen]
    if rows.binary and rows.cluster is None:
        return bernoulli_null(y, p, tolerance=tolerance, weight=weight)
    # coins of one cluster are not independent, so its residuals change signs together
    cluster = None if rows.cluster is None else renumbered(rows.cluster[chosen])
    return sign_flip_null(
        y, p, tolerance=tolerance, weight=weight, cluster=cluster, risks=rows.binary
    )


def pull_audit_rows(
    trail: Trail,
    features: Sequence[str] | None,
    sample: int | None,
    seed: np.random.SeedSequence,
    number: int | None,
    *,
    numeric: bool = False,
) -> AuditRows:
    """Fetch the rows, check them, and sort them; draw a sample if one is asked for."""
    expect_trail(trail).roles.column("label")
    score = trail.roles.column("score")
    names = _feature_names(trail, features, score)
    asked = Gap(metric=_residual(trail))
    outcome = dataclasses.replace(asked.metric, value="label")
    allowed = dataclasses.replace(trail, attributes=(*trail.attributes, score))
    # The score comes first, so that rows without one are not counted as lost to a feature.
    wanted = chosen_features(allowed, [score, *names])
    further = feature_keys(allowed, wanted)
    with one_look(allowed, [asked], outcome, further, most=MAX_AUDITED, sample=sample) as look:
        cells = look.cells([asked])[0]
        _check_number(cells.counted, sample)
        rows = pull_features(look, wanted, sample=sample, seed=seed, needed=[score])
    lost = {why: n for why, n in rows.missing.items() if why != f"missing {score}"}
    rows = rows.part(rows.one_by_one(np.arange(len(rows))))
    tied = [] if rows.cluster is None else [rows.cluster.astype(np.float64)]
    rows = rows.part(canonical_order(*rows.matrix.T, rows.value, rows.weights, *tied))
    binary = _check_values(rows)
    if not numeric:
        _check_classes(rows.value, trail.roles.column("label"))
    _check_scores(rows.matrix[:, 0], binary, score)
    drawn = rows.part(_drawn(len(rows), sample, seed))
    # a row of no weight says nothing
    kept = drawn.part(drawn.weights > 0)
    if not len(kept):
        raise ClaimError("No row has a label, a score and a weight above 0.")
    unused = len(rows) - len(kept) + rows.left
    return AuditRows(
        outcome=kept.value,
        score=kept.matrix[:, 0],
        matrix=kept.matrix,
        features=kept.features,
        binary=binary,
        weight=kept.weight,
        cluster=None if kept.cluster is None else renumbered(kept.cluster),
        provenance=Provenance(
            version=__version__,
            source=trail.source,
            scanned=cells.scanned,
            counted=len(kept),
            excluded={**cells.excluded, **lost, **({"not sampled": unused} if unused else {})},
            ineligible=0,
            cells=len(kept),
            fingerprint=_digest(rows),
            seed=number,
        ),
    )


def _feature_names(trail: Trail, features: object, score: str) -> list[str]:
    asked = trail.attributes if features is None else features
    if isinstance(asked, str | bytes) or not isinstance(asked, Sequence) or not asked:
        raise OptionError(
            f"features must be a list of columns, such as ['age', 'sex']; got {features!r}."
        )
    if trail.roles.column("label") in asked:
        raise ClaimError(
            f"{trail.roles.column('label')!r} is the label. Subgroups are described by what is "
            "known before the outcome; leave it out of features=…."
        )
    return [name for name in asked if name != score]


def _residual(trail: Trail) -> Metric:
    column = trail.roles.column("label")
    kind = trail.schema[column]
    two_valued = "label" in trail.positive or is_text(kind) or isinstance(kind, nw.Boolean)
    binary = ("label",) if two_valued else ()
    return Metric(name="residual", value="label - score", binary=binary, by_role=True)


def _check_values(rows: RowTable) -> bool:
    """Whether all labels are 0 or 1; an error if some values cannot be used."""
    if not len(rows):
        raise ClaimError("No row has both a label and a score.")
    if not (np.isfinite(rows.matrix).all() and np.isfinite(rows.value).all()):
        raise TrailError("Labels, scores and features must be finite; some are infinite.")
    found = np.unique(rows.value)
    if found.size == 2 and found.tolist() != [0.0, 1.0]:
        raise TrailError(
            f"The label has two values, {found[0]:g} and {found[1]:g}. Pass positive=… to "
            "equipoise.read to say which counts as 1."
        )
    return bool(np.isin(found, (0.0, 1.0)).all())


def _check_classes(label: FloatArray, column: str) -> None:
    found = np.unique(label)
    if 2 < found.size <= MAX_CLASSES and (found == np.round(found)).all():
        several = ", ".join(f"{value:g}" for value in found[:6]) + (", …" if found.size > 6 else "")
        raise ClaimError(
            f"The label {column!r} has {found.size} values: {several}. If they are classes, pass "
            "classes={value: score column, …}, and each class is tested against the rest. If they "
            "are a quantity whose mean the score predicts, pass numeric=True."
        )


def _check_scores(score: FloatArray, binary: bool, column: str) -> None:
    outside = int(np.count_nonzero((score < 0) | (score > 1)))
    if binary and outside:
        raise TrailError(
            f"The score column {column!r} must hold probabilities, since labels are 0 and 1; "
            f"{outside:,} of {score.size:,} rows lie outside 0 to 1 "
            f"(from {score.min():g} to {score.max():g}). Rescale it, or name another column."
        )


def _check_number(rows: int, sample: int | None) -> None:
    """Counted before more rows than can be audited are fetched."""
    if sample is None and rows > MAX_AUDITED:
        raise TrailError(
            f"A calibration audit needs single rows, and there are {rows:,}, more than "
            f"{MAX_AUDITED:,}. Pass sample={MAX_AUDITED} to audit that many, drawn at random."
        )


def _drawn(rows: int, sample: int | None, seed: np.random.SeedSequence) -> IntArray:
    """Which rows are audited, in their order: people one by one, of whom each counts alone."""
    some = rows if sample is None else sample
    if some >= rows:
        return np.arange(rows)
    return np.sort(np.random.default_rng(seed).permutation(rows)[:some])


def _digest(rows: RowTable) -> str:
    # rounded, and without the sign of zero, so that engines agree
    weight = [] if (rows.weights == 1).all() else [rows.weights]
    table = np.column_stack([rows.matrix, rows.value, *weight])
    return hashlib.sha256((np.round(table, 9) + 0.0).tobytes()).hexdigest()


# --- The tests of strong calibration by name: one statistic with different detectors ---

#: Share of the rows below which the standardised statistic does not look: sums over a handful of
#: rows are too skewed to be measured in standard deviations.
STANDARD_PREVALENCE = 0.02
#: Share of the rows that residual models of the portfolio learn from; the others test them.
LEARNING_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationTest:
    """One way to test."""

    axis: Literal["residuals", "score"] = "residuals"
    """Whether rows are ordered by predicted residuals, or along the score without any model."""
    statistic: Literal["cusum", "last", "bins"] = "cusum"
    """All thresholds, only the whole set of predicted violations, or chi-squared over bins."""
    scales: tuple[Scale, ...] = (Scale.RAW,)
    """How sums of scores are made comparable; several ways are tested together."""
    corrected: bool = False
    """Whether noise that folds share is allowed for."""
    split: float | None = None
    """Share of the rows that models are fitted on, where folds are not used."""
    portfolio: bool = False
    """Whether tests that look at all rows at once stand beside the residual models."""

    @property
    def adaptive(self) -> bool:
        """Whether residual models are needed."""
        return self.axis == "residuals"

    def prevalence(self, asked: float | None, scale: Scale) -> float:
        """The smallest share of rows that a subgroup must exceed."""
        if asked is not None:
            return asked
        return 0.0 if scale is Scale.RAW else STANDARD_PREVALENCE

    def build(
        self,
        residuals: FloatArray | None,
        null: Null,
        side: Side,
        least: float | None,
        bins: int,
        every: FloatArray | None = None,
    ) -> tuple[cusum.Cusum | cusum.Binned, ...]:
        """The statistics, from predicted residuals where there are any.

        ``every`` holds what the models of each fold predict for all rows: folds × models × rows.
        """
        if self.statistic == "bins":
            axis = null.predicted if residuals is None else residuals
            return (cusum.binned(cusum.quantile_bins(axis, bins), null, side),)
        if residuals is None:
            weights = cusum.recalibration_axes(null, side)
        else:
            weights = cusum.violations(residuals, null, side)
        noise = None
        if every is not None and self.corrected:
            noise = cusum.fold_noise(np.stack([cusum.violations(r, null, side) for r in every]))
        return tuple(
            cusum.cusum(
                weights,
                null,
                noise=noise,
                scale=scale,
                prevalence=self.prevalence(least, scale),
                thresholds=self.statistic == "cusum",
            )
            for scale in self.scales
        )


TESTS: Mapping[str, CalibrationTest] = {
    "portfolio": CalibrationTest(
        scales=(Scale.STANDARD, Scale.RAW), split=LEARNING_SHARE, portfolio=True
    ),
    "cusum": CalibrationTest(scales=(Scale.STANDARD, Scale.RAW), corrected=True),
    "cusum-standardised": CalibrationTest(scales=(Scale.STANDARD,), corrected=True),
    "cusum-published": CalibrationTest(),
    "simple-score": CalibrationTest(statistic="last"),
    "multicalibration": CalibrationTest(statistic="last", split=0.75),
    "chi-squared": CalibrationTest(statistic="bins"),
    "platt": CalibrationTest(axis="score"),
    "hosmer-lemeshow": CalibrationTest(axis="score", statistic="bins"),
}

#: What each test is, in words.
WORDS: Mapping[str, str] = {
    "portfolio": "portfolio of score tests, scans and learnt subgroups",
    "cusum": "adaptive score CUSUM, standardised and raw sums together",
    "cusum-standardised": "adaptive score CUSUM, standardised",
    "cusum-published": "adaptive score CUSUM, as published",
    "simple-score": "adaptive score test at threshold zero",
    "multicalibration": "multicalibration score test on one split",
    "chi-squared": "adaptive chi-squared test",
    "platt": "score test of Platt's recalibration",
    "hosmer-lemeshow": "Hosmer–Lemeshow test",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the caller asks for, checked before the table is read."""

    numeric: bool
    tolerance: float
    side: str
    level: float
    method: str
    folds: int
    split: float | None
    least: float | None
    bins: int
    draws: int
    importance: int
    sample: int | None

    def __post_init__(self) -> None:
        known_name("calibration method", self.method, TESTS)
        if real("tolerance", self.tolerance) < 0:
            raise OptionError(f"tolerance must be zero or more; got {self.tolerance!r}.")
        if self.least is not None and not 0 <= real("min_prevalence", self.least) < 1:
            raise OptionError(f"min_prevalence must be at least 0 and below 1; got {self.least!r}.")
        if self.split is not None:
            fraction("split", self.split)
        yes_or_no("numeric", self.numeric)
        known_name("side", self.side, [str(s) for s in Side])
        object.__setattr__(self, "level", confidence(self.level))
        object.__setattr__(self, "tolerance", float(self.tolerance))
        if self.split is None:
            object.__setattr__(self, "split", self.test.split)
        whole("folds", self.folds, least=2)
        whole("bins", self.bins, least=2)
        whole("resamples", self.draws, least=20)
        whole("importance", self.importance, least=0)
        if self.sample is not None:
            whole("sample", self.sample)

    @property
    def test(self) -> CalibrationTest:
        """The test of that name."""
        return TESTS[self.method]


#: What the caller asks for is checked when it is put together.
options_of = Options


# --- The portfolio: tests that look at all rows at once, beside subgroups learnt on half of them
#
# Recalibration, a line in every input, scans of one column and of two need nothing learnt, so all
# rows test. The harmonic mean of their tail chances, by shares, is compared with that of every
# draw: exact wherever the draws are, and what two tests see a little of is not lost. What residual
# models learnt is tested on the other half with draws of its own; both answers are put together by
# Bonferroni's inequality, so that nothing needs to be known of how they depend on each other.

#: How much each test's chance counts beside the others. A test of few degrees of freedom loses
#: more power by a smaller share than a scan of thousands of sets, so it has a larger one.
SHARES: Mapping[str, float] = {
    "recalibration": 1.2,
    "line": 3.0,
    "one column": 0.7,
    "two columns": 0.5,
    # no draw has such an outcome, so that a large share costs the others nothing
    "impossible": 10.0,
}
#: What each test is, in words.
COMPONENTS: Mapping[str, str] = {
    "recalibration": "level and slope along the score",
    "line": "a line in every input",
    "one column": "half-lines and levels of one column",
    "two columns": "corners and crosses of two columns",
    "impossible": "outcomes that the score rules out",
    "learnt": "subgroups learnt on other rows",
}
#: The part of the error that goes to what residual models learnt.
LEARNT_SHARE = 0.05
#: Columns of text with more levels than this are scanned, but are no inputs of the line.
MAX_LINE_LEVELS = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Impossible:
    """The statistic: how many outcomes the null hypothesis gives no chance at all."""

    where: IntArray
    signs: IntArray

    def values(self, residuals: FloatArray) -> FloatArray:
        """No draw has such an outcome."""
        return np.zeros(len(residuals))

    def observed(self, null: Null) -> float:
        """How many there are."""
        return float(self.where.size)

    def best(self, null: Null) -> cusum.Best | None:
        """The rows themselves."""
        pieces = cusum.pieces_of(self.where, self.signs.astype(np.float64))
        return cusum.Best(model=0, members=self.where, threshold=0.0, pieces=pieces)


def statistics_of(rows: AuditRows, null: Null, side: Side) -> dict[str, Statistic]:
    """The tests that look at all rows, by name; those with nothing to look at are left out."""
    pairs = cusum.pair_shares(len(rows.columns))
    found: dict[str, Statistic | None] = {
        "recalibration": cusum.axes(recalibration_inputs(rows), null, side),
        "line": line_statistic(rows, null, side),
        "one column": cusum.scan(partitions(rows, cusum.TAILS), null, pairs=False, side=side),
        "two columns": cusum.scan(partitions(rows, pairs), null, pairs=True, side=side),
        "impossible": _impossible(null, side),
    }
    kept = {name: test for name, test in found.items() if test is not None}
    # outcomes that cannot vary, or next to no rows: there is nothing to look at, and p is 1
    return kept or {"recalibration": cusum.cusum(np.zeros((1, len(null))), null)}


def recalibration_inputs(rows: AuditRows) -> FloatArray:
    """Level and slope of Platt's recalibration: a constant, and the log odds of the score."""
    risk = cusum.risk_axis(rows.score, risks=rows.binary)
    return np.column_stack([np.ones(len(rows)), risk])


def line_statistic(
    rows: AuditRows, null: Null, side: Side, without: str | None = None
) -> cusum.Axes | None:
    """Numbers, one of two levels, and what is missing, after level and slope."""
    score, *others = rows.columns
    inputs = recalibration_inputs(rows)[:, : 1 if without == score else 2]
    kept = []
    for column in others:
        at = rows.inputs(column)
        text = [i for i in at if rows.features[i].level is not None]
        if column != without and len(text) <= MAX_LINE_LEVELS:
            kept += [int(i) for i in at]
    return cusum.axes(np.column_stack([inputs, rows.matrix[:, kept]]), null, side)


def partitions(rows: AuditRows, shares: tuple[float, ...]) -> list[BinSets]:
    """Every column in half-lines or levels, the score first."""
    return [_partition(rows, column, shares) for column in rows.columns]


def _partition(rows: AuditRows, column: str, shares: tuple[float, ...]) -> BinSets:
    at = rows.inputs(column)
    first = rows.features[at[0]]
    if first.level is not None:
        return cusum.levels(levels_of_rows(rows, at))
    missing: BoolArray | None = None
    if len(at) > 1:
        missing = rows.matrix[:, at[1]] > 0
    return cusum.half_lines(rows.matrix[:, at[0]], missing, shares)


def levels_of_rows(rows: AuditRows, at: IntArray) -> IntArray:
    """The level of each row; one more where there is none."""
    inside = rows.matrix[:, at]
    return np.where(inside.any(axis=1), inside.argmax(axis=1), len(at)).astype(np.int64)


def sets_in_words(
    rows: AuditRows, sets: tuple[tuple[int, int], ...], parts: Sequence[BinSets]
) -> str:
    """Sets of some columns in words."""
    return " and ".join(_set_words(rows, column, parts[column], s) for column, s in sets)


def _set_words(rows: AuditRows, column: int, part: BinSets, number: int) -> str:
    at = rows.inputs(rows.columns[column])
    feature = rows.features[at[0]]
    cuts = part.cuts.size
    if feature.level is not None:
        level = int(part.singles[number - 2 * cuts]) if number >= 2 * cuts else number
        if level < len(at):
            return str(rows.features[at[level]].rule(0.5, None)[0])
        return f"{feature.column} is missing"
    if number >= 2 * cuts:
        return f"{feature.column} is missing"
    cut = float(f"{part.cuts[number % cuts]:.6g}")
    return str(feature.rule(*((None, cut) if number < cuts else (cut, None)))[0])


def _impossible(null: Null, side: Side) -> Impossible | None:
    n = len(null)
    if not null.exact:
        return None
    under = (null.high <= 0) & (null.observed[:n] > 0) & (side is not Side.OVER)
    over = (null.low >= 1) & (null.observed[n:] < 0) & (side is not Side.UNDER)
    where = np.flatnonzero(under | over)
    if not where.size:
        return None
    return Impossible(where=where, signs=np.where(under[where], 1, -1))
