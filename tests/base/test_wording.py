import pytest

from thesis_cli.base.wording import without_secrets


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
    ],
)
def test_without_secrets(text, shown):
    assert without_secrets(text) == shown
