"""Searches for programs: programs a second beside the plain interpreter, and the time to solve
random tasks.

Prints processor seconds and ratios, in one process on one core; `make bench` runs it.
"""

import time
from itertools import product

import numpy as np

from thesis_cli.studies.synthesis.timing import examine, solver, time_limits, timed, unsolvable
from thesis_cli.synthesis import prior
from thesis_cli.synthesis.bottom_up import Bank
from thesis_cli.synthesis.corpus_maker import random_tasks
from thesis_cli.synthesis.depth_first import Run
from thesis_cli.synthesis.dsl import DEFAULT, LIST, OPERATIONS
from thesis_cli.synthesis.solver import Limits
from thesis_cli.synthesis.solvers import SOLVERS

TASKS = {3: 300, 4: 60, 5: 30}
"""Random tasks of each length T."""
SLOW = {"deductive": {3: 30, 4: 4, 5: 2}, "smt": {3: 4, 4: 2, 5: 2}}
"""The first of these tasks that solvers in plain Python, and z3, are given."""
TIMEOUT = 5.0
"""Seconds a task."""
BANKS = 4
"""Size of the trees in a bank."""


def interpreted(task, length):
    """What `examine` does in full, by the plain interpreter: number of programs, and seconds."""
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


def main():
    order = prior.load()
    rates()
    bank(order)
    solved(order)


if __name__ == "__main__":
    main()
