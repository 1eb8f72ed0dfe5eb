"""Names of the variables of a model and of their states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from thesis_cli.base.errors import InputError
from thesis_cli.base.wording import nearest


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
