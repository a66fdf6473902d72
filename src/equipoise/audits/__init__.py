"""The verbs: each takes a trail and a claim, and returns a finding."""

from equipoise.audits.certify import certify
from equipoise.audits.compare import compare
from equipoise.audits.describe import describe
from equipoise.audits.discover import discover
from equipoise.audits.flag import flag
from equipoise.audits.methods import AllRanges, Bootstrap, BootstrapT, Certificates, UnderNull
from equipoise.audits.summarize import summarize

__all__ = [
    "AllRanges",
    "Bootstrap",
    "BootstrapT",
    "Certificates",
    "UnderNull",
    "certify",
    "compare",
    "describe",
    "discover",
    "flag",
    "summarize",
]
