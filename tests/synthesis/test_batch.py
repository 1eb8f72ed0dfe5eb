"""Batches: what ends a run loses nothing, mixes nothing, and stops no other task."""

import csv
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from thesis_cli.base.errors import InputError, WorkFailed
from thesis_cli.synthesis.journal import journal_beside
from thesis_cli.synthesis.language.dsl import DEFAULT
from thesis_cli.synthesis.language.program import parse
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.search.solver import Order, Solution
from thesis_cli.synthesis.solvers import solve_batch

ROOT = Path(__file__).resolve().parents[2]
SORT = parse("a <- [int]; b <- SORT a")
SETTINGS = {"solver": "dfs", "timeout": float("inf"), "prior": "fixed 12"}
TASKS = [Task(f"täsk {i}", (Example(((3, 1, i),), tuple(sorted((3, 1, i)))),)) for i in range(5)]
ORDERS = [Order.uniform(), Order((0.25,) * 34), *[Order.uniform()] * 3]
FOUND = [
    Solution((SORT,), "dfs", 7, 0.125, 0),
    Solution((), "bottom-up", 9, 2.0, 3, "timeout", refuted="too long"),
    Solution((SORT, parse("a <- [int]; b <- REVERSE a; c <- SORT b")), "dfs", 1, 1 / 3, 2, "memory", 1 / 7, (4, 0)),
]


def journal(folder, tasks=TASKS, settings=SETTINGS, orders=ORDERS):
    return journal_beside(folder / "t.csv", tasks, orders, settings, DEFAULT)


def files(folder):
    """Names of all files but locks, which stay."""
    return sorted(name for name in os.listdir(folder) if not name.endswith(".lock"))


def warnings(caplog):
    return [record.message for record in caplog.records if record.levelname == "WARNING"]


def interrupted(folder, **others):
    """A run that keeps `FOUND` and is interrupted; what it kept before."""
    with suppress(KeyboardInterrupt), journal(folder, **others) as run:
        before = dict(run.kept)
        for place, found in enumerate(FOUND):
            run.add(place, found)
        raise KeyboardInterrupt
    return before


def test_what_is_kept_is_read_and_goes_with_the_end(tmp_path, caplog):
    assert interrupted(tmp_path) == {}
    with journal(tmp_path) as run:
        assert run.kept == dict(enumerate(FOUND))
        assert run.state.startswith("3 of 5 tasks are kept;")
        run.add(4, FOUND[0])
    assert files(tmp_path) == []
    assert warnings(caplog) == []


def test_what_keeps_nothing_leaves_nothing(tmp_path):
    with suppress(KeyboardInterrupt), journal(tmp_path / "new") as run:
        assert run.state == "none of 5 tasks is finished"
        raise KeyboardInterrupt
    assert files(tmp_path / "new") == []


def test_a_journal_cut_anywhere_keeps_its_whole_lines_and_goes_on(tmp_path):
    interrupted(tmp_path)
    path = tmp_path / "t.csv.journal"
    whole = path.read_bytes()
    ends = [size for size in range(len(whole) + 1) if size == 0 or whole[size - 1 : size] == b"\n"]
    near = {end + shift for end in ends for shift in (-2, -1, 0, 1)}
    for size in sorted({*near, *range(0, len(whole), 29)} & {*range(len(whole) + 1)}):
        path.write_bytes(whole[:size])
        lines = max(0, whole[:size].count(b"\n") - 1)
        assert interrupted(tmp_path) == dict(enumerate(FOUND[:lines]))
        with suppress(KeyboardInterrupt), journal(tmp_path) as run:
            assert run.kept == dict(enumerate(FOUND))
            raise KeyboardInterrupt


def damaged(place, programs, **more):
    """A line of a journal that does not belong there."""
    solution = {**vars(FOUND[0]), "programs": programs, **more}
    return json.dumps({"place": place, "order": list(ORDERS[1].probabilities), "solution": solution}).encode()


def weighed(**changes):
    """A line whose meaning differs from a possible one."""
    meaning = {"shares": [0.5, 0.2], "others": [SORT.one_line], "unseen": 0.1, "behaviours": 1, "shortest": 1}
    return damaged(1, [SORT.one_line], meaning={**meaning, "settles": [], **changes})


@pytest.mark.parametrize(
    "line",
    [
        b"\0" * 50,
        b"\xff",
        b"{}",
        b"[0, {}]",
        damaged(99, [SORT.one_line]),
        damaged(1, ["a <- [int]"]),
        damaged(1, [SORT.one_line]).replace(b'"order"', b'"other"'),
        b'{"place": 1, "order": "", "solution": {"programs": []}}',
        weighed(unseen="x"),
        weighed(unseen=7.5),
        weighed(shares=[0.5]),
    ],
)
def test_damaged_lines_are_left_out(tmp_path, line):
    interrupted(tmp_path)
    path = tmp_path / "t.csv.journal"
    rows = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([*rows[:2], line, *rows[3:]]) + b"\n")
    assert interrupted(tmp_path) == {0: FOUND[0], 2: FOUND[2]}


def test_a_kept_program_that_does_not_fit_is_left_out(tmp_path):
    interrupted(tmp_path)
    path = tmp_path / "t.csv.journal"
    path.write_text(path.read_text().replace("REVERSE a; c <- SORT b", "SORT a; c <- REVERSE b"))
    assert list(interrupted(tmp_path)) == [0, 1]


def test_a_solution_by_another_order_is_left_out(tmp_path):
    interrupted(tmp_path)
    others = [ORDERS[0], Order((0.25,) * 33 + (0.75,)), *ORDERS[2:]]
    assert interrupted(tmp_path, orders=others) == {0: FOUND[0], 2: FOUND[2]}


def test_an_order_that_threads_round_otherwise_is_the_same(tmp_path):
    interrupted(tmp_path)
    others = [ORDERS[0], Order((0.25 * (1 + 1e-5),) * 34), *ORDERS[2:]]
    assert interrupted(tmp_path, orders=others) == dict(enumerate(FOUND))


@pytest.mark.parametrize(
    "other",
    [
        {"tasks": TASKS[::-1]},
        {"tasks": TASKS[:-1]},
        {"settings": {**SETTINGS, "solver": "smt"}},
        {"settings": {**SETTINGS, "prior": "fixed 13"}},
    ],
)
def test_another_batch_is_never_mixed_in(tmp_path, caplog, other):
    interrupted(tmp_path)
    assert interrupted(tmp_path, **other) == {}
    (message,) = warnings(caplog)
    assert "all tasks are solved again" in message
    assert interrupted(tmp_path, **other) == dict(enumerate(FOUND))
    assert len(warnings(caplog)) == 1


def test_only_one_run_at_a_time(tmp_path):
    with suppress(KeyboardInterrupt), journal(tmp_path) as run:
        run.add(0, FOUND[0])
        with pytest.raises(InputError, match=r"t\.csv: it is in use by .*--out"), journal(tmp_path):
            pass
        raise KeyboardInterrupt
    with journal(tmp_path) as run:
        assert run.kept == {0: FOUND[0]}


def test_a_full_disk_loses_nothing_of_what_was_there(tmp_path):
    interrupted(tmp_path)
    path = tmp_path / "t.csv.journal"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100, before[1]))  # about half a line
    try:
        with pytest.raises(WorkFailed, match=r"t\.csv\.journal.*3 of 5 tasks are kept"), journal(tmp_path) as run:
            run.add(3, FOUND[0])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert interrupted(tmp_path) == dict(enumerate(FOUND))


def solve(task, order):
    """Solve the task or die, depending on its name."""
    if task.name == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    return Solution((), f"{task.name} {order.probabilities[0]}", 1, 0.0, 0)


def named(*names):
    return [Task(name, TASKS[0].examples) for name in names]


@pytest.mark.parametrize("jobs", [1, 2])
def test_tasks_are_solved_by_their_orders_and_solutions_come_in_the_order_of_the_tasks(jobs):
    ticks = []
    found = solve_batch(solve, named("a", "b", "c"), ORDERS[:3], jobs, ticks.append)
    assert [solution.solver for solution in found] == ["a 0.5", "b 0.25", "c 0.5"]
    assert ticks == [1, 1, 1]


def test_a_task_that_kills_its_process_fails_after_all_others(tmp_path):
    tasks = named("a", "dies", "c", "d")
    with pytest.raises(WorkFailed, match=r"task dies: .* 3 times"), journal(tmp_path, tasks, orders=ORDERS[:4]) as run:
        solve_batch(solve, tasks, ORDERS[:4], 2, lambda done: None, run)
    with journal(tmp_path, tasks, orders=ORDERS[:4]) as run:
        assert sorted(run.kept) == [0, 2, 3]


HARD = 36
"""Tasks without a program: each takes the deductive search some 50 ms at length 2."""

COMMAND = "synthesize", "t.jsonl", "--solver", "deductive", "--max-length", "2", "--out", "t.csv"


def wait_for(path, lines):
    """Until a file has more than so many lines, or a journal so many solutions."""
    deadline = time.monotonic() + 60
    while not path.exists() or path.read_bytes().count(b"\n") <= lines:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def table(path):
    """A table but for times."""
    with open(path, newline="") as file:
        return [{key: text for key, text in row.items() if key != "seconds"} for row in csv.DictReader(file)]


def test_a_batch_that_is_killed_and_interrupted_goes_on_to_the_same_table(cli, tmp_path):
    path, lines = tmp_path / "t.csv.journal", []
    for i in range(HARD):
        rows = ([5, -3, 8, i], [2, 9, -7, 4]), ([1, -6, 3, 2, i], [9, 8, -2]), ([i, 4], [i, 7, 1])
        output = [[i, 200, -1], [7, 200, i], [200]]
        lines.append(json.dumps([[list(inputs), out] for inputs, out in zip(rows, output, strict=True)]))
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    result = cli(*COMMAND, "--jobs", 1)
    assert (result.status, result.err) == (1, "wrote t.csv\n")
    assert result.out.startswith(f"tasks       {HARD}\nsolved      0,")
    whole = table(tmp_path / "t.csv")
    assert [row["task"] for row in whole] == [f"t-{i + 1}" for i in range(HARD)]
    for file in "t.csv", "t.json":
        (tmp_path / file).unlink()

    def start():
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        # Of the lowest priority, so that it does not end before this process, on a busy machine, sees how far it is.
        command = ["nice", "-n", "19", sys.executable, "-m", "thesis_cli", *COMMAND, "--jobs", "2"]
        return subprocess.Popen(command, cwd=tmp_path, start_new_session=True, **pipes)

    process = start()
    wait_for(path, 3)
    process.kill()
    process.communicate(timeout=60)

    process = start()
    wait_for(path, 8)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it: to all processes
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    kept = path.read_bytes().count(b"\n") - 1
    before, *rest = (line for line in err.splitlines() if not line.startswith("compiling"))
    assert before.endswith(f"of {HARD} tasks are kept from before")
    assert len(rest) == 2, err
    line, last = rest
    assert re.fullmatch(rf"({kept - 1}|{kept}) of {HARD} tasks are kept; run the same command again to go on", line)
    assert last == "error: interrupted"
    assert files(tmp_path) == ["t.csv.journal", "t.jsonl"]

    result = cli(*COMMAND, "--jobs", 1)
    assert (result.status, result.err) == (1, f"{kept} of {HARD} tasks are kept from before\nwrote t.csv\n")
    assert table(tmp_path / "t.csv") == whole
    assert files(tmp_path) == ["t.csv", "t.json", "t.jsonl"]
