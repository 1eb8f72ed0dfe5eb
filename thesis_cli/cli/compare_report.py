"""The page of `thesis-cli report --compare FOLDER`: two folders of results."""

from __future__ import annotations

from pathlib import Path

import typer

from thesis_cli.base.wording import counted
from thesis_cli.cli import options, output, pages


def report_comparison(preset: str, folder: Path, out: Path | None, as_json: bool) -> None:
    """Write the page, print the tables that differ, and leave with status 1 if there are any."""
    from thesis_cli.reproduction.comparison import DIFFERS
    from thesis_cli.reproduction.registry import find_checkout
    from thesis_cli.reproduction.report.compare_page import page
    from thesis_cli.reproduction.report.compared import NOT_COMPARED, compare_folders

    checkout = find_checkout()
    found = out or checkout.root / "results" / "runs" / "comparison.html"
    pages.check_page(found)
    compared = compare_folders(checkout, preset, folder)
    size = pages.write_page(found, page(compared))
    for fault in compared.faults:
        options.logger.warning("%s", fault)
    changes, counts = compared.changes, compared.counts
    if as_json:
        tables = [
            {"experiment": pair.id, "verdict": pair.outcome, "text": pair.text, "figures": pair.seen or "same"}
            for pair in compared.pairs
        ]
        verdicts = [
            {"experiment": c.experiment, "claim": c.claim, "old": c.old.verdict, "new": c.new.verdict} for c in changes
        ]
        summary = {"page": str(found), "bytes": size, "counts": counts, "tables": tables, "changes": verdicts}
        output.print_json({**summary, "faults": compared.faults})
    else:
        room = max(len(pair.id) for pair in compared.pairs) + 2
        for pair in compared.pairs:
            if pair.outcome in (DIFFERS, NOT_COMPARED):
                typer.echo(f"{pair.id:<{room}}{pair.text}")
            if pair.seen:
                typer.echo(f"{pair.id:<{room}}its figure is another: {pair.seen}")
        for change in changes:
            typer.echo(f"{change.experiment:<{room}}{change.claim}: {change.old.verdict}, now {change.new.verdict}")
        typer.echo(f"page    {output.short(found)}, {size / 2**20:.1f} MiB")
        typer.echo(f"tables  {', '.join(f'{count} {outcome}' for outcome, count in counts.items())}")
        single = f", {len(compared.single):,} with one in one folder only" * bool(compared.single)
        typer.echo(f"claims  {len(changes)} of {counted(compared.claims, 'claim')} with another verdict{single}")
    if counts[DIFFERS]:
        raise typer.Exit(1)
