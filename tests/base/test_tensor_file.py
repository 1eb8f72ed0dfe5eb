"""Files of arrays with a JSON object: back from the disk, and refused if they are anything else."""

import json

import numpy as np
import pytest
from safetensors.numpy import save

from thesis_cli.base import tensor_file
from thesis_cli.base.errors import InputError
from thesis_cli.base.tensor_file import Form

FORM = Form("key", "form 1", ("a", "b"), "pair of arrays", "give another")
ARRAYS = {"a": np.arange(6.0).reshape(2, 3).T, "b": np.array(2.5)}


def test_arrays_and_what_is_said_of_them_come_back(tmp_path):
    path = tmp_path / "f.safetensors"
    path.write_bytes(FORM.to_bytes(ARRAYS, {"made": [1, "here"]}))
    arrays, about = FORM.read(path)
    assert about == {"made": [1, "here"]}
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
    assert FORM.to_bytes(arrays, about) == path.read_bytes()


def test_other_files_are_refused(tmp_path, monkeypatch):
    path, whole = tmp_path / "f.safetensors", FORM.to_bytes(ARRAYS, {})
    single = {name: np.ones(2, np.float32) for name in FORM.arrays}
    for data, message in (
        (b"", "it holds no pair of arrays; give another"),
        (whole[:-1], "it holds no pair of arrays"),
        (save(ARRAYS), "it holds no pair of arrays"),
        (save(ARRAYS, {"key": "[]"}), "it holds no pair of arrays"),
        (whole.replace(b"form 1", b"form 2"), "its format is 'form 2'; it must be 'form 1': give another"),
        (save(single, {"key": json.dumps({"format": "form 1"})}), "its array a is missing, or not of float64"),
    ):
        path.write_bytes(data)
        with pytest.raises(InputError, match=f"f.safetensors: {message}"):
            FORM.read(path)
    path.write_bytes(whole)
    monkeypatch.setattr(tensor_file, "MAX_BYTES", len(whole) - 1)
    with pytest.raises(InputError, match="it is larger than 0 MiB"):
        FORM.read(path)
    with pytest.raises(InputError, match="it cannot be read"):
        FORM.read(tmp_path / "none")
