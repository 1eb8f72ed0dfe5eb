"""Start-up: processor seconds and wall seconds of help texts and of small runs with compiled kernels
in the cache, beside `import typer` in the same run; then of models of 20 variables where nothing was
ever compiled.

Each line is the least of several runs of a new process, or the only run on an empty cache; `make
bench` runs it. The ratios are of processor seconds.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from thesis_cli.commands.core.command import entries
from thesis_cli.reproduction.commands import OWN

RUNS = int(os.environ.get("RUNS", "7"))
DATA = Path(__file__).resolve().parents[1] / "data"
PYTHON = [sys.executable]
TOOL = [*PYTHON, "-m", "thesis_cli"]
WORK = {
    "estimate-z, 10x10 grid": "estimate-z g.uai --samples 100 --seed 1",
    "map, 10x10 grid": "map g.uai",
    "marginals, 10x10 grid": "marginals g.uai",
    "bound, 10x10 grid": "bound g.uai --samples 10 --seed 1",
    "sample, 10x10 grid": "sample g.uai --count 10 --seed 1",
    "spin-glass": "spin-glass --size 4x4 --samples 10 --seed 1",
    "renyi": f"renyi {DATA}/models/ising-4x4.uai --order 2 --samples 10 --seed 1",
    "posterior": f"posterior --regression {DATA}/models/line.csv --samples 10 --seed 1",
    "race": f"race {DATA}/models/factors-5x2000.npy --samples 10 --seed 1",
    "synthesize": f"synthesize {DATA}/tasks/league.json",
    "sweep, all tasks done": f"sweep {DATA}/sweeps/glasses.toml --jobs 1 --out sweep.csv",
    "run-program": 'run-program "a <- [int]; b <- SORT a" "[[3, 1]]"',
}
COLD = ("estimate-z", "estimate-z --samples 1000", "marginals", "map", "sample", "renyi")
"""Commands that answer within 3 s although nothing is compiled."""


def seconds(words, folder):
    """Least processor and wall seconds of a command."""
    found = [once(words, folder) for _ in range(RUNS + 1)]  # the first fills caches
    return tuple(map(min, zip(*found[1:], strict=True)))


def once(words, folder, **environment):
    """Processor and wall seconds of a new process."""
    began = time.perf_counter()
    child = subprocess.Popen(
        words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **environment}
    )
    error = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - began
    if status:
        sys.exit(f"{' '.join(words)}: {error.decode()}")
    return usage.ru_utime + usage.ru_stime, wall


def models(folder):
    """Models of 20 variables: a chain, a dense one, a grid, and a sparse one of 4 states."""
    from itertools import combinations, pairwise

    import numpy as np

    from thesis_cli.models import uai
    from thesis_cli.models.factor_graph import Factor, FactorGraph

    rng = np.random.default_rng(0)
    pairs = list(combinations(range(20), 2))
    grid = [(a, b) for a, b in pairs if b - a == 5 or (b - a == 1 and b % 5)]
    kinds = {
        "chain": (2, list(pairwise(range(20)))),
        "dense": (2, pairs),
        "grid": (2, grid),
        "sparse": (4, [pairs[i] for i in rng.choice(len(pairs), 30, replace=False)]),
    }
    for name, (k, chosen) in kinds.items():
        factors = [Factor(pair, rng.normal(size=(k, k))) for pair in chosen]
        Path(folder, f"{name}-20.uai").write_text(uai.write(FactorGraph([k] * 20, factors)))
        yield f"{name}-20.uai"


def main():
    import shlex

    with tempfile.TemporaryDirectory() as folder:
        glass = "spin-glass --size 10x10 --kind mixed --samples 10 --seed 1 --save g.uai --no-out"
        subprocess.run([*TOOL, *glass.split()], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        typer, wall = seconds([*PYTHON, "-c", "import typer"], folder)
        lines = {name: [*PYTHON, "-c", f"import {name}"] for name in ("typer", "numpy", "numba")}
        lines["--help"] = [*TOOL, "--help"]
        lines |= {f"{name} --help": [*TOOL, name, "--help"] for name in (*entries(), *OWN)}
        lines |= {name: [*TOOL, *shlex.split(line)] for name, line in WORK.items()}
        only = sys.argv[1:]
        print(f"{'':40} {'processor s':>12} {'wall s':>8} {'times typer':>12}")
        for name, words in lines.items():
            if not only or name in only:
                used, wall = seconds(words, folder)
                print(f"{name:40} {used:12.3f} {wall:8.3f} {used / typer:12.2f}", flush=True)
        for model in models(folder):
            for command in COLD:
                name = f"{model[:-4]}, {command}"
                if not only or name in only or "cold" in only:
                    words, cache = command.split(), tempfile.mkdtemp(dir=folder)
                    used, wall = once([*TOOL, words[0], model, *words[1:], "--no-out"], folder, NUMBA_CACHE_DIR=cache)
                    print(f"{name:40} {used:12.3f} {wall:8.3f} {used / typer:12.2f}", flush=True)


if __name__ == "__main__":
    main()
