"""Where a finding comes from, filled in from the cells it was computed on."""

from equipoise._version import __version__
from equipoise.cells import Cells
from equipoise.findings import Provenance


def provenance_of(cells: Cells, seed: int | None = None) -> Provenance:
    """The record that every finding carries."""
    return Provenance(
        version=__version__,
        source=cells.source,
        scanned=cells.scanned,
        counted=cells.counted,
        excluded=dict(cells.excluded),
        ineligible=cells.ineligible,
        cells=len(cells),
        fingerprint=cells.fingerprint(),
        seed=seed,
    )
