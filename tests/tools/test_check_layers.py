from __future__ import annotations

from pathlib import Path

import pytest

from tools.check_layers import check, main

CLEAN = {
    "__init__.py": "from equipoise.audits.flag import flag\nfrom . import trail\n",
    "errors.py": "class EquipoiseError(Exception): ...\n",
    "methods/multiplicity.py": "import math\nimport numpy as np\nfrom scipy.special import ndtr\n",
    "trail/trail.py": "from ..errors import EquipoiseError\ndef read():\n    import duckdb\n",
    "claims/gap.py": "from equipoise.trail.trail import read\n",
    "cells/cube.py": "from ..claims import gap\nfrom ..methods import multiplicity\n",
    "findings/base.py": (
        "from typing import TYPE_CHECKING\n"
        "from equipoise import errors\n"
        "if TYPE_CHECKING:\n    import pandas\n"
    ),
    "audits/flag.py": "from equipoise.cells.cube import x\nfrom equipoise.findings import base\n",
    "plan/run.py": "from ..audits.flag import flag\n",
    "report/page.py": "from ..findings.base import x\ndef plot():\n    import altair\n",
    "worlds/null.py": "from equipoise.claims.gap import x\n",
    "cli/main.py": "import equipoise as eq\nfrom equipoise.plan import run\n",
}

PLANTED = [
    ("base to trail", "errors.py", "from .trail import Trail", "base may not import trail"),
    ("methods to base", "methods/a.py", "from ..errors import E", "methods may not import base"),
    ("methods outside", "methods/a.py", "import narwhals", "numpy, scipy from outside"),
    ("methods sklearn", "methods/a.py", "def f():\n    import sklearn.tree", "from outside"),
    ("trail to claims", "trail/a.py", "import equipoise.claims.gap", "trail may not import claims"),
    ("claims to cells", "claims/a.py", "from .. import cells", "claims may not import cells"),
    ("cells to findings", "cells/a.py", "from ..findings import base", "cells may not import"),
    ("findings to claims", "findings/a.py", "from ..claims import gap", "findings may not import"),
    ("audits to plan", "audits/a.py", "from equipoise import plan", "audits may not import plan"),
    ("audits to datasets", "audits/a.py", "from ..datasets import x", "audits may not import"),
    ("plan to report", "plan/a.py", "from ..report import page", "plan may not import report"),
    (
        "report to audits",
        "report/a.py",
        "from ..audits import flag",
        "report may not import audits",
    ),
    ("worlds to cells", "worlds/a.py", "from ..cells import cube", "worlds may not import cells"),
    (
        "datasets to audits",
        "datasets/__init__.py",
        "from ..audits import x",
        "may not import audits",
    ),
    ("layer to top", "trail/a.py", "from equipoise import gap", "trail may not import top"),
    ("plain top", "claims/a.py", "import equipoise", "claims may not import top"),
    (
        "deep relative",
        "methods/boot/a.py",
        "from ...trail import x",
        "methods may not import trail",
    ),
    ("package relative", "trail/sub/__init__.py", "from ...claims import x", "import claims"),
    ("in a function", "trail/a.py", "def f():\n    from ..claims import gap", "import claims"),
    (
        "for typing",
        "trail/a.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..claims import gap",
        "trail may not import claims",
    ),
    ("heavy at the top", "trail/a.py", "import duckdb", "inside the function"),
    ("heavy from", "audits/a.py", "from sklearn.tree import Tree", "inside the function"),
    (
        "heavy in try",
        "trail/a.py",
        "try:\n    import pyspark\nexcept ImportError: ...",
        "inside the",
    ),
    ("heavy in class", "report/a.py", "class A:\n    import altair", "inside the function"),
    ("heavy in cli", "cli/a.py", "import pandas as pd", "inside the function"),
    ("heavy in the top", "__init__.py", "import polars", "inside the function"),
    (
        "heavy in the else of typing",
        "trail/a.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING: ...\nelse:\n    import ibis",
        "inside the function",
    ),
    ("stats", "methods/a.py", "import scipy.stats as st", "use scipy.special"),
    ("stats from scipy", "audits/a.py", "from scipy import stats", "use scipy.special"),
    ("stats from", "methods/a.py", "from scipy.stats import norm", "use scipy.special"),
    ("stats in a function", "audits/a.py", "def f():\n    import scipy.stats", "use scipy.special"),
    (
        "stats by attribute",
        "methods/a.py",
        "import scipy\nx = scipy.stats.norm",
        "use scipy.special",
    ),
    ("unknown file", "helpers.py", "x = 1", "helpers is in no layer"),
    ("unknown folder", "utils/a.py", "x = 1", "utils is in no layer"),
]


def plant(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    return plant(tmp_path / "equipoise", CLEAN)


def test_clean_tree_passes(clean: Path) -> None:
    assert check(clean) == []
    assert main([str(clean)]) == 0


@pytest.mark.parametrize(
    ("name", "source", "message"), [case[1:] for case in PLANTED], ids=[case[0] for case in PLANTED]
)
def test_each_planted_violation_is_reported(
    clean: Path, name: str, source: str, message: str
) -> None:
    plant(clean, {name: source + "\n"})
    faults = check(clean)
    assert len(faults) == 1
    assert message in faults[0]
    assert str(clean / name) in faults[0]
    assert main([str(clean)]) == 1


def test_fault_names_its_line(clean: Path) -> None:
    plant(clean, {"trail/a.py": "x = 1\n\nfrom ..claims import gap\n"})
    assert check(clean)[0].startswith(f"{clean / 'trail' / 'a.py'}:3: ")


def test_the_package_itself_keeps_the_order() -> None:
    assert check(Path(__file__).parents[2] / "src" / "equipoise") == []


def test_a_circle_is_reported_wherever_it_is(clean: Path) -> None:
    for name, other in (("one", "two"), ("two", "three"), ("three", "one")):
        (clean / "methods" / f"{name}.py").write_text(f"from equipoise.methods.{other} import f\n")
    (fault,) = check(clean)
    assert "import each other in a circle" in fault
    assert all(f"equipoise.methods.{name}" in fault for name in ("one", "two", "three"))
    late = "def g():\n    from equipoise.methods.one import f\n"
    (clean / "methods" / "three.py").write_text(late)
    assert check(clean) == []
