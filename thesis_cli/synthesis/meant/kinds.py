"""Tasks whose program is known, with inputs of several kinds: to learn what was meant from, and to measure
how often it is found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from thesis_cli.synthesis.language.dsl import DEFAULT, INT, Type, Value
from thesis_cli.synthesis.language.program import Program, run
from thesis_cli.synthesis.language.task import Example
from thesis_cli.synthesis.meant.classes import Runner, lines_of
from thesis_cli.synthesis.meant.inputs import Inputs

KINDS = {"varied": (1, 20, None), "small": (3, 6, (0, 9)), "signed": (4, 8, (-20, 20)), "large": (5, 12, (1, 99))}
"""Shortest and longest list, and range of the numbers; without one, each input has a magnitude of its own,
from 2 to 256, and a quarter has no negative number, as in a corpus (`corpus_maker`)."""

FRESH = 64
"""Further inputs on which an answer is compared with the program."""

DRAWN, CALM = 600, 0.5
"""Inputs that are drawn, and the part of them from which on magnitudes shrink, for programs that leave
the range of numbers on most inputs."""


def draw_inputs(types: Sequence[Type], kind: str, rng: np.random.Generator, reach: float = 1.0) -> Inputs:
    """Inputs of a kind, whose numbers reach a part of its range."""
    shortest, longest, bounds = KINDS[kind]
    if bounds is None:
        most = 2 << int(max(rng.integers(8, size=2)))
        bounds = (0 if rng.integers(4) == 0 else -most, min(most, DEFAULT.high))
    low, high = (int(np.ceil(reach * bound)) for bound in bounds)
    length = int(rng.integers(shortest, longest + 1))

    def value(type: Type) -> Value:
        if type is INT:
            return int(rng.integers(0, length + 1)) if rng.integers(4) else int(rng.integers(low, high + 1))
        n = length if rng.integers(2) else int(rng.integers(shortest, longest + 1))
        return tuple(map(int, rng.integers(low, high + 1, n)))

    return tuple(map(value, types))


def known_examples(program: Program, kind: str, count: int, rng: np.random.Generator) -> list[Example] | None:
    """Examples of a program, `count` to show and `FRESH` to compare; None if it has too few.

    The inputs are drawn until the program has a value. Those shown have different outputs as long
    as there are any.
    """
    calm = [1.0 if k < CALM * DRAWN else 2.0 ** (-8 * (k / DRAWN - CALM)) for k in range(DRAWN)]
    drawn = list(dict.fromkeys(draw_inputs(program.inputs, kind, rng, reach) for reach in calm))
    codes = Runner(drawn, DEFAULT, wide=False).codes(lines_of(program)[None])[0]
    places = [place for place, code in enumerate(codes.tolist()) if code]
    firsts = list({int(codes[place]): place for place in reversed(places)}.values())
    shown = sorted(firsts)[:count]
    shown += [place for place in places if place not in shown][: count - len(shown)]
    fresh = [place for place in places if place not in shown][:FRESH]
    if len(fresh) < FRESH or (len(firsts) == 1 and count > 1):
        return None
    found = []
    for place in [*shown, *fresh]:
        output = run(program, drawn[place])
        assert output is not None
        found.append(Example(drawn[place], output))
    same = any(all(example.inputs[i] == example.output for example in found) for i in range(len(program.inputs)))
    return None if same else found


def told(program: Program, questions: Iterable[Inputs]) -> Example | None:
    """The answer of a user who means a program to the first question for which it has a value."""
    outputs = ((inputs, run(program, inputs)) for inputs in questions)
    return next((Example(inputs, output) for inputs, output in outputs if output is not None), None)
