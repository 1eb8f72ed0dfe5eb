"""Files of weights: what is written is read, and what is damaged or foreign is refused in one line."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.synthesis.networks.random_weights import SIZES, arrays_of, random_weights
from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.language.dsl import DEFAULT, Semantics
from thesis_cli.synthesis.networks.network_guide import NetworkGuide
from thesis_cli.synthesis.networks.weights import FORMAT, card, config_of, load, save, shipped

META = {"format": FORMAT, "kind": "feed-forward"}


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    path, semantics = tmp_path / "a.safetensors", Semantics(low=-9, high=9, longest=3, division="floor")
    arrays = {"x": np.array([[1.0, 2 / 3]]), "y": np.zeros((0, 2))}
    config = config_of(semantics, {"programs": 7}, units=4)
    assert save(path, arrays, "gru", config, {"bad at": "all"}) == [path, tmp_path / "a.json"]
    found = load(path)
    assert (found.kind, found.semantics, found.sizes, found.training) == (
        "gru",
        semantics,
        {"units": 4},
        {"programs": 7},
    )
    assert found.arrays["x"].dtype == np.float32
    assert found.arrays["x"].tolist() == np.float16(arrays["x"]).tolist()
    assert found.arrays["y"].shape == (0, 2)
    about = card(path)
    assert (about["bad at"], about["sha256"]) == ("all", hashlib.sha256(path.read_bytes()).hexdigest())
    assert found.digest == about["sha256"]


def test_the_same_weights_give_the_same_bytes(tmp_path: Path) -> None:
    path = random_weights(tmp_path / "a.safetensors")
    arrays = arrays_of(SIZES)
    turned = {name: arrays[name] for name in reversed(arrays)}
    save(tmp_path / "b.safetensors", turned, "feed-forward", config_of(DEFAULT, {"seed": 0}, **SIZES), {})
    assert path.read_bytes() == (tmp_path / "b.safetensors").read_bytes()


@pytest.mark.parametrize("weight", [1e6, np.nan])
def test_weights_beyond_float16_are_not_written(weight: float, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="float16"):
        save(tmp_path / "a.safetensors", {"x": [weight]}, "gru", config_of(DEFAULT), {})
    assert not list(tmp_path.iterdir())


def test_shipped_weights_are_those_of_their_cards() -> None:
    for name in shipped():
        weights = load(name)
        assert (weights.name, card(name)["sha256"]) == (name, weights.digest)
        if weights.kind in ("feed-forward", "gru"):
            assert NetworkGuide.of(weights).identity.startswith(f"network {name} ")


def test_shipped_weights_that_were_changed_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thesis_cli.synthesis.networks.weights._FOLDER", tmp_path)
    random_weights(tmp_path / "lines-9.safetensors")
    assert load("lines-9").name == "lines-9"
    about = tmp_path / "lines-9.json"
    about.write_text(about.read_text().replace('"sha256": "', '"sha256": "0'))
    with pytest.raises(InputError, match=r"^lines-9: .*model card"):
        load("lines-9")


def _write(path: Path, metadata: dict[str, str] | None, kind: type[np.floating[Any]] = np.float16) -> None:
    save_file({"x": np.zeros(2, kind)}, path, metadata)


def _config(**changed: Any) -> str:
    config = config_of(DEFAULT, units=2)
    return json.dumps({**config, "attributes": ["HEAD"], **changed})


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        (None, "does not name its format"),
        ({"format": "thesis-cli guide 9"}, "its format is 'thesis-cli guide 9'"),
        ({"format": FORMAT, "kind": "transformer"}, "of the kind 'transformer'"),
        ({**META, "config": "[1"}, "its config cannot be read"),
        ({**META, "config": _config(sizes={"units": 2.5})}, "its config cannot be read"),
        ({**META, "config": _config(semantics={"low": 5})}, "its config cannot be read"),
        ({**META, "config": _config()}, "other functions and lambdas"),
    ],
)
def test_files_of_another_version_kind_or_language_are_refused(
    metadata: dict[str, str] | None, problem: str, tmp_path: Path
) -> None:
    _write(tmp_path / "a.safetensors", metadata)
    with pytest.raises(InputError, match=problem) as caught:
        load(tmp_path / "a.safetensors")
    assert str(caught.value).startswith(f"{tmp_path / 'a.safetensors'}: ")
    assert "; " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_hold_no_weights_are_refused(tmp_path: Path) -> None:
    path = random_weights(tmp_path / "a.safetensors")
    whole = path.read_bytes()
    for damaged in whole[:-1], whole[:40], b"", b"PK\x03\x04" + bytes(100), b"\xff" * 64:
        path.write_bytes(damaged)
        with pytest.raises(InputError, match="not a whole safetensors file"):
            load(path)
    metadata = {**META, "config": json.dumps({**config_of(DEFAULT)})}
    _write(path, metadata, np.float32)
    with pytest.raises(InputError):
        load(path)
    for missing in str(tmp_path / "none.safetensors"), "lines-0":
        with pytest.raises(InputError, match=r"none\.safetensors: it cannot be read|no weights 'lines-0'"):
            load(missing)


def test_arrays_must_have_the_shapes_of_the_sizes(tmp_path: Path) -> None:
    arrays = arrays_of(SIZES)
    for name, changed, problem in (
        ("hidden.1.bias", arrays["hidden.1.bias"][1:], r"hidden\.1\.bias has shape \(7,\)"),
        ("attributes.weight", None, r"attributes\.weight is missing"),
        ("extra", np.zeros(1), "unknown array extra"),
    ):
        kept = {key: array for key, array in {**arrays, name: changed}.items() if array is not None}
        save(tmp_path / "a.safetensors", kept, "feed-forward", config_of(DEFAULT, **SIZES), {})
        with pytest.raises(InputError, match=problem):
            NetworkGuide.of(load(tmp_path / "a.safetensors"))
