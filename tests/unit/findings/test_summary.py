import dataclasses
import json
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.findings import Comparison, Summary, from_json

TRAIL = eq.datasets.adult_predictions()
SUMMARY: Any = eq.summarize(TRAIL, eq.false_positive_rate, across="race", rng=7)
CROSS: Any = eq.summarize(TRAIL, eq.true_positive_rate, across=["race", "age_band"], rng=7)
PAIRS: Any = eq.compare(TRAIL, eq.selection_rate, across=["race", "age_band", "sex"], rng=7)


@pytest.mark.parametrize("finding", [SUMMARY, CROSS, PAIRS])
def test_findings_survive_json(finding: Summary | Comparison) -> None:
    again = from_json(finding.to_json())
    assert again == finding
    assert again.sentences() == finding.sentences()
    assert "NaN" not in finding.to_json()


def test_attributes_called_kind_survive_json() -> None:
    frame = pl.DataFrame({"kind": list("ab") * 40, "hit": [0, 1, 1, 1] * 20})
    found = eq.summarize(eq.read(frame, prediction="hit"), "selection_rate", across="kind", rng=1)
    assert from_json(found.to_json()) == found


def test_a_damaged_summary_is_refused() -> None:
    data = json.loads(SUMMARY.to_json())
    data["variance"]["nonsense"] = 1
    with pytest.raises(eq.EquipoiseError, match="'variance' field 'nonsense' does not exist"):
        from_json(json.dumps(data))


def test_frames_have_one_row_per_measure_or_pair() -> None:
    frame = SUMMARY.to_frame("polars")
    assert frame["measure"].to_list() == [row.measure for row in SUMMARY.rows]
    assert {"value", "bias", "corrected", "corrected_raw", "lower", "upper", "p"} <= set(
        frame.columns
    )
    assert PAIRS.to_frame("polars").shape[0] == 3


def test_sentences_explain_themselves() -> None:
    first, second, third, *rest = SUMMARY.sentences()
    sd = SUMMARY.sd
    assert first == (
        "Across 5 groups by race, the false positive rate differs by a standard deviation of "
        f"{100 * sd.corrected:.1f} points (95 % interval {100 * sd.lower:.1f} to "
        f"{100 * sd.upper:.1f}); without correction it would read {100 * sd.value:.1f}."
    )
    assert second.startswith("That the groups differ is shown (p = 0.0")
    assert third.startswith("Highest and lowest group are 9.3 points apart, of which chance")
    assert any("11,208 rows of the bundled Adult counts" in s for s in rest)


def test_no_difference_is_said_not_to_be_shown() -> None:
    rng = np.random.default_rng(5)
    frame = pl.DataFrame({"g": list("abcd") * 60, "hit": rng.integers(0, 2, 240)})
    found = eq.summarize(eq.read(frame, prediction="hit"), "selection_rate", across="g", rng=1)
    assert not found.shown
    assert found.sentences()[1].startswith("A difference between groups is not shown (p = ")


def test_large_groups_that_differ_are_said_to_even_where_small_ones_are_noise() -> None:
    assert CROSS.variance.recommended[0] > 0
    assert CROSS.shown
    assert "That the groups differ is shown" in CROSS.sentences()[1]


def test_text_and_html_show_measures_and_groups() -> None:
    for text in (str(SUMMARY), SUMMARY._repr_html_()):
        assert "max-min difference" in text
        assert "Asian-Pac-Islander" in text
        assert "shrunken" in text
    assert "<td>–</td>" in SUMMARY._repr_html_()
    hostile = dataclasses.replace(SUMMARY, by="<script>")
    assert "<script>" not in hostile._repr_html_()


def _records(chart: Any) -> Any:
    return [record for values in chart.to_dict()["datasets"].values() for record in values]


def test_the_picture_has_both_intervals_of_every_measure() -> None:
    records = _records(SUMMARY.plot())
    assert {(r["measure"], r["series"]) for r in records} >= {
        (row.measure, series)
        for row in (SUMMARY.sd, *SUMMARY.rows)
        for series in ("uncorrected", "corrected")
        if row.measure != "max-min ratio"
    }
    ratio = next(r for r in records if r["measure"] == "max-min ratio")
    assert ratio["note"] == "no upper limit"
    assert ratio["drawn"] == ratio["open"] > ratio["lower"] > ratio["least"] == 1


def test_groups_left_out_stand_below_the_title_of_the_picture() -> None:
    subtitle = " ".join(CROSS.plot().to_dict()["title"]["subtitle"])
    assert "Amer-Indian-Eskimo, 56 to 65 (n = 1)" in subtitle


def test_charts_render() -> None:
    import vl_convert

    for chart in (SUMMARY.plot(), PAIRS.plot(), CROSS.plot()):
        assert vl_convert.vegalite_to_png(chart.to_json())[:4] == b"\x89PNG"
