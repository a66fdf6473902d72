"""Leaving a command with a verdict."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equipoise.plan.gate import Exit

#: Exit codes as `equipoise.plan.Exit` has them: plans bring in half a second of imports, which
#: `--help` and a mistyped command should not wait for.
DONE, ERROR = 0, 3


class Leave(Exception):  # noqa: N818 (not an error)
    """A command is done, and its exit code says what it found."""

    def __init__(self, code: "Exit") -> None:
        super().__init__(int(code))
        self.code = code
