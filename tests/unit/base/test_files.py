"""Files are written whole or not at all."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import equipoise as eq
from equipoise._files import read_text, write_atomically

WRITER = """
import sys
from equipoise._files import write_atomically
letters = "ab"
turn = 0
while True:
    write_atomically(sys.argv[1], letters[turn % 2] * 3_000_000)
    turn += 1
    if turn == 1:
        print("ready", flush=True)
"""


def test_written_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.txt"
    write_atomically(path, "one ✓")
    write_atomically(path, "two")
    assert path.read_text() == "two"
    assert [p.name for p in path.parent.iterdir()] == ["file.txt"]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o000, 0o644)])
def test_a_file_may_be_read_by_whom_the_process_allows(
    tmp_path: Path, mask: int, mode: int
) -> None:
    before = os.umask(mask)
    try:
        written = write_atomically(tmp_path / "file.txt", "text")
    finally:
        assert os.umask(before) == mask
    assert stat.S_IMODE(written.stat().st_mode) == mode


def test_killed_while_writing_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    for wait in (0.0, 0.003, 0.011, 0.02, 0.035):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(wait)
            process.send_signal(signal.SIGKILL)
            process.wait()
        text = path.read_text()
        assert len(text) == 3_000_000
        assert len(set(text)) == 1


def test_what_cannot_be_written_or_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(eq.EquipoiseError, match="cannot be written"):
        write_atomically(tmp_path / "file" / "below", "text")
    (tmp_path / "folder").mkdir()
    with pytest.raises(eq.EquipoiseError, match="cannot be written"):
        write_atomically(tmp_path / "folder", "text")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]
    with pytest.raises(eq.EquipoiseError, match="no file"):
        read_text(tmp_path / "nothing", "plan")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(eq.EquipoiseError, match="cannot be read"):
        read_text(tmp_path / "bytes", "plan")
