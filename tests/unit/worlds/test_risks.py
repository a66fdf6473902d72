"""Worlds of risks: their truth is what they say it is."""

import numpy as np
import pytest

from equipoise.worlds import boundary_risks, interaction_risks, segment_risks


def test_scores_are_right_outside_the_corner_and_only_there() -> None:
    table = {name: np.asarray(column) for name, column in interaction_risks(4000, rng=1).items()}
    corner = (table["x1"] < -2) & (table["x2"] > 2)
    assert 0.07 < corner.mean() < 0.11
    assert table["risk"][~corner] == pytest.approx(table["score"][~corner])
    assert np.abs(table["risk"] - table["score"])[corner].mean() > 0.2
    odds = np.log(table["risk"] / (1 - table["risk"]))
    assert odds[corner] == pytest.approx(0.2 * table["x1"][corner])


@pytest.mark.parametrize("tolerance", [0.0, 0.025, 0.2])
def test_everybody_is_at_the_edge(tolerance: float) -> None:
    table = boundary_risks(2000, rng=2, tolerance=tolerance)
    risk, score = np.asarray(table["risk"], dtype=float), np.asarray(table["score"], dtype=float)
    assert risk == pytest.approx(np.minimum(score + tolerance, 1))
    y = np.asarray(table["y"], dtype=float)
    assert abs((y - risk).mean()) < 4 * np.sqrt(0.25 / 2000)


def test_segments_mean_nothing() -> None:
    table = segment_risks(3000, rng=3)
    assert table["risk"] is table["score"]
    assert len(set(table["a"])) == len(set(table["b"])) == 6


def test_an_audited_model_may_be_given_and_seeds_repeat() -> None:
    one, two = (interaction_risks(10, rng=5, score=lambda x: x[:, 0] * 0 + 0.5) for _ in range(2))
    assert np.asarray(one["score"]).tolist() == [0.5] * 10
    assert np.array_equal(one["y"], two["y"])
