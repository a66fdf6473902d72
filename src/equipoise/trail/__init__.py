"""Where the rows are, what each column means, what was dropped and why."""

from equipoise.trail.arrays import from_arrays
from equipoise.trail.read import read
from equipoise.trail.roles import Roles
from equipoise.trail.trail import Trail

__all__ = ["Roles", "Trail", "from_arrays", "read"]
