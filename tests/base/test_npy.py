"""NPY and NPZ files, whole and damaged."""

import contextlib
import io
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.fuzzing import damaged
from thesis_cli.base import npy
from thesis_cli.base.errors import InputError
from thesis_cli.base.files import MAGIC

KINDS = ["?", "i1", "u2", "<i4", ">i8", "u8", "f2", "<f4", ">f8"]


def saved(*values, save=np.save, **named):
    stream = io.BytesIO()
    save(stream, *values, **named)
    return stream.getvalue()


@given(st.sampled_from(KINDS).flatmap(lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, min_side=0))))
def test_what_numpy_saves_is_read(values):
    for array in values, np.asfortranarray(values):
        found = npy.array_of(saved(array), "a")
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        assert found.flags.writeable
        np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3), (0, 3)])
def test_a_file_is_mapped(tmp_path, shape, order):
    values = np.asarray(np.random.default_rng(0).random(shape), order=order)
    path = tmp_path / "a.npy"
    path.write_bytes(saved(values))
    found = npy.map_array(path)
    assert isinstance(found, np.memmap) == bool(values.size)
    np.testing.assert_array_equal(found, values)


def test_arrays_of_an_archive_are_found_by_name():
    for save in np.savez, np.savez_compressed:
        file = io.BytesIO(saved(save=save, a=np.arange(3), b=np.ones((2, 2))))
        assert npy.array_names(file, "f") == ["a", "b"]
        np.testing.assert_array_equal(npy.arrays_of(file, ["b"], "f")["b"], np.ones((2, 2)))
        with pytest.raises(InputError, match="f: not a whole NPZ file"):
            npy.arrays_of(file, ["c"], "f")


def headed(text, data=b"\0" * 24):
    return MAGIC + b"\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + data


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }",
        "{'shape':(3L,),'fortran_order':False,'descr':\"<f8\"}   \n",
        "{'descr': '|u1', 'fortran_order': True, 'shape': (1, 3)}",
    ],
)
def test_headers_that_others_write(header):
    assert npy.array_of(headed(header), "a").size == 3


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "is no NPY file"),
        (saved(save=np.savez, a=np.ones(1)), "holds an archive"),
        (MAGIC, "the header is damaged"),
        (MAGIC + b"\x09\x00\x01\x00{", "the header is damaged"),
        (headed("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), "), "the header is damaged"),
        (headed("{'descr': '<f8', 'fortran_order': False, 'shape': (3,,), }"), "the header is damaged"),
        (headed("{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }"), "the header is damaged"),
        (headed("{'descr': '<f8', 'descr': '<f8', 'shape': (3,), }"), "the header is damaged"),
        (headed("{'descr': '<f8', 'fortran_order': exit(), 'shape': (3,), }"), "the header is damaged"),
        (headed(f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({'1,' * 65}), }}"), "the header is damaged"),
        (headed(f"{{'descr': '<f8', 'fortran_order': False, 'shape': (0, {10**30}), }}"), "the header is damaged"),
        (headed("{'descr': '<f8', 'fortran_order': False, 'shape': (4,), }"), "promises 32 bytes, it has 24"),
        (headed(f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({10**30},), }}"), "promises 8,000,"),
        (headed("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }"), "holds Python objects"),
        (headed("{'descr': '<c8', 'fortran_order': False, 'shape': (3,), }"), "not real numbers"),
        (headed("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,), }"), "not real numbers"),
    ],
)
def test_errors_name_the_file_and_what_is_wrong(tmp_path, data, problem):
    (tmp_path / "a.npy").write_bytes(data)
    for read, source in (lambda: npy.array_of(data, "a"), "a"), (lambda: npy.map_array(tmp_path / "a.npy"), tmp_path):
        with pytest.raises(InputError) as caught:
            read()
        assert str(caught.value).startswith(str(source))
        assert problem in caught.value.problem


def test_an_archive_that_lies_about_its_size_fills_no_memory(monkeypatch):
    packed = bytearray(saved(save=np.savez_compressed, a=np.zeros(10**6)))
    real = (8 * 10**6 + 128).to_bytes(4, "little")
    assert packed.count(real) >= 1
    read = []
    original = zipfile.ZipExtFile.read
    monkeypatch.setattr(zipfile.ZipExtFile, "read", lambda *a: read.append(original(*a)) or read[-1])
    with pytest.raises(InputError, match="not a whole"):
        npy.arrays_of(io.BytesIO(packed.replace(real, (200).to_bytes(4, "little"))), ["a"], "f")
    assert sum(map(len, read)) <= 200
    with pytest.raises(InputError, match="unpacks to 8,000,128 bytes"):
        npy.arrays_of(io.BytesIO(packed), ["a"], "f", most=10**6)


@pytest.mark.parametrize("save", [np.save, np.savez, np.savez_compressed])
def test_no_damage_ends_in_another_error(save):
    data = saved(np.linspace(0, 1, 9), save=save)
    for seed in range(100):
        file = damaged(data, np.random.default_rng(seed), text=False)
        with contextlib.suppress(InputError):  # some damage does not count, such as that of a date
            if save is np.save:
                npy.array_of(file, "f")
            else:
                npy.arrays_of(io.BytesIO(file), npy.array_names(io.BytesIO(file), "f")[:1], "f")
