"""Arrays that compiled message passing takes and fills."""

from __future__ import annotations

from typing import NamedTuple

from thesis_cli.base.arrays import Bools, Floats, Ints


class StoppingRule(NamedTuple):
    """Rule for when the iterations of a row end; as for `TRWS`."""

    tolerance: float
    progress: float
    patience: int
    max_iterations: int


class Bounded(NamedTuple):
    """Results of TRW-S for each row of a batch.

    Attributes
    ----------
    states : configurations, shape (batch, n).
    bounds : upper bounds on the maxima, shape (batch,).
    iterations : number of iterations, shape (batch,).
    """

    states: Ints
    bounds: Floats
    iterations: Ints


class Spins(NamedTuple):
    """phi(s) = constant + sum_v h_v s_v + sum_e J_e s_u s_v, with s in {-1, +1}, in flat arrays.

    Places are positions in an order of the variables that keeps that of the model along each edge:
    by the length of the longest ascending path to a variable. Neighbours in this order are rarely
    linked, so that a processor works on several at a time.

    Attributes
    ----------
    variables : variable at each place, shape (n,).
    first : the edges from place v to later ones are first[v] to first[v + 1], shape (n + 1,).
    later : later end of each edge, shape (E,).
    earlier : earlier end of each edge, shape (E,).
    couplings : J, shape (E,).
    last : the edges from place v to earlier ones are back[last[v]:last[v + 1]], shape (n + 1,).
    back : edges by their later end, shape (E,).
    share : 1 / number of monotonic chains through each place, shape (n,).
    begun : share of those of them that begin there, shape (n,).
    near_first : the neighbours of place v are near[near_first[v]:near_first[v + 1]], shape (n + 1,).
    near, near_couplings : neighbours and the couplings to them, shape (2E,).
    reach : sum of the absolute couplings of each place, shape (n,).
    """

    variables: Ints
    first: Ints
    later: Ints
    earlier: Ints
    couplings: Floats
    last: Ints
    back: Ints
    share: Floats
    begun: Floats
    near_first: Ints
    near: Ints
    near_couplings: Floats
    reach: Floats


class Forests(NamedTuple):
    """Sets of places whose edges among themselves form a forest.

    Attributes
    ----------
    first : the places of forest k are members[first[k]:first[k + 1]], parents first, shape
        (count + 1,).
    members : places.
    parents : position of the parent of each within the forest, its own for a root.
    links : coupling to the parent, 0 for a root.
    """

    first: Ints
    members: Ints
    parents: Ints
    links: Floats


class Sweep(NamedTuple):
    """Messages, each of one number: times the spin of its target, it is the log-message less its
    mean.

    Attributes
    ----------
    up, down : messages to later and to earlier places, shape (E,).
    low, high : sums of the messages into each place from earlier and from later ones, shape (n,).
    states : the configuration decoded last, spins -1 and 1, shape (n,).
    """

    up: Floats
    down: Floats
    low: Floats
    high: Floats
    states: Floats


class Climb(NamedTuple):
    """A configuration and the best one, each with its fields, in the course of a search.

    Attributes
    ----------
    states, best : spins -1 and 1, shape (n,).
    around, best_around : field of each spin and what its neighbours add, shape (n,).
    beliefs, spins, queue : working memory, shape (n,).
    """

    states: Floats
    around: Floats
    best: Floats
    best_around: Floats
    beliefs: Floats
    spins: Floats
    queue: Ints


class Messages(NamedTuple):
    """Layout of the messages of a pairwise model in flat arrays, as one argument of compiled
    kernels.

    Edge e = (i, j), i < j, has two messages: 2e from i to j and 2e + 1 from j to i, so d ^ 1 is the
    reverse of d.

    Attributes
    ----------
    offsets : index of the first state of each variable, shape (n + 1,).
    source, target : variables that message d comes from and goes to, shape (2E,).
    starts : index of the first entry of message d, which has one for each state of its target,
        shape (2E + 1,).
    tables : log-potentials of the edge of each message with axes (target, source), shape (sum of 2
        k_i k_j,).
    table_starts : index of the first entry of the table of message d, shape (2E,).
    first : the messages into variable v are incoming[first[v]:first[v + 1]], shape (n + 1,).
    incoming : messages by target, those from lower variables before those from higher ones, shape
        (2E,).
    """

    offsets: Ints
    source: Ints
    target: Ints
    starts: Ints
    tables: Floats
    table_starts: Ints
    first: Ints
    incoming: Ints


class UpdateSchedule(NamedTuple):
    """Schedule of the updates of messages.

    Attributes
    ----------
    damping : share of the old log-message that is kept, in [0, 1).
    tolerance : sweeps end when none changes a log-belief, whose maximum is 0, by this much, in
        nats.
    max_sweeps : largest number of sweeps.
    """

    damping: float
    tolerance: float
    max_sweeps: int


class Decoded(NamedTuple):
    """Results of max-product for each row of a batch.

    Attributes
    ----------
    states : configurations, shape (batch, n).
    converged : whether the beliefs converged, shape (batch,).
    sweeps : number of sweeps, shape (batch,).
    """

    states: Ints
    converged: Bools
    sweeps: Ints
