from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.check_hygiene import check, main

# Written in pieces, so that this file passes the check it tests.
S = "/"

PLANTED = [
    ("home", "a.py", f'DATA = "{S}home/ada/data.csv"', "folder of one machine"),
    ("root", "Makefile", f"cd {S}root/project", "folder of one machine"),
    ("mac home", "docs/a.md", f"see {S}Users/ada/x", "folder of one machine"),
    ("work", "a.txt", f"# via -r {S}work/requirements.in", "folder of one machine"),
    ("windows home", "a.txt", "C:\\" + "Users\\ada", "home folder of one machine"),
    ("registry", "a.toml", "url = 'https:" + "//pypi" + ".org/project/x'", "package registry"),
    ("files", "a.txt", "https:" + "//files.python" + "hosted.org/x.whl", "package registry"),
    (
        "mirror",
        "a.toml",
        "url = 'http:" + "//mirror.local/ro" + "ot/pypi" + S + "simple'",
        "package index",
    ),
    ("index option", "requirements/a.txt", "--extra-index" + "-url x", "index option"),
    ("find links", "requirements/a.txt", "six==1\n--find" + "-links wheels", "index option"),
    ("uv lock", "uv" + ".lock", "version = 1", "lock file"),
    ("pylock", "pylock" + ".toml", "lock-version = '1.0'", "lock file"),
    ("named pylock", "pylock" + ".dev.toml", "lock-version = '1.0'", "lock file"),
]

INNOCENT = f"""\
see https://example.org/home/page/ and ../home/page/ and docs{S}root{S}a.md
the network/ folder; ./work/ here; a simple sentence
"""


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True)


@pytest.fixture(params=["git", "plain folder"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "git":
        git(tmp_path, "init")
    return tmp_path


def test_innocent_text_passes(folder: Path) -> None:
    write(folder, "README.md", INNOCENT)
    assert check(folder) == []
    assert main([str(folder)]) == 0


@pytest.mark.parametrize(
    ("name", "text", "message"), [case[1:] for case in PLANTED], ids=[case[0] for case in PLANTED]
)
def test_each_planted_fault_is_reported(folder: Path, name: str, text: str, message: str) -> None:
    write(folder, name, "\n" + text)
    faults = check(folder)
    assert len(faults) == 1
    assert faults[0].startswith(f"{name}:")
    assert message in faults[0]
    assert main([str(folder)]) == 1


def test_fault_names_its_line(folder: Path) -> None:
    write(folder, "a.txt", f"one\ntwo\ncd {S}root/x")
    assert check(folder)[0].startswith("a.txt:3:")


def test_committed_and_new_files_count_and_ignored_ones_do_not(tmp_path: Path) -> None:
    git(tmp_path, "init")
    write(tmp_path, ".gitignore", "ignored.txt")
    for name in ("staged.txt", "new.txt", "ignored.txt", "deleted.txt"):
        write(tmp_path, name, f"cd {S}root/x")
    git(tmp_path, "add", "staged.txt", "deleted.txt")
    (tmp_path / "deleted.txt").unlink()
    assert [fault.split(":")[0] for fault in check(tmp_path)] == ["new.txt", "staged.txt"]


def test_build_folders_do_not_count_without_git(tmp_path: Path) -> None:
    write(tmp_path, ".venv/pip.conf", f"{S}home/ada/wheels")
    write(tmp_path, "src/a.py", f"{S}home/ada/wheels")
    assert [fault.split(":")[0] for fault in check(tmp_path)] == ["src/a.py"]


def test_the_repository_itself_is_clean() -> None:
    assert check(Path(__file__).parents[2]) == []
