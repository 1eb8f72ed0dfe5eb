"""The network that reads the values of a partial program and says what its next line may be.

It is the policy of searches that build programs line by line (`execution`, `moves`). Among the scores
of all lines of a program, those of operations of one argument come first, shape (operations, V), then
those of operations of two, shape (operations, V, V). A pair of lists that can be swapped stands at its
first and second variable in ascending order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Ints
from thesis_cli.synthesis.language.dsl import DEEPCODER
from thesis_cli.synthesis.language.packing import Lanes
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.networks import weights as files
from thesis_cli.synthesis.search.depth_first import ALL, Pruning
from thesis_cli.synthesis.search.execution import moves as moves_of
from thesis_cli.synthesis.search.execution import start

if TYPE_CHECKING:
    from thesis_cli.synthesis.networks.next_line_kernels import EncodingTable, States
    from thesis_cli.synthesis.search.execution import Moves, Pool

Scores = npt.NDArray[np.float32]

PRUNING = ALL & ~Pruning.PERMUTED
"""The moves among which the network chooses. It has learned to take lines that can stand in any
order in the order in which they are easiest to see, so no order may be left out; a search leaves out
programs with the same lines in another order by their values."""


FLAGS = 2
"""Numbers on a variable of a program: whether a line takes it, and whether it is an input."""

GLOBALS = 9
"""Numbers on a program, see `globals_of`."""


def globals_of(room: Ints, unused: Ints, sizes: Ints) -> Scores:
    """Numbers on programs, shape (B, GLOBALS).

    Parameters
    ----------
    room : lines for which there is room, shape (B,).
    unused : results that no line takes.
    sizes : variables.
    """
    found = np.zeros((len(room), GLOBALS), dtype=np.float32)
    for at in range(4):
        found[:, at] = room == at + 1
    found[:, 4] = room / 4
    found[:, 5] = unused / 2
    found[:, 6] = (room - unused) / 4
    found[:, 7] = sizes / 4
    found[:, 8] = unused >= room
    return found


BLOCK = 512
"""Programs, or values, that go through the network at a time."""

ROOM = 2**15
"""Values whose encodings are kept, some 40 MB."""


@dataclass(frozen=True)
class LayerSizes:
    """Units of the layers.

    Attributes
    ----------
    pair : units of the two layers that see a value and the output of an example.
    variable : units of the encoding of a variable.
    state : units of the encoding of a program.
    own : units of a variable in its program.
    rank : rank of the matrix of scores of pairs of variables, for each operation.
    """

    pair: int = 192
    variable: int = 192
    state: int = 160
    own: int = 160
    rank: int = 12

    @property
    def layers(self) -> dict[str, tuple[int, int]]:
        """Inputs and outputs of each layer, by name."""
        from thesis_cli.synthesis.networks.relation_kernels import FEATURES

        return {
            "pair": (FEATURES, self.pair),
            "pair_2": (self.pair, self.pair),
            "variable": (2 * self.pair, self.variable),
            "part": (self.variable, self.state),
            "part_flags": (FLAGS, self.state),
            "state": (2 * self.state + GLOBALS, self.state),
            "state_2": (self.state, self.state),
            "own": (self.variable, self.own),
            "own_flags": (FLAGS, self.own),
            "own_state": (self.state, self.own),
            "own_2": (self.own, self.own),
            "operations": (self.state, len(DEEPCODER.operations)),
            "single": (self.own, len(SINGLE)),
            "first": (self.own, len(DOUBLE) * (self.rank + 1)),
            "second": (self.own, len(DOUBLE) * (self.rank + 1)),
        }

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the arrays."""
        found: dict[str, tuple[int, ...]] = {}
        for name, (inputs, outputs) in self.layers.items():
            found |= {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}
        return found


@dataclass(eq=False)
class _Known:
    """Encodings of values that were seen already, and the first layers that read them."""

    parts: Scores
    own: Scores
    table: EncodingTable
    count: int = 0

    @classmethod
    def empty(cls, room: int, sizes: LayerSizes) -> _Known:
        from thesis_cli.synthesis.networks.next_line_kernels import EncodingTable

        slots = 1 << (2 * room - 1).bit_length()
        table = EncodingTable(np.zeros(slots, dtype=np.uint64), np.zeros(slots, dtype=np.int64))
        return cls(np.zeros((room, sizes.state), np.float32), np.zeros((room, sizes.own), np.float32), table)


@dataclass(frozen=True, eq=False)
class NextLine:
    """A network for the next line.

    Attributes
    ----------
    sizes : sizes of the layers.
    arrays : weights, shape (outputs, inputs), and biases of each layer: `LAYER.weight`,
        `LAYER.bias`.
    """

    sizes: LayerSizes
    arrays: Mapping[str, Scores]
    _known: list[_Known] = field(default_factory=list)

    @classmethod
    def load(cls, name_or_path: str | Path = "next-line") -> NextLine:
        """A network from its weights: a name of weights that ship with the project, or a file.
        Raises InputError as `weights.load` does."""
        found = files.load(name_or_path, ["next-line"])
        sizes = LayerSizes(*(found.size(each.name) for each in fields(LayerSizes)))
        found.check_arrays(sizes.shapes)
        return cls(sizes, found.arrays)

    def scores(self, pool: Pool, moves: Moves) -> Scores:
        """Logarithms of the probabilities of next lines.

        Parameters
        ----------
        pool : the programs.
        moves : next lines of them, as `moves(pool, pruning=PRUNING)` lists them.

        Returns
        -------
        Shape (N,); over the moves of each program, the probabilities add up to 1.
        """
        out = np.zeros(len(moves.parents), dtype=np.float32)
        new = np.flatnonzero(np.diff(moves.parents, prepend=-1))
        programs = moves.parents[new]
        bounds = np.append(new, len(out))
        about = self._about(pool)
        for at in range(0, len(programs), BLOCK):
            last = min(at + BLOCK, len(programs))
            rows = slice(bounds[at], bounds[last])
            states = about._replace(programs=programs[at:last])
            self._score(pool, states, moves.parents[rows], moves.lines[rows], out[rows])
        return out

    @cached_property
    def _layers(self) -> dict[str, tuple[Scores, Scores]]:
        return {
            name: (np.ascontiguousarray(self.arrays[f"{name}.weight"].T), self.arrays[f"{name}.bias"])
            for name in self.sizes.layers
        }

    def _apply(self, name: str, x: Scores) -> Scores:
        weight, bias = self._layers[name]
        found = x @ weight
        found += bias
        return found

    def _relu(self, name: str, x: Scores) -> Scores:
        found = self._apply(name, x)
        return np.maximum(found, 0, out=found)

    def _about(self, pool: Pool) -> States:
        """Arrays of a pool that the compiled parts read."""
        from thesis_cli.synthesis.networks.next_line_kernels import States

        about = zip(pool._targets, pool._target_types.tolist(), pool.tasks, strict=True)
        digests = np.array(
            [_digest(output, 2 * len(task.examples) + kind) for output, kind, task in about], dtype=np.uint64
        )
        inputs = np.array([len(task.inputs) for task in pool.tasks])[pool.task]
        words = np.ascontiguousarray(pool.values).reshape(-1, pool.values.shape[2]).view(np.uint64)
        return States(np.arange(0), words, pool.types, pool.sizes, inputs, pool.lines, pool.task, digests)

    def _score(self, pool: Pool, states: States, parents: Ints, lines: Ints, out: Scores) -> None:
        """Write the scores of the lines of some programs."""
        from thesis_cli.synthesis.networks.next_line_kernels import Heads, gather_own, score_moves

        state, places, used = self._state(pool, states)
        sizes = states.sizes[states.programs]
        firsts = np.cumsum(sizes) - sizes
        own = np.empty((int(sizes.sum()), self.sizes.own), dtype=np.float32)
        flags, _ = self._layers["own_flags"]
        gather_own(states, places, used, self._known[0].own, flags, self._apply("own_state", state), firsts, own)
        own = self._relu("own_2", own)
        heads = Heads(*(self._apply(name, state if name == "operations" else own) for name in Heads._fields))
        of = np.searchsorted(states.programs, parents)
        score_moves(heads, firsts, of, np.ascontiguousarray(lines), COLUMN, COMMUTES, self.sizes.rank, out)

    def _state(self, pool: Pool, states: States) -> tuple[Scores, Ints, npt.NDArray[np.bool_]]:
        """Encodings of programs; places of those of their variables; which of these a line takes."""
        from thesis_cli.synthesis.networks.next_line_kernels import pool_parts

        places, used, unused = self._places(pool, states)
        sizes = states.sizes[states.programs]
        pooled = np.empty((len(sizes), 2 * self.sizes.state), dtype=np.float32)
        flags, _ = self._layers["part_flags"]
        pool_parts(states, places, used, self._known[0].parts, flags, pooled)
        room = pool.lines.shape[1] - sizes + states.inputs[states.programs]
        numbers = globals_of(room, unused, sizes)
        return self._relu("state_2", self._relu("state", np.concatenate([pooled, numbers], axis=1))), places, used

    def _places(self, pool: Pool, states: States) -> tuple[Ints, npt.NDArray[np.bool_], Ints]:
        """Places of the encodings of all variables of programs, which of these a line takes, and
        how many results none does."""
        from thesis_cli.synthesis.networks.next_line_kernels import look_up

        shape = len(states.programs), pool.types.shape[1]
        places, missing = np.zeros(shape, dtype=np.int64), np.zeros(shape[0] * shape[1], dtype=np.int64)
        used, unused = np.zeros(shape, dtype=np.bool_), np.zeros(shape[0], dtype=np.int64)
        if not self._known or self._known[0].count + places.size > len(self._known[0].parts):
            self._known[:] = [_Known.empty(max(ROOM, 4 * places.size), self.sizes)]
        known = self._known[0]
        count = look_up(states, known.table, known.count, places, missing, used, unused)
        self._encode(pool, missing[:count], known)
        return places, used, unused

    def _encode(self, pool: Pool, rows: Ints, known: _Known) -> None:
        """Encode values that are new."""
        from thesis_cli.synthesis.networks.relation_kernels import FEATURES, LOGARITHMS, relate

        values = np.ascontiguousarray(pool.values).reshape(-1, pool.values.shape[2])
        lists, target_lists = (pool.types == 2).ravel(), pool._target_types == 2
        programs = rows // pool.types.shape[1]
        counts = np.array([len(task.examples) for task in pool.tasks])[pool.task[programs]]
        for at in range(0, len(rows), BLOCK):
            part = slice(at, at + BLOCK)
            mine = rows[part]
            features = np.empty((len(mine), pool.lengths.shape[2], FEATURES), dtype=np.float32)
            relate(values, lists, mine, pool._targets, pool.task[programs[part]], target_lists, LOGARITHMS, features)
            hidden = self._relu("pair_2", self._relu("pair", features.reshape(-1, FEATURES)))
            hidden = hidden.reshape(len(mine), features.shape[1], -1)
            weights = (np.arange(features.shape[1]) < counts[part, None]) / counts[part, None].astype(np.float32)
            mean = np.einsum("kmh,km->kh", hidden, weights.astype(np.float32))
            encodings = self._relu("variable", np.concatenate([mean, hidden.max(axis=1)], axis=1))
            to = slice(known.count, known.count + len(mine))
            known.parts[to] = self._apply("part", encodings) + self._layers["part_flags"][1]
            known.own[to] = self._apply("own", encodings) + self._layers["own_flags"][1]
            known.count += len(mine)


@cache
def prepare() -> None:
    """Compile the network, or load it."""
    sizes = LayerSizes(1, 1, 1, 1, 1)
    network = NextLine(sizes, {name: np.zeros(shape, np.float32) for name, shape in sizes.shapes.items()})
    pool = start([Task("any", (Example(((0,),), 0),))], 1)
    network.scores(pool, moves_of(pool))


def _digest(output: Lanes, number: int) -> int:
    found = hashlib.blake2b(output.tobytes() + number.to_bytes(8, "little"), digest_size=8)
    return int.from_bytes(found.digest(), "little")


SINGLE = tuple(o.id for o in DEEPCODER.operations if len(o.inputs) == 1)
"""Ids of operations of one argument."""

DOUBLE = tuple(o.id for o in DEEPCODER.operations if len(o.inputs) == 2)
"""Ids of operations of two arguments."""

COMMUTING = tuple(DOUBLE.index(o.id) for o in DEEPCODER.operations if o.commutes)
"""Places in `DOUBLE` of those whose arguments can be swapped."""

COLUMN = np.zeros(len(DEEPCODER.operations), dtype=np.int64)
COLUMN[list(SINGLE)] = range(len(SINGLE))
COLUMN[list(DOUBLE)] = range(len(DOUBLE))
"""Place of each operation in `SINGLE` or `DOUBLE`."""

COMMUTES = np.array([o.commutes for o in DEEPCODER.operations])
"""Whether the arguments of an operation can be swapped."""

_IS_DOUBLE = np.isin(range(len(DEEPCODER.operations)), DOUBLE)


def places_in(variables: int) -> int:
    """Number of places for V variables."""
    return len(SINGLE) * variables + len(DOUBLE) * variables**2


def places_of(lines: Ints, variables: int) -> Ints:
    """Places of lines, shape (N,), from operations and arguments, shape (N, 3), for V variables."""
    id, x, y = lines.T
    swap = COMMUTES[id] & (y < x)
    x, y = np.where(swap, y, x), np.where(swap, x, y)
    double = (len(SINGLE) + COLUMN[id] * variables + x) * variables + y
    return np.asarray(np.where(_IS_DOUBLE[id], double, COLUMN[id] * variables + x))
