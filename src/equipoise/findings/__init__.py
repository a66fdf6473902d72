"""What an audit says: frozen results, plain words, provenance."""

from equipoise.findings.describe import DescribedGroup, Description
from equipoise.findings.finding import Finding, Provenance, from_dict, from_json
from equipoise.findings.verdict import Verdict

__all__ = [
    "DescribedGroup",
    "Description",
    "Finding",
    "Provenance",
    "Verdict",
    "from_dict",
    "from_json",
]
