"""The report as one file of HTML: styles, script and pictures inside, nothing loaded from elsewhere."""

from __future__ import annotations

import base64
import binascii
import io
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from thesis_cli import __version__
from thesis_cli.base.figures import difference, nice
from thesis_cli.reproduction.claims import CONSISTENT, FAILS, HOLDS, INCOMPARABLE, UNDECIDABLE, UNDECIDED, VERDICTS
from thesis_cli.reproduction.coverage import SHORT, Coverage, NumberedStatement
from thesis_cli.reproduction.report.contents import Contents, ExperimentReport, Finding, slug
from thesis_cli.reproduction.report.files import ORIGINS, SECTIONS, Sections

FIRST = 3
"""Findings that the first screen tells."""

COLOURS = 64
"""Colours of a picture in the page; figures have few, and most of the rest is antialiasing."""

MEANINGS: Mapping[str, str] = {
    HOLDS: "the measurement agrees, and could have refuted it",
    CONSISTENT: "a proven inequality, met within the error",
    UNDECIDED: "the error is too large to tell",
    UNDECIDABLE: "the source's own sample is too small for it",
    INCOMPARABLE: "about data, a network, code or a machine that the source does not give",
    FAILS: "off by more than the error, five standard errors",
}
"""Meaning of each verdict in a few words."""

GRAVITY = {
    "substantive": "Statements and proofs that fail",
    "reading": "Statements that depend on the meaning of a word",
    "slip": "Slips: signs, indices, misprinted formulas",
    "": "Other statements",
}
"""Headings of the findings by their tags, the gravest first."""
HERE = Path(__file__).parent


def rendered(template: str, **values: Any) -> str:
    """A page from one of the templates beside this file, with its styles."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    style = (HERE / "report.css").read_text(encoding="utf-8")
    return environment.get_template(template).render(style=style, **values)


def page(contents: Contents, root: Path, out: Path, results: Path | None = None) -> str:
    """The page.

    Parameters
    ----------
    root : folder of the checkout, which links lead into.
    out : file of the page, from which links are counted.
    results : folder of the tables and records; by default that of the committed ones.
    """
    from markdown_it import MarkdownIt

    base = os.path.relpath(root, out.resolve().parent).replace(os.sep, "/")
    markdown = MarkdownIt("commonmark", {"html": False})

    def prose(text: str) -> str:
        """A text in Markdown as HTML; links that are relative to docs/ lead there."""
        found = markdown.render(text)
        return re.sub(r'href="(?!https?:|#)([^"]+)"', lambda m: f'href="{_joined(base, m[1])}"', found)

    places = {result.id: place for place, result in enumerate(contents.results)}
    return rendered(
        "report.html.j2",
        contents=contents,
        sections=SECTIONS,
        headings={id: ORIGINS[id][0].upper() + ORIGINS[id][1:] for id in SECTIONS},
        verdicts=VERDICTS,
        meanings=MEANINGS,
        classes={verdict: slug(verdict) for verdict in VERDICTS},
        sources=contents.counts(),
        own=contents.counts("own"),
        names=SHORT,
        gravest=contents.gravest[:FIRST],
        origin=origin([result.record for result in contents.results if result.record]),
        gravity=GRAVITY,
        version=__version__,
        uncovered=Counter(_section(entry, Sections(Coverage(root, {}, (), ()))) for entry in contents.uncovered),
        refuted=refuted(contents.findings),
        others=[finding for finding in contents.findings if not finding.refuted],
        ordered=sorted(contents.claims, key=lambda claim: (claim.own, places.get(claim.experiment, -1))),
        script=(HERE / "report.js").read_text(encoding="utf-8"),
        picture=data_uri,
        size=size,
        prose=prose,
        inline=markdown.renderInline,
        coded=coded,
        number=number,
        facts_of=facts,
        slug=slug,
        heading_anchor=heading_anchor,
        base=base,
        folder=os.path.relpath(results or root / "results", root).replace(os.sep, "/"),
    )


def refuted(findings: Iterable[Finding]) -> Mapping[str, Sequence[Finding]]:
    """Findings with a claim that does not hold, by the tag of the gravest of these, the gravest first; those of
    this project's own come under `own`."""
    ranked = sorted((f.refuted.rank, place, f) for place, f in enumerate(findings) if f.refuted)
    found: dict[str, list[Finding]] = {tag: [] for tag in (*GRAVITY, "own")}
    for _, _, finding in ranked:
        row = finding.refuted
        assert row is not None
        found["own" if row.own else row.tag if row.tag in GRAVITY else ""].append(finding)
    return {tag: group for tag, group in found.items() if group}


def _section(entry: NumberedStatement, sections: Sections) -> str:
    """Section that counts a numbered statement as not covered."""
    return entry.source if entry.source in SECTIONS else sections.of(f"Thesis {entry.where}")


def heading_anchor(heading: str) -> str:
    """Name by which hosts of Markdown link to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def coded(text: str) -> Markup:
    """Plain text as HTML; what stands between backticks is code."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _joined(base: str, link: str) -> str:
    """A link of a page in docs/ from where the report is."""
    path, mark, anchor = link.partition("#")
    found = os.path.normpath(f"{base}/docs/{path}").replace(os.sep, "/")
    return found + mark + anchor


def size(figure: Path) -> tuple[int, int]:
    """Width and height of a picture in pixels: a page that knows them does not move while it loads."""
    from PIL import Image

    with Image.open(figure) as picture:
        return picture.width, picture.height


def data_uri(figure: Path) -> str:
    """A picture with few colours, for the attribute `src`, and its size is that of the file."""
    from PIL import Image

    with Image.open(figure) as picture:
        small = picture.convert("RGB").quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    data = io.BytesIO()
    small.save(data, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()


def number(text: str) -> str:
    """A number of the table of claims as a person reads it."""
    return nice(float(text)) if text != "nan" else "none"


def facts(result: ExperimentReport) -> Mapping[str, str]:
    """Facts that a reader needs to run an experiment again: the command, its size, seed, versions and time."""
    record: Mapping[str, Any] = result.record
    if not record:
        return {"command": f"thesis-cli reproduce {result.id}"}
    seconds = float(record.get("task_seconds", 0.0))
    time = f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
    versions = ", ".join(f"{name} {version}" for name, version in record.get("versions", {}).items())
    machine = record.get("machine", {})
    return {
        "command": f"thesis-cli reproduce {result.id} --preset {record.get('preset', 'paper')}",
        "size": ", ".join(f"{name} = {value}" for name, value in record.get("settings", {}).items()),
        "seed": str(record.get("seed", "")),
        "work": f"{record.get('tasks', 0):,} tasks, {time} of a core in all",
        "versions": f"Python {record.get('python', '')}, {versions}",
        "machine": ", ".join(str(value) for value in machine.values() if isinstance(value, str)),
        "when": f"{str(record.get('when', ''))[:10]}, commit {str(record.get('git_commit', ''))[:12]}"
        + " with changes" * bool(record.get("git_dirty")),
    }


def origin(records: Sequence[Mapping[str, Any]]) -> str:
    """Commits, days, hours of work and processors of some records, in one sentence; empty without a record."""
    if not records:
        return ""
    commits = sorted({str(record.get("git_commit", ""))[:12] for record in records})
    days = sorted({str(record.get("when", ""))[:10] for record in records})
    processors = sorted({str(record.get("machine", {}).get("cpu", "")) for record in records})
    # Experiments that share their tasks have the same code and seconds.
    seconds = {(str(record.get("code")), record.get("tasks"), record.get("task_seconds", 0.0)) for record in records}
    by = f"commit {commits[0]}" if len(commits) == 1 else f"{len(commits)} commits"
    when = f"on {days[0]}" if len(days) == 1 else f"from {days[0]} to {days[-1]}"
    hours = sum(each for _, _, each in seconds) / 3600
    return f"Computed by {by} {when}, in {hours:.1f} hours of one core ({', '.join(processors)})."


_PICTURE = re.compile(r'(?<=src=")data:image/png;base64,([^"]*)(?=")')


def page_change(old: str, new: str) -> str:
    """The first visible difference between two pages in words; empty if there is none.

    Versions of zlib and Pillow compress a picture and choose its colours differently, so pictures
    are compared by their pixels, and all else by bytes.
    """
    if old == new:
        return ""
    lines = zip_longest(_PICTURE.sub("picture", old).split("\n"), _PICTURE.sub("picture", new).split("\n"))
    for number, (a, b) in enumerate(lines, 1):
        if a != b:
            return f"line {number} differs"
    for place, (a, b) in enumerate(zip(_PICTURE.findall(old), _PICTURE.findall(new), strict=True), 1):
        if a == b:
            continue
        try:
            words = difference(base64.b64decode(a, validate=True), base64.b64decode(b))
        except binascii.Error:
            words = "it is damaged"
        if words:
            return f"picture {place} differs: {words}"
    return ""
