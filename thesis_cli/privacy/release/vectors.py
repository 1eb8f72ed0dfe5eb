"""Methods that publish one noisy vector: the mean of a public map of the rows (`features`,
`subspace`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol, cast

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError, presentation
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.mechanism import NOISES, Calibration, Noise
from thesis_cli.privacy.mechanisms.stages import MeanVector, Totals, counted_blocks
from thesis_cli.privacy.release.methods import listed, methods_where
from thesis_cli.privacy.release.record import Record
from thesis_cli.privacy.release.release import (
    Errors,
    ExpectedStage,
    Implementation,
    NoisyMean,
    PrivateRows,
    Released,
    ReleasePlan,
    calibrated,
    implementation_of,
    linear_errors,
    noise_text,
    sample,
)


class Embedding(MeanVector, Protocol):
    """Public map from a row to a vector; a table goes to the mean of its rows' vectors."""

    def embed(self, rows: Rows) -> Floats:
        """Vectors of public rows."""


@dataclass(frozen=True)
class NoisyVector:
    """Noisy embedding of a table."""

    vector: tuple[float, ...]


class VectorMethod(Implementation):
    """A method with one noisy vector.

    Attributes
    ----------
    diameter : largest distance of the vectors of two rows.
    """

    proof = Calibration
    output = NoisyVector
    diameter: ClassVar[float] = 2.0

    @abstractmethod
    def embedding(self, plan: ReleasePlan) -> Embedding:
        """Public map of the rows."""

    def release(self, plan: ReleasePlan, private: PrivateRows) -> Released:
        """Noisy mean vector; a noisy number of rows beside it, if that is secret."""
        noise = cast(Noise, private.noise or NOISES[plan.noise]())
        embedding, blocks = self.embedding(plan), private.blocks
        totals = Totals(embedding, plan.unit, self.diameter)
        if private.count is None:
            size, sensitivity, read = totals.count, totals.l2_sensitivity(), totals.vector
        else:
            size, sensitivity, read = embedding.count, embedding.l2_sensitivity(private.count), embedding.mean
            blocks = counted_blocks(blocks, private.count)
        calibration = noise.calibrate(size, sensitivity, plan.budget)
        vector = read(blocks, private.jobs, private.progress)
        private.spend(plan.budget, calibration.rho)
        noised, counted = noise.add(vector, sensitivity, plan.budget), None
        if private.count is None:
            noised, counted = totals.means(noised)
        size = len(plan.public) if plan.public is not None else plan.size if plan.row.size else embedding.count
        return Released(noised.calibration, NoisyVector(tuple(noised.values.tolist())), size, counted)

    def effective(self, plan: ReleasePlan, count: int) -> int:
        """See `Implementation.effective`."""
        return Totals(self.embedding(plan), plan.unit, self.diameter).effective(count)

    def expected(self, plan: ReleasePlan, count: int) -> tuple[tuple[ExpectedStage, ...], Errors]:
        """See `Implementation.expected`."""
        embedding = self.embedding(plan)
        found = calibrated(plan, embedding.count, embedding.l2_sensitivity(count))
        noise = found.deviation * math.sqrt(embedding.count)
        stage = ExpectedStage("embedding", embedding.count, found.sensitivity, found.scale, noise)

        def errors() -> tuple[float, float | None]:
            rows = sample(plan)
            vectors = embedding.embed(rows)
            return linear_errors(plan.schema, rows, vectors @ vectors.T, found.deviation)

        return (stage,), errors

    def means(self, plan: ReleasePlan, record: Record) -> list[NoisyMean]:
        """The noisy embedding."""
        vector, noise = noisy_vector(record)
        return [NoisyMean(self.embedding(plan).mean, np.array(vector), noise.scale)]

    @presentation
    def noise_lines(self, record: Record) -> list[tuple[str, str]]:
        """See `Implementation.noise_lines`."""
        vector, noise = noisy_vector(record)
        return [("noise", noise_text(noise.scale, len(vector), noise.sensitivity))]


def vector_method(method: str) -> VectorMethod:
    """The implementation of a method, if it publishes one noisy vector.

    Raises
    ------
    TypeError : it does not.
    """
    found = implementation_of(method)
    if not isinstance(found, VectorMethod):
        raise TypeError(f"a release by {method} has no single vector")
    return found


def noisy_vector(record: Record) -> tuple[tuple[float, ...], Calibration]:
    """The noisy embedding of a record and its noise.

    Raises
    ------
    InputError : the release has none; for example, the exponential mechanism chose a table.
    """
    if not isinstance(record.output, NoisyVector) or not isinstance(record.mechanism, Calibration):
        known = listed(methods_where(lambda row: row.noises and row.size), " or ")
        raise InputError(f"a release by {record.method} has no noisy vector", f"it must be by {known}")
    return record.output.vector, record.mechanism
