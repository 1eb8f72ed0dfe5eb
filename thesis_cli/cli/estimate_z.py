"""`thesis-cli estimate-z`: the partition function of a model."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, cast, get_args

import typer

from thesis_cli.cli import bounds, options, output
from thesis_cli.cli.full_rank import Calls, TrickName, check_parameters, full_rank
from thesis_cli.errors import InputError, ModelTooLarge, NoConfiguration
from thesis_cli.perturbation.estimate import check_confidence

if TYPE_CHECKING:
    from thesis_cli.models.factor_graph import Model
    from thesis_cli.perturbation.estimate import Estimate
    from thesis_cli.perturbation.posterior import GammaPosterior

EXAMPLES = """\b
Examples, in a checkout:
  thesis-cli estimate-z data/models/asia.uai --evidence data/models/asia-xray.evid
  thesis-cli estimate-z data/models/ising-4x4.uai --trick all --samples 1000 --exact
  thesis-cli estimate-z data/models/sat-16-60.uai --trick exponential --target Z
  thesis-cli estimate-z data/models/ising-4x4.uai --method unary --alpha 0 --alpha -0.1 --samples 1000
"""

MethodName = Literal["auto", "exact", "full-rank", "unary", "average", "subset", "bethe", "trw"]

FULL_RANK = ("auto", "full-rank")
PERTURBED = ("unary", "average", "subset")
USED_BY: dict[str, tuple[str, ...]] = {
    "--trick": FULL_RANK,
    "--threshold": FULL_RANK,
    "--no-debias": FULL_RANK,
    "--target": (*FULL_RANK, "exact"),
    "--alpha": (*FULL_RANK, *PERTURBED),
    "--any-alpha": PERTURBED,
    "--confidence-method": PERTURBED,
    "--solver": ("auto", *PERTURBED),
    "--subsets": ("subset",),
    "--clamp": ("unary",),
}
"""Methods that heed an option."""

MOST_CONFIGURATIONS = 2**26
"""Up to which `auto` perturbs every configuration: 100 samples take half a minute of one core."""


def estimate_z(
    model: options.ModelFile,
    method: Annotated[
        MethodName,
        typer.Option(
            help="full-rank: noise on configurations; unary, average, subset: bounds by noise on variables or sets "
            "of them; auto says with -v what it chose and why."
        ),
    ] = "auto",
    trick: Annotated[
        TrickName | None,
        typer.Option(help="Estimator of full-rank; 'all' compares them on the same MAP values.", show_default="gumbel"),
    ] = None,
    alpha: Annotated[
        list[float] | None,
        typer.Option(
            help="Of weibull (above 0) or frechet (-1 to 0); of the bounds, where it may be repeated.",
            show_default="0.5 or -0.2; 0",
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="t of the tail trick.", show_default="1.59 / Z, where Z is from 16 further MAP calls"),
    ] = None,
    samples: Annotated[int, typer.Option(min=0, max=10**8, help="M, the number of MAP calls.")] = 100,
    target: Annotated[
        Literal["lnZ", "Z", "f"], typer.Option(help="What is estimated; f is the trick's own f(Z).")
    ] = "lnZ",
    confidence: Annotated[float, typer.Option(help="Of the interval.")] = 0.95,
    interval: bounds.Interval = "normal",
    debias: Annotated[
        bool, typer.Option("--debias/--no-debias", help="Remove the bias where it is known exactly.")
    ] = True,
    any_alpha: bounds.AnyAlpha = False,
    subsets: bounds.Subsets = None,
    clamp: bounds.Clamp = None,
    solver: options.Solver = "auto",
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="The exact answer as well, by grid transfer, elimination or enumeration; alone with --samples 0.",
        ),
    ] = False,
    evidence: options.Evidence = None,
    format: options.Format = None,
    max_configurations: Annotated[int, typer.Option(min=1, help="Full-rank noise refuses a larger model.")] = 2**30,
    memory: options.Memory = 2.0,
    seed: options.Seed = None,
    jobs: options.Jobs = None,
    out: options.Out = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> None:
    """Estimate the partition function of a model by perturb-and-MAP, or bound it."""
    options.set_messages(quiet, verbose)
    if samples == 0 and not exact and method not in ("exact", "bethe", "trw"):
        raise InputError("--samples 0 leaves nothing to do", "add --exact, or ask for samples")
    check_confidence(confidence)
    given = {
        "--trick": trick is not None,
        "--threshold": threshold is not None,
        "--no-debias": not debias,
        "--target": target != "lnZ",
        "--alpha": alpha is not None,
        "--any-alpha": any_alpha,
        "--confidence-method": interval != "normal",
        "--solver": solver != "auto",
        "--subsets": subsets is not None,
        "--clamp": clamp is not None,
    }
    for option in (name for name, used in given.items() if used):
        if method not in USED_BY[option]:
            raise InputError(f"{option} does not go with --method {method}", f"it is for {', '.join(USED_BY[option])}")
    one_alpha = check_parameters(trick or "gumbel", alpha, threshold) if method in FULL_RANK else None
    out = output.out_file(out, "estimate-z", model, evidence)

    from thesis_cli.models.files import load_model

    began = time.perf_counter()
    loaded = load_model(model, format, evidence)
    seed = options.seed_or_fresh(seed)
    cores, room = options.jobs_or_all(jobs), int(memory * 2**30)
    estimates: list[Estimate] = []
    posterior = None
    with output.naming(model):
        names = _methods(method, loaded, trick is not None)
        if exact or "exact" in names:
            with options.progress(loaded.size, "configurations", quiet) as tick:
                try:
                    estimates.append(_exact(loaded, target, room, max_configurations, tick))
                except ModelTooLarge as error:
                    if exact or method == "exact":
                        raise
                    options.logger.info("no exact ln Z: %s; bounds instead", error.problem)
                    names = ["unary", "average"]
        if "full-rank" in names and samples:
            calls = Calls(loaded, seed, cores, max_configurations)
            with options.progress(loaded.size * samples, "clocks", quiet) as tick:
                found, posterior = full_rank(
                    trick or "gumbel",
                    one_alpha,
                    threshold,
                    calls,
                    samples,
                    tick,
                    target=target,
                    debias=debias,
                    confidence=confidence,
                )
            estimates += found
        how = bounds.Perturbing(
            samples, seed, cores, solver, room, list(dict.fromkeys(alpha or [0.0])), confidence, interval, any_alpha
        )
        clamped = bounds.parse_variables(clamp)
        for name in names:
            if name in get_args(bounds.BoundName):
                with options.progress(samples, "MAP calls", quiet) as tick:
                    estimates += bounds.bounds(
                        loaded, cast(bounds.BoundName, name), how, subsets=subsets, clamp=clamped, tick=tick
                    )
    seconds = time.perf_counter() - began

    settings = {
        "model": model,
        "evidence": evidence and str(evidence),
        "configurations": loaded.size,
        "samples": samples,
        "seed": seed,
        "debias": debias,
    }
    summary: dict[str, object] = {
        **settings,
        "estimates": [e.row() for e in estimates],
        "posterior": posterior and _posterior_row(posterior, confidence),
        "seconds": round(seconds, 3),
        "out": str(out),
    }
    if as_json:
        output.print_json(summary)
    else:
        _print(summary, loaded, estimates, posterior, confidence)
    output.write_table(out, [{"model": model, "seed": seed, **e.row()} for e in estimates], settings, seconds)
    options.logger.info("wrote %s", out)


def _methods(method: MethodName, model: Model, tricked: bool) -> list[MethodName]:
    """What `auto` stands for: full-rank where it is quick, otherwise the exact answer (or, without one, bounds)."""
    from thesis_cli.models.factor_graph import FactorGraph

    if method != "auto":
        return [method]
    if tricked or not isinstance(model, FactorGraph) or model.size <= MOST_CONFIGURATIONS:
        return ["full-rank"]
    options.logger.info("too many configurations for full-rank noise; exact ln Z, if it can be had")
    return ["exact"]


def _exact(model: Model, target: str, memory: int, limit: int, tick: options.Tick) -> Estimate:
    from thesis_cli.inference.exact import exact_log_partition_function
    from thesis_cli.perturbation.estimate import exact_estimate

    log_z, method = exact_log_partition_function(model, memory=memory, max_configurations=limit, progress=tick)
    if log_z == -math.inf:
        raise NoConfiguration()
    return exact_estimate(log_z, "Z" if target == "Z" else "lnZ", method)


def _posterior_row(posterior: GammaPosterior, confidence: float) -> dict[str, object]:
    low, high = posterior.interval(confidence)
    return {
        "distribution": "Gamma",
        "shape": posterior.shape,
        "log_rate": posterior.log_rate,
        "mean_log_z": posterior.mean_log_z,
        "deviation_log_z": posterior.deviation_log_z,
        "low_log_z": low,
        "high_log_z": high,
        "source": "Thesis eq. 2.5",
    }


def _print(
    summary: dict[str, object],
    model: Model,
    estimates: Sequence[Estimate],
    posterior: GammaPosterior | None,
    confidence: float,
) -> None:
    from thesis_cli.perturbation.estimate import decimals

    lines = [("model", f"{summary['model']}: {model.describe()}")]
    lines += [(e.target, f"{e.text()}  ({e.method}, {e.kind})") for e in estimates]
    if posterior:
        low, high = posterior.interval(confidence)
        digits = decimals(posterior.deviation_log_z, posterior.mean_log_z)
        lines.append(
            (
                "posterior",
                f"ln Z = {posterior.mean_log_z:.{digits}f}  standard deviation {posterior.deviation_log_z:.{digits}f}  "
                f"{100 * confidence:.12g}% interval [{low:.{digits}f}, {high:.{digits}f}]  (Bayesian, Jeffreys prior)",
            )
        )
    number = summary["samples"] if posterior else sum({e.method[0]: e.map_calls for e in estimates}.values())
    calls = f"{number:,} MAP calls, seed {summary['seed']}, " if number else ""
    lines.append(("cost", f"{calls}{summary['seconds']} s"))
    output.print_table(lines)
