"""What audits of single rows ask of a trail."""

from typing import Any

from equipoise.errors import OptionError, TrailError
from equipoise.trail import Trail


def rows_alone(trail: Any, why: str) -> Trail:
    """Return a trail whose rows are independent and count alike; ``why`` begins the refusal."""
    if not isinstance(trail, Trail):
        raise TrailError(
            f"Expected a trail, such as equipoise.read(…) gives; got {type(trail).__name__}."
        )
    for role in ("weight", "cluster"):
        if role in trail.roles:
            raise OptionError(f"{why} and takes no {role} column. Read the trail without {role}=….")
    return trail
