"""MLflow: keep an audit with the run of the model it is about."""

import tempfile
from pathlib import Path
from types import ModuleType

from equipoise.errors import EquipoiseError
from equipoise.findings import Evidence, Finding, Verdict
from equipoise.report import report

__all__ = ["log_evidence"]


def log_evidence(
    *results: Finding | Evidence, folder: str = "equipoise", suppress: int | None = None
) -> Evidence:
    """Log evidence and report as artifacts of the active MLflow run, and the verdict as a tag.

    Takes one `Evidence`, or findings. The run also gets the metrics ``equipoise.violations`` and
    ``equipoise.undetermined``: how many findings say so.
    """
    made = _evidence(results)
    mlflow = _mlflow()
    page = report(made, suppress=suppress)
    # MLflow copies the files, so they need not outlive this.
    with tempfile.TemporaryDirectory() as place:
        mlflow.log_artifact(str(made.save(Path(place) / "evidence.json")), folder)
        mlflow.log_artifact(str(page.save(Path(place) / "report.html")), folder)
    said = [entry.finding.conclusion for entry in made.entries]
    mlflow.log_metric("equipoise.violations", said.count(Verdict.EXCEEDED))
    mlflow.log_metric("equipoise.undetermined", said.count(Verdict.UNDETERMINED))
    mlflow.set_tag("equipoise.verdict", str(made.verdict))
    return made


def _evidence(results: tuple[Finding | Evidence, ...]) -> Evidence:
    if len(results) == 1 and isinstance(results[0], Evidence):
        return results[0]
    return Evidence.of(*(found for found in results if isinstance(found, Finding)))


def _mlflow() -> ModuleType:
    try:
        import mlflow
    except ImportError as error:
        raise EquipoiseError("log_evidence needs MLflow: pip install mlflow-skinny.") from error
    return mlflow
