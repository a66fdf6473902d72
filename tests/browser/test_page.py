"""The report in a real browser: everything is shown, nothing is fetched, everything works."""

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.findings.words import NOTES

pytestmark = pytest.mark.browser
Open = Callable[..., Any]


def test_every_section_is_there_and_nothing_fails(
    demo: Path, shared: Any, findings: tuple[eq.Finding, ...]
) -> None:
    page = shared.page
    assert page.title() == "COMPAS two-year outcomes"
    assert "A violation is shown" in page.inner_text(".verdict .said")
    sections = page.query_selector_all("section.finding")
    assert len(sections) == len(findings)
    for section, found in zip(sections, findings, strict=True):
        text = section.inner_text()
        assert found.question[1:] in text
        assert all(" ".join(sentence.split()) in text for sentence in found.sentences())
        assert found.guarantee[1:] in text
        assert NOTES[found.kind].title in text
        assert section.query_selector("figure svg") is not None, found.kind
        assert section.query_selector("table tbody tr") is not None, found.kind
        assert NOTES[found.kind].paper in (shared.page.text_content(".appendix") or "")
        assert found.provenance.fingerprint in (section.text_content() or "")
    assert shared.errors == []
    assert shared.requests == [demo.as_uri()]


def test_the_file_is_small(demo: Path) -> None:
    assert demo.stat().st_size < 3_000_000


def test_nothing_may_be_fetched_or_run(demo: Path, opened: Open) -> None:
    seen, refused = opened(demo, charts=False), []
    seen.page.on("requestfailed", lambda request: refused.append((request.url, request.failure)))
    seen.page.evaluate("fetch('https://example.org/').catch(() => null)")
    seen.page.evaluate("""() => {
        const image = document.createElement('img');
        image.src = 'https://example.org/x.png';
        const script = document.createElement('script');
        script.textContent = 'window.smuggled = true';
        document.body.append(image, script);
    }""")
    assert seen.page.evaluate("window.smuggled") is None
    # whatever was tried was refused by the page itself, before it left the machine
    assert set(seen.requests) - {demo.as_uri()} <= {url for url, why in refused if why == "csp"}
    assert len([e for e in seen.errors if "Content Security Policy" in e]) >= 3


def test_links_of_the_contents_lead_to_the_findings(shared: Any) -> None:
    page = shared.page
    links = [a.get_attribute("href") for a in page.query_selector_all("nav a")]
    ids = [f"#{s.get_attribute('id')}" for s in page.query_selector_all("section.finding")]
    assert links == ids


def column(page: Any, table: str, number: int) -> list[str]:
    read = "(rows, number) => rows.map((row) => row.cells[number].innerText)"
    shown: list[str] = page.eval_on_selector_all(f"#{table} tbody tr:not([hidden])", read, number)
    return shown


def test_tables_sort_both_ways_with_what_is_missing_last(shared: Any) -> None:
    page = shared.page
    button = page.locator("#finding-2-table-1 thead button", has_text="disparity")
    for direction in ("ascending", "descending"):
        button.press("Enter")
        head = page.locator("#finding-2-table-1 thead th[aria-sort]")
        assert head.count() == 1
        assert head.get_attribute("aria-sort") == direction
        shown = column(page, "finding-2-table-1", 3)
        numbers = [float(text) for text in shown if text != "–"]
        assert numbers == sorted(numbers, reverse=direction == "descending")
        assert shown[: len(numbers)].count("–") == 0
        assert len(numbers) > 60
    page.locator("#finding-2-table-1 thead button", has_text="group").click()
    names = column(page, "finding-2-table-1", 0)
    assert names == sorted(names, key=str.lower)


def test_sorting_uses_all_digits(shared: Any, findings: Any) -> None:
    page = shared.page
    page.locator("#finding-1-table-1 thead button").nth(4).click()
    p_values = [row.p for row in findings[0].rows if row.p is not None]
    cells = page.query_selector_all("#finding-1-table-1 tbody td:nth-child(5)[data-order]")
    assert [float(cell.get_attribute("data-order")) for cell in cells] == sorted(p_values)


def test_tables_filter_and_say_how_many_are_left(shared: Any) -> None:
    page = shared.page
    box = page.locator("[data-table=finding-2-table-1]")
    assert box.locator("[role=status]").inner_text() == "81 of 81 rows"
    box.get_by_label("Filter groups").fill("african-AMERICAN, f")
    shown = column(page, "finding-2-table-1", 0)
    assert shown
    assert all(name.startswith("African-American, Female") for name in shown)
    assert box.locator("[role=status]").inner_text() == f"{len(shown)} of 81 rows"
    box.get_by_label("Filter groups").fill("")
    assert len(column(page, "finding-2-table-1", 0)) == 81


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_prints_whole_and_in_light_colours(
    demo: Path, opened: Open, scheme: str, findings: Any
) -> None:
    page = opened(demo, color_scheme=scheme).page
    pdf = page.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) > len(findings)
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert page.locator("details:not([open])").count() == 0
    assert not page.locator(".ask, .tools, #theme, .skip").filter(visible=True).count()
    charts = page.locator(".chart:not(.drawn) .light > svg, .chart.drawn .dots")
    assert charts.filter(visible=True).count() == len(findings)
    # the worst groups come first, and further rows would fill hundreds of sheets
    assert page.locator("#finding-2-table-1 tbody tr").filter(visible=True).count() == 30
    assert not page.locator(".chart .dark").filter(visible=True).count()
    table = "getComputedStyle(document.querySelector('thead')).display"
    assert page.evaluate(table) == "table-header-group"
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0


def test_dark_follows_the_system_and_the_button(demo: Path, opened: Open) -> None:
    page = opened(demo, color_scheme="dark").page
    paper = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(paper) == "rgb(21, 24, 29)"
    assert page.locator(".chart .dark svg").first.is_visible()
    assert not page.locator(".chart .light svg").first.is_visible()
    page.get_by_role("button", name="Light colours").press("Enter")
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
    assert page.locator(".chart .light svg").first.is_visible()
    page.get_by_role("button", name="Dark colours").click()
    assert page.evaluate(paper) == "rgb(21, 24, 29)"


def test_charts_are_drawn_again_in_dark_colours(demo: Path, opened: Open) -> None:
    page = opened(demo, color_scheme="light").page
    assert page.locator(".chart .dark").count() == 0
    page.get_by_role("button", name="Dark colours").click()
    page.wait_for_function(
        "[...document.querySelectorAll('.chart:not(.drawn)')].every((c) => "
        "c.querySelector('.dark svg'))"
    )
    for chart in page.query_selector_all(".chart .dark svg"):
        fills = chart.evaluate(FILLS)
        assert not {"#000", "#000000", "#333333", "#1c2026", "black"} & set(fills)
    background = page.query_selector(".chart .dark svg rect.background")
    assert background is None or background.get_attribute("fill") in ("transparent", None, "none")


FILLS = "(svg) => [...svg.querySelectorAll('text')].map((t) => t.getAttribute('fill'))"


def test_a_table_can_be_saved(demo: Path, opened: Open, findings: Any) -> None:
    page = opened(demo, charts=False).page
    with page.expect_download() as saved:
        page.locator("[data-table=finding-2-table-1] .download").click()
    lines = Path(saved.value.path()).read_text(encoding="utf-8-sig").splitlines()
    assert lines[0].startswith("group,n,value (%),disparity (points)")
    assert len(lines) == len(findings[1]) + 1
    disparities = [str(row.disparity) for row in findings[1] if row.disparity is not None]
    assert all(any(d in line for line in lines) for d in disparities)


def test_a_phone_shows_it_without_scrolling_sideways(demo: Path, opened: Open) -> None:
    page = opened(demo, is_mobile=True).page
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_it_can_be_read_without_scripts(demo: Path, opened: Open) -> None:
    page = opened(demo, charts=False, java_script_enabled=False).page
    assert "A violation is shown" in page.inner_text(".verdict")
    assert page.locator("#finding-2-table-1 tbody tr").count() == 81
    assert not page.locator(".ask, .tools, #theme").filter(visible=True).count()


def test_a_notebook_shows_it_in_a_frame(opened: Open, tmp_path: Path) -> None:
    found = eq.describe(eq.datasets.compas(), eq.gap("accuracy", across="sex"))
    cell = eq.report(found, title='Say "hello" & <b>')._repr_html_()
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><html lang='en'><body>{cell}</body></html>", encoding="utf-8")
    seen = opened(path, charts=False)
    frame = seen.page.frame_locator("iframe")
    assert frame.locator("h1").inner_text() == 'Say "hello" & <b>'
    frame.locator(".chart svg").first.wait_for()
    assert seen.errors == []


@pytest.mark.parametrize("width", [340, 390, 650, 840, 1100])
def test_words_below_a_chart_do_not_overlap(demo: Path, opened: Open, width: int) -> None:
    page = opened(demo).page
    page.set_viewport_size({"width": width, "height": 844})
    boxes = page.evaluate(
        """[...document.querySelectorAll('.dots-axis')].map((axis) =>
            [...axis.querySelectorAll('span > span')].map((word) => word.getBoundingClientRect())
                .filter((box) => box.width).map((box) => [box.left, box.right]))"""
    )
    assert boxes
    for words in boxes:
        assert words
        assert words[0][0] >= 0
        assert words[-1][1] <= width
        assert all(one[1] < other[0] for one, other in pairwise(words))


def test_no_column_of_a_table_is_cut_off(shared: Any) -> None:
    tables = "[...document.querySelectorAll('.tabled .scroll')]"
    wide = f"{tables}.filter((t) => t.scrollWidth > t.clientWidth + 1).length"
    assert shared.page.evaluate(wide) == 0


def test_a_phone_shows_disparities_without_scrolling(demo: Path, opened: Open) -> None:
    page = opened(demo).page
    page.set_viewport_size({"width": 390, "height": 844})
    head = page.locator("#finding-1-table-1 thead th", has_text="disparity").bounding_box()
    assert head["x"] + head["width"] <= 390 + 8


def test_a_printed_chart_leaves_room_for_its_words(demo: Path, opened: Open) -> None:
    # paper of A4 within its margins, in pixels of the style sheet
    page = opened(demo).page
    page.set_viewport_size({"width": 688, "height": 994})
    page.emulate_media(media="print")
    assert page.locator("#finding-1 .dots .dots-row").count() > 20
    parts = [page.locator(f"#finding-1 {part}") for part in (".words", "figure")]
    assert sum(part.bounding_box()["height"] for part in parts) < 0.95 * 994
    torn = (
        "[...document.querySelectorAll('h2, .words')].map((e) => getComputedStyle(e).breakInside)"
    )
    assert {*page.evaluate(torn)} == {"avoid"}
