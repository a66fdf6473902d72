"""Several claims as one: each at its share of the error, the worst told for each group."""

import pytest

import equipoise as eq
from equipoise.findings import Bounds, Flags, Joint, from_json

ODDS = eq.equalized_odds(across=eq.intersections("race", "sex"))


@pytest.fixture(scope="module")
def trail() -> eq.Trail:
    return eq.datasets.compas()


def test_each_part_is_the_claim_alone_at_half_the_rate(trail: eq.Trail) -> None:
    joint = eq.flag(trail, ODDS, fdr=0.10)
    assert isinstance(joint, Joint)
    for claim in ODDS.claims:
        alone = eq.flag(trail, claim, fdr=0.05)
        part = joint.part(claim.metric.words)
        assert part.rows == alone.rows


def test_bounds_of_the_parts_are_at_the_stricter_level(trail: eq.Trail) -> None:
    joint = eq.certify(trail, ODDS, level=0.90, rng=3, resamples=200)
    assert isinstance(joint, Joint)
    part = joint.part("true positive rate")
    assert isinstance(part, Bounds)
    assert part.level == pytest.approx(0.95)


def flagged_odds(trail: eq.Trail) -> Joint:
    joint = eq.flag(trail, ODDS, rng=1)
    assert isinstance(joint, Joint)
    return joint


def test_the_worst_claim_is_told_for_each_group(trail: eq.Trail) -> None:
    joint = flagged_odds(trail)
    parts = [joint.part(name) for name in ("false positive rate", "true positive rate")]
    for row in joint.rows:
        answers = {}
        for part in parts:
            assert isinstance(part, Flags)
            answers[part.metric] = next(r for r in part.rows if r.group == row.group)
        flagged = [metric for metric, answer in answers.items() if answer.flagged]
        assert (row.verdict == "flagged") == bool(flagged)
        if flagged:
            worst = max(flagged, key=lambda metric: abs(answers[metric].disparity or 0))
            assert row.metric == worst


def test_every_group_of_either_claim_has_a_row(trail: eq.Trail) -> None:
    joint = flagged_odds(trail)
    assert len(joint.rows) == len({row.group for row in joint.rows}) == 20


def test_joint_findings_survive_json_and_can_be_asked(trail: eq.Trail) -> None:
    joint = flagged_odds(trail)
    assert from_json(joint.to_json()) == joint
    assert joint.ask(race="African-American").verdict == "flagged"
    assert "covers all claims together" in joint.sentences()[0]


def test_an_unknown_part_is_refused_by_name(trail: eq.Trail) -> None:
    joint = flagged_odds(trail)
    with pytest.raises(eq.EquipoiseError, match="Did you mean 'false positive rate'"):
        joint.part("false positive rat")


def test_the_chart_has_one_part_per_claim(trail: eq.Trail) -> None:
    spec = eq.certify(trail, ODDS, rng=3, resamples=50).plot().to_dict()
    assert len(spec["vconcat"]) == 2
