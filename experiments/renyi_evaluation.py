"""Usefulness of perturb-and-MAP estimates of Renyi entropies, which Thesis section 3.5 leaves open.

Full rank. Each estimator is repeated K times with M perturbations, and so are baselines that get M
exact samples of p. Equal M compares statistical efficiency alone: a perturbation has noise on every
configuration, so that finding its maximum costs as much here as the sum that gives the exact
answer. It pays only where another method finds maxima. `studies/entropy/evaluation.py` has the
estimators and their variances at alpha = 1.

Low rank. Bounds on H_alpha of graphs (eqs. 3.15, 3.16), by MAP problems that are truly cheap,
beside the exact entropy and beside message passing (eq. 3.27).
"""

import math

import numpy as np
from scipy.special import polygamma

from thesis_cli.inference.enumeration import Enumeration
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.reproduction.experiment import NOT_REPEATABLE, Claim, Experiment, Measurement, Tolerance
from thesis_cli.reproduction.measuring import labelled, measure, pooled_by, select
from thesis_cli.studies.entropy.evaluation import Sizes, full_rank_rows, low_rank_rows
from thesis_cli.studies.entropy.evaluation_figures import CONTROLLED, EXACT, KINDS, ORDERS, PLUGIN, M, draw
from thesis_cli.studies.models.examples import asia, ising, random_3_sat, zipf

INNER = [0.25, 0.5, 0.9, 1.1, 2, 5]
ENOUGH = 100
"""Least number of repetitions whose standard errors suffice for extremes over models, alphas, M."""
UNBIASED = [
    *("Gumbel, shared", "Gumbel, independent", "Gumbel, ln Z known", "Gumbel, control variate"),
    *("Exponential, shared", "Exponential, ln Z known", "hybrid"),
]
NUMBERS = ["bias", "bias_error", "rmse", "rmse_error"]
MILLER = "Gumbel, shared", "Miller-Madow"
PLAIN = {
    "geometric": lambda: math.log(0.7) * np.arange(500),
    "Zipf": lambda: zipf(10**6, 1.1),
    "uniform": lambda: np.zeros(10**6),
    "two levels": lambda: np.repeat(np.log([1e4, 1]), [10, 10**5]),
    "near-certain": lambda: np.repeat(np.log([0.99, 0.01 / 10**4]), [1, 10**4]),
}
"""Log-potentials of models without variables, not normalised."""
VARIABLES = {"asia": 8, "asia, x-ray": 7, "ising-4x4": 16}
"""Variables of the models that are no random grids, without the observed one."""
SHIPPED = "asia", "asia, x-ray", "sat-16-60", "ising-4x4"


def tasks(settings):
    return [
        {"part": part, "model": model, "coupling": coupling, "side": side, "sizes": _sizes(settings[part], side)}
        for part in ("full rank", "low rank")
        for model, coupling, side in settings[part]["models"]
    ]


def _sizes(settings, side):
    """Sizes of a task; `small` are those of the models with less than 10 x 10 variables."""
    return {**settings["sizes"], **(settings.get("small", {}) if side < 10 else {})}


def run(seed, part, model, coupling, side, sizes):
    """A row for each estimator or bound, at each alpha and M, in nats.

    `bias` is the mean of the estimates, or the bound itself, less the exact entropy. `variance` is
    that of ln p.
    """
    estimate = _full_rank if part == "full rank" else _low_rank
    columns = ["instance", "variance", "alpha", "exact", "estimator", "samples", "repetitions", *NUMBERS]
    found = estimate(seed, model, coupling, side, **sizes)
    frame = labelled(found, columns, part=part, model=model, coupling=coupling, side=side)
    for column, digits in {"exact": 9, "variance": 6, "bias": 6, "bias_error": 3, "rmse": 6, "rmse_error": 3}.items():
        frame[column] = [float(f"{x:.{digits}g}") for x in frame[column]]  # a small file
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
    """Log-potential of every configuration, not normalised, shape (N,)."""
    if model in PLAIN:
        return PLAIN[model]()
    return np.concatenate([block.copy() for block in Enumeration(_graph(model, coupling, side, rng)).blocks()])


def _full_rank(seed, model, coupling, side, **sizes):
    tables, *seeds = seed.spawn(5)
    phi = _potentials(model, coupling, side, np.random.default_rng(tables))
    return full_rank_rows(phi, ORDERS, Sizes(**sizes), seeds)


def _low_rank(seed, model, coupling, side, instances, samples):
    """Bounds, the Shannon sandwich and message passing for some random models of one family."""
    for instance, child in enumerate(seed.spawn(instances if model not in SHIPPED else 1)):
        tables, noise, halves = child.spawn(3)
        graph = _graph(model, coupling, side, np.random.default_rng(tables))
        yield from low_rank_rows(graph, samples, noise, halves, instance)


def _full(query="", **equal):
    return select(query, part="full rank", **equal).number("rmse", "rmse_error")


def _ratios(name, baseline, orders, query):
    """Ratios of RMSEs; their standard errors are those of independent numbers, which is conservative."""
    own, other = (_full(query, estimator=one, alpha=orders) for one in (name, baseline))
    return own.over(other, "model", "coupling", "alpha", "samples")


def _mse_ratios(name, baseline, orders):
    ratios = _ratios(name, baseline, orders, f"repetitions >= {ENOUGH} and rmse > {EXACT}")
    return ratios.number(lambda found: found.value**2, lambda found: 2 * found.value * found.standard_error)


def _mean_mse(name, baseline, orders, keys=("alpha", "samples")):
    """The ratio of MSEs, mean of the models, at the alpha and M where it is largest."""
    return _mse_ratios(name, baseline, orders).then(pooled_by(*keys)).largest()


@measure
def _worst_mse(frame, name, baseline, orders):
    """The ratio of MSEs that exceeds 1 most in its standard errors, over all models and M."""
    found = _mse_ratios(name, baseline, orders).lowest(1.0, sign=-1)(frame)
    return found and (found.value, found.standard_error)


def _largest_ratio(name, baseline, alpha, model):
    """Largest ratio of RMSEs at M = 1000, for one model or over those with more than 10 M likely
    configurations."""
    chosen = f"model == '{model}'" if model else f"exact > {math.log(10 * M)}"
    return _ratios(name, baseline, [alpha], f"samples == {M} and {chosen}").largest(weakest=False)


def _variance_at_one(name, factor):
    """The ratio of the MSE at alpha = 1 to trigamma(M) + V factor(M), mean of the models, that is
    most standard errors off 1, up to M = 300."""
    found = _full(f"repetitions >= {ENOUGH} and samples <= 300", estimator=name, alpha=1)
    squares = found.number(lambda f: f.rmse**2, lambda f: 2 * f.rmse * f.rmse_error)
    ratios = squares.per(lambda f: polygamma(1, f.samples) + f.variance * factor(f.samples))
    return ratios.then(pooled_by("samples")).furthest(1.0)


def _slack(end, shannon):
    """Slack of a bound on the exact entropy, per variable, mean over the models of a family, where it
    is fewest standard errors."""
    found = select(f"bias_error > {EXACT} and alpha {'==' if shannon else '!='} 1", part="low rank")
    found = found.then(lambda f: f[f.estimator.str.startswith(end)]).number("bias", "bias_error")
    slack = found.per(lambda f: f.model.map(VARIABLES).fillna(f.side**2) * (1 if end == "upper" else -1))
    return slack.then(pooled_by("model", "coupling", "side", "estimator", "alpha")).lowest()


def _bounds(frame, alpha):
    """Estimates and their errors at one alpha, and exact entropies; a row for each low-rank
    model."""
    keys = ["model", "coupling", "side", "instance"]
    rows = frame[frame.part == "low rank"].assign(value=lambda rows: rows.exact + rows.bias)
    exact = rows.drop_duplicates([*keys, "alpha"]).pivot(index=keys, columns="alpha", values="exact")
    rows = rows[rows.alpha == alpha]
    return *(rows.pivot(index=keys, columns="estimator", values=v) for v in ("value", "bias_error")), exact


@measure
def _median_bound(frame, name, alpha, gain):
    """The median over models of gain(bound, exact entropies), which is linear in the bound."""
    values, errors, exact = _bounds(frame, alpha)
    gains = gain(values[name], exact)
    return gains.median(), (gain(values[name] + errors[name], exact) - gains).abs().median()


def _sandwich(values, errors, name):
    """Widths of the Shannon sandwich, and their standard errors."""
    upper, lower = (f"{end}, ln Z {name}" for end in ("upper", "lower"))
    return values[upper] - values[lower], np.hypot(errors[upper], errors[lower])


@measure
def _width(frame, name):
    """Median width of the Shannon sandwich over that of the trivial interval, [H_inf, ln |X|] or
    [0, ln |X|]."""
    values, errors, exact = _bounds(frame, 1)
    trivial = exact[0] - (exact[math.inf] if name == "known" else 0)
    width, error = _sandwich(values, errors, name)
    return (width / trivial).median(), (error / trivial).max()


def _beside_bethe(frame):
    """Median error of Bethe's H_1, where it converged, over the width of the sandwich with ln Z
    known."""
    values, errors, exact = _bounds(frame, 1)
    width, error = _sandwich(values, errors, "known")
    share = (values["Bethe"] - exact[1]).abs() / width
    return Measurement(share.median(), (share * error / width).median())


OURS = "beyond the source"
MSES = "(ratio of MSEs, mean of the models, largest of any alpha and M)"


def _tolerance(row):
    """Messages that do not converge stop anywhere, and the last bit decides where."""
    return NOT_REPEATABLE if row["estimator"].endswith("not converged") else None


CAPTION = """\
How well entropies are estimated. Top: RMSE over the number M of perturbations or exact samples \
(bars of two standard errors); dashed lines are rivals that get samples of p, plug-in frequencies \
and moments of p, the second with ln Z known. Where the orange line is missing, it is under the \
pink one; at other orders than 1 the green line begins at M = 100, as its coefficient takes 32 \
perturbations. Middle: ratio of the RMSE to that of a rival for 15 models (blue: perturb-and-MAP \
is ahead; grey: both are exact or one is absent), and M times the MSE at alpha = 1 over the \
variance of ln p, with the formulas for large M as lines. Bottom: Shannon entropy of grids, its \
low-rank bounds (grey bands), the exact one, and message passing, means over models; the dashed \
line is ln 2, the largest entropy. Bottom right: bounds over the order, spaced as alpha / (1 + \
alpha), for one model (triangles), the exact entropy, and as dotted lines what one MAP call gives, \
H_inf and the smaller of ln 2 and alpha / (alpha - 1) H_inf. The source leaves this evaluation to \
future work and has no such figure."""


# fmt: off
CLAIMS = [
    Claim("unbiased", "Thesis eqs. 3.8, 3.12, 3.13, 3.17", "identity", "=", 0.0,
        select(f"rmse > {EXACT} and repetitions >= {ENOUGH} and samples <= 100", part="full rank")
        .where(f"estimator in {UNBIASED} or (estimator == 'moments' and alpha == 1)")
        .number("bias", "bias_error")
        .per("rmse")
        .then(pooled_by("estimator", "alpha", "samples"))
        .furthest(),
        "estimators that the thesis calls unbiased are unbiased, also those debiased or with a control variate "
        "(bias over RMSE, mean of the models, at the alpha and M up to 100 where it is most standard errors off 0; "
        "that of the Exponential trick without debiasing is 0.05 and more)", scale=0.05),
    Claim("moments of samples", "Thesis 3.3: 'would not lead to an unbiased estimator'", "bound", "<", 0.0,
        _full(estimator="moments", alpha=0.5, samples=10).number("bias", "bias_error").pooled(),
        "estimates from moments of exact samples are biased, because of the logarithm: downwards below order 1 "
        "(bias at alpha = 0.5 and M = 10, mean of the models, nats)"),
    *(
        Claim(f"Exponential trick, {name}", source, "bound", "<", 1.0,
            _mean_mse(f"Exponential, {key}, biased", f"Gumbel, {key}", INNER), f"{statement} {MSES}")
        for name, source, key, statement in (
            ("ln Z known", "Thesis 3.3: 'a lower-variance (but biased) estimator'", "ln Z known",
                "with ln Z known, the Exponential trick, its bias included, has a lower MSE than the Gumbel trick, "
                "and so a lower variance"),
            ("independent noise", "Thesis 3.3.2: 'will be provably lower than the MSE'", "independent",
                "with ln Z unknown and independent noise, the Exponential trick has a lower MSE than the Gumbel trick"),
        )
    ),
    Claim("Exponential trick, shared noise", "Thesis 3.3.2: 'will be provably lower than the MSE'", "bound", "<", 1.0,
        _worst_mse("Exponential, shared, biased", "Gumbel, shared", INNER),
        "with ln Z unknown and shared noise, the Exponential trick has a lower MSE than the Gumbel trick (ratio of "
        "MSEs, at the model, alpha and M where it exceeds 1 by most standard errors)",
        finding="3.3.2, the Exponential trick with shared noise", tag="reading", weight=5),
    *(
        Claim(f"variance at 1, {name}", OURS, "identity", "=", 1.0, _variance_at_one(name, factor),
            f"the variance of the estimator `{name}` at alpha = 1 is {formula}, V = var ln p (measured over "
            "formula, mean of the models, the furthest from 1 of any M up to 300)", scale=scale)
        for name, formula, factor, scale in (
            # At M = 10 the mean ratio is 0.06 lower if M stands for M + 1.
            ("Exponential, shared", "trigamma(M) + 2 V / (M + 1)", lambda m: 2 / (m + 1), 0.06),
            ("hybrid", "trigamma(M) + V / M", lambda m: 1 / m, 0.1),
        )
    ),
    Claim("hybrid", OURS, "comparison", "<", 1.0, _mean_mse("hybrid", "Gumbel, shared", [0.9, 1, 1.1, 2, 5]),
        "the Gumbel trick for ln Z_alpha - ln Z with the Exponential trick for ln Z beats the Gumbel trick for "
        f"both, from alpha = 0.9 on {MSES}"),
    Claim("stratified noise", OURS, "comparison", "<", 1.0,
        _mean_mse("Gumbel, stratified", "Gumbel, shared", list(ORDERS), ["alpha"]),
        "stratified noise gives a lower MSE than independent perturbations (ratio of MSEs, mean of the models and "
        "M, largest of any alpha)"),
    *(
        Claim(id, OURS, "comparison", "<" if id.startswith("wins") else ">", published,
            _largest_ratio(*names, alpha, model),
            f"{statement} (RMSE of `{names[0]}` over that of `{names[1]}`; {where}, alpha = {alpha:g}, M = {M})")
        for id, names, model, alpha, published, statement in (
            ("wins: support size", PLUGIN, None, 0.0, 0.1,
                "perturbations have less than a tenth of the error of samples at alpha = 0"),
            ("wins: min-entropy", PLUGIN, "uniform", math.inf, 0.1,
                "perturbations have less than a tenth of the error of samples at alpha = inf if no state stands out"),
            ("wins: spread out", PLUGIN, "Zipf", 1.0, 1.0, "perturbations beat samples that miss much of p"),
            ("wins: Miller-Madow", MILLER, "Zipf", 1.0, 1.0,
                "perturbations beat samples that miss much of p even after Miller and Madow's correction to first "
                "order"),
            ("wins: small alpha", CONTROLLED, "geometric", 0.5, 1.0,
                "perturbations beat samples where rare states count, if ln Z is known"),
            ("loses: geometric", PLUGIN, "geometric", 1.0, 1.0, "samples that see most of p beat perturbations"),
            ("loses: asia", PLUGIN, "asia", 2.0, 1.0, "samples beat perturbations on a network of 8 variables"),
            ("loses: few solutions", PLUGIN, "sat-16-60", 1.0, 1.0,
                "more samples than there are states beat perturbations"),
            ("loses: low entropy", PLUGIN, "near-certain", 2.0, 1.0,
                "samples beat perturbations where the entropy is low"),
            ("loses: likely mode", PLUGIN, "near-certain", math.inf, 1.0,
                "samples that see the mode beat perturbations"),
        )
        for where in [f"model {model}" if model else "the largest ratio of models with many configurations"]
    ),
    *(
        Claim(f"low rank, {id}", source, "bound", ">", 0.0, _slack(end, shannon),
            f"{statement} in expectation, ln Z known or not (slack in nats per variable, mean over the random "
            "models of a family, where it is fewest standard errors above 0; entropies are up to 0.69)",
            scale=None if shannon else 0.1)
        for id, shannon, end, source, statement in (
            ("lower", False, "lower", "Thesis eq. 3.15", "low-rank lower bounds on H_alpha are at most H_alpha"),
            ("upper", False, "upper", "Thesis eq. 3.15", "low-rank upper bounds on H_alpha are at least H_alpha"),
            ("Shannon, lower", True, "lower", "Thesis eq. 3.16",
                "the lower end of the low-rank sandwich of the Shannon entropy H_1 is at most H_1"),
            ("Shannon, upper", True, "upper", "Thesis eq. 3.16",
                "the upper end of the low-rank sandwich of the Shannon entropy H_1 is at least H_1"),
        )
    ),
    Claim("low rank, width, ln Z known", OURS, "comparison", "<", 1.0, _width("known"),
        "with ln Z known the low-rank sandwich of the Shannon entropy is narrower than [H_inf, ln |X|], "
        "which takes one MAP call (ratio of widths, median of models)"),
    Claim("low rank, width, ln Z unknown", OURS, "comparison", ">", 0.7, _width("unknown"),
        "with ln Z unknown the low-rank sandwich of the Shannon entropy is at least 0.7 times as wide as "
        "[0, ln |X|] (ratio of widths, median of models)"),
    Claim("low rank, upper bound at 2", OURS, "comparison", "<", 0.1,
        _median_bound("upper, ln Z known", 2, lambda bound, exact: 1 - bound / (2 * exact[math.inf])),
        "with ln Z known the low-rank upper bound at alpha = 2 is at most a tenth below the bound 2 "
        "H_inf, which takes one MAP call (gain as a share of 2 H_inf, median of models)"),
    Claim("low rank, lower bound at 1/2", OURS, "comparison", "<", 0.0,
        _median_bound("lower, ln Z known", 0.5, lambda bound, exact: bound - exact[math.inf]),
        "with ln Z known the low-rank lower bound at alpha = 1/2 is below H_inf, a bound that takes one "
        "MAP call (difference in nats, median of models)"),
    Claim("low rank, beside Bethe", OURS, "comparison", "<", 0.1, _beside_bethe,
        "Bethe's H_1, where it converged, errs by less than a tenth of the width of the low-rank sandwich "
        "with ln Z known (error over width, median of models)"),
    Claim("low rank, impossible", OURS, "comparison", "<", 0.0,
        select(estimator=["Bethe", "TRW"], side=10).number(lambda found: found.exact + found.bias).least(),
        "message passing that converged can give an impossible, negative entropy, as bounds cannot (least "
        "entropy, nats)"),
]
# fmt: on

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
                "sizes": {"instances": 3, "samples": 1000},
                "small": {"samples": 3000},
            },
        },
    },
    tasks=tasks,
    run=run,
    plot=draw,
    # So many digits are written, and errors below EXACT are rounding.
    tolerances={
        "exact": Tolerance(1e-8),
        "variance": Tolerance(1e-5),
        **dict.fromkeys(["bias", "rmse"], Tolerance(1e-5, EXACT)),
        **dict.fromkeys(["bias_error", "rmse_error"], Tolerance(1e-2, EXACT)),
    },
    rows=_tolerance,
    caption=CAPTION,
    claims=CLAIMS,
)
