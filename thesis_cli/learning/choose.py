"""Settings of a training, chosen by cross-validation.

The pairs are divided into three parts, each of which is held out once. First each kind of weights is
learnt with the middle regularisation, then the best kind with the others. Each is also tried with
weaker and stronger couplings: the most probable image of weights that were learnt under noise is too
smooth without noise. The settings with the least error on all images held out are learnt again from
all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Tick
from thesis_cli.learning.decoding import denoised
from thesis_cli.learning.settings import FOLDS, Settings
from thesis_cli.learning.train import Trained, train
from thesis_cli.learning.training_run import OTHER, REMEDY, tried_before
from thesis_cli.learning.values import Pixels, Values

STRENGTHS = (30.0, 100.0, 3.0)
"""Regularisations times the number of pairs, so that all pairs together have a prior of one
precision; the middle one first."""

FACTORS = (1.2, 1.1, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
"""By which couplings are multiplied."""


@dataclass(frozen=True)
class Candidate:
    """Settings that were tried.

    Attributes
    ----------
    settings : of the training; the regularisation is for the images that were not held out.
    strength : its regularisation times the number of pairs; None if it was given.
    factor : by which couplings were multiplied.
    error : on the images that were held out, each once.
    """

    settings: Settings
    strength: float | None
    factor: float
    error: float

    def row(self) -> dict[str, Any]:
        """The settings that tell it from other candidates, and its error, in types of JSON."""
        names = ("weights", "patch", "hidden", "regularisation")
        return {**{name: getattr(self.settings, name) for name in names}, "factor": self.factor, "error": self.error}


@dataclass(frozen=True)
class Learnt:
    """A training with the chosen settings, and the candidates that were compared.

    Attributes
    ----------
    trained : the training from all images; its weights say what values and settings they have.
    settings : of this training.
    candidates : all that was tried with images held out, the best first; empty if nothing was chosen.
    """

    trained: Trained
    settings: Settings
    candidates: Sequence[Candidate]


class Learner:
    """Trainings on the same images.

    Parameters
    ----------
    noisy, clean : images of `values`, shape (count, h, w).
    seed : seed of the trainings, and of which images are held out together.
    progress : called with the number of iterations just done.
    checkpoint : file to go on from and to keep; it has the training that is going on, and what those
        before it found.
    """

    def __init__(
        self,
        noisy: Pixels,
        clean: Pixels,
        values: Values,
        seed: int,
        progress: Tick | None = None,
        checkpoint: Path | None = None,
    ) -> None:
        self._noisy, self._clean, self._values = noisy, clean, values
        self._seed, self._progress, self._checkpoint = seed, progress, checkpoint
        self._tried: list[Mapping[str, Any]] = []

    def learn(self, kinds: Sequence[Settings], strengths: bool) -> Learnt:
        """Weights of the settings that do best on images held out, learnt from all images.

        Parameters
        ----------
        kinds : settings to choose from.
        strengths : whether to choose the regularisation, too.

        Raises
        ------
        InputError : there is a choice, and one pair of images; or as `train`.
        ModelTooLarge, WorkFailed : as `train`.
        """
        everything = np.ones(len(self._clean), np.bool_)
        settings, factor, candidates = kinds[0], 1.0, list[Candidate]()
        if strengths or len(kinds) > 1:
            candidates = sorted(self._candidates(kinds, strengths), key=lambda one: one.error)
            best = candidates[0]
            settings, factor = self._with_strength(best.settings, best.strength, everything), best.factor
        trained = self._trained(settings, everything)
        about = {**trained.weights.about, "values": self._values.write(), "coupling_factor": factor}
        weights = replace(trained.weights.scaled(factor), about=about)
        return Learnt(replace(trained, weights=weights), settings, candidates)

    def _candidates(self, kinds: Sequence[Settings], strengths: bool) -> Iterator[Candidate]:
        count = len(self._clean)
        if count < 2:
            raise InputError(
                "there is one pair of images, and none to hold out",
                "give more, such as parts of it, or --weights shared with --patch and --regularisation",
            )
        rng = np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=(count,)))
        fold = rng.permutation(count) % FOLDS
        tried = STRENGTHS if strengths else (None,)
        first = [self._candidate(settings, tried[0], fold) for settings in kinds]
        yield from first
        best = min(first, key=lambda one: one.error)
        for strength in tried[1:]:
            yield self._candidate(best.settings, strength, fold)

    def _candidate(self, settings: Settings, strength: float | None, fold: Ints) -> Candidate:
        """Settings with the factor of couplings that has the least error on the images held out, which
        are those of each fold in turn."""
        total = np.zeros(len(FACTORS))
        for part in np.unique(fold):
            kept = fold != part
            settings = self._with_strength(settings, strength, kept)
            total += self._known_errors(settings, kept)
        best = int(total.argmin())
        return Candidate(settings, strength, FACTORS[best], float(total[best]) / len(fold))

    def _known_errors(self, settings: Settings, kept: Bools) -> Floats:
        """The errors that the checkpoint knows, or else those of `_errors`."""
        about = {"settings": asdict(settings), "seed": self._seed, "images_sha256": self._digest}
        place = len(self._tried)
        if place < len(self._known):
            found = self._known[place]
            if any(found.get(name) != value for name, value in about.items()):
                raise InputError(OTHER, REMEDY, source=self._checkpoint or "")
        else:
            found = {**about, "errors": self._errors(settings, kept)}
        self._tried.append(found)
        return np.array(found["errors"])

    def _errors(self, settings: Settings, kept: Bools) -> list[float]:
        """Errors on the images that are not kept, added up, by the factor of couplings."""
        weights = self._trained(settings, kept).weights
        noisy, clean = self._noisy[~kept], self._clean[~kept]
        return [
            float(self._values.errors(denoised(weights.scaled(factor), self._values, noisy), clean).sum())
            for factor in FACTORS
        ]

    @cached_property
    def _known(self) -> Sequence[Mapping[str, Any]]:
        """Trainings that ended before the one that the checkpoint interrupted."""
        return [] if self._checkpoint is None else list(tried_before(self._checkpoint))

    @cached_property
    def _digest(self) -> str:
        """Digest of all images."""
        return hashlib.sha256(self._noisy.tobytes() + self._clean.tobytes()).hexdigest()

    def _with_strength(self, settings: Settings, strength: float | None, images: Bools) -> Settings:
        if strength is None:
            return settings
        return replace(settings, regularisation=strength / (int(images.sum()) * self._values.parts))

    def _trained(self, settings: Settings, images: Bools) -> Trained:
        noisy, clean = self._values.signals(self._noisy[images]), self._values.binary(self._clean[images])
        return train(noisy, clean, settings, self._seed, self._progress, self._checkpoint, tried=self._tried)
