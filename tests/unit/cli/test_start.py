"""Help should not wait for the mathematics or for plans."""

import json
import subprocess
import sys

from equipoise.cli.common import DONE, ERROR
from equipoise.plan import Exit

LATER = ("pydantic", "yaml", "altair", "sklearn", "equipoise.plan", "equipoise.audits.certify")
PROGRAM = f"""
import json, sys
from equipoise.cli.main import execute
code = execute(["--help"])
print()
print(json.dumps([code, [name for name in {LATER!r} if name in sys.modules]]))
"""


def test_exit_codes_are_those_of_the_gate() -> None:
    assert (Exit.KEPT, Exit.ERROR) == (DONE, ERROR)


def test_help_brings_in_neither_plans_nor_audits() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout.splitlines()[-1]) == [DONE, []]
