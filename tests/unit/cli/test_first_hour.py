"""The first hour: from a table of one's own to a page, a plan and a verified file."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import equipoise as eq
from equipoise.cli.main import execute
from equipoise.plan import Plan

Run = Callable[..., tuple[int, str, str]]
ROWS = 600


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)

    def inside(*arguments: str) -> tuple[int, str, str]:
        code = execute(list(arguments))
        out, error = capsys.readouterr()
        return code, " ".join(out.split()), error

    return inside


def loans() -> pl.DataFrame:
    """Applications with a number of many values, words for decisions, and an outcome."""
    return pl.DataFrame(
        {
            "afam": ["yes" if i % 4 == 0 else "no" for i in range(ROWS)],
            "income": [1000.5 + 7 * i % 997 for i in range(ROWS)],
            "approved": ["yes" if i % 4 and i % 9 else "no" for i in range(ROWS)],
            "defaulted": [int(i % 7 == 0) for i in range(ROWS)],
            "p": [(i % 50) / 50 for i in range(ROWS)],
        }
    )


AUDIT = ("audit", "loans.csv", "--prediction", "approved", "--positive", "yes")


def claims() -> list[dict[str, object]]:
    evidence = json.loads(Path("out/evidence.json").read_text(encoding="utf-8"))
    return [audit["claim"] for audit in evidence["plan"]["audits"]]


def test_the_example_and_what_it_says_to_try(run: Run) -> None:
    code, out, _ = run("example")
    assert code == 0
    for words in ("audit decisions.csv --label outcome", "plan init", "check", "verify"):
        assert f"equipoise {words}" in out
    assert run("example")[0] == 3
    tried = ["--label", "outcome", "--prediction", "new_says"]
    assert run("audit", "decisions.csv", *tried, "--across", "race,sex")[0] == 0
    assert run("plan", "init", "decisions.csv", *tried)[0] == 0
    assert run("check", "audit.yaml")[0] in (0, 1, 2)


def test_numbers_are_cut_and_the_page_says_who_and_how_much(run: Run) -> None:
    loans().write_csv("loans.csv")
    options = ("--across", "afam,income", "--model", "Ranker 3", "--owner", "Credit risk")
    code, out, _ = run(*AUDIT, *options, "--depth", "1")
    assert code == 0
    # the first lines name who, how much, and how surely
    assert "afam: yes: selection rate 0.0 %, 66.7 points below everyone (n = 150); at least" in out
    assert "income under" in out
    (groups, *_) = (claim["across"] for claim in claims())
    binned = {"kind": "binned", "column": "income", "quantiles": 4}
    assert groups == {"kind": "intersections", "attributes": ["afam", binned], "depth": 1}
    page = Path("out/report.html").read_text(encoding="utf-8")
    for words in (
        "Ranker 3",
        "Credit risk",
        "Save as CSV",
        "Words used here",
        "disparity (points)",
    ):
        assert words in page
    # charts of groups need no library, so the page is small and draws without scripts
    assert len(page) < 200_000
    assert '<div class="chart drawn"' in page


def test_reference_ratio_harm_and_metrics(run: Run) -> None:
    loans().write_csv("loans.csv")
    options = ("--across", "afam", "--ratio", "--harm", "low", "--reference", "afam=no")
    code, _, error = run(*AUDIT, *options)
    assert code == 3
    assert "--harm says on which side a limit counts" in " ".join(error.split())
    assert run(*AUDIT, *options, "--tolerance", "0.8")[0] == 0
    plan = json.loads(Path("out/evidence.json").read_text(encoding="utf-8"))["plan"]["audits"]
    assert plan[0]["below"] == plan[1]["tolerance"] == 0.8
    assert plan[1]["side"] == "lower"
    assert plan[0]["claim"]["target"] == {"kind": "reference", "where": {"afam": "no"}}
    score = ("--label", "defaulted", "--score", "p")
    table = loans().with_columns(approved=(pl.col("approved") == "yes").cast(int))
    table.write_csv("loans.csv")
    assert run(*AUDIT[:4], *score, "--across", "afam")[0] == 0
    assert "residual" in [claim["metric"] for claim in claims()]
    assert run(*AUDIT[:4], *score, "--across", "afam", "--metric", "accuracy,brier")[0] == 0
    assert [claim["metric"] for claim in claims()] == ["accuracy", "brier"]


def test_nothing_is_kept_that_nobody_asked_to_keep(run: Run) -> None:
    """Callbacks as they are: a third fewer for some, and nobody can be ten points below ten."""
    call = [1] * 240 + [0] * 2160 + [1] * 150 + [0] * 2250
    pl.DataFrame({"race": ["w"] * 2400 + ["b"] * 2400, "call": call}).write_csv("calls.csv")
    words = ["audit", "calls.csv", "--prediction", "call", "--across", "race"]
    words += ["--reference", "race=w", "--force"]
    code, out, _ = run(*words)
    assert code == 0
    assert "no limit was named, so none is kept or exceeded" in out
    assert "✓" not in out
    assert "b: selection rate 6.2 %, 3.8 points below w (n = 2,400); at least" in out
    out = run(*words, "--tolerance", "0.1")[1]
    assert "✓ kept" in out
    # who differs all the same
    assert "Most surely apart: b: selection rate 6.2 %, 3.8 points below w" in out
    assert "no group could be" not in out
    out = run(*words, "--tolerance", "0.12")[1]
    assert "! With a selection rate of 10.0 % for w no group could be beyond -12.0 points" in out


def test_lines_that_stand_for_several_people_are_remarked_upon(run: Run) -> None:
    table = pl.DataFrame({"g": ["f", "f", "m", "m"], "d": [0, 1, 0, 1], "applicants": [9, 5, 7, 8]})
    for name in ("t.csv", "t.parquet"):
        getattr(table, f"write_{name[2:]}")(name)
        words = ("audit", name, "--prediction", "d", "--across", "g", "--force")
        assert "! Every line counts as one person." in run(*words)[1]
        assert "Every line counts" not in run(*words, "--count", "applicants")[1]


def test_what_only_differs_does_not_pass_for_a_violation(run: Run) -> None:
    """One metric exceeds its limit, the other differs within it, as far as is known."""
    told = {("a", 0): (30, 600), ("a", 1): (500, 600), ("b", 0): (60, 600), ("b", 1): (200, 600),
            ("c", 0): (1, 8), ("c", 1): (3, 8)}  # fmt: skip
    rows = [(g, y, int(i < k)) for (g, y), (k, n) in told.items() for i in range(n)]
    pl.DataFrame(rows, schema=["g", "y", "p"], orient="row").write_csv("t.csv")
    metrics = "false_positive_rate,false_negative_rate"
    _, out, _ = run("audit", "t.csv", "--label", "y", "--prediction", "p", "--across", "g",
                    "--metric", metrics, "--tolerance", "0.1")  # fmt: skip
    box = out.partition("findings:")[0]
    first, _, second = box.partition("false positive rate")
    assert "false negative rate" in first
    assert "; that keeps the limit." in second
    assert "that keeps the limit" not in first


def test_rows_left_out_are_always_told(run: Run) -> None:
    """On the terminal, in the box and in what a build reads, however many sentences there are."""
    right = [("a", i % 2, i % 2) for i in range(400)]
    rows = right + [("b", i % 2, (i + i // 8) % 2) for i in range(400)]
    said = [None if g == "b" and p != y and i % 2 else p for i, (g, y, p) in enumerate(rows)]
    table = {"g": [g for g, *_ in rows], "y": [y for _, y, _ in rows], "p": said}
    pl.DataFrame(table).write_csv("t.csv")
    Path("plan.yaml").write_text(
        "equipoise: 1\ntitle: T\nseed: 1\ntrail: {source: t.csv, label: y, prediction: p}\n"
        "audits:\n  - {audit: certify, claim: {kind: gap, metric: accuracy, across: [g]}, "
        "tolerance: 0.4, level: 0.5}\n",
        encoding="utf-8",
    )
    _, out, _ = run("check", "plan.yaml", "--junit", "j.xml")
    lost = sum(p is None for p in said)
    assert out.count(f"{lost} rows were left out ({lost} missing prediction)") == 2
    assert f"{lost} rows were left out" in Path("j.xml").read_text(encoding="utf-8")
    assert "! What is shown here is shown with 50 % confidence only." in out


def test_nothing_differs_where_everybody_is_told_the_same(run: Run) -> None:
    pl.DataFrame({"g": ["a", "b"] * 50, "p": [1] * 100}).write_csv("t.csv")
    out = run("audit", "t.csv", "--prediction", "p", "--across", "g", "--tolerance", "0.2")[1]
    assert "! The selection rate is 100.0 % in every group: nothing can differ." in out


def test_amounts_have_no_limit_that_nobody_named(run: Run) -> None:
    loans().with_columns(said=pl.col("income") * 0.9).write_csv("wages.csv")
    words = ("audit", "wages.csv", "--label", "income", "--score", "said", "--across", "afam")
    assert run(*words)[0] == 0
    assert [claim["metric"] for claim in claims()] == ["residual", "absolute_error"]
    assert eq.Evidence.load("out/evidence.json").conclusion is None
    assert run(*words, "--tolerance", "500")[0] == 0
    assert eq.Evidence.load("out/evidence.json").entries[1].finding.conclusion == "kept"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--positive", "Yes", "--across", "afam"), "--positive 'Yes' does not occur"),
        (("--across", "afam"), "Pass --positive … to say which of its two values counts as 1"),
        (("--positive", "yes", "--across", "afam", "--reference", "afam"), "--reference names a"),
        (("--positive", "yes", "--across", "afam", "--ratio", "--tolerance", "2"), "--tolerance"),
    ],
)
def test_errors_speak_the_language_of_the_command_line(
    run: Run, options: tuple[str, ...], says: str
) -> None:
    loans().write_csv("loans.csv")
    code, _, error = run(*AUDIT[:4], *options)
    assert code == 3
    assert says in " ".join(error.split())
    assert "equipoise.read" not in error


def test_most_groups_too_small_to_speak_is_said(run: Run) -> None:
    people = {"name": [f"person {i}" for i in range(40)] * 2, "d": [0, 1] * 40}
    pl.DataFrame(people).write_csv("t.csv")
    code, out, _ = run("audit", "t.csv", "--prediction", "d", "--across", "name")
    assert code == 0
    assert "! 40 of 40 groups are too small to speak" in out
    assert "too small to speak" in Path("out/report.html").read_text(encoding="utf-8")


def test_a_draft_runs_and_proposes_no_outcome_as_attribute(run: Run) -> None:
    loans().write_csv("loans.csv")
    assert run("plan", "init", "loans.csv", "--out", "p.yaml")[0] == 0
    plan = Plan.load("p.yaml")
    assert (plan.trail.prediction, plan.trail.positive) == ("approved", "yes")
    across = [dimension.name for dimension in plan.audits[0].options()["claim"].dimensions()]
    assert across == ["afam"]
    assert run("check", "p.yaml")[0] == 1
    loans().select("afam", "income").write_csv("none.csv")
    code, _, error = run("plan", "init", "none.csv", "--out", "q.yaml")
    assert code == 3
    assert "--prediction COLUMN" in error
    assert "'afam'" in error


@pytest.mark.parametrize("words", [("Ja", "Nein"), ("High", "Low"), ("some", "none"), ("J", "N")])
def test_which_word_counts_as_one_is_asked_where_it_is_not_plain(
    run: Run, words: tuple[str, str]
) -> None:
    table = {"sex": ["f", "m"] * 50, "decision": [words[i % 3 == 0] for i in range(100)]}
    pl.DataFrame(table).write_csv("d.csv")
    assert run("plan", "init", "d.csv")[0] == 0
    text = Path("audit.yaml").read_text(encoding="utf-8")
    first, second = sorted(words)
    # nothing that could be taken as it stands: half of all guesses turn every answer round
    assert f'positive: "?"  # "{first}" or "{second}": write which of the two' in text
    for command in (("check",), ("run",), ("plan", "check")):
        code, _, error = run(*command, "audit.yaml")
        assert code == 3
        assert "positive is still '?'" in error
        assert "line " in error
    assert run("plan", "init", "d.csv", "--force", "--positive", words[0])[0] == 0
    assert Plan.load("audit.yaml").trail.positive == words[0]
    assert run("check", "audit.yaml")[0] != 3


def test_label_and_prediction_may_use_different_words(run: Run) -> None:
    rows = {"sex": ["f", "m"] * 50, "truth": ["Good", "Bad"] * 50, "said": ["Yes", "No"] * 50}
    pl.DataFrame(rows).write_csv("d.csv")
    roles = ("d.csv", "--label", "truth", "--prediction", "said")
    both = ("--positive", "label=Good", "--positive", "prediction=Yes")
    assert run("audit", *roles, *both, "--across", "sex")[0] == 0
    assert run("plan", "init", *roles, *both)[0] == 0
    assert Plan.load("audit.yaml").trail.positive == {"label": "Good", "prediction": "Yes"}
    code, _, error = run("audit", *roles, "--positive", "Good", "--across", "sex")
    assert code == 3
    assert "--positive label=WORD --positive prediction=WORD" in error
    code, _, error = run(
        "audit", *roles, "--positive", "Good", "--positive", "Yes", "--across", "a"
    )
    assert code == 3
    assert "--positive label=Good" in error


def test_messages_on_attributes_and_classes_speak_of_options(run: Run) -> None:
    rows = {"sex": ["f", "m"] * 50, "y": [0, 1] * 50, "d": (["a", "b", "c", "b"] * 25)}
    pl.DataFrame(rows).write_csv("d.csv")
    code, _, error = run("audit", "d.csv", "--prediction", "y", "--across", "y")
    assert code == 3
    assert "it is the prediction" in error
    assert "in --across" in error
    code, _, error = run(
        "audit", "d.csv", "--prediction", "d", "--positive", "a", "--across", "sex"
    )
    assert code == 3
    assert "one_class" in error


def test_a_draft_for_a_model_that_predicts_a_number_runs(run: Run) -> None:
    wages = {"sex": ["f", "m"] * 60, "wage": [10 + i % 17 / 3 for i in range(120)]}
    said = pl.DataFrame(wages).with_columns(predicted=pl.col("wage") * 1.1)
    said.write_csv("w.csv")
    assert run("plan", "init", "w.csv", "--label", "wage")[0] == 0
    plan = Plan.load("audit.yaml")
    assert plan.trail.score == "predicted"
    assert plan.trail.prediction is None
    assert [audit.audit for audit in plan.audits] == ["certify", "certify"]
    assert run("check", "audit.yaml")[0] == 2
    code, out, _ = run(
        "audit", "w.csv", "--label", "wage", "--score", "predicted", "--across", "sex"
    )
    assert code == 0
    assert "no limit was named" in out.lower()
    assert "violation is shown" not in out


def test_plan_check_judges_limits_as_check_does(run: Run) -> None:
    loans().with_columns(d=pl.col("defaulted")).write_csv("d.csv")
    words = "equipoise: 1\nseed: 7\ntrail: {source: d.csv, prediction: d}\naudits:\n"
    claim = "claim: {kind: gap, metric: selection_rate, across: [afam], target: highest}"
    for audit, fine in (
        (f"{{audit: certify, {claim}, tolerance: 0.1}}", True),
        (f"{{audit: certify, {claim}, tolerance: 5}}", False),
        (f"{{audit: flag, {claim}, outside: [-0.1, 0.1]}}", True),
        (f"{{audit: flag, {claim}, above: 0.1}}", False),
    ):
        Path("p.yaml").write_text(f"{words}  - {audit}\n")
        assert (run("plan", "check", "p.yaml")[0] == 0) is fine
        assert (run("check", "p.yaml")[0] != 3) is fine


def test_a_tolerance_that_looks_like_a_ratio_is_remarked_upon(run: Run) -> None:
    loans().write_csv("loans.csv")
    _, _, error = run(*AUDIT, "--across", "afam", "--tolerance", "0.8")
    assert "--ratio" in error
    assert run(*AUDIT, "--across", "afam", "--tolerance", "0.8", "--ratio")[2] == ""


def test_too_many_groups_are_refused_before_they_are_formed(run: Run) -> None:
    many = {
        f"a{i}": [(j * (2 * i + 3) + j // (i + 2)) % 5 for j in range(20_000)] for i in range(12)
    }
    pl.DataFrame({**many, "d": [0, 1] * 10_000}).write_csv("d.csv")
    started = time.process_time()
    code, _, error = run("audit", "d.csv", "--prediction", "d", "--across", ",".join(many))
    assert code == 3
    assert "more than the limit of 250,000" in error
    assert "--depth" in error
    assert "max_groups" not in error
    # forming them one combination after the other took a minute
    assert time.process_time() - started < 20


def test_levels_that_differ_in_capitals_or_blanks_are_remarked_upon(run: Run) -> None:
    rows = {"sex": ["Female", "female ", "MALE", "male"] * 50, "d": [0, 1, 1, 0, 1] * 40}
    pl.DataFrame(rows).write_csv("d.csv")
    code, out, _ = run("audit", "d.csv", "--prediction", "d", "--across", "sex")
    assert code == 0
    assert "'Female', 'female '; 'MALE', 'male'" in out
    assert run("verify", "out/evidence.json")[0] == 0


def test_verify_finds_the_data_beside_the_evidence(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loans().write_csv("loans.csv")
    assert run(*AUDIT, "--across", "afam")[0] == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert run("verify", "../out/evidence.json")[0] == 0
    loans()[1:].write_csv("../loans.csv")
    code, out, _ = run("verify", "../out/evidence.json")
    assert code == 1
    assert out.startswith("Not verified: ")
    assert "The rows are not those that were audited" in out
    assert "more differences" in out
    (tmp_path / "loans.csv").rename(tmp_path / "elsewhere" / "moved.csv")
    code, _, error = run("verify", "../out/evidence.json")
    assert code == 3
    assert "--data PATH" in error
    assert run("verify", "../out/evidence.json", "--data", "moved.csv")[0] == 1


def test_words_for_missing_values_are_on_the_page(run: Run) -> None:
    table = loans().with_columns(income=pl.col("income").cast(str))
    table = table.with_columns(
        income=pl.when(pl.int_range(pl.len()) < 5).then(pl.lit("n/a")).otherwise("income")
    )
    table.write_csv("loans.csv")
    code, out, _ = run(*AUDIT, "--across", "afam,income")
    assert code == 0
    assert "'n/a'" in out
    evidence = eq.Evidence.load("out/evidence.json")
    assert "n/a" in evidence.notes[0]
    assert "Read like this" in Path("out/report.html").read_text(encoding="utf-8")


def test_many_metrics_in_one_table() -> None:
    trail = eq.read(
        loans(), label="defaulted", prediction="approved", positive={"prediction": "yes"}
    )
    table = eq.describe(trail, metrics=["selection_rate", "accuracy"], across="afam")
    assert table.overall["selection_rate"] == pytest.approx(400 / 600)
    assert table.difference()["selection_rate"] == pytest.approx(400 / 450)
    assert table.ratio() == {
        "selection_rate": 0.0,
        "accuracy": pytest.approx(table.ratio()["accuracy"]),
    }
    assert table.difference("to_overall")["selection_rate"] == pytest.approx(400 / 600)
    assert table.to_frame("polars").columns[:4] == ["group", "afam", "selection_rate", "accuracy"]
    assert [part.metric for part in table] == ["selection rate", "accuracy"]
    assert "afam: yes" in str(table)
    # as levels read without their attribute, too
    assert table["accuracy"].ask("yes").n == 150
    with pytest.raises(eq.OptionError, match="takes a claim"):
        eq.describe(trail)  # type: ignore[call-overload]


def test_many_metrics_are_told_in_sentences_and_what_all_say_once() -> None:
    trail, asked = eq.datasets.compas(), ["accuracy", "selection_rate"]
    said = eq.describe(trail, metrics=asked, across="sex").sentences()
    assert said[0].startswith("Accuracy: The accuracy is 66.1 % over 6,172 rows")
    assert [words for words in said if words.startswith("Selection rate: ")]
    assert said[-1] == "No row was left out."
    assert len(set(said)) == len(said)
    # alone it says what its description says
    alone = eq.describe(trail, metrics=asked[:1], across="sex").sentences()
    assert alone == eq.describe(trail, eq.gap("accuracy", across="sex")).sentences()


def test_findings_show_their_chart_in_a_notebook_without_a_network() -> None:
    bounds = eq.certify(eq.datasets.compas(), eq.gap("accuracy", across="race"), rng=1)
    assert '<div class="dots">' in bounds._repr_html_()
    shown = bounds.plot()._repr_mimebundle_()
    assert isinstance(shown, dict)
    assert list(shown) == ["image/svg+xml"]
    summary = eq.summarize(eq.datasets.compas(), "accuracy", across="race", rng=1)
    assert "<svg" in summary._repr_html_()


def test_an_audit_reads_what_it_names_and_verifies_so(run: Run) -> None:
    words = pl.Series(["NA", *(str(i) for i in range(ROWS - 1))])
    loans().with_columns(other=words).write_csv("loans.csv")
    assert run(*AUDIT, "--across", "afam,income", "--reference", "afam=no")[0] == 0
    assert "notes" not in json.loads(Path("out/evidence.json").read_text())
    assert run("verify", "out/evidence.json")[0] == 0
    code, _, error = run(*AUDIT, "--across", "afm")
    assert code == 3
    assert "Did you mean 'afam'?" in error
    assert "'other'" in error


def test_a_draft_that_finds_no_question_names_what_may_be_one(run: Run) -> None:
    few = pl.DataFrame({"sex": ["f", "m"] * 9, "rich": [0, 1, 1] * 6, "income": [*range(18)]})
    few.write_csv("few.csv")
    code, _, error = run("plan", "init", "few.csv")
    assert code == 3
    assert error.rstrip().endswith("Columns of two values: 'rich', 'sex'.")
    assert run("plan", "init", "few.csv", "--label", "rich")[0] == 0
