"""Every numbered table and figure of the five papers has an entry with a verdict."""

import json
from pathlib import Path
from typing import Any

import pytest
from validation.published import ITEMS, Item, beside

VALIDATION = Path(__file__).parents[3] / "validation"
PAGE = (VALIDATION / "README.md").read_text(encoding="utf-8")

#: The highest number of each kind, as printed in the papers; appendices are listed by name.
PRINTED = {
    "paper_000": (4, 8, ()),
    "paper_001": (1, 5, ()),
    "paper_002": (1, 4, ()),
    "paper_003": (3, 6, ("Figure E.1", "Figure E.2", "Figure E.3")),
    "paper_004": (3, 6, ()),
}


KINDS = ("reproduced", "differs because ", "drawing; ", "not reproduced, because ")


def stored(item: Item) -> dict[str, Any]:
    path = VALIDATION / item.paper / "results" / f"{item.result}.json"
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("paper", PRINTED)
def test_every_table_and_figure_has_an_entry(paper: str) -> None:
    tables, figures, others = PRINTED[paper]
    expected = [
        *(f"Table {i + 1}" for i in range(tables)),
        *(f"Figure {i + 1}" for i in range(figures)),
        *others,
    ]
    assert [item.name for item in ITEMS if item.paper == paper] == expected


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: f"{item.paper}, {item.name}")
def test_every_entry_has_a_verdict_on_the_page(item: Item) -> None:
    agrees = item.result is not None and bool(stored(item)["agrees"])
    verdict = item.verdict(agrees)
    assert verdict.startswith(KINDS)
    assert f"| {item.name} | {item.shows} | " in PAGE
    assert verdict in PAGE


@pytest.mark.parametrize(
    "item", [item for item in ITEMS if item.result], ids=lambda item: f"{item.paper}, {item.name}"
)
def test_a_result_that_is_named_is_judged(item: Item) -> None:
    result = stored(item)
    assert result["full"], "a quick run stands in for the published number of replicates"
    assert f"[{beside(item, result)}](#{item.paper}-{item.result})" in PAGE


def test_an_item_that_is_not_a_drawing_has_a_result_or_a_reason() -> None:
    assert all(item.drawing or item.result or item.differs for item in ITEMS)


def test_a_result_that_differs_says_so() -> None:
    item = Item(paper="paper_000", name="Table 9", shows="nothing", result="table_9")
    assert item.verdict(agrees=False).startswith("DIFFERS")
    assert item.verdict(agrees=True) == "reproduced"
