"""Figures of runs: what is drawn is what the tables have."""

import math

import numpy as np
import pytest

from tests.conftest import MODELS
from tests.reproduction.plots.test_run import HEADING, ROW, table  # noqa: F401
from thesis_cli.base.errors import InputError
from thesis_cli.base.figures import style
from thesis_cli.commands.core.command import entries
from thesis_cli.commands.figures.bounds import couplings_figure
from thesis_cli.commands.ln_z.entropies import curve_orders
from thesis_cli.reproduction.plots import estimates, kinds
from thesis_cli.reproduction.plots.run import read_run

UPPER = "m,1,4,0,4,4,ln Z,upper bound,1,0,TRW,there,0\n"
EXACT = "m,1,2,0,2,2,ln Z,exact,1,0,sum,there,0\n"


@pytest.fixture
def axes(table):  # noqa: F811
    """The axes of the figure of a table."""

    def drawn(text, record):
        with style():
            return kinds.figure(read_run(table(text, record)))().axes

    return drawn


def points(axes):
    """Coordinates of the lines of some axes that have markers."""
    return [line.get_xydata().tolist() for line in axes.lines if line.get_marker() not in ("None", "", "|")]


def test_each_kind_is_a_command_and_has_a_function():
    import importlib

    for command, (module, name) in kinds.KINDS.items():
        assert command in entries()
        assert callable(getattr(importlib.import_module(f"thesis_cli.reproduction.plots.{module}"), name))


def test_estimates_and_bounds_are_on_one_axis_with_a_line_at_the_exact_answer(axes):
    (found,) = axes(HEADING + EXACT + ROW + UPPER, {"command": "estimate-z"})
    assert points(found) == [[[2.5, 0.0]], [[4.0, 1.0]]]
    assert [line.get_marker() for line in found.lines if line.get_label() == "_nolegend_"][-1] != "o"
    assert "<" in [line.get_marker() for line in found.lines]
    assert [2.0, 2.0] in [list(line.get_xdata()) for line in found.lines]
    assert found.get_xlabel() == r"$\ln Z$, nats"
    assert [label.get_text() for label in found.get_yticklabels()] == ["gumbel\nunbiased", "TRW\nupper bound"]


def test_numbers_with_powers_of_ten_get_one_unit(axes, table):  # noqa: F811
    rows = ROW.replace("ln Z", "Z").replace(",0\n", ",500\n") + ROW.replace("ln Z", "Z").replace(",0\n", ",499\n")
    (found,) = axes(HEADING + rows, {"command": "estimate-z"})
    assert points(found) == [[[2.5, 0.0]], [[0.25, 1.0]]]
    assert "10^{500}" in found.get_xlabel()
    first, second = estimates.estimates_of(read_run(table(HEADING + rows, {"command": "estimate-z"})))
    for name in ("value", "standard_error", "low", "high"):
        assert getattr(second, name) == pytest.approx(getattr(first, name) / 10)


def test_what_is_not_finite_is_said(axes):
    (found,) = axes(HEADING + ROW.replace("2.5", "-inf") + ROW.replace("3.5", "inf"), {"command": "bound"})
    assert [text.get_text() for text in found.texts] == ["no finite value (-inf)"]
    assert any(line.get_xdata()[-1] == found.get_xlim()[1] for line in found.lines)


def test_couplings_are_drawn_by_the_code_of_the_command(axes, table):  # noqa: F811
    rows = [(c, row) for c in (0.0, 1.0) for row in (EXACT, ROW.replace("gumbel", "U(0)").replace("2.5", f"{3 + c}"))]
    text = "coupling," + HEADING + "".join(f"{c},{row}" for c, row in rows)
    settings = {"kind": "mixed", "size": "2x2", "samples": 10}
    (found,) = axes(text, {"command": "spin-glass", "settings": settings})
    run = read_run(table(text, {"command": "spin-glass"}))
    by_hand = [(c, [e for e, (d, _) in zip(estimates.estimates_of(run), rows, strict=True) if c == d]) for c in (0, 1)]
    with style():
        (expected,) = couplings_figure(by_hand, "mixed 2x2, 10 MAP calls each").axes
    assert points(found) == points(expected) == [[[0.0, 1.0], [1.0, 2.0]]]
    assert found.get_title() == expected.get_title()


def test_a_profile_is_told_from_estimates_by_its_orders(axes):
    lines = [f"{1.5 if o == 1 else 'inf' if o == math.inf else o}," + ROW for o in (1.0, 2.0)]
    lines += [f"{order}," + ROW.replace("2.5", f"{k}") for k, order in enumerate(curve_orders())]
    (found,) = axes("order," + HEADING + "".join(lines), {"command": "renyi"})
    assert [len(line.get_xdata()) for line in found.lines] == [60, 2]
    assert list(found.lines[0].get_ydata()) == list(range(60))
    (found,) = axes("order," + HEADING + "".join(lines[:2]), {"command": "renyi"})
    assert len(found.get_yticklabels()) == 2


def test_states_of_a_grid_are_images_and_others_are_shares(axes):
    rng = np.random.default_rng(0)
    states = rng.integers(0, 2, (20, 16))
    text = (
        ",".join(f"x{i}" for i in range(16)) + "\n" + "".join(",".join(map(str, row)) + "\n" for row in states.tolist())
    )
    grid = {"command": "sample", "settings": {"model": str(MODELS / "ising-4x4.uai")}}
    images = [np.asarray(one.images[0].get_array()) for one in axes(text, grid) if one.get_title()]
    assert len(images) == 8
    np.testing.assert_allclose(images[0], states.mean(axis=0).reshape(4, 4))
    np.testing.assert_array_equal(images[1], states[0].reshape(4, 4))
    gone = {"command": "sample", "settings": {"model": "gone.uai"}}
    (bars,) = axes(text, gone)
    np.testing.assert_allclose([bar.get_width() for bar in bars.patches[:16]], (states == 0).mean(axis=0))
    rows = "".join(f"{i},{k},{p}\n" for i in range(16) for k, p in enumerate((0.25, 0.75)))
    image, _ = axes("variable,state,probability\n" + rows, {**grid, "command": "marginals"})
    assert (np.asarray(image.images[0].get_array()) == 0.75).all()
    rows = "".join(f"{i},{state}\n" for i, state in enumerate(states[0].tolist()))
    image, _ = axes("variable,state\n" + rows, {**grid, "command": "map"})
    np.testing.assert_array_equal(image.images[0].get_array(), states[0].reshape(4, 4))


def test_indices_of_a_vector_are_ranked(axes):
    (found,) = axes("index\n7\n7\n7\n2\n", {"command": "sample"})
    assert points(found) == [[[1.0, 0.75], [2.0, 0.25]]]


def test_each_query_has_a_panel_and_histograms_have_bars(axes):
    rows = (
        'mean(x),,mean,3,2,4\n"histogram(x, bins=2)",0 to 1,share,0.25,,\n"histogram(x, bins=2)",1 to 2,share,0.75,,\n'
    )
    means, histogram = axes("query,group,statistic,value,low,high\n" + rows, {"command": "dp-query"})
    assert points(means) == [[[0.0, 3.0]]]
    assert [bar.get_width() for bar in histogram.patches] == [0.25, 0.75]


def test_solved_tasks_are_counted_over_time(axes):
    rows = "a,1,p,True,0.5,0.25\nb,1,p,False,2,1\nb,2,q,False,2,1\nc,,,False,2,\n"
    record = {"command": "synthesize", "settings": {"timeout": 2.0}}
    (found,) = axes("task,rank,program,proven,seconds,found_after\n" + rows, record)
    counts = {line.get_label(): line.get_ydata()[-1] for line in found.lines}
    assert counts["a program is found: 2 of 3"] == 2
    assert counts["it is proven shortest: 1 of 3"] == 1


def test_a_ledger_sums_up_the_shares_of_its_limits(axes):
    (found,) = axes("table,total_epsilon,limit_epsilon\nt,1,4\nt,3,4\n", {"command": "dp-ledger"})
    assert list(found.lines[0].get_ydata()) == [0.0, 0.25, 0.75]


def test_an_audit_shows_what_is_claimed_and_what_is_proven(axes):
    rows = "features,record,20,10,1.5\nlaplace,record,3,,0.5\n"
    heading = "method,entry,epsilon,gdp_epsilon,clopper_pearson_epsilon\n"
    (found,) = axes(heading + rows, {"command": "dp-audit"})
    assert points(found)[0] == [[20.0, 0.0], [3.0, 1.0]]
    assert points(found)[2] == [[1.5, 0.0], [0.5, 1.0]]


@pytest.mark.parametrize("places", [1, 2])
def test_of_predictions_the_best_of_each_row_count(axes, places):
    """Ranks begin at 1."""
    best = [(1, 2, 3), (2, 1, 3), (1, 3, 2), (1, 2, 3)]
    others = [(3, 2, 1)] * 4 * (places - 1)
    rows = [(1, *each) for each in best] + [(2, *each) for each in others]
    text = "place,a,b,c,log_probability\n" + "".join(",".join(map(str, row)) + ",-1\n" for row in rows)
    record = {"command": "structured predict", "labels": ["a", "b", "c"], "task": "ranking"}
    (found,) = axes(text, record)
    assert [bars.get_label() for bars in found.containers] == ["rank 1", "rank 2", "rank 3"]
    widths = [[bar.get_width() for bar in bars] for bars in found.containers]
    assert widths == [[0.75, 0.25, 0], [0.25, 0.5, 0.25], [0, 0.25, 0.75]]


@pytest.mark.parametrize(("record", "level"), [({"command": "dp-test", "settings": {"level": 0.2}}, 0.2), ({}, 0.05)])
def test_p_values_are_drawn_beside_the_level_and_unresolved_ones_are_arrows(axes, record, level):
    rows = "noisy mean,0.125,99\npermutation,0.01,99\n"
    (found,) = axes("test,p_value,draws\n" + rows, record)
    assert points(found) == [[[0.125, 0.0]], [[0.01, 1.0]]]
    assert [line.get_marker() for line in found.lines if line.get_marker() not in ("None", "")] == ["o", "<"]
    assert list(found.lines[-1].get_xdata()) == [level, level]
    verdict = "the populations differ" if level > 0.125 else "no difference found"
    assert found.get_title() == f"{verdict}, by noisy mean"


@pytest.mark.parametrize(
    ("command", "text", "problem"),
    [
        ("estimate-z", HEADING + "m,1,2.5\n", "row 1 has no kind or no method"),
        ("structured predict", "a,b\n1,0\n", "has no labels that its record names"),
        ("sample", "x,y\n0,-5\n", "has a cell in column y that is no state"),
        ("sample", "x,y\n0,1000000\n", "1,000,001 states of a variable"),
        ("marginals", "variable,state,probability\n0,0,1\n999999,99999,1\n", "lacks most variables"),
        ("map", "variable,state\n0,1\n5,1\n", "lacks states"),
        ("map", "variable,state\n0,-1\n", "in column state that is no count"),
        ("explain", "task,attribute,probability\nt,MAP,1\n", "has other attributes"),
        ("dp-query", "query,value\n" + "".join(f"q{k},1\n" for k in range(21)), "has 21 queries"),
        ("dp-release", "a\n1\n", "run.json: "),
        ("run-program", "a,b\n1,2\n", "no figure suits a table of run-program; give --x and --y"),
    ],
)
def test_tables_that_do_not_fit_are_refused_in_one_line(axes, command, text, problem):
    with pytest.raises(InputError, match=problem) as caught:
        axes(text, {"command": command})
    assert "\n" not in str(caught.value)


def test_a_figure_is_replaced_only_if_plot_drew_it_from_this_table(table):  # noqa: F811
    path = table(HEADING + ROW)
    assert kinds.check_figure(path, None, False) == path.with_suffix(".png")
    path.with_suffix(".pdf").write_bytes(kinds.mark(path).encode())
    assert kinds.check_figure(path, None, False)
    path.with_suffix(".png").write_bytes(b"another")
    with pytest.raises(InputError, match=r"was not drawn by plot from run\.csv"):
        kinds.check_figure(path, None, False)
    assert kinds.check_figure(path, None, True)
