"""The mathematics of tilts, which comes in when a finding is asked and not when one is read."""

from typing import TYPE_CHECKING

from equipoise._lazy import LazyModule

if TYPE_CHECKING:
    from equipoise.methods import tilts as tilts
else:
    tilts = LazyModule("equipoise.methods.tilts")
