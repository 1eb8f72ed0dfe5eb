"""Result files of the UAI inference competitions: PR, MAR, MPE and MMAP, as text.

The first line holds the task, the second its solution (`Result file format`, UAI 2014 to 2022):
https://uaicompetition.github.io/uai-competition-dev/file-formats/result-format
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from thesis_cli.base.arrays import Floats


def partition_function(log_z: float) -> str:
    """A PR file: log10 of the partition function.

    Parameters
    ----------
    log_z : ln Z in nats; `-inf` if no configuration is possible.
    """
    return f"PR\n{log_z / math.log(10) + 0.0:.17g}\n"


def marginals(probabilities: Sequence[Floats]) -> str:
    """A MAR file: number of variables, then for each its number of states and their probabilities, shape (states,).

    Parameters
    ----------
    probabilities : one array for each variable, over all states that it has without evidence.
    """
    words = [str(len(probabilities))]
    for table in probabilities:
        words += [str(table.size), *(f"{p:.12g}" for p in table.tolist())]
    return f"MAR\n{' '.join(words)}\n"


def explanation(states: Iterable[int]) -> str:
    """An MPE file: number of variables, then the state of each.

    Parameters
    ----------
    states : one for each variable, numbered as without evidence.
    """
    words = [str(int(state)) for state in states]
    return f"MPE\n{' '.join([str(len(words)), *words])}\n"


def marginal_explanation(variables: Iterable[int], states: Iterable[int]) -> str:
    """An MMAP file: number of query variables, then each with its state.

    Parameters
    ----------
    variables : the query variables.
    states : one for each, numbered as without evidence.
    """
    words = [f"{i} {int(state)}" for i, state in zip(variables, states, strict=True)]
    return f"MMAP\n{' '.join([str(len(words)), *words])}\n"
