"""The network for the next line in PyTorch, the programs that it learns from, and its metrics.

`networks.next_line` computes the same scores without PyTorch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
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
from thesis_cli.synthesis.language.dsl import DEEPCODER
from thesis_cli.synthesis.language.packing import NULL
from thesis_cli.synthesis.networks.next_line import COMMUTING, DOUBLE, SINGLE, LayerSizes
from thesis_cli.synthesis.networks.relation_kernels import FEATURES
from thesis_cli.synthesis.networks.weights import Array, Kind
from thesis_cli.synthesis.training.corpora import Rows, TrainingData, held_out, training_corpus
from thesis_cli.synthesis.training.next_line_batches import WIDE, StateBatch, batch_of

if TYPE_CHECKING:
    from thesis_cli.synthesis.training.next_line_batches import StateBatch

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
