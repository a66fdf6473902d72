"""The sufficient statistics, and the operators from cells to groups."""

from equipoise.cells.gather import gather
from equipoise.cells.groups import Collection, form_groups
from equipoise.cells.tally import Axis, Cells, Tallied

__all__ = ["Axis", "Cells", "Collection", "Tallied", "form_groups", "gather"]
