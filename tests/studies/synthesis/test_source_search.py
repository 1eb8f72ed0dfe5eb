"""The source's searches, counted, beside the searches themselves."""

import dataclasses

import numpy as np
import pytest

from thesis_cli.studies.synthesis.guided_searches import Programs, SourceSearch
from thesis_cli.synthesis.language.dsl import ATTRIBUTES, DEEPCODER
from thesis_cli.synthesis.search.depth_first import NONE, SLICE, DepthFirst, SortAndAdd
from thesis_cli.synthesis.search.solver import Limits, Order
from thesis_cli.synthesis.training.corpora import held_out

SEARCHES = {"dfs": DepthFirst(NONE), "sort-and-add": SortAndAdd(NONE, again=True)}


@pytest.mark.parametrize("name", SEARCHES)
def test_counts_are_those_of_the_search(name):
    """Found or stopped by limits of all sizes, at a length that the search does or does not go through."""
    rng = np.random.default_rng(0)
    stops = set()
    for length in (1, 2, 3, 4):
        corpus = held_out(length)
        for row in rng.integers(len(corpus), size=8).tolist():
            task, order = corpus.task(row), Order(tuple(rng.random(len(ATTRIBUTES)).tolist()))
            limits = Limits(3, nodes=int(10 ** rng.uniform(4, 7)))
            mine, theirs = (
                dataclasses.replace(by.solve(task, order, limits), seconds=0, found_after=None, first_after=None)
                for by in (SourceSearch(name), SEARCHES[name])
            )
            assert mine == theirs, (task.name, limits)
            stops.add(mine.stopped if mine.stopped or mine.programs else "none")
    assert stops == {"", "nodes", "none"}


def test_numbers_of_lines_and_programs_belong_together():
    """A search that has tried the line at which a program is found has counted as many programs."""
    rng = np.random.default_rng(1)
    for row in range(20):
        task = held_out(4).task(row)
        program = held_out(4).program(row)
        operations = rng.permutation(len(DEEPCODER.operations)).tolist()
        every = Programs(task, operations, 4)
        places = [(operations.index(line.operation), line.arguments[0], line.arguments[-1]) for line in program.lines]
        for k in range(1, 5):
            programs, lines = every.until(places[:k])
            assert every.after(lines) == programs
            assert every.after(lines - 1) <= programs
        assert every.after(every.total[1]) == every.total[0]
        end = every.lines_until(programs)
        assert end % SLICE == 0
        assert every.after(end - SLICE) < programs <= every.after(end)
