"""The tests of strong calibration by name: one statistic with different detectors."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from equipoise._validate import fraction, known_name, real, whole
from equipoise.errors import OptionError
from equipoise.methods import cusum
from equipoise.methods.arrays import FloatArray
from equipoise.methods.cusum import Null, Scale, Side

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
    """What the caller asks for, checked."""

    numeric: bool
    tolerance: float
    side: cusum.Side
    level: float
    method: str
    test: CalibrationTest
    folds: int
    split: float | None
    least: float | None
    bins: int
    draws: int
    importance: int
    sample: int | None


def options_of(
    *,
    tolerance: Any,
    side: Any,
    level: Any,
    method: Any,
    folds: Any,
    split: Any,
    least: Any,
    bins: Any,
    draws: Any,
    importance: Any,
    sample: Any,
    numeric: Any,
) -> Options:
    """Check every option before the table is read."""
    test = TESTS[known_name("calibration method", method, TESTS)]
    if real("tolerance", tolerance) < 0:
        raise OptionError(f"tolerance must be zero or more; got {tolerance!r}.")
    if least is not None and not 0 <= real("min_prevalence", least) < 1:
        raise OptionError(f"min_prevalence must be at least 0 and below 1; got {least!r}.")
    if split is not None:
        fraction("split", split)
    if not isinstance(numeric, bool):
        raise OptionError(f"numeric must be True or False; got {numeric!r}.")
    return Options(
        numeric=numeric,
        tolerance=float(tolerance),
        side=cusum.Side(known_name("side", side, [str(s) for s in cusum.Side])),
        level=fraction("level", level),
        method=method,
        test=test,
        folds=whole("folds", folds, least=2),
        split=test.split if split is None else split,
        least=least,
        bins=whole("bins", bins, least=2),
        draws=whole("draws", draws, least=20),
        importance=whole("importance", importance, least=0),
        sample=None if sample is None else whole("sample", sample),
    )
