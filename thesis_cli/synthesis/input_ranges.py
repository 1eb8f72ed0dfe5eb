"""Ranges of inputs under which a program keeps to the range of its language (Thesis section 5.4.2)."""

from __future__ import annotations

from thesis_cli.synthesis.dsl import DEFAULT, Semantics
from thesis_cli.synthesis.program import Program
from thesis_cli.synthesis.program_codes import encode

Range = tuple[int, int]
"""Least and largest number."""


def input_ranges(program: Program, semantics: Semantics = DEFAULT) -> tuple[Range, ...] | None:
    """A range for each input: numbers within, in lists of at most `semantics.longest`, let no line leave the range.

    A line can still give NULL. The ranges are large enough for that to be useful, not the largest; None says that one
    is empty, so that the analysis knows of no valid input.
    """
    import numpy as np

    from thesis_cli.synthesis.input_range_kernels import propagate
    from thesis_cli.synthesis.operation_kernels import bounds_of

    inputs = len(program.inputs)
    least, most = np.zeros((2, inputs + len(program)), dtype=np.int64)
    codes = encode(program)
    if not propagate(codes, inputs, semantics.longest, bounds_of(semantics), least, most):
        return None
    return tuple(zip(map(int, least[:inputs]), map(int, most[:inputs]), strict=True))
