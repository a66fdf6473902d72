"""The verbs: each takes a trail and a question, and returns a finding.

One module per verb: what a caller may ask, one check of it, and the steps. `methods` holds the
values that options take. What stands behind several verbs, or is too long for one module:

- `_common`: what every verb shares
- `_groups`: `certify`, `flag`, `joint_test`, `discover`
- `_shift`, `_calibration`, `_repair`: the verbs of these names
- `_individual`, `_people`: `individual`, `select_fair`
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equipoise.findings import Finding

VERBS = (
    "alternatives",
    "calibration",
    "certify",
    "compare",
    "describe",
    "discover",
    "flag",
    "individual",
    "joint_test",
    "monitor",
    "power",
    "repair",
    "select_fair",
    "shift",
    "summarize",
)


def verb(name: str) -> Callable[..., Finding]:
    """A verb by its name; its module, and the mathematics behind it, come in when it is asked for.

    >>> verb("flag").__name__
    'flag'
    """
    found: Callable[..., Finding] = getattr(import_module(f"{__name__}.{name}"), name)
    return found
