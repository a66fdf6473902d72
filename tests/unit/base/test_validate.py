"""Checks at the door, and the randomness made there."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise import _validate as check
from equipoise._codec import canonical, from_plain, to_plain
from equipoise._validate import seed_of


def test_numbers() -> None:
    assert check.fraction("level", np.float64(0.5)) == 0.5
    assert check.whole("n", np.int64(3)) == 3
    for wrong in (0, 1, -0.1, 95, "0.9", True, None, float("nan"), float("inf")):
        with pytest.raises(eq.OptionError, match="level must"):
            check.fraction("level", wrong)
    for wrong in (0, 1.0, True, "1", None):
        with pytest.raises(eq.OptionError, match=r"n must be a whole number of at least 1; got"):
            check.whole("n", wrong)


def test_levels_leave_a_tail() -> None:
    assert check.confidence(0.999_999) == 0.999_999
    for wrong in (1e-320, 1e-14, 1 - 1e-15, 95):
        with pytest.raises(eq.OptionError, match="level must lie"):
            check.confidence(wrong)


@pytest.mark.parametrize("value", [pl.Series(["a"]), np.array(["a", "b"]), b"a", ["a"], None, 1])
def test_a_word_is_a_word(value: object) -> None:
    # comparing a column with a word gives a column, whose truth no one knows
    assert not check.is_word(value, "a")
    with pytest.raises(eq.OptionError, match=r"side .* does not exist"):
        check.known_name("side", value, ["a", "b"])


def test_listing_is_cut_short() -> None:
    assert check.listing([]) == "none"
    assert check.listing(range(15), most=3) == "0, 1, 2 … (12 more)"


def test_known_keywords_keeps_the_function() -> None:
    @check.known_keywords
    def add(a: int, *, b: int = 2) -> int:
        """Add."""
        return a + b

    assert (add(1), add(1, b=5), add.__doc__) == (3, 6, "Add.")
    with pytest.raises(
        eq.OptionError, match=r"add\(\) option 'c' does not exist.*There is: 'a', 'b'"
    ):
        add(1, c=3)  # type: ignore[call-arg]
    with pytest.raises(
        eq.OptionError, match=r"add\(\): missing a required argument: 'a'.*It takes: 'a', 'b'"
    ):
        add()  # type: ignore[call-arg]


def test_a_type_error_inside_is_not_hidden() -> None:
    @check.known_keywords
    def broken(a: int) -> int:
        return a + "x"

    with pytest.raises(TypeError, match="unsupported"):
        broken(1)


def test_every_error_is_an_equipoise_error() -> None:
    for error in (eq.TrailError, eq.ClaimError, eq.OptionError):
        assert issubclass(error, eq.EquipoiseError)


# --- seeds --------------------------------------------------------------------------------


def test_a_seed_repeats() -> None:
    one, two = seed_of(7), seed_of(np.int64(7))  # type: ignore[arg-type]
    assert one.number == two.number == 7
    draw = [np.random.default_rng(s.sequence).random(3).tolist() for s in (one, two)]
    assert draw[0] == draw[1]
    assert draw[0] != np.random.default_rng(seed_of(8).sequence).random(3).tolist()


def test_no_seed_draws_one_that_repeats() -> None:
    first, second = seed_of(None), seed_of(None)
    assert first.number is not None
    assert first.number != second.number
    again = seed_of(first.number)
    assert again.sequence.entropy == first.sequence.entropy


def test_a_generator_hands_down_streams_of_its_own() -> None:
    one, two = (seed_of(np.random.default_rng(3)) for _ in range(2))
    assert one.number is None
    assert one.sequence.entropy == two.sequence.entropy
    shared = np.random.default_rng(3)
    assert seed_of(shared).sequence.entropy != seed_of(shared).sequence.entropy


@pytest.mark.parametrize("wrong", [True, -1, 1.5, "7", np.random.SeedSequence(1), [1]])
def test_what_is_no_seed(wrong: object) -> None:
    with pytest.raises(eq.OptionError, match=r"rng must be None, a whole number.*Generator; got"):
        seed_of(wrong)  # type: ignore[arg-type]


def test_the_global_generator_is_left_alone() -> None:
    before = np.random.get_state()[1].copy()  # type: ignore[index] # noqa: NPY002
    seed_of(None)
    eq.describe(eq.datasets.compas(), eq.gap("accuracy", across="sex"))
    assert np.array_equal(before, np.random.get_state()[1])  # type: ignore[index] # noqa: NPY002


# --- plain values -------------------------------------------------------------------------


def test_canonical() -> None:
    import datetime
    import decimal

    import pandas as pd

    utc = datetime.UTC
    paris = datetime.timezone(datetime.timedelta(hours=2))
    pairs = [
        (3.0, 3), (np.float32(0.5), 0.5), (np.bool_(True), True), (float("nan"), None),
        (decimal.Decimal("2.50"), 2.5), (decimal.Decimal("NaN"), None),
        (pd.NA, None), (pd.NaT, None),
        (pd.Timestamp("2020-01-01"), "2020-01-01"), (datetime.date(2020, 1, 1), "2020-01-01"),
        (datetime.datetime(2020, 1, 1, 3, tzinfo=paris), "2020-01-01T01:00:00"),
        (datetime.datetime(2020, 1, 1, tzinfo=utc), "2020-01-01"),
        (datetime.time(1, 2), "01:02:00"), (float("inf"), float("inf")),
        (-0.0, 0), (1e300, int(1e300)),
    ]  # fmt: skip
    for value, wanted in pairs:
        assert canonical(value) == wanted
        assert type(canonical(value)) is type(wanted)


def test_mappings_with_awkward_keys_survive() -> None:
    for value in ({"kind": "a"}, {"number": 3}, {"mapping": 1, "kind": None}, {"a": {"kind": 1}}):
        assert from_plain(to_plain(value)) == value
    assert from_plain(to_plain((1, float("-inf"), "x"))) == (1, float("-inf"), "x")


def test_hints_know_capitals_and_the_words_of_others() -> None:
    claim = eq.gap("accuracy", across="sex", target=eq.reference(sex="male"))
    with pytest.raises(eq.ClaimError, match="Did you mean 'Male'"):
        eq.certify(eq.datasets.compas(), claim, rng=1)
    for other, ours in (("fpr", "false_positive_rate"), ("tpr", "true_positive_rate")):
        with pytest.raises(eq.ClaimError, match=f"Did you mean '{ours}'"):
            eq.gap(other, across="sex")
    verb: Any = eq.certify
    for option, ours in (("alpha", "level"), ("seed", "rng")):
        with pytest.raises(eq.OptionError, match=f"Did you mean '{ours}'"):
            verb(eq.datasets.compas(), eq.gap("accuracy", across="sex"), **{option: 1})
