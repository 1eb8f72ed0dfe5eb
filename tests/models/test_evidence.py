import numpy as np
import pytest

from tests.conftest import MODELS, all_states
from thesis_cli.base.errors import InputError
from thesis_cli.models.evidence import condition
from thesis_cli.models.factor_graph import Factor, FactorGraph, Names
from thesis_cli.models.files import load_model

ASIA = MODELS / "asia.bif"


def graph(*variables):
    return FactorGraph([2, 3], [Factor((0, 1), np.arange(6.0).reshape(2, 3))], names=Names(variables, (("a", "b"), ())))


@pytest.mark.parametrize(
    "entries",
    [["xray=yes"], ["6=0"], ["xray=0"], ["6=yes"], [" xray = yes "], [MODELS / "asia-xray.evid"]],
)
def test_all_forms_of_one_observation_agree(entries):
    seen = load_model(ASIA, evidence=entries)
    assert seen.observed == {6: 0}
    assert np.exp(seen.log_potential(all_states(seen))).sum() == pytest.approx(0.11029004, rel=1e-9)


def test_files_and_names_mix(tmp_path):
    (tmp_path / "e=e.evid").write_text("1 0 1")
    assert condition(graph("x", "y"), [str(tmp_path / "e=e.evid"), "y=2"]).observed == {0: 1, 1: 2}


def test_several_observations_stand_between_commas():
    assert condition(graph("x", "y"), ["x=b, y=2"]).observed == {0: 1, 1: 2}
    assert condition(graph("x=1,y", "y"), ["x=1,y=b", "y=2"]).observed == {0: 1, 1: 2}
    with pytest.raises(InputError, match="evidence z=2: there is no variable 'z'"):
        condition(graph("x", "y"), ["x=b,z=2"])


def test_a_file_of_windows_is_read(tmp_path):
    """Its first bytes say that it is UTF-8, and its lines end in two characters."""
    (tmp_path / "e.evid").write_bytes(b"\xef\xbb\xbf1\r\n1 1 2\r\n\r\n")
    assert condition(graph("x", "y"), [tmp_path / "e.evid"]).observed == {1: 2}
    (tmp_path / "model").write_bytes(b"\xef\xbb\xbfMARKOV\r\n1\r\n2\r\n0\r\n")
    assert load_model(tmp_path / "model").cardinalities == (2,)


def test_names_take_precedence_over_numbers_and_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "1=b").write_text("0")
    assert condition(graph("1", "0"), ["1=b"]).observed == {0: 1}
    assert condition(graph("a=b", "a"), ["a=b=b"]).observed == {0: 1}


@pytest.mark.parametrize(
    ("entries", "fragments"),
    [
        (["xrai=yes"], ["asia.bif: evidence xrai=yes", "variable 'xrai'", "'xray' is nearest"]),
        (["8=0"], ["variable '8'"]),
        (["xray=yse"], ["state of xray 'yse'", "'yes' is nearest"]),
        (["xray=2"], ["state of xray '2'", "'yes', 'no'"]),
        (["xray=yes", "6=1"], ["evidence 6=1", "xray is observed already"]),
        (["nowhere.evid"], ["nowhere.evid: cannot be read", "NAME=STATE"]),
        ([""], ["asia.bif: the evidence is empty", "NAME=STATE"]),
        (["either=no", "lung=yes"], ["forbids the evidence"]),
    ],
)
def test_errors_name_what_is_wrong_with_evidence(entries, fragments):
    with pytest.raises(InputError) as caught:
        load_model(ASIA, evidence=entries)
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_errors_give_the_range_of_unnamed_variables_and_states():
    plain = FactorGraph([2, 3], [])
    with pytest.raises(InputError, match="0 to 1"):
        condition(plain, ["x=0"])
    with pytest.raises(InputError, match="0 to 2"):
        condition(plain, ["1=3"])
    with pytest.raises(InputError, match="observed already"):
        condition(condition(plain, ["1=2"]), ["1=0"])
