"""What must be summed beside a metric when the target is a number with an influence function."""

from equipoise.claims import Claim, Metric
from equipoise.claims import target as targets
from equipoise.claims.claim import Gap
from equipoise.errors import ClaimError


def influence_formula(claim: Claim) -> str | None:
    """The influence function of a custom target; None for every other target."""
    return claim.target.influence if isinstance(claim.target, targets.Custom) else None


def influence_claims(claim: Claim) -> list[Claim]:
    """The influence values, and their product with the metric, as metrics to be summed.

    They count on exactly the rows on which the claim's metric counts.
    """
    formula = influence_formula(claim)
    if formula is None:
        return []
    value = _text(claim.metric)
    # Zero times the value changes no sum, but counts on the same rows as the value does.
    both = [f"({formula}) + 0 * ({value})", f"({formula}) * ({value})"]
    return [_summed(claim, f"influence {i}", text) for i, text in enumerate(both)]


def _summed(claim: Claim, name: str, formula: str) -> Claim:
    metric = claim.metric
    made = Metric(name=name, value=formula, where=metric.where, binary=metric.binary)
    return Gap(metric=made, across=claim.across, target=targets.overall())


def _text(metric: Metric) -> str:
    if isinstance(metric.value, str) and not metric.clipped:
        return metric.value
    raise ClaimError(
        "A custom target needs a metric written as a formula, without clip; "
        f"{metric.name!r} is not."
    )
