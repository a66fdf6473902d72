"""Ask gives in the page the numbers that `.ask` gives in Python."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.findings import BoundedGroup, Bounds
from tests.browser.audits import many_bounds
from tests.browser.conftest import open_in

pytestmark = pytest.mark.browser

ANSWERS = """(queries) => queries.map(([form, choice, place]) => {
    const asked = questions.get(form);
    const row = answerOf(asked, choice, place);
    return row && {...row, group: groupText(asked, choice)};
})"""
CHOICES = """(form) => [...questions.get(form).groups.keys()].map((key) =>
    [groupText(questions.get(form), JSON.parse(key)), JSON.parse(key)])"""
OFFERED = "(form) => questions.get(form).levels.map(({level}) => level)"
GROUPS, LEVELS = 60, {0.8, 0.9, 0.95, 0.99}
FIXED = {"tilts", "plug-in"}
TOLERANCE = 1e-9


@pytest.fixture(scope="module")
def bounds() -> dict[str, Bounds]:
    return many_bounds()


@pytest.fixture(scope="module")
def path(bounds: dict[str, Bounds], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ask")
    return eq.report(*bounds.values(), title="Questions").save(folder / "ask.html")


@pytest.fixture(scope="module")
def page(browser: Any, path: Path) -> Iterator[Any]:
    seen = open_in(browser, path, charts=False)
    yield seen.page
    assert seen.errors == []
    seen.page.context.close()


def test_random_groups_at_every_level(bounds: dict[str, Bounds], page: Any) -> None:
    rng, compared = np.random.default_rng(2024), 0
    for number, (name, found) in enumerate(bounds.items(), start=1):
        form = f"finding-{number}-ask"
        choices, levels = dict(page.evaluate(CHOICES, form)), page.evaluate(OFFERED, form)
        assert set(levels) == {found.level} | (set() if name in FIXED else LEVELS), name
        assert len(choices) == len(found)
        for place, level in enumerate(levels):
            there = found if level == found.level else found.at(level)
            some = rng.choice(list(choices), size=min(GROUPS, len(found)), replace=False)
            queries = [[form, choices[group], place] for group in some.tolist()]
            answers = page.evaluate(ANSWERS, queries)
            for answer, group in zip(answers, some.tolist(), strict=True):
                assert_same(f"{name} at {level}", there.ask(group), answer)
                compared += 1
    assert compared > 3000


def assert_same(where: str, row: BoundedGroup, answer: dict[str, Any] | None) -> None:
    assert answer is not None, (where, row.group)
    for name in ("disparity", "lower", "upper"):
        ours, theirs = getattr(row, name), answer[name]
        same = ours is theirs or (
            None not in (ours, theirs)
            and math.isclose(ours, theirs, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        )
        assert same, (where, row.group, name, ours, theirs)
    said = None if row.verdict is None else str(row.verdict)
    assert (answer["n"], answer["verdict"], answer["note"]) == (row.n, said, row.note), (where, row)
    assert answer["group"] == row.group, where


def test_groups_outside_the_collection_get_no_answer(bounds: dict[str, Bounds], page: Any) -> None:
    number = {name: f"finding-{i}-ask" for i, name in enumerate(bounds, start=1)}
    outside = [
        [number["overall"], [None, None, None], 0],
        [number["overall"], [1, 0, 2], 0],  # nobody is Asian, female and under 25
        [number["depth"], [0, 0, 0], 0],
        [number["thresholds"], [[2, 5]], 0],
        [number["thresholds"], [[0, page.evaluate(LAST, number["thresholds"])]], 0],
        [number["intervals"], [[5, 2]], 0],
        [number["bins"], [0, 0, None], 0],
        [number["bootstrap"], [None, None, None], 0],
    ]
    assert page.evaluate(ANSWERS, outside) == [None] * len(outside)


LAST = "(form) => questions.get(form).axes[0].ends.length - 1"


def test_the_form_answers_at_once(page: Any, bounds: Any) -> None:
    answer = "#finding-1-ask .answer"
    chosen = page.locator("#finding-1-ask [data-level] option:checked")
    assert chosen.inner_text() == "95 %, as audited"
    page.get_by_label("race").first.select_option(label="African-American")
    page.get_by_label("sex").first.select_option(label="Female")
    row = bounds["overall"].ask(race="African-American", sex="Female")
    said = page.inner_text(answer)
    assert f"African-American, Female: at least {points(row.lower)}" in said
    assert f"at most {points(row.upper)} against everyone." in said
    assert f"n = {row.n}; estimated {points(row.disparity)}." in said
    assert "Undetermined: that it is" in said
    assert "With 95 % confidence all bounds hold at once, for every one of the 81 groups." in said
    page.get_by_label("Confidence").first.select_option(label="99 %")
    wider = bounds["overall"].at(0.99).ask(race="African-American", sex="Female")
    said = page.inner_text(answer)
    assert f"at least {points(wider.lower)}" in said
    assert "With 99 % confidence all bounds hold" in said
    page.get_by_label("race").first.select_option(label="Native American")
    said = page.inner_text(answer)
    assert "Native American, Female: no row on which the metric counts." in said
    assert "n = 0; there is no estimate." in said
    assert "Undetermined: that it is" in said
    page.get_by_label("sex").first.select_option(label="any")
    page.get_by_label("race").first.select_option(label="any")
    assert "Choose at least one attribute." in page.inner_text(answer)


def test_a_group_that_is_its_own_target_is_told_so(bounds: dict[str, Bounds], page: Any) -> None:
    form = f"#finding-{list(bounds).index('reference') + 1}-ask"
    page.locator(f"{form} select").first.select_option(label="Caucasian")
    row = bounds["reference"].ask(race="Caucasian")
    for level in ("80 %", "99 %"):
        page.locator(f"{form} [data-level]").select_option(label=level)
        said = page.inner_text(f"{form} .answer")
        assert "Caucasian: the group is its own target." in said
        assert f"n = {row.n:,}; estimated +0.0 points." in said
        assert "that it is" not in said


def test_small_disparities_have_no_sign_of_their_own(page: Any) -> None:
    said = page.evaluate("""[-0.0004, 0, -0.0005, 0.1234].map(
        (x) => amountText({relative: false, share: true}, x))""")
    assert said == ["+0.0 points", "+0.0 points", "-0.1 points", "+12.3 points"]
    real = "[-0.00001, 12.34567].map((x) => amountText({relative: false, share: false}, x))"
    assert page.evaluate(real) == ["-0.00001", "+12.35"]


def points(value: float) -> str:
    return f"{100 * value:+.1f} points"


def test_sliders_move_by_keyboard_and_keep_their_order(
    bounds: dict[str, Bounds], page: Any
) -> None:
    number = list(bounds).index("intervals") + 1
    first, last = (f"#finding-{number}-ask-0-{end}" for end in ("from", "to"))
    page.focus(first)
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    ages = sorted({row.where["age"]["from"] for row in bounds["intervals"].rows})
    assert page.get_attribute(first, "aria-valuetext") == str(ages[3])
    page.keyboard.press("End")
    assert page.input_value(first) == page.input_value(last) == str(len(ages) - 1)
    row = bounds["intervals"].ask(age=(ages[-1], ages[-1]))
    assert page.inner_text(f"#finding-{number}-ask .bound").startswith(f"{row.group}: ")
    page.focus(last)
    page.keyboard.press("Home")
    assert page.input_value(first) == page.input_value(last) == "0"


def test_sliders_lead_only_to_ranges_that_there_are(bounds: dict[str, Bounds], page: Any) -> None:
    form = f"finding-{list(bounds).index('thresholds') + 1}-ask"
    page.focus(f"#{form}-0-from")
    page.keyboard.press("ArrowRight")
    assert page.inner_text(f"#{form} .bound").startswith("age 19 to 59: at least")
    page.focus(f"#{form}-0-to")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text(f"#{form} .bound").startswith("age 18 to 58: at least")


def test_without_a_distribution_the_level_is_fixed(bounds: dict[str, Bounds], page: Any) -> None:
    number = list(bounds).index("tilts") + 1
    assert page.query_selector(f"#finding-{number}-ask [data-level]") is None
    assert page.inner_text(f"#finding-{number}-ask .scope").startswith("With 95 % confidence")
