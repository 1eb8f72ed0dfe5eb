import pytest

from thesis_cli.base.errors import censored, without_secrets


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("people.csv", "people.csv"),
        ("a?b:c@d.csv", "a?b:c@d.csv"),
        ("sqlite:///base.db", "sqlite:///base.db"),
        ("postgresql://me@host/base", "postgresql://me@host/base"),
        ("postgresql://me:se@cr:et@host/base", "postgresql://me:***@host/base"),
        ("postgresql+psycopg://me:secret@host/base?password=secret", "postgresql+psycopg://me:***@host/base?***"),
        ("postgresql://host/base?user=me&password=se@cret", "postgresql://host/base?***"),
        ("postgresql:me:secret@host", "postgresql:***"),
        ("host=h user=me password=secret", "host=h user=me password=***"),
    ],
)
def test_without_secrets(text, shown):
    assert without_secrets(text) == shown


PASSWORD = "pl%40nted-Secret"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://steward:{PASSWORD}@host:5432/survey",
        f"postgresql+psycopg://steward:{PASSWORD}/a:b@host/survey",
        f"postgresql://host/survey?user=steward&password={PASSWORD}",
        f"sqlite:///base.db?key={PASSWORD}",
        f"sqlite:base.db?key={PASSWORD}",
        f"postgres:steward:{PASSWORD}@host",
        f"steward:{PASSWORD}@host/survey",
        f"host=h user=steward password={PASSWORD} dbname=survey",
        f"host=h password = '{PASSWORD} {PASSWORD}'",
    ],
)
@pytest.mark.parametrize("message", ["{}", "--table is {}", "{}: no such file; give another", "('{}', 3)\n{}\nnext"])
def test_no_message_has_a_password(url, message):
    said = censored(message.format(url, url))
    assert PASSWORD not in said
    assert "***" in said
    assert said.endswith(message.rpartition("}")[2])


@pytest.mark.parametrize(
    "message",
    [
        "--alpha is -2; it must be above -1",
        "no file a.csv: give one?",
        "error: results/runs/x.csv: permission denied",
        "it is not the URL of a known kind of database; give sqlite:///FILE or a file",
        "postgresql://127.0.0.1:1/x: connection refused. Is the server running?",
        "row 3: x == y; module data/targets.py:funnel at 12:30",
    ],
)
def test_other_messages_stay(message):
    assert censored(message) == message
