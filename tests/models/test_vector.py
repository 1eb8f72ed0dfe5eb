"""Vectors of probabilities; those of log-potentials are in test_files.py."""

import io
import math
import sys
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from thesis_cli.base.errors import InputError
from thesis_cli.inference.best_configuration import best_configuration
from thesis_cli.inference.enumeration import log_partition_function
from thesis_cli.inference.exact import exact_log_partition_function
from thesis_cli.inference.sampling.draws import exact_samples
from thesis_cli.models.factor_graph import LogPotentials
from thesis_cli.models.files import load_model
from thesis_cli.models.vector import LogOf
from thesis_cli.perturbation.tricks.full_rank import perturbed_maxima

WEIGHTS = np.array([0.5, 0.0, 2.0, 1e-300])
LOGS = np.array([math.log(0.5), -math.inf, math.log(2), math.log(1e-300)])


@given(
    st.sampled_from(["f2", "f4", "f8", ">f8", "i1", "u8"]).flatmap(
        lambda kind: arrays.arrays(
            kind,
            st.integers(1, 30),
            elements={"min_value": 0, "max_value": 100, **({"allow_nan": False} if "f" in kind else {})},
        )
    ),
    st.integers(0, 30),
    st.integers(0, 30),
)
def test_logarithms_of_a_slice(values, start, stop):
    expected = [math.log(float(p)) if p else -math.inf for p in values[start:stop]]
    logs = LogOf(values)
    found = logs[start:stop]
    assert (logs.ndim, logs.shape, logs.size) == (1, values.shape, values.size)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=4e-15)


def test_the_logarithm_of_a_single_precision_number_is_taken_in_double_precision():
    p = np.array([0.1], dtype=np.float32)
    assert LogOf(p)[:][0] == math.log(float(p[0]))


def test_taking_logarithms_does_not_change_the_probabilities():
    values = WEIGHTS.copy()
    LogOf(values)[:]
    np.testing.assert_array_equal(values, WEIGHTS)


@pytest.mark.parametrize("wrong", [-0.2, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_errors_give_the_index_of_an_invalid_probability(wrong, kind):
    values = np.array([0.1, 0.2, 0.3, wrong, 0.4], dtype=kind)
    logs = LogOf(values)
    assert logs[:3].shape == (3,)
    with pytest.raises(InputError, match=f"^probability 3 is {wrong:g}"):
        logs[2:5]


def save(folder, name, values):
    path = folder / name
    if path.suffix == ".npz":
        np.savez(path, values)
    elif path.suffix == ".npy":
        np.save(path, values)
    else:
        path.write_text("probability\n" + "\n".join(map(repr, values.tolist())) + "\n")
    return path


@pytest.mark.parametrize("name", ["v.npy", "v.npz", "v.csv"])
@pytest.mark.parametrize("stdin", [False, True])
def test_probabilities_in_every_format(tmp_path, monkeypatch, name, stdin):
    path = save(tmp_path, name, WEIGHTS)
    if stdin:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))
    model = load_model("-" if stdin else path, "csv" if name == "v.csv" else None, probabilities=True)
    assert isinstance(model, LogPotentials)
    np.testing.assert_allclose(model.values[:], LOGS, rtol=4e-15)
    assert log_partition_function(model) == pytest.approx(math.log(2.5), abs=1e-12)


def test_all_methods_for_vectors_take_probabilities(tmp_path):
    model = load_model(save(tmp_path, "v.npy", WEIGHTS), probabilities=True)
    plain = LogPotentials(LOGS)
    assert model.describe() == "a vector of 4 configurations"
    assert exact_log_partition_function(model) == exact_log_partition_function(plain)
    assert best_configuration(model).states[0] == 2
    found, expected = (exact_samples(m, 50, np.random.default_rng(0))[0] for m in (model, plain))
    np.testing.assert_array_equal(found, expected)
    found, expected = (perturbed_maxima(m, 50, np.random.SeedSequence(0)) for m in (model, plain))
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-14, atol=1e-14)
    np.testing.assert_array_equal(found.states, expected.states)


def test_an_npy_file_is_read_a_block_at_a_time(tmp_path):
    size = 2**22
    path = save(tmp_path, "v.npy", np.full(size, 0.25, dtype=np.float32))
    tracemalloc.start()
    log_z = log_partition_function(load_model(path, probabilities=True))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert log_z == pytest.approx(math.log(size / 4), abs=1e-12)
    assert peak < 4 * size / 2


def test_the_array_of_probabilities_among_several(tmp_path):
    np.savez(tmp_path / "v.npz", log_potentials=LOGS, probabilities=WEIGHTS)
    np.testing.assert_array_equal(load_model(tmp_path / "v.npz").values, LOGS)
    np.testing.assert_allclose(load_model(tmp_path / "v.npz", probabilities=True).values[:], LOGS, rtol=4e-15)
    np.savez(tmp_path / "v.npz", a=LOGS, log_potentials=LOGS)
    with pytest.raises(InputError, match="none is called probabilities"):
        load_model(tmp_path / "v.npz", probabilities=True)


@pytest.mark.parametrize("word", ["-0.2", "nan", "inf", "-inf"])
def test_the_error_for_an_invalid_probability_has_its_line(tmp_path, word):
    path = tmp_path / "v.csv"
    for text, line in (f"p\n0.5\n\n{word}\n", 4), (f"0.5,{word}\n", 1):
        path.write_text(text)
        with pytest.raises(InputError) as caught:
            load_model(path, probabilities=True)
        assert str(caught.value).startswith(f"{path}:{line}: '{word}' is no probability")


BAD = {"probability 1 is -0.2": [0.5, -0.2], "probability 1 is inf": [0.5, math.inf], "is 0": [0.0, 0.0]}


@pytest.mark.parametrize(("message", "values"), BAD.items())
def test_vectors_in_memory_are_checked_when_loaded(tmp_path, message, values):
    path = save(tmp_path, "v.npz", np.array(values))
    with pytest.raises(InputError, match=message) as caught:
        load_model(path, probabilities=True)
    assert caught.value.source == str(path)


@pytest.mark.parametrize(("message", "values"), BAD.items())
def test_vectors_in_npy_files_are_checked_when_read(tmp_path, message, values):
    model = load_model(save(tmp_path, "v.npy", np.array(values)), probabilities=True)
    with pytest.raises(InputError, match=message.replace("is 0", "no configuration is possible")):
        perturbed_maxima(model, 2, np.random.SeedSequence(0))


def test_a_csv_file_of_zeros(tmp_path):
    with pytest.raises(InputError, match=r"v.csv: every probability is 0"):
        load_model(save(tmp_path, "v.csv", np.zeros(3)), probabilities=True)


@pytest.mark.parametrize("name", ["v.npy", "v.npz"])
@pytest.mark.parametrize(
    ("values", "message"), [(np.ones((2, 2)), "have shape"), (np.ones(2, bool), "holds bool"), (np.ones(0), "shape")]
)
def test_arrays_that_are_no_vectors_of_numbers(tmp_path, name, values, message):
    with pytest.raises(InputError, match=message) as caught:
        load_model(save(tmp_path, name, values), probabilities=True)
    assert caught.value.source == str(tmp_path / name)
