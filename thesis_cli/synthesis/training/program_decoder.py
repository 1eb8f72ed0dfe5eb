"""The network that writes whole programs, in PyTorch, as it learns; `networks.program_decoder`
describes it (Thesis section 5.5.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.corpus.corpus import Corpus, join
from thesis_cli.synthesis.networks.program_decoder import tokens, tokens_of, typed
from thesis_cli.synthesis.networks.weights import Kind, Weights
from thesis_cli.synthesis.training import metrics
from thesis_cli.synthesis.training.corpora import Rows, TrainingData, training_corpus
from thesis_cli.synthesis.training.feed_forward import FeedForwardModule, shares_of, tensors
from thesis_cli.synthesis.training.trainer import EVALUATED

Batch = tuple[torch.Tensor, ...]

LEAST = 0.25
"""Programs of a length that are seen, as a share of those of the most frequent length, at least."""

MOST = 64
"""Times that a program is repeated, at most, to that end."""


class ProgramModule(nn.Module):
    """An encoder and a decoder.

    Parameters
    ----------
    encoder : gives the first state, with K units, and logits of the attributes.
    units, token, lines : K, D, T.
    generator : generator of the first weights.
    """

    def __init__(
        self, encoder: FeedForwardModule, units: int, token: int, lines: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        count = tokens(lines)
        self.encoder = encoder
        self.token = nn.Parameter(0.5 * torch.randn(count + 1, token, generator=generator))
        self.left = nn.Parameter(0.5 * torch.randn(lines, token, generator=generator))
        self.gru = nn.GRUCell(token, units)
        self.line = nn.Linear(units, count)
        with torch.no_grad():
            for weight in (self.gru.weight_ih, self.gru.weight_hh, self.line.weight):
                nn.init.xavier_uniform_(weight, 1.0, generator)
            for bias in (self.gru.bias_ih, self.gru.bias_hh, self.line.bias):
                bias.zero_()

    def forward(self, state: torch.Tensor, above: torch.Tensor, left: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The next states and logits of the tokens of a line, as of `ProgramNetwork.step`, where the
        lines left may differ: shapes (W, K), (W, N)."""
        state = self.gru(self.token[above] + self.left[left - 1], state).to(state.dtype)
        return state, self.line(state)

    def losses(self, taken: Batch, lines: torch.Tensor, fits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Negative log-likelihood of programs, each line among the tokens that fit its variables, and
        logits of the attributes.

        Parameters
        ----------
        taken : input of the encoder.
        lines : tokens, -1 after the last line, shape (B, T).
        fits : which tokens fit the variables above, shape (B, T, N).

        Returns
        -------
        Shapes (B,) and (B, 34).
        """
        state = self.encoder.pooled(*taken)
        logits = self.encoder.attributes(state)
        lengths = (lines >= 0).sum(dim=1)
        found = torch.zeros(len(lines), device=lines.device)
        above = torch.full_like(lengths, len(self.token) - 1)
        for line in range(lines.shape[1]):
            left = (lengths - line).clamp(min=1)
            state, scores = self(state, above, left)
            scores = scores.float().masked_fill(~fits[:, line], -torch.inf)
            there = lines[:, line] >= 0
            chosen = functional.cross_entropy(scores[there], lines[there, line], reduction="none")
            found = found.index_add(0, torch.nonzero(there)[:, 0], chosen)
            above = torch.where(there, lines[:, line], above)
        return found, logits


class ProgramLearner:
    """The network as `trainer.train` takes it: encoder and decoder learn together, and the encoder
    learns to predict the attributes, too.

    Parameters
    ----------
    data : programs to learn from.
    seed : seed of the first weights.
    device : device that trains it.
    embedding, layers, units, token : E, H, K, D.
    encoder : weights of a feed-forward network of these sizes, with which the encoder begins;
        random ones if left out.
    """

    kind: Kind = "program"

    def __init__(
        self,
        data: TrainingData,
        seed: int,
        device: str = "cpu",
        embedding: int = 20,
        layers: int = 3,
        units: int = 256,
        token: int = 64,
        encoder: Weights | None = None,
    ) -> None:
        lines = int(data.corpus.lengths.max())
        self.sizes: Mapping[str, int] = {
            "embedding": embedding, "layers": layers, "units": units, "token": token, "lines": lines,
        }  # fmt: skip
        self._data, self._device = data, device
        generator = torch.Generator().manual_seed(seed)
        semantics, shares = data.corpus.semantics, shares_of(data)
        first = FeedForwardModule(semantics, embedding, layers, units, generator, shares)
        if encoder is not None:
            first.load_state_dict({name: torch.from_numpy(array) for name, array in encoder.arrays.items()})
        self.module: nn.Module = ProgramModule(first, units, token, lines, generator).to(device)

    def batch(self, rows: Rows, rng: np.random.Generator | None) -> Batch:
        """Types, numbers, which examples there are, attributes, tokens, and which tokens fit."""
        part = self._data.corpus.subset(rows)
        lines = self.sizes["lines"]
        more = tokens_of(part, lines), typed(part, lines)
        found = tensors(self._data.encoded(rows, rng), self._device)
        return *found, *(torch.from_numpy(array).to(self._device) for array in more)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Negative log-likelihood of a program, and cross entropy of its attributes."""
        *taken, attributes, lines, fits = batch
        programs, logits = self.module.losses(tuple(taken), lines, fits)
        entropy = functional.binary_cross_entropy_with_logits(logits.float(), attributes, reduction="sum")
        return (programs.sum() + entropy) / len(attributes)

    def arrays(self) -> dict[str, npt.NDArray[np.float32]]:
        """The weights, as `networks.program_decoder` describes them."""
        named = self.module.state_dict().items()
        return {name.removeprefix("encoder."): value.detach().cpu().numpy() for name, value in named}

    def metrics(self, rows: Rows) -> dict[str, Any]:
        """`metrics.report` of the attributes, and the mean negative log-likelihood of programs by
        length, `program_loss`."""
        programs, logits = [], []
        with torch.no_grad():
            for start in range(0, len(rows), EVALUATED):
                *taken, _, lines, fits = self.batch(rows[start : start + EVALUATED], None)
                found = self.module.losses(tuple(taken), lines, fits)
                programs.append(found[0].cpu().numpy())
                logits.append(found[1].double().cpu())
        probabilities = torch.sigmoid(torch.cat(logits)).numpy()
        losses, lengths = np.concatenate(programs), self._data.corpus.lengths[rows]
        each = {str(length): float(losses[lengths == length].mean()) for length in np.unique(lengths)}
        return {**metrics.report(probabilities, self._data.corpus.attributes[rows]), "program_loss": each}


def mixed(data: TrainingData) -> TrainingData:
    """The same data, where programs of rare lengths are repeated: there are few short programs, and
    a decoder is to know them. Raises InputError if examples are held back instead of programs;
    there are too few programs."""
    if data.by_examples:
        raise InputError(f"the corpus has {len(data.train):,} programs", "make one with --count 1000")
    lengths = data.corpus.lengths[data.train]
    counts = np.bincount(lengths)
    goal = LEAST * counts.max()
    times = np.clip(np.ceil(goal / np.maximum(1, counts)), 1, MOST).astype(np.int64)
    return replace(data, train=np.repeat(data.train, times[lengths]))


def mixed_corpus(jobs: int = 1) -> Corpus:
    """The programs of 1 to 4 lines that the shipped decoder learns from, fewer of 4 lines than the
    other networks."""
    counts = {1: None, 2: None, 3: None, 4: 20_000}
    return join([training_corpus(length, count, 16, jobs) for length, count in counts.items()])
