"""One grammar: what the keywords of every verb mean, and what every verb takes."""

import inspect
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.audits import VERBS, verb

ROLES: dict[str, Any] = {"label": "y", "prediction": "d", "score": "s"}
CLAIM = eq.gap("accuracy", across="g")
ASKED: dict[str, Any] = {
    "certify": lambda source, **more: eq.certify(source, CLAIM, rng=1, **more),
    "flag": lambda source, **more: eq.flag(source, CLAIM, **more),
    "describe": lambda source, **more: eq.describe(source, CLAIM, **more),
    "joint_test": lambda source, **more: eq.joint_test(source, CLAIM, rng=1, **more),
    "summarize": lambda source, **more: eq.summarize(source, CLAIM, rng=1, **more),
    "compare": lambda source, **more: eq.compare(
        source, "accuracy", across=["g", "h"], resamples=50, rng=1, **more
    ),
    "discover": lambda source, **more: eq.discover(
        source, "accuracy", features=["g", "x"], leaf_rows=20, rng=1, **more
    ),
    "shift": lambda source, **more: eq.shift(
        source, CLAIM, over="g", resamples=50, rng=1, **more
    ),
    "calibration": lambda source, **more: eq.calibration(
        source, features=["x"], method="platt", resamples=50, rng=1, **more
    ),
    "individual": lambda source, **more: eq.individual(
        source, vary="g", features=["g", "h"], rng=1, **more
    ),
    "power": lambda source, **more: eq.power(source, CLAIM, rng=1, **more),
    "monitor": lambda source, **more: eq.monitor(source, CLAIM, period="h", **more),
    "repair": lambda source, **more: eq.repair(
        source, eq.gap("selection_rate", across="g"), tolerance=0.2, rng=1, **more
    ),
    "alternatives": lambda source, **more: eq.alternatives(
        source, eq.gap("selection_rate", across="g"), models={"other": "d2"}, rng=1, **more
    ),
    "select_fair": lambda source, **more: eq.select_fair(
        source, {"none": lambda f: np.zeros(len(f))}, vary="g", tolerance=0.5,
        features=["g", "h"], rng=1, **more,
    ),
}  # fmt: skip


def table(n: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    score = rng.random(n)
    return pl.DataFrame(
        {
            "g": rng.choice(["a", "b"], n),
            "h": rng.choice(["u", "v"], n),
            "x": rng.random(n).round(2),
            "s": score,
            "y": (rng.random(n) < score).astype(int),
            "d": (score > 0.5).astype(int),
            "d2": (score > 0.6).astype(int),
        }
    )


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_takes_a_table_a_path_or_a_trail(name: str, tmp_path: Path) -> None:
    frame = table()
    frame.write_csv(tmp_path / "t.csv")
    read = ASKED[name](eq.read(frame, **ROLES))
    assert ASKED[name](frame, **ROLES).rows == read.rows
    assert ASKED[name](str(tmp_path / "t.csv"), **ROLES).rows == read.rows
    with pytest.raises(eq.TrailError, match="cannot be read from int"):
        ASKED[name](3)
    with pytest.raises(eq.OptionError, match="says already what its columns mean"):
        ASKED[name](eq.read(frame, **ROLES), label="y")
    with pytest.raises(eq.OptionError, match=r"'labl' does not exist\. Did you mean 'label'"):
        ASKED[name](frame, labl="y")


@pytest.mark.parametrize("name", VERBS)
def test_keywords_mean_one_thing_everywhere(name: str) -> None:
    options = inspect.signature(verb(name)).parameters
    for old in ("draws", "bound", "alpha_level", "confidence", "n_boot"):
        assert old not in options
    if "level" in options:
        assert options["level"].default == 0.95
    if "side" in options:
        said = str(options["side"].annotation)
        assert "under" not in said
        assert options["side"].default in ("both", "lower")
    assert next(iter(options)) == "trail"


def test_a_claim_says_what_is_measured_and_between_whom() -> None:
    trail = eq.read(table(), **ROLES)
    whole = eq.summarize(trail, "accuracy", across="g", rng=1)
    assert eq.summarize(trail, CLAIM, rng=1) == whole
    with pytest.raises(eq.OptionError, match="names the groups already"):
        eq.summarize(trail, CLAIM, across="g")
    with pytest.raises(eq.OptionError, match="Say between whom"):
        eq.summarize(trail, "accuracy")
    with pytest.raises(eq.ClaimError, match="a target has no meaning"):
        eq.summarize(trail, eq.gap("accuracy", across="g", target=0.5))
    models = {"one": "d", "other": "d2"}
    one = eq.compare(trail, CLAIM, models=models, resamples=50, rng=1)
    assert one == eq.compare(trail, "accuracy", across="g", models=models, resamples=50, rng=1)
    with pytest.raises(eq.OptionError, match="say which attributes"):
        eq.compare(trail, CLAIM)
    asked: dict[str, Any] = {"features": ["g", "x"], "leaf_rows": 20, "rng": 1}
    found = eq.discover(trail, eq.gap("accuracy", target=0.5), **asked)
    assert found == eq.discover(trail, "accuracy", target=0.5, **asked)
    assert len(eq.discover(trail, "accuracy", leaf_rows=20, rng=1)) > 1
    with pytest.raises(eq.OptionError, match="names the target already"):
        eq.discover(trail, CLAIM, target=0.5, **asked)


def test_findings_are_sequences_with_a_short_name() -> None:
    trail = eq.read(table(), **ROLES)
    for name, ask in ASKED.items():
        found = ask(trail)
        assert list(found) == list(found.rows), name
        if len(found):
            assert found[0] is found.rows[0]
            assert found[-1] is found.rows[-1]
        assert len(repr(found)) < 200
        assert type(found).__name__ in repr(found)
        assert getattr(eq, type(found).__name__) is type(found)
    for name in ("certify", "flag", "describe", "joint_test"):
        found = ASKED[name](trail)
        assert found.ask(g="a") == found.ask("a") == found[0]


def test_limits_on_the_wrong_side_of_no_difference_are_refused() -> None:
    rows = eq.datasets.compas()
    gap, ratio = (kind("selection_rate", across="sex") for kind in (eq.gap, eq.ratio))
    for asked, limit, meant in (
        (ratio, {"above": 0.05}, r"above=1\.25"),
        (gap, {"below": 0.05}, r"below=-0\.05 is meant"),
        (gap, {"above": 5}, "5 points are 0.05"),
    ):
        with pytest.raises(eq.OptionError, match=meant):
            eq.flag(rows, asked, **limit, rng=1)
    sides: tuple[tuple[Any, Literal["lower", "upper"], float, str], ...] = (
        (gap, "lower", 0.1, "tolerance=-0.1 is meant"),
        (gap, "upper", -0.1, "tolerance=0.1 is meant"),
        (ratio, "lower", 1.25, "tolerance=0.8 is meant"),
    )
    for asked, side, tolerance, meant in sides:
        with pytest.raises(eq.OptionError, match=meant):
            eq.certify(rows, asked, side=side, tolerance=tolerance, rng=1)
    with pytest.raises(eq.OptionError, match="disparity must lie"):
        eq.power(rows, gap, disparity=5, rng=1)
    with pytest.raises(eq.OptionError, match=r"5 points are 0\.05"):
        eq.calibration(rows, features=["sex"], tolerance=5, rng=1)
    # that somebody does no worse, or better than a number, may be asked
    assert eq.flag(rows, gap, above=-0.05, rng=1).rows
    known = eq.gap("selection_rate", across="sex", target=0.1)
    assert eq.certify(rows, known, side="lower", tolerance=0.01, rng=1).verdict is not None
