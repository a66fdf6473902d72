"""The bundled counts give the numbers that are published from the same tables."""

import pytest

import equipoise as eq


def overall(metric: str, **options: bool | int) -> tuple[float, int]:
    found = eq.describe(eq.datasets.compas(**options), eq.gap(metric, across="sex"))  # type: ignore[arg-type]
    return found.overall, found.provenance.counted


def test_compas_sizes() -> None:
    assert overall("accuracy")[1] == 6172
    assert overall("accuracy", everyone=True)[1] == 7214


def test_compas_rates_by_race_as_published() -> None:
    # Everyone, medium or high risk (5 and over): 44.9 % and 23.5 % false positives.
    trail = eq.datasets.compas(everyone=True)
    found = eq.describe(trail, eq.gap("false_positive_rate", across="race"))
    rates = {row.group: row.value for row in found.rows}
    assert rates["African-American"] == pytest.approx(0.4485, abs=5e-4)
    assert rates["Caucasian"] == pytest.approx(0.2345, abs=5e-4)
    missed = eq.describe(trail, eq.gap("false_negative_rate", across="race"))
    rates = {row.group: row.value for row in missed.rows}
    assert rates["African-American"] == pytest.approx(0.2799, abs=5e-4)
    assert rates["Caucasian"] == pytest.approx(0.4772, abs=5e-4)


def test_a_higher_threshold_flags_fewer() -> None:
    shares = [overall("selection_rate", threshold=t)[0] for t in range(1, 11)]
    assert shares[0] == 1.0
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize("wrong", [0, 11, 5.0, True, "5"])
def test_threshold_is_a_decile(wrong: object) -> None:
    with pytest.raises(eq.OptionError, match="threshold must be a decile from 1 to 10; got"):
        eq.datasets.compas(threshold=wrong)  # type: ignore[arg-type]


def test_adult_predictions() -> None:
    trail = eq.datasets.adult_predictions()
    found = eq.describe(trail, eq.gap("accuracy", across=("race", "sex")))
    assert found.provenance.counted > 10_000
    assert {"Male", "Female"} <= {row.group for row in found.rows}
    assert 0.7 < found.overall < 0.95
