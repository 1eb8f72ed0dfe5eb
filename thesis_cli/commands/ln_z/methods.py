"""The methods of ln Z: one row for each way to compute, estimate, bound or approximate it.

`--method` of `estimate-z` and `bound`, the options that go with each method, their help, the tables of the docs,
`auto` and Python are made from the rows. A method is its mathematics, in a file below `perturbation/` or
`inference/`; and a function of a model, options and progress that reports it, with a row of `METHODS`, in
`bounds.py` or `baselines.py`. No module above imports NumPy before a method is carried out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from thesis_cli.base.errors import InputError, NoConfiguration, UnsuitableModel
from thesis_cli.base.progress import Progress, silent
from thesis_cli.commands.core.fields import option
from thesis_cli.commands.ln_z import baselines, bounds
from thesis_cli.commands.ln_z.bounds import variables_of
from thesis_cli.commands.ln_z.estimates import ExactAnswer, LnZAnswer, LnZOptions
from thesis_cli.commands.ln_z.method import CommandName, Guarantee, LnZMethod
from thesis_cli.inference.names import EntropyName, StepName

if TYPE_CHECKING:
    from thesis_cli.models.factor_graph import FactorGraph, Model


class OwnOption(NamedTuple):
    """An option that belongs to some methods and is passed on to them.

    Attributes
    ----------
    kind : type of the field.
    field : makes the field, but for the methods that heed it and the default that is shown.
    prepare : (model, value) -> what the method is given.
    needed : advice if a method that has the option is chosen without it; empty if it may be.
    """

    kind: Any
    field: Callable[..., Any]
    prepare: Callable[[Any, Any], Any] | None = None
    needed: str = ""


def _sets(graph: FactorGraph, texts: Any) -> list[tuple[int, ...]]:
    return [variables_of(graph, [one]) for one in texts]


VARIABLES = partial(option, None, metavar="VARIABLES", objects=True)

OWN_OPTIONS = {
    "copies": OwnOption(
        int | None, partial(option, None, help="Number of copies of each variable.", least=1, most=10**12)
    ),
    "map_calls": OwnOption(int | None, partial(option, None, help="Largest number of MAP calls.", least=1, most=10**6)),
    "entropy": OwnOption(
        EntropyName | None,
        partial(
            option, None, help="Entropy of the objective: trw makes it an upper bound on ln Z, bethe an approximation."
        ),
    ),
    "steps": OwnOption(
        StepName | None,
        partial(
            option,
            None,
            help="Steps after each MAP call: plain to the new vertex, pairwise from the worst to the new one, "
            "corrective optimises over all vertices found so far.",
        ),
    ),
    "chains": OwnOption(
        int | None, partial(option, None, help="Number of independent Gibbs chains.", least=2, most=10**7)
    ),
    "temperatures": OwnOption(
        int | None,
        partial(
            option,
            None,
            help="Number of steps from the product of the unary factors to the model.",
            least=1,
            most=10**7,
        ),
    ),
    "sweeps": OwnOption(
        int | None,
        partial(
            option,
            None,
            help="Gibbs sweeps at each temperature; the first half is discarded.",
            least=2,
            most=10**7,
        ),
    ),
    "reverse": OwnOption(
        bool,
        partial(
            option,
            False,
            help="Add an upper bound by chains that run backwards from exact samples.",
        ),
    ),
    "subset": OwnOption(
        tuple[str, ...] | None,
        partial(
            VARIABLES,
            help="Variables that share noise, numbers or names, as in 0,1.",
            default_text="each pair of neighbours",
        ),
        _sets,
    ),
    "clamp": OwnOption(
        tuple[str, ...] | None,
        partial(VARIABLES, help="Variables to sum over exactly, numbers or names, as in 0,5."),
        variables_of,
        needed="name variables, as in --clamp 0,5",
    ),
}
"""Options of single methods by name, in the order of the help."""


def _exact(model: Model, options: LnZOptions, progress: Progress) -> LnZAnswer:
    from thesis_cli.inference.enumeration import MAX_CONFIGURATIONS
    from thesis_cli.inference.exact import exact_log_partition_function

    limit = options.max_configurations
    with progress(model.size, "configurations") as tick:
        found = ExactAnswer(
            *exact_log_partition_function(
                model,
                memory=options.memory,
                max_configurations=MAX_CONFIGURATIONS if limit is None else limit,
                progress=tick,
                seconds=math.inf if options.seconds is None else options.seconds,
                jobs=options.jobs,
            )
        )
    if found.log_z == -math.inf:
        raise NoConfiguration()
    return LnZAnswer((found.estimate(options.quantity),))


def _full_rank(model: Model, options: LnZOptions, progress: Progress) -> LnZAnswer:
    from thesis_cli.commands.ln_z.estimates import full_rank

    return full_rank(model, options, progress)


METHODS: dict[str, LnZMethod] = {
    "exact": LnZMethod("estimate-z", "exact", _exact, heeds=("time_limit",), vectors=True),
    "full-rank": LnZMethod(
        "estimate-z",
        "consistent",
        _full_rank,
        heeds=("trick", "alpha", "threshold", "samples", "debias", "confidence"),
        vectors=True,
        help="noise on every configuration",
    ),
    **baselines.METHODS,
    **bounds.METHODS,
}
"""Methods by name, in the order in which `auto` of `bound` tries them."""


def methods_of(command: CommandName) -> tuple[str, ...]:
    """Names of the methods that a command offers."""
    return tuple(name for name, row in METHODS.items() if row.command == command)


if TYPE_CHECKING:
    EstimateMethod = str
    BoundMethod = str
else:
    EstimateMethod = Literal[("auto", *methods_of("estimate-z"))]
    BoundMethod = Literal[("auto", *methods_of("bound"))]


HEADINGS: dict[Guarantee, str] = {
    "exact": "Exact",
    "upper bound": "Upper bounds",
    "lower bound": "Lower bounds",
    "both bounds": "Both",
    "approximation": "Approximations",
    "Z unbiased": "Estimates",
    "consistent": "Estimates",
    "probable interval": "Intervals",
}
"""What methods give, in the help of `--method`."""


def method_help(command: CommandName, auto: str) -> str:
    """Help of `--method` of a command: the methods by what they give, and what `auto` does."""
    found: dict[str, list[str]] = {heading: [] for heading in HEADINGS.values()}
    for name in methods_of(command):
        row = METHODS[name]
        found[HEADINGS[row.guarantee]].append(f"{name} ({row.help})" if row.help else name)
    groups = (f"{heading}: {', '.join(names)}. " for heading, names in found.items() if names)
    return f"Method. {''.join(groups)}auto {auto}"


def heeded_by(command: CommandName, name: str) -> tuple[str, ...]:
    """Methods of a command that heed a field of its request."""
    return tuple(m for m in methods_of(command) if name in (*METHODS[m].heeds, *METHODS[m].own))


RequestClass = TypeVar("RequestClass", bound=type)


def own_options(command: CommandName, after: str) -> Callable[[RequestClass], RequestClass]:
    """Give a class of requests the methods' own options as fields, after one of its own fields.

    Parameters
    ----------
    command : command that the requests are for.
    after : name of the field behind which they stand.

    Returns
    -------
    decorator : to be applied below `dataclass`.
    """

    def extended(request: RequestClass) -> RequestClass:
        fields: dict[str, Any] = {}
        for name, kind in request.__annotations__.items():
            fields[name] = kind
            if name == after:
                for own in (own for own in OWN_OPTIONS if heeded_by(command, own)):
                    fields[own] = OWN_OPTIONS[own].kind
                    setattr(request, own, _field(command, own))
        request.__annotations__ = fields
        return request

    return extended


def _field(command: CommandName, name: str) -> Any:
    """The field of an option, with the methods that heed it and their defaults as text."""
    methods = heeded_by(command, name)
    defaults = {method: METHODS[method].own[name] for method in methods}
    first = defaults[methods[0]]
    about: dict[str, Any] = {"methods": methods}
    if first not in (None, False):
        others = [f", or {_shown(value)} for {m}" for m, value in defaults.items() if value != first]
        about["default_text"] = _shown(first) + "".join(others)
    return OWN_OPTIONS[name].field(**about)


def _shown(default: Any) -> str:
    return f"{default:,}" if isinstance(default, int) and default >= 10_000 else str(default)


def lacking(request: object, method: str) -> tuple[str, str] | None:
    """A request's first option that a method needs and was not given, with advice."""
    for name in METHODS[method].own:
        if OWN_OPTIONS[name].needed and getattr(request, name) is None:
            return name, OWN_OPTIONS[name].needed
    return None


def check_needed(request: object, method: str) -> None:
    """Refuse a method without an option that it needs.

    Raises
    ------
    InputError : naming the option.
    """
    if found := lacking(request, method):
        raise InputError(f"--method {method} needs --{found[0].replace('_', '-')}", found[1])


def own_values(request: object, model: Model) -> dict[str, Any]:
    """Values of the methods' own options that a request gives, as the methods take them.

    Raises
    ------
    InputError : a value does not fit the model.
    """
    given = {name: value for name in OWN_OPTIONS if (value := getattr(request, name, None)) is not None}
    for name, value in given.items():
        if prepare := OWN_OPTIONS[name].prepare:
            given[name] = prepare(model, value)
    return given


def answer(
    name: str,
    model: Model,
    options: LnZOptions,
    progress: Progress = silent,
    own: Mapping[str, Any] | None = None,
) -> LnZAnswer:
    """Carry out a method.

    Parameters
    ----------
    name : a key of `METHODS`.
    own : values of options of single methods; the method takes its own.

    Raises
    ------
    UnsuitableModel : the model is a vector, or the method or the MAP solver that was named does not take it.
    ModelTooLarge : the method needs more memory.
    InputError : an option is out of the range that the model allows.
    NoConfiguration : no configuration is possible.
    """
    from thesis_cli.models.factor_graph import LogPotentials

    row = METHODS[name]
    if not row.vectors and isinstance(model, LogPotentials):
        other = "full-rank" if row.command == "estimate-z" else "estimate-z"
        raise UnsuitableModel(f"--method {name} takes models with variables, not a vector", f"use {other}")
    taken = {key: (own or {}).get(key, default) for key, default in row.own.items()}
    return row.run(
        model, replace(options, stream=row.stream), progress, **{k: v for k, v in taken.items() if v is not None}
    )
