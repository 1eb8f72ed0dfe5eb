"""Search from the output towards the inputs, instead of lambda^2 (Thesis section 5.4.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from thesis_cli.synthesis.deductive.goal_rules import Goal, GoalRules
from thesis_cli.synthesis.deductive.number_sets import NumberSets
from thesis_cli.synthesis.language.dsl import DEFAULT, LIST, OPERATIONS, Operation, Semantics, Type, Value
from thesis_cli.synthesis.language.program import Line, Program
from thesis_cli.synthesis.language.task import Task
from thesis_cli.synthesis.search.length_by_length import LengthByLength
from thesis_cli.synthesis.search.solver import Limits, Order, Solution, refutation

Values = tuple[Value, ...]
"""Values of a variable, one an example."""

Goals = tuple[Goal, ...]
"""The sets in which they must be, one for each example."""


class Deductive:
    """Top-down enumeration of programs with holes, by length, cut by deduction.

    A hole has a goal for each example. Rules (`goal_rules`) make it from the goal above it and from
    the arguments beside it. A hole is filled by an existing variable, or by an operation with holes
    of its own, first to last. So a program is written from its last line down, as a tree whose
    branches may end in any branch finished before. That reaches every program once, also those that
    share variables.

    The search leaves out only programs with a variant that fits as well and is found: lines that
    repeat the values of a variable (there is a shorter program), and commutative operations with
    their arguments in falling order.
    """

    name = "deductive"

    def solve(self, task: Task, order: Order, limits: Limits, semantics: Semantics = DEFAULT) -> Solution:
        """See `solver.Solver`. It needs little memory, whatever the limit."""
        if found := refutation(self.name, task, limits, semantics):
            return found
        return _DeductiveSearch(task, limits, semantics).solve(self.name, order)


class _DeductiveSearch(LengthByLength):
    """One task: the lines of the finished branches, and the values of the inputs and of these lines."""

    def __init__(self, task: Task, limits: Limits, semantics: Semantics) -> None:
        super().__init__(task, limits, semantics)
        self.lines: list[Line] = []
        self.types = list(task.inputs)
        self.variables: list[Values] = list(zip(*(example.inputs for example in task.examples), strict=True))
        lengths = [max(len(x) for x in example.inputs if not isinstance(x, int)) for example in task.examples]
        sets = NumberSets(semantics)
        rules = {longest: GoalRules(sets, longest) for longest in lengths}
        self.rules = [rules[longest] for longest in lengths]
        self.by_type: dict[Type, list[Operation]] = {}
        self.length = 0

    def programs(self, length: int, active: Sequence[int], fresh: frozenset[int]) -> Iterator[Program]:
        """See `LengthByLength.programs`."""
        exact = (rules.exactly(example.output) for rules, example in zip(self.rules, self.task.examples, strict=True))
        goals = tuple(goal for goal in exact if goal is not None)
        if len(goals) < len(self.rules):
            return
        self.length = length
        self.by_type = {kind: [OPERATIONS[i] for i in active if OPERATIONS[i].output is kind] for kind in Type}
        for _ in self._fill(goals, self.task.output, length, length):
            if not fresh.isdisjoint(line.operation for line in self.lines):
                yield Program(self.task.inputs, tuple(self.lines))

    def _fill(self, goals: Goals, kind: Type, least: int, most: int) -> Iterator[int]:
        """Fill a hole by a variable or by `least` to `most` new lines; yields its number while they
        are there."""
        if least == 0:
            for number in range(len(self.variables)):
                if self.types[number] is kind and self._admits(goals, self.variables[number]):
                    yield number
        if most == 0:
            return
        for operation in self.by_type[kind]:
            if most == 1:
                places = [[i for i, t in enumerate(self.types) if t is needed] for needed in operation.inputs]
                for arguments in product(*places):
                    yield from self._finish(operation, arguments, goals)
            else:
                yield from self._open(operation, goals, least - 1, most - 1)

    def _open(self, operation: Operation, goals: Goals, least: int, most: int) -> Iterator[int]:
        """Fill a hole by an operation whose arguments are to take `least` to `most` lines."""
        first = self._deduce(operation, goals)
        if first is None:
            return
        if len(operation.inputs) == 1:
            for number in self._fill(first, LIST, max(least, 0), most):
                yield from self._finish(operation, (number,), goals)
            return
        before = len(self.lines)
        for number in self._fill(first, LIST, 0, most):
            spent = len(self.lines) - before
            other = self._deduce(operation, goals, number)
            if other is None:
                continue
            kind = operation.inputs[0]
            for beside in self._fill(other, kind, max(least - spent, 0), most - spent):
                arguments = (number, beside) if kind is LIST else (beside, number)
                yield from self._finish(operation, arguments, goals)

    def _deduce(self, operation: Operation, goals: Goals, known: int | None = None) -> Goals | None:
        """Goals of the list that an operation takes or, if that is known, of its other argument;
        None if impossible."""
        self._tick()
        deduced = []
        for e, (rules, goal) in enumerate(zip(self.rules, goals, strict=True)):
            if known is None:
                found = rules.first(operation, goal)
            else:
                found = rules.second(operation, goal, self.variables[known][e])  # type: ignore[arg-type]  # a list
            if found is None:
                return None
            deduced.append(found)
        return tuple(deduced)

    def _finish(self, operation: Operation, arguments: tuple[int, ...], goals: Goals) -> Iterator[int]:
        """Add a line if its values are new and in the goals; yields its variable while the line is
        there."""
        self._tick()
        rows = [self.variables[i] for i in arguments]
        if operation.commutes and rows[0] > rows[1]:
            return
        values = []
        for e, (rules, goal) in enumerate(zip(self.rules, goals, strict=True)):
            value = self.semantics.apply(operation, *[row[e] for row in rows])
            if value is None or not rules.admits(goal, value):
                return
            values.append(value)
        last = len(self.lines) + 1 == self.length
        if not (last or self.limits.distinct) and tuple(values) in self.variables:
            return
        self.lines.append(Line(operation.id, arguments))
        self.variables.append(tuple(values))
        self.types.append(operation.output)
        yield len(self.variables) - 1
        for stack in (self.lines, self.variables, self.types):
            stack.pop()

    def _admits(self, goals: Goals, values: Values) -> bool:
        return all(rules.admits(goal, x) for rules, goal, x in zip(self.rules, goals, values, strict=True))

    def _tick(self) -> None:
        self.clock.nodes += 1
        self.look()
