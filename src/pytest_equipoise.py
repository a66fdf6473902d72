"""Plans as tests: pytest runs every `audit*.yaml` that is a plan, and each audit in it is a test.

Nothing of equipoise is loaded before such a file is found.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest._code.code import TerminalRepr, TracebackStyle

    from equipoise.findings.evidence import Evidence

_PLAN = re.compile(r"^equipoise:\s*\d", re.MULTILINE)


def pytest_addoption(parser: pytest.Parser) -> None:
    """What absence of evidence means, and what plans may reach."""
    group = parser.getgroup("equipoise")
    group.addoption(
        "--equipoise-allow",
        action="append",
        default=[],
        metavar="SOURCE",
        help="a source outside its folder that a plan may open, as the plan writes it, or a "
        "folder; may be given several times (also the setting equipoise_allow, and "
        "EQUIPOISE_ALLOW)",
    )
    parser.addini(
        "equipoise_allow", "sources outside their folders that plans may open", "linelist"
    )
    group.addoption(
        "--equipoise-undetermined",
        choices=("skip", "pass", "fail"),
        default="skip",
        help="what an audit that shows neither means: a test that is skipped, passes or fails",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A file whose name and first words are those of a plan."""
    if file_path.suffix not in (".yaml", ".yml") or not file_path.name.startswith("audit"):
        return None
    if not file_path.is_file() or not _PLAN.search(
        file_path.read_text(encoding="utf-8", errors="replace")
    ):
        return None
    made: pytest.Collector = PlanFile.from_parent(parent, path=file_path)
    return made


class PlanFile(pytest.File):
    """A plan; it is run once, when its first audit is."""

    _found: Evidence | None = None

    def collect(self) -> Iterator[pytest.Item]:
        """One test for each audit."""
        from equipoise.errors import EquipoiseError
        from equipoise.plan import Plan

        try:
            names = Plan.load(self.path).names()
        except EquipoiseError as error:
            raise self.CollectError(str(error)) from None
        for name in names:
            yield PlanAudit.from_parent(self, name=name)

    def evidence(self) -> Evidence:
        """What the plan found."""
        if self._found is None:
            from equipoise.plan import Plan, run

            # no more trusted than by `equipoise check`: a pull request may have changed it
            allow = [
                *self.config.getoption("--equipoise-allow"),
                *self.config.getini("equipoise_allow"),
                *os.environ.get("EQUIPOISE_ALLOW", "").split(),
            ]
            self._found = run(Plan.load(self.path), folder=self.path.parent, allow=allow)
        return self._found


class PlanAudit(pytest.Item):
    """One audit of a plan."""

    def runtest(self) -> None:
        """Fail where a violation is shown."""
        from equipoise.findings import Verdict

        assert isinstance(self.parent, PlanFile)
        evidence = self.parent.evidence()
        found = evidence.entry(self.name).finding
        said = "\n".join([found.headline(), *found.sentences()[:4]]).strip()
        meaning = self.config.getoption("--equipoise-undetermined")
        if evidence.stops(found.conclusion, undetermined_fails=meaning == "fail"):
            raise ViolationError(said)
        if found.conclusion is Verdict.UNDETERMINED and meaning != "pass":
            pytest.skip(f"undetermined: {said}")

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: TracebackStyle | None = None
    ) -> str | TerminalRepr:
        """The finding's own sentences, or why the question could not be asked."""
        from equipoise.errors import EquipoiseError

        if isinstance(excinfo.value, ViolationError | EquipoiseError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Where and what."""
        return self.path, None, f"{self.path.name}: {self.name}"


class ViolationError(Exception):
    """A violation is shown, or what must be shown is not."""
