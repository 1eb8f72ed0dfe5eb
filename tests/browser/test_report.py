"""The report in a browser: nothing is loaded, nothing overflows, filters and keys work, axe-core finds nothing."""

import pytest

from tests.conftest import ROOT
from thesis_cli import __version__

pytestmark = pytest.mark.integration

SEEN = "return [...document.querySelectorAll('#all-claims tbody tr')].filter((row) => row.offsetHeight)"
OPEN_ALL = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"


def seen(browser, column=None):
    """How many claims are seen, or what stands in a column of them."""
    if column is None:
        return browser.run(SEEN + ".length")
    return browser.run(SEEN + f".map((row) => row.cells[{column}].dataset.value ?? row.cells[{column}].innerText)")


@pytest.fixture
def opened(browser, short_report):
    browser.open(short_report)
    return browser


def test_the_page_asks_for_nothing_and_complains_about_nothing(opened, short_report):
    assert opened.requests() == {short_report.as_uri()}
    assert opened.errors() == []


def test_the_committed_page_asks_for_nothing(browser):
    page = ROOT / "results/report.html"
    if not page.is_file():
        pytest.skip("no committed report: make report writes it")
    assert page.stat().st_size < 8 * 2**20
    browser.open(page)
    assert browser.requests() == {page.as_uri()}
    assert browser.errors() == []


def test_nothing_overflows(browser, report):
    """On a phone, in a window and on a wide screen, as it is opened and with all entries open."""
    widths = (400, 1000, 1800)
    browser.open(report)
    for width in widths:
        browser.resize(width)
        assert browser.picture().width == width
    browser.run(OPEN_ALL)
    for width in widths:
        browser.resize(width)
        assert browser.run("return document.documentElement.scrollWidth") == width


def test_colours_follow_the_system(browser, short_report):
    browser.open(short_report, scheme="dark")
    assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)"
    assert browser.run("return document.querySelector('.theme').textContent") == "Light colours"


def test_a_button_changes_the_colours(opened):
    assert (
        opened.run("document.querySelector('.theme').click(); return document.documentElement.dataset.theme") == "dark"
    )
    assert opened.run("return getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)"


def test_claims_are_filtered_by_words_verdict_and_source(opened):
    every = seen(opened)
    assert every > 50
    set_and_tell = "const e = document.getElementById(arguments[0]); e.value = arguments[1]; " + (
        "e.dispatchEvent(new Event('input', { bubbles: true }));"
    )
    opened.run(set_and_tell, "search", "THESIS holds")
    texts = [text.lower() for text in opened.run(SEEN + ".map((row) => row.textContent)")]
    assert 0 < len(texts) < every
    assert all("thesis" in text and "holds" in text for text in texts)
    opened.run(set_and_tell, "search", "")
    opened.run(set_and_tell, "verdict", "does not hold")
    refuted = seen(opened)
    opened.run(set_and_tell, "section", "chapter-5")
    assert 0 < seen(opened) < refuted < every
    assert opened.run("return shown.textContent") == f"{seen(opened)} of {every} claims"
    opened.run("document.querySelector('.controls button').click()")
    opened.run("return new Promise((done) => setTimeout(done))")
    assert seen(opened) == every


def test_filters_stand_in_the_address_and_are_read_from_it(opened, short_report):
    opened.run(
        "verdict.value = 'does not hold'; search.value = 'Thesis 2';"
        "verdict.dispatchEvent(new Event('input', { bubbles: true }))"
    )
    address, count = opened.run("return location.hash"), seen(opened)
    assert address == "#claims?search=Thesis+2&verdict=does+not+hold"
    assert count > 0
    opened.run("document.querySelector('.controls button').click()")
    opened.run("return new Promise((done) => setTimeout(done))")
    assert (opened.run("return location.hash"), seen(opened) > count) == ("#claims", True)
    opened.run("location.hash = arguments[0]; return new Promise((done) => setTimeout(done, 50))", address)
    assert seen(opened) == count


def test_a_row_has_an_address_and_a_line_that_cites_it(opened):
    opened.run("navigator.clipboard.writeText = (text) => { window.copied = text; }")
    link = "document.querySelector('#all-claims a.cite')"
    anchor = opened.run(f"{link}.click(); return {link}.hash")
    copied = opened.run("return window.copied")
    assert copied.startswith(f"thesis-cli {__version__}, claim {anchor.removeprefix('#claim-')}: ")
    assert copied.endswith(anchor)
    assert opened.run("return document.getElementById(arguments[0]).tagName", anchor[1:]) == "TR"


def test_a_count_of_the_summary_leads_to_its_claims(opened):
    link = "document.querySelector('.summary a[data-section=chapter-2][data-verdict=\"does not hold\"]')"
    count = int(opened.run(f"{link}.click(); return {link}.textContent"))
    assert seen(opened) == count
    assert set(opened.run(SEEN + ".map((row) => row.dataset.section + row.dataset.verdict)")) == {
        "chapter-2does not hold"
    }
    assert -1 < opened.run("return document.getElementById('claims').getBoundingClientRect().top") < 500


def test_columns_are_sorted_both_ways_and_no_number_comes_last(opened):
    head = "document.querySelectorAll('#all-claims th')[4]"
    for direction, sign in (("ascending", 1), ("descending", -1)):
        assert opened.run(f"{head}.querySelector('button').click(); return {head}.ariaSort") == direction
        numbers = [float(text) for text in seen(opened, 4)]
        known = [number for number in numbers if number == number]
        assert known == sorted(known, reverse=sign < 0) == numbers[: len(known)]


def test_a_link_to_a_finding_opens_it(opened):
    link = "document.querySelector('#all-claims a[href^=\"#finding\"]')"
    target = opened.run(f"return {link}.hash.slice(1)")
    opened.run(f"{link}.click(); return new Promise((done) => setTimeout(done, 50))")
    assert opened.run("return document.getElementById(arguments[0]).open", target)


def test_keys_suffice(opened):
    """The first key leads to a link past the navigation; a finding opens by the keyboard."""
    from selenium.webdriver.common.keys import Keys

    opened.press(Keys.TAB)
    assert opened.run("return document.activeElement.className") == "skip"
    assert opened.run("return document.activeElement.getBoundingClientRect().left") > 0
    opened.press(Keys.ENTER)
    assert opened.run("return location.hash") == "#summary"
    opened.run("document.querySelector('.finding summary').focus()")
    opened.press(Keys.ENTER)
    assert opened.run("return document.querySelector('.finding').open")


def test_all_reads_without_scripts(browser, short_report):
    browser.open(short_report, scripts=False)
    assert seen(browser) > 50
    assert browser.run("return document.querySelector('.controls').offsetHeight") == 0
    assert browser.run("return document.querySelectorAll('button').length") == 1
    browser.driver.find_element("css selector", ".finding summary").click()
    assert browser.run("return document.querySelector('.finding .prose').offsetHeight") > 0


def test_paper_shows_what_is_closed(opened):
    opened.run("document.querySelectorAll('.finding')[1].open = true; dispatchEvent(new Event('beforeprint'))")
    assert opened.run("return document.querySelectorAll('.finding:not([open]), .facts:not([open])').length") == 0
    opened.run("dispatchEvent(new Event('afterprint'))")
    assert opened.run("return document.querySelectorAll('.finding[open]').length") == 1


@pytest.mark.parametrize(("width", "scheme"), [(1000, "light"), (400, "dark")])
def test_axe_finds_no_serious_violation(browser, short_report, axe, width, scheme):
    browser.open(short_report, width, scheme)
    # of tables and entries that are alike, the first ones
    browser.run(
        "document.querySelectorAll('tbody tr:nth-child(n+12), .finding:nth-of-type(n+6), article:nth-of-type(n+3)')"
        ".forEach((each) => each.remove());" + OPEN_ALL
    )
    assert browser.violations(axe) == []
