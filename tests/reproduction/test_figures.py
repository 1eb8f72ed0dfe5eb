import pytest

from tests.conftest import ROOT
from thesis_cli.base.errors import InputError
from thesis_cli.reproduction import figures
from thesis_cli.reproduction.registry import Checkout, load

PATHS = Checkout(ROOT).files()


@pytest.mark.parametrize("name", PATHS)
def test_committed_figures_are_what_their_csv_draws(tmp_path, name):
    """Twice, from the committed CSV alone: the same bytes."""
    experiment = load(PATHS[name])
    (tmp_path / f"{name}.csv").write_bytes((ROOT / "results" / f"{name}.csv").read_bytes())
    first = [p.read_bytes() for p in figures.draw(experiment, tmp_path)]
    for path in tmp_path.glob(f"{name}.p*"):
        path.unlink()
    assert [p.read_bytes() for p in figures.draw(experiment, tmp_path)] == first
    assert first[0].startswith(b"%PDF")
    assert first[1].startswith(b"\x89PNG")


def test_a_missing_or_broken_csv_is_one_line(tmp_path):
    with pytest.raises(InputError, match=r"fig-2-1.csv: no such result; .*reproduce fig-2-1"):
        figures.draw(load(PATHS["fig-2-1"]), tmp_path)
    (tmp_path / "fig-2-1.csv").write_text('a,b\n1,2\n"3\n')
    with pytest.raises(InputError, match="not a table"):
        figures.draw(load(PATHS["fig-2-1"]), tmp_path)
