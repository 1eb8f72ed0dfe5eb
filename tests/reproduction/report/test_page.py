"""The page: whole, safe, the same each time, and compared with one that stands."""

import base64
import html.parser
import io
import json
import re

import pytest
from PIL import Image

from tests.reproduction.report.conftest import CLAIM, HEADING, ROWS, picture
from thesis_cli.reproduction.report.contents import gather
from thesis_cli.reproduction.report.page import data_uri, origin, page, page_change


class Tags(html.parser.HTMLParser):
    """Tags with their attributes, in their order."""

    def __init__(self, text):
        super().__init__()
        self.all = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.all.append((tag, dict(attrs)))


@pytest.fixture
def text(toy):
    return page(gather(toy), toy.root, toy.root / "results" / "report.html")


def test_nothing_is_loaded_from_elsewhere(text):
    for tag, attributes in Tags(text).all:
        assert tag not in ("link", "iframe", "object", "base")
        assert attributes.get("src", "data:").startswith("data:image/png;base64,") or "src" not in attributes
        assert not (tag == "script" and "src" in attributes)
    assert "url(" not in text
    assert "@import" not in text


def test_names_are_unique_and_links_within_the_page_lead_somewhere(text):
    tags = Tags(text).all
    names = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(names) == len(set(names))
    for _, attributes in tags:
        if attributes.get("href", "").startswith("#"):
            assert attributes["href"][1:] in names


def test_pictures_have_words_and_links_lead_from_where_the_page_is(toy, text):
    pictures = [attributes for tag, attributes in Tags(text).all if tag == "img"]
    assert len(pictures) == 2
    assert all(attributes["alt"] for attributes in pictures)
    assert 'href="../docs/terms.md"' in text
    assert 'href="docs/terms.md"' in page(gather(toy), toy.root, toy.root / "report.html")


def test_the_first_screen_says_where_the_numbers_come_from():
    first = {"git_commit": "a" * 40, "when": "2026-11-28T23:00", "machine": {"cpu": "x86"}, "code": ["1"], "tasks": 2}
    first["task_seconds"] = 5400.0
    other = first | {"git_commit": "b" * 40, "when": "2026-11-30T01:00", "code": ["2"]}
    assert origin([]) == ""
    # The second shares the tasks of the first.
    assert origin([first, first]) == f"Computed by commit {'a' * 12} on 2026-11-28, in 1.5 hours of one core (x86)."
    assert (
        origin([first, other]) == "Computed by 2 commits from 2026-11-28 to 2026-11-30, in 3.0 hours of one core (x86)."
    )


def test_what_comes_from_files_is_escaped(toy):
    evil = CLAIM.format("two", "<script>", 1, "holds", "").replace("the mean is 1", "<script>alert(1)</script>")
    (toy.root / "results" / "claims.csv").write_text("\n".join([HEADING, *ROWS, evil, ""]))
    text = page(gather(toy), toy.root, toy.root / "results" / "report.html")
    assert "<script>alert" not in text
    assert "Draws &lt;of&gt; it." in text


def test_a_table_stands_in_place_of_its_picture(toy):
    path = toy.root / "results" / "one.json"
    cells = {"groups": [["time", ["50%", "90%"]]], "rows": [["<here>", ["1 s", "2 s"], True]], "notes": ["a <note>"]}
    path.write_text(json.dumps({**json.loads(path.read_text()), "cells": cells}))
    text = page(gather(toy), toy.root, toy.root / "results" / "report.html")
    assert len([tag for tag, _ in Tags(text).all if tag == "img"]) == 1
    row = '<tr class="own"><th scope="row">&lt;here&gt;</th><td class="number">1 s</td><td class="number">2 s</td></tr>'
    assert row in text
    assert "<p>a &lt;note&gt;</p>" in text


def test_the_same_files_give_the_same_bytes(toy, text):
    assert page(gather(toy), toy.root, toy.root / "results" / "report.html") == text


def recompressed(uri):
    """The same pixels in other bytes."""
    data = io.BytesIO()
    Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))).save(data, "PNG", compress_level=0)
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()


def test_pages_are_compared_by_pixels_and_all_else_by_bytes(toy, text):
    uris = re.findall(r"data:image/png;base64,[^\"]*", text)
    assert recompressed(uris[0]) != uris[0]
    assert page_change(text, text.replace(uris[0], recompressed(uris[0]))) == ""
    blue = toy.root / "blue.png"
    blue.write_bytes(picture("blue"))
    assert page_change(text.replace(uris[0], data_uri(blue), 1), text) == "picture 1 differs: 100.00% of the pixels"
    assert page_change(text.replace(uris[0], uris[0] + "=?", 1), text) == "picture 1 differs: it is damaged"
    assert page_change(text.replace("holds", "hold", 1), text).startswith("line ")
    assert page_change(text + "\n", text).startswith("line ")
