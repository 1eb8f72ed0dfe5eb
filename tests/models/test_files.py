import io
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork, LinearGaussianBayesianNetwork
from pgmpy.models import FactorGraph as PgmpyFactorGraph
from pgmpy.readwrite import BIFReader

from tests.conftest import MODELS, ROOT, all_states
from thesis_cli.base.errors import InputError
from thesis_cli.models import files, uai
from thesis_cli.models.factor_graph import Factor, FactorGraph, LogPotentials
from thesis_cli.models.files import load_model, model_of
from thesis_cli.studies.models.examples import ASIA, asia

VALUES = np.array([0.5, -np.inf, -2.0])


def save(folder, name):
    path = folder / name
    if path.suffix == ".npz":
        np.savez(path, VALUES)
    elif path.suffix == ".npy":
        np.save(path, VALUES)
    else:
        path.write_text("log_potential\n0.5\n-inf\n-2\n")
    return path


@pytest.mark.parametrize("name", ["v.npy", "v.npz", "v.csv"])
def test_a_pipe_is_read_once(tmp_path, name):
    ends = os.pipe()
    os.write(ends[1], save(tmp_path, name).read_bytes())
    os.close(ends[1])
    model = load_model(f"/dev/fd/{ends[0]}", "csv" if name == "v.csv" else None)
    os.close(ends[0])
    np.testing.assert_array_equal(model.values, VALUES)


@pytest.mark.parametrize("name", ["v.npy", "v.npz", "v.csv"])
@pytest.mark.parametrize("stdin", [False, True])
def test_a_vector_in_every_format(tmp_path, monkeypatch, name, stdin):
    path = save(tmp_path, name)
    if stdin:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))
    model = load_model("-" if stdin else path, "csv" if stdin and name == "v.csv" else None)
    assert isinstance(model, LogPotentials)
    np.testing.assert_array_equal(model.values, VALUES)


@pytest.mark.parametrize("text", ["0.5,-inf,-2\n", "0.5\n-inf\n-2", "\n0.5\n\n-inf\n-2.0\n", "0.5\r\n-inf\r\n-2\r\n"])
def test_csv_may_be_one_line_or_one_column(tmp_path, text):
    (tmp_path / "v.csv").write_bytes(text.encode())
    np.testing.assert_array_equal(load_model(tmp_path / "v.csv").values, VALUES)


def test_bif_and_uai_of_one_network_agree():
    a, b = load_model(MODELS / "asia.uai"), load_model(MODELS / "asia.bif")
    states = all_states(a)
    np.testing.assert_allclose(b.log_potential(states), a.log_potential(states), atol=1e-12)


def test_evidence_files_condition_a_model(tmp_path):
    conditioned = load_model(MODELS / "asia.uai", evidence=MODELS / "asia-xray.evid")
    assert conditioned.cardinalities == (2, 2, 2, 2, 2, 2, 1, 2)
    with pytest.raises(InputError, match="vector has no variables"):
        load_model(save(tmp_path, "v.csv"), evidence=MODELS / "asia-xray.evid")
    with pytest.raises(InputError, match=r"nowhere.evid: cannot be read \(no such file"):
        load_model(MODELS / "asia.uai", evidence=tmp_path / "nowhere.evid")


def test_the_flag_for_probabilities_does_not_change_a_graph():
    plain, asked = (load_model(MODELS / "asia.uai", probabilities=p) for p in (False, True))
    for a, b in zip(plain.factors, asked.factors, strict=True):
        np.testing.assert_array_equal(a.table, b.table)


def npy_header(shape):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return stream.getvalue()


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


BAD = [
    ("m.uai", b"", "m.uai:1: the file ends"),
    ("m.uai", b"\xff\xfe\x00", "m.uai:1: not text"),
    ("m.uai", bytes(range(128)), r"m.uai:1: starts with '\x00\x01"),
    ("m.fg", b"", "m.fg:1: the file ends"),
    ("m.fg", b"1\n\xfe", "m.fg:2: not text; a UAI, FG, BIF, CNF or CSV file is text"),
    ("m.fg", bytes(range(128)), r"m.fg:1: the number of factors is '\x00\x01"),
    ("m.csv", b"", "m.csv: has no numbers"),
    ("m.csv", b"heading\n", "m.csv:1: 'heading' is not a number"),
    ("m.csv", b"0.1;0.2\n", "m.csv:1: '0.1;0.2' is not a number; give one number a line, or commas between them"),
    ("m.csv", b"1\n2\nthree\n", "m.csv:3: 'three' is not a number"),
    ("m.csv", b"1,2\n3,4\n", "m.csv:1: '1,2' is not a number"),
    ("m.csv", b"1\n1_0\n", "m.csv:2: '1_0' is not a number"),
    ("m.uai", b"MARKOV 1_0", "m.uai:1: the number of variables is '1_0'"),
    ("m.uai", b"MARKOV 1 2 1\n1 0\n2 1_0 1", "m.uai:3: '1_0' is not a number"),
    ("m.csv", b"1\nnan\n", "m.csv:2: 'nan' is no log-potential"),
    ("m.csv", b"1\n\ninf\n", "m.csv:3: 'inf' is no log-potential"),
    ("m.csv", b"-inf\n-inf\n", "m.csv: the vector is -inf everywhere"),
    ("m.npy", b"\x93NUMPY", "m.npy: not a whole NPY file"),
    ("m.npy", npy_header((10**15,)) + b"\0" * 8, "m.npy: not a whole NPY file"),
    ("m.npz", b"PK\x03\x04 cut short", "m.npz: not a whole NPZ file"),
    ("m.npz", npz(a=VALUES, b=VALUES), "m.npz: holds 2 arrays and none is called log_potentials"),
    ("m.npz", npz(a=np.zeros((2, 2))), "m.npz: log-potentials have shape (2, 2)"),
    ("m.npz", npz(a=np.array(["x"])), "m.npz: holds numbers of type <U1, not real numbers"),
    ("m.npz", npz(a=np.array([1.0, np.nan])), "m.npz: the vector has a NaN at entry 1"),
    ("m.npz", npz(a=np.array([{}], dtype=object)), "m.npz: holds Python objects"),
    ("model", b"what is this", "model: unknown format"),
    ("model", b"\x1b[2J is this", r"model: unknown format: the first word is '\x1b[2J'"),
    ("m.bif", b"", "m.bif:1: declares no variable"),
]


@pytest.mark.parametrize(("name", "content", "message"), BAD)
def test_the_error_for_a_malformed_file_is_one_line(tmp_path, monkeypatch, name, content, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_model(name)
    assert str(caught.value).startswith(message)
    assert str(caught.value).isprintable()


def test_a_header_that_promises_too_much_on_standard_input(monkeypatch):
    data = npy_header((10**15,)) + b"\0" * 8
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    with pytest.raises(InputError, match=r"promises 8,000,000,000,000,000 bytes, it has 8"):
        load_model("-")


def test_large_files_are_refused_before_they_are_parsed(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_BYTES", 1000)
    (tmp_path / "m.uai").write_text("MARKOV 1 2 0" + " " * 1000)
    with pytest.raises(InputError, match="larger than"):
        load_model(tmp_path / "m.uai")
    np.savez_compressed(tmp_path / "m.npz", np.zeros(10**4))
    with pytest.raises(InputError, match="unpacks to 80,128 bytes"):
        load_model(tmp_path / "m.npz")
    np.save(tmp_path / "m.npy", np.zeros(10**5))
    assert load_model(tmp_path / "m.npy").size == 10**5


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        load_model(tmp_path / "m.uai")
    with pytest.raises(InputError, match="is a directory"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("table 0.5, 0.5;", "table 0.5, 0.4;", ":36: a distribution of smoke sums to 0.9"),
        ("  (no, no) 0.1, 0.9;\n", "", ":56: the table of dysp has no distribution at (no, no)"),
        ("( tub | asia )", "( tub | europe )", ":31: there is no variable 'europe'"),
    ],
)
def test_malformed_bif(tmp_path, old, new, message):
    text = (MODELS / "asia.bif").read_text()
    assert old in text
    (tmp_path / "m.bif").write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        load_model(tmp_path / "m.bif")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bif_without_a_last_newline(tmp_path):
    (tmp_path / "m.bif").write_bytes((MODELS / "asia.bif").read_bytes().rstrip().replace(b"\n", b" \r\n"))
    assert uai.write(load_model(tmp_path / "m.bif")) == uai.write(load_model(MODELS / "asia.bif"))


def test_asia_is_normalised():
    graph = asia()
    assert abs(np.exp(graph.log_potential(all_states(graph))).sum() - 1) < 1e-12


def markov():
    network = DiscreteMarkovNetwork([("a", "b"), ("b", "c")])
    rng = np.random.default_rng(0)
    names = {"a": ["no", "yes"], "b": [10, 20, 30], "c": [True, False]}
    network.add_factors(
        DiscreteFactor(["a", "b"], [2, 3], rng.random(6), {k: names[k] for k in "ab"}),
        DiscreteFactor(["c", "b"], [2, 3], rng.random(6), {k: names[k] for k in "bc"}),
    )
    return network


def test_a_bayesian_network_keeps_its_names():
    network = BIFReader(str(MODELS / "asia.bif")).get_model()
    found = model_of(network, ["xray=yes"])
    order = [ASIA.index(found.variable_name(i)) for i in range(8)]
    states = all_states(found)
    states[:, order.index(6)] = 0
    same = np.empty_like(states)
    for i, j in enumerate(order):
        same[:, j] = [["yes", "no"].index(found.state_name(i, k)) for k in states[:, i]]
    total = np.exp(asia().log_potential(same)).sum()
    assert total == pytest.approx(0.11029004, rel=1e-9)
    assert np.exp(found.log_potential(all_states(found))).sum() == pytest.approx(total, rel=1e-12)


def test_a_markov_network_and_its_factor_graph():
    network = markov()
    direct, through = model_of(network), model_of(network.to_factor_graph())
    assert isinstance(network.to_factor_graph(), PgmpyFactorGraph)
    for found in (direct, through):
        assert len(found.cardinalities) == 3
        log_z = np.log(np.exp(found.log_potential(all_states(found))).sum())
        assert log_z == pytest.approx(np.log(network.get_partition_function()))
        b = found.names.variables.index("b")
        assert [found.state_name(b, k) for k in range(3)] == ["10", "20", "30"]


def test_tables_that_list_states_in_other_orders_are_aligned():
    network = DiscreteBayesianNetwork([("a", "b")])
    network.add_cpds(
        TabularCPD("a", 2, [[0.2], [0.8]], state_names={"a": ["x", "y"]}),
        TabularCPD("b", 2, [[0.9, 0.4], [0.1, 0.6]], ["a"], [2], state_names={"b": ["u", "v"], "a": ["y", "x"]}),
    )
    found = model_of(network, ["a=x", "b=u"])
    assert np.exp(found.log_potential(np.zeros((1, 2), int))[0]) == pytest.approx(0.2 * 0.4)


def test_vectors_of_any_real_type():
    np.testing.assert_array_equal(model_of([0.0, -1.0]).values, [0, -1])
    np.testing.assert_allclose(model_of(np.array([1, 3]), probabilities=True).values[:], np.log([1, 3]))
    for model in (LogPotentials(np.zeros(3)), FactorGraph([2], [])):
        assert model_of(model) is model


def incomplete():
    network = markov()
    network.add_node("d")
    return network


def disagreeing():
    network = DiscreteBayesianNetwork([("a", "b")])
    network.add_cpds(
        TabularCPD("a", 2, [[0.2], [0.8]], state_names={"a": ["x", "y"]}),
        TabularCPD("b", 2, [[0.9, 0.4], [0.1, 0.6]], ["a"], [2], state_names={"b": ["u", "v"], "a": ["y", "z"]}),
    )
    return network


@pytest.mark.parametrize(
    ("source", "options", "fragment"),
    [
        (object(), {}, "of type object is no model"),
        ([[1.0], [2.0, 3.0]], {}, "of type list is no model"),
        (np.zeros((2, 2)), {}, "shape (2, 2)"),
        ([0.0, np.nan], {}, "NaN at entry 1"),
        ([0.5, -0.5], {"probabilities": True}, "probability 1 is -0.5"),
        ([0.5, 0.5], {"evidence": ["0=1"]}, "no variables to observe"),
        (incomplete(), {}, "variable d has no table"),
        (disagreeing(), {}, "disagree on the states of a"),
        (LinearGaussianBayesianNetwork([("a", "b")]), {}, "no tables of discrete variables"),
        (FactorGraph([2], [Factor((0,), np.array([0.0, -np.inf]))]), {"evidence": ["0=1"]}, "forbids the evidence"),
        (FactorGraph([2], [Factor((0,), np.array([1e308, 0.0]))] * 2), {}, "add up to more than 1.8e308"),
    ],
)
def test_invalid_models_are_refused(source, options, fragment):
    with pytest.raises(InputError) as caught:
        model_of(source, **options)
    assert fragment in str(caught.value)


READ_ALL = """
import sys
from thesis_cli.models.factor_matrix import load_factor_matrix
from thesis_cli.models.files import load_model
from thesis_cli.models.files import model_of
model_of([1.0])
for name in "asia.uai", "asia.bif", "zipf-1000.csv":
    load_model("data/models/" + name)
load_model("data/models/asia.bif", evidence=["data/models/asia-xray.evid"])
load_factor_matrix("data/models/factors-5x2000.npy")
print(sorted({name.split(".")[0] for name in sys.modules} & {"matplotlib", "numba", "pandas", "pgmpy", "scipy"}))
"""


def test_reading_a_model_imports_no_large_package():
    done = subprocess.run([sys.executable, "-c", READ_ALL], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
