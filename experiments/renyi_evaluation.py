"""How useful are perturb-and-MAP estimates of Renyi entropies? What Thesis section 3.5 leaves to future work.

Full rank. Each estimator is repeated K times with M perturbations, and so are the rivals that are given M exact samples
of p. Equal M compares statistical efficiency alone: a perturbation has noise on every configuration, so that finding
its maximum costs as much here as the sum that gives the exact answer. It pays only where something else finds maxima.

Low rank. Bounds on H_alpha of graphs (eqs. 3.15, 3.16), by MAP problems that are truly cheap, beside the exact entropy
and beside message passing (eq. 3.27).

With V = var ln p and M perturbations with shared noise, the estimates of H_1 (limits at alpha = 1) and variances are

    Gumbel        mean of gamma(x*_m)                            (pi^2/6 + V) / M      (Theorem 9)
    Exponential   psi(M) - ln S - sum_m D_m phi(x*_m)            trigamma(M) + 2 V / (M + 1)
    hybrid        psi(M) - ln S - mean of phi(x*_m)              trigamma(M) + V / M

where T_m = exp(-c - max {phi + gamma_m}), S = sum T_m and D_m = T_m / S. For the second, -ln sum T_m(alpha) has the
derivative sum_m D_m phi(x*_m) at alpha = 1. The x*_m are independent of the T_m, and S ~ Gamma(M) / Z is of the D_m,
which are uniform on the simplex: E sum D_m^2 = 2 / (M + 1). So the Exponential trick loses if V > pi^2/6 - 1. The
hybrid takes Gumbel for ln Z_alpha - ln Z, and Exponential for ln Z.
"""

import math

import numpy as np
import pandas as pd
from scipy.special import digamma, logsumexp, polygamma

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.entropy.approximate import approximate_entropies
from thesis_cli.entropy.estimators import LEAST_SETS
from thesis_cli.entropy.exact import exact_entropies
from thesis_cli.entropy.low_rank import TemperedSolvers, low_rank_bounds, shannon_sandwich
from thesis_cli.entropy.maxima import SEPARATE, Noise, entropy_maxima
from thesis_cli.inference.choose import map_solver
from thesis_cli.inference.enumeration import Enumeration
from thesis_cli.inference.sampling import exact_samples
from thesis_cli.models.factor_graph import LogPotentials
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement
from thesis_cli.studies.models.examples import asia, ising, random_3_sat, zipf

ORDERS = np.array([0, 0.25, 0.5, 0.9, 1, 1.1, 2, 5, math.inf])
INNER = [0.25, 0.5, 0.9, 1.1, 2, 5]
BOUNDED = [0, 0.2, 0.5, 2, 5, math.inf]
APPROXIMATED = [0.5, 1, 2, math.inf]
SMALL = 20_000
"""Configurations up to which a perturbation by itself is cheap, as repeated stratified designs want it."""
STRATIFIED_SAMPLES = 100, 1000
M = 1000
"""Perturbations or samples at which estimators are compared in one number."""
ENOUGH = 100
"""Repetitions from which on extremes over many models, alphas and M are told by their standard errors."""
EXACT = 1e-9
"""An RMSE below it, nats, is rounding."""
CURVES = ("Zipf", 0.5), ("geometric", 1.0), ("near-certain", 2.0)
STYLES = {
    "Gumbel, shared": {"color": COLOURS[0], "marker": "o"},
    "Exponential, shared": {"color": COLOURS[1], "marker": "o"},
    "hybrid": {"color": COLOURS[3], "marker": "o"},
    "Gumbel, control variate": {"color": COLOURS[2], "marker": "o"},
    "plug-in": {"color": COLOURS[6], "marker": "s", "linestyle": "--"},
    "moments": {"color": COLOURS[4], "marker": "s", "linestyle": "--"},
}
UNBIASED = (
    *("Gumbel, shared", "Gumbel, independent", "Gumbel, ln Z known", "Gumbel, control variate", "Gumbel, stratified"),
    *("Exponential, shared", "Exponential, ln Z known", "hybrid"),
)
PLUGIN, MILLER, MOMENTS = (("Gumbel, shared", rival) for rival in ("plug-in", "Miller-Madow", "moments"))
CONTROLLED = "Gumbel, control variate", "moments"
NUMBERS = ["bias", "bias_error", "rmse", "rmse_error"]
PLAIN = "geometric", "Zipf", "uniform", "two levels", "near-certain"
KINDS = "attractive", "mixed"
SHIPPED = "asia", "asia, x-ray", "sat-16-60", "ising-4x4"


def tasks(settings):
    return [
        {"part": part, "model": model, "coupling": coupling, "side": side, "sizes": settings[part]["sizes"]}
        for part in ("full rank", "low rank")
        for model, coupling, side in settings[part]["models"]
    ]


def run(seed, part, model, coupling, side, sizes):
    """A row for each estimator or bound, at each alpha and M, in nats.

    `bias` is the mean of the estimates, or the one bound, less the exact entropy; `variance` that of ln p.
    """
    measure = _full_rank if part == "full rank" else _low_rank
    rows = measure(seed, model, coupling, side, **sizes)
    columns = ["instance", "variance", "alpha", "exact", "estimator", "samples", "repetitions", *NUMBERS]
    frame = pd.DataFrame(rows, columns=columns)
    for column, digits in {"exact": 9, "variance": 6, "bias": 6, "bias_error": 3, "rmse": 6, "rmse_error": 3}.items():
        frame[column] = [float(f"{x:.{digits}g}") for x in frame[column]]  # a small file
    for column, content in reversed({"part": part, "model": model, "coupling": coupling, "side": side}.items()):
        frame.insert(0, column, content)
    return frame


def _graph(model, coupling, side, rng):
    if model == "asia":
        return asia()
    if model == "asia, x-ray":
        return asia().condition({6: 0})
    if model == "sat-16-60":
        return random_3_sat(16, 60, np.random.default_rng(2))
    if model == "ising-4x4":
        return ising(4, 4, 1.0, np.random.default_rng(1))
    return random_spin_glass(side, side, coupling, 1.0, model, rng).graph()


def _potentials(model, coupling, side, rng):
    """Of every configuration, not normalised, shape (N,)."""
    if model == "geometric":
        return math.log(0.7) * np.arange(500)
    if model == "Zipf":
        return zipf(10**6, 1.1)
    if model == "uniform":
        return np.zeros(10**6)
    if model == "two levels":
        return np.repeat(np.log([1e4, 1]), [10, 10**5])
    if model == "near-certain":
        return np.repeat(np.log([0.99, 0.01 / 10**4]), [1, 10**4])
    return np.concatenate([block.copy() for block in Enumeration(_graph(model, coupling, side, rng)).blocks()])


def _full_rank(seed, model, coupling, side, samples, repetitions, perturbations, stratified):
    """Up to `repetitions` of every estimator, from `perturbations` in all."""
    tables, shared, apart, draws, strata = seed.spawn(5)
    phi = _potentials(model, coupling, side, np.random.default_rng(tables))
    vector = LogPotentials(phi)
    exact = exact_entropies(vector, ORDERS)
    p = np.exp(phi - exact.log_z)
    surprise = exact.log_z - phi[p > 0]
    variance = p[p > 0] @ (surprise - exact.entropies[ORDERS == 1]) ** 2
    together = entropy_maxima(vector, ORDERS, perturbations, shared)
    alone = entropy_maxima(vector, ORDERS, perturbations, apart, SEPARATE)
    states = exact_samples(vector, perturbations, np.random.default_rng(draws))[0].ravel()
    for m in samples:
        k = min(repetitions, perturbations // m)
        sampled = _Samples(states[: k * m].reshape(k, m), phi - exact.log_z)
        for alpha, entropy in zip(ORDERS, exact.entropies, strict=True):
            found = {**_of_maxima(together, alone, alpha, k, m, exact.log_z), **sampled.estimates(alpha)}
            for name, values in found.items():
                yield 0, variance, alpha, entropy, name, m, k, *_errors(values - entropy)
    if phi.size <= SMALL and stratified:
        for m, child in zip(STRATIFIED_SAMPLES, strata.spawn(len(STRATIFIED_SAMPLES)), strict=True):
            found = _stratified(vector, m, child.spawn(stratified))
            for alpha, entropy, values in zip(ORDERS, exact.entropies, found.T, strict=True):
                row = 0, variance, alpha, entropy, "Gumbel, stratified", m, stratified
                yield *row, *_errors(values - entropy)


def _errors(errors):
    """Bias, RMSE and their standard errors; an estimate that can be infinite has neither."""
    if not np.isfinite(errors).all():
        return math.inf, math.nan, math.inf, math.nan
    root, squares = math.sqrt(errors.size), errors**2
    rmse = math.sqrt(squares.mean())
    return errors.mean(), errors.std(ddof=1) / root, rmse, squares.std(ddof=1) / root / (2 * rmse) if rmse else 0.0


def _gumbel(values):
    """Estimates of ln Z from maxima of phi + gamma, shape (K, M)."""
    return values.mean(axis=1)


def _exponential(values):
    """The same by the Exponential trick, its bias taken off."""
    return digamma(values.shape[1]) - logsumexp(-np.euler_gamma - values, axis=1)


def _controlled(top, bottom, log_z):
    """ln Z_alpha with ln Z's estimate as control variate; each half takes its coefficient from the other."""
    tops, bottoms = (v.reshape(len(v), -1, 2).transpose(2, 0, 1) for v in (top, bottom))
    means = bottoms.mean(axis=2)
    centred = bottoms - means[..., np.newaxis]
    best = (tops * centred).sum(axis=2) / (centred**2).sum(axis=2)
    return (tops.mean(axis=2) - best[::-1] * (means - log_z)).mean(axis=0)


def _of_maxima(together, alone, alpha, k, m, log_z):
    """Name -> K estimates of H_alpha from M perturbations each; what `renyi_entropy` gives, vectorised.

    One differs: at alpha = 1, `renyi_entropy` with the Exponential trick is the hybrid, and `Exponential, shared` here
    is the limit of its neighbours.
    """

    def first(values):
        return values[: k * m].reshape(k, m)

    bottom, potential = first(together.at_one), first(together.potential)
    gumbel, exponential = _gumbel(bottom), _exponential(bottom)
    if alpha == 1:
        clocks = np.exp(-bottom - logsumexp(-bottom, axis=1, keepdims=True))
        mean = potential.mean(axis=1)
        return {
            "Gumbel, shared": gumbel - mean,
            "Exponential, shared": exponential - (clocks * potential).sum(axis=1),
            "hybrid": exponential - mean,
            "Gumbel, control variate": log_z - mean,
        }
    if alpha == math.inf:
        return {"Gumbel, shared": gumbel - together.highest, "Exponential, shared": exponential - together.highest}

    def entropy(log_z_alpha, log_z):
        return (log_z_alpha - alpha * log_z) / (1 - alpha)

    top, top_alone, bottom_alone = first(together.column(alpha)), first(alone.column(alpha)), first(alone.at_one)
    bias = math.log(m) - digamma(m)
    shared, known = entropy(_exponential(top), exponential), entropy(_exponential(top), log_z)
    controlled = {"Gumbel, control variate": entropy(_controlled(top, bottom, log_z), log_z)} if m >= LEAST_SETS else {}
    return {
        **controlled,
        "Gumbel, shared": entropy(_gumbel(top), gumbel),
        "Gumbel, independent": entropy(_gumbel(top_alone), _gumbel(bottom_alone)),
        "Exponential, shared": shared,
        "Exponential, shared, biased": shared + bias,
        "Exponential, independent, biased": entropy(_exponential(top_alone), _exponential(bottom_alone)) + bias,
        "hybrid": (_gumbel(top) - gumbel) / (1 - alpha) + exponential,
        "Gumbel, ln Z known": entropy(_gumbel(top), log_z),
        "Exponential, ln Z known": known,
        "Exponential, ln Z known, biased": known + bias / (1 - alpha),
    }


def _stratified(vector, m, seeds):
    """Estimates with shared noise from stratified designs of M perturbations, shape (K, alphas)."""
    found = np.empty((len(seeds), ORDERS.size))
    for row, seed in zip(found, seeds, strict=True):
        maxima = entropy_maxima(vector, ORDERS, m, seed, Noise(design="stratified"))
        log_z = maxima.at_one.mean()
        inner = np.isin(ORDERS, maxima.orders) & (ORDERS != 1)
        a = ORDERS[inner]
        row[inner] = (maxima.values[:, maxima.orders != 1].mean(axis=0) - a * log_z) / (1 - a)
        row[ORDERS == 1] = log_z - maxima.potential.mean()
        row[np.isinf(ORDERS)] = log_z - maxima.highest
    return found


class _Samples:
    """Estimates from K sets of M exact samples: by their frequencies, and, with ln Z known, by p at them."""

    def __init__(self, states, log_p):
        self._k, self._m = states.shape
        self._log_p = log_p[states]
        ordered = np.sort(states, axis=1)
        new = np.ones(states.shape, bool)
        new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
        starts = np.flatnonzero(new)
        self._counts, self._set = np.diff(starts, append=states.size), starts // self._m

    def _sum(self, weights):
        """Over the configurations seen in each set, shape (K,)."""
        return np.bincount(self._set, weights, self._k)

    def estimates(self, alpha):
        m, shares = self._m, self._counts / self._m
        if alpha == 1:
            plugin = self._sum(-shares * np.log(shares))
            seen = np.bincount(self._set, minlength=self._k)
            return {
                "plug-in": plugin,
                "Miller-Madow": plugin + (seen - 1) / (2 * m),
                "moments": -self._log_p.mean(axis=1),
            }
        if alpha == math.inf:
            most = np.maximum.reduceat(shares, np.searchsorted(self._set, np.arange(self._k)))
            return {"plug-in": -np.log(most), "moments": -self._log_p.max(axis=1)}
        moments = (logsumexp((alpha - 1) * self._log_p, axis=1) - math.log(m)) / (1 - alpha)
        found = {"plug-in": np.log(self._sum(shares**alpha)) / (1 - alpha), "moments": moments}
        if alpha == 2:
            with np.errstate(divide="ignore"):
                found["pairs"] = -np.log(self._sum(self._counts * (self._counts - 1) / (m * (m - 1))))
        return found


def _low_rank(seed, model, coupling, side, instances, samples):
    """Bounds, Shannon's sandwich and message passing, for some random models of one family."""
    for instance, child in enumerate(seed.spawn(instances if model not in SHIPPED else 1)):
        tables, noise, halves = child.spawn(3)
        graph = _graph(model, coupling, side, np.random.default_rng(tables))
        exact, solvers = exact_entropies(graph, [*BOUNDED, 1]), TemperedSolvers(_solver, graph)
        entropy = dict(zip(exact.orders, exact.entropies, strict=True))

        def row(alpha, name, count, value, error, entropy=entropy, instance=instance):
            numbers = value - entropy[alpha], error, math.nan, math.nan
            return instance, math.nan, alpha, entropy[alpha], name, count, 1, *numbers

        for name, log_z in (("known", exact.log_z), ("unknown", None)):
            bounds = low_rank_bounds(solvers, BOUNDED, samples, _same(noise), log_z=log_z)
            bounds.append(shannon_sandwich(solvers, samples, _same(halves), log_z=log_z))
            for b in bounds:
                for end, e in (("lower", b.lower), ("upper", b.upper)):
                    yield row(b.order, f"{end}, ln Z {name}", samples, e.value, e.standard_error)
        for name in ("bethe", "trw"):
            for alpha, e in zip(APPROXIMATED, approximate_entropies(graph, APPROXIMATED, name), strict=True):
                yield row(alpha, e.method + e.kind.removeprefix("approximation"), 0, e.value, 0.0)


def _solver(graph):
    return map_solver(graph, exact=True)[0]


def _same(seed):
    """A copy, whose children are those that the seed itself would have."""
    return np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key)


def _where(frame, part, **where):
    """The rows of one part that have these values in these columns."""
    rows = frame[frame.part == part]
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows


def plot(frame):
    figure, axes = panels(3, 3, height=2.8)
    for ax, (model, alpha) in zip(axes[0], CURVES, strict=True):
        rows = _where(frame, "full rank", model=model, alpha=alpha)
        for name, style in STYLES.items():
            curve = rows[(rows.estimator == name) & (rows.rmse > EXACT)]
            ax.errorbar(curve.samples, curve.rmse, yerr=2 * curve.rmse_error, label=name, **style)
        _log_axes(ax)
        label(ax, "perturbations or samples $M$", "RMSE, nats", rf"{model}, $\alpha$ = {alpha:g}")
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
    for ax, place in ((axes[0, 0], "upper"), (axes[2, 0], "lower")):
        figure.legend(*ax.get_legend_handles_labels(), loc=f"outside {place} center", ncol=3)
    return figure


def _log_axes(ax):
    """Both logarithmic, the vertical one with a labelled decade at each end."""
    ax.set(xscale="log", yscale="log")
    low, high = np.log10(ax.get_ylim())
    ax.set_ylim(10 ** np.floor(low), 10 ** np.ceil(high))
    ax.minorticks_off()


def _map(ax, frame, name, rival, title):
    """log10 of the ratio of RMSEs, models down and alphas across; grey where both are exact or one is absent."""
    rows = _where(frame, "full rank", samples=M)
    table = rows.pivot_table(index=["model", "coupling"], columns=["estimator", "alpha"], values="rmse", sort=False)
    table = table.reindex(columns=pd.MultiIndex.from_product([[name, rival], ORDERS]))
    own, other = (table[n].where(table[n] > EXACT, 0).where(table[n].notna()) for n in (name, rival))
    with np.errstate(divide="ignore"):
        ratio = np.log10(own / other)
    ax.set_facecolor("#BBBBBB")
    ax.grid(visible=False)
    image = ax.pcolormesh(ratio.clip(-9, 9).to_numpy(), cmap="RdBu_r", vmin=-2, vmax=2)
    ax.invert_yaxis()
    ax.set_xticks(np.arange(ORDERS.size) + 0.5, ["0", ".25", ".5", ".9", "1", "1.1", "2", "5", r"$\infty$"], fontsize=6)
    names = [f"{model}, {coupling:g}" if coupling else model for model, coupling in table.index]
    ax.set_yticks(np.arange(len(names)) + 0.5, names, fontsize=6)
    label(ax, r"$\alpha$", "", title)
    return image


def _variances(ax, frame):
    """M times the MSE at alpha = 1 over V, and the formulas at the top of this file for large M."""
    rows, unit = _where(frame, "full rank", samples=M, alpha=1.0), math.pi**2 / 6
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


def _largest(frame, kind):
    """Rows of the largest grids of a kind; exact entropy and bias are per variable."""
    rows = _where(frame, "low rank", model=kind)
    rows = rows[rows.side == rows.side.max()]
    return rows.assign(exact=rows.exact / rows.side**2, bias=rows.bias / rows.side**2)


def _sandwich(ax, frame, kind):
    """Shannon's entropy and what encloses it, means over models; of message passing the mean error is added to it."""
    rows = _largest(frame, kind)
    rows = rows[rows.alpha == 1]
    exact = rows.groupby("coupling").exact.mean()
    means = rows.groupby(["estimator", "coupling"]).bias.mean() + exact
    for name, colour in (("unknown", COLOURS[5]), ("known", COLOURS[0])):
        low, high = (means.get(f"{end}, ln Z {name}", pd.Series(dtype=float)) for end in ("lower", "upper"))
        ax.fill_between(low.index, low, high, color=colour, alpha=0.35, label=rf"bounds, $\ln Z$ {name}")
    for name, colour, marker in (("Bethe", COLOURS[2], "s"), ("TRW", COLOURS[3], "^")):
        found = means.get(name, pd.Series(dtype=float))
        ax.plot(found.index, found, marker, color=colour, label=f"{name}, where converged")
    ax.plot(exact.index, exact, color="black", label="exact")
    ax.axhline(math.log(2), color="black", linewidth=0.6, linestyle=":")
    side = int(rows.side.max()) if len(rows) else 0
    label(ax, "coupling $C$, nats", "$H_1$ per variable, nats", f"{kind}, {side} x {side}")


def _orders(ax, frame):
    """Bounds over alpha with ln Z known, beside those without noise: H_inf, ln |X| and alpha / (alpha - 1) H_inf."""
    rows = _largest(frame, "mixed")
    rows = rows[(rows.coupling == 1) & (rows.instance == 0)]
    rows = rows.assign(place=[1 if a == math.inf else a / (1 + a) for a in rows.alpha])
    for end, marker in (("lower", "^"), ("upper", "v")):
        bound = rows[(rows.estimator == f"{end}, ln Z known") & (rows.alpha != 1)]
        height = (bound.exact + bound.bias).clip(lower=-0.1)
        ax.plot(bound.place, height, marker, color=COLOURS[0], label=f"{end} bound", markersize=4)
    exact = rows.drop_duplicates("alpha").sort_values("alpha")
    ax.plot(exact.place, exact.exact, color="black")
    least = exact.exact.min()
    place = np.linspace(0, 1, 100)
    with np.errstate(divide="ignore"):
        ceiling = np.where(place > 0.5, least * place / (2 * place - 1), math.inf)  # alpha / (alpha - 1) H_inf
    ax.plot(place, np.minimum(ceiling, math.log(2)), "k:", linewidth=0.8)
    ax.plot(place, np.full(place.size, least), "k:", linewidth=0.8)
    ax.set_xticks([0, 1 / 6, 1 / 3, 2 / 3, 5 / 6, 1], ["0", "0.2", "0.5", "2", "5", r"$\infty$"])
    label(
        ax,
        r"$\alpha$, spaced as $\alpha / (1 + \alpha)$",
        r"$H_\alpha$ per variable, nats",
        r"mixed, $C$ = 1, $\ln Z$ known",
    )


def _cells(frame, *names, orders=ORDERS, repetitions=ENOUGH):
    """Full-rank rows of some estimators side by side: a column (what, name) for each number."""
    rows = frame[(frame.part == "full rank") & frame.estimator.isin(names) & frame.alpha.isin(orders)]
    rows = rows[rows.repetitions >= repetitions]
    index = ["model", "coupling", "variance", "exact", "alpha", "samples"]
    table = rows.pivot_table(index=index, columns="estimator", values=NUMBERS)
    return table.reindex(columns=pd.MultiIndex.from_product([NUMBERS, names])).dropna()


def _ratios(cells, name, rival):
    """Of RMSEs, and their standard errors as if the two were independent, which is on the safe side."""
    own, other = cells.rmse[name], cells.rmse[rival]
    ratio = own / other
    return ratio, ratio * np.hypot(cells.rmse_error[name] / own, cells.rmse_error[rival] / other)


def _worst_mse(name, rival, orders):
    """The ratio of MSEs that exceeds 1 most in its standard errors, of all models and M."""

    def measure(frame):
        cells = _cells(frame, name, rival, orders=orders)
        if cells.empty:
            return None
        ratio, error = _ratios(cells[(cells.rmse > EXACT).all(axis=1)], name, rival)
        ratio, error = ratio**2, 2 * ratio * error
        at = ((ratio - 1) / error).idxmax()
        return Measurement(ratio[at], error[at])

    return measure


def _largest_ratio(name, rival, alpha, model=None):
    """Of RMSEs at M = 1000: of one model, or the largest of those with over ten times as many configurations."""

    def measure(frame):
        cells = _cells(frame, name, rival, orders=[alpha], repetitions=1)
        models, exact, m = (cells.index.get_level_values(level) for level in ("model", "exact", "samples"))
        cells = cells[(m == M) & ((exact > math.log(10 * M)) if model is None else (models == model))]
        if cells.empty:
            return None
        ratio, error = _ratios(cells, name, rival)
        at = ratio.idxmax()
        return Measurement(ratio[at], error[at])

    return measure


def _largest_bias(frame):
    """In standard errors, of all unbiased estimators, models, alphas and M."""
    rows = frame[(frame.part == "full rank") & (frame.rmse > EXACT) & (frame.repetitions >= ENOUGH)]
    rows = rows[rows.estimator.isin(UNBIASED) | ((rows.estimator == "moments") & (rows.alpha == 1))]
    return Measurement(float((rows.bias / rows.bias_error).abs().max()))


def _variance_at_one(name, factor):
    """MSE over trigamma(M) + V factor(M) at alpha = 1: the one furthest from 1 in its standard errors."""

    def measure(frame):
        cells = _cells(frame, name, orders=[1])
        m, v = (cells.index.get_level_values(level).to_numpy() for level in ("samples", "variance"))
        rmse, error = cells.rmse[name].to_numpy(), cells.rmse_error[name].to_numpy()
        expected = polygamma(1, m) + v * factor(m)
        ratio, error = rmse**2 / expected, 2 * rmse * error / expected
        at = np.abs((ratio - 1) / error).argmax()
        return Measurement(ratio[at], error[at])

    return measure


def _largest_rise(frame):
    """Of the mean estimate with shared noise, from one alpha to the next."""
    cells = _cells(frame, "Gumbel, shared").reset_index()
    cells["mean", ""] = cells.exact + cells.bias["Gumbel, shared"]
    means = cells.pivot(index=["model", "coupling", "samples"], columns="alpha", values="mean")
    return Measurement(float(means.diff(axis=1).max().max()))


def _slack(end, shannon):
    """How far outside the exact entropy a bound is, the least in its standard errors, ln Z known or not."""

    def measure(frame):
        rows = frame[(frame.part == "low rank") & frame.estimator.str.startswith(end)]
        rows = rows[(rows.alpha == 1) == shannon]
        slack = rows.bias if end == "upper" else -rows.bias
        at = (slack / rows.bias_error.clip(lower=EXACT)).idxmin()
        return Measurement(slack[at], rows.bias_error[at])

    return measure


def _bounds(frame, alpha):
    """Numbers at one alpha of each low-rank model, a column for each estimator; their errors; exact entropies."""
    keys = ["model", "coupling", "side", "instance"]
    rows = frame[frame.part == "low rank"].assign(value=lambda rows: rows.exact + rows.bias)
    exact = rows.drop_duplicates([*keys, "alpha"]).pivot(index=keys, columns="alpha", values="exact")
    rows = rows[rows.alpha == alpha]
    return *(rows.pivot(index=keys, columns="estimator", values=v) for v in ("value", "bias_error")), exact


def _best_bound(name, alpha, gain):
    """The largest gain(bound, exact entropies), which is linear in the bound."""

    def measure(frame):
        values, errors, exact = _bounds(frame, alpha)
        gains = gain(values[name], exact)
        at = gains.idxmax()
        return Measurement(gains[at], abs(gain(values[name] + errors[name], exact)[at] - gains[at]))

    return measure


def _width(name):
    """Median width of the Shannon sandwich, in units of what is known without it: [H_inf, ln |X|] or [0, ln |X|]."""

    def measure(frame):
        values, _, exact = _bounds(frame, 1)
        trivial = exact[0] - (exact[math.inf] if name == "known" else 0)
        width = values[f"upper, ln Z {name}"] - values[f"lower, ln Z {name}"]
        return Measurement(float((width / trivial).median()))

    return measure


def _beside_bethe(frame):
    """Median error of Bethe's H_1, where it converged, over the width of the sandwich with ln Z known."""
    values, _, exact = _bounds(frame, 1)
    width = values["upper, ln Z known"] - values["lower, ln Z known"]
    return Measurement(float(((values["Bethe"] - exact[1]).abs() / width).median()))


def _impossible(frame):
    """Least entropy that converged message passing gave on a 10 x 10 grid, nats."""
    rows = frame[frame.estimator.isin(["Bethe", "TRW"]) & (frame.side == 10)]
    return None if rows.empty else Measurement(float((rows.exact + rows.bias).min()))


OURS = "beyond the source"


def _mse_claim(id, source, statement, name, rival, orders, finding=""):
    statement = f"{statement} (ratio of MSEs that exceeds 1 most in its standard errors)"
    return Claim(id, source, statement, 1.0, "<", _worst_mse(name, rival, orders), finding=finding)


def _rmse_claim(id, statement, names, model, alpha, published=1.0, source=OURS):
    where = f"{model or 'largest'}, alpha = {alpha:g}, M = {M}"
    statement = f"{statement} ({names[0]} over {names[1]}, {where}: ratio of RMSEs)"
    return Claim(id, source, statement, published, "<" if id[0] == "w" else ">", _largest_ratio(*names, alpha, model))


EXPERIMENT = Experiment(
    id="renyi-evaluation",
    title="How useful perturb-and-MAP estimates and bounds of Renyi entropies are",
    source="Thesis 3.5 (future work)",
    version=1,
    presets={
        "quick": {
            "full rank": {
                "models": [["geometric", 0, 0], ["Zipf", 0, 0], ["near-certain", 0, 0]],
                "sizes": {"samples": [10, 1000], "repetitions": 200, "perturbations": 40_000, "stratified": 0},
            },
            "low rank": {
                "models": [["attractive", 1, 3], ["mixed", 1, 3], ["mixed", 3, 3]],
                "sizes": {"instances": 1, "samples": 200},
            },
        },
        "paper": {
            "full rank": {
                "models": [
                    *([name, 0, 0] for name in PLAIN),
                    *([kind, c, 4] for kind in KINDS for c in (0.5, 1, 3)),
                    *([name, 0, 0] for name in SHIPPED),
                ],
                "sizes": {
                    "samples": [10, 30, 100, 300, 1000, 3000],
                    "repetitions": 1000,
                    "perturbations": 500_000,
                    "stratified": 200,
                },
            },
            "low rank": {
                "models": [
                    *([kind, c, side] for side in (4, 10) for kind in KINDS for c in (0.5, 1, 2, 3)),
                    *([name, 0, 0] for name in SHIPPED if name != "sat-16-60"),
                ],
                "sizes": {"instances": 3, "samples": 300},
            },
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    claims=[
        Claim(
            "unbiased",
            "Thesis eqs. 3.8, 3.12, 3.13, 3.17",
            "estimators said to be unbiased are, the debiased, controlled and stratified ones among them (largest bias "
            "of all models, alphas and M, standard errors)",
            5.0,
            "<",
            _largest_bias,
        ),
        _mse_claim(
            "Exponential trick, ln Z known",
            "Thesis 3.3.2",
            "the Exponential trick, bias and all, has a lower MSE than the Gumbel trick",
            "Exponential, ln Z known, biased",
            "Gumbel, ln Z known",
            INNER,
        ),
        _mse_claim(
            "Exponential trick, independent noise",
            "Thesis 3.3.2",
            "also with ln Z unknown and independent noise",
            "Exponential, independent, biased",
            "Gumbel, independent",
            INNER,
        ),
        _mse_claim(
            "Exponential trick, shared noise",
            "Thesis 3.3.2",
            "also with ln Z unknown and shared noise",
            "Exponential, shared, biased",
            "Gumbel, shared",
            INNER,
            finding="3.3.2, the Exponential trick with shared noise",
        ),
        *(
            Claim(
                f"variance at 1, {name}",
                OURS,
                f"the variance of {name} at alpha = 1 is {formula}, V = var ln p (ratio, furthest in its errors)",
                1.0,
                "=",
                _variance_at_one(name, factor),
            )
            for name, formula, factor in (
                ("Exponential, shared", "trigamma(M) + 2 V / (M + 1)", lambda m: 2 / (m + 1)),
                ("hybrid", "trigamma(M) + V / M", lambda m: 1 / m),
            )
        ),
        _mse_claim(
            "hybrid",
            OURS,
            "Gumbel for ln Z_alpha - ln Z with Exponential for ln Z beats Gumbel for both, from alpha = 0.9 on",
            "hybrid",
            "Gumbel, shared",
            [0.9, 1, 1.1, 2, 5],
        ),
        _mse_claim(
            "stratified noise", OURS, "stratified noise does not lose", "Gumbel, stratified", "Gumbel, shared", ORDERS
        ),
        Claim(
            "falling means",
            "Thesis 3.2.1",
            "mean estimates with shared noise do not rise with alpha, as H_alpha does not (largest rise, nats)",
            0.0,
            "<",
            _largest_rise,
            rounding=2e-5,  # of the digits that the rows have
        ),
        _rmse_claim("wins: support size", "orders of magnitude ahead", PLUGIN, None, 0.0, 0.01, "Thesis 3.3.1"),
        _rmse_claim("wins: min-entropy", "also without a mode", PLUGIN, "uniform", math.inf, 0.01, "Thesis 3.3.1"),
        _rmse_claim("wins: spread out", "ahead where M samples miss much of p", PLUGIN, "Zipf", 1.0),
        _rmse_claim("wins: Miller-Madow", "also of a first-order correction", MILLER, "Zipf", 1.0),
        _rmse_claim("wins: small alpha", "ahead where the rare counts, ln Z known", CONTROLLED, "geometric", 0.5),
        _rmse_claim("loses: geometric", "behind where M samples see most of p", PLUGIN, "geometric", 1.0),
        _rmse_claim("loses: collisions", "also at 2", PLUGIN, "geometric", 2.0),
        _rmse_claim("loses: asia", "also on a real network", PLUGIN, "asia", 2.0),
        _rmse_claim("loses: few solutions", "behind where M is far above the support", PLUGIN, "sat-16-60", 1.0),
        _rmse_claim("loses: low entropy", "behind where entropy is low", PLUGIN, "near-certain", 2.0),
        _rmse_claim("loses: likely mode", "most at inf", PLUGIN, "near-certain", math.inf),
        _rmse_claim("loses: ln Z known", "behind what may use ln Z", MOMENTS, "near-certain", 2.0),
        _rmse_claim("loses: both know ln Z", "even with a control variate", CONTROLLED, "near-certain", 2.0),
        *(
            Claim(
                f"low rank, {id}",
                source,
                f"{statement} in expectation, ln Z known or not (slack lowest in its standard errors, nats)",
                0.0,
                ">",
                _slack(end, shannon),
                EXACT,
            )
            for id, shannon, end, source, statement in (
                ("lower", False, "lower", "Thesis eq. 3.15", "lower bounds are at most H_alpha"),
                ("upper", False, "upper", "Thesis eq. 3.15", "upper bounds are at least H_alpha"),
                ("Shannon, lower", True, "lower", "Thesis eq. 3.16", "the lower end is at most H_1"),
                ("Shannon, upper", True, "upper", "Thesis eq. 3.16", "the upper end is at least H_1"),
            )
        ),
        *(
            Claim(f"low rank, {id}", OURS, statement, published, relation, measure)
            for id, statement, published, relation, measure in (
                (
                    "width, ln Z known",
                    "with ln Z known the Shannon sandwich is narrower than [H_inf, ln |X|], which takes one MAP call "
                    "(ratio of widths, median of models)",
                    1.0,
                    "<",
                    _width("known"),
                ),
                (
                    "width, ln Z unknown",
                    "with ln Z unknown it is little narrower than [0, ln |X|] (ratio of widths, median of models)",
                    0.7,
                    ">",
                    _width("unknown"),
                ),
                (
                    "lower end, ln Z unknown",
                    "and its lower end is next to 0 (largest share of H_1)",
                    0.1,
                    "<",
                    _best_bound("lower, ln Z unknown", 1, lambda bound, exact: bound / exact[1]),
                ),
                (
                    "upper bound at 2",
                    "with ln Z known the upper bound at alpha = 2 is next to 2 H_inf, which takes one MAP call "
                    "(largest gain, share)",
                    0.1,
                    "<",
                    _best_bound("upper, ln Z known", 2, lambda bound, exact: 1 - bound / (2 * exact[math.inf])),
                ),
                (
                    "lower bound at 1/2",
                    "and the lower bound at alpha = 1/2 is below H_inf (largest difference, nats)",
                    0.0,
                    "<",
                    _best_bound("lower, ln Z known", 0.5, lambda bound, exact: bound - exact[math.inf]),
                ),
                (
                    "beside Bethe",
                    "Bethe's H_1, where it converged, is far closer than the sandwich with ln Z known is wide (error "
                    "over width, median of models)",
                    0.1,
                    "<",
                    _beside_bethe,
                ),
                (
                    "impossible",
                    "but converged message passing can be impossible, as bounds cannot (least entropy, nats)",
                    0.0,
                    "<",
                    _impossible,
                ),
            )
        ),
    ],
)
