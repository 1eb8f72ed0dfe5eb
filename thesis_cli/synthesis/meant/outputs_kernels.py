"""Compiled outputs of many programs on many inputs, as hashes; `program.run` is the plain reference."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Ints, Words
from thesis_cli.base.compiled import kernel
from thesis_cli.synthesis.corpus.sampling_kernels import mix
from thesis_cli.synthesis.language.operation_kernels import apply
from thesis_cli.synthesis.language.packing import Bounds, Lanes

LANE_WORDS = 8
"""Words of 64 bits that hold the lanes of a value on one example."""


@kernel(_nrt=False)
def outputs(programs: Ints, inputs: int, pool: Lanes, words: Words, bounds: Bounds, codes: Words) -> None:
    """Run programs of one length on each of P inputs.

    Parameters
    ----------
    programs : operation and arguments of each line, shape (N, T, 3).
    inputs : number of their inputs.
    pool : values of the inputs, with room for T lines (`packing`), shape (inputs + T, .); written.
    words : the same memory, in words.
    bounds : range of numbers, and rounding.
    codes : hash of each output, 0 where there is none, shape (N, P); written.
    """
    for p in range(programs.shape[0]):
        for m in range(codes.shape[1]):
            out, ok = inputs, True
            for d in range(programs.shape[1]):
                if ok:
                    out = inputs + d
                    id, x, y = programs[p, d, 0], programs[p, d, 1], programs[p, d, 2]
                    ok = apply(id, pool, x, y, out, (m, m + 1), bounds)
            code = np.uint64(0)
            if ok:
                code = np.uint64(1)
                for i in range(LANE_WORDS * m, LANE_WORDS * (m + 1)):
                    code = mix(code ^ words[out, i])
                code |= np.uint64(1)
            codes[p, m] = code
