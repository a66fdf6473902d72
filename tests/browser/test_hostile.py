"""Names that try to run, to break out, or to break the page."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from tests.browser.conftest import open_in

pytestmark = pytest.mark.browser

NAMES = (
    "<script>window.broken = 1</script>",
    "</script><script>window.broken = 2</script>",
    "</style></title><img src=x onerror='window.broken = 3'>",
    '"><svg onload=window.broken=4>',
    "'; window.broken = 5; //",
    "{{ 7 * 7 }}{% include 'report.html' %}${7 * 7}",
    "<!-- <script>",
    "]]>&lt;b&gt;\u2028\u2029",
    "👩🏽‍⚖️ 🏳️‍🌈",
    "שלום \u202eevil\u202c العربية",
    "two\nlines\r\nand\ta tab\x00\x1b[31m",
    "Robert'); DROP TABLE rows; --",
    "javascript:window.broken=6",
    "__proto__",
    "w" * 10_000,
    "many words " * 900,
    "=cmd|' /C calc'!A0",
    "white",
    "",
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    trail = hostile_trail()
    column = hostile_column()
    claim = eq.gap("accuracy", across=eq.intersections(column, "kind"))
    findings = (
        eq.describe(trail, claim),
        eq.flag(trail, claim, above=0.01, rng=1),
        eq.certify(trail, claim, tolerance=0.1, rng=1),
        eq.certify(trail, claim, method="bootstrap", resamples=50, rng=1),
        eq.summarize(trail, "accuracy", across=column, resamples=50, rng=1),
        eq.individual(trail, vary=column, features=(column, "kind"), budget=0.1, rng=1),
    )
    evidence = eq.Evidence.of(*findings, title=NAMES[1] + NAMES[-5])
    folder = tmp_path_factory.mktemp("hostile")
    return eq.report(evidence).save(folder / "report.html")


def hostile_column() -> str:
    return "<i onclick=window.broken=7>" + "c" * 10_000


def hostile_trail() -> eq.Trail:
    rng = np.random.default_rng(3)
    rows = 60 * len(NAMES)
    truth = rng.integers(0, 2, rows)
    frame = pl.DataFrame(
        {
            "y": truth,
            "p": np.where(rng.random(rows) < 0.8, truth, 1 - truth),
            hostile_column(): list(NAMES) * 60,
            "kind": rng.choice(["number", "mapping"], rows),
        }
    )
    return eq.read(frame, label="y", prediction="p")


@pytest.fixture(scope="module")
def seen(browser: Any, path: Path) -> Iterator[Any]:
    made = open_in(browser, path)
    yield made
    made.page.context.close()


@pytest.mark.parametrize("width", [1100, 390])
def test_nothing_runs_and_nothing_breaks(path: Path, seen: Any, width: int) -> None:
    page = seen.page
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("window.broken") is None
    assert seen.errors == []
    assert seen.requests == [path.as_uri()]
    assert page.locator("img, i, svg[onload]").count() == 0
    assert page.locator("section.finding").count() == 6
    assert page.locator("figure .chart:has(svg)").count() == 6
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.body.scrollHeight") < 40_000


def test_names_are_shown_as_they_are(seen: Any) -> None:
    page = seen.page
    names = page.eval_on_selector_all(
        "#finding-1-table-1 tbody th", "(all) => all.map((one) => one.innerText)"
    )
    for name in (*NAMES[:5], NAMES[8], NAMES[11]):
        assert name in names
    assert "two lines and a tab��[31m" in names
    assert not any("\u202e" in name for name in names)
    assert max(map(len, names)) <= 160
    whole = page.locator("#finding-1-table-1 bdi.cut").first.get_attribute("title")
    assert whole is not None
    assert len(whole) > 9_000


def test_ask_works_with_such_names(seen: Any) -> None:
    page = seen.page
    for form in ("#finding-3-ask", "#finding-4-ask"):
        select = page.locator(f"{form} select").first
        for number in range(len(NAMES)):
            select.select_option(index=number + 1)
            assert "at least" in page.inner_text(f"{form} .bound")
    assert page.evaluate("window.broken") is None


def test_filter_finds_what_was_cut(seen: Any) -> None:
    page = seen.page
    page.locator("#finding-1-table-1-filter").fill("w" * 500)
    assert page.locator("#finding-1-table-1 tbody tr:not([hidden])").count() == 3
