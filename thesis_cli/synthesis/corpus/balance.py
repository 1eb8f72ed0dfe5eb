"""Balanced corpora, and weights that turn them back into uniform ones.

A uniform corpus has programs of a length and given inputs as they come: drawn from all well-typed
ones or, where these are known, from all distinct ones. A balanced corpus draws a program x with a
probability proportional to

    r(x) = a + b v(x),    v(x) = u(type of the output of x) * product over its lines of v(operation),

where r has mean 1 over what the uniform corpus draws from. `balance_fit` chooses the whole numbers
u and v such that, as nearly as possible, b v draws numbers for half of the outputs, and all functions
equally often. It chooses a such that `KEPT` of the distinct programs are a uniform part. So no
program is drawn much less often than in a uniform corpus.

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

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.synthesis.corpus.behaviours import ENUMERATED, Behaviours, completions, new_among
from thesis_cli.synthesis.language.dsl import DEEPCODER, INT
from thesis_cli.synthesis.language.program_codes import operation_of

if TYPE_CHECKING:
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
