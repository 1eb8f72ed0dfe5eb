"""Random well-typed programs, and values for them."""

from __future__ import annotations

from itertools import product

from hypothesis import strategies as st

from thesis_cli.synthesis.language.dsl import DEEPCODER, DEFAULT, INT, LIST, Language, Semantics, Type, Value
from thesis_cli.synthesis.language.program import Line, Program

SIGNATURES = [types for count in (1, 2, 3) for types in product(Type, repeat=count) if LIST in types]
"""Types of 1 to 3 inputs, a list among them."""


@st.composite
def programs(
    draw: st.DrawFn, longest: int = 5, inputs: tuple[Type, ...] | None = None, language: Language = DEEPCODER
) -> Program:
    """1 to `longest` lines, each any operation on any variables above it."""
    inputs = inputs or draw(st.sampled_from(SIGNATURES))
    types, lines = list(inputs), []
    for _ in range(draw(st.integers(1, longest))):
        operation = draw(st.sampled_from([o for o in language.operations if set(o.inputs) <= set(types)]))
        arguments = [draw(st.sampled_from([i for i, t in enumerate(types) if t is kind])) for kind in operation.inputs]
        lines.append(Line(operation.id, tuple(arguments)))
        types.append(operation.output)
    return Program(inputs, tuple(lines))


def values(kind: Type, semantics: Semantics = DEFAULT) -> st.SearchStrategy[Value]:
    """Any value of a type, in the range; half of the numbers are small, so that programs get on
    with them."""
    small = st.integers(-8, 8).map(lambda x: min(max(x, semantics.low), semantics.high))
    numbers = small | st.integers(semantics.low, semantics.high)
    if kind is INT:
        return numbers
    return (st.lists(small, max_size=semantics.longest) | st.lists(numbers, max_size=semantics.longest)).map(tuple)


def inputs_of(program: Program) -> st.SearchStrategy[tuple[Value, ...]]:
    """Inputs that a program takes."""
    return st.tuples(*(values(kind) for kind in program.inputs))
