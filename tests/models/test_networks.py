"""Files that pgmpy reads, against tables that were written by hand, and models as networks of pgmpy."""

import numpy as np
import pytest

from tests.conftest import MODELS
from thesis_cli.base.errors import InputError
from thesis_cli.inference.exact import exact_log_partition_function
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.files import load_model
from thesis_cli.models.networks import from_pgmpy, to_pgmpy

STATES = {"a": ["a0", "a1"], "b": ["b0", "b1", "b2"], "c": ["no", "yes"]}
PARENTS = {"a": "", "b": "", "c": "a b"}
TABLES = {
    "a": [0.25, 0.75],
    "b": [0.125, 0.375, 0.5],
    "c": [1, 0, 0.875, 0.125, 0.75, 0.25, 0.625, 0.375, 0.5, 0.5, 0, 1],
}
"""P(c | a, b) with c as the fastest index and a as the slowest, as the three formats have it."""


def xmlbif():
    blocks = ['<?xml version="1.0"?>\n<BIF VERSION="0.3"><NETWORK><NAME>t</NAME>']
    for name, states in STATES.items():
        outcomes = "".join(f"<OUTCOME>{state}</OUTCOME>" for state in states)
        blocks.append(f'<VARIABLE TYPE="nature"><NAME>{name}</NAME>{outcomes}</VARIABLE>')
    for name, table in TABLES.items():
        given = "".join(f"<GIVEN>{parent}</GIVEN>" for parent in PARENTS[name].split())
        numbers = " ".join(map(str, table))
        blocks.append(f"<DEFINITION><FOR>{name}</FOR>{given}<TABLE>{numbers}</TABLE></DEFINITION>")
    return "\n".join([*blocks, "</NETWORK></BIF>"])


def xdsl():
    blocks = ['<?xml version="1.0" encoding="UTF-8"?>\n<smile version="1.0" id="t"><nodes>']
    for name, states in STATES.items():
        shown = "".join(f'<state id="{state}" />' for state in states)
        parents = f"<parents>{PARENTS[name]}</parents>" if PARENTS[name] else ""
        numbers = " ".join(map(str, TABLES[name]))
        blocks.append(f'<cpt id="{name}">{shown}{parents}<probabilities>{numbers}</probabilities></cpt>')
    return "\n".join([*blocks, "</nodes></smile>"])


def net():
    blocks = ["net\n{\n    node_size = (80 40);\n}"]
    for name, states in STATES.items():
        shown = " ".join(f'"{state}"' for state in states)
        blocks.append(f'node {name}\n{{\n    label = "{name}";\n    states = ({shown});\n}}')
    for name, table in TABLES.items():
        bar = f" | {PARENTS[name]}" if PARENTS[name] else ""
        blocks.append(f"potential ( {name}{bar} )\n{{\n    data = ({' '.join(map(str, table))});\n}}")
    return "\n".join(blocks)


@pytest.mark.parametrize("written", [xmlbif, xdsl, net])
def test_tables_and_names_are_those_of_the_file(tmp_path, written):
    (tmp_path / "network").write_text(written())  # its content tells the format
    graph = load_model(tmp_path / "network")
    found = {graph.names.variables[scope[0]]: (scope, np.exp(table)) for scope, table in graph.factors}
    for name, (scope, table) in found.items():
        order = [*PARENTS[name].split(), name]
        axes = [[graph.names.variables[i] for i in scope].index(other) for other in order]
        np.testing.assert_allclose(table.transpose(axes).ravel(), TABLES[name], rtol=1e-15)
        assert graph.names.states[graph.names.variables.index(name)] == tuple(STATES[name])
    assert set(found) == set(TABLES)


@pytest.mark.parametrize(
    ("name", "text", "fragment"),
    [
        ("a.xmlbif", xmlbif()[:-40], "is no XMLBIF file that pgmpy reads"),
        ("a.xmlbif", xmlbif().replace("0.875", "much"), "is no XMLBIF file that pgmpy reads"),
        ("a.xmlbif", xmlbif().replace("0.125 0.375 0.5", "0.125 0.375"), "is no XMLBIF file that pgmpy reads"),
        ("a.xmlbif", '<!DOCTYPE a [<!ENTITY b "c">]>' + xmlbif(), "declares XML entities"),
        ("a.xdsl", "<smile id='t'></smile>", "is no XDSL file that pgmpy reads"),
        ("a.net", "net { }\nnode", "pgmpy"),
        ("a.net", "", "pgmpy"),
    ],
)
def test_a_file_that_pgmpy_cannot_read_is_one_line(tmp_path, name, text, fragment):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=fragment) as error:
        load_model(tmp_path / name)
    assert error.value.source == str(tmp_path / name)


def test_a_model_goes_to_pgmpy_and_back():
    asia = load_model(MODELS / "asia.bif", evidence="xray=yes")
    table = np.log([[1.0, 2, 3], [4, 0.5, 6]])
    for graph in (asia, FactorGraph([2, 3], [Factor((0, 1), table), Factor((1,), np.array([0, -np.inf, 1.0]))])):
        network = to_pgmpy(graph)
        back = from_pgmpy(network)
        assert exact_log_partition_function(back)[0] == pytest.approx(exact_log_partition_function(graph)[0], rel=1e-12)
    assert network.get_partition_function() == pytest.approx(np.exp(exact_log_partition_function(graph)[0]), rel=1e-12)
    with pytest.raises(InputError, match="below 1e308"):
        to_pgmpy(FactorGraph([2], [Factor((0,), np.array([0.0, 1000]))]))
