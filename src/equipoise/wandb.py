"""Weights & Biases: keep an audit with the run of the model it is about."""

import importlib
from types import ModuleType

from equipoise.errors import EquipoiseError
from equipoise.findings import Evidence, Finding
from equipoise.report.exchange import for_tracker

__all__ = ["log_evidence"]


def log_evidence(
    *results: Finding | Evidence, name: str = "equipoise", suppress: int | None = None
) -> Evidence:
    """Log evidence and report as an artifact of the active run, and the verdict in its summary.

    Takes one `Evidence`, or findings. The summary also gets ``equipoise.violations`` and
    ``equipoise.undetermined``: how many findings say so. With ``suppress`` neither file tells of
    groups with fewer rows.
    """
    wandb = _wandb()
    run = wandb.run
    if run is None:
        raise EquipoiseError("log_evidence needs an active run: call wandb.init(…) first.")
    with for_tracker(results, suppress) as made:
        artifact = wandb.Artifact(name, type="audit", metadata={"verdict": made.verdict})
        for file in made.files:
            artifact.add_file(str(file))
        run.log_artifact(artifact)
        # the files are copied when they are added to the artifact
        run.summary.update({**made.numbers, "equipoise.verdict": made.verdict})
    return made.evidence


def _wandb() -> ModuleType:
    try:
        # by its full name: this module is called wandb as well
        return importlib.import_module("wandb")
    except ImportError as error:
        raise EquipoiseError("log_evidence needs Weights & Biases: pip install wandb.") from error
