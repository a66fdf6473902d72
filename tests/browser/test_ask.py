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

ANSWERS = """(queries) => queries.map(([name, choice, level]) => {
    const asked = questions.get(name);
    const row = answerOf(asked, choice, level);
    return row && {...row, parts: undefined, group: groupText(asked, choice)};
})"""
GROUPS, LEVELS = 60, (0.5, 0.683, 0.9, 0.95, 0.999)
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


def test_many_random_groups_levels_and_targets(bounds: dict[str, Bounds], page: Any) -> None:
    rng, compared = np.random.default_rng(2024), 0
    for number, (name, found) in enumerate(bounds.items(), start=1):
        form = f"finding-{number}-ask"
        levels = LEVELS if page.query_selector(f"#{form} [data-level]") else (found.level,)
        assert len(levels) > 1 or name == "euclidean"
        for level in levels:
            rows = found.at(level).rows if level != found.level else found.rows
            chosen = rng.choice(len(rows), size=min(GROUPS, len(rows)), replace=False)
            choices = choices_of(page, form, found, [rows[i] for i in chosen])
            answers = page.evaluate(ANSWERS, [[form, choice, level] for choice in choices])
            for answer, place in zip(answers, chosen, strict=True):
                assert_same(f"{name} at {level}", rows[place], answer)
                compared += 1
    assert compared > 3000


def choices_of(page: Any, form: str, found: Bounds, rows: list[BoundedGroup]) -> list[Any]:
    """What a reader would choose for each row, from its attributes."""
    if found.atoms is not None:
        return [
            [chosen(axis, row.where.get(axis.name, ...)) for axis in found.atoms.axes]
            for row in rows
        ]
    known = page.evaluate("(f) => [...questions.get(f).groups.keys()].map(JSON.parse)", form)
    place = {row.group: choice for row, choice in zip(found.rows, known, strict=True)}
    return [place[row.group] for row in rows]


def chosen(axis: Any, value: Any) -> Any:
    if value is ...:
        return None
    if axis.form in ("levels", "bins"):
        return next(
            i
            for i, level in enumerate(axis.values)
            if level == value and isinstance(level, bool) == isinstance(value, bool)
        )
    high = value.get("to", value.get("below"))
    first = [i for i, (low, _) in enumerate(axis.values) if low == value["from"]]
    return [first[0], [i for i, (_, end) in enumerate(axis.values) if end == high][-1]]


def assert_same(where: str, row: BoundedGroup, answer: dict[str, Any] | None) -> None:
    assert answer is not None, (where, row.group)
    for name in ("value", "target", "disparity", "lower", "upper"):
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
        [number["overall"], [None, None, None], 0.9],
        [number["overall"], [1, 0, 2], 0.9],  # nobody is Asian, female and under 25
        [number["depth"], [0, 0, 0], 0.9],
        [number["thresholds"], [[2, 5]], 0.9],
        [number["thresholds"], [[0, page.evaluate(LAST, number["thresholds"])]], 0.9],
        [number["intervals"], [[5, 2]], 0.9],
        [number["bootstrap"], [None, None, None], 0.9],
    ]
    assert page.evaluate(ANSWERS, outside) == [None] * len(outside)


LAST = "(form) => questions.get(form).axes[0].ends.length - 1"


def test_the_form_answers_at_once(page: Any, bounds: Any) -> None:
    form, answer = "#finding-1-ask", "#finding-1-ask .answer"
    page.get_by_label("race").first.select_option(label="African-American")
    page.get_by_label("sex").first.select_option(label="Female")
    row = bounds["overall"].ask(race="African-American", sex="Female")
    said = page.inner_text(answer)
    assert f"African-American, Female: at least {points(row.lower)}" in said
    assert f"at most {points(row.upper)} against everyone." in said
    assert f"n = {row.n}; estimated {points(row.disparity)}." in said
    assert "is undetermined" in said
    assert "With 90 % confidence all bounds hold at once, for every one of the 81 groups." in said
    page.locator(f"{form} [data-level]").fill("99.5")
    wider = bounds["overall"].at(0.995).ask(race="African-American", sex="Female")
    said = page.inner_text(answer)
    assert f"at least {points(wider.lower)}" in said
    assert "With 99.5 % confidence all bounds hold" in said
    page.get_by_label("race").first.select_option(label="Native American")
    assert "Note: no row on which the metric counts." in page.inner_text(answer)
    page.get_by_label("sex").first.select_option(label="any")
    page.get_by_label("race").first.select_option(label="any")
    assert "Choose at least one attribute." in page.inner_text(answer)


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
    ages = bounds["intervals"].atoms.axes[0].values  # type: ignore[union-attr]
    assert page.get_attribute(first, "aria-valuetext") == str(ages[3][0])
    page.keyboard.press("End")
    assert page.input_value(first) == page.input_value(last) == str(len(ages) - 1)
    row = bounds["intervals"].ask(age=(ages[-1][0], ages[-1][1]))
    assert page.inner_text(f"#finding-{number}-ask .bound").startswith(f"{row.group}: ")


def test_without_a_distribution_the_level_is_fixed(bounds: dict[str, Bounds], page: Any) -> None:
    number = list(bounds).index("euclidean") + 1
    assert page.query_selector(f"#finding-{number}-ask [data-level]") is None
    assert page.inner_text(f"#finding-{number}-ask .scope").startswith("With 90 % confidence")
