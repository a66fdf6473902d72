"""The suite is as large as it says."""

from pathlib import Path

import pytest

from tests.fuzz import cases


def test_there_are_enough_cases(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\nfuzz: {cases.total():,} cases planned", end="")  # noqa: T201
    assert cases.total() >= cases.LEAST


def test_every_planned_test_exists() -> None:
    """Each name is used, so that no case is counted that nobody runs."""
    folder = Path(__file__).parent
    written = "".join(path.read_text() for path in sorted(folder.glob("test_*.py")))
    unused = [name for name in cases.PLANNED if f'"{name}"' not in written]
    assert unused == []


def test_a_case_can_be_found_again() -> None:
    first, again = (cases.rng_of("read", 7).integers(1000, size=5).tolist() for _ in range(2))
    assert first == again
    assert first != cases.rng_of("read", 8).integers(1000, size=5).tolist()
    assert first != cases.rng_of("flag", 7).integers(1000, size=5).tolist()


def test_failures_are_told_by_case() -> None:
    def fails(rng: object) -> None:
        raise ValueError("broken")

    with pytest.raises(AssertionError, match=r"case 0 of 'report'[\s\S]*ValueError: broken"):
        cases.run("report", fails)
