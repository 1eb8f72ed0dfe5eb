"""Networks that look like those of the public inference competitions (UAI 2006 to 2014).

`python -m thesis_cli.studies.models.families FOLDER` (`make families`) writes them all as UAI
files, `NAME.uai`, with evidence in `NAME.evid` where there is some, and lists them. Each has a seed
of its own, made of its name. What each family resembles, and its shape, stands at its generator.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.files import write_atomic
from thesis_cli.models import uai
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.studies.models.examples import random_3_sat
from thesis_cli.studies.models.network import (
    BayesianNetwork,
    ObservedModel,
    bipartite,
    circuit,
    deterministic_grid,
    diagnosis,
    grid,
    inherited,
    log_table,
    multiplier,
    noisy_or_chain,
    pedigree,
    regular,
    torus,
    unordered,
)


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


def lineage(
    generations: int, people: int, loci: int, alleles: int, typed: float, rng: np.random.Generator
) -> ObservedModel:
    """Genetic linkage in a deep pedigree with loops: parents of each person are two of the generation before,
    so that cousins marry; as the largest pedigrees of UAI 2008. The last generation is typed.

    Parameters
    ----------
    people : of each generation.
    alleles : of each locus.
    typed : share of the others whose genotypes are observed.
    """
    net = BayesianNetwork(rng)
    frequencies = [rng.dirichlet(np.full(alleles, 3.0)) for _ in range(loci)]
    recombination = rng.uniform(0.02, 0.2, loci)
    counts = [alleles] * loci
    genes = [[(net.add([], f), net.add([], f)) for f in frequencies] for _ in range(people)]
    observed = []
    for generation in range(1, generations):
        before = genes[-people:]
        for person in range(people):
            near = [(person + step) % people for step in range(4)]  # neighbours marry, so that the width stays
            pair = rng.choice(near, 2, replace=False)
            sides = [inherited(net, before[parent], counts, recombination) for parent in pair]
            genes.append(list(zip(*sides, strict=True)))
            if generation == generations - 1 or rng.random() < typed:
                observed += [net.add(own, unordered(alleles)) for own in genes[-1]]
    return net.network(observed)


def dynamic(steps: int, chains: int, states: int, links: int, rng: np.random.Generator) -> ObservedModel:
    """Dynamic Bayesian network: hidden chains, each of which depends on itself and on others a step before,
    and one noisy observation of each at each step; as the DBN of UAI 2008 to 2014.

    Parameters
    ----------
    links : other chains that a chain depends on, the nearest.
    """
    net = BayesianNetwork(rng)
    last = [net.add([], rng.dirichlet(np.ones(states))) for _ in range(chains)]
    near = [[(c + k) % chains for k in range(links + 1)] for c in range(chains)]
    laws = [np.moveaxis(rng.dirichlet(np.full(states, 0.5), (states,) * (links + 1)), -1, 0) for _ in range(chains)]
    seen = rng.dirichlet(np.full(states, 0.5), states).T
    observed = []
    for _ in range(steps):
        last = [net.add([last[k] for k in near[c]], laws[c]) for c in range(chains)]
        observed += [net.add([chain], seen) for chain in last]
    return net.network(observed)


def causes(layers: int, width: int, parents: int, seen: float, rng: np.random.Generator) -> ObservedModel:
    """Layers of noisy-or, each node of which has some causes in the layer before and takes in one at a time; as
    Promedas of UAI 2008 to 2014. A share of the last layer is observed.
    """
    net = BayesianNetwork(rng)
    layer = [net.add([], [1 - p, p]) for p in np.exp(rng.uniform(np.log(0.02), np.log(0.3), width))]
    for _ in range(layers - 1):
        layer = [
            noisy_or_chain(
                net,
                sorted(int(i) for i in rng.choice(layer, parents, replace=False)),
                rng.uniform(0.2, 0.9, parents),
                rng.uniform(0.001, 0.05),
            )
            for _ in range(width)
        ]
    return net.network([i for i in layer if rng.random() < seen] or layer[:1])


def segmentation(side: int, states: int, kept: float, strength: float, rng: np.random.Generator) -> ObservedModel:
    """Regions of a picture and their labels: a grid with diagonals, of which some edges are kept, with normal
    scores of each label and a reward for neighbours that share it; as Segmentation of UAI 2014.

    Parameters
    ----------
    kept : share of the edges.
    strength : standard deviation of the scores in nats.
    """
    at = np.arange(side**2).reshape(side, side)
    pairs = [(at[:, :-1], at[:, 1:]), (at[:-1], at[1:]), (at[:-1, :-1], at[1:, 1:])]
    edges = [(int(i), int(j)) for a, b in pairs for i, j in zip(a.ravel(), b.ravel(), strict=True)]
    factors = [Factor((i,), rng.normal(0, strength, states)) for i in range(side**2)]
    factors += [Factor(edge, rng.uniform(0, 2) * np.eye(states)) for edge in edges if rng.random() < kept]
    return ObservedModel(FactorGraph([states] * side**2, factors))


@dataclass(frozen=True)
class Member:
    """One network of a family: its generator and the arguments for it."""

    family: str
    name: str
    generator: Callable[..., ObservedModel]
    arguments: tuple[Any, ...]

    def network(self) -> ObservedModel:
        """The network, the same each time."""
        return self.generator(*self.arguments, np.random.default_rng(list(self.name.encode())))


MEMBERS = tuple(
    Member(family, f"{family}-{name}", generator, arguments)
    for family, generator, sizes in (
        (
            "grid",
            grid,
            {
                "mixed-10": (10, 1.0, "mixed"),
                "attractive-15": (15, 1.0, "attractive"),
                "mixed-20": (20, 2.0, "mixed"),
                "attractive-20": (20, 0.5, "attractive"),
                "strong-20": (20, 10.0, "mixed"),
                "mixed-30": (30, 1.0, "mixed"),
            },
        ),
        ("torus", torus, {"10": (10, 2.0), "13": (13, 2.0)}),
        (
            "ratio",
            deterministic_grid,
            {"50-12": (12, 0.5), "50-18": (18, 0.5), "75-20": (20, 0.75), "90-24": (24, 0.9), "90-34": (34, 0.9)},
        ),
        (
            "regular",
            regular,
            {
                "30x10": (30, 3, 10, 1.0),
                "24x16": (24, 3, 16, 1.0),
                "40x10": (40, 3, 10, 1.0),
                "60x16": (60, 3, 16, 1.0),
                "40x20": (40, 4, 20, 0.5),
            },
        ),
        ("bipartite", bipartite, {"20x40": (20, 40, 1.0), "24x60": (24, 60, 0.5), "40x40": (40, 40, 0.5)}),
        (
            "circuit",
            circuit,
            {"100": (20, 80, 20), "200": (36, 164, 40), "400": (60, 340, 60)},
        ),
        ("multiplier", multiplier, {"6": (6,), "9": (9,)}),
        (
            "diagnosis",
            diagnosis,
            {"20x30": (20, 30, 5), "40x40": (40, 40, 4), "30x20-full": (30, 20, 12), "60x80": (60, 80, 14)},
        ),
        (
            "pedigree",
            pedigree,
            {
                "200": (5, 9, 3, 3, 0.5),
                "300": (6, 12, 5, 3, 0.35),
                "500": (10, 20, 4, 3, 0.35),
                "600": (8, 15, 6, 4, 0.5),
                "1000": (8, 20, 8, 5, 0.35),
            },
        ),
        ("smokers", friends_and_smokers, {"10": (10, 0.2), "20": (20, 0.2), "28": (28, 0.0)}),
        (
            "transitive",
            transitive_friends,
            {"9": (9, 1.0), "12": (12, 1.0), "hard-9": (9, np.inf)},
        ),
        ("transport", transport, {"4x8": (4, 1, 3, 8), "6x10": (6, 2, 4, 10), "8x12": (8, 2, 6, 12)}),
        (
            "lineage",
            lineage,
            {"15x8": (15, 8, 2, 2, 0.2), "15x20": (15, 20, 2, 2, 0.1), "40x20": (40, 20, 2, 2, 0.1)},
        ),
        ("dbn", dynamic, {"20x6": (20, 6, 2, 2), "40x8": (40, 8, 2, 3), "20x6-4": (20, 6, 4, 2)}),
        ("promedas", causes, {"2x60": (2, 60, 8, 0.3), "3x40": (3, 40, 6, 0.5), "3x120": (3, 120, 10, 0.2)}),
        ("segments", segmentation, {"6": (6, 20, 0.8, 1.0), "12": (12, 20, 0.6, 1.0), "15": (15, 20, 0.9, 1.0)}),
        ("sat", satisfiability, {"50-3": (50, 3.0), "75-3.5": (75, 3.5), "120-4": (120, 4.0)}),
    )
    for name, arguments in sizes.items()
)
"""All networks; sizes of each family from easy to hard."""


def files(member: Member) -> dict[str, str]:
    """Name -> content of the files of a network."""
    network = member.network()
    found = {f"{member.name}.uai": uai.write(network.graph)}
    if network.evidence:
        pairs = "".join(f"{i} {state}\n" for i, state in network.evidence.items())
        found[f"{member.name}.evid"] = f"{len(network.evidence)}\n{pairs}"
    return found


def main() -> int:
    """Write the networks into the folder that is named on the command line."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m thesis_cli.studies.models.families FOLDER\n")
        return 2
    for member in MEMBERS:
        network = member.network()
        write_atomic({Path(sys.argv[1], name): text for name, text in files(member).items()})
        observed = f", {len(network.evidence)} observed" if network.evidence else ""
        sys.stdout.write(f"{member.name:18} {network.graph.describe()}{observed}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
