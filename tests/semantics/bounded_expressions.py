"""Random expressions with bounds on their error: sums, products, extremes and Lipschitz functions of distributions,
with parameters and variables that are shared.
"""

from __future__ import annotations

import numpy as np


class Writer:
    """Writes random expressions."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng, self._names = rng, list[str]()

    def _one(self, *choices: str) -> str:
        return str(self._rng.choice(choices))

    def _number(self) -> str:
        return f"{self._rng.uniform(-3, 3):.3g}"

    def _scale(self, depth: int) -> str:
        if depth and self._rng.random() < 0.3:
            return self._one(f"(1 + abs({self.expression(depth - 1)}))", f"(0.2 + exponential({self._scale(0)}))")
        return f"{np.exp(self._rng.normal()):.3g}"

    def draw(self, depth: int) -> str:
        """A distribution whose parameters may be random."""
        place = self.expression(depth - 1) if depth and self._rng.random() < 0.3 else self._number()
        low = self._rng.uniform(-2, 2)
        return self._one(
            f"normal({place}, {self._scale(depth)})",
            f"laplace({place}, {self._scale(depth)})",
            f"uniform({low:.3g}, {low + np.exp(self._rng.normal()):.3g})",
            f"exponential({self._scale(depth)})",
            f"gamma({self._scale(0)}, {self._scale(0)})",
            f"beta({self._scale(0)}, {self._scale(0)})",
            f"bernoulli({self._rng.random():.3g})",
            f"bernoulli((1 + tanh({place})) / 2)",
            "categorical(0.2, 0.5, 0.3)",
        )

    def expression(self, depth: int) -> str:
        """An expression of some depth."""
        if not depth:
            return self._one(*self._names, self._number(), self.draw(0), self.draw(0))
        kind = self._rng.random()
        if kind < 0.2:
            return self.draw(depth)
        if kind < 0.3:
            before, name = list(self._names), f"v{len(self._names)}"
            value = self.expression(depth - 1)
            self._names.append(name)
            body = self.expression(depth - 1)
            self._names = before
            return f"(let {name} = {value} in {body})"
        a, b = self.expression(depth - 1), self.expression(depth - 1)
        return self._one(
            f"({a} + {b})",
            f"({a} - {b})",
            f"({self.draw(0)} * {b})",
            f"{self._number()} * {a}",
            f"max({a}, {b})",
            f"min({a}, {b})",
            f"abs({a})",
            f"tanh({a})",
            f"sin({a})",
            f"{a} / {self._rng.uniform(0.5, 3):.3g}",
        )
