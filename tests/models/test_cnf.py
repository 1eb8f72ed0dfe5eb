import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import all_states
from tests.tiers import examples
from thesis_cli.base.errors import InputError
from thesis_cli.models import cnf
from thesis_cli.models.files import load_model

GOOD = """c a comment
c t wmc
c p show 1 2 3 0
p cnf 3 3
c p weight 2 1/4 0
c p weight -2 3e-1 0
1 -2 0
c another
2 3
-1 0 3 -3 0
%
0
"""


@st.composite
def formulas(draw):
    n = draw(st.integers(1, 7))
    literal = st.integers(1, n).flatmap(lambda i: st.sampled_from([i, -i]))
    return n, draw(st.lists(st.lists(literal, min_size=1, max_size=9), max_size=5))


@settings(max_examples=examples(40))
@given(formulas(), st.integers(2, 3), st.integers(2, 4))
def test_each_satisfying_assignment_has_one_configuration(formula, part, longest):
    """Long clauses are split, which needs variables that the others determine."""
    n, clauses = formula
    lines = [f"p cnf {n} {len(clauses)}", *(" ".join(map(str, [*clause, 0])) for clause in clauses)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cnf, "PART", part)
        patch.setattr(cnf, "LONGEST", longest)
        graph = cnf.parse("\n".join(lines))
    states = all_states(graph)
    possible = states[graph.log_potential(states) == 0][:, :n]
    every = np.array(list(np.ndindex(*(2,) * n)))
    satisfying = [x for x in every if all(any(x[abs(k) - 1] == (k > 0) for k in clause) for clause in clauses)]
    assert sorted(possible.tolist()) == sorted(np.array(satisfying).tolist())


def test_weights_names_and_comments():
    graph = cnf.parse(GOOD)
    assert graph.names.variables == ("1", "2", "3")
    states = all_states(graph)
    phi = dict(zip(map(tuple, states.tolist()), graph.log_potential(states), strict=True))
    assert phi.pop((0, 0, 0)) == pytest.approx(math.log(0.3))
    assert phi.pop((0, 0, 1)) == pytest.approx(math.log(0.3))
    assert phi.pop((1, 0, 1)) == pytest.approx(math.log(0.3))
    assert phi.pop((1, 1, 0)) == phi.pop((1, 1, 1)) == pytest.approx(math.log(0.25))


def test_weights_beyond_a_double():
    graph = cnf.parse("p cnf 1 0\nc p weight 1 1e-400 0\nc p weight -1 0 0\n")
    np.testing.assert_allclose(graph.factors[0].table, [-np.inf, -400 * math.log(10)], rtol=1e-15)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "m.cnf:1: the file ends before p cnf"),
        ("p wcnf 2 1\n1 2 0\n", "m.cnf:1: does not start with p cnf"),
        ("p cnf 0 1\n1 0\n", "m.cnf:1: the number of variables is 0"),
        ("p cnf 1000000000 0\n", "m.cnf:1: the number of variables is 1000000000; it must be from 1 to 1048576"),
        ("p cnf 2 1\n1 3 0\n", "m.cnf:2: literal 1 is 3; it must be from -2 to 2"),
        ("p cnf 2 1\n1 x 0\n", "m.cnf:2: literal 1 is 'x'; it must be a whole number"),
        ("p cnf 2 2\n1 2 0\n0\n", "m.cnf:3: clause 2 is empty, which no assignment satisfies"),
        ("p cnf 2 1\n1 2\n", "m.cnf:2: the last clause does not end with 0"),
        ("p cnf 2 3\n1 2 0\n2 0\n", "m.cnf:3: has 2 clauses, and p cnf promises 3"),
        ("p cnf 2 1\n1 2 0\n2 0\n", "m.cnf:3: has more than the 1 clauses promised"),
        ("p cnf 2 0\n\n2 0\n", "m.cnf:3: has more than the 0 clauses promised"),
        ("p cnf 2 1\nc p show 1 0\n1 2 0\n", "m.cnf:2: counts 1 of 2 variables"),
        ("p cnf 2 1\nc p weight 1 0.5 0\n1 2 0\n", "m.cnf:2: literal 1 has a weight and -1 has none"),
        ("c p weight 1 1 0\nc p weight 1 1 0\np cnf 2 1\n1 2 0\n", "m.cnf:2: literal 1 has two weights"),
        ("p cnf 2 1\nc p weight 3 0.5 0\n1 2 0\n", "m.cnf:2: a weight of literal 3; the variables are 1 to 2"),
        ("p cnf 2 1\nc p weight 1 -2 0\n1 2 0\n", "m.cnf:2: weight '-2'; it must be a number, 0 or above"),
        ("p cnf 2 1\nc p weight 1 1/0 0\n1 2 0\n", "m.cnf:2: weight '1/0'"),
        ("p cnf 2 1\nc p weight 1 1+2i 0\n1 2 0\n", "m.cnf:2: weight '1[+]2i'"),
        ("p cnf 2 1\nc p weight 1 2\n1 2 0\n", "m.cnf:2: not a weight"),
        ("p cnf 1 1\nc p weight 1 0 0\nc p weight -1 0 0\n1 0\n", "m.cnf:3: both literals of variable 1 have weight 0"),
    ],
)
def test_errors_name_the_line(text, message):
    with pytest.raises(InputError, match=message):
        cnf.parse(text, "m.cnf")


def test_a_formula_is_detected_and_takes_evidence_by_the_names_of_the_file(tmp_path):
    (tmp_path / "model").write_text(GOOD)
    graph = load_model(tmp_path / "model", evidence="3=0")
    assert graph.observed == {2: 0}
