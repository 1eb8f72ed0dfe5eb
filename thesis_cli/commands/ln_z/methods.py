"""The methods of ln Z: one row for each way to compute, estimate, bound or approximate it.

`--method` of `estimate-z` and `bound`, the options that go with each method, their help, the tables of the docs,
`auto` and Python are made from the rows. A method is its mathematics, in a file below `perturbation/` or
`inference/`; a function of a model, options and progress that reports it, in `bounds.py` or `baselines.py`; and
a row here. No module above imports NumPy before a method is carried out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from thesis_cli.base.errors import InputError, NoConfiguration, UnsuitableModel
from thesis_cli.base.progress import Progress, silent
from thesis_cli.commands.core.fields import option
from thesis_cli.commands.ln_z import baselines, bounds
from thesis_cli.commands.ln_z.bounds import variables_of
from thesis_cli.commands.ln_z.estimates import ExactAnswer, LnZAnswer, LnZOptions
from thesis_cli.inference.names import EntropyName, StepName

if TYPE_CHECKING:
    from thesis_cli.models.factor_graph import FactorGraph, Model

CommandName = Literal["estimate-z", "bound"]
Guarantee = Literal[
    "exact",
    "upper bound",
    "lower bound",
    "both bounds",
    "approximation",
    "Z unbiased",
    "consistent",
    "probable interval",
]


class Share(NamedTuple):
    """Place of a method in the portfolio of `estimate-z`.

    Attributes
    ----------
    turn : order of the start; among approximations, a later one is believed before an earlier one.
    most : largest share of the time limit; the last method takes what is left.
    alone : whether it gets a share where there is one core.
    grows : option that becomes larger from one answer of the method to the next.
    """

    turn: int
    most: float
    alone: bool = False
    grows: str = ""


@dataclass(frozen=True)
class LnZMethod:
    """A method of ln Z.

    Attributes
    ----------
    command : command that offers it.
    guarantee : meaning of its answer on a model that it takes, once it has converged.
    run : (model, options, progress, and its own options by name) -> answer.
    heeds : fields of the command's request that it heeds, among those that not all methods do.
    own : options of its own, rows of `OWN_OPTIONS`, with their defaults.
    vectors : whether it takes a vector of log-potentials; those that do not refuse it by name.
    stream : number of its random stream.
    share : its place in the portfolio of `estimate-z`.
    problems : number of MAP problems that a model takes, where there may be too many for `auto`.
    encloses : whether the interval of its estimate holds for any number of samples, and so bounds ln Z.
    """

    command: CommandName
    guarantee: Guarantee
    run: Callable[..., LnZAnswer]
    heeds: tuple[str, ...] = ()
    own: Mapping[str, Any] = field(default_factory=dict)
    vectors: bool = False
    stream: int = 0
    share: Share | None = None
    problems: Callable[[FactorGraph], int] | None = None
    encloses: bool = False


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


_NOISE = ("alpha", "samples", "any_alpha", "confidence", "solver", "memory")
_SIZED = ("time_limit", "table_size", "memory")

METHODS: dict[str, LnZMethod] = {
    "exact": LnZMethod("estimate-z", "exact", _exact, heeds=("time_limit",), vectors=True),
    "full-rank": LnZMethod(
        "estimate-z",
        "consistent",
        _full_rank,
        heeds=("trick", "alpha", "threshold", "samples", "debias", "confidence"),
        vectors=True,
    ),
    "expanded": LnZMethod(
        "estimate-z", "lower bound", baselines.expanded, heeds=("confidence",), own={"copies": 10_000}
    ),
    "wish": LnZMethod(
        "estimate-z",
        "probable interval",
        baselines.wish,
        heeds=("time_limit", "samples", "confidence"),
        vectors=True,
    ),
    "mesh-bethe": LnZMethod("estimate-z", "lower bound", baselines.mesh_bethe),
    "frank-wolfe": LnZMethod(
        "estimate-z",
        "upper bound",
        baselines.frank_wolfe,
        own={"map_calls": 200, "entropy": "trw", "steps": "corrective"},
    ),
    "ais": LnZMethod(
        "estimate-z",
        "Z unbiased",
        baselines.ais,
        heeds=("confidence",),
        own={"chains": 100, "temperatures": 1000, "reverse": False},
        share=Share(7, 0.2, alone=True, grows="temperatures"),
    ),
    "thermodynamic": LnZMethod(
        "estimate-z",
        "consistent",
        baselines.thermodynamic,
        heeds=("confidence",),
        own={"chains": 100, "temperatures": 100, "sweeps": 10},
    ),
    "trw": LnZMethod("bound", "upper bound", bounds.trw, share=Share(3, 0.1)),
    "max-marginal": LnZMethod(
        "bound", "lower bound", bounds.max_marginal, heeds=("solver", "memory"), problems=bounds.max_marginal_problems
    ),
    "unary": LnZMethod(
        "bound",
        "upper bound",
        bounds.unary,
        heeds=(*_NOISE, "confidence_method"),
        share=Share(6, 0.1, grows="samples"),
    ),
    "average": LnZMethod(
        "bound",
        "lower bound",
        bounds.average,
        heeds=(*_NOISE, "confidence_method"),
        stream=1,
        share=Share(5, 0.1, grows="samples"),
    ),
    "subset": LnZMethod(
        "bound", "upper bound", bounds.subset, heeds=(*_NOISE, "confidence_method"), own={"subset": None}, stream=2
    ),
    "clamp": LnZMethod("bound", "upper bound", bounds.clamped, heeds=_NOISE, own={"clamp": None}),
    "bethe": LnZMethod("bound", "approximation", bounds.bethe, share=Share(2, 0.1, alone=True)),
    "mini-bucket": LnZMethod("bound", "both bounds", bounds.mini_bucket, heeds=_SIZED, share=Share(1, 0.2, alone=True)),
    "importance": LnZMethod(
        "bound",
        "Z unbiased",
        bounds.importance,
        heeds=("confidence", *_SIZED),
        stream=3,
        share=Share(8, 1.0, alone=True),
        encloses=True,
    ),
    "junction-graph": LnZMethod("bound", "approximation", bounds.junction_graph, heeds=_SIZED, share=Share(4, 0.15)),
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
