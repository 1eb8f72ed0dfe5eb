import dataclasses
import io
import json
import re
from unittest import mock

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.layout_engine import ConstrainedLayoutEngine
from PIL import Image

from tests.conftest import ROOT
from thesis_cli.base.errors import InputError
from thesis_cli.base.figures import STYLE, Cells, difference, label, panels
from thesis_cli.reproduction import publication
from thesis_cli.reproduction.experiment import Checkout, Experiment, load

EXECUTE = ConstrainedLayoutEngine.execute
PATHS = Checkout(ROOT).files()
RESULTS = ROOT / "results"

QUICK = {
    *("fig-2-1", "fig-d-5", "hazan-concentration", "meant", "structured-gradients", "table-d-1"),
}
"""Figures that `make test` draws, because they take little time; `make test-long` draws all."""


@pytest.fixture(scope="module", autouse=True)
def _whole_figures():
    """Fonts and places of axes as users get them."""
    with mock.patch.dict(STYLE, {"pdf.fonttype": 42}), mock.patch.object(ConstrainedLayoutEngine, "execute", EXECUTE):
        yield


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.long] * (name not in QUICK)) for name in PATHS])
def test_committed_figures_are_what_their_csv_draws(name):
    """A PDF names the version of matplotlib that drew it and the PNG beside it."""
    committed, pdf = ((RESULTS / f"{name}.{kind}").read_bytes() for kind in ("png", "pdf"))
    found = difference(committed, png(load(PATHS[name]), publication.read_result(RESULTS / f"{name}.csv")))
    if found and f"pdf backend v{mpl.__version__})".encode() not in pdf:
        pytest.skip(f"matplotlib {mpl.__version__} draws {name} differently: {found}")
    assert found == ""


def toy(title="A title", y="value"):
    def plot(frame):
        figure, axes = panels(1, 1, height=1.5)
        axes.plot(frame.x, frame.y, label="a curve")
        label(axes, "x", y, title)
        figure.legend(loc="outside lower center")
        return figure

    return Experiment("toy", "t", "s", 1, {}, lambda s: [], lambda seed: pd.DataFrame(), plot)


FRAME = pd.DataFrame({"x": [1, 2, 3, 4], "y": [3.0, 100.0, 20.0, 7.0]})


def png(experiment, frame=FRAME):
    return publication.picture(experiment, frame, ["png"])["png"]


def test_a_figure_is_the_same_bytes_again_and_its_png_does_not_depend_on_the_pdf(tmp_path):
    """The fonts of its PDF are TrueType, which journals ask for."""
    FRAME.to_csv(tmp_path / "toy.csv", index=False)
    files = [tmp_path / "toy.pdf", tmp_path / "toy.png"]
    assert list(publication.draw(toy(), tmp_path).items()) == [(file, "new") for file in files]
    assert files[0].read_bytes().startswith(b"%PDF")
    assert b"/FontFile2" in files[0].read_bytes()
    assert b"/Type3" not in files[0].read_bytes()
    assert files[1].read_bytes() == png(toy())
    times = [file.stat().st_mtime_ns for file in files]
    assert publication.draw(toy(), tmp_path) == dict.fromkeys(files, "unchanged")
    assert [file.stat().st_mtime_ns for file in files] == times
    pdf, picture = publication.draw(toy("A tITle"), tmp_path).values()
    assert pdf == "changed"
    assert re.fullmatch(r"changed: 0\.\d\d% of the pixels", picture)
    assert files[1].read_bytes() == png(toy("A tITle"))


def test_the_record_has_the_table_of_its_experiment_as_long_as_there_is_one(tmp_path):
    FRAME.to_csv(tmp_path / "toy.csv", index=False)
    record = tmp_path / "toy.json"
    record.write_text('{"seed": 0}')
    cells = Cells([("time", ["50%"])], [("here", ["1 s"], True)])
    publication.draw(dataclasses.replace(toy(), cells=lambda frame: cells), tmp_path)
    found = json.loads(record.read_text())
    assert list(found) == ["seed", "caption", "cells"]
    assert found["cells"] == {"groups": [["time", ["50%"]]], "rows": [["here", ["1 s"], True]], "notes": []}
    publication.draw(toy(), tmp_path)
    assert json.loads(record.read_text()) == {"seed": 0, "caption": ""}


def test_what_pictures_differ_by():
    first = png(toy())
    pixels = np.array(Image.open(io.BytesIO(first)).convert("RGBA"))

    def encoded(array):
        data = io.BytesIO()
        Image.fromarray(array).save(data, format="png")
        return data.getvalue()

    last_bits = np.random.default_rng(0).integers(-2, 3, pixels.shape)
    assert difference(first, encoded(np.clip(pixels + last_bits, 0, 255).astype(np.uint8))) == ""
    few = pixels.copy()
    few[50, 50:52] = 0
    assert difference(first, encoded(few)) == ""
    height, width, _ = pixels.shape
    assert difference(first, encoded(pixels[1:])) == f"{width} x {height - 1} pixels instead of {width} x {height}"
    for other in (toy(y="valve"), toy("A title.")):
        assert "% of the pixels" in difference(first, png(other))
    assert "% of the pixels" in difference(first, png(toy(), FRAME.assign(y=[3.0, 100.0, 20.0, 7.1])))
    assert difference(b"no PNG", first) == "the old file is no picture"
    assert difference(first[:200], first) == "the old file is no picture"


def test_a_missing_or_broken_csv_is_one_line(tmp_path):
    with pytest.raises(InputError, match=r"fig-2-1.csv: no such result; .*reproduce fig-2-1"):
        publication.draw(load(PATHS["fig-2-1"]), tmp_path)
    (tmp_path / "fig-2-1.csv").write_text('a,b\n1,2\n"3\n')
    with pytest.raises(InputError, match="not a table"):
        publication.draw(load(PATHS["fig-2-1"]), tmp_path)
