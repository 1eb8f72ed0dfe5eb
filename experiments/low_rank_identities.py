"""Bounds, clamping and entropy by low-rank perturbations: each statement on small models whose sums are enumerated.

Beside what the source states, two facts that it does not. U(alpha) never falls as alpha rises: the entropy functional
of e^{-alpha U} is at most the sum of those over the noise of one variable at a time (its tensorization), and given the
rest U is a Gumbel variable of that noise; this is the sign of the derivative. And with s = -alpha in (0, 1)

    exp(s U(alpha)) = sum_x exp(s phi(x)) P(x is the maximiser | gamma_i(x_i) = -ln G_i - c, G_i ~ Gamma(1 - s)),

so that U(alpha) can be measured down to alpha = -1, where it is ln Z, though e^{-alpha U} has no variance there.
"""

import math

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.inference.choose import map_solver
from thesis_cli.inference.elimination import Elimination
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.perturbation.low_rank import low_rank_maxima
from thesis_cli.perturbation.low_rank_bounds import power_bounds, second_moment, slope_at_zero
from thesis_cli.perturbation.noise import gumbel
from thesis_cli.perturbation.subsets import edges, with_subset_variables
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement

SIDE = 3
TABLE = 3, 2, 4
ALPHAS = np.array([-0.25, -0.2, -0.15, -0.1, -0.05, 0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2])
TILTED = np.array([-0.99, -0.95, -0.9, -0.8, -0.7, -0.6, -0.5, -0.45, -0.4, -0.3, -0.25])
CLAMPED = np.array([-0.2, 0, 0.5])
SUBSET = np.array([-0.2, 0, 1])
STEP = 0.01
PLATEAU = 10_000
LIMITS = [["uniform", 0], ["one configuration", 1], ["plateau", 0]]
FIXED = [kind for kind, _ in LIMITS]
PRODUCTS = "independent", "uniform", "one configuration"


def tasks(settings):
    sizes = {name: settings[name] for name in ("samples", "clamped_samples")}
    return [
        {"kind": kind, "strength": strength, "model": model, **sizes}
        for kind, strength in settings["families"]
        for model in range(1 if kind in FIXED else settings["models"])
    ]


def _graph(kind, strength, rng):
    """A 3 x 3 spin glass with fields from [-1, 1], a table of normal log-potentials with a quarter -inf, or a limit.

    `plateau` has one variable, with 10,000 states of equal probability that share as much as one more state has.
    """
    if kind in ("attractive", "mixed", "independent"):
        return random_spin_glass(SIDE, SIDE, strength, 1.0, "mixed" if kind == "mixed" else "attractive", rng).graph()
    if kind == "plateau":
        return FactorGraph([PLATEAU + 1], [Factor((0,), np.append(np.zeros(PLATEAU), math.log(PLATEAU)))])
    table = strength * rng.standard_normal(TABLE)
    if kind == "table":
        table[rng.random(TABLE) < 0.25] = -np.inf
        table[0, 0, 0] = 0
    if kind == "one configuration":
        table[...] = -np.inf
        table[1, 1, 1] = strength
    return FactorGraph(TABLE, [Factor((0, 1, 2), table)])


def run(seed, kind, strength, model, samples, clamped_samples):
    """A row for each number measured on one model; bounds are given less ln Z, in nats."""
    children = iter(seed.spawn(16))
    graph = _graph(kind, strength, np.random.default_rng(next(children)))
    if kind == "plateau":
        rows = _collected_noise(low_rank_maxima(Elimination(graph), samples // 50, next(children)))
    else:
        solver = map_solver(graph, exact=True)[0]
        states = np.indices(graph.cardinalities).reshape(len(graph.cardinalities), -1).T
        phi = graph.log_potential(states)
        upper = low_rank_maxima(solver, samples, next(children))
        lower = low_rank_maxima(solver, samples, next(children), scale="average")
        rows = [
            *_curves(upper, lower, phi),
            *_tilted(solver, states, phi, samples, next(children)),
            *_variance(upper),
            *_collected_noise(upper),
            *_clamping(graph, phi, clamped_samples, np.random.default_rng(next(children))),
            *_subsets(graph, states, phi, samples // 10, next(children)),
            *_pairs(graph, upper, phi, samples // 2, next(children)),
            *_entropies(graph, upper, lower, phi),
            *_derivatives(graph, upper, samples // 2, next(children)),
        ]
    frame = pd.DataFrame(rows, columns=["quantity", "alpha", "size", "value", "standard_error"])
    for column, content in reversed({"kind": kind, "strength": strength, "model": model}.items()):
        frame.insert(0, column, content)
    return frame


def _mean(values):
    return float(values.mean()), float(values.std(ddof=1)) / math.sqrt(values.size)


def _influence(values, alpha):
    """Of each sample, first axis, on the sample version of U(alpha); its spread is the standard error."""
    if alpha == 0:
        return values - values.mean(axis=0)
    powers = np.exp(-alpha * (values - values.mean(axis=0)))
    return (1 - powers / powers.mean(axis=0)) / alpha


def _curves(upper, lower, phi):
    """U(alpha) and L(alpha) where a sample mean of e^{-alpha U} can be trusted, and their steps from alpha to alpha."""
    log_z, n, m = logsumexp(phi), upper.terms, upper.map_calls
    alphas = ALPHAS[[second_moment(a, n) < m / 1000 for a in ALPHAS]]
    for name, values, divisor in (("U", upper.values, 1), ("L", n * lower.values, n)):
        bounds, errors = power_bounds(values, n, alphas)
        influences = np.stack([_influence(values, a) for a in alphas])
        steps = np.diff(influences, axis=0).std(axis=1) / math.sqrt(m)
        for a, b, e in zip(alphas, bounds, errors, strict=True):
            yield name, a, n, b / divisor - log_z, e / divisor
        for a, step, e in zip(alphas[1:], np.diff(bounds), steps, strict=True):
            yield f"{name} step", a, n, step / divisor, e / divisor
        near, _ = power_bounds(values, n, np.array([-1e-6, 1e-6]))
        yield f"{name} limit at 0", 0, n, np.abs(near - values.mean()).max() / divisor, 0
    one, other = n * lower.values[: m // 2], n * lower.values[m // 2 :]
    bounds, errors = power_bounds(one, 0, alphas[alphas < 0])
    least, error = _mean(other)
    for a, b, e in zip(alphas, bounds, errors, strict=False):
        yield "Proposition 15", a, n, (b - least) / n, math.hypot(e, error) / n
    yield "L limit at -1", -1, n, logsumexp(n * phi) / n - log_z, 0
    held = [np.moveaxis(phi.reshape(upper.graph.cardinalities), i, 0) for i in range(n)]
    marginals = np.mean([logsumexp(table.reshape(len(table), -1).max(axis=1)) for table in held])
    yield "max-marginals", math.nan, n, marginals - log_z, 0


def _tilted(solver, states, phi, count, seed):
    """U(alpha) for alpha < 0 by the identity at the top of this file: a share of hits, whatever alpha."""
    graph, log_z, n = solver.graph, logsumexp(phi), states.shape[1]
    offsets = np.cumsum([0, *graph.cardinalities[:-1]])
    found = {}
    for alpha, child in zip(TILTED, seed.spawn(TILTED.size), strict=True):
        rng = np.random.default_rng(child)
        log_sum = logsumexp(-alpha * phi)
        hits, block = 0, 20_000
        for start in range(0, count, block):
            size = min(block, count - start)
            x = states[rng.choice(phi.size, size, p=np.exp(-alpha * phi - log_sum))]
            noise = gumbel(rng, size, sum(graph.cardinalities))
            clocks = np.maximum(rng.standard_gamma(1 + alpha, x.shape), np.finfo(float).tiny)
            np.put_along_axis(noise, offsets + x, -np.log(clocks) - np.euler_gamma, axis=1)
            hits += int((solver.maximise(noise)[1] == x).all(axis=1).sum())
        bound = (log_sum + math.log(hits / count)) / -alpha
        found[alpha] = bound, math.sqrt(1 / hits - 1 / count) / -alpha
        yield "U tilted", alpha, n, bound - log_z, found[alpha][1]
    # ln of E[X^2] / E[X]^2 for X = e^{0.45 U}, in units of that of independent variables
    difference = 0.9 * (found[-0.9][0] - found[-0.45][0])
    yield "second moment", -0.45, n, difference, 0.9 * math.hypot(found[-0.9][1], found[-0.45][1])


def _variance(upper):
    """var(U), the derivative at 0 from one half of the samples less the finite difference in the other, and the tail.

    The tail slope is -d ln P(U > u) / du between the highest 1% and 0.01%; e^{-alpha U} has a tail of that index,
    divided by -alpha.
    """
    n, values, half = upper.terms, upper.values, upper.map_calls // 2
    slope, error = slope_at_zero(upper)
    unit = n * math.pi**2 / 6
    yield "variance", math.nan, n, 1 - 2 * slope / unit, 2 * error / unit
    square, fourth = (((values[:half] - values[:half].mean()) ** k).mean() for k in (2, 4))
    bounds, _ = power_bounds(values[half:], n, np.array([-STEP, STEP]))
    influence = (_influence(values[half:], STEP) - _influence(values[half:], -STEP)) / (2 * STEP)
    difference = (bounds[1] - bounds[0]) / (2 * STEP) - (unit - square) / 2
    yield "slope", 0, n, difference, math.hypot(_mean(influence)[1], math.sqrt((fourth - square**2) / half) / 2)
    tail = np.sort(values)[-values.size // 100 :]
    far = max(5, values.size // 10_000)
    slope = math.log(tail.size / far) / (tail[-far] - tail[0])
    yield "tail slope", math.nan, n, slope, math.sqrt(1 / far - 1 / tail.size) / (tail[-far] - tail[0])


def _collected_noise(maxima):
    """Variance of the noise at the maximiser, in units of 4 a^2 = 4 n."""
    unit = 4 * maxima.terms
    value, error = _mean((maxima.noise_at_max - maxima.noise_at_max.mean()) ** 2 / unit)
    yield "variance of the noise", math.nan, maxima.terms, value, error


def _clamping(graph, phi, count, rng):
    """Bounds with the first j variables held, j = 0 .. n, from the same noise, and Lemma 1 at every prefix.

    "lemma" is the gap between its two sides that is lowest in its standard errors, of all prefixes of one length.
    """
    log_z, n = logsumexp(phi), len(graph.cardinalities)
    partial = [phi[np.newaxis]]
    for k in reversed(graph.cardinalities):
        values = partial[-1].reshape(partial[-1].shape[0], -1, k)
        partial.append((values + gumbel(rng, count, k)[:, np.newaxis]).max(axis=2))
    partial.reverse()
    for alpha in CLAMPED:
        inner = None
        for held in range(n, -1, -1):
            possible = partial[held][0] > -np.inf
            bounds, influences = np.full(possible.size, -np.inf), np.zeros(partial[held].shape)
            values = partial[held][:, possible]
            bounds[possible] = power_bounds(values.T, n - held, np.array([alpha]))[0][:, 0]
            influences[:, possible] = _influence(values, alpha)
            total = logsumexp(bounds)
            influence = influences @ np.exp(bounds - total)
            if held < n:
                yield "clamped", alpha, held, total - log_z, _mean(influence)[1]
                yield "clamping step", alpha, held + 1, total - inner[2], _mean(influence - inner[3])[1]
                split = inner[0].reshape(possible.size, -1)[possible]
                sums = logsumexp(split, axis=1)
                weights = np.exp(split - sums[:, np.newaxis])
                sides = (inner[1].reshape(-1, possible.size, split.shape[1])[:, possible] * weights).sum(axis=2)
                gaps = bounds[possible] - sums
                errors = (influences[:, possible] - sides).std(axis=0) / math.sqrt(count)
                worst = (gaps / errors).argmin()
                yield "lemma", alpha, held, gaps[worst], errors[worst]
            else:
                yield "clamped", alpha, n, total - log_z, 0
            inner = bounds, influences, total, influence


def _subsets(graph, states, phi, count, seed):
    """Proposition 5 with noise on the joint states of the first k variables, and less what it is exactly."""
    log_z, n = logsumexp(phi), len(graph.cardinalities)
    for k, child in zip(range(1, min(n, 5) + 1), seed.spawn(5), strict=False):
        larger, noisy = with_subset_variables(graph, [range(k)])
        maxima = low_rank_maxima(Elimination(larger), count, child, noisy=noisy)
        joint = phi.reshape(math.prod(graph.cardinalities[:k]), -1).max(axis=1)
        for alpha, bound, error in zip(SUBSET, *power_bounds(maxima.values, 1, SUBSET), strict=True):
            yield "subset", alpha, k, bound - log_z, error
            yield "subset, closed form", alpha, k, bound - logsumexp(joint), error


def _pairs(graph, upper, phi, count, seed):
    """U(0) with noise on the joint states of each edge, if there are edges."""
    larger, noisy = with_subset_variables(graph, edges(graph))
    if len(noisy) == upper.terms:
        return
    value, error = _mean(low_rank_maxima(Elimination(larger), count, seed, noisy=noisy).values)
    yield "pairs", 0, len(noisy), value - logsumexp(phi), error
    unary, unary_error = _mean(upper.values)
    yield "pairs less unary", 0, len(noisy), value - unary, math.hypot(error, unary_error)


def _plugin(maxima, phi, part):
    """Entropy (bias corrected, Miller and Madow) and divergence from p of some maximisers; -ln q and phi of each."""
    at = np.ravel_multi_index(tuple(maxima.states[part].T.astype(np.int64)), maxima.graph.cardinalities)
    counts = np.bincount(at, minlength=phi.size)
    surprise = -np.log(counts[at] / at.size)
    entropy = float(surprise.mean()) + ((counts > 0).sum() - 1) / (2 * at.size)
    return entropy, logsumexp(phi) - phi[at].mean() - entropy, surprise, phi[at]


def _entropies(graph, upper, lower, phi):
    """Entropies and their bounds, Propositions 6 and 7 with their two sides from two halves of the samples."""
    n, half = upper.terms, upper.map_calls // 2
    log_z, first, second = logsumexp(phi), slice(half), slice(half, None)
    p = np.exp(phi - log_z)
    exact = -float(p[p > 0] @ np.log(p[p > 0]))
    yield "H(p)", 0, n, exact, 0
    for maxima, star, bound_name, sign in ((upper, "x*", "B", 1), (lower, "x**", "A", -1)):
        noise = maxima.noise_at_max / (1 if maxima is upper else n)
        entropy, divergence, surprise, _ = _plugin(maxima, phi, slice(None))
        yield f"H({star})", 0, n, entropy, _mean(surprise)[1]
        yield f"KL({star})", 0, n, divergence, 0
        yield bound_name, 0, n, *_mean(noise)
        yield f"{bound_name} less H({star})", 0, n, sign * (noise.mean() - entropy), _mean(noise - surprise)[1]
        _, divergence, surprise, energy = _plugin(maxima, phi, first)
        left = maxima.values[first].mean() - log_z + divergence
        left_error = _mean(maxima.values[first] - energy - surprise)[1]
        if maxima is lower:
            yield "Proposition 7", 0, n, -left, left_error
            continue
        entropy, _, surprise, _ = _plugin(maxima, phi, second)
        error = math.hypot(left_error, _mean(noise[second] - surprise)[1])
        yield "Proposition 6", 0, n, left - (noise[second].mean() - entropy), error
        average = math.hypot(left_error, _mean(noise[second] / n - surprise)[1])
        yield "Proposition 6 as printed", 0, n, left - (noise[second].mean() / n - entropy), average
        yield "B less H(p)", 0, n, noise.mean() - exact, _mean(noise)[1]
        yield "B of independence", 0, n, np.log(graph.cardinalities).sum() - noise.mean(), _mean(noise)[1]


def _derivatives(graph, upper, count, seed):
    """Proposition 17 along the first variable's last state: central difference less its share of the maximisers."""
    n = upper.terms
    last = graph.cardinalities[0] - 1
    push = np.where(np.arange(last + 1) == last, STEP, 0.0)
    sides = [FactorGraph(graph.cardinalities, [*graph.factors, Factor((0,), sign * push)]) for sign in (-1, 0, 1)]
    for name, scale in (("U", "sum"), ("L", "average")):
        low, middle, high = (
            low_rank_maxima(
                map_solver(side, exact=True)[0],
                count,
                np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key),  # the same noise on all three
                scale=scale,
            )
            for side in sides
        )
        share = middle.states[:, 0] == last
        yield f"{name} derivative", 0, n, *_mean((high.values - low.values) / (2 * STEP) - share)


def _rows(frame, quantity, alpha=None, kinds=None):
    chosen = frame.quantity == quantity
    if alpha is not None:
        chosen &= frame.alpha == alpha
    if kinds is not None:
        chosen &= frame.kind.isin(kinds)
    return frame[chosen]


def _band(ax, rows, colour, **options):
    """A curve over alpha, mean of the models of a family, and two standard errors of the sampling."""
    curve = rows.groupby("alpha").agg(value=("value", "mean"), error=("standard_error", lambda e: (e**2).sum() ** 0.5))
    error = 2 * curve.error / rows.groupby("alpha").size()
    ax.plot(curve.index, curve.value, color=colour, **options)
    ax.fill_between(curve.index, curve.value - error, curve.value + error, color=colour, alpha=0.25, linewidth=0)


def plot(frame):
    figure, axes = panels(1, 3, height=3.4)
    families = list(frame[~frame.kind.isin(FIXED)].groupby(["kind", "strength"], sort=False))
    for colour, ((kind, strength), rows) in zip(COLOURS, families, strict=False):
        name = kind if kind == "independent" else f"{kind}, $C$ = {strength:g}"
        if kind == "table":
            name = f"tables, deviation {strength:g}"
        plain, tilted = _rows(rows, "U"), _rows(rows, "U tilted")
        _band(axes[0], pd.concat([tilted[tilted.alpha < -0.42], plain]), colour, label=name)
        _band(axes[0], _rows(rows, "L"), colour, linestyle="--")
        if kind != "table":
            for quantity, style in (("clamped", "-o"), ("subset", "--s")):
                curve = _rows(rows, quantity, 0).groupby("size").value.mean()
                axes[1].plot(curve.index, curve, style, color=colour)
        for star, bound, marker in (("H(x*)", "B", "o"), ("H(x**)", "A", "s")):
            entropies, bounds = _rows(rows, star), _rows(rows, bound)
            axes[2].plot(
                entropies.value, bounds.value, marker, color=colour, fillstyle="none" if bound == "A" else "full"
            )
    for ax in axes[:2]:
        ax.axhline(0, color="#999999", linewidth=0.8, zorder=0)
    top = _rows(frame[~frame.kind.isin(FIXED)], "B").value.max()
    axes[2].plot([0, top], [0, top], color="#999999", linewidth=0.8, zorder=0)
    axes[0].set_xlim(-1, 1)
    label(axes[0], r"$\alpha$", r"bound $-\ \ln Z$, nats", r"$U(\alpha)$ solid, $L(\alpha)$ dashed")
    label(
        axes[1],
        "variables clamped, or in the subset",
        r"bound $-\ \ln Z$, nats",
        "clamped solid, subset dashed",
    )
    label(
        axes[2],
        "entropy of the maximiser",
        "its bound",
        r"nats: $x^*$ filled, $x^{**}$ open",
    )
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncol=4)
    return figure


def _chosen(quantity, choose, **where):
    """The row whose distance to what it should be, in its standard errors, is the one that `choose` takes."""

    def measure(frame):
        rows = _rows(frame, quantity, **where)
        if rows.empty:
            return None
        row = rows.loc[choose(rows)]
        return Measurement(row.value, row.standard_error)

    return measure


def _errors(rows):
    return rows.standard_error.clip(lower=1e-12)


def _least(quantity, id, source, statement, **where):
    """A claim that a quantity is never negative, by the value that is lowest in its standard errors."""
    measure = _chosen(quantity, lambda rows: (rows.value / _errors(rows)).idxmin(), **where)
    return Claim(id, source, f"{statement} (lowest in its standard errors)", 0.0, ">", measure)


def _most(quantity, id, source, statement, limit=0.0, finding=""):
    """A claim that a quantity is never above a limit, by the value that exceeds it most in its standard errors."""
    measure = _chosen(quantity, lambda rows: ((rows.value - limit) / _errors(rows)).idxmax())
    return Claim(id, source, f"{statement} (highest in its standard errors)", limit, "<", measure, finding=finding)


def _equal(quantity, id, source, statement, published=0.0, rounding=0.0, finding="", **where):
    """A claim that a quantity has a certain value, by the one furthest from it in its standard errors."""
    measure = _chosen(quantity, lambda rows: ((rows.value - published).abs() / _errors(rows)).idxmax(), **where)
    return Claim(id, source, f"{statement} (furthest in its errors)", published, "=", measure, rounding, finding)


def _two_ways(frame):
    """U(-1/4) from sample means less U(-1/4) from tilted noise, the furthest from 0 in its standard errors."""
    keys = ["kind", "strength", "model"]
    plain, tilted = (_rows(frame, name, -0.25).set_index(keys) for name in ("U", "U tilted"))
    difference = plain.value - tilted.value
    error = np.hypot(plain.standard_error, tilted.standard_error)
    at = (difference.abs() / error).idxmax()
    return Measurement(difference[at], error[at])


def _lowest_of_l(sign, other):
    """sign (L(alpha) less another number of its model), the lowest in its standard errors."""

    def measure(frame):
        keys = ["kind", "strength", "model"]
        rows = _rows(frame, "L").set_index(keys)
        slack = sign * (rows.value - _rows(frame, other).set_index(keys).value.reindex(rows.index))
        at = int((slack / rows.standard_error).argmin())
        return Measurement(slack.iloc[at], rows.standard_error.iloc[at])

    return measure


OWN = "this project"

EXPERIMENT = Experiment(
    id="low-rank-identities",
    title="Low-rank bounds, clamping and entropy on models small enough to enumerate",
    source="Thesis 2.3, 2.4",
    version=1,
    presets={
        "quick": {
            "families": [["independent", 0], ["mixed", 3], ["table", 2], *LIMITS],
            "models": 1,
            "samples": 6_000,
            "clamped_samples": 2_000,
        },
        "paper": {
            "families": [
                ["independent", 0],
                *([k, c] for k in ("attractive", "mixed", "table") for c in (1, 3)),
                *LIMITS,
            ],
            "models": 3,
            "samples": 100_000,
            "clamped_samples": 20_000,
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    claims=[
        _least("U", "Proposition 2", "Thesis Proposition 2", "U(alpha) >= ln Z for alpha from -1/4 on"),
        _least(
            "U tilted", "Proposition 2, tilted", "Thesis Proposition 2", "and for -1 < alpha <= -1/4, by tilted noise"
        ),
        Claim(
            id="two ways to U(alpha)",
            source=OWN,
            statement="tilted noise and sample means give the same U(-1/4) (difference furthest from 0 in its errors)",
            published=0.0,
            relation="=",
            measure=_two_ways,
        ),
        _equal(
            "U limit at 0",
            "Proposition 3",
            "Thesis Proposition 3",
            "U(alpha) less the mean of U tends to 0 with alpha, here 1e-6",
            rounding=1e-5,
        ),
        _equal("L limit at 0", "limit of L", "Thesis 2.3.4", "and so does L(alpha) less the mean of L", rounding=1e-5),
        _equal(
            "slope",
            "Proposition 4",
            "Thesis Proposition 4",
            "the derivative of U(alpha) at 0 is (n pi^2/6 - var U) / 2: finite difference less it, from other samples",
        ),
        _most(
            "variance",
            "variance of U",
            "Thesis 2.3.1",
            "var(U) <= n pi^2/6, which the source saw in all experiments and Efron-Stein's inequality proves: ratio",
            limit=1.0,
        ),
        _equal(
            "variance",
            "variance of U, extremes",
            "Thesis 2.3.1",
            "var(U) = n pi^2/6 for the uniform distribution and for that of one configuration: ratio",
            published=1.0,
            kinds=PRODUCTS[1:],
        ),
        _equal(
            "variance",
            "variance of U, independent",
            OWN,
            "and for all independent variables: ratio",
            published=1.0,
            kinds=PRODUCTS,
        ),
        _least(
            "U step",
            "U rises with alpha",
            OWN,
            "U(alpha) never falls as alpha rises: Frechet tricks always tighten the bound, Weibull tricks never do",
        ),
        _most(
            "second moment",
            "finite variance",
            OWN,
            "var(e^{-alpha U}) is finite down to alpha = -1/2, not just to -1/(2 sqrt n): at -0.45 the ratio of the "
            "second moment to the squared mean is at most that of independent variables (its logarithm)",
        ),
        _most(
            "tail slope",
            "infinite variance",
            OWN,
            "and not below: -d ln P(U > u) / du tends to 1 from below",
            limit=1.0,
        ),
        _least(
            "lemma", "Lemma 1", "Thesis Lemma 1", "the Clamping Lemma at every prefix: ln of the ratio of its sides"
        ),
        _least("lemma", "Hazan Corollary 3", "Hazan et al. Corollary 3", "the same at alpha = 0", alpha=0),
        _least("clamping step", "Corollary 7", "Thesis Corollary 7", "clamping one more variable tightens the bound"),
        _least("clamped", "clamped bounds", "Thesis Corollary 7", "clamped bounds are bounds of ln Z still"),
        _most(
            "subset", "Proposition 5", "Thesis Proposition 5", "noise on a subset of variables bounds ln Z from below"
        ),
        _equal(
            "subset, closed form",
            "Proposition 5, closed form",
            OWN,
            "that bound is ln sum_{x_S} max exp(phi), whatever alpha: difference",
        ),
        _most("L", "Corollary 8", "Thesis Corollary 8", "L(alpha) <= ln Z"),
        _least(
            "Proposition 15",
            "Proposition 15",
            "Thesis Proposition 15",
            "L(alpha) >= L(0) + ln Gamma(1 + alpha) / alpha + c for alpha < 0, L(0) from other samples",
        ),
        _least(
            "L step",
            "L rises with alpha",
            OWN,
            "L(alpha) never falls as alpha rises: Frechet lower bounds are never tighter than the Gumbel one",
        ),
        Claim(
            id="limit of L at -1",
            source=OWN,
            statement="L(alpha) >= ln(sum_x exp(n phi)) / n, its limit at -1 (lowest in its standard errors)",
            published=0.0,
            relation=">",
            measure=_lowest_of_l(1, "L limit at -1"),
        ),
        Claim(
            id="max-marginals",
            source=OWN,
            statement="L(alpha) is at most the mean over i of ln sum_{x_i} max exp(phi) (difference lowest in its "
            "standard errors)",
            published=0.0,
            relation=">",
            measure=_lowest_of_l(-1, "max-marginals"),
        ),
        _least("pairs", "Hazan Corollary 5", "Hazan et al. Corollary 5", "noise on edges bounds ln Z from above"),
        _least("pairs less unary", "noise on edges", OWN, "more loosely than noise on variables, on spin glasses"),
        _equal(
            "Proposition 6",
            "Proposition 6",
            "Thesis Proposition 6",
            "U(0) - ln Z + KL(x* || p) = B - H(x*), B the sum of the noise terms: sides from two halves of the samples",
        ),
        _equal(
            "Proposition 6 as printed",
            "Proposition 6 as printed",
            "Thesis Proposition 6",
            "the same with B = E gamma_i(x_i*), the mean over i",
            finding="2.4, Proposition 6",
        ),
        _least("B less H(x*)", "entropy bound", "Thesis 2.4, Hazan et al. Theorem 4", "H(x*) <= B"),
        _equal(
            "B less H(p)",
            "entropy bound, independent",
            "Hazan et al. Corollary 6",
            "B = H(p) for independent variables",
            kinds=PRODUCTS,
        ),
        _least("B less H(p)", "entropy of the model", OWN, "H(p) <= B, too, on every model here"),
        _least("B", "uncertainty", "Hazan et al. Corollary 7", "B >= 0"),
        _least("B of independence", "uncertainty, uniform", "Hazan et al. Corollary 7", "B <= ln |X|"),
        _least("A less H(x**)", "Theorem 12", "Thesis Theorem 12", "H(x**) >= the mean of the noise terms"),
        _least("Proposition 7", "Proposition 7", "Thesis Proposition 7", "ln Z - L(0) >= KL(x** || p)"),
        _equal(
            "L derivative",
            "Proposition 17",
            "Thesis Proposition 17",
            "the derivative of L(0) by a potential is the probability of its state at the maximiser: difference",
        ),
        _equal("U derivative", "Proposition 17 for U", "Thesis A.4, Remark", "and so is that of U(0)"),
        _most(
            "variance of the noise",
            "variance of the noise",
            "Hazan et al. IV-E",
            "the noise at the maximiser has a gradient of squared norm n, so that its variance is at most 4 n: ratio",
            limit=1.0,
            finding="Hazan et al. IV-E, concentration of the entropy bound",
        ),
    ],
)
