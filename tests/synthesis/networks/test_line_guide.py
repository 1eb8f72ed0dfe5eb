"""The guide that is a network for next lines, as the command takes it."""

from __future__ import annotations

import pytest

import thesis_cli as tc
from thesis_cli.base.errors import InputError
from thesis_cli.synthesis import prior
from thesis_cli.synthesis.auto import Auto
from thesis_cli.synthesis.guided.anytime_beam import PriorPolicy, policy_of
from thesis_cli.synthesis.language.task import check, load_tasks
from thesis_cli.synthesis.networks.network_guide import NetworkGuide, line_guide
from thesis_cli.synthesis.networks.next_line import NextLine
from thesis_cli.synthesis.search.solver import Limits, LineOrder

TASK = "data/tasks/mirror.json"


def test_the_guided_search_asks_its_network_unless_it_is_told_not_to() -> None:
    guided = tc.synthesize(TASK, solver="guided", jobs=1)
    assert guided.settings["guide"].startswith("network next-line ")
    assert guided.solutions[0].solver == "guided"
    plain = tc.synthesize(TASK, solver="guided", guide="none", jobs=1)
    assert plain.settings["guide"] == "none"
    assert guided.status == plain.status == 0


def test_orders_name_the_network() -> None:
    order = line_guide("next-line", prior.load()).orders(load_tasks(TASK))[0]
    assert isinstance(order, LineOrder)
    assert isinstance(policy_of(order), NextLine)
    assert isinstance(policy_of(prior.load()), PriorPolicy)
    assert isinstance(line_guide("lines-1", prior.load()), NetworkGuide)
    with pytest.raises(InputError, match="there are no weights 'nothing'"):
        line_guide("nothing", prior.load())


def test_a_network_for_next_lines_orders_no_other_search() -> None:
    with pytest.raises(InputError, match="next-line"):
        tc.synthesize(TASK, solver="dfs", guide="next-line", jobs=1)


def test_auto_gives_the_guided_search_turns_if_the_order_names_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thesis_cli.synthesis.auto._Led.after", -1e9)
    task = load_tasks(TASK)[0]
    found = Auto().solve(task, LineOrder(prior.load().probabilities), Limits(4))
    assert found.solver == "guided"
    assert found.proven
    assert check(found.programs[0], task)
