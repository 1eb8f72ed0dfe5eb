"""The network with a recurrent encoder in PyTorch, as it learns; `networks.gru` describes it (Thesis
section 5.5.3)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from thesis_cli.synthesis.language.dsl import ATTRIBUTES, Semantics
from thesis_cli.synthesis.networks.feed_forward import TYPE_BITS, VALUES
from thesis_cli.synthesis.networks.weights import Kind
from thesis_cli.synthesis.training.data import TrainingData
from thesis_cli.synthesis.training.feed_forward import FeedForwardLearner, first_embedding, shares_of


class GruModule(nn.Module):
    """The network: types (B, 4, 2), numbers (B, M, 4, L) and which examples there are (B, M) ->
    logits (B, 34).

    Parameters
    ----------
    semantics : range of numbers.
    embedding, units : E, K.
    generator : of the first weights.
    shares : of the attributes in the corpus, shape (34,).
    """

    def __init__(
        self,
        semantics: Semantics,
        embedding: int,
        units: int,
        generator: torch.Generator,
        shares: npt.NDArray[np.float64],
    ) -> None:
        super().__init__()
        self.embedding = nn.Parameter(first_embedding(semantics, embedding, generator))
        self.gru = nn.GRU(VALUES * (TYPE_BITS + embedding), units)
        self.attributes = nn.Linear(units, len(ATTRIBUTES))
        with torch.no_grad():
            for name, weight in [*self.gru.named_parameters(), ("", self.attributes.weight)]:
                if weight.dim() == 2:
                    nn.init.xavier_uniform_(weight, 1.0, generator)
                elif name:
                    weight.zero_()
            odds = torch.from_numpy(shares / (1 - shares))
            self.attributes.bias.copy_(torch.log(odds))

    def forward(self, types: torch.Tensor, numbers: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
        count, examples, values, longest = numbers.shape
        each = numbers.reshape(-1, values, longest)
        lengths = lengths_of(each)
        places = each[:, :, : int(lengths.max())].permute(2, 0, 1)  # place, example, value
        embedded = functional.embedding(places, self.embedding).flatten(2)
        bits = types.reshape(count, 1, -1).expand(-1, examples, -1).reshape(1, len(each), -1)
        steps = torch.cat([bits.expand(len(embedded), -1, -1), embedded], dim=2)
        packed = nn.utils.rnn.pack_padded_sequence(steps, lengths.cpu(), enforce_sorted=False)
        last = self.gru(packed)[1][0].reshape(count, examples, -1)
        share = present / present.sum(dim=1, keepdim=True)
        return self.attributes((last * share[:, :, None]).sum(dim=1))


def lengths_of(numbers: torch.Tensor) -> torch.Tensor:
    """Steps in which the encoder reads examples of shape (N, 4, L): as many as the longest value has
    numbers, at least one, shape (N,)."""
    there = (numbers != 0).any(dim=1)
    return (there * torch.arange(1, there.shape[1] + 1, device=there.device)).max(dim=1).values.clamp(min=1)


class GruLearner(FeedForwardLearner):
    """The network as `trainer.train` takes it; it learns as the feed-forward one does.

    Parameters
    ----------
    data : what it learns from.
    seed : of the first weights.
    device : where it is trained.
    embedding, units : E, K.
    """

    kind: Kind = "gru"

    def __init__(
        self, data: TrainingData, seed: int, device: str = "cpu", embedding: int = 20, units: int = 128
    ) -> None:
        self.sizes = {"embedding": embedding, "units": units}
        self._data, self._device = data, device
        generator = torch.Generator().manual_seed(seed)
        self.module = GruModule(data.corpus.semantics, embedding, units, generator, shares_of(data)).to(device)

    def arrays(self) -> dict[str, npt.NDArray[np.float32]]:
        """The weights, as `networks.gru` describes them."""
        return {name.removesuffix("_l0"): array for name, array in super().arrays().items()}
