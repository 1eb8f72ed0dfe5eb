"""Tables and trees from CSV files, predictors and checkpoints: whole, damaged, and of others."""

import numpy as np
import pandas as pd
import pytest

from tests.conftest import ROOT
from thesis_cli.base.errors import InputError
from thesis_cli.structured.checkpoint import Checkpoint, digest
from thesis_cli.structured.learn import Problem
from thesis_cli.structured.learning_data import labelled, read_table, read_tree, split
from thesis_cli.structured.predictor import Predictor, design, standardisation
from thesis_cli.structured.tasks import Task
from thesis_cli.studies.structured.datasets import example_files

RANKING = Task("ranking", ("a", "b"), "positions")


def test_a_table_from_a_file_or_a_frame(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x, y,a,b\n1,2.5,1,2\n\n-3e2,4,2,1\n")
    table = read_table(path)
    assert table.names == ("x", "y", "a", "b")
    assert table.values.tolist() == [[1, 2.5, 1, 2], [-300, 4, 2, 1]]
    assert table.lines == (2, 4)
    assert split(table, 2) == (("x", "y"), ("a", "b"))
    assert labelled(table, RANKING).tolist() == [[0, 1], [1, 0]]
    frame = read_table(pd.DataFrame(table.values, columns=list(table.names)))
    np.testing.assert_array_equal(frame.columns(("b", "x")), table.columns(("b", "x")))
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
        ("x,y\n3,4\n\n3,nan\n", "t.csv:4: 'y' is 'nan'; it must be a number, at most 1e"),
        ("x,y\n3,inf\n", "t.csv:2: 'y' is 'inf'"),
        ("x,y\n-1e101,1\n", "t.csv:2: 'x' is '-1e101'"),
        ("x,y\n3,\n", "t.csv:2: 'y' is ''"),
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
        (pd.DataFrame({"x": ["one"]}), "cells that are no numbers"),
        (pd.DataFrame({"x": [1.0, np.nan]}), "'x' of row 2 is nan"),
    ):
        with pytest.raises(InputError, match=message):
            read_table(source)
    (tmp_path / "binary.csv").write_bytes(b"x,y\n\xff\xfe\n")
    with pytest.raises(InputError, match="it is no CSV text"):
        read_table(tmp_path / "binary.csv")


def test_bad_rows_are_named_by_their_lines(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,a,b\n1,1,2\n\n2,2,2\n")
    with pytest.raises(InputError, match=r"t.csv:4: the labels 2, 2 are no permutation"):
        labelled(read_table(path), RANKING)
    with pytest.raises(InputError, match=r"<DataFrame>: row 1: the labels 1, 3"):
        labelled(read_table(pd.DataFrame({"a": [1], "b": [3]})), RANKING)
    with pytest.raises(InputError, match="no column 'b'; it must have 'a', 'b'"):
        labelled(read_table(pd.DataFrame({"a": [1]})), RANKING)
    for labels in (0, 3, 7):
        with pytest.raises(InputError, match="there must be inputs and labels"):
            split(read_table(path), labels)


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


def predictor(**more):
    rng = np.random.default_rng(0)
    parts = {"parameters": rng.normal(size=(3, 4)), "shift": rng.normal(size=2), "scale": np.array([1.0, 2.0])}
    return Predictor(RANKING, ("x", "y"), **{**parts, **more}, about={"made": "here"})


def test_a_predictor_comes_back_from_its_file(tmp_path):
    one = predictor()
    one.save(tmp_path / "p.safetensors")
    again = Predictor.load(tmp_path / "p.safetensors")
    assert (again.task, again.inputs, again.about) == (one.task, one.inputs, one.about)
    assert again.to_bytes() == one.to_bytes()
    values = np.array([[1.0, 2.0]])
    expected = np.append((values - one.shift) / one.scale, 1.0) @ one.parameters
    np.testing.assert_allclose(again.weights(values)[0], expected)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"parameters": np.ones((2, 4))}, r"its parameters have shape \(2, 4\)"),
        ({"parameters": np.full((3, 4), np.nan)}, "not finite"),
        ({"scale": np.zeros(2)}, "its scales are not positive"),
    ],
)
def test_parts_that_do_not_fit_are_refused(more, message):
    with pytest.raises(InputError, match=message):
        predictor(**more)


def test_damaged_predictors_are_refused(tmp_path):
    path, whole = tmp_path / "p.safetensors", predictor().to_bytes()
    for data, message in (
        (b"", "it holds no structured predictor"),
        (whole[:-1], "it holds no structured predictor"),
        (whole.replace(b"predictor 1", b"predictor 9"), "its format is"),
        (whole.replace(b'"ranking', b'"ranting').replace(rb"\"ranking", rb"\"ranting"), "its task is 'ranting'"),
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


@pytest.mark.parametrize("name", ["iris-ranking", "tumours-pairs"])
def test_example_predictors_are_best_for_their_data(name):
    found = Predictor.load(ROOT / "data" / "labels" / f"{name}.safetensors")
    table = read_table(ROOT / "data" / "labels" / f"{name.removesuffix('-pairs')}-train.csv")
    inputs = design(table.columns(found.inputs), found.shift, found.scale)
    problem = Problem(found.task.space, inputs, labelled(table, found.task), found.about["regularisation"])
    assert problem.excess(problem.gradient(found.parameters)) < 1e-8
