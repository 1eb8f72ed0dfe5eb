"""Releases of nine tables by dp-release's copula and by plain peers, and what they are good for.

    python benchmarks/private_tables.py [--draws 2] [--tables visits parity] [--methods copula MST]

The tables are those of the experiment real-table and the generated ones of
`studies/privacy/stated_tables.py`. The peers are plain NumPy: MST (McKenna, Miklau and Sheldon 2021)
measures a tree of pairs; the Bayesian network (PrivBayes, Zhang et al. 2017, with Gaussian noise)
gives each column two parents. They get the codes of `private_peers.py`, and the same zero-concentrated
budget for the replacement of a row. Noise is seeded: the scores are NOT PRIVATE. What is in --out is
not run again.
"""

import argparse
import itertools
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from private_peers import DELTA, Coding, append, rho_of

from thesis_cli.privacy.mechanisms.mechanism import Budget
from thesis_cli.studies.privacy.real_releases import copula
from thesis_cli.studies.privacy.real_tables import SOURCES, table
from thesis_cli.studies.privacy.stated_tables import STATED, stated_table
from thesis_cli.studies.privacy.utility import ReleaseJudge

ROOT = Path(__file__).parents[1]
KEY = ["table", "method", "epsilon", "draw"]
LARGEST = 200_000
"""Cells of the largest table of a column and its parents."""


def noisy(counts, rho, rng):
    """Counts with Gaussian noise: replacing a row moves them by at most sqrt(2)."""
    return counts + rng.standard_normal(counts.shape) / np.sqrt(rho)


def chosen(scores, sensitivity, rho, rng):
    """Exponential mechanism (Gumbel noise), which is epsilon^2 / 8 zero-concentrated."""
    return int(np.argmax(np.sqrt(8 * rho) / (2 * sensitivity) * scores + rng.gumbel(size=len(scores))))


def table_of(codes, sizes, columns):
    shape = [sizes[c] for c in columns]
    keys = np.ravel_multi_index([codes[:, c] for c in columns], shape)
    return np.bincount(keys, minlength=int(np.prod(shape))).astype(float).reshape(shape)


def raked(found, left, right):
    """A table of pairs with given margins."""
    found = np.maximum(found, 1e-3)
    for _ in range(20):
        found *= (left / np.maximum(found.sum(1), 1e-12))[:, None]
        found *= right / np.maximum(found.sum(0), 1e-12)
    return found


def drawn(parts, count, columns, rng):
    """Codes from conditional tables, each a triple: column, parents, counts by parents."""
    found = np.zeros((count, columns), np.int64)
    for column, parents, counts in parts:
        flat = np.maximum(counts, 0).reshape(-1, counts.shape[-1]) + 1e-9
        ends = np.cumsum(flat / flat.sum(1, keepdims=True), 1)
        keys = np.zeros(count, np.int64)
        if parents:
            keys = np.ravel_multi_index([found[:, p] for p in parents], counts.shape[:-1])
        found[:, column] = np.minimum((rng.random(count)[:, None] > ends[keys]).sum(1), counts.shape[-1] - 1)
    return found


def mst(codes, sizes, rho, rng):
    """Rows of a tree of pairs, by thirds of the budget for columns, choice and pairs."""
    d, count = len(sizes), len(codes)
    ones = [np.maximum(noisy(table_of(codes, sizes, [i]), rho / 3 / d, rng), 1) for i in range(d)]
    ones = [one / one.sum() * count for one in ones]
    pairs = list(itertools.combinations(range(d), 2))
    weights = [
        np.abs(table_of(codes, sizes, [i, j]) - np.multiply.outer(ones[i], ones[j]) / count).sum() for i, j in pairs
    ]
    group, edges = list(range(d)), []
    for _ in range(d - 1):
        left = [k for k, (i, j) in enumerate(pairs) if group[i] != group[j]]
        i, j = pairs[left[chosen(np.array([weights[k] for k in left]), 2.0, rho / 3 / (d - 1), rng)]]
        edges.append((i, j))
        group = [group[i] if g == group[j] else g for g in group]
    tables = {}
    for i, j in edges:
        tables[i, j] = raked(noisy(table_of(codes, sizes, [i, j]), rho / 3 / (d - 1), rng), ones[i], ones[j])
        tables[j, i] = tables[i, j].T
    parts, known = [(0, [], ones[0])], {0}
    while len(known) < d:
        for (i, j), counts in tables.items():
            if i in known and j not in known:
                parts.append((j, [i], counts))
                known.add(j)
    return drawn(parts, count, d, rng)


def network(codes, sizes, rho, rng):
    """Rows of a Bayesian network of two parents, by halves of the budget for choice and tables."""
    d, count = len(sizes), len(codes)
    first = int(rng.integers(d))
    known, parts = [first], [(first, [], noisy(table_of(codes, sizes, [first]), rho / 2 / d, rng))]
    ones = [table_of(codes, sizes, [i]) for i in range(d)]
    while len(known) < d:
        some = list(itertools.combinations(known, min(2, len(known))))
        some = [some[k] for k in rng.permutation(len(some))[:40]]
        some += [(k,) for k in known]
        options = [
            (x, parents)
            for x in range(d)
            if x not in known
            for parents in some
            if np.prod([sizes[p] for p in parents]) * sizes[x] <= LARGEST
        ]
        if len(options) > 200:
            options = [options[k] for k in rng.permutation(len(options))[:200]]
        scores = []
        for x, parents in options:
            joint = table_of(codes, sizes, [*parents, x])
            apart = np.multiply.outer(joint.sum(-1), ones[x]) / count
            scores.append(np.abs(joint - apart).sum() - np.sqrt(2 / np.pi * 2 * d / rho) * joint.size)
        x, parents = options[chosen(np.array(scores), 2.0, rho / 2 / d, rng)]
        parts.append((x, list(parents), noisy(table_of(codes, sizes, [*parents, x]), rho / 2 / d, rng)))
        known.append(x)
    return drawn(parts, count, d, rng)


@cache
def judged(name):
    found = stated_table(name) if name in STATED else table(name)
    return found, ReleaseJudge(found)


def released(name, method, epsilon, draw):
    """Rows by one draw of noise."""
    found, _ = judged(name)
    rng = np.random.default_rng([40, draw])
    if method in ("MST", "network"):
        coding = Coding(found.schema)
        codes = {"MST": mst, "network": network}[method](coding.of(found.private), coding.sizes, rho_of(epsilon), rng)
        return coding.rows(codes, rng)
    favour = method.removeprefix("copula ") if method != "copula" else "relations"
    return copula(found, Budget(epsilon, DELTA), (len(found.private),), rng, favour)[0]


def markdown(found):
    """Lines of a table of means, with the standard error of the AUC over the draws."""
    yield "| epsilon | table | method | draws | one-way | two-way | three-way | AUC | seconds |"
    yield "| --- " * 9 + "|"
    for epsilon, name in itertools.product(sorted(found.epsilon.unique()), found.table.unique()):
        own = found[(found.epsilon == epsilon) & (found.table == name)]
        for method, scores in own.groupby("method", sort=False):
            marginals = [f"{scores[way].mean():.3f}" for way in ("one_way", "two_way", "three_way")]
            error = scores.boosting.std() / np.sqrt(len(scores)) if len(scores) > 1 else np.nan
            curve, seconds = f"{scores.boosting.mean():.3f} ± {error:.3f}", f"{scores.seconds.mean():.1f}"
            cells = [f"{epsilon:g}", name, method, str(len(scores)), *marginals, curve, seconds]
            yield f"| {' | '.join(cells)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [*SOURCES, *STATED]
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--tables", nargs="*", default=names, choices=names, metavar="TABLE")
    parser.add_argument("--methods", nargs="*", default=["copula", "MST", "network"])
    parser.add_argument("--epsilons", nargs="*", type=float, default=[0.1, 1.0, 10.0])
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "private-tables.csv")
    options = parser.parse_args()
    out = options.out
    known = set()
    if out.exists():
        known = set(pd.read_csv(out)[KEY].itertuples(index=False, name=None))
    every = itertools.product(range(options.draws), options.epsilons, options.tables, options.methods)
    for draw, epsilon, name, method in every:
        if (name, method, epsilon, draw) in known:
            continue
        began = time.process_time()
        rows = released(name, method, epsilon, draw)
        seconds = time.process_time() - began
        judge = judged(name)[1]
        scores = judge.scores(rows) | {"three_way": judge.three_way(rows), "seconds": seconds}
        append(out, [dict(zip(KEY, (name, method, epsilon, draw), strict=True)) | scores])
        print(f"{name}, {method}, epsilon {epsilon:g}, draw {draw}: {seconds:.0f} s", file=sys.stderr)
    found = pd.read_csv(out)
    print("\n".join(markdown(found[found.table.isin(options.tables)])))


if __name__ == "__main__":
    main()
