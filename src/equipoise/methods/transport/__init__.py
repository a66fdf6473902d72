"""How much worse could a model do on comparable people: individual fairness by transport.

``prepare`` turns comparable cells and losses into a problem, ``solve`` gives the audit value with
its plan and price, and ``infer`` its sampling error.
"""

from equipoise.methods.transport.answers import Method, Outcome
from equipoise.methods.transport.between import BetweenLimit, End, between
from equipoise.methods.transport.draws import (
    NumericalDraws,
    default_rows,
    directional_draws,
    numerical_draws,
    resampled_draws,
)
from equipoise.methods.transport.hulls import Hulls, build_hulls
from equipoise.methods.transport.inference import Inference, infer
from equipoise.methods.transport.limits import (
    BetaLimit,
    BinomialLimit,
    DrawnLimit,
    Limit,
    MixedLimit,
    NormalLimit,
    PointLimit,
    StudentLimit,
    UnseenLimit,
)
from equipoise.methods.transport.metric import (
    LearntMetric,
    fair_costs,
    learn_metric,
    metric_errors,
)
from equipoise.methods.transport.moves import (
    Classes,
    LeftOut,
    Moves,
    Neighbours,
    from_matrix,
    from_neighbours,
    relaxed,
    within_classes,
)
from equipoise.methods.transport.prices import Prices, Window, near_optimal, optimal_prices
from equipoise.methods.transport.problem import Problem, prepare
from equipoise.methods.transport.robustness import Robustness, robustness
from equipoise.methods.transport.sample import Sample, plain_sample, unit_sample
from equipoise.methods.transport.selection import Selection, select_model
from equipoise.methods.transport.solution import Plan, Solution, solve

__all__ = [
    "BetaLimit",
    "BetweenLimit",
    "BinomialLimit",
    "Classes",
    "DrawnLimit",
    "End",
    "Hulls",
    "Inference",
    "LearntMetric",
    "LeftOut",
    "Limit",
    "Method",
    "MixedLimit",
    "Moves",
    "Neighbours",
    "NormalLimit",
    "NumericalDraws",
    "Outcome",
    "Plan",
    "PointLimit",
    "Prices",
    "Problem",
    "Robustness",
    "Sample",
    "Selection",
    "Solution",
    "StudentLimit",
    "UnseenLimit",
    "Window",
    "between",
    "build_hulls",
    "default_rows",
    "directional_draws",
    "fair_costs",
    "from_matrix",
    "from_neighbours",
    "infer",
    "learn_metric",
    "metric_errors",
    "near_optimal",
    "numerical_draws",
    "optimal_prices",
    "plain_sample",
    "prepare",
    "relaxed",
    "resampled_draws",
    "robustness",
    "select_model",
    "solve",
    "unit_sample",
    "within_classes",
]
