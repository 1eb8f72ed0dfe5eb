"""Synthetic rows by other packages; runs in an environment of their own, for `private_peers.py`.

    python private_peers_rows.py PEER EPSILON DELTA RHO REPETITION TABLE OUT

TABLE and OUT are CSV files of codes; the first row of TABLE has the cardinality of each column in
its name, as in `wage:24`. RHO is the zero-concentrated budget that (EPSILON, DELTA) stands for.
"""

import functools
import sys
import time

import numpy as np

SAMPLING = "sample"
"""Independent rows: the default of mbi 1.1.0, "round", correlates columns that are independent in
its model.
"""


def smartnoise(peer, epsilon, delta, repetition, codes, cardinalities):
    """Add-or-remove neighbours; noise of NumPy's legacy generator; levels are those that occur."""
    import pandas as pd
    from mbi import MarkovRandomField
    from snsynth.aim import AIMSynthesizer
    from snsynth.mst import MSTSynthesizer

    drawn = functools.partialmethod(MarkovRandomField.synthetic_data, method=SAMPLING)
    MarkovRandomField.synthetic_data = drawn
    np.random.seed(repetition)  # noqa: NPY002
    names = [f"c{i}" for i in range(len(cardinalities))]
    kind = AIMSynthesizer if peer == "smartnoise AIM" else MSTSynthesizer
    synthesizer = kind(epsilon=epsilon, delta=delta)
    synthesizer.fit(pd.DataFrame(codes, columns=names), categorical_columns=names, preprocessor_eps=0.0)
    return np.array(synthesizer.sample(len(codes)), dtype=np.int64)


def opendp(peer, rho, codes, cardinalities):
    """`contributions` rows that neighbours may differ by: 1 is add-or-remove, 2 covers the
    replacement of a row.
    """
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    names = [f"c{i}" for i in range(len(cardinalities))]
    context = dp.Context.compositor(
        data=pl.LazyFrame(codes, schema=names),
        privacy_unit=dp.unit_of(contributions=2 if "replace" in peer else 1),
        privacy_loss=dp.loss_of(rho=rho),
    )
    table = (
        context.query(rho=rho)
        .select(*names)
        .contingency_table(
            keys={name: list(range(size)) for name, size in zip(names, cardinalities, strict=True)},
            algorithm=dp.mbi.AIM(queries=2) if "AIM" in peer else dp.mbi.MST(),
        )
        .release()
    )
    rows = table.synthesize(rows=len(codes), method=SAMPLING).select(names).to_numpy().astype(float)
    rng = np.random.default_rng(0)
    for column in rows.T:  # OpenDP adds a level for missing values, to which noise gives a few rows
        missing = np.isnan(column)
        column[missing] = rng.choice(column[~missing], missing.sum())
    return rows.astype(np.int64)


def main():
    peer, epsilon, delta, rho, repetition, source, out = sys.argv[1:]
    with open(source, encoding="ascii") as lines:
        cardinalities = [int(name.split(":")[1]) for name in lines.readline().split(",")]
    codes = np.loadtxt(source, np.int64, delimiter=",", skiprows=1)
    began = time.perf_counter()
    if peer.startswith("smartnoise"):
        rows = smartnoise(peer, float(epsilon), float(delta), int(repetition), codes, cardinalities)
    else:
        rows = opendp(peer, float(rho), codes, cardinalities)
    print(f"{time.perf_counter() - began:.1f}", file=sys.stderr)
    np.savetxt(out, rows, "%d", ",")


if __name__ == "__main__":
    main()
