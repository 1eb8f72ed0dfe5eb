"""The site in a browser, opened from its files: whole, self-contained, searchable, and readable on a phone."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.integration
OF_THE_THEME = {"404.html", "assets", "search", "sitemap.xml", "sitemap.xml.gz"}
LINK = re.compile(r'(?:href|src)="([^"#?:]+)["#?]')


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site as `make site` builds it: strictly."""
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(folder)]
    built = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
    return folder


def test_every_link_leads_to_a_file_of_the_site_and_every_file_is_linked(site):
    pages = list(site.rglob("*.html"))  # also the report
    assert len(pages) > len(list((ROOT / "docs").glob("*.md")))
    linked = set()
    for page in pages:
        if page.name != "404.html":
            for target in LINK.findall(page.read_text(encoding="utf-8")):
                assert (page.parent / target).exists(), (page.name, target)
                linked.add((page.parent / target).resolve())
    files = {path for path in site.rglob("*") if path.is_file() and path.relative_to(site).parts[0] not in OF_THE_THEME}
    assert files <= linked


def test_pages_ask_for_no_network_and_do_not_complain(site, browser):
    for name in ("index", "how-to", "python-functions", "plot"):
        browser.open(site / f"{name}.html")
        assert {address.partition(":")[0] for address in browser.requests()} == {"file"}
        assert browser.errors() == []


def test_no_page_is_wider_than_a_phone(site, browser):
    browser.open(site / "index.html", 400)
    for page in sorted(site.glob("*.html")):
        browser.driver.get(page.as_uri())
        assert browser.run("return document.documentElement.scrollWidth") == 400, page.name


def test_the_search_finds_a_page(site, browser):
    from selenium.webdriver.support.wait import WebDriverWait

    browser.open(site / "index.html")
    browser.driver.find_element("css selector", "input.md-search__input").send_keys("marginals")
    links = "return [...document.querySelectorAll('.md-search-result__link')].map((each) => each.href)"
    found = WebDriverWait(browser.driver, 30).until(lambda _: browser.run(links))
    assert {"marginals.html", "how-to.html"} <= {re.split("[#?]", link)[0].rpartition("/")[2] for link in found}
    assert {address.partition(":")[0] for address in browser.requests()} == {"file"}
    assert browser.errors() == []


@pytest.mark.parametrize(("width", "scheme"), [(1000, "light"), (400, "dark")])
def test_axe_finds_no_serious_violation(site, browser, axe, width, scheme):
    browser.open(site / "how-to.html", width, scheme)
    assert browser.violations(axe) == []
