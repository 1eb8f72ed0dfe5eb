"""Releases of the tables of the experiment real-table by OpenDP's MST and AIM.

    python benchmarks/private_peers.py [--draws 1] [--peers .venv-peers/bin/python]

The peers have an environment of their own, `make peers` builds it. They get the private rows as
codes: a whole number of at most 72 values and every level as it is, any other number in 64 equal
bins between the bounds of the schema, from which values are drawn uniformly. A column that may have
missing values has one more code. Epsilon and delta are for the replacement of a row, as in
dp-release. Every release has as many rows as the table; its scores are those of all of them and of
1,000; `bins` are the rows of the table in the same bins. The scores go to --out, and are NOT
PRIVATE; what is there is not run again. A release that takes more than --time-limit of processor
time has no scores, and is not tried again.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.mechanism import zcdp_epsilon
from thesis_cli.privacy.tables.schema import Category, Integer
from thesis_cli.studies.privacy.utility import SOURCES, scores, table

ROOT = Path(__file__).parents[1]
DELTA = 1e-6
EPSILONS = 1.0, 0.1, 10.0
BINS, WHOLE = 64, 72
SOME = 1000
KEY = ["table", "method", "epsilon", "draw"]
ORDER = [("MST", 1.0), ("AIM", 1.0), ("MST", 0.1), ("MST", 10.0), ("AIM", 0.1), ("AIM", 10.0)]


class Coding:
    """Rows as one code for each column of a schema, and back."""

    def __init__(self, schema):
        self._columns = schema.columns
        self.sizes, self._bins = [], []
        for column in schema.columns:
            size = column.cardinality
            whole = False
            if column.on_line:
                span = len(column.levels) if isinstance(column, Category) else WHOLE + 1
                span = column.high - column.low + 1 if isinstance(column, Integer) else span
                whole = span <= WHOLE
                size = (span if whole else BINS) + max(column.cardinality - 1, 0)
            self.sizes.append(size)
            self._bins.append((size - max(column.cardinality - 1, 0) if column.on_line else size, whole))

    def of(self, rows):
        found, d, c = [], 0, 0
        for column, (bins, whole) in zip(self._columns, self._bins, strict=True):
            code = rows.codes[:, c] if column.cardinality else None
            c += column.cardinality > 0
            if column.on_line:
                x = rows.reals[:, d]
                d += 1
                binned = np.rint(x * (bins - 1)) if whole else np.minimum(x * bins, bins - 1)
                code = binned if code is None else np.where(code > 0, bins - 1 + code, binned)
            found.append(code)
        return np.stack(found, 1).astype(np.int64)

    def rows(self, found, rng):
        reals, codes = [], []
        for column, code, (bins, whole) in zip(self._columns, found.T, self._bins, strict=True):
            coded = np.maximum(code - (bins - 1), 0) if column.on_line else code
            if column.on_line:
                x = code / (bins - 1) if whole else (code + rng.random(len(code))) / bins
                reals.append(np.where(coded > 0, 0.5, x))
            if column.cardinality:
                codes.append(coded)
        shape = (len(found), 0)
        return Rows(
            np.stack(reals, 1) if reals else np.zeros(shape),
            np.stack(codes, 1) if codes else np.zeros(shape, np.int64),
        )


def rho_of(epsilon):
    """Zero-concentrated budget that (epsilon, DELTA) stands for."""
    return float(brentq(lambda rho: zcdp_epsilon(rho, DELTA) - epsilon, 1e-9, epsilon, xtol=1e-12))


def released(python, name, method, epsilon, draw, time_limit):
    """Rows and seconds of processor time; no rows if the time ran out."""
    private = table(name).private
    coding = Coding(table(name).schema)
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder, "table.csv"), Path(folder, "out.csv")
        header = ",".join(f"c{i}:{size}" for i, size in enumerate(coding.sizes))
        np.savetxt(source, coding.of(private), "%d", ",", header=header, comments="")
        worker = Path(__file__).with_name("private_peers_rows.py")
        command = [python, worker, method, repr(rho_of(epsilon)), source, out, str(time_limit)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = done.stderr.strip().splitlines() or ["nothing printed"]
        if done.returncode:
            print(f"{name}, {method}, epsilon {epsilon:g}: ended {done.returncode}: {lines[-1]}", file=sys.stderr)
            if done.returncode > 0:  # not by the limit
                raise SystemExit(done.stderr[-2000:])
            return None, float(time_limit)
        codes = np.loadtxt(out, np.int64, delimiter=",")
    return coding.rows(codes, np.random.default_rng([7, draw])), float(lines[-1])


def append(out, entries):
    """Write rows at the end of the file of results."""
    known = [pd.read_csv(out)] if out.exists() else []
    pd.concat([*known, pd.DataFrame(entries)]).to_csv(out, index=False, float_format="%.6g")


def binned(name):
    """Scores of the table's own rows in the bins that the peers get: the least errors that they can
    have.
    """
    private, coding = table(name).private, Coding(table(name).schema)
    rows = coding.rows(coding.of(private), np.random.default_rng(7))
    return {"table": name, "method": "bins", "draw": 0, "rows": len(rows)} | scores(name, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1, help="releases of each table by each method and epsilon")
    parser.add_argument("--peers", default=ROOT / ".venv-peers/bin/python")
    parser.add_argument("--time-limit", type=int, default=600, help="seconds of processor time for each release")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "peers.csv")
    parser.add_argument("--tables", nargs="*", default=list(SOURCES), choices=list(SOURCES), metavar="TABLE")
    parser.add_argument("--methods", nargs="*", default=["MST", "AIM"], choices=["MST", "AIM"])
    options = parser.parse_args()
    out = options.out
    for name in options.tables:
        if not out.exists() or not ((known := pd.read_csv(out)).table.eq(name) & known.method.eq("bins")).any():
            append(out, [binned(name)])
    for draw in range(options.draws):
        for method, epsilon in ORDER:
            for name in options.tables if method in options.methods else ():
                found = pd.read_csv(out) if out.exists() else pd.DataFrame(columns=[*KEY, "rows"])
                same = found[(found.table == name) & (found.method == method) & (found.epsilon == epsilon)]
                if (same.draw == draw).any() or same.rows.isna().any():
                    continue
                rows, seconds = released(options.peers, name, method, epsilon, draw, options.time_limit)
                entry = dict(zip(KEY, (name, method, epsilon, draw), strict=True))
                parts = [] if rows is None else [rows, rows[:SOME]]
                entries = [entry | {"rows": len(part), "seconds": seconds} | scores(name, part) for part in parts]
                entries = entries or [entry | {"rows": None, "seconds": seconds}]
                append(out, entries)
                print(f"{name}, {method}, epsilon {epsilon:g}, draw {draw}: {seconds:.0f} s", file=sys.stderr)
    found = pd.read_csv(out).drop(columns="draw")
    shown = found.groupby(["table", "epsilon", "method", "rows"], dropna=False, sort=False)
    print(shown.mean().round(4).to_string())
    print(shown.size().to_string())


if __name__ == "__main__":
    main()
