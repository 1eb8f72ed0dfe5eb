"""The network for the next line in PyTorch, the batches of states that it learns from, and its metrics.

`networks.next_line` computes the same scores without PyTorch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.progress import Tick
from thesis_cli.synthesis import prior
from thesis_cli.synthesis.corpus.corpus import Corpus, join
from thesis_cli.synthesis.corpus.corpus_maker import CorpusPlan, make_corpus
from thesis_cli.synthesis.language.dsl import BY_NAME, DEEPCODER, LONGEST, MOST_INPUTS, WIDEST, Semantics
from thesis_cli.synthesis.language.operation_kernels import GIVES_INT
from thesis_cli.synthesis.language.packing import NULL, WIDTH, bounds_of, row_size
from thesis_cli.synthesis.language.program_codes import arguments_of, operation_of
from thesis_cli.synthesis.networks.next_line import (
    COMMUTING,
    DOUBLE,
    FLAGS,
    PRUNING,
    SINGLE,
    LayerSizes,
    globals_of,
    places_in,
    places_of,
)
from thesis_cli.synthesis.networks.relation_kernels import FEATURES, LOGARITHMS, relate
from thesis_cli.synthesis.networks.state_kernels import draw_states, mark_used
from thesis_cli.synthesis.networks.weights import Array, Kind
from thesis_cli.synthesis.search.execution_kernels import INTS, LISTS, Programs, extend
from thesis_cli.synthesis.search.moves_kernels import MoveRoom, Unfinished, list_moves
from thesis_cli.synthesis.training.corpora import Rows, TrainingData, held_out, training_corpus

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


COUNTS = {2: 1_000, 3: 12_000, 4: 20_000, 5: 32_000, 6: 30_000, 7: 26_000, 8: 32_000}
"""Programs to learn from, by length."""

WIDE_COUNTS = {3: 3_000, 5: 6_000, 7: 5_000}
"""Those of the widest range, with lists of up to 31 numbers."""

BATCH = 64
"""Programs of a step; each gives 4 states."""

EVALUATED = 512
"""Programs that are evaluated at a time."""

EXAMPLES = 8
"""Examples of each program; a batch takes some of them."""


def corpus(share: float = 1.0, jobs: int = 1, progress: Tick = lambda done: None) -> Corpus:
    """The programs that the shipped network learns from; the same ones every time.

    Parameters
    ----------
    share : share of the programs to make.
    jobs : threads; the corpus does not depend on it.
    progress : called with the number of programs just made.
    """
    parts = [
        training_corpus(length, max(1, int(share * count)), EXAMPLES, jobs, progress)
        for length, count in COUNTS.items()
    ]
    for length, count in WIDE_COUNTS.items():
        plan = CorpusPlan(length, max(1, int(share * count)), examples=EXAMPLES, semantics=WIDE)
        parts.append(make_corpus(plan, np.random.default_rng([2, length]), held_out(), jobs, progress))
    return replace(join([_widened(part) for part in parts]), semantics=WIDE)


def _widened(part: Corpus) -> Corpus:
    """A corpus with room for the longest lists."""
    numbers = np.asarray(part.numbers)
    room = WIDE.longest - numbers.shape[3]
    return replace(part, numbers=np.pad(numbers, ((0, 0), (0, 0), (0, 0), (0, room)), constant_values=NULL))


class NextLineLearner:
    """A network that learns which lines can be next.

    Parameters
    ----------
    data : programs to learn from.
    seed : seed of the first weights.
    sizes : sizes of the layers.
    """

    kind: Kind = "next-line"

    def __init__(self, data: TrainingData, seed: int, sizes: LayerSizes | None = None) -> None:
        layers = sizes or LayerSizes()
        self.sizes: Mapping[str, int] = asdict(layers)
        self._data = data
        self.module = NextLineModel(layers, torch.Generator().manual_seed(seed))
        rows = data.train[:: max(1, len(data.train) // 2_000)]
        features = self.batch(rows, None).features.flatten(0, 1)
        self.module.shift.copy_(features.mean(0))
        self.module.scale.copy_(1 / (features.std(0) + 0.05))

    def batch(self, rows: Rows, rng: np.random.Generator | None) -> StateBatch:
        """States of programs: with examples that `rng` draws, sometimes fewer of them."""
        part = self._data.draw(rows, rng)
        if rng is not None and rng.random() < 0.2 and part.numbers.shape[1] > 2:
            part = replace(part, numbers=part.numbers[:, : rng.integers(2, part.numbers.shape[1])])
        source = np.random.default_rng(len(rows)) if rng is None else rng
        return batch_of(part, source)

    def loss(self, batch: StateBatch) -> Tensor:
        """Minus the logarithm of the probability of right lines, in nats; a mean over states."""
        return losses(self.module, batch)[0].mean()

    def arrays(self) -> dict[str, Array]:
        """The weights, as `networks.next_line` takes them."""
        return arrays_of(self.module)

    def metrics(self, rows: Rows) -> dict[str, Any]:
        """`report` of the states of these programs."""
        batches = [self.batch(rows[at : at + EVALUATED], None) for at in range(0, len(rows), EVALUATED)]
        return report(self.module, batches)


TOP = (1, 5, 20, 100)


def report(model: NextLineModel, batches: Sequence[StateBatch]) -> dict[str, Any]:
    """Shares of states of which a right line is among the best 1, 5, 20 and 100.

    Returns
    -------
    By lines of the program, for the network (`top`) and for the prior, which knows operations alone
    (`prior`); and by the number of lines that are left, for the network (`left`).
    """
    with torch.no_grad():
        ranks = np.concatenate([losses(model, batch)[1].numpy() for batch in batches]).astype(np.float64)
    by_prior = np.concatenate([prior_ranks(batch) for batch in batches])
    lengths = np.concatenate([batch.lengths for batch in batches])
    left = lengths - np.concatenate([batch.standing for batch in batches])
    return {"top": shares(ranks, lengths), "prior": shares(by_prior, lengths), "left": shares(ranks, left)}


def shares(ranks: Floats, groups: Ints) -> Mapping[str, Mapping[str, float]]:
    """Share of ranks below each of `TOP`, by group."""
    return {
        str(group): {str(k): round(float(np.mean(ranks[groups == group] < k)), 3) for k in TOP}
        for group in np.unique(groups).tolist()
    }


def prior_ranks(batch: StateBatch) -> Floats:
    """Number of legal lines above the best right one of each state, if operations have their prior
    probabilities, and all arguments of an operation are equally probable; of lines that are equally
    probable, half are above."""
    variables = batch.there.shape[1]
    operations = np.concatenate([np.repeat(SINGLE, variables), np.repeat(DOUBLE, variables**2)])
    legal = batch.legal.numpy()
    alike = legal @ (operations[:, None] == np.arange(len(DEEPCODER.operations))).astype(np.float64)
    scores = np.array(prior.load().of_operations)[operations] / np.maximum(alike, 1)[:, operations]
    best = np.where(batch.right.numpy(), scores, 0).max(axis=1, keepdims=True)
    above, equal = (legal & (scores > best)).sum(axis=1), (legal & (scores == best)).sum(axis=1)
    return np.asarray(above + (equal - 1) / 2)


class NextLineModel(nn.Module):
    """Scores of all lines that a program can get next."""

    def __init__(self, sizes: LayerSizes, generator: torch.Generator) -> None:
        super().__init__()
        self.sizes = sizes
        for name, (inputs, outputs) in sizes.layers.items():
            layer = nn.Linear(inputs, outputs)
            bound = (3 / inputs) ** 0.5
            with torch.no_grad():
                layer.weight.copy_((2 * torch.rand(outputs, inputs, generator=generator) - 1) * bound)
                layer.bias.zero_()
                if name in ("operations", "single", "first", "second"):
                    layer.weight *= 0.3
            self.add_module(name, layer)
        self.register_buffer("shift", torch.zeros(FEATURES))
        self.register_buffer("scale", torch.ones(FEATURES))

    def encode(self, features: Tensor, weights: Tensor) -> Tensor:
        """Encodings of variables, shape (K, .), from features of examples, shape (K, M, F), and the
        weights of examples, shape (K, M)."""
        hidden = relu(self.pair((features - self.shift) * self.scale))
        hidden = relu(self.pair_2(hidden))
        mean = (hidden * weights[:, :, None]).sum(1)
        most = hidden.masked_fill((weights == 0)[:, :, None], 0).amax(1)
        return relu(self.variable(torch.cat([mean, most], 1)))

    def state_of(self, parts: Tensor, there: Tensor, flags: Tensor, numbers: Tensor) -> Tensor:
        """Encodings of programs, shape (S, .), from the parts of their variables, shape (S, V,
        .)."""
        seen = there[:, :, None].float()
        parts = relu(parts + self.part_flags(flags)) * seen
        pooled = torch.cat([parts.sum(1) / seen.sum(1), parts.amax(1), numbers], 1)
        return relu(self.state_2(relu(self.state(pooled))))

    def forward(self, batch: StateBatch) -> Tensor:
        """Scores of all lines, shape (S, places of lines); -inf for those that are not legal."""
        encodings = self.encode(batch.features, batch.weights)
        state = self.state_of(self.part(encodings)[batch.variables], batch.there, batch.flags, batch.globals)
        rows = batch.there.reshape(-1).nonzero()[:, 0]  # of all variables of all states
        variables = batch.there.shape[1]
        own = self.own(encodings)[batch.variables.reshape(-1)[rows]] + self.own_state(state)[rows // variables]
        own = own + self.own_flags(batch.flags.reshape(-1, batch.flags.shape[2])[rows])
        scores = self.lines(state, relu(self.own_2(relu(own))), rows, variables)
        return scores.masked_fill(~batch.legal, -torch.inf)

    def lines(self, state: Tensor, own: Tensor, rows: Tensor, variables: int) -> Tensor:
        """Scores of all lines, from encodings of programs, shape (S, .), and of their variables, of
        which `rows` are the places among all S V, shape (R, .)."""
        operations = self.operations(state).float()
        shape = len(operations), variables

        def spread(layer: nn.Linear) -> Tensor:
            found = layer(own).float()
            return found.new_zeros(shape[0] * variables, found.shape[1]).index_copy(0, rows, found)

        single = spread(self.single).reshape(*shape, -1).transpose(1, 2) + operations[:, list(SINGLE), None]
        factors = (*shape, len(DOUBLE), self.sizes.rank + 1)
        first, second = (spread(layer).reshape(factors).transpose(1, 2) for layer in (self.first, self.second))
        double = first[..., 1:] @ second[..., 1:].transpose(2, 3)
        double = double + first[..., :1] + second[..., :1].transpose(2, 3)
        swap = torch.zeros(len(DOUBLE), 1, 1)
        swap[list(COMMUTING)] = 0.5
        double = double * (1 - swap) + double.transpose(2, 3) * swap
        double = double + operations[:, list(DOUBLE), None, None]
        return torch.cat([single.reshape(shape[0], -1), double.reshape(shape[0], -1)], 1)


def losses(model: NextLineModel, batch: StateBatch) -> tuple[Tensor, Tensor]:
    """Minus the logarithm of the probability of the lines that are right, and the number of legal lines
    above the best of them, of each state."""
    scores = model(batch)
    right = scores.masked_fill(~batch.right, -torch.inf)
    each = torch.logsumexp(scores, 1) - torch.logsumexp(right, 1)
    return each, (scores > right.amax(1, keepdim=True)).sum(1)


def arrays_of(model: NextLineModel) -> dict[str, np.ndarray]:
    """Its weights as `networks.next_line` takes them; the scale of the features goes into the first
    layer."""
    found = {name: value.detach().numpy().copy() for name, value in model.named_parameters()}
    weight, shift, scale = found["pair.weight"], model.shift.numpy(), model.scale.numpy()
    found["pair.bias"] -= weight @ (shift * scale)
    found["pair.weight"] = weight * scale
    return found
