"""`monitor`: what it asks, what it says, and that its readings keep their words."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.findings import State, Verdict, from_json
from equipoise.methods.sequential import e_bh

CLAIM = eq.gap("selection_rate", across="g", target="complement")


def table(rates: Any, rows: int = 60, seed: int = 1, times: int = 12) -> pl.DataFrame:
    """A stream of months in which group a has one rate after another, and b a half."""
    rng = np.random.default_rng(seed)
    rates = np.broadcast_to(rates, (times,))
    parts = [
        pl.DataFrame(
            {
                "month": [f"2026-{i + 1:02d}"] * 2 * rows,
                "day": [f"2026-{i + 1:02d}-{1 + j % 28:02d}" for j in range(2 * rows)],
                "g": ["a"] * rows + ["b"] * rows,
                "hired": np.concatenate([rng.random(rows) < rate, rng.random(rows) < 0.5]) * 1,
            }
        )
        for i, rate in enumerate(rates)
    ]
    return pl.concat(parts)


def watched(frame: pl.DataFrame, claim: Any = CLAIM, **options: Any) -> Any:
    return eq.monitor(frame, claim, prediction="hired", **{"period": "month", **options})


def test_an_alarm_has_a_date_and_quiet_has_none() -> None:
    found = watched(table([0.5] * 5 + [0.1] * 7), below=-0.1)
    a, b = found.ask(g="a"), found.ask(g="b")
    assert a.alarm
    assert a.state is State.ALARM
    assert "2026-06" <= a.raised <= "2026-12"
    assert not b.alarm
    assert b.raised is None
    assert b.state is State.QUIET
    assert found.conclusion is Verdict.EXCEEDED
    assert [row.group for row in found.alarms] == ["a"]
    assert len(a.history) == len(found.periods) == 12
    assert a.history[-1] == pytest.approx(np.log10(a.evidence), abs=1e-3)
    said = " ".join(found.sentences())
    assert f"in alarm since {a.raised}" in said
    assert "however often one looks" in said
    assert from_json(found.to_json()) == found


def test_nothing_wrong_is_quiet_and_no_proof() -> None:
    found = watched(table(0.5), outside=(-0.2, 0.2))
    assert not found.alarms
    assert found.conclusion is Verdict.UNDETERMINED
    assert found.silent
    assert "not evidence that there is none" in found.sentences()[0]
    assert "would most likely have been found" in " ".join(found.sentences())


def test_a_tolerance_can_be_shown_to_be_kept() -> None:
    found = watched(table(0.5, rows=600), tolerance=0.15)
    assert found.conclusion is Verdict.KEPT
    assert {row.state for row in found} == {State.KEPT}
    assert "if nothing drifts" in " ".join(found.sentences())
    small = watched(table(0.5, rows=20), tolerance=0.15)
    assert small.conclusion is Verdict.UNDETERMINED
    relative = eq.ratio("selection_rate", across="g", target=eq.reference(g="b"))
    found = watched(table(0.5, rows=600), relative, tolerance=0.7)
    assert found.ask(g="a").state is State.KEPT
    assert found.ask(g="b").note == "the group is its own target"


def test_days_become_weeks_months_quarters() -> None:
    frame = table([0.5] * 5 + [0.1] * 7)
    by_month = watched(frame, below=-0.1, time="day", period="month")
    assert by_month.rows == watched(frame, below=-0.1).rows
    assert watched(frame, time="day", period="quarter").periods == tuple(
        f"2026-Q{i}" for i in range(1, 5)
    )
    assert watched(frame, time="day", period="year").batches == 1
    dated = frame.with_columns(pl.col("day").str.to_date())
    moments = frame.with_columns(pl.col("day").str.to_datetime("%Y-%m-%d"))
    for other in (dated, moments, dated.to_pandas(), moments.to_arrow()):
        again = eq.monitor(other, CLAIM, prediction="hired", below=-0.1, time="day", period="month")
        assert again.rows == by_month.rows
        assert again.provenance.scanned == len(frame)


def test_rows_without_a_period_are_counted_and_left_out() -> None:
    frame = table(0.5).with_columns(
        month=pl.when(pl.arange(0, pl.len()) % 10 == 0).then(None).otherwise(pl.col("month"))
    )
    found = watched(frame)
    assert found.provenance.excluded == {"missing period": len(frame) // 10}
    assert found.provenance.scanned == len(frame)


def test_planned_looks_find_more_and_refuse_what_is_too_small() -> None:
    frame = table(0.38, rows=100)
    planned = watched(frame, below=0.0, looks=12, rng=1)
    ever = watched(frame, below=0.0)
    assert planned.ask(g="a").alarm
    assert planned.ask(g="a").raised <= (ever.ask(g="a").raised or "9")
    assert planned.ask(g="a").upper < 0
    assert planned == watched(frame, below=0.0, looks=12, rng=1)
    with pytest.raises(eq.OptionError, match="12 batches, and 6 looks"):
        watched(frame, looks=6)
    with pytest.raises(eq.OptionError, match="reading='ever' is exact"):
        watched(table(0.5, rows=1), looks=12)


def test_what_began_lately_is_found_sooner_by_the_reading_for_it() -> None:
    frame = table([0.6] * 30 + [0.2] * 10, rows=50, times=40)
    frame = frame.with_columns(month=pl.int_range(pl.len()) // 100)
    lately = watched(frame, below=-0.1, reading="lately", run_length=50)
    ever = watched(frame, below=-0.1)
    assert lately.ask(g="a").alarm
    assert int(lately.ask(g="a").raised) >= 30
    assert ever.ask(g="a").raised is None or int(ever.ask(g="a").raised) > int(
        lately.ask(g="a").raised
    )
    assert "at least 50 batches apart" in lately.guarantee


def test_a_window_bounds_the_present() -> None:
    frame = table([0.5] * 6 + [0.1] * 6, rows=200)
    whole, recent = watched(frame), watched(frame, window=6)
    assert recent.ask(g="a").upper < -0.3 < whole.ask(g="a").upper
    assert "last 6 batches" in recent.assumptions[-1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"period": None}, "how rows form batches"),
        ({"time": "day", "period": "moon"}, "period"),
        ({"time": "g", "period": "month"}, "must hold dates"),
        ({"period": "mnth"}, "mnth"),
        ({"reading": "planned"}, "needs looks="),
        ({"reading": "sometimes"}, "reading"),
        ({"looks": 5, "run_length": 5}, "belongs to"),
        ({"reading": "ever", "looks": 20}, "belongs to reading='planned'"),
        ({"tolerance": 0.1, "above": 0.1}, "Pass one of"),
        ({"tolerance": -0.1}, "above 0"),
        ({"level": 95}, "level"),
        ({"above": 10}, "10 points are 0.1"),
        ({"window": 0}, "window"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_words(options: dict[str, Any], said: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=said):
        watched(table(0.5, rows=10), **options)


def test_other_metrics_say_how_far_they_can_be_trusted() -> None:
    rng = np.random.default_rng(3)
    rows = 2400
    frame = pl.DataFrame(
        {
            "month": np.repeat(np.arange(12), rows // 12),
            "g": rng.choice(["a", "b"], rows),
            "w": rng.random(rows) + 0.5,
            "home": rng.integers(0, 600, rows),
            "loss": rng.beta(2, 5, rows),
        }
    )
    frame = frame.with_columns(loss=pl.col("loss") + 0.2 * (pl.col("g") == "a"))
    plain = eq.metric("loss", "loss")
    bounded = plain.clip(0, 1.2)
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (bounded, {}, "bounded metric"),
        (plain, {}, "a metric without bounds"),
        (bounded, {"weight": "w"}, "weights"),
        (bounded, {"cluster": "home"}, "clusters"),
    ]
    for metric, roles, word in cases:
        claim = eq.gap(metric, across="g", target="complement")
        found = eq.monitor(frame, claim, above=0.05, period="month", **roles)
        assert [row.group for row in found.alarms] == ["a"], word
        assert any(word in one for one in found.assumptions)
        kind = "exact" if word == "bounded metric" else "asymptotic"
        assert any(one.startswith(kind) for one in found.assumptions)
        row = found.ask(g="a")
        assert 0.05 <= row.lower <= 0.2 <= row.upper <= 0.35


def test_e_bh_after_every_batch() -> None:
    told = np.log(np.array([[10.0, 1.0], [50.0, 1.0], [50.0, 25.0], [45.0, 18.0]]) / 2)
    alarms, needed = e_bh(told, 0.05)
    assert alarms.tolist() == [[False, False], [True, False], [True, True], [True, False]]
    assert np.exp(needed).round(6).tolist() == [20.0, 10.0]
