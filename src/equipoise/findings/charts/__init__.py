"""Pictures of findings, drawn with Altair when asked for."""

from equipoise.findings.charts.forest import forest
from equipoise.findings.charts.lattice import lattice
from equipoise.findings.charts.width import width_curve

__all__ = ["forest", "lattice", "width_curve"]
