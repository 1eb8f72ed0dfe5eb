"""Commands as the work of tasks: same task, same bytes; errors; the process is unchanged."""

import logging
import os
import pickle
import shlex
import shutil
import sys

import pytest
import threadpoolctl

from tests.conftest import MODELS
from tests.reproduction.toy_command import TOY, toy  # noqa: F401
from thesis_cli.base.errors import WorkFailed
from thesis_cli.commands.core.command import Command, command_named, entries
from thesis_cli.reproduction import command_work
from thesis_cli.reproduction.command_work import CommandWork, shell_words
from thesis_cli.reproduction.engines import run_task
from thesis_cli.reproduction.tasks import Store, Task, task_key

needs_toy = pytest.mark.usefixtures("toy")


@pytest.fixture
def folder(tmp_path):
    """What tasks read, in a folder that is not the working folder."""
    made = tmp_path / "inputs"
    made.mkdir()
    shutil.copy(MODELS / "asia.uai", made)
    (made / "m.txt").write_text("content")
    return made


def task(folder, command, parameters, seed=None):
    key = task_key(command, 2, parameters, seed)
    return Task(command, parameters, seed, key, folder.parent / "store" / key[:2] / f"{key}.csv")


def run(folder, command, parameters, seed=None, cores=1):
    return CommandWork(command, folder, cores).run(task(folder, command, parameters, seed))


def test_a_task_gives_the_table_of_its_command_whatever_the_cores(cli, folder, monkeypatch):
    parameters = {"model": "asia.uai", "solver": "elimination"}
    made = run(folder, "map", parameters)
    assert run(folder, "map", parameters, cores=2) == made
    monkeypatch.chdir(folder)
    assert cli(*shell_words("map", parameters, None)[:-2], "--out", "by-hand.csv", "--", "asia.uai").status == 0
    assert (folder / "by-hand.csv").read_text() == made


@needs_toy
def test_paths_start_from_the_folder_and_are_shown_as_they_are_written(folder):
    parameters = {"model": "m.txt", "samples": 5, "target": "os:path", "coupling": "inf"}
    assert run(folder, "toy", parameters, 3) == (
        "model,text,samples,coupling,seed,target\nm.txt,content,5,inf,3,os:path\n"
    )


@pytest.mark.parametrize(
    ("command", "parameters", "fragments"),
    [
        ("map", {"model": "no.uai"}, ["no.uai", "no such file"]),
        ("map", {}, ["MODEL is missing"]),
        ("map", {"model": "asia.uai", "memory": "much"}, ["--memory is much"]),
        ("map", {"model": "asia.uai", "memmory": 1}, ["no option 'memmory'", "'memory' is nearest"]),
        ("map", {"model": "asia.uai", "out": "x.csv"}, ["out is not for tasks"]),
        ("unswept", {"model": "asia.uai"}, ["unswept cannot be swept", "no table"]),
        ("toy", {"model": "m.txt", "samples": 13}, ["m.txt: --samples is 13"]),
        ("nonsense", {}, ["no command 'nonsense'"]),
    ],
)
@needs_toy
def test_failures_name_the_cause_and_the_line_that_repeats_them(folder, command, parameters, fragments):
    with pytest.raises(WorkFailed) as failed:
        run(folder, command, parameters)
    first, *rest = str(failed.value).splitlines()
    assert all(fragment in first for fragment in fragments), first
    if rest:
        line = ["thesis-cli", *shell_words(command, parameters, None)]
        assert rest == [f"cd {shlex.quote(str(folder))} && {shlex.join(line)}"]


@needs_toy
def test_a_crash_keeps_its_traceback_and_the_line_that_repeats_it(folder):
    report = run_task(task(folder, "toy", {"model": "m.txt", "samples": 14}), CommandWork("toy", folder))
    assert "Traceback" in report
    assert "ZeroDivisionError: broken" in report
    assert report.rstrip().endswith("&& thesis-cli toy --samples=14 -- m.txt")


@needs_toy
def test_an_interruption_is_no_failure(folder):
    with pytest.raises(KeyboardInterrupt):
        run_task(task(folder, "toy", {"model": "m.txt", "samples": 15}), CommandWork("toy", folder))
    assert not (folder.parent / "store").exists()


@needs_toy
def test_messages_go_to_the_log_which_is_removed_if_there_are_none(folder, monkeypatch):
    work, loud = CommandWork("toy", folder), task(folder, "toy", {"model": "m.txt", "samples": 101})
    assert run_task(loud, work) is None
    assert loud.log.read_text() == "WARNING: many samples\n"
    monkeypatch.setattr(logging.getLogger("thesis_cli.toy"), "disabled", True)
    assert run_task(loud, work) is None
    assert not loud.log.exists()


def _of_the_process():
    root, library = logging.getLogger(), logging.getLogger("thesis_cli")
    blas = {pool["filepath"]: pool["num_threads"] for pool in threadpoolctl.threadpool_info()}
    streams = (sys.stdin, sys.stdout, sys.stderr)
    messages = (root.handlers[:], root.level, library.handlers[:], library.level, library.propagate)
    return os.getcwd(), streams, messages, dict(os.environ), sys.path[:], sys.argv[:], blas


@pytest.mark.parametrize("parameters", [{"samples": 101}, {"samples": 13}, {"samples": 14}, {"evidence": "x"}])
@needs_toy
def test_the_process_stays_as_it_was(folder, capsys, parameters):
    command_work._threads()  # loads libraries
    before = _of_the_process()
    run_task(task(folder, "toy", {"model": "m.txt", **parameters}), CommandWork("toy", folder))
    assert _of_the_process() == before
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("cores", [1, 2])
@needs_toy
def test_a_task_has_the_cores_it_is_given(folder, monkeypatch, cores):
    seen = []

    def execute(self, request):
        pools = threadpoolctl.threadpool_info()
        seen.append((request.jobs, {pool["num_threads"] for pool in pools if pool["user_api"] == "blas"}))
        raise WorkFailed("seen")

    monkeypatch.setattr(Command, "execute", execute)
    command_work._threads().limit(limits=2, user_api="blas")
    with pytest.raises(WorkFailed):
        run(folder, "toy", {"model": "m.txt"}, cores=cores)
    assert seen == [(cores, {cores})]


def test_work_can_be_sent_to_other_processes(folder):
    work = CommandWork("map", folder, 3)
    assert pickle.loads(pickle.dumps(work)) == work


@needs_toy
def test_the_code_of_a_task_covers_every_file_that_it_names(folder):
    def code(**parameters):
        return CommandWork("toy", folder).code(task(folder, "toy", {"model": "m.txt", **parameters}))

    def changes(file, **parameters):
        """Whether the code does, with the file's content."""
        path = folder / file
        path.write_text("a")
        os.utime(path, ns=(1, 1))
        before = code(**parameters)
        assert code(**parameters) == before
        path.write_text("b")  # as large
        os.utime(path, ns=(2, 2))
        return code(**parameters) != before

    assert changes("m.txt")
    assert changes("r.csv", release="r.csv")
    assert changes("r.json", release="r.csv")  # its record
    assert not changes("m.json", release="r.csv")
    assert changes("x.evid", evidence=["a=b", "x.evid"])
    assert changes("x.db", model="sqlite:///x.db?mode=ro")
    assert changes("mine.py", target="mine:thing.part")
    assert changes("mine.py", target="mine.py:thing")
    assert not changes("x.csv", queries=["x.csv"])
    assert len({code(samples=1), code(samples=2)}) == 1  # which are the key's part


def test_codes_of_commands_differ(folder):
    swept = [command for command in entries() if not command_named(command).not_swept]
    codes = [CommandWork(command, folder).code(task(folder, command, {})) for command in swept]
    assert len(set(codes)) == len(codes)


def test_a_file_is_read_once_for_many_tasks(folder, monkeypatch):
    opened = []
    read = open
    monkeypatch.setattr(command_work, "open", lambda *a: opened.append(a[0]) or read(*a), raising=False)
    work = CommandWork("map", folder)
    codes = [work.code(task(folder, "map", {"model": "asia.uai"})) for _ in range(3)]
    assert codes[0] == codes[1] == codes[2]
    assert opened == [str(folder / "asia.uai")]


@pytest.mark.parametrize("text", ["", "a" * 5000, "\0", "postgresql://user@host/x", "/", "."])
def test_text_that_names_no_file_changes_nothing(folder, text):
    work = CommandWork("map", folder)
    assert work.code(task(folder, "map", {"model": text})) == work.code(task(folder, "map", {}))


@needs_toy
def test_results_are_stored_with_their_code(folder):
    given, work = task(folder, "toy", {"model": "m.txt"}, 2), CommandWork("toy", folder)
    assert run_task(given, work) is None
    store = Store(given.folder)
    store.look()
    stored = store.result(given.key)
    assert (stored.text, stored.code) == (work.run(given), work.code(given))
    assert str(folder) not in stored.text


def test_the_toy_has_a_field_of_every_kind():
    fields = TOY.fields.values()
    assert {f.about.names for f in fields} == {"", "file", "release", "object", "output"}
