"""What random cases have found, each as a case of its own."""

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import equipoise as eq
from equipoise._validate import known_name
from equipoise.cells.tally import steady
from equipoise.cli.main import execute
from equipoise.findings import from_dict
from equipoise.findings.finding import from_json
from equipoise.methods.published.likelihood.bounds import ResampledNull
from equipoise.methods.spread import Meta, meta_metric
from tests.fuzz.outcome import check_finding, outcome, shows_nothing

certify: Any = eq.certify
flag: Any = eq.flag
TWO = {"g": ["a"] * 6 + ["b"] * 6, "v": [0.1 * i for i in range(12)]}
VALUE = eq.metric("value", "v")
CLAIM = eq.gap(VALUE, across="g")


def small(**more: Any) -> eq.Trail:
    roles = {name: more.pop(name) for name in ("weight", "count", "cluster") if name in more}
    return eq.read(pl.DataFrame({**TWO, **more}), **roles)


def test_pandas_columns_named_by_numbers() -> None:
    table = pd.DataFrame({0: pd.Series([True, None], dtype=object), "g": ["a", "b"]})
    with pytest.raises(eq.TrailError, match="names that are text; one is called 0"):
        eq.read(table)


def test_arrays_of_lists_of_different_lengths() -> None:
    for given in ([[1, 2], [], [3]], [[1], [2, 3]]):
        with pytest.raises(eq.TrailError, match="one value per row"):
            eq.from_arrays(given, sensitive_features=["a", "b", "a"][: len(given)])
        with pytest.raises(eq.TrailError, match="one value per row"):
            eq.from_arrays([0, 1, 1][: len(given)], sensitive_features=given)


def test_an_empty_path_is_not_the_current_folder() -> None:
    for path in ("", " "):
        with pytest.raises(eq.TrailError, match="path is empty"):
            eq.read(path)


def test_a_path_that_no_file_system_takes() -> None:
    with pytest.raises(eq.TrailError, match="could not be read"):
        eq.read("w" * 5000 + ".csv")
    assert execute(["explain", "w" * 5000]) == 3


@pytest.mark.parametrize("mapping", [{"g": 1}, {}, {"number": 1, "a": 2}])
def test_a_mapping_that_means_nothing(mapping: dict[str, Any]) -> None:
    with pytest.raises(eq.ClaimError, match="across= takes groups"):
        eq.gap("accuracy", across=mapping)
    with pytest.raises(eq.ClaimError, match="A target is a number"):
        eq.gap("accuracy", across="g", target=mapping)


@pytest.mark.parametrize("huge", [1e300, 10**400])
def test_numbers_whose_squares_are_none(huge: float) -> None:
    for make in (
        lambda: eq.constant(huge),
        lambda: eq.gap("accuracy", across="g", target=huge),
        lambda: huge * eq.overall(),
        lambda: certify(small(), CLAIM, tolerance=huge),
        lambda: flag(small(), CLAIM, above=huge),
        lambda: eq.gaussian("x", bandwidth=huge),
        lambda: eq.summarize(small(), VALUE, across="g", alpha=huge),
    ):
        with pytest.raises(eq.OptionError):
            make()
    for formula in ("v * 1e70", "v * 1e200"):
        with pytest.raises(eq.TrailError, match="too large"):
            certify(small(), eq.gap(eq.metric("mine", formula), across="g"))
    influence = eq.gap("accuracy", across="g", target=eq.custom(0.3, "label * 1e308 * 10"))
    trail = eq.read(pl.DataFrame({**TWO, "y": [0, 1] * 6}), label="y", prediction=None)
    assert outcome(lambda: flag(trail, influence)) is None


def test_more_than_any_memory_holds() -> None:
    for make in (
        lambda: eq.intervals("v", grid=2**80),
        lambda: eq.Bootstrap(resamples=2**80),
        lambda: eq.summarize(small(), VALUE, across="g", resamples=10**12),
    ):
        with pytest.raises(eq.OptionError, match="at most 10,000,000"):
            make()


def test_a_joint_test_of_groups_that_cannot_be_tested() -> None:
    # each group is one row, and one row says nothing about spread
    trail = eq.read(pl.DataFrame({"g": ["a", "b", "c", "d"], "v": [-0.4, 2.6, 0.1, 0.3]}))
    for method in ("likelihood", "euclidean"):
        found = outcome(functools.partial(eq.joint_test, trail, CLAIM, method=method, rng=1))
        if found is not None:
            check_finding(found)
            shows_nothing(found)


def test_a_joint_test_at_what_is_no_mapping() -> None:
    with pytest.raises(eq.OptionError, match="value for each group by its name; got 5"):
        eq.joint_test(small(), CLAIM, at=5)  # type: ignore[arg-type]


def test_bounds_of_losses_that_are_no_pair() -> None:
    trail = eq.read(
        pl.DataFrame({"y": [0, 1] * 4, "p": [0, 1, 1, 0] * 2, "g": ["a", "b"] * 4}),
        label="y",
        prediction="p",
    )
    for wrong in (5, (1,), "01", (0, 1e300)):
        with pytest.raises(eq.OptionError, match="bounds must"):
            eq.individual(trail, vary="g", bounds=wrong)  # type: ignore[arg-type]


def test_a_tilt_that_fails_is_named() -> None:
    across = eq.tilts(mine=lambda rows: 1 / 0, columns=["v"])
    with pytest.raises(eq.ClaimError, match="function of tilt 'mine' failed: division by zero"):
        flag(small(), eq.gap(VALUE, across=across))


def test_a_kernel_that_fails_is_named() -> None:
    for kernel in (
        eq.kernel(lambda x, y: x, "v"),
        eq.kernel("cosine", "v", degree=2),
        eq.kernel(lambda x, y: 1 / 0, "v"),
    ):
        with pytest.raises(eq.OptionError, match="The kernel failed"):
            eq.shift(small(), eq.gap(VALUE), over=kernel, rng=1)


def test_rows_that_stand_for_nobody_are_in_no_cell() -> None:
    # the level "z" occurs on a row with count 0 only
    table = {"g": ["a", "a", "b", "b", "z"], "v": [0.1, 0.5, 0.2, 0.9, 0.3], "k": [3, 2, 4, 1, 0]}
    trail = eq.read(pl.DataFrame(table), count="k")
    bare = eq.read(pl.DataFrame(table)[:4], count="k")
    claim = eq.gap(VALUE, target=eq.reference(g="a"))
    ours, theirs = (
        eq.shift(t, claim, over="v", resamples=20, rng=1, sample=None) for t in (trail, bare)
    )
    assert ours.to_dict()["rows"] == theirs.to_dict()["rows"]
    assert certify(trail, CLAIM, method="bootstrap", resamples=20, rng=1).rows == (
        certify(bare, CLAIM, method="bootstrap", resamples=20, rng=1).rows
    )


def test_discover_checks_its_rows_as_every_audit_does() -> None:
    negative = small(w=[-1.0] + [1.0] * 11, weight="w")
    with pytest.raises(eq.TrailError, match="weight column 'w' must hold"):
        eq.discover(negative, VALUE, features=["g"], leaf_rows=1, rng=1)
    fractional = small(k=[0.5] * 12, count="k")
    with pytest.raises(eq.TrailError, match="count column 'k' must hold"):
        eq.discover(fractional, VALUE, features=["g"], leaf_rows=1, rng=1)
    three = eq.read(pl.DataFrame({**TWO, "y": [0, 1, 2] * 4}), label="y", attributes=["g"])
    with pytest.raises(eq.TrailError):
        eq.discover(three, "brier", features=["g"], leaf_rows=1, rng=1)


def test_discover_refuses_clusters() -> None:
    clustered = small(c=["u", "v"] * 6, cluster="c")
    with pytest.raises(eq.OptionError, match="takes them for independent"):
        eq.discover(clustered, VALUE, features=["g"], leaf_rows=1, rng=1)


def test_long_names_do_not_bury_the_message() -> None:
    long = [f"{i}" + "x" * 5000 for i in range(12)]
    trail = eq.read(pl.DataFrame({**TWO, "long": long}))
    for ask in (
        lambda: eq.summarize(trail, VALUE, across="long", rng=1),
        lambda: eq.read(pl.DataFrame({name: [1] for name in long}), label="y"),
    ):
        with pytest.raises(eq.EquipoiseError) as refused:
            ask()
        assert len(str(refused.value)) < 3000


def test_entropy_of_a_high_order_does_not_warn() -> None:
    found = eq.summarize(small(), VALUE, across="g", alpha=-300, measures="entropy", rng=1)
    check_finding(found)


@pytest.mark.parametrize("value", [0.1, 0.3, 1 / 3, -2.7, 1e-9, 123456.789])
@pytest.mark.parametrize(
    "method",
    [
        "pivotal",
        "certificates",
        "bootstrap",
        "bootstrap-unscaled",
        "certificates-published",
        "certificates-unscaled",
        "euclidean",
    ],
)
def test_a_constant_that_binary_digits_do_not_hold(value: float, method: str) -> None:
    """Sums are rounded, which must not pass for a spread that is known to be tiny."""
    groups = ["a"] * 4 + ["b"] * 7 + ["c"] * 11
    trail = eq.read(pl.DataFrame({"g": groups, "v": [value] * 22}))
    more = {} if method == "euclidean" else {"resamples": 40}
    for target in (None, eq.complement(), value):
        claim = eq.gap(VALUE, across="g", target=target)
        found = certify(trail, claim, method=method, tolerance=0.02, rng=1, **more)
        check_finding(found)
        shows_nothing(found)


@pytest.mark.parametrize("method", ["pivotal", "likelihood"])
def test_one_zero_beside_four_ones_is_never_flagged(method: str) -> None:
    table = pl.DataFrame({"g": list("abcde"), "v": [1, 0, 1, 1, 1]})
    claim = eq.gap(VALUE, across="g", target=eq.complement())
    found = flag(eq.read(table), claim, method=method, below=-0.02, rng=1)
    check_finding(found)
    shows_nothing(found)


@pytest.mark.parametrize("method", ["pivotal", "bootstrap", "euclidean", "likelihood"])
def test_one_row_is_never_flagged(method: str) -> None:
    groups = [f"group {i}" for i in range(6)]
    table = pl.DataFrame({"g": groups, "v": [-0.41, -0.14, -0.04, -0.3, 2.57, -0.8]})
    for target in (None, eq.complement(), 0.0):
        claim = eq.gap(VALUE, across="g", target=target)
        for least in (None, 1):
            found = flag(eq.read(table), claim, method=method, min_rows=least, rng=1)
            check_finding(found)
            shows_nothing(found)


def test_nobody_to_compare_with_is_no_flag_by_any_method() -> None:
    trail = eq.read(pl.DataFrame({"g": ["a"] * 30, "v": [1] * 30}))
    claim = eq.gap(VALUE, across="g", target=eq.complement())
    for method in ("likelihood-plugin", "likelihood", "euclidean", "pivotal", "bootstrap"):
        found = flag(trail, claim, method=method, outside=(-0.1, 0.1), rng=1)
        check_finding(found)
        shows_nothing(found)


def test_a_role_that_does_not_exist() -> None:
    across = {"kind": "thresholds", "attribute": {"kind": "ordered", "column": "g", "role": True}}
    with pytest.raises(eq.TrailError, match="Role 'g' does not exist"):
        eq.describe(small(), eq.gap(VALUE, across=across))


def test_boxes_of_what_are_no_names() -> None:
    wrongs: tuple[Any, ...] = ([], {}, 5, None)
    for wrong in wrongs:
        with pytest.raises(eq.ClaimError, match="by its column name"):
            eq.boxes(wrong, "v")


def test_stored_findings_with_fields_of_the_wrong_type() -> None:
    found = eq.shift(small(), eq.gap(VALUE), over="v", resamples=20, rng=1)
    data = json.loads(found.to_json())
    data["basis"]["second"] = [[1], [2, [3]]]
    with pytest.raises(eq.EquipoiseError, match="must be numbers in equal rows"):
        from_dict(data)
    described = json.loads(eq.describe(small(), CLAIM).to_json())
    described["level"] = {"mapping": 5}
    with pytest.raises(eq.EquipoiseError, match="must list pairs"):
        from_dict(described)


def test_evidence_whose_fingerprints_are_of_two_types(tmp_path: Path) -> None:
    both = eq.Evidence.of(eq.describe(small(), CLAIM), flag(small(), CLAIM, rng=1))
    data = json.loads(both.to_json())
    data["entries"][0]["finding"]["provenance"]["fingerprint"] = 7
    path = tmp_path / "evidence.json"
    path.write_text(json.dumps(data))
    with pytest.raises(eq.EquipoiseError, match="'fingerprint' must be text; got 7"):
        eq.Evidence.load(path)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"kind": NaN}', "", "{", "[]", "5"])
def test_texts_that_are_no_finding(text: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=r"not a finding|holds no NaN"):
        from_json(text)


# --- Numbers at the end of what floats hold, and warnings on the way ---


def test_whole_numbers_beyond_all_floats_are_refused() -> None:
    huge = 10**400
    with pytest.raises(eq.ClaimError, match="Expected a number"):
        eq.from_plan({"kind": "constant", "value": {"number": huge}})


def test_a_long_unknown_name_is_cut_off() -> None:
    with pytest.raises(eq.OptionError) as caught:
        known_name("control", "[" * 5000, ("bh", "by"))
    assert len(str(caught.value)) < 400


def test_the_smallest_sums_are_kept() -> None:
    least = float(np.finfo(np.float64).smallest_subnormal)
    assert steady(np.array([3 * least]), np.array([4 * least])) == 3 * least


def test_draws_of_zero_only_have_no_tail_to_stretch() -> None:
    assert ResampledNull(draws=np.zeros(199), rank=2).p(1.0) == 1 / 200


@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_a_drawn_mean_below_zero_counts_as_zero(alpha: float) -> None:
    below, zero = (np.array([[x, 0.2, 0.3]]) for x in (-0.01, 0.0))
    found = meta_metric(Meta.ENTROPY, below, alpha=alpha)
    assert found == pytest.approx(meta_metric(Meta.ENTROPY, zero, alpha=alpha))


def test_a_role_is_a_yes_or_no() -> None:
    ordered = {"kind": "ordered", "column": "score", "edges": [0.0, 0.5, 1.0], "role": {"a": 1}}
    with pytest.raises(eq.OptionError, match="role must be True or False"):
        eq.from_plan(ordered)


def test_intervals_is_a_yes_or_no() -> None:
    trail = eq.read(pl.DataFrame({"g": ["a", "b"] * 20, "y": [0, 1, 1, 0] * 10}), prediction="y")
    claim = eq.gap("selection_rate", across="g")
    with pytest.raises(eq.OptionError, match="intervals must be True or False"):
        eq.joint_test(trail, claim, intervals="no")  # type: ignore[arg-type]
