import json
import math
import os
import platform
import subprocess

import pytest

from tests.conftest import ROOT
from thesis_cli.base.files import to_json, write_atomic
from thesis_cli.base.provenance import provenance


def test_a_file_is_written_whole_with_ordinary_permissions(tmp_path):
    path = tmp_path / "a" / "b.csv"
    write_atomic({path: "x\n"})
    write_atomic({path: b"y\n"})
    assert path.read_text() == "y\n"
    assert os.listdir(path.parent) == ["b.csv"]
    plain = tmp_path / "plain"
    plain.write_text("")
    assert path.stat().st_mode == plain.stat().st_mode


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "b.csv"
    write_atomic({path: "old"})

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*b.csv'"):
        write_atomic({path: "new"})
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["b.csv"]


def test_a_file_that_is_written_in_parts_is_whole_or_what_it_was(tmp_path):
    path = tmp_path / "b.csv"
    write_atomic({path: iter(["é\n", "y\n"])})
    assert path.read_bytes() == "é\ny\n".encode()

    def parts():
        yield "new"
        raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        write_atomic({path: parts()})
    assert path.read_bytes() == "é\ny\n".encode()
    assert os.listdir(tmp_path) == ["b.csv"]


def test_files_that_belong_together_come_together_or_not_at_all(tmp_path, monkeypatch):
    fsync, calls = os.fsync, []

    def full_at_the_second(handle):
        calls.append(handle)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", full_at_the_second)
    with pytest.raises(OSError, match=r"r\.json"):
        write_atomic({tmp_path / "r.csv": "a", tmp_path / "r.json": "b"})
    assert os.listdir(tmp_path) == []
    write_atomic({tmp_path / "r.csv": "a", tmp_path / "r.json": "b"})
    assert sorted(os.listdir(tmp_path)) == ["r.csv", "r.json"]


def test_json_has_no_infinities():
    assert json.loads(to_json({"a": [math.inf, -math.inf, math.nan, 1.0], "b": {"c": (2,)}})) == {
        "a": [None, None, None, 1.0],
        "b": {"c": [2]},
    }


def test_the_commit_is_that_of_the_toolkit_and_of_no_other_repository(tmp_path, monkeypatch):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "another"], check=True)
    assert provenance(tmp_path)["git_commit"] is not None
    (tmp_path / "below").mkdir()
    assert provenance(tmp_path / "below")["git_commit"] is None
    monkeypatch.chdir(tmp_path)
    assert provenance()["git_commit"] == provenance(ROOT)["git_commit"] is not None


def test_provenance_outside_a_checkout(tmp_path):
    record = provenance(tmp_path)
    assert record["git_commit"] is None
    assert "numpy" in record["versions"]
    architecture, *model = record["machine"]["cpu"].split()
    assert architecture == platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as described:
            assert " ".join(model) in " ".join(described.read().split())
