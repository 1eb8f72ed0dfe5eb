"""Figure 1 of Hazan et al.: a segmentation by its maximum, and by perturbed maxima, which keep what is thin."""

import numpy as np
import pandas as pd

from thesis_cli.base.figures import panels
from thesis_cli.learning.decoding import Decoder
from thesis_cli.perturbation.noise import gumbel
from thesis_cli.reproduction.experiment import Experiment
from thesis_cli.studies.learning.denoising import constant_weights
from thesis_cli.studies.learning.silhouettes import HEIGHT, WIDTH, silhouettes

FIELD, COUPLING = 0.5, 1.0
"""Weights of the brightness of a pixel and of equal neighbours: a limb costs more than it gives."""


def tasks(settings):
    return [dict(settings)]


def run(seed, height, width, samples):
    """A row for each pixel: its `brightness`, -1 or 1 plus noise of deviation 1, whether it is of the
    man (`man`) and of the most probable segmentation (`maximum`), and in how many of the `samples`
    perturbed maximisers it is foreground (`count`)."""
    rng = np.random.default_rng(seed)
    man = silhouettes(1, rng, height=height, width=width)[0]
    brightness = np.round(np.where(man, 1.0, -1.0) + rng.normal(size=man.shape), 3)
    decoder = Decoder(constant_weights(height, width, COUPLING))
    own = np.broadcast_to(FIELD * brightness, (samples, height, width))
    noise = gumbel(rng, samples, 2 * man.size).reshape(*own.shape, 2)
    row, column = np.indices(man.shape).reshape(2, -1)
    found = {
        "brightness": brightness,
        "man": man,
        "maximum": decoder.maximise(own[:1])[1][0] > 0,
        "count": (decoder.maximise(own, noise)[1] > 0).sum(axis=0),
    }
    numbers = {
        name: image.ravel() if name == "brightness" else image.ravel().astype(int) for name, image in found.items()
    }
    return pd.DataFrame({"row": row, "column": column, **numbers, "samples": samples})


def plot(frame):
    figure, axes = panels(1, 3, height=3.25)
    titles = {"brightness": "image and outline", "maximum": "most probable", "count": "share of perturbed maximisers"}
    man = frame.pivot(index="row", columns="column", values="man")
    for ax, (name, title) in zip(axes, titles.items(), strict=True):
        ax.imshow(frame.pivot(index="row", columns="column", values=name), cmap="gray")
        ax.contour(man, [0.5], colors="#D55E00", linewidths=0.6)
        ax.set_title(title)
        ax.axis("off")
    return figure


EXPERIMENT = Experiment(
    id="hazan-segmentation",
    title="A segmentation by its maximum and by the shares of perturbed maximisers",
    source="Hazan et al. Figure 1",
    version=1,
    presets={
        "quick": {"height": HEIGHT // 4, "width": WIDTH // 4, "samples": 20},
        "paper": {"height": HEIGHT, "width": WIDTH, "samples": 20},
    },
    tasks=tasks,
    run=run,
    plot=plot,
    caption="Left: a drawn man in noise, with his outline, which all panels have. Middle: the most probable "
    "segmentation, by a graph cut; it cuts off what is thin. Right: how many of 20 maximisers under perturbations of "
    "each pixel have it as foreground, from none (black) to all (white). The source's figure has the photograph of an "
    "animal with wings, which is not published, a seed region inside its outline, and the same three pictures.",
)
