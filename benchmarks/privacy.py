"""Private releases: embeddings of a large table beside plain NumPy, noise, and the synthetic rows.

Prints seconds, ratios and the peak of memory, in one process on one core; `make bench` runs it.
"""

import resource
import time

import numpy as np

from thesis_cli.privacy.embedding.features import draw_features
from thesis_cli.privacy.embedding.means import mean_at, mean_of_matrix
from thesis_cli.privacy.embedding.points import synthesise
from thesis_cli.privacy.kernels import RowKernel, Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget, OpenDPGaussian
from thesis_cli.privacy.mechanisms.stages import OpenDPStages, release_stages, total_rho
from thesis_cli.privacy.release.copula import CopulaStages
from thesis_cli.privacy.release.subspace import orthonormal_basis
from thesis_cli.privacy.tables.schema import Category, Real, Schema

BLOCK = 4096


def seconds(function):
    """Seconds of the second of two runs; the first one compiles and warms."""
    function()
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def blocks(rows):
    return [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]


def report(name, ours, peer, theirs):
    print(f"  {name:<58} {ours:8.3f} s; {peer} {theirs:8.3f} s, {theirs / ours:.1f} times that")


def copula(columns, rows, budget):
    """Seconds of a release by the method copula, and its rows."""
    began = time.perf_counter()
    plan = CopulaStages(Schema(columns), len(rows), total_rho(budget))
    noise, spend = OpenDPStages(), lambda *_: None
    _, stages = release_stages(lambda _: plan, [rows], len(rows), budget, spend, noise, lambda s, of: s.mean(of))
    found = plan.fit([np.array(stage.vector) for stage in stages], len(rows), np.random.default_rng(0))
    return time.perf_counter() - began, found


def wide(rng):
    """20,000 rows of 60 numbers with one common factor, and a column of 50 levels."""
    budget, factor = Budget(1, 1e-6), rng.normal(size=(20_000, 1))
    numbers = 0.269**0.5 * factor + 0.731**0.5 * rng.normal(size=(20_000, 60))
    table = Rows.of_reals(np.clip(numbers / 10 + 0.5, 0, 1))
    took, found = copula(tuple(Real(f"x{i}", 0, 1) for i in range(60)), table, budget)
    true, released = (np.corrcoef(of.reals.T)[np.triu_indices(60, 1)] for of in (table, found))
    print(
        f"copula, 20,000 rows of 60 columns: {took:.1f} s; mean correlation {released.mean():.3f} of {true.mean():.3f}"
    )
    print(f"  mean absolute error of a correlation {np.abs(released - true).mean():.3f}")
    shares = 1 / np.arange(1, 51)
    levels = rng.choice(50, 20_000, p=shares / shares.sum())
    table = Rows(np.clip(numbers[:, :1] / 10 + 0.5 + levels[:, None] / 500, 0, 1), levels[:, None])
    columns = Real("x", 0, 1), Category("level", tuple(map(str, range(50))))
    took, found = copula(columns, table, budget)
    true, released = (np.bincount(of.codes[:, 0], minlength=50) / len(of) for of in (table, found))
    error = np.abs(true - released).sum() / 2
    print(
        f"copula, 50 levels: {took:.1f} s; {np.count_nonzero(released)} of them released, total variation {error:.4f}"
    )


def main():
    rng = np.random.default_rng(0)
    kernel = RowKernel(np.full(5, 2.0), np.zeros(0))
    big, some = (Rows.of_reals(rng.random((count, 5))) for count in (10**6, 20_000))
    points = big[:1000]
    ours = seconds(lambda: mean_at(kernel, blocks(big), points))
    print(f"mean embedding of 1,000,000 rows at 1,000 points: {ours:.2f} s")
    print(f"  peak memory of the process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")
    ours = seconds(lambda: mean_at(kernel, blocks(some), points))
    theirs = seconds(lambda: sum(kernel.matrix(block, points).sum(0) for block in blocks(some)) / len(some))
    report("mean embedding, 20,000 rows at 1,000 points", ours, "NumPy in blocks", theirs)
    features = draw_features(kernel, (), 1000, rng)
    ours = seconds(lambda: features.mean(blocks(some)))
    theirs = seconds(lambda: sum(features.embed(block).sum(0) for block in blocks(some)) / len(some))
    report("mean of 1,000 features, 20,000 rows", ours, "NumPy in blocks", theirs)
    plane = Rows.of_reals(some.reals[:, :2])
    flat = RowKernel(np.full(2, 2.0), np.zeros(0))
    ours = seconds(lambda: mean_of_matrix(flat, plane))
    theirs = seconds(lambda: sum(float(flat.matrix(block, plane).sum()) for block in blocks(plane)) / len(plane) ** 2)
    report("mean of the kernel's matrix, D = 2, 20,000 rows", ours, "NumPy in blocks", theirs)
    ours = seconds(lambda: orthonormal_basis(kernel, points))
    theirs = seconds(lambda: np.linalg.cholesky(kernel.matrix(points, points) + 1e-5 * np.eye(len(points))))
    report("basis of 1,000 points", ours, "NumPy's Cholesky of all, with a ridge,", theirs)
    mean = features.mean(blocks(some))
    noise, budget, sensitivity = OpenDPGaussian(), Budget(1, 1e-6), features.l2_sensitivity(len(some))
    print(f"  {'noise on 1,000 features, OpenDP':<58} {seconds(lambda: noise.add(mean, sensitivity, budget)):8.3f} s")
    noised = noise.add(mean, sensitivity, budget)
    unit = np.tile([0.0, 1.0], (5, 1))
    took = seconds(
        lambda: synthesise(noised.values, features, unit, 1000, rng, noise=noised.calibration.scale, uniform=True)
    )
    print(f"  {'1,000 synthetic rows of 1,000 features':<58} {took:8.3f} s")
    wide(rng)


if __name__ == "__main__":
    main()
