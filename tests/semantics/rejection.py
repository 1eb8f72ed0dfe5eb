"""A plain interpreter of expressions: one value at a time, conditions by rejection."""

from __future__ import annotations

import math
import random

from thesis_cli.semantics.syntax import Call, Let, Number, Variable

DRAWS = {
    "normal": lambda rng, mean, sd: rng.gauss(mean, sd),
    "uniform": lambda rng, low, high: rng.uniform(low, high),
    "exponential": lambda rng, mean: rng.expovariate(1 / mean),
    "laplace": lambda rng, mean, scale: mean + scale * (rng.expovariate(1) - rng.expovariate(1)),
    "gamma": lambda rng, shape, scale: rng.gammavariate(shape, scale),
    "beta": lambda rng, a, b: rng.betavariate(a, b),
    "bernoulli": lambda rng, p: float(rng.random() < p),
    "categorical": lambda rng, *p: float(rng.choices(range(len(p)), p)[0]),
}
FUNCTIONS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "negative": lambda a: -a,
    "<": lambda a, b: float(a < b),
    ">": lambda a, b: float(a > b),
    "==": lambda a, b: float(a == b),
    "and": lambda a, b: float(bool(a and b)),
    "or": lambda a, b: float(bool(a or b)),
    "not": lambda a: float(not a),
    "if": lambda c, a, b: a if c else b,
    "abs": abs,
    "exp": math.exp,
    "tanh": math.tanh,
    "max": max,
    "floor": lambda a: float(math.floor(a)),
}


def value(node, rng: random.Random, names=None) -> float:
    """A value of an expression."""
    names = names or {}
    match node:
        case Number():
            return node.value
        case Variable():
            return names[node.name]
        case Call():
            arguments = [value(part, rng, names) for part in node.arguments]
            return DRAWS[node.name](rng, *arguments) if node.name in DRAWS else FUNCTIONS[node.name](*arguments)
    assert isinstance(node, Let)
    while True:
        inner = dict(names)
        for name, bound in node.bindings:
            inner[name] = value(bound, rng, inner)
        if all(value(condition, rng, inner) for condition in node.observations):
            return value(node.body, rng, inner)
