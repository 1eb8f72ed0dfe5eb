"""Renyi entropies of orders near 1 by elimination in log space, without cancellation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.inference.elimination.order import Clique
from thesis_cli.models.factor_graph import Factor

IMPOSSIBLE = -1e300
"""A log-weight whose exponential is 0, in place of -inf where products are taken: 0 * 1e300 is 0.
"""


@dataclass(frozen=True)
class _Step:
    """Eliminating one variable.

    Attributes
    ----------
    scope : the neighbours that its message depends on, ascending.
    base : sum of the factors that this step uses, shape (*scope, variable), 1 along variables that
        no factor names.
    messages : earlier steps whose messages this step uses, and their shapes over (*scope,
        variable).
    """

    scope: Clique
    base: Floats
    messages: tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...]


def elimination_entropy(
    cardinalities: Sequence[int],
    factors: Sequence[Factor],
    order: Sequence[int],
    cliques: Sequence[Clique],
    alpha: float,
) -> float:
    """The Renyi entropy of an order near 1, nats, as `Elimination.renyi_entropy` describes it.

    Parameters
    ----------
    cardinalities : number of states of each of n variables.
    factors : factors of the model, tables in nats.
    order : variables in the order of elimination.
    cliques : scope of the table of each step, the eliminated variable included.
    alpha : order of the entropy.
    """
    excess = alpha - 1
    entropy = 0.0
    messages: dict[int, Floats] = {}
    entropies: dict[int, Floats] = {}
    for j, step in enumerate(_steps(cardinalities, factors, order, cliques)):
        shape = tuple(cardinalities[i] for i in (*step.scope, order[j]))
        table = _table(step.base, step, messages, shape)
        messages[j] = _log_sum(table)
        norm = np.where(messages[j] == -np.inf, 0.0, messages[j])
        log_q = table - norm[..., np.newaxis]
        np.maximum(log_q, IMPOSSIBLE, out=log_q)
        values = log_q - _table(np.zeros((1,) * log_q.ndim), step, entropies, shape)
        if excess:
            values *= excess
            entropies[j] = np.asarray(np.log1p(weighted_expm1(log_q, values).sum(axis=-1)) / -excess)
        else:
            values *= np.exp(log_q)
            entropies[j] = np.asarray(-values.sum(axis=-1))
        if not step.scope:
            entropy += float(entropies.pop(j))
    return entropy


def _table(base: Floats, step: _Step, messages: dict[int, Floats], shape: tuple[int, ...]) -> Floats:
    """`base` plus the incoming messages of a step, which are dropped: shape (*scope, variable)."""
    table = base
    for j, axes, expanded in step.messages:
        table = table + messages.pop(j).transpose(axes).reshape(expanded)
    return np.broadcast_to(table, shape)


def _steps(
    cardinalities: Sequence[int], factors: Sequence[Factor], order: Sequence[int], cliques: Sequence[Clique]
) -> list[_Step]:
    """Assign factors and messages to steps."""
    at = {variable: j for j, variable in enumerate(order)}
    used: list[list[Factor]] = [[] for _ in cliques]  # at each step: the first that names a variable
    for f in factors:
        if f.scope:
            used[min(at[i] for i in f.scope)].append(f)
    arriving: list[list[tuple[int, Clique]]] = [[] for _ in cliques]
    steps = []
    for j, (variable, clique) in enumerate(zip(order, cliques, strict=True)):
        scope = tuple(i for i in clique if i != variable)
        axes = (*scope, variable)
        base = np.zeros((*[1] * len(scope), cardinalities[variable]))
        for factor in used[j]:
            perm, shape = _align(factor.scope, axes, cardinalities)
            base = base + factor.table.transpose(perm).reshape(shape)
        messages = tuple((k, *_align(sent, axes, cardinalities)) for k, sent in arriving[j])
        if scope:
            arriving[min(at[i] for i in scope)].append((j, scope))
        steps.append(_Step(scope, base, messages))
    return steps


def _align(
    scope: tuple[int, ...], axes: tuple[int, ...], cardinalities: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Layout of a table over `scope` along `axes`: a permutation of its axes, then a shape with
    ones.
    """
    perm = tuple(sorted(range(len(scope)), key=lambda a: axes.index(scope[a])))
    return perm, tuple(cardinalities[i] if i in scope else 1 for i in axes)


def _log_sum(table: Floats) -> Floats:
    """ln of the sum of exp(table) over the last axis."""
    top = table.max(axis=-1, keepdims=True)
    top = np.where(top == -np.inf, 0.0, top)
    weights = table - top
    np.exp(weights, out=weights)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(weights.sum(axis=-1)) + top[..., 0])


def weighted_expm1(log_weights: Floats, exponents: Floats) -> Floats:
    """e^w (e^u - 1) to full relative accuracy, where e^u may overflow but e^(w + u) does not; both
    are finite.

    Parameters
    ----------
    log_weights, exponents : w and u, of one shape, which the result has.
    """
    found = np.maximum(exponents, 0.0)
    found += log_weights
    np.exp(found, out=found)
    shrink = np.abs(exponents)
    np.negative(shrink, out=shrink)
    found *= np.expm1(shrink, out=shrink)
    return np.copysign(found, exponents, out=found)
