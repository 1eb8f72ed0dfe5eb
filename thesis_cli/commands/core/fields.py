"""Requests to commands and their fields: what an option is called, what it takes, its default and its one
line of help.
"""

from __future__ import annotations

import dataclasses
import math
import operator
import re
import sys
import types
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Union, cast, get_args, get_origin, get_type_hints

from thesis_cli.base.errors import InputError, presentation, without_secrets
from thesis_cli.base.files import check_no_url

Names = Literal["", "file", "release", "object", "output"]
"""Meaning of a field's text: nothing, a file to read, a CSV file of a release with its record
beside it, a Python object (`module:object`), a file to write."""


class SupportsItems(Protocol):
    """Values by name: a mapping, or a Series of pandas."""

    def items(self) -> Iterable[tuple[Any, Any]]: ...


_KEY = "option"
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class About:
    """Description of a request's field, beside type and default.

    Attributes
    ----------
    help : one line that begins with the thing itself.
    least, most : smallest and largest value, both allowed.
    above, below : bounds that are not allowed themselves.
    finite : whether a number must be finite.
    default_text : shown instead of a default of None.
    metavar : shown instead of the type.
    methods : the values of the request's `method` that heed the field; empty if all do.
    names : what the text of the field names.
    objects : whether Python callers may pass objects that text cannot hold, such as arrays.
    empty : whether no values at all differ from None, so that the request can refuse them.
    not_swept : why no sweep may set the field; empty if sweeps may.
    positional : whether it is an argument of the command line, not an option.
    recorded : whether settings and records hold it.
    alias : another name, which shell, Python and sweeps still take; no help shows it.
    """

    help: str
    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf
    below: float = math.inf
    finite: bool = True
    default_text: str = ""
    metavar: str = ""
    methods: tuple[str, ...] = ()
    names: Names = ""
    objects: bool = False
    empty: bool = False
    not_swept: str = ""
    positional: bool = False
    recorded: bool = True
    alias: str = ""


def option(default: Any, help: str, **about: Any) -> Any:
    """A field that is an option of the command line; `about` as for `About`."""
    return dataclasses.field(default=default, metadata={_KEY: About(help, **about)})


def argument(help: str, default: Any = dataclasses.MISSING, **about: Any) -> Any:
    """A field that is an argument of the command line, in the order of the fields."""
    return dataclasses.field(default=default, metadata={_KEY: About(help, positional=True, **about)})


@dataclass(frozen=True)
class OptionField:
    """One field of a request, as the shell, sweeps, Python callers and the docs see it.

    Attributes
    ----------
    name : of the field, with underscores.
    kind : the type of one value: int, float, str, bool or Path.
    choices : the words that are allowed; empty if any is.
    many : how many values it takes: 1, a fixed number above 1, or 0 for any number.
    optional : whether None is allowed.
    default : its default; `dataclasses.MISSING` if it has none.
    about : the rest.
    usual : whether `--help` shows it, and not `--help-all` alone.
    """

    name: str
    kind: type
    choices: tuple[str, ...]
    many: int
    optional: bool
    default: Any
    about: About
    usual: bool = True

    @property
    @presentation
    def shell_name(self) -> str:
        """`--max-configurations`, or `MODEL` for an argument."""
        return self.name.upper() if self.about.positional else f"--{self.name.replace('_', '-')}"

    @property
    def required(self) -> bool:
        return self.default is dataclasses.MISSING

    @property
    def takes_mapping(self) -> bool:
        """Whether its values are of the form `NAME=VALUE`, so that Python callers may pass a
        mapping.
        """
        return self.many == 0 and self.about.metavar.startswith("NAME=")

    @property
    def flag(self) -> bool:
        return self.kind is bool

    @property
    @presentation
    def metavar(self) -> str:
        """Text that the help shows in the place of a value."""
        if self.about.metavar:
            return self.about.metavar
        if self.choices:
            return "|".join(self.choices)
        if self.about.positional:
            return self.name.upper()
        return {int: "INTEGER", float: "NUMBER", Path: "FILE"}.get(self.kind, "TEXT")

    @property
    @presentation
    def range_text(self) -> str:
        """`a whole number, 1 or more`: what a value must be."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.kind not in (int, float):
            return "true or false" if self.flag else "text"
        a = self.about
        kind = "a whole number" if self.kind is int else "a number"
        if a.above > -math.inf and a.below < math.inf:
            return f"{kind} between {_shown(a.above)} and {_shown(a.below)}"
        if a.least > -math.inf and a.most < math.inf:
            return f"{kind} from {_shown(a.least)} to {_shown(a.most)}"
        parts = []
        if a.above > -math.inf or a.least > -math.inf:
            parts.append(f" above {_shown(a.above)}" if a.above > -math.inf else f", {_shown(a.least)} or more")
        if a.below < math.inf or a.most < math.inf:
            most = f" up to {_shown(a.most)}" if parts else f", {_shown(a.most)} or less"
            parts.append(f" below {_shown(a.below)}" if a.below < math.inf else most)
        if not parts and self.kind is float and a.finite:
            return "a finite number"
        return kind + " and".join(parts)

    @property
    @presentation
    def annotation(self) -> Any:
        """The type that a Python caller may pass: sequences for tuples, text for paths."""
        if self.about.objects:
            return Any
        kind: Any = str | Path if self.kind is Path else self.kind
        if self.choices:
            kind = Literal[self.choices]
        if self.about.metavar.endswith("|NUMBER"):
            kind = str | float
        if self.many == 0:
            kind = Union[Sequence[kind], kind]  # noqa: UP007  of types that are values
        elif self.many > 1:
            kind = types.GenericAlias(tuple, (kind,) * self.many)
        if self.takes_mapping:
            kind = Union[kind, SupportsItems]  # noqa: UP007
        return Union[kind, None] if self.optional else kind  # noqa: UP007

    def coerce(self, value: Any) -> Any:
        """A value of the field's type, from text, from TOML or from Python.

        A mapping, or a Series of pandas, stands for `NAME=VALUE` where the metavar has that form.

        Raises
        ------
        InputError : it is none; the message names the option and says what it must be.
        """
        if value is None and self.optional:
            return None
        if self.many == 1:
            return self._one(value)
        if self.takes_mapping and hasattr(value, "items"):
            value = [f"{name}={one}" for name, one in value.items()]
        values = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else _listed(value)
        if self.many > 1 and len(values) != self.many:
            raise InputError(f"{self.shell_name} has {len(values)} values", f"it takes {self.many}")
        if not values and self.optional and not self.about.empty:
            return None
        return tuple(self._one(one) for one in values)

    def _one(self, value: Any) -> Any:
        if self.about.objects and not isinstance(value, str | Path):
            return value
        if self.kind is bool:
            if isinstance(value, bool):
                return value
        elif self.kind is Path:
            if isinstance(value, str | Path) and str(value):
                if self.about.names == "output":
                    check_no_url(self.shell_name, value)
                return Path(value)
        elif self.kind in (int, float):
            number = _number(self.kind, value)
            if number is not None and self._within(number):
                return number
        elif isinstance(value, Path) and not self.choices:
            return str(value)
        elif isinstance(value, float | int) and self.about.metavar.endswith("|NUMBER"):
            return repr(float(value))
        elif isinstance(value, str) and (not self.choices or value in self.choices):
            return value
        shown = str(value) if isinstance(value, str | int | float | None) else type(value).__name__
        raise InputError(f"{self.shell_name} is {shown[:60] or 'empty'}", f"it must be {self.range_text}")

    def _within(self, number: float) -> bool:
        a = self.about
        if isinstance(number, int) and abs(number) > sys.float_info.max:
            return False
        if math.isnan(number) or (a.finite and math.isinf(number)):
            return False
        return (
            a.least <= number <= a.most
            and (number > a.above or a.above == -math.inf)
            and (number < a.below or a.below == math.inf)
        )


def fields_of(request: type[Any]) -> dict[str, OptionField]:
    """The fields of a request by name, in order."""
    return _fields(cast(Hashable, request))


@cache
def _fields(request: Any) -> dict[str, OptionField]:
    hints = get_type_hints(request)
    usual = request.usual
    found = {}
    for field in dataclasses.fields(request):
        kind, choices, many, optional = _shape(hints[field.name])
        about = field.metadata[_KEY]
        shown = about.positional or not usual or field.name in usual
        found[field.name] = OptionField(field.name, kind, choices, many, optional, field.default, about, shown)
    return found


def aliases_of(fields: Mapping[str, OptionField]) -> dict[str, str]:
    """Names of fields by their other names."""
    return {field.about.alias: name for name, field in fields.items() if field.about.alias}


def given(request: object) -> dict[str, Any]:
    """The fields of a request whose values are not their defaults."""
    fields = fields_of(type(request))
    return {name: value for name in fields if not _same(value := getattr(request, name), fields[name].default)}


def check_methods(request: object, method: str) -> None:
    """Refuse a field that was given though `method` does not heed it.

    Raises
    ------
    InputError : naming the option, and the methods that it is for.
    """
    for name in given(request):
        field = fields_of(type(request))[name]
        methods = field.about.methods
        if methods and method not in methods:
            raise InputError(
                f"{field.shell_name} does not go with --method {method}", f"it is for {', '.join(methods)}"
            )


def heeding(request: object, methods: Sequence[str]) -> list[str]:
    """Those of some methods that heed every field that was given; what `auto` may choose from.

    Raises
    ------
    InputError : there is none; the message names two options that do not go together.
    """
    restricting = [f for name, f in fields_of(type(request)).items() if name in given(request) and f.about.methods]
    left = list(methods)
    for k, field in enumerate(restricting):
        wanted = field.about.methods
        both = [m for m in left if m in wanted]
        if not both:
            disjoint = [f for f in restricting[:k] if not set(f.about.methods) & set(wanted)] or restricting[:k][-1:]
            other = f" with {disjoint[-1].shell_name}" if disjoint else ""
            raise InputError(f"{field.shell_name} does not go{other}", f"it is for {', '.join(wanted)}")
        left = both
    return left


def _shown(number: float) -> str:
    """A bound in a message: `100,000,000`, `0.001`, `1e+20`."""
    return f"{int(number):,}" if abs(number) < 1e15 and number == int(number) else f"{number:g}"


def _same(value: Any, default: Any) -> bool:
    return value is default or (isinstance(default, bool | int | float | str | tuple | Path) and value == default)


def _listed(value: Any) -> list[Any]:
    """Values of an array, or one value alone."""
    found = value.tolist() if hasattr(value, "tolist") else value
    return list(found) if isinstance(found, list) else [found]


def _number(kind: type, value: Any) -> Any:
    """An int or float; None if the value is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = value.strip()
        if not _NUMBER.fullmatch(text):
            return None
        if kind is int:
            return int(text) if re.fullmatch(r"[+-]?\d{1,4000}", text) else None
        return float(text)
    try:
        return operator.index(value) if kind is int else float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _shape(hint: Any) -> tuple[type, tuple[str, ...], int, bool]:
    """Type of one value, choices, how many, and whether None is allowed."""
    optional = False
    if get_origin(hint) in (Union, types.UnionType):
        inner = [one for one in get_args(hint) if one is not type(None)]
        optional = len(inner) < len(get_args(hint))
        if len(inner) != 1:
            raise TypeError(f"a field of type {hint} has no form on the command line")
        hint = inner[0]
    if get_origin(hint) is tuple:
        parts = get_args(hint)
        many = 0 if parts[-1] is Ellipsis else len(parts)
        kind, choices, _, _ = _shape(parts[0])
        return kind, choices, many, optional
    if get_origin(hint) is Literal:
        return str, tuple(get_args(hint)), 1, optional
    if hint not in (int, float, str, bool, Path):
        raise TypeError(f"a field of type {hint} has no form on the command line")
    return hint, (), 1, optional


def files_named(request: object) -> list[str]:
    """The texts of a request's fields that name files to read."""
    found = []
    for name, field in fields_of(type(request)).items():
        if field.about.names in ("file", "release", "object"):
            value = getattr(request, name)
            values = value if isinstance(value, tuple) else (value,)
            texts = [str(one) for one in values if isinstance(one, str | Path)]
            found += texts
            if field.about.names == "release":
                found += [str(Path(text).with_suffix(".json")) for text in texts]
    return found


def settings_of(request: object, **resolved: Any) -> Mapping[str, Any]:
    """The fields of a request as a record keeps them: plain values, those that were resolved in
    place of theirs.
    """
    fields = fields_of(type(request))
    kept = [name for name, field in fields.items() if field.about.recorded]
    return {name: plain(resolved.get(name, getattr(request, name))) for name in kept} | resolved


def plain(value: Any) -> Any:
    """A value of a field in the form of JSON, without passwords of URLs; of an object only what it
    is.
    """
    if isinstance(value, str | Path):
        return without_secrets(str(value))
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    return f"<{type(value).__name__}>"


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

    def refuse(self, names: Iterable[str], other: str, remedy: str = "leave one of them out") -> None:
        """Refuse fields that were given, since they do not go with `other` (`InputError`)."""
        for name in names:
            if name in given(self):
                raise InputError(f"{self.shell_name(name)} does not go with {other}", remedy)

    def shell_name(self, name: str) -> str:
        """An option as it was given: `--no-control` for one that is on by default."""
        field = fields_of(type(self))[name]
        return f"--no-{field.shell_name[2:]}" if field.default is True else field.shell_name

    def check(self) -> None:
        """Refuse combinations of fields, each valid alone."""
