"""Small tables from the data files that the thesis's author published, in `data/published/`.

The files themselves, samples and curves of Figures 2.3b, 2.4, 4.1 and 4.2, are not part of this
project. `python -m thesis_cli.studies.published_data FOLDER` derives the tables from a folder that
has them, with the formulas of the thesis written out; nothing here calls the methods of this
project, which tests compare with the tables.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.files import write_atomic

FOLDER = Path(__file__).resolve().parents[2] / "data" / "published"

SPIN_GLASSES = "fig_2_4/grid_10x10_K2_f1_c*.json"
RACES = "fig_2_3/bandits_normal_delta*.json"
DISTANCES = "fig_4/D*_alg*_M10000.json"

SAMPLES = 100
"""M, the values of each estimator in Figures 2.3b and 2.4."""

FIRST = 2000
"""Maxima of each spin glass whose printed digits have a digest."""

BOUND_ALPHAS = tuple(round(0.01 * k, 2) for k in range(-10, 11))
TRICK_ALPHAS = tuple(round(0.1 * k, 1) for k in range(-2, 16))
SOURCE_GRID = tuple(np.linspace(-0.2, 1.5, 100))
"""Alphas of Figure 2.3b as the source draws it."""

RESAMPLES = 500
STEP = 4
"""The tables of Figures 4.1 and 4.2 keep every fourth number of points, and the last."""


def tables(folder: Path) -> dict[str, Any]:
    """The tables by the name of their file, from a folder of the published files.

    Raises
    ------
    InputError : the folder has none of some kind.
    """
    kinds = {
        "fig-2-3b.json": (RACES, race),
        "fig-2-4.json": (SPIN_GLASSES, spin_glass),
        "fig-4.json": (DISTANCES, distances),
    }
    found = {}
    for name, (pattern, derive) in kinds.items():
        paths = sorted(folder.glob(pattern))
        if not paths:
            raise InputError(f"{folder} has no {pattern}", "name the folder with the published files")
        found[name] = [{**_provenance(path, folder), **derive(json.loads(path.read_text()))} for path in paths]
    return found


def _provenance(path: Path, folder: Path) -> dict[str, str]:
    return {"file": path.relative_to(folder).as_posix(), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def spin_glass(file: Mapping[str, Any]) -> dict[str, Any]:
    """Figure 2.4: maxima U of a model, and MSE of U(alpha) from `SAMPLES` of them as an estimator of
    ln Z (Thesis eq. 2.8).
    """
    solvers = {"exact": "MAPs_unary_JT", "belief propagation": "MAPs_unary_BP"}
    return {
        "kind": file["potentials_type"],
        "coupling": file["c"],
        "log_z": file["lnZ"],
        "alphas": BOUND_ALPHAS,
        "solvers": {
            solver: _maxima(file[name], file["n"], file["lnZ"]) for solver, name in solvers.items() if name in file
        },
    }


def _maxima(values: Sequence[float], terms: int, log_z: float) -> dict[str, Any]:
    maxima = np.array(values)
    groups = maxima.reshape(-1, SAMPLES)
    bounds = np.stack([_bound(groups, terms, alpha) for alpha in BOUND_ALPHAS])
    return {
        **_moments(maxima),
        "digest": {"count": FIRST, "sha256": digest(maxima[:FIRST])},
        **_errors(bounds - log_z),
    }


def _bound(groups: Floats, terms: int, alpha: float) -> Floats:
    """n (ln Gamma(1 + alpha) / alpha + c) - ln mean(e^(-alpha U)) / alpha of each row."""
    if alpha == 0:
        return np.asarray(groups.mean(axis=1))
    first = groups[:, :1]
    power = np.log(np.exp(-alpha * (groups - first)).mean(axis=1)) - alpha * first[:, 0]
    return np.asarray(terms * (math.lgamma(1 + alpha) / alpha + np.euler_gamma) - power / alpha)


def digest(values: Floats) -> str:
    """SHA-256 of values as the source prints them, with six digits, one a line."""
    return hashlib.sha256("".join(f"{value:.6g}\n" for value in values).encode()).hexdigest()


def race(file: Mapping[str, Any]) -> dict[str, Any]:
    """Figure 2.3b: maxima from Racing-Normal, and MSE of tricks from `SAMPLES` of them as estimators
    of ln Z (Thesis Example 6).
    """
    maxima = np.array(file["MAPs_ttest"])
    groups = maxima.reshape(-1, SAMPLES)
    errors = np.stack([_trick(groups, alpha) for alpha in TRICK_ALPHAS]) - file["lnZ"]
    squares = (np.stack([_trick(groups, alpha) for alpha in SOURCE_GRID]) - file["lnZ"]) ** 2
    count = squares.shape[1]
    weights = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), RESAMPLES) / count
    best = np.array(SOURCE_GRID)[np.argmin(squares @ weights.T, axis=0)]
    mse = squares.mean(axis=1)
    return {
        "states": file["K"],
        "delta": file["delta"],
        "sigma": file["x_scale"],
        "log_z": file["lnZ"],
        **_moments(maxima),
        "percentiles": _short(np.percentile(maxima, range(1, 100))),
        "alphas": TRICK_ALPHAS,
        **_errors(errors),
        "best_alpha": _short(SOURCE_GRID[int(np.argmin(mse))]),
        "best_alpha_error": _short(best.std()),
        "least_mse": _short(mse.min()),
    }


def _trick(groups: Floats, alpha: float) -> Floats:
    """-ln(mean(T^alpha) / Gamma(1 + alpha)) / alpha of each row, with ln T = -X - c."""
    if alpha == 0:
        return np.asarray(groups.mean(axis=1))
    powers = np.exp(-alpha * (groups + np.euler_gamma)).mean(axis=1)
    return np.asarray((math.lgamma(1 + alpha) - np.log(powers)) / alpha)


def _moments(values: Floats) -> dict[str, Any]:
    """Mean and variance with their standard errors."""
    deviations = (values - values.mean()) ** 2
    return {
        "count": len(values),
        "mean": _short(values.mean()),
        "mean_error": _short(values.std() / math.sqrt(len(values))),
        "variance": _short(deviations.mean()),
        "variance_error": _short(deviations.std() / math.sqrt(len(values))),
    }


def _errors(errors: Floats) -> dict[str, Any]:
    """MSE of estimators, shape (alphas, estimators), with its standard error."""
    squares = errors**2
    return {
        "mse": _short(squares.mean(axis=1)),
        "mse_error": _short(squares.std(axis=1) / math.sqrt(squares.shape[1])),
    }


def distances(file: Mapping[str, Any]) -> dict[str, Any]:
    """Figures 4.1 and 4.2: RKHS distances by the number of points; the files call Algorithm 2 the
    first and Algorithm 3 the second.
    """
    settings = {"algorithm": file["algorithm"] + 1, "dimension": file["D"], "points": file["public_data"]}
    if file["algorithm"] == 2:
        return {
            **settings,
            "numbers": file["Ms_report"],
            "epsilons": file["epsilons"],
            "released": _short(file["dists_alg2"]),
        }
    numbers = file["Ns_public"]
    kept = sorted({*range(0, len(numbers), STEP), len(numbers) - 1})
    return {
        **settings,
        "numbers": [numbers[i] for i in kept],
        "epsilons": file["epsilons"],
        "projection": _short(np.array(file["dists_proj"])[kept]),
        "baseline": _short(np.array(file["dists_base"])[kept]),
        "released": _short(np.array(file["dists_alg1"])[:, kept]),
    }


def _short(values: Any) -> Any:
    """Numbers with ten significant digits, as lists."""
    if np.ndim(values):
        return [_short(value) for value in values]
    return float(f"{values:.10g}")


def shipped(name: str) -> list[dict[str, Any]]:
    """A table of `data/published/`."""
    found: list[dict[str, Any]] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def main() -> int:
    """Write the tables of the folder that is named on the command line."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m thesis_cli.studies.published_data FOLDER\n")
        return 2
    for name, entries in tables(Path(sys.argv[1])).items():
        lines = ",\n".join(json.dumps(entry) for entry in entries)
        write_atomic({FOLDER / name: f"[\n{lines}\n]\n"})
    return 0


if __name__ == "__main__":
    sys.exit(main())
