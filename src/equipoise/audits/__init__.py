"""The verbs: each takes a trail and a claim, and returns a finding."""

from equipoise.audits.describe import describe

__all__ = ["describe"]
