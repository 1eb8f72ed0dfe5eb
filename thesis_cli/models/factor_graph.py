"""Discrete models: a factor graph with the names of its variables and states, and the plain vector that is its
simplest case.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, Context, Decimal
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError, counted, nearest


@dataclass(frozen=True)
class Names:
    """Names of the variables of a model and of their states.

    Attributes
    ----------
    variables : one distinct name for each variable.
    states : for each variable the names of the states that it has without evidence, or an empty
        tuple if its states have no names; an empty tuple in all if no states have names.

    Raises
    ------
    InputError : two variables have one name, or `states` has another length than `variables`.
    """

    variables: tuple[str, ...]
    states: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for name in self.variables:
            if name in seen:
                raise InputError(f"two variables are called {name!r}", "each variable must have its own name")
            seen.add(name)
        if self.states and len(self.states) != len(self.variables):
            raise InputError(
                f"{len(self.states)} variables have names of states", f"the model has {len(self.variables)} variables"
            )

    def state(self, variable: int, state: int) -> str:
        """Name of a state of a variable; its number if it has no name."""
        known = self.states[variable] if self.states else ()
        return known[state] if state < len(known) else str(state)


def index_of(text: str, names: Sequence[str], count: int, what: str) -> int:
    """Find the index that a name or a number stands for; names go before numbers.

    Parameters
    ----------
    text : a name among `names`, or a whole number below `count`.
    names : the known names; may be empty.
    count : how many there are, with or without names.
    what : what messages call it, such as `variable`.

    Raises
    ------
    InputError : it is neither; the message gives the nearest name, or the range of numbers.
    """
    if names.count(text) == 1:
        return names.index(text)
    if text.isascii() and text.isdigit() and len(text) < 10 and int(text) < count:
        return int(text)
    raise InputError(f"there is no {what} {text!r}", nearest(text, names) if names else f"they are 0 to {count - 1}")


def check_log_potentials(values: Floats, what: str) -> None:
    """Raise `InputError` unless every entry, of any shape, is finite or `-inf`, and at least one is finite."""
    if values.size == 0:
        raise InputError(f"{what} is empty", "give one log-potential for each configuration")
    highest = values.max()  # NaN if any entry is
    if np.isnan(highest):
        raise InputError(f"{what} has a NaN at entry {int(np.isnan(values).argmax())}", _FINITE)
    if highest == np.inf:
        raise InputError(f"{what} has +inf at entry {int(values.argmax())}", _FINITE)
    if highest == -np.inf:
        raise InputError(f"{what} is -inf everywhere", "at least one configuration must be possible")


_ALL = slice(None)

_FINITE = "log-potentials must be finite, or -inf for an impossible configuration"


class Factor(NamedTuple):
    """A table of log-potentials over some variables.

    Attributes
    ----------
    scope : indices of the variables, each at most once.
    table : log-potentials in nats, shape = cardinalities of the scope in its order; an entry of
        `-inf` forbids its configurations.
    """

    scope: tuple[int, ...]
    table: Floats


class FactorGraph:
    """A Gibbs distribution p(x) = exp(phi(x)) / Z, where phi is the sum of the factors.

    The notation is that of Thesis section 1.5.1.

    Parameters
    ----------
    cardinalities : number of states of each variable, shape (n,).
    factors : tables of log-potentials over subsets of the variables.
    observed : variables that evidence holds at a state, each with that state; their cardinality is
        1.
    names : names of the variables and of their states, if they have any.
    unobserved : number of states of each variable without the evidence; by default `cardinalities`.

    Raises
    ------
    InputError : a scope names no variable or one twice, a table has another shape, a NaN or a
        `+inf`, a table is `-inf` everywhere, or the number of names is not the number of variables.
    """

    def __init__(
        self,
        cardinalities: Sequence[int],
        factors: Sequence[Factor],
        observed: Mapping[int, int] | None = None,
        names: Names | None = None,
        unobserved: Sequence[int] | None = None,
    ) -> None:
        self._keep(tuple(map(int, cardinalities)), tuple(map(_plain, factors)), observed, names, unobserved)
        if not self.cardinalities:
            raise InputError("the model has no variables", "it must have at least one")
        if min(self.cardinalities) < 1:
            i, k = next((i, k) for i, k in enumerate(self.cardinalities) if k < 1)
            raise InputError(f"variable {i} has {k} states", "a variable must have at least one state")
        if names:
            self._check_names(names)
        for j, factor in enumerate(self.factors):
            self._check_shape(j, factor)
        self._check_entries()

    @classmethod
    def unchecked(
        cls,
        cardinalities: tuple[int, ...],
        factors: Sequence[Factor],
        observed: Mapping[int, int] | None = None,
        names: Names | None = None,
        unobserved: Sequence[int] | None = None,
    ) -> Self:
        """A graph of parts that are known to be right; the scopes are tuples, the tables contiguous
        and of float64.
        """
        graph = cls.__new__(cls)
        graph._keep(cardinalities, tuple(factors), observed, names, unobserved)
        return graph

    def _keep(
        self,
        cardinalities: tuple[int, ...],
        factors: tuple[Factor, ...],
        observed: Mapping[int, int] | None,
        names: Names | None,
        unobserved: Sequence[int] | None,
    ) -> None:
        self.cardinalities, self.factors, self.names = cardinalities, factors, names
        self.observed = dict(observed or {})
        self.unobserved = tuple(unobserved or cardinalities)

    def _check_names(self, names: Names) -> None:
        n = len(self.cardinalities)
        if len(names.variables) != n:
            raise InputError(f"there are {counted(len(names.variables), 'name')} of variables", f"give {n}")
        for i, known in enumerate(names.states):
            if known and len(known) != self.unobserved[i]:
                raise InputError(
                    f"variable {names.variables[i]} has {counted(len(known), 'name')} of states",
                    f"give {self.unobserved[i]}",
                )

    def _check_shape(self, j: int, factor: Factor) -> None:
        n = len(self.cardinalities)
        if factor.scope and not 0 <= min(factor.scope) <= max(factor.scope) < n:
            i = next(i for i in factor.scope if not 0 <= i < n)
            raise InputError(f"factor {j} names variable {i}", f"the variables are 0 to {n - 1}")
        if len(set(factor.scope)) < len(factor.scope):
            raise InputError(
                f"factor {j} names a variable twice: {factor.scope}", "a scope must name each variable once"
            )
        shape = tuple([self.cardinalities[i] for i in factor.scope])
        if factor.table.shape != shape:
            raise InputError(
                f"factor {j} has a table of shape {factor.table.shape}", f"its variables make the shape {shape}"
            )

    def _check_entries(self) -> None:
        """Check all tables in one pass, which is fast for many; then look for the wrong one."""
        tables = [factor.table.reshape(-1) for factor in self.factors]
        starts = list(itertools.accumulate((t.size for t in tables), initial=0))[:-1]
        if tables and not np.isfinite(np.maximum.reduceat(np.concatenate(tables), starts)).all():
            for j, table in enumerate(tables):
                check_log_potentials(table, f"the table of factor {j}")

    @cached_property
    def size(self) -> int:
        """Number of configurations, exact for models of any size."""
        return math.prod(k**times for k, times in Counter(self.cardinalities).items())

    @cached_property
    def has_zeros(self) -> bool:
        """Whether a factor forbids any configuration."""
        return any(np.isneginf(f.table).any() for f in self.factors)

    def describe(self) -> str:
        """`8 variables, 8 factors, 256 configurations`."""
        n, m = len(self.cardinalities), len(self.factors)
        return f"{counted(n, 'variable')}, {counted(m, 'factor')}, {_count(self.size)}"

    def variable_name(self, variable: int) -> str:
        """Name of a variable; its number if it has no name."""
        return self.names.variables[variable] if self.names else str(variable)

    def state_name(self, variable: int, state: int) -> str:
        """Name of a state as it is numbered without evidence; its number if it has no name."""
        return self.names.state(variable, state) if self.names else str(state)

    def log_potential(self, states: npt.NDArray[np.integer]) -> Floats:
        """Compute phi in nats for each row of `states`, shape (batch, n) -> (batch,)."""
        total = np.zeros(states.shape[0])
        for factor in self.factors:
            total += factor.table[tuple(states[:, i] for i in factor.scope)]
        return total

    def condition(self, evidence: Mapping[int, int]) -> FactorGraph:
        """The unnormalised model with some variables held at a state.

        Its partition function sums over the configurations that agree with the evidence: for a
        Bayesian network, it is the probability of the evidence. An observed variable stays in the
        model, with one state.

        Raises
        ------
        InputError : there is no such variable or state, or a factor forbids the evidence.
        """
        for i, state in evidence.items():
            if not 0 <= i < len(self.cardinalities):
                raise InputError(
                    f"evidence names variable {i}", f"the variables are 0 to {len(self.cardinalities) - 1}"
                )
            if not 0 <= state < self.cardinalities[i]:
                raise InputError(
                    f"evidence puts variable {i} in state {state}",
                    f"its states are 0 to {self.cardinalities[i] - 1}",
                )
        factors = list(self.factors)
        for j, (scope, table) in enumerate(self.factors):
            if not evidence.keys().isdisjoint(scope):
                table = table[tuple(slice(evidence[i], evidence[i] + 1) if i in evidence else _ALL for i in scope)]
                if table.max() == -np.inf:
                    raise InputError(f"factor {j} forbids the evidence", "give evidence of positive probability")
                factors[j] = Factor(scope, np.asarray(table, order="C"))
        left = tuple(1 if i in evidence else k for i, k in enumerate(self.cardinalities))
        return FactorGraph.unchecked(left, factors, {**evidence, **self.observed}, self.names, self.unobserved)

    def with_factors(self, factors: Sequence[Factor]) -> FactorGraph:
        """A model with other factors on the same variables, evidence and names."""
        return FactorGraph(self.cardinalities, factors, self.observed, self.names, self.unobserved)

    def tempered(self, alpha: float) -> FactorGraph:
        """The model with potential alpha phi and partition function Z_alpha (Thesis eq. 3.27).

        Impossible configurations stay impossible: at alpha = 0 every possible one has potential 0.

        Raises
        ------
        InputError : alpha is negative or not finite.
        """
        if not 0 <= alpha < math.inf:
            raise InputError(f"alpha is {alpha:g}", "it must be a finite number, 0 or above")
        return self.with_factors([Factor(f.scope, _tempered(f.table, alpha)) for f in self.factors])

    def times(self, other: FactorGraph) -> FactorGraph:
        """The model with potential phi + that of `other`, on the same variables.

        Raises
        ------
        InputError : the variables differ.
        """
        if (other.cardinalities, other.observed) != (self.cardinalities, self.observed):
            raise InputError(
                f"its variables have {list(other.cardinalities)[:8]} states",
                f"those of the model have {list(self.cardinalities)[:8]}",
            )
        return self.with_factors(self.factors + other.factors)

    def original_marginals(self, marginals: Floats) -> list[Floats]:
        """Marginals of each variable over the states that it has without the evidence.

        Parameters
        ----------
        marginals : probabilities of the states of variable 0, then of variable 1, ..., shape (sum
            of cardinalities,).
        """
        found = np.split(marginals, np.cumsum(self.cardinalities)[:-1])
        for i, state in self.observed.items():
            found[i] = np.eye(1, self.unobserved[i], state)[0]
        return found

    def original_states(self, states: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """Number states as they are without the evidence, shape (batch, n) -> (batch, n)."""
        found = states.astype(np.int64)
        for i, state in self.observed.items():
            found[:, i] = state
        return found


def _plain(factor: Factor) -> Factor:
    """A factor with a tuple and a contiguous array of float64."""
    return Factor(tuple(factor.scope), np.asarray(factor.table, dtype=np.float64, order="C"))


def _tempered(table: Floats, alpha: float) -> Floats:
    """Multiply a table by alpha; exactly the impossible configurations stay impossible."""
    result = np.full(table.shape, -np.inf)
    with np.errstate(over="ignore"):
        np.multiply(alpha, table, where=table > -np.inf, out=result)
    return np.asarray(np.maximum(result, np.where(table > -np.inf, np.finfo(np.float64).min, -np.inf)))


class LogPotentials:
    """A model given by the log-potential of each configuration.

    Parameters
    ----------
    values : log-potentials in nats, shape (N,); a memory map is read a block at a time.

    Raises
    ------
    InputError : the vector is empty or not one-dimensional. The entries are checked when they are
        read.
    """

    def __init__(self, values: Floats) -> None:
        if values.ndim != 1 or values.size == 0:
            raise InputError(
                f"log-potentials have shape {values.shape}",
                "give a vector: one number for each configuration",
            )
        self.values = values

    @property
    def size(self) -> int:
        """Number of configurations."""
        return int(self.values.size)

    def describe(self) -> str:
        """`a vector of 1,000 configurations`."""
        return f"a vector of {_count(self.size)}"


Model = FactorGraph | LogPotentials


def _count(size: int) -> str:
    """`12 configurations`; large numbers in powers of ten, from their first bits."""
    if size < 10**7:
        return counted(size, "configuration")
    cut = max(0, size.bit_length() - 128)
    found = _MANY.multiply(Decimal(size >> cut), _MANY.power(2, cut))
    return f"{found:.2e} configurations".replace("e+", "e")


_MANY = Context(prec=40, Emax=MAX_EMAX)


def squeezed(factor: Factor, cardinalities: Sequence[int]) -> Factor:
    """A factor without its variables of one state."""
    scope = tuple([i for i in factor.scope if cardinalities[i] > 1])
    if len(scope) == len(factor.scope):
        return factor
    return Factor(scope, factor.table.reshape([cardinalities[i] for i in scope]))
