"""Models with evidence: Bayesian networks that are drawn variable by variable, and random families.

* Pairwise models with positive tables: grids, tori, regular graphs, bipartite graphs.
* Causal networks: grids with deterministic nodes, logic circuits, diagnosis by noisy-or, and genetic
  linkage.

Each generator says which public networks it resembles; `logical_networks` has models made of rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.spin_glass import Kind, random_spin_glass


@dataclass(frozen=True)
class ObservedModel:
    """A model and the states at which some of its variables are observed."""

    graph: FactorGraph
    evidence: Mapping[int, int] = field(default_factory=dict)

    def conditioned(self) -> FactorGraph:
        """The model given the evidence."""
        return self.graph.condition(self.evidence)


def log_table(entries: object) -> Floats:
    """Logarithms of non-negative numbers; -inf for 0."""
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(entries, dtype=np.float64))


class BayesianNetwork:
    """A Bayesian network that grows in topological order, and one configuration drawn from it.

    Evidence taken from that configuration is possible, whatever zeros the tables have.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._cardinalities: list[int] = []
        self._factors: list[Factor] = []
        self._drawn: list[int] = []

    def add(self, parents: Sequence[int], conditional: object) -> int:
        """Add a variable and return its number.

        Parameters
        ----------
        conditional : P(variable | parents), shape (states, *states of the parents).
        """
        table = np.asarray(conditional, dtype=np.float64)
        number = len(self._cardinalities)
        self._cardinalities.append(table.shape[0])
        self._factors.append(Factor((number, *parents), log_table(table)))
        row = table.T[tuple(self._drawn[parent] for parent in reversed(parents))]
        self._drawn.append(int(self._rng.choice(row.size, p=row)))
        return number

    def network(self, observed: Iterable[int]) -> ObservedModel:
        """The network, with some variables observed at the states that were drawn."""
        return ObservedModel(FactorGraph(self._cardinalities, self._factors), {i: self._drawn[i] for i in observed})

    @property
    def size(self) -> int:
        """Number of variables so far."""
        return len(self._cardinalities)


_SPIN = np.array([-1.0, 1.0])


def grid(side: int, coupling: float, kind: Kind, rng: np.random.Generator) -> ObservedModel:
    """Ising grid with fields in [-1, 1], as Grids of UAI 2008 to 2014.

    Parameters
    ----------
    coupling : largest coupling in nats; those of the competition are up to 10.
    """
    return ObservedModel(random_spin_glass(side, side, coupling, 1.0, kind, rng).graph())


def torus(side: int, coupling: float, rng: np.random.Generator) -> ObservedModel:
    """Ising grid with mixed couplings that wraps around, as `grid...wrap` of UAI 2008."""
    at = np.arange(side**2).reshape(side, side)
    edges = [pair for axis in (0, 1) for pair in zip(at.ravel(), np.roll(at, -1, axis).ravel(), strict=True)]
    return _ising(side**2, [(int(i), int(j)) for i, j in edges], coupling, rng)


def bipartite(visible: int, hidden: int, coupling: float, rng: np.random.Generator) -> ObservedModel:
    """Complete bipartite Ising model with mixed couplings, as the DBN of UAI 2014.

    Its width is the smaller of the two numbers.
    """
    edges = [(i, visible + j) for i in range(visible) for j in range(hidden)]
    return _ising(visible + hidden, edges, coupling, rng)


def regular(variables: int, degree: int, states: int, strength: float, rng: np.random.Generator) -> ObservedModel:
    """Random regular graph whose tables are normal, as the many-state pairwise models of UAI 2010
    (protein side chains, object detection, image segmentation).

    Parameters
    ----------
    degree : number of neighbours of each variable; `variables * degree` must be even.
    strength : standard deviation of the log-potentials in nats.
    """
    edges = _regular_edges(variables, degree, rng)
    factors = [Factor((i,), rng.normal(0, strength, states)) for i in range(variables)]
    factors += [Factor(edge, rng.normal(0, strength, (states, states))) for edge in edges]
    return ObservedModel(FactorGraph([states] * variables, factors))


def _ising(variables: int, edges: list[tuple[int, int]], coupling: float, rng: np.random.Generator) -> ObservedModel:
    """Fields in [-1, 1] and couplings in [-coupling, coupling] on a graph."""
    factors = [Factor((i,), rng.uniform(-1, 1) * _SPIN) for i in range(variables)]
    factors += [Factor(edge, coupling * rng.uniform(-1, 1) * np.outer(_SPIN, _SPIN)) for edge in edges]
    return ObservedModel(FactorGraph([2] * variables, factors))


def _regular_edges(variables: int, degree: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Pair the ends of edges at random until no edge is a loop or double."""
    ends = np.repeat(np.arange(variables), degree)
    while True:
        pairs = np.sort(rng.permutation(ends).reshape(-1, 2), axis=1)
        edges = {(int(i), int(j)) for i, j in pairs if i != j}
        if len(edges) == len(pairs):
            return sorted(edges)


_GATES = {
    "and": [[0, 0], [0, 1]],
    "or": [[0, 1], [1, 1]],
    "nand": [[1, 1], [1, 0]],
    "nor": [[1, 0], [0, 0]],
    "xor": [[0, 1], [1, 0]],
    "not": [1, 0],
}

FULL_PARENTS = 12
"""Most parents of a noisy-or that is written as one table."""


def deterministic_grid(side: int, share: float, rng: np.random.Generator) -> ObservedModel:
    """Grid in which each node depends on the nodes above and to the left, and a share of the nodes
    deterministically; the last corner is observed. As `50-20-5` or `90-30-1` of UAI 2008.

    They are those of T. Sang, P. Beame and H. Kautz, Performing Bayesian inference by weighted
    model counting, AAAI 2005.
    """
    net = BayesianNetwork(rng)
    number: dict[tuple[int, int], int] = {}
    for row in range(side):
        for column in range(side):
            parents = [number[at] for at in ((row - 1, column), (row, column - 1)) if at in number]
            on = rng.uniform(0, 1, (2,) * len(parents))
            if parents and rng.random() < share:
                on = rng.integers(0, 2, on.shape).astype(np.float64)
            number[row, column] = net.add(parents, [1 - on, on])
    return net.network([number[side - 1, side - 1]])


def circuit(inputs: int, gates: int, reach: int, rng: np.random.Generator) -> ObservedModel:
    """Logic circuit with uniform inputs and observed outputs, as the ISCAS circuits of UAI 2006.

    Parameters
    ----------
    reach : a gate takes its inputs from so many wires before it; the width grows with it.
    """
    net = BayesianNetwork(rng)
    used: set[int] = set()
    for _ in range(inputs):
        net.add([], [0.5, 0.5])
    names = list(_GATES)
    for _ in range(gates):
        table = np.array(_GATES[names[rng.integers(len(names))]], dtype=np.float64)
        wires = net.size - 1 - rng.choice(min(reach, net.size), table.ndim, replace=False)
        parents = [int(wire) for wire in wires]
        used.update(parents)
        net.add(parents, [1 - table, table])
    return net.network(sorted(set(range(inputs, net.size)) - used))


def multiplier(bits: int, rng: np.random.Generator) -> ObservedModel:
    """Array multiplier of two uniform numbers whose product is observed, as the circuit c6288 of
    ISCAS: Z is the number of pairs with that product, divided by 4^bits."""
    net = BayesianNetwork(rng)
    a, b = ([net.add([], [0.5, 0.5]) for _ in range(bits)] for _ in range(2))

    def gate(name: str, *wires: int) -> int:
        on = np.array(_GATES[name], dtype=np.float64)
        return net.add(wires, [1 - on, on])

    def full_adder(x: int, y: int, carry: int) -> tuple[int, int]:
        either = gate("xor", x, y)
        return gate("xor", either, carry), gate("or", gate("and", x, y), gate("and", either, carry))

    def half_adder(x: int, y: int) -> tuple[int, int]:
        return gate("xor", x, y), gate("and", x, y)

    product: list[int] = []
    partial = [gate("and", x, b[0]) for x in a]
    for y in b[1:]:
        product.append(partial[0])
        rest, row = partial[1:], [gate("and", x, y) for x in a]
        bit, carry = half_adder(rest[0], row[0])
        partial = [bit]
        for k in range(1, bits):
            bit, carry = full_adder(rest[k], row[k], carry) if k < len(rest) else half_adder(row[k], carry)
            partial.append(bit)
        partial.append(carry)
    return net.network(product + partial)


def diagnosis(diseases: int, findings: int, causes: int, rng: np.random.Generator) -> ObservedModel:
    """Two layers, diseases and findings, each finding a noisy-or of some diseases and all observed:
    as QMR-DT and Promedas of UAI 2008 to 2014.

    Parameters
    ----------
    causes : diseases that may cause a finding. Up to `FULL_PARENTS` they share one table; above,
        a chain of auxiliary variables takes one at a time, as Promedas does.
    """
    net = BayesianNetwork(rng)
    for prior in np.exp(rng.uniform(np.log(0.02), np.log(0.3), diseases)):
        net.add([], [1 - prior, prior])
    observed = []
    for _ in range(findings):
        parents = sorted(int(i) for i in rng.choice(diseases, causes, replace=False))
        inhibited, leak = rng.uniform(0.2, 0.9, causes), rng.uniform(0.001, 0.05)
        add = _noisy_or if causes <= FULL_PARENTS else noisy_or_chain
        observed.append(add(net, parents, inhibited, leak))
    return net.network(observed)


def _noisy_or(net: BayesianNetwork, parents: Sequence[int], inhibited: Floats, leak: float) -> int:
    """P(off | parents) = (1 - leak) times the inhibition of each parent that is on."""
    off = np.array(1 - leak)
    for q in inhibited:
        off = off[..., np.newaxis] * np.array([1.0, q])
    return net.add(parents, [off, 1 - off])


def noisy_or_chain(net: BayesianNetwork, parents: Sequence[int], inhibited: Floats, leak: float) -> int:
    """A noisy-or by auxiliary variables, each of which takes in one parent."""
    last = net.add([], [1 - leak, leak])
    for parent, q in zip(parents, inhibited, strict=True):
        off = np.array([[1.0, q], [0.0, 0.0]])  # axes: what is on so far, the parent
        last = net.add([last, parent], [off, 1 - off])
    return last


def pedigree(
    founders: int, children: int, loci: int, alleles: int, typed: float, rng: np.random.Generator
) -> ObservedModel:
    """Genetic linkage: alleles of each person at each locus, what of them is inherited, and
    unordered genotypes, observed for the youngest and a share of the others. As `pedigree1` to
    `pedigree51` of UAI 2008.

    The model is that of M. Fishelson and D. Geiger, Exact genetic linkage computations for general
    pedigrees, Bioinformatics 2002. A selector chooses whether a parent passes on what comes from
    its father or its mother; those of neighbouring loci differ with the probability of
    recombination.

    Parameters
    ----------
    alleles : most alleles of a locus; each has 2 at least.
    typed : share of the persons whose genotypes are observed.
    """
    net = BayesianNetwork(rng)
    counts = rng.integers(2, alleles + 1, loci).tolist()
    frequencies = [rng.dirichlet(np.full(count, 3.0)) for count in counts]
    recombination = rng.uniform(0.02, 0.2, loci)
    genes = [[(net.add([], f), net.add([], f)) for f in frequencies] for _ in range(founders)]
    parents = (0, 0)
    for child in range(children):
        if child % 3 == 0:  # a couple has three children
            parents = _couple(len(genes), rng)
        sides = [inherited(net, genes[parent], counts, recombination) for parent in parents]
        genes.append(list(zip(*sides, strict=True)))
    observed = []
    for person in genes:
        phenotypes = [net.add(pair, unordered(count)) for pair, count in zip(person, counts, strict=True)]
        if person is genes[-1] or rng.random() < typed:
            observed += phenotypes
    return net.network(observed)


def _couple(persons: int, rng: np.random.Generator) -> tuple[int, int]:
    """Two persons of the youngest eight."""
    a, b = persons - 1 - rng.choice(min(persons, 8), 2, replace=False)
    return int(a), int(b)


def inherited(
    net: BayesianNetwork, parent: Sequence[tuple[int, int]], counts: Sequence[int], recombination: Floats
) -> list[int]:
    """The alleles that a child has from one parent, a variable for each locus."""
    selectors = [net.add([], [0.5, 0.5])]
    for theta in recombination[1:]:
        selectors.append(net.add(selectors[-1:], [[1 - theta, theta], [theta, 1 - theta]]))
    alleles = []
    for pair, selector, count in zip(parent, selectors, counts, strict=True):
        table = np.zeros((count, count, count, 2))  # axes: child, both alleles of the parent, selector
        for a in range(count):
            table[a, a, :, 0] = table[a, :, a, 1] = 1
        alleles.append(net.add([*pair, selector], table))
    return alleles


def unordered(alleles: int) -> Floats:
    """P(phenotype | two alleles): the phenotype is the set of both."""
    pairs = [(a, b) for a in range(alleles) for b in range(a + 1)]
    table = np.zeros((len(pairs), alleles, alleles))
    for k, (a, b) in enumerate(pairs):
        table[k, a, b] = table[k, b, a] = 1
    return table
