"""Tells how many cases were run."""

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    passed = terminalreporter.stats.get("passed", [])
    counts = [value for report in passed for name, value in report.user_properties if name == CASES]
    if counts:
        terminalreporter.write_line(f"fuzz: {sum(counts):,} cases in {len(counts)} tests")


CASES = "fuzz cases"
