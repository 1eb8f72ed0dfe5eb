"""How much is drawn: few examples, the same each time, in `make test`; many in `make test-long`."""

from __future__ import annotations

from hypothesis import settings

TIMES = 25
"""Examples of the long tier for one of the other."""

QUICK = 20


def register() -> None:
    """The profiles of both tiers, and `seeded`: as few examples as `quick`, drawn from a seed."""
    for name, derandomize, number in (("quick", True, QUICK), ("seeded", False, QUICK), ("long", False, QUICK * TIMES)):
        settings.register_profile(
            name, deadline=None, derandomize=derandomize, max_examples=number, database=None, print_blob=True
        )


def is_long() -> bool:
    return settings.get_current_profile_name() == "long"


def examples(number: int) -> int:
    """Examples for `@settings(max_examples=...)`: the number in `make test`, many times that in the
    long tier.
    """
    return number * TIMES if is_long() else number
