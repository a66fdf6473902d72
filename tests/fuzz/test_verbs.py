"""Every verb on random tables: a sound finding, or an error that names the problem."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier

import equipoise as eq
from equipoise.audits.methods import NAMES
from tests.fuzz import asks, cases, tables
from tests.fuzz.asks import level, random_claim, random_metric, seeded
from tests.fuzz.conftest import CASES
from tests.fuzz.outcome import check_finding, outcome
from tests.fuzz.tables import Rng, chance, mostly, pick

BY_CERTIFY = (
    eq.Pivotal,
    eq.Certificates,
    eq.AllRanges,
    eq.Bootstrap,
    eq.BootstrapCertificates,
    eq.Likelihood,
    eq.Euclidean,
)
BY_FLAG = (eq.Pivotal, eq.Bootstrap, eq.Likelihood, eq.Euclidean)
Ask = Callable[[eq.Trail], Any]
# the verbs return one of several findings
certify: Any = eq.certify
flag: Any = eq.flag


def trail_of(rng: Rng, further: float) -> tuple[Any, Any]:
    """A table and how to read it; some malformed, most not."""
    table = tables.tame(rng, spoilt=0.25)
    source = tables.source_of(rng, table)
    roles = tables.random_roles(rng, table, 0.06, further)
    return source, lambda: eq.read(source, **roles)


def one_case(rng: Rng, verb: str) -> Any:
    source, read = trail_of(rng, 0.02 if verb in ROW_VERBS else 0.1)
    before, asked = tables.snapshot(source), VERBS[verb](rng)
    found = outcome(lambda: asked(read()))
    if found is not None:
        check_finding(found)
    tables.unchanged(source, before)
    return found


def tallied(rng: Rng) -> Any:
    """The trail itself or, now and then, counts taken from it beforehand."""
    return eq.tally if chance(rng, 0.15) else lambda trail, *claims: trail


def describe(rng: Rng) -> Ask:
    claim, counts = random_claim(rng), tallied(rng)
    more: dict[str, Any] = {"level": level(rng)}
    if chance(rng, 0.3):
        more["interval"] = mostly(rng, ("exact", "wilson"), ("wald", None))
    if chance(rng, 0.1):
        more["small"] = pick(rng, (0, 5, -1, 2.5, "many"))

    def ask(trail: eq.Trail) -> Any:
        made = claim()
        return eq.describe(counts(trail, made), made, **more)

    return ask


TOLERANCES = (0.0, -0.1, 1e9, 1e300, float("nan"), "0.1")


def certify_by(rng: Rng) -> Ask:
    claim, counts = random_claim(rng), tallied(rng)
    method = mostly(rng, (None, None, None, *BOUNDS), ("nonsense", 5, *TESTS), 0.1)
    more = seeded(rng, level=level(rng))
    more["side"] = mostly(rng, ("both", "both", "lower", "upper"), ("left", None))
    if chance(rng, 0.6) or str(method).startswith("certificates"):
        more["tolerance"] = mostly(rng, (0.05, 0.2, 0.8), TOLERANCES)
    if str(method) not in ("likelihood", "likelihood-plugin", "euclidean") or chance(rng, 0.05):
        more["resamples"] = mostly(rng, (20, 20, 40), (5, 2.5, "20"), 0.03)

    def ask(trail: eq.Trail) -> Any:
        made = claim()
        return certify(counts(trail, made), made, method=method, **more)

    return ask


LIMITS = ("above", 0.05), ("below", -0.1), ("outside", (-0.1, 0.1)), ("below", 0.8)
NO_LIMITS = ("above", "x"), ("outside", 5), ("outside", (1, 0)), ("below", float("nan"))


def flag_by(rng: Rng) -> Ask:
    claim, counts = random_claim(rng), tallied(rng)
    method = mostly(rng, (None, None, None, *TESTS), ("nonsense", eq.Euclidean(), *BOUNDS), 0.1)
    more = seeded(rng, fdr=level(rng), control=pick(rng, ("bh", "by", "e-bh", "holm")))
    if chance(rng, 0.05):
        more["control"] = pick(rng, ("max-t", "max-t", "none", 3))
    if chance(rng, 0.1):
        more["population"] = mostly(rng, ("these rows", "people like these"), ("everyone", None, 3))
    elif chance(rng, 0.7):
        name, limit = mostly(rng, LIMITS, NO_LIMITS)
        more[name] = limit
    if str(method).startswith("bootstrap") or chance(rng, 0.03):
        more["resamples"] = pick(rng, (20, 30))
    if chance(rng, 0.1):
        more["min_rows"] = mostly(rng, (1, 5, 100), (0, -3, "x"), 0.2)

    def ask(trail: eq.Trail) -> Any:
        made = claim()
        return flag(counts(trail, made), made, method=method, **more)

    return ask


def joint_test(rng: Rng) -> Ask:
    claim, counts = random_claim(rng), tallied(rng)
    good = (None, "pivotal", "likelihood", "euclidean", "likelihood-plugin")
    method = mostly(rng, good, ("band", 5))
    more: dict[str, Any] = {"level": level(rng), "rng": 1}
    if chance(rng, 0.05):
        more["at"] = pick(rng, ({"a": 0.1}, {}, {"zz": 1}, {"a": "x"}, 5, {"a": 1e300}))

    def ask(trail: eq.Trail) -> Any:
        made = claim()
        return eq.joint_test(counts(trail, made), made, method=method, **more)

    return ask


def discover(rng: Rng) -> Ask:
    metric, target = random_metric(rng), asks.random_target(rng)
    good = (["g", "x"], ["x"], ["g", "h", "x"], ["c"])
    features = mostly(rng, good, (["nowhere"], [], "g", ["y"], ["w"], [5]))
    more = seeded(rng, fdr=level(rng), depth=int(rng.integers(1, 4)))
    more["leaf_rows"] = mostly(rng, (1, 2, 5), (50, 0))
    more["share"] = mostly(rng, (0.5, 0.3), (0.9, 1.0, 0.001))
    if chance(rng, 0.3):
        more["method"] = pick(rng, TESTS)
    return lambda trail: eq.discover(trail, metric, features=features, target=target(), **more)


NO_GROUPS: tuple[Any, ...] = (
    "nowhere",
    [],
    None,
    eq.intersections("g", "h"),
    ["g", "g"],
    5,
    {"g": 1},
)


def summarize(rng: Rng) -> Ask:
    metric, across = random_metric(rng), mostly(rng, ("g", "h", "c", ["g", "h"], "x"), NO_GROUPS)
    more = seeded(rng, level=level(rng), resamples=mostly(rng, (20, 30), (5, "x")))
    if chance(rng, 0.3):
        more["alpha"] = mostly(rng, (0, 1, 2, -1, 0.5), (300, -300, 1e300, float("nan")), 0.2)
    if chance(rng, 0.5):
        good = ["difference", "ratio"], "variance", ["entropy"], "mean_deviation", "max_deviation"
        more["measures"] = mostly(rng, good, ([], "x", [1], 5))
    return lambda trail: eq.summarize(trail, metric, across=across, **more)


PAIRS = {"one": "p", "two": "y"}, {"one": "p", "two": "k"}, {"one": "s", "two": "w"}
NO_PAIRS: tuple[Any, ...] = ({"one": "p"}, {}, "p", {"a": 5, "b": 6}, {"one": "p", "two": "zz"})


def compare(rng: Rng) -> Ask:
    metric = random_metric(rng)
    across = mostly(rng, (["g", "h"], ["g", "c"], [["g", "h"], "c"]), NO_GROUPS)
    more = seeded(rng, level=level(rng), resamples=mostly(rng, (20, 30), (5, "x")))
    if chance(rng, 0.3):
        more["models"] = mostly(rng, PAIRS, NO_PAIRS)
        across = pick(rng, ("g", "h", ["g", "h"]))
    return lambda trail: eq.compare(trail, metric, across=across, **more)


MODELS: tuple[Any, ...] = (
    lambda frame: frame["g"] == "a",
    lambda frame: [0] * len(frame),
    lambda frame: [i % 2 for i in range(len(frame))],
)
NO_MODELS: tuple[Any, ...] = (
    lambda frame: [0.5] * len(frame),
    lambda frame: [float("nan")] * len(frame),
    lambda frame: [None] * len(frame),
    lambda frame: ["yes"] * len(frame),
    lambda frame: [1],
    lambda frame: 1 / 0,
    lambda frame: None,
    lambda: 1,
    5,
    "model",
)


def _people(rng: Rng) -> dict[str, Any]:
    more = seeded(rng, level=level(rng), resamples=100)
    more["vary"] = mostly(rng, ("g", "h", ["g", "h"]), ([], "x", "nowhere", None, [5]))
    good = (["g", "h"], ["g", "h", "c"], ["g", "h", eq.binned("x", cuts=(0,))])
    more["features"] = mostly(rng, good, (None, ["g"], [], "g", ["g", "x"], ["g", "g"]))
    if chance(rng, 0.3):
        some = ("exact", "beta", "normal", "directional", "bootstrap", "m-out-of-n", "numerical")
        more["method"] = mostly(rng, some, ("other", None))
    if chance(rng, 0.2):
        more["budget"] = mostly(rng, (0.1, 1.0), (-1, float("nan"), "x", float("inf")), 0.2)
    if chance(rng, 0.2):
        bad = (lambda a, b: float("nan"), [[0.0]], lambda: 1, lambda a, b: "x", lambda a, b: -1)
        more["cost"] = mostly(rng, (lambda a, b: 1.0, "fair-metric"), bad, 0.3)
    if chance(rng, 0.1):
        more["bounds"] = mostly(rng, ((0, 1), (0, 5)), ((1, 0), (0.2, 0.3), 5, (0, 1e300)), 0.4)
    return more


def individual(rng: Rng) -> Ask:
    more = _people(rng)
    if chance(rng, 0.5):
        more["model"] = mostly(rng, MODELS, NO_MODELS, 0.2)
    if chance(rng, 0.5):
        more["tolerance"] = mostly(rng, (0.1, 0.0, 0.5), (-1, float("nan"), 1e300))
    if chance(rng, 0.2):
        losses = "zero-one", eq.brier, eq.squared_error, lambda y, a: abs(y - a)
        more["loss"] = mostly(rng, losses, ("squared", lambda y, a: "x", 5))
    return lambda trail: eq.individual(trail, **more)


def select_fair(rng: Rng) -> Ask:
    more = _people(rng)
    models: Any = {"first": MODELS[0], "none": MODELS[1], "last": pick(rng, MODELS)}
    if chance(rng, 0.2):
        models = pick(rng, ({}, None, {"one": pick(rng, NO_MODELS)}, [MODELS[0]], {5: MODELS[0]}))
    more["tolerance"] = mostly(rng, (0.1, 0.0, 0.5), (-1, None))
    more["side"] = mostly(rng, ("lower", "upper"), ("middle", None))
    return lambda trail: eq.select_fair(trail, models, **more)


def shift(rng: Rng) -> Ask:
    claim = random_claim(rng, groups=lambda: None)
    width = mostly(rng, (1.0, 0.5), (0.01, 0, -1, 1e300, "x", float("nan")), 0.3)
    good: tuple[Any, ...] = (
        lambda: ["x"],
        lambda: "x",
        lambda: ["x", "g"],
        lambda: eq.gaussian("x", "h", bandwidth=width),
        lambda: eq.laplace("g"),
        lambda: eq.laplace("x") * eq.gaussian("g"),
        lambda: eq.kernel("polynomial", "x", degree=2),
        lambda: eq.monotone("x"),
        lambda: eq.monotone("x", grid=None),
    )
    strange: tuple[Any, ...] = (
        lambda: eq.kernel("zz", "x"),
        lambda: eq.monotone("g"),
        lambda: eq.monotone("x", grid=0),
        lambda: eq.kernel(lambda a, b: a, "x"),
        lambda: eq.kernel("cosine", "x", degree=2),
        lambda: "nowhere",
        list,
        lambda: 5,
        lambda: ["x", "x"],
        lambda: ["lo", "hi", "s", "k"],
        lambda: None,
        lambda: "y",
    )
    over = mostly(rng, good, strange, 0.15)
    more = seeded(rng, level=level(rng), resamples=20)
    if chance(rng, 0.7):
        more["method"] = mostly(rng, ("rescaled", "rescaled", "unscaled", "signed"), ("other",))
    if chance(rng, 0.3):
        more["engine"] = mostly(rng, ("exact", "moments"), ("none", 3))
    if chance(rng, 0.2):
        more["sample"] = mostly(rng, (2, 5, 100), (1, 0))
    if chance(rng, 0.1):
        more["floor"] = mostly(rng, (1e-3, 0.1), (0, -1, 1e9, float("nan")), 0.3)
    return lambda trail: eq.shift(trail, claim(), over=over(), **more)


def calibration(rng: Rng) -> Ask:
    more = seeded(rng, level=level(rng), resamples=mostly(rng, (20, 50), (1, "x")), importance=0)
    more["method"] = mostly(rng, CALIBRATED, ("other", 5))
    more["features"] = mostly(rng, (["x"], ["x", "g"], ["g", "h"]), (None, [], ["nowhere"], "x"))
    more["tolerance"] = mostly(rng, (0.05, 0.0, 0.2), (1.5, -0.1, 1e300))
    more["side"] = pick(rng, ("both", "upper", "lower"))
    more["folds"] = mostly(rng, (2, 3), (1, 50, "x"))
    if more["method"] not in ("platt", "hosmer-lemeshow") or chance(rng, 0.05):
        tree = DecisionTreeClassifier(max_depth=2, random_state=0)
        good: tuple[Any, ...] = ([LinearRegression()], [tree], {"mine": tree})
        more["models"] = mostly(rng, good, ([], [5], "rf", None))
    if chance(rng, 0.2):
        more["split"] = mostly(rng, (0.5, 0.4), (0.01, 1.5))
        more.pop("folds")
    if chance(rng, 0.1):
        more["importance"] = 1
    if chance(rng, 0.1):
        more["sample"] = pick(rng, (1, 5, 100, 0))
    return lambda trail: eq.calibration(trail, **more)


CALIBRATED = (
    "cusum",
    "cusum-standardised",
    "cusum-published",
    "simple-score",
    "multicalibration",
    "chi-squared",
    "platt",
    "hosmer-lemeshow",
)
BOUNDS = tuple(name for name, method in NAMES.items() if isinstance(method, BY_CERTIFY))
TESTS = tuple(name for name, method in NAMES.items() if isinstance(method, BY_FLAG))
#: Verbs that look at rows one by one, and take no weights or clusters.
ROW_VERBS = ("individual", "select_fair", "calibration", "compare", "discover")
RULES = None, None, None, "threshold", "by_group", "recalibration"


def plain_claim(rng: Rng) -> Any:
    """A claim that a rule or another model can change, or now and then any other."""
    if chance(rng, 0.25):
        return random_claim(rng)
    metric = pick(rng, ("selection_rate", "accuracy", "error_rate", "positive_predictive_value"))
    groups, target = pick(rng, ("g", "h")), pick(rng, (None, None, 0.5, eq.complement()))
    return lambda: eq.gap(metric, across=groups, target=target)


def repair(rng: Rng) -> Ask:
    claim = plain_claim(rng)
    more = seeded(rng, level=level(rng), tolerance=mostly(rng, (0.05, 0.2, 0.8), TOLERANCES))
    more["rule"] = mostly(rng, RULES, ("nonsense", 5))
    more["side"] = mostly(rng, ("both", "both", "lower", "upper"), ("left", None))
    if chance(rng, 0.2):
        more["tries"] = mostly(rng, (2, 3), (0, "x"))
    if chance(rng, 0.2):
        more["learn"] = mostly(rng, (0.3, 0.7), (0, 1, "x"))
    return lambda trail: eq.repair(trail, claim(), **more)


OTHERS = (
    {"one": "p"},
    {"one": "y"},
    {"one": "k"},
    {"one": "s", "two": "w"},
    {"one": "p", "two": "y"},
)


def alternatives(rng: Rng) -> Ask:
    claim = plain_claim(rng)
    more = seeded(rng, level=level(rng), within=mostly(rng, (0.0, 0.1, 0.5), (-1, "x")))
    more["models"] = mostly(rng, OTHERS, NO_PAIRS)
    if len(more["models"]) == 2 or chance(rng, 0.1):
        more["present"] = mostly(rng, ("one", "two"), ("who", 5))
    if chance(rng, 0.1):
        more["threshold"] = mostly(rng, (0.5, 2), ("x", float("nan")))
    return lambda trail: eq.alternatives(trail, claim(), **more)


VERBS: dict[str, Callable[[Rng], Ask]] = {
    "describe": describe,
    "certify": certify_by,
    "flag": flag_by,
    "joint_test": joint_test,
    "discover": discover,
    "summarize": summarize,
    "compare": compare,
    "individual": individual,
    "select_fair": select_fair,
    "shift": shift,
    "calibration": calibration,
    "repair": repair,
    "alternatives": alternatives,
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_call_ends_well(verb: str, record_property: Any) -> None:
    answered = 0

    def one(rng: Rng) -> None:
        nonlocal answered
        answered += one_case(rng, verb) is not None

    record_property(CASES, cases.run(verb, one))
    # a suite in which nothing is ever answered would test the refusals only
    assert answered > 0.12 * cases.number(verb), answered


def test_options_are_left_as_they_were() -> None:
    trail = eq.datasets.compas()
    claim = eq.gap("accuracy", across="race").to_plan()
    models = {"one": "decile", "two": "decile"}
    options: dict[str, Any] = {"claim": claim, "models": models, "features": ["race", "sex"]}
    before = copy.deepcopy(options)
    eq.describe(trail, options["claim"])
    certify(trail, options["claim"], method={"kind": "euclidean"})
    eq.discover(trail, "accuracy", features=options["features"], rng=1)
    outcome(lambda: eq.compare(trail, "residual", across="race", models=options["models"]))
    assert options == before
