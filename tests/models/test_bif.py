"""The reader of BIF files against what was written and, at length, against pgmpy's reader."""

import gzip
import itertools
import logging
from importlib import resources

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import MODELS
from thesis_cli.base.errors import InputError
from thesis_cli.models import bif

ODD = ["<5", "5-12", "12+", ">=7.5", "Asy/Patchy", "0-3_days", "a.b", "probability", "table", "x=1", "é", "TRUE"]
"""States as published networks have them."""

MOST = 3


def network(rng, count):
    """Names, states, scopes and tables of a random network."""
    names = [f"{rng.choice(['x', 'Node.', 'v_', 'variable'])}{i}" for i in range(count)]
    states = [tuple(rng.permutation(ODD)[: rng.integers(1, 5)].tolist()) for _ in names]
    scopes = [(i, *rng.permutation(i)[: rng.integers(0, MOST)].tolist()) for i in range(count)]
    tables = []
    for scope in scopes:
        table = rng.random([len(states[i]) for i in scope]).round(2) + 0.01
        tables.append(table / table.sum(axis=0))
    return names, states, scopes, tables


def distributions(states, scope, table):
    """The states of the parents, and the distribution at them, in turn."""
    rows = itertools.product(*[states[i] for i in scope[1:]])
    return list(zip(rows, table.reshape(table.shape[0], -1).T, strict=True))


def written(rng, names, states, scopes, tables):
    """The network as text: blocks and entries in a random order, as published files look."""
    blocks = []
    for name, known in zip(names, states, strict=True):
        blocks.append(f"variable {name} {{\n  type discrete [ {len(known)} ] {{ {', '.join(known)} }};\n}}\n")
    for scope, table in zip(scopes, tables, strict=True):
        child, *parents = [names[i] for i in scope]
        numbers = [str, "{:.17e}".format, "{:.17g}".format][rng.integers(3)]
        if not parents:
            lines = [f"  table {', '.join(map(numbers, table.tolist()))};"]
        else:
            lines = [
                f"  ({', '.join(row)}) {', '.join(map(numbers, p.tolist()))};"
                for row, p in distributions(states, scope, table)
            ]
        bar = f" | {', '.join(parents)}" if parents else ""
        blocks.append("\n".join([f"probability ( {child}{bar} ) {{", *rng.permutation(lines), "}\n"]))
    return "network unknown {\n}\n" + "".join(blocks)


def assert_reads(text, names, states, scopes, tables):
    found = bif.parse(text, "m.bif")
    assert (found.names.variables, found.names.states) == (tuple(names), tuple(states))
    assert [factor.scope for factor in found.factors] == scopes
    for factor, table in zip(found.factors, tables, strict=True):
        np.testing.assert_array_equal(factor.table, np.log(table))


@given(st.integers(0, 2**32), st.integers(1, 8))
def test_a_network_is_read_as_it_was_written(seed, count):
    rng = np.random.default_rng(seed)
    made = network(rng, count)
    assert_reads(written(rng, *made), *made)


@given(st.integers(0, 2**32), st.integers(1, 6))
def test_the_rarer_forms_of_the_format(seed, count):
    """Quotes, white space for commas, comments, properties, defaults, tables of any scope."""
    rng = np.random.default_rng(seed)
    names, states, scopes, tables = network(rng, count)
    names = [f"{name} {{{k}}};" for k, name in enumerate(names)]
    text = '// variable x {\n/* variable x\n{ */ words between blocks\nnetwork "a b" { property a = b; }\n'
    for name, known in zip(names, states, strict=True):
        text += f'variable "{name}"{{property "}}" ; type  discrete[{len(known)}]{{{quoted(known)}}} ;property p = 1;}}'
    for scope, table in zip(scopes, tables, strict=True):
        parents = quoted(names[i] for i in scope[1:])
        text += f"\nprobability({quoted([names[scope[0]]])}{'|' * bool(parents)}{parents}) {{ property q;"
        if rng.random() < 0.5:
            text += f"table {numbers(table)} ; // }} \n}}"
        else:
            (_, default), *rows = distributions(states, scope, table)
            text += "".join(f"({quoted(row)}){numbers(p)};" for row, p in rows) + f"default\n{numbers(default)};}}"
    assert_reads(text, names, states, scopes, tables)


def quoted(names):
    return " ".join(f'"{name}"' for name in names)


def numbers(table):
    return " ".join(map(str, table.reshape(-1).tolist()))


VARIABLES = "variable a {\n type discrete [ 2 ] { yes, no };\n}\nvariable B { type discrete [ 2 ] { yes no }; }\n"
A = "probability ( a ) { table 0.5 0.5; }\n"


def test_names_with_spaces_need_no_quotes_where_commas_separate():
    text = "variable an age { type discrete [ 2 ] { very low, high }; } variable b { type discrete [ 1 ] { x }; }"
    text += "probability ( an age ) { table .2 .8; }\nprobability ( b | an age ) { (high) 1; (very low) 1; }"
    found = bif.parse(text)
    assert found.names.variables == ("an age", "b")
    assert found.names.states[0] == ("very low", "high")
    assert found.factors[1].scope == (1, 0)


def test_the_case_of_a_variable_is_ignored_where_it_leaves_no_doubt():
    text = VARIABLES + A + "probability ( b | A ) { default 1 0; }"
    assert [factor.scope for factor in bif.parse(text).factors] == [(0,), (1, 0)]
    twins = "variable Ab { type discrete [ 1 ] { x }; } variable aB { type discrete [ 1 ] { x }; }"
    assert bif.parse(twins + "probability ( aB ) { table 1; } probability ( Ab ) { table 1; }").size == 1
    with pytest.raises(InputError, match="there is no variable 'ab'"):
        bif.parse(twins + "probability ( ab ) { table 1; }")


BAD = [
    ("", ":1: declares no variable"),
    ("variable a { type continuous; }", ":1: the block of variable a cannot be read"),
    ("variable a { type discrete [ 2 ] { yes,", ":1: the block of variable a cannot be read"),
    ("variable a {\n", ":1: the block of variable a is cut off"),
    ("variable a { type discrete [ 3 ] { yes, no }; }", ":1: variable a lists 2 states; it promises 3"),
    ("variable a { type discrete [ 0 ] { }; }", ":1: variable a lists 0 states"),
    ("variable a { type discrete [ 2 ] { no, no }; }", ":1: variable a lists state no twice"),
    ("variable { type discrete [ 1 ] { no }; }", ":1: a variable has no name"),
    (VARIABLES + VARIABLES, ":5: variable a is declared twice"),
    (VARIABLES + "}\n" + A, ":5: '}' begins no block"),
    (VARIABLES + "probabilty ( a ) { }", ":5: 'probabilty' begins no block"),
    (VARIABLES + "network x { size 2; }", ":5: the block of the network cannot be read"),
    (VARIABLES + A, ":4: variable B has no probability table"),
    (VARIABLES + A + A, ":6: a second probability table of a"),
    (VARIABLES + "probability a { table 1 0; }", ":5: probability a"),
    (VARIABLES + "probability ( ) { table 1 0; }", ":5: probability ( );"),
    (VARIABLES + "probability ( a a ) { table 1 0; }", ":5: probability ( a a )"),
    (VARIABLES + "probability ( a B | ) { table 1 0; }", ":5: probability ( a B | )"),
    (VARIABLES + "probability ( a | c ) { table 1 0; }", ":5: there is no variable 'c'"),
    (
        VARIABLES + "probability ( a ) {\n table 1 0 0; }",
        ":6: an entry of the table of a has 3 numbers",
    ),
    (VARIABLES + "probability ( a ) { table 1 0; table 1 0; }", ":5: the table of a has further entries"),
    (VARIABLES + "probability ( a ) { 1 0; }", ":5: an entry of a table cannot be read"),
    (VARIABLES + "probability ( a ) {\n table 1 1_0; }", ":6: the table of a has the entry '1_0'"),
    (VARIABLES + "probability ( a ) { table 2 -1; }", ":5: the table of a has the entry '-1'"),
    (VARIABLES + "probability ( a ) { table nan 1; }", ":5: the table of a has the entry 'nan'"),
    (VARIABLES + "probability ( a ) { table .5 .4; }", ":5: a distribution of a sums to 0.9"),
    (VARIABLES + "probability ( a | B ) { (yes) 0 1;\n\n (no) 1 1; }", ":7: a distribution of a sums to 2"),
    (VARIABLES + "probability ( a | B ) {\n (yes) 0 1; }", ":5: the table of a has no distribution at (no)"),
    (VARIABLES + "probability ( a | B ) {\n (yes) 0 1;\n (yes) 0 1; }", ":7: the table of a lists (yes) twice"),
    (VARIABLES + "probability ( a | B ) {\n (yse) 0 1; }", ":6: variable B has no state 'yse'; 'yes' is nearest"),
    (VARIABLES + "probability ( a | B ) {\n (yes, no) 0 1; }", ":6: (yes, no) has 2 states; a has 1 parent"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_an_error_has_the_line_and_what_is_wrong(text, message):
    with pytest.raises(InputError) as caught:
        bif.parse(text, "m.bif")
    assert str(caught.value).startswith("m.bif" + message)
    assert caught.value.remedy
    assert str(caught.value).isprintable()


def test_a_table_that_no_memory_holds_is_refused_before_it_is_made():
    text = "".join(f"variable v{i} {{ type discrete [ 4 ] {{ a, b, c, d }}; }} " for i in range(40))
    text += f"probability ( v0 | {' '.join(f'v{i}' for i in range(1, 40))} ) {{ default 1 0 0 0; }}"
    with pytest.raises(InputError, match=f"the table of v0 has {4**40} entries"):
        bif.parse(text)


def read_by_pgmpy(text):
    logging.getLogger("pgmpy").setLevel(logging.ERROR)
    from pgmpy.readwrite import BIFReader

    reader = BIFReader(string=text)
    names = reader.variable_names
    states = [tuple(reader.variable_states[name]) for name in names]
    scopes = [tuple(map(names.index, [name, *reader.variable_parents[name]])) for name in names]
    shapes = [tuple(len(states[i]) for i in scope) for scope in scopes]
    return names, states, scopes, [np.reshape(reader.variable_cpds[n], s) for n, s in zip(names, shapes, strict=True)]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_pgmpy_reads_the_same_from_random_networks(seed):
    rng = np.random.default_rng(seed)
    text = written(rng, *network(rng, 60))
    with np.errstate(divide="ignore"):
        assert_reads(text, *read_by_pgmpy(text))


PUBLISHED = {path.name: path for path in resources.files("pgmpy").joinpath("utils/example_models").iterdir()}


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(name for name in PUBLISHED if name.endswith(".bif.gz")))
def test_pgmpy_reads_the_same_from_published_networks(name):
    text = gzip.decompress(PUBLISHED[name].read_bytes()).decode()
    with np.errstate(divide="ignore"):
        assert_reads(text, *read_by_pgmpy(text))


@pytest.mark.long
@pytest.mark.parametrize("path", sorted(MODELS.glob("*.bif")), ids=str)
def test_pgmpy_reads_the_same_from_the_networks_of_this_repository(path):
    with np.errstate(divide="ignore"):
        assert_reads(path.read_text(), *read_by_pgmpy(path.read_text()))
