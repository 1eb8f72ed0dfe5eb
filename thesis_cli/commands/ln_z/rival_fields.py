"""Options of `estimate-z` for Frank-Wolfe and annealing."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from thesis_cli.commands.core.fields import option

EntropyChoice = Literal["trw", "bethe"]
StepChoice = Literal["corrective", "pairwise", "plain"]

CHAINED = ("ais", "thermodynamic")

MAP_CALLS, CHAINS, SWEEPS = 200, 100, 10
TEMPERATURES = {"ais": 1000, "thermodynamic": 100}


def map_calls_option() -> Any:
    """MAP problems of Frank-Wolfe; its type is `int | None`."""
    return option(None, "Most MAP calls.", least=1, most=10**6, methods=("frank-wolfe",), default_text=str(MAP_CALLS))


def entropy_option() -> Any:
    """The entropy that Frank-Wolfe maximises; its type is `EntropyChoice | None`."""
    return option(
        None,
        "Entropy of the objective: trw makes it an upper bound on ln Z, bethe an approximation.",
        methods=("frank-wolfe",),
        default_text="trw",
    )


def steps_option() -> Any:
    """How Frank-Wolfe moves; its type is `StepChoice | None`."""
    return option(
        None,
        "Steps after each MAP call: plain to the new vertex, pairwise from the worst to the new one, corrective also "
        "over all vertices.",
        methods=("frank-wolfe",),
        default_text="corrective",
    )


def chains_option() -> Any:
    """Number of Gibbs chains; its type is `int | None`."""
    return option(
        None, "Number of independent Gibbs chains.", least=2, most=10**7, methods=CHAINED, default_text=str(CHAINS)
    )


def temperatures_option() -> Any:
    """Number of temperatures; its type is `int | None`."""
    text = "1000, or 100 for thermodynamic"
    return option(
        None,
        "Number of steps from the product of the unary factors to the model.",
        least=1,
        most=10**7,
        methods=CHAINED,
        default_text=text,
    )


def sweeps_option() -> Any:
    """Sweeps at each temperature; its type is `int | None`."""
    return option(
        None,
        "Gibbs sweeps at each temperature, of which the second half counts.",
        least=2,
        most=10**7,
        methods=("thermodynamic",),
        default_text=str(SWEEPS),
    )


def reverse_option() -> Any:
    """Whether to anneal backwards as well; its type is `bool`."""
    return option(
        False,
        "Add an upper bound by as many chains that start in exact samples and go backwards.",
        methods=("ais",),
    )


class RivalFields(Protocol):
    """The fields of a request that these options make."""

    @property
    def map_calls(self) -> int | None: ...
    @property
    def entropy(self) -> EntropyChoice | None: ...
    @property
    def steps(self) -> StepChoice | None: ...
    @property
    def chains(self) -> int | None: ...
    @property
    def temperatures(self) -> int | None: ...
    @property
    def sweeps(self) -> int | None: ...
    @property
    def reverse(self) -> bool: ...


def chosen(request: RivalFields) -> dict[str, Any]:
    """The values that the request gives, by name."""
    names = ("map_calls", "entropy", "steps", "chains", "temperatures", "sweeps", "reverse")
    return {name: value for name in names if (value := getattr(request, name)) is not None}
