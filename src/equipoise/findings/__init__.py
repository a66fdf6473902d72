"""What an audit says: frozen results, plain words, provenance."""

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = [
    "Alternative",
    "Alternatives",
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
    "DescribedMetrics",
    "Description",
    "Entry",
    "Evidence",
    "FairChoice",
    "Finding",
    "FlaggedGroup",
    "Flags",
    "GroupThreshold",
    "Individual",
    "Joint",
    "JointGroup",
    "JointTest",
    "JointlyTested",
    "MeasuredSpread",
    "MonitoredGroup",
    "Monitoring",
    "MonotoneShift",
    "MoreGroups",
    "MovedPeople",
    "PlannedGroup",
    "Power",
    "Price",
    "Provenance",
    "RangeCertificates",
    "Repair",
    "RepairedGroup",
    "Rule",
    "Shift",
    "State",
    "Stretch",
    "SummarizedGroup",
    "Summary",
    "Tilted",
    "TriedRule",
    "Verdict",
    "from_dict",
    "from_json",
]

if TYPE_CHECKING:
    from equipoise.findings.bounds import BoundedGroup, Bounds, CertifiedRange, RangeCertificates
    from equipoise.findings.calibration import CalibratedGroup, Calibration
    from equipoise.findings.describe import DescribedGroup, DescribedMetrics, Description
    from equipoise.findings.evidence import Entry, Evidence
    from equipoise.findings.finding import Finding, Provenance, from_dict, from_json
    from equipoise.findings.flags import CertificateList, CertifiedGroup, FlaggedGroup, Flags
    from equipoise.findings.individual import (
        AuditedCell,
        AuditedModel,
        FairChoice,
        Individual,
        MovedPeople,
    )
    from equipoise.findings.joint_test import Joint, JointGroup, JointlyTested, JointTest
    from equipoise.findings.monitoring import MonitoredGroup, Monitoring, State
    from equipoise.findings.power import MoreGroups, PlannedGroup, Power
    from equipoise.findings.repair import (
        Alternative,
        Alternatives,
        GroupThreshold,
        Price,
        Repair,
        RepairedGroup,
        Rule,
        TriedRule,
    )
    from equipoise.findings.shift import MonotoneShift, Shift, Stretch
    from equipoise.findings.shift_questions import AskedTilt, Tilted
    from equipoise.findings.summary import (
        ComparedSpread,
        Comparison,
        MeasuredSpread,
        SummarizedGroup,
        Summary,
    )
    from equipoise.findings.words import Verdict
else:
    # Each kind of finding comes in when it is first used or read; most audits need one of them.
    _PLACES = {
        "bounds": "BoundedGroup Bounds CertifiedRange RangeCertificates",
        "calibration": "CalibratedGroup Calibration",
        "describe": "DescribedGroup DescribedMetrics Description",
        "evidence": "Entry Evidence",
        "finding": "Finding Provenance from_dict from_json",
        "flags": "CertificateList CertifiedGroup FlaggedGroup Flags",
        "individual": "AuditedCell AuditedModel FairChoice Individual MovedPeople",
        "joint_test": "Joint JointGroup JointlyTested JointTest",
        "monitoring": "MonitoredGroup Monitoring State",
        "repair": (
            "Alternative Alternatives GroupThreshold Price Repair RepairedGroup Rule TriedRule"
        ),
        "power": "MoreGroups PlannedGroup Power",
        "shift": "MonotoneShift Shift Stretch",
        "shift_questions": "AskedTilt Tilted",
        "summary": "ComparedSpread Comparison MeasuredSpread SummarizedGroup Summary",
        "words": "Verdict",
    }
    _PLACE = {name: place for place, names in _PLACES.items() for name in names.split()}

    def __getattr__(name: str) -> object:
        if name not in _PLACE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_PLACE[name]}"), name)
