"""The monitor commands: what they print, what they write, how they leave."""

from pathlib import Path

import pytest

from equipoise.cli.main import execute

PLAN = """
equipoise: 1
seed: 7
trail: {source: rows.csv, prediction: hired}
audits:
  - audit: monitor
    name: hiring
    claim: {kind: gap, metric: selection_rate, across: [sex], target: complement}
    below: -0.1
"""


def rows(path: Path, women: int, month: str = "2026-01") -> str:
    lines = ["sex,hired,day"]
    for sex, ones in (("f", women), ("m", 50)):
        lines += [f"{sex},{int(i < ones)},{month}-{1 + i % 28:02d}" for i in range(100)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "watch.yaml").write_text(PLAN, encoding="utf-8")
    assert execute(["monitor", "start", "watch.yaml", "--ledger", "l"]) == 0
    return "l"


def test_a_stream_goes_from_quiet_to_alarm(
    ledger: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = rows(tmp_path / "a.csv", 50)
    assert execute(["monitor", "add", ledger, first, "--period", "2026-01"]) == 0
    assert execute(["monitor", "add", ledger, first, "--period", "2026-01"]) == 0
    assert "already there" in capsys.readouterr().out
    assert execute(["monitor", "check", ledger]) == 2
    assert execute(["monitor", "check", ledger, "--undetermined", "pass", "-q"]) == 0
    for number in (2, 3):
        worse = rows(tmp_path / f"{number}.csv", 10)
        assert execute(["monitor", "add", ledger, worse, "--period", f"2026-0{number}"]) == 0
    capsys.readouterr()
    assert execute(["monitor", "check", ledger, "--out", "o"]) == 1
    said = capsys.readouterr().out
    assert "in alarm since 2026-0" in said
    assert "█" in said
    assert (tmp_path / "o" / "report.html").is_file()
    assert execute(["monitor", "verify", ledger, "--evidence", "o/evidence.json"]) == 0
    assert execute(["monitor", "show", ledger, "--json"]) == 0
    assert execute(["explain", "monitor"]) == 0


def test_other_rows_and_strange_files_are_errors(
    ledger: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    execute(["monitor", "add", ledger, rows(tmp_path / "a.csv", 50), "--period", "1"])
    capsys.readouterr()
    other = rows(tmp_path / "b.csv", 40)
    assert execute(["monitor", "add", ledger, other, "--period", "1"]) == 3
    assert "with other rows" in capsys.readouterr().err
    assert execute(["monitor", "add", ledger, other, "--period", "1", "--late"]) == 0
    assert execute(["monitor", "start", "watch.yaml", "--ledger", ledger]) == 3
    assert execute(["monitor", "show", "a.csv"]) == 3
    text = (tmp_path / ledger).read_text(encoding="utf-8")
    (tmp_path / "forged").write_text(text.replace('"rows":[100,100]', '"rows":[100,101]'))
    assert execute(["monitor", "verify", "forged"]) == 1
    (tmp_path / "none.yaml").write_text(PLAN.replace("monitor", "flag"), encoding="utf-8")
    assert execute(["monitor", "start", "none.yaml", "--ledger", "n"]) == 3
    assert not (tmp_path / "n").exists()


def test_a_long_table_and_several_places(ledger: str, tmp_path: Path) -> None:
    whole = [Path(rows(tmp_path / f"{m}.csv", 50, f"2026-0{m}")).read_text() for m in (1, 2, 3)]
    body = whole[0] + "".join(text.split("\n", 1)[1] for text in whole[1:])
    (tmp_path / "long.csv").write_text(body, encoding="utf-8")
    added = ["monitor", "add", ledger, "long.csv", "--time", "day", "--period", "month"]
    assert execute(added) == 0
    assert execute(["monitor", "add", ledger, "long.csv"]) == 3
    execute(["monitor", "start", "watch.yaml", "--ledger", "south"])
    execute([*added[:2], "south", *added[3:]])
    assert execute(["monitor", "merge", ledger, "south", "--out", "both"]) == 0
    assert execute(["monitor", "verify", "both"]) == 0
    assert execute(["monitor", "check", "both", "-q"]) == 2
