"""A small checkout with the results of two experiments."""

import hashlib
import io
import json

import pytest
from PIL import Image

from thesis_cli.reproduction import experiment
from thesis_cli.reproduction.coverage import COLUMNS, SOURCES
from thesis_cli.reproduction.experiment import Checkout

EXPERIMENT = """
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, NOT_REPEATABLE, Tolerance

EXPERIMENT = Experiment(
    "{0}", "{0}, drawn", "Thesis 4.3, Lemma 1", 1, {{"paper": {{}}}}, lambda s: [], lambda seed: None, lambda f: None,
    claims=[
        Claim("mean", "Thesis 4.3, Lemma 1", "identity", "=", 1.0, lambda f: Measurement(f.x.mean(), 0.01),
              "the mean is 1", finding="2.3, the mean")
    ],
    tolerances={{"x": Tolerance(1e-3), "seconds": NOT_REPEATABLE}},
)
"""
TABLE = "name,x,seconds\na,0.5,1\nb,1.5,2\n"
HEADING = (
    "experiment,claim,kind,source,statement,relation,published,reading,measured,error,detects,scale,verdict,finding"
)
CLAIM = '{},{},identity,"Thesis 4.3, Lemma 1",the mean is 1,=,1,,{},0.05,0.05,0.1,{},{}'
ROWS = [
    CLAIM.format("one", "mean", 1, "holds", ""),
    CLAIM.format("one", "other", 3, "does not hold", '"2.3, the mean"'),
    CLAIM.format("two", "mean", 1, "holds", ""),
]
ERRATA = """# Errata

## 2.3, the mean

T 2.3. The mean is 3, [see](terms.md). `<b>`

## 4.1, a misprint

Of a sign.

# Left open
"""


def picture(colour, size=(40, 30)):
    """The bytes of a PNG of one colour."""
    data = io.BytesIO()
    Image.new("RGB", size, colour).save(data, "PNG")
    return data.getvalue()


def write_results(folder, table=TABLE, ids=("one", "two"), **record):
    """Tables, records, figures and claims of experiments."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ids:
        (folder / f"{name}.csv").write_text(table)
        (folder / f"{name}.png").write_bytes(picture("red"))
        fields = {
            "experiment": name,
            "title": f"{name}, drawn",
            "source": "Thesis 4.2, Figure 1" if name == "two" else "Hazan et al. Figure 2",
            "preset": "paper",
            "settings": {"n": 2},
            "seed": 0,
            "tasks": 1,
            "task_seconds": 1.5,
            "sha256": hashlib.sha256(table.encode()).hexdigest(),
            "python": "3.11",
            "versions": {"numpy": "2.4"},
            "machine": {"cpu": "x86"},
            "caption": "Draws <of> it.",
        }
        (folder / f"{name}.json").write_text(json.dumps({**fields, **record}))
    (folder / "claims.csv").write_text("\n".join([HEADING, *ROWS, ""]))
    return folder


@pytest.fixture
def toy(tmp_path):
    """A checkout with the experiments `one` and `two`, and their results; `cli` runs in it."""
    for name in ("one", "two"):
        path = tmp_path / "experiments" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(EXPERIMENT.format(name))
    (tmp_path / "thesis_cli").mkdir()
    write_results(tmp_path / "results")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "errata.md").write_text(ERRATA)
    (tmp_path / "data" / "coverage").mkdir(parents=True)
    (tmp_path / "data" / "coverage" / "numbers.json").write_text('{"thesis": {"Lemma": ["1"]}}')
    for source in SOURCES:
        lines = ["Lemma 1,2.3,the mean,one: mean,,,"] if source == "thesis" else []
        (tmp_path / "data" / "coverage" / f"{source}.csv").write_text("\n".join([",".join(COLUMNS), *lines, ""]))
    experiment.load.cache_clear()
    return Checkout(tmp_path)
