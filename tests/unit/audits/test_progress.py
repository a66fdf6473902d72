"""Progress: told in order, interruptible, and silent when nobody watches."""

from typing import Any

import pytest

import equipoise as eq
from equipoise.audits import _common as _progress
from tests.unit.audits.table import make_table

# the verbs return one of several findings, which each test knows

TRAIL = eq.read(make_table(), label="label", prediction="prediction")
CLAIM = eq.gap("accuracy", across="race")


@pytest.mark.parametrize(("method", "step"), [("pivotal", 256), ("bootstrap", 32)])
def test_a_function_is_told_how_far_it_is(method: Any, step: int) -> None:
    seen: list[tuple[int, int]] = []
    eq.certify(
        TRAIL, CLAIM, method=method, resamples=600, rng=1, progress=lambda *x: seen.append(x)
    )
    assert seen == [(min(i, 600), 600) for i in range(step, 600 + step, step)]


def test_an_interrupted_audit_stops() -> None:
    def stop(done: int, total: int) -> None:
        if done >= 512:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        eq.certify(TRAIL, CLAIM, resamples=10_000, rng=1, progress=stop)


def test_a_bar_appears_only_after_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[bool] = []
    original = _progress._Bar._open

    def noted(bar: _progress._Bar) -> None:
        opened.append(True)
        original(bar)

    monkeypatch.setattr(_progress._Bar, "_open", noted)
    eq.certify(TRAIL, CLAIM, resamples=100, rng=1, progress=True)
    assert not opened
    monkeypatch.setattr(_progress, "PATIENCE", -1.0)
    eq.certify(TRAIL, CLAIM, resamples=100, rng=1, progress=False)
    assert not opened
    eq.certify(TRAIL, CLAIM, resamples=100, rng=1, progress=True)
    assert opened == [True]


def test_watching_changes_no_number() -> None:
    one = eq.certify(TRAIL, CLAIM, resamples=100, rng=1)
    two = eq.certify(TRAIL, CLAIM, resamples=100, rng=1, progress=lambda done, total: None)
    assert one == two


def test_anything_else_is_refused() -> None:
    with pytest.raises(eq.OptionError, match=r"a function of \(done, total\); got 3"):
        eq.certify(TRAIL, CLAIM, resamples=100, rng=1, progress=3)  # type: ignore[call-overload]
