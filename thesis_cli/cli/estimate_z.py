"""`thesis-cli estimate-z`: the partition function of a model."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from thesis_cli.cli import options, output
from thesis_cli.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from thesis_cli.models.factor_graph import Model
    from thesis_cli.perturbation.estimate import Estimate
    from thesis_cli.perturbation.full_rank import PerturbedMaxima
    from thesis_cli.perturbation.posterior import GammaPosterior
    from thesis_cli.perturbation.tricks import Trick

EXAMPLES = """\b
Examples, in a checkout:
  thesis-cli estimate-z data/models/asia.uai --evidence data/models/asia-xray.evid
  thesis-cli estimate-z data/models/ising-4x4.uai --trick all --samples 1000 --exact
  thesis-cli estimate-z data/models/sat-16-60.uai --trick exponential --target Z
"""

TrickName = Literal["gumbel", "exponential", "weibull", "frechet", "pareto", "tail", "all"]
DEFAULT_ALPHA = {"weibull": 0.5, "frechet": -0.2}

PARETO_SCALE = 0.1
"""s of the Pareto trick in units of exp(max phi) <= Z: its asymptotic variance is then within 1.3% of the best."""
PILOT_CALLS = 16
"""MAP calls that set t of the tail trick: ln Z to 0.25, which leaves it near its best."""


def estimate_z(
    model: options.ModelFile,
    trick: Annotated[TrickName, typer.Option(help="Estimator; 'all' compares them on the same MAP values.")] = "gumbel",
    alpha: Annotated[
        float | None,
        typer.Option(help="Of weibull (above 0) or frechet (-1 to 0).", show_default="0.5 or -0.2"),
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
    debias: Annotated[
        bool, typer.Option("--debias/--no-debias", help="Remove the bias where it is known exactly.")
    ] = True,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="The exact answer as well, by elimination or enumeration; alone with --samples 0."
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
    """Estimate the partition function of a model by perturb-and-MAP with full-rank noise."""
    options.set_messages(quiet, verbose)
    if samples == 0 and not exact:
        raise InputError("--samples 0 leaves nothing to do", "add --exact, or ask for samples")
    if not 0 < confidence < 1:
        raise InputError(f"--confidence is {confidence:g}", "a number between 0 and 1 is wanted")
    out = output.out_file(out, "estimate-z", model, evidence)

    import numpy as np

    from thesis_cli.models.files import load_model
    from thesis_cli.perturbation.estimators import estimate
    from thesis_cli.perturbation.posterior import GammaPosterior

    began = time.perf_counter()
    _check_parameters(trick, alpha, threshold)
    loaded = load_model(model, format, evidence)
    seed = options.seed_or_fresh(seed)
    estimates: list[Estimate] = []
    posterior = None
    with output.naming(model):
        if exact:
            with options.progress(loaded.size, "configurations", quiet) as tick:
                estimates.append(_exact(loaded, target, int(memory * 2**30), max_configurations, tick))
        if samples:
            calls = _Calls(loaded, seed, options.jobs_or_all(jobs), max_configurations)
            with options.progress(loaded.size * samples, "clocks", quiet) as tick:
                maxima = calls.maxima(samples, tick)
            for each in _tricks(trick, alpha, threshold, maxima.highest, calls):
                found = estimate(each, maxima.values, target=target, debias=debias, confidence=confidence)
                pilot = PILOT_CALLS if each.name == "tail" and threshold is None else 0
                estimates.append(replace(found, map_calls=samples + pilot))
            posterior = GammaPosterior.from_log_times(-np.euler_gamma - maxima.values)
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


def _check_parameters(name: TrickName, alpha: float | None, threshold: float | None) -> None:
    if alpha is not None and name not in DEFAULT_ALPHA:
        raise InputError(f"--alpha does not go with --trick {name}", "it belongs to weibull and frechet")
    if threshold is not None and name not in ("tail", "all"):
        raise InputError(f"--threshold does not go with --trick {name}", "it belongs to tail")
    if threshold is not None and not 0 < threshold < math.inf:
        raise InputError(f"--threshold is {threshold:g}", "a number above 0 is wanted")
    if alpha is not None:
        from thesis_cli.perturbation.tricks import power

        if power(alpha).name not in (name, "exponential"):
            raise InputError(
                f"--alpha {alpha:g} does not go with --trick {name}", "weibull has it above 0, frechet below"
            )


class _Calls:
    """MAP calls on one model: those that are averaged, and a pilot that is independent of them."""

    def __init__(self, model: Model, seed: int, jobs: int, limit: int) -> None:
        import numpy as np

        self._model, self._jobs, self._limit = model, jobs, limit
        self._seed, self._pilot_seed = np.random.SeedSequence(seed).spawn(2)

    def maxima(self, count: int, tick: options.Tick) -> PerturbedMaxima:
        return self._solve(count, self._seed, tick)

    def pilot_log_z(self) -> float:
        return float(self._solve(PILOT_CALLS, self._pilot_seed, None).values.mean())

    def _solve(self, count: int, seed: np.random.SeedSequence, tick: options.Tick | None) -> PerturbedMaxima:
        from thesis_cli.perturbation.full_rank import perturbed_maxima

        return perturbed_maxima(
            self._model, count, seed, jobs=self._jobs, max_configurations=self._limit, progress=tick
        )


def _tricks(
    name: TrickName, alpha: float | None, threshold: float | None, highest: float, calls: _Calls
) -> list[Trick]:
    """The tricks asked for. What sets their scale is independent of the MAP values that they average."""
    from thesis_cli.perturbation import tricks

    def tail() -> Trick:
        if threshold is not None:
            return tricks.tail(math.log(threshold))
        return tricks.tail(math.log(tricks.TAIL_OPTIMUM) - calls.pilot_log_z())

    makers = {
        "gumbel": tricks.gumbel,
        "exponential": lambda: tricks.power(1.0),
        "weibull": lambda: tricks.power(DEFAULT_ALPHA["weibull"] if alpha is None else alpha),
        "frechet": lambda: tricks.power(DEFAULT_ALPHA["frechet"] if alpha is None else alpha),
        "pareto": lambda: tricks.pareto(highest + math.log(PARETO_SCALE)),
        "tail": tail,
    }
    return [make() for make in makers.values()] if name == "all" else [makers[name]()]


def _exact(model: Model, target: str, memory: int, limit: int, tick: options.Tick) -> Estimate:
    from thesis_cli.inference.exact import exact_log_partition_function
    from thesis_cli.perturbation.estimate import exact_estimate

    log_z, method = exact_log_partition_function(model, memory=memory, max_configurations=limit, progress=tick)
    if log_z == -math.inf:
        raise InputError("no configuration is possible (Z = 0)", "a configuration of finite potential is wanted")
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
    calls = f"{summary['samples']:,} MAP calls, seed {summary['seed']}, " if posterior else ""
    lines.append(("cost", f"{calls}{summary['seconds']} s"))
    output.print_table(lines)
