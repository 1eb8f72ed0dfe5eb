"""The store of results: torn and damaged records, full disks, several writers, files of earlier versions."""

import errno
import hashlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import time

import pytest

from thesis_cli.reproduction import tasks as module
from thesis_cli.reproduction.tasks import Store, append


def add(folder, key, text="x\n1\n", code="code"):
    append(folder, key, text, code, 1.5, {"k": key})


def look(folder):
    store = Store(folder)
    store.look()
    return store


def segment(folder):
    (found,) = (folder / "segments").iterdir()
    return found


def test_a_record_is_read_as_it_was_added(tmp_path):
    add(tmp_path, "a", "ü\n# {not a record}\n", "fingerprint")
    add(tmp_path, "b", "no end of line")
    add(tmp_path, "c", "an error", code="")
    store = look(tmp_path)
    assert (set(store.results), set(store.errors)) == ({"a", "b"}, {"c"})
    found = store.result("a")
    assert (found.text, found.code, found.seconds) == ("ü\n# {not a record}\n", "fingerprint", 1.5)
    assert (store.result("b").text, store.error("c")) == ("no end of line", "an error")
    assert (store.result("c"), store.error("a")) == (None, "")


def test_a_torn_last_record_does_not_count_wherever_it_ends(tmp_path):
    add(tmp_path, "a")
    whole = len(segment(tmp_path).read_bytes())
    add(tmp_path, "b")
    data = segment(tmp_path).read_bytes()
    for end in range(whole, len(data)):
        segment(tmp_path).write_bytes(data[:end])
        assert set(look(tmp_path).results) == {"a"}
    segment(tmp_path).write_bytes(data[:-3])
    add(tmp_path, "c")
    assert set(look(tmp_path).results) == {"a", "c"}


def test_a_damaged_record_costs_no_other(tmp_path):
    for key in "abc":
        add(tmp_path, key)
    data = segment(tmp_path).read_bytes()
    start = look(tmp_path).results["b"].start
    for place in range(start, start + data[start:].index(b"\n1\n") + 2, 7):
        segment(tmp_path).write_bytes(data[:place] + b"\xff" + data[place + 1 :])
        assert set(look(tmp_path).results) in ({"a", "c"}, {"a", "b", "c"})  # seconds and parameters have no digest
        assert {"a", "c"} <= set(look(tmp_path).results)


def test_what_is_no_segment_is_left_alone(tmp_path):
    """A copy of a folder of segments, a link to nothing, a pipe, another file."""
    add(tmp_path, "a")
    folder = tmp_path / "segments"
    shutil.copytree(folder, tmp_path / "copy")
    (tmp_path / "copy").rename(folder / "segments")
    (folder / "link").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")
    (folder / "notes").write_text("# {\n# []\n\n# {}\n")
    assert set(look(tmp_path).results) == {"a"}
    look(tmp_path).drop({"b"})


@pytest.mark.parametrize("change", [{"key": [1]}, {"when": "late"}, {"when": None}, {"seconds": "x"}, {"code": {}}])
def test_a_record_with_other_values_stops_nothing(tmp_path, change):
    for _ in range(2):
        add(tmp_path, "a")
    first, second = segment(tmp_path).read_text().split("\n# ")[1:]
    line, text = second.split("\n", 1)
    segment(tmp_path).write_text(f"\n# {first}\n# {json.dumps(json.loads(line) | change)}\n{text}")
    assert look(tmp_path).result("a").seconds == 1.5


def test_what_others_add_later_is_seen(tmp_path):
    store = look(tmp_path)
    for key in "abc":
        add(tmp_path, key)
        store.look()
        assert max(store.results) == key


def test_dropped_records_are_forgotten_for_good(tmp_path):
    for key in "abca":
        add(tmp_path, key)
    store = look(tmp_path)
    store.drop({"a", "other"})
    assert set(store.results) == set(look(tmp_path).results) == {"b", "c"}
    add(tmp_path, "a", "x\n2\n")
    assert look(tmp_path).result("a").text == "x\n2\n"


def test_results_of_earlier_versions_are_read_and_dropped(tmp_path):
    text = "x\n1\n"
    meta = {"code": "old", "seconds": 2.0, "sha256": hashlib.sha256(text.encode()).hexdigest()}
    (tmp_path / "ab").mkdir()
    (tmp_path / "ab" / "abc.csv").write_text(f"# {json.dumps(meta)}\n{text}")
    (tmp_path / "ab" / "abd.csv").write_text(f"# {json.dumps(meta)}\n{text}torn")
    store = look(tmp_path)
    assert set(store.results) == {"abc"}
    assert (store.result("abc").text, store.results["abc"].code) == (text, "old")
    store.drop({"abc"})
    assert not look(tmp_path).results


def test_a_full_disk_names_the_file_and_keeps_what_is_whole(tmp_path, monkeypatch):
    add(tmp_path, "a")
    write, calls = os.write, []

    def full(file, data):
        calls.append(file)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data[:20])

    with monkeypatch.context() as patch:
        patch.setattr(module.os, "write", full)
        with pytest.raises(OSError, match=r"No space left on device: '.*segments.*'"):
            add(tmp_path, "b")
    assert set(look(tmp_path).results) == {"a"}
    add(tmp_path, "c")
    assert set(look(tmp_path).results) == {"a", "c"}


def test_a_removed_file_is_made_anew(tmp_path):
    add(tmp_path, "a")
    segment(tmp_path).unlink()
    add(tmp_path, "b")
    assert set(look(tmp_path).results) == {"b"}


def _write_forever(folder, name):
    for k in range(10**9):
        add(folder, f"{name}{k}", "x\n" * (k % 500))
        time.sleep(2e-4)  # the reader is to keep up


def test_writers_that_are_killed_lose_nothing_that_they_have_added(tmp_path):
    """Two at once, each with a file of its own."""
    context = multiprocessing.get_context("fork")
    add(tmp_path, "parent")
    for trial in range(3):
        writers = [context.Process(target=_write_forever, args=(tmp_path, f"{name}-{trial}-")) for name in "ab"]
        for writer in writers:
            writer.start()
        time.sleep(0.05 * (1 + random.random()))
        seen = set(look(tmp_path).results)
        for writer in writers:
            os.kill(writer.pid, signal.SIGKILL)
            writer.join()
        left = set(look(tmp_path).results)
        assert seen <= left
        for name in "ab":
            places = sorted(int(key.rpartition("-")[2]) for key in left if key.startswith(f"{name}-{trial}-"))
            assert places == list(range(len(places)))
            assert places
    assert len(list((tmp_path / "segments").iterdir())) == 7
