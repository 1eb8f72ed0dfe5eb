"""The network of appendix D.3, held against a plain loop and against PyTorch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.synthesis.networks.random_weights import random_weights
from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.language.dsl import Semantics
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.networks import feed_forward
from thesis_cli.synthesis.networks.feed_forward import Encoded, FeedForward, encode
from thesis_cli.synthesis.networks.weights import Weights, load

TASKS = [
    Task("lists", tuple(Example(((n, -n, 3), (2,) * (n % 4)), (n,)) for n in range(5))),
    Task("numbers", tuple(Example((n - 7, (1,) * n), n) for n in range(1, 8))),
    Task("one", (Example(((-256, 255) * 10,), (-256, 255) * 10),)),
    Task("empty", (Example(((),), ()), Example(((3,),), ()))),
]
ULPS = 64 * float(np.finfo(np.float32).eps)
"""Sums of a few dozen terms in another order."""


def by_loops(weights: Weights, encoded: Encoded) -> np.ndarray:
    """The definition, an example at a time, in float64."""
    arrays = {name: array.astype(np.float64) for name, array in weights.arrays.items()}
    found = []
    for types, numbers, present in zip(encoded.types, encoded.numbers, encoded.present, strict=True):
        last = []
        for values in numbers[present]:
            layer = np.concatenate([types.ravel(), *(arrays["embedding"][x] for x in values.ravel())])
            for h in range(weights.sizes["layers"]):
                layer = 1 / (1 + np.exp(-(arrays[f"hidden.{h}.weight"] @ layer + arrays[f"hidden.{h}.bias"])))
            last.append(layer)
        found.append(arrays["attributes.weight"] @ np.mean(last, axis=0) + arrays["attributes.bias"])
    return np.array(found)


@pytest.mark.parametrize("sizes", [{}, {"layers": 1, "embedding": 1}, {"layers": 3, "units": 5}])
def test_logits_are_those_of_the_definition(sizes: dict[str, int], tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(feed_forward, "ROWS", 3)
    weights = load(random_weights(tmp_path / "a.safetensors", **sizes))
    encoded = encode(TASKS)
    found = FeedForward.of(weights).logits(encoded)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, by_loops(weights, encoded), rtol=ULPS, atol=10 * ULPS)


@pytest.mark.torch
def test_logits_are_those_of_torch(tmp_path: Path) -> None:
    import torch

    weights = load(random_weights(tmp_path / "a.safetensors", embedding=20, layers=3, units=256))
    encoded = encode(TASKS)
    arrays = {name: torch.from_numpy(array.copy()) for name, array in weights.arrays.items()}
    layer = torch.nn.functional.embedding(torch.from_numpy(encoded.numbers).long(), arrays["embedding"]).flatten(2)
    types = torch.from_numpy(encoded.types).flatten(1)[:, None].expand(-1, layer.shape[1], -1)
    layer = torch.cat([types, layer], dim=2)
    for h in range(3):
        layer = torch.sigmoid(
            torch.nn.functional.linear(layer, arrays[f"hidden.{h}.weight"], arrays[f"hidden.{h}.bias"])
        )
    present = torch.from_numpy(encoded.present.astype(np.float32))[..., None]
    pooled = (layer * present).sum(1) / present.sum(1)
    logits = torch.nn.functional.linear(pooled, arrays["attributes.weight"], arrays["attributes.bias"])
    np.testing.assert_allclose(FeedForward.of(weights).logits(encoded), logits.numpy(), rtol=1e-5, atol=1e-5)


def test_neither_padding_nor_the_order_of_examples_nor_copies_of_them_change_a_prediction(tmp_path: Path) -> None:
    network = FeedForward.of(load(random_weights(tmp_path / "a.safetensors")))
    expected = network.logits(encode(TASKS))
    assert np.ptp(expected, axis=0).min() > 0.01
    noise = encode(TASKS, examples=9)
    noise.numbers[~noise.present] = 77
    turned = [replace(task, examples=task.examples[::-1]) for task in TASKS]
    twice = [replace(task, examples=task.examples * 2) for task in TASKS]
    for encoded in encode(TASKS, examples=9), noise, encode(turned), encode(twice):
        np.testing.assert_allclose(network.logits(encoded), expected, rtol=ULPS, atol=10 * ULPS)
    alone = np.concatenate([network.logits(encode([task])) for task in TASKS])
    np.testing.assert_allclose(alone, expected, rtol=ULPS, atol=10 * ULPS)


def test_examples_of_another_range_or_length_are_refused(tmp_path: Path) -> None:
    network = FeedForward.of(load(random_weights(tmp_path / "a.safetensors")))
    for semantics in Semantics(high=300), Semantics(longest=25):
        with pytest.raises(InputError, match="the network takes 513 numbers"):
            network.logits(encode(TASKS, semantics))
