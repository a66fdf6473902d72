"""What audits of single rows ask of a trail."""

from typing import Any

from equipoise.errors import OptionError
from equipoise.trail import Trail
from equipoise.trail.trail import expect_trail


def rows_alone(trail: Any, why: str) -> Trail:
    """Return a trail whose rows are independent and count alike; ``why`` begins the refusal."""
    found = expect_trail(trail)
    for role in ("weight", "cluster"):
        if role in found.roles:
            raise OptionError(f"{why} and takes no {role} column. Read the trail without {role}=….")
    return found
