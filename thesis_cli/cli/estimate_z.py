"""`thesis-cli estimate-z`: the partition function of a model."""

from __future__ import annotations

import math
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Literal, cast, get_args

import typer

from thesis_cli.base.errors import InputError, ModelTooLarge, NoConfiguration, WorkFailed
from thesis_cli.base.progress import Tick
from thesis_cli.cli import bounds, estimate_z_report, options, output, sampled, sources
from thesis_cli.cli.full_rank import Calls, ModelCalls, TrickName, check_parameters, full_rank
from thesis_cli.perturbation.estimate import check_confidence

if TYPE_CHECKING:
    from thesis_cli.models.factor_graph import Model
    from thesis_cli.perturbation.estimate import Estimate

EXAMPLES = """\b
Examples, in a checkout:
  thesis-cli estimate-z data/models/asia.uai --evidence data/models/asia-xray.evid
  thesis-cli estimate-z data/models/ising-4x4.uai --trick all --samples 1000 --exact
  thesis-cli estimate-z data/models/sat-16-60.uai --trick exponential --target Z
  thesis-cli estimate-z data/models/ising-4x4.uai --method unary --alpha 0 --alpha -0.1 --samples 1000
  thesis-cli estimate-z --target data/models/line.csv --trick exponential --samples 1000 --exact --figure
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

LIMIT = 2**30
"""Configurations beyond which full-rank noise is refused, by default."""

MOST_CONFIGURATIONS = 2**26
"""Up to which `auto` perturbs every configuration: 100 samples take half a minute of one core."""


def estimate_z(
    model: options.ModelFileOrNone = None,
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
        list[str] | None,
        typer.Option(
            help="lnZ, Z, or f (the trick's own f(Z)): what is estimated. And in the place of MODEL a continuous "
            "target: a CSV file, x and y of a regression, or a Python object, module:object.",
            show_default="lnZ",
            metavar="lnZ|Z|f|FILE|OBJECT",
        ),
    ] = None,
    factors: sources.Factors = None,
    delta: sources.Delta = None,
    bound: sources.Bound = None,
    prior_scale: sources.PriorScale = None,
    noise_scale: sources.NoiseScale = None,
    figure: sources.Figure = False,
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
            help="The exact answer as well, by grid transfer, elimination or enumeration, of a continuous target by "
            "quadrature; alone with --samples 0.",
        ),
    ] = False,
    evidence: options.Evidence = None,
    format: options.Format = None,
    max_configurations: Annotated[
        int | None, typer.Option(min=1, help="Full-rank noise refuses a larger model.", show_default=f"{LIMIT}")
    ] = None,
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
    quantity, continuous = sources.quantity_and_target(target or [])
    if samples == 0 and not exact and method not in ("exact", "bethe", "trw"):
        raise InputError("--samples 0 leaves nothing to do", "add --exact, or ask for samples")
    if samples == 0 and figure:
        raise InputError("--figure with --samples 0", "there are samples to draw with more")
    check_confidence(confidence)
    source = sources.one_source(model, continuous, factors)
    of_models = {
        "--any-alpha": any_alpha,
        "--confidence-method": interval != "normal",
        "--solver": solver != "auto",
        "--subsets": subsets is not None,
        "--clamp": clamp is not None,
    }
    files = {"--evidence": evidence, "--format": format, "--max-configurations": max_configurations}
    sources.refuse_of_models(model, {"--method": method != "auto", **of_models, **files})
    sources.refuse_of_factors(factors, delta, bound)
    sources.refuse_of_targets(continuous, prior_scale, noise_scale, figure)
    given = {
        "--trick": trick is not None,
        "--threshold": threshold is not None,
        "--no-debias": not debias,
        "--target": quantity != "lnZ",
        "--alpha": alpha is not None,
        **of_models,
    }
    for option in (name for name, used in given.items() if used):
        if method not in USED_BY[option]:
            raise InputError(f"{option} does not go with --method {method}", f"it is for {', '.join(USED_BY[option])}")
    one_alpha = check_parameters(trick or "gumbel", alpha, threshold) if method in FULL_RANK else None
    out = output.out_file(out, "estimate-z", source, evidence)
    began = time.perf_counter()
    seed = options.seed_or_fresh(seed)
    cores, room = options.jobs_or_all(jobs), int(memory * 2**30)
    names: list[MethodName] = ["full-rank"]
    estimates: list[Estimate] = []
    posterior = None
    calls: Calls
    with ExitStack() as stack:
        stack.enter_context(output.naming(source))
        if factors is not None:
            calls = sampled.RacingCalls(factors, delta, bound, seed, cores, room)
        elif continuous is not None:
            calls = sampled.TargetCalls(source, prior_scale, noise_scale, seed, cores)
        else:
            from thesis_cli.models.files import load_model

            loaded = load_model(source, format, evidence)
            calls = ModelCalls(loaded, seed, cores, max_configurations or LIMIT, room)
            names = _methods(method, loaded, trick is not None)
        stack.enter_context(calls.at_work())
        if exact or "exact" in names:
            with options.progress(calls.size, calls.terms, quiet) as tick:
                try:
                    estimates.append(_exact(calls, quantity, tick))
                except ModelTooLarge as error:
                    if exact or method == "exact":
                        raise
                    options.logger.info("no exact ln Z: %s; bounds instead", error.problem)
                    names = ["unary", "average"]
                except WorkFailed as error:
                    if not samples:
                        raise
                    options.logger.warning("no exact answer: %s", error)
                    estimates.append(estimate_z_report.not_known(error, quantity))
        if "full-rank" in names and samples:
            with options.progress(calls.size * samples, calls.unit, quiet) as tick:
                found, posterior = full_rank(
                    trick or "gumbel",
                    one_alpha,
                    threshold,
                    calls,
                    samples,
                    tick,
                    target=quantity,
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
        if figure and isinstance(calls, sampled.TargetCalls):
            calls.save_figure(out)

    settings = {
        "model": source,
        "evidence": evidence and str(evidence),
        **calls.settings,
        "samples": samples,
        "seed": seed,
        "debias": debias,
    }
    summary = estimate_z_report.summary(settings, calls, estimates, posterior, confidence, seconds, out)
    if as_json:
        output.print_json(summary)
    else:
        estimate_z_report.print_summary(summary, calls, estimates, posterior, confidence)
    output.write_table(out, [{"model": source, "seed": seed, **e.row()} for e in estimates], settings, seconds)
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


def _exact(calls: Calls, target: str, tick: Tick) -> Estimate:
    found = calls.exact(tick)
    if found.log_z == -math.inf:
        raise NoConfiguration()
    return estimate_z_report.exact(found, "Z" if target == "Z" else "lnZ")
