"""Every block of the documentation runs, and what it speaks of exists."""

import re
import shlex
from pathlib import Path

import pytest

import equipoise as eq
from equipoise.cli.main import execute
from tools import command_page, pictures

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
TITLED = re.compile(r"yaml title=\"(.*)\"")
PAGES = sorted((ROOT / "docs").rglob("*.md"))
TUTORIALS = [page for page in PAGES if page.parent.name == "tutorial"]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_code_of_a_page_runs(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Pages may read and write files; they do so in a folder of their own.
    monkeypatch.chdir(tmp_path)
    if page.parent.name != "tutorial":
        # a tutorial is followed from an empty folder
        eq.datasets.write_decisions(tmp_path / "decisions.csv")
    names: dict[str, object] = {}
    printed = ""
    for opening, block in BLOCK.findall(page.read_text()):
        if opening == "python":
            exec(compile(block, str(page), "exec"), names)
            printed = capsys.readouterr().out
        elif opening == "text":
            # a page shows what its last block printed, whole or in part, in its order
            assert [line for line in block.splitlines() if line not in printed] == []
            assert in_order(block.splitlines(), printed) == []
        elif opening == "console":
            run_commands(block)
        elif written := TITLED.fullmatch(opening):
            Path(written[1]).write_text(block)


def in_order(lines: list[str], printed: str) -> list[str]:
    """The lines that are not printed after those before them."""
    place, early = 0, []
    for line in lines:
        found = printed.find(line, place)
        if found < 0:
            early.append(line)
        else:
            place = found
    return early


def run_commands(block: str) -> None:
    """Run the lines that call the command line; each must do what it should."""
    for line in block.splitlines():
        if line.startswith("$ equipoise "):
            code = execute(shlex.split(line.removeprefix("$ equipoise ")))
            assert code in (0, 1, 2) if " check " in line else code == 0, line


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda path: str(path.stem))
def test_a_tutorial_begins_with_one_install_line(page: Path) -> None:
    blocks = [block for _, block in BLOCK.findall(page.read_text())]
    assert re.fullmatch(r"pip install '?equipoise[^;&]*\n", blocks[0])
    assert not [block for block in blocks[1:] if "pip install" in block]


def test_there_are_pages() -> None:
    assert PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pictures_of_a_page_exist_and_are_small(page: Path) -> None:
    for name in pictures.pictures_shown(page):
        picture = ROOT / "docs" / "pictures" / name
        assert picture.is_file(), f"{name} is missing: make pictures"
        # reports are photographed by another script, which has a limit of its own
        if not name.startswith("report-"):
            assert picture.stat().st_size <= pictures.LARGEST


def test_every_picture_that_a_page_makes_is_shown() -> None:
    made = {name for page in PAGES for name in pictures.pictures_made(page)}
    shown = {name for page in PAGES for name in pictures.pictures_shown(page)}
    assert made
    assert made <= shown


@pytest.mark.parametrize("name", eq.__all__)
def test_every_public_name_is_in_the_documentation(name: str) -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    assert re.search(rf"\b{re.escape(name)}\b", text), f"no page speaks of {name}"


def test_every_page_is_in_the_navigation() -> None:
    listed = (ROOT / "mkdocs.yml").read_text()
    missing = [name for page in PAGES if (name := _name(page)) not in listed]
    assert not missing


def _name(page: Path) -> str:
    return page.relative_to(ROOT / "docs").as_posix()


def test_scripts_and_tests_that_pages_name_exist() -> None:
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for page in PAGES:
        text = page.read_text()
        for path in re.findall(r"`((?:tests|validation|tools)/[\w/.]+)`", text):
            assert (ROOT / path).exists(), f"{_name(page)} names {path}"
        for name in re.findall(r"`(test_\w+)`", text):
            assert f"def {name}(" in tests, f"{_name(page)} names {name}"


def test_the_list_of_commands_is_that_of_the_command_line() -> None:
    assert command_page.PAGE.read_text() == command_page.page(), "make pictures writes it again"


WORDS = ("unbiased model", "proves fair", "proof of fairness", "is fair", "are fair", "bias-free")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_page_promises_more_than_an_audit_can(page: Path) -> None:
    if page.name == "wording.md":  # it lists what not to say
        return
    text = page.read_text().lower()
    assert not [words for words in WORDS if words in text]
