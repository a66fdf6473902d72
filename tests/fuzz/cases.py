"""How many cases each test runs, and a loop whose every case can be found again."""

import os
import traceback
import zlib
from collections.abc import Callable

import numpy as np
from hypothesis import HealthCheck, settings

#: Cases of each test; together at least ten thousand, in a minute and a half of one core.
PLANNED = {
    "read": 1300,
    "read files": 120,
    "arrays": 900,
    "describe": 500,
    "certify": 400,
    "flag": 450,
    "joint_test": 60,
    "discover": 150,
    "summarize": 150,
    "compare": 150,
    "repair": 40,
    "alternatives": 60,
    "individual": 150,
    "select_fair": 100,
    "shift": 150,
    "calibration": 80,
    "degenerate": 400,
    "formulas": 1800,
    "metrics": 500,
    "claims": 1200,
    "plan text": 300,
    "plan data": 900,
    "findings": 900,
    "evidence": 300,
    "report": 14,
    "command line": 60,
}
LEAST = 10_000
#: Failures of different kinds that are told of in one go.
MOST_TOLD = 12

Case = Callable[[np.random.Generator], object]


def number(name: str) -> int:
    """Cases of a test; the variable says how many an average test should have."""
    asked = os.environ.get("EQUIPOISE_FUZZ_EXAMPLES")
    if not asked:
        return PLANNED[name]
    average = sum(PLANNED.values()) / len(PLANNED)
    return max(1, round(PLANNED[name] * int(asked) / average))


def total() -> int:
    return sum(number(name) for name in PLANNED)


def rng_of(name: str, case: int) -> np.random.Generator:
    """The randomness of one case, which does not depend on any other."""
    return np.random.default_rng([11, zlib.crc32(name.encode()), case])


def run(name: str, one: Case) -> int:
    """Run every case of a test and tell of all kinds of failure at once."""
    failures: dict[tuple[str, ...], str] = {}
    for case in range(number(name)):
        try:
            one(rng_of(name, case))
        except Exception as error:
            failures.setdefault(_kind(error), f"case {case} of {name!r}:\n{_told(error)}")
            if len(failures) == MOST_TOLD:
                break
    assert not failures, "\n\n".join(failures.values())
    return number(name)


def examples(name: str) -> settings:
    """Hypothesis with the same examples in every run."""
    return settings(
        max_examples=number(name),
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


def _kind(error: Exception) -> tuple[str, ...]:
    places = [f"{f.filename}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)]
    return (type(error).__name__, *places[-2:])


def _told(error: Exception) -> str:
    lines = traceback.format_exception(error)
    return "".join(lines)[-2500:]
