"""The audit plan: read, run, judged and performed again."""

from equipoise.plan.draft import draft
from equipoise.plan.plan import AuditPlan, Plan, TrailPlan, plan_schema
from equipoise.plan.run import Difference, Exit, Gate, Verification, gate, run, verify

__all__ = [
    "AuditPlan",
    "Difference",
    "Exit",
    "Gate",
    "Plan",
    "TrailPlan",
    "Verification",
    "draft",
    "gate",
    "plan_schema",
    "run",
    "verify",
]
