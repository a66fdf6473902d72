"""Leaving a command with a verdict."""

from equipoise.plan.gate import Exit


class Leave(Exception):  # noqa: N818 (not an error)
    """A command is done, and its exit code says what it found."""

    def __init__(self, code: Exit) -> None:
        super().__init__(int(code))
        self.code = code
