"""Expressions with known laws: `kernel-eval` beside weighted Monte Carlo in NumPy in as much processor time.

For each expression, both run by turns in one process on one core. Monte Carlo draws as many values as it can in the
time that `kernel-eval` takes for all of its output: five answers, their standard errors, and the bound. Prints root
mean square errors over all runs, of the five answers in units of the standard deviation and of the embedding in the
RKHS of the Gaussian kernel whose bandwidth is the law's median distance, and how many times larger those of Monte
Carlo are. `make bench` runs it.
"""

import math
import sys
import time

import numpy as np

import thesis_cli as tc
from thesis_cli.base.errors import InputError
from thesis_cli.embeddings.kernels import Gaussian, median_distance
from thesis_cli.studies.semantics.cases import CASES, QUERY, answers
from thesis_cli.studies.semantics.rates import TargetEmbedding, dense

RUNS, PILOT = 5, 20_000
FLOOR = 1e-7
"""Least RKHS distance that is told from 0."""
LARGEST, FEWER = 5_000_000, 100_000
"""Most values that Monte Carlo draws at once, and most of which the RKHS distance is taken."""


def timed(function):
    began = time.process_time()
    found = function()
    return found, time.process_time() - began


def sampled(case, seed, count):
    """Answers and values of Monte Carlo."""
    values = case.monte_carlo(np.random.default_rng(seed), count)
    return answers(values), values


def measured(case, size):
    """RMS errors of both and their ratio, and seconds of both."""
    law = dense(case.quantile)
    target = TargetEmbedding(law, Gaussian(median_distance(law)))
    tc.kernel_eval(case.text, query=QUERY, size=size)
    sampled(case, 0, PILOT)
    _, each = timed(lambda: sampled(case, 1, PILOT))
    rows = []
    for seed in range(RUNS):
        found, seconds = timed(lambda seed=seed: tc.kernel_eval(case.text, query=QUERY, size=size, seed=seed))
        count = int(min(LARGEST, max(1000, PILOT * seconds / each)))
        (answered, _), took = timed(lambda seed=seed, count=count: sampled(case, seed, count))
        each = took * PILOT / count
        ours = case.error(np.array(found.values)), max(FLOOR, target.distance(found.evaluated.values))
        few = min(count, FEWER)  # the distance of independent values falls as 1 / sqrt(count)
        apart = target.distance(sampled(case, seed, few)[1]) * math.sqrt(few / count)
        rows.append((*ours, case.error(answered), apart, seconds, took))
    rows = np.array(rows)
    return *np.sqrt((rows[:, :4] ** 2).mean(0)), *rows[:, 4:].mean(0)


def main():
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    chosen = sys.argv[2:] or list(CASES)
    print("| expression | ms | answers | times | RKHS | times |\n| --- | --- | --- | --- | --- | --- |")
    for name in chosen:
        case = CASES[name]
        shown = case.text if len(case.text) < 70 else f"{name}: {case.text[:40]} ..."
        try:
            error, distance, plain, apart, seconds, took = measured(case, size)
        except InputError as refused:
            print(f"| `{shown}` | refused: {refused} |")
            continue
        ratios = plain / error if error else np.inf, apart / distance
        shown += "" if abs(took / seconds - 1) < 0.3 else f" ({took / seconds:.2f} of the time)"
        print(f"| `{shown}` | {1e3 * seconds:.0f} | {error:.1e} | {ratios[0]:.1f} | {distance:.1e} | {ratios[1]:.1f} |")


if __name__ == "__main__":
    main()
