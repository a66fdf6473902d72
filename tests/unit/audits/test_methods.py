"""Methods as values: options are checked, names resolve, plain data come back."""

from typing import Any

import pytest

import equipoise as eq
from equipoise._codec import from_plain, to_plain
from equipoise.audits.methods import NAMES, as_method, with_resamples


@pytest.mark.parametrize("name", list(NAMES))
def test_every_method_comes_back_from_plain_data(name: str) -> None:
    assert from_plain(to_plain(NAMES[name])) == NAMES[name]


def test_names_that_are_gone_are_not_guessed() -> None:
    gone = ("under-null", "mid-p", "exact", "likelihood-ratio", "score", "bootstrap-t", "band")
    for name in (*gone, "bootstrap-published"):
        assert name not in NAMES
        with pytest.raises(eq.OptionError, match="does not exist"):
            as_method(name, (eq.Pivotal, eq.Bootstrap), "flag")
    for gone_value in ("UnderNull", "BootstrapT", "Band"):
        assert not hasattr(eq, gone_value)


def test_draws_and_resamples_go_by_one_name_at_the_door() -> None:
    assert with_resamples(eq.Pivotal(), 200) == eq.Pivotal(resamples=200)
    assert with_resamples(eq.Bootstrap(), 200) == eq.Bootstrap(resamples=200)
    with pytest.raises(eq.OptionError, match="does not resample"):
        with_resamples(eq.Euclidean(), 200)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: eq.Bootstrap(resamples=3), "resamples"),
        (lambda: eq.Bootstrap(engine="fast"), "engine"),  # type: ignore[arg-type]
        (lambda: eq.Bootstrap(floor=0.0), "floor"),
        (lambda: eq.Bootstrap(shrink=-1.0), "shrink"),
        (lambda: eq.Pivotal(resamples=3), "resamples"),
        (lambda: eq.Certificates(resamples=3), "resamples"),
        (lambda: eq.Likelihood(min_rows=0), "min_rows"),
        (lambda: eq.BootstrapCertificates(resamples=3), "resamples"),
        (lambda: eq.Bootstrap(scaled="no"), "scaled"),  # type: ignore[arg-type]
        (lambda: eq.BootstrapCertificates(step_down="no"), "step_down"),  # type: ignore[arg-type]
    ],
)
def test_impossible_options_are_refused(make: Any, words: str) -> None:
    with pytest.raises(eq.OptionError, match=words):
        make()


def test_a_method_of_another_verb_is_refused_by_name_and_by_value() -> None:
    for value in ("certificates", eq.Certificates(), 3):
        with pytest.raises(eq.OptionError, match="certify"):
            as_method(value, (eq.Bootstrap,), "certify")
