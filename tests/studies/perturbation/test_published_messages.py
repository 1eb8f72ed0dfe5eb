import json

import numpy as np
import pytest

from tests.conftest import ROOT
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.models.spin_glass import published_noise, published_spin_glass, random_spin_glass
from thesis_cli.studies.perturbation.published_messages import SCHEDULE, PublishedMaxProduct, wiring

PUBLISHED = ROOT.parent / "shared" / "reference" / "fig_2_4"

# The first values that the author published for belief propagation at C = 5/3, and the exact maxima.
FIRST = [156.888, 180.177, 157.122, 166.422, 165.944, 150.535, 177.846, 185.158, 165.198, 164.73]
EXACT = [159.296, 180.177, 159.896, 166.422, 166.923, 156.79, 177.846, 185.158, 165.198, 165.521]


class Reference:
    """The rules in probabilities, one factor after the other, with NumPy's Mersenne twister."""

    def __init__(self, model, schedule):
        rows, columns = model.fields.shape
        self.schedule, self.n = schedule, rows * columns
        self.random = np.random.RandomState(42)
        self.factors = []
        for i, j in np.ndindex(rows, columns):
            v = i * columns + j
            self.factors.append(((v,), np.exp(model.fields[i, j] * np.array([-1, 1]))))
            for near, edge in ((v - columns, i and model.down[i - 1, j]), (v - 1, j and model.right[i, j - 1])):
                if edge:
                    self.factors.append(((near, v), np.exp(edge * np.array([[1, -1], [-1, 1]]))))

    def belief(self, at, messages, skip=None):
        """The table of factor `at` times the messages from others to its variables."""
        scope, table = self.factors[at]
        found = table.copy()
        for axis, v in enumerate(scope):
            if v != skip:
                heard = np.prod([m for (f, u), m in messages.items() if u == v and f != at], axis=0)
                found *= heard.reshape([2 if k == axis else 1 for k in range(len(scope))])
        return found

    def maximise(self, noise):
        """States and number of sweeps for one row of noise."""
        given = self.factors
        self.factors = given + [((v,), np.exp(noise[2 * v : 2 * v + 2])) for v in range(self.n)]
        edges = [(f, v) for f, (scope, _) in enumerate(self.factors) for v in scope]
        damped = {edge: np.ones(2) for edge in edges}
        fresh, before, sweep = dict(damped), None, 0
        while sweep < self.schedule.max_sweeps:
            sweep += 1
            for i in range(1, len(edges)):
                j = int(self.random.randint(0, 2**32, dtype=np.uint32)) * (i + 1) >> 32
                edges[i], edges[j] = edges[j], edges[i]
            for f, v in edges:
                scope, table = self.factors[f]
                table = self.belief(f, damped, skip=v) if len(scope) > 1 else table
                new = table.max(axis=1 - scope.index(v)) if len(scope) > 1 else table
                fresh[f, v] = new / new.sum()
                share = self.schedule.damping
                damped[f, v] = damped[f, v] ** share * fresh[f, v] ** (1 - share)
            heard = [np.prod([m for (_, u), m in fresh.items() if u == v], axis=0) for v in range(self.n)]
            beliefs = [b / b.sum() for b in [*heard, *(self.belief(f, damped) for f in range(len(self.factors)))]]
            if before and max(abs(b - a).max() for a, b in zip(before, beliefs, strict=True)) <= SCHEDULE.tolerance:
                break
            before = beliefs
        states, stack, seen = {}, [0], set()
        while stack:
            f = stack.pop()
            if f not in seen:
                seen.add(f)
                scope = self.factors[f][0]
                table = self.belief(f, damped)
                free = [
                    x
                    for x in np.ndindex(table.shape)
                    if all(states.get(v, s) == s for v, s in zip(scope, x, strict=True))
                ]
                best = max(free, key=lambda x: table[x])
                for v, s in zip(scope, best, strict=True):
                    if v not in states:
                        states[v] = s
                        stack += [g for g, (other, _) in enumerate(self.factors) if v in other and g not in seen]
        self.factors = given
        return [states[v] for v in range(self.n)], sweep


@pytest.mark.parametrize("limit", [60, 2])
def test_states_and_sweeps_are_those_of_the_plain_rules(limit):
    rng = np.random.default_rng(3)
    model = random_spin_glass(2, 3, 3.0, 1.0, "mixed", rng)
    noise = rng.gumbel(size=(3, 12)) - np.euler_gamma
    schedule = SCHEDULE._replace(max_sweeps=limit)
    solver, reference = PublishedMaxProduct(model, schedule=schedule), Reference(model, schedule)
    values, states = solver.maximise(noise)
    expected = [reference.maximise(row) for row in noise]
    assert states.tolist() == [found for found, _ in expected]
    assert solver.sweeps.tolist() == [sweeps for _, sweeps in expected]
    np.testing.assert_allclose(
        values,
        solver.graph.log_potential(states) + noise[:, ::2].sum(1) + ((noise[:, 1::2] - noise[:, ::2]) * states).sum(1),
    )


def test_the_first_published_values_of_belief_propagation():
    model, noise = published_spin_glass(5 / 3, "attractive"), published_noise(5 / 3, "attractive", len(FIRST))
    values, _ = PublishedMaxProduct(model).maximise(noise)
    assert [float(f"{value:.6g}") for value in values] == FIRST
    assert [float(f"{value:.6g}") for value in Elimination(model.graph()).maximise(noise)[0]] == EXACT


def test_random_numbers_go_on_from_call_to_call():
    model, noise = published_spin_glass(3, "attractive"), published_noise(3, "attractive", 12)
    whole, parts, other = (PublishedMaxProduct(model, seed) for seed in (42, 42, 7))
    values, _ = whole.maximise(noise)
    assert np.concatenate([parts.maximise(noise[:5])[0], parts.maximise(noise[5:])[0]]).tolist() == values.tolist()
    other.maximise(noise)
    assert (other.sweeps != whole.sweeps).any()


def test_messages_in_the_order_of_the_program():
    w = wiring(published_spin_glass(1, "mixed", rows=2, columns=2))
    assert w.target.tolist() == [0, 1, 0, 1, 2, 0, 2, 3, 1, 3, 2, 3, 0, 1, 2, 3]
    assert w.source.tolist() == [-1, -1, 1, 0, -1, 2, 0, -1, 3, 1, 3, 2, -1, -1, -1, -1]
    assert w.reverse.tolist() == [0, 1, 3, 2, 4, 6, 5, 7, 9, 8, 11, 10, 12, 13, 14, 15]
    assert [w.into[w.first[v] : w.first[v + 1]].tolist() for v in range(4)] == [
        [0, 2, 5, 12],
        [1, 3, 8, 13],
        [4, 6, 10, 14],
        [7, 9, 11, 15],
    ]


@pytest.mark.parametrize("path", sorted(PUBLISHED.glob("*_BP.json")), ids=lambda path: path.stem)
def test_the_published_values_of_belief_propagation(path):
    """All printed digits of the first 300 values agree, if the files are there."""
    file = json.loads(path.read_text())
    model = published_spin_glass(file["c"], "attractive")
    values, _ = PublishedMaxProduct(model).maximise(published_noise(file["c"], "attractive", 300))
    assert [float(f"{value:.6g}") for value in values] == file["MAPs_unary_BP"][:300]
