"""ln Z and the MAP of a network of the families by other packages and by this one: functions that
`thesis_cli.base.child` calls in a process of their own, with a limit of time and memory.

Each takes the name of the network and returns the value, the seconds that it took without the
import of the package, what kind of answer it is, and perhaps bounds.
"""

import math
import time
from pathlib import Path

import numpy as np

from thesis_cli.inference.elimination.contraction import Contraction
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.inference.zeros.leaves import summed
from thesis_cli.inference.zeros.reduction import reduced
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.studies.models.examples import ising
from thesis_cli.studies.models.families import MEMBERS

TINY = 1e-300
"""Below this, a product in double precision may have lost digits."""


def network_of(name):
    return next(member for member in MEMBERS if member.name == name).network()


class NotTaken(Exception):
    """The package does not take the network, or not with an answer that can be used."""


def merged(graph):
    """The same model with one factor for each set of variables, none empty, and the constant."""
    tables, constant = {}, 0.0
    for factor in graph.factors:
        scope = tuple(sorted(factor.scope))
        table = factor.table.transpose([factor.scope.index(i) for i in scope])
        tables[scope] = tables[scope] + table if scope in tables else table
    constant += float(tables.pop((), 0.0))
    highest = {scope: float(table.max()) for scope, table in tables.items()}
    factors = [Factor(scope, table - highest[scope]) for scope, table in tables.items()]
    return FactorGraph(graph.cardinalities, factors), constant + sum(highest.values())


def is_bayesian(graph):
    """Whether each variable heads one factor, which sums to 1 over it."""
    heads = [factor.scope[0] for factor in graph.factors if factor.scope]
    return sorted(heads) == list(range(len(graph.cardinalities))) and all(
        np.allclose(np.exp(factor.table).sum(axis=0), 1) for factor in graph.factors
    )


def pyagrum_log_z(name):
    """Lazy propagation in a Bayesian network: the probability of the evidence.

    Of a Markov network, pyAgrum gives no partition function. It becomes a Bayesian network of
    uniform variables, in which each factor is an observed child that is on with probability
    proportional to the factor.
    """
    import pyagrum

    network = network_of(name)
    began = time.perf_counter()
    net = pyagrum.BayesNet()
    graph, constant, evidence = network.graph, 0.0, dict(network.evidence)
    for i, states in enumerate(graph.cardinalities):
        net.add(pyagrum.RangeVariable(str(i), "", 0, states - 1))
    if is_bayesian(graph):
        conditionals = [(factor.scope, factor.table) for factor in graph.factors]
    else:
        graph, constant = merged(graph)
        constant += math.log(graph.size)
        conditionals = [((i,), np.full(k, -math.log(k))) for i, k in enumerate(graph.cardinalities)]
        for j, factor in enumerate(graph.factors, len(graph.cardinalities)):
            net.add(pyagrum.RangeVariable(str(j), "", 0, 1))
            with np.errstate(divide="ignore"):
                conditionals.append(((j, *factor.scope), np.stack([np.log(-np.expm1(factor.table)), factor.table])))
            evidence[j] = 1
    for (child, *parents), _ in conditionals:
        for parent in parents:
            net.addArc(parent, child)
    for scope, table in conditionals:
        cpt = net.cpt(scope[0])
        order = [scope.index(int(name)) for name in reversed(cpt.names)]
        cpt[:] = np.ascontiguousarray(np.exp(table).transpose(order))
    inference = pyagrum.LazyPropagation(net)
    inference.setEvidence({str(i): state for i, state in evidence.items()})
    inference.eraseAllTargets()
    inference.makeInference()
    probability = inference.evidenceProbability()
    if probability < TINY:
        raise NotTaken("underflow")
    return math.log(probability) + constant, time.perf_counter() - began, "exact"


def pgmpy_log_z(name):
    """Calibrated junction tree: the sum of a clique's belief."""
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.inference import BeliefPropagation
    from pgmpy.models import DiscreteMarkovNetwork

    network = network_of(name)
    began = time.perf_counter()
    graph, constant = merged(network.conditioned())
    constant += sum(
        math.log(k) for i, k in enumerate(graph.cardinalities) if i not in {v for f in graph.factors for v in f.scope}
    )
    model = DiscreteMarkovNetwork()
    for factor in graph.factors:
        names = [str(i) for i in factor.scope]
        model.add_nodes_from(names)
        model.add_edges_from((a, b) for a in names for b in names if a < b)
        model.add_factors(DiscreteFactor(names, factor.table.shape, np.exp(factor.table)))
    inference = BeliefPropagation(model)
    inference.calibrate()
    belief = next(iter(inference.get_clique_beliefs().values()))
    total = float(belief.values.sum())
    if not TINY < total < math.inf:
        raise NotTaken("underflow")
    return math.log(total) + constant, time.perf_counter() - began, "exact"


def ganak_log_z(name):
    """The model counter Ganak, on our encoding."""
    from thesis_cli.inference.external.model_counting import ModelCounter

    network = network_of(name)
    began = time.perf_counter()
    value = ModelCounter(network.conditioned()).log_partition_function()
    return value, time.perf_counter() - began, "exact"


def toulbar2_map(name, limit):
    """The largest log-potential, by toulbar2 at its defaults; costs have 6 decimal digits."""
    import pytoulbar2

    network = network_of(name)
    began = time.perf_counter()
    graph, _ = merged(network.conditioned())
    problem = pytoulbar2.CFN(resolution=6, verbose=-1)
    for i, states in enumerate(graph.cardinalities):
        problem.AddVariable(str(i), range(states))
    top = 1e9
    for factor in graph.factors:
        costs = np.minimum(-factor.table, top).reshape(-1).tolist()
        problem.AddFunction([str(i) for i in factor.scope], costs)
    found = problem.Solve(timeLimit=math.ceil(limit))
    if not found:
        raise NotTaken("no solution")
    states = np.array([found[0]])
    value = float(network.conditioned().log_potential(states)[0])
    return value, time.perf_counter() - began, "not proven" if problem.Limit else "exact"


_TINY = FactorGraph([2, 2, 2], [Factor((0, 1, 2), np.zeros((2, 2, 2)))])


def our_log_z(name, limit):
    """The first answer of `thesis-cli estimate-z`, and the best bounds that hold."""
    import thesis_cli as tc

    tc.estimate_z(_TINY, method="exact")
    for solver in (Elimination, Contraction):
        solver(_TINY).log_partition_function()  # loads what is compiled
    graph = network_of(name).conditioned()
    began = time.perf_counter()
    found = tc.estimate_z(graph, time_limit=limit).estimates
    seconds = time.perf_counter() - began
    lower = max((each.value for each in found if each.kind in ("exact", "lower bound")), default=-math.inf)
    upper = min((each.value for each in found if each.kind in ("exact", "upper bound")), default=math.inf)
    return found[0].value, seconds, found[0].kind, lower, upper


def our_map(name, limit):
    """The largest log-potential by `thesis-cli map`, and whether it is proven."""
    import thesis_cli as tc

    tc.map_state(_TINY)
    graph = network_of(name).conditioned()
    began = time.perf_counter()
    found = tc.map_state(graph, time_limit=limit).found
    return found.value, time.perf_counter() - began, "exact" if found.guarantee == "exact" else "not proven"


LEAST = 2**24
"""Bytes of a sum from which its peak is measured: the interpreter's own are a small part."""

KINDS = {"grid transfer": GridTransfer, "elimination": Elimination, "contraction": Contraction}


def resident(field):
    """Bytes of a line of the process's status: VmRSS now, VmHWM at most."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return 1024 * int(line.split()[1])


def our_peak(name, kind, most, memory):
    """Predicted bytes and seconds, slices, and the measured bytes and seconds; None if it is left out."""
    graph = network_of(name).conditioned()
    if kind != "grid transfer":
        graph, _ = summed(reduced(graph))
    solver = KINDS[kind](graph, memory)
    return _peak(solver.log_partition_function, solver, most, KINDS[kind])


def our_back_peak(name, most, memory, share):
    """The same for marginals along a tree, in a share of the memory of the pass that keeps all tables."""
    graph = reduced(network_of(name).conditioned()).graph
    whole = Contraction(graph, memory).back
    if whole.cost.memory * share < LEAST or whole.cost.seconds > most:
        return None
    solver = Contraction(graph, int(whole.cost.memory * share))
    return _peak(solver.marginals, solver.back, most, Contraction)


def _peak(run, plan, most, kind):
    cost = plan.cost
    if cost.memory < LEAST or cost.seconds > most:
        return None
    small = kind(ising(6, 6, 1.0, np.random.default_rng(0)))
    small.log_partition_function()
    if kind is Contraction:
        small.marginals()
    Path("/proc/self/clear_refs").write_text("5")
    before, began = resident("VmRSS"), time.process_time()
    run()
    seconds = time.process_time() - began
    return cost.memory, cost.seconds, getattr(plan, "slices", 1), resident("VmHWM") - before, seconds
