"""Fit of the weights of balanced corpora to distinct programs; `balance` defines them.

Where all programs are known, the fit is to these. Otherwise programs are drawn a few times, each
time with the weights fitted so far, and the fit is to all that were drawn.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.synthesis.corpus.balance import KEPT, NUMBER, Feature, Proposal
from thesis_cli.synthesis.corpus.behaviours import ENUMERATED, enumerated
from thesis_cli.synthesis.language.dsl import DEEPCODER, FUNCTIONS, Semantics
from thesis_cli.synthesis.language.program_codes import Signature, operation_of

if TYPE_CHECKING:
    from thesis_cli.base.arrays import Floats, Ints
    from thesis_cli.synthesis.language.program_codes import Codes

LARGEST = 2**16
"""Largest weight of an operation or type; the smallest is 1."""

PILOTS, PILOT = 5, 2**11
"""Times that programs are drawn to fit weights to, and how many."""

STEP = np.log(8.0)
"""Most that the logarithm of a weight changes by between two times."""

ROUNDS, POWER, RIDGE = 100, 0.3, 0.15
"""Rounds of a fit, the power of a ratio of shares by which a round corrects a weight, and how
strongly it draws weights together. Shares that cannot be had, such as those of functions of numbers
where few programs have numbers, would otherwise drive weights apart without end."""

_FUNCTION = np.array([FUNCTIONS.index(o.function) for o in DEEPCODER.operations])
_FIRST = np.array([_FUNCTION.tolist().index(f) for f in range(DEEPCODER.functions)])


@lru_cache(maxsize=18)
def proposal(inputs: Signature, semantics: Semantics, length: int, features: Collection[Feature]) -> Proposal:
    """Proposal of balanced programs of a length on given inputs; always the same."""
    known = enumerated(inputs, semantics, length)
    made = Proposal(length, known.kinds)
    if not {"output-type", "function"} & set(features):
        return made
    if length <= ENUMERATED:
        codes = known.short(length)
        return _fitted(made, features, codes, np.ones(len(codes)), np.inf) if len(codes) else made
    rng = np.random.default_rng(1)
    pilots: list[Codes] = []
    used: list[Proposal] = []
    for _ in range(PILOTS):
        pilots.append(known.select(made.draw(PILOT, rng), fresh=False)[0])
        used.append(made)
        codes = np.concatenate(pilots)
        rates = np.mean([earlier.rates(codes) for earlier in used], axis=0)
        made = _fitted(made, features, codes, 1 / rates, STEP)
    return made


def _fitted(before: Proposal, features: Collection[Feature], codes: Codes, weights: Floats, step: float) -> Proposal:
    """A proposal fitted to distinct programs, codes (P, T) with weights (P,); a logarithm changes by `step` at most."""
    ids = operation_of(codes)
    uses = (_FUNCTION[ids][:, :, None] == np.arange(DEEPCODER.functions)).sum(axis=1)
    number = NUMBER[ids[:, -1]]
    weights = weights / weights.sum()
    functions = first = np.log(before.operations[_FIRST])
    ratio = start = np.log(before.outputs[1] / before.outputs[0])
    there = weights @ (uses > 0) > 0
    for _ in range(ROUNDS):
        tilt = np.exp(uses @ functions + number * ratio)
        shares = weights * tilt / (weights @ tilt)
        if "function" in features:
            found = shares @ (uses[:, there] > 0)
            pull = RIDGE * (functions[there] - functions[there].mean())
            changed = functions.copy()
            changed[there] += POWER * (np.log(found.mean() / found) - pull)
            functions = np.clip(changed, first - step, first + step)
        numbers = shares @ number
        if "output-type" in features and 0 < numbers < 1:
            ratio = np.clip(ratio + POWER * np.log(1 / numbers - 1), start - step, start + step)
    outputs = _whole(np.array([0.0, ratio]))
    made = replace(before, outputs=(int(outputs[0]), int(outputs[1])), operations=_whole(functions)[_FUNCTION])
    among = float(weights @ made.products(codes))
    of_all = among if before.length <= ENUMERATED else made.mean
    a = 1 / (1 + (1 / KEPT - 1) * of_all / among)
    return replace(made, a=a, b=(1 - a) / of_all)


def _whole(logarithms: Floats) -> Ints:
    """Whole numbers in about the ratios of some numbers, given by their logarithms."""
    numbers = LARGEST * np.exp(logarithms - logarithms.max())
    return np.asarray(np.maximum(1, np.round(numbers)), dtype=np.int64)
