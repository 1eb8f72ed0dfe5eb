"""How an expression is computed at the points of a net: which parts have a net of their own.

The error of a net grows with the number of coordinates. So an expression of more than two independent draws is cut: a
part without free variables is computed on its own, and its distribution counts as one draw of the whole, by the
rule for [[f(e1, e2)]] (Scibior and Schoelkopf section 3). A conditioned `let` without free variables is such a part
too; one with random free variables is computed for each of their values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from thesis_cli.semantics.conditions import Solver, is_draw, is_even, parts_of
from thesis_cli.semantics.syntax import Call, Expression, Let, Variable

MOST_PARTS = 128
"""About the largest number of parts; beyond it, parts have more than two draws."""


@dataclass(frozen=True)
class Plan:
    """How an expression is computed.

    Attributes
    ----------
    root : the expression, its names distinct.
    solver : its variables and solved conditions.
    inner : whether it is computed for each value of its free variables.
    parts : plans of the parts without free variables that are computed on their own, by the id of the node.
    nested : plans of the conditioned parts that are computed for each value of their free variables.
    """

    root: Expression
    solver: Solver
    inner: bool = False
    parts: dict[int, Plan] = field(default_factory=dict)
    nested: dict[int, Plan] = field(default_factory=dict)

    @classmethod
    def of(cls, root: Expression, solver: Solver) -> Plan:
        """The plan of an expression whose conditions are solved."""
        draws = sum(is_draw(node) for node in _walk(root))
        found, _ = _cut(root, solver, max(2, 1 + draws // MOST_PARTS))
        return Plan(root, solver, nested={id(root): replace(found, inner=True)}) if _varies(root, solver) else found

    def own(self) -> Iterator[Expression]:
        """The nodes that are computed at the points of this plan's net, and the roots of parts cut off."""
        return _walk(self.root, {*self.parts, *self.nested})

    @property
    def conditioned(self) -> bool:
        """Whether conditions weight the points."""
        return any(
            isinstance(node, Let) and node.observations and id(node) not in {*self.parts, *self.nested}
            for node in self.own()
        )

    @cached_property
    def integrated(self) -> tuple[Call | Let, tuple[tuple[Call, int], ...]] | None:
        """A continuous draw, or else a part, that the value is strictly monotone in, and that nothing else depends on;
        with the calls that lead to it. None if there is none, or conditions weight the points.
        """
        paths = [] if self.conditioned else list(self._paths(self.root))
        return next((each for each in paths if is_draw(each[0])), paths[0] if paths else None)

    def _paths(self, node: Expression) -> Iterator[tuple[Call | Let, tuple[tuple[Call, int], ...]]]:
        if isinstance(node, Call | Let) and id(node) in self.parts:
            yield node, ()
        elif isinstance(node, Let) and id(node) not in self.nested:
            yield from self._paths(node.body)
        elif isinstance(node, Call) and is_draw(node):
            if not self.solver.is_discrete(node):
                yield node, ()
        elif isinstance(node, Call) and not is_draw(node) and not is_even(node):
            for at in self.solver.solvable(node):
                part = node.arguments[at]
                if node.name == "/" and at == 1 and not self.solver.sign(part):
                    continue  # a / x is monotone on either side of 0 only
                yield from ((draw, ((node, at), *steps)) for draw, steps in self._paths(part))

    @property
    def countable(self) -> list[Expression]:
        """Draws that have few values, and parts that may."""
        solved = self.solver.solved
        return [
            node
            for node in self.own()
            if id(node) in self.parts
            or (isinstance(node, Call) and is_draw(node) and self.solver.is_discrete(node) and id(node) not in solved)
        ]


def _cut(root: Expression, solver: Solver, most: int) -> tuple[Plan, int]:
    """The plan of an expression, and the number of draws that are left in it, not more than `most` if possible."""
    found, below = Plan(root, solver), [_cut(part, solver, most) for part in parts_of(root)]
    for at, (plan, _) in enumerate(below):
        if _varies(plan.root, solver):
            found.nested[id(plan.root)] = replace(plan, inner=True)
            below[at] = Plan(plan.root, solver), 1
        elif isinstance(plan.root, Let) and plan.root.observations and not plan.root.free:
            found.parts[id(plan.root)] = plan
            below[at] = Plan(plan.root, solver), 1
    while sum(count for _, count in below) + is_draw(root) > most:
        at = max(range(len(below)), key=lambda k: below[k][1] if _is_apart(below[k][0].root, solver) else 0)
        plan, count = below[at]
        if count < 2 or not _is_apart(plan.root, solver):
            break
        found.parts[id(plan.root)] = plan
        below[at] = Plan(plan.root, solver), 1
    for plan, _ in below:
        found.parts.update(plan.parts)
        found.nested.update(plan.nested)
    return found, sum(count for _, count in below) + is_draw(root)


def _varies(node: Expression, solver: Solver) -> bool:
    """Whether an expression is conditioned, and its probability may depend on the values of free variables."""
    if not isinstance(node, Let) or not node.observations:
        return False
    return any(solver.sources(Variable(node.place, name)) for name in node.free)


def _is_apart(node: Expression, solver: Solver) -> bool:
    """Whether an expression has no free variable, and no draw in it is conditioned from outside."""
    return not node.free and not (solver.solved and any(id(part) in solver.solved for part in _walk(node)))


def _walk(node: Expression, leave: frozenset[int] | set[int] = frozenset()) -> Iterator[Expression]:
    """All nodes of an expression, but not what is inside those to leave."""
    pending = [node]
    while pending:
        part = pending.pop()
        yield part
        if id(part) not in leave:
            pending.extend(reversed(parts_of(part)))
