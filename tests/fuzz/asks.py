"""Random questions: claims and options, most of which make sense."""

from typing import Any

import narwhals as nw

import equipoise as eq
from tests.fuzz.tables import Rng, chance, mostly, pick

ATTRIBUTES = ("g", "h", "x", "c", "k", "s", "lo", "nowhere")
FORMULAS = (
    "x",
    "abs(label - score)",
    "s > 0.5",
    "1",
    "0",
    "x / 0",
    "log(x)",
    "sqrt(s)",
    "exp(1000 * x)",
    "x ** 2 > 1",
    "g == 'a'",
    "g",
    "1 / (k - 1)",
    "x % 2",
    "nowhere + 1",
    "label * 1e308 * 10",
    "x * 1e70",
    "score * 1e-200",
    "1e9 + k",
    "-k",
    "s - s",
)
METRICS = tuple(eq.metric("mine", formula) for formula in FORMULAS)
BUILT_IN = (
    eq.accuracy,
    eq.error_rate,
    eq.selection_rate,
    eq.false_positive_rate,
    eq.true_positive_rate,
    eq.positive_predictive_value,
    eq.brier,
    eq.log_loss,
    eq.squared_error,
    eq.residual,
    eq.coverage,
)


def random_metric(rng: Rng) -> Any:
    if chance(rng, 0.8):
        return pick(rng, BUILT_IN)
    if chance(rng, 0.6):
        return pick(rng, METRICS)
    others = (
        "fpr",
        None,
        5,
        eq.log_loss.clip(0, 3),
        eq.metric("mine", "x", low=0, high=0.5),
        eq.metric("few", "x", where="x > 100"),
        eq.metric("some", "label", where="g == 'a'"),
        eq.metric("expression", nw.col("x") * 2),
        eq.metric("strange", nw.col("nowhere")),
    )
    return pick(rng, others)


def random_groups(rng: Rng) -> Any:
    """Makes the groups, so that a refusal is one of the outcomes."""
    one, two = pick(rng, ATTRIBUTES[:4]), pick(rng, ATTRIBUTES)
    edges = pick(rng, ([0, 1], [-5, 0, 5], [-1.5, 0.5], [0.2], [1, 0], [0, float("inf")]))
    formula, number = pick(rng, FORMULAS), int(rng.integers(1, 3))
    weight = pick(rng, ("w", "x", "k", "g"))
    good = (
        lambda: "g",
        lambda: "h",
        lambda: ["g", "h"],
        lambda: eq.intersections("g", "h", depth=number),
        lambda: eq.intersections("g", one),
        lambda: eq.thresholds("x", grid=3),
        lambda: eq.thresholds("x", edges=edges),
        lambda: eq.intervals("x", grid=4),
        lambda: eq.intervals("x"),
        lambda: eq.boxes("x", "s", grid=2),
        lambda: eq.masks(old="x > 0", none="x > 1000", all="x < 1000"),
        lambda: eq.bins(eq.intersections("g"), number=3),
        lambda: eq.tilts(older="abs(x)", flat="1"),
        lambda: [eq.binned("x", cuts=(0,)), "g"],
    )
    strange: tuple[Any, ...] = (
        lambda: eq.intersections(one, two),
        lambda: eq.thresholds(two, grid=3),
        lambda: eq.intervals(two, grid=4),
        lambda: eq.boxes(one, two, grid=3),
        lambda: eq.masks({"a b": formula}),
        lambda: eq.tilts(weight, none="x - x"),
        lambda: eq.tilts(mine=lambda rows: abs(rows["x"]), columns=["x"]),
        lambda: eq.tilts(mine=lambda rows: 1 / 0, columns=["x"]),
        lambda: eq.tilts(mine=lambda rows: "no", columns=["x"]),
        lambda: eq.intersections("g", max_groups=1),
        lambda: 5,
        lambda: "nowhere",
        list,
        lambda: ["g", "g"],
        lambda: {"g": 1},
        dict,
        lambda: "y",
    )
    return mostly(rng, good, strange, 0.15)


def random_target(rng: Rng) -> Any:
    """Makes the target, so that a refusal is one of the outcomes."""
    value, level = pick(rng, (0, 1, -3, 1e300, 10**400)), pick(rng, ("a", "b", "zz", None, 1))
    formula = pick(rng, FORMULAS)
    good = (
        lambda: None,
        lambda: None,
        lambda: eq.overall(),
        lambda: eq.complement(),
        lambda: 0.5,
        lambda: eq.reference(g="a"),
        lambda: eq.custom(0.3, "label - 0.3"),
    )
    strange: tuple[Any, ...] = (
        lambda: eq.constant(value),
        lambda: 0.8 * eq.reference(g=level),
        lambda: eq.reference(x=(0, 5)),
        lambda: eq.reference(h=None),
        lambda: eq.custom(0.3, formula),
        lambda: -1 * eq.overall(),
        lambda: 0 * eq.complement(),
        lambda: 1e59 * (1e59 * eq.overall()),
        lambda: "overall",
        lambda: "nobody",
        list,
        lambda: float("nan"),
        lambda: {"kind": "overall"},
        lambda: {"kind": "metric"},
    )
    return mostly(rng, good, strange, 0.15)


def random_claim(rng: Rng, groups: Any = None) -> Any:
    """Makes the claim, so that a refusal is one of the outcomes."""
    across = random_groups(rng) if groups is None else groups
    target, metric = random_target(rng), random_metric(rng)
    good = (lambda: eq.gap(metric, across=across(), target=target()),)
    strange: tuple[Any, ...] = (
        lambda: eq.ratio(metric, across=across(), target=target()),
        lambda: eq.ratio(metric, across=across(), target=target()),
        lambda: eq.ratio(metric, across=across(), target=target()),
        lambda: eq.equalized_odds(across=across(), target=target()),
        lambda: eq.multicalibration(across=across(), number=3),
        lambda: None,
        lambda: {"kind": "gap"},
        lambda: {"kind": "zz"},
    )
    return mostly(rng, good, strange, 0.12)


def seeded(rng: Rng, **options: Any) -> dict[str, Any]:
    """Options with a seed; now and then one that does not exist or makes no sense."""
    made = {"rng": int(rng.integers(100)), **options}
    if chance(rng, 0.02):
        made["rng"] = pick(rng, (-1, "7", 2.5, True, [1]))
    if chance(rng, 0.02):
        made[pick(rng, ("levle", "alpha_", "tolerence"))] = 1
    return made


STRANGE = (0, 1, -1, 2.0, float("nan"), float("inf"), "0.9", None, True, [0.9])


def level(rng: Rng) -> Any:
    return mostly(rng, (0.5, 0.9, 0.95, 0.999), STRANGE, 0.04)
