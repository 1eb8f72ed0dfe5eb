"""The figure of the experiment `renyi-evaluation`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, label, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

ORDERS = np.array([0, 0.25, 0.5, 0.9, 1, 1.1, 2, 5, math.inf])
M = 1000
"""Number of perturbations or samples at which one number compares two estimators."""
EXACT = 1e-9
"""An RMSE below this, in nats, is rounding error."""
CURVES = ("Zipf", 0.5), ("geometric", 1.0), ("near-certain", 2.0)
STYLES = {
    "Gumbel, shared": {"color": COLOURS[0], "marker": "o"},
    "Exponential, shared": {"color": COLOURS[1], "marker": "o"},
    "hybrid": {"color": COLOURS[3], "marker": "o"},
    "Gumbel, control variate": {"color": COLOURS[2], "marker": "o"},
    "plug-in": {"color": COLOURS[6], "marker": "s", "linestyle": "--"},
    "moments": {"color": COLOURS[4], "marker": "s", "linestyle": "--"},
}
UNKNOWN, KNOWN, BETHE = "#DDDDDD", "#AAAAAA", "#8C510A"
"""Colours of the bounds with ln Z unknown and known, and of Bethe's approximation."""
PLUGIN = "Gumbel, shared", "plug-in"
CONTROLLED = "Gumbel, control variate", "moments"
"""An estimator and its baseline, as the maps compare them."""
KINDS = "attractive", "mixed"


def where(frame: pd.DataFrame, part: str, **cells: object) -> pd.DataFrame:
    """The rows of one part with the given values in the given columns."""
    rows = frame[frame.part == part]
    for column, value in cells.items():
        rows = rows.loc[rows[column] == value]
    return rows


def draw(frame: pd.DataFrame) -> Figure:
    """The figure of `renyi-evaluation`, from its rows."""
    figure, axes = panels(3, 3, height=2.9)
    for ax, (model, alpha) in zip(axes[0], CURVES, strict=True):
        rows = where(frame, "full rank", model=model, alpha=alpha)
        for name, style in STYLES.items():
            curve = rows[(rows.estimator == name) & (rows.rmse > EXACT)]
            ax.errorbar(curve.samples, curve.rmse, yerr=2 * curve.rmse_error, label=name, **style)
        _log_axes(ax)
        label(ax, "number $M$", "RMSE, nats", rf"{model}, $\alpha$ = {alpha:g}")
    _map(axes[1, 0], frame, *PLUGIN, "Gumbel, shared / plug-in")
    image = _map(axes[1, 1], frame, *CONTROLLED, "control variate / moments")
    axes[1, 1].set_yticks([])
    bar = figure.colorbar(image, ax=list(axes[1, :2]), location="bottom", aspect=40, extend="both")
    bar.set_label(f"RMSE over that from exact samples, $M$ = {M}")
    bar.set_ticks(range(-2, 3), labels=["0.01", "0.1", "1", "10", "100"])
    _variances(axes[1, 2], frame)
    for ax, kind in zip(axes[2], KINDS, strict=False):
        _sandwich(ax, frame, kind)
    _orders(axes[2, 2], frame)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncol=3)
    shown = {text: h for ax in axes[2] for h, text in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncol=3)
    return figure


def _log_axes(ax: Axes) -> None:
    """Make both axes logarithmic, the vertical one with a labelled decade at each end."""
    ax.set(xscale="log", yscale="log")
    low, high = np.log10(ax.get_ylim())
    ax.set_ylim(10 ** np.floor(low), 10 ** np.ceil(high))
    ax.minorticks_off()


def _map(ax: Axes, frame: pd.DataFrame, name: str, baseline: str, title: str) -> QuadMesh:
    """log10 of the ratio of RMSEs, models down and alphas across; grey where both are exact or one
    is absent."""
    rows = where(frame, "full rank", samples=M)
    table = rows.pivot_table(index=["model", "coupling"], columns=["estimator", "alpha"], values="rmse", sort=False)
    table = table.reindex(columns=pd.MultiIndex.from_product([[name, baseline], ORDERS]))
    own, other = (table[n].where(table[n] > EXACT, 0).where(table[n].notna()) for n in (name, baseline))
    with np.errstate(divide="ignore"):
        ratio = np.log10(own / other)
    ax.set_facecolor("#BBBBBB")
    ax.grid(visible=False)
    image = ax.pcolormesh(np.clip(ratio, -9, 9), cmap="RdBu_r", vmin=-2, vmax=2)
    ax.invert_yaxis()
    ax.set_xticks(np.arange(ORDERS.size) + 0.5, ["0", ".25", ".5", ".9", "1", "1.1", "2", "5", r"$\infty$"])
    names = [f"{model}, {coupling:g}" if coupling else model for model, coupling in table.index]
    ax.set_yticks(np.arange(len(names)) + 0.5, names)
    label(ax, r"order $\alpha$", "", title)
    return image


def _variances(ax: Axes, frame: pd.DataFrame) -> None:
    """M times the MSE at alpha = 1 over V, and the formulas of `studies/entropy/evaluation.py` for
    large M."""
    rows, unit = where(frame, "full rank", samples=M, alpha=1.0), math.pi**2 / 6
    v = np.geomspace(0.5, 30, 50)
    lines = {"Gumbel, shared": unit + v, "Exponential, shared": 1 + 2 * v, "hybrid": 1 + v}
    for name, line in lines.items():
        seen = rows[(rows.estimator == name) & (rows.variance > 0)]
        colour = STYLES[name]["color"]
        error = 4 * M * seen.rmse * seen.rmse_error
        ax.errorbar(seen.variance, M * seen.rmse**2, yerr=error, color=colour, marker="o", linestyle="")
        ax.plot(v, line, color=colour, linewidth=0.8)
    _log_axes(ax)
    label(ax, r"$V$ = var $\ln p$, nats$^2$", r"$M \cdot$ MSE, nats$^2$", r"all models, $\alpha$ = 1")


def _largest(frame: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Rows of the largest grids of a kind, with exact entropy and bias per variable."""
    rows = where(frame, "low rank", model=kind)
    largest: pd.DataFrame = rows[rows.side == rows.side.max()]
    sites = largest.side**2
    return largest.assign(exact=largest.exact / sites, bias=largest.bias / sites)


def _sandwich(ax: Axes, frame: pd.DataFrame, kind: str) -> None:
    """Shannon entropy and its bounds, means over models; message passing is drawn at the entropy
    plus its mean error."""
    rows = _largest(frame, kind)
    rows = rows[rows.alpha == 1]
    exact = rows.groupby("coupling").exact.mean()
    means = rows.groupby(["estimator", "coupling"]).bias.mean() + exact
    for name, colour in (("unknown", UNKNOWN), ("known", KNOWN)):
        low, high = (means.get(f"{end}, ln Z {name}", pd.Series(dtype=float)) for end in ("lower", "upper"))
        ax.fill_between(low.index, low, high, color=colour, label=rf"bounds, $\ln Z$ {name}")
    for name, colour, marker in (("Bethe", BETHE, "s"), ("TRW", COLOURS[5], "^")):
        found = means.get(name, pd.Series(dtype=float))
        ax.plot(found.index, found, marker, color=colour, label=f"{name}, where converged")
    ax.plot(exact.index, exact, color="black", label="exact")
    ax.axhline(math.log(2), color="black", linewidth=0.8, linestyle="--", label=r"$\ln 2$")
    side = int(rows.side.max()) if len(rows) else 0
    label(ax, "coupling $C$, nats", "$H_1$ per variable, nats", f"{kind}, {side} x {side}")


def _orders(ax: Axes, frame: pd.DataFrame) -> None:
    """Bounds over alpha with ln Z known, and the bounds without noise: H_inf, ln |X| and alpha /
    (alpha - 1) H_inf."""
    rows = _largest(frame, "mixed")
    rows = rows[(rows.coupling == 1) & (rows.instance == 0)]
    rows = rows.assign(place=[1 if a == math.inf else a / (1 + a) for a in rows.alpha])
    for end, marker in (("lower", "^"), ("upper", "v")):
        bound = rows[(rows.estimator == f"{end}, ln Z known") & (rows.alpha != 1)]
        ax.plot(
            bound.place, bound.exact + bound.bias, marker, color="#555555", label=f"right: {end} bound", markersize=4
        )
    exact = rows.drop_duplicates("alpha").sort_values("alpha")
    ax.plot(exact.place, exact.exact, color="black")
    least = exact.exact.min()
    place = np.linspace(0, 1, 100)
    with np.errstate(divide="ignore"):
        ceiling = np.where(place > 0.5, least * place / (2 * place - 1), math.inf)  # alpha / (alpha - 1) H_inf
    ax.plot(place, np.minimum(ceiling, math.log(2)), "k:", linewidth=0.8, label="right: from one MAP call")
    ax.plot(place, np.full(place.size, least), "k:", linewidth=0.8)
    ax.set_xticks([0, 1 / 6, 1 / 3, 2 / 3, 5 / 6, 1], ["0", "0.2", "0.5", "2", "5", r"$\infty$"])
    label(
        ax,
        r"order $\alpha$",
        r"$H_\alpha$ per variable, nats",
        r"mixed, $C$ = 1, $\ln Z$ known",
    )
