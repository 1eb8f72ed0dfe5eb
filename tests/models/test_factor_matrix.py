import io
import math
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from thesis_cli.base.errors import InputError
from thesis_cli.models import factor_matrix as module
from thesis_cli.models.factor_matrix import factor_matrix, load_factor_matrix


def save(path, values, **options):
    np.save(path, values, **options)
    return path


@given(
    st.sampled_from(["f4", "f8", ">f8", "i2", "u1"]).flatmap(
        lambda kind: arrays.arrays(
            kind,
            st.tuples(st.integers(1, 6), st.integers(1, 40)),
            elements={"min_value": 0, "max_value": 100, **({"allow_nan": False} if "f" in kind else {})},
        )
    ),
    st.integers(1, 50),
)
def test_totals_and_widths_do_not_depend_on_blocks(values, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", block)
        found = factor_matrix(values)
    assert (found.states, found.factors) == values.shape
    rows = values.astype(np.float64)
    np.testing.assert_allclose(found.totals, [math.fsum(row) for row in rows], rtol=1e-14, atol=1e-300)
    np.testing.assert_array_equal(found.widths, rows.max(axis=1) - rows.min(axis=1))


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_file_has_the_matrix_that_was_saved(tmp_path, order):
    values = np.random.default_rng(0).normal(size=(3, 50))
    found = load_factor_matrix(save(tmp_path / "terms.npy", np.asarray(values, order=order)))
    assert isinstance(found.values, np.memmap)
    np.testing.assert_array_equal(found.values, values)
    rounding = 50 * np.finfo(float).eps * np.abs(values).sum(axis=1).max()
    np.testing.assert_allclose(found.totals, values.sum(axis=1), rtol=0, atol=rounding)


def test_a_large_file_is_not_loaded(tmp_path):
    path = tmp_path / "terms.npy"
    shape = (10, 10**6)
    save(path, np.broadcast_to(np.float64(0.5), shape))
    tracemalloc.start()
    found = load_factor_matrix(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * shape[0] * shape[1] / 3
    np.testing.assert_array_equal(found.totals, np.full(10, 5e5))


@pytest.mark.parametrize("shape", [(5,), (2, 3, 4), (), (0, 3), (3, 0)])
def test_wrong_shapes_are_refused(tmp_path, shape):
    with pytest.raises(InputError, match=r"have shape .*a row for each state"):
        load_factor_matrix(save(tmp_path / "terms.npy", np.zeros(shape)))


@pytest.mark.parametrize("kind", ["c16", "?", "U3", "V8", "M8[s]"])
def test_wrong_types_are_refused(tmp_path, kind):
    with pytest.raises(InputError, match="not real numbers"):
        load_factor_matrix(save(tmp_path / "terms.npy", np.zeros((2, 3), dtype=kind)))


def test_python_objects_are_refused_without_unpickling(tmp_path):
    path = save(tmp_path / "terms.npy", np.array([[1, None]], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="holds Python objects, not real numbers"):
        load_factor_matrix(path)


@pytest.mark.parametrize(
    ("value", "remedy"), [(math.nan, "must be finite"), (math.inf, "must be finite"), (-math.inf, "leave the row out")]
)
def test_errors_name_the_entry_that_is_not_finite(tmp_path, monkeypatch, value, remedy):
    monkeypatch.setattr(module, "BLOCK", 40)
    values = np.zeros((4, 100))
    values[2, 77] = value
    path = save(tmp_path / "terms.npy", values)
    with pytest.raises(InputError, match=f"terms.npy: the log-factor of state 2, factor 77, is {value:g}; .*{remedy}"):
        load_factor_matrix(path)


def test_sums_that_overflow_are_refused():
    with pytest.raises(InputError, match="overflows"):
        factor_matrix(np.full((2, 3), 1e308))
    with pytest.raises(InputError, match="overflows"):
        factor_matrix(np.array([[-1e308, 1e308]]))


def _archive():
    stream = io.BytesIO()
    np.savez(stream, a=np.zeros((2, 2)))
    return stream.getvalue()


def _truncated():
    stream = io.BytesIO()
    np.save(stream, np.zeros((10, 10)))
    return stream.getvalue()[:-1]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "is no NPY file"),
        (b"1,2\n3,4\n", "is no NPY file"),
        (pickle.dumps([1.0]), "is no NPY file"),
        (_archive(), "holds an archive of arrays"),
        (_truncated(), "not a whole NPY file (its header promises 800 bytes, it has 799)"),
        (_truncated()[:50], "not a whole NPY file (the header is damaged)"),
    ],
    ids=["empty", "csv", "pickle", "npz", "short", "header"],
)
def test_other_files_are_refused_in_one_line(tmp_path, data, problem):
    path = tmp_path / "terms.npy"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        load_factor_matrix(path)
    assert str(caught.value).startswith(f"{path}: {problem}; ")
    assert "\n" not in str(caught.value)
    assert caught.value.remedy


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"cannot be read .no such file"):
        load_factor_matrix(tmp_path / "none.npy")
    with pytest.raises(InputError, match="cannot be read"):
        load_factor_matrix(tmp_path)
