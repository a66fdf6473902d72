"""A real Chromium, started once, and pages that remember what they complained of."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from tests.browser.audits import battery

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@dataclass
class Opened:
    """A page that was opened, with everything it complained of and fetched."""

    page: Any
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    found = next((path for name in CHROMIUM if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no Chromium: install one of {', '.join(CHROMIUM)} to test reports in it")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield started
        started.close()


def open_in(browser: Any, path: Path, *, charts: bool = True, **options: Any) -> Opened:
    """Open a file, with any option of a browser context, and wait for its charts."""
    context = browser.new_context(viewport={"width": 1100, "height": 900}, **options)
    made = Opened(page=context.new_page())
    made.page.on("pageerror", lambda error: made.errors.append(str(error)))
    made.page.on(
        "console", lambda m: made.errors.extend([m.text] * (m.type in ("error", "warning")))
    )
    made.page.on("request", lambda request: made.requests.append(request.url))
    made.page.goto(path.as_uri())
    if charts:
        drawn = "[...document.querySelectorAll('.chart')].every((c) => c.querySelector('svg'))"
        made.page.wait_for_function(drawn)
    return made


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Opened]]:
    """Opens files for one test."""
    made: list[Opened] = []

    def open_file(path: Path, **options: Any) -> Opened:
        made.append(open_in(browser, path, **options))
        return made[-1]

    yield open_file
    for one in made:
        one.page.context.close()


@pytest.fixture(scope="session")
def shared(browser: Any, demo: Path) -> Opened:
    """The report opened once, for tests that leave it as it was or touch one part of it."""
    return open_in(browser, demo, color_scheme="light")


@pytest.fixture(scope="session")
def findings() -> tuple[eq.Finding, ...]:
    return battery()


@pytest.fixture(scope="session")
def demo(findings: tuple[eq.Finding, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with every kind of finding."""
    folder = tmp_path_factory.mktemp("report")
    return eq.report(*findings, title="COMPAS two-year outcomes").save(folder / "report.html")
