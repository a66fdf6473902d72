"""De-biasing "bias" measurement (Lum, Zhang and Bower, 2022): Figure 6, race, on the Adult data.

The ends of the double-corrected 95 % intervals for the between-group variance, known to two or
three figures. With 20,000 resamples their Monte-Carlo error is below two per cent.
"""

import pytest

import equipoise as eq

PUBLISHED = {
    "true_positive_rate": (0.0, 0.036),
    "false_positive_rate": (0.00053, 0.00229),
    "selection_rate": (0.0037, 0.0102),
}


@pytest.mark.parametrize("metric", PUBLISHED)
def test_double_corrected_intervals_by_race(metric: str) -> None:
    found = eq.summarize(
        eq.datasets.adult_predictions(),
        metric,
        across="race",
        measures="variance",
        resamples=20_000,
        rng=6,
    )
    assert found.variance is not None
    assert found.variance.double_corrected == pytest.approx(PUBLISHED[metric], rel=0.05, abs=2e-5)


def test_the_uncorrected_interval_is_higher_and_never_zero() -> None:
    found = eq.summarize(
        eq.datasets.adult_predictions(), "true_positive_rate", across="race", rng=6
    )
    assert found.variance is not None
    assert found.variance.uncorrected[0] > 0 == found.variance.double_corrected[0]
    assert found.variance.uncorrected[1] > found.variance.double_corrected[1]
    assert found.variance.recommended[0] == 0
