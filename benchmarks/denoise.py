"""Denoising beside total variation, an Ising model and a network on patches: errors on test images.

Each row is a data set, drawn anew in each of some draws: silhouettes in one place, shapes that are
anywhere, scikit-learn's digits, and textures, with pixels flipped; then grey shapes with Gaussian
noise, and maps of labels. Every method has the same training images and chooses its settings by
them: the weight of total variation (Chambolle, 2004) and the coupling of the Ising model by the error
on all, the network (scikit-learn's MLPClassifier: patches of 5 or 7, 16 or 64 hidden units, two
penalties) by a third that is held out. `make bench` runs it; arguments are
names of data sets, DRAWS the number of draws.
"""

import os
import sys
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

import thesis_cli as tc
from thesis_cli.learning.decoding import map_images
from thesis_cli.learning.shared_model import SharedWeights, patches
from thesis_cli.learning.values import Values
from thesis_cli.models.images import add_flips
from thesis_cli.studies.learning.denoising import constant_weights
from thesis_cli.studies.learning.silhouettes import digits, silhouettes

DRAWS = int(os.environ.get("DRAWS", "2"))
TEST = 40
METHODS = ("noisy", "total variation", "Ising", "patch MLP", "ours")


def shapes(count, rng, size=48):
    """Ellipses and boxes of any place, size and angle."""
    y, x = np.mgrid[:size, :size]
    found = np.zeros((count, size, size), bool)
    for image in found:
        for _ in range(rng.integers(1, 4)):
            image |= shape(x, y, rng)
    return found


def shape(x, y, rng):
    size = len(x)
    angle, (down, right) = rng.uniform(0, np.pi), rng.uniform(0, size, 2)
    along = (x - right) * np.cos(angle) + (y - down) * np.sin(angle)
    across = (y - down) * np.cos(angle) - (x - right) * np.sin(angle)
    along, across = along / rng.uniform(size / 12, size / 4), across / rng.uniform(size / 12, size / 4)
    return along**2 + across**2 <= 1 if rng.random() < 0.5 else np.maximum(abs(along), abs(across)) <= 1


def textures(count, rng, size=48):
    """Labyrinths: band-passed noise above 0."""
    frequency = np.hypot(np.fft.fftfreq(size)[:, None], np.fft.fftfreq(size))
    band = np.exp(-(((frequency - 1 / 7) / 0.02) ** 2) / 2)
    return np.fft.ifft2(np.fft.fft2(rng.standard_normal((count, size, size))) * band).real > 0


def painted(count, rng, values, size=48):
    """Shapes in random values, each over those before, on a ground of the first."""
    y, x = np.mgrid[:size, :size]
    found = np.full((count, size, size), values[0])
    for image in found:
        for _ in range(6):
            image[shape(x, y, rng)] = rng.choice(values)
    return found


def flipped(draw, train, share):
    """Binary images of a kind, with flipped pixels."""

    def pairs(rng):
        clean = draw(train + TEST, rng)
        return add_flips(clean, share, rng), clean

    return "two", train, pairs


def grey(rng):
    """Six grey values, with Gaussian noise."""
    clean = painted(20 + TEST, rng, np.linspace(0, 250, 6))
    return clean + rng.normal(0, 40, clean.shape), clean


def labels(rng):
    """Five labels, four tenths of which are drawn anew."""
    clean = painted(20 + TEST, rng, np.arange(5))
    return np.where(rng.random(clean.shape) < 0.4, rng.integers(0, 5, clean.shape), clean), clean


def men(count, rng):
    return silhouettes(count, rng, height=50, width=35)


SETS = {
    "aligned shapes, 0.1": flipped(men, 20, 0.1),
    "aligned shapes, 0.25": flipped(men, 20, 0.25),
    "moving shapes, 0.1": flipped(shapes, 20, 0.1),
    "moving shapes, 0.25": flipped(shapes, 20, 0.25),
    "digits, 0.1": flipped(digits, 200, 0.1),
    "textures, 0.25": flipped(textures, 20, 0.25),
    "grey shapes, noise 40": ("grey", 20, grey),
    "labels, 0.4": ("labels", 20, labels),
}


def total_variation(images, weight, steps=100):
    """Images that minimise their total variation plus the squared distance / (2 weight), by
    Chambolle's projections."""
    dual = np.zeros((2, *images.shape))

    def divergence():
        found = np.zeros(images.shape)
        for axis, part in enumerate(dual, 1):
            inner = np.delete(part, -1, axis)
            ends = [(0, 0)] * 3
            ends[axis] = (0, 1)
            found += np.pad(inner, ends)
            ends[axis] = (1, 0)
            found -= np.pad(inner, ends)
        return found

    for _ in range(steps):
        rest = divergence() - images / weight
        slopes = [np.diff(rest, axis=axis, append=np.take(rest, [-1], axis)) for axis in (1, 2)]
        dual = (dual + 0.25 * np.array(slopes)) / (1 + 0.25 * np.hypot(*slopes))
    return images - weight * divergence()


def best_of(settings, denoise, values, noisy, clean):
    """The function of the setting with the least error on training images."""
    errors = [values.errors(denoise(noisy, setting), clean).mean() for setting in settings]
    return lambda images: denoise(images, settings[int(np.argmin(errors))])


def by_total_variation(values, noisy, clean):
    scale = 1.0 if values.kind == "two" else 40.0

    def denoise(images, weight):
        if values.kind == "two":
            return total_variation(np.where(images, 1.0, -1.0), weight) > 0
        return total_variation(images.astype(float), weight)

    return best_of(scale * np.geomspace(0.05, 5, 25), denoise, values, noisy, clean)


def by_ising(values, noisy, clean):
    """Field 1 and one coupling; of labels a Potts model."""
    from thesis_cli.learning.decoding import denoised

    def denoise(images, coupling):
        if values.kind == "two":
            return map_images(constant_weights(*images.shape[1:], coupling), images)
        none = np.zeros(0)
        one = SharedWeights(np.ones((1, 1)), np.zeros(1), none.reshape(0, 1, 1), none, none, np.full(2, coupling))
        return denoised(one, values, images)

    return best_of(np.arange(0.05, 1.5, 0.05), denoise, values, noisy, clean)


def by_network(values, noisy, clean):
    """A class for each value."""
    count = len(noisy)
    kept = np.random.default_rng(0).permutation(count) >= count // 3

    def inputs(images, side):
        if values.kind == "labels":
            parts = values.signals(images).reshape(len(images), values.parts, *images.shape[1:])
            return np.hstack([patches(np.ascontiguousarray(parts[:, k]), side) for k in range(values.parts)])
        return patches(np.where(images, 1.0, -1.0) if values.kind == "two" else images / 125 - 1, side)

    def fitted(side, units, penalty, some):
        network = MLPClassifier((units,), alpha=penalty, max_iter=40, random_state=0)
        network.fit(inputs(noisy[some], side), clean[some].ravel())
        return lambda images: network.predict(inputs(images, side)).reshape(images.shape)

    tried = [(side, units, penalty) for side in (5, 7) for units in (16, 64) for penalty in (1e-3, 1.0)]
    errors = [values.errors(fitted(*one, kept)(noisy[~kept]), clean[~kept]).mean() for one in tried]
    return fitted(*tried[int(np.argmin(errors))], slice(None))


def by_ours(values, noisy, clean):
    trained = tc.train_denoiser(noisy, clean, values=values.kind)
    return lambda images: tc.denoise(images, weights=trained).images.pixels


LEARNERS = {"total variation": by_total_variation, "Ising": by_ising, "patch MLP": by_network, "ours": by_ours}


def main():
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(f"{'':22}" + "".join(f"{name:>24}" for name in METHODS), flush=True)
    for name, (kind, train, pairs) in SETS.items():
        if sys.argv[1:] and not any(word in name for word in sys.argv[1:]):
            continue
        errors, seconds = {name: [] for name in METHODS}, dict.fromkeys(METHODS, 0.0)
        for draw in range(DRAWS):
            noisy, clean = pairs(np.random.default_rng([2024, draw]))
            values = Values.of(kind, clean)
            errors["noisy"] += values.errors(noisy[train:], clean[train:]).tolist()
            for method, learner in LEARNERS.items():
                if method == "total variation" and kind == "labels":
                    continue
                if method == "Ising" and kind == "grey":
                    continue
                began = time.process_time()
                found = learner(values, noisy[:train], clean[:train])(noisy[train:])
                seconds[method] += time.process_time() - began
                errors[method] += values.errors(found, clean[train:]).tolist()
        print(f"{name:22}" + "".join(cell(errors[m], seconds[m], kind) for m in METHODS), flush=True)


def cell(errors, seconds, kind):
    """Mean error, its standard error over the images of all draws, and seconds of a draw."""
    if not errors:
        return f"{'-':>24}"
    scale, unit = (1, "") if kind == "grey" else (100, " %")
    error = np.std(errors, ddof=1) / len(errors) ** 0.5
    text = f"{scale * np.mean(errors):.2f} +- {scale * error:.2f}{unit} ({seconds / DRAWS:.0f} s)"
    return f"{text:>24}"


if __name__ == "__main__":
    main()
