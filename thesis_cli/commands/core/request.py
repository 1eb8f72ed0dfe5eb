"""The base of all requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from thesis_cli.commands.core.fields import check_methods, fields_of


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request to a command: one field for each option, checked when it is made.

    A subclass that has a field `method` is checked against the methods that its fields name.

    Attributes
    ----------
    usual : the options that `--help` shows; empty if it shows all.

    Raises
    ------
    InputError : a value that its field does not take, or a combination that no method heeds.
    """

    usual: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name, field in fields_of(type(self)).items():
            object.__setattr__(self, name, field.coerce(getattr(self, name)))
        method = getattr(self, "method", None)
        if method not in (None, "auto"):
            check_methods(self, method)
        self.check()

    def check(self) -> None:
        """Refuse combinations of fields, each valid alone."""
