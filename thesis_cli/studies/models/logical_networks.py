"""Random models made of rules: relational models of people, transport plans and 3-SAT."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.studies.models.examples import random_3_sat
from thesis_cli.studies.models.network import ObservedModel, log_table


def friends_and_smokers(people: int, known: float, rng: np.random.Generator) -> ObservedModel:
    """Friends of smokers smoke, and smokers get cancer: the Markov logic network of Alchemy of UAI
    2008 (`smokers_10`, `smokers_20`).

    Variables: who smokes, who has cancer, who is a friend of whom (people^2 - people). The weights
    are those of M. Richardson and P. Domingos, Markov logic networks, Machine Learning 2006.

    Parameters
    ----------
    known : share of the friendships that are observed, a fifth of them true.
    """
    implies = np.array([[1.5, 1.5], [0.0, 1.5]])  # a -> b
    influence = np.full((2, 2, 2), 1.1)  # friends and a -> b
    influence[1, 1, 0] = 0
    smokes, friend = range(people), {pair: 2 * people + k for k, pair in enumerate(permutations(range(people), 2))}
    factors = [Factor((i,), np.array([1.4, 0.0])) for i in smokes]
    factors += [Factor((i,), np.array([2.3, 0.0])) for i in range(people, 2 * people)]
    factors += [Factor((i, people + i), implies) for i in smokes]
    for (a, b), number in friend.items():
        factors += [Factor((number,), np.array([1.0, 0.0])), Factor((number, a, b), influence)]
    evidence = {number: int(rng.random() < 0.2) for number in friend.values() if rng.random() < known}
    return ObservedModel(FactorGraph([2] * (2 * people + len(friend)), factors), evidence)


def transitive_friends(people: int, weight: float, rng: np.random.Generator) -> ObservedModel:
    """Friends of friends are friends: a variable for each pair of people, a factor for each three,
    with few distinct weights, as the relational models of UAI 2014.

    Parameters
    ----------
    weight : cost of a triangle with exactly two friendships, in nats. If it is infinite, the
        possible configurations are the partitions of the people into groups.
    """
    number = {pair: k for k, pair in enumerate(combinations(range(people), 2))}
    triangle = np.zeros((2, 2, 2))
    triangle[0, 1, 1] = triangle[1, 0, 1] = triangle[1, 1, 0] = -weight
    field = rng.choice([-1.0, 0.0, 1.0], len(number))
    factors = [Factor((i,), np.array([0.0, value])) for i, value in enumerate(field)]
    for a, b, c in combinations(range(people), 3):
        factors.append(Factor((number[a, b], number[a, c], number[b, c]), triangle))
    return ObservedModel(FactorGraph([2] * len(number), factors))


def transport(places: int, trucks: int, packages: int, steps: int, rng: np.random.Generator) -> ObservedModel:
    """Plans of a transport by trucks that hold one package each: Z is the number of plans. As the
    planning problems of UAI 2006 and 2008 (`log-1`, `depot`), all tables 0 or 1.

    Variables: the place of each truck and the whereabouts of each package (a place or a truck) at
    each step. A truck stays or drives to a neighbour on a random tree of places with a few more
    roads; a package stays, is loaded where the truck is, or is unloaded there. The first and the
    last step are observed, the last as some plan reaches it.
    """
    road = _roads(places, rng)
    load = _handling(places, trucks)
    moves = [road] * trucks + [_legal_moves(places, trucks)] * packages
    plan = _random_plan(road, trucks, packages, steps, rng)
    width = trucks + packages
    cardinalities = ([places] * trucks + [places + trucks] * packages) * steps
    factors = []
    for start in range(0, width * (steps - 1), width):
        for i, table in enumerate(moves):
            factors.append(Factor((start + i, start + width + i), log_table(table)))
        for i in range(trucks, width):
            for k in range(trucks):
                factors.append(Factor((start + i, start + width + i, start + k), log_table(load[k])))
    for start in range(0, width * steps, width):
        for i, j in combinations(range(trucks, width), 2):
            factors.append(Factor((start + i, start + j), log_table(_one_each(places, trucks))))
    flat = [state for step in plan for state in step]
    last = width * (steps - 1)
    observed = [*range(width), *range(last + trucks, last + width)]
    return ObservedModel(FactorGraph(cardinalities, factors), {i: flat[i] for i in observed})


def _roads(places: int, rng: np.random.Generator) -> Floats:
    """1 where a truck can go in a step, shape (places, places)."""
    table = np.eye(places)
    links = [(i, int(rng.integers(i))) for i in range(1, places)]
    links += [(int(a), int(b)) for a, b in (rng.choice(places, 2, replace=False) for _ in range(places // 2))]
    for a, b in links:
        table[a, b] = table[b, a] = 1
    return table


def _legal_moves(places: int, trucks: int) -> Floats:
    """1 where a package stays, is loaded or is unloaded, wherever the trucks are."""
    table = np.eye(places + trucks)
    table[:places, places:] = table[places:, :places] = 1
    return table


def _handling(places: int, trucks: int) -> list[Floats]:
    """For each truck, 1 unless a package enters or leaves it where it is not; axes: the package
    before and after, the place of the truck before."""
    tables = []
    for k in range(trucks):
        table = np.ones((places + trucks, places + trucks, places))
        apart = 1 - np.eye(places)
        table[:places, places + k] -= apart
        table[places + k, :places] -= apart
        tables.append(table)
    return tables


def _one_each(places: int, trucks: int) -> Floats:
    """0 where two packages are in one truck."""
    table = np.ones((places + trucks, places + trucks))
    table[range(places, places + trucks), range(places, places + trucks)] = 0
    return table


def _random_plan(road: Floats, trucks: int, packages: int, steps: int, rng: np.random.Generator) -> list[list[int]]:
    """The places of the trucks, then the whereabouts of the packages, at each step."""
    places = len(road)
    now = [int(i) for i in rng.integers(0, places, trucks + packages)]
    plan = [now]
    for _ in range(steps - 1):
        then = [int(rng.choice(np.flatnonzero(road[i]))) for i in now[:trucks]]
        for at in now[trucks:]:
            then.append(_handled(at, now[:trucks], {*now[trucks:], *then[trucks:]}, places, rng))
        plan.append(now := then)
    return plan


def _handled(at: int, trucks: Sequence[int], taken: set[int], places: int, rng: np.random.Generator) -> int:
    """Next place of a package; trucks that hold one before or after this step take no other."""
    if at >= places:
        return trucks[at - places] if rng.random() < 0.5 else at
    free = [places + k for k, place in enumerate(trucks) if place == at and places + k not in taken]
    return free[0] if free and rng.random() < 0.8 else at


def satisfiability(variables: int, ratio: float, rng: np.random.Generator) -> ObservedModel:
    """Random 3-SAT with a number of clauses for each variable: Z is the number of solutions, as the
    CSP of UAI 2014. Clauses that one random assignment violates are left out and replaced."""
    planted = rng.integers(0, 2, (1, variables))
    factors: list[Factor] = []
    while len(factors) < round(ratio * variables):
        drawn = random_3_sat(variables, 1, rng)
        if drawn.log_potential(planted)[0] == 0:
            factors += drawn.factors
    return ObservedModel(FactorGraph([2] * variables, factors))
