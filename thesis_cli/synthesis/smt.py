"""Search by an SMT solver: z3, in the place of Sketch (Thesis section 5.4.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from time import perf_counter
from typing import Any

from thesis_cli.errors import InputError
from thesis_cli.synthesis.deductive import COMMUTATIVE, active_sets
from thesis_cli.synthesis.dsl import DEFAULT, INT, LIST, OPERATIONS, Semantics
from thesis_cli.synthesis.program import Line, Program, run
from thesis_cli.synthesis.smt_encoding import Application, Bool, Encoding
from thesis_cli.synthesis.solver import Limits, Order, Solution, Stop
from thesis_cli.synthesis.task import Example, Task


class _Stopped(Exception):
    """The search is cut short."""

    def __init__(self, reason: Stop) -> None:
        self.reason = reason


class Smt:
    """Holes for the operation and the arguments of each line; z3 fills them so that some examples fit.

    By length, within each by growing active sets of operations. A program that z3 proposes is run on all examples;
    one that it fails joins those that z3 sees. That no program fits some of the examples proves that none fits all.
    `nodes` of the solution counts proposals.
    """

    name = "SMT (z3), in the place of Sketch"

    def solve(self, task: Task, order: Order, limits: Limits, semantics: Semantics = DEFAULT) -> Solution:
        """Search; see `solver.Solver`.

        Raises
        ------
        InputError : z3 is not installed.
        """
        try:
            import z3  # type: ignore[import-untyped]
        except ImportError:
            raise InputError("z3 is not installed", "pip install 'thesis-cli[smt]' is wanted") from None
        start = perf_counter()
        search = _Search(z3, task, semantics, limits, start + limits.timeout if limits.timeout else float("inf"))
        found: list[Program] = []
        exhausted = 0
        stopped: Stop = ""
        try:
            for length in range(1, limits.max_length + 1):
                for active, fresh in active_sets(order):
                    for program in islice(search.programs(length, active, fresh), limits.count - len(found)):
                        found.append(program)
                if len(found) == limits.count:
                    break
                exhausted = length
        except _Stopped as stop:
            stopped = stop.reason
        except KeyboardInterrupt:
            stopped = "interrupted"
        return Solution(tuple(found), self.name, search.nodes, perf_counter() - start, exhausted, stopped)


class _Search:
    """One task.

    Attributes
    ----------
    seen : examples that z3 sees.
    nodes : programs that it proposed.
    """

    def __init__(self, z3: Any, task: Task, semantics: Semantics, limits: Limits, deadline: float) -> None:
        self.z3, self.task, self.semantics, self.limits, self.deadline = z3, task, semantics, limits, deadline
        self.seen = [min(task.examples, key=_size)]
        self.nodes = 0

    def programs(self, length: int, active: Sequence[int], fresh: frozenset[int]) -> Iterator[Program]:
        """Programs of a length that fit, of active operations, a fresh one among them.

        Raises
        ------
        _Stopped : z3 could not tell within the limits.
        """
        sketch = _Sketch(self.z3, self.task, length, active, fresh, self.semantics, self.deadline, self.limits.memory)
        for example in self.seen:
            sketch.add(example)
        while program := sketch.propose():
            self.nodes += 1
            failed = [e for e in self.task.examples if run(program, e.inputs, self.semantics) != e.output]
            if failed:
                self.seen.append(min(failed, key=_size))
                sketch.add(self.seen[-1])
            else:
                sketch.forbid(program)
                yield program


def _size(example: Example) -> int:
    return sum(1 if isinstance(x, int) else len(x) for x in example.inputs)


class _Sketch:
    """Programs of one length and some operations, as z3 sees them.

    Attributes
    ----------
    chosen : for each line, operation -> whether it is that of the line.
    taken : for each line, place -> variable -> whether the argument there is that variable. Places are the number
        that an operation takes, its list, and the second list of ZIPWITH.
    lists : for each variable whether it is a list.
    """

    def __init__(
        self,
        z3: Any,
        task: Task,
        length: int,
        active: Sequence[int],
        fresh: frozenset[int],
        semantics: Semantics,
        deadline: float,
        memory: float,
    ) -> None:
        self.z3, self.task, self.semantics, self.deadline = z3, task, semantics, deadline
        self.holes = self.examples = 0
        self.solver = z3.SolverFor("QF_FD")
        self.solver.set("max_memory", max(1, int(memory * 1024)))
        self.lists: list[Bool] = [z3.BoolVal(kind is LIST) for kind in task.inputs]
        self.chosen: list[dict[int, Bool]] = []
        self.taken: list[list[dict[int, Bool]]] = []
        for i in range(length):
            last = i == length - 1
            usable = [o for o in active if not last or OPERATIONS[o].output is task.output]
            chosen = {o: self._bool() for o in usable}
            self._one_of(list(chosen.values()))
            above = range(len(self.lists))
            taken = [{v: self._bool() for v in above} for _ in range(3)]
            for place, choice in enumerate(taken):
                self._one_of(list(choice.values()))
                needs = z3.Or([chosen[o] for o in usable if place in _places(o)])
                for v, it in choice.items():
                    right = z3.Not(self.lists[v]) if place == 0 else self.lists[v]
                    self.solver.add(z3.Implies(z3.And(needs, it), right))
                self.solver.add(z3.Or(needs, choice[0]))
            self.chosen.append(chosen)
            self.taken.append(taken)
            self.lists.append(z3.Or([chosen[o] for o in usable if OPERATIONS[o].output is LIST]))
        self.solver.add(z3.Or([it for chosen in self.chosen for o, it in chosen.items() if o in fresh]))
        self._break_symmetries()

    def _break_symmetries(self) -> None:
        """Leave out what another program of the same or a smaller length does as well."""
        z3, inputs = self.z3, len(self.task.inputs)
        for i in range(len(self.chosen) - 1):
            later = range(i + 1, len(self.chosen))
            self.solver.add(z3.Or([self._takes(j, i + inputs) for j in later]))
            pairs = [(a, b) for a in self.chosen[i] for b in self.chosen[i + 1] if a > b]
            for a, b in pairs:
                together = z3.And(self.chosen[i][a], self.chosen[i + 1][b])
                self.solver.add(z3.Implies(together, self._takes(i + 1, i + inputs)))
        for chosen, (_, first, second) in zip(self.chosen, self.taken, strict=True):
            symmetric = z3.Or([it for o, it in chosen.items() if o in COMMUTATIVE])
            for a, b in ((a, b) for a in first for b in second if a > b):
                self.solver.add(z3.Not(z3.And(symmetric, first[a], second[b])))

    def _takes(self, line: int, variable: int) -> Bool:
        """Whether a line takes a variable."""
        z3 = self.z3
        ways = []
        for place, choice in enumerate(self.taken[line]):
            needs = z3.Or([it for o, it in self.chosen[line].items() if place in _places(o)])
            ways.append(z3.And(needs, choice[variable]))
        return z3.Or(ways)

    def propose(self) -> Program | None:
        """A program that fits the examples added; None if there is none.

        Raises
        ------
        _Stopped : z3 could not tell within the limits.
        """
        z3 = self.z3
        left = self.deadline - perf_counter()
        if left <= 0:
            raise _Stopped("timeout")
        if left < float("inf"):
            self.solver.set("timeout", max(1, int(left * 1000)))
        try:
            answer = self.solver.check()
        except z3.Z3Exception:
            raise _Stopped("memory") from None
        if answer == z3.unknown:
            if perf_counter() > self.deadline - 0.1:
                raise _Stopped("timeout")
            raise _Stopped("memory" if "memory" in self.solver.reason_unknown() else "interrupted")
        if answer == z3.unsat:
            return None
        model = self.solver.model()
        lines = []
        for chosen, taken in zip(self.chosen, self.taken, strict=True):
            operation = next(o for o, it in chosen.items() if model.eval(it))
            arguments = (next(v for v, it in taken[p].items() if model.eval(it)) for p in _places(operation))
            lines.append(Line(operation, tuple(arguments)))
        return Program(self.task.inputs, tuple(lines))

    def forbid(self, program: Program) -> None:
        """Propose another one from now on."""
        holes = []
        for line, chosen, taken in zip(program.lines, self.chosen, self.taken, strict=True):
            holes.append(chosen[line.operation])
            holes += [taken[p][v] for p, v in zip(_places(line.operation), line.arguments, strict=True)]
        self.solver.add(self.z3.Not(self.z3.And(holes)))

    def add(self, example: Example) -> None:
        """Demand that an example fits.

        Raises
        ------
        _Stopped : no time is left.
        """
        z3, size = self.z3, max(len(x) for x in example.inputs if not isinstance(x, int))
        self.examples += 1
        encoding = Encoding(z3, self.semantics, max(size, 1), f"e{self.examples}")
        variables = [encoding.constant(x) for x in example.inputs]
        for i, (chosen, taken) in enumerate(zip(self.chosen, self.taken, strict=True)):
            if perf_counter() > self.deadline:
                raise _Stopped("timeout")
            number, first, second = (encoding.pick(choice, variables) for choice in taken)
            result, rules = encoding.fresh(str(i))
            self.solver.add(*rules)
            line = Application(encoding, result, number.number, first, second, chosen)
            for operation, it in chosen.items():
                self.solver.add(z3.Implies(it, z3.And(list(line.rules(operation)))))
            variables.append(result)
        self.solver.add(encoding.equals(variables[-1], example.output))

    def _bool(self) -> Bool:
        self.holes += 1
        return self.z3.Bool(f"hole{self.holes}")

    def _one_of(self, ways: Sequence[Bool]) -> None:
        """Demand exactly one."""
        self.solver.add(self.z3.AtMost(*ways, 1), self.z3.Or(ways))


def _places(operation: int) -> tuple[int, ...]:
    """Where the arguments of an operation stand in `_Sketch.taken`."""
    return (0, 1) if OPERATIONS[operation].inputs[0] is INT else (1, 2)[: len(OPERATIONS[operation].inputs)]
