"""Discrete models: a factor graph, and the plain vector that is its simplest case."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError


def check_log_potentials(values: Floats, what: str) -> None:
    """Raise `InputError` unless every entry is finite or `-inf`, and one at least is finite."""
    if values.size == 0:
        raise InputError(f"{what} is empty", "a log-potential for each configuration is wanted")
    highest = values.max()  # NaN if any entry is
    if np.isnan(highest):
        raise InputError(f"{what} has a NaN at entry {int(np.isnan(values).argmax())}", _FINITE)
    if highest == np.inf:
        raise InputError(f"{what} has +inf at entry {int(values.argmax())}", _FINITE)
    if highest == -np.inf:
        raise InputError(f"{what} is -inf everywhere", "some configuration must be possible")


_FINITE = "log-potentials are finite, or -inf where a configuration is impossible"


@dataclass(frozen=True)
class Factor:
    """A table of log-potentials over some variables.

    Attributes
    ----------
    scope : indices of the variables, each at most once.
    table : log-potentials, shape = cardinalities of the scope in its order; `-inf` forbids.
    """

    scope: tuple[int, ...]
    table: Floats


class FactorGraph:
    """A Gibbs distribution p(x) = exp(phi(x)) / Z, phi the sum of the factors (Thesis section 1.5.1).

    Parameters
    ----------
    cardinalities : number of states of each variable, shape (n,).
    factors : tables of log-potentials over subsets of the variables.
    observed : variables held at a state by evidence, each with that state; their cardinality is 1.

    Raises
    ------
    InputError : a scope that names no variable or repeats one, a table of another shape, a NaN, a
        `+inf`, or a table that is `-inf` everywhere.
    """

    def __init__(
        self, cardinalities: Sequence[int], factors: Sequence[Factor], observed: Mapping[int, int] | None = None
    ) -> None:
        self.cardinalities = tuple(int(k) for k in cardinalities)
        self.observed = dict(observed or {})
        if not self.cardinalities:
            raise InputError("the model has no variables", "at least one variable is wanted")
        for i, k in enumerate(self.cardinalities):
            if k < 1:
                raise InputError(f"variable {i} has {k} states", "a variable has at least one state")
        self.factors = tuple(Factor(tuple(f.scope), np.asarray(f.table, dtype=np.float64, order="C")) for f in factors)
        for j, factor in enumerate(self.factors):
            self._check_shape(j, factor)
        self._check_entries()

    def _check_shape(self, j: int, factor: Factor) -> None:
        n = len(self.cardinalities)
        for i in factor.scope:
            if not 0 <= i < n:
                raise InputError(f"factor {j} names variable {i}", f"variables are 0 to {n - 1}")
        if len(set(factor.scope)) < len(factor.scope):
            raise InputError(f"factor {j} names a variable twice: {factor.scope}", "each variable once in a scope")
        shape = tuple([self.cardinalities[i] for i in factor.scope])
        if factor.table.shape != shape:
            raise InputError(f"factor {j} has a table of shape {factor.table.shape}", f"its variables make it {shape}")

    def _check_entries(self) -> None:
        """Many small tables in one sweep; each by itself only if one of them is at fault."""
        tables = [factor.table.reshape(-1) for factor in self.factors]
        starts = list(itertools.accumulate((t.size for t in tables), initial=0))[:-1]
        if tables and not np.isfinite(np.maximum.reduceat(np.concatenate(tables), starts)).all():
            for j, table in enumerate(tables):
                check_log_potentials(table, f"the table of factor {j}")

    @cached_property
    def size(self) -> int:
        """Number of configurations, exact however large."""
        return math.prod(self.cardinalities)

    def describe(self) -> str:
        n, m = len(self.cardinalities), len(self.factors)
        return f"{n:,} variable{'s' * (n != 1)}, {m:,} factor{'s' * (m != 1)}, {_count(self.size)}"

    def log_potential(self, states: npt.NDArray[np.integer]) -> Floats:
        """phi of each row of `states`, shape (batch, n) -> (batch,)."""
        total = np.zeros(states.shape[0])
        for factor in self.factors:
            total += factor.table[tuple(states[:, i] for i in factor.scope)]
        return total

    def condition(self, evidence: Mapping[int, int]) -> FactorGraph:
        """The unnormalised model with some variables held at a state.

        Its partition function sums over the configurations that agree with the evidence: for a Bayesian
        network, the probability of the evidence. An observed variable stays, with that one state.

        Raises
        ------
        InputError : no such variable or state, or evidence that a factor forbids.
        """
        for i, state in evidence.items():
            if not 0 <= i < len(self.cardinalities):
                raise InputError(f"evidence names variable {i}", f"variables are 0 to {len(self.cardinalities) - 1}")
            if not 0 <= state < self.cardinalities[i]:
                raise InputError(
                    f"evidence puts variable {i} in state {state}",
                    f"its states are 0 to {self.cardinalities[i] - 1}",
                )
        factors = []
        for j, factor in enumerate(self.factors):
            seen = tuple(slice(evidence[i], evidence[i] + 1) if i in evidence else slice(None) for i in factor.scope)
            table = factor.table[seen]
            if table.max() == -np.inf:
                raise InputError(f"factor {j} forbids the evidence", "evidence of positive probability is wanted")
            factors.append(Factor(factor.scope, table))
        left = [1 if i in evidence else k for i, k in enumerate(self.cardinalities)]
        return FactorGraph(left, factors, {**self.observed, **evidence})

    def tempered(self, alpha: float) -> FactorGraph:
        """The model with potential alpha phi, whose partition function is Z_alpha (Thesis eq. 3.27).

        What is impossible stays so: at alpha = 0 every possible configuration has potential 0.

        Raises
        ------
        InputError : alpha is negative or not finite.
        """
        if not 0 <= alpha < math.inf:
            raise InputError(f"alpha is {alpha:g}", "a finite number, 0 or above, is wanted")
        return FactorGraph(
            self.cardinalities, [Factor(f.scope, _tempered(f.table, alpha)) for f in self.factors], self.observed
        )

    def times(self, other: FactorGraph) -> FactorGraph:
        """The model with potential phi + that of `other`, on the same variables.

        Raises
        ------
        InputError : the variables differ.
        """
        if (other.cardinalities, other.observed) != (self.cardinalities, self.observed):
            raise InputError(
                f"its variables have {list(other.cardinalities)[:8]} states",
                f"those of the model, {list(self.cardinalities)[:8]}, are wanted",
            )
        return FactorGraph(self.cardinalities, self.factors + other.factors, self.observed)

    def original_states(self, states: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """States as they are numbered without the evidence, shape (batch, n) -> (batch, n)."""
        found = states.astype(np.int64)
        for i, state in self.observed.items():
            found[:, i] = state
        return found


def _tempered(table: Floats, alpha: float) -> Floats:
    """alpha times a table, in which what is impossible stays so and nothing else becomes so."""
    result = np.full(table.shape, -np.inf)
    with np.errstate(over="ignore"):
        np.multiply(alpha, table, where=table > -np.inf, out=result)
    return np.asarray(np.maximum(result, np.where(table > -np.inf, np.finfo(np.float64).min, -np.inf)))


class LogPotentials:
    """A model given by the log-potential of each configuration.

    Parameters
    ----------
    values : log-potentials, shape (N,); may be a memory map, of which a block at a time is read.

    Raises
    ------
    InputError : empty or not one-dimensional. The entries are checked as they are read.
    """

    def __init__(self, values: Floats) -> None:
        if values.ndim != 1 or values.size == 0:
            raise InputError(
                f"log-potentials have shape {values.shape}",
                "one number for each configuration, at least one, is wanted",
            )
        self.values = values

    @property
    def size(self) -> int:
        return int(self.values.size)

    def describe(self) -> str:
        return f"a vector of {_count(self.size)}"


Model = FactorGraph | LogPotentials


def _count(size: int) -> str:
    """`12 configurations`, and in powers of ten where digits would not be read."""
    if size < 10**7:
        return f"{size:,} configuration{'s' * (size != 1)}"
    return f"{Decimal(size):.2e} configurations".replace("e+", "e")
