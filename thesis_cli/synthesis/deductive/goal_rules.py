"""Rules of the deductive search: from the result of an operation back to its arguments.

A goal describes a set of values. From a goal for the result, a rule makes one for an argument,
which contains every argument that has such a result. It may contain others, too. Sets of numbers
and of lengths are bits of one integer: `&` intersects them and a shift moves them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from thesis_cli.synthesis.deductive.number_sets import Numbers, NumberSets, lowest
from thesis_cli.synthesis.language.dsl import FUNCTIONS, INT, Lambda, Operation, Value, check_rules


class ListSet(NamedTuple):
    """A set of lists: those that meet all of this.

    Attributes
    ----------
    lengths : bit n is set where n numbers are allowed.
    every : set of each number.
    front : sets of the first numbers, from the first one on; a shorter list uses as many as it has
        numbers.
    back : sets of the last numbers, from the last one back; likewise.
    parts : sets that different numbers of the list are in, in this order if `ordered`.
    """

    lengths: int
    every: Numbers
    front: tuple[Numbers, ...] = ()
    back: tuple[Numbers, ...] = ()
    parts: tuple[Numbers, ...] = ()
    ordered: bool = True


Goal = Numbers | ListSet
"""The set in which a value, a number or a list, must be."""


class GoalRules:
    """The rules for one example.

    Parameters
    ----------
    sets : sets of numbers within the range.
    longest : length of the longest list among the inputs, which no operation exceeds.
    """

    def __init__(self, sets: NumberSets, longest: int) -> None:
        self.sets, self.all = sets, sets.all
        self.lengths = (2 << longest) - 1

    def exactly(self, value: Value) -> Goal | None:
        """The goal of a single value; None if no program can have it."""
        if not self.sets.semantics.holds(value):
            return None
        if isinstance(value, int):
            return self.sets.one(value)
        return self._tidy(ListSet(1 << len(value) & self.lengths, self.all, tuple(map(self.sets.one, value))))

    def admits(self, goal: Goal, value: Value) -> bool:
        """Whether a value, within the range, is in a goal of its type."""
        low = self.sets.low
        if isinstance(goal, int):
            assert isinstance(value, int)
            return bool(goal >> (value - low) & 1)
        assert not isinstance(value, int)
        if not goal.lengths >> len(value) & 1:
            return False
        for allowed, x in zip(goal.front, value, strict=False):
            if not allowed >> (x - low) & 1:
                return False
        for allowed, x in zip(goal.back, reversed(value), strict=False):
            if not allowed >> (x - low) & 1:
                return False
        if goal.every != self.all and not all(goal.every >> (x - low) & 1 for x in value):
            return False
        if goal.ordered:
            rest = iter(value)
            return all(any(part >> (x - low) & 1 for x in rest) for part in goal.parts)
        return all(sum(part >> (x - low) & 1 for x in value) >= goal.parts.count(part) for part in set(goal.parts))

    def first(self, operation: Operation, goal: Goal) -> Goal | None:
        """Goal of the list that an operation takes (the first, if it takes two), whatever its other
        argument may be.

        Parameters
        ----------
        goal : value and type that the last line must produce.

        Returns
        -------
        The goal; None where no list has such a result.
        """
        found = RULES[operation.function.goals].first(self, operation, goal)
        return found and self._tidy(found)

    def second(self, operation: Operation, goal: Goal, known: tuple[int, ...]) -> Goal | None:
        """Goal of the argument that is left of an operation with two: the number, or the second
        list.

        Parameters
        ----------
        goal : value and type that the last line must produce.
        known : the list that `first` speaks of.

        Returns
        -------
        The goal; None where no argument has such a result beside the known one.
        """
        return RULES[operation.function.goals].second(self, operation, goal, known)

    def _unknown(self, operation: Operation, goal: Goal) -> ListSet:
        """Any list."""
        return ListSet(self.lengths, self.all)

    def _unknown_second(self, operation: Operation, goal: Goal, known: tuple[int, ...]) -> Goal:
        """Any number, or any list."""
        return self.all if operation.inputs[0] is INT else ListSet(self.lengths, self.all)

    def _front(self, operation: Operation, goal: Numbers) -> ListSet:
        return ListSet(self.lengths & ~1, self.all, front=(goal,))

    def _back(self, operation: Operation, goal: Numbers) -> ListSet:
        return ListSet(self.lengths & ~1, self.all, back=(goal,))

    def _member(self, operation: Operation, goal: Numbers) -> ListSet:
        return ListSet(self.lengths & ~1, self.all, parts=(goal,))

    def _minimum(self, operation: Operation, goal: Numbers) -> ListSet:
        return ListSet(self.lengths & ~1, self.sets.from_(self.sets.least(goal)), parts=(goal,))

    def _maximum(self, operation: Operation, goal: Numbers) -> ListSet:
        return ListSet(self.lengths & ~1, self.sets.up_to(self.sets.most(goal)), parts=(goal,))

    def _sum(self, operation: Operation, goal: Numbers) -> ListSet:
        return ListSet(self.lengths if self.sets.holds(goal, 0) else self.lengths & ~1, self.all)

    def _count(self, operation: Operation, goal: Numbers) -> ListSet | None:
        counts = self.sets.between(0, self.lengths.bit_length() - 1) & goal
        if not counts:
            return None
        least, most, p = self.sets.least(counts), self.sets.most(counts), self.sets.passing(_lambda(operation))
        return ListSet(self.lengths, self.all if most else self.all & ~p, parts=(p,) * least)

    def _map(self, operation: Operation, goal: ListSet) -> ListSet:
        f = _lambda(operation)
        kinds = (goal.front, goal.back, goal.parts)
        front, back, parts = (tuple(self.sets.preimage(f, m) for m in masks) for masks in kinds)
        return ListSet(goal.lengths, self.sets.preimage(f, goal.every), front, back, parts, goal.ordered)

    def _reverse(self, operation: Operation, goal: ListSet) -> ListSet:
        parts = goal.parts[::-1] if goal.ordered else goal.parts
        return goal._replace(front=goal.back, back=goal.front, parts=parts)

    def _longer(self, goal: ListSet) -> int:
        """Lengths from that of the shortest list of a goal on."""
        return self.lengths & (-1 << lowest(goal.lengths))

    def _prefix(self, operation: Operation, goal: ListSet) -> ListSet:
        front = self._positions(goal, lowest(goal.lengths))
        return ListSet(self._longer(goal), self.all, front, (), goal.parts, goal.ordered)

    def _suffix(self, operation: Operation, goal: ListSet) -> ListSet | None:
        flipped = self._tidy(ListSet(goal.lengths, goal.every, goal.back, goal.front))
        if flipped is None:
            return None
        back = self._positions(flipped, lowest(goal.lengths))
        return ListSet(self._longer(goal), self.all, (), back, goal.parts, goal.ordered)

    def _filter(self, operation: Operation, goal: ListSet) -> ListSet | None:
        p = self.sets.passing(_lambda(operation))
        kept = self._tidy(goal._replace(every=goal.every & p))
        if kept is None:
            return None
        every = reduce(or_, self._positions(kept, kept.lengths.bit_length() - 1), 0)
        return ListSet(self._longer(kept), every | (self.all & ~p), (), (), *self._pieces(kept))

    def _sort(self, operation: Operation, goal: ListSet) -> ListSet | None:
        least, front = self.sets.low, []
        for allowed in goal.front:
            front.append(allowed & self.sets.from_(least))
            if not front[-1]:
                break
            least = self.sets.least(front[-1])
        rising = self._tidy(goal._replace(front=tuple(front)))
        return rising and ListSet(rising.lengths, rising.every, (), (), self._pieces(rising)[0], False)

    def _zipwith(self, operation: Operation, goal: ListSet) -> ListSet:
        f = _lambda(operation)
        front = tuple(self.sets.left(f, allowed) for allowed in self._positions(goal, lowest(goal.lengths)))
        return ListSet(self._longer(goal), self.all, front)

    def _zipwith_second(self, operation: Operation, goal: ListSet, known: tuple[int, ...]) -> ListSet | None:
        f = _lambda(operation)
        shorter = goal.lengths & ((1 << len(known)) - 1)
        as_long = -1 << len(known) if goal.lengths >> len(known) & 1 else 0
        front = goal.front + (goal.every,) * (len(known) - len(goal.front))
        other = tuple(self.sets.right(f, a, allowed) for a, allowed in zip(known, front, strict=False))
        return self._tidy(ListSet((shorter | as_long) & self.lengths, self.all, other))

    def _scanl1(self, operation: Operation, goal: ListSet) -> ListSet:
        """The first number stays; each other one leads from a result to the next."""
        f = _lambda(operation)
        front = [*goal.front[:1]]
        for before, allowed in zip(goal.front, goal.front[1:], strict=False):
            alone = before & (before - 1) == 0
            front.append(
                self.sets.right(f, self.sets.least(before), allowed) if alone else self.sets.beside(f, allowed)
            )
        return ListSet(goal.lengths, goal.every | self.sets.beside(f, goal.every), tuple(front))

    def _place(self, operation: Operation, goal: Goal, known: tuple[int, ...]) -> Goal | None:
        """Numbers that TAKE, DROP or ACCESS may take; beyond the length of the list they are all
        alike."""
        found, n = 0, len(known)
        for i in range(-n, n + 1):
            value = operation.trunc(i, known)
            if value is not None and self.admits(goal, value):
                found |= self.sets.between(self.sets.low if i == -n else i, self.sets.high if i == n else i)
        return found or None

    def _positions(self, goal: ListSet, count: int) -> tuple[Numbers, ...]:
        """Set of numbers that each of the first `count` places may have."""
        return goal.front[:count] + (goal.every,) * (count - len(goal.front))

    def _pieces(self, goal: ListSet) -> tuple[tuple[Numbers, ...], bool]:
        """Parts that every list has which contains a list of a goal in order, and whether they are
        ordered."""
        if goal.parts and not goal.front:
            return goal.parts, goal.ordered
        return self._positions(goal, lowest(goal.lengths)), True

    def _tidy(self, goal: ListSet) -> ListSet | None:
        """The same lists, described more closely; None if there are none."""
        lengths, every, front, back, parts, ordered = goal
        if 0 in (parts := tuple(part & every for part in parts)):
            return None
        lengths &= -1 << len(parts)
        if back and lengths & (lengths - 1) == 0:
            n = lowest(lengths)
            ends = (self.all,) * (n - len(back)) + back[:n][::-1]
            front = tuple(a & b for a, b in zip(self._positions(goal, n), ends, strict=True)) if lengths else ()
            back = ()
        front, lengths = _cut(tuple(allowed & every for allowed in front), lengths)
        back, lengths = _cut(tuple(allowed & every for allowed in back), lengths)
        if not every:
            lengths &= 1
        return ListSet(lengths, every, front, back, parts, ordered) if lengths else None


def _lambda(operation: Operation) -> Lambda:
    assert operation.f is not None
    return operation.f


class Rule(NamedTuple):
    """Goals of the arguments from a goal of the result; see `GoalRules.first` and
    `GoalRules.second`."""

    first: Callable[[GoalRules, Operation, Any], ListSet | None]
    second: Callable[[GoalRules, Operation, Any, tuple[int, ...]], Goal | None] = GoalRules._unknown_second


RULES = {
    "unknown": Rule(GoalRules._unknown),
    "front": Rule(GoalRules._front),
    "back": Rule(GoalRules._back),
    "prefix": Rule(GoalRules._prefix, GoalRules._place),
    "suffix": Rule(GoalRules._suffix, GoalRules._place),
    "member": Rule(GoalRules._member, GoalRules._place),
    "minimum": Rule(GoalRules._minimum),
    "maximum": Rule(GoalRules._maximum),
    "reverse": Rule(GoalRules._reverse),
    "sort": Rule(GoalRules._sort),
    "sum": Rule(GoalRules._sum),
    "map": Rule(GoalRules._map),
    "filter": Rule(GoalRules._filter),
    "count": Rule(GoalRules._count),
    "zipwith": Rule(GoalRules._zipwith, GoalRules._zipwith_second),
    "scanl1": Rule(GoalRules._scanl1),
}
"""Rules by name."""
check_rules("goals", (function.goals for function in FUNCTIONS), RULES)


def _cut(masks: tuple[int, ...], lengths: int) -> tuple[tuple[int, ...], int]:
    """Positions and lengths, where a position that nothing fits ends all lists before it."""
    if 0 in masks:
        end = masks.index(0)
        masks, lengths = masks[:end], lengths & ((2 << end) - 1)
    return masks[: max(lengths.bit_length() - 1, 0)], lengths
