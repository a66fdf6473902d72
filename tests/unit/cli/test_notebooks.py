"""Notebooks executed in a bare kernel, without widgets and without a network."""

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).parents[3]
# the kernel may talk to this process and to nobody else
ALONE = """
import socket
plain = socket.socket.connect
def near(self, address):
    host = address[0] if isinstance(address, tuple) else ""
    if host not in ("", "127.0.0.1", "localhost", "::1"):
        raise OSError(f"no network for {host}")
    return plain(self, address)
socket.socket.connect = near
"""


def executed(folder: Path, *cells: str) -> list[Any]:
    """What each cell showed."""
    made = nbformat.v4.new_notebook(  # type: ignore[no-untyped-call]
        cells=[nbformat.v4.new_code_cell(cell) for cell in (ALONE, *cells)]  # type: ignore[no-untyped-call]
    )
    client = NotebookClient(made, timeout=120, resources={"metadata": {"path": str(folder)}})
    return [cell.outputs for cell in client.execute().cells[1:]]


def shown(outputs: list[Any], kind: str) -> str:
    return "".join(output.data.get(kind, "") for output in outputs if "data" in output)


def test_the_ten_lines_and_the_pictures(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = re.search(
        r"## Ten lines\n\n```python\n(.*?)```\n\n```text\n(.*?)```", readme, re.DOTALL
    )
    assert lines is not None
    table = "eq.read(file, label='y', prediction='d')"
    arrays = "eq.from_arrays(y_pred=[0, 1, 1, 0] * 50, sensitive_features={'g': ['a', 'b'] * 100})"
    ten, bounds, plot, read, made = executed(
        tmp_path,
        lines.group(1),
        "bounds",
        "bounds.plot()",
        "from pathlib import Path\nfile = 'd.csv'\n"
        "Path(file).write_text('y,d,g\\n' + '1,1,a\\n0,1,b\\n0,0,a\\n1,0,b\\n' * 50)\n"
        f"eq.certify({table}, eq.gap('accuracy', across='g'))",
        f"eq.describe({arrays}, eq.gap('selection_rate', across='g'))",
    )
    assert "".join(output.text for output in ten if output.name == "stdout") == lines.group(2)
    assert not [output for output in ten if output.name == "stderr"]
    assert '<div class="dots">' in shown(bounds, "text/html")
    assert "<svg" in shown(plot, "image/svg+xml")
    assert "http" not in re.sub(r"xmlns(:\w+)?=\"[^\"]*\"", "", shown(plot, "image/svg+xml"))
    for outputs in (read, made):
        assert "<table" in shown(outputs, "text/html")


def test_what_goes_wrong_reads_as_one_error(tmp_path: Path) -> None:
    with pytest.raises(CellExecutionError, match=r"No file or folder 'nowhere\.csv'") as caught:
        executed(tmp_path, "import equipoise as eq\neq.read('nowhere.csv', label='y')")
    assert caught.value.ename == "TrailError"
