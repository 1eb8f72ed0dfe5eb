"""`thesis-cli map`: the most probable configuration of a model."""

from __future__ import annotations

import math
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from thesis_cli.cli import options, output

if TYPE_CHECKING:
    from thesis_cli.inference.exact import MapResult

EXAMPLES = """\b
Examples, in a checkout:
  thesis-cli map data/models/ising-4x4.uai
  thesis-cli map data/models/asia.uai --evidence data/models/asia-xray.evid --json
"""

SHOWN = 64
"""Variables whose states the summary lists; the file has all."""


def map_state(
    model: options.ModelFile,
    evidence: options.Evidence = None,
    format: options.Format = None,
    solver: options.Solver = "auto",
    max_configurations: Annotated[int, typer.Option(min=1, help="Enumeration refuses a larger model.")] = 2**30,
    memory: options.Memory = 2.0,
    out: options.Out = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> None:
    """Find the most probable configuration (MAP) of a model, and say how good it is."""
    options.set_messages(quiet, verbose)
    out = output.out_file(out, "map", model, evidence)

    from thesis_cli.inference.exact import best_configuration
    from thesis_cli.models.files import load_model

    began = time.perf_counter()
    loaded = load_model(model, format, evidence)
    with output.naming(model), options.progress(loaded.size, "configurations", quiet) as tick:
        result = best_configuration(
            loaded, solver, memory=int(memory * 2**30), max_configurations=max_configurations, progress=tick
        )
    seconds = time.perf_counter() - began
    settings = {"model": model, "evidence": evidence and str(evidence)}
    states = result.states
    found = {**asdict(result), "states": states.tolist()}
    if as_json:
        output.print_json({**settings, **found, "seconds": round(seconds, 3), "out": str(out)})
    else:
        shown = " ".join(map(str, states[:SHOWN])) + f" ... ({states.size} in all)" * (states.size > SHOWN)
        output.print_table(
            [
                ("model", f"{model}: {loaded.describe()}"),
                ("max phi", f"{result.value + 0.0:.12g}  ({result.method}, {_certificate(result)})"),
                ("states", shown),
                ("cost", f"{seconds:.3f} s"),
            ]
        )
    if result.why:
        options.logger.debug(result.why)
    rows = [{"variable": i, "state": int(state)} for i, state in enumerate(states)]
    output.write_table(out, rows, {**settings, **{k: v for k, v in found.items() if k != "states"}}, seconds)
    options.logger.info("wrote %s", out)


def _certificate(result: MapResult) -> str:
    if result.guarantee == "exact":
        return "exact"
    if result.bound == math.inf:
        return "no bound"
    return f"at most {result.bound - result.value:.3g} below the largest"
