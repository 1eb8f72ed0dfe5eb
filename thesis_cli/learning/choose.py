"""Settings of a training, chosen by images that are held out of it.

A third of the images is held out. First each kind of weights is learnt with the middle
regularisation, then the best kind with the others. Each is also tried with weaker couplings: the
most probable image of weights that were learnt under noise is too smooth without noise. The
weights with the least error on the images held out are learnt again from all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from thesis_cli.base.arrays import Bools
from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Tick
from thesis_cli.learning.decoding import denoised
from thesis_cli.learning.settings import HELD_OUT, Settings
from thesis_cli.learning.train import Trained, train
from thesis_cli.learning.training_run import OTHER, REMEDY, tried_before
from thesis_cli.learning.values import Pixels, Values

STRENGTHS = (30.0, 100.0, 3.0)
"""Regularisations times the number of pairs, so that all pairs together have a prior of one
precision; the middle one first."""

FACTORS = (1.0, 0.8, 0.6, 0.4)
"""By which couplings are multiplied."""


@dataclass(frozen=True)
class Candidate:
    """Settings that were tried.

    Attributes
    ----------
    settings : of the training; the regularisation is for the images that were not held out.
    strength : its regularisation times the number of pairs; None if it was given.
    factor : by which couplings were multiplied.
    error : on the images that were held out.
    """

    settings: Settings
    strength: float | None
    factor: float
    error: float

    def row(self) -> dict[str, Any]:
        """What sets it apart, in types of JSON."""
        names = ("weights", "patch", "hidden", "regularisation")
        return {**{name: getattr(self.settings, name) for name in names}, "factor": self.factor, "error": self.error}


@dataclass(frozen=True)
class Learnt:
    """What was learnt.

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
    seed : seed of the trainings, and of which images are held out.
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
                "there is one pair of images, and none to hold out", "give --weights and --regularisation, or more"
            )
        known = [] if self._checkpoint is None else list(tried_before(self._checkpoint))
        rng = np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=(count,)))
        kept = rng.permutation(count) >= max(1, count // HELD_OUT)
        tried = STRENGTHS if strengths else (None,)
        first = [self._candidate(settings, tried[0], kept, known) for settings in kinds]
        yield from first
        best = min(first, key=lambda one: one.error)
        for strength in tried[1:]:
            yield self._candidate(best.settings, strength, kept, known)

    def _candidate(
        self, settings: Settings, strength: float | None, kept: Bools, known: Sequence[Mapping[str, Any]]
    ) -> Candidate:
        """Settings with their error on the images that are not kept, unless that is known."""
        settings = self._with_strength(settings, strength, kept)
        about = {"settings": asdict(settings), "seed": self._seed, "images_sha256": self._digest}
        place = len(self._tried)
        if place < len(known):
            found = known[place]
            if any(found.get(name) != value for name, value in about.items()):
                raise InputError(OTHER, REMEDY, source=self._checkpoint or "")
        else:
            found = {**about, **self._outcome(settings, kept)}
        self._tried.append(found)
        return Candidate(settings, strength, found["factor"], found["error"])

    def _outcome(self, settings: Settings, kept: Bools) -> dict[str, float]:
        """The factor of couplings with the least error on the images that are not kept, and the error."""
        weights = self._trained(settings, kept).weights
        noisy, clean = self._noisy[~kept], self._clean[~kept]
        errors = {
            factor: float(self._values.errors(denoised(weights.scaled(factor), self._values, noisy), clean).mean())
            for factor in FACTORS
        }
        factor = min(errors, key=lambda one: errors[one])
        return {"factor": factor, "error": errors[factor]}

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
