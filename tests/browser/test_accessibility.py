"""What a screen reader, a keyboard or tired eyes need, checked in both colour schemes."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import open_in

pytestmark = pytest.mark.browser
Open = Callable[..., Any]

UNNAMED = """() => [...document.querySelectorAll('input, select, button, textarea, a[href]')]
    .filter((e) => {
        const label = e.labels?.length ? e.labels[0].textContent : '';
        const named = document.getElementById(e.getAttribute('aria-labelledby'))?.textContent;
        const own = ['A', 'BUTTON'].includes(e.tagName) ? e.textContent : '';
        return !(label || named || e.getAttribute('aria-label') || own).trim();
    }).map((e) => e.outerHTML.slice(0, 120))"""
SILENT_PICTURES = """() => [...document.querySelectorAll('figure, img, svg')].filter((e) => {
        if (e.tagName === 'FIGURE') {
            const chart = e.querySelector('[role=img]');
            // the groups of a ranked chart are text, which is read as such
            const drawn = e.querySelector('.drawn[aria-labelledby] .dots-name');
            if (drawn) return !drawn.textContent.trim();
            return !e.querySelector('figcaption')?.textContent.trim()
                || !chart?.getAttribute('aria-label')?.trim();
        }
        return !e.getAttribute('alt') && !e.closest('[aria-hidden=true], [role=img]');
    }).map((e) => e.outerHTML.slice(0, 120))"""
REPEATED_IDS = """() => {
    const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
    return ids.filter((id, i) => ids.indexOf(id) !== i);
}"""
BROKEN_REFERENCES = """() => ['for', 'aria-labelledby', 'aria-describedby'].flatMap((name) =>
    [...document.querySelectorAll(`[${name}]`)].flatMap((e) =>
        e.getAttribute(name).split(/\\s+/).filter((id) => !document.getElementById(id))))"""
HEADINGS = (
    "() => [...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map((h) => Number(h.tagName[1]))"
)
# Text against the nearest painted background: the ratio of the web accessibility guidelines.
FAINT = """() => {
    const parse = (c) => (c.match(/[\\d.]+/g) ?? []).map(Number);
    const linear = (v) => (v <= 10.3 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    const paper = (e) => {
        for (let at = e; at; at = at.parentElement) {
            const colour = parse(getComputedStyle(at).backgroundColor);
            if (colour.length === 3 || colour[3] === 1) return colour;
        }
        return [255, 255, 255];
    };
    const faint = [];
    for (const e of document.querySelectorAll('body *')) {
        const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
        if (!own || e.closest('svg, script, noscript') || !e.checkVisibility()) continue;
        const [a, b] = [light(parse(getComputedStyle(e).color)), light(paper(e))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) faint.push([e.outerHTML.slice(0, 100), ratio]);
    }
    return faint;
}"""


@pytest.fixture(scope="module", params=["light", "dark"])
def page(request: pytest.FixtureRequest, demo: Path, browser: Any) -> Iterator[Any]:
    seen = open_in(browser, demo, color_scheme=request.param)
    yield seen.page
    seen.page.context.close()


def test_axe_style_checks(page: Any) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert page.get_attribute("html", "lang") == "en"
    assert page.evaluate(UNNAMED) == []
    assert page.evaluate(SILENT_PICTURES) == []
    assert page.evaluate(REPEATED_IDS) == []
    assert page.evaluate(BROKEN_REFERENCES) == []
    headings = page.evaluate(HEADINGS)
    assert headings.count(1) == 1
    assert headings[0] == 1
    assert all(below - above <= 1 for above, below in itertools.pairwise(headings))
    assert page.evaluate(FAINT) == []


def test_the_checks_can_fail(page: Any) -> None:
    page.evaluate("document.querySelector('h1').style.color = '#777777'")
    assert len(page.evaluate(FAINT)) == 1
    page.evaluate("document.querySelector('h1').style.color = ''")
    page.evaluate("document.querySelector('h1').id = 'findings'")
    assert page.evaluate(REPEATED_IDS) == ["findings"]
    page.evaluate("document.querySelector('h1').removeAttribute('id')")
    page.evaluate("document.querySelector('h1').append(document.createElement('input'))")
    assert len(page.evaluate(UNNAMED)) == 1
    page.evaluate("document.querySelector('h1 input').remove()")


def test_type_in_charts_can_be_read(page: Any) -> None:
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    inks = page.evaluate("""() => ['axis-label', 'axis-title', 'legend-label',
        'title-text', 'title-subtitle'].flatMap(
        (role) => [...document.querySelectorAll(`.chart .role-${role} text`)])
        .filter((t) => t.checkVisibility()).map((t) => getComputedStyle(t).fill)""")
    inks += page.evaluate("""() => [...document.querySelectorAll(
        '.dots-name, .dots-said, .dots small')].map((t) => getComputedStyle(t).color)""")
    assert len(inks) > 100
    assert min(contrast(ink, paper) for ink in set(inks)) >= 4.5


def contrast(first: str, second: str) -> float:
    def light(colour: str) -> float:
        parts = [float(x) / 255 for x in colour[colour.index("(") + 1 : -1].split(",")[:3]]
        red, green, blue = (
            x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((light(first), light(second)))
    return (high + 0.05) / (low + 0.05)


def test_it_works_by_keyboard_alone(demo: Path, opened: Open) -> None:
    page = opened(demo, charts=False).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "findings"
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.tagName"))
        ring = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert ring != "none"
    assert {"A", "BUTTON", "INPUT", "SELECT", "SUMMARY"} <= reached


def test_answers_and_counts_are_announced(page: Any) -> None:
    for region in page.query_selector_all(".answer, .count"):
        assert region.get_attribute("role") == "status"
    assert page.locator("[aria-sort]").count() == 0
    page.locator("thead button").first.click()
    assert page.locator("thead th[aria-sort=ascending]").count() == 1
