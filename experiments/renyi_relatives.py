"""Low-rank bounds on Renyi entropies by the relatives of the Gumbel trick (Thesis section 3.3.2)."""

import numpy as np

from thesis_cli.base.figures import COLOURS, label, legend_below, marks, panels
from thesis_cli.models.spin_glass import published_spin_glass
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Reading
from thesis_cli.reproduction.measuring import labelled, select
from thesis_cli.studies.entropy.relatives import bound_rows, error_rows, tempered

KINDS = "attractive", "mixed"
BOUNDING = np.array([-0.25, -0.1, 0, 0.1, 0.25, 0.5])
"""Tricks whose bounds on a small model are measured."""
ESTIMATING = np.concatenate([np.arange(-9, 21) / 200, [0.2, 0.5, 1.0]])
"""Tricks that estimate; Frechet's above -1 / (2 sqrt(n)) = -0.05, where Figure 2.4 ends."""
SMALL, LARGE = 3, 10
"""Sides of the grids."""


def tasks(settings):
    return [
        {"part": part, "kind": kind, "thirds": thirds, "order": order, **settings[part]["sizes"]}
        for part in ("bounds", "errors")
        for kind in KINDS
        for thirds in settings[part]["thirds"]
        for order in settings[part]["orders"]
    ]


def run(seed, part, kind, thirds, order, **sizes):
    """Rows of `bound_rows` or `error_rows`, for a small or large grid made as those of Figure 2.4, of
    coupling C = thirds / 3."""
    side = SMALL if part == "bounds" else LARGE
    model = tempered(published_spin_glass(thirds / 3, kind, side, side).graph(), order)
    if part == "bounds":
        found = bound_rows(model, BOUNDING, sizes["samples"], seed)
    else:
        found = error_rows(model, ESTIMATING, sizes["estimators"], sizes["samples"], seed)
    columns = ["quantity", "trick", "value", "standard_error"]
    return labelled(found, columns, part=part, kind=kind, coupling=thirds / 3, order=order)


def plot(frame):
    figure, axes = panels(2, 2, height=2.5)
    orders = sorted(frame.order.unique())
    styles = dict(zip(orders, zip(COLOURS, "osv^", strict=False), strict=False))
    for ax, kind in zip(axes[0], KINDS, strict=True):
        for shift, (order, (colour, marker)) in enumerate(styles.items()):
            part = SAVINGS.where("trick < 0", kind=kind, order=order).then(_best).per(0.01)(frame)
            at = part.coupling + 0.04 * (shift - 1.5)
            marks(ax, part, at, f"{marker}-", color=colour, label=f"order {order:g}")
        ax.axhline(0, color="black", linewidth=0.6)
        label(ax, "coupling $C$, nats", "MSE saved, %", f"{kind}, {LARGE} x {LARGE}: best Fréchet trick")
    coupling = frame[frame.part == "bounds"].coupling.max()
    for ax, noise, name in ((axes[1, 0], "sum", "$U(b)$"), (axes[1, 1], "average", "$L(b)$")):
        for order, (colour, marker) in styles.items():
            end = "upper" if (noise == "sum") == (order < 1) else "lower"
            found = select(part="bounds", quantity=end, kind="mixed", order=order, coupling=coupling)(frame)
            ax.errorbar(found.trick, found.value.abs(), 2 * found.standard_error, color=colour, marker=marker)
        ax.set(yscale="log")
        low, high = np.log10(ax.get_ylim())
        ax.set_ylim(10 ** np.floor(low), 10 ** np.ceil(high))
        ax.minorticks_off()
        title = f"mixed, {SMALL} x {SMALL}, $C$ = {coupling:g}: bounds by {name}"
        label(ax, "trick $b$", "distance from $H_\\alpha$, nats", title)
    return legend_below(figure, axes[0, 0], 4)


def _best(found):
    """The trick with the least MSE, for each model and order."""
    return found.loc[found.groupby(["kind", "coupling", "order"], sort=False).value.idxmax()]


SAVINGS = select(part="errors", quantity="saving")
"""1 - MSE over the Gumbel trick's."""


def _least_slack(end, tricks):
    """Distance of a bound from the entropy, outward, where it is fewest standard errors, of all
    models, orders and the given tricks."""
    found = select(tricks, part="bounds", quantity=end)
    return found.number(lambda f: f.value if end == "upper" else -f.value, "standard_error").lowest()


def _share_of_frechet(frame):
    """Share of models and orders whose least MSE is that of a Frechet trick.

    The error is that of the cells in which the best trick is within five standard errors of the
    Gumbel trick; half of these count.
    """
    best = SAVINGS.then(_best)(frame)
    clear = best.value > 5 * best.standard_error
    ours, open_ = (clear & (best.trick < 0)).sum(), (~clear).sum()
    return Measurement(float((ours + open_ / 2) / len(best)), error=float(open_ / 2 / len(best)))


CAPTION = """\
Low-rank noise on spin glasses, ln Z known. Top: by how much the best Frechet trick b in [-0.045, \
0) lowers the MSE of the Gumbel trick's estimate of H_alpha from M = 100 MAP problems (bars of two \
standard errors; the points of the four orders are moved apart), on the models of Figure 2.4. \
Bottom: distances of the upper and lower bounds from the exact H_alpha on a 3 x 3 grid with the \
same kind of potentials, over the trick (b < 0 Frechet, 0 Gumbel, above Weibull); below order 1 \
the sum-unary U(b) gives upper bounds, above 1 lower ones, and the average-unary L(b) the others. \
The source states these results in section 3.3.2 and has no such figure."""


# fmt: off
CLAIMS = [
    *(
        Claim(f"{end} bounds, {name}", "Thesis 3.3.2: 'or from its relatives (Chapter 2)'",
            "bound", ">", 0.0, _least_slack(end, tricks),
            f"the low-rank bounds on ln Z_alpha of the {name} tricks give {end} bounds on H_alpha (slack in nats, "
            "at the model, order and trick where it is fewest standard errors above 0; most slacks are some tenths "
            "and more, and where one configuration has nearly all the probability the bound is attained)", scale=0.25)
        for end in ("lower", "upper")
        for name, tricks in (("Frechet", "trick < 0"), ("Weibull", "trick > 0"))
    ),
    Claim("Frechet trick", "Thesis 3.3.2: 'tends to yield estimators with lowest MSE'",
        "comparison", ">", 0.5, _share_of_frechet,
        "with low-rank noise a Frechet trick tends to have the least MSE (share of models of Figure 2.4 and "
        "orders; cases whose best trick is within five standard errors of the Gumbel trick count half, and make up "
        "the error)", reading=Reading("tends to: in more than half of the cases", 0.0)),
    Claim("concentration, variance", "Thesis 3.3.2, Hazan et al. Corollary 8", "bound", "<", 1.0,
        select(part="errors", quantity="variance").largest(),
        "at orders other than 1 the variance of a maximum with n noise terms is at most 4n, as at order 1 "
        "(variance over 4n, the largest of any model and order)"),
    Claim("concentration, tail", "Thesis 3.3.2, Hazan et al. Corollaries 10, 12", "bound", "<", 1.0,
        select(part="errors", quantity="deviation").largest(),
        "at orders other than 1, as at order 1, a mean of M = 100 maxima exceeds its expectation by more than the "
        "deviation of the corollaries with a probability of at most 0.1 (90% quantile of the excess over that "
        "deviation, the largest of any model and order)"),
]
# fmt: on

EXPERIMENT = Experiment(
    id="renyi-relatives",
    title="Low-rank bounds on Renyi entropies by the relatives of the Gumbel trick",
    source="Thesis 3.3.2",
    version=1,
    presets={
        "quick": {
            "bounds": {"thirds": [3], "orders": [0.5, 2], "sizes": {"samples": 2_000}},
            "errors": {"thirds": [5], "orders": [0.5, 2], "sizes": {"estimators": 30, "samples": 100}},
        },
        "paper": {
            "bounds": {"thirds": [3, 9], "orders": [0.25, 0.5, 2, 4], "sizes": {"samples": 200_000}},
            "errors": {
                "thirds": [1, 3, 5, 7, 9],
                "orders": [0.25, 0.5, 2, 4],
                "sizes": {"estimators": 1000, "samples": 100},
            },
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    caption=CAPTION,
    claims=CLAIMS,
)
