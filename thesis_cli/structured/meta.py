"""META, a Metropolis chain whose proposals are uniform structures (Vembu et al. section 3, appendix B).

With the same proposal z and the same u for all states, a state y moves to z where u <= exp(E(z) - E(y)),
so all of them do at once exactly where u <= exp(E(z) - max E): coupling from the past waits for such
a step, and no other event makes all states one, since the best state moves in no other step.
That is rejection sampling. It accepts a step with probability Z / (|Y| exp(max E)), the state
z is an exact sample already, and the steps after it, which coupling from the past adds, leave it one.
The same number is the spectral gap of the chain (Liu 1996), so that this time cannot be improved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, ModelTooLarge, WorkFailed
from thesis_cli.structured.ranges import PotentialRange, map_range, one_vector
from thesis_cli.structured.space import Space

ROWS = 2**14
"""Structures that are proposed, or chains that run, at a time."""

FEW = 32
"""Chains below which each is walked by itself."""

MOST_STEPS = 10**8
"""Proposals after which a sampler gives up unless told otherwise."""


@dataclass(frozen=True)
class Draws:
    """Independent samples of exp(<phi(y), theta>) / Z.

    Attributes
    ----------
    structures : shape (count, width).
    steps : uniform structures that were proposed for them; 0 if none were.
    distance : bound on the total variation distance between the distribution of a sample and that
        of the model; 0 for exact samples.
    """

    structures: Ints
    steps: int
    distance: float


class Sampler(Protocol):
    """Draws independent samples under one weight vector, given the range of its log-potentials."""

    def __call__(
        self, space: Space, weights: Floats, count: int, rng: np.random.Generator, limits: PotentialRange
    ) -> Draws: ...


@dataclass(frozen=True)
class Direct:
    """Exact samples by the algorithm of the space itself, `Space.draw`."""

    def __call__(
        self, space: Space, weights: Floats, count: int, rng: np.random.Generator, limits: PotentialRange
    ) -> Draws:
        return Draws(space.draw(one_vector(space, weights), count, rng), 0, 0.0)


@dataclass(frozen=True)
class Coupled:
    """Exact samples by coupling from the past: the state in which all chains of META meet.

    Attributes
    ----------
    most : steps of all samples together after which there is an error.
    """

    most: int = MOST_STEPS

    def after(self, steps: int) -> Coupled:
        """This sampler when so many of its steps are spent."""
        return replace(self, most=max(0, self.most - steps))

    def __call__(
        self, space: Space, weights: Floats, count: int, rng: np.random.Generator, limits: PotentialRange
    ) -> Draws:
        """The samples; they take |Y| exp(limits.high) / Z steps each, on average. Raises
        ModelTooLarge if `most` steps were not enough, and WorkFailed if a structure exceeds
        `limits.high`."""
        theta = one_vector(space, weights)
        found = np.empty((count, space.width), np.int64)
        have = steps = 0
        rows = max(64, count)
        while have < count:
            if steps >= self.most:
                raise ModelTooLarge(
                    f"coupling from the past gave {have:,} of {count:,} samples in {steps:,} steps",
                    f"log-potentials span {limits.span:.4g} nats; use exact draws or truncated chains",
                )
            rows = min(ROWS, rows, self.most - steps)
            proposals, scores, clocks = _propose(space, theta, rows, rng)
            _check_highest(scores, limits)
            met = np.flatnonzero(clocks >= limits.high - scores)[: count - have]
            found[have : have + len(met)] = proposals[met]
            have += len(met)
            steps += int(met[-1]) + 1 if have == count else rows
            rows = 2 * rows
        return Draws(found, steps, 0.0)


@dataclass(frozen=True)
class Truncated:
    """Ends of independent META chains that start at uniform structures.

    Attributes
    ----------
    distance : total variation distance that the number of steps shall guarantee, by Theorem B.2 with
        the span of the log-potentials in the place of 2BR.
    steps : number of steps, if it is given; `distance` then follows from it.
    most : steps of all chains together that are not exceeded.
    """

    distance: float = 0.01
    steps: int | None = None
    most: int = MOST_STEPS

    def __call__(
        self, space: Space, weights: Floats, count: int, rng: np.random.Generator, limits: PotentialRange
    ) -> Draws:
        """The samples. Raises ModelTooLarge if more than `most` steps would be needed."""
        theta = one_vector(space, weights)
        length = self.length(limits.span)
        self.check_total(length * count, limits.span)
        ends = [
            metropolis(space, theta, space.sample(len(part), rng), int(length), rng) for part in _parts(count, ROWS)
        ]
        bound = distance_bound(limits.span, int(length))
        return Draws(np.concatenate(ends) if ends else np.empty((0, space.width), np.int64), int(length) * count, bound)

    def length(self, span: float) -> float:
        """Steps of a chain where log-potentials span so many nats; inf if a double does not hold it."""
        return self.steps if self.steps is not None else mixing_bound(span, self.distance)

    def check_total(self, steps: float, span: float) -> None:
        """Refuse more steps than `most`. Raises ModelTooLarge if `steps` is larger."""
        if steps > self.most:
            raise ModelTooLarge(
                f"truncated chains need {steps:.3g} steps, more than {self.most:,}",
                f"log-potentials span {span:.4g} nats; give the number of steps",
            )

    def within(self, distance: float) -> Truncated:
        """This sampler with another distance, unless its number of steps was given."""
        return replace(self, distance=distance)


def metropolis(space: Space, weights: Floats, states: Ints, steps: int, rng: np.random.Generator) -> Ints:
    """Independent META chains from given states, shape (count, width), after so many steps.

    Proposals do not depend on states, so that those of many steps are made at once.
    """
    count = len(states)
    states, scores = states.copy(), space.scores(states, weights)
    walk = _walk_few if count < FEW else _walk_many
    rows = max(1, ROWS // max(1, count))
    for start in range(0, steps if count else 0, rows):
        length = min(rows, steps - start)
        proposals, proposed, clocks = _propose(space, weights, length * count, rng)
        last = walk(scores, proposed.reshape(length, count), clocks.reshape(length, count))
        moved = np.flatnonzero(last >= 0)
        states[moved] = proposals[last[moved] * count + moved]
        scores[moved] = proposed[last[moved] * count + moved]
    return states


def _walk_many(scores: Floats, proposed: Floats, clocks: Floats) -> Ints:
    """Step of the last proposal that each chain accepts, -1 if it accepts none; shape (chains,).

    Parameters
    ----------
    scores : log-potentials of the states, shape (chains,).
    proposed, clocks : log-potentials of the proposals and -ln u, shape (steps, chains).
    """
    last = np.full(len(scores), -1)
    current = scores.copy()
    for step, (values, waits) in enumerate(zip(proposed, clocks, strict=True)):
        moved = waits >= current - values
        current[moved], last[moved] = values[moved], step
    return last


def _walk_few(scores: Floats, proposed: Floats, clocks: Floats) -> Ints:
    """Step of `_walk_many`, chain by chain: an array operation on a few numbers costs more than
    they do."""
    last = np.full(len(scores), -1)
    for chain, current in enumerate(scores.tolist()):
        waits = clocks[:, chain].tolist()
        for step, value in enumerate(proposed[:, chain].tolist()):
            if waits[step] >= current - value:
                current, last[chain] = value, step
    return last


def mixing_bound(span: float, distance: float) -> float:
    """Steps after which META is within a total variation distance (Vembu et al. Theorem B.2).

    ceil(ln(1/epsilon) / ln(1 / (1 - exp(-span)))), where the source has span = 2BR; the largest
    difference of two log-potentials is at most that, and does as well. inf where exp(-span)
    underflows. Raises InputError if the distance is not between 0 and 1, or the span is negative or
    not finite.
    """
    if not 0 < distance < 1:
        raise InputError(f"the total variation distance is {distance:g}", "it must be between 0 and 1")
    return mixing_steps(_least_acceptance(span), distance)


def mixing_steps(acceptance: float, distance: float) -> float:
    """Least t with (1 - acceptance)^t <= distance; at least 1, and inf beyond the range of a double."""
    if acceptance >= 1:
        return 1.0
    steps = -math.log(distance) / -math.log1p(-acceptance) if acceptance > 1e-300 else math.inf
    return max(1.0, float(math.ceil(steps * (1 - 1e-12)))) if math.isfinite(steps) else math.inf


def distance_bound(span: float, steps: int) -> float:
    """Total variation distance that META keeps at most after so many steps, (1 - exp(-span))^t."""
    acceptance = _least_acceptance(span)
    return math.exp(steps * math.log1p(-acceptance)) if acceptance < 1 else float(steps == 0)


def _least_acceptance(span: float) -> float:
    if not (span >= 0 and math.isfinite(span)):
        raise InputError(f"log-potentials span {span:g} nats", "the span must be finite and not negative")
    return math.exp(-span)


@dataclass(frozen=True)
class Coalescence:
    """One run of coupling from the past.

    Attributes
    ----------
    structure : the state of all chains at time 0, an exact sample; shape (width,).
    steps : T, the number of steps before time 0 in which all chains met.
    met : the state in which they met.
    """

    structure: Ints
    steps: int
    met: Ints


def from_the_past(
    space: Space,
    weights: Floats,
    rng: np.random.Generator,
    limits: PotentialRange | None = None,
    blind: bool = False,
) -> Coalescence:
    """Coupling from the past as it is defined: back to the step that makes all states one, then
    forward. Raises ModelTooLarge if the chains did not meet within 1e8 steps, and WorkFailed if a
    structure exceeds `limits.high`.

    Parameters
    ----------
    weights : one weight vector, shape (dimension,).
    limits : range of the log-potentials; None for that of two MAP problems.
    blind : whether to wait for u <= exp(-span), which is all that the bound of Theorem 3.1 uses, so
        that T has the mean exp(span) whatever the model. The chains then meet in a uniform structure.
    """
    theta = one_vector(space, weights)
    limits = limits or map_range(space, theta)
    past: list[tuple[Ints, Floats, Floats]] = []
    for _ in range(0, MOST_STEPS, ROWS // 16):
        proposals, scores, clocks = _propose(space, theta, ROWS // 16, rng)
        _check_highest(scores, limits)
        past.append((proposals, scores, clocks))
        met = np.flatnonzero(clocks >= (limits.span if blind else limits.high - scores))
        if met.size:
            rows, values, waits = (np.concatenate(parts) for parts in zip(*past, strict=True))
            at = (len(past) - 1) * (ROWS // 16) + int(met[0])
            return Coalescence(rows[_forward(values, waits, at)], at + 1, rows[at])
    raise ModelTooLarge(f"the chains did not meet within {MOST_STEPS:,} steps", "use exact draws")


def _forward(scores: Floats, clocks: Floats, start: int) -> int:
    """Index of the proposal at which a chain is at time 0 that was at `start` of them, which count
    backwards from time 0.
    """
    state = start
    for at in range(start - 1, -1, -1):
        if clocks[at] >= scores[state] - scores[at]:
            state = at
    return state


def _propose(space: Space, weights: Floats, count: int, rng: np.random.Generator) -> tuple[Ints, Floats, Floats]:
    """Uniform structures, their log-potentials, and -ln u for uniform u."""
    proposals = space.sample(count, rng)
    return proposals, space.scores(proposals, weights), rng.standard_exponential(count)


def _check_highest(scores: Floats, limits: PotentialRange) -> None:
    """Refuse a maximum that is none: samples would not be exact. Raises WorkFailed if a structure
    exceeds `limits.high` by more than rounding."""
    top = float(scores.max())
    if top > limits.high + 1e-9 * (1 + abs(limits.high)):
        raise WorkFailed(f"a structure has the log-potential {top:.12g}, above the maximum {limits.high:.12g}")


def _parts(count: int, rows: int) -> Iterator[range]:
    for start in range(0, count, rows):
        yield range(start, min(count, start + rows))
