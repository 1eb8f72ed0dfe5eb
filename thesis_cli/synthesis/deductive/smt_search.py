"""Search by an SMT solver, z3, instead of Sketch (Thesis section 5.4.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from thesis_cli.base.modules import extra
from thesis_cli.synthesis.deductive.smt_formulas import Application, Bool, Encoding
from thesis_cli.synthesis.language.dsl import DEFAULT, INT, LIST, OPERATIONS, Semantics
from thesis_cli.synthesis.language.program import Line, Program, run
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.search.length_by_length import LengthByLength
from thesis_cli.synthesis.search.solver import Limits, Order, Solution, refutation


class Smt:
    """Holes for the operation and the arguments of each line; z3 fills them so that some examples
    fit.

    By length, and within each over growing active sets of operations. A program that z3 proposes is
    run on all examples; one that it does not fit joins those that z3 sees. If no program fits some
    of the examples, none fits all. `nodes` of the solution counts proposals.
    """

    name = "smt"

    def solve(self, task: Task, order: Order, limits: Limits, semantics: Semantics = DEFAULT) -> Solution:
        """See `solver.Solver`. Raises InputError if z3 is not installed."""
        z3 = extra("z3")
        if found := refutation(self.name, task, limits, semantics):
            return found
        return _SmtSearch(z3, task, limits, semantics).solve(self.name, order)


class _SmtSearch(LengthByLength):
    """One task: the examples that z3 sees so far, and the number of programs that it proposed."""

    def __init__(self, z3: Any, task: Task, limits: Limits, semantics: Semantics) -> None:
        super().__init__(task, limits, semantics)
        self.z3 = z3
        self.seen = [min(task.examples, key=_size)]

    def programs(self, length: int, active: Sequence[int], fresh: frozenset[int]) -> Iterator[Program]:
        """See `LengthByLength.programs`."""
        if all(OPERATIONS[o].output is not self.task.output for o in active):
            return
        sketch = _Sketch(self, length, active, fresh)
        for example in self.seen:
            sketch.add(example)
        while program := sketch.propose():
            self.clock.nodes += 1
            failed = [e for e in self.task.examples if run(program, e.inputs, self.semantics) != e.output]
            unseen = [example for example in failed if example not in self.seen]
            if unseen:
                self.seen.append(min(unseen, key=_size))
                sketch.add(self.seen[-1])
                continue
            sketch.forbid(program)
            if not failed:  # otherwise it has an operation without a formula
                yield program


def _size(example: Example) -> int:
    return sum(1 if isinstance(x, int) else len(x) for x in example.inputs)


_REASONS: dict[str, type[BaseException]] = {"memory": MemoryError, "interrupted": KeyboardInterrupt}
"""Reasons of z3 for giving no answer; any other is the timeout."""


class _Sketch:
    """Programs of one length and some operations, as z3 sees them.

    Attributes
    ----------
    chosen : for each line, the truth value of each operation: whether it is that of the line.
    taken : for each line and place, the truth value of each variable: whether it is the argument
        there. Places are the number that an operation takes, its list, and the second list of
        ZIPWITH.
    lists : whether each variable is a list.
    """

    def __init__(self, search: _SmtSearch, length: int, active: Sequence[int], fresh: frozenset[int]) -> None:
        self.search, self.task, self.z3 = search, search.task, search.z3
        task, z3 = self.task, self.z3
        self.holes = self.examples = 0
        self.solver = z3.SolverFor("QF_FD")
        self.solver.set("max_memory", max(1, int(search.limits.memory * 1024)))
        self.lists: list[Bool] = [z3.BoolVal(kind is LIST) for kind in task.inputs]
        self.chosen: list[dict[int, Bool]] = []
        self.taken: list[list[dict[int, Bool]]] = []
        for i in range(length):
            search.look()
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
        """Leave out programs that another one of the same or a smaller length can replace."""
        z3, inputs = self.z3, len(self.task.inputs)
        for i in range(len(self.chosen) - 1):
            later = range(i + 1, len(self.chosen))
            taken = [self._takes(j, i + inputs) for j in later]
            self.solver.add(z3.Or(taken))
            for operation, it in self.chosen[i].items():
                before = z3.Or([other for o, other in self.chosen[i + 1].items() if o < operation])
                self.solver.add(z3.Implies(z3.And(it, before), taken[0]))
        for chosen, (_, first, second) in zip(self.chosen, self.taken, strict=True):
            symmetric = z3.Or([it for o, it in chosen.items() if OPERATIONS[o].commutes])
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
        """A program that fits the examples added; None if there is none. Raises TimeoutError,
        MemoryError, KeyboardInterrupt if z3 gave no answer."""
        z3, search = self.z3, self.search
        search.look()
        if search.limits.timeout is not None:
            left = search.limits.timeout - search.clock.seconds
            self.solver.set("timeout", max(1, int(left * 1000)))
        try:
            answer = self.solver.check()
            reason = self.solver.reason_unknown()
        except z3.Z3Exception as error:
            answer, reason = z3.unknown, str(error)
        if answer == z3.unknown:
            known = (error for word, error in _REASONS.items() if word in reason)
            raise next(known, TimeoutError)
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
        """Require that an example fits. Raises TimeoutError if the time is up."""
        z3, size = self.z3, max(len(x) for x in example.inputs if not isinstance(x, int))
        self.examples += 1
        encoding = Encoding(z3, self.search.semantics, max(size, 1), f"e{self.examples}")
        variables = [encoding.constant(x) for x in example.inputs]
        for i, (chosen, taken) in enumerate(zip(self.chosen, self.taken, strict=True)):
            number, first, second = (encoding.pick(choice, variables) for choice in taken)
            result, rules = encoding.fresh(str(i))
            self.solver.add(*rules)
            line = Application(encoding, result, number.number, first, second, chosen)
            for operation, it in chosen.items():
                self.search.look()
                self.solver.add(z3.Implies(it, z3.And(list(line.rules(operation)))))
            variables.append(result)
        self.solver.add(encoding.equals(variables[-1], example.output))

    def _bool(self) -> Bool:
        self.holes += 1
        return self.z3.Bool(f"hole{self.holes}")

    def _one_of(self, ways: Sequence[Bool]) -> None:
        """Require exactly one."""
        self.solver.add(self.z3.AtMost(*ways, 1), self.z3.Or(ways))


def _places(operation: int) -> tuple[int, ...]:
    """Places of the arguments of an operation in `_Sketch.taken`."""
    return (0, 1) if OPERATIONS[operation].inputs[0] is INT else (1, 2)[: len(OPERATIONS[operation].inputs)]
