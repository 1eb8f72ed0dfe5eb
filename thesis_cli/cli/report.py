"""`thesis-cli report`: one page of HTML with every figure, claim and verdict."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from thesis_cli.base.errors import InputError
from thesis_cli.base.wording import counted
from thesis_cli.cli import options, output, pages
from thesis_cli.cli.compare_report import report_comparison
from thesis_cli.cli.own import OwnCommand, Shared
from thesis_cli.cli.run_report import report_runs
from thesis_cli.commands.core.fields import argument, option
from thesis_cli.commands.core.request import Request


@dataclass(frozen=True, kw_only=True)
class ReportRequest(Request):
    """Write one page of HTML with every figure, its caption, and the verdicts on all claims.

    The page is made from the files in results/ alone, and needs no other file and no network. With
    --compare, the exit status is 1 if a table differs.
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
        default_text="report.html in the results, runs.html beside the first run, or results/runs/comparison.html",
    )
    preset: str = option("paper", "Sizes: quick takes seconds, paper has those of the sources.")
    compare: Path | None = option(
        None, "Folder of other results, to put on a page beside these.", metavar="FOLDER", default_text="none"
    )
    verify: bool = option(False, "Write nothing; the exit status is 1 if the page is not what the results give.")

    def check(self) -> None:
        chosen = [name for name in ("runs", "compare", "verify") if getattr(self, name)]
        if len(chosen) > 1:
            words = {"runs": "RUN.csv", "compare": "--compare", "verify": "--verify"}
            raise InputError(f"{words[chosen[1]]} does not go with {words[chosen[0]]}", "give one of the two")


def report(request: ReportRequest, shared: Shared) -> None:
    """Gather the results, write the page, and say what is missing."""
    if request.runs:
        report_runs(request.runs, request.out, shared.as_json)
        return
    if request.compare:
        report_comparison(request.preset, request.compare, request.out, shared.as_json)
        return
    from thesis_cli.reproduction.registry import find_checkout
    from thesis_cli.reproduction.report.contents import gather
    from thesis_cli.reproduction.report.page import page

    checkout = find_checkout()
    folder = checkout.results(request.preset)
    out = request.out or folder / "report.html"
    pages.check_page(out)
    if not (folder / "claims.csv").is_file():
        raise InputError(
            f"{output.short(folder)} has no claims.csv", f"run thesis-cli reproduce --preset {request.preset}"
        )
    contents = gather(checkout, request.preset)
    text = page(contents, checkout.root, out, folder)
    change = _change(out, text) if request.verify else ""
    size = len(text.encode()) if request.verify else pages.write_page(out, text)
    for fault in contents.faults:
        options.logger.warning("%s", fault)
    counts = contents.counts()
    if shared.as_json:
        output.print_json({"page": str(out), "bytes": size, "verdicts": counts, "faults": contents.faults})
    else:
        figures = sum(result.figure is not None for result in contents.results)
        typer.echo(f"page    {output.short(out)}, {size / 2**20:.1f} MiB")
        typer.echo(f"shows   {counted(figures, 'figure')}, {counted(len(contents.claims), 'claim')}")
        typer.echo(f"claims  {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}")
    if change:
        options.logger.error(
            "error: %s is not what the results give: %s; thesis-cli report writes it again", output.short(out), change
        )
        raise typer.Exit(1)


def _change(path: Path, page: str) -> str:
    """What of the page that stands the results do not give; empty if nothing."""
    from thesis_cli.reproduction.report.same_page import page_change

    return page_change(path.read_bytes().decode(errors="replace"), page) if path.is_file() else "it is missing"


COMMANDS = {
    "report": OwnCommand(ReportRequest, report, examples=("report", "report --out results/runs/report.html --json")),
}
