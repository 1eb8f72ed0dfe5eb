"""The small models in data/models, each with a known answer; `make models` writes them."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.models import uai
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.spin_glass import SpinGlass

ASIA = ("asia", "tub", "smoke", "lung", "bronc", "either", "xray", "dysp")
"""Names of the variables of `asia`, in order; state 0 is yes."""


def asia() -> FactorGraph:
    """The chest clinic network of Lauritzen and Spiegelhalter (1988), normalised: Z = 1.

    One of its tables, `either = tub or lung`, is a hard constraint.
    """
    yes = {
        ("asia",): 0.01,
        ("tub", "asia"): [0.05, 0.01],
        ("smoke",): 0.5,
        ("lung", "smoke"): [0.1, 0.01],
        ("bronc", "smoke"): [0.6, 0.3],
        ("either", "lung", "tub"): [[1, 1], [1, 0]],
        ("xray", "either"): [0.98, 0.05],
        ("dysp", "bronc", "either"): [[0.9, 0.8], [0.7, 0.1]],
    }
    factors = []
    for scope, table in yes.items():
        p = np.asarray(table, dtype=np.float64)
        with np.errstate(divide="ignore"):
            factors.append(Factor(tuple(map(ASIA.index, scope)), np.log(np.stack([p, 1 - p]))))
    return FactorGraph([2] * len(ASIA), factors)


def ising(rows: int, columns: int, coupling: float, rng: np.random.Generator) -> FactorGraph:
    """A ferromagnet on a grid: theta_i x_i + coupling x_i x_j, x in {-1, +1}, theta_i ~ U[-1, 1]."""
    fields = rng.uniform(-1, 1, (rows, columns))
    right, down = np.full((rows, columns - 1), coupling), np.full((rows - 1, columns), coupling)
    return SpinGlass(fields, right, down).graph()


def random_3_sat(variables: int, clauses: int, rng: np.random.Generator) -> FactorGraph:
    """A random 3-SAT formula as hard constraints: Z is its number of solutions."""
    factors = []
    for _ in range(clauses):
        scope = tuple(int(i) for i in rng.choice(variables, 3, replace=False))
        table = np.zeros((2, 2, 2))
        table[tuple(rng.integers(0, 2, 3))] = -np.inf
        factors.append(Factor(scope, table))
    return FactorGraph([2] * variables, factors)


def zipf(size: int, exponent: float) -> Floats:
    """Log-potentials -exponent ln(rank): Z is a generalised harmonic number."""
    return -exponent * np.log(np.arange(1, size + 1))


def line(points: int, slope: float, rng: np.random.Generator) -> str:
    """x and y of a regression with Cauchy noise, CSV; every fifth response has the other sign."""
    x = rng.uniform(-3, 3, points)
    y = slope * x * np.where(np.arange(points) % 5 == 4, -1, 1) + 0.5 * rng.standard_cauchy(points)
    return "x,y\n" + "".join(f"{a:.3f},{b:.3f}\n" for a, b in zip(x, y, strict=True))


def log_factors(states: int, factors: int, rng: np.random.Generator) -> bytes:
    """Log-factors that sum to 2, 1.5, 1, ... by state, NPY in float32, shape (states, factors)."""
    noise = rng.normal(0, 0.005, (states, factors))
    sums = 2 - 0.5 * np.arange(states)
    values = noise - noise.mean(axis=1, keepdims=True) + sums[:, np.newaxis] / factors
    file = io.BytesIO()
    np.save(file, values.astype(np.float32))
    return file.getvalue()


def files() -> dict[str, str | bytes]:
    """Name -> content of every file."""
    return {
        "asia.uai": uai.write(asia()),
        "asia-xray.evid": "1\n6 0\n",
        "ising-4x4.uai": uai.write(ising(4, 4, 1.0, np.random.default_rng(1))),
        "sat-16-60.uai": uai.write(random_3_sat(16, 60, np.random.default_rng(2))),
        "line.csv": line(100, 1.5, np.random.default_rng(3)),
        "factors-5x2000.npy": log_factors(5, 2000, np.random.default_rng(4)),
        "zipf-1000.csv": "log_potential\n" + "".join(f"{value!r}\n" for value in zipf(1000, 1.1).tolist()),
    }


def main(folder: str) -> None:
    for name, content in files().items():
        Path(folder, name).write_bytes(content if isinstance(content, bytes) else content.encode())


if __name__ == "__main__":
    main(sys.argv[1])
