"""p-values for 0/1 metrics whose spread is taken under the null, from counts alone."""

from equipoise.methods.nulls.binomial import (
    RateTails,
    deviance,
    exact,
    exact_outside,
    known_target,
    likelihood,
    likelihood_bartlett,
    mid_p,
    score,
    signed_root,
)
from equipoise.methods.nulls.contrasts import (
    Contrast,
    against_complement,
    against_overall,
    against_reference,
)
from equipoise.methods.nulls.hypotheses import Above, Below, Null, Outside, Tails, normal_tails
from equipoise.methods.nulls.profile import (
    careful_likelihood,
    constrained_rates,
    profile_likelihood,
    profile_root,
    restricted_score,
    score_test,
    tilted_rates,
)
from equipoise.methods.nulls.reachable import Reachable, smallest_reachable

__all__ = [
    "Above",
    "Below",
    "Contrast",
    "Null",
    "Outside",
    "RateTails",
    "Reachable",
    "Tails",
    "against_complement",
    "against_overall",
    "against_reference",
    "careful_likelihood",
    "constrained_rates",
    "deviance",
    "exact",
    "exact_outside",
    "known_target",
    "likelihood",
    "likelihood_bartlett",
    "mid_p",
    "normal_tails",
    "profile_likelihood",
    "profile_root",
    "restricted_score",
    "score",
    "score_test",
    "signed_root",
    "smallest_reachable",
    "tilted_rates",
]
