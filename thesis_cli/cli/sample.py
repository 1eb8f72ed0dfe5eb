"""`thesis-cli sample`: configurations drawn from a model."""

from __future__ import annotations

import time
from typing import Annotated, Literal

import typer

from thesis_cli.base.errors import InputError
from thesis_cli.cli import options, output

EXAMPLES = """\b
Examples, in a checkout:
  thesis-cli sample data/models/asia.uai --count 1000 --seed 1
  thesis-cli sample data/models/ising-4x4.uai --method perturb --count 100
"""

LIMIT = 2**30
"""Configurations beyond which a model is not enumerated, by default."""

SHOWN = 16
"""Variables whose marginals the summary lists."""


def sample(
    model: options.ModelFileOrNone = None,
    count: Annotated[int, typer.Option(min=1, max=10**8, help="Configurations to draw.")] = 1000,
    method: Annotated[
        Literal["exact", "sequential", "perturb"],
        typer.Option(help="exact: backward sampling; sequential: Thesis Algorithm 1; perturb: MAP under unary noise."),
    ] = "exact",
    alpha: Annotated[float | None, typer.Option(help="Of the bound U(alpha) of sequential.", show_default="0")] = None,
    samples: Annotated[
        int | None, typer.Option(min=1, help="MAP calls for each bound of sequential.", show_default="1000")
    ] = None,
    solver: options.Solver = "auto",
    evidence: options.Evidence = None,
    format: options.Format = None,
    max_configurations: Annotated[
        int | None, typer.Option(min=1, help="Enumeration refuses a larger model.", show_default=f"{LIMIT}")
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
    """Draw configurations from the Gibbs distribution of a model."""
    options.set_messages(quiet, verbose)
    if model is None:
        raise InputError("MODEL is missing", "see --help")
    source = model
    if method != "sequential" and (alpha, samples) != (None, None):
        raise InputError(f"--alpha and --samples do not go with --method {method}", "they are for sequential")
    if method == "exact" and solver != "auto":
        raise InputError("--solver does not go with --method exact", "it is for sequential and perturb")
    out = output.out_file(out, "sample", source, evidence)

    import numpy as np

    from thesis_cli.models.factor_graph import FactorGraph
    from thesis_cli.models.files import load_model

    began = time.perf_counter()
    loaded = load_model(source, format, evidence)
    seed = options.seed_or_fresh(seed)
    room = int(memory * 2**30)
    with output.naming(source), options.progress(count, "draws", quiet) as tick:
        if method == "exact":
            from thesis_cli.inference.sampling import exact_samples

            rng = np.random.default_rng(seed)
            states, how = exact_samples(loaded, count, rng, memory=room, max_configurations=max_configurations or LIMIT)
            facts: dict[str, object] = {"by": how, "distribution": "Gibbs, exact"}
        elif not isinstance(loaded, FactorGraph):
            raise InputError(f"--method {method} wants variables, this is a vector", "exact takes vectors")
        else:
            from thesis_cli.inference.choose import map_solver

            chosen, why = map_solver(loaded, solver, room)
            options.logger.debug("MAP by %s%s", chosen.name, f" ({why})" if why else "")
            root = np.random.SeedSequence(seed)
            if method == "perturb":
                from thesis_cli.perturbation.low_rank import low_rank_maxima

                maxima = low_rank_maxima(chosen, count, root, jobs=options.jobs_or_all(jobs), progress=tick)
                states = loaded.original_states(maxima.states)
                facts = {"by": chosen.name, "distribution": "of the maximiser under unary noise, not Gibbs"}
            else:
                from thesis_cli.perturbation.sequential import SequentialSampler

                sampler = SequentialSampler(chosen, alpha or 0.0, samples or 1000, root)
                draws = sampler.draw(count, tick)
                states = loaded.original_states(draws.states)
                facts = {
                    "by": chosen.name,
                    "distribution": "Gibbs"
                    + ", but for the clipped steps" * (draws.clipped > 0)
                    + ", but for maxima that are not" * (chosen.guarantee != "exact"),
                    "attempts": draws.attempts,
                    "acceptance": draws.acceptance,
                    "clipped": draws.clipped,
                    "log_bound": sampler.log_bound,
                    "map_calls": sampler.map_calls,
                }
    seconds = time.perf_counter() - began

    names = ["index"] if not isinstance(loaded, FactorGraph) else [f"x{i}" for i in range(states.shape[1])]
    settings = {"model": source, "evidence": evidence and str(evidence), "count": count, "method": method, "seed": seed}
    if as_json:
        output.print_json({**settings, **facts, "seconds": round(seconds, 3), "out": str(out)})
    else:
        lines = [
            ("model", f"{source}: {loaded.describe()}"),
            ("draws", f"{count:,} by {facts['by']}: {facts['distribution']}"),
        ]
        if method == "sequential":
            lines.append(
                (
                    "accepted",
                    f"{facts['acceptance']:.3g} of {facts['attempts']:,} attempts, {facts['clipped']:,} clipped steps, "
                    f"{facts['map_calls']:,} MAP calls",
                )
            )
        means = " ".join(f"{m:.3f}" for m in states[:, :SHOWN].mean(axis=0))
        lines.append(("mean", means + f" ... ({states.shape[1]} in all)" * (states.shape[1] > SHOWN)))
        lines.append(("cost", f"seed {seed}, {seconds:.3f} s"))
        output.print_table(lines)
    output.write_array(out, names, states, {**settings, **facts}, seconds)
    options.logger.info("wrote %s", out)
