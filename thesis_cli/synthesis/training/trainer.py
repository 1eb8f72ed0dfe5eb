"""Training of any network: Adam on batches of a corpus, with checkpoints from which training goes on.

A step depends on the seed, its number and the weights before it. A run that goes on from its last
checkpoint therefore ends, on a CPU, with the same weights as one that was not cut short, given the
same number of threads.

Source: Thesis sections 5.4.3 and 5.4.5.
"""

from __future__ import annotations

import io
import json
import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import write_atomic
from thesis_cli.base.progress import Tick
from thesis_cli.synthesis.networks.weights import Kind
from thesis_cli.synthesis.training.corpora import Rows, Stream, TrainingData

EVALUATED = 512
"""Programs that are evaluated at a time."""


class Learner(Protocol):
    """A network that learns from `TrainingData`.

    Attributes
    ----------
    kind : which network, as its weights name it.
    sizes : sizes of its layers by name, as its weights have them.
    module : module that is trained.
    """

    kind: Kind
    sizes: Mapping[str, int]
    module: torch.nn.Module

    def batch(self, rows: Rows, rng: np.random.Generator | None) -> Any:
        """Programs as the network takes them: with examples that `rng` draws, or for validation,
        without it, the same ones each time."""

    def loss(self, batch: Any) -> torch.Tensor:
        """Negative log-likelihood, in nats for each program: a mean over the batch, with gradient."""

    def arrays(self) -> dict[str, npt.NDArray[np.float32]]:
        """The weights, as inference takes them."""

    def metrics(self, rows: Rows) -> dict[str, Any]:
        """Quality on programs that are held back, in types of JSON."""


@dataclass(frozen=True)
class TrainingPlan:
    """Length, step size and stopping of a training.

    Attributes
    ----------
    programs : that it sees; each program of the corpus counts each time.
    batch : programs of a step.
    rate : largest step size of Adam. It rises over the first steps, then falls along a cosine.
    seed : seed of all random choices.
    evaluations : number of evenly spread evaluations of the loss on held back programs.
    patience : evaluations without a better loss after which training stops.
    half : whether layers multiply in bfloat16, which is nearly twice as fast on a CPU.
    """

    programs: int
    batch: int = 256
    rate: float = 2e-3
    seed: int = 0
    evaluations: int = 40
    patience: int = 10
    half: bool = True

    @property
    def steps(self) -> int:
        """Number of steps, at least one."""
        return max(1, self.programs // self.batch)

    def rate_at(self, step: int) -> float:
        """Step size of a step."""
        rising = min(200, self.steps // 10 + 1)
        falling = 0.5 * (1 + math.cos(math.pi * step / self.steps))
        return self.rate * min(1.0, (step + 1) / rising) * max(0.01, falling)


@dataclass
class TrainingState:
    """Progress of a training.

    Attributes
    ----------
    step : steps done.
    curve : a row for each evaluation: programs seen, processor seconds, step size, loss in training
        since the last one, and loss in validation.
    best : the least loss in validation.
    weights : weights of the module with that loss.
    sums : sum of the losses since the last evaluation, and their number.
    seconds : processor seconds so far.
    stopped : whether training ended before its time.
    """

    step: int = 0
    curve: list[dict[str, float]] = field(default_factory=list)
    best: float = math.inf
    weights: dict[str, torch.Tensor] = field(default_factory=dict)
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0])
    seconds: float = 0.0
    stopped: bool = False


def train(
    learner: Learner,
    data: TrainingData,
    plan: TrainingPlan,
    checkpoints: Checkpoints | None = None,
    tick: Tick = lambda done: None,
) -> TrainingState:
    """Train a network; its module then has the weights of the least loss in validation. Raises
    InputError if the checkpoint is damaged, or of another run; no loss is finite; OSError if a
    checkpoint could not be written; the one before is still there.

    Parameters
    ----------
    checkpoints : checkpoint to go on from, if there is one, and to save at intervals.
    tick : called with the number of programs just seen.
    """
    module, state = learner.module, TrainingState()
    optimizer = torch.optim.Adam(module.parameters(), lr=plan.rate)
    if checkpoints is not None and (found := checkpoints.load()) is not None:
        module.load_state_dict(found["module"])
        optimizer.load_state_dict(found["optimizer"])
        state = TrainingState(**found["state"])
        tick(state.step * plan.batch)
    stream = Stream(data.train, plan.batch, plan.seed)
    marks = {plan.steps * (i + 1) // plan.evaluations for i in range(plan.evaluations)}
    saved, began = time.monotonic(), time.process_time() - state.seconds
    while state.step < plan.steps and not state.stopped:
        for group in optimizer.param_groups:
            group["lr"] = plan.rate_at(state.step)
        module.train()
        batch = learner.batch(stream.rows(state.step), stream.rng(state.step))
        device = next(module.parameters()).device.type
        with torch.autocast(device, dtype=torch.bfloat16, enabled=plan.half):
            loss = learner.loss(batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        state.step += 1
        state.sums = [state.sums[0] + loss.item(), state.sums[1] + 1]
        state.seconds = time.process_time() - began
        tick(plan.batch)
        if state.step in marks:
            _evaluate(learner, data, plan, state)
        if checkpoints is not None and time.monotonic() - saved > checkpoints.every:
            checkpoints.save(_state(module, optimizer, state))
            saved = time.monotonic()
    if checkpoints is not None and state.weights:
        checkpoints.save(_state(module, optimizer, state))
    if not state.weights:
        raise InputError("training diverged: its loss is not finite", "give a smaller --rate")
    module.load_state_dict(state.weights)
    module.eval()
    return state


def validation_loss(learner: Learner, rows: Rows) -> float:
    """Loss on programs that are held back, in nats for each program."""
    learner.module.eval()
    total = 0.0
    with torch.no_grad():
        for start in range(0, len(rows), EVALUATED):
            part = rows[start : start + EVALUATED]
            total += len(part) * learner.loss(learner.batch(part, None)).item()
    return total / len(rows)


def _evaluate(learner: Learner, data: TrainingData, plan: TrainingPlan, state: TrainingState) -> None:
    """Add a row to the curve; keep the weights if they are the best so far."""
    loss = validation_loss(learner, data.validation)
    row = {
        "programs": state.step * plan.batch,
        "seconds": round(state.seconds, 2),
        "rate": plan.rate_at(state.step - 1),
        "training": state.sums[0] / state.sums[1],
        "validation": loss,
    }
    state.curve.append(row)
    state.sums = [0.0, 0.0]
    if loss < state.best:
        state.best = loss
        state.weights = {name: value.detach().cpu().clone() for name, value in learner.module.state_dict().items()}
    losses = [row["validation"] for row in state.curve]
    state.stopped = len(losses) - 1 - losses.index(min(losses)) >= plan.patience


def _state(module: torch.nn.Module, optimizer: torch.optim.Optimizer, state: TrainingState) -> dict[str, Any]:
    return {"module": module.state_dict(), "optimizer": optimizer.state_dict(), "state": asdict(state)}


FORMAT = "thesis-cli checkpoint 1"

_REMEDY = "remove it, or give --overwrite or another --out"


class Checkpoints:
    """The checkpoint of a training, one file.

    Parameters
    ----------
    path : path of the file.
    made_from : settings that determine the training, in types of JSON.
    every : seconds between two checkpoints.
    """

    def __init__(self, path: Path, made_from: Mapping[str, Any], every: float = 20.0) -> None:
        self.path, self.every = path, every
        self._made_from = json.dumps(made_from, sort_keys=True)

    def load(self) -> dict[str, Any] | None:
        """The state that was saved last; None if none was. Raises InputError if the file is damaged, or it
        is of another training."""
        if not self.path.exists():
            return None
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise InputError(f"it cannot be read ({error.strerror})", _REMEDY, source=self.path) from None
        try:
            found = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        except Exception as error:  # of a damaged file, torch raises errors of any kind
            raise InputError("it is not a whole checkpoint", _REMEDY, source=self.path) from error
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise InputError(f"it is not a {FORMAT}", _REMEDY, source=self.path)
        if found["made_from"] != self._made_from:
            raise InputError("it is a checkpoint of other settings", _REMEDY, source=self.path)
        state: dict[str, Any] = found["state"]
        return state

    def save(self, state: Mapping[str, Any]) -> None:
        """Replace what was saved last. Raises OSError naming the file; what was saved last is still
        there."""
        file = io.BytesIO()
        torch.save({"format": FORMAT, "made_from": self._made_from, "state": dict(state)}, file)
        write_atomic({self.path: file.getvalue()})

    def remove_other(self) -> None:
        """Remove the file if `load` refuses it."""
        try:
            self.load()
        except InputError:
            self.remove()

    def remove(self) -> None:
        """Remove the file, if it is there."""
        self.path.unlink(missing_ok=True)
