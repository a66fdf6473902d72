"""A progress bar that appears only when there is something to wait for."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from equipoise.errors import OptionError

Progress = bool | Callable[[int, int], None] | None
#: Seconds before a bar appears.
PATIENCE = 1.0


@contextmanager
def progress_bar(progress: Progress, total: int, title: str) -> Iterator[Callable[[int], None]]:
    """Give a function to be told how many of ``total`` steps are done.

    ``progress`` is a function called with (done, total), True or False, or None: a bar if someone
    is watching. An interrupted audit leaves the terminal as it was.
    """
    if not (progress is None or callable(progress) or isinstance(progress, bool)):
        raise OptionError(
            f"progress must be True, False, None or a function of (done, total); got {progress!r}."
        )
    if callable(progress):
        yield lambda done: progress(done, total)
        return
    bar = _Bar(total, title) if (_watched() if progress is None else progress) else None
    try:
        yield bar.update if bar else _ignore
    finally:
        if bar:
            bar.close()


def _ignore(done: int) -> None:
    """Nobody is watching."""


def _watched() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class _Bar:
    """A rich progress bar, started once the work has taken longer than a moment."""

    def __init__(self, total: int, title: str) -> None:
        self._total, self._title = total, title
        self._started = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def update(self, done: int) -> None:
        if self._bar is None and time.monotonic() - self._started > PATIENCE:
            self._open()
        if self._bar is not None:
            self._bar.update(self._task, completed=done)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(self._title, total=self._total)
        self._bar.start()
