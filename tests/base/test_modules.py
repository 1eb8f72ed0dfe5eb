import importlib.util
import os
import re
import subprocess
import sys
import tomllib

import pytest

from tests.conftest import ROOT
from thesis_cli.base.errors import InputError
from thesis_cli.base.modules import REQUIREMENTS, extra, spec_of


def test_a_file_that_changes_within_a_second_is_imported_as_it_is(tmp_path, monkeypatch):
    """Byte code is compared by the second and the size of its source."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = tmp_path / "mine.py"
    for x in (1, 2):
        path.write_text(f"x = {x}\n")
        os.utime(path, (1e9, 1e9))
        spec = spec_of("mine", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert module.x == x


def test_what_is_to_be_installed_is_what_the_project_depends_on():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    lines = {line for own in extras.values() for line in own}
    known = lines | {re.split("[<>=]", line)[0] for line in lines}
    assert {text.split(", or ")[0].strip("'") for text in REQUIREMENTS.values()} <= known


def test_what_is_missing_is_named_with_its_remedy():
    with pytest.raises(InputError, match=r"^no_such_package is not installed; run pip install no_such_package$"):
        extra("no_such_package.part")


def test_nothing_tells_to_install_this_package_from_a_registry():
    """There, the name is a stranger's."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in tracked.split("\0")[:-1]:
        path = ROOT / name
        if path.suffix in (".md", ".py", ".toml", ".html", "") and path.is_file() and path.name != "test_modules.py":
            assert not re.search(r"pip install +['\"]?thesis-cli\b", path.read_text(errors="replace")), name
