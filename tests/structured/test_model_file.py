"""TOML files of spaces with weights: what they hold, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import MODELS
from thesis_cli.base.errors import InputError, ModelTooLarge
from thesis_cli.structured.catalogue import space
from thesis_cli.structured.model_file import StructuredModel, load, parse, weights_of

ANSWERS = {
    "labels": 3.628144993361164,
    "mails": 9.942982855762589,
    "ranking": 5.505607665337262,
    "ring": 6.167718671224627,
    "taxonomy": 4.785455372496806,
    "tour": -4.497268599117118,
}


@pytest.mark.parametrize("name", ANSWERS)
def test_shipped_models_by_enumeration(name):
    model = load(MODELS / f"{name}.toml")
    scores = np.concatenate([model.space.scores(rows, model.weights) for rows in model.space.blocks()])
    assert np.logaddexp.reduce(scores) == pytest.approx(ANSWERS[name], abs=1e-9)
    assert f"{model.space.size():,} structures" in model.describe()


def test_structures_in_words():
    ranking, taxonomy = load(MODELS / "ranking.toml"), load(MODELS / "taxonomy.toml")
    assert ranking.text(np.array([1, 4, 2, 3, 0])) == "truffle > fudge > praline > toffee > nougat"
    assert ranking.columns()[0] == "fudge"
    assert taxonomy.text(np.array([1, 0, 1, 0, 0, 1, 0, 0])) == "{any, sport, football}"
    assert load(MODELS / "mails.toml").text(np.array([0, 1, 0, 2, 1, 0, 0, 0, 0])) == "{0, 2, 5, 6, 7, 8} {1, 4} {3}"
    ring = load(MODELS / "ring.toml")
    assert ring.text(np.array([0, 2, 5, -1, -1, -1, -1])) == "0 - 2 - 5"
    assert ring.columns() == [f"at_{k}" for k in range(7)]


def test_forms_of_weights():
    cycles, cube, places = space("cycles", 3), space("hypercube", 3, "pairs"), space("permutations", 2, "positions")
    for rows in ([[1, 2, 3]], [[1], [2], [3]], [[0, 1, 2], [1, 0, 3], [2, 3, 0]]):
        assert weights_of(rows, cycles).tolist() == [1, 2, 3]
    assert weights_of([[7, 1, 2], [1, 8, 3], [2, 3, 9]], cube).tolist() == [7, 8, 9, 1, 2, 3]
    assert weights_of([[1, 2], [3, 4]], places).tolist() == [1, 2, 3, 4]
    assert weights_of([[]], space("permutations", 1, "orders")).tolist() == []


def test_weights_in_a_csv_file(tmp_path):
    (tmp_path / "w.csv").write_text("a,b,c\n0,1,2\n1,0,3\n2,3,0\n")
    (tmp_path / "m.toml").write_text('space = "cycles"\nnames = ["a", "b", "c"]\nweights = "w.csv"\n')
    assert load(tmp_path / "m.toml").weights.tolist() == [1, 2, 3]


CUBE = 'space = "hypercube"\nelements = 2\n'
TREE = 'space = "subtrees"\nweights = [1, 2, 3]\n'

REFUSED = {
    CUBE: "weights is missing; give weights = ...",
    "space = 3": "weights is missing",
    "space = 3\nweights = [1]": "space is 3; it must be text",
    'space = "cube"\nelements = 2\nweights = [1]': "no space is called 'cube'",
    CUBE + "weights = [1, 2]\ncolour = 1": "unknown key 'colour'",
    CUBE + 'feature = "pairs"\nweights = [1, 2]': "unknown key 'feature'; 'features' is nearest",
    CUBE + 'features = "triples"\nweights = [1, 2]': "has no features 'triples'",
    CUBE + "weights = [1]": "the weights are 1 number; give 2 numbers for the features linear",
    CUBE + "weights = [1, nan]": "weight 2 is nan; it must be finite",
    CUBE + "weights = [1, -inf]": "weight 2 is -inf",
    CUBE + 'weights = [1, "x"]': "weights holds 'x'; every entry must be a number",
    CUBE + "weights = [true, 1]": "weights holds True",
    CUBE + "weights = 3": "weights is 3; it must be a list of numbers",
    CUBE + 'weights = "none.csv"': "none.csv: cannot be read (no such file or directory)",
    CUBE + "weights = [[1, 2], [3]]": "row 2 of the weights has 1 number, row 1 2",
    CUBE + "weights = [[1, 2], [3, 4], [5, 6]]": "the weights are 3 x 2 numbers",
    CUBE + 'names = ["a", "a"]\nweights = [1, 2]': "names has 'a' twice",
    CUBE + 'names = ["a"]\nweights = [1, 2]': "names has 1 and elements 2",
    CUBE + "names = [1, 2]\nweights = [1, 2]": "names is [1, 2]; it must be a list of texts",
    CUBE + "parents = [-1, 0]\nweights = [1, 2]": "hypercube has no parents",
    'space = "hypercube"\nweights = [1, 2]': "elements is missing",
    'space = "hypercube"\nelements = 2.5\nweights = [1, 2]': "elements is 2.5; it must be a whole number",
    'space = "hypercube"\nelements = true\nweights = [1, 2]': "elements is True",
    'space = "hypercube"\nelements = -2\nweights = [1, 2]': "hypercube of -2 elements",
    'space = "cycles"\nelements = 2\nweights = [1]': "must have at least 3",
    'space = "cycles"\nelements = 3\nweights = [[0, 1, 2], [1, 0, 3], [2, 4, 0]]': "row 2, column 3 and 4 across the",
    'space = "cycles"\nelements = 3\nweights = [[5, 1, 2], [1, 0, 3], [2, 3, 0]]': "row 1, column 1 is 5; the diagonal",
    TREE: "elements is missing",
    TREE + "elements = 3": "subtrees needs the parents",
    TREE + "parents = [-1, 2, 1]": "the parents have a cycle",
    TREE + "parents = [-1, 0]": "the weights are 3 numbers; give 2 numbers",
    TREE + "parents = [-1, 0, 7]": "node 2 has the parent 7",
    TREE + "parents = [0, 0, 0]": "node 0 is the root",
    TREE + 'parents = "a"': "parents is 'a'; it must be a list of node numbers",
    TREE + "parents = [-1, 0, 99999999999]": "beyond 2^31",
    "space = ": "not TOML: Invalid value",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refusals(text, tmp_path):
    with pytest.raises(InputError) as caught:
        parse(text, tmp_path)
    assert REFUSED[text] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_refused_files(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not text"):
        load(tmp_path / "binary.toml")
    with pytest.raises(ModelTooLarge, match="at most 100,000"):
        parse('space = "permutations"\nelements = 1000000000\nweights = [1]', tmp_path)
    (tmp_path / "w.csv").write_text("1,2\n3,x\n")
    with pytest.raises(InputError, match=r"w.csv: row 2 has 'x'"):
        parse(CUBE + 'weights = "w.csv"', tmp_path)


def test_refused_objects():
    with pytest.raises(InputError, match="is nan"):
        StructuredModel(space("hypercube", 2), np.array([1, np.nan]))
    for weights in ([1e15, 0], [-1e308, 1e308]):
        with pytest.raises(InputError, match="in absolute value; it must be less than 1e"):
            StructuredModel(space("hypercube", 2), np.array(weights))
    with pytest.raises(InputError, match="names has 2 names; the 3 labels must have one each"):
        StructuredModel(space("hypercube", 3), np.zeros(3), ("a", "b"))
