"""Figure D.4: the layers of the network, drawn from the arrays of the shipped weights."""

from textwrap import fill

import pandas as pd

from thesis_cli.base.figures import COLOURS, panels
from thesis_cli.reproduction.experiment import Experiment
from thesis_cli.studies.synthesis.predictions import version
from thesis_cli.studies.synthesis.thesis_programs import EXAMPLES
from thesis_cli.synthesis.networks.feed_forward import VALUES
from thesis_cli.synthesis.networks.weights import load

WEIGHTS = "lines-4"


def tasks(settings):
    return [{"weights": version(WEIGHTS), **settings}]


def run(seed, weights):
    """A row for each layer: how many numbers it holds, whether for each example or (`pooled`) for all
    of a task together, and how many weights lead to it."""
    found = load(weights.split()[0])
    arrays, places = found.arrays, VALUES * found.semantics.longest
    rows = [
        ("integers", 0, places, 0),
        ("types and embedding", 0, arrays["hidden.0.weight"].shape[1], arrays["embedding"].size),
    ]
    for layer in range(found.size("layers")):
        size, inputs = arrays[f"hidden.{layer}.weight"].shape
        rows.append((f"hidden layer {layer + 1}", 0, size, size * (inputs + 1)))
    size, inputs = arrays["attributes.weight"].shape
    rows += [("mean of examples", 1, inputs, 0), ("functions and lambdas", 1, size, size * (inputs + 1))]
    return pd.DataFrame(rows, columns=["layer", "pooled", "numbers", "weights"])


def plot(frame):
    from matplotlib.patches import Rectangle

    figure, ax = panels(1, 1, height=2.7)
    for at, row in enumerate(frame.itertuples()):
        height, copies = row.numbers**0.5, 1 if row.pooled else EXAMPLES
        for copy in range(copies)[::-1]:
            corner = at - 0.16 + 0.05 * copy, -height / 2 + 1.2 * copy
            ax.add_patch(Rectangle(corner, 0.3, height, fc="white", ec=COLOURS[row.pooled], linewidth=0.9))
        ax.text(at - 0.01, 0, f"{row.numbers:,}", ha="center", va="center", rotation=90, fontsize=7)
        words = fill(row.layer, 14) + (f"\n{row.weights:,}\nweights" if row.weights else "")
        ax.text(at, -23, words, ha="center", va="top", fontsize=7)
        if at:
            ax.annotate("", (at - 0.19, 0), (at - 0.47, 0), arrowprops={"arrowstyle": "->", "linewidth": 0.8})
    ax.set(xlim=(-0.6, len(frame) - 0.3), ylim=(-35, 26))
    ax.axis("off")
    return figure


EXPERIMENT = Experiment(
    id="fig-d-4",
    title="Layers of the network that predicts functions from examples",
    source="Thesis D.3, Figure D.4",
    version=1,
    presets={"quick": {}, "paper": {}},
    tasks=tasks,
    run=run,
    plot=plot,
    caption="The encoder and the decoder as the shipped network of T = 4 has them: the numbers that each layer holds, "
    "and the weights that lead to it; the height of a box grows like their square root. Layers with five boxes are "
    "there for each example, with the same weights; their mean goes to the decoder. The thesis's figure is a schematic "
    "drawing of the same layers.",
)
