"""Conditions that fix or bound a random number inside an expression.

An observed value `e == r` has measure 0. Where e is a strictly monotone function of one independent draw of a
distribution, given everything else, the draw is set to the number that makes e equal r, and the weight is the density
there times the derivative of that number by r: exact conditioning. So is it in the location of a normal draw, given its
noise; with a random sign if e is an even function of the draw; and if e is a choice, for a draw of whichever branch is
chosen. A comparison `e > r` bounds the draw in the same way: it is drawn between its bounds, and the weight is their
probability. Other conditions are events, 0 or 1, and observations that no draw solves are left to a regression.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import permutations

from thesis_cli.semantics.distributions import DISTRIBUTIONS
from thesis_cli.semantics.functions import FUNCTIONS
from thesis_cli.semantics.ranges import REALS, Interval, Operand
from thesis_cli.semantics.syntax import Call, Expression, Let, Number, Place, Variable

MOST_ORDERED = 4
"""Largest number of equations of a `let` of which all orders are tried."""
LOCATED = ("normal", "laplace")
"""Distributions of a location, the first parameter, plus noise."""
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


Path = tuple[Call, tuple[tuple[Call, int], ...]]
"""A draw, and the calls that lead to it, each with the place of the argument that leads on."""

Guards = tuple[tuple[Expression, bool], ...]
"""Conditions, each with whether it must hold."""


@dataclass(frozen=True)
class Solved:
    """A condition that is solved for a draw.

    Attributes
    ----------
    relation : "==", or how the expression compares with the target.
    steps : calls from the expression down to the draw, each with the place of the argument that leads on: functions,
        and draws of a location and noise.
    target : the other side r.
    place : place of the condition.
    guards : conditions of choices that lead to the expression, each with whether it must hold; where they differ, the
        draw is free.
    """

    relation: str
    steps: tuple[tuple[Call, int], ...]
    target: Expression
    place: Place
    guards: Guards = ()

    @property
    def others(self) -> list[Expression]:
        """All that the number depends on at which the draw is set or bounded."""
        aside = [part for call, at in self.steps for k, part in enumerate(call.arguments) if k != at]
        return [*aside, self.target, *(condition for condition, _ in self.guards)]


@dataclass(frozen=True)
class Conditions:
    """The conditions of one `let`, by how they are met.

    Attributes
    ----------
    draws : draws that are set or bounded.
    events : conditions that hold or do not.
    observed : differences that are observed to be 0, and no draw solves.
    """

    draws: tuple[Call, ...]
    events: tuple[Expression, ...]
    observed: tuple[Expression, ...]


def distinct(node: Expression, names: Mapping[str, str], count: list[int]) -> Expression:
    """The expression with a name of its own for each variable that a `let` binds, and squares of variables as powers.

    Parameters
    ----------
    names : new names of the variables in scope.
    count : number of names given so far, which grows.
    """
    match node:
        case Variable():
            return Variable(node.place, names.get(node.name, node.name))
        case Call():
            parts = tuple(distinct(part, names, count) for part in node.arguments)
            twice = [part.name for part in parts if isinstance(part, Variable)]
            if node.name == "*" and len(twice) == 2 and twice[0] == twice[1]:
                return Call(node.place, "**", (parts[0], Number(parts[1].place, 2.0)))
            return Call(node.place, node.name, parts)
        case Let():
            bindings = []
            for name, value in node.bindings:
                renamed = distinct(value, names, count)
                count[0] += 1
                names = {**names, name: f"{name}#{count[0]}"}
                bindings.append((names[name], renamed))
            observations = tuple(distinct(each, names, count) for each in node.observations)
            return Let(node.place, tuple(bindings), observations, distinct(node.body, names, count))
    return node


def fewer_names(root: Expression) -> Expression:
    """The same distribution with fewer variables: one that is used once stands for itself, one that is not used goes.
    Names must be distinct. The variables of a conditioned `let` stay, and those that are used in one further in.
    """
    uses, kept, nodes = Counter[str](), set[str](), [root]
    for node in nodes:  # grows while it is walked
        nodes.extend(parts_of(node))
        if isinstance(node, Variable):
            uses[node.name] += 1
        if isinstance(node, Let) and node.observations:
            kept.update(node.free, (name for name, _ in node.bindings))
    values = dict[str, Expression]()

    def shorter(node: Expression) -> Expression:
        match node:
            case Variable():
                return values.get(node.name, node)
            case Call():
                return Call(node.place, node.name, tuple(shorter(part) for part in node.arguments))
            case Let():
                bindings = []
                for name, value in node.bindings:
                    if name in kept or uses[name] > 1:
                        bindings.append((name, shorter(value)))
                    elif uses[name]:
                        values[name] = shorter(value)
                observations = tuple(shorter(each) for each in node.observations)
                body = shorter(node.body)
                return Let(node.place, tuple(bindings), observations, body) if bindings else body
        return node

    return shorter(root)


def parts_of(node: Expression) -> tuple[Expression, ...]:
    """The expressions that a node is made of, in the order of the text."""
    match node:
        case Call():
            return node.arguments
        case Let():
            return (*(value for _, value in node.bindings), *node.observations, node.body)
    return ()


def is_draw(node: Expression) -> bool:
    """Whether a node is a draw of a distribution."""
    return isinstance(node, Call) and node.name in DISTRIBUTIONS


def is_even(node: Call) -> bool:
    """Whether a function has the same value at x and -x."""
    exponent = node.arguments[-1]
    return node.name == "abs" or (node.name == "**" and isinstance(exponent, Number) and exponent.value % 2 == 0)


@dataclass(frozen=True)
class Solver:
    """Solves the conditions of the `let`s of an expression whose names are distinct.

    Attributes
    ----------
    bindings : what each variable is bound to.
    solved : solved conditions of each draw, by its id.
    conditions : conditions of each `let`, by its id.
    passed : draws that are set with the draw that a condition is solved for, by their ids.
    """

    bindings: dict[str, Expression] = field(default_factory=dict)
    solved: dict[int, list[Solved]] = field(default_factory=dict)
    conditions: dict[int, Conditions] = field(default_factory=dict)
    passed: dict[int, Call] = field(default_factory=dict)

    @classmethod
    def of(cls, expression: Expression) -> Solver:
        """The solver of an expression, all its conditions solved."""
        found, nodes = cls(), [expression]
        for node in nodes:  # grows while it is walked
            nodes.extend(parts_of(node))
            if isinstance(node, Let):
                found.bindings.update(node.bindings)
        for node in nodes:
            if isinstance(node, Let) and node.observations:
                found.conditions[id(node)] = found._conditions(node)
        return found

    def sources(self, node: Expression) -> set[int | str]:
        """Draws, by their ids, and columns of a table that the value of an expression depends on, also by
        conditions.
        """
        found, seen, pending = set[int | str](), set[str](), [node]
        while pending:
            part = pending.pop()
            if isinstance(part, Variable):
                if part.name not in self.bindings:
                    found.add(part.name)
                elif part.name not in seen:
                    seen.add(part.name)
                    pending.append(self.bindings[part.name])
                continue
            if id(part) in found:
                continue
            if is_draw(part):
                found.add(id(part))
                for solved in self.solved.get(id(part), ()):
                    pending.extend(solved.others)
                if id(part) in self.passed:
                    pending.append(self.passed[id(part)])
            pending.extend([part.body] if isinstance(part, Let) else parts_of(part))
        return found

    def is_discrete(self, node: Expression) -> bool:
        """Whether single values of an expression have probabilities; so have those of outer variables."""
        match node:
            case Variable():
                return node.name not in self.bindings or self.is_discrete(self.bindings[node.name])
            case Let():
                return self.is_discrete(node.body)
            case Call():
                if is_draw(node):
                    return DISTRIBUTIONS[node.name].probabilities is not None
                parts = node.arguments[1:] if node.name == "if" else node.arguments
                return FUNCTIONS[node.name].jumps or all(self.is_discrete(part) for part in parts)
        return True

    def _paths(self, node: Expression, own: set[str]) -> Iterator[Path]:
        """Draws that an expression can be solved for, and the calls that lead to them."""
        match node:
            case Variable():
                if node.name in own:
                    yield from self._paths(self.bindings[node.name], own)
            case Let():
                if not node.observations:
                    yield from self._paths(node.body, own | {name for name, _ in node.bindings})
            case Call():
                if is_draw(node):
                    yield node, ()
                    if node.name in LOCATED:
                        yield from ((draw, ((node, 0), *steps)) for draw, steps in self._paths(node.arguments[0], own))
                else:
                    for at in self.solvable(node):
                        below = self._paths(node.arguments[at], own)
                        yield from ((draw, ((node, at), *steps)) for draw, steps in below)

    def solvable(self, node: Call) -> list[int]:
        """Places of the arguments that a value of a function and its other arguments determine, up to the sign if it is
        even.
        """
        if FUNCTIONS[node.name].inverse is None:
            return []
        if node.name == "**":
            exponent = node.arguments[1]
            return [0] if isinstance(exponent, Number) and exponent.value > 0 else []
        if node.name in ("*", "/"):
            return [at for at in (0, 1) if self.is_nonzero(node.arguments[1 - at])]
        return list(range(len(node.arguments)))

    def span(self, node: Expression) -> Interval:
        """An interval that holds all values of an expression."""
        match node:
            case Number():
                return node.value, node.value
            case Variable():
                return self.span(self.bindings[node.name]) if node.name in self.bindings else REALS
            case Let():
                return self.span(node.body)
        family = DISTRIBUTIONS[node.name] if is_draw(node) else FUNCTIONS[node.name]
        return family.ranging([Operand(self.span(part)) for part in node.arguments])

    def sign(self, node: Expression) -> int:
        """The sign of all values of an expression but 0, if they have one; else 0."""
        low, high = self.span(node)
        return (low >= 0) - (high <= 0)

    def is_nonzero(self, node: Expression) -> bool:
        """Whether an expression is surely 0 with probability 0."""
        match node:
            case Number():
                return bool(node.value)
            case Variable():
                return node.name in self.bindings and self.is_nonzero(self.bindings[node.name])
            case Let():
                return self.is_nonzero(node.body)
        if is_draw(node):
            return not self.is_discrete(node)
        if node.name in ("+", "-"):  # of independent parts, if one has no variable
            random = [part for part in node.arguments if not part.free and not isinstance(part, Number)]
            return any(self.is_nonzero(part) for part in random)
        same = node.name in ("*", "/", "negative", "abs", "sqrt", "tanh")
        return node.name == "exp" or (same and all(self.is_nonzero(part) for part in node.arguments))

    def _conditions(self, node: Let) -> Conditions:
        """Conditions by equations first, in the order in which draws solve most of them."""
        flat = [part for each in node.observations for part in _flat(each)]
        equations = [each for each in flat if isinstance(each, Call) and each.name == "=="]
        others = [each for each in flat if each not in equations]
        best: tuple[Solver, Conditions] | None = None
        for order in permutations(equations) if len(equations) <= MOST_ORDERED else [equations]:
            copy = replace(self, solved={draw: [*each] for draw, each in self.solved.items()}, passed={**self.passed})
            found = copy._in_order(node, [*order, *others])
            if best is None or len(found.observed) < len(best[1].observed):
                best = copy, found
            if not found.observed:
                break
        assert best is not None
        self.solved.update(best[0].solved)
        self.passed.update(best[0].passed)
        return best[1]

    def _in_order(self, node: Let, flat: Iterable[Expression]) -> Conditions:
        """Conditions, each solved if a draw does that those before it have left."""
        own = {name for name, _ in node.bindings}
        draws, events, observed = dict[int, Call](), list[Expression](), list[Expression]()
        for condition in flat:
            solved = self._solve(condition, own) if isinstance(condition, Call) else []
            draws.update((id(draw), draw) for draw in solved)
            if solved:
                continue
            if isinstance(condition, Call) and condition.name == "==" and not self._is_event(condition):
                observed.append(Call(condition.place, "-", condition.arguments))
            else:
                events.append(condition)
        return Conditions(tuple(draws.values()), tuple(events), tuple(observed))

    def _is_event(self, equation: Call) -> bool:
        return all(self.is_discrete(side) for side in equation.arguments)

    def _solve(self, condition: Call, own: set[str]) -> list[Call]:
        """The draws that a condition is solved for: one, or one for each branch of a choice; none if there is none."""
        if condition.name not in MIRRORED:
            return []
        left, right = condition.arguments
        sides = (left, right, condition.name), (right, left, MIRRORED[condition.name])
        one = self._widest(condition, [(*side, ()) for side in sides], own)
        if one is not None:
            return [self._record(*one)]
        for side, target, relation in sides if condition.name == "==" else ():
            branches = list(self._branches(side, own, ()))
            found = [self._widest(condition, [(branch, target, relation, guards)], own) for branch, guards in branches]
            pairs = [pair for pair in found if pair is not None]
            if len({id(draw) for draw, _ in pairs}) == len(branches) > 1:
                return [self._record(*pair) for pair in pairs]
        return []

    def _widest(
        self, condition: Call, sides: Iterable[tuple[Expression, Expression, str, Guards]], own: set[str]
    ) -> tuple[Call, Solved] | None:
        """The widest continuous draw that a side of a condition can be solved for, since the weights vary least with
        those that stay random; else the first discrete one. None if there is none.
        """
        found: list[tuple[Call, Solved]] = []
        for side, target, relation, guards in sides:
            for draw, steps in self._paths(side, own):
                solved = Solved(relation, steps, target, condition.place, guards)
                if self._allowed(draw, solved):
                    found.append((draw, solved))
        smooth = [pair for pair in found if DISTRIBUTIONS[pair[0].name].probabilities is None]
        if not smooth and not (found and self._is_event(condition)):
            return None
        return max(smooth, key=lambda pair: _width(pair[0])) if smooth else found[0]

    def _record(self, draw: Call, solved: Solved) -> Call:
        """Note that a draw solves a condition; returns it."""
        self.solved.setdefault(id(draw), []).append(solved)
        self.passed.update((id(call), draw) for call, _ in solved.steps if is_draw(call))
        return draw

    def _branches(self, node: Expression, own: set[str], guards: Guards) -> Iterator[tuple[Expression, Guards]]:
        """The expressions that a choice chooses among, and the conditions under which it does."""
        if isinstance(node, Variable) and node.name in own:
            yield from self._branches(self.bindings[node.name], own, guards)
        elif isinstance(node, Call) and node.name == "if":
            condition, *branches = node.arguments
            for branch, holds in zip(branches, (True, False), strict=True):
                yield from self._branches(branch, own, (*guards, (condition, holds)))
        else:
            yield node, guards

    def _allowed(self, draw: Call, found: Solved) -> bool:
        """Whether a condition may set or bound a draw, which nothing has set and its number does not depend on."""
        if id(draw) in self.passed or any(each.relation == "==" for each in self.solved.get(id(draw), ())):
            return False
        through = [call for call, _ in found.steps if is_draw(call)]
        if any(id(call) in self.passed or id(call) in self.solved for call in through):
            return False
        discrete = DISTRIBUTIONS[draw.name].probabilities is not None
        if found.guards and (through or discrete or id(draw) in self.solved):
            return False
        if found.relation != "==":
            monotone = not through and not any(
                is_even(call) or (call.name == "/" and at == 1) for call, at in found.steps
            )
            if not monotone or discrete or any(each.guards for each in self.solved.get(id(draw), ())):
                return False
        if discrete and any(is_even(call) for call, _ in found.steps):
            return False
        taken = {id(draw), *map(id, through)}
        return not any(taken & self.sources(part) for part in found.others)


def _width(draw: Call) -> float:
    """About the standard deviation of a draw with constant parameters; 0 of any other."""
    numbers = [part.value for part in draw.arguments if isinstance(part, Number)]
    if draw.name in LOCATED:
        return draw.arguments[1].value if isinstance(draw.arguments[1], Number) else 0.0
    if len(numbers) < len(draw.arguments):
        return 0.0
    if draw.name == "uniform":
        return (numbers[1] - numbers[0]) / math.sqrt(12)
    if draw.name == "gamma":
        return math.sqrt(numbers[0]) * numbers[1] if numbers[0] > 0 else 0.0
    return numbers[0] if draw.name == "exponential" else 0.0


def _flat(condition: Expression, holds: bool = True) -> list[Expression]:
    """Conditions that hold together if a condition holds, or if it does not."""
    if isinstance(condition, Call):
        if condition.name == "not":
            return _flat(condition.arguments[0], not holds)
        if condition.name == ("and" if holds else "or"):
            return [part for each in condition.arguments for part in _flat(each, holds)]
        if not holds and condition.name in NEGATED:
            return [Call(condition.place, NEGATED[condition.name], condition.arguments)]
    return [condition] if holds else [Call(condition.place, "not", (condition,))]
