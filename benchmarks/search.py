"""Searches for programs: programs a second beside the plain interpreter, the time to solve random
tasks, the goals for programs of 5 lines and more, and searches with a network beside those without.

Prints processor seconds and ratios, in one process on one core. `make bench` runs it on few tasks;
without options, the goals of T = 7 and 8 take an hour. `--parts`, `--lengths`, `--tasks`, `--timeout`
and `--solvers` choose some of it.

`--peer PATH` runs another search on the same tasks, for the part `goals`. PATH is called with three
arguments: 0 (quotients are truncated), seconds a task, and T, the most lines of a program that it
need find. It reads tasks from standard input, all in words separated by white space: `name inputs
examples 0`, then for each example its inputs and its output, each as `0 n numbers...` for a list of
n numbers or `1 1 number` for a number. It prints a line for each task, in order: its name, lines of
the program found (0 if there is none), seconds until that was found, seconds in all, and whatever
else. The seconds are wall-clock ones, which count here in the share of processor time that the whole
run got.
"""

import argparse
import resource
import subprocess
import time
from itertools import product

import numpy as np

from thesis_cli.studies.synthesis.published_speedups import GOALS, TOWARD_GOALS
from thesis_cli.studies.synthesis.timing import examine, solver, time_limits, timed, unsolvable, until_found
from thesis_cli.synthesis import prior
from thesis_cli.synthesis.corpus.corpus_maker import random_tasks
from thesis_cli.synthesis.language.dsl import DEFAULT, LIST, OPERATIONS
from thesis_cli.synthesis.networks.network_guide import network_guide
from thesis_cli.synthesis.prior import orders_of
from thesis_cli.synthesis.search import execution
from thesis_cli.synthesis.search.bottom_up import Bank
from thesis_cli.synthesis.search.depth_first import Run
from thesis_cli.synthesis.search.solver import Limits
from thesis_cli.synthesis.solvers import SOLVERS
from thesis_cli.synthesis.training.corpora import held_out

TASKS = {3: 300, 4: 60, 5: 30}
"""Random tasks of each length T."""
SLOW = {"deductive": {3: 30, 4: 4, 5: 2}, "smt": {3: 4, 4: 2, 5: 2}}
"""The first of these tasks that solvers in plain Python, and z3, are given."""
TIMEOUT = 5.0
"""Seconds a task."""
PROGRAMS, POOLED = 10_000, 5
"""Partial programs in a pool, and lines that they get."""
BANKS = 4
"""Size of the trees in a bank."""
PROVEN, PROVEN_TASKS, PROOF_TIMEOUT = 5, 12, 20.0
"""Lines, tasks, and seconds a task for the rate of searches that end with a proof."""


def interpreted(task, length):
    """Number of programs that `examine` runs in full, and seconds, by the plain interpreter."""
    outputs = [example.output for example in task.examples]

    def extend(types, columns, left):
        if not left:
            return 1
        nodes = 0
        for operation in OPERATIONS:
            places = [[i for i, kind in enumerate(types) if kind is needed] for needed in operation.inputs]
            for arguments in product(*places):
                taken = [columns[i] for i in arguments]
                column = None
                if None not in taken:
                    values = [DEFAULT.apply(operation, *row) for row in zip(*taken, strict=True)]
                    column = None if None in values else values
                assert left > 1 or column != outputs
                nodes += extend([*types, operation.output], [*columns, column], left - 1)
        return nodes

    columns = [list(column) for column in zip(*(example.inputs for example in task.examples), strict=True)]
    began = time.process_time()
    return extend(list(task.inputs), columns, length), time.process_time() - began


def rates():
    print("programs a second, all of a length on five examples")
    for inputs in ((LIST,), (LIST, LIST)):
        task = unsolvable(inputs, np.random.default_rng(0))
        programs, seconds = interpreted(task, 2)
        plain = programs / seconds
        print(f"  {', '.join(inputs)}: plain Python {plain:.3g} (T = 2)")
        for name, lazily in (("in full", False), ("last lines lazily", True)):
            rate = max(programs / seconds for programs, seconds in (examine(task, 3, lazily) for _ in range(3)))
            print(f"    compiled, {name:<18} {rate:9.3g} (T = 3), {rate / plain:6.0f} times that")


def proofs(order):
    """Programs that are listed as last lines count as examined, whether they were run or not."""
    tasks = [labelled.task for labelled in random_tasks(PROVEN, PROVEN_TASKS, np.random.default_rng(PROVEN))]
    print(f"programs a second until one of {PROVEN} lines is found and proven shortest, {PROVEN_TASKS} tasks")
    for name in ("dfs", "bottom-up"):
        found = [timed(name, task, order, Limits(PROVEN, PROOF_TIMEOUT)) for task in tasks]
        seconds, proven = sum(took for _, took in found), sum(solution.proven for solution, _ in found)
        rate = sum(solution.nodes for solution, _ in found) / seconds
        print(f"  {name:<14} {rate:9.3g}, {seconds:.2f} s, {proven} of {PROVEN_TASKS} proven")


def pools():
    """Lines a second that a policy adds to a pool of partial programs, in compiled code."""
    task = unsolvable((LIST, LIST), np.random.default_rng(0))
    execution.prepare()
    empty = execution.start([task], POOLED).take(np.zeros(PROGRAMS, dtype=np.int64))
    rng = np.random.default_rng(0)
    zips = [operation.id for operation in OPERATIONS if operation.inputs == (LIST, LIST)]
    variables = [rng.integers(2 + line, size=(PROGRAMS, 2)) for line in range(POOLED)]
    moves = [np.column_stack([rng.choice(zips, PROGRAMS), chosen]) for chosen in variables]
    seconds = np.inf
    for _ in range(3):
        pool, began = empty, time.process_time()
        for lines in moves:
            pool = execution.step(pool, lines)
        seconds = min(seconds, time.process_time() - began)
    print(f"pool of {PROGRAMS:,} partial programs: {POOLED * PROGRAMS / seconds:.3g} lines a second")


def solved(order):
    print("seconds by which 20%, 40% and 60% of random tasks are solved")
    for length, count in TASKS.items():
        tasks = [labelled.task for labelled in random_tasks(length, count, np.random.default_rng(length))]
        for name in SOLVERS:
            chosen = tasks[: SLOW[name][length] if name in SLOW else count]
            seconds = []
            for task in chosen:
                solution, took = timed(name, task, order, Limits(length, TIMEOUT))
                seconds.append(took if solution.programs else np.inf)
            limits = " ".join(f"{limit:9.4f}" for limit in time_limits(seconds))
            given = f"{len(chosen)} tasks, {np.isinf(seconds).sum()} not in {TIMEOUT:g} s"
            print(f"  T = {length} {name:<14} {limits}   ({given})", flush=True)


def bank(order):
    solver("bottom-up")
    task, limits = unsolvable((LIST,), np.random.default_rng(0)), Limits(BANKS + 1)
    found, run = Bank(task, order, limits, DEFAULT), Run("bottom-up", task, limits, DEFAULT)
    began = time.process_time()
    for _ in range(BANKS):
        found.grow(run)
    print(f"bank of a list up to size {BANKS}: {found.kept:,} values of {run.nodes:,} trees, ", end="")
    print(f"{time.process_time() - began:.2f} s")


def goals(order, lengths, count, timeout, solvers, peer):
    print("random tasks, a program of at most T lines: seconds until it is found, and until it is proven shortest")
    print(f"  {'T':>3} {'solver':<14} {'in time':>8} {'median':>9} {'90%':>9} {'proven':>8} {'median':>9} {'90%':>9}")
    for length in lengths:
        tasks = [labelled.task for labelled in random_tasks(length, count, np.random.default_rng(length))]
        for name in solvers:
            found, proven = [], []
            for task in tasks:
                solution, took = timed(name, task, order, Limits(length, timeout))
                found.append(until_found(solution, took))
                proven.append(took if solution.proven else np.inf)
            print(f"  {length:3} {name:<14} {_times(found)} {_times(proven)}", flush=True)
        if peer:
            print(f"  {length:3} {'the peer':<14} {_times(by_peer(peer, tasks, length, timeout))}", flush=True)
        if length in GOALS:
            median, share = GOALS[length]
            print(f"  {length:3} {'goal':<14} {share:8.1%} {median:9.4f}", flush=True)


def guidance(order, name, lengths, count, timeout, solvers):
    """The time of one call of a network, then searches in its order and in that of the prior, task by
    task."""
    network = network_guide(name)
    tasks = [held_out(5).task(row) for row in range(256)]
    print(f"call of {network.identity}, milliseconds a task")
    for size in (1, 16, 256):
        seconds = []
        for _ in range(20):
            began = time.process_time()
            network.orders(tasks[:size])
            seconds.append(time.process_time() - began)
        print(f"  {size:3} at once {1000 * min(seconds) / size:9.4f}")
    print("held-out tasks: seconds until a program is found, without and with the network")
    print(f"  {'T':>3} {'solver':<14} {'guide':<8} {'in time':>8} {'median':>9} {'90%':>9} {'mean ratio':>11}")
    for length in lengths:
        tasks = held_out(length, count)
        tasks = [tasks.task(row) for row in range(len(tasks))]
        orders = {"prior": [order] * len(tasks), "network": orders_of(network, tasks, order)}
        for solver_name in solvers:
            found = {guide: [] for guide in orders}
            for place, task in enumerate(tasks):
                for guide, given in orders.items():
                    solution, took = timed(solver_name, task, given[place], Limits(length, timeout))
                    found[guide].append(until_found(solution, took))
            ratio = np.minimum(found["network"], timeout) / np.minimum(found["prior"], timeout)
            for guide, seconds in found.items():
                mean = f"{np.exp(np.log(ratio).mean()):11.3f}" if guide == "network" else ""
                print(f"  {length:3} {solver_name:<14} {guide:<8} {_times(seconds)} {mean}", flush=True)


def _times(seconds):
    """Share of the tasks with a time, and the times in which half and 90 % are done."""
    half, most = time_limits(seconds, (0.5, 0.9))
    return f"{np.isfinite(seconds).mean():8.1%} {half:9.4f} {most:9.4f}"


def by_peer(peer, tasks, length, timeout):
    """Seconds until another search finds programs; inf where it finds none of so few lines."""
    text = "\n".join(map(_words, tasks)) + "\n"
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [peer, "0", str(timeout), str(length)]
    lines = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    share = min((after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) / wall, 1.0)
    assert len(lines) == len(tasks), "the peer answers each task in a line"
    answers = [(int(words[1]), float(words[2])) for words in map(str.split, lines)]
    return [share * seconds if 0 < found <= length else np.inf for found, seconds in answers]


def _words(task):
    """A task as a peer reads it."""

    def words(value):
        numbers = (1, 1, value) if isinstance(value, int) else (0, len(value), *value)
        return " ".join(map(str, numbers))

    rows = [words(value) for example in task.examples for value in (*example.inputs, example.output)]
    return "\n".join([f"{task.name} {len(task.inputs)} {len(task.examples)} 0", *rows])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = "rates", "pools", "bank", "solvers", "goals", "guidance"
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument(
        "--lengths", nargs="+", type=int, default=[5, 6, 7, 8], help="T of the parts goals and guidance"
    )
    parser.add_argument("--tasks", type=int, default=100, help="tasks of each T of these parts")
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds a task of these parts")
    parser.add_argument("--solvers", nargs="+", choices=tuple(SOLVERS), default=TOWARD_GOALS, help="of these parts")
    parser.add_argument("--peer", help="another search, for the part goals")
    parser.add_argument("--guide", default="network", help="weights, for the part guidance")
    given = parser.parse_args()
    order = prior.load()
    if "rates" in given.parts:
        rates()
        proofs(order)
    if "pools" in given.parts:
        pools()
    if "bank" in given.parts:
        bank(order)
    if "solvers" in given.parts:
        solved(order)
    if "goals" in given.parts:
        goals(order, given.lengths, given.tasks, given.timeout, given.solvers, given.peer)
    if "guidance" in given.parts:
        guidance(order, given.guide, given.lengths, given.tasks, given.timeout, given.solvers)


if __name__ == "__main__":
    main()
