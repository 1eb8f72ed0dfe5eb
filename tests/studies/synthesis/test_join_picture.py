from thesis_cli.studies.synthesis.join_picture import PROGRAM, draw, task
from thesis_cli.studies.synthesis.timing import timed
from thesis_cli.synthesis import prior
from thesis_cli.synthesis.language.task import check
from thesis_cli.synthesis.search.solver import Limits


def test_the_program_of_the_picture_is_found_by_the_join():
    assert check(PROGRAM, task())
    found, _ = timed("join", task(), prior.load(), Limits(len(PROGRAM), 20))
    assert found.program == PROGRAM


def test_the_values_of_the_picture_meet():
    texts = [text.get_text() for text in draw().axes[0].texts]
    assert "goal e\n[7, 21, -1, 13]" in texts
    assert any(text.endswith("look up y = x - e\n[2, 3, 4, 5]") for text in texts)
