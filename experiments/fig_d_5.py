"""Figure D.5: integers embedded in two dimensions by a network that was trained on programs of T = 1.

Does the embedding show magnitude, sign and evenness? A decoder predicts each from the embeddings of
integers that it has not seen. What it gives for permuted properties is what chance gives.
"""

import numpy as np

from thesis_cli.base.figures import COLOURS, label, legend_below, panels
from thesis_cli.reproduction.experiment import Claim, Experiment, Tolerance
from thesis_cli.reproduction.measuring import labelled, measured
from thesis_cli.studies.synthesis.integer_embedding import DECODERS, decoded
from thesis_cli.studies.synthesis.predictions import embedding, over_trainings, trainings

WEIGHTS = "embedding-2"
PROPERTIES = {
    "magnitude": (np.abs, "rank correlation of decoded and true magnitude"),
    "sign": (lambda x: x > 0, "share of integers whose sign is decoded"),
    "evenness": (lambda x: x % 2 == 0, "share of integers whose evenness is decoded"),
}
NETWORK = "The thesis speaks of what its own network learnt, which is not published; here another one is trained."
BEST = "neighbours"
"""The decoder that decides: what is near in the figure is alike."""


def tasks(settings):
    return [{"training": number, "weights": weights, **settings} for number, weights in enumerate(trainings(WEIGHTS))]


def run(seed, training, weights, permutations):
    """The point of each integer (`part` is point), and how well each property is decoded (`part` is
    decoded): `score`, and the mean and standard deviation for permuted properties in `chance` and
    `spread`."""
    integers, points = embedding(weights)
    rng = np.random.default_rng(seed)
    rows = [("point", x, *point, "", "", *[np.nan] * 3) for x, point in zip(integers, points.tolist(), strict=True)]
    for name, (of, _) in PROPERTIES.items():
        signed = integers != 0 if name == "sign" else np.ones(len(integers), dtype=bool)
        for decoder in DECODERS:
            found = decoded(points[signed], of(integers[signed]), decoder, permutations, rng)
            rows.append(("decoded", "", "", "", name, decoder, found.score, found.chance, found.spread))
    columns = ["part", "integer", "x", "y", "property", "decoder", "score", "chance", "spread"]
    return labelled(rows, columns, training=training)


def plot(frame):
    points = frame[(frame.part == "point") & (frame.training == 0)]
    figure, axes = panels(1, 2, height=3.9)
    _plot_points(axes[0], points, "all integers")
    few = points[points.integer.abs() <= 11]
    _plot_points(axes[1], few, "integers from -11 to 11")
    for x, y, integer in zip(few.x, few.y, few.integer, strict=True):
        side = {"ha": "left", "xytext": (2, 2)} if integer % 2 else {"ha": "right", "xytext": (-2, 2)}
        axes[1].annotate(f"{integer:.0f}", (x, y), textcoords="offset points", fontsize=6, **side)
    return legend_below(figure, axes[0], 5)


def _plot_points(ax, points, title):
    """Colour is the sign, its intensity the magnitude, the marker evenness."""
    from matplotlib.colors import LinearSegmentedColormap

    most = max(1, points.integer.abs().max())
    for sign, colour, name in ((1, COLOURS[1], "positive"), (-1, COLOURS[0], "negative"), (0, "k", "zero")):
        shades = LinearSegmentedColormap.from_list(name, ["0.88", colour])
        for odd, marker, kind in ((0, "o", "even"), (1, "^", "odd")):
            rows = points[(np.sign(points.integer) == sign) & (points.integer % 2 == odd)]
            if len(rows):
                shown = shades((rows.integer.abs() / most).to_numpy()) if sign else "k"
                edge = colour if odd else "none"
                ax.scatter(rows.x, rows.y, s=11, c=shown, marker=marker, linewidth=0.3, edgecolor=edge)
                ax.scatter([], [], s=14, c=colour, marker=marker, label=f"{name}, {kind}")
    label(ax, "first dimension", "second dimension", title)


def _decoded(frame, name):
    rows = frame[(frame.property == name) & (frame.decoder == BEST)]
    return over_trainings(list(zip(rows.score - rows.chance, rows.spread, strict=True)))


# fmt: off
CLAIMS = [
    Claim(f"{name}, {BEST}", "Thesis D.3, Figure D.5: 'has learnt the concepts of'", "comparison", ">", 0.0,
        measured(_decoded, name),
        f"the embedding shows {name} ({what} from nearest {BEST}, less that with permuted properties; mean over "
        "trainings)",
        not_comparable=NETWORK)
    for name, (_, what) in PROPERTIES.items()
]
# fmt: on

EXPERIMENT = Experiment(
    id="fig-d-5",
    title="Integers embedded in two dimensions: magnitude, sign and evenness",
    source="Thesis D.3, Figure D.5",
    version=2,
    presets={"quick": {"permutations": 200}, "paper": {"permutations": 2000}},
    tasks=tasks,
    run=run,
    plot=plot,
    tolerances={
        **dict.fromkeys(["x", "y"], Tolerance(1e-6)),
        **dict.fromkeys(["score", "chance", "spread"], Tolerance(1e-3)),
    },
    claims=CLAIMS,
    caption="The two-dimensional embedding of the integers from -256 to 255 that a network learns from programs of one "
    "line; on the right those from -11 to 11, with their numbers. Colour is the sign, its intensity the magnitude, and "
    "circles are even, triangles odd integers. The thesis's figure has the same axes without units, and its colour is "
    "the magnitude; it reads magnitude, sign and evenness off the picture. Here nearest neighbours decode the first "
    "two far better than chance, and evenness hardly. Claims are about the mean over five trainings of the network, of "
    "which this is the first.",
)
