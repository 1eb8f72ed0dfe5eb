"""Networks that grow layer after layer, or on a plane: generations of a pedigree, slices of time, causes of
causes, and the regions of a picture.
"""

from __future__ import annotations

import numpy as np

from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.studies.models.network import (
    BayesianNetwork,
    ObservedModel,
    inherited,
    noisy_or_chain,
    unordered,
)


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
