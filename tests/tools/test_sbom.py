"""The list of components names every pinned package, with digests."""

from pathlib import Path
from typing import Any

from tools.sbom import ROOT, components, listing


def test_every_pinned_package_is_listed(tmp_path: Path) -> None:
    (tmp_path / "equipoise-1.0-py3-none-any.whl").write_bytes(b"wheel")
    made: Any = listing(tmp_path)
    text = (ROOT / "requirements" / "core.txt").read_text()
    pins = [line for line in text.splitlines() if "==" in line and not line.startswith((" ", "#"))]
    assert len(made["components"]) == len(pins) == len(components(text))
    assert all(one["hashes"] for one in made["components"])
    assert {"numpy", "duckdb"} <= {one["name"] for one in made["components"]}
    assert made["metadata"]["component"]["properties"][0]["name"].endswith(".whl")
