"""Releases of a real table beside those of other packages, at the same epsilon and delta.

    python benchmarks/private_peers.py [--epsilon 1] [--repetitions 3] [--peers
    .venv-peers/bin/python]

The peers have an environment of their own, `make peers` builds it, and get the private rows of the
experiment real-table as codes: 24 equal bins of wage and of experience between the bounds of the
schema, and every other level. A value is drawn uniformly from its bin. They synthesise as many rows
as the table has, and are scored by all of these and by 1,000 of them, the number that Algorithm 3
releases. Writes results/peers.csv, which is NOT PRIVATE.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import brentq

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "experiments"))

import real_table  # noqa: E402

from thesis_cli.privacy.kernels import Rows  # noqa: E402
from thesis_cli.privacy.mechanism import Budget, zcdp_epsilon  # noqa: E402
from thesis_cli.privacy.schema import Integer  # noqa: E402
from thesis_cli.privacy.subspace import uniform_weights  # noqa: E402

BINS = 24
PEERS = "smartnoise MST", "smartnoise AIM", "OpenDP MST", "OpenDP AIM", "OpenDP MST, replace", "OpenDP AIM, replace"
ROWS = 1000
FEATURES = 2000


class Codes:
    """Rows as codes alone, and back; a whole number of at most BINS values keeps each."""

    def __init__(self, schema, rng):
        self._schema, self._rng = schema, rng
        spans = [c.high - c.low + 1 if isinstance(c, Integer) else BINS + 1 for c in schema.columns if c.on_line]
        self._whole = [span <= BINS for span in spans]
        self.cardinalities = [
            *(span if whole else BINS for span, whole in zip(spans, self._whole, strict=True)),
            *schema.cardinalities,
        ]

    def of(self, rows):
        columns = [
            np.rint(x * (size - 1)) if whole else np.minimum(x * size, size - 1)
            for x, size, whole in zip(rows.reals.T, self.cardinalities, self._whole, strict=False)
        ]
        return np.stack([*columns, *rows.codes.T], 1).astype(np.int64)

    def rows(self, codes):
        reals = [
            x / (size - 1) if whole else (x + self._rng.random(len(x))) / size
            for x, size, whole in zip(codes.T, self.cardinalities, self._whole, strict=False)
        ]
        return Rows(np.stack(reals, 1), np.ascontiguousarray(codes[:, len(reals) :]))


def peer_rows(python, peer, budget, rho, repetition, codes, cardinalities, folder, time_limit):
    """Codes (N, columns) and seconds, or why there are none."""
    source, out = folder / "table.csv", folder / "out.csv"
    header = ",".join(f"c{i}:{size}" for i, size in enumerate(cardinalities))
    np.savetxt(source, codes, "%d", ",", header=header, comments="")
    numbers = map(repr, (budget.epsilon, budget.delta, rho, repetition))
    worker = Path(__file__).with_name("private_peers_rows.py")
    command = [python, worker, peer, *numbers, source, out]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=time_limit)
    except subprocess.TimeoutExpired:
        print(f"{peer}: none within {time_limit:g} s", file=sys.stderr)
        return None
    last = done.stderr.strip().splitlines()[-1]
    if done.returncode:
        print(f"{peer}: {last}", file=sys.stderr)
        return None
    return np.loadtxt(out, np.int64, delimiter=","), float(last)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--peers", default=ROOT / ".venv-peers/bin/python")
    parser.add_argument("--time-limit", type=float, default=1800.0, help="seconds for each release of a peer")
    parser.add_argument("--only", nargs="*", default=PEERS, choices=PEERS, metavar="PEER")
    options = parser.parse_args()
    schema, private, held_out = real_table.split_table(real_table.ROWS)
    judge, budget = real_table.Judge(schema, private, held_out), Budget(options.epsilon, real_table.DELTA)
    rho = brentq(lambda r: zcdp_epsilon(r, budget.delta) - budget.epsilon, 1e-9, budget.epsilon, xtol=1e-12)
    found = []

    def score(method, repetition, rows, weights, seconds=np.nan):
        entry = {"epsilon": budget.epsilon, "method": method, "rows": len(rows), "repetition": repetition}
        found.append(entry | {"seconds": seconds} | judge.scores(rows, weights))
        pd.DataFrame(found).to_csv(ROOT / "results" / "peers.csv", index=False, float_format="%.6g")
        print(f"{method}, {len(rows)} rows, repetition {repetition}", file=sys.stderr)

    for repetition in range(options.repetitions):
        rng = np.random.default_rng([7, repetition])
        for method in real_table.METHODS:
            score(method, repetition, *real_table.release(method, private, schema, budget, ROWS, FEATURES, rng))
        coding = Codes(schema, rng)
        for peer in options.only:
            with tempfile.TemporaryDirectory() as folder:
                arguments = peer, budget, rho, repetition, coding.of(private), coding.cardinalities, Path(folder)
                made = peer_rows(options.peers, *arguments, options.time_limit)
            if made is not None:
                rows = coding.rows(made[0])
                for part in (rows, rows[rng.permutation(len(rows))[:ROWS]]):
                    score(peer, repetition, part, uniform_weights(part), made[1])
    shown = pd.DataFrame(found).drop(columns=["epsilon", "repetition"]).groupby(["method", "rows"], sort=False).mean()
    print(f"means of {options.repetitions}, epsilon = {options.epsilon:g}, delta = {budget.delta:g}")
    print(shown.round(4).to_string())


if __name__ == "__main__":
    main()
