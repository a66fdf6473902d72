"""What an audit says: frozen results, plain words, provenance."""

from equipoise.findings.bounds import BoundedGroup, Bounds
from equipoise.findings.calibration import CalibratedGroup, Calibration
from equipoise.findings.certificates import CertificateList, CertifiedGroup
from equipoise.findings.comparison import ComparedSpread, Comparison
from equipoise.findings.describe import DescribedGroup, Description
from equipoise.findings.evidence import Entry, Evidence
from equipoise.findings.fair_choice import AuditedModel, FairChoice
from equipoise.findings.finding import Finding, Provenance, from_dict, from_json
from equipoise.findings.flags import FlaggedGroup, Flags
from equipoise.findings.individual import AuditedCell, Individual, MovedPeople
from equipoise.findings.joint import Joint, JointGroup
from equipoise.findings.joint_test import JointlyTested, JointTest
from equipoise.findings.monotone import MonotoneShift, Stretch
from equipoise.findings.ranges import CertifiedRange, RangeCertificates
from equipoise.findings.shift import Shift
from equipoise.findings.shift_rows import AskedTilt, Tilted
from equipoise.findings.summary import MeasuredSpread, SummarizedGroup, Summary
from equipoise.findings.verdict import Verdict

__all__ = [
    "AskedTilt",
    "AuditedCell",
    "AuditedModel",
    "BoundedGroup",
    "Bounds",
    "CalibratedGroup",
    "Calibration",
    "CertificateList",
    "CertifiedGroup",
    "CertifiedRange",
    "ComparedSpread",
    "Comparison",
    "DescribedGroup",
    "Description",
    "Entry",
    "Evidence",
    "FairChoice",
    "Finding",
    "FlaggedGroup",
    "Flags",
    "Individual",
    "Joint",
    "JointGroup",
    "JointTest",
    "JointlyTested",
    "MeasuredSpread",
    "MonotoneShift",
    "MovedPeople",
    "Provenance",
    "RangeCertificates",
    "Shift",
    "Stretch",
    "SummarizedGroup",
    "Summary",
    "Tilted",
    "Verdict",
    "from_dict",
    "from_json",
]
