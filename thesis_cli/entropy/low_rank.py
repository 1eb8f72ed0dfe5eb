r"""Two-sided low-rank bounds on Renyi entropies, for models too large to enumerate (Thesis section
3.3.2).

H_a = (ln Z_a - a ln Z) / (1 - a) at order a, with Z_a = sum_x e^{a phi(x)} (eq. 3.27). Let U_a be
the mean of max {a phi + sum_i gamma_i} and L_a that of max {a phi + sum_i gamma_i / n}, where n is
the number of variables with two states or more. Then L_a <= ln Z_a <= U_a. Each bound on H_a
replaces both logarithms by the bound that errs to the required side, which depends on the sign
of 1 - a:

    a < 1:  (L_a - a U_1) / (1 - a)  <=  H_a  <=  (U_a - a L_1) / (1 - a)
    a > 1:  (a L_1 - U_a) / (a - 1)  <=  H_a  <=  (a U_1 - L_a) / (a - 1)

A known ln Z replaces U_1 and L_1 (eq. 3.15 is the case ln Z = 0). At order 0 the second term is
absent, and Z_0 counts the possible configurations. At order inf,
L_1 - max phi <= H_inf <= U_1 - max phi: max phi needs no noise (section 3.3.1). Each side is linear
in the maxima, so the mean over perturbations is a bound in expectation.

All maxima use the same noise. U_a and L_a increase with each gamma_i(x_i), so their samples have
non-negative covariances (Harris's inequality, as for Proposition 8). The two terms of a bound have
opposite signs, so sharing the noise never raises its variance.

At orders below 1 the lower bound is often negative. Since H_a does not increase with a, the lower
bound at any larger order holds too; if ln Z is known, H_inf is exact.
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
from thesis_cli.base.rounding import difference, mean_of, sample_deviation
from thesis_cli.inference.solver import MapSolver, TemperedSolver
from thesis_cli.models.factor_graph import FactorGraph
from thesis_cli.perturbation.estimate import Estimate, check_confidence
from thesis_cli.perturbation.low_rank.low_rank import Scale, check_found, low_rank_maxima
from thesis_cli.perturbation.low_rank.low_rank_bounds import half_width

Side = Literal["lower", "upper"]

LEAST_ORDER, LARGEST_ORDER = 1e-6, 1e6
"""Range of orders between 0 and inf for which the sum of phi and noise / order keeps ten digits of
each."""

SHANNON_ORDERS = (
    *(k / 20 for k in range(20)),
    *(1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 20.0, math.inf),
)
"""Orders that `shannon_sandwich` chooses from."""


@dataclass(frozen=True)
class EntropyBounds:
    """Bounds on one entropy, in nats.

    Attributes
    ----------
    order : order of the entropy; 1 is Shannon's.
    lower, upper : sample means of the two bounds.
    """

    order: float
    lower: Estimate
    upper: Estimate


class TemperedSolvers:
    """Solvers for MAP of `order` phi + noise at every finite order.

    They share one solver prepared for phi and, at order 0, one for its support. Each is prepared
    when first used.

    Parameters
    ----------
    make_solver : prepares a solver; called with `graph`, and for order 0 with `graph.tempered(0)`,
        once each.
    graph : phi.
    """

    def __init__(self, make_solver: Callable[[FactorGraph], MapSolver], graph: FactorGraph) -> None:
        self._make, self._graph = make_solver, graph

    @cached_property
    def _own(self) -> MapSolver:
        return self._make(self._graph)

    @cached_property
    def _support(self) -> MapSolver:
        return self._make(self._graph.tempered(0))

    def base(self, order: float) -> MapSolver:
        """The prepared solver for an order: that of phi, or at order 0 that of its support."""
        return self._support if order == 0 else self._own

    def at(self, order: float) -> MapSolver:
        """A solver of `order` phi, for a finite order."""
        return self.base(order) if order in (0, 1) else TemperedSolver(self._own, order)


def low_rank_bounds(
    solvers: TemperedSolvers,
    orders: Sequence[float],
    count: int,
    seed: np.random.SeedSequence,
    *,
    log_z: float | None = None,
    confidence: float = 0.95,
    jobs: int = 1,
    progress: Tick | None = None,
) -> list[EntropyBounds]:
    """Bounds on the Renyi entropies of p(x) = exp(phi(x)) / Z (Thesis eq. 3.15, and its form for
    unknown Z).

    Each finite order costs 2 `count` MAP problems, and an unknown ln Z another 2 `count` in all;
    order inf costs one. The bounds at one order do not depend on the other orders.

    An approximate solver may return maxima that are too low. A bound then still holds only if lower
    maxima move it outward, which is the case for lower bounds at orders below 1 and upper bounds at
    orders above 1, if ln Z is known or not needed. Raises InputError if an order, count, ln Z or
    confidence is out of range; NoConfiguration or WorkFailed as `low_rank_maxima` does.

    Parameters
    ----------
    solvers : solvers of the model.
    orders : 0, from 1e-6 to 1e6, or inf; not 1.
    count : number M of perturbations.
    seed : root of the random streams.
    log_z : exact ln Z, if it is known.
    confidence : probability with which a normal interval covers the expectation of the bound.
    jobs : threads.
    progress : called with the number of MAP problems just solved.

    Returns
    -------
    bounds : one for each order. The standard error is that of the difference under shared noise,
        inf if M = 1.
    """
    for order in orders:
        _check_order(order)
    perturbed = _Perturbed(solvers, count, seed, log_z, confidence, jobs, progress)
    return [EntropyBounds(a, *(perturbed.bound(a, side) for side in ("lower", "upper"))) for a in orders]


def shannon_sandwich(
    solvers: TemperedSolvers,
    count: int,
    seed: np.random.SeedSequence,
    *,
    orders: Sequence[float] = SHANNON_ORDERS,
    log_z: float | None = None,
    confidence: float = 0.95,
    jobs: int = 1,
    progress: Tick | None = None,
) -> EntropyBounds:
    """Bounds on the Shannon entropy, H_b <= H_1 <= H_a for orders a < 1 < b (Thesis eq. 3.16).

    Half of the perturbations choose the two orders whose bounds are tightest at the far end of
    their intervals; the other half evaluate them. The best of several bounds on the same samples
    would be biased inward. `method` names the entropy that was chosen: H_0 or H_inf means that the
    low-rank bounds are too loose nearer 1, where their error is divided by |1 - order|.

    Costs about `count` / 2 MAP problems for each finite order, and at most 2 `count` more. Raises
    InputError as `low_rank_bounds`, or all orders are on one side of 1; NoConfiguration or
    WorkFailed as `low_rank_maxima` does.

    Parameters
    ----------
    count : number of perturbations, 2 or more.
    orders : orders to choose from, some below 1 and some above.
    solvers, seed, log_z, confidence, jobs, progress : arguments of `low_rank_bounds`.
    """
    for order in orders:
        _check_order(order)
    below, above = [a for a in orders if a < 1], [a for a in orders if a > 1]
    if not (below and above):
        raise InputError("the orders are on one side of 1", "some must be below 1 and some above")
    if count < 2:
        raise InputError(f"the number of perturbations is {count}", "it must be 2 or more: half of them choose orders")
    chooser, evaluator = (
        _Perturbed(solvers, size, seed, log_z, confidence, jobs, progress) for size in (count // 2, count - count // 2)
    )

    def chosen(side: Side, candidates: Sequence[float]) -> Estimate:
        tried = [chooser.bound(a, side) for a in candidates]
        ends = [-e.low if side == "lower" else e.high for e in tried]
        order = candidates[ends.index(min(ends))]
        found = evaluator.bound(order, side)
        calls = found.map_calls + chooser.problems(candidates, side)
        return replace(found, target="H_1", method=found.target, map_calls=calls, source="Thesis eq. 3.16")

    return EntropyBounds(1.0, chosen("lower", above), chosen("upper", below))


def _check_order(order: float) -> None:
    if order == 1:
        raise InputError("the order is 1", "only entropies of other orders bound the Shannon entropy")
    if not (order in (0, math.inf) or LEAST_ORDER <= order <= LARGEST_ORDER):
        raise InputError(f"the order is {order:g}", f"it must be 0, from {LEAST_ORDER:g} to {LARGEST_ORDER:g}, or inf")


class _Perturbed:
    """Perturbed maxima of `order` phi, with the same noise for every order and scale, each computed
    when first needed.

    The noise is that of the next child of `seed`.
    """

    def __init__(
        self,
        solvers: TemperedSolvers,
        count: int,
        seed: np.random.SeedSequence,
        log_z: float | None,
        confidence: float,
        jobs: int,
        progress: Tick | None,
    ) -> None:
        check_confidence(confidence)
        if log_z is not None and not math.isfinite(log_z):
            raise InputError(f"ln Z is {log_z:g}", "it must be finite")
        self._solvers, self._count, self._root = solvers, count, seed.spawn(1)[0]
        self._log_z, self._confidence = log_z, confidence
        self._jobs, self._progress = jobs, progress
        self._found: dict[tuple[float, Scale | None], Floats] = {}

    def _maxima(self, order: float, scale: Scale) -> Floats:
        """Samples of U (`sum`) or L (`average`) at an order, shape (M,); max phi, shape (1,), at
        order inf."""
        key = order, None if order == math.inf else scale
        if key not in self._found:
            self._found[key] = self._highest() if order == math.inf else self._solve(order, scale)
        return self._found[key]

    def _solve(self, order: float, scale: Scale) -> Floats:
        same = copy.deepcopy(self._root)  # low_rank_maxima spawns from the seed that it is given
        solver = self._solvers.at(order)
        return low_rank_maxima(solver, self._count, same, scale=scale, jobs=self._jobs, progress=self._progress).values

    def _highest(self) -> Floats:
        solver = self._solvers.base(math.inf)
        values, _ = solver.maximise(np.zeros((1, sum(solver.graph.cardinalities))))
        check_found(values, solver)
        if self._progress:
            self._progress(1)
        return values

    def _behind(self, order: float, side: Side) -> list[tuple[float, Scale]]:
        """The orders and scales of the maxima of a bound: those that replace the ln Z of the order
        and, unless it is known or not needed, that of phi.
        """
        above = (side == "upper") == (order < 1)  # whether the upper bound replaces ln Z at this order
        scales: tuple[Scale, Scale] = ("sum", "average") if above else ("average", "sum")
        known = order == 0 or self._log_z is not None
        return [(order, scales[0])] if known else [(order, scales[0]), (1.0, scales[1])]

    def problems(self, orders: Sequence[float], side: Side) -> int:
        """Number of MAP problems behind the bounds at some orders, which share those of phi."""
        return sum(self._maxima(*one).size for one in {one for order in orders for one in self._behind(order, side)})

    def bound(self, order: float, side: Side) -> Estimate:
        """The sample mean of one side of the bounds at an order."""
        behind = self._behind(order, side)
        above, known = behind[0][1] == "sum", len(behind) == 1
        tempered = self._maxima(*behind[0])
        log_z = np.array([self._log_z or 0.0]) if known else self._maxima(*behind[1])
        samples = (
            difference(log_z, tempered) if order == math.inf else difference(tempered, order * log_z) / (1 - order)
        )
        value, m = mean_of(samples), samples.size
        certain = known and order == math.inf
        error = 0.0 if certain else float(sample_deviation(samples)) / math.sqrt(m) if m > 1 else math.inf
        half = half_width(error, self._confidence)
        kind = f"{side} bound" if certain else f"{side} bound in expectation"
        if self._solvers.base(order).guarantee == "approximate" and (above or not known):
            kind = f"approximate {side} bound"
        return Estimate(
            value,
            error,
            value - half,
            value + half,
            f"H_{order:.12g}",
            kind,
            self._confidence,
            self.problems([order], side),
            _formula(order, *("UL" if above else "LU"), known=self._log_z is not None),
            "Thesis eq. 3.15",
        )


def _formula(order: float, bound: str, other: str, *, known: bool) -> str:
    """A bound as text, `(U_0.4 - 0.4 L_1) / 0.6`, where U_a and L_a bound ln Z_a."""
    log_z = "ln Z" if known else f"{other}_1"
    if order == 0:
        return f"{bound}_0"
    if order == math.inf:
        return f"{log_z} - max"
    if order < 1:
        return f"({bound}_{order:g} - {order:g} {log_z}) / {1 - order:g}"
    return f"({order:g} {log_z} - {bound}_{order:g}) / {order - 1:g}"
