"""Where the rows are, what each column means, what was dropped and why."""

from equipoise.trail.trail import Roles, Trail, from_arrays, read

__all__ = ["Roles", "Trail", "from_arrays", "read"]
