"""ln Z of a continuous target by quadrature, with an error estimate: a reference for samplers.

A normal proposal ends `REACH` scales from its mean. It cuts off a target that has not vanished there; such a
target may have no finite integral.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError, NoConfiguration, WorkFailed
from thesis_cli.models.proposals import REACH, Normal
from thesis_cli.models.target_objects import UsersTarget
from thesis_cli.models.targets import Target, compiled, log_ratios, split_dimension

TOLERANCES = {1: 1e-10, 2: 1e-8, 3: 1e-6, 4: 1e-5}
"""Default relative error of Z by dimension."""

_NODES = {2: 8, 3: 6, 4: 5}  # Gauss points in each dimension; a rule with one fewer gives the error
_GRID = 4097
_NEGLIGIBLE = 50.0  # nats below the highest peak: lower peaks get no points of their own
_MOST_PEAKS = 256
_SEEN = 3.0  # nats: a box has no peak between nodes if its bound is this close to a node's value
_ROUND = 32

LOOSEST = 1e-3
"""Largest error of ln Z with which a value is returned."""

RIM = 0.05
"""A point is at an end of a normal proposal if it is so close, relative to the distance from the
mean to the end."""


@dataclass(frozen=True)
class Integral:
    """An integral by quadrature.

    Attributes
    ----------
    log_z : logarithm of the integral of exp(phi), nats.
    error : estimate of its absolute error, which is the relative error of Z.
    evaluations : number of evaluations of phi.
    """

    log_z: float
    error: float
    evaluations: int


def log_densities(target: Target, points: Floats) -> Floats:
    """Compute phi at points of shape (K, D); shape (K,).

    Raises
    ------
    WorkFailed : phi is NaN or infinite at one of them.
    """
    return np.asarray(target.proposal.log_density(points) + _ratios(target, points))


def _ratios(target: Target, points: Floats) -> Floats:
    """Compute o at points of shape (K, D); shape (K,). Raises as `log_densities`."""
    ratios = log_ratios(target, points)
    bad = np.flatnonzero(np.isnan(ratios) | (ratios == math.inf))
    if bad.size:
        place = ", ".join(f"{x:.6g}" for x in points[bad[0]])
        raise WorkFailed(f"quadrature met a log-ratio that is {ratios[bad[0]]:g}, at ({place})")
    return ratios


def integrate(target: Target, tolerance: float | None = None, max_evaluations: int | None = None) -> Integral:
    """Compute ln Z by quadrature.

    In one dimension, SciPy's adaptive rule integrates between points about each peak of exp(phi),
    which is divided by its maximum. In more dimensions, tensor Gauss rules integrate over boxes,
    and the boxes with the largest errors are halved. The error of a box is its bound until a node
    comes near the bound, so that no peak is missed.

    Parameters
    ----------
    target : density to integrate; in one dimension its bounds are not used.
    tolerance : largest relative error of Z; that of `TOLERANCES` by default.
    max_evaluations : limit in two and more dimensions; by default 2^23 for a compiled target, else
        2^19.

    Raises
    ------
    WorkFailed : quadrature did not converge, or a log-ratio is NaN or infinite.
    NoConfiguration : the target is 0 at every point where it was evaluated.
    """
    dimension = target.proposal.low.size
    largest = TOLERANCES[dimension] if tolerance is None else tolerance
    if dimension == 1:
        found = _line(target)
    else:
        most = max_evaluations or (2**19 if compiled(target) is None else 2**23)
        found = _boxes(target, largest, most)
    if not found.error <= largest:
        raise WorkFailed(
            f"quadrature did not converge: its error is {found.error:.1e} of Z after {found.evaluations:,} "
            f"evaluations, above {largest:g}"
        )
    return found


def _line(target: Target) -> Integral:
    from scipy.integrate import quad

    low, high = float(target.proposal.low[0]), float(target.proposal.high[0])
    u = np.linspace(0, 1, _GRID)
    quantiles = np.concatenate([target.proposal.quantile(np.array([p]), *_ends(target)) for p in u])
    grid = np.unique(np.concatenate((low + u * (high - low), quantiles)))
    level = log_densities(target, grid[:, np.newaxis])
    evaluations = grid.size

    def phi(x: float) -> float:
        nonlocal evaluations
        evaluations += 1
        return float(log_densities(target, np.array([[x]]))[0])

    peaks = _peaks(phi, grid, level)
    top = max(height for _, height in peaks)
    scales = [(at, _scale(phi, at, height, high - low)) for at, height in peaks]
    steps = np.concatenate(([0.0], 2.0 ** np.arange(0, 60)))
    points = np.concatenate([at + scale * side * steps for at, scale in scales for side in (-1, 1)])
    points = np.unique(np.concatenate(([low, high], points[(points > low) & (points < high)])))
    absolute = 1e-14 * max(scale for _, scale in scales)
    parts = [
        quad(lambda x: math.exp(phi(x) - top), a, b, epsabs=absolute, epsrel=1e-13, limit=200, full_output=True)[:2]
        for a, b in itertools.pairwise(points)
    ]
    total = math.fsum(value for value, _ in parts)
    if not total > 0:  # the peak is narrower than the distance of two floating-point numbers
        return Integral(-math.inf, math.inf, evaluations)
    return Integral(top + math.log(total), math.fsum(error for _, error in parts) / total, evaluations)


def _ends(target: Target) -> tuple[Floats, Floats]:
    return np.asarray(target.proposal.low, float), np.asarray(target.proposal.high, float)


def _peaks(phi: Callable[[float], float], grid: Floats, level: Floats) -> list[tuple[float, float]]:
    """Places and heights of the maxima that are not negligible."""
    from scipy.optimize import minimize_scalar

    if level.max() == -math.inf:
        raise NoConfiguration("the target is 0 everywhere (Z = 0)", "its log-ratio must be finite somewhere")
    padded = np.concatenate(([-math.inf], level, [-math.inf]))
    tops = np.flatnonzero((level >= padded[:-2]) & (level >= padded[2:]) & (level > -math.inf))
    peaks = []
    for k in map(int, tops[np.argsort(-level[tops])][:_MOST_PEAKS]):
        a, b = float(grid[max(k - 1, 0)]), float(grid[min(k + 1, grid.size - 1)])
        best = minimize_scalar(lambda x: -phi(x), bounds=(a, b), method="bounded", options={"xatol": 1e-9 * (b - a)})
        peaks.append(max((float(level[k]), float(grid[k])), (float(-best.fun), float(best.x))))
    top = max(peaks)[0]
    return [(at, height) for height, at in peaks if height > top - _NEGLIGIBLE]


def _scale(phi: Callable[[float], float], at: float, height: float, width: float) -> float:
    """Distance over which exp(phi) falls to about half, on the side where it falls faster."""
    step = width
    while step > 1e-15 * width and max(height - phi(at - step), height - phi(at + step)) > 1:
        step /= 2
    return step


def _boxes(target: Target, tolerance: float, most: int) -> Integral:
    low, high = _ends(target)
    rules = [_rule(low.size, _NODES[low.size] - fewer) for fewer in (0, 1)]
    cost = sum(weights.size for _, weights in rules)
    order = itertools.count()
    value, error = _estimate(target, low, high, 0, math.inf, rules)
    queue = [(-error, next(order), value, low, high, np.zeros(low.size, np.int64), math.inf)]
    evaluations = cost
    while True:
        total = float(np.logaddexp.reduce([box[2] for box in queue]))
        missing = float(np.logaddexp.reduce([-box[0] for box in queue]))
        relative = math.exp(min(missing - total, 700.0)) if total > -math.inf else math.inf
        if relative <= tolerance or evaluations >= most:
            return Integral(total, relative, evaluations)
        for _ in range(min(_ROUND, len(queue))):
            _, _, _, low, high, halvings, bound = heapq.heappop(queue)
            d = split_dimension(target, low, high, halvings)
            left_high, right_low, deeper = high.copy(), low.copy(), halvings.copy()
            left_high[d] = right_low[d] = target.proposal.quantile(np.full(low.size, 0.5), low, high)[d]
            deeper[d] += 1
            for corner, other in ((low, left_high), (right_low, high)):
                level = min(bound, target.bound(corner, other))
                value, error = _estimate(target, corner, other, int(deeper.sum()), level, rules)
                heapq.heappush(queue, (-error, next(order), value, corner, other, deeper, level))
            evaluations += 2 * cost


def _rule(dimension: int, nodes: int) -> tuple[Floats, Floats]:
    """Gauss points in [0, 1]^D, shape (K, D), and logarithms of their weights, shape (K,)."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    points = np.array(list(itertools.product((x + 1) / 2, repeat=dimension)))
    return points, np.log(np.array(list(itertools.product(w / 2, repeat=dimension)))).sum(axis=1)


def _estimate(
    target: Target, low: Floats, high: Floats, depth: int, bound: float, rules: list[tuple[Floats, Floats]]
) -> tuple[float, float]:
    """Logarithms of the integral over a box and of its error.

    If a peak of o may lie between nodes, the error is an upper bound on the whole integral.
    Otherwise it is the difference from a rule with fewer nodes, plus the mass of the proposal,
    known exactly, that the rule misses.
    """
    points = low + np.concatenate([nodes for nodes, _ in rules]) * (high - low)
    ratio = _ratios(target, points)
    density = target.proposal.log_density(points) + np.log(high - low).sum()
    phi = ratio + density
    (_, fine), (_, coarse) = rules
    value = float(np.logaddexp.reduce(fine + phi[: fine.size]))
    mass = -depth * math.log(2)
    if bound > ratio.max() + _SEEN:
        return value, bound + mass
    missed = _log_difference(mass, float(np.logaddexp.reduce(fine + density[: fine.size]))) + bound
    change = _log_difference(value, float(np.logaddexp.reduce(coarse + phi[fine.size :])))
    return value, float(np.logaddexp(change, missed))


def _log_difference(a: float, b: float) -> float:
    """ln |e^a - e^b|."""
    if a == b:
        return -math.inf
    return max(a, b) + math.log(-math.expm1(-abs(a - b)))


def evidence(target: Target) -> Integral:
    """Compute ln Z by quadrature, to the default tolerance or, if it is not met, to `LOOSEST`.

    In one dimension the error includes an estimate of the mass beyond the ends of a normal
    proposal, from the density at the ends. In more dimensions, boxes at the ends are so small a
    part of the proposal that quadrature does not converge if they matter.

    Raises
    ------
    WorkFailed : as for `integrate`, or the object of a user takes `MOST_EVALUATIONS` in one
        dimension.
    InputError : the target does not vanish where its proposal ends, or Z is 0.
    """
    proposal = target.proposal
    if proposal.low.size > 1:
        try:
            found = integrate(target)
        except WorkFailed:
            found = integrate(target, LOOSEST)
    else:
        with target.limited() if isinstance(target, UsersTarget) else nullcontext():
            found = integrate(target, LOOSEST)
        if isinstance(proposal, Normal):
            ends = np.array([proposal.low, proposal.high])
            sides = log_densities(target, ends) + math.log(proposal.high[0] - proposal.low[0])
            beyond = np.exp(np.minimum(sides - found.log_z, 0))
            if beyond.max() > LOOSEST:
                raise _cut_off(float(ends[beyond.argmax(), 0]))
            found = replace(found, error=found.error + float(beyond.sum()))
    return found


def check_samples(target: Target, points: Floats) -> None:
    """Refuse samples, shape (M, D), if one lies at an end of a normal proposal.

    Raises
    ------
    InputError : it does; the proposal cuts the target off.
    """
    if isinstance(target.proposal, Normal):
        away = np.abs(points - target.proposal.mean) / (REACH * target.proposal.scale)
        if away.max() > 1 - RIM:
            raise _cut_off(float(points[np.unravel_index(away.argmax(), away.shape)]))


def _cut_off(place: float) -> InputError:
    return InputError(
        f"the target is cut off: it has not vanished at {place:.6g}, {REACH:g} scales from the mean of its normal "
        f"proposal, which ends there",
        "give a target that vanishes, or a larger scale",
    )
