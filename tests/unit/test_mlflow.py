"""Evidence logged to a real MLflow run, kept in a folder."""

from pathlib import Path

import pytest

import equipoise as eq
from equipoise.findings.evidence import Evidence


@pytest.mark.filterwarnings("ignore")
def test_evidence_and_report_become_artifacts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow")
    from equipoise.mlflow import log_evidence

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"file://{tmp_path}/runs")
    found = eq.flag(eq.datasets.compas(), eq.gap("false_positive_rate", across="race"), above=0.05)
    with mlflow.start_run() as run:
        log_evidence(found)
    kept = {path.name: path for path in (tmp_path / "runs").rglob("equipoise/*")}
    assert set(kept) == {"evidence.json", "report.html"}
    assert Evidence.load(kept["evidence.json"]).entries[0].finding == found
    logged = mlflow.get_run(run.info.run_id).data
    assert logged.tags["equipoise.verdict"] == "exceeded"
    assert logged.metrics == {"equipoise.violations": 1.0, "equipoise.undetermined": 0.0}
