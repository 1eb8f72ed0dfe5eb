"""Synthetic rows by OpenDP's MST or AIM; runs in an environment of its own, for `private_peers.py`.

    python private_peers_rows.py MECHANISM RHO TABLE OUT SECONDS

TABLE and OUT are CSV files of codes; the first row of TABLE has the cardinality of each column in
its name, as in `wage:24`. RHO is the zero-concentrated budget, for the replacement of a row. The
process ends when it has used SECONDS of processor time.
"""

import math
import os
import resource
import sys
import time
from pathlib import Path

os.environ |= {
    "OMP_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
}

import numpy as np

SELECTING = 0.05
"""Share of the budget by which MST and AIM select marginals: 10% of the half that one-way marginals
leave.
"""
ITERATIONS = {"AIM": 200, "MST": 1000}
"""Iterations of mirror descent in each fit; AIM fits after every marginal, from the fit before."""
LAST = 1000
"""Iterations of AIM's last fit."""
MODEL = 20.0
"""Largest model of AIM in MB; with the default of 80 a fit takes minutes."""
ROUNDS, MOST_ROUNDS = 4, 52
"""Rounds that AIM plans for each column, and at most. With the default of 16 for each column it is
slow, and leaves the first model of 44 columns so few of the MB that it measures no pair.
"""
PRECISION = 1e-6
SAMPLING = "sample"
"""Independent rows: the default of mbi 1.1.0, "round", correlates columns that are independent in
its model.
"""


def scale(make_chain, d_in, d_out, bounds=None, T=None):
    """Least noise scale that meets the budget, but for a relative 1e-6: OpenDP bisects some 200
    times, to the last bit, which is most of its time.
    """

    def meets(at):
        return make_chain(at).check(d_in, d_out)

    low = high = 1.0
    while not meets(high):
        high *= 4
        if high > 1e30:
            raise ValueError("no scale is large enough")
    while meets(low):
        low /= 4
        if low < 1e-30:
            raise ValueError("no scale is small enough")
    while high > low * (1 + PRECISION):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def below(share):
    """Next smaller number, by enough for 43 of them to add up to less than their sum: OpenDP takes
    the next double, and refuses MST of 44 columns for want of budget.
    """
    return share * (1 - 1e-12)


def project(model, attrs):
    """A marginal by elimination among the columns that the model connects to it: the same as by
    `MarkovRandomField.project`, which eliminates all columns, for each of some 1,000 pairs in each
    round of AIM.
    """
    from mbi import CliqueVector, Factor
    from mbi.marginal_oracles import variable_elimination

    attrs = (attrs,) if isinstance(attrs, str) else tuple(attrs)
    if model.marginals.supports(attrs):
        return model.marginals.project(attrs)
    parts = []
    for attr in attrs:
        if any(attr in part for part in parts):
            continue
        part = {attr}
        while grown := {a for cl in model.potentials.cliques if part & set(cl) for a in cl} - part:
            part |= grown
        parts.append(part)
    values, own = np.ones(()), []
    for part in parts:
        wanted = tuple(a for a in attrs if a in part)
        if model.marginals.supports(wanted):
            found = model.marginals.project(wanted)
        else:
            arrays = {cl: x for cl, x in model.potentials.arrays.items() if set(cl) <= part}
            some = CliqueVector(model.domain, list(arrays), arrays)
            found = variable_elimination(some, wanted, model.total)
        values = np.multiply.outer(values, np.asarray(found.values) / float(model.total))
        own += wanted
    values = np.transpose(values, [own.index(a) for a in attrs]) * float(model.total)
    return Factor(model.domain.project(attrs), values)


def rows_of(mechanism, rho, codes, cardinalities):
    """Codes of as many rows, and the size of each marginal of the model.

    OpenDP counts rows that are added or removed. A replaced row is two of them, but moves a marginal
    by sqrt(2) and not by 2, and the L1 scores that select marginals by 2; `contributions=2` would
    take 2 for both. So a replacement at rho costs as much as an addition at r, where measuring costs
    2 (1 - s) r, selecting 4 s r, and s is the share of `SELECTING`: rho = 2 (1 + s) r.
    """
    import jax
    import opendp.extras.mbi._mst
    import opendp.mod
    import opendp.prelude as dp
    import polars as pl
    from mbi import MarkovRandomField
    from mbi.estimation import mirror_descent

    jax.config.update("jax_compilation_cache_dir", str(Path.home() / ".cache" / "private-peers"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    dp.enable_features("contrib")
    opendp.mod.binary_search_param, MarkovRandomField.project = scale, project
    opendp.extras.mbi._mst.prior = below
    began = time.process_time()

    def fit(domain, loss, *, potentials=None, iterations=ITERATIONS[mechanism]):
        model = mirror_descent(domain, loss, potentials=potentials, iters=iterations)
        print(f"{time.process_time() - began:.0f} s: {len(model.cliques)} cliques", file=sys.stderr, flush=True)
        return model

    names = [f"c{i}" for i in range(len(cardinalities))]
    budget = rho / (2 * (1 + SELECTING))
    context = dp.Context.compositor(
        data=pl.LazyFrame(codes, schema=names),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=budget),
    )
    if mechanism == "MST":
        chosen = dp.mbi.MST(estimator=fit)
    else:
        chosen = dp.mbi.AIM(queries=2, estimator=fit, max_size=MODEL, rounds=min(ROUNDS * len(names), MOST_ROUNDS))
    keys = {name: list(range(size)) for name, size in zip(names, cardinalities, strict=True)}
    table = context.query(rho=budget).select(*names).contingency_table(keys=keys, algorithm=chosen).release()
    if mechanism == "AIM":
        model = table.model
        table.model = fit(model.domain, table.marginals.flatten(), potentials=model.potentials, iterations=LAST)
    rows = table.synthesize(rows=len(codes), method=SAMPLING).select(names).to_numpy().astype(float)
    rng = np.random.default_rng(0)
    for column in rows.T:  # OpenDP adds a level for missing values, to which noise gives a few rows
        missing = np.isnan(column)
        column[missing] = rng.choice(column[~missing], missing.sum())
    return rows.astype(np.int64)


def main():
    mechanism, rho, source, out, seconds = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
    with open(source, encoding="ascii") as lines:
        cardinalities = [int(name.split(":")[1]) for name in lines.readline().split(",")]
    codes = np.loadtxt(source, np.int64, delimiter=",", skiprows=1)
    np.savetxt(out, rows_of(mechanism, float(rho), codes, cardinalities), "%d", ",")
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(f"{used.ru_utime + used.ru_stime:.1f}", file=sys.stderr)


if __name__ == "__main__":
    main()
