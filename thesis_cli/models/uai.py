"""Read and write the UAI formats: models (MARKOV, BAYES), evidence and queries; results (PR, MAR, MPE, MMAP).

Grammar: a preamble, then a table for each factor. The preamble holds `MARKOV` or `BAYES`, the
number of variables, their cardinalities, the number of factors, and the scope of each factor: how
many variables, and which. A table holds the number of its entries and the entries, which are not
logarithms; the last variable of the scope changes fastest. Any white space separates words; `#`
starts a comment. The first line of a result holds the task, the second its solution (`Result file format`,
UAI 2014 to 2022): https://uaicompetition.github.io/uai-competition-dev/file-formats/result-format
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal

from thesis_cli.base.arrays import Floats
from thesis_cli.models import tokens
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.tokens import DIGITS, Irregular, Tokens, log_entries

KINDS = ("MARKOV", "BAYES")
"""First words of a model, in letters of any case."""

MOST_VARIABLES = 64
"""Largest number of variables of a factor: a NumPy array can have no more axes."""

MOST_STATES = 2**30
"""Largest number of states of a variable."""


def parse(text: str, source: str = "") -> FactorGraph:
    """Read a model.

    Raises
    ------
    InputError : the text departs from the grammar, or a table has a NaN, an infinite or a negative
        entry, or no positive one; the message gives the line.
    """
    if len(text) >= tokens.LONG:
        try:
            return parse_at_once(text)
        except Irregular:
            pass  # the words one by one show why
    words = Tokens(text, source)
    kind = words.take("MARKOV or BAYES").upper()
    if kind not in KINDS:
        raise words.error(f"starts with {kind[:40]!r}", "it must start with MARKOV or BAYES")
    n = words.whole("the number of variables", 1)
    places = words.many(n, f"{n} cardinalities are promised")
    cardinalities = words.wholes(places, "the cardinality of variable {}", 1, MOST_STATES)
    count = words.whole("the number of factors", 0)
    words.promise(count, f"{count} factors are promised")
    scopes = [_scope(words, j, n) for j in range(count)]
    shapes = [tuple(cardinalities[i] for i in scope) for scope in scopes]
    tables = log_entries(words, [_entries(words, j, shape) for j, shape in enumerate(shapes)])
    words.finish("the model")
    factors = [Factor(scope, t.reshape(shape)) for scope, t, shape in zip(scopes, tables, shapes, strict=True)]
    return FactorGraph(cardinalities, factors)


def parse_at_once(text: str) -> FactorGraph:
    """Read a long model in a fraction of the time.

    Raises
    ------
    Irregular : `parse` must read it word by word.
    """
    from thesis_cli.models import bulk

    numbers = bulk.Numbers(text)
    n = numbers.at(1)
    if numbers.word(0).upper() not in KINDS or n == 0:
        raise Irregular
    cardinalities = numbers.wholes(slice(2, n + 2), 1, MOST_STATES)
    sizes, scopes, end = numbers.groups(n + 3, numbers.at(n + 2))
    entries, tables, end = numbers.groups(end, len(sizes))
    if end < numbers.count:
        raise Irregular
    variables = numbers.wholes(scopes, 0, n - 1)
    factors = bulk.factors(cardinalities, variables, sizes, entries, numbers.logs(tables))
    return FactorGraph.unchecked(tuple(cardinalities.tolist()), factors)


def parse_evidence(text: str, cardinalities: Sequence[int], source: str = "") -> dict[int, int]:
    """Read evidence, `count variable state variable state ...`, as variable -> state.

    The number of samples may come first, as in the format of 2010, if it is 1. That format has a
    line for each sample, which tells two samples from one of two variables.

    Parameters
    ----------
    text : content of the file.
    cardinalities : number of states of each variable.
    source : name of the file, for errors.

    Raises
    ------
    InputError : the text departs from the grammar, or there is no such variable or state; the
        message gives the line.
    """
    words = Tokens(text, source)
    left = words.count(2 * len(cardinalities) + 3)
    if left == 0:
        raise words.error("the file is empty", "give a count, then pairs of variable and state")
    if _counts_samples(text, left):
        samples = words.whole("the number of samples", 1)
        if samples != 1:
            raise words.error(
                f"has {samples} samples of evidence", "keep one: the number 1, and the line of that sample"
            )
    count = words.whole("the number of observed variables", 0)
    words.promise(2 * count, f"{count} observed variables are promised")
    evidence: dict[int, int] = {}
    for _ in range(count):
        i = words.whole("an observed variable", 0, len(cardinalities) - 1)
        if i in evidence:
            raise words.error(f"variable {i} is observed twice", "observe each variable once")
        evidence[i] = words.whole(f"the state of variable {i}", 0, cardinalities[i] - 1)
    words.finish("the evidence")
    return evidence


def parse_query(text: str, variables: int, source: str = "") -> tuple[int, ...]:
    """Read the query of a marginal MAP task, `count variable variable ...`.

    Parameters
    ----------
    text : content of the file.
    variables : number of variables of the model.
    source : name of the file, for errors.

    Raises
    ------
    InputError : the text departs from the grammar, there is no such variable, or one is named twice; the
        message gives the line.
    """
    words = Tokens(text, source)
    count = words.whole("the number of query variables", 0)
    words.promise(count, f"{count} query variables are promised")
    found: dict[int, None] = {}
    for _ in range(count):
        i = words.whole("a query variable", 0, variables - 1)
        if i in found:
            raise words.error(f"variable {i} is named twice", "name each variable once")
        found[i] = None
    words.finish("the query")
    return tuple(found)


def _counts_samples(text: str, words: int) -> bool:
    """Whether evidence of so many words begins with the number of samples.

    It does if that number has a line of its own, and each line behind it is a sample; and, wherever
    the lines end, if it is 1 and an even number of words makes it no number of variables.
    """
    first, *rest = [line.split() for line in re.sub(r"#[^\n]*", "", text).split("\n") if line.strip()]
    samples = [line[0].isdecimal() and len(line) == 2 * int(line[0][:9]) + 1 for line in rest]
    return (len(first) == 1 and bool(rest) and all(samples)) or (first[0] == "1" and words % 2 == 0)


def _scope(words: Tokens, j: int, n: int) -> tuple[int, ...]:
    size = words.whole(f"the number of variables of factor {j}", 0, min(n, MOST_VARIABLES))
    places = words.many(size, f"factor {j} has {size} variables")
    return distinct(words, words.wholes(places, f"a variable of factor {j}", 0, n - 1), j)


def distinct(words: Tokens, scope: Sequence[int], j: int) -> tuple[int, ...]:
    """Refuse a scope that was just taken if it names a variable twice."""
    if len(set(scope)) < len(scope):
        raise words.error(f"factor {j} names a variable twice", "a scope must name each variable once")
    return tuple(scope)


def _entries(words: Tokens, j: int, shape: tuple[int, ...]) -> range:
    """Take the entries of the next table and return their positions."""
    size = math.prod(shape)
    entries = words.whole(f"the number of entries of factor {j}", 0)
    if entries != size:
        raise words.error(f"factor {j} has {entries} entries", f"the cardinalities of its variables make {size}")
    return words.many(entries, f"factor {j} has {entries} entries")


def write(graph: FactorGraph) -> str:
    """Write a model as a MARKOV file, to 17 significant digits.

    The file has no comments, which few readers take. Entries are exponentials of the
    log-potentials, beyond the range of a double if necessary. `parse` reads them back with an error
    of at most one part in 1e15 of a potential of size 1.
    """
    lines = ["MARKOV", str(len(graph.cardinalities)), " ".join(map(str, graph.cardinalities))]
    lines.append(str(len(graph.factors)))
    lines += [" ".join(map(str, (len(f.scope), *f.scope))) for f in graph.factors]
    for factor in graph.factors:
        rows = factor.table.reshape(-1, factor.table.shape[-1] if factor.scope else 1)
        lines += ["", str(factor.table.size)]
        lines += [" ".join(_exp_text(value) for value in row) for row in rows.tolist()]
    return "\n".join(lines) + "\n"


def _exp_text(log_potential: float) -> str:
    if log_potential == -math.inf:
        return "0"
    if abs(log_potential) < 700:
        return repr(math.exp(log_potential))
    return f"{Decimal(log_potential).exp(DIGITS):.17e}"


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
