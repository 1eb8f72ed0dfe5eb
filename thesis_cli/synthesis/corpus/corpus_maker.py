"""Make corpora: distinct programs, each with examples (Thesis sections 5.4.2 and 5.5).

Two programs are the same if they do the same to probe inputs, with inputs of one type in any order
(`behaviours`, `exact_behaviours`). Each program uses all its inputs and lines, and its output
depends on every input. No shorter program does the same: none of up to 3 lines, and none that
computes one of its variables in fewer lines. The order of the types of inputs does not matter;
numbers come first. A third of the programs takes one input, a third two
and a third three, as far as there are such programs.

The M examples of a program have different inputs. An input list has 1 to L numbers; half of all
lists are as long as the first. Numbers in lists are drawn from -b to b, or in a quarter of the
examples from 0 to b, where b is the larger of two powers of 2 from 2 to 256. Inputs with which the
program leaves the range or gives NULL are drawn again; after some attempts they are drawn from
ranges that were propagated backward through the program (`input_range_kernels`). In three quarters of the
examples, an input that is a number lies between 0 and the length of a list, because functions use
numbers only as places. Repeated outputs are avoided as long as attempts are left. A program is left
out if all its outputs are the same, or the same as an input; a plan may ask for more different
outputs, and for few empty ones.

Programs are drawn uniformly, or balanced by what they use (`balance`), with weights that estimate
uniform shares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.base.arrays import Bools, Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.parallel import Threads
from thesis_cli.base.progress import Tick
from thesis_cli.synthesis.corpus.balance import Feature, TimedBatch, batches, proposal, weights_of
from thesis_cli.synthesis.corpus.behaviours import ENUMERATED, Behaviours, distinct, enumerated
from thesis_cli.synthesis.corpus.corpus import TYPES, Corpus, Labelled, join
from thesis_cli.synthesis.language.dsl import DEEPCODER, DEFAULT, MOST_INPUTS, Semantics
from thesis_cli.synthesis.language.packing import NULL, WIDTH, bounds_of
from thesis_cli.synthesis.language.program import Program
from thesis_cli.synthesis.language.program_codes import (
    MOST_LINES,
    SIGNATURES,
    Signature,
    arrangements,
    encode,
    operation_of,
)

if TYPE_CHECKING:
    from thesis_cli.base.arrays import Floats
    from thesis_cli.synthesis.corpus.sampling_kernels import ExampleLimits
    from thesis_cli.synthesis.language.program_codes import Codes

PART = 2**16
"""Programs of the longest lengths that are made at a time."""

_OUTPUTS = np.array([TYPES.index(o.output) for o in DEEPCODER.operations], dtype=np.int8)


@dataclass(frozen=True)
class CorpusPlan:
    """Plan of a corpus. Raises InputError if a number is out of bounds, lists are too long, or the
    length is balanced but there is only one.

    Attributes
    ----------
    length : T, lines of each program.
    count, test : programs to train on, and to test on.
    shorter : whether to make as many programs of each length below T, or all that there are.
    exhaustive : whether to compare longer programs with all of 4 lines, which takes a minute.
        Otherwise about one in seven of 5 lines has an equivalent of 4 lines.
    examples : M, for each program.
    distinct : different outputs that the examples of a program have at least; by default 2, or 1 if
        there is one example.
    empty : examples of a program that may have an empty list as output; by default all.
    balance : features by which programs are balanced (`balance`); without any, they are drawn
        uniformly.
    signatures : types of inputs.
    semantics : range of numbers, length of lists, and rounding.
    """

    length: int
    count: int
    test: int = 0
    shorter: bool = False
    exhaustive: bool = False
    examples: int = 5
    distinct: int | None = None
    empty: int | None = None
    balance: Collection[Feature] = ()
    signatures: Sequence[Signature] = SIGNATURES
    semantics: Semantics = DEFAULT

    def __post_init__(self) -> None:

        _check("length", self.length, 1, MOST_LINES)
        _check("number of programs", self.count + self.test, 1)
        _check("number of examples", self.examples, 1)
        _check("number of different outputs", self.distinct, 1, self.examples)
        _check("number of empty outputs", self.empty, 0)
        if "length" in self.balance and not self.shorter:
            raise InputError("programs of one length are balanced by length", "make programs of shorter lengths too")
        _check("length of lists", self.semantics.longest, 1, WIDTH - 1)

    @property
    def limits(self) -> ExampleLimits:
        """Limits of the examples of a program."""
        from thesis_cli.synthesis.corpus.sampling_kernels import ExampleLimits

        distinct = min(2, self.examples) if self.distinct is None else self.distinct
        empty = self.examples if self.empty is None else self.empty
        return ExampleLimits(self.semantics.longest, self.examples - distinct, empty)


def make_corpus(
    plan: CorpusPlan,
    rng: np.random.Generator,
    apart_from: Corpus | Iterable[Program] = (),
    jobs: int = 1,
    progress: Tick = lambda done: None,
) -> Corpus:
    """Make a corpus in memory: all its `parts`, one after the other."""
    return join(list(parts(plan, rng, apart_from, jobs, progress)))


def parts(
    plan: CorpusPlan,
    rng: np.random.Generator,
    apart_from: Corpus | Iterable[Program] = (),
    jobs: int = 1,
    progress: Tick = lambda done: None,
    made: Iterable[Corpus] = (),
) -> Iterator[Corpus]:
    """Make a corpus, a part of up to `PART` programs of one length at a time; the module describes
    its programs.

    A part depends on the plan, its own child of `rng`, and the programs of the parts before it, and
    on nothing else. So a corpus goes on from the parts that there are. Raises InputError if there
    are too few programs of this length.

    Parameters
    ----------
    plan : contents of the corpus.
    rng : generator of all random choices.
    apart_from : programs; the corpus has none that does what one of them does, on inputs in any
        order.
    jobs : threads; the result does not depend on it.
    progress : called with the number of programs just made.
    made : the first parts, if they are made already; only the parts after them are yielded.

    Yields
    ------
    Programs by length, and within a part in random order, those to test on first. Each part has its
    share of them. No two programs of the corpus do the same. If a length has too few programs, its
    last part is shorter.
    """
    known = [enumerated(signature, plan.semantics, plan.length) for signature in plan.signatures]
    _exclude(known, apart_from)
    earlier = iter(made)
    needed = plan.count + plan.test
    for lines in range(1 if plan.shorter else plan.length, plan.length + 1):
        start, full = 0, True
        while full and start < needed:
            child = rng.spawn(1)[0]
            size = needed if lines <= ENUMERATED else min(needed - start, PART)
            part = next(earlier, None)
            new = part is None
            if part is None:
                part = _part(known, plan, lines, size, child, jobs, progress)
                part.test[: _share(plan, start + len(part)) - _share(plan, start)] = True
            start, full = start + len(part), len(part) == size
            if not full and not plan.shorter:
                problem = f"{needed:,} distinct programs of length {plan.length} are requested"
                raise InputError(problem, f"there are {start:,} that can be given examples")
            if new:
                yield part
            if start < needed or lines < plan.length:
                _enter(known, part, lines)


def split(corpus: Corpus) -> Iterator[Corpus]:
    """The parts of a corpus that is complete."""
    changes = np.flatnonzero(np.diff(corpus.lengths)) + 1
    for first, last in zip([0, *changes], [*changes, len(corpus)], strict=True):
        size = PART if corpus.lengths[first:last].max(initial=0) > ENUMERATED else last - first or 1
        for start in range(first, last, size):
            yield corpus.subset(slice(start, min(start + size, last)))


def _share(plan: CorpusPlan, programs: int) -> int:
    """Number of the first programs of a length that are for testing."""
    return -(-programs * plan.test // (plan.count + plan.test))


def _part(
    known: Sequence[Behaviours],
    plan: CorpusPlan,
    lines: int,
    size: int,
    rng: np.random.Generator,
    jobs: int,
    progress: Tick,
) -> Corpus:
    """Programs of one length, all to train on, that differ from the known ones; fewer than `size`
    if there are no more."""
    batch = max(size, 2**8)
    batch = batch + batch // 4 if plan.exhaustive else min(batch, 2**12)
    found = [behaviours.copy() for behaviours in known]
    sources = [
        _Source(behaviours, lines, plan, child, batch, jobs)
        for behaviours, child in zip(found, rng.spawn(len(found)), strict=True)
    ]
    _take(sources, size, rng, progress)
    part = join([source.taken for source in sources])
    if "length" in plan.balance and len(part):
        alike = len(part) if lines <= ENUMERATED else plan.count + plan.test
        scale = sum(source.stands_for for source in sources) / alike
        part = replace(part, weights=scale * part.weights)
    counts = {"looked_at": Counter[int](), "distinct": Counter[int]()}
    for behaviours in found:
        counts["looked_at"] += behaviours.looked_at
        counts["distinct"] += behaviours.kept
    return replace(part.subset(rng.permutation(len(part))), made=counts)


def _enter(known: Sequence[Behaviours], part: Corpus, lines: int) -> None:
    """Know programs of so many lines, so that no later one does the same."""
    for behaviours in known:
        codes = part.codes[_rows_on(behaviours.inputs, part), :lines]
        behaviours.select(np.ascontiguousarray(codes), fresh=True)


def _rows_on(inputs: Signature, part: Corpus) -> Bools:
    """Rows of the programs that take inputs of these types."""
    types = [TYPES.index(kind) for kind in inputs] + [0] * (MOST_INPUTS - len(inputs))
    return np.asarray((part.types[:, :MOST_INPUTS] == types).all(axis=1))


def _check(name: str, number: int | None, least: int, most: int | None = None) -> None:
    """Refuse a number that is out of bounds; None is not."""
    if number is not None and (number < least or (most is not None and number > most)):
        allowed = f"at least {least}" if most is None else f"{least} to {most}"
        raise InputError(f"the {name} is {number}", f"it must be {allowed}")


def _exclude(known: Sequence[Behaviours], programs: Corpus | Iterable[Program]) -> None:
    """Exclude all programs that do what one of these does, on inputs in any order."""
    if isinstance(programs, Corpus):
        for behaviours in known:
            rows = _rows_on(behaviours.inputs, programs)
            for length in np.unique(programs.lengths[rows]):
                found = programs.codes[rows & (programs.lengths == length), :length]
                behaviours.exclude(np.ascontiguousarray(found))
        return
    groups: dict[tuple[Signature, int], list[Codes]] = {}
    for program in programs:
        arranged = next(arrangements(program))
        groups.setdefault((arranged.inputs, len(arranged)), []).append(encode(arranged))
    for behaviours in known:
        for (inputs, _), codes in groups.items():
            if behaviours.inputs == inputs:
                behaviours.exclude(np.stack(codes))


def random_tasks(
    length: int,
    count: int,
    rng: np.random.Generator,
    examples: int = 5,
    semantics: Semantics = DEFAULT,
    distinct: int | None = None,
    empty: int | None = None,
) -> list[Labelled]:
    """Tasks of distinct random programs of exactly `length` lines, in random order; the module
    describes them. Raises InputError as `make_corpus` does.

    Parameters
    ----------
    distinct, empty : limits as in a `CorpusPlan`: `distinct=examples, empty=0` gives tasks without
        repeated or empty outputs.
    """
    plan = CorpusPlan(length, count, examples=examples, distinct=distinct, empty=empty, semantics=semantics)
    return make_corpus(plan, rng).labelled()


class _Source:
    """Programs of one length on inputs of given types, with examples; `batch` are looked at at a time."""

    def __init__(
        self, behaviours: Behaviours, length: int, plan: CorpusPlan, rng: np.random.Generator, batch: int, jobs: int
    ) -> None:
        self.weight = 1 / sum(len(inputs) == len(behaviours.inputs) for inputs in SIGNATURES)
        self._behaviours, self._plan, self._rng, self._jobs = behaviours, plan, rng, jobs
        if plan.balance:
            fitted = proposal(behaviours.inputs, plan.semantics, length, frozenset(plan.balance))
            self._batches = batches(fitted, behaviours, rng, batch, plan.exhaustive)
        else:
            drawn = distinct(behaviours, length, rng, batch, plan.exhaustive)
            self._batches = (TimedBatch(codes, np.ones(len(codes)), np.zeros(len(codes)), 0.0) for codes in drawn)
        none, _ = self._with_examples(TimedBatch(np.zeros((0, length), dtype=np.int32), np.zeros(0), np.zeros(0), 0.0))
        self._left, self._times, self._end = none, np.zeros(0), 0.0
        self._taken = [none]

    def take(self, count: int) -> int:
        """Take the next programs; how many there are, fewer than `count` when no more are left."""
        parts, times = [self._left], [self._times]
        least = count + bool(self._plan.balance)  # the next one as well, for its time
        while sum(map(len, parts)) < least and (batch := next(self._batches, None)) is not None:
            part, done = self._with_examples(batch)
            parts.append(part)
            times.append(batch.times[done])
            self._end = batch.end
        found = join(parts)
        self._left, self._times = found.subset(slice(count, None)), np.concatenate(times)[count:]
        self._taken.append(found.subset(slice(count)))
        return len(self._taken[-1])

    @property
    def _weights(self) -> Floats:
        """Number of programs that each one taken stands for; 1 if they are not balanced."""
        rates = np.concatenate([part.weights for part in self._taken])
        return weights_of(rates, next(iter(self._times), self._end)) if self._plan.balance else rates

    @property
    def taken(self) -> Corpus:
        """All programs taken so far, with weights of mean 1."""
        weights = self._weights
        return replace(join(self._taken), weights=weights / (weights.mean() if len(weights) else 1))

    @property
    def stands_for(self) -> float:
        """Number of programs that those taken stand for."""
        return float(self._weights.sum())

    def _with_examples(self, batch: TimedBatch) -> tuple[Corpus, Bools]:
        """The programs that can be given examples, with these and their rates, and which of the
        batch they are."""
        from thesis_cli.synthesis.corpus.sampling_kernels import draw_examples

        semantics, inputs, codes = self._plan.semantics, self._behaviours.inputs, batch.codes
        shape = (len(codes), self._plan.examples, MOST_INPUTS + 1, semantics.longest)
        numbers = np.full(shape, NULL)
        done = np.zeros(len(codes), dtype=np.bool_)
        seeds = self._rng.integers(2**64, size=len(codes), dtype=np.uint64)

        def draw(part: slice) -> None:
            draw_examples(
                codes[part],
                self._behaviours.kinds,
                seeds[part],
                bounds_of(semantics),
                self._plan.limits,
                numbers[part],
                done[part],
            )

        step = -(-len(codes) // self._jobs) or 1
        parts = [slice(start, start + step) for start in range(0, len(codes), step)]
        with Threads(self._jobs) as threads:
            list(threads.map(draw, parts))
        types = np.zeros((len(codes), MOST_INPUTS + 1), dtype=np.int8)
        types[:, : len(inputs)] = [TYPES.index(kind) for kind in inputs]
        types[:, MOST_INPUTS] = _OUTPUTS[operation_of(codes[:, -1])]
        test = np.zeros(len(codes), dtype=np.bool_)
        return Corpus(codes, types, numbers, test, semantics, weights=batch.rates).subset(done), done


def _take(sources: list[_Source], count: int, rng: np.random.Generator, progress: Tick) -> None:
    """Take programs from several sources by weight. When a source runs dry, the others make up for
    it."""
    lacking = count
    while lacking and sources:
        weights = np.array([source.weight for source in sources])
        shares = rng.multinomial(lacking, weights / weights.sum())
        left = []
        for source, share in zip(sources, shares, strict=True):
            taken = source.take(share)
            lacking -= taken
            progress(taken)
            if taken == share:
                left.append(source)
        sources = left
