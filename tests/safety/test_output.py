"""Evidence and page are written together or not at all, and replace nothing by mistake."""

import contextlib
import errno
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise import _files
from equipoise._files import write_together
from equipoise.cli.main import execute
from tests.safety.conftest import number

DEMO = ["audit", "d.csv", "--across", "g", "--label", "y", "--prediction", "p", "-q"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = "".join(f"{i % 2},{i % 3 % 2},{'ab'[i % 5 % 2]}\n" for i in range(60))
    (tmp_path / "d.csv").write_text("y,p,g\n" + lines)
    return tmp_path


def test_nothing_is_replaced_by_mistake(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = place / "out"
    assert execute(DEMO) == 0
    # the same audit again is what one wants; another one is not
    assert execute(DEMO) == 0
    first = (out / "evidence.json").read_bytes()
    assert execute([*DEMO, "--tolerance", "0.2", "--out", "out"]) == 3
    assert "evidence of another plan" in capsys.readouterr().err
    assert (out / "evidence.json").read_bytes() == first
    # in the usual folder one look at a table replaces another, but none of another table
    assert execute([*DEMO, "--tolerance", "0.2"]) == 0
    (place / "e.csv").write_bytes((place / "d.csv").read_bytes())
    assert execute(["audit", "e.csv", *DEMO[2:]]) == 3
    assert execute([*DEMO, "--out", "out", "--force"]) == 0
    # neither is a file of another kind, the data, a folder, a pipe, a device or a link
    report = ["report", "out/evidence.json", "-q", "--out"]
    data = (place / "d.csv").read_bytes()
    assert execute([*report, "d.csv"]) == 3
    assert (place / "d.csv").read_bytes() == data
    os.mkfifo(place / "pipe")
    (place / "link.html").symlink_to(place / "d.csv")
    for target in ("pipe", "/dev/null", "link.html", "out", "/dev/full"):
        assert execute([*report, target]) == 3, target
        assert target == "link.html" or execute([*report, target, "--force"]) == 3, target
    assert stat.S_ISFIFO((place / "pipe").lstat().st_mode)
    assert stat.S_ISCHR(Path("/dev/null").lstat().st_mode)
    (place / "elsewhere").mkdir()
    (place / "there").symlink_to(place / "elsewhere")
    assert execute([*DEMO, "--out", "there"]) == 3
    assert os.listdir(place / "elsewhere") == []
    assert (place / "d.csv").read_bytes() == data


def test_modes_are_kept(place: Path) -> None:
    assert execute(DEMO) == 0
    for name, mode in (("evidence.json", 0o600), ("report.html", 0o640)):
        os.chmod(place / "out" / name, mode)
    assert execute(DEMO) == 0
    modes = [
        stat.S_IMODE((place / "out" / n).stat().st_mode) for n in ("evidence.json", "report.html")
    ]
    assert modes == [0o600, 0o640]


def pair(folder: Path) -> tuple[str | None, str | None]:
    """What the two files say they are; None for one that is not there."""
    found = []
    for name in ("evidence.json", "report.html"):
        path = folder / name
        found.append(path.read_text().split("|")[0] if path.exists() else None)
    return found[0], found[1]


def texts(folder: Path, mark: str) -> dict[Path, str]:
    return {
        folder / "evidence.json": f"{mark}|{'e' * 3000}",
        folder / "report.html": f"{mark}|{'p' * 9000}",
    }


def test_any_failure_leaves_both_old_or_both_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for failing in ("replace", "link", "fsync", "chmod"):
        for at in range(4):
            for error in (OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()):
                write_together(texts(tmp_path, "old"))
                with (
                    monkeypatch.context() as patch,
                    contextlib.suppress(eq.EquipoiseError, KeyboardInterrupt),
                ):
                    patch.setattr(f"equipoise._files.os.{failing}", breaking(failing, at, error))
                    write_together(texts(tmp_path, "new"))
                assert pair(tmp_path) in [("old", "old"), ("new", "new")], (failing, at, error)
                assert sorted(os.listdir(tmp_path)) == ["evidence.json", "report.html"]


def breaking(name: str, at: int, error: BaseException) -> Any:
    """A function of the system that fails when it is called for the so many-th time."""
    real, seen = getattr(os, name), [0]

    def call(*arguments: Any, **options: Any) -> Any:
        seen[0] += 1
        if seen[0] == at + 1:
            raise error
        return real(*arguments, **options)

    return call


KILLED = """
import os, sys
from pathlib import Path
from equipoise._files import write_together
folder, moment = Path(sys.argv[1]), int(sys.argv[2])
# the process ends, as by kill -9, before the call of that number which changes the disk
seen = [0]
def ending(real):
    def call(*arguments, **options):
        seen[0] += 1
        if seen[0] == moment:
            os.kill(os.getpid(), 9)
        return real(*arguments, **options)
    return call
for name in ("replace", "link", "unlink", "fsync", "chmod", "close"):
    setattr(os, name, ending(getattr(os, name)))
n = 0
while True:
    n += 1
    write_together({folder / "evidence.json": f"{n}|e", folder / "report.html": f"{n}|p"})
"""


def test_a_killed_process_leaves_no_mismatched_pair(tmp_path: Path) -> None:
    moments = number(24, 300)
    states = set()
    for moment in range(1, moments + 1):
        folder = tmp_path / str(moment)
        folder.mkdir()
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(folder), str(moment)],
            env={**os.environ, "PYTHONPATH": str(Path(_files.__file__).parents[1])},
            capture_output=True,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
        evidence, page = pair(folder)
        # both of one time, or the page missing: never a page of another evidence
        assert page is None or evidence == page, (moment, evidence, page)
        states.add((evidence is None, page is None))
    assert (False, False) in states


def test_interrupted_commands_say_what_was_kept(place: Path) -> None:
    code = (
        "import sys, equipoise.cli.auditing as a, equipoise.plan as p, time\n"
        "import equipoise.plan.run\n"
        "def slow(*_, **__):\n"
        "    sys.stdout.write('ready'); sys.stdout.flush(); time.sleep(30)\n"
        "p.run = slow\n"
        "from equipoise.cli.main import main\n"
        f"main({DEMO!r})\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(_files.__file__).parents[1])}
    started = subprocess.Popen(
        [sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert started.stdout is not None
    assert started.stdout.read(5) == b"ready"
    time.sleep(0.1)
    started.send_signal(signal.SIGINT)
    _, err = started.communicate(timeout=60)
    assert started.returncode == 130
    assert b"nothing was written" in err
    assert not (place / "out").exists()


def test_what_cannot_be_written_has_a_stated_outcome(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(DEMO) == 0
    before = [(place / "out" / n).read_bytes() for n in ("evidence.json", "report.html")]

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for name, error in (("fsync", errno.ENOSPC), ("replace", errno.EROFS)):
        with monkeypatch.context() as patch:
            patch.setattr(f"equipoise._files.os.{name}", full)
            assert execute(DEMO) == 3, error
        assert "cannot be written" in capsys.readouterr().err
    assert [(place / "out" / n).read_bytes() for n in ("evidence.json", "report.html")] == before
    # any other mishap: one line, and a pointer to where it comes from
    with monkeypatch.context() as patch:
        patch.setattr("equipoise.cli.auditing.make_report", lambda *_, **__: 1 / 0)
        assert execute(DEMO) == 3
    said = capsys.readouterr().err
    assert len(said.strip().splitlines()) == 1
    assert "--debug" in said


def test_a_suppressed_run_publishes_no_small_group(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [("North", i % 2, i % 3 % 2) for i in range(80)] + [("Isle", 1, 0)] * 3
    rows += [("South", i % 2, i % 3 % 2) for i in range(70)]
    text = "".join(f"{y},{p},{g}\n" for g, y, p in rows)
    (place / "d.csv").write_text("y,p,g\n" + text)
    loud = [word for word in DEMO if word != "-q"]
    assert execute([*loud, "--suppress", "10", "--full-evidence", "full.json"]) == 0
    shown = capsys.readouterr().out
    assert "keep it where the rows are kept" in " ".join(shown.split())
    for told in (
        shown,
        *((place / "out" / n).read_text() for n in ("evidence.json", "report.html")),
    ):
        assert not re.search(r"\bIsle\b", re.sub(r"<script>.*?</script>", "", told, flags=re.S))
    assert "Isle" in (place / "full.json").read_text()
    assert json.loads((place / "out" / "evidence.json").read_text())["suppress"] == 10
    assert execute(["verify", "out/evidence.json"]) == 3
    assert execute(["verify", "full.json"]) == 0


@pytest.mark.parametrize(
    "outputs",
    [
        ["--out", "a", "--junit", "a/evidence.json"],
        ["--out", "a", "--sarif", "b/../a/report.html"],
        ["--out", "a", "--suppress", "5", "--full-evidence", "f.json", "--junit", "f.json"],
        ["--out", "a", "--suppress", "5", "--full-evidence", "a/evidence.json"],
        ["--junit", "j", "--sarif", "j"],
        ["--junit", "j", "--summary", "second"],
        ["--out", "a", "--summary", "a/report.html"],
    ],
)
def test_two_outputs_have_two_names(
    place: Path, capsys: pytest.CaptureFixture[str], outputs: list[str]
) -> None:
    """One of them silently took the place of the other."""
    (place / "b").mkdir()
    (place / "j").write_text("")
    os.link("j", "second")
    (place / "audit.yaml").write_text(
        "{equipoise: 1, seed: 7, trail: {source: d.csv, label: y, prediction: p}, audits: "
        "[{audit: certify, claim: {kind: gap, metric: accuracy, across: [g]}}]}"
    )
    before = sorted(place.rglob("*"))
    assert execute(["check", "audit.yaml", "-q", "--force", *outputs]) == 3
    assert "Two files were to be written" in capsys.readouterr().err
    assert sorted(place.rglob("*")) == before
    assert (place / "j").read_text() == ""


@pytest.mark.parametrize("module", ["typer", "rich.console", "equipoise.cli.auditing"])
def test_an_early_interruption_leaves_one_line(place: Path, module: str) -> None:
    """Ctrl-C while the command was being loaded printed a traceback."""
    code = f"""
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
from equipoise.__main__ import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=place
    )
    assert done.returncode == 130
    assert done.stderr == "error: Interrupted: nothing was written.\n"
