"""Where the rows are, what each column means, what was dropped and why."""

from equipoise.trail.read import from_arrays, read
from equipoise.trail.trail import Roles, Trail

__all__ = ["Roles", "Trail", "from_arrays", "read"]
