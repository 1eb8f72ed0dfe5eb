"""Balanced corpora, and weights that turn them back into uniform ones.

A uniform corpus has programs of a length and given inputs as they come: drawn from all well-typed
ones or, where these are known, from all distinct ones. A balanced corpus draws a program x with a
probability proportional to

    r(x) = a + b v(x),    v(x) = u(type of the output of x) * product over its lines of v(operation),

where r has mean 1 over what the uniform corpus draws from. `proposal` chooses the whole numbers
u and v such that, as nearly as possible, b v draws numbers for half of the outputs, and all functions
equally often. It chooses a such that `KEPT` of the distinct programs are a uniform part. So no
program is drawn much less often than in a uniform corpus. Where all programs are known, the fit is to
these. Otherwise programs are drawn a few times, each time with the weights fitted so far, and the fit is
to all that were drawn.

Programs get weights by the time at which they come. Let x come first after an exponential time of
rate r(x). Where all programs are known, these times are drawn. Where programs are drawn one after
another, the time is the number of draws divided by the number of well-typed programs. The corpus
takes those that come first. If the next one comes at time tau, x has come before it with
probability

    pi(x) = 1 - exp(-r(x) tau)

and gets the weight 1 / pi(x). So the sum of the weights of all programs with some property estimates
the number of programs that have it (Cohen and Kaplan, Summarizing data using bottom-k sketches,
2007). What else rejects programs depends on the program alone, or on chance apart from its time, so
this holds for the programs that are left, too.

- Up to `ENUMERATED` lines, all programs are known, and the estimates are unbiased.
- Of longer programs that do the same, the first one that comes is taken. If few are drawn that do
  what an earlier one does, each is as likely to be in the corpus as if it had no equivalents. Hence
  the weights estimate counts of programs, each with its equivalents, as the uniform corpus has
  them. Programs of a batch come at even times; this affects only the common factor of the weights.

A uniform corpus has a third of its programs on each number of inputs. Hence weights are scaled to
mean 1 for each length and types of inputs. If the length is balanced, they are then multiplied by
the number of programs of the length that each stands for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.synthesis.corpus.behaviours import ENUMERATED, Behaviours, completions, enumerated, new_among
from thesis_cli.synthesis.language.dsl import DEEPCODER, FUNCTIONS, INT, Semantics
from thesis_cli.synthesis.language.program_codes import Signature, operation_of

if TYPE_CHECKING:
    from thesis_cli.base.arrays import Floats, Ints
    from thesis_cli.synthesis.corpus.sampling_kernels import Completions
    from thesis_cli.synthesis.language.program_codes import Codes

Feature = Literal["output-type", "function", "length"]
FEATURES: tuple[Feature, ...] = get_args(Feature)
"""Parts of programs that a corpus may be balanced by."""

KEPT = 0.15
"""Share of a balanced corpus that is drawn uniformly; its effective size has this share at least."""

NUMBER = np.array([o.output is INT for o in DEEPCODER.operations], dtype=np.int64)
"""Whether an operation gives a number."""


def _ones() -> Ints:
    return np.ones(len(DEEPCODER.operations), dtype=np.int64)


class TimedBatch(NamedTuple):
    """Distinct programs in the order of their times.

    Attributes
    ----------
    codes : lines, shape (P, T).
    rates : r, shape (P,).
    times : when they come, shape (P,).
    end : all programs that come before this time are in this batch or an earlier one.
    """

    codes: Codes
    rates: Floats
    times: Floats
    end: float


@dataclass(frozen=True, eq=False)
class Proposal:
    """Probabilities of the programs of one length on given inputs; the module defines a, b, u and
    v.

    Attributes
    ----------
    length : T.
    kinds : whether an input is a number, shape (inputs,).
    outputs : u, for lists and for numbers.
    operations : v, shape (operations,).
    a, b : parameters of the rates.
    """

    length: int
    kinds: Bools
    outputs: tuple[int, int] = (1, 1)
    operations: Ints = field(default_factory=_ones)
    a: float = 1.0
    b: float = 0.0

    @cached_property
    def completions(self) -> Completions:
        """All programs of T lines by v."""
        from thesis_cli.synthesis.corpus.sampling_kernels import count_completions

        return count_completions(self.length, self.operations, self.outputs)

    @property
    def mean(self) -> float:
        """Mean of v over all well-typed programs without unused variables."""
        return total(self.completions, self.length, self.kinds) / total(completions(), self.length, self.kinds)

    def products(self, codes: Codes) -> Floats:
        """v of programs, shape (P,)."""
        ids = operation_of(codes)
        outputs = np.array(self.outputs, dtype=np.float64)
        return np.asarray(self.operations[ids].astype(np.float64).prod(axis=1) * outputs[NUMBER[ids[:, -1]]])

    def rates(self, codes: Codes) -> Floats:
        """r of programs, shape (P,)."""
        return self.a + self.b * self.products(codes)

    def draw(self, count: int, rng: np.random.Generator) -> Codes:
        """Random well-typed programs without unused variables, shape (count, T)."""
        from thesis_cli.synthesis.corpus.sampling_kernels import sample

        codes: Codes = np.zeros((count, self.length), dtype=np.int32)
        state = rng.integers(2**64, size=1, dtype=np.uint64)
        uniform = rng.binomial(count, self.a)
        sample(completions(), self.kinds, state, codes[:uniform])
        sample(self.completions, self.kinds, state, codes[uniform:])
        return rng.permutation(codes)


def total(completions: Completions, length: int, kinds: Bools) -> float:
    """Total weight of all programs of a length."""
    numbers = int(kinds.sum())
    lists = len(kinds) - numbers
    return float(completions.ways[length, numbers, lists, numbers, lists])


def batches(
    proposal: Proposal, behaviours: Behaviours, rng: np.random.Generator, batch: int, exhaustive: bool = False
) -> Iterator[TimedBatch]:
    """Distinct programs in the order of their times; otherwise as `behaviours.distinct`."""
    length = proposal.length
    if length <= ENUMERATED:
        codes = behaviours.short(length, rng)
        behaviours.looked_at[length] += behaviours.examined[length - 1]
        behaviours.kept[length] += len(codes)
        rates = proposal.rates(codes)
        times = rng.exponential(size=len(codes)) / rates
        order = np.argsort(times)
        ends = np.append(times[order], np.inf)
        for start in range(0, len(codes), batch):
            rows = order[start : start + batch]
            yield TimedBatch(codes[rows], rates[rows], times[rows], ends[start + len(rows)])
        return
    count = total(completions(), length, proposal.kinds)
    drawn = 0
    for codes in new_among(lambda: proposal.draw(batch, rng), behaviours, exhaustive):
        times = drawn + batch * np.arange(1, len(codes) + 1) / (len(codes) + 1)
        drawn += batch
        yield TimedBatch(codes, proposal.rates(codes), times / count, drawn / count)


def weights_of(rates: Floats, time: float) -> Floats:
    """Weights of the programs that come before a time, at which the next one comes, shape (P,)."""
    return np.asarray(-1 / np.expm1(-rates * time))


LARGEST = 2**16
"""Largest weight of an operation or type; the smallest is 1."""

PILOTS, PILOT = 5, 2**11
"""Times that programs are drawn to fit weights to, and how many."""

STEP = np.log(8.0)
"""Most that the logarithm of a weight changes by between two times."""

ROUNDS, POWER, RIDGE = 100, 0.3, 0.15
"""Rounds of a fit, the power of a ratio of shares by which a round corrects a weight, and how
strongly it draws weights together. Shares that cannot be had, such as those of functions of numbers
where few programs have numbers, would otherwise drive weights apart without end."""

_FUNCTION = np.array([FUNCTIONS.index(o.function) for o in DEEPCODER.operations])
_FIRST = np.array([_FUNCTION.tolist().index(f) for f in range(DEEPCODER.functions)])


@lru_cache(maxsize=18)
def proposal(inputs: Signature, semantics: Semantics, length: int, features: Collection[Feature]) -> Proposal:
    """Proposal of balanced programs of a length on given inputs; always the same."""
    known = enumerated(inputs, semantics, length)
    made = Proposal(length, known.kinds)
    if not {"output-type", "function"} & set(features):
        return made
    if length <= ENUMERATED:
        codes = known.short(length)
        return _fitted(made, features, codes, np.ones(len(codes)), np.inf) if len(codes) else made
    rng = np.random.default_rng(1)
    pilots: list[Codes] = []
    used: list[Proposal] = []
    for _ in range(PILOTS):
        pilots.append(known.select(made.draw(PILOT, rng), fresh=False)[0])
        used.append(made)
        codes = np.concatenate(pilots)
        rates = np.mean([earlier.rates(codes) for earlier in used], axis=0)
        made = _fitted(made, features, codes, 1 / rates, STEP)
    return made


def _fitted(before: Proposal, features: Collection[Feature], codes: Codes, weights: Floats, step: float) -> Proposal:
    """A proposal fitted to distinct programs, codes (P, T) with weights (P,); a logarithm changes by `step` at most."""
    ids = operation_of(codes)
    uses = (_FUNCTION[ids][:, :, None] == np.arange(DEEPCODER.functions)).sum(axis=1)
    number = NUMBER[ids[:, -1]]
    weights = weights / weights.sum()
    functions = first = np.log(before.operations[_FIRST])
    ratio = start = np.log(before.outputs[1] / before.outputs[0])
    there = weights @ (uses > 0) > 0
    for _ in range(ROUNDS):
        tilt = np.exp(uses @ functions + number * ratio)
        shares = weights * tilt / (weights @ tilt)
        if "function" in features:
            found = shares @ (uses[:, there] > 0)
            pull = RIDGE * (functions[there] - functions[there].mean())
            changed = functions.copy()
            changed[there] += POWER * (np.log(found.mean() / found) - pull)
            functions = np.clip(changed, first - step, first + step)
        numbers = shares @ number
        if "output-type" in features and 0 < numbers < 1:
            ratio = np.clip(ratio + POWER * np.log(1 / numbers - 1), start - step, start + step)
    outputs = _whole(np.array([0.0, ratio]))
    made = replace(before, outputs=(int(outputs[0]), int(outputs[1])), operations=_whole(functions)[_FUNCTION])
    among = float(weights @ made.products(codes))
    of_all = among if before.length <= ENUMERATED else made.mean
    a = 1 / (1 + (1 / KEPT - 1) * of_all / among)
    return replace(made, a=a, b=(1 - a) / of_all)


def _whole(logarithms: Floats) -> Ints:
    """Whole numbers in about the ratios of some numbers, given by their logarithms."""
    numbers = LARGEST * np.exp(logarithms - logarithms.max())
    return np.asarray(np.maximum(1, np.round(numbers)), dtype=np.int64)
