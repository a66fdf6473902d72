"""Take the pictures of a report that the documentation shows.

    python tools/screenshots.py [FOLDER]

Needs a Chromium browser and the `dev` extra. The bundled counts are audited with fixed seeds, so
the pictures change only when the report does.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import equipoise as eq

# name: width and height of the window, colour scheme, what to scroll to
PICTURES: dict[str, tuple[int, int, str, str]] = {
    "light": (1000, 1000, "light", "body"),
    "dark": (1000, 1000, "dark", "#finding-2"),
    "ask": (1000, 470, "light", "#finding-2-ask"),
    "phone": (390, 844, "light", "#finding-2-ask"),
}
LARGEST = 250_000


def findings() -> tuple[eq.Finding, ...]:
    """A short battery on the bundled counts."""
    trail = eq.datasets.compas()
    claim = eq.gap("false_positive_rate", across=eq.intersections("race", "sex", "age"))
    return (
        eq.flag(trail, claim, above=0.05, fdr=0.10, rng=7),
        eq.certify(trail, claim, level=0.90, tolerance=0.10, rng=7),
        eq.summarize(trail, "false_positive_rate", across="race", rng=7),
    )


def take(browser: Any, page: Path, folder: Path, name: str) -> Path:
    """Take one picture and return its file."""
    width, height, scheme, place = PICTURES[name]
    shown = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    shown.goto(page.as_uri())
    shown.wait_for_function(
        "[...document.querySelectorAll('.chart')].every((c) => c.querySelector('svg'))"
    )
    shown.locator(place).first.evaluate("(e) => e.scrollIntoView()")
    file = folder / f"report-{name}.png"
    shown.screenshot(path=file)
    shown.close()
    return file


def main(arguments: list[str]) -> int:
    """Take all pictures; the exit code says whether they are small enough to keep."""
    from playwright.sync_api import sync_playwright

    repository = Path(__file__).resolve().parent.parent
    folder = Path(arguments[0]) if arguments else repository / "docs" / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("no Chromium browser found", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as made, sync_playwright() as driver:
        report = eq.report(*findings(), title="COMPAS two-year outcomes")
        page = report.save(Path(made) / "report.html")
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        files = [take(browser, page, folder, name) for name in PICTURES]
        browser.close()
    for file in files:
        print(f"{file.name}: {file.stat().st_size:,} bytes")
    return int(any(file.stat().st_size > LARGEST for file in files))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
