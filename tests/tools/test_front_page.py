"""The measured parts of the README and of the errata are those of the stored results."""

from pathlib import Path

import pytest

from tools import front_page


@pytest.mark.parametrize("page", front_page.PAGES, ids=lambda page: page.name)
def test_the_page_is_up_to_date(page: Path) -> None:
    assert front_page.filled(page) == page.read_text(encoding="utf-8"), (
        f"{page.name}: run tools/front_page.py"
    )


def test_every_part_is_on_a_page() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in front_page.PAGES)
    assert [name for name in front_page.PARTS if f"<!-- {name} -->" not in text] == []


def test_the_first_screen_is_short_and_names_every_peer_with_its_range() -> None:
    first = front_page.PAGES[0].read_text(encoding="utf-8").split("## ")[0]
    assert len(first.splitlines()) < 32
    line = front_page.alarms()
    assert all(
        peer in line for peer in ("fairaudit", "Fairlearn", "AIF360", "Aequitas", "vfairness")
    )


def test_false_alarms_are_read_and_power_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "README.md"
    power = "; with 10 points planted in a race 40 % at n = 500, 70 % at n = 2,000"
    page.write_text(
        "## false_alarms\n\n| what | figure |\n|---|---|\n"
        f"| equipoise 1: `flag` | 1 % at n = 500, 2 % (1 %) at n = 2,000{power} |\n"
        f"| peer 1: a rule | 90 % at n = 500, 80 % at n = 2,000{power} |\n"
        f"| peer 1: lost | 9 % at n = 500, **could not be run: no** at n = 2,000{power} |\n"
    )
    monkeypatch.setattr(front_page, "BENCHMARKS", page)
    assert front_page.alarms().endswith("| 2 % | peer 80 %, by rule |")


@pytest.mark.parametrize(
    ("written", "read"),
    [("4.09e+03 × faster", "4,090 × faster"), ("113 × faster", "113 × faster"), ("1e-09", "1e-09")],
)
def test_ratios_are_written_as_people_write_them(written: str, read: str) -> None:
    assert front_page.plain(written) == read


@pytest.mark.parametrize(
    ("shares", "words"),
    [([0.02, 0.055], "2 % – 5.5 %"), ([1.0, 1.0], "100 %"), ([0.0, 0.835], "0 % – 83.5 %")],
)
def test_a_span_of_shares(shares: list[float], words: str) -> None:
    assert front_page.between(shares) == words


def test_a_missing_benchmark_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "README.md"
    page.write_text("## tilts\n\n| what | figure |\n|---|---|\n| a question | 2.5e+04 × |\n")
    monkeypatch.setattr(front_page, "BENCHMARKS", page)
    assert front_page.benchmark("tilts", "a question") == "25,000 ×"
    with pytest.raises(KeyError, match="no line of tilts begins with 'another'"):
        front_page.benchmark("tilts", "another")
