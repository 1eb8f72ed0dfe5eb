"""The project around the code: pins, documents, the wheel."""

import itertools
import os
import re
import subprocess
import sys
import zipfile

from tests.conftest import ROOT
from thesis_cli.reproduction.experiment import Checkout, load


def test_no_package_host_is_named():
    assert "://" not in (ROOT / "constraints.txt").read_text()


def test_every_dependency_is_pinned():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    names = {re.match(r"[A-Za-z0-9-]+", line)[0].lower() for line in wanted}
    pinned = {line.split("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines()}
    assert names <= pinned


def test_the_citation_is_of_this_version():
    import tomllib

    import yaml

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()  # what the format requires
    assert (citation["title"], citation["version"]) == (project["name"], project["version"])
    assert citation["version"] in (ROOT / "CHANGELOG.md").read_text()


def test_every_finding_has_its_heading_in_the_errata():
    headings = {line.removeprefix("## ") for line in (ROOT / "docs/errata.md").read_text().splitlines()}
    for path in Checkout(ROOT).files().values():
        for claim in load(path).claims:
            assert not claim.finding or claim.finding in headings, claim


def test_the_wheel_works_in_an_empty_folder(tmp_path):
    """Built from the tree, unpacked elsewhere and put before everything else on the path."""
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    empty = tmp_path / "empty"
    empty.mkdir()
    np_file = tmp_path / "v.csv"
    np_file.write_text("0\n0.5\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "HOME": str(empty)}

    def run(*arguments):
        command = [sys.executable, "-P", "-m", "thesis_cli", *arguments]
        return subprocess.run(command, cwd=empty, env=environment, capture_output=True, text=True, check=False)

    copied = run("example", "asia.bif")
    assert copied.returncode == 0, copied.stderr
    assert (empty / "data/models/asia.bif").read_bytes() == (ROOT / "data/models/asia.bif").read_bytes()
    where = run("estimate-z", str(np_file), "--seed", "1")
    assert where.returncode == 0, where.stderr
    assert "ln Z" in where.stdout
    assert (empty / "results/runs/estimate-z-v.csv").exists()
    refused = run("reproduce")
    assert refused.returncode == 2
    assert refused.stderr == "error: there are no experiments here; run this in a checkout of the project\n"
