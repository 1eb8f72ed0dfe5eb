"""Example files: which there are, and how they are copied."""

import pytest

import thesis_cli as tc
from tests.conftest import ROOT


def test_files_and_folders_are_copied_to_where_the_examples_have_them(cli, tmp_path):
    listed = tc.example()
    assert not listed.copied
    assert not (tmp_path / "data").exists()
    assert cli("example", "asia.bif", "images/test").status == 0
    for path in ("models/asia.bif", *(p.relative_to(ROOT / "data") for p in (ROOT / "data/images/test").rglob("*.*"))):
        assert (tmp_path / "data" / path).read_bytes() == (ROOT / "data" / path).read_bytes()
    assert len(listed.paths) > 50 > sum(path.is_file() for path in (tmp_path / "data").rglob("*"))


def test_a_changed_file_is_replaced_on_demand_only(cli, tmp_path):
    assert cli("example", "asia.bif").status == 0
    assert cli("example", "asia.bif").status == 0
    own = tmp_path / "data/models/asia.bif"
    own.write_text("mine")
    assert cli("example", "asia.bif").err == "error: data/models/asia.bif exists and differs; --overwrite replaces it\n"
    assert own.read_text() == "mine"
    assert cli("example", "asia.bif", "--overwrite").status == 0
    assert own.read_bytes() == (ROOT / "data/models/asia.bif").read_bytes()


@pytest.mark.parametrize(
    ("words", "fragment"),
    [
        (["asia.biff"], "'asia.bif' is nearest"),
        (["../pyproject.toml"], "there is no example file"),
        ([""], "there is no example file"),
        (["models/README.md", "README.md"], "name the folder, too"),
        (["--all", "asia.bif"], "--all does not go with names"),
    ],
)
def test_a_wrong_name_is_one_line_and_copies_nothing(cli, tmp_path, words, fragment):
    result = cli("example", *words)
    assert result.status == 2
    assert fragment in result.err
    assert not (tmp_path / "data").exists()
