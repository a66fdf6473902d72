"""Tables as people bring them: what the commands say of them must be true and lead on."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from equipoise.cli.main import execute
from equipoise.plan import Plan

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)

    def inside(*arguments: str) -> tuple[int, str, str]:
        code = execute(list(arguments))
        out, error = capsys.readouterr()
        return code, " ".join(out.split()), " ".join(error.split())

    return inside


def unequal(rows: int = 1200) -> pl.DataFrame:
    """Decisions that are hardest on one sex, with one small group."""
    sexes = ["f" if i % 2 else "m" for i in range(rows)]
    return pl.DataFrame(
        {
            "y": [int(i % 3 == 0) for i in range(rows)],
            "p": [int(i % 20 != 0) if i % 2 else int(i % 20 == 0) for i in range(rows)],
            "s": [(i % 100) / 100 for i in range(rows)],
            "sex": sexes,
            "town": ["isle" if i < 7 else "north" if i % 5 < 2 else "south" for i in range(rows)],
        }
    )


AUDIT = ("audit", "t.csv", "--label", "y", "--prediction", "p", "--across", "sex")

PLAN = """
equipoise: 1
seed: 7
trail: {source: t.csv, prediction: p}
audits:
  - audit: certify
    claim: {kind: gap, metric: selection_rate, across: [town]}
    tolerance: 0.2
"""


def test_one_direction_is_not_applied_to_metrics_of_opposite_meaning(run: Run) -> None:
    unequal().write_csv("t.csv")
    reference = ("--reference", "sex=m", "--tolerance", "0.1", "--harm", "low")
    code, _, error = run(*AUDIT, *reference)
    assert code == 3
    assert "false_positive_rate harms where it is higher" in error
    assert "selection_rate harms either way" in error
    assert "--metric false_positive_rate --harm high" in error
    assert run("power", *AUDIT[1:], *reference)[0] == 3
    assert run(*AUDIT, *reference, "--metric", "false_positive_rate")[0] == 0
    # of one metric there is no doubt
    assert run("audit", "t.csv", "--prediction", "p", "--across", "sex", *reference)[0] == 0


def test_the_exit_code_says_that_it_counts_hidden_groups(run: Run) -> None:
    table = unequal().with_columns(p=pl.when(pl.col("town") == "isle").then(1).otherwise(0))
    table.write_csv("t.csv")
    Path("plan.yaml").write_text(PLAN, encoding="utf-8")
    files = ("--junit", "j.xml", "--summary", "s.md")
    code, out, _ = run("check", "plan.yaml", "--suppress", "10", *files)
    assert code == 1
    assert "Not told" in out
    said = "A violation is shown: at least one finding exceeds its limit."
    assert f"exit 1: {said} (This counts the groups that are not published, too.)" in out
    # what others may read of it concludes from what is published
    summary = Path("s.md").read_text(encoding="utf-8")
    assert "Not told" in summary
    assert "violation" not in summary
    assert "not published, too" not in run("check", "plan.yaml")[1]


def test_which_commands_have_an_exit_code_is_said(run: Run) -> None:
    unequal().write_csv("t.csv")
    assert "audit and run leave with 0 whatever they find" in run("--help")[1]
    for command in ("audit", "run"):
        assert "0 when done, whatever is found" in run(command, "--help")[1]
    code, out, _ = run(*AUDIT, "--tolerance", "0.1")
    assert code == 0
    assert "makes this an exit code" in out
    # nothing exceeds a limit that nobody named
    assert "makes this an exit code" not in run(*AUDIT)[1]
    Path("plan.yaml").write_text(PLAN.replace("town", "sex"), encoding="utf-8")
    code, out, _ = run("run", "plan.yaml", "--out", "o")
    assert (code, "`equipoise check plan.yaml` makes this an exit code." in out) == (0, True)
    assert "makes this" not in run("check", "plan.yaml")[1]


def test_a_look_that_replaces_another_says_so(run: Run) -> None:
    unequal().write_csv("t.csv")
    assert "replaced" not in run(*AUDIT)[1]
    assert "replaced" not in run(*AUDIT)[1]
    assert (
        "replaced the look of before, 'Audit of t.csv', made 20"
        in run(*AUDIT, "--bins", "2", "--metric", "accuracy")[1]
    )


def _drafted(run: Run, table: pl.DataFrame, *roles: str) -> str:
    table.write_csv("t.csv")
    code, _, error = run("plan", "init", "t.csv", "--force", *roles)
    assert code == 0, error
    return Path("audit.yaml").read_text(encoding="utf-8")


def _amounts(rows: int = 400) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "sex": ["f" if i % 2 else "m" for i in range(rows)],
            "wage": [20_000.5 + 7 * (i * i % 997) for i in range(rows)],
            "said": [20_100.5 + 7 * (i * i % 991) for i in range(rows)],
            "came": [int(i % 3 == 0) for i in range(rows)],
            "late": [None if i % 50 == 0 else int(i % 3 == 0) for i in range(rows)],
            "code": [1 + int(i % 3 == 0) for i in range(rows)],
            "hired": [int(i % 5 < 2) for i in range(rows)],
            "decile": [1 + i * i % 10 for i in range(rows)],
            "chance": [i * i % 97 / 97 for i in range(rows)],
        }
    )


@pytest.mark.parametrize(
    ("roles", "metrics"),
    [
        ("--label wage --prediction said", ["residual", "absolute_error"]),
        ("--label wage", ["mean of the label"]),
        ("--label wage --prediction hired", ["selection_rate"]),
        ("--label came --score decile", ["auc"]),
        ("--label came --prediction decile", ["auc"]),
        ("--label came --score chance", ["brier"]),
        ("--label late --score chance", ["brier"]),
        ("--label came --prediction hired --score decile", ["false_positive_rate"]),
        ("--label came", ["rate of the label"]),
        ("--prediction decile", ["mean of the score"]),
    ],
)
def test_a_draft_asks_what_the_columns_can_answer(run: Run, roles: str, metrics: list[str]) -> None:
    _drafted(run, _amounts(), *roles.split())
    asked = [audit.options()["claim"].metric.name for audit in Plan.load("audit.yaml").audits]
    assert list(dict.fromkeys(asked)) == metrics
    code, _, error = run("run", "audit.yaml", "--out", "o")
    assert (code, error) == (0, "")


def test_codes_need_somebody_who_knows_them(run: Run) -> None:
    roles = ("--label", "code", "--prediction", "hired")
    text = _drafted(run, _amounts(), *roles)
    assert 'label: "?"  # 1 or 2: write which of the two counts as 1' in text
    code, _, error = run("run", "audit.yaml")
    assert (code, "positive is still '?'" in error) == (3, True)
    text = _drafted(run, _amounts(), *roles, "--positive", "label=2")
    assert run("run", "audit.yaml", "--out", "o")[0] == 0


def test_one_word_of_two_columns_may_be_known(run: Run) -> None:
    table = unequal().with_columns(
        y=pl.when(pl.col("y") == 1).then(pl.lit("gut")).otherwise(pl.lit("schlecht")),
        p=pl.when(pl.col("p") == 1).then(pl.lit("yes")).otherwise(pl.lit("no")),
    )
    text = _drafted(run, table, "--label", "y", "--prediction", "p")
    assert 'label: "?"  # "gut" or "schlecht": write which' in text
    assert 'prediction: "yes"  # a guess; it counts as 1' in text
    error = run("run", "audit.yaml")[2]
    assert "Write the value of the label that counts as 1" in error


def _ages(words: dict[int, str], rows: int = 500) -> pl.DataFrame:
    ages = [words.get(i, str(20 + i * 7 % 50)) for i in range(rows)]
    return pl.DataFrame({"age": ages, "hired": [int(i % 3 == 0) for i in range(rows)]})


def test_numbers_with_an_odd_word_are_remarked_upon(run: Run) -> None:
    _ages({3: "k.A.", 99: "k.A.", 120: "k.A."}, rows=150).write_csv("t.csv")
    audit = ("audit", "t.csv", "--prediction", "hired", "--across", "age")
    code, out, _ = run(*audit)
    assert code == 0
    assert "In column 'age', 3 of 150 fields are no numbers: 'k.A.'." in out
    assert "say --missing k.A. (missing=['k.A.'] in Python and in plans)" in out
    # words cannot be cut into ranges
    assert "51 of 51 groups are too small to speak: join levels that belong together." in out
    code, out, _ = run(*audit, "--missing", "k.A.", "--out", "o")
    assert code == 0
    assert "are no numbers" not in out
    assert "age under" in out
    code, _, _ = run("plan", "init", "t.csv", "--prediction", "hired", "--missing", "k.A.")
    text = Path("audit.yaml").read_text(encoding="utf-8")
    assert (code, 'missing: ["k.A."]' in text, "no numbers" in text) == (0, True, False)
    assert run("run", "audit.yaml", "--out", "p")[0] == 0
    run("plan", "init", "t.csv", "--prediction", "hired", "--force")
    text = Path("audit.yaml").read_text(encoding="utf-8")
    assert "# In column 'age', 3 of 150 fields are no numbers: 'k.A.'." in text
    assert '# Text of more than 20 different values forms no groups here: "age" (51).' in text


@pytest.mark.parametrize(
    "words",
    [
        # codes of which some have letters, text of which some are numbers, and numbers alone
        {i: f"V{i}" for i in range(0, 50, 10)},
        dict.fromkeys(range(0, 500, 8), "k.A."),
        {},
    ],
)
def test_other_text_is_not_taken_for_numbers(run: Run, words: dict[int, str]) -> None:
    _ages(words).write_csv("t.csv")
    assert run("plan", "init", "t.csv", "--prediction", "hired")[0] == 0
    assert "no number" not in Path("audit.yaml").read_text(encoding="utf-8")


def test_how_groups_become_larger_follows_from_what_they_are(run: Run) -> None:
    table = unequal(120).with_columns(age=pl.int_range(0, 120))
    table.write_csv("t.csv")
    words = ("audit", "t.csv", "--prediction", "p", "--across", "sex,town,age", "--bins", "20")
    out = run(*words)[1]
    assert (
        "combine fewer attributes (depth), or cut numbers into fewer ranges (bins), or join" in out
    )


@pytest.mark.parametrize(
    ("options", "says", "not_says"),
    [
        # a number of many values is a score, and a label of them an amount
        ("--prediction wage", "pass --score … for it", "one_class"),
        ("--label wage --prediction said", "metrics of numbers such as residual", "one_class"),
        ("--label came --prediction decile", "pass --score … for it", "--positive --"),
        ("--label came --score decile --metric brier", "decile is none, however it is", "Pass "),
        ("--label came --score decile --metric brier", "such as auc", "Pass "),
        # three words have no other one
        ("--prediction three", "holds text of 3 values, where two are needed: 'a', 'b'", "--pos"),
        ("--prediction three --positive a", "in Python for one of them by one_class", "its two"),
        ("--prediction sex", "Pass --positive … to say which of its two values", "one_class"),
        ("--label code --prediction hired", "it holds 2: 1, 2. Pass --positive label=2 if 2", "{"),
        ("--score decile", "Add --label COLUMN", "--score that of"),
        # what commands say is theirs
        ("--prediction hired --tolerance 5", "got 5.", "-5"),
        (
            "--prediction hired --pair three --reference sex=m",
            "or name sets of more rows as --cluster.",
            "cluster=",
        ),
        ("--label came --score chance --metric auc --unknown worst", "takes no --unknown", "this"),
        ("--prediction hired --encoding cp1252", "begins with the mark of utf-16", "encoding="),
    ],
)
def test_errors_lead_on(run: Run, options: str, says: str, not_says: str) -> None:
    table = _amounts().with_columns(three=pl.Series(["a", "b", "c", "b"] * 100))
    encoding = "utf-16" if "--encoding" in options else "utf-8"
    Path("t.csv").write_text(table.write_csv(), encoding=encoding)
    across = "sex" if "--prediction sex" not in options else "three"
    code, _, error = run("audit", "t.csv", "--across", across, *options.split())
    assert code == 3
    assert says in error
    assert not_says not in error
    assert "this command" not in error


def test_the_same_errors_in_a_plan_speak_of_the_plan(run: Run) -> None:
    text = _drafted(run, _amounts(), "--label", "code", "--prediction", "hired", "--score", "wage")
    lines = [line for line in text.splitlines() if not line.strip().startswith(("positive", "lab"))]
    text = "\n".join(lines).replace("trail:", "trail:\n  label: code")
    Path("audit.yaml").write_text(text, encoding="utf-8")
    code, _, error = run("run", "audit.yaml")
    assert code == 3
    assert "Pass `positive: {label: 2}` under `trail:` if 2 is the one that counts as 1." in error


def test_files_that_are_not_there_or_no_evidence(run: Run) -> None:
    error = run("monitor", "show", "none")[2]
    assert "The ledger 'none' cannot be read: no such file or directory." in error
    Path("e.json").write_text("[]\nand more", encoding="utf-8")
    error = run("report", "e.json")[2]
    assert "it is no JSON from line 2 on. Pass an evidence.json as run, check or audit" in error


def test_notes_and_sentences_speak_to_everybody(run: Run) -> None:
    table = _amounts().with_columns(
        sex=pl.when(pl.int_range(0, 400) % 7 == 0).then(None).otherwise("sex")
    )
    Path("t.csv").write_text(table.write_csv(), encoding="utf-16")
    out = run("audit", "t.csv", "--prediction", "hired", "--across", "sex")[1]
    assert "read as utf-16. If names look wrong, name the encoding." in out
    assert "asked for the worst of what the unknown may be, an audit tells" in out
    assert "unknown='worst'" not in out
