"""Corpora: distinct programs, each with examples, to learn from and to test on (Thesis sections 5.4.2 and 5.5).

Programs are told apart by what they do to probes (`behaviours`). Each uses all its inputs and lines, its output
depends on every input, and no shorter program does the same: of up to 3 lines none at all, of more lines none that a
shorter way to one of its variables would give. Types of inputs are told apart up to their order, numbers first; a third
of the programs takes one input, a third two, a third three, as far as there are such programs.

The M examples of a program have different inputs. An input list has 1 to L numbers, half of all lists as many as the
first. Numbers in lists are drawn from -b to b, or in a quarter of the examples from 0 to b, where b is the larger of
two powers of 2 from 2 to 256. What leaves the range or gives NULL is drawn again, after some attempts within ranges
that were propagated backward through the program (`input_ranges`). A number as input is in three quarters of the
examples from 0 to the length of a list, as functions take it only for a place. An output that an earlier example has
is avoided as long as attempts are left. Programs are left out if all outputs are the same, or the same as an input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.behaviours import Behaviours, distinct, enumerated
from thesis_cli.synthesis.corpus import TYPES, Corpus, Labelled, join
from thesis_cli.synthesis.dsl import DEFAULT, MOST_INPUTS, OPERATIONS, Semantics
from thesis_cli.synthesis.program import Program
from thesis_cli.synthesis.program_codes import MOST_LINES, SIGNATURES, Signature, arrangements, encode

if TYPE_CHECKING:
    from thesis_cli.synthesis.input_range_kernels import Codes

_OUTPUTS = np.array([TYPES.index(o.output) for o in OPERATIONS], dtype=np.int8)


def make_corpus(
    length: int,
    count: int,
    rng: np.random.Generator,
    test: int = 0,
    *,
    shorter: bool = False,
    exhaustive: bool = False,
    apart_from: Iterable[Program] = (),
    examples: int = 5,
    signatures: Sequence[Signature] = SIGNATURES,
    semantics: Semantics = DEFAULT,
    jobs: int = 1,
    progress: Callable[[int], object] = lambda done: None,
) -> Corpus:
    """Make a corpus; the module says of what.

    Parameters
    ----------
    length : T, lines of each program.
    count, test : programs to train on, and to test on.
    rng : of all that is random.
    shorter : whether there are as many, or all that there are, of each length below T, too.
    exhaustive : whether programs of 5 lines are left out that do what one of 4 lines does. All of these are gone
        through, which takes a minute; without it, about one in seven has such an equivalent.
    apart_from : programs; none that does what one of them does, on inputs in any order, is in the corpus.
    examples : M, for each program.
    signatures : types of inputs.
    semantics : of the language.
    jobs : threads; the result does not depend on it.
    progress : called with a number of programs just made.

    Returns
    -------
    Programs by length and, at one length, in random order, those for testing first. No two do the same, whatever their
    lengths. Of a length of which there are too few programs the part for testing keeps its share.

    Raises
    ------
    InputError : numbers that cannot be had; lists too long; or too few programs of this length, and how many there are.
    """
    from thesis_cli.synthesis.lanes import WIDTH

    _check("length", length, 1, MOST_LINES)
    _check("number of programs", count + test, 1)
    _check("number of examples", examples, 1)
    _check("length of lists", semantics.longest, 1, WIDTH - 1)
    known = [enumerated(signature, semantics, length) for signature in signatures]
    _exclude(known, apart_from)
    parts = []
    for lines in range(1 if shorter else length, length + 1):
        wanted, tests = count + test, test
        batch = max(wanted, 2**8)
        batch = batch + batch // 4 if exhaustive else min(batch, 2**12)
        sources = [
            _Source(
                behaviours,
                distinct(behaviours, lines, child, batch, exhaustive),
                lines,
                examples,
                child,
                semantics,
                jobs,
            )
            for behaviours, child in zip(known, rng.spawn(len(known)), strict=True)
        ]
        found = _take(sources, wanted, rng, progress)
        if len(found) < wanted:
            if not shorter:
                problem = f"{wanted:,} distinct programs of length {length} are requested"
                raise InputError(problem, f"there are {len(found):,} that can be given examples")
            tests = -(-len(found) * test // wanted)
        found = found.subset(rng.permutation(len(found)))
        found.test[:tests] = True
        parts.append(found)
    made = {"looked_at": Counter[int](), "distinct": Counter[int]()}
    for behaviours in known:
        made["looked_at"] += behaviours.looked_at
        made["distinct"] += behaviours.kept
    return replace(join(parts), made=made)


def _check(name: str, number: int, least: int, most: int | None = None) -> None:
    """Refuse a number that is out of bounds."""
    if number < least or (most is not None and number > most):
        wanted = f"at least {least}" if most is None else f"{least} to {most}"
        raise InputError(f"the {name} is {number}", f"{wanted} is wanted")


def _exclude(known: Sequence[Behaviours], programs: Iterable[Program]) -> None:
    """Have none of the programs that do what one of these does, on inputs in any order."""
    groups: dict[tuple[Signature, int], list[Codes]] = {}
    for program in programs:
        for arranged in arrangements(program):
            groups.setdefault((arranged.inputs, len(arranged)), []).append(encode(arranged))
    for behaviours in known:
        for (inputs, _), codes in groups.items():
            if behaviours.inputs == inputs:
                behaviours.exclude(np.stack(codes))


def random_tasks(
    length: int, count: int, rng: np.random.Generator, examples: int = 5, semantics: Semantics = DEFAULT
) -> list[Labelled]:
    """Tasks of distinct random programs of exactly `length` lines, in random order; the module says of which.

    Raises
    ------
    InputError : as `make_corpus` does.
    """
    return make_corpus(length, count, rng, examples=examples, semantics=semantics).labelled()


class _Source:
    """Programs of one length on inputs of given types, with examples.

    Parameters
    ----------
    behaviours : whose programs.
    batches : of their codes.
    length, examples, rng, semantics, jobs : as `make_corpus` has them.
    """

    def __init__(
        self,
        behaviours: Behaviours,
        batches: Iterator[Codes],
        length: int,
        examples: int,
        rng: np.random.Generator,
        semantics: Semantics,
        jobs: int,
    ) -> None:
        self.weight = 1 / sum(len(inputs) == len(behaviours.inputs) for inputs in SIGNATURES)
        self._behaviours, self._batches, self._examples = behaviours, batches, examples
        self._rng, self._semantics, self._jobs = rng, semantics, jobs
        self._parts = [self._with_examples(np.zeros((0, length), dtype=np.int32))]

    def take(self, count: int) -> Corpus:
        """The next programs; fewer than `count` when no more are left."""
        while sum(map(len, self._parts)) < count and (codes := next(self._batches, None)) is not None:
            self._parts.append(self._with_examples(codes))
        found = join(self._parts)
        self._parts = [found.subset(slice(count, None))]
        return found.subset(slice(count))

    def _with_examples(self, codes: Codes) -> Corpus:
        """Those of the programs that can be given examples."""
        from thesis_cli.synthesis.lanes import NULL
        from thesis_cli.synthesis.operation_kernels import bounds_of
        from thesis_cli.synthesis.sampling_kernels import draw_examples

        semantics, inputs = self._semantics, self._behaviours.inputs
        shape = (len(codes), self._examples, MOST_INPUTS + 1, semantics.longest)
        numbers = np.full(shape, NULL)
        done = np.zeros(len(codes), dtype=np.bool_)
        seeds = self._rng.integers(2**64, size=len(codes), dtype=np.uint64)

        def draw(part: slice) -> None:
            draw_examples(
                codes[part],
                self._behaviours.kinds,
                seeds[part],
                bounds_of(semantics),
                semantics.longest,
                numbers[part],
                done[part],
            )

        step = -(-len(codes) // self._jobs) or 1
        parts = [slice(start, start + step) for start in range(0, len(codes), step)]
        with ThreadPoolExecutor(self._jobs) as pool:
            list(pool.map(draw, parts))
        types = np.zeros((len(codes), MOST_INPUTS + 1), dtype=np.int8)
        types[:, : len(inputs)] = [TYPES.index(kind) for kind in inputs]
        types[:, MOST_INPUTS] = _OUTPUTS[codes[:, -1] >> 6]
        test = np.zeros(len(codes), dtype=np.bool_)
        return Corpus(codes, types, numbers, test, semantics).subset(done)


def _take(sources: list[_Source], count: int, rng: np.random.Generator, progress: Callable[[int], object]) -> Corpus:
    """Programs from several sources by weight, from the others where one has no more; fewer where none has."""
    parts: list[Corpus] = []
    lacking = count
    while lacking and sources:
        weights = np.array([source.weight for source in sources])
        shares = rng.multinomial(lacking, weights / weights.sum())
        left = []
        for source, share in zip(sources, shares, strict=True):
            parts.append(source.take(share))
            lacking -= len(parts[-1])
            progress(len(parts[-1]))
            if len(parts[-1]) == share:
                left.append(source)
        sources = left
    return join(parts)
