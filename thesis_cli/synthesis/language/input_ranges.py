"""Ranges of inputs under which a program keeps to the range of its language (Thesis section
5.4.2)."""

from __future__ import annotations

from thesis_cli.synthesis.language.dsl import DEFAULT, Semantics
from thesis_cli.synthesis.language.program import Program
from thesis_cli.synthesis.language.program_codes import encode

Range = tuple[int, int]
"""Least and largest number."""


def input_ranges(program: Program, semantics: Semantics = DEFAULT) -> tuple[Range, ...] | None:
    """A range for each input, within which no line leaves the range; lists may have up to
    `semantics.longest` numbers.

    A line can still give NULL. The ranges are useful, but not the largest. None means that one is
    empty: the analysis knows of no valid input.
    """
    import numpy as np

    from thesis_cli.synthesis.language.input_range_kernels import propagate
    from thesis_cli.synthesis.language.operation_kernels import bounds_of

    inputs = len(program.inputs)
    least, most = np.zeros((2, inputs + len(program)), dtype=np.int64)
    codes = encode(program)
    if not propagate(codes, inputs, semantics.longest, bounds_of(semantics), least, most):
        return None
    return tuple(zip(map(int, least[:inputs]), map(int, most[:inputs]), strict=True))
