"""Binary images: round trips, every kind of file, and one line for each that is bad."""

import io

import numpy as np
import pytest
from PIL import Image

from tests.fuzzing import damaged
from tests.tiers import is_long
from thesis_cli.base.errors import InputError
from thesis_cli.models import images
from thesis_cli.models.images import Images, add_flips, encoded, read_images


def write_image(path, pixels):
    path.write_bytes(encoded(pixels, path))


RNG = np.random.default_rng(1)
PIXELS = RNG.random((13, 9)) < 0.5
GREY = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20


def picture(pixels, mode=None, kind="PNG", **options):
    stream = io.BytesIO()
    found = Image.fromarray(pixels)
    (found.convert(mode) if mode else found).save(stream, format=kind, **options)
    return stream.getvalue()


@pytest.mark.parametrize("suffix", images.SUFFIXES)
def test_written_images_are_read(suffix, tmp_path):
    path = tmp_path / f"a{suffix}"
    write_image(path, PIXELS)
    found = read_images(path)
    assert found.names == ["a"]
    assert found.pixels.dtype == bool
    np.testing.assert_array_equal(found.pixels, PIXELS[None])
    if suffix != ".npy":  # others see the same: white where True
        np.testing.assert_array_equal(np.asarray(Image.open(path).convert("L")), np.uint8(255) * PIXELS)


@pytest.mark.parametrize("value", [False, True])
@pytest.mark.parametrize("suffix", images.SUFFIXES)
def test_images_of_one_value_keep_it(suffix, value, tmp_path):
    write_image(tmp_path / f"a{suffix}", np.full((2, 3), value))
    assert (read_images(tmp_path).pixels == value).all()


def test_a_folder_is_sorted_by_name_and_may_have_every_kind(tmp_path):
    write_image(tmp_path / "c.png", PIXELS)
    write_image(tmp_path / "b.pgm", ~PIXELS)
    (tmp_path / "a.png").write_bytes(picture(np.uint8(255) * PIXELS, "RGB"))
    (tmp_path / "d.png").write_bytes(picture(np.uint8(255) * PIXELS, "P"))
    (tmp_path / "e.png").write_bytes(picture(np.uint8(255) * PIXELS, "LA"))
    (tmp_path / "f.pgm").write_text("P2\n9 13\n1\n" + "\n".join(" ".join(map(str, row)) for row in 1 * PIXELS))
    (tmp_path / ".hidden.png").write_text("no picture")
    (tmp_path / "notes.txt").write_text("no picture")
    found = read_images(tmp_path)
    assert found.names == list("abcdef")
    np.testing.assert_array_equal(found.pixels, [PIXELS, ~PIXELS, PIXELS, PIXELS, PIXELS, PIXELS])


@pytest.mark.parametrize("values", [(-1.0, 1.0), (0, 1), (0, 7)])
def test_a_stack_of_any_two_values(values, tmp_path):
    stack = RNG.random((12, 4, 3)) < 0.5
    np.save(tmp_path / "s.npy", np.where(stack, values[1], values[0]))
    found = read_images(tmp_path / "s.npy")
    assert found.names[0] == "s-00"
    assert found.names[-1] == "s-11"
    np.testing.assert_array_equal(found.pixels, stack)


def test_a_threshold_makes_grey_images_binary(tmp_path):
    (tmp_path / "a.png").write_bytes(picture(GREY))
    (tmp_path / "b.png").write_bytes(picture(GREY.astype(np.uint16) * 256))
    np.testing.assert_array_equal(read_images(tmp_path / "a.png", 100).pixels[0], GREY > 100)
    np.testing.assert_array_equal(read_images(tmp_path / "b.png", 100 * 256).pixels[0], GREY > 100)


def test_flips_are_independent_and_of_the_share():
    found = add_flips(np.zeros((100, 20, 20), bool), 0.1, np.random.default_rng(0))
    assert abs(found.mean() - 0.1) < 5 * 0.3 / 200
    assert found.all(axis=0).sum() == 0


NPY = {
    "nan.npy": (np.array([[np.nan, 1]]), "no finite numbers"),
    "line.npy": (np.zeros(3), "has the shape (3,)"),
    "none.npy": (np.zeros((0, 3, 4)), "has no pixels"),
    "three.npy": (np.array([[0, 1], [2, 0]]), "it has 3 values from 0 to 2; give --threshold, such as 1"),
}
PICTURES = {
    "grey.png": (picture(GREY), "is grey: it has 12 values from 0 to 220; give --threshold, such as 110"),
    "cut.png": (picture(np.kron(PIXELS, np.ones((30, 30), bool)))[:80], "not a whole PNG"),
    "text.png": (b"no picture", "not a whole PNG"),
    "short.pbm": (b"P4\n900 900\n12", "not a whole PNG, PBM or PGM"),
    "huge.pbm": (b"P4\n99999999 99999999\n12", "exceeds limit"),
    "clear.png": (picture(np.zeros((2, 2, 4), np.uint8)), "transparent"),
    "cut.npy": (b"\x93NUMPY\x01\x00", "not a whole NPY"),
}


@pytest.mark.parametrize("name", [*NPY, *PICTURES, "pickle.npy", "missing.png"])
def test_bad_files_are_one_line_that_names_them(name, tmp_path):
    path, words = tmp_path / name, "Python objects"
    if name in NPY:
        np.save(path, NPY[name][0])
        words = NPY[name][1]
    elif name in PICTURES:
        path.write_bytes(PICTURES[name][0])
        words = PICTURES[name][1]
    elif name == "pickle.npy":
        np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    else:
        words = "no such file"
    with pytest.raises(InputError) as caught:
        read_images(path)
    assert words in str(caught.value)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_folders_are_one_line(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="there is no image"):
        read_images(tmp_path)
    write_image(tmp_path / "a.png", PIXELS)
    write_image(tmp_path / "b.png", PIXELS[1:])
    with pytest.raises(InputError, match=r"b\.png: is 9 x 12, but a is 9 x 13"):
        read_images(tmp_path)
    np.save(tmp_path / "b.npy", 1 * PIXELS)
    (tmp_path / "b.png").unlink()
    with pytest.raises(InputError, match="the images have 3 values: 0, 1, 255; give --threshold"):
        read_images(tmp_path)
    np.save(tmp_path / "a.npy", np.uint8(255) * PIXELS)
    with pytest.raises(InputError, match="two images a;"):
        read_images(tmp_path, threshold=0)
    monkeypatch.setattr(images, "MOST_PIXELS", 2 * PIXELS.size)
    with pytest.raises(InputError, match="has 117 pixels, and all images together may have 234"):
        read_images(tmp_path, threshold=0)
    (tmp_path / "c.jpg").write_bytes(b"")
    with pytest.raises(InputError, match=r"\.jpg files are not read"):
        read_images(tmp_path)
    with pytest.raises(InputError, match="does not end in"):
        write_image(tmp_path / "a.gif", PIXELS)


@pytest.mark.parametrize("suffix", images.SUFFIXES)
def test_damaged_files_are_read_or_refused(suffix, tmp_path):
    path = tmp_path / f"a{suffix}"
    write_image(path, PIXELS)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(20_000 if is_long() else 50):
        path.write_bytes(damaged(whole, rng, text=False))
        try:
            outcome = read_images(path, threshold=0.5)
        except InputError as error:
            outcome = str(error)
        assert isinstance(outcome, Images) or "\n" not in outcome
