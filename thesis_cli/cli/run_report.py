"""The page of `thesis-cli report RUN.csv ...`: a user's own runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from thesis_cli.base.errors import InputError
from thesis_cli.base.wording import counted
from thesis_cli.cli import options, output

NAME = "runs.html"
"""Default name of the page."""


def report_runs(runs: Sequence[Path], out: Path | None, as_json: bool) -> None:
    """Write one page with the figures, settings and tables of runs, beside the first.

    Raises
    ------
    InputError : a table is missing or none, or the file of the page is another one's.
    """
    from thesis_cli.base.files import check_writable, write_atomic
    from thesis_cli.reproduction.plots.run import read_run
    from thesis_cli.reproduction.report.runs import GENERATOR, page

    found = out or runs[0].with_name(NAME)
    check_writable("--out", found, ".html")
    if found.is_file() and f'name="generator" content="{GENERATOR}"'.encode() not in found.read_bytes()[:1000]:
        raise InputError(f"--out {found} exists, and is no page of report RUN.csv", "give another name")
    text, faults = page([read_run(path) for path in runs])
    data = text.encode()
    if not found.is_file() or found.read_bytes() != data:
        write_atomic({found: data})
    for fault in faults:
        options.logger.warning("%s", fault)
    if as_json:
        output.print_json(
            {"page": str(found), "bytes": len(data), "runs": [str(run) for run in runs], "faults": faults}
        )
        return
    typer.echo(f"page    {output.short(found)}, {len(data) / 2**20:.1f} MiB")
    typer.echo(f"shows   {counted(len(runs), 'run')}")
