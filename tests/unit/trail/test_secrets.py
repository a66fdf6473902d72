"""Passwords stay out of sight."""

import pytest

import equipoise as eq
from equipoise.plan import Plan
from equipoise.trail import engine as secrets
from equipoise.trail.engine import engine_errors, is_connection


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_KNOWN", set())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgres://u:s3cret@h/d", "postgres://u:***@h/d"),
        ("postgres://u:p@ss@h/d", "postgres://u:***@h/d"),
        ("postgres://u:a/b?c@h/d", "postgres://u:***@h/d"),
        ("postgres://u@h/d", "postgres://u@h/d"),
        ("postgres://u:@h/d", "postgres://u:@h/d"),
        ("postgres://u:${PW}@h/d", "postgres://u:${PW}@h/d"),
        (
            "postgres://h/d?user=u&password=x1&sslmode=on",
            "postgres://h/d?user=u&password=***&sslmode=on",
        ),
        ("sc://h:15002/;user_id=u;token=abc;x=1", "sc://h:15002/;user_id=u;token=***;x=1"),
        ("two: a://b:c@d and e://f:g@h", "two: a://b:***@d and e://f:***@h"),
        ("spark://local[2]", "spark://local[2]"),
        ("postgres:/u:s3cret@h/d", "postgres:/u:***@h/d"),
        ("postgres:u:s3cret@h/d", "postgres:***@h/d"),
        ("u:s3/cr@et@h/d", "u:***@h/d"),
        ("no file 'postgres:/u:s3cret@h/d' here", "no file 'postgres:/u:***@h/d' here"),
        ("spark://t0ken@h:7077", "spark://***@h:7077"),
        ("sc:/t0ken@h", "sc:/***@h"),
        ("spark://${TOKEN}@h", "spark://${TOKEN}@h"),
        ("https://x.blob/d.csv?sv=1&sig=aB%2Bc%3D&se=2", "https://x.blob/d.csv?sv=1&sig=***&se=2"),
        ("s3://b/d?X-Amz-Signature=abc", "s3://b/d?X-Amz-Signature=***"),
        (
            "design=2, a: b@c.org, at 10:30 to me@x.org",
            "design=2, a: b@c.org, at 10:30 to me@x.org",
        ),
        ("C:/folder/me@home/file.csv", "C:/folder/me@home/file.csv"),
        ("C:/folder/file.csv at 10:30", "C:/folder/file.csv at 10:30"),
    ],
)
def test_what_is_shown_of_a_connection_string(text: str, shown: str) -> None:
    assert secrets.scrub(text) == shown


def test_a_password_that_was_used_is_taken_out_of_any_text() -> None:
    secrets.remember_url("postgres://u:p%40ss-word@h/d")
    for text in ("p%40ss-word", "p@ss-word"):
        assert secrets.scrub(f"invalid token {text} here") == "invalid token *** here"
    secrets.remember("a b/c-d")
    for text in ("a b/c-d", "a%20b%2Fc-d"):
        assert secrets.scrub(f"invalid token {text} here") == "invalid token *** here"
    # too short to be told from ordinary text, and then only hidden in its place
    secrets.remember("in")
    assert secrets.scrub("within limits") == "within limits"


def test_an_engine_that_quotes_the_password_is_not_quoted() -> None:
    import duckdb

    secrets.remember("s3cret-word")
    with pytest.raises(eq.TrailError) as caught, engine_errors("a table"):
        raise duckdb.IOException("cannot open host=h password='s3cret-word' at all")
    assert "s3cret-word" not in str(caught.value)
    assert "cannot open host=h" in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_variables_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHERE", "h")
    assert secrets.expand("postgres://u@${WHERE}/d") == "postgres://u@h/d"
    with pytest.raises(eq.TrailError, match="environment variable NO_SUCH, which is not set"):
        eq.read("postgres://u:${NO_SUCH}@h/d", table="t")


def test_a_path_may_come_from_the_environment(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("data")
    (folder / "d.csv").write_text("y,g\n0,a\n1,b\n")
    monkeypatch.setenv("DATA", str(folder))
    assert eq.read("${DATA}/d.csv", label="y").source == "d.csv"


@pytest.mark.parametrize(
    ("source", "is_one"),
    [
        ("postgres://u@h/d", True),
        ("decisions.duckdb", True),
        ("decisions.DB", True),
        ("decisions.csv", False),
        ("data/*.parquet", False),
    ],
)
def test_what_is_a_connection(source: str, is_one: bool) -> None:
    assert is_connection(source) is is_one


PLAN = """
equipoise: 1
seed: 7
trail: {source: "postgres://u:SECRET@h/d", table: t, label: y}
audits:
  - audit: describe
    claim: {kind: gap, metric: accuracy, across: [g]}
"""


def test_a_plan_is_quoted_and_hashed_without_its_password() -> None:
    one, other = (Plan.parse(PLAN.replace("SECRET", word)) for word in ("s3cret", "an0ther"))
    assert one.to_plain()["trail"]["source"] == "postgres://u:***@h/d"
    assert one.hash == other.hash
    assert one.trail.source == "postgres://u:s3cret@h/d"
    assert Plan.from_plain(one.to_plain()).hash == one.hash


def test_a_plan_that_is_wrong_does_not_tell_it_either() -> None:
    text = PLAN.replace('"postgres://u:SECRET@h/d"', '["postgres://u:s3cret@h/d"]')
    with pytest.raises(eq.PlanError) as caught:
        Plan.parse(text)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "secret"),
    [
        ("postgres:/u:s3cret@h/d", "s3cret"),
        ("postgres://u:s3cret@h/d", "s3cret"),
        ("u:s3c/ret@h", "s3c/ret"),
        ("spark://t0ken-word@h:7077", "t0ken-word"),
        ("sc://t0ken-word@h:15002/;x=1", "t0ken-word"),
        ("postgres://u@h/d", None),
        ("C:/folder/me@home/file.csv", None),
        ("data/2020.csv", None),
    ],
)
def test_the_secret_of_an_address_however_it_was_typed(address: str, secret: str | None) -> None:
    before, found, rest = secrets.parted(address)
    assert found == secret
    assert before + (found or "") + rest == address
