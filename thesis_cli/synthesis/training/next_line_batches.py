"""Batches of states for the network for the next line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from thesis_cli.base.arrays import Ints
from thesis_cli.synthesis.language.dsl import BY_NAME, DEEPCODER, LONGEST, MOST_INPUTS, WIDEST, Semantics
from thesis_cli.synthesis.language.operation_kernels import GIVES_INT, bounds_of
from thesis_cli.synthesis.language.packing import NULL, WIDTH, row_size
from thesis_cli.synthesis.language.program_codes import arguments_of, operation_of
from thesis_cli.synthesis.networks.next_line import FLAGS, PRUNING, globals_of, places_in, places_of
from thesis_cli.synthesis.networks.relation_kernels import FEATURES, LOGARITHMS, relate
from thesis_cli.synthesis.networks.state_kernels import draw_states, mark_used
from thesis_cli.synthesis.search.execution_kernels import INTS, LISTS, Programs, extend
from thesis_cli.synthesis.search.moves_kernels import MoveRoom, Unfinished, list_moves

SORT = BY_NAME["SORT"].id

SPARE = 3
"""Lines that a state has room for beyond those of its program, at most."""

WIDE = Semantics(low=-WIDEST, high=WIDEST, longest=LONGEST)
"""The semantics with the widest range and the longest lists."""

if TYPE_CHECKING:
    from thesis_cli.synthesis.corpus.corpus import Corpus


@dataclass(frozen=True)
class StateBatch:
    """States, and the values of the variables of their programs.

    Attributes
    ----------
    lengths, standing : lines of the program, and of the state, shape (S,).
    features : features of the variables of all programs and the outputs, shape (K, M, FEATURES).
    weights : weights of examples, shape (K, M).
    variables : places in `features` of the variables of each state, shape (S, V).
    there : whether a state has a variable, shape (S, V).
    flags : flags of the variables, shape (S, V, FLAGS).
    globals : numbers on the states, shape (S, GLOBALS).
    legal, right : whether a line is legal, and whether it is right, shape (S, .): `places_of`.
    """

    lengths: Ints
    standing: Ints
    features: Tensor
    weights: Tensor
    variables: Tensor
    there: Tensor
    flags: Tensor
    globals: Tensor
    legal: Tensor
    right: Tensor


def lines_of(corpus: Corpus) -> Ints:
    """Operation and arguments of each line, shape (P, T, 3), -1 after the last."""
    codes = corpus.codes[:, : corpus.lengths.max(initial=0)].astype(np.int64)
    found = np.stack([operation_of(codes), *arguments_of(codes)], axis=2)
    found[codes < 0] = -1
    return found


def replay(corpus: Corpus, lines: Ints) -> tuple[Programs, Ints]:
    """Values of all variables of programs, and numbers of inputs."""
    count, examples = len(corpus), corpus.numbers.shape[1]
    length = lines.shape[1]
    inputs = np.count_nonzero(corpus.types[:, :MOST_INPUTS], axis=1).astype(np.int64)
    variables = MOST_INPUTS + length
    values = np.full((count, variables, row_size(examples)), NULL, dtype=np.int16)
    values[:, :, WIDTH * examples :] = 0
    longest = corpus.numbers.shape[3]
    given = np.asarray(corpus.numbers)
    blocks = values[:, :, : WIDTH * examples].reshape(count, variables, examples, WIDTH)
    blocks[:, :MOST_INPUTS, :, :longest] = given[:, :, :MOST_INPUTS].transpose(0, 2, 1, 3)
    values[:, :, : WIDTH * examples] = blocks.reshape(count, variables, -1)
    lengths = np.count_nonzero(given != NULL, axis=3)
    values[:, :MOST_INPUTS, WIDTH * examples : (WIDTH + 1) * examples] = lengths[:, :, :MOST_INPUTS].transpose(0, 2, 1)
    targets = np.full((count, row_size(examples)), NULL, dtype=np.int16)
    block = targets[:, : WIDTH * examples].reshape(count, examples, WIDTH)
    block[:, :, :longest] = given[:, :, MOST_INPUTS]
    targets[:, : WIDTH * examples] = block.reshape(count, -1)
    targets[:, WIDTH * examples :] = 0
    targets[:, WIDTH * examples : (WIDTH + 1) * examples] = lengths[:, :, MOST_INPUTS]
    types = np.zeros((count, variables), dtype=np.int8)
    types[:, :MOST_INPUTS] = corpus.types[:, :MOST_INPUTS]
    found = Programs(
        values.reshape(count * variables, -1), types, inputs.copy(), np.ones(count, dtype=np.bool_),
        np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_), np.arange(count), targets,
        corpus.types[:, MOST_INPUTS].astype(np.int8),
    )  # fmt: skip
    lists = (corpus.types[:, :MOST_INPUTS] == LISTS).argmax(axis=1)
    idle = np.stack([np.full(count, SORT), lists, lists], axis=1)
    for t in range(length):
        extend(found, np.where(lines[:, t, :1] >= 0, lines[:, t], idle), bounds_of(WIDE))
    sizes = inputs + np.count_nonzero(lines[:, :, 0] >= 0, axis=1)
    found.types[np.arange(variables) >= sizes[:, None]] = 0
    return found._replace(sizes=sizes), inputs


def batch_of(part: Corpus, rng: np.random.Generator, states: int = 4, slack: bool = True) -> StateBatch:
    """A batch: some states of each of some programs.

    Parameters
    ----------
    part : the programs.
    rng : draws which lines stand.
    states : states of each program.
    slack : whether some states have room for more lines than their program has.
    """
    lines = lines_of(part)
    values, inputs = replay(part, lines)
    (count, variables), examples = values.types.shape, part.numbers.shape[1]
    rows = np.flatnonzero(values.types.ravel() > 0)
    features = np.zeros((len(rows), examples, FEATURES), dtype=np.float32)
    place = np.zeros(count * variables, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    outputs = values.target_types == LISTS
    lists = (values.types == LISTS).ravel()
    relate(values.rows, lists, rows, values.targets, rows // variables, outputs, LOGARITHMS, features)
    chosen = np.repeat(np.arange(count), states)
    total, length = len(chosen), lines.shape[1]
    lengths = part.lengths[chosen]
    standing = rng.integers(0, lengths)
    room = lengths + slack * rng.integers(0, SPARE + 1, total) * (rng.random(total) < 0.3)
    places = np.zeros((total, variables), dtype=np.int64)
    partial = np.zeros((total, length + SPARE, 3), dtype=np.int64)
    right = np.zeros((total * length, 4), dtype=np.int64)
    found = draw_states(lines, inputs, chosen, standing, rng.random((total, length)), places, partial, right)
    right = right[:found]
    legal = _legal(values, inputs, chosen, places, partial, room)
    there = np.zeros((total, variables), dtype=np.bool_)
    np.put_along_axis(there, np.maximum(places, 0), True, axis=1)  # the first input is always there
    flags = np.zeros((total, variables, FLAGS), dtype=np.float32)
    mark_used(partial, places, flags)
    flags[:, :, 1] = np.arange(variables) < inputs[chosen][:, None]
    masks = np.zeros((2, total, places_in(variables)), dtype=np.bool_)
    masks[0, legal[:, 0], places_of(legal[:, 1:], variables)] = True
    masks[1, right[:, 0], places_of(right[:, 1:], variables)] = True
    unused = (there & (flags.sum(axis=2) == 0)).sum(axis=1)
    numbers = globals_of(room - standing, unused, inputs[chosen] + standing)
    weights = np.full(features.shape[:2], 1 / examples, dtype=np.float32)
    variables_of = place.reshape(count, variables)[chosen]
    arrays = features, weights, variables_of, there, flags, numbers, masks[0], masks[1] & masks[0]
    return StateBatch(lengths, standing, *map(torch.from_numpy, arrays))


def _legal(values: Programs, inputs: Ints, chosen: Ints, places: Ints, partial: Ints, room: Ints) -> Ints:
    """Legal lines of states, as variables of their programs; a row is the state, the operation and
    the arguments."""
    found = []
    order = np.arange(len(DEEPCODER.operations))
    ends = np.stack([~GIVES_INT, GIVES_INT, np.ones_like(GIVES_INT)])
    variables = places.shape[1] + SPARE
    for size in np.unique(room).tolist():
        states = np.flatnonzero(room == size)
        mine, programs = np.maximum(places[states], 0), chosen[states]
        numbers = np.take_along_axis(values.types[programs], mine, axis=1) == INTS
        unfinished = Unfinished(
            np.pad(numbers, ((0, 0), (0, SPARE))),
            inputs[programs],
            (values.target_types[programs] == INTS).astype(np.int64),
            np.ascontiguousarray(partial[states, :size]),
            np.ones(len(states), dtype=np.bool_),
        )
        space = MoveRoom(
            np.zeros(variables, dtype=np.int64),
            np.zeros((size, 3), dtype=np.int64),
            np.zeros((4, variables + 1), dtype=np.int64),
            np.zeros((len(order) * variables**2, 3), dtype=np.int64),
        )
        rows = np.zeros((places_in(places.shape[1]) * len(states), 4), dtype=np.int64)
        rows = rows[: list_moves(unfinished, order, ends, int(PRUNING), space, rows)]
        at = rows[:, 0].copy()
        rows[:, 0] = states[at]
        rows[:, 2], rows[:, 3] = mine[at, rows[:, 2]], mine[at, rows[:, 3]]
        found.append(rows)
    return np.concatenate(found)
