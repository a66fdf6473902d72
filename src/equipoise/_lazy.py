"""Modules that are imported when they are first used, so that `import equipoise` stays quick."""

from importlib import import_module
from typing import Any


class LazyModule:
    """Stands for a module until something of it is needed.

    >>> LazyModule("math").sqrt(9.0)
    3.0
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, item: str) -> Any:
        return getattr(import_module(self._name), item)
