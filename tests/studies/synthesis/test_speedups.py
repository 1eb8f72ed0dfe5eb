"""Comparisons of searches with and without a network: quantiles with unsolved tasks, bounds."""

import numpy as np
import pandas as pd
import pytest

from tests.conftest import ROOT
from thesis_cli.reproduction.experiment import load
from thesis_cli.studies.synthesis import guided_searches, speedups
from thesis_cli.studies.synthesis.guided_searches import (
    COLUMNS,
    FACTOR,
    NETWORK,
    PRIOR,
    RATE,
    plan,
    run,
    solver,
    tasks_of,
    until_share,
)
from thesis_cli.studies.synthesis.incidence import TABLE, incidence, make
from thesis_cli.studies.synthesis.published_speedups import FIGURE_5_3A, TABLE_5_1
from thesis_cli.studies.synthesis.speedups import Needed, Speedup, gain, needed, needed_for_share, speedup
from thesis_cli.synthesis.language.dsl import ATTRIBUTES
from thesis_cli.synthesis.search.solver import Limits, Order
from thesis_cli.synthesis.training.corpora import held_out

ALL = np.ones(4, dtype=bool)
COSTS = np.array([3.0, 2.0, 4.0, 1.0])


class Oracle:
    """A guide that knows the programs of the held-out tasks."""

    identity = "oracle"

    def __init__(self, length):
        corpus = held_out(length)
        self.known = {str(corpus.task(row).examples): row for row in range(len(corpus))}
        self.attributes = corpus.attributes

    def orders(self, tasks):
        rows = [self.attributes[self.known[str(task.examples)]] for task in tasks]
        return [Order(tuple((0.05 + 0.9 * row).tolist())) for row in rows]


@pytest.fixture
def oracle(monkeypatch):
    monkeypatch.setattr(guided_searches, "guide_of", lambda training: Oracle(2))


def test_what_is_needed_is_exact_only_if_enough_tasks_are_solved():
    assert needed(COSTS, ALL, 0.5) == Needed(2.0, 2.0)
    solved = np.array([False, True, True, True])
    assert needed(COSTS, solved, 0.5) == Needed(2.0, 2.0)
    assert needed(COSTS, solved, 0.75) == Needed(3.0, 4.0)  # the first one takes more than 3, perhaps less than 4
    assert needed(COSTS, solved, 1.0) == Needed(4.0, np.inf)
    assert needed(COSTS, ~ALL, 0.5) == Needed(2.0, np.inf)
    assert not needed(COSTS, solved, 0.75).exact


def test_a_speedup_is_the_ratio_of_quantiles_of_the_same_tasks():
    found = speedup(10 * COSTS, ALL, COSTS, ALL, 0.5)
    assert found.log10 == pytest.approx(1.0)
    assert found.relation == "="
    assert found.standard_error == pytest.approx(0.0, abs=1e-12)  # every task gains as much
    assert str(found) == "10x"
    rng = np.random.default_rng(0)
    many, ones = rng.lognormal(size=1000), np.ones(1000, dtype=bool)
    noisy = speedup(many, ones, rng.permutation(many), ones, 0.5)
    assert noisy.log10 == pytest.approx(0.0)
    error = np.sqrt(2 * np.pi / 2 / 1000) / np.log(10)  # of two medians of 1000 each
    assert noisy.standard_error == pytest.approx(error, rel=0.3)


def test_speedups_of_searches_that_were_stopped_are_bounds():
    """The prior's search stopped at 50, or the network's did."""
    fifty, none = np.full(4, 50.0), np.zeros(4, dtype=bool)
    lower = speedup(fifty, none, COSTS, ALL, 0.5)
    assert (lower.log10, lower.relation, str(lower)) == (pytest.approx(np.log10(25)), ">", "> 25x")
    upper = speedup(COSTS, ALL, fifty, none, 0.5)
    assert (upper.log10, upper.relation) == (pytest.approx(-np.log10(25)), "<")
    assert speedup(fifty, none, fifty, none, 0.5) is None
    assert speedup(COSTS[:0], ALL[:0], COSTS[:0], ALL[:0], 0.5) is None


@pytest.mark.parametrize(
    ("relation", "against", "decides"),
    [("=", 5.0, True), (">", 0.5, True), (">", 1.5, False), ("<", 1.5, True), ("<", 0.5, False)],
)
def test_a_bound_decides_on_one_side_alone(relation, against, decides):
    value, error = Speedup(1.0, 0.1, relation).against(against)
    assert value == 1.0
    assert error == (0.1 if decides else np.inf)


def frame(**seconds):
    """Rows of searches `name_guide`, of as many tasks as seconds are given; none is unsolved."""
    rows = []
    for key, values in seconds.items():
        name, guide = key.rsplit("_", 1)
        search = {"dfs": "dfs, source", "add": "sort-and-add, source"}.get(name, name)
        for task, x in enumerate(values):
            spent = (RATE * abs(x), 0.0, 0.0) if "source" in search else (1, abs(x) - 0.25, 0.25)
            rows.append((search, guide, 3, 3, task, *spent, 3 if x > 0 else None, "" if x > 0 else "nodes"))
    return pd.DataFrame(rows, columns=COLUMNS)


def test_gains_of_searches():
    rows = frame(
        dfs_prior=[2, 4, 6, 8],
        dfs_network=[1, 2, 3, 4],
        add_prior=[20, 40, 60, -90],
        add_network=[1, 2, 3, 4],
        today_prior=[1, 1, 1, 1],
        today_network=[2, 2, 2, 2],
        slow_network=[30, 20],
    )
    assert str(gain(rows, "dfs, source", 0.5)) == "2x"
    assert str(gain(rows, "sort-and-add, source", 1.0)) == "> 22.5x"
    assert str(gain(rows, "today", 0.5)) == "0.5x"  # the call of the network counts
    assert gain(rows, "beam", 0.5) is None
    assert speedups.difference(rows, "sort-and-add, source", "dfs, source", 0.5)[0] == pytest.approx(1.0)
    assert speedups.difference(rows, "dfs, source", "sort-and-add, source", 1.0) is None  # it gains more than it shows
    assert speedups.more_solved(rows, "sort-and-add, source") == pytest.approx((0.25, 0.25))
    assert speedups.more_solved(rows, "slow") is None
    assert speedups.mean_gain(rows, "dfs, source") == pytest.approx((np.log10(2), 0.0))
    assert speedups.mean_gain(rows, "slow") is None
    assert speedups.mean_faster(rows, "dfs, source", "sort-and-add, source")[0] == pytest.approx(
        np.log10([20, 20, 20, 22.5]).mean()
    )
    assert speedups.baselines(rows, "sort-and-add, source", "dfs, source", 0.5, 1.0)[0] == pytest.approx(1.0)
    assert speedups.baseline(rows, "dfs, source", 0.75, 0.0)[0] == pytest.approx(np.log10(6))


def test_differences_of_gains_keep_the_tasks_together():
    """Both searches gain as much on each task, from 1 to 1000 times: the difference is always 0."""
    rng = np.random.default_rng(0)
    ones, many = np.ones(50), 10 ** rng.uniform(0, 3, 50)
    rows = frame(dfs_prior=many, dfs_network=ones, add_prior=2 * many, add_network=2 * ones)
    assert speedups.difference(rows, "sort-and-add, source", "dfs, source", 0.5) == pytest.approx((0.0, 0.0), abs=1e-9)
    assert gain(rows, "dfs, source", 0.5).standard_error > 0.05


def test_gains_are_means_over_trainings():
    one = frame(dfs_prior=[100.0] * 20, dfs_network=[1.0] * 10 + [50.0] * 10)
    other = one[one.guide == NETWORK].assign(guide="lines-3-seed-1", nodes=lambda rows: rows.nodes / 10)
    both = pd.concat([one, other])
    mean, error = speedups.mean_gain(one, "dfs, source")
    assert speedups.mean_gain(both, "dfs, source") == pytest.approx((mean + 0.5, np.hypot(error, 0.5)))
    assert speedups.gaining(both, "dfs, source", 10.0)[0] == 0.75
    for measure, *what in ((speedups.changes, (0.5,), 10), (speedups.more_solved,)):
        assert np.array_equal(measure(both, "dfs, source", *what), measure(one, "dfs, source", *what))
    assert gain(both, "dfs, source", 0.5) == gain(one, "dfs, source", 0.5)


def test_searches_are_compared_by_their_seconds_here():
    rows = frame(slow_network=[30.0, 20.0, 7.0], fast_network=[3.0, 20.0])
    assert speedups.mean_slower(rows, "slow", "fast") == pytest.approx((0.5, 0.5))
    assert speedups.mean_slower(rows, "slow", "other") is None
    assert speedups.mean_slower(rows, "none", "other") is None
    assert speedups.more_solved(rows, "none") is None


def test_shares_and_changes():
    rows = frame(dfs_prior=[100.0] * 20, dfs_network=[1.0] * 10 + [50.0] * 10)
    assert speedups.gaining(rows, "dfs, source", 10.0)[0] == 0.5
    (change,), (error,) = speedups.changes(rows, "dfs, source", (0.5,), 10)
    assert (change, error) == (pytest.approx(np.log10(50)), 0.0)
    assert speedups.share_of(10, 10) == (1.0, pytest.approx((11 / 12 * 1 / 12 / 10) ** 0.5))


def test_a_printed_ratio_has_an_error_of_its_own():
    assert speedups.against_source(Speedup(1.0, 0.1, "="), 2.0) == (1.0, pytest.approx(0.1 * 2**0.5), 0.1)
    assert speedups.against_source(Speedup(1.0, 0.1, ">"), 2.0) == (1.0, np.inf, np.inf)


def test_every_published_speedup_is_the_ratio_of_its_seconds():
    cells = [cell for table in (TABLE_5_1, FIGURE_5_3A) for column in table.values() for cell in column]
    assert len(cells) == 19
    for cell in cells:
        assert cell.speedup == pytest.approx(cell.prior / cell.network, rel=0.09)


@pytest.mark.parametrize(("length", "examples"), [(1, 30), pytest.param(2, None, marks=pytest.mark.long)])
def test_the_baseline_is_the_incidence_in_the_training_corpus(length, examples):
    """Whether a program of one line has good examples does not depend on how many are drawn."""
    rows = [line.split(",") for line in TABLE.read_text().splitlines()]
    assert make([length], examples).splitlines() == [f"{row[0]},{row[length]}" for row in rows]
    assert incidence(3).probabilities[ATTRIBUTES.index("ZIPWITH")] > incidence(3).probabilities[0]


def test_a_search_with_a_guide_that_knows_the_program_is_short(oracle):
    settings = {
        "trained": 2,
        "length": 2,
        "searches": [["sort-and-add, source", g, 8, 5, None, None] for g in (PRIOR, NETWORK)],
    }
    tasks = plan(settings)
    assert [(task["guide"], task["first"], task["last"]) for task in tasks] == [
        (PRIOR, 0, 4),
        (PRIOR, 5, 7),
        (NETWORK, 0, 4),
        (NETWORK, 5, 7),
    ]
    rows = pd.concat([run(None, **task) for task in tasks])
    assert list(rows.columns) == COLUMNS
    assert rows.answer.notna().all()
    assert gain(rows, "sort-and-add, source", 0.6).log10 > 0.5
    assert (rows[rows.guide == PRIOR].call == 0).all()


def test_a_growing_limit_finds_the_same_quantile():
    tasks = tasks_of(3, 0, 19)
    given = [incidence(3)] * len(tasks)
    every = np.array([solver("dfs, source").solve(task, incidence(3), Limits(3)).nodes for task in tasks], float)
    found = until_share("dfs, source", given, tasks, 3, 0.2, 10**7)
    some = np.array([float(solution.nodes) for solution in found])
    solved = np.array([bool(solution.program) for solution in found])
    assert needed(some, solved, 0.2) == needed(every, np.ones(20, dtype=bool), 0.2)
    assert not solved.all()
    assert max(some) < FACTOR * 2**17


def test_networks_are_compared_by_programs(oracle):
    (row,) = needed_for_share("sort-and-add", 2, ["oracle"], 2, 10, 0.5, 10**6)
    assert row[NETWORK] < row[PRIOR]
    assert (row["relation"], row["tasks"], row["prior_exact"]) == ("=", 10, 1)
    assert row["log10"] == pytest.approx(np.log10(row[PRIOR] / row[NETWORK]))


@pytest.mark.parametrize("name", ["fig_d_2", "fig_d_3"])
def test_experiments_that_share_tasks_agree(name):
    experiments = ROOT / "experiments"
    one = load(experiments / f"{name}.py")
    other = load(experiments / f"{one.shares.replace('-', '_')}.py")
    for what in ("presets", "tasks", "run", "version", "tolerances"):
        assert getattr(one, what) == getattr(other, what)
