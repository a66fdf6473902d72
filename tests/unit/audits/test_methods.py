"""Methods as values: options are checked, names resolve, plain data come back."""

import math
from typing import Any

import pytest

import equipoise as eq
from equipoise._codec import from_plain, to_plain
from equipoise.audits.methods import NAMES, SHRINK, as_method


@pytest.mark.parametrize("name", list(NAMES))
def test_every_method_comes_back_from_plain_data(name: str) -> None:
    assert from_plain(to_plain(NAMES[name])) == NAMES[name]


@pytest.mark.parametrize("name", ["bootstrap", "certificates"])
def test_options_settle_by_what_the_engine_draws(name: str) -> None:
    method: Any = NAMES[name]
    assert (method.settled(True).studentized, method.settled(True).shrink) == (True, SHRINK)
    assert (method.settled(False).studentized, method.settled(False).shrink) == (False, math.inf)
    assert eq.Bootstrap(shrink=1.0).settled(False).shrink == 1.0
    assert eq.Bootstrap(scaled=False).settled(True).studentized is False


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: eq.Bootstrap(resamples=3), "resamples"),
        (lambda: eq.Bootstrap(engine="fast"), "engine"),  # type: ignore[arg-type]
        (lambda: eq.Bootstrap(floor=0.0), "floor"),
        (lambda: eq.Bootstrap(shrink=-1.0), "shrink"),
        (lambda: eq.UnderNull(test="wald"), "test"),  # type: ignore[arg-type]
        (lambda: eq.BootstrapT(min_rows=0), "min_rows"),
        (lambda: eq.Bootstrap(scaled="no"), "scaled"),  # type: ignore[arg-type]
        (lambda: eq.Certificates(studentized=0), "studentized"),  # type: ignore[arg-type]
        (lambda: eq.Certificates(step_down="no"), "step_down"),  # type: ignore[arg-type]
        (lambda: eq.Band(calibrated="no"), "calibrated"),  # type: ignore[arg-type]
    ],
)
def test_impossible_options_are_refused(make: Any, words: str) -> None:
    with pytest.raises(eq.OptionError, match=words):
        make()


def test_a_method_of_another_verb_is_refused_by_name_and_by_value() -> None:
    for value in ("bootstrap-t", eq.BootstrapT(), 3):
        with pytest.raises(eq.OptionError, match="certify"):
            as_method(value, (eq.Bootstrap,), "certify")
