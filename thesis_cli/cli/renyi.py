"""`thesis-cli renyi`: how uncertain a distribution is."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import typer

from thesis_cli.base.errors import InputError
from thesis_cli.cli import options, output
from thesis_cli.entropy.names import ENTROPIES, ORDER, Design, Quantity
from thesis_cli.perturbation.estimate import check_confidence

EXAMPLES = """\b
Examples, in a checkout:
  thesis-cli renyi data/models/asia.uai --alpha 0 --alpha 1 --alpha 2 --alpha inf --exact
  thesis-cli renyi data/models/zipf-1000.csv --log-z exact --profile --exact
  thesis-cli renyi data/models/ising-4x4.uai --shannon --bounds --samples 1000
"""

DEFAULT_ORDERS: dict[Quantity, Sequence[float]] = {
    "renyi": (0.0, 0.5, 1.0, 2.0, math.inf),
    "tsallis": (0.0, 0.5, 1.0, 2.0),
}

TrickName = Literal["gumbel", "exponential", "weibull", "frechet"]

FUNCTIONS_HEED = ("--alpha", "--quantity", "--noise", "--share-above")
"""Options for what is no entropy but a function of one."""


def renyi(
    model: options.ModelFile,
    alpha: Annotated[
        list[float] | None,
        typer.Option(help="Order, 0 to inf; may be repeated, all from the same noise.", show_default="0 0.5 1 2 inf"),
    ] = None,
    quantity: Annotated[
        Quantity,
        typer.Option(help="What is estimated: an entropy in nats, sum p^2, its inverse, or Tsallis's entropy."),
    ] = "renyi",
    profile: Annotated[bool, typer.Option("--profile", help="The whole curve, with a figure beside --out.")] = False,
    shannon: Annotated[
        bool, typer.Option("--shannon", help="Shannon's entropy, and its bracket by two other orders.")
    ] = False,
    bounds: Annotated[
        bool, typer.Option("--bounds", help="Low-rank bounds, for which a model needs variables, but may be large.")
    ] = False,
    bethe: Annotated[bool, typer.Option("--bethe", help="With the Bethe approximation of ln Z as well.")] = False,
    trw: Annotated[bool, typer.Option("--trw", help="With tree-reweighted ln Z as well.")] = False,
    exact: Annotated[bool, typer.Option("--exact", help="The exact answer as well; alone with --samples 0.")] = False,
    integrand: Annotated[
        str | None,
        typer.Option(
            help="Estimate ln E_p[f] instead: a vector of f(x) >= 0, or a model whose potential is ln f.",
            show_default=False,
        ),
    ] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="MODEL is a vector of probabilities, not of their logarithms.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse probabilities that do not sum to 1.")] = False,
    log_z: Annotated[
        str | None,
        typer.Option("--log-z", help="ln Z: a number (0 for log-probabilities), or 'exact' to compute it first."),
    ] = None,
    samples: Annotated[int, typer.Option(min=0, max=10**7, help="M, the number of perturbations.")] = 100,
    trick: Annotated[TrickName | None, typer.Option(help="What averages the maxima.", show_default="gumbel")] = None,
    power: Annotated[float | None, typer.Option(help="Of weibull or frechet.", show_default="0.5 or -0.2")] = None,
    noise: Annotated[
        Literal["shared", "independent"],
        typer.Option(help="Whether ln Z is estimated under the noise of alpha; independent keeps sum p^2 unbiased."),
    ] = "shared",
    share_above: Annotated[
        float | None, typer.Option(help="Share noise between alpha and ln Z only where the potential is at least this.")
    ] = None,
    design: Annotated[
        Design,
        typer.Option(help="stratified: sets of perturbations that are spread evenly."),
    ] = "independent",
    control: Annotated[
        bool, typer.Option("--control/--no-control", help="Where ln Z is known, use it to reduce the variance.")
    ] = True,
    confidence: Annotated[float, typer.Option(help="Of the interval.")] = 0.95,
    solver: options.Solver = "auto",
    evidence: options.Evidence = None,
    format: options.Format = None,
    max_configurations: Annotated[int, typer.Option(min=1, help="Noise on every one refuses a larger model.")] = 2**30,
    memory: options.Memory = 2.0,
    seed: options.Seed = None,
    jobs: options.Jobs = None,
    out: options.Out = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> None:
    """Estimate Renyi entropies of a model, and what they are the logarithms of, by perturb-and-MAP."""
    options.set_messages(quiet, verbose)
    check_confidence(confidence)
    given = {
        "--alpha": alpha is not None,
        "--quantity": quantity != "renyi",
        "--profile": profile,
        "--shannon": shannon,
        "--bounds": bounds,
        "--bethe": bethe,
        "--trw": trw,
        "--trick": trick is not None,
        "--power": power is not None,
        "--noise": noise != "shared",
        "--share-above": share_above is not None,
        "--design": design != "independent",
        "--no-control": not control,
    }
    _refuse(given, quantity, integrand is not None)
    if samples == 0 and (profile or shannon or bounds or not (exact or bethe or trw)):
        raise InputError("--samples 0 leaves nothing to do", "add --exact, --bethe or --trw, or ask for samples")
    if strict and not probabilities:
        raise InputError("--strict without --probabilities", "it is about their sum")
    if probabilities and log_z is not None:
        raise InputError("--log-z does not go with --probabilities", "their sum is Z")
    if noise == "independent" and share_above is not None:
        raise InputError("--share-above does not go with --noise independent", "one of them")
    if share_above is not None and math.isnan(share_above):
        raise InputError("--share-above nan", "a potential is wanted")
    orders = _orders(alpha, quantity, shannon)
    known = None if log_z == "exact" else _number(log_z)
    out = output.out_file(out, "renyi", model, evidence, integrand)

    from thesis_cli.cli import entropies
    from thesis_cli.models.files import load_model

    rule = entropies.make_trick(trick or "gumbel", power)
    began = time.perf_counter()
    loaded = load_model(model, format, evidence, probabilities)
    room, cores = int(memory * 2**30), options.jobs_or_all(jobs)
    with output.naming(model):
        with options.progress(loaded.size, "configurations", quiet) as tick:
            if probabilities:
                known = entropies.sum_of_probabilities(loaded, strict, max_configurations, tick)
            elif log_z == "exact":
                known = entropies.exact_log_z(loaded, room, max_configurations, tick)
            else:
                entropies.warn_of_probabilities(loaded)
        asked = entropies.Asked(
            quantity=quantity,
            alphas=orders,
            confidence=confidence,
            trick=rule,
            control=control,
            samples=samples,
            share_above=math.inf if noise == "independent" else -math.inf if share_above is None else share_above,
            design=design,
            log_z=known,
            solver=solver,
            memory=room,
            limit=max_configurations,
            seed=options.seed_or_fresh(seed),
            jobs=cores,
        )
        if integrand is None:
            wanted = entropies.Wanted(exact, profile, shannon, bounds, bethe, trw)
            result = entropies.entropies(loaded, asked, wanted, quiet)
        else:
            result = entropies.integral(loaded, integrand, asked, exact, quiet)
    seconds = time.perf_counter() - began

    settings = {
        "model": model,
        "evidence": evidence and str(evidence),
        "integrand": integrand,
        "configurations": loaded.size,
        "samples": samples,
        "log_z": known,
        "noise": "independent" if asked.share_above == math.inf else "shared",
        "share_above": share_above,
        "design": design,
        "seed": asked.seed,
    }
    rows = [f.row() for f in result.found]
    if as_json:
        output.print_json({**settings, "estimates": rows, "seconds": round(seconds, 3), "out": str(out)})
    else:
        lines = [("model", f"{model}: {loaded.describe()}")]
        lines += [(f.estimate.target, f"{f.estimate.text()}  ({f.described()})") for f in result.found]
        perturbed = any(f.estimate.map_calls for f in result.found)
        cost = f"{samples:,} perturbations, seed {asked.seed}, " if perturbed else ""
        output.print_table([*lines, ("cost", f"{cost}{seconds:.3f} s")])
    table = [{"model": model, "seed": asked.seed, **f.row()} for f in (*result.found, *result.curve)]
    output.write_table(out, table, settings, seconds)
    options.logger.info("wrote %s", out)
    if result.curve:
        from thesis_cli.base.figures import save
        from thesis_cli.cli.profile import draw_profile

        for path in save(lambda: draw_profile(result, f"{model}, {samples:,} perturbations"), out.with_suffix("")):
            options.logger.info("wrote %s", path)


def _refuse(given: Mapping[str, bool], quantity: Quantity, integral: bool) -> None:
    """Raise `InputError` for an option that what is asked for does not heed."""
    if integral:
        unheeded, by = tuple(given), "--integrand"
    elif quantity not in ENTROPIES:
        unheeded, by = tuple(o for o in given if o not in FUNCTIONS_HEED), f"--quantity {quantity}"
    else:
        unheeded, by = (), ""
    if given["--shannon"] and quantity not in ("renyi", "shannon"):
        raise InputError(f"--shannon does not go with --quantity {quantity}", "it is about H_1")
    for option in unheeded:
        if given[option]:
            raise InputError(f"{option} does not go with {by}", "it is for entropies")
    if given["--alpha"] and quantity in ORDER:
        raise InputError(f"--alpha does not go with --quantity {quantity}", f"its alpha is {ORDER[quantity]:g}")


def _orders(alphas: Sequence[float] | None, quantity: Quantity, shannon: bool) -> tuple[float, ...]:
    """The orders asked for, each once."""
    if quantity in ORDER:
        return (ORDER[quantity],)
    chosen = alphas or ([1.0] if shannon else DEFAULT_ORDERS[quantity])
    for alpha in chosen:
        if not alpha >= 0:
            raise InputError(f"--alpha {alpha:g}", "the order of a Renyi entropy is 0 or above, or inf")
        if quantity == "tsallis" and alpha == math.inf:
            raise InputError(
                "--alpha inf with --quantity tsallis", "a finite order; at inf it is 0, whatever the model"
            )
    return tuple(dict.fromkeys(chosen))


def _number(log_z: str | None) -> float | None:
    if log_z is None:
        return None
    try:
        value = float(log_z)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"--log-z {log_z[:40]}", "a number, or 'exact', is wanted")
    return value
