"""Updated factors of faces, beside solutions from scratch."""

import numpy as np
import pytest

from thesis_cli.privacy.release.faces import affine, enter, leave


@pytest.mark.parametrize("keep", [0.4, 0.7])
def test_a_factor_that_was_updated_is_that_of_the_face(keep):
    """Hundreds of vertices enter and leave at any place; the matrix has eigenvalues of 1 and more, so that rounding
    is multiplied by its norm alone."""
    rng = np.random.default_rng(0)
    vertices, inner = rng.standard_normal((150, 200)) / 8, rng.standard_normal(150)
    every = vertices @ vertices.T + np.eye(150)
    upper, solved = np.zeros((150, 150)), np.zeros((2, 150))
    face: list[int] = []
    largest = 0
    for _ in range(600):
        out = [i for i in range(150) if i not in face]
        if face and (not out or rng.random() > keep):
            place = int(rng.integers(len(face)))
            leave(upper, solved, len(face), place)
            del face[place]
        else:
            new = int(rng.choice(out))
            column = every[[*face, new], new].copy()
            enter(upper, solved, len(face), column, np.array([inner[new], 1.0]), 1e-12)
            face.append(new)
        size = len(face)
        largest = max(largest, size)
        if size:
            matrix, free = every[np.ix_(face, face)], inner[face]
            rounding = 600 * size * np.finfo(float).eps * np.linalg.eigvalsh(matrix)[-1]
            own = np.triu(upper[:size, :size])
            np.testing.assert_allclose(own.T @ own, matrix, rtol=0, atol=rounding)
            x, y = np.linalg.solve(matrix, np.column_stack([free, np.ones(size)])).T
            found = np.empty(size)
            affine(upper[:size, :size], solved[:, :size], found)
            scale = np.abs(x).max() + np.abs(y).max() * (1 + np.abs(x).sum()) / y.sum()
            np.testing.assert_allclose(found, x + y * (1 - x.sum()) / y.sum(), rtol=0, atol=rounding * scale)
    assert largest > (100 if keep > 0.5 else 5)
