"""`thesis-cli compile`: what is compiled once stays so, and no common command compiles afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import types

import pytest

from tests.conftest import ROOT
from thesis_cli.cli import compile as compiling
from thesis_cli.cli.compile import Part
from thesis_cli.commands.core.command import command_named, entries

ADD = ("run-program", {"program": "a <- [int]; b <- SORT a", "inputs": "[[2, 1]]"})
SUM = ("estimate-z", {"model": "{folder}/vector.csv", "method": "exact"})
WRONG = ("run-program", {"program": "a <- [int]; b <- SORT a", "inputs": "[3]"})


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A folder in the place of numba's cache, with the files of two kernels."""
    folder = tmp_path / "cache"
    folder.mkdir()
    for name in ("a.nbi", "a.1.nbc"):
        (folder / name).touch()
    monkeypatch.setattr(compiling, "cache_folder", lambda: folder)
    monkeypatch.setattr(compiling, "cache_folders", lambda: {str(folder)})
    monkeypatch.setattr(compiling, "one_writer_at_a_time", lambda lock: None)
    monkeypatch.setattr(compiling, "PARTS", (Part("add", (ADD,)), Part("sum", (ADD, SUM))))
    return folder


@pytest.fixture
def compiled(cli, cache):
    """Runs the command; returns the numbers of parts that it compiled and kept."""

    def run():
        found = json.loads(cli("compile", "--jobs", 1, "--json").out)
        return found["compiled"], found["kept"]

    return run


def test_parts_are_compiled_once(compiled):
    assert compiled() == (2, 0)
    assert compiled() == (0, 2)


@pytest.mark.parametrize("name", ["a.nbi", "a.1.nbc", compiling.RECORD])
def test_parts_whose_files_are_gone_are_compiled_again(compiled, cache, name):
    compiled()
    (cache / name).unlink()
    assert compiled() == (2, 0)


def test_a_change_of_any_kernel_counts():
    found = compiling.sources()
    assert set(compiling.PACKAGE.rglob("*_kernels.py")) <= set(found)
    assert compiling.PACKAGE / "base" / "compiled.py" in found


def test_other_settings_of_numba_ask_for_another_compilation(compiled, monkeypatch):
    compiled()
    monkeypatch.setenv("NUMBA_CPU_NAME", "nocona" if os.environ.get("NUMBA_CPU_NAME") == "generic" else "generic")
    assert compiled() == (2, 0)


def test_a_damaged_record_is_none(compiled, cache):
    compiled()
    (cache / compiling.RECORD).write_text('{"code":')
    assert compiled() == (2, 0)


def test_an_interrupted_run_continues(cli, compiled, monkeypatch):
    carry_out = compiling.carry_out

    def interrupted(part, folder):
        if part.name == "sum":
            raise KeyboardInterrupt
        return carry_out(part, folder)

    with monkeypatch.context() as patch:
        patch.setattr(compiling, "carry_out", interrupted)
        result = cli("compile", "--jobs", 1)
    assert (result.status, result.out, result.err.count("\n")) == (130, "", 1)
    assert "continues" in result.err
    assert compiled() == (1, 1)


def test_a_part_that_fails_is_reported_and_stops_no_other(cli, cache, monkeypatch):
    monkeypatch.setattr(compiling, "PARTS", (Part("wrong", (WRONG,)), Part("add", (ADD,))))
    result = cli("compile", "--jobs", 1)
    assert result.status == 1
    assert "1 compiled" in result.out
    assert "run-program" in result.err
    assert json.loads((cache / compiling.RECORD).read_text())["parts"] == ["add"]


def test_a_cache_that_cannot_be_written_is_one_line(cli, monkeypatch):
    fake = types.ModuleType("enumeration_kernels")

    def missing(name):
        raise RuntimeError(f"cannot cache function {name!r}: no locator available for file 'x.py'")

    fake.__getattr__ = missing
    monkeypatch.setitem(sys.modules, "thesis_cli.inference.enumeration_kernels", fake)
    result = cli("compile")
    assert (result.status, result.out, result.err.count("\n")) == (1, "", 1)
    assert "NUMBA_CACHE_DIR" in result.err


def test_the_help_of_the_program_lists_it(cli):
    assert "\n  compile " in cli("--help").out


def test_nothing_is_printed_but_the_summary(cli, cache):
    result = cli("compile", "--jobs", 1, "--quiet")
    assert (result.status, result.err) == (0, "")
    assert [line.split()[0] for line in result.out.splitlines()] == ["parts", "folder", "cost"]


@pytest.mark.parametrize("part", compiling.PARTS, ids=lambda p: p.name)
def test_each_part_is_made_of_requests_that_its_commands_take(part):
    for name, values in part.calls:
        assert command_named(name).request(**values)


def test_inputs_are_the_files_that_the_parts_name(tmp_path):
    compiling.write_inputs(tmp_path)
    named = {
        value.removeprefix("{folder}/")
        for part in compiling.PARTS
        for _, values in part.calls
        for value in values.values()
        if str(value).startswith("{folder}")
    }
    made = {"chooser.safetensors", "ranker.safetensors", "release.csv"}  # by one call for another
    assert named - made == {path.name for path in tmp_path.iterdir()}


def test_one_process_at_a_time_writes_to_the_cache(tmp_path, monkeypatch):
    from filelock import FileLock, Timeout
    from numba.core.caching import IndexDataCacheFile

    seen = []

    def save(self, key, data):
        with pytest.raises(Timeout):
            FileLock(tmp_path / "lock").acquire(timeout=0)
        seen.append((key, data))

    monkeypatch.setattr(IndexDataCacheFile, "save", save)
    compiling.one_writer_at_a_time.__wrapped__(tmp_path / "lock")
    IndexDataCacheFile("folder", "name", "stamp").save("key", "data")
    assert seen == [("key", "data")]


EXAMPLES = """
import shlex, sys
from numba.core.event import Listener, register
from thesis_cli.cli.app import main
compiled = []
class Log(Listener):
    def on_start(self, event):
        kernel = event.data["dispatcher"].py_func
        compiled.append(f"{line}: {kernel.__module__}.{kernel.__qualname__} {event.data['args']}")
    def on_end(self, event):
        pass
register("numba:compile", Log())
for line in sys.stdin:
    assert main(shlex.split(line)) in (0, 1), line
sys.exit("\\n".join(compiled))
"""

COSTLY = {"--count 5000 --test 500": "--count 50 --test 5", "--count 2000 --test 100": "--count 20 --test 5"}
"""Sizes of examples that take minutes, and smaller ones."""


@pytest.mark.long
def test_after_it_no_example_compiles_anything(tmp_path):
    """With an empty cache; interrupted once on the way."""
    cache = tmp_path / "cache"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}
    (tmp_path / "data").symlink_to(ROOT / "data")
    about = {"cwd": tmp_path, "env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, "-m", "thesis_cli", "compile"]

    process = subprocess.Popen(command, **about)
    while process.poll() is None and not list(cache.rglob(compiling.RECORD)):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.count("\n")) == (130, "", 1)

    done = subprocess.run(command, **about, check=False)
    assert done.returncode == 0, done.stderr
    assert "compiled before" in done.stdout

    lines = [line for name in entries() for line in command_named(name).examples]
    for costly, cheap in COSTLY.items():
        lines = [line.replace(costly, cheap) for line in lines]
    done = subprocess.run([sys.executable, "-c", EXAMPLES], **about, input="\n".join(lines), check=False)
    assert done.returncode == 0, done.stderr
