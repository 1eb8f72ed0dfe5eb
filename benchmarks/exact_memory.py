"""Predicted against measured memory and time of exact algorithms on networks of the families.

Each sum runs in a process of its own, after a small one that compiles. The peak is that of the resident
memory above what the process had before; time is that of the processor. Networks whose sum is predicted to
take less than `exact_peers.LEAST` bytes, of which the interpreter's own are a large part, or longer than
`--seconds`, are left out. So it is with marginals along a tree, in all of the memory of the pass that keeps its
tables and in shares of it.
"""

import argparse

import exact_peers as peers
import numpy as np

from thesis_cli.base.child import call
from thesis_cli.studies.models.families import MEMBERS

SHARES = 1.0, 0.7, 0.5
"""Memory of marginals, relative to that of the pass which keeps all tables."""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="most predicted seconds of a sum")
    parser.add_argument("--memory", type=float, default=2.0, help="GiB")
    options = parser.parse_args()
    ratios = {"memory": [], "seconds": []}
    memory = int(options.memory * 2**30)
    for member in MEMBERS:
        runs = [(kind, peers.our_peak, kind, options.seconds, memory) for kind in peers.KINDS]
        runs += [(f"marginals {share}", peers.our_back_peak, options.seconds, memory, share) for share in SHARES]
        for what, run, *rest in runs:
            try:
                found = call(run, member.name, *rest)
            except ValueError:  # it refuses the model
                continue
            if not found:
                continue
            predicted, seconds, slices, peak, took = found
            ratios["memory"].append(peak / predicted)
            ratios["seconds"].append(took / seconds)
            print(
                f"{member.name:20} {what:14} {slices:4} slices  {predicted / 2**20:7.1f} MiB, measured"
                f" {peak / 2**20:7.1f} ({peak / predicted:.2f})  {seconds:7.3f} s, measured {took:7.3f}"
                f" ({took / seconds:.2f})",
                flush=True,
            )
    for what, values in ratios.items():
        low, middle, high = np.quantile(values, [0, 0.5, 1])
        print(f"measured / predicted {what}: {low:.2f} to {high:.2f}, median {middle:.2f}, of {len(values)}")


if __name__ == "__main__":
    main()
