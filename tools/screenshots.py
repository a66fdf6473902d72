"""Take the pictures of a report that the documentation shows, or those to look at before a release.

    python tools/screenshots.py [FOLDER]
    python tools/screenshots.py --look FOLDER

Needs a Chromium browser and the `dev` extra. The bundled counts are audited with fixed seeds, so
the pictures change only when the report does. With --look pages of 5, 81 and about 2000 groups are
taken whole: in light and dark, on a phone, and as they are printed (a PDF).
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import equipoise as eq

# name: width and height of the window, colour scheme, what to scroll to
PICTURES: dict[str, tuple[int, int, str, str]] = {
    "light": (1000, 1000, "light", "body"),
    "dark": (1000, 1000, "dark", "#finding-2"),
    "ask": (1000, 470, "light", "#finding-2-ask"),
    "phone": (390, 844, "light", "#finding-2-ask"),
}
LARGEST = 250_000
DRAWN = "[...document.querySelectorAll('.chart')].every((c) => c.querySelector('svg'))"
#: How pages are looked at: width of the window, colour scheme.
WAYS = {"light": (1100, "light"), "dark": (1100, "dark"), "phone": (390, "light")}


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
    shown.wait_for_function(DRAWN)
    shown.locator(place).first.evaluate("(e) => e.scrollIntoView()")
    file = folder / f"report-{name}.png"
    shown.screenshot(path=file)
    shown.close()
    return file


def many_groups() -> eq.Trail:
    """Decisions on 40,000 made-up people of five attributes."""
    rng = np.random.default_rng(11)
    levels = {"region": 12, "job": 8, "age": 6, "sex": 2, "school": 3}
    table: dict[str, Any] = {
        name: [f"{name} {i}" for i in rng.integers(0, k, 40_000)] for name, k in levels.items()
    }
    harmed = np.array([place == "region 3" for place in table["region"]])
    table["chosen"] = (rng.random(40_000) < 0.4 - 0.15 * harmed).astype(int)
    return eq.read(pl.DataFrame(table), prediction="chosen", attributes=[*levels])


def sizes() -> dict[str, Any]:
    """Reports of few, some and very many groups."""
    compas, many = eq.datasets.compas(), many_groups()
    few = eq.gap("false_positive_rate", across="race")
    some = eq.gap("false_positive_rate", across=eq.intersections("race", "sex", "age"))
    lot = eq.gap("selection_rate", across=eq.intersections("region", "job", "age", "sex", "school"))
    return {
        name: eq.report(
            eq.flag(trail, claim, above=0.0, rng=7), eq.certify(trail, claim, tolerance=0.1, rng=7)
        )
        for name, trail, claim in (("5", compas, few), ("81", compas, some), ("2000", many, lot))
    }


def look(browser: Any, folder: Path) -> list[Path]:
    """Whole pages of every size in every way, and what the printer gets."""
    files = []
    for size, report in sizes().items():
        page = report.save(folder / f"{size}.html")
        for way, (width, scheme) in WAYS.items():
            shown = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            shown.goto(page.as_uri())
            shown.wait_for_function(DRAWN)
            files.append(folder / f"{size}-{way}.png")
            shown.screenshot(path=files[-1], full_page=True)
            if way == "light":
                files.append(folder / f"{size}-print.pdf")
                shown.pdf(path=files[-1], format="A4")
            shown.close()
    return files


def main(arguments: list[str]) -> int:
    """Take all pictures; the exit code says whether they are small enough to keep."""
    from playwright.sync_api import sync_playwright

    only_look = arguments[:1] == ["--look"]
    arguments = arguments[only_look:]
    repository = Path(__file__).resolve().parent.parent
    folder = Path(arguments[0]) if arguments else repository / "docs" / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("no Chromium browser found", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as made, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        if only_look:
            files = look(browser, folder)
        else:
            report = eq.report(*findings(), title="COMPAS two-year outcomes")
            page = report.save(Path(made) / "report.html")
            files = [take(browser, page, folder, name) for name in PICTURES]
        browser.close()
    for file in files:
        print(f"{file.name}: {file.stat().st_size:,} bytes")
    return 0 if only_look else int(any(file.stat().st_size > LARGEST for file in files))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
