"""MLflow: keep an audit with the run of the model it is about."""

from types import ModuleType

from equipoise.errors import EquipoiseError
from equipoise.findings import Evidence, Finding
from equipoise.report.exchange import for_tracker

__all__ = ["log_evidence"]


def log_evidence(
    *results: Finding | Evidence, folder: str = "equipoise", suppress: int | None = None
) -> Evidence:
    """Log evidence and report as artifacts of the active MLflow run, and the verdict as a tag.

    Takes one `Evidence`, or findings. The run also gets the metrics ``equipoise.violations`` and
    ``equipoise.undetermined``: how many findings say so. With ``suppress`` neither file tells of
    groups with fewer rows.
    """
    mlflow = _mlflow()
    # MLflow copies the files, so they need not outlive this.
    with for_tracker(results, suppress) as made:
        for file in made.files:
            mlflow.log_artifact(str(file), folder)
        for name, number in made.numbers.items():
            mlflow.log_metric(name, number)
        mlflow.set_tag("equipoise.verdict", made.verdict)
    return made.evidence


def _mlflow() -> ModuleType:
    try:
        import mlflow
    except ImportError as error:
        raise EquipoiseError("log_evidence needs MLflow: pip install mlflow-skinny.") from error
    return mlflow
