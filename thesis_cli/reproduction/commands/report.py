"""`thesis-cli report`: one page of HTML with every figure, claim and verdict."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.errors import InputError, counted
from thesis_cli.base.files import check_writable, write_atomic
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.fields import Request, argument, option
from thesis_cli.commands.core.result import Summary
from thesis_cli.reproduction.commands import OwnCommand, short

if TYPE_CHECKING:
    from thesis_cli.reproduction.report.compared import Compared

logger = logging.getLogger(__name__)

MARK = b"<title>thesis-cli"
"""Text within the first `HEAD` bytes of a page of results."""
HEAD = 1000
COMPARISON = Path("results/runs/comparison.html")


@dataclass(frozen=True, kw_only=True)
class ReportRequest(Request):
    """Write one page of HTML with every figure, its caption, and the verdicts on all claims.

    The page is made from the files in results/ alone, and needs no other file and no network.
    MANIFEST.json beside it names the origin and the digest of each table and figure. With
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
        default_text="report.html, among the results if you are in a checkout; runs.html beside the first run; or"
        " results/runs/comparison.html",
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


@dataclass(frozen=True, kw_only=True, repr=False)
class ReportResult(Summary):
    """A page.

    Attributes
    ----------
    page : its file.
    bytes : its size.
    faults : inconsistencies between the files, a line each; also logged as warnings.
    """

    page: Path
    bytes: int
    faults: Sequence[str]

    def facts(self) -> Mapping[str, Any]:
        return {"page": str(self.page), "bytes": self.bytes, "faults": self.faults}

    def lines(self) -> list[tuple[str, str]]:
        return [("page", f"{short(self.page)}, {self.bytes / 2**20:.1f} MiB")]


@dataclass(frozen=True, kw_only=True, repr=False)
class ResultsReport(ReportResult):
    """The page of all results.

    Attributes
    ----------
    figures : number of figures.
    counts : number of claims by verdict.
    change : difference between the page that stands and the results; empty if there is none.
    origins : the manifest that does not describe the results; empty if it does.
    """

    figures: int
    counts: Mapping[str, int]
    change: str
    origins: str

    def failures(self, full: bool = False) -> Sequence[str]:
        wrong = [f"{short(self.page)} is not what the results give: {self.change}"] * bool(self.change)
        wrong += [f"{self.origins} does not describe the results"] * bool(self.origins)
        return [f"{each}; thesis-cli report writes it again" for each in wrong]

    def facts(self) -> Mapping[str, Any]:
        return {**super().facts(), "verdicts": self.counts}

    def lines(self) -> list[tuple[str, str]]:
        return [
            *super().lines(),
            ("shows", f"{counted(self.figures, 'figure')}, {counted(sum(self.counts.values()), 'claim')}"),
            ("claims", ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items())),
        ]


@dataclass(frozen=True, kw_only=True, repr=False)
class RunsReport(ReportResult):
    """The page of a user's own runs.

    Attributes
    ----------
    runs : their tables.
    """

    runs: Sequence[Path]

    def facts(self) -> Mapping[str, Any]:
        return {**super().facts(), "runs": [str(run) for run in self.runs]}

    def lines(self) -> list[tuple[str, str]]:
        return [*super().lines(), ("shows", counted(len(self.runs), "run"))]


@dataclass(frozen=True, kw_only=True, repr=False)
class ComparisonReport(ReportResult):
    """The page of two folders of results.

    Attributes
    ----------
    compared : their tables, figures and verdicts, pair by pair.
    """

    compared: Compared

    @property
    def status(self) -> int:
        from thesis_cli.reproduction.comparison import DIFFERS

        return int(bool(self.compared.counts[DIFFERS]))

    def facts(self) -> Mapping[str, Any]:
        tables = [
            {"experiment": pair.id, "verdict": pair.outcome, "text": pair.text, "figures": pair.seen or "same"}
            for pair in self.compared.pairs
        ]
        verdicts = [
            {"experiment": c.experiment, "claim": c.claim, "old": c.old.verdict, "new": c.new.verdict}
            for c in self.compared.changes
        ]
        return {**super().facts(), "counts": self.compared.counts, "tables": tables, "changes": verdicts}

    def lines(self) -> list[tuple[str, str]]:
        from thesis_cli.reproduction.comparison import DIFFERS
        from thesis_cli.reproduction.report.compared import NOT_COMPARED

        found = []
        for pair in self.compared.pairs:
            if pair.outcome in (DIFFERS, NOT_COMPARED):
                found.append((pair.id, pair.text))
            if pair.seen:
                found.append((pair.id, f"its figure is another: {pair.seen}"))
        changes, single = self.compared.changes, self.compared.single
        found += [(c.experiment, f"{c.claim}: {c.old.verdict}, now {c.new.verdict}") for c in changes]
        found += super().lines()
        found.append(("tables", ", ".join(f"{count} {outcome}" for outcome, count in self.compared.counts.items())))
        alone = f", {len(single):,} with one in one folder only" * bool(single)
        claims = counted(self.compared.claims, "claim")
        return [*found, ("claims", f"{len(changes)} of {claims} with another verdict{alone}")]


def report(request: ReportRequest, progress: Progress) -> ReportResult:
    """Gather what the page shows, and write it."""
    found = _runs(request) if request.runs else _comparison(request) if request.compare else _results(request)
    for fault in found.faults:
        logger.warning("%s", fault)
    return found


def _results(request: ReportRequest) -> ResultsReport:
    from thesis_cli.reproduction.experiment import find_checkout
    from thesis_cli.reproduction.manifest import NAME as MANIFEST
    from thesis_cli.reproduction.manifest import manifest
    from thesis_cli.reproduction.report.contents import gather
    from thesis_cli.reproduction.report.page import page, page_change

    checkout = find_checkout()
    folder = checkout.results(request.preset)
    out = request.out or (folder if checkout.is_here or request.verify else Path()) / "report.html"
    _check_page(out)
    if not (folder / "claims.csv").is_file():
        raise InputError(f"{short(folder)} has no claims.csv", f"run thesis-cli reproduce --preset {request.preset}")
    contents = gather(checkout, request.preset)
    text = page(contents, checkout.root, out, folder)
    change = origins = ""
    described = folder / MANIFEST
    if request.verify:
        change = page_change(out.read_bytes().decode(errors="replace"), text) if out.is_file() else "it is missing"
        if not described.is_file() or described.read_text(encoding="utf-8") != manifest(checkout, request.preset):
            origins = short(described)
    elif out.parent.resolve() == folder:
        write_atomic({described: manifest(checkout, request.preset)})
    return ResultsReport(
        request=request,
        page=out,
        bytes=len(text.encode()) if request.verify else _write_page(out, text),
        faults=contents.faults,
        figures=sum(result.figure is not None for result in contents.results),
        counts=contents.counts(),
        change=change,
        origins=origins,
    )


def _runs(request: ReportRequest) -> RunsReport:
    from thesis_cli.reproduction.plots.run import read_run
    from thesis_cli.reproduction.report.runs import GENERATOR, page

    runs = request.runs or ()
    out = request.out or runs[0].with_name("runs.html")
    check_writable("--out", out, ".html")
    if out.is_file() and f'name="generator" content="{GENERATOR}"'.encode() not in out.read_bytes()[:HEAD]:
        raise InputError(f"--out {out} exists, and is no page of report RUN.csv", "give another name")
    text, faults = page([read_run(path) for path in runs])
    data = text.encode()
    if not out.is_file() or out.read_bytes() != data:
        write_atomic({out: data})
    return RunsReport(request=request, page=out, bytes=len(data), faults=faults, runs=runs)


def _comparison(request: ReportRequest) -> ComparisonReport:
    from thesis_cli.reproduction.experiment import find_checkout
    from thesis_cli.reproduction.report.compared import compare_folders, comparison_page

    assert request.compare
    out = request.out or COMPARISON
    _check_page(out)
    compared = compare_folders(find_checkout(), request.preset, request.compare)
    size = _write_page(out, comparison_page(compared))
    return ComparisonReport(request=request, page=out, bytes=size, faults=compared.faults, compared=compared)


def _check_page(path: Path) -> None:
    """Refuse to replace a file that is no page of this program.

    Raises
    ------
    InputError : as above, or nothing can be written there.
    """
    check_writable("--out", path, ".html")
    if path.is_file() and (content := path.read_bytes()[:HEAD]) and MARK not in content:
        raise InputError(f"--out {path} exists, and is no page of report", "give another name")


def _write_page(path: Path, page: str) -> int:
    """Write a page, unless it is there already; returns its number of bytes.

    A page that differs from the one that stands only in how its pictures are compressed is there.
    """
    from thesis_cli.reproduction.report.page import page_change

    data = page.encode()
    if not path.is_file() or page_change(path.read_bytes().decode(errors="replace"), page):
        write_atomic({path: data})
    return len(data)


COMMANDS = {
    "report": OwnCommand(ReportRequest, report, examples=("report", "report --out results/runs/report.html --json")),
}
