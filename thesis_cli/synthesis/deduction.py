"""What the value of an operation tells of its arguments: the rules of the deductive solver.

A goal describes a set of values. The rules give, for a goal of an operation's result, one for each of its arguments
that holds every argument with such a result; none where no argument has one. They may be wide, never narrow. Sets of
numbers and of lengths are bits of one integer, so that they meet by `&` and move by a shift.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import NamedTuple

from thesis_cli.synthesis.dsl import Operation, Value
from thesis_cli.synthesis.number_sets import Numbers, NumberSets, lowest


class Lists(NamedTuple):
    """A set of lists: those that meet all of this.

    Attributes
    ----------
    lengths : bit n is set where n numbers are allowed.
    every : what each number is in.
    front : what the first numbers are in, as many as there are, counted from the first one.
    back : what the last numbers are in, as many as there are, counted from the last one.
    parts : as many numbers, each in its set, stand in the list, in this order if `ordered`.
    """

    lengths: int
    every: Numbers
    front: tuple[Numbers, ...] = ()
    back: tuple[Numbers, ...] = ()
    parts: tuple[Numbers, ...] = ()
    ordered: bool = True


Goal = Numbers | Lists
"""What a value, a number or a list, is wanted in."""


class Deduction:
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
        """One value alone; None where no program has it."""
        if not self.sets.semantics.holds(value):
            return None
        if isinstance(value, int):
            return self.sets.one(value)
        return self._tidy(Lists(1 << len(value) & self.lengths, self.all, tuple(map(self.sets.one, value))))

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
        """Goal of the list that an operation takes (of ZIPWITH: the first), whatever its other argument may be.

        Parameters
        ----------
        goal : of the result, and of its type.

        Returns
        -------
        The goal; None where no list has such a result.
        """
        name, _, f = operation.name.partition(" ")
        found = self._of_number(name, f, goal) if isinstance(goal, int) else self._of_list(name, f, goal)
        return found and self._tidy(found)

    def second(self, operation: Operation, goal: Goal, known: tuple[int, ...]) -> Goal | None:
        """Goal of the argument that is left of an operation with two: the number, or the second list of ZIPWITH.

        Parameters
        ----------
        goal : of the result, and of its type.
        known : the list that `first` speaks of.

        Returns
        -------
        The goal; None where no argument has such a result beside the known one.
        """
        name, _, f = operation.name.partition(" ")
        if name != "ZIPWITH":
            return self._counts(operation, goal, known) or None
        assert isinstance(goal, Lists)
        shorter = goal.lengths & ((1 << len(known)) - 1)
        as_long = -1 << len(known) if goal.lengths >> len(known) & 1 else 0
        front = goal.front + (goal.every,) * (len(known) - len(goal.front))
        other = tuple(self.sets.right(f, a, allowed) for a, allowed in zip(known, front, strict=False))
        return self._tidy(Lists((shorter | as_long) & self.lengths, self.all, other))

    def _of_number(self, name: str, f: str, goal: Numbers) -> Lists | None:
        """Lists of which HEAD, LAST, ACCESS, MINIMUM, MAXIMUM, SUM or COUNT is in a set."""
        some = self.lengths & ~1
        match name:
            case "HEAD":
                return Lists(some, self.all, front=(goal,))
            case "LAST":
                return Lists(some, self.all, back=(goal,))
            case "ACCESS":
                return Lists(some, self.all, parts=(goal,))
            case "MINIMUM":
                return Lists(some, self.sets.from_(self.sets.least(goal)), parts=(goal,))
            case "MAXIMUM":
                return Lists(some, self.sets.up_to(self.sets.most(goal)), parts=(goal,))
            case "SUM":
                return Lists(self.lengths if self.sets.holds(goal, 0) else some, self.all)
            case _:
                counts = self.sets.between(0, self.lengths.bit_length() - 1) & goal
                if not counts:
                    return None
                least, most, p = self.sets.least(counts), self.sets.most(counts), self.sets.passing(f)
                return Lists(self.lengths, self.all if most else self.all & ~p, parts=(p,) * least)

    def _of_list(self, name: str, f: str, goal: Lists) -> Lists | None:
        """Lists of which one of the other functions, by its name, gives a list that is wanted."""
        least = lowest(goal.lengths)
        longer = self.lengths & (-1 << least)
        match name:
            case "MAP":
                kinds = (goal.front, goal.back, goal.parts)
                front, back, parts = (tuple(self.sets.preimage(f, m) for m in masks) for masks in kinds)
                return Lists(goal.lengths, self.sets.preimage(f, goal.every), front, back, parts, goal.ordered)
            case "REVERSE":
                parts = goal.parts[::-1] if goal.ordered else goal.parts
                return goal._replace(front=goal.back, back=goal.front, parts=parts)
            case "TAKE":
                return Lists(longer, self.all, self._positions(goal, least), (), goal.parts, goal.ordered)
            case "DROP":
                flipped = self._tidy(Lists(goal.lengths, goal.every, goal.back, goal.front))
                if flipped is None:
                    return None
                return Lists(longer, self.all, (), self._positions(flipped, least), goal.parts, goal.ordered)
            case "FILTER":
                return self._unfiltered(self.sets.passing(f), goal)
            case "SORT":
                return self._unsorted(goal)
            case "SCANL1":
                return self._differences(f, goal)
            case _:
                front = tuple(self.sets.left(f, allowed) for allowed in self._positions(goal, least))
                return Lists(longer, self.all, front)

    def _unfiltered(self, p: Numbers, goal: Lists) -> Lists | None:
        """Lists of which the numbers in a set, p, are wanted."""
        kept = self._tidy(goal._replace(every=goal.every & p))
        if kept is None:
            return None
        least, most = lowest(kept.lengths), kept.lengths.bit_length() - 1
        every = reduce(or_, self._positions(kept, most), 0)
        return Lists(self.lengths & (-1 << least), every | (self.all & ~p), (), (), *self._pieces(kept))

    def _unsorted(self, goal: Lists) -> Lists | None:
        """Lists that, sorted, are wanted."""
        least, front = self.sets.low, []
        for allowed in goal.front:
            front.append(allowed & self.sets.from_(least))
            if not front[-1]:
                break
            least = self.sets.least(front[-1])
        rising = self._tidy(goal._replace(front=tuple(front)))
        return rising and Lists(rising.lengths, rising.every, (), (), self._pieces(rising)[0], False)

    def _differences(self, f: str, goal: Lists) -> Lists:
        """Lists whose SCANL1 is wanted: the first number stays, each other one leads from a result to the next."""
        front = [*goal.front[:1]]
        for before, allowed in zip(goal.front, goal.front[1:], strict=False):
            alone = before & (before - 1) == 0
            front.append(
                self.sets.right(f, self.sets.least(before), allowed) if alone else self.sets.beside(f, allowed)
            )
        return Lists(goal.lengths, goal.every | self.sets.beside(f, goal.every), tuple(front))

    def _counts(self, operation: Operation, goal: Goal, known: tuple[int, ...]) -> Numbers:
        """Numbers n with which TAKE, DROP or ACCESS of a list is wanted; beyond its length they are all alike."""
        found, n = 0, len(known)
        for i in range(-n, n + 1):
            value = operation.trunc(i, known)
            if value is not None and self.admits(goal, value):
                found |= self.sets.between(self.sets.low if i == -n else i, self.sets.high if i == n else i)
        return found

    def _positions(self, goal: Lists, count: int) -> tuple[Numbers, ...]:
        """What each of the first `count` numbers is in."""
        return goal.front[:count] + (goal.every,) * (count - len(goal.front))

    def _pieces(self, goal: Lists) -> tuple[tuple[Numbers, ...], bool]:
        """Parts that any list has that contains a wanted one in order, and whether they are ordered."""
        if goal.parts and not goal.front:
            return goal.parts, goal.ordered
        return self._positions(goal, lowest(goal.lengths)), True

    def _tidy(self, goal: Lists) -> Lists | None:
        """The same lists, told more closely; None where there are none."""
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
        return Lists(lengths, every, front, back, parts, ordered) if lengths else None


def _cut(masks: tuple[int, ...], lengths: int) -> tuple[tuple[int, ...], int]:
    """Positions and lengths, where a position that nothing fits ends all lists before it."""
    if 0 in masks:
        end = masks.index(0)
        masks, lengths = masks[:end], lengths & ((2 << end) - 1)
    return masks[: max(lengths.bit_length() - 1, 0)], lengths
