"""The meaning of a budget for an attacker who guesses which of two neighbouring tables was released.

Both tables are equally likely before. The best guess is right with probability (1 + TV) / 2, with TV the
total variation distance of the two laws of the release. (epsilon, delta)-differential privacy bounds it
by TV <= (e^epsilon - 1 + 2 delta) / (e^epsilon + 1) (Kairouz, Oh and Viswanath 2015, Theorem 3.4), which
randomised response that tells the truth with probability delta attains. rho-zCDP bounds the relative
entropy by rho (Bun and Steinke 2016), and so TV <= sqrt(rho / 2) (Pinsker) and TV <= sqrt(1 - e^-rho)
(Bretagnolle and Huber 1979); Gaussian noise has TV = 2 Phi(sqrt(rho / 2)) - 1, which is sqrt(2 / pi) of
Pinsker's bound for small rho.
"""

from __future__ import annotations

import math

from thesis_cli.base.errors import presentation


def best_guess(epsilon: float, delta: float = 0.0, rho: float | None = None) -> float:
    """Largest probability with which an attacker tells two neighbouring tables apart, equally likely
    before.

    Parameters
    ----------
    epsilon, delta : budget of the release.
    rho : rho of zero-concentrated differential privacy, if it is known.
    """
    decay = math.exp(-epsilon)
    variation = (1 - decay + 2 * delta * decay) / (1 + decay)
    if rho is not None:
        variation = min(variation, math.sqrt(rho / 2), math.sqrt(-math.expm1(-rho)))
    return (1 + min(1.0, variation)) / 2


@presentation
def risk_line(epsilon: float, delta: float, rho: float | None) -> tuple[str, str]:
    """Name and words of a line of a summary: the budget as the risk of an attack, rounded up.

    Parameters
    ----------
    epsilon, delta, rho : as for `best_guess`.
    """
    share = math.ceil(best_guess(epsilon, delta, rho) * 1000 - 1e-9) / 10
    words = "which of two neighbouring tables was released is guessed right no more often than"
    return "attack risk", f"{words} {share:g} % (50 % is a coin)"
