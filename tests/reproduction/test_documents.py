"""The generated parts of the docs and the types of the Python functions are up to date."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT
from thesis_cli.commands.core.command import command_named, entries
from thesis_cli.reproduction import documents


@pytest.mark.parametrize("name", entries())
def test_every_command_has_a_page_with_its_options(name):
    assert f"<!-- options: {name} -->" in "".join(p.read_text() for p in (ROOT / "docs").glob("*.md"))


def test_the_counts_of_verdicts_are_those_of_the_table():
    stale = [path.name for path, text in documents.standing_pages(ROOT).items() if path.read_text() != text]
    assert stale == [], "run make docs"


def test_what_is_generated_is_up_to_date():
    stale = [path.name for path, text in documents.written().items() if not path.exists() or path.read_text() != text]
    assert stale == [], "run make docs"


def test_the_page_of_python_functions_has_each_argument_and_what_is_returned():
    page = documents.python_page()
    for entry in entries().values():
        command = command_named(entry.shell)
        section = page.partition(f"\n## tc.{entry.function}\n")[2].partition("\n## ")[0]
        arguments, _, result = section.partition(f"\n### {command.result.__name__}\n")
        assert set(re.findall(r"^\| `(\w+)` \|", arguments, re.MULTILINE)) == set(command.fields)
        assert result.strip(), entry
    assert "| `table` | log-potentials in nats" in page  # of the class Factor
