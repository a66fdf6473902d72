"""How much worse could a model do on comparable people: individual fairness by transport.

``prepare`` turns comparable cells and losses into a problem, ``solve`` gives the audit value with
its plan and price, and ``infer`` its sampling error.
"""

from equipoise.methods.transport.answers import AnswerKind, Method
from equipoise.methods.transport.cost import (
    Classes,
    Moves,
    Neighbours,
    fair_costs,
    from_matrix,
    from_neighbours,
    learn_metric,
    metric_errors,
    relaxed,
    within_classes,
)
from equipoise.methods.transport.inference import (
    Inference,
    Selection,
    between,
    infer,
    robustness,
    select_model,
)
from equipoise.methods.transport.limits import Limit, NormalLimit, ShiftedLimit
from equipoise.methods.transport.problem import Problem, Solution, TransportPlan, prepare, solve
from equipoise.methods.transport.sample import Doubt, Sample, doubt, plain_sample, unit_sample
