"""`thesis-cli dp-test`: test whether another table comes from the population of a private release."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.common import seed_option, seed_or_fresh
from thesis_cli.commands.core.fields import Request, argument, given, option, settings_of
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.commands.inputs.tables import (
    ReleaseSource,
    TableSource,
    check_delimiter,
    delimiter_option,
    open_release,
    read_rows,
    release_argument,
    table_label,
)

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

    from thesis_cli.privacy.embedding.features import Features
    from thesis_cli.privacy.kernels import Rows
    from thesis_cli.privacy.query.two_sample import TwoSampleResult
    from thesis_cli.privacy.release.record import Release

logger = logging.getLogger("thesis_cli")


@dataclass(frozen=True, kw_only=True)
class PopulationTestRequest(Request):
    """Test by maximum mean discrepancy (MMD) whether a table comes from the population of a
    release.

    A release by random features is tested with its noisy vector, and the test allows for the noise.
    The rows of any release are also compared by permutations, which is a rough guide. The other
    table is read without adding noise, so the result is for those who may see that table. The test
    costs the released table no privacy.
    """

    usual = ("query", "level", "permutations", "seed")

    release: ReleaseSource = release_argument()
    other: TableSource = argument(
        "Table to compare: a CSV or Parquet file, - or the URL of a database, with the same columns.",
        names="file",
        objects=True,
    )
    query: str | None = option(None, "SELECT that gives OTHER, if it is a database.")
    delimiter: str | None = delimiter_option()
    level: float = option(
        0.05, "Level of the test: the largest probability of telling equal populations apart.", above=0, below=1
    )
    permutations: int = option(1000, "Permutations of the rows.", least=1, most=10**6)
    seed: int | None = seed_option()

    def check(self) -> None:
        check_delimiter(self.delimiter, self.other)


@dataclass(frozen=True, kw_only=True, repr=False)
class PopulationTestResult(Result):
    """Findings of the tests.

    Attributes
    ----------
    tests : the tests that the release allows; the first one gives the verdict.
    """

    tests: Sequence[TwoSampleResult]

    @property
    def differ(self) -> bool:
        """Whether the populations differ, by the first test at the level that was asked for."""
        return bool(self.tests[0].p_value <= self.settings["level"])

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """A line for each test, and the verdict."""
        verdict = "the populations differ" if self.differ else "no difference found"
        first, level = self.tests[0], self.settings["level"]
        reason = f"(p {_p_value(first)}, at level {level:g}, by {first.test})"
        return [*map(_line, self.tests), ("verdict", f"{verdict} {reason}")]

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """The verdict, and the numbers of each test."""
        return {"differ": self.differ, "tests": [_row(test) for test in self.tests]}

    @presentation
    def draw(self) -> Figure:
        """The p-value of each test beside the level."""
        from thesis_cli.commands.figures.releases import p_values_figure

        tests = self.tests
        names, values = [one.test for one in tests], [one.p_value for one in tests]
        return p_values_figure(names, values, [one.draws for one in tests], self.settings["level"])


def run(request: PopulationTestRequest, progress: Progress) -> PopulationTestResult:
    """Run the tests that the release allows."""
    import numpy as np

    from thesis_cli.privacy.release.release import implementation_of

    release = open_release(request.release)
    other = read_rows(request.other, release.schema, request.query, delimiter=request.delimiter)
    if len(other) < 2:
        raise InputError("the table has one row", "give two or more", source=table_label(request.other))
    seed = seed_or_fresh(request.seed)
    by_vector, by_rows = np.random.default_rng(seed).spawn(2)
    tests = []
    features = implementation_of(release.record.method).features(release.record)
    if features is not None:
        tests.append(_by_vector(release, features, other, by_vector))
    else:
        logger.info("a release by %s has no vector of features: permutations only", release.record.method)
    if (release.weights >= 0).all():
        tests.append(_by_rows(release, other, request.permutations, by_rows))
    elif not tests or "permutations" in given(request):
        raise InputError("rows with weights below 0 allow no permutations", "give a release of plain rows")
    else:
        logger.info("no permutations: rows with weights below 0 are no sample")
    return PopulationTestResult(
        columns=Columns([_row(test) for test in tests]),
        request=request,
        settings=settings_of(request, seed=seed),
        tests=tests,
    )


def _by_vector(release: Release, features: Features, other: Rows, rng: np.random.Generator) -> TwoSampleResult:
    import numpy as np

    from thesis_cli.privacy.query.two_sample import NoisyMean, noisy_mean_test
    from thesis_cli.privacy.release.vectors import noisy_vector

    vector, noise = noisy_vector(release.record)
    counted = release.record.count
    if counted.contribution_bound > 1:
        logger.info("rows of one person may be alike: N rows count as N / %d", counted.contribution_bound)
    return noisy_mean_test(
        features,
        NoisyMean(np.array(vector), noise.scale, max(1, round(counted.rows / counted.contribution_bound)), noise.noise),
        other,
        rng,
    )


def _by_rows(release: Release, other: Rows, permutations: int, rng: np.random.Generator) -> TwoSampleResult:
    """Compare rows; rows with different weights are drawn by their weights first."""
    from thesis_cli.privacy.query.two_sample import MOST, permutation_test

    points, weights = release.points, release.weights
    if weights.min() < weights.max():
        points = points[rng.choice(len(points), min(len(points), MOST), p=weights / weights.sum())]
        logger.info("permutations use %d rows drawn by their weights", len(points))
    for name, rows in (("the release", points), ("the other table", other)):
        if len(rows) > MOST:
            logger.info("permutations use %d of the %d rows of %s, drawn at random", MOST, len(rows), name)
    return permutation_test(release.kernel, points, other, permutations, rng)


def _row(result: TwoSampleResult) -> dict[str, object]:
    return {"mmd": math.sqrt(max(0.0, result.mmd_squared)), **asdict(result)}


@presentation
def _line(result: TwoSampleResult) -> tuple[str, str]:
    mmd = math.sqrt(max(0.0, result.mmd_squared))
    kind = "released rows, a rough guide" if result.test == "permutation" else "released vector"
    return result.test, f"MMD {mmd:.4g}, statistic {result.statistic:.4g}, p {_p_value(result)}  ({kind})"


@presentation
def _p_value(result: TwoSampleResult) -> str:
    """`= 0.03`, or a bound if the draws resolve no smaller value."""
    least = 1 / (1 + result.draws)
    return f"<= {least:.2g}" if result.p_value <= least else f"= {result.p_value:.4g}"


COMMAND = Command(
    PopulationTestRequest,
    run,
    examples=(
        "dp-test data/releases/people-features.csv data/tables/people.csv",
        "dp-test data/releases/people-features.csv data/tables/people.csv --level 0.01 --seed 1 --json",
        "dp-test data/releases/people-features.csv data/tables/people.csv --figure results/runs/test.png",
    ),
)
