"""The network for the next line in PyTorch; `networks.next_line` computes the same without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from thesis_cli.synthesis.networks.move_places import COMMUTING, DOUBLE, SINGLE
from thesis_cli.synthesis.networks.next_line import Sizes
from thesis_cli.synthesis.networks.relation_kernels import FEATURES

if TYPE_CHECKING:
    from thesis_cli.synthesis.training.next_line_batches import Batch


class NextLineModel(nn.Module):
    """Scores of all lines that a program can get next."""

    def __init__(self, sizes: Sizes, generator: torch.Generator) -> None:
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

    def forward(self, batch: Batch) -> Tensor:
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


def losses(model: NextLineModel, batch: Batch) -> tuple[Tensor, Tensor]:
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
