"""What comes back is known beforehand: mypy checks the annotations, pytest the classes."""

import equipoise as eq
from equipoise.findings.bounds import Bounds
from equipoise.findings.flags import CertificateList, Flags
from equipoise.findings.joint_test import Joint

TRAIL = eq.datasets.compas()
CLAIM = eq.gap(eq.false_positive_rate, across="race")
BOTH = eq.equalized_odds(across="race")


def test_the_method_decides_what_certify_gives() -> None:
    bounds: Bounds = eq.certify(TRAIL, CLAIM, rng=1)
    named: Bounds = eq.certify(TRAIL, CLAIM, method="bootstrap", resamples=100, rng=1)
    value: Bounds = eq.certify(TRAIL, CLAIM, method=eq.Bootstrap(resamples=100), rng=1)
    assert all(isinstance(found, Bounds) for found in (bounds, named, value))
    certificates: CertificateList = eq.certify(
        TRAIL, CLAIM, side="lower", tolerance=0.0, method="certificates", resamples=100, rng=1
    )
    assert isinstance(certificates, CertificateList)


def test_a_claim_of_several_metrics_gives_a_joint_finding() -> None:
    flags: Flags = eq.flag(TRAIL, CLAIM, above=0.05)
    flagged: Joint = eq.flag(TRAIL, BOTH, above=0.05)
    bounds: Joint = eq.certify(TRAIL, BOTH, rng=1)
    assert isinstance(flags, Flags)
    assert isinstance(flagged, Joint)
    assert isinstance(bounds, Joint)
