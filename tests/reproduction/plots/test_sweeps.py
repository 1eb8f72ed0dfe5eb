import itertools

import numpy as np
import pytest

from tests.reproduction.plots.test_run import HEADING, table  # noqa: F401
from thesis_cli.base.errors import InputError
from thesis_cli.base.figures import style
from thesis_cli.reproduction.plots import sweeps
from thesis_cli.reproduction.plots.run import read_run
from thesis_cli.reproduction.plots.sweeps import ChosenColumns, sweep

SWEEP = {"command": "spin-glass", "task_file": "tasks.json"}


def row(kind, coupling, seed, method):
    value = 10 * seed + {"exact": 0, "U(0)": coupling + seed, "TRW": 5.0}[method]
    result = "exact" if method == "exact" else "upper bound"
    return f"{kind},{coupling},{seed},{value},0.5,{result},ln Z,{method},s\n"


HEAD = "kind,coupling,seed,value,standard_error,result_kind,target,method,source\n"
ROWS = list(itertools.product(("attractive", "mixed"), (1, 2, 4), (0, 1), ("exact", "U(0)", "TRW")))
TABLE = HEAD + "".join(row(*cells) for cells in ROWS)


@pytest.fixture
def drawn(table):  # noqa: F811
    """The panels of a table's figure, by their titles."""

    def draw(text=TABLE, record=SWEEP, **chosen):
        with style():
            figure = sweep(read_run(table(text, record)), ChosenColumns(**chosen))
        return {axes.get_title(): axes for axes in figure.axes}

    return draw


def lines(axes):
    """Means of each line by its name, and its error bars."""
    return {
        bars.get_label(): (
            bars.lines[0].get_xydata().tolist(),
            [np.ptp(s[:, 1]) / 2 for s in bars.lines[2][0].get_segments()],
        )
        for bars in axes.containers
    }


def test_a_sweep_is_drawn_by_parameter_and_method_less_the_exact_answer(drawn):
    panels = drawn()
    assert list(panels) == ["kind = attractive", "kind = mixed"]
    found = lines(panels["kind = mixed"])
    assert list(found) == ["U(0)", "TRW"]
    means, errors = found["U(0)"]
    assert means == [[1.0, 1.5], [2.0, 2.5], [4.0, 4.5]]  # of two seeds, which differ by 1
    np.testing.assert_allclose(errors, 1.0)  # two standard errors of the mean
    assert panels["kind = mixed"].get_xlabel() == "coupling"
    assert panels["kind = attractive"].get_ylabel() == "value - exact, nats"


def test_columns_of_the_user_and_panels_by_what_remains(drawn):
    panels = drawn(x="kind", y="value", hue="coupling")
    assert list(panels) == ["method = exact", "method = U(0)", "method = TRW"]
    assert list(lines(panels["method = U(0)"])) == ["1", "2", "4"]
    (means, _) = lines(panels["method = TRW"])["4"]
    assert [round(y, 9) for _, y in means] == [10.0, 10.0]
    assert [tick.get_text() for tick in panels["method = TRW"].get_xticklabels()] == ["attractive", "mixed"]


def test_single_rows_have_the_errors_of_their_estimates(drawn):
    one = HEAD + "".join(row(*cells) for cells in ROWS if cells[2] == 0)
    _, errors = lines(drawn(one, y="value", hue="method", x="coupling")["kind = mixed"])["U(0)"]
    np.testing.assert_allclose(errors, 1.0)


def test_logarithmic_axes_leave_out_what_they_have_no_place_for(drawn, caplog):
    text = "a,y\n1,0\n2,10\n4,100\n"
    (axes,) = drawn(text, {}, x="a", y="y", log="xy").values()
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.containers[0].lines[0].get_xydata().tolist() == [[2, 10], [4, 100]]
    assert "1 row without a positive y are not drawn" in caplog.text
    with pytest.raises(InputError, match="no number of column y is positive"):
        drawn("a,y\n1,0\n2,-1\n", {}, x="a", y="y", log="y")
    with pytest.raises(InputError, match="a is no column of numbers"):
        drawn("a,y\nu,1\nv,1\n", {}, x="a", y="y", log="x")


def test_powers_of_ten_of_their_own_become_logarithms(drawn):
    rows = "".join(f"{s},{s},1,0,1,1,Z,unbiased,1,1,t,s,{300 * s}\n" for s in (1, 2))
    (axes,) = drawn(
        "samples," + HEADING.removeprefix("model,") + rows, {"command": "estimate-z", "task_file": "t"}, x="samples"
    ).values()
    assert axes.get_ylabel() == "log10 value"
    assert axes.containers[0].lines[0].get_ydata().tolist() == [300.0, 600.0]


@pytest.mark.parametrize(
    ("chosen", "problem"),
    [
        ({"x": "copling"}, "--x 'copling' is no column; 'coupling' is nearest"),
        ({"hue": "metod"}, "--hue 'metod' is no column; 'method' is nearest"),
        ({"y": "valeu"}, "--y 'valeu' is no column; 'value' is nearest"),
        ({"y": "method"}, "--y method is no column of numbers"),
    ],
)
def test_unknown_columns_name_the_nearest(drawn, chosen, problem):
    with pytest.raises(InputError, match=problem):
        drawn(**chosen)


def test_an_option_may_have_the_name_that_the_shell_has(drawn):
    (axes,) = drawn("max_length,y\n1,2\n3,4\n", {}, x="max-length", y="y").values()
    assert axes.get_xlabel() == "max_length"


def test_too_many_panels_lines_and_points_are_refused(drawn, monkeypatch):
    for name, problem in (
        ("MOST_PANELS", "2 panels by kind"),
        ("MOST_LINES", "2 lines by method"),
        ("MOST_POINTS", "12 points"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(sweeps, name, 1)
            with pytest.raises(InputError, match=f"{problem}.*up to 1 are drawn"):
                drawn()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("coupling,seed,value\n1,0,2\n", "nothing varies but its results"),
        ("coupling,seed,word\n1,0,a\n2,0,b\n", "has no column of numbers"),
    ],
)
def test_a_sweep_without_anything_to_draw(drawn, text, problem):
    with pytest.raises(InputError, match=problem):
        drawn(text)
