"""Equalities of Thesis chapter 3 that no figure of the source shows, on distributions with known
answers."""

import math

import numpy as np
from scipy.special import logsumexp

from thesis_cli.base.figures import COLOURS, label, legend_below, marks, panels
from thesis_cli.reproduction.experiment import Claim, Experiment
from thesis_cli.reproduction.measuring import labelled, select
from thesis_cli.studies.entropy.identities import (
    NEAR,
    independence_rows,
    integral_rows,
    limit_rows,
    participation_rows,
    power_sum_rows,
)
from thesis_cli.studies.models.examples import asia, ising, zipf

WEIGHTS = {
    "geometric": lambda: math.log(0.7) * np.arange(500),
    "Zipf": lambda: zipf(1000, 1.1),
    "half impossible": lambda: np.where(np.arange(100) % 2, -np.inf, -np.arange(100) / 20),
    "near-certain": lambda: np.log(np.append(0.99, np.full(100, 1e-4))),
}
NAMES = {"p": "$p(x)$", "1 / root of p": r"$p(x)^{-1/2}$", "x": "$x$", "x <= 10": r"$x \leq 10$"}
GRAPHS = {"asia": asia, "ising-4x4": lambda: ising(4, 4, 1.0, np.random.default_rng(1))}
ORDERS = [0.25, 0.5, 2.0, 5.0]
LOG_Z = 2.0
"""ln Z of the model whose maxima are looked at by their maximisers."""
LARGEST = 200.0
"""Bound of |ln p| of the distributions: H_alpha moves by less than this times NEAR within NEAR."""


def tasks(settings):
    return [{"model": name, **settings} for name in (*WEIGHTS, *GRAPHS)]


def run(seed, model, perturbations):
    """The rows of `studies/entropy/identities.py` for one model."""
    if model in GRAPHS:
        found = power_sum_rows(GRAPHS[model](), ORDERS)
    else:
        log_p = WEIGHTS[model]()
        log_p = log_p - logsumexp(log_p)
        found = _rows(log_p, perturbations, *seed.spawn(3), distinct=model != "near-certain")
    return labelled(found, ["quantity", "argument", "value", "standard_error", "expected"], model=model)


def _rows(log_p, perturbations, *seeds, distinct):
    first_ten = np.where(np.arange(log_p.size) < 10, 0.0, -np.inf)
    log_fs = {"p": log_p, "1 / root of p": -log_p / 2, "x": np.log1p(np.arange(log_p.size)), "x <= 10": first_ten}
    log_fs["1 / root of p"] = np.where(log_p > -np.inf, log_fs["1 / root of p"], 0.0)
    yield from limit_rows(log_p)
    yield from participation_rows(log_p, perturbations, seeds[0])
    yield from integral_rows(log_p, log_fs, perturbations, seeds[1])
    if distinct:
        yield from independence_rows(log_p, LOG_Z, perturbations, seeds[2])


def plot(frame):
    from matplotlib.ticker import MaxNLocator

    figure, axes = panels(1, 3, height=2.7, width_ratios=(1, 1.6, 1.6))
    names = [name for name in WEIGHTS if name in set(frame.model)]
    colours = dict(zip(names, zip(COLOURS, "os^v", strict=False), strict=False))
    for shift, (name, (colour, marker)) in enumerate(colours.items()):
        style = {"color": colour, "fmt": marker, "capsize": 2}
        one, integral, given = (
            select(quantity=quantity, model=name)(frame) for quantity in ("participation", "integral", "mean given x*")
        )
        marks(axes[0], one, [shift], label=name, **style)
        marks(axes[1], select().minus("expected")(integral), np.arange(len(integral)) + 0.15 * (shift - 1.5), **style)
        marks(axes[2], given, given.argument.astype(int) + 0.15 * (shift - 1), **style)
    fs = select(quantity="integral", model=names[0])(frame).argument
    axes[1].set_xticks(range(len(fs)), [NAMES[f] for f in fs])
    axes[2].xaxis.set_major_locator(MaxNLocator(integer=True))
    axes[0].margins(x=0.2)
    axes[2].margins(x=0.1)
    for ax, level in zip(axes, (1, 0, LOG_Z), strict=True):
        ax.axhline(level, color="black", linewidth=0.8)
    axes[0].set_xticks([])
    label(axes[0], "distribution", r"mean clock / $e^{H_2}$", r"$e^{H_2}$, order 2")
    label(axes[1], "function $f(x)$", "mean less exact, nats", r"$\ln \sum_x p(x) f(x)$ (3.25)")
    label(axes[2], "configuration $x^*$", "mean maximum, nats", r"$\max\{\phi + \gamma\}$ given $x^*$")
    return legend_below(figure, axes[0], 4)


def _ratio(quantity):
    return select(quantity=quantity).per("expected").furthest(1.0)


def _exact(error, **equal):
    """The largest deviation of numbers without sampling error."""
    return select(**equal).minus("expected").number("value").most_off(0.0, error)


CAPTION = """\
Equalities of chapter 3 on four distributions, with bars of two standard errors; black lines are the exact \
values. Left: the mean of the Exponential trick's clocks at order 2 over the inverse participation \
ratio e^{H_2}, which they estimate without bias. Middle: means of max {ln p + ln f + gamma} less ln \
sum_x p(x) f(x) for four functions f. Right: means of max {phi + gamma}, with ln Z = 2, given the \
frequent configurations x* that attain it: the maximum is independent of x*, as the proof \
of Theorem 9 says. The near-certain distribution has configurations of equal probability and is not on \
the right. The source has no such figure."""


# fmt: off
CLAIMS = [
    *(
        Claim(f"limit at {name}", f"Thesis eq. {equation}", "identity", "=", 0.0,
            _exact(LARGEST * NEAR, quantity="limit", argument=arguments),
            f"as alpha tends to {name}, H_alpha tends to {formula} (exact entropies a millionth off, largest "
            "difference of four distributions, nats)", scale=1e-3)
        for name, equation, formula, arguments in (
            ("0", "3.1", "ln |supp p|", ["0"]),
            ("1", "3.2", "the Shannon entropy", ["1, below", "1, above"]),
            ("inf", "3.4", "-ln max p", ["inf"]),
        )
    ),
    Claim("Shannon entropy, as printed", "Thesis 1.5.2, paragraph 1", "identity", "=", 0.0,
        select(quantity="limit", argument="1, above")
        .number(lambda found: found.value + found.expected)
        .least(LARGEST * NEAR),
        "H_1 is the sum of p ln p, without a minus sign (H_1 less the sum, the least of four distributions, nats)",
        finding="1.5.2, Shannon entropy", tag="slip", weight=2, scale=1e-3),
    Claim("inverse participation ratio", "Thesis 3.3.2, eq. 3.3", "identity", "=", 1.0,
        _ratio("participation"),
        "the Exponential trick estimates e^{H_2} without bias (mean of one perturbation's estimates over e^{H_2}, "
        "furthest of four distributions)"),
    Claim("other integrals", "Thesis eq. 3.25", "identity", "=", 0.0,
        select(quantity="integral").minus("expected").furthest(),
        "the mean of max {ln p + ln f + gamma} is ln sum_x p(x) f(x) (difference, furthest of four distributions "
        "and four functions, powers of p and an indicator among them, nats)", scale=0.05),
    Claim("two partition functions", "Thesis eqs. 3.26, 3.27", "identity", "=", 0.0, _exact(1e-11, quantity="two sums"),
        "H_alpha is (ln Z_alpha - alpha ln Z) / (1 - alpha), Z_alpha of the potential alpha phi (by elimination, "
        "less the sum over configurations; largest of two graphs and four orders, nats)", scale=1e-6),
    Claim("maximum given x*, mean", "Thesis 3.4.2, proof of Theorem 9", "identity", "=", 1.0,
        _ratio("mean given x*"),
        "the mean of the maximum does not depend on the configuration x* that attains it: it is ln Z (ratio, "
        "furthest of all frequent x*)"),
    Claim("maximum given x*, variance", "Thesis 3.4.2, proof of Theorem 9", "identity", "=", 1.0,
        _ratio("variance given x*"),
        "the variance of the maximum does not depend on the configuration x* that attains it: it is pi^2/6 (ratio, "
        "furthest of all frequent x*)"),
]
# fmt: on

EXPERIMENT = Experiment(
    id="renyi-identities",
    title="Equalities of chapter 3 on distributions with known answers",
    source="Thesis 3.2.1, 3.3.2, 3.4.2, 3.5",
    version=1,
    presets={"quick": {"perturbations": 4_000}, "paper": {"perturbations": 200_000}},
    tasks=tasks,
    run=run,
    plot=plot,
    caption=CAPTION,
    claims=CLAIMS,
)
