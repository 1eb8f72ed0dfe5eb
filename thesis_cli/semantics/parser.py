"""Parser of probabilistic expressions; its errors name line and column.

```
expression  = "let" binding {"," binding} ["given" condition {"," condition}] "in" expression
            | disjunction
binding     = name "=" expression
condition   = disjunction
disjunction = conjunction {"or" conjunction}
conjunction = negation {"and" negation}
negation    = "not" negation | comparison
comparison  = sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]
            | name ("==" | "!=") text | text ("==" | "!=") name
sum         = product {("+" | "-") product}
product     = signed {("*" | "/") signed}
signed      = ("-" | "+") signed | power
power       = atom ["**" signed]
atom        = number | name | name "(" expression {"," expression} ")" | "(" expression ")"
```
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from thesis_cli.base.errors import InputError, nearest
from thesis_cli.semantics.distributions import DISTRIBUTIONS
from thesis_cli.semantics.functions import CALLED, FUNCTIONS
from thesis_cli.semantics.syntax import LARGEST, Call, Expression, Let, Number, Place, Variable

LONGEST = 10_000
"""Largest number of characters of an expression."""
DEEPEST = 50
"""Largest depth of parentheses, calls and `let` within each other."""
HIGHEST = 150
"""Largest height of the syntax tree; a product of so many terms has it."""
LONG = 32
"""Number of terms from which a sum is long."""

CONSTANTS = {"pi": math.pi}
KEYWORDS = ("let", "given", "in", "and", "or", "not")
RESERVED = (*KEYWORDS, *CONSTANTS, *CALLED, *DISTRIBUTIONS)
"""Names that no variable may have."""

_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n]+|#[^\n]*)|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[^\W\d]\w*)"
    r"|`(?P<quoted>[^`\n]+)`|\"(?P<text>[^\"\n]*)\"|'(?P<other>[^'\n]*)'|(?P<symbol>\*\*|<=|>=|==|!=|[-+*/<>=(),])"
)
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


@dataclass(frozen=True)
class Token:
    """A word of the language.

    Attributes
    ----------
    kind : "number", "name", "symbol", "text" or, after the last one, "end".
    text : the word, without quotes.
    place : place where it begins.
    quoted : whether it was a name in backquotes.
    """

    kind: str
    text: str
    place: Place
    quoted: bool = False

    @property
    def shown(self) -> str:
        return "the end" if self.kind == "end" else repr(self.text[:30])


def tokens(text: str, source: str = "") -> list[Token]:
    """Words of a text, the last one of kind "end". Raises InputError for a character that begins no
    word, or a text that is empty or too long.

    Parameters
    ----------
    source : name of the text in errors.
    """
    if len(text) > LONGEST:
        raise InputError(f"the expression has {len(text):,} characters", f"it may have {LONGEST:,}")
    found: list[Token] = []
    at, line, start = 0, 1, 0
    while at < len(text):
        place = Place(line, at - start + 1, source)
        match = _TOKEN.match(text, at)
        if match is None:
            raise place.wrong(f"{text[at]!r} is no part of the language", "give numbers, names and operators")
        kind = match.lastgroup or ""
        if kind == "quoted":
            found.append(Token("name", match[kind], place, quoted=True))
        elif kind in ("text", "other"):
            found.append(Token("text", match[kind], place))
        elif kind != "space":
            found.append(Token(kind, match[0], place))
        line += match[0].count("\n")
        if "\n" in match[0]:
            start = at + match[0].rindex("\n") + 1
        at = match.end()
    if not found:
        raise InputError("the expression is empty", "write one, such as normal(0, 1)")
    found.append(Token("end", "", Place(line, at - start + 1, source)))
    return found


def parse(text: str, free: Iterable[str] = (), categories: Mapping[str, Sequence[str]] | None = None) -> Expression:
    """The syntax tree of an expression. Raises InputError if the text is no expression, mentions an
    unknown name, or calls with a wrong number of arguments; the error names line and column.

    Parameters
    ----------
    text : the expression; `#` begins a comment.
    free : names of free variables that it may mention.
    categories : levels of those that are categories; their values are the places of the levels, and a text
        that one is compared with stands for such a place.
    """
    parser = _Parser(tokens(text), tuple(free), categories or {})
    found = parser.expression()
    if parser.next.kind != "end":
        raise parser.next.place.wrong(f"{parser.next.shown} is left over", "join the parts by an operator, or end here")
    _check_height(found)
    return found


def _check_height(tree: Expression) -> None:
    """Refuse a tree that is too high to be walked."""
    level = [tree]
    for _ in range(HIGHEST):
        level = [part for node in level for part in _parts(node)]
    if level:
        raise level[0].place.wrong(f"{HIGHEST} operations depend on each other here", "name inner parts by let")


def _parts(node: Expression) -> tuple[Expression, ...]:
    """The expressions that a node is made of."""
    if isinstance(node, Call):
        return node.arguments
    if isinstance(node, Let):
        return (*(value for _, value in node.bindings), *node.observations, node.body)
    return ()


class _Parser:
    """A parser by recursive descent over some words."""

    def __init__(self, words: list[Token], free: tuple[str, ...], categories: Mapping[str, Sequence[str]]) -> None:
        self._words, self._at, self._scope, self._depth = words, 0, free, 0
        self._free, self._categories = len(free), categories

    @property
    def next(self) -> Token:
        return self._words[self._at]

    def _take(self) -> Token:
        token = self.next
        self._at += token.kind != "end"
        return token

    def _found(self, *texts: str) -> bool:
        """Whether one of some symbols or keywords is next."""
        return self.next.kind in ("symbol", "name") and not self.next.quoted and self.next.text in texts

    def _expect(self, text: str, why: str) -> Token:
        if not self._found(text):
            raise self.next.place.wrong(f"{self.next.shown} stands where {text!r} must be", why)
        return self._take()

    def expression(self) -> Expression:
        """An expression, `let` or not."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise self.next.place.wrong(f"parts are nested more than {DEEPEST} deep", "name inner parts by let")
        found = self._let() if self._found("let") else self._disjunction()
        self._depth -= 1
        return found

    def _let(self) -> Expression:
        place, outer = self._take().place, self._scope
        bindings = [self._binding()]
        while self._found(","):
            self._take()
            bindings.append(self._binding())
        observations = []
        if self._found("given"):
            self._take()
            observations.append(self._disjunction())
            while self._found(","):
                self._take()
                observations.append(self._disjunction())
        self._expect("in", "write let name = expression in expression")
        body = self.expression()
        self._scope = outer
        return Let(place, tuple(bindings), tuple(observations), body)

    def _binding(self) -> tuple[str, Expression]:
        token = self._take()
        if token.kind != "name":
            raise token.place.wrong(f"{token.shown} is no name", "write let name = expression in expression")
        if token.text in RESERVED and not token.quoted:
            raise token.place.wrong(f"{token.text!r} has a meaning of its own", "choose another name")
        self._expect("=", "write let name = expression in expression")
        value = self.expression()
        self._scope = (*self._scope, token.text)
        return token.text, value

    def _chain(self, operators: tuple[str, ...], part: str) -> Expression:
        """Operators that associate to the left."""
        read = getattr(self, part)
        terms, found = [read()], list[Token]()
        while self._found(*operators):
            found.append(self._take())
            terms.append(read())
        return _folded(terms, [(each.text, each.place) for each in found])

    def _disjunction(self) -> Expression:
        return self._chain(("or",), "_conjunction")

    def _conjunction(self) -> Expression:
        return self._chain(("and",), "_negation")

    def _negation(self) -> Expression:
        signs = []
        while self._found("not"):
            signs.append(self._take())
        found = self._comparison()
        for sign in reversed(signs):
            found = Call(sign.place, "not", (found,))
        return found

    def _comparison(self) -> Expression:
        found = self._with_text() or self._sum()
        if self._found(*_COMPARISONS):
            operator = self._take()
            found = Call(operator.place, operator.text, (found, self._sum()))
            if self._found(*_COMPARISONS):
                raise self.next.place.wrong("comparisons do not chain", "write a < b and b < c")
        if self._found("="):
            raise self.next.place.wrong("'=' binds names of let only", "write == to compare")
        return found

    def _with_text(self) -> Expression | None:
        """A category that is compared with a text; None if none is next."""
        if len(self._words) < self._at + 3:
            return None
        first, operator, last = self._words[self._at : self._at + 3]
        if "text" not in (first.kind, last.kind) or operator.text not in ("==", "!="):
            return None
        name, text = (last, first) if first.kind == "text" else (first, last)
        if name.kind != "name" or not self._is_category(name.text):
            remedy = 'only a category is compared with a text, as in region == "north"'
            raise text.place.wrong(f"{text.shown} is compared with {name.shown}", remedy)
        levels = self._categories[name.text]
        if text.text not in levels:
            remedy = nearest(text.text, levels, "its levels are")
            raise text.place.wrong(f"{name.text!r} has no level {text.shown}", remedy)
        self._at += 3
        value = Number(text.place, float(levels.index(text.text)))
        return Call(operator.place, operator.text, (Variable(name.place, name.text), value))

    def _is_category(self, name: str) -> bool:
        """Whether a name is a category, and no `let` has given it another meaning."""
        return name in self._categories and name not in self._scope[self._free :]

    def _sum(self) -> Expression:
        return self._chain(("+", "-"), "_product")

    def _product(self) -> Expression:
        return self._chain(("*", "/"), "_signed")

    def _signed(self) -> Expression:
        signs = []
        while self._found("-", "+"):
            signs.append(self._take())
        found = self._power()
        for sign in reversed(signs):
            if sign.text == "+":
                continue
            if isinstance(found, Number):
                found = Number(sign.place, -found.value)
            else:
                found = Call(sign.place, "negative", (found,))
        return found

    def _power(self) -> Expression:
        base = self._atom()
        if not self._found("**"):
            return base
        operator = self._take()
        self._depth += 1
        if self._depth > DEEPEST:
            raise operator.place.wrong(f"parts are nested more than {DEEPEST} deep", "name inner parts by let")
        exponent = self._signed()
        self._depth -= 1
        return Call(operator.place, "**", (base, exponent))

    def _atom(self) -> Expression:
        token = self._take()
        if token.kind == "number":
            value = float(token.text)
            if value > LARGEST:
                raise token.place.wrong(f"{token.text[:30]} is too large", f"give a number up to {LARGEST:g}")
            return Number(token.place, value)
        if token.kind == "name" and not token.quoted and self._found("("):
            return self._call(token)
        if token.kind == "name" and (token.quoted or token.text not in KEYWORDS):
            return self._variable(token)
        if token.kind == "symbol" and token.text == "(":
            found = self.expression()
            self._expect(")", "close the parenthesis")
            return found
        raise token.place.wrong(f"{token.shown} stands where an expression must be", "give a number, a name or a call")

    def _variable(self, token: Token) -> Expression:
        if self._is_category(token.text):
            remedy = f"compare it with one of its levels, as in {token.text} == {self._categories[token.text][0]!r}"
            raise token.place.wrong(f"the column {token.text!r} is a category", remedy)
        if token.text in self._scope:
            return Variable(token.place, token.text)
        if token.text in CONSTANTS:
            return Number(token.place, CONSTANTS[token.text])
        if token.text in FUNCTIONS or token.text in DISTRIBUTIONS:
            raise token.place.wrong(f"{token.text} has no arguments", f"write {_usage(token.text)}")
        remedy = nearest(token.text, self._scope, "the variables are") if self._scope else "let binds variables"
        raise token.place.wrong(f"unknown variable {token.text[:60]!r}", remedy)

    def _call(self, token: Token) -> Expression:
        name = token.text
        if name not in CALLED and name not in DISTRIBUTIONS:
            known = sorted((*CALLED, *DISTRIBUTIONS))
            raise token.place.wrong(f"unknown function {name[:60]!r}", nearest(name, known, "the functions are"))
        self._take()
        arguments = []
        while not self._found(")"):
            arguments.append(self.expression())
            if not self._found(","):
                break
            self._take()
        self._expect(")", f"close the arguments of {name}")
        family = FUNCTIONS[name] if name in CALLED else DISTRIBUTIONS[name]
        if not family.least <= len(arguments) <= family.most:
            given = f"{len(arguments)} argument{'s' * (len(arguments) != 1)}"
            raise token.place.wrong(f"{name} has {given}", f"write {_usage(name)}")
        if name in ("min", "max"):  # of two at a time, so that each step is reduced
            return reduce(lambda a, b: Call(token.place, name, (a, b)), arguments)
        return Call(token.place, name, tuple(arguments))


def _folded(terms: list[Expression], operators: list[tuple[str, Place]]) -> Expression:
    """Terms joined by the operators between them, from left to right; long sums by halves, which are less high."""
    if len(terms) <= LONG or operators[0][0] not in "+-":
        found = terms[0]
        for (text, place), term in zip(operators, terms[1:], strict=True):
            found = Call(place, text, (found, term))
        return found
    at = len(terms) // 2
    (text, place), after = operators[at - 1], operators[at:]
    if text == "-":
        after = [("-" if other == "+" else "+", where) for other, where in after]
    return Call(place, text, (_folded(terms[:at], operators[: at - 1]), _folded(terms[at:], after)))


def _usage(name: str) -> str:
    """The way in which a function or distribution is written."""
    if name in DISTRIBUTIONS:
        return DISTRIBUTIONS[name].usage
    function = FUNCTIONS[name]
    letters = "x" if function.most == 1 else "a, b" if function.least == 2 else "a, b, c"
    return f"{name}({letters}{', ...' * (function.most > function.least)})"
