"""The UAI format: models (MARKOV, BAYES) and evidence, read and written.

Grammar: a preamble (`MARKOV` or `BAYES`, number of variables, cardinalities, number of factors, and a
scope for each: how many variables, which), then a table for each factor: how many entries, and the
entries, not logarithms, the last variable of the scope changing fastest. White space and line ends
mean the same; `#` starts a comment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Context, Decimal, InvalidOperation

import numpy as np

from thesis_cli.errors import InputError
from thesis_cli.models.factor_graph import Factor, FactorGraph, Floats

_DIGITS = Context(prec=20, Emin=-(10**17), Emax=10**17)


class _Words:
    """The words of a file in turn; the line of one is worked out only when an error wants it."""

    def __init__(self, text: str, source: str) -> None:
        if "#" in text:
            text = re.sub(r"#[^\n]*", "", text)
        self._text, self._source = text, source
        self.words = text.split()
        self.at = 0

    def error(self, problem: str, remedy: str, word: int | None = None) -> InputError:
        wanted = self.at - 1 if word is None else word
        line = 0
        for line, row in enumerate(self._text.split("\n"), 1):  # noqa: B007  the last line, if none has it
            wanted -= len(row.split())
            if wanted < 0:
                break
        return InputError(problem, remedy, source=self._source, line=line)

    def take(self, what: str) -> str:
        if self.at >= len(self.words):
            raise self.error(f"the file ends where {what} is wanted", "the rest of the model is missing")
        self.at += 1
        return self.words[self.at - 1]

    def whole(self, what: str, least: int, most: float = math.inf) -> int:
        word = self.take(what)
        try:
            value = int(word)
        except ValueError:
            raise self.error(f"{what} is '{word[:40]}'", "a whole number is wanted") from None
        if not least <= value <= most:
            span = f"from {least} to {most:.0f}" if most < math.inf else f"of at least {least}"
            raise self.error(f"{what} is {value}", f"a number {span} is wanted")
        return value

    def promise(self, count: int, what: str) -> None:
        """Refuse a count that the rest of the file cannot hold, before anything is allocated for it."""
        left = len(self.words) - self.at
        if count > left:
            raise self.error(f"{what}, but {left} words are left in the file", "is it cut short?")

    def finish(self) -> None:
        if self.at < len(self.words):
            raise self.error(
                f"the model is complete, but '{self.words[self.at][:40]}' follows",
                "nothing after the last table",
                self.at,
            )


def parse(text: str, source: str = "") -> FactorGraph:
    """Read a model.

    Raises
    ------
    InputError : with the line, for every departure from the grammar, and for a table with a NaN, an
        infinite or a negative entry, or with no positive one.
    """
    words = _Words(text, source)
    kind = words.take("MARKOV or BAYES").upper()
    if kind not in ("MARKOV", "BAYES"):
        raise words.error(f"starts with '{kind[:40]}'", "a UAI model starts with MARKOV or BAYES")
    n = words.whole("the number of variables", 1)
    words.promise(n, f"{n} cardinalities are promised")
    cardinalities = [words.whole(f"the cardinality of variable {i}", 1) for i in range(n)]
    count = words.whole("the number of factors", 0)
    words.promise(count, f"{count} factors are promised")
    scopes = [_scope(words, j, n) for j in range(count)]
    factors = []
    for j, scope in enumerate(scopes):
        shape = tuple(cardinalities[i] for i in scope)
        factors.append(Factor(scope, _table(words, j, shape)))
    words.finish()
    return FactorGraph(cardinalities, factors)


def parse_evidence(text: str, cardinalities: Sequence[int], source: str = "") -> dict[int, int]:
    """Read evidence, `count variable state variable state ...`, as variable -> state.

    A leading line with the number of samples, as in the format of 2010, may stand before one sample.
    """
    words = _Words(text, source)
    if not words.words:
        raise words.error("the file is empty", "a count and pairs of variable and state are wanted")
    if len(words.words) % 2 == 0:
        samples = words.whole("the number of samples", 1)
        if samples != 1:
            raise words.error(f"{samples} samples of evidence", "one at a time is wanted")
    count = words.whole("the number of observed variables", 0)
    words.promise(2 * count, f"{count} observed variables are promised")
    evidence: dict[int, int] = {}
    for _ in range(count):
        i = words.whole("an observed variable", 0, len(cardinalities) - 1)
        if i in evidence:
            raise words.error(f"variable {i} is observed twice", "each variable once")
        evidence[i] = words.whole(f"the state of variable {i}", 0, cardinalities[i] - 1)
    words.finish()
    return evidence


def _scope(words: _Words, j: int, n: int) -> tuple[int, ...]:
    size = words.whole(f"the number of variables of factor {j}", 0, n)
    words.promise(size, f"factor {j} has {size} variables")
    scope = tuple(words.whole(f"a variable of factor {j}", 0, n - 1) for _ in range(size))
    if len(set(scope)) < size:
        raise words.error(f"factor {j} names a variable twice", "each variable once in a scope")
    return scope


def _table(words: _Words, j: int, shape: tuple[int, ...]) -> Floats:
    """The log-potentials of the next table."""
    wanted = math.prod(shape)
    entries = words.whole(f"the number of entries of factor {j}", 0)
    if entries != wanted:
        raise words.error(f"factor {j} has {entries} entries", f"the cardinalities of its variables make {wanted}")
    words.promise(entries, f"factor {j} has {entries} entries")
    first = words.at
    text = words.words[first : first + entries]
    words.at += entries
    try:
        values = np.array(text, dtype=np.float64)
    except ValueError:
        bad = next(k for k, word in enumerate(text) if not _is_number(word))
        raise words.error(f"'{text[bad][:40]}' is not a number", "a probability", first + bad) from None
    with np.errstate(divide="ignore", invalid="ignore"):
        table = np.log(values)
    # What a double holds badly or not at all (1e-320, 1e400) a decimal can; the rest is wrong.
    for k in np.flatnonzero(~((values >= np.finfo(np.float64).tiny) & np.isfinite(values))):
        table[k] = _log_of_word(words, text[k], first + int(k))
    if table.size and table.max() == -np.inf:
        raise words.error(f"every entry of factor {j} is 0", "some configuration must be possible", first)
    return np.asarray(table.reshape(shape))


def _log_of_word(words: _Words, word: str, at: int) -> float:
    try:
        value = Decimal(word)
    except InvalidOperation:
        raise words.error(f"'{word[:40]}' is not a number", "a probability", at) from None
    if not value.is_finite() or value < 0:
        raise words.error(f"'{word[:40]}' in a table", "entries are finite and not negative", at)
    return float(value.ln(_DIGITS)) if value else -math.inf


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def write(graph: FactorGraph, comment: str = "") -> str:
    """The text of a UAI file, MARKOV, to 17 significant digits.

    Entries are exponentials of the log-potentials, beyond the range of a double where they must be;
    `parse` reads them back to one part in 1e15 of a potential of size 1.
    """
    lines = [f"# {line}" for line in comment.splitlines()]
    lines += ["MARKOV", str(len(graph.cardinalities)), " ".join(map(str, graph.cardinalities))]
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
    return f"{Decimal(log_potential).exp(_DIGITS):.17e}"
