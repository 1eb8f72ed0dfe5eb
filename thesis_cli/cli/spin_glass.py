"""`thesis-cli spin-glass`: every bound on ln Z of a binary grid."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from thesis_cli.base.errors import InputError, ModelTooLarge
from thesis_cli.base.files import check_writable
from thesis_cli.base.progress import Tick
from thesis_cli.cli import bounds, options, output
from thesis_cli.perturbation.estimate import check_confidence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thesis_cli.models.factor_graph import FactorGraph
    from thesis_cli.perturbation.estimate import Estimate

EXAMPLES = """\b
Examples:
  thesis-cli spin-glass --size 6x6 --coupling 1 --kind mixed --seed 3
  thesis-cli spin-glass --published 1.66667 --kind attractive --alpha -0.04 --alpha 0
  thesis-cli spin-glass --size 5x5 --sweep 0,0.5,1,1.5,2 --samples 200 --seed 1
"""

MOST_SITES = 10**6

MARKERS = {"U": "^", "L": "v", "B": "s", "T": "D"}
"""Of the figure, by the first letter of a method."""


def spin_glass(
    size: Annotated[str, typer.Option(help="Rows x columns.")] = "10x10",
    coupling: Annotated[float, typer.Option(help="C: couplings are U[0, C] or, mixed, U[-C, C].")] = 1.0,
    field: Annotated[float, typer.Option(help="f: fields are U[-f, f].")] = 1.0,
    kind: Annotated[Literal["attractive", "mixed"], typer.Option(help="Of the couplings.")] = "attractive",
    published: Annotated[
        str | None,
        typer.Option(help="C for the author's generator; 1.66667: Thesis Figure 2.4 bit for bit.", show_default=False),
    ] = None,
    sweep: Annotated[
        str | None, typer.Option(help="Couplings, as in 0,0.5,1; with the same random numbers.", show_default=False)
    ] = None,
    samples: Annotated[int, typer.Option(min=1, max=10**8, help="M, the MAP calls of the U and of the L.")] = 1000,
    alpha: Annotated[
        list[float] | None,
        typer.Option(help="Of the bounds U(alpha), L(alpha); may be repeated.", show_default="0 and -0.4/sqrt(n)"),
    ] = None,
    any_alpha: bounds.AnyAlpha = False,
    solver: options.Solver = "auto",
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    interval: bounds.Interval = "normal",
    save: Annotated[Path | None, typer.Option(help="Write the model as a UAI file.", show_default=False)] = None,
    memory: options.Memory = 2.0,
    seed: options.Seed = None,
    jobs: options.Jobs = None,
    out: options.Out = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> None:
    """Bound the partition function of a spin glass: exact, perturb-and-MAP, Bethe and TRW side by side."""
    options.set_messages(quiet, verbose)
    check_confidence(confidence)
    if sweep is not None and (published is not None or save is not None):
        raise InputError("--sweep has many models", "leave out --published and --save")
    if published is not None and field != 1.0:
        raise InputError("--field does not go with --published", "the author's fields are U[-1, 1]")
    rows, columns = _size(size)
    couplings = [coupling] if sweep is None else _couplings(sweep)
    out = output.out_file(out, "spin-glass", f"{kind}-{rows}x{columns}", None)
    if save is not None:
        check_writable("--save", save, ".uai")

    import numpy as np

    from thesis_cli.base.files import write_atomic
    from thesis_cli.models import uai
    from thesis_cli.models.spin_glass import published_spin_glass, random_spin_glass

    began = time.perf_counter()
    seed = options.seed_or_fresh(seed)
    if alpha is None:
        alpha = [0.0] if interval == "concentration" else [0.0, -round(0.4 / math.sqrt(rows * columns), 3)]
    alpha = list(dict.fromkeys(alpha))
    how = bounds.Perturbing(
        samples, seed, options.jobs_or_all(jobs), solver, int(memory * 2**30), alpha, confidence, interval, any_alpha
    )
    found: list[tuple[float | str, FactorGraph, list[Estimate]]] = []
    with options.progress(2 * samples * len(couplings), "MAP calls", quiet) as tick:
        for c in couplings:
            if published is None:
                glass = random_spin_glass(rows, columns, c, field, kind, np.random.default_rng(seed))
            else:
                glass = published_spin_glass(published, kind, rows, columns)
            graph = glass.graph()
            if save is not None:
                write_atomic({save: uai.write(graph)})
                options.logger.info("wrote %s", save)
            found.append((published or c, graph, _estimates(graph, how, tick)))
    seconds = time.perf_counter() - began

    settings: dict[str, object] = {
        "rows": rows,
        "columns": columns,
        "kind": kind,
        "field": 1.0 if published else field,
        "samples": samples,
        "seed": seed,
    }
    table = [{**settings, "coupling": c, **e.row()} for c, _, estimates in found for e in estimates]
    if as_json:
        output.print_json({**settings, "estimates": table, "seconds": round(seconds, 3), "out": str(out)})
    else:
        _print(found, settings, seconds)
    output.write_table(out, table, settings, seconds)
    options.logger.info("wrote %s", out)
    if sweep is not None:
        from thesis_cli.base.figures import save as save_figure

        title = f"{kind} {rows}x{columns}, {samples:,} MAP calls each"
        for path in save_figure(lambda: _figure([(float(c), e) for c, _, e in found], title), out.with_suffix("")):
            options.logger.info("wrote %s", path)


def _size(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,7})x(\d{1,7})", text.strip().lower())
    if not match:
        raise InputError(f"--size {text[:40]}", "rows x columns is wanted, as in 10x10")
    rows, columns = int(match[1]), int(match[2])
    if not 1 <= rows * columns <= MOST_SITES:
        raise InputError(f"--size {text}: {rows * columns:,} sites", f"1 to {MOST_SITES:,} are wanted")
    return rows, columns


def _couplings(text: str) -> list[float]:
    try:
        return list(dict.fromkeys(float(word) for word in text.split(",")))
    except ValueError:
        raise InputError(f"--sweep {text[:40]}", "couplings with commas are wanted, as in 0,0.5,1") from None


def _estimates(graph: FactorGraph, how: bounds.Perturbing, tick: Tick) -> list[Estimate]:
    """Exact ln Z, if it can be had, U and L for every alpha, Bethe and TRW."""
    from thesis_cli.inference.exact import exact_log_partition_function
    from thesis_cli.perturbation.estimate import exact_estimate

    estimates = []
    try:
        log_z, method = exact_log_partition_function(graph, memory=how.memory, max_configurations=2**20)
        estimates.append(exact_estimate(log_z, "lnZ", method))
    except ModelTooLarge as error:
        options.logger.info("no exact ln Z: %s", error.problem)
    for name in ("unary", "average"):
        estimates += bounds.bounds(graph, name, how, tick=tick)
    return [*estimates, *bounds.bounds(graph, "bethe", how), *bounds.bounds(graph, "trw", how)]


def _print(
    found: Sequence[tuple[float | str, FactorGraph, Sequence[Estimate]]], settings: dict[str, object], seconds: float
) -> None:
    lines = []
    for c, graph, estimates in found:
        size = f"{settings['rows']}x{settings['columns']}"
        lines.append(
            ("model", f"{settings['kind']} {size}, coupling {c}, field {settings['field']}: {graph.describe()}")
        )
        lines += [(e.target, f"{e.text()}  ({e.method}, {e.kind})") for e in estimates]
    calls = sum({e.method[0]: e.map_calls for e in found[0][2]}.values()) * len(found)
    lines.append(("cost", f"{calls:,} MAP calls, seed {settings['seed']}, {seconds:.3f} s"))
    output.print_table(lines)


def _figure(found: Sequence[tuple[float, Sequence[Estimate]]], title: str) -> Figure:
    """What each method says against the coupling; less the exact ln Z, where that is known."""
    from thesis_cli.base.figures import COLOURS, label, panels

    figure, axes = panels(1, 1, height=3.2)
    exact = {c: e.value for c, estimates in found for e in estimates if e.kind == "exact"}
    known = len(exact) == len(found)
    for k, method in enumerate(e.method for e in found[0][1] if e.kind != "exact"):
        points = [(c, e) for c, estimates in found for e in estimates if e.method == method]
        axes.errorbar(
            [c for c, _ in points],
            [e.value - (exact[c] if known else 0.0) for c, e in points],
            [2 * e.standard_error for _, e in points],
            marker=MARKERS[method[0]],
            color=COLOURS[k % len(COLOURS)],
            linestyle=("-", "--", ":")[k % 3],
            label=method,
        )
    y = r"estimate $-\ \ln Z$, nats" if known else r"estimate of $\ln Z$, nats"
    label(axes, "coupling $C$", y, f"{title}; bars: two standard errors")
    if known:
        axes.axhline(0, color="black", linewidth=0.8)
    figure.legend(loc="outside right upper")
    return figure
