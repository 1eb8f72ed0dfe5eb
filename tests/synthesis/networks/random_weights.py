"""Small networks with random weights, as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from thesis_cli.synthesis.language.dsl import DEFAULT, Semantics
from thesis_cli.synthesis.networks.feed_forward import shapes_of
from thesis_cli.synthesis.networks.weights import config_of, save

SIZES = {"embedding": 3, "layers": 2, "units": 8}


def arrays_of(sizes: dict[str, int], semantics: Semantics = DEFAULT, seed: int = 0) -> dict[str, Any]:
    """Arrays of about the scale at which units neither saturate nor ignore their inputs."""
    rng = np.random.default_rng(seed)
    shapes = shapes_of(**sizes, rows=semantics.high - semantics.low + 2, longest=semantics.longest)
    return {name: 3 * rng.standard_normal(shape) / np.sqrt(shape[-1]) for name, shape in shapes.items()}


def random_weights(path: Path, semantics: Semantics = DEFAULT, seed: int = 0, **sizes: int) -> Path:
    """A file of weights of the kind `feed-forward`."""
    sizes = {**SIZES, **sizes}
    save(path, arrays_of(sizes, semantics, seed), "feed-forward", config_of(semantics, {"seed": seed}, **sizes), {})
    return path
