"""A browser without a window, and the report to open in it."""

import shutil
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from tests.browser.chromium import Browser
from tests.conftest import ROOT
from thesis_cli.reproduction.experiment import Checkout
from thesis_cli.reproduction.report import page
from thesis_cli.reproduction.report.contents import Contents, gather
from thesis_cli.reproduction.report.files import ClaimRow

AXE = ROOT / ".venv/axe/package/axe.min.js"
"""Where `make axe` unpacks axe-core."""

DOT = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"


@pytest.fixture(scope="session")
def browser():
    """Chromium, driven by selenium."""
    pytest.importorskip("selenium", reason="no selenium here")
    programs = [shutil.which("chromium") or shutil.which("chrome"), shutil.which("chromedriver")]
    if not all(programs):
        pytest.skip("no chromium or no chromedriver here")
    started = Browser(*programs)
    yield started
    started.driver.quit()


@pytest.fixture(scope="session")
def report(tmp_path_factory) -> Path:
    """The report of the committed results."""
    return written(tmp_path_factory.mktemp("report") / "report.html", gather(Checkout(ROOT)))


@pytest.fixture(scope="session")
def short_report(tmp_path_factory) -> Path:
    """A part of it, which loads in a fraction of the time."""
    whole = gather(Checkout(ROOT))
    kinds: dict[tuple[str, str], list[ClaimRow]] = defaultdict(list)
    for claim in whole.claims:
        kinds[claim.section, claim.verdict].append(claim)
    claims = tuple(claim for kind in kinds.values() for claim in kind[:8])
    results = [replace(result, claims=tuple(c for c in result.claims if c in claims)) for result in whole.results[::6]]
    findings = [replace(each, claims=tuple(c for c in each.claims if c in claims)) for each in whole.findings]
    part = replace(
        whole,
        claims=claims,
        results=tuple(results),
        findings=tuple(finding for finding in findings if finding.claims),
    )
    return written(tmp_path_factory.mktemp("report") / "short.html", part)


def written(out: Path, contents: Contents) -> Path:
    """The page in a file, each picture one dot of the same size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "data_uri", lambda figure: DOT)
        out.write_text(page.page(contents, ROOT, out), encoding="utf-8")
    return out


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core."""
    if not AXE.is_file():
        pytest.skip("no axe-core here: make axe installs it")
    return AXE.read_text(encoding="utf-8")
