"""The table of which metric works in which verb is true."""

from tools import measures_table


def _page() -> list[str]:
    text = measures_table.PAGE.read_text(encoding="utf-8")
    inside = text.split(measures_table.BEGIN)[1].split(measures_table.END)[0]
    return inside.strip().splitlines()


def test_every_metric_has_a_row_and_every_verb_a_column() -> None:
    head, _, *rows = _page()
    assert [cell.strip() for cell in head.strip("|").split("|")[1:]] == [*measures_table.verbs()]
    named = [row.strip("|").split("|")[0].strip() for row in rows]
    assert named == [*measures_table.measures()]


def test_rows_say_what_happens() -> None:
    every = measures_table.measures()
    some = [
        *("`eq.accuracy`", "`eq.relative_error`", "`eq.auc`", "`eq.f1`", "`eq.macro_f1`"),
        *("`eq.median(…)`, `eq.quantile(…)`", "`eq.standardised(…)`", "`eq.calibration_error(…)`"),
    ]
    made = measures_table.lines({name: every[name] for name in some})
    assert set(made) <= set(_page())
