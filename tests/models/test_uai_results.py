import math

import numpy as np

from thesis_cli.models import uai


def test_the_examples_of_the_format():
    assert uai.partition_function(-0.2008 * math.log(10)) == "PR\n-0.20080000000000001\n"
    assert uai.explanation(np.array([0, 1, 0])) == "MPE\n3 0 1 0\n"
    tables = [np.array([0.1, 0.9]), np.array([0.3, 0.7]), np.array([0.2, 0.2, 0.6])]
    assert uai.marginals(tables) == "MAR\n3 2 0.1 0.9 2 0.3 0.7 3 0.2 0.2 0.6\n"


def test_no_configuration():
    assert uai.partition_function(-math.inf) == "PR\n-inf\n"


def test_marginal_explanation():
    assert uai.marginal_explanation([2, 3, 4], np.array([0, 1, 0])) == "MMAP\n3 2 0 3 1 4 0\n"
