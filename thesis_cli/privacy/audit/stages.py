r"""Audit of every noisy vector, and every choice, of releases whose columns have all types.

The noise of each vector is measured: a release of known rows is repeated, and the audit sees the vectors
before and after the noise. Both neighbours are compared given the same noisy vectors of the stages
before, as often as there are releases. Five claims are tested.

1. The noise is not less than the record says, but for a hundredth: a chi-squared bound on its standard
   deviation; of choices, a likelihood ratio bound on their scale.
2. No coordinate, or marginal, has much less noise than the record says: the same bound for each of them.
3. No vector of the two neighbours is farther apart than the sensitivity that its stage claims.
4. Zero-concentrated privacy of rho bounds the relative entropy of the releases of two neighbours by rho
   (Bun and Steinke 2016). For independent Gaussian noise that is the mean over releases of the sum over
   stages of |shift|^2 / (2 sigma^2), here with the measured sigma: a lower bound on it must not exceed
   the rho that the budget allows. It holds at any epsilon, and assumes the law of the noise, unlike the
   bounds of `bounds`; what repeats or correlates is found there.
5. All that a stage decides follows from noisy vectors: tables that have nothing in common, with the
   noisy vectors held, have plans of the same sizes, sensitivities and scales.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.audit.scores import first_difference
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.release.marginals import Marginal

LEAST = 4
"""Fewest releases of an audit."""
BOUNDS = 50
"""Bounds that share the error of an audit."""
LESS = 0.99
"""Noise of less than this part of what the record says is contradicted; more is within rounding."""
REACH = 1 + 1e-9
"""Largest distance of two vectors over their claimed sensitivity; the rest is rounding."""
TINY, LARGEST = 1e-9, 1e3
"""Least part of the noise in the record that is taken for noise, and largest part that is looked for."""


@dataclass(frozen=True)
class Stage:
    """One vector of a release, with Gaussian noise.

    Attributes
    ----------
    vector, noisy : without noise and with noise.
    scale : scale of the noise in the record.
    granularity : what the noise is a multiple of; 0 if it is continuous.
    sensitivity : claimed bound on the distance of two neighbours' vectors.
    parts : numbers of coordinates of the parts whose noise is measured apart; each coordinate by default.
    marginals : noisy counts that the vector stands for, if they are counts.
    record : text that follows from the noisy vectors, if it is compared.
    """

    vector: Floats
    noisy: Any
    scale: float
    granularity: float = 0.0
    sensitivity: float = math.inf
    parts: tuple[int, ...] = ()
    marginals: tuple[Marginal, ...] = ()
    record: str = ""

    def reach(self, other: Stage) -> float:
        """Distance of both vectors over the claimed sensitivity."""
        return float(np.linalg.norm(self.vector - other.vector)) / self.sensitivity

    def divergence(self, other: Stage, factor: float) -> float:
        """Relative entropy of both stages, whose noise is that of the record times a factor."""
        return float(((self.vector - other.vector) ** 2).sum()) / (2 * (factor * self.scale) ** 2)

    @staticmethod
    def noise(stages: Sequence[Any], level: float) -> tuple[float, float]:
        """Upper bounds on the noise of all coordinates, and on the least noise of a part of them, over the
        scale in the record; each fails with probability `level`.

        Parameters
        ----------
        stages : the same stage of several releases.
        """
        from scipy.special import chdtri

        squares = [((s.noisy - s.vector) / s.scale) ** 2 for s in stages]
        size = sum(x.size for x in squares)
        # A chi-squared variable of `size` degrees of freedom is below this quantile with probability `level`.
        pooled = math.sqrt(sum(float(x.sum()) for x in squares) / chdtri(size, 1 - level))
        if len({s.parts or x.size for s, x in zip(stages, squares, strict=True)}) > 1:
            return pooled, math.inf  # the plan differs between releases, so that no part has a meaning
        parts = np.array(stages[0].parts or [1] * squares[0].size)
        # Noise on a grid can be 0 by chance, so that half a step is added.
        rounded = sum(((np.abs(s.noisy - s.vector) + s.granularity / 2) / s.scale) ** 2 for s in stages)
        each = np.add.reduceat(rounded, np.cumsum(parts) - parts)
        return pooled, math.sqrt(float((each / chdtri(len(stages) * parts, 1 - level / len(parts))).min()))


@dataclass(frozen=True)
class ChoiceStage(Stage):
    """Choices of the exponential mechanism: `vector` has the scores of the candidates of each, shape (C, K),
    and `noisy` the candidates that were chosen, each time anew, shape (C, times).
    """

    def divergence(self, other: Stage, factor: float) -> float:
        """See `Stage.divergence`: of the distributions of all choices."""
        one, rest = (_log_shares(stage.vector, factor * self.scale) for stage in (self, other))
        return float((np.exp(one) * (one - rest)).sum())

    @staticmethod
    def noise(stages: Sequence[Any], level: float) -> tuple[float, float]:
        """See `Stage.noise`. The sum of the chosen scores is sufficient for the scale, and so the Chernoff
        bound on its tail is the likelihood ratio of the likeliest scale and the bound.
        """
        from scipy.optimize import brentq, minimize_scalar

        scores = np.concatenate([s.vector / s.scale for s in stages])
        chosen = np.concatenate([s.noisy for s in stages])

        def likelihood(log_factor: float) -> float:
            return float(np.take_along_axis(_log_shares(scores, math.exp(log_factor)), chosen, 1).sum())

        ends = math.log(TINY), math.log(LARGEST)
        likeliest = float(minimize_scalar(lambda x: -likelihood(x), bounds=ends, method="bounded").x)
        allowed = likelihood(likeliest) + math.log(level)
        if likelihood(ends[1]) >= allowed:
            return LARGEST, math.inf
        return math.exp(float(brentq(lambda x: likelihood(x) - allowed, likeliest, ends[1]))), math.inf


def _log_shares(scores: Floats, scale: float) -> Floats:
    """Logarithms of the probabilities of candidates by their scores, shape (C, K)."""
    from scipy.special import logsumexp

    found: Floats = scores / scale
    return found - logsumexp(found, 1, keepdims=True)


Releasing = Callable[[Rows, Sequence[Stage]], list[Stage]]
"""Releases rows, with new noise, or with the noisy vectors of an earlier release."""


@dataclass(frozen=True)
class Case:
    """Two neighbours, and how they are released.

    Attributes
    ----------
    name : kind of release.
    rho : rho that the budget allows.
    release : entry point.
    tables : rows of both neighbours.
    far : rows of a table that has nothing in common with them.
    runs : releases that are made for each that is asked for.
    """

    name: str
    rho: float
    release: Releasing
    tables: tuple[Rows, Rows]
    far: Rows
    runs: float = 1.0


@dataclass(frozen=True, kw_only=True)
class StageReport:
    """Findings of an audit of the stages of one kind of release.

    Attributes
    ----------
    name, runs : kind of release, and number of releases.
    rho : rho that the budget allows.
    proven : lower bound on the relative entropy of the two neighbours' releases.
    noise : for each stage, upper bound on its noise over the scale in the record.
    least : for each stage, upper bound on the least noise of a part of it, likewise; infinite if the plan
        of the stage differs between releases.
    reach : for each stage, largest distance of the neighbours' vectors over the claimed sensitivity.
    depends : what a plan takes from the table and not from noisy vectors; empty if nothing.
    confidence : confidence level of all bounds together.
    """

    name: str
    runs: int
    rho: float
    proven: float
    noise: tuple[float, ...]
    least: tuple[float, ...]
    reach: tuple[float, ...]
    depends: str
    confidence: float

    @property
    def share(self) -> float:
        """Proven part of the claim, in units of the noise: the root of the share of rho."""
        return math.sqrt(max(0.0, self.proven) / self.rho)

    @property
    def contradictions(self) -> list[str]:
        """Claims that the releases disprove."""
        found = []
        for k, (all_of_it, least, reach) in enumerate(zip(self.noise, self.least, self.reach, strict=True), 1):
            if all_of_it < LESS:
                found.append(f"the noise of vector {k} is at most {all_of_it:.3f} of the scale in the record")
            elif least < LESS:
                found.append(f"the noise of a part of vector {k} is at most {least:.3f} of the scale in the record")
            if reach > REACH:
                found.append(f"vectors {k} of two neighbours are {reach:.4g} sensitivities apart")
        if self.proven > self.rho:
            found.append(f"rho is at least {self.proven:.4g}, not {self.rho:.4g}")
        return [*found, self.depends] if self.depends else found

    @property
    def verdict(self) -> Literal["not contradicted", "contradicted"]:
        """Whether the releases contradict a claim."""
        return "contradicted" if self.contradictions else "not contradicted"

    def summary(self) -> dict[str, Any]:
        """Everything, for JSON, in which no bound is infinite."""
        least = tuple(x if math.isfinite(x) else None for x in self.least)
        facts = {**asdict(self), "least": least}
        return {**facts, "share": self.share, "verdict": self.verdict, "contradictions": self.contradictions}


def stage_audit(case: Case, runs: int, confidence: float, tick: Tick | None = None) -> StageReport:
    """Release both neighbours in turn, and test the claims.

    Parameters
    ----------
    case : the neighbours, and how they are released.
    runs : number of releases, times that of the case; at least 4 are made.
    confidence : confidence level of all bounds together.

    Raises
    ------
    InputError : what a release raises.
    """
    from scipy.special import ndtri

    pairs = list[tuple[list[Stage], list[Stage]]]()
    depends, level = "", (1 - confidence) / BOUNDS
    for run in range(max(LEAST, round(runs * case.runs))):
        found = case.release(case.tables[run % 2], ())
        pairs.append((found, case.release(case.tables[1 - run % 2], found)))
        depends = depends or _difference(*pairs[-1])
        depends = depends or ("" if run else _difference(found, case.release(case.far, found)))
        if depends:
            break
        if tick:
            tick(1)
    noise, least, reach, proven = (), (), (), 0.0
    if pairs and len({len(found) for pair in pairs for found in pair}) == 1 and not depends:
        stages = list(zip(*(found for found, _ in pairs), strict=True))
        noise, least = zip(*(type(own[0]).noise(own, level) for own in stages), strict=True)
        reach = tuple(np.max([[a.reach(b) for a, b in zip(*pair, strict=True)] for pair in pairs], axis=0).tolist())
        each = np.array([_divergence(*pair, noise) for pair in pairs])
        error = float(each.std(ddof=1)) / math.sqrt(len(each)) if len(each) > 1 else 0.0
        proven = float(each.mean()) + float(ndtri(level)) * error
    return StageReport(
        name=case.name,
        runs=len(pairs),
        rho=case.rho,
        proven=proven,
        noise=noise,
        least=least,
        reach=reach,
        depends=depends,
        confidence=confidence,
    )


def _divergence(one: Sequence[Stage], other: Sequence[Stage], noise: Sequence[float]) -> float:
    """Relative entropy of two neighbours' stages with the measured noise."""
    return sum(a.divergence(b, max(x, TINY)) for a, b, x in zip(one, other, noise, strict=True))


def _difference(one: Sequence[Stage], other: Sequence[Stage]) -> str:
    """First difference of the plans of two tables, given the same noisy vectors; empty if there is none."""
    for k, (a, b) in enumerate(zip(one, other, strict=False), 1):
        if a.vector.shape != b.vector.shape:
            return f"the size of vector {k} depends on the table, not on noisy vectors alone"
        if a.scale != b.scale:
            return f"the scale of vector {k} depends on the table, not on noisy vectors alone"
        if a.record != b.record:
            return f"the record depends on the table: {first_difference(a.record, b.record)}"
    if len(one) != len(other):
        return "the number of vectors depends on the table, not on noisy vectors alone"
    return ""
