"""Formulas, metrics and claims from text and plain data: a value, or a `ClaimError`."""

import copy
import functools
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.claims import METRICS
from equipoise.claims.formula import parse
from tests.fuzz import cases
from tests.fuzz.conftest import CASES
from tests.fuzz.mutations import PLAIN, mutated
from tests.fuzz.outcome import check_finding, outcome
from tests.fuzz.tables import Rng, pick

TOKENS = (
    *("x", "y", "label", "score", "g", "prediction", "weight", "column('x')", "role('label')"),
    *("0", "1", "2.5", "1e308", "-1", "10**400", "'a'", '"b"', "True", "None", "1j", "...", "b'x'"),
    *("+", "-", "*", "/", "**", "%", "//", "@", "==", "!=", "<", "<=", ">", "in", "not in", "is"),
    *("and", "or", "not", "(", ")", "[", "]", ",", "{", "}", ":", ".", ";", "\n", "#", "\\", "~"),
    *("abs(", "log(", "exp(", "sqrt(", "round(", "__import__('os')", "lambda", "if", "else", ":="),
    *("('a', 'b')", "(1, 2)", "x.real", "x[0]", "f'{x}'", "é", "😀", "\x00", " ", "yield"),
)
FORMULA = st.one_of(
    st.lists(st.sampled_from(TOKENS), max_size=12).map(" ".join),
    st.lists(st.sampled_from(TOKENS), max_size=8).map("".join),
    st.text(max_size=40),
    st.integers(1, 400).map(lambda n: "(" * n + "x" + ")" * n),
    st.integers(1, 3000).map(lambda n: "+".join(["x"] * n)),
    st.integers(1, 300).map(lambda n: "-" * n + "x"),
)
TABLE = pl.DataFrame(
    {
        "x": [0.0, 1.0, -2.0, 3.5],
        "y": [0, 1, 1, 0],
        "p": [1, 1, 0, 0],
        "s": [0.1, 0.5, 0.9, 0.0],
        "g": ["a", "b", "a", None],
    }
)


def trail() -> eq.Trail:
    return eq.read(TABLE, label="y", prediction="p", score="s")


def hypotheses(name: str, strategy: Any, check: Callable[[Any], object]) -> int:
    """Run a check on the examples of a strategy and return their number."""
    done = 0

    @cases.examples(name)
    @given(strategy)
    def each(example: Any) -> None:
        nonlocal done
        done += 1
        check(example)

    each()
    assert done >= cases.number(name), f"only {done} examples of {name!r}"
    return done


def test_formulas(record_property: Any) -> None:
    def check(text: str) -> None:
        parsed = outcome(lambda: parse(text))
        assert parsed is None or all(name in text for name in parsed.names)

    record_property(CASES, hypotheses("formulas", FORMULA, check))


def test_metrics_on_rows(record_property: Any) -> None:
    here = trail()

    def check(pair: tuple[str, str | None]) -> None:
        value, where = pair
        made = outcome(lambda: eq.metric("mine", value, where=where))
        if made is not None:
            found = outcome(lambda: eq.describe(here, eq.gap(made, across="g")))
            if found is not None:
                check_finding(found)

    sound = st.sampled_from(("x", "label", "abs(x - score)", "x > 0", "log(score)", "1 / x"))
    strategy = st.tuples(st.one_of(FORMULA, sound), st.one_of(st.none(), FORMULA, sound))
    record_property(CASES, hypotheses("metrics", strategy, check))


def test_claims_from_plain_data(record_property: Any) -> None:
    here = trail()

    def one(rng: Rng) -> None:
        data = mutated(rng, pick(rng, CLAIMS))
        before = copy.deepcopy(data)
        claim = outcome(lambda: eq.from_plan(data))
        assert repr(data) == repr(before)
        if isinstance(claim, eq.Claim):
            again = outcome(lambda: eq.from_plan(claim.to_plan()))
            assert again == claim, claim
            found = outcome(lambda: eq.describe(here, claim))
            if found is not None:
                check_finding(found)

    record_property(CASES, cases.run("claims", one))


CLAIMS: tuple[Any, ...] = (
    eq.gap("accuracy", across=["g"]).to_plan(),
    eq.gap("brier", across=eq.intersections("g", eq.binned("x", cuts=(0, 1)))).to_plan(),
    eq.gap(eq.metric("mine", "x", where="x > 0", low=0), across="g", target=0.5).to_plan(),
    eq.ratio("selection_rate", across="g", target=0.8 * eq.reference(g="a")).to_plan(),
    eq.gap("residual", across=eq.intervals("x", edges=(0, 1, 2))).to_plan(),
    eq.gap("residual", across=eq.thresholds("x", grid=3)).to_plan(),
    eq.gap("residual", across=eq.boxes("x", "s", grid=2), target=eq.complement()).to_plan(),
    eq.gap("accuracy", across=eq.masks(old="x > 0"), target=eq.custom(0.3, "x")).to_plan(),
    eq.gap("accuracy", across=eq.tilts(old="abs(x)", flat="1")).to_plan(),
    eq.equalized_odds(across="g").to_plan(),
    eq.multicalibration(across="g", number=3).to_plan(),
)


MAKERS: tuple[Callable[[Any], Any], ...] = (
    lambda v: eq.from_plan(v),
    lambda v: eq.metric("mine", v),
    lambda v: eq.metric(v, "x"),
    lambda v: eq.metric("mine", "x", where=v, low=v, high=v),
    lambda v: eq.gap(v, across="g"),
    lambda v: eq.gap("accuracy", across=v),
    lambda v: eq.gap("accuracy", across="g", target=v),
    lambda v: eq.ratio("accuracy", across="g", target=v),
    lambda v: eq.intersections(v, v),
    lambda v: eq.intersections("g", depth=v, max_groups=v),
    lambda v: eq.intervals("x", edges=v),
    lambda v: eq.intervals(v, grid=v),
    lambda v: eq.thresholds("x", grid=v),
    lambda v: eq.boxes(v, grid=v),
    lambda v: eq.boxes("x", edges=v),
    lambda v: eq.masks(v),
    lambda v: eq.masks(old=v),
    lambda v: eq.tilts(v),
    lambda v: eq.tilts(old=v, columns=v),
    lambda v: eq.bins(v, number=v),
    lambda v: eq.leaves(v, v),
    lambda v: eq.binned("x", cuts=v),
    lambda v: eq.reference(v),
    lambda v: eq.reference(g=v),
    lambda v: eq.custom(v, v),
    lambda v: eq.constant(v),
    lambda v: eq.overall() * v,
    lambda v: eq.squared_error.clip(v, v),
    lambda v: eq.gaussian(v),
    lambda v: eq.gaussian("x", bandwidth=v),
    lambda v: eq.kernel(v, "x"),
    lambda v: eq.Bootstrap(resamples=v),
    lambda v: eq.Bootstrap(floor=v, shrink=v),
    lambda v: eq.Pivotal(resamples=v),
    lambda v: eq.Certificates(resamples=v),
    lambda v: eq.BootstrapCertificates(step_down=v),
    lambda v: eq.Likelihood(target=v),
    lambda v: eq.read(TABLE, attributes=v),
    lambda v: eq.read(TABLE, label="y", positive=v),
    lambda v: eq.Evidence.of(v),
    lambda v: eq.report(v),
)


@pytest.mark.parametrize("value", PLAIN, ids=lambda value: repr(value)[:20])
def test_every_plain_value_as_everything(value: Any) -> None:
    for make in MAKERS:
        outcome(functools.partial(make, value))


def test_every_built_in_metric_is_known() -> None:
    assert {name for name in METRICS if eq.from_plan(name).name != name} == set()
