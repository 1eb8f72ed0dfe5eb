"""ln Z and MAP beside other packages.

Without options: ln Z of Ising grids by each route and by pgmpy, in one process; elimination beside
numpy's matmul for as many multiply-adds; Bethe and TRW on large grids.

`--family NAME` (or `all`): the networks of `thesis_cli.studies.models.families`, each beside
pyAgrum, pgmpy, Ganak and toulbar2, one after the other, each in a process of its own with a limit
of time and memory. Their times are without the import of the package. An answer counts as exact if
it agrees with the others to 1e-6 nats, or with `benchmarks/families.csv`, which holds what took
longer: `--references` adds to that file what is exact.
"""

import argparse
import csv
import math
import os
import sys
from pathlib import Path

import exact_peers as peers
import numpy as np
from clock import timed
from pgmpy.factors.discrete import DiscreteFactor
from pgmpy.models import DiscreteMarkovNetwork

from thesis_cli.base.child import call
from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import OutOfTime
from thesis_cli.base.files import write_atomic
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.enumeration import log_partition_function
from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.inference.message_passing.belief_propagation import bethe_log_partition_function
from thesis_cli.inference.message_passing.trw import trw_log_partition_function
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.studies.models.examples import ising
from thesis_cli.studies.models.families import MEMBERS

REFERENCES = Path(__file__).with_name("families.csv")
COLUMNS = ("network", "method", "answer", "value", "error", "seconds", "ratio", "lower", "upper")
AGREE = 1e-6
"""Nats, and relative error, up to which two exact answers agree."""


def by_pgmpy(graph):
    """pgmpy's partition function, which multiplies the factors into one table."""
    network = DiscreteMarkovNetwork([f.scope for f in graph.factors if len(f.scope) == 2])
    for factor in graph.factors:
        network.add_factors(DiscreteFactor(factor.scope, factor.table.shape, np.exp(factor.table)))
    return math.log(network.get_partition_function())


def small_grid(rng):
    graph = ising(4, 4, 1.0, rng)
    for route in (log_partition_function, bethe_log_partition_function, trw_log_partition_function):
        route(graph)  # compiles
    GridTransfer(graph).log_partition_function()
    routes = {
        "elimination": lambda: Elimination(graph).log_partition_function(),
        "enumeration": lambda: log_partition_function(graph),
        "pgmpy": lambda: by_pgmpy(graph),
    }
    answers = {name: timed(route) for name, route in routes.items()}
    for name, (value, seconds) in answers.items():
        ratio = seconds / answers["elimination"][1]
        print(f"4 x 4   {name:<12} ln Z {value:.10f}  {1e3 * seconds:9.2f} ms  ratio {ratio:.1f}")


def large_grids(rng):
    for n in (10, 16, 20):
        grid = ising(n, n, 1.0, rng)
        for kind in (GridTransfer, Elimination):
            solver, planned = timed(lambda k=kind, g=grid: k(g))
            value, seconds = timed(solver.log_partition_function)
            print(f"{n} x {n} {kind.name:<13} ln Z {value:.8f}  plan {planned:.3f} s, sum {seconds:.4f} s")
    for kind, coupling in (("attractive", 1.0), ("attractive", 3.0), ("mixed", 1.0)):
        glass = random_spin_glass(100, 100, coupling, 1.0, kind, rng).graph()
        for name, method in (("Bethe", bethe_log_partition_function), ("TRW", trw_log_partition_function)):
            result, seconds = timed(lambda m=method, g=glass: m(g))
            end = "" if result.converged else ", not converged"
            print(f"100 x 100 {kind}, coupling {coupling:g}: {name} {result.value:.2f}, {seconds:.2f} s{end}")


def beside_matmul(rng):
    """Elimination and numpy's matmul, both on one core, for as many multiply-adds."""
    side = 1024
    square = rng.random((side, side))
    each = min(timed(lambda: square @ square)[1] for _ in range(5)) / side**3
    for name in ("regular-24x16", "bipartite-20x40", "grid-attractive-15", "diagnosis-40x40", "torus-10"):
        graph = next(member for member in MEMBERS if member.name == name).network().conditioned()
        solver = Elimination(graph)
        work = multiply_adds(graph, solver.order)
        seconds = min(timed(solver.log_partition_function)[1] for _ in range(2))
        print(f"{name:<18} {work:.2e} multiply-adds  {seconds:7.3f} s  {seconds / work / each:6.1f} times matmul")


def multiply_adds(graph, order):
    """Entries of the product of each bucket in this order: one multiply-add each, if two tables meet."""
    around = [set() for _ in graph.cardinalities]
    for factor in graph.factors:
        for i in factor.scope:
            around[i].update(factor.scope)
    total = 0
    for i in order:
        clique = around[i] | {i}
        total += math.prod(graph.cardinalities[j] for j in clique)
        for j in clique:
            around[j] = (around[j] | clique) - {i}
    return total


def attempt(function, *arguments, limit, memory=None):
    """Result of a function in a process of its own, or a few words on why there is none."""
    try:
        return call(function, *arguments, timeout=limit, memory=memory)
    except OutOfTime:
        return "out of time"
    except peers.NotTaken as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - a peer may raise anything, and the run goes on
        words = f"{type(error).__name__}: {error}"
        short = "out of memory" if "alloc" in words or "Memory" in words else words
        return " ".join(short.split())[:60]


def family_rows(member, options, known):
    """A row for each method, in the order of `COLUMNS`."""
    limit, short, memory = options.limit, options.peer_limit or options.limit, int(options.memory * 2**30)
    routes = {
        "thesis-cli": (peers.our_log_z, limit + 20, None, (limit,)),
        "pyAgrum": (peers.pyagrum_log_z, short, memory, ()),
        "pgmpy": (peers.pgmpy_log_z, short, memory, ()),
        "Ganak": (peers.ganak_log_z, short, memory, ()),
        "thesis-cli map": (peers.our_map, limit + 20, None, (limit,)),
        "toulbar2 map": (peers.toulbar2_map, short + 20, memory, (short,)),
    }
    found = {
        method: attempt(function, member.name, *more, limit=seconds, memory=bound)
        for method, (function, seconds, bound, more) in routes.items()
        if not options.method or method in options.method
    }
    ours = {of_map: found.get("thesis-cli map" if of_map else "thesis-cli", "") for of_map in (False, True)}
    rows = []
    for method, each in found.items():
        own = ours["map" in method]
        if isinstance(each, str):
            rows.append([member.name, method, each, *[math.nan] * 6])
            continue
        value, seconds, answer, *bounds = each
        ratio = math.nan if isinstance(own, str) else seconds / own[1]
        rows.append([member.name, method, answer, value, math.nan, seconds, ratio, *(bounds or [math.nan] * 2)])
    for of_map in (False, True):
        judge([row for row in rows if ("map" in row[1]) == of_map], None if of_map else known.get(member.name))
    return rows


def agree(one, other):
    return abs(one - other) <= AGREE * max(1.0, abs(other))


def judge(rows, known):
    """Fill in the errors of some rows of one quantity; exact answers that differ say so."""
    exact = [row[3] for row in rows if row[2] == "exact"]
    truth = known if known is not None else exact[0] if exact else math.nan
    for row in rows:
        row[4] = row[3] - truth
        if row[2] == "exact" and not all(agree(row[3], other) for other in [truth, *exact]):
            row[2] = "DISAGREES"
        if row[7] > truth + AGREE or row[8] < truth - AGREE or row[7] > row[8] + AGREE:
            row[2] = "BOUND BROKEN"


def print_rows(rows):
    for name, method, answer, value, error, seconds, ratio, lower, upper in rows:
        if math.isnan(seconds):
            print(f"{name:<21} {method:<15} {answer}")
        else:
            print(
                f"{name:<21} {method:<15} {answer[:20]:<20} {value:16.9f}  error {error:9.2g}"
                f"  {seconds:8.3f} s  ratio {ratio:.3g}"
                + ("" if math.isnan(lower) or answer == "exact" else f"  in [{lower:.6g}, {upper:.6g}]"),
                flush=True,
            )


def read_references():
    if not REFERENCES.exists():
        return {}
    with REFERENCES.open(newline="") as file:
        return {row["network"]: row for row in csv.DictReader(file)}


def add_references(rows, references):
    """Keep the answer of the first exact method, unless the file has one."""
    for name, method, answer, value, *_ in rows:
        if answer == "exact" and "map" not in method and name not in references:
            references[name] = {"network": name, "ln_z": repr(value), "method": method}
    lines = [",".join(("network", "ln_z", "method"))]
    lines += [",".join(references[m.name].values()) for m in MEMBERS if m.name in references]
    write_atomic({REFERENCES: "\n".join(lines) + "\n"})


def summary(rows, chosen):
    """For each family and for all: who solved how many, and the median ratio where both did."""
    methods = list(dict.fromkeys(row[1] for row in rows))
    print(f"\nsolved, and in brackets the median of their seconds to ours\n{'':12} {'':>4}", end="")
    print("".join(f"{method:>18}" for method in methods), "  within 32")
    groups = {
        family: [m.name for m in chosen if m.family == family] for family in dict.fromkeys(m.family for m in chosen)
    }
    for family, names in [*groups.items(), ("all", [m.name for m in chosen])]:
        cells = []
        for method in methods:
            solved = [row for row in rows if row[0] in names and row[1] == method and row[2] == "exact"]
            ratios = [row[6] for row in solved if not math.isnan(row[6])]
            cells.append(
                f"{len(solved)}" + (f" ({np.median(ratios):.3g})" if ratios and "thesis" not in method else "")
            )
        close = [row for row in rows if row[0] in names and row[1] == "thesis-cli" and abs(row[4]) <= math.log(32)]
        print(f"{family:12} {len(names):4}" + "".join(f"{cell:>18}" for cell in cells), f"{len(close):11}")
    for row in rows:
        if row[2] in ("DISAGREES", "BOUND BROKEN"):
            print(f"{row[0]} {row[1]}: {row[3]:.12g} {row[2].lower()}")


def families(options):
    references = read_references()
    known = {name: float(row["ln_z"]) for name, row in references.items()}
    chosen = [m for m in MEMBERS if {"all", m.family, m.name} & set(options.family)]
    rows = []
    for member in chosen:
        found = family_rows(member, options, known)
        print_rows(found)
        rows += found
        if options.references:
            add_references(found, references)
        if options.csv:
            write_atomic({options.csv: Columns([dict(zip(COLUMNS, row, strict=True)) for row in rows]).csv()})
    summary(rows, chosen)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ["all", *dict.fromkeys(m.family for m in MEMBERS), *(m.name for m in MEMBERS)]
    parser.add_argument("--family", action="append", choices=names, metavar="NAME", help="family or network; all")
    parser.add_argument("--method", action="append", help="method, as in the table; all by default")
    parser.add_argument("--limit", type=float, default=60, help="seconds for each method")
    parser.add_argument("--peer-limit", type=float, help="seconds for each of the other packages; as --limit")
    parser.add_argument("--memory", type=float, default=4, help="GiB for each of the other packages")
    parser.add_argument("--uai", type=Path, metavar="FOLDER", help="networks with published answers")
    parser.add_argument("--csv", type=Path, help="file for the table")
    parser.add_argument("--references", action="store_true", help="keep exact answers in families.csv")
    options = parser.parse_args()
    if options.uai:
        script = str(Path(__file__).with_name("exact_files.py"))  # a small process, whose size no child inherits
        os.execv(sys.executable, [sys.executable, script, str(options.uai), str(options.memory)])
    if options.family:
        return families(options)
    rng = np.random.default_rng(0)
    small_grid(rng)
    large_grids(rng)
    beside_matmul(rng)


if __name__ == "__main__":
    main()
