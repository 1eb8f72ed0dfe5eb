"""Methods that learn to denoise binary images, trained and tested on the same draw of images.

Source: Hazan et al., section V and Figure 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from thesis_cli.base.arrays import Bools, Floats
from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.learning.decoding import map_images, marginal_images
from thesis_cli.learning.grid_model import GridWeights
from thesis_cli.learning.settings import Settings
from thesis_cli.learning.train import Trained, train
from thesis_cli.models.images import add_flips
from thesis_cli.perturbation.low_rank.low_rank import low_rank_maxima
from thesis_cli.studies.learning.silhouettes import FLIPS, digits, silhouettes

COUPLINGS = np.round(np.arange(0.1, 1.55, 0.1), 1)
"""Among which the baseline with one coupling chooses, in units of the field."""

PARTS = ("train", "validation", "test")


class Part(NamedTuple):
    """Pairs of images, shape (count, h, w)."""

    clean: Bools
    noisy: Bools

    def error(self, found: Bools) -> float:
        """Share of wrong pixels."""
        return float((found != self.clean).mean())


def draw_images(images: str, count: int, height: int, width: int, rng: np.random.Generator) -> dict[str, Part]:
    """Images to train on, to choose settings with and to test on, `count` of each.

    Parameters
    ----------
    images : `digits`, which are 8 x 8, `one man`, or a name of men in many poses.
    """
    if images == "digits":
        clean = digits(3 * count, rng)
    else:
        clean = silhouettes(3 * count, rng, 0.0 if images == "one man" else 1.0, height, width)
    noisy = add_flips(clean, FLIPS, rng)
    rows = [slice(k * count, (k + 1) * count) for k in range(3)]
    return {part: Part(clean[row], noisy[row]) for part, row in zip(PARTS, rows, strict=True)}


def constant_weights(height: int, width: int, coupling: float) -> GridWeights:
    """Field 1 everywhere, and one coupling."""
    return GridWeights(
        np.ones((height, width)), np.full((height, width - 1), coupling), np.full((height - 1, width), coupling)
    )


def one_coupling(part: Part) -> GridWeights:
    """The constant weights with the least error on some images."""
    _, height, width = part.clean.shape
    return min(
        (constant_weights(height, width, float(c)) for c in COUPLINGS),
        key=lambda weights: part.error(map_images(weights, part.noisy)),
    )


def couplings(weights: GridWeights) -> Floats:
    """All couplings as one vector."""
    return np.concatenate([weights.right.ravel(), weights.down.ravel()])


def errors(predict: Callable[[Bools], Bools], parts: dict[str, Part]) -> dict[str, float]:
    """Share of wrong pixels in each part."""
    return {f"{name}_error": part.error(predict(part.noisy)) for name, part in parts.items()}


def about(weights: GridWeights) -> dict[str, float]:
    """Number of weights, and share of the couplings that do not attract."""
    found = couplings(weights)
    return {"parameters": weights.field.size + found.size, "not_attractive": float((found <= 0).mean())}


@dataclass(frozen=True)
class Method:
    """A way to learn.

    Attributes
    ----------
    name : name in tables.
    settings : apart from the regularisation.
    marginals : source of pixel marginals that decide, too: perturbed maximisers, or the Gibbs
        distribution.
    """

    name: str
    settings: dict[str, Any]
    marginals: Literal["", "perturb-max", "exact"] = ""


def methods(steps: int, exact: bool) -> list[Method]:
    """All ways to learn that are compared.

    Parameters
    ----------
    steps : numbers of steps of the structured SVM; the source's 10,000, and its earlier 30.
    exact : whether the grid is narrow enough for the conditional random field.
    """
    svm = {"method": "structured-svm"}
    found = [
        Method("perturb-max", {"method": "perturb-max"}, "perturb-max"),
        Method("structured SVM", {**svm, "iterations": steps}),
        Method("structured SVM, 30 steps", {**svm, "iterations": 30}),
        Method("SVM, Hamming loss", {"method": "svm-frank-wolfe", "loss": "hamming"}),
        Method("pseudo-likelihood", {"method": "pseudo-likelihood"}),
    ]
    if exact:
        found.append(Method("perturb-max, any sign", {"method": "perturb-max", "couplings": "any"}))
        found.append(Method("CRF", {"method": "crf"}, "exact"))
    return found


def learn(method: Method, regularisation: float, part: Part, seed: int) -> Trained:
    """Weights that a method learns."""
    return train(part.noisy, part.clean, Settings(**method.settings, regularisation=regularisation), seed)


def rows_of(
    method: Method, regularisation: float, trained: Trained, parts: dict[str, Part], samples: int, seed: int
) -> Iterator[dict[str, Any]]:
    """A row of errors for each way to decide from learnt weights."""
    weights = trained.weights.on(*parts["test"].noisy.shape[1:])
    facts = {
        "method": method.name,
        "regularisation": regularisation,
        "map_calls": trained.map_calls,
        "objective": float(trained.trace.objective.iloc[-1]),
        **about(weights),
    }
    yield {**facts, "decision": "map", **errors(lambda noisy: map_images(weights, noisy), parts)}
    if method.marginals == "perturb-max":
        found = errors(lambda noisy: marginal_images(weights, noisy, samples, seed), parts)
        yield {**facts, "decision": "marginals", **found}
    elif method.marginals == "exact":
        yield {**facts, "decision": "marginals", **errors(lambda noisy: gibbs_images(weights, noisy), parts)}


def gibbs_images(weights: GridWeights, noisy: Bools) -> Bools:
    """Each pixel in its more probable state under the Gibbs distribution, shape (count, h, w)."""
    shares = [GridTransfer(weights.graph(image)).marginals()[1][1::2] for image in noisy]
    return np.reshape(shares, noisy.shape) > 0.5


def bound_gap(weights: GridWeights, noisy: Bools, samples: int, seed: np.random.SeedSequence) -> tuple[float, float]:
    """E[perturbed maximum] - ln Z of the model of one image, and its standard error, nats."""
    solver = GridTransfer(weights.graph(noisy))
    values = low_rank_maxima(solver, samples, seed).values
    gap = float(values.mean()) - solver.log_partition_function()
    return gap, float(values.std(ddof=1)) / samples**0.5


def thinned(count: int, most: int) -> list[int]:
    """At most `most` of `count` places, the first and the last among them, about even in their logarithm."""
    return [int(place) - 1 for place in np.unique(np.geomspace(1, count, most).round())]
