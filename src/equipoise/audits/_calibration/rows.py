"""The rows of a calibration audit: outcome, score and features, in an order of their own."""

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import narwhals as nw
import numpy as np

from equipoise._version import __version__
from equipoise.cells import gather
from equipoise.cells.rows import Feature, RowTable, pull_features, renumbered
from equipoise.claims import Metric
from equipoise.claims.claim import Gap
from equipoise.errors import ClaimError, OptionError, TrailError
from equipoise.findings import Provenance
from equipoise.methods.cusum import Null, bernoulli_null, canonical_order, sign_flip_null
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
    residual = _residual(trail)
    cells = gather(trail, [Gap(metric=residual)])[0]
    _check_number(cells.counted, sample)
    allowed = dataclasses.replace(trail, attributes=(*trail.attributes, score))
    # The score comes first, so that rows without one are not counted as lost to a feature.
    outcome = dataclasses.replace(residual, value="label")
    rows = pull_features(
        allowed, outcome, [score, *names], sample=sample, seed=seed, needed=[score]
    )
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
    """Counted by the engine, before any row leaves it."""
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
