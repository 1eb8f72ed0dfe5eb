import json
import math
import os

import pytest

from thesis_cli.reproduction.records import provenance, to_json, write_atomic


def test_a_file_is_written_whole_with_ordinary_permissions(tmp_path):
    path = tmp_path / "a" / "b.csv"
    write_atomic(path, "x\n")
    write_atomic(path, b"y\n")
    assert path.read_text() == "y\n"
    assert os.listdir(path.parent) == ["b.csv"]
    plain = tmp_path / "plain"
    plain.write_text("")
    assert path.stat().st_mode == plain.stat().st_mode


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "b.csv"
    write_atomic(path, "old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["b.csv"]


def test_json_has_no_infinities():
    assert json.loads(to_json({"a": [math.inf, -math.inf, math.nan, 1.0], "b": {"c": (2,)}})) == {
        "a": [None, None, None, 1.0],
        "b": {"c": [2]},
    }


def test_provenance_outside_a_checkout(tmp_path):
    record = provenance(tmp_path)
    assert record["git_commit"] is None
    assert "numpy" in record["versions"]
