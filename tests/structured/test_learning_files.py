"""Tables and trees from CSV files, encodings, predictors and checkpoints: whole, damaged, and of others."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from tests.conftest import ROOT
from thesis_cli.base.errors import InputError
from thesis_cli.structured.checkpoint import Checkpoint, digest
from thesis_cli.structured.encoding import Encoding, Input, design, learnt_encoding, standardisation, with_trees
from thesis_cli.structured.learn import fit
from thesis_cli.structured.learning_data import items_of, observed, read_table, read_tree, split
from thesis_cli.structured.predictor import Predictor
from thesis_cli.structured.tasks import Task
from thesis_cli.structured.training import prepared
from thesis_cli.studies.structured.datasets import example_files

RANKING = Task("ranking", ("a", "b"), "positions")


def test_a_table_from_a_file_or_a_frame(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x, y,a,b\n1,2.5,1,2\n\n-3e2,4,2,1\n")
    table = read_table(path)
    assert table.names == ("x", "y", "a", "b")
    values = table.numbers(table.names)
    assert values.tolist() == [[1, 2.5, 1, 2], [-300, 4, 2, 1]]
    assert table.lines == (2, 4)
    assert split(table, 2) == (("x", "y"), ("a", "b"))
    assert observed(table, RANKING).structures.tolist() == [[0, 1], [1, 0]]
    frame = read_table(pd.DataFrame(values, columns=list(table.names)))
    np.testing.assert_array_equal(frame.numbers(("b", "x")), table.numbers(("b", "x")))
    assert read_table(table) is table


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t.csv: it is empty"),
        ("x,y\n", "t.csv: it has no rows"),
        ("1,2\n3,4\n", "t.csv:1: its first line has numbers"),
        ("x,x\n3,4\n", "two columns are called 'x'"),
        ("x,\n3,4\n", "a column has no name"),
        ("x,y\n3\n", "t.csv:2: it has 1 cells; the heading has 2"),
        ("x,y\n3,4\n\n3,four\n", "t.csv:4: 'y' is 'four'; it must be a number, at most 1e"),
        ("x,y\n3,inf\n", "t.csv:2: 'y' is 'inf'"),
        ("x,y\n-1e101,1\n", "t.csv:2: 'x' is '-1e101'"),
        ("x,y\n3,1_0\n", "t.csv:2: 'y' is '1_0'"),
        ('x,y\n"3,4\n', "it is no CSV text"),
    ],
)
def test_damaged_tables_are_refused(tmp_path, text, message):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_table(path)


def test_other_objects_and_files_are_refused(tmp_path):
    for source, message in (
        (tmp_path / "none.csv", "none.csv: it cannot be read"),
        (tmp_path, "cannot be read"),
        (np.ones((2, 2)), "of type ndarray"),
        (pd.DataFrame({"x": [1.0, np.inf]}), "'x' of row 2 is inf"),
    ):
        with pytest.raises(InputError, match=message):
            read_table(source)
    (tmp_path / "binary.csv").write_bytes(b"x,y\n\xff\xfe\n")
    with pytest.raises(InputError, match="it is no CSV text"):
        read_table(tmp_path / "binary.csv")


def test_bad_rows_are_named_by_their_lines(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,a,b\n1,1,2\n\n2,2,0\n")
    with pytest.raises(InputError, match=r"t.csv:4: the labels 2, 0 are no ranks"):
        observed(read_table(path), RANKING)
    with pytest.raises(InputError, match=r"<DataFrame>: row 1: the labels 1, 3"):
        observed(read_table(pd.DataFrame({"a": [1], "b": [3]})), RANKING)
    with pytest.raises(InputError, match="row 2: 'b' is 'second'; it must be a number"):
        observed(read_table(pd.DataFrame({"a": [1, 2], "b": ["", "second"]})), RANKING)
    with pytest.raises(InputError, match="no column 'b'; it must have 'a', 'b'"):
        observed(read_table(pd.DataFrame({"a": [1]})), RANKING)
    with pytest.raises(InputError, match=r"row 2: 'a' is missing"):
        observed(read_table(pd.DataFrame({"a": [1, None], "b": [0, 0]})), Task("multilabel", ("a", "b"), "linear"))
    for labels in (0, 4, 7):
        with pytest.raises(InputError, match="there must be as many"):
            split(read_table(path), labels)


def test_columns_are_numbers_or_text(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,colour,code\n1,red,A1\nNA,,2\n?,blue,B7\n")
    x, colour, code = read_table(path).cells
    np.testing.assert_array_equal(x, [1, np.nan, np.nan])
    assert (colour.tolist(), code.tolist()) == (["red", "", "blue"], ["A1", "2", "B7"])
    frame = pd.DataFrame(
        {"x": [1, None], "colour": ["red", None], "level": pd.Categorical([3, 4]), "on": [True, False]}
    )
    x, colour, level, on = read_table(frame).cells
    np.testing.assert_array_equal(x, [1, np.nan])
    assert (colour.tolist(), level.tolist(), on.tolist()) == (["red", ""], ["3", "4"], [1, 0])


def test_preferences_are_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('x,p\n1,"a > b = c"\n2,"b>a; c > a"\n3,\n4,c=a\n')
    table = read_table(path)
    assert items_of(table, "p") == ("a", "b", "c")
    found = observed(table, Task("ranking", ("a", "b", "c"), "orders", preferences="p"))
    assert found.known.levels.tolist() == [[0, 1, 1], [1, 0, -1], [1, -1, 0]]
    assert found.rows.tolist() == [0, 1, 1]
    assert found.structures.tolist() == [[0, 1, 2], [1, 0, 2], [1, 2, 0]]
    last = observed(table, Task("ranking", ("a", "b", "c"), "orders", preferences="p", unranked="last"))
    assert last.known.levels.tolist() == [[0, 1, 1], [1, 0, 2], [1, 2, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("a > a", "t.csv:3: 'a > a' names an item twice"),
        ("a >", "t.csv:3: 'a >' is no preference; give one such as a > b = c"),
        ("a", "'a' is no preference"),
        ("a > d", "t.csv:3: 'd' is no item; must be one of: a, b"),
    ],
)
def test_bad_preferences_are_refused(tmp_path, cell, message):
    path = tmp_path / "t.csv"
    path.write_text(f"x,p\n1,b > a\n2,{cell}\n")
    with pytest.raises(InputError, match=message):
        observed(read_table(path), Task("ranking", ("a", "b"), "orders", preferences="p"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "its first line is not node,parent"),
        ("node,parent\n", "it has no nodes"),
        ("node,parent\nr\n", "p.csv:2: 'r' is no node with its parent"),
        ("node,parent\n,r\n", "p.csv:2"),
        ("node,parent\nr,\na,b\nb,a\n", "p.csv: node 'a' is on or below a cycle"),
    ],
)
def test_damaged_trees_are_refused(tmp_path, text, message):
    path = tmp_path / "p.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_tree(path)


COLUMNS = {"x": np.array([1.0, 3, np.nan, 2]), "c": np.array(["red", "", "blue", "red"], object)}


def test_inputs_become_standardised_numbers():
    encoding, numbers = learnt_encoding(COLUMNS, 4, (), True)
    assert encoding.columns == ["x", "x missing", "c=blue", "c=red", "c missing"]
    np.testing.assert_allclose(numbers[:, 0], np.array([-1, 1, 0, 0]) * 1.5**0.5)
    np.testing.assert_allclose(numbers[:, 2], np.array([-1, 0, 2, -1]) / 2**0.5)  # the missing one is a mean
    np.testing.assert_allclose(numbers.mean(axis=0), [0, 0, 0, 0, 0, 1], atol=1e-12)
    np.testing.assert_allclose(numbers[:, 1], np.array([-1, -1, 3, -1]) / 3**0.5)
    unseen = encoding([np.array(["", ""], object), np.array(["green", "red"], object)], 2)
    assert unseen[0, :4].tolist() == [0, numbers[2, 1], 0, 0]
    with pytest.raises(InputError, match="'x' is 'one'; it was a number in training"):
        encoding([np.array(["one"], object), COLUMNS["c"][:1]], 1)
    with pytest.raises(InputError, match="'c' has 1,001 categories"):
        learnt_encoding({"c": np.arange(1001.0)}, 1001, ("c",), True)


def test_numbers_that_stand_for_categories():
    encoding, numbers = learnt_encoding({"code": np.array([2.0, 10, 2, np.nan])}, 4, ("code",), False)
    assert encoding.columns == ["code=10", "code=2", "code missing"]
    assert numbers.tolist() == [[0, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1]]
    assert encoding([np.array(["10"], object)], 1).tolist() == [[1, 0, 0, 1]]


def predictor(trees=False, **more):
    rng = np.random.default_rng(0)
    encoding, numbers = learnt_encoding(COLUMNS, 4, (), True)
    if trees:
        encoding, numbers = with_trees(encoding, numbers, rng.normal(size=(4, 2)), np.arange(4))
    parts = {"encoding": encoding, "parameters": rng.normal(size=(numbers.shape[1], 4))}
    return Predictor(RANKING, **{**parts, **more}, about={"made": "here"})


@pytest.mark.parametrize("trees", [False, True])
def test_a_predictor_comes_back_from_its_file(tmp_path, trees):
    one = predictor(trees)
    one.save(tmp_path / "p.safetensors")
    again = Predictor.load(tmp_path / "p.safetensors")
    assert (again.task, again.inputs, again.about) == (one.task, one.inputs, one.about)
    assert again.encoding.inputs == one.encoding.inputs
    assert again.to_bytes() == one.to_bytes()
    table = read_table(pd.DataFrame(COLUMNS))
    expected = one.encoding(list(COLUMNS.values()), 4) @ one.parameters
    np.testing.assert_array_equal(again.weights(table), expected)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"parameters": np.ones((2, 4))}, r"its parameters have shape \(2, 4\)"),
        ({"parameters": np.full((6, 4), np.nan)}, "not finite"),
        ({"encoding": Encoding((Input("x"),), np.zeros(1), np.zeros(1))}, "its parameters have shape"),
        (
            {"encoding": Encoding((Input("x"),), np.zeros(1), np.zeros(1)), "parameters": np.ones((2, 4))},
            "its scales are not positive",
        ),
    ],
)
def test_parts_that_do_not_fit_are_refused(more, message):
    with pytest.raises(InputError, match=message):
        predictor(**more)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("feature", lambda a: np.where(a == 0, 99, a)),
        ("left", lambda a: np.zeros_like(a)),
        ("roots", lambda a: a + 1),
        ("values", lambda a: a[:-1]),
        ("values", lambda a: np.full_like(a, np.nan)),
        ("threshold", lambda a: a[:-1]),
    ],
)
def test_damaged_trees_of_a_predictor_are_refused(tmp_path, name, change):
    rng = np.random.default_rng(1)
    encoding, numbers = learnt_encoding({"x": rng.normal(size=30)}, 30, (), True)
    encoding, numbers = with_trees(encoding, numbers, rng.normal(size=(30, 2)), np.arange(30))
    forest = dataclasses.replace(encoding.forest, **{name: change(getattr(encoding.forest, name))})
    one = Predictor(RANKING, dataclasses.replace(encoding, forest=forest), np.ones((numbers.shape[1], 4)))
    (tmp_path / "p.safetensors").write_bytes(one.to_bytes())
    with pytest.raises(InputError, match="it holds no structured predictor"):
        Predictor.load(tmp_path / "p.safetensors")


def test_damaged_predictors_are_refused(tmp_path):
    path, whole = tmp_path / "p.safetensors", predictor().to_bytes()
    for data, message in (
        (b"", "it holds no structured predictor"),
        (whole[:-1], "it holds no structured predictor"),
        (whole.replace(b"predictor 2", b"predictor 9"), "its format is"),
        (whole.replace(rb"\"ranking", rb"\"ranting"), "its task is 'ranting'"),
        (whole.replace(rb"\"anywhere", rb"\"anyplace"), "it holds no structured predictor"),
    ):
        path.write_bytes(data)
        with pytest.raises(InputError, match=message):
            Predictor.load(path)
    with pytest.raises(InputError, match="cannot be read"):
        Predictor.load(tmp_path / "none")


def test_constant_inputs_have_scale_one():
    values = np.array([[1.0, 3.0, 0.1], [1.0, 5.0, 0.1]])
    shift, scale = standardisation(values)
    assert (shift.tolist(), scale.tolist()) == ([1.0, 4.0, 0.1], [1.0, 1.0, 1.0])
    assert design(values, shift, scale).tolist() == [[0, -1, 0, 1], [0, 1, 0, 1]]
    assert [part.tolist() for part in standardisation(np.array([[np.nan], [2.0]]))] == [[2.0], [1.0]]


def test_a_checkpoint_is_of_one_training(tmp_path):
    path = tmp_path / "c.checkpoint"
    made_from = {"data": digest(np.arange(3.0))}
    first = Checkpoint(path, made_from, every=0.0)
    assert first.arrays == {}
    first.keep(parameters=np.ones((2, 2)), done=3)
    again = Checkpoint(path, made_from)
    assert again.arrays["done"] == 3
    assert again.arrays["parameters"].tolist() == [[1, 1], [1, 1]]
    with pytest.raises(InputError, match="of other settings or data"):
        Checkpoint(path, {"data": digest(np.arange(4.0))})
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="not a whole checkpoint"):
        Checkpoint(path, made_from)
    again.remove()
    assert not path.exists()
    Checkpoint(path, made_from).keep(done=1)  # not yet time
    assert not path.exists()


def test_example_files_are_those_of_the_data_sets():
    for name, text in example_files().items():
        assert (ROOT / "data" / "labels" / name).read_text() == text


@pytest.mark.parametrize(("name", "interactions"), [("iris-ranking", "trees"), ("tumours-pairs", "none")])
def test_example_predictors_are_best_for_their_data(name, interactions):
    found = Predictor.load(ROOT / "data" / "labels" / f"{name}.safetensors")
    table = read_table(ROOT / "data" / "labels" / f"{name.removesuffix('-pairs')}-train.csv")
    problem = prepared(table, found.task, found.inputs, interactions=interactions).problem
    problem = dataclasses.replace(problem, regularisation=found.about["regularisation"])
    best = fit(problem, start=found.parameters, tolerance=1e-5, near=True).objective
    assert best <= problem.objective(found.parameters) < best + 1e-3
