"""Figures of learning to denoise: the objective and the weights, and images before and after."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from thesis_cli.base.columns import Columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure

    from thesis_cli.learning.grid_model import GridWeights
    from thesis_cli.learning.shared_model import Weights
    from thesis_cli.learning.values import Pixels, Values

SHOWN, NAMED = 6, 7
"""Images that are drawn, and labels that have colours of their own."""


def draw_training(trace: Columns, weights: Weights) -> Figure:
    """The objective by iteration; the field of each pixel and its mean coupling to its neighbours, or
    how evidence grows with the pixels of a patch."""
    from thesis_cli.base.figures import panels
    from thesis_cli.learning.grid_model import GridWeights

    if isinstance(weights, GridWeights):
        figure, (left, middle, right) = panels(1, 3)
        _picture(figure, middle, weights.field, "weight of the noisy pixel")
        _picture(figure, right, _mean_coupling(weights), "mean coupling to neighbours")
    else:
        figure, (left, right) = panels(1, 2)
        across, down = weights.couplings
        title = f"slope of the evidence by a patch's pixels\ncouplings {across:.2g} right, {down:.2g} down"
        _picture(figure, right, weights.slope, title)
    _trace(left, trace)
    return figure


def _trace(axes: Axes, trace: Columns) -> None:
    import numpy as np

    from thesis_cli.base.figures import COLOURS, label

    objective = np.asarray(trace["objective"])
    axes.plot(trace["iteration"], objective, color=COLOURS[0], label="objective")
    if "gap" in trace:
        axes.plot(trace["iteration"], objective - np.asarray(trace["gap"]), color=COLOURS[1], label="lower bound")
        axes.legend()
    axes.locator_params(axis="x", nbins=5)
    label(axes, "iteration", "objective, nats an image")


def _mean_coupling(weights: GridWeights) -> Any:
    import numpy as np

    total, count = np.zeros(weights.shape), np.zeros(weights.shape)
    for couplings, first, second in (
        (weights.right, np.s_[:, :-1], np.s_[:, 1:]),
        (weights.down, np.s_[:-1], np.s_[1:]),
    ):
        for place in (first, second):
            total[place] += couplings
            count[place] += 1
    return total / np.maximum(count, 1)


def _picture(figure: Figure, axes: Axes, values: Any, title: str) -> None:
    """Signed numbers as colours, with a bar."""
    axes.grid(False)
    most = max(float(abs(values).max()), 1e-300)
    image = axes.imshow(values, cmap="RdBu", vmin=-most, vmax=most, interpolation="nearest")
    figure.colorbar(image, ax=axes, shrink=0.8)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(title)


def draw_images(names: Sequence[str], rows: Mapping[str, Pixels], values: Values) -> Figure:
    """Images in columns, in each row one version of them; shape (count, h, w) each."""
    from matplotlib.cm import ScalarMappable

    from thesis_cli.base.figures import WIDTH, panels

    count = min(SHOWN, len(names))
    _, height, width = next(iter(rows.values())).shape
    tall = max(0.6, min(2.6, WIDTH / count * height / width + 0.2))
    figure, axes = panels(len(rows), count, tall, squeeze=False)
    look = _Look.of(values)
    for line, (title, images) in zip(axes, rows.items(), strict=True):
        for image, place in zip(images, line, strict=False):
            place.imshow(look.place(image), cmap=look.colours, norm=look.norm, interpolation="nearest")
            place.grid(False)
            place.set_xticks([])
            place.set_yticks([])
            place.spines[:].set(visible=True, color="0.6", linewidth=0.5)
        line[0].set_ylabel(title)
    for name, place in zip(names, axes[0], strict=False):
        place.set_title(name[:20])
    if values.kind != "two":
        bar = figure.colorbar(ScalarMappable(look.norm, look.colours), ax=axes, shrink=0.6, label=look.label)
        if values.kind == "labels" and len(values.values) <= NAMED:
            bar.set_ticks(list(range(len(values.values))), labels=[f"{value:g}" for value in values.values])
    return figure


class _Look(NamedTuple):
    """Colours of pixels: grey from the lowest to the highest level; one for each label, none for others."""

    colours: Colormap
    norm: Normalize
    label: str
    place: Callable[[Pixels], Any]

    @classmethod
    def of(cls, values: Values) -> _Look:
        import numpy as np
        from matplotlib import colormaps
        from matplotlib.colors import BoundaryNorm, ListedColormap, Normalize

        from thesis_cli.base.figures import COLOURS

        if values.kind != "labels":
            low, high = (values.values[0], values.values[-1]) if values.values else (0.0, 1.0)
            return cls(colormaps["gray"], Normalize(low, high), "level", lambda image: image)
        count, known = len(values.values), np.array(values.values)
        few = count <= NAMED
        colours = ListedColormap(COLOURS[:count]) if few else colormaps["nipy_spectral"].resampled(count)

        def place(image: Pixels) -> Any:
            found = np.minimum(np.searchsorted(known, image), count - 1)
            return np.ma.masked_where(known[found] != image, found)

        return cls(
            colours, BoundaryNorm(np.arange(count + 1) - 0.5, count), "label" if few else "number of the label", place
        )
