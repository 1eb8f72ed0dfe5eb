"""Additions to the site: files outside docs/ that pages link to, and the reference of the Python functions."""

from __future__ import annotations

import os
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from thesis_cli.reproduction.documents import python_page

ROOT = Path(__file__).resolve().parents[1]
PAGES = {name: name.lower() for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")}
"""Documents at the top of the checkout that are pages of the site."""
BOOST = {"how-to.md": 4, "errata.md": 0.5, "coverage.md": 0.5}
"""Weights of pages in the search: long lists have every word, and answers to tasks come first."""
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"(\]\()([^)#:\s]+)(#[^)\s]*)?(?=\))")
REPORT = "results/report.html"
"""A page that is not made here; what it links to comes with it."""
REPORT_LINK = re.compile(r'(href=")([^"#:]+)(#[^"]*)?(?=")')


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the Python reference, the pages from the top of the checkout and the files that any page links to."""
    texts = {path: path.read_text(encoding="utf-8") for path in [*ROOT.glob("docs/*.md"), *map(ROOT.joinpath, PAGES)]}
    report = (ROOT / REPORT).read_text(encoding="utf-8")
    files.append(File.generated(config, place(ROOT / REPORT), content=relinked_report(report)))
    targets = [path.parent / target for path, text in texts.items() for _, target, _ in LINK.findall(text)]
    targets += [ROOT / "results" / target for _, target, _ in REPORT_LINK.findall(report)]
    for linked in (target.resolve() for target in targets):
        if linked.is_file() and place(linked).startswith("files/") and place(linked) not in files.src_uris:
            files.append(File.generated(config, place(linked), abs_src_path=str(linked)))
    for name, uri in PAGES.items():
        files.append(File.generated(config, uri, content=relinked(texts[ROOT / name], ROOT)))
    files.append(File.generated(config, "python-functions.md", content=python_page()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Send links that leave docs/ to the copies in the site, and write `|` in tables as this Markdown wants it."""
    page.meta["search"] = {"boost": BOOST.get(page.file.src_uri, 1)}
    own = page.file.generated_by is None
    lines = (relinked(markdown, ROOT / "docs") if own else markdown).splitlines(keepends=True)
    return "".join(CODE.sub(lambda code: code[0].replace("\\|", "|"), x) if x.startswith("|") else x for x in lines)


def relinked(text: str, folder: Path) -> str:
    """A page of a folder with the links of the site; links that lead nowhere stay, and fail the build."""

    def new(found: re.Match[str]) -> str:
        path = (folder / found[2]).resolve()
        return f"{found[1]}{place(path) if path.is_file() else found[2]}{found[3] or ''}"

    return LINK.sub(new, text)


def relinked_report(text: str) -> str:
    """The report with links to where the site has its pages and files."""

    def new(found: re.Match[str]) -> str:
        target = place((ROOT / "results" / found[2]).resolve())
        page = re.sub(r"\.md$", ".html", target)
        return f"{found[1]}{os.path.relpath(page, Path(place(ROOT / REPORT)).parent)}{found[3] or ''}"

    return REPORT_LINK.sub(new, text)


def place(path: Path) -> str:
    """Where a file of the checkout is in the site. Code becomes text, which browsers show rather than save."""
    name = path.relative_to(ROOT).as_posix()
    if name in PAGES:
        return PAGES[name]
    if name == "README.md":
        return "index.md"
    return name.removeprefix("docs/") if name.startswith("docs/") else f"files/{name}{'.txt' * (path.suffix == '.py')}"
