"""`thesis-cli report`: one page of HTML with every figure, claim and verdict."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from thesis_cli.base.errors import InputError
from thesis_cli.base.wording import counted
from thesis_cli.cli import options, output
from thesis_cli.cli.own import OwnCommand, Shared
from thesis_cli.cli.run_report import report_runs
from thesis_cli.commands.core.fields import argument, option
from thesis_cli.commands.core.request import Request


@dataclass(frozen=True, kw_only=True)
class ReportRequest(Request):
    """Write one page of HTML with every figure, its caption, and the verdicts on all claims.

    The page is made from the files in results/ alone, and needs no other file and no network.
    """

    runs: tuple[Path, ...] | None = argument(
        "Tables of your own runs, to put on a page of their own.",
        default=None,
        default_text="none: the results of the experiments",
        metavar="RUN.csv",
    )
    out: Path | None = option(
        None,
        "File for the page, .html.",
        metavar="FILE",
        names="output",
        default_text="report.html in the results, or runs.html beside the first run",
    )
    preset: str = option("paper", "Sizes: quick takes seconds, paper has those of the sources.")


def report(request: ReportRequest, shared: Shared) -> None:
    """Gather the results, write the page, and say what is missing."""
    if request.runs:
        report_runs(request.runs, request.out, shared.as_json)
        return
    from thesis_cli.base.files import check_writable, write_atomic
    from thesis_cli.reproduction.registry import find_checkout
    from thesis_cli.reproduction.report.contents import gather
    from thesis_cli.reproduction.report.page import page

    checkout = find_checkout()
    folder = checkout.results(request.preset)
    out = request.out or folder / "report.html"
    check_writable("--out", out, ".html")
    if not (folder / "claims.csv").is_file():
        raise InputError(
            f"{output.short(folder)} has no claims.csv", f"run thesis-cli reproduce --preset {request.preset}"
        )
    contents = gather(checkout, request.preset)
    text = page(contents, checkout.root, out).encode()
    if not out.is_file() or out.read_bytes() != text:
        write_atomic({out: text})
    for fault in contents.faults:
        options.logger.warning("%s", fault)
    counts = contents.counts()
    if shared.as_json:
        output.print_json({"page": str(out), "bytes": len(text), "verdicts": counts, "faults": contents.faults})
        return
    figures = sum(result.figure is not None for result in contents.results)
    typer.echo(f"page    {output.short(out)}, {len(text) / 2**20:.1f} MiB")
    typer.echo(f"shows   {counted(figures, 'figure')}, {counted(len(contents.claims), 'claim')}")
    typer.echo(f"claims  {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}")


COMMANDS = {
    "report": OwnCommand(ReportRequest, report, examples=("report", "report --out results/runs/report.html --json")),
}
