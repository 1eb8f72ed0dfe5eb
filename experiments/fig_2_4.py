"""Figure 2.4: MSE of the low-rank bounds U(alpha) as estimators of ln Z, on the models, the noise
and, for belief propagation, the orders of updates of the source."""

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, band, label, panels
from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.models.spin_glass import published_noise, published_spin_glass
from thesis_cli.perturbation.low_rank.low_rank_bounds import power_bounds
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Reading, Tolerance
from thesis_cli.reproduction.measuring import SelectedRows, furthest, lowest, measure, select
from thesis_cli.studies.perturbation.low_rank_mse import best_alpha, mse_curve, sample_variance
from thesis_cli.studies.perturbation.published_messages import SEED, PublishedMaxProduct

TERMS = 100
ALPHAS = np.arange(-20, 21) / 200
SAFE = -1 / (2 * TERMS**0.5)
BLOCK = 10_000

# Percentages beside the curves of the figure, for C = 0, 1/3, 1, 5/3, 7/3, 3.
THIRDS = 0, 1, 3, 5, 7, 9
PUBLISHED = {
    ("attractive", "exact"): (1, 2, 11, 15, 23, 29),
    ("attractive", "belief propagation"): (1, 2, 11, 13, 15, 4),
    ("mixed", "exact"): (1, 1, 9, 10, 11, 12),
}
PROPAGATION = "attractive", "belief propagation"
ALL_PUBLISHED = 1000, 100
DIGITS = 0.02  # percentage points that the six digits of the published values leave open
GRID = 0.0025  # half of the distance between two alphas

CAPTION = """\
MSE of U^(alpha), estimated from M = 100 perturbations, as an estimator of ln Z (K = 1000 \
estimators), against alpha, on one 10 x 10 spin glass for each coupling strength C and kind of \
couplings; bands are two standard errors. A star is the least MSE among alpha >= -0.05 = -1/(2 sqrt \
n), and the percentage in the legend is how much less that is than the MSE at alpha = 0; dashed \
lines are at these two alphas. The figure of the source has the same curves: the models, the noise \
and even the random order of the updates of belief propagation (BP) are its own, and the 18 \
percentages are those that it prints. It reads them as samples saved, which assumes that the MSE \
falls like 1/M; from C = 1 on it does not."""


def tasks(settings):
    """Order 0 of belief propagation is the source's; the others are for comparison."""
    sizes = {"estimators": settings["estimators"], "samples": 100}
    return [
        {"kind": kind, "solver": solver, "coupling": k / 3, "order": order, **sizes}
        for kind, solver in PUBLISHED
        for k in settings["thirds"]
        for order in range(1 if solver == "exact" or k < 3 else settings["orders"])
    ]


def run(seed, kind, solver, coupling, order, estimators, samples):
    """The curve over alpha for one model, from the first perturbations that the source used.

    The sample is the source's own, bit for bit, at K = 1000 estimators from M = 100 samples, and so
    are the updates of belief propagation in order 0. Others come from `seed`.

    Returns a row for each alpha, with the columns of `MseCurve` and: bound, U(alpha) from all
    samples together, with bound_error (K M bound_error^2 is its asymptotic variance);
    variance_ratio, var(U) / (n pi^2/6); optimal, the share of the MAP problems that the solver
    solved; best_alpha, the alpha with the least MSE.
    """
    model = published_spin_glass(coupling, kind, 10, TERMS // 10)
    exact = GridTransfer(model.graph())
    orders, resampling = seed.spawn(2)
    shuffles = SEED if order == 0 else int(orders.generate_state(1)[0])
    used = exact if solver == "exact" else PublishedMaxProduct(model, shuffles)
    values, optimal = [], 0
    for start in range(0, estimators * samples, BLOCK):
        noise = published_noise(coupling, kind, min(BLOCK, estimators * samples - start), start, 10, TERMS // 10)
        found, _ = used.maximise(noise)
        best = found if used is exact else exact.maximise(noise)[0]
        optimal += int((found > best - 1e-9).sum())
        values.append(found)
    u = np.concatenate(values)
    log_z = exact.log_partition_function()
    bounds, errors = power_bounds(u, TERMS, ALPHAS)
    unit = TERMS * np.pi**2 / 6
    variance, variance_error = sample_variance(u)
    repeated = u.reshape(estimators, samples)
    best, best_error = best_alpha(repeated, TERMS, log_z, ALPHAS, np.random.default_rng(resampling))
    return pd.DataFrame(
        {
            "kind": kind,
            "solver": solver,
            "coupling": coupling,
            "order": order,
            "estimators": estimators,
            "samples": samples,
            "log_z": log_z,
            "variance_ratio": variance / unit,
            "variance_ratio_error": variance_error / unit,
            "optimal": optimal / u.size,
            "best_alpha": best,
            "best_alpha_error": best_error,
            **vars(mse_curve(repeated, TERMS, log_z, ALPHAS)),
            "bound": bounds,
            "bound_error": errors,
        }
    )


def _curve(frame, kind, solver, k, order=0):
    """Rows of one model, C = k/3, and of one order of updates; empty if this preset has none."""
    chosen = (frame.kind == kind) & (frame.solver == solver) & (frame.order == order)
    return frame[chosen & np.isclose(frame.coupling, k / 3)]


def _best(rows):
    """The row of least MSE over the alphas of the source, from -1 / (2 sqrt(n)) on."""
    allowed = rows[rows.alpha >= SAFE]
    return allowed.loc[allowed.mse.idxmin()]


def _name(k):
    return f"{k // 3}" if k % 3 == 0 else f"{k}/3"


def plot(frame):
    figure, axes = panels(1, 3, height=4.1, sharey=True)
    for ax, (kind, solver) in zip(axes, PUBLISHED, strict=True):
        for colour, k in zip(COLOURS, THIRDS, strict=False):
            rows = _curve(frame, kind, solver, k)
            if rows.empty:
                continue
            best = _best(rows)
            ax.semilogy(rows.alpha, rows.mse, color=colour, label=f"$C$ = {_name(k)}: {100 * best.saving:.0f}%")
            band(ax, rows.alpha, rows.mse, rows.mse_error, colour)
            ax.plot([best.alpha], [best.mse], "*", color=colour, markersize=7)
        for at in (SAFE, 0):
            line = ax.axvline(at, color="black", linewidth=0.6, linestyle="--")
        label(ax, r"$\alpha$", "", f"{kind}, {solver}")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncol=2, columnspacing=1, handlelength=1.2)
    axes[0].set_ylabel(r"MSE of $\hat{\mathcal{U}}(\alpha)$, nats$^2$, $M$ = 100")
    (star,) = axes[0].plot([], [], "*", color="#555555", markersize=7)
    words = [
        r"least MSE with $\alpha \geq -0.05$; %: how far below that at 0",
        r"$\alpha = -1/(2\sqrt{n})$ and $\alpha = 0$",
    ]
    figure.legend([star, line], words, loc="outside lower center", ncol=2)
    return figure


@measure
def _saving(frame, kind, solver, k):
    """Percentage saved; without sampling error if the sample is all of the source's own."""
    found = _curve(frame, kind, solver, k)
    if found.empty:
        return None
    best = _best(found)
    same = (best.estimators, best.samples) == ALL_PUBLISHED
    return Measurement(100 * best.saving, 0.0 if same else 100 * best.saving_error, error=DIGITS)


def _other_orders(frame):
    """Mean percentage over other orders less that of the source's, the furthest from 0."""
    differences, errors = [], []
    for k in THIRDS:
        savings = [_curve(frame, *PROPAGATION, k, order) for order in sorted(frame.order.unique())]
        savings = np.array([100 * _best(rows).saving for rows in savings if not rows.empty])
        if savings.size > 2:
            differences.append(savings[1:].mean() - savings[0])
            errors.append(savings[1:].std(ddof=1) * (1 + 1 / (savings.size - 1)) ** 0.5)
    return furthest(differences, errors) if differences else None


def _models(frame, solver, least):
    """Curves of the models whose C is at least `least` thirds."""
    found = (_curve(frame, kind, s, k) for kind, s in PUBLISHED if s == solver for k in THIRDS if k >= least)
    return [rows for rows in found if not rows.empty]


def _best_alpha(*panels):
    """The best alpha that is furthest from 0."""
    firsts = SelectedRows(lambda frame: pd.concat(_curve(frame, *panel).head(1) for panel in panels))
    return firsts.number("best_alpha", "best_alpha_error").most_off(0.0, error=GRID)


def _frechet_gain(frame):
    propagated = [rows for rows in _models(frame, "belief propagation", 3) if rows.coupling.iloc[0] < 2.9]
    below = [rows[(rows.alpha >= SAFE) & (rows.alpha < 0)] for rows in _models(frame, "exact", 3) + propagated]
    best = [rows.loc[rows.mse.idxmin()] for rows in below]
    return lowest([100 * b.saving for b in best], [100 * b.saving_error for b in best])


def _more_at_high_coupling(frame):
    differences, errors = [], []
    for kind in ("attractive", "mixed"):
        found = [rows for k in THIRDS[1:] if not (rows := _curve(frame, kind, "exact", k)).empty]
        if len(found) > 1:
            low, high = _best(found[0]), _best(found[-1])
            differences.append(100 * (high.saving - low.saving))
            errors.append(100 * np.hypot(low.saving_error, high.saving_error))
    return lowest(differences, errors)


def _floor(frame):
    """Least (U(0) - ln Z)^2 / MSE(best alpha, M = 100), the first the MSE of U^(0) less its variance."""
    ratios = []
    for rows in _models(frame, "exact", 3):
        zero, best = rows[rows.alpha == 0].iloc[0], _best(rows)
        share = zero.variance / zero.mse
        ratio = (1 - share) / (1 - best.saving)
        errors = zero.variance_error / zero.mse, share * zero.mse_error / zero.mse, best.saving_error
        ratios.append((ratio, ratio * np.linalg.norm(errors) / (1 - best.saving)))
    return Measurement(*min(ratios)) if ratios else None


def _variance_ratio(solver):
    """Largest var(U) / (n pi^2/6)."""
    return select(solver=solver, order=0).number("variance_ratio", "variance_ratio_error").largest()


def _least_slope(frame):
    slopes, errors = [], []  # central differences
    for rows in _models(frame, "exact", 1):
        at = rows.set_index((200 * rows.alpha).round())
        slopes.append(100 * (at.bound[1] - at.bound[-1]))
        errors.append(at.variance_ratio_error[0] * TERMS * np.pi**2 / 12)
    return lowest(slopes, errors)


def _tolerance(row):
    """Where belief propagation fails, the last bit of a message can shift all updates after it."""
    if row["solver"] == "belief propagation" and float(row["optimal"]) < 1:
        return Tolerance(relative=0.5, absolute=0.1)
    return None


GAP = select("coupling > 0", solver="exact").number("bound", "bound_error").minus("log_z")
FIGURE, OWN = "Thesis Figure 2.4", "this project"
CLOSE = Reading("close to 0: within 0.05; at other couplings the best alpha of the figure is -0.1", 0.05)


# fmt: off
CLAIMS = [
    *(
        Claim(f"saved, {name}", FIGURE, "published", "=", percentage, _saving(kind, solver, k),
            f"{name}: percentage saved as printed (1 - MSE(best) / MSE(0), best alpha from -0.05 on)", rounding=0.5,
            scale=1.0, printed=f"{percentage}%")
        for (kind, solver), percentages in PUBLISHED.items()
        for k, percentage in zip(THIRDS, percentages, strict=True)
        if k or (kind, solver) == ("attractive", "exact")  # without couplings the panels have the same maxima
        for name in [f"{kind}, {solver}, C = {_name(k)}" if k else "all panels, C = 0"]
    ),
    Claim("other orders", OWN, "comparison", "=", 0.0, _other_orders,
        "belief propagation with other random orders of updates saves as much (mean over orders less the source's "
        "order, percentage points, at the C from 1 on where it is most standard errors off 0)", scale=2.5),
    *(
        Claim(id, f"{FIGURE}, caption", "comparison", "=", 0.0, _best_alpha(*curves), f"{statement})", scale=0.1,
            reading=CLOSE)
        for id, curves, statement in (
            ("very low coupling", [(*panel, k) for panel in PUBLISHED for k in (0, 1)],
                "in all cases, when coupling is very low, alpha close to 0 is optimal (the best alpha at C = 0 and "
                "1/3 that is furthest from 0"),
            ("high coupling, belief propagation", [(*PROPAGATION, 9)],
                "for belief propagation, alpha close to 0 is optimal at high coupling (the best alpha at C = 3"),
        )
    ),
    Claim("Frechet elsewhere", f"{FIGURE}, caption", "comparison", ">", 0.0, _frechet_gain,
        "where coupling is not very low (C from 1 on, below 3 with belief propagation), alpha < 0 gives more "
        "accurate estimators (least percentage that the best alpha < 0 saves)"),
    Claim("more at high coupling", "Thesis 2.5.3: 'especially in models with higher coupling strengths'",
        "comparison", ">", 0.0, _more_at_high_coupling,
        "alpha < 0 improves accuracy especially at high C (percentage saved at the highest C less that at C = 1/3 "
        "by the exact solver, the lesser of attractive and mixed couplings)"),
    Claim("no number of samples", OWN, "comparison", ">", 1.0, _floor,
        "M = 100 is far from the caption's asymptotic regime: at C from 1 on, U^(0) from any number of samples has "
        "a larger MSE than the best alpha from 100 (least ratio, exact)"),
    Claim("variance of U", "Thesis 2.3.1: 'in our empirical investigations always'",
        "bound", "<", 1.0, _variance_ratio("exact"),
        "var(U) <= n pi^2/6 on every model (their ratio, the largest of the models; without couplings 1)", scale=0.05),
    Claim("variance of U, belief propagation", OWN, "comparison", ">", 1.0, _variance_ratio("belief propagation"),
        "values that belief propagation decodes, which are no maxima, can vary more than n pi^2/6 (largest ratio)"),
    Claim("Proposition 2", "Thesis Proposition 2", "bound", ">", 0.0, GAP.lowest(),
        "ln Z <= U(alpha), alpha from -0.1 to 0.1 (gap in nats at C > 0, where it is fewest standard errors above "
        "0)"),
    Claim("slope at zero", "Thesis 2.3.1: 'the derivative of U(alpha) at 0 is non-negative'",
        "bound", ">", 0.0, _least_slope,
        "the derivative of U(alpha) at 0 is not negative, so that Frechet tricks give tighter bounds (derivative "
        "in nats at C > 0, where it is fewest standard errors above 0)"),
]
# fmt: on

EXPERIMENT = Experiment(
    id="fig-2-4",
    title="MSE of the low-rank bounds U(alpha) as estimators of ln Z on the published spin glasses",
    source="Thesis Figure 2.4",
    version=2,
    presets={
        "quick": {"thirds": [1, 9], "estimators": 40, "orders": 1},
        "paper": {"thirds": list(THIRDS), "estimators": 1000, "orders": 5},
    },
    tasks=tasks,
    run=run,
    plot=plot,
    caption=CAPTION,
    rows=_tolerance,
    claims=CLAIMS,
)
