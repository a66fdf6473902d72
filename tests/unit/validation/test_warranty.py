"""The recorded figures of the warranty keep their word; those known not to are named with a reason.

The figures are measured by `make validate` or `make validate-full`; this test reads them.
"""

from typing import Any

import pytest
from scipy.special import bdtrc
from validation.warranty import collected

ROWS: list[dict[str, Any]] = collected.rows()
ERRORS = [row for row in ROWS if row["measures"] == "errors"]


def place(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(row[name] for name in collected.COLUMNS[:4])


@pytest.mark.parametrize("audit", sorted({row["audit"] for row in ROWS}))
def test_no_figure_leaves_its_band(audit: str) -> None:
    for row in ERRORS:
        if row["audit"] == audit:
            errors = round(row["rate"] * row["worlds"])
            chance = bdtrc(errors - 1, row["worlds"], row["nominal"]) if errors else 1.0
            # what is known to fail must fail, or it is to be struck off the list
            assert (chance >= 1e-4) != (place(row) in collected.KNOWN), (place(row), row["rate"])


def test_what_is_known_to_fail_was_measured() -> None:
    assert set(collected.KNOWN) <= {place(row) for row in ERRORS}
    assert collected.holds()


def test_a_figure_out_of_its_band_breaks_the_warranty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collected, "KNOWN", {})
    assert not collected.holds()
    assert any("reason not known" in row["keeps its word"] for row in collected.rows())


def test_the_studies_cover_every_audit_target_and_world() -> None:
    assert {row["audit"] for row in ROWS} == {
        *("describe", "flag", "certify", "certificates", "joint_test", "discover"),
        *("calibration", "shift", "summarize", "individual", "compare"),
    }
    grouped = [row for row in ROWS if row["audit"] in ("certify", "flag", "certificates")]
    targets = {"constant", "overall", "reference", "complement"}
    assert {row["target"] for row in grouped} == targets
    worlds = {row["world"] for row in ROWS}
    main = {"null", "uneven", "small groups, rare", "skewed", "clustered", "weighted", "planted"}
    assert main <= worlds
    assert {"40 overlapping, boundary, 2,000 rows", "edge of 0.025, 500 rows"} <= worlds


def test_what_is_planted_is_found_by_the_defaults() -> None:
    found = {
        (row["audit"], row["target"]): row["rate"]
        for row in ROWS
        if row["world"] == "planted" and row["method"] == "default"
    }
    assert min(found.values()) > 0.2
