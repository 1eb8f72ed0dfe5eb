"""Exact marginal MAP by variable elimination in which all sums come before all maxima."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.inference.elimination.order import index_type
from thesis_cli.inference.mini_bucket.passes import log_sum
from thesis_cli.inference.mini_bucket.plan import MiniBucketPlan


def eliminated(plan: MiniBucketPlan, over: Collection[int], variables: int) -> tuple[float, Ints]:
    """The maximum over some variables of the sum over the others, and maximising states.

    Parameters
    ----------
    plan : elimination in which no bucket is divided and variables to maximise over come last.
    over : variables to maximise over.
    variables : number of variables of the model; those to sum over keep state 0.
    """
    messages: list[Floats] = [np.empty(0)] * len(plan.nodes)
    choices: dict[int, Ints] = {}
    total = plan.constant
    for j, node in enumerate(plan.nodes):
        parts = [(node.base_scope, node.base)]
        parts += [(plan.nodes[c].scope[1:], messages[c]) for c in node.children]
        table = np.zeros(node.shape)
        for own, values in parts:
            table += values.reshape([k if i in own else 1 for i, k in zip(node.scope, node.shape, strict=True)])
        for c in node.children:
            messages[c] = np.empty(0)
        rows = table.reshape(node.shape[0], -1)
        if node.scope[0] in over:
            choices[j] = rows.argmax(axis=0).astype(index_type(node.shape[0]))
            messages[j] = rows.max(axis=0)
        else:
            messages[j] = log_sum(rows)
        if node.parent < 0:
            total += float(messages[j][0])
    return total, _traced(plan, choices, variables)


def _traced(plan: MiniBucketPlan, choices: dict[int, Ints], variables: int) -> Ints:
    """The states that the choices of the steps lead to, the last step first."""
    states = np.zeros(variables, np.int64)
    for j in sorted(choices, reverse=True):
        node = plan.nodes[j]
        place = np.ravel_multi_index([states[i] for i in node.scope[1:]], node.shape[1:]) if node.scope[1:] else 0
        states[node.scope[0]] = choices[j][int(place)]
    return states
