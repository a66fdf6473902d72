"""The README's example runs and prints what the README says."""

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_the_ten_lines_print_what_the_readme_shows() -> None:
    blocks = re.findall(r"```python\n(.*?)```\s+```text\n(.*?)```", README.read_text(), re.DOTALL)
    assert blocks
    for code, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "README.md", "exec"), {})
        assert printed.getvalue() == shown


def test_the_first_example_has_at_most_ten_lines_of_code() -> None:
    match = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert match is not None
    lines = [line for line in match.group(1).splitlines() if line.strip()]
    assert len(lines) <= 10
