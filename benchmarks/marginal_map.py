"""Marginal MAP on the families of networks: which share of queries is exact within a time limit.

`python benchmarks/marginal_map.py` asks about random 25 % and 50 % of the variables of each network
(`make families`) that are not observed. The limit is in CPU seconds of one core, with those of child
processes, so that the load of the machine does not matter. Planning and compilation count.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from clock import cpu_seconds

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError, WorkFailed
from thesis_cli.base.files import write_atomic
from thesis_cli.inference.marginal_map.marginal_map import marginal_map
from thesis_cli.studies.models.families import MEMBERS

SHARES = 25, 50


def query(member, graph, share):
    """Random variables that are not observed, the same each time."""
    free = [i for i in range(len(graph.cardinalities)) if i not in graph.observed]
    rng = np.random.default_rng([share, *member.name.encode()])
    return sorted(rng.choice(free, max(1, share * len(free) // 100), replace=False).tolist())


def row(member, share, limit):
    graph = member.network().conditioned()
    began = cpu_seconds()
    found = {"network": member.name, "share": share, "answer": "", "lower": np.nan, "upper": np.nan}
    try:
        answer = marginal_map(graph, query(member, graph, share), time_limit=limit)
        found |= {"answer": answer.guarantee, "lower": answer.value, "upper": answer.bound, "method": answer.method}
    except (InputError, WorkFailed) as error:
        found |= {"answer": type(error).__name__, "method": ""}
    return found | {"seconds": cpu_seconds() - began}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", action="append", default=[], help="family or network; all by default")
    parser.add_argument("--limit", type=float, default=20, help="CPU seconds for each query")
    parser.add_argument("--csv", type=Path, help="file for the table")
    options = parser.parse_args()
    time.monotonic = cpu_seconds  # the limits of the search
    rows = []
    for member in MEMBERS:
        if options.family and not {member.family, member.name} & set(options.family):
            continue
        for share in SHARES:
            rows.append(row(member, share, options.limit))
            r = rows[-1]
            print(
                f"{r['network']:20} {share:3} %  {r['answer']:12} {r['lower']:14.6g} {r['upper']:14.6g}"
                f"  {r['seconds']:6.1f} s  {r['method']}",
                flush=True,
            )
    for share in SHARES:
        own = [r for r in rows if r["share"] == share]
        print(f"{share} %: {sum(r['answer'] == 'exact' for r in own)} of {len(own)} exact")
    if options.csv:
        write_atomic({options.csv: Columns(rows).csv()})


if __name__ == "__main__":
    main()
