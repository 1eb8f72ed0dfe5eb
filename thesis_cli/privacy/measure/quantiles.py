"""Private quantiles: choices among public candidates by the exponential mechanism.

The candidates are cells of a public grid. With F(c) rows at or below cell c and n rows in all, the
score of c for the rank r is -max(0, r - F(c), F(c - 1) - r): the distance of r from the ranks that c
has. One cell has score 0, and a replaced row moves each score by at most 1, also for r = q n.

A quantile takes three choices: for the rank q n, and for q n - t and q n + t, which give the ends of
an interval. The mechanism chooses a score below -t with probability at most K exp(-t / scale) among
K candidates, so with t = scale ln(2 K / (1 - LEVEL)) the interval has the quantile of the table with
probability `LEVEL` or more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.privacy.measure.intervals import LEVEL, Law, guessing
from thesis_cli.privacy.measure.parts import Integers, MeasuredRow, Part, cell_of
from thesis_cli.privacy.mechanisms.mechanism import Measurement, opendp
from thesis_cli.privacy.query.weighted_sample import WeightedSample

CANDIDATES = 1000
SENSITIVITY = 1 + 2**-20
"""Largest change of a score if one row is replaced, with the rounding of q n."""
CHOICES = ("low", "value", "high")
"""Choices of a quantile, each of a third of its share of the budget."""


@dataclass(frozen=True, kw_only=True)
class Quantile(Part):
    """Quantiles of a number, in groups.

    Attributes
    ----------
    share : share q of the rows at or below the quantile.
    edges : edges of the candidates' cells, one more than cells.
    whole : whether a cell is a single whole number, in its middle.
    log : whether widths are compared by their logarithms.
    """

    share: float
    edges: Floats
    whole: bool = False
    log: bool = False

    @property
    def factors(self) -> Floats:
        return np.ones(len(self.groups.labels) * self.candidates)

    @property
    def candidates(self) -> int:
        """Number of cells."""
        return len(self.edges) - 1

    @property
    def touched(self) -> int:
        """Number of groups whose scores change if one row is replaced."""
        return min(2, len(self.groups.labels))

    def sensitivity(self, norm: int) -> float:
        """Largest change of a score."""
        return SENSITIVITY

    def sums(self, sample: WeightedSample) -> Integers:
        """Numbers of rows of each group in each cell; they get no noise, and scores follow from
        them.
        """
        data = sample.number(self.query, self.query.arguments[0])
        cells = cell_of(data, self.edges, "left")
        groups = self.groups.places(self.query, sample)
        used = (cells >= 0) & (groups >= 0)
        size = len(self.groups.labels) * self.candidates
        return np.bincount(groups[used] * self.candidates + cells[used], minlength=size).astype(np.int64)

    def margin(self, scale: float) -> float:
        """Distance t of the ranks of the interval's ends from the quantile's."""
        return scale * math.log(2 * self.candidates / (1 - LEVEL))

    def scores(self, counts: Floats, choice: str, scale: float) -> Floats:
        """Scores of the candidates from the numbers of rows in them, for one group and choice.

        The lowest candidate for the lower end is at least as good as any rank below the rows, and
        so is the highest one for the upper end: the public bounds are there if ranks run out.
        """
        upto = np.cumsum(counts)
        before = upto - counts
        rank = self.share * upto[-1] + self.margin(scale) * (CHOICES.index(choice) - 1)
        too_low, too_high = rank - upto, before - rank
        if choice == "low":
            too_high[0] = -math.inf
        if choice == "high":
            too_low[-1] = -math.inf
        return np.asarray(-np.maximum(0.0, np.maximum(too_low, too_high)))

    def ends(self, cell: int) -> tuple[float, float]:
        """Lowest and highest value of a cell."""
        low, high = float(self.edges[cell]), float(self.edges[cell + 1])
        return ((low + high) / 2,) * 2 if self.whole else (low, high)

    def middle(self, cell: int) -> float:
        """Value that stands for a cell."""
        low, high = self.ends(cell)
        return math.sqrt(low * high) if self.log else (low + high) / 2

    def _row_of(self, group: str, cells: dict[str, int]) -> MeasuredRow:
        """Answer from the chosen cells."""
        low = min(self.ends(cells["low"])[0], self.ends(cells["value"])[0])
        high = max(self.ends(cells["high"])[1], self.ends(cells["value"])[1])
        bounds = self.ends(0)[0], self.ends(self.candidates - 1)[1]
        form = math.log if self.log else float
        note = guessing(form(low), form(high), (form(bounds[0]), form(bounds[1])))
        name = f"quantile {self.share:g}"
        return MeasuredRow(self.query.text, group, name, self.middle(cells["value"]), low, high, note)

    def expected(self, law: Law, rows: float) -> tuple[str, float, str]:
        """Share of the ranks between the value and an end; the scale of the law is that of a
        choice.
        """
        return f"quantile {self.share:g}", min(1.0, self.margin(law.scale) / rows), "share of ranks"

    def answers(self, noisy: Floats, law: Law, rows: float) -> list[MeasuredRow]:
        """Answers from the chosen cells, three numbers for each group in the order of `CHOICES`."""
        chosen = noisy.astype(np.int64).reshape(-1, len(CHOICES)).tolist()
        pairs = zip(self.groups.labels, chosen, strict=True)
        return [self._row_of(label, dict(zip(CHOICES, cells, strict=True))) for label, cells in pairs]


@lru_cache(maxsize=64)
def choice_scale(cost: float, gaussian: bool) -> float:
    """Least scale of the exponential mechanism for these scores and a cost: rho of
    zero-concentrated privacy, or epsilon.
    """
    scale = SENSITIVITY / math.sqrt(2 * cost) if gaussian else 2 * SENSITIVITY / cost
    while choice_cost(scale, gaussian) > cost:
        scale *= 1 + 2**-40
    return scale


def choice_cost(scale: float, gaussian: bool) -> float:
    """Cost of a choice, by OpenDP's map."""
    return float(_choice(scale, gaussian).map(SENSITIVITY))


def opendp_choose(scores: Floats, scale: float, gaussian: bool) -> int:
    """Index of a high score, chosen privately by OpenDP's make_noisy_max.

    Parameters
    ----------
    scores : scores of the candidates, shape (K,).
    scale : scale of the noise.
    gaussian : whether the budget has a delta, so that rho counts, and not epsilon.
    """
    return int(_choice(scale, gaussian)(scores.tolist()))


@lru_cache(maxsize=64)
def _choice(scale: float, gaussian: bool) -> Measurement:
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    measure = dp.zero_concentrated_divergence() if gaussian else dp.max_divergence()
    return dp.m.make_noisy_max(*space, measure, scale=scale)
