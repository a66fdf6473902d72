"""Bounds and p-values of single limits, written out by hand."""

import numpy as np

from equipoise.methods.transport.limits import DrawnLimit

DRAWS = np.array([-2.0, -1.0, 0.0, 1.0, 3.0])


def test_the_sample_counts_among_its_draws() -> None:
    limit = DrawnLimit(value=0.5, n=4, draws=DRAWS)
    # √n (value − delta) = 2 × 0.5 = 1 is reached by two draws from above, and by four from below
    assert limit.p_above(0.0) == (1 + 2) / 6
    assert limit.p_below(0.0) == (1 + 4) / 6
    assert limit.p_above(-10.0) == 1 / 6


def test_the_upper_end_takes_away_the_lower_quantile() -> None:
    limit = DrawnLimit(value=0.5, n=4, draws=DRAWS)
    assert limit.upper(0.2) == 0.5 + 2.0 / 2
    assert limit.lower(0.2) == 0.5 - 1.0 / 2
