"""The interface of solvers: an order of operations, limits, and a solution with what it proves; and tasks that
no program fits, however long it is, which need no search."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Literal, Protocol

from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.language.dsl import DEEPCODER, DEFAULT, LANGUAGES, Language, Semantics, Value
from thesis_cli.synthesis.language.program import Program
from thesis_cli.synthesis.language.task import Example, Task

Stop = Literal["", "timeout", "nodes", "memory", "memory, then timeout", "interrupted"]
"""Reason for which a search stopped early; empty if none did."""

MOST_MEMORY = 10**6
"""GiB; counts of bytes have room for so many."""

GIB = 2**30


@dataclass(frozen=True)
class Limits:
    """Limits of a search. Raises InputError if a limit leaves nothing to search.

    Attributes
    ----------
    max_length : length T of the longest programs.
    timeout : seconds; None for no limit.
    memory : GiB for what a solver keeps.
    count : programs to find.
    distinct : whether a program that does the same as one found before is counted, not returned;
        depth-first search then leaves out nothing that may differ off the examples.
    shortest : whether to find programs of the shortest length alone.
    nodes : programs examined, as `Solution.nodes` counts them, after which a search stops when it next
        looks; None for no limit. It stops in the same place on every machine, but for `smt`, whose
        proposals take any time.
    """

    max_length: int = 5
    timeout: float | None = None
    memory: float = 2.0
    count: int = 1
    distinct: bool = False
    shortest: bool = False
    nodes: int | None = None

    def __post_init__(self) -> None:
        whole = ("max_length", "longest length"), ("count", "number of programs"), ("nodes", "most nodes")
        for name, what in whole:
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise InputError(f"the {what} is {getattr(self, name)}", "it must be at least 1")
        for name, unit in (("timeout", "seconds"), ("memory", "GiB")):
            limit = getattr(self, name)
            if limit is not None and not limit > 0:
                raise InputError(f"the {name} is {limit:g} {unit}", "it must be above 0")
        if not self.memory <= MOST_MEMORY:
            raise InputError(f"the memory is {self.memory:g} GiB", f"it must be at most {MOST_MEMORY:,}")


@dataclass(frozen=True)
class Order:
    """The order in which a search tries operations. Raises InputError if their number is wrong, or
    one is not from 0 to 1.

    Attributes
    ----------
    probabilities : probabilities of the attributes of a language, as `Language.attributes` has them;
        only their order matters.
    """

    probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        sizes = [len(language.attributes) for language in LANGUAGES.values()]
        if len(self.probabilities) not in sizes:
            problem = f"{len(self.probabilities)} probabilities are given"
            raise InputError(problem, f"give one for each of {' or '.join(map(str, sizes))} functions and lambdas")
        for name, probability in zip(self.language.attributes, self.probabilities, strict=True):
            if not 0 <= probability <= 1:
                raise InputError(f"the probability of {name} is {probability}", "it must be from 0 to 1")

    @classmethod
    def uniform(cls, language: Language = DEEPCODER) -> Order:
        """No preference: operations by id."""
        return cls((0.5,) * len(language.attributes))

    @property
    def language(self) -> Language:
        """The language with so many attributes."""
        return next(found for found in LANGUAGES.values() if len(found.attributes) == len(self.probabilities))

    @cached_property
    def attributes(self) -> tuple[int, ...]:
        """Places in `Language.attributes`, most probable first; ties by place."""
        return tuple(sorted(range(len(self.probabilities)), key=lambda a: -self.probabilities[a]))

    @cached_property
    def of_operations(self) -> tuple[float, ...]:
        """Probabilities of the operations by id.

        A higher-order function with its lambda counts as the less probable of the two (appendix
        D.4).
        """
        return tuple(min(self.probabilities[a] for a in o.attributes) for o in self.language.operations)

    @cached_property
    def operations(self) -> tuple[int, ...]:
        """Ids of the operations, most probable first; ties by id."""
        probability = self.of_operations
        return tuple(sorted(range(len(probability)), key=lambda id: -probability[id]))


@dataclass(frozen=True)
class TokenOrder(Order):
    """The order of a guide that writes whole programs, too.

    Attributes
    ----------
    weights : name or file of the weights of its decoder. Beam search uses them; other searches use
        the probabilities.
    """

    weights: str = "program"


@dataclass(frozen=True)
class LineOrder(Order):
    """The order of a guide that reads the values of partial programs.

    Attributes
    ----------
    weights : name or file of the weights of its network. The anytime beam uses them; other searches
        use the probabilities.
    """

    weights: str = "next-line"


@dataclass(frozen=True)
class Meaning:
    """How probable it is that the program of a solution was meant, and what else fits.

    Attributes
    ----------
    shares : probabilities of the program's behaviour, and of `others`.
    others : a program of each of the next most probable behaviours.
    unseen : probability of all that was not collected.
    behaviours : number of other behaviours that fit.
    shortest : lines of the shortest program that fits.
    settles : inputs whose outputs would tell most about which behaviour was meant.
    """

    shares: tuple[float, ...]
    others: tuple[Program, ...]
    unseen: float
    behaviours: int
    shortest: int
    settles: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True)
class Doubt:
    """An example that no short program fits together with the others.

    Attributes
    ----------
    example : its number, from 0.
    program : a program that fits all the others.
    """

    example: int
    program: Program


@dataclass(frozen=True)
class Closest:
    """A program that fits the most examples, if none fits all.

    Attributes
    ----------
    missed : numbers of the examples that it does not fit, from 0.
    program : the program.
    """

    missed: tuple[int, ...]
    program: Program


@dataclass(frozen=True)
class Solution:
    """Programs that a search found, and what it proves.

    Attributes
    ----------
    programs : those that fit all examples, shortest first; empty if none was found within the
        limits.
    solver : name of the solver that answered.
    nodes : programs examined; one that is examined again counts again.
    seconds : wall-clock time.
    exhausted : every program of at most this length was examined, or another one provably fits as
        well.
    stopped : reason for which the search stopped early, if it did.
    found_after : seconds after which the first of these programs was found; None if there is none.
    same : number of further programs found that do the same as each; empty unless
        `Limits.distinct`.
    refuted : why no program of any length fits; empty if that is not known.
    first_after : seconds after which any program was found, which may be longer than those; None if
        there is none.
    meaning : how probable it is that the program was meant; None if nobody asked.
    doubts : examples that look mistaken.
    closest : the program that fits the most examples; None if one fits all, if `doubts` has it, or if
        nobody asked.
    larger : a program of `dsl.EXTENDED` that fits where none of the language does; None if none is known.
    """

    programs: tuple[Program, ...]
    solver: str
    nodes: int
    seconds: float
    exhausted: int
    stopped: Stop = ""
    found_after: float | None = None
    same: tuple[int, ...] = ()
    refuted: str = ""
    first_after: float | None = None
    meaning: Meaning | None = None
    doubts: tuple[Doubt, ...] = ()
    closest: Closest | None = None
    larger: Program | None = None

    @property
    def program(self) -> Program | None:
        """The first program, or None."""
        return self.programs[0] if self.programs else None

    @property
    def proven(self) -> bool:
        """Whether there is a program and none is shorter."""
        if not self.programs or (self.meaning and self.meaning.shortest < len(self.programs[0])):
            return False
        return self.exhausted >= len(self.programs[0]) - 1


class Solver(Protocol):
    """A search for the programs that fit a task."""

    @property
    def name(self) -> str:
        """Name in tables and messages."""

    def solve(self, task: Task, order: Order, limits: Limits, semantics: Semantics = DEFAULT) -> Solution:
        """Search; deterministic, unless a timeout or an interrupt (Ctrl-C) stops it. Raises
        InputError if the solver cannot take the task or the semantics."""


def refuted(task: Task, semantics: Semantics = DEFAULT) -> str | None:
    """Why no program of any length fits a task; None if that is not known.

    If no operation lengthens a list, every list is at most as long as the longest input. Of empty
    lists alone, HEAD, LAST, MINIMUM, MAXIMUM and ACCESS give NULL, and SUM and COUNT give 0.
    """
    for number, example in enumerate(task.examples, 1):
        output, longest = example.output, longest_list(example)
        if not semantics.holds(output):
            return f"the output of example {number} is out of range"
        if semantics.language.lengthens:
            continue
        if not isinstance(output, int) and len(output) > longest:
            return f"the output of example {number} has {len(output)} numbers, its longest input {longest}"
        if isinstance(output, int) and output != 0 and longest == 0:
            return f"the output of example {number} is {output}, and its lists are empty"
    return None


def refutation(solver: str, task: Task, limits: Limits, semantics: Semantics) -> Solution | None:
    """The answer of a solver to a task that no program fits; None if that is not known."""
    began = perf_counter()
    reason = refuted(task, semantics)
    if reason is None:
        return None
    return Solution((), solver, 0, perf_counter() - began, limits.max_length, refuted=reason)


def longest_list(example: Example) -> int:
    """Length of the longest list among the inputs."""
    return max((len(value) for value in example.inputs if not isinstance(value, int)), default=0)
