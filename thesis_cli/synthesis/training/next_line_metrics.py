"""How good a network for the next line is: how often a right line is among the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from thesis_cli.synthesis import prior
from thesis_cli.synthesis.language.dsl import OPERATIONS
from thesis_cli.synthesis.networks.move_places import DOUBLE, SINGLE
from thesis_cli.synthesis.training.next_line_model import losses

if TYPE_CHECKING:
    from thesis_cli.base.arrays import Floats, Ints
    from thesis_cli.synthesis.training.next_line_batches import Batch
    from thesis_cli.synthesis.training.next_line_model import NextLineModel

TOP = (1, 5, 20, 100)


def report(model: NextLineModel, batches: Sequence[Batch]) -> dict[str, Any]:
    """Shares of states of which a right line is among the best 1, 5, 20 and 100.

    Returns
    -------
    By lines of the program, for the network (`top`) and for the prior, which knows operations alone
    (`prior`); and by the number of lines that are left, for the network (`left`).
    """
    with torch.no_grad():
        ranks = np.concatenate([losses(model, batch)[1].numpy() for batch in batches]).astype(np.float64)
    by_prior = np.concatenate([prior_ranks(batch) for batch in batches])
    lengths = np.concatenate([batch.lengths for batch in batches])
    left = lengths - np.concatenate([batch.standing for batch in batches])
    return {"top": shares(ranks, lengths), "prior": shares(by_prior, lengths), "left": shares(ranks, left)}


def shares(ranks: Floats, groups: Ints) -> Mapping[str, Mapping[str, float]]:
    """Share of ranks below each of `TOP`, by group."""
    return {
        str(group): {str(k): round(float(np.mean(ranks[groups == group] < k)), 3) for k in TOP}
        for group in np.unique(groups).tolist()
    }


def prior_ranks(batch: Batch) -> Floats:
    """Number of legal lines above the best right one of each state, if operations have their prior
    probabilities, and all arguments of an operation are equally probable; of lines that are equally
    probable, half are above."""
    variables = batch.there.shape[1]
    operations = np.concatenate([np.repeat(SINGLE, variables), np.repeat(DOUBLE, variables**2)])
    legal = batch.legal.numpy()
    alike = legal @ (operations[:, None] == np.arange(len(OPERATIONS))).astype(np.float64)
    scores = np.array(prior.load().of_operations)[operations] / np.maximum(alike, 1)[:, operations]
    best = np.where(batch.right.numpy(), scores, 0).max(axis=1, keepdims=True)
    above, equal = (legal & (scores > best)).sum(axis=1), (legal & (scores == best)).sum(axis=1)
    return np.asarray(above + (equal - 1) / 2)
