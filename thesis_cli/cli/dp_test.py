"""`thesis-cli dp-test`: does another table come from the population of a private release?"""

from __future__ import annotations

import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thesis_cli.base.errors import InputError
from thesis_cli.cli import options, output

if TYPE_CHECKING:
    import numpy as np

    from thesis_cli.privacy.kernels import Rows
    from thesis_cli.privacy.release_files import Release
    from thesis_cli.privacy.two_sample import TwoSampleResult

EXAMPLES = """\b
Examples, of a release r.csv of data/tables/people.csv:
  thesis-cli dp-test r.csv data/tables/people.csv
  thesis-cli dp-test r.csv weighted.csv --alpha 0.01 --json
"""


def dp_test(
    release: Annotated[Path, typer.Argument(help="CSV file of a release, its JSON record beside it.")],
    other: Annotated[str, typer.Argument(help="CSV or Parquet file, or URL of a database, with the same columns.")],
    query: Annotated[str | None, typer.Option(help="The SELECT, where OTHER is a database.")] = None,
    alpha: Annotated[float, typer.Option(help="Level: how often tables of one population may be told apart.")] = 0.05,
    permutations: Annotated[int, typer.Option(min=1, max=10**6, help="Of the permutation test.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of permutations, simulations and samples of rows.")] = 0,
    out: options.Out = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> None:
    """Test whether OTHER comes from the population of the released table, by maximum mean discrepancy (MMD).

    A release by random features is tested by its private vector, allowing for the noise, and any release by
    permutations of its rows, which is a rough guide. OTHER is read as it is and no noise is added: the result is
    private to who holds OTHER. It costs the released table nothing.
    """
    options.set_messages(quiet, verbose)
    if not 0 < alpha < 1:
        raise InputError(f"--alpha {alpha:g}", "a number between 0 and 1 is wanted")
    out = output.out_file(out, "dp-test", str(release), other, release.with_suffix(".json"))

    import numpy as np

    from thesis_cli.privacy.kernels import Rows
    from thesis_cli.privacy.release_files import read_release
    from thesis_cli.privacy.table import open_table, rows

    began = time.perf_counter()
    found = read_release(release)
    opened = open_table(other, query)
    blocks = list(rows(opened, found.schema))
    if sum(map(len, blocks)) < 2:
        raise InputError("it has fewer than two rows", "two or more are wanted", source=opened.source)
    by_vector, by_rows = np.random.default_rng(seed).spawn(2)
    table, results = Rows.concatenate(blocks), []
    if found.record["method"] == "features":
        results.append(_by_vector(found, table, by_vector))
    else:
        options.logger.info("a release by %s has permutations only: no vector of features", found.record["method"])
    if (found.weights < 0).any():
        options.logger.info("no permutations: weights below 0 make no sample")
    else:
        results.append(_by_rows(found, table, permutations, by_rows))
    if not results:
        raise InputError("neither test fits a release with weights below 0", "plain rows are wanted", source=release)
    seconds = time.perf_counter() - began
    told_apart = results[0].p_value <= alpha
    settings = {"release": str(release), "other": opened.source, "query": query, "alpha": alpha, "seed": seed}
    tests = [_row(result) for result in results]
    if as_json:
        summary = {**settings, "differ": told_apart, "tests": tests, "seconds": round(seconds, 3), "out": str(out)}
        output.print_json(summary)
    else:
        output.print_table([*map(_line, results), ("verdict", _verdict(results[0], alpha))])
    output.write_table(out, tests, settings, seconds)
    options.logger.info("wrote %s", out)


def _by_vector(release: Release, other: Rows, rng: np.random.Generator) -> TwoSampleResult:
    import numpy as np

    from thesis_cli.privacy.release import release_features
    from thesis_cli.privacy.two_sample import noisy_mean_test

    record, mechanism = release.record, release.record["mechanism"]
    return noisy_mean_test(
        release_features(record),
        np.array(record["vector"], np.float64),
        mechanism["scale"],
        record["promise"]["rows"],
        other,
        rng,
        noise="laplace" if mechanism["norm"] == 1 else "gaussian",
    )


def _by_rows(release: Release, other: Rows, permutations: int, rng: np.random.Generator) -> TwoSampleResult:
    """With weights that differ, rows are drawn by them."""
    from thesis_cli.privacy.two_sample import MOST, permutation_test

    points, weights = release.points, release.weights
    if weights.min() < weights.max():
        points = points[rng.choice(len(points), min(len(points), MOST), p=weights / weights.sum())]
        options.logger.info("permutations of %d rows drawn by their weights", len(points))
    for name, rows in (("the release", points), ("the other table", other)):
        if len(rows) > MOST:
            options.logger.info("permutations of %d of the %d rows of %s, drawn at random", MOST, len(rows), name)
    return permutation_test(release.kernel, points, other, permutations, rng)


def _row(result: TwoSampleResult) -> dict[str, object]:
    return {"mmd": math.sqrt(max(0.0, result.mmd_squared)), **asdict(result)}


def _line(result: TwoSampleResult) -> tuple[str, str]:
    mmd = math.sqrt(max(0.0, result.mmd_squared))
    kind = "released rows, a rough guide" if result.test == "permutation" else "released vector"
    return result.test, f"MMD {mmd:.4g}, statistic {result.statistic:.4g}, p {_p_value(result)}  ({kind})"


def _verdict(result: TwoSampleResult, alpha: float) -> str:
    if result.p_value <= alpha:
        return f"the populations differ (p {_p_value(result)}, at level {alpha:g}, by {result.test})"
    return f"no difference found (p {_p_value(result)}, at level {alpha:g}, by {result.test})"


def _p_value(result: TwoSampleResult) -> str:
    """Below what the draws resolve, a bound."""
    least = 1 / (1 + result.draws)
    return f"<= {least:.2g}" if result.p_value <= least else f"= {result.p_value:.4g}"
