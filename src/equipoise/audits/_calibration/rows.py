"""The rows of a calibration audit: outcome, score and features, in an order of their own."""

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from equipoise._version import __version__
from equipoise.audits._trail_checks import rows_alone
from equipoise.cells import gather
from equipoise.cells.features import Feature, FeatureRows, pull_features
from equipoise.claims import Metric, overall
from equipoise.claims.claim import Gap
from equipoise.claims.dimension import Condition
from equipoise.claims.groups import Masks
from equipoise.errors import ClaimError, OptionError, TrailError
from equipoise.findings import Provenance
from equipoise.methods.arrays import FloatArray, IntArray
from equipoise.methods.cusum import canonical_order
from equipoise.trail import Trail
from equipoise.trail.roles import is_text

#: More rows than this are not audited without being asked for a sample.
MAX_AUDITED = 200_000


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

    def __len__(self) -> int:
        return len(self.outcome)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns behind the inputs, in order."""
        return tuple(dict.fromkeys(feature.column for feature in self.features))

    def inputs(self, column: str) -> IntArray:
        """Positions of the inputs that come from a column."""
        return np.flatnonzero([feature.column == column for feature in self.features])


def pull_audit_rows(
    trail: Trail,
    features: Any,
    sample: int | None,
    seed: np.random.SeedSequence,
    number: int | None,
) -> AuditRows:
    """Fetch the rows, check them, and sort them; draw a sample if one is asked for."""
    score = _score_of(trail)
    names = _feature_names(trail, features, score)
    residual = _residual(trail)
    cells = gather(trail, [_everyone(residual)])[0]
    allowed = dataclasses.replace(trail, attributes=(*trail.attributes, score))
    # The score comes first, so that rows without one are not counted as lost to a feature.
    outcome = dataclasses.replace(residual, value="label")
    rows = pull_features(allowed, outcome, [score, *names], sample=sample, seed=seed)
    lost = {why: n for why, n in rows.missing.items() if why != f"missing {score}"}
    repeated = np.repeat(np.arange(len(rows.value)), rows.count)
    repeated = repeated[canonical_order(*rows.matrix[repeated].T, rows.value[repeated])]
    _check_values(rows, repeated)
    binary = bool(np.isin(rows.value[repeated], (0.0, 1.0)).all())
    _check_scores(rows.matrix[repeated, 0], binary, score)
    kept = _sampled(repeated, sample, seed)
    unused = repeated.size - kept.size + rows.left
    return AuditRows(
        outcome=rows.value[kept],
        score=rows.matrix[kept, 0],
        matrix=rows.matrix[kept],
        features=rows.features,
        binary=binary,
        provenance=Provenance(
            version=__version__,
            source=trail.source,
            scanned=cells.scanned,
            counted=kept.size,
            excluded={**cells.excluded, **lost, **_not_sampled(unused)},
            ineligible=0,
            cells=kept.size,
            fingerprint=_digest(rows, repeated),
            seed=number,
        ),
    )


def _score_of(trail: Any) -> str:
    checked = rows_alone(trail, "A calibration audit counts independent rows")
    checked.roles.column("label")
    return checked.roles.column("score")


def _feature_names(trail: Trail, features: Any, score: str) -> list[str]:
    asked = trail.attributes if features is None else features
    if isinstance(asked, str) or not isinstance(asked, Sequence) or not asked:
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


def _everyone(metric: Metric) -> Gap:
    groups = Masks(conditions=(Condition("everyone", "1 == 1"),))
    return Gap(metric=metric, across=groups, target=overall())


def _check_values(rows: FeatureRows, repeated: IntArray) -> None:
    if repeated.size == 0:
        raise ClaimError("No row has a label, a score and every feature.")
    infinite = ~np.isfinite(rows.matrix).all(axis=1) | ~np.isfinite(rows.value)
    if infinite[repeated].any():
        raise TrailError("Labels, scores and features must be finite; some are infinite.")
    found = np.unique(rows.value[repeated])
    if found.size == 2 and found.tolist() != [0.0, 1.0]:
        raise TrailError(
            f"The label has two values, {found[0]:g} and {found[1]:g}. Pass positive=… to "
            "equipoise.read to say which counts as 1."
        )


def _check_scores(score: FloatArray, binary: bool, column: str) -> None:
    outside = int(np.count_nonzero((score < 0) | (score > 1)))
    if binary and outside:
        raise TrailError(
            f"The score column {column!r} must hold probabilities, since labels are 0 and 1; "
            f"{outside:,} of {score.size:,} rows lie outside 0 to 1 "
            f"(from {score.min():g} to {score.max():g}). Rescale it, or name another column."
        )


def _sampled(rows: IntArray, sample: int | None, seed: np.random.SeedSequence) -> IntArray:
    if sample is None and rows.size > MAX_AUDITED:
        raise TrailError(
            f"A calibration audit fits models to single rows, and there are {rows.size:,}, more "
            f"than {MAX_AUDITED:,}. Pass sample={MAX_AUDITED} to audit that many, drawn at random."
        )
    if sample is None or rows.size <= sample:
        return rows
    return rows[np.sort(np.random.default_rng(seed).permutation(rows.size)[:sample])]


def _not_sampled(rows: int) -> dict[str, int]:
    return {"not sampled": rows} if rows else {}


def _digest(rows: FeatureRows, order: IntArray) -> str:
    # rounded, and without the sign of zero, so that engines agree
    table = np.column_stack([rows.matrix, rows.value])[order]
    return hashlib.sha256((np.round(table, 9) + 0.0).tobytes()).hexdigest()
