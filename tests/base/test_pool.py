"""Work in several processes: what kills one costs no item, and stops no other."""

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from tests.base.pool_work import work
from thesis_cli.base.errors import InputError
from thesis_cli.base.pool import BATCH, TRIALS, Batches, Killed, answers, work_on

ROOT = Path(__file__).parents[2]  # not from conftest, which each process would import


def run(folder, *names, jobs=2):
    return answers(partial(work, folder), lambda places: (names[place] for place in places), range(len(names)), jobs)


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_item_is_worked_on_once(tmp_path, jobs):
    names = [f"answers {i}" for i in range(20)]
    assert dict(run(tmp_path, *names, jobs=jobs)) == {i: i for i in range(20)}
    assert sorted((tmp_path / "trace").read_text().split("\n")[:-1]) == sorted(names)


def test_a_single_item_is_worked_on_in_this_process():
    assert dict(answers(lambda item: (item, os.getpid()), lambda places: [7], [3], jobs=2)) == {3: (7, os.getpid())}


def test_ctrl_c_is_left_to_the_driver(tmp_path):
    assert dict(run(tmp_path, "hears Ctrl-C 0", "hears Ctrl-C 1")) == {0: 0, 1: 1}


def test_processes_that_start_do_not_hear_ctrl_c(tmp_path):
    """In a new process, where nothing that they need runs yet."""
    work = f"run({str(tmp_path)!r}, 'is deaf 1', 'is deaf 2')"
    code = f"from tests.base.test_pool import run; print(sorted(dict({work}).values()))"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout == "[1, 2]\n"


def test_the_death_of_a_process_costs_no_item(tmp_path):
    names = "falters 0", *(f"answers {i}" for i in range(1, 6)), "falters 6"
    assert dict(run(tmp_path, *names)) == {i: i for i in range(7)}


def test_an_item_that_kills_its_process_stops_no_other(tmp_path):
    found = dict(run(tmp_path, "answers 0", "dies 1", *(f"answers {i}" for i in range(2, 9)), "dies 9"))
    assert found == {i: i for i in range(9)} | {1: Killed(), 9: Killed()}
    trace = (tmp_path / "trace").read_text()
    assert 1 <= trace.count("dies 1") <= TRIALS  # one may be charged with the death of the other


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_is_raised_and_ends_the_others(tmp_path, jobs):
    began = time.monotonic()
    with pytest.raises(InputError, match=r"^1:3: a problem; a remedy$"):
        dict(run(tmp_path, "refuses 1", "waits 2", jobs=jobs))
    assert time.monotonic() - began < 60


def test_processes_end_with_their_driver(tmp_path):
    code = f"from tests.base.test_pool import run; dict(run({str(tmp_path)!r}, 'waits 0', 'waits 1'))"
    driver = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not (tmp_path / "trace").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    driver.kill()
    driver.communicate(timeout=60)  # the pipe is open until the last process has ended


def test_batches_grow_while_items_are_quick_and_much_is_left():
    batches = Batches(range(1000), workers=2)
    first = batches.take()
    assert first == [0]
    batches.back(first, 1, BATCH / 100)
    second = batches.take()
    assert second == list(range(1, 101))
    batches.back(second, 40, BATCH)  # the items have become slow
    assert batches.take() == list(range(41, 81))
    assert list(batches.out) == list(range(41, 81))
    batches.back(list(range(41, 81)), 0, 0.0, apart=True)
    found = list(iter(batches.take, []))
    assert sorted(place for batch in found for place in batch) == list(range(41, 1000))
    assert found[-1] == [80]
    assert sum(len(batch) > 1 for batch in found if set(batch) & set(range(41, 81))) <= 1


def test_a_batch_ends_when_its_time_is_up():
    found, seconds = work_on(time.sleep, [0.0, 0.0, BATCH + 0.01, 0.0])
    assert (len(found), seconds > BATCH) == (3, True)
