"""`thesis-cli renyi`: estimate Renyi, Shannon and other entropies of a model, with errors or
bounds.

Each method is a function in `ln_z/entropies.py`; this file decides which of them carry out a
request.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError, ModelTooLarge, UnsuitableModel, about, presentation
from thesis_cli.base.parallel import jobs_or_all
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.common import (
    FormatName,
    ModelSource,
    SolverName,
    bytes_of,
    confidence_option,
    evidence_option,
    format_option,
    jobs_option,
    label,
    max_configurations_option,
    memory_option,
    model_argument,
    open_function,
    open_model,
    probabilities_option,
    seed_option,
    seed_or_fresh,
    solver_option,
)
from thesis_cli.commands.core.fields import Request, given, option, settings_of
from thesis_cli.commands.core.result import Result
from thesis_cli.commands.ln_z.estimates import alpha_option
from thesis_cli.entropy.names import ENTROPIES, ORDER, Design, Quantity
from thesis_cli.perturbation.tricks.trick_rows import TRICKS, UnscaledTrickName, make_trick, tricks_with

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thesis_cli.commands.ln_z.entropies import EntropyRows, EntropySettings, Row
    from thesis_cli.models.factor_graph import Model
    from thesis_cli.perturbation.estimate import Estimate

    LogZ = str | float
else:
    LogZ = str

DEFAULT_ORDERS: dict[Quantity, Sequence[float]] = {
    "renyi": (0.0, 0.5, 1.0, 2.0, math.inf),
    "tsallis": (0.0, 0.5, 1.0, 2.0),
}

NOISE = ("noise", "share_above")
ESTIMATOR = ("trick", "alpha", "design", "control")
WITH_VARIABLES = ("bounds", "bethe", "trw")
ENTROPY_ONLY = (*WITH_VARIABLES, *ESTIMATOR, "profile", "shannon", "solver")
"""Options for Renyi entropies, not for functions of them or for integrals."""


@dataclass(frozen=True, kw_only=True)
class RenyiRequest(Request):
    """Estimate Renyi entropies of a model, or quantities that follow from them, by perturb-and-MAP.

    A model with too many configurations for noise on each of them gets the exact entropies or, if
    it is also too wide for an exact algorithm, low-rank bounds.
    """

    usual = ("order", "quantity", "profile", "bounds", "exact", "samples", "trick", "evidence", "seed")

    model: ModelSource = model_argument()
    order: tuple[float, ...] | None = option(
        None,
        "Order of the entropy, 0 to inf; all orders use the same noise.",
        least=0,
        finite=False,
        default_text="0 0.5 1 2 inf",
    )
    quantity: Quantity = option(
        "renyi", "Quantity to estimate: an entropy in nats, sum p^2, its inverse, or the Tsallis entropy."
    )
    profile: bool = option(False, "Estimate the whole curve over the orders too; --figure draws it.")
    shannon: bool = option(False, "Estimate the Shannon entropy and bounds on it by two other orders.")
    bounds: bool = option(False, "Add low-rank bounds, also of models that are too large to enumerate.")
    bethe: bool = option(False, "Add entropies from the Bethe approximation of ln Z.")
    trw: bool = option(False, "Add entropies from the tree-reweighted value of ln Z.")
    exact: bool = option(False, "Add the exact value; with --samples 0, compute it alone.")
    integrand: ModelSource | None = option(
        None,
        "Estimate ln E[f] instead: a vector of values f(x) >= 0, or a model whose potential is ln f.",
        metavar="FILE",
        names="file",
        objects=True,
    )
    evidence: tuple[str, ...] | None = evidence_option()
    format: FormatName | None = format_option()
    probabilities: bool = probabilities_option()
    strict: bool = option(False, "Refuse probabilities that do not sum to 1.")
    log_z: LogZ | None = option(
        None,
        "Known ln Z: a number (0 for log-probabilities), or exact to compute it first.",
        metavar="NUMBER|exact",
        objects=True,
    )
    samples: int = option(100, "Number M of perturbations.", least=0, most=10**7)
    trick: UnscaledTrickName | None = option(
        None, "Trick that estimates ln Z from perturbed maxima.", default_text="gumbel"
    )
    alpha: float | None = alpha_option()
    noise: Literal["shared", "independent"] = option(
        "shared", "Noise for ln Z: the same as for the orders, or its own, which keeps sum p^2 unbiased."
    )
    share_above: float | None = option(
        None,
        "Smallest log-potential at which a configuration has the same noise for every order and for ln Z.",
        finite=False,
    )
    design: Design = option(
        "independent", "Design of the perturbations; stratified spreads them evenly, which reduces the variance."
    )
    control: bool = option(True, "Use a known ln Z as a control variate, which reduces the variance.")
    confidence: float = confidence_option()
    solver: SolverName = solver_option()
    max_configurations: int = max_configurations_option()
    memory: float = memory_option()
    seed: int | None = seed_option()
    jobs: int | None = jobs_option()

    def check(self) -> None:
        """Refuse options that do not go together."""
        if self.integrand is not None:
            self.refuse((*ENTROPY_ONLY, *NOISE, "order", "quantity"), "--integrand", "it is for entropies")
        elif self.quantity not in ENTROPIES:
            self.refuse(ENTROPY_ONLY, f"--quantity {self.quantity}", "it is for entropies")
        elif self.quantity in ("hartley", "min"):
            self.refuse(("shannon",), f"--quantity {self.quantity}", "it is for order 1")
        if self.quantity in ORDER:
            self.refuse(("order",), f"--quantity {self.quantity}", f"its order is {ORDER[self.quantity]:g}")
        if self.quantity == "tsallis" and math.inf in (self.order or ()):
            raise InputError("--order inf does not go with --quantity tsallis", "it must be finite")
        if self.samples == 0:
            self.refuse(
                (*NOISE, *ESTIMATOR, "confidence", "profile", "shannon", "bounds", "solver"),
                "--samples 0",
                "it needs samples",
            )
            if not (self.exact or self.bethe or self.trw):
                raise InputError("--samples is 0", "add --exact, --bethe or --trw, or use 1 or more")
        if self.noise == "independent":
            self.refuse(("share_above",), "--noise independent", "give one of them")
        if self.strict and not self.probabilities:
            raise InputError("--strict is given without --probabilities", "it is about their sum")
        if self.probabilities:
            self.refuse(("log_z",), "--probabilities", "ln Z is the logarithm of their sum")
        elif self.log_z is None and not self.control:
            raise InputError("--no-control is given without --log-z", "it is about a known ln Z")
        self._check_log_z()
        self._check_trick()

    def check_model(self, model: Model) -> None:
        """Refuse options that the model does not take."""
        from thesis_cli.models.factor_graph import LogPotentials

        if isinstance(model, LogPotentials):
            for name in WITH_VARIABLES:
                if name in given(self):
                    raise UnsuitableModel(f"--{name} takes models with variables, not a vector", "leave it out")
        elif not self.perturbable(model):
            for name in (*NOISE, *ESTIMATOR, "profile"):
                if name in given(self):
                    raise ModelTooLarge(
                        f"{model.describe()}: too many for {self.shell_name(name)}",
                        "leave it out for the exact answer or bounds, or raise --max-configurations",
                    )
        if not self.low_rank(model):
            self.refuse(("solver",), "noise on every configuration or an exact answer", "it is for --bounds")

    def perturbable(self, model: Model) -> bool:
        """Whether each configuration can have noise of its own."""
        from thesis_cli.models.factor_graph import LogPotentials

        return isinstance(model, LogPotentials) or model.size <= self.max_configurations

    def low_rank(self, model: Model) -> bool:
        """Whether low-rank bounds are computed, or may be."""
        others = self.exact or self.bethe or self.trw
        return self.bounds or (not self.perturbable(model) and (self.shannon or not others))

    @property
    def orders(self) -> tuple[float, ...]:
        """The orders to estimate, each once."""
        if self.quantity in ORDER:
            return (ORDER[self.quantity],)
        chosen = self.order or ((1.0,) if self.shannon else DEFAULT_ORDERS[self.quantity])
        return tuple(dict.fromkeys(chosen))

    @property
    def averages(self) -> bool:
        """Whether a trick estimates the logarithms."""
        return self.samples > 0 and self.integrand is None and self.quantity in ENTROPIES

    @property
    def shared_from(self) -> float:
        """The smallest log-potential at which noise is shared: -inf shares all, inf none."""
        if self.noise == "independent":
            return math.inf
        return -math.inf if self.share_above is None else self.share_above

    def _check_log_z(self) -> None:
        if self.log_z is None or self.log_z == "exact":
            return
        try:
            value = math.nan if isinstance(self.log_z, bool) else float(self.log_z)
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise InputError(f"--log-z is {str(self.log_z)[:40]}", "it must be a finite number or exact")

    def _check_trick(self) -> None:
        name = self.trick or "gumbel"
        parameter = TRICKS[name].parameter
        if self.alpha is not None:
            if parameter is None:
                owners = " and ".join(tricks_with("alpha"))
                raise InputError(f"--alpha does not go with --trick {name}", f"it is for {owners}")
            if not parameter.allows(self.alpha):
                raise InputError(f"--alpha is {self.alpha:g}", f"--trick {name} takes {parameter.range_text}")
        if self.design == "stratified" and not make_trick(name, self.alpha).linear:
            raise InputError(f"--design stratified does not go with --trick {name}", "use the gumbel trick")


@dataclass(frozen=True, kw_only=True, repr=False)
class RenyiResult(Result):
    """Entropies, or what else was asked for.

    Attributes
    ----------
    rows : each estimate with its order.
    curve, exact_curve : estimated and exact entropies of a profile.
    description : sizes of the model.
    """

    rows: Sequence[Row]
    curve: Sequence[Row] = ()
    exact_curve: Sequence[Row] = ()
    description: str

    @property
    def estimates(self) -> list[Estimate]:
        """The estimates without their orders."""
        return [row.estimate for row in self.rows]

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Model, each estimate with its method, and the number of perturbations."""
        lines = [("model", f"{self.settings['model']}: {self.description}")]
        lines += [(row.estimate.target, f"{row.estimate.text()}  ({row.described()})") for row in self.rows]
        if any(row.estimate.map_calls for row in self.rows):
            lines.append(("samples", f"{self.settings['samples']:,} perturbations"))
        return lines

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """The estimates."""
        return {"estimates": [{**row.values(), "order": _named(row.order)} for row in self.rows]}

    @presentation
    def draw(self) -> Figure:
        """The profile, or else each estimate with its interval."""
        from thesis_cli.commands.figures.entropies import draw_estimates, draw_profile

        title = f"{self.settings['model']}, {self.settings['samples']:,} perturbations"
        if self.curve:
            return draw_profile(self.rows, self.curve, self.exact_curve, title)
        return draw_estimates(self.rows, title)


def run(request: RenyiRequest, progress: Progress) -> RenyiResult:
    """Open the model, find ln Z if it is known, and estimate."""
    from thesis_cli.commands.ln_z.entropies import EntropySettings, integral

    model = open_model(request.model, request.format, request.evidence, request.probabilities)
    seed = seed_or_fresh(request.seed)
    with about(label(request.model)):
        request.check_model(model)
        settings = EntropySettings(
            quantity=request.quantity,
            orders=request.orders,
            confidence=request.confidence,
            trick=make_trick(request.trick or "gumbel", request.alpha),
            control=request.control,
            samples=request.samples,
            share_above=request.shared_from,
            design=request.design,
            log_z=_known_log_z(model, request, progress),
            solver=request.solver,
            memory=bytes_of(request.memory),
            max_configurations=request.max_configurations,
            seed=seed,
            jobs=jobs_or_all(request.jobs),
        )
        if request.integrand is None:
            found = _entropies(model, request, settings, progress)
        else:
            with about(label(request.integrand)):
                found = integral(model, _integrand(request, model), settings, request.exact, progress)
    named = {"model": label(request.model), "seed": seed}
    return RenyiResult(
        columns=Columns([{**named, **row.values()} for row in (*found.rows, *found.curve)]),
        request=request,
        settings=settings_of(
            request,
            **named,
            order=[_named(order) for order in settings.orders] if request.integrand is None else None,
            log_z=settings.log_z,
            trick=request.trick or ("gumbel" if request.averages else None),
            noise="independent" if settings.share_above == math.inf else "shared",
        ),
        rows=found.rows,
        curve=found.curve,
        exact_curve=found.exact_curve,
        description=model.describe(),
    )


def _known_log_z(model: Model, request: RenyiRequest, progress: Progress) -> float | None:
    """ln Z, if it was given or asked for, or if the model is a vector of probabilities."""
    from thesis_cli.commands.ln_z import entropies

    if request.probabilities:
        with progress(model.size, "configurations") as tick:
            return entropies.sum_of_probabilities(model, request.strict, request.max_configurations, tick)
    if request.log_z == "exact":
        with progress(model.size, "configurations") as tick:
            return entropies.exact_log_z(model, bytes_of(request.memory), request.max_configurations, tick)
    entropies.warn_of_probabilities(model)
    return None if request.log_z is None else float(request.log_z)


def _integrand(request: RenyiRequest, model: Model) -> Model:
    """ln f as a model, under the evidence of the model."""
    from thesis_cli.models.factor_graph import FactorGraph

    weights = open_function(request.integrand)
    if isinstance(model, FactorGraph) and isinstance(weights, FactorGraph) and model.observed:
        return weights.condition(model.observed)
    return weights


def _entropies(model: Model, request: RenyiRequest, settings: EntropySettings, progress: Progress) -> EntropyRows:
    """All methods of the request; for a model too large for its noise, the exact answer or
    bounds."""
    from thesis_cli.commands.ln_z.entropies import Methods, logger, rows

    methods = Methods(
        perturb=request.perturbable(model) and request.samples > 0,
        exact=request.exact,
        profile=request.profile,
        shannon=request.shannon,
        bounds=request.bounds,
        bethe=request.bethe,
        trw=request.trw,
    )
    if request.perturbable(model) or any(methods):
        return rows(model, settings, methods, progress)
    logger.info("too many configurations for noise on each; trying an exact algorithm")
    try:
        return rows(model, settings, methods._replace(exact=True), progress)
    except ModelTooLarge as error:
        if request.quantity not in ENTROPIES:
            raise
        logger.info("no exact answer: %s; computing bounds instead", error.problem)
    return rows(model, settings, methods._replace(bounds=True), progress)


def _named(order: float | None) -> float | str | None:
    """An order as JSON has it, which has no infinity."""
    return "inf" if order == math.inf else order


COMMAND = Command(
    RenyiRequest,
    run,
    examples=(
        "renyi data/models/asia.uai --order 0 --order 1 --order 2 --order inf --exact",
        "renyi data/models/zipf-1000.csv --log-z exact --profile --exact --figure profile.png",
        "renyi data/models/ising-4x4.uai --shannon --bounds --samples 1000",
    ),
)
