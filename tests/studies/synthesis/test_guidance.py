"""How times with a guide are compared with those without one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from thesis_cli.studies.synthesis.guidance import COLUMNS, SOURCE, plan, ratio, run, times
from thesis_cli.studies.synthesis.guided_searches import NETWORK, PRIOR


def row(search: str, guide: str, task: int, found: float | None, call: float = 0.0, nodes: int = 10) -> tuple:
    answer, stopped = (None, "timeout") if found is None else (5, "")
    return (search, guide, 5, task, nodes, 10.0, found, call, answer, stopped)


def frame(*rows: tuple) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS).astype({"answer": "Int64"})


def test_times_are_compared_task_by_task_with_the_call() -> None:
    found = frame(
        row("dfs", PRIOR, 0, 1.0),
        row("dfs", NETWORK, 0, 0.09, 0.01),
        row("dfs", PRIOR, 1, None),
        row("dfs", NETWORK, 1, 1.0),
        row("dfs", PRIOR, 2, None),
        row("dfs", NETWORK, 2, None, 0.5),
        row("dfs", PRIOR, 3, 1.0),
    )
    assert ratio(found, "dfs", NETWORK, 5, 3e6) == pytest.approx([-1, -1, 0])
    assert ratio(found, "dfs", NETWORK, 5, 3e6, with_call=False)[0] == pytest.approx(np.log10(0.09))
    assert len(ratio(found, "dfs", NETWORK, 4, 3e6)) == 0


def test_the_search_of_the_source_is_timed_by_its_programs() -> None:
    found = frame(row(SOURCE, PRIOR, 0, 0.001, nodes=6_000_000), row("dfs", PRIOR, 0, 0.001))
    assert times(found, SOURCE, PRIOR, 5, 3e6).tolist() == [2.0]
    assert times(found, "dfs", PRIOR, 5, 3e6).tolist() == [0.001]


def test_a_task_of_the_experiment_has_all_guides_in_turn() -> None:
    settings = {"calls": [2], "searches": [["dfs", [PRIOR, NETWORK], 2, 0, 3, 2, None, 5]]}
    call, first, second = plan(settings)
    assert (first["first"], first["last"], second["first"], second["last"]) == (0, 1, 2, 2)
    assert first["guides"][0] == PRIOR
    assert first["guides"][1].startswith(f"{NETWORK}: lines-4 ")
    found = run(None, **first)
    assert found[["guide", "task"]].to_numpy().tolist() == [[PRIOR, 0], [NETWORK, 0], [PRIOR, 1], [NETWORK, 1]]
    assert (found.answer <= 2).all()
    assert (found.call[found.guide == PRIOR] == 0).all()
    called = run(None, **call)
    assert called.task.tolist() == [2]
    assert called.seconds[0] >= 0
