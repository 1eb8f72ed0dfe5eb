r"""Two-sided low-rank bounds on Renyi entropies, for models too large to enumerate (Thesis section 3.3.2).

H_alpha = (ln Z_alpha - alpha ln Z) / (1 - alpha), Z_alpha = sum_x e^{alpha phi(x)} (eq. 3.27). Let U_alpha be the mean
of max {alpha phi + sum_i gamma_i} and L_alpha that of max {alpha phi + sum_i gamma_i / n}, n the number of variables
with two states or more: L_alpha <= ln Z_alpha <= U_alpha. Both logarithms are replaced by the bound that errs to the
side that is wanted, where the sign of 1 - alpha counts:

    alpha < 1:  (L_alpha - alpha U_1) / (1 - alpha)  <=  H_alpha  <=  (U_alpha - alpha L_1) / (1 - alpha)
    alpha > 1:  (alpha L_1 - U_alpha) / (alpha - 1)  <=  H_alpha  <=  (alpha U_1 - L_alpha) / (alpha - 1)

A known ln Z takes the place of U_1 and L_1 (eq. 3.15 is ln Z = 0). At alpha = 0 the second term is absent, and Z_0
counts the possible configurations. In the limit alpha = inf, L_1 - max phi <= H_inf <= U_1 - max phi: the first
maximum needs no noise (section 3.3.1). Each side is linear in the maxima, so that the mean over perturbations is a
bound in expectation.

Every maximum is taken under the same noise. As U_alpha and L_alpha rise with each gamma_i(x_i), their samples have
covariances of at least 0 (Harris's inequality, as for Proposition 8). The two in a bound have opposite signs, so
sharing never raises its variance.

For alpha < 1 the lower bound is often negative. As H_alpha does not rise with alpha, the lower bound at any larger
alpha is one too; for known ln Z, H_inf is exact.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Tick
from thesis_cli.inference.solver import MapSolver
from thesis_cli.inference.tempered import Tempered
from thesis_cli.models.factor_graph import FactorGraph
from thesis_cli.perturbation.estimate import Estimate, check_confidence
from thesis_cli.perturbation.low_rank import Scale, check_found, low_rank_maxima
from thesis_cli.perturbation.low_rank_bounds import half_width

Side = Literal["lower", "upper"]

LEAST_ALPHA, LARGEST_ALPHA = 1e-6, 1e6
"""Between 0 and infinity, those for which phi and noise / alpha keep ten digits in one sum."""

SHANNON_ALPHAS = (
    *(k / 20 for k in range(20)),
    *(1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 20.0, math.inf),
)
"""What `shannon_sandwich` chooses from."""


@dataclass(frozen=True)
class EntropyBounds:
    """What encloses one entropy, in nats.

    Attributes
    ----------
    alpha : order of the entropy; 1 is Shannon's.
    lower, upper : sample versions of the two bounds.
    """

    alpha: float
    lower: Estimate
    upper: Estimate


def low_rank_bounds(
    make_solver: Callable[[FactorGraph], MapSolver],
    graph: FactorGraph,
    alphas: Sequence[float],
    count: int,
    seed: np.random.SeedSequence,
    *,
    log_z: float | None = None,
    confidence: float = 0.95,
    jobs: int = 1,
    progress: Tick | None = None,
) -> list[EntropyBounds]:
    """Bounds on H_alpha of p(x) = exp(phi(x)) / Z (Thesis eq. 3.15, and its form for unknown Z).

    Each alpha takes 2 `count` MAP problems, and ln Z, if it is not known, another 2 `count` in all; alpha = inf
    takes one. What an alpha gives does not depend on which others are asked for.

    With an approximate solver, whose maxima may be too low, a bound keeps its meaning only if a maximum that is too
    low moves it outward: lower bounds for alpha < 1 and upper bounds for alpha > 1, where ln Z is known or absent.

    Parameters
    ----------
    make_solver : called with `graph`, and for alpha = 0 with `graph.tempered(0)`, once each.
    alphas : 0, from 1e-6 to 1e6, or inf; not 1.
    count : number M of perturbations.
    seed : root of the random streams.
    log_z : exact ln Z, if it is known.
    confidence : that a normal interval covers the expectation of the bound.
    jobs : threads.
    progress : called with the number of MAP problems just solved.

    Returns
    -------
    bounds : in the order of `alphas`. The standard error is that of the difference under shared noise, inf if M = 1.

    Raises
    ------
    InputError : alpha, count, ln Z or confidence out of range.
    NoConfiguration, WorkFailed : as `low_rank_maxima`.
    """
    for alpha in alphas:
        _check_alpha(alpha)
    perturbed = _Perturbed(_Solvers(make_solver, graph), count, seed, log_z, confidence, jobs, progress)
    return [EntropyBounds(a, *(perturbed.bound(a, side) for side in ("lower", "upper"))) for a in alphas]


def shannon_sandwich(
    make_solver: Callable[[FactorGraph], MapSolver],
    graph: FactorGraph,
    count: int,
    seed: np.random.SeedSequence,
    *,
    alphas: Sequence[float] = SHANNON_ALPHAS,
    log_z: float | None = None,
    confidence: float = 0.95,
    jobs: int = 1,
    progress: Tick | None = None,
) -> EntropyBounds:
    """Bounds on the Shannon entropy, H_{alpha_2} <= H_1 <= H_{alpha_1} for alpha_1 < 1 < alpha_2 (Thesis eq. 3.16).

    Half of the perturbations choose the two alphas whose bounds are tightest at the far end of their intervals, the
    other half evaluate these: the best of several bounds on the same samples would be biased inward. `method` tells
    the entropy that was chosen. A bound as loose as H_0 or H_inf says that the low-rank bounds are too loose nearer
    1, where their error is divided by |1 - alpha|.

    Costs about `count` / 2 MAP problems for each finite alpha, and 2 `count` more at most.

    Parameters
    ----------
    count : number of perturbations, two or more.
    alphas : to choose from, some below 1 and some above.
    seed, log_z, confidence, jobs, progress : as for `low_rank_bounds`.

    Raises
    ------
    InputError : as `low_rank_bounds`, and alphas on one side of 1 only.
    NoConfiguration, WorkFailed : as `low_rank_maxima`.
    """
    for alpha in alphas:
        _check_alpha(alpha)
    below, above = [a for a in alphas if a < 1], [a for a in alphas if a > 1]
    if not (below and above):
        raise InputError("the alphas are on one side of 1", "some below 1 and some above are wanted")
    if count < 2:
        raise InputError(f"{count} perturbations", "two at least, to choose alpha on one half, are wanted")
    solvers = _Solvers(make_solver, graph)
    chooser, evaluator = (
        _Perturbed(solvers, size, seed, log_z, confidence, jobs, progress) for size in (count // 2, count - count // 2)
    )

    def chosen(side: Side, candidates: Sequence[float]) -> Estimate:
        tried = [chooser.bound(a, side) for a in candidates]
        ends = [-e.low if side == "lower" else e.high for e in tried]
        alpha = candidates[ends.index(min(ends))]
        found = evaluator.bound(alpha, side)
        calls = found.map_calls + sum(e.map_calls for e in tried)
        return replace(found, target="H_1", method=found.target, map_calls=calls, source="Thesis eq. 3.16")

    return EntropyBounds(1.0, chosen("lower", above), chosen("upper", below))


def _check_alpha(alpha: float) -> None:
    if alpha == 1:
        raise InputError("alpha is 1", "the Shannon entropy has bounds by entropies of other alphas only")
    if not (alpha in (0, math.inf) or LEAST_ALPHA <= alpha <= LARGEST_ALPHA):
        raise InputError(f"alpha is {alpha:g}", f"0, {LEAST_ALPHA:g} to {LARGEST_ALPHA:g}, or inf is wanted")


class _Solvers:
    """MAP of alpha phi + noise for every alpha, by a solver of phi and one of its support, prepared if needed."""

    def __init__(self, make_solver: Callable[[FactorGraph], MapSolver], graph: FactorGraph) -> None:
        self._make, self._graph = make_solver, graph

    @cached_property
    def _own(self) -> MapSolver:
        return self._make(self._graph)

    @cached_property
    def _support(self) -> MapSolver:
        return self._make(self._graph.tempered(0))

    def base(self, alpha: float) -> MapSolver:
        """The one that is prepared: of phi, but at alpha = 0 of its support."""
        return self._support if alpha == 0 else self._own

    def at(self, alpha: float) -> MapSolver:
        """Of alpha phi, alpha finite."""
        return self.base(alpha) if alpha in (0, 1) else Tempered(self._own, alpha)


class _Perturbed:
    """Perturbed maxima of alpha phi, under one noise for every alpha and scale, each solved for when first needed.

    The noise is that of the next child of `seed`.
    """

    def __init__(
        self,
        solvers: _Solvers,
        count: int,
        seed: np.random.SeedSequence,
        log_z: float | None,
        confidence: float,
        jobs: int,
        progress: Tick | None,
    ) -> None:
        check_confidence(confidence)
        if log_z is not None and not math.isfinite(log_z):
            raise InputError(f"ln Z is {log_z:g}", "a finite number is wanted")
        self._solvers, self._count, self._root = solvers, count, seed.spawn(1)[0]
        self._log_z, self._confidence = log_z, confidence
        self._jobs, self._progress = jobs, progress
        self._found: dict[tuple[float, Scale | None], Floats] = {}

    def _maxima(self, alpha: float, scale: Scale) -> Floats:
        """Samples of U_alpha (`sum`) or L_alpha (`average`), shape (M,); max phi, shape (1,), at alpha = inf."""
        key = alpha, None if alpha == math.inf else scale
        if key not in self._found:
            self._found[key] = self._highest() if alpha == math.inf else self._solve(alpha, scale)
        return self._found[key]

    def _solve(self, alpha: float, scale: Scale) -> Floats:
        same = copy.deepcopy(self._root)  # low_rank_maxima spawns from the one it is given
        solver = self._solvers.at(alpha)
        return low_rank_maxima(solver, self._count, same, scale=scale, jobs=self._jobs, progress=self._progress).values

    def _highest(self) -> Floats:
        solver = self._solvers.base(math.inf)
        values, _ = solver.maximise(np.zeros((1, sum(solver.graph.cardinalities))))
        check_found(values, solver)
        if self._progress:
            self._progress(1)
        return values

    def bound(self, alpha: float, side: Side) -> Estimate:
        """The sample version of one side of the bounds on H_alpha."""
        above = (side == "upper") == (alpha < 1)  # whether ln Z_alpha is replaced by its upper bound
        tempered = self._maxima(alpha, "sum" if above else "average")
        known = alpha == 0 or self._log_z is not None
        log_z = np.array([self._log_z or 0.0]) if known else self._maxima(1.0, "average" if above else "sum")
        samples = log_z - tempered if alpha == math.inf else (tempered - alpha * log_z) / (1 - alpha)
        value, m = float(samples.mean()), samples.size
        certain = known and alpha == math.inf
        error = 0.0 if certain else float(samples.std(ddof=1)) / math.sqrt(m) if m > 1 else math.inf
        half = half_width(error, self._confidence)
        kind = f"{side} bound" if certain else f"{side} bound in expectation"
        if self._solvers.base(alpha).guarantee == "approximate" and (above or not known):
            kind = f"approximate {side} bound"
        return Estimate(
            value,
            error,
            value - half,
            value + half,
            f"H_{alpha:.12g}",
            kind,
            self._confidence,
            tempered.size + (0 if known else log_z.size),
            _formula(alpha, *("UL" if above else "LU"), known=self._log_z is not None),
            "Thesis eq. 3.15",
        )


def _formula(alpha: float, bound: str, other: str, *, known: bool) -> str:
    """How a bound is made, U_a and L_a being those on ln Z_a: `(U_0.4 - 0.4 L_1) / 0.6`."""
    log_z = "ln Z" if known else f"{other}_1"
    if alpha == 0:
        return f"{bound}_0"
    if alpha == math.inf:
        return f"{log_z} - max"
    if alpha < 1:
        return f"({bound}_{alpha:g} - {alpha:g} {log_z}) / {1 - alpha:g}"
    return f"({alpha:g} {log_z} - {bound}_{alpha:g}) / {alpha - 1:g}"
