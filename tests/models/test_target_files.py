"""Tables of a regression: what is read, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from thesis_cli.base.errors import InputError
from thesis_cli.models.targets import load_regression


@settings(max_examples=examples(15))
@given(st.integers(1, 4), st.integers(1, 20), st.booleans(), st.integers(0, 2**32))
def test_the_numbers_of_a_table_are_read(tmp_path_factory, dimension, n, heading, seed):
    values = np.random.default_rng(seed).normal(size=(n, dimension + 1))
    names = [*(f"a{d}" for d in range(dimension)), "z"]
    lines = [",".join(names)] * heading + [",".join(map(repr, row)) for row in values.tolist()]
    path = tmp_path_factory.mktemp("table") / "t.csv"
    path.write_text("\n".join(lines) + "\n\n")
    target = load_regression(path, prior_scale=3)
    np.testing.assert_array_equal(target.x, values[:, :-1])
    np.testing.assert_array_equal(target.y, values[:, -1])
    assert target.names == tuple(names[:-1] if heading else (f"x{d + 1}" for d in range(dimension)))
    assert (target.proposal.scale == 3).all()


def test_the_response_may_be_any_column_called_y(tmp_path):
    (tmp_path / "t.csv").write_text('"y", dose\n1,2\n3,4\n')
    target = load_regression(tmp_path / "t.csv")
    assert target.y.tolist() == [1, 3]
    assert target.names == ("dose",)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "has no rows"),
        ("x,y\n", "has no rows"),
        ("x,y\n1,2\n1,nan\n", "t.csv:3: 'nan' is no finite number"),
        ("x,y\n1,inf\n", "t.csv:2: 'inf'"),
        ("x,y\n1,\n", "t.csv:2: ''"),
        ("1,2\n1,two\n", "t.csv:2: 'two'"),
        ("x,x\n1,2\n", "t.csv:1: two columns are named 'x'"),
        ("x,y\n1,2\n1,2,3\n", "t.csv:3: has 3 values"),
        ("1,2,3,4,5,6\n", "has 6 columns"),
        ("y\n1\n", "has 1 column;"),
    ],
)
def test_the_error_for_a_bad_table_is_one_line(tmp_path, text, complaint):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=complaint) as caught:
        load_regression(tmp_path / "t.csv")
    assert "\n" not in str(caught.value)


def test_files_that_are_no_tables(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        load_regression(tmp_path / "none.csv")
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not text"):
        load_regression(tmp_path / "b.csv")


def test_features_that_overflow_are_refused(tmp_path):
    (tmp_path / "d.csv").write_text("x,y\n1.7e308,1\n")
    with pytest.raises(InputError, match="x is up to inf"):
        load_regression(tmp_path / "d.csv", prior_scale=10.0)
