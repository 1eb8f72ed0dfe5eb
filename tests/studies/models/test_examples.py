"""The models that ship are what our own command writes, and their answers are the known ones."""

import math

import numpy as np
import pytest

from tests.conftest import MODELS
from thesis_cli.inference.enumeration import log_partition_function
from thesis_cli.models.factor_matrix import load_factor_matrix
from thesis_cli.models.files import load_model
from thesis_cli.studies.models import examples


def test_files_are_what_the_command_writes(tmp_path):
    examples.main(str(tmp_path))
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (MODELS / path.name).read_bytes(), path.name


@pytest.mark.parametrize(
    ("name", "evidence", "z"),
    [
        ("asia.uai", None, 1.0),
        ("asia.uai", "asia-xray.evid", 0.064828 * 0.98 + (1 - 0.064828) * 0.05),
        ("sat-16-60.uai", None, 11),
        ("zipf-1000.csv", None, math.fsum(k**-1.1 for k in range(1, 1001))),
    ],
)
def test_known_answers(name, evidence, z):
    model = load_model(MODELS / name, evidence=evidence and MODELS / evidence)
    assert log_partition_function(model) == pytest.approx(math.log(z), abs=1e-12)


def test_ising_by_a_transfer_matrix():
    """Another route to the same ln Z: one row of the grid after the other."""
    graph = load_model(MODELS / "ising-4x4.uai")
    theta = [f.table[1] for f in graph.factors[:16]]
    rows = np.array(np.meshgrid(*[[-1, 1]] * 4, indexing="ij")).reshape(4, -1).T
    along = (rows[:, 1:] * rows[:, :-1]).sum(axis=1)
    total = np.zeros(16)
    for r in range(4):
        step = rows @ np.array(theta[4 * r : 4 * r + 4]) + along
        total = step + (np.logaddexp.reduce(total[:, None] + rows @ rows.T, axis=0) if r else 0)
    assert log_partition_function(graph) == pytest.approx(np.logaddexp.reduce(total), rel=1e-13)


def test_sums_of_log_factors():
    matrix = load_factor_matrix(MODELS / "factors-5x2000.npy")
    assert (matrix.states, matrix.factors) == (5, 2000)
    assert matrix.totals == pytest.approx([2, 1.5, 1, 0.5, 0], abs=1e-4)
