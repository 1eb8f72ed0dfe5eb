"""Experiments on program synthesis (Thesis chapter 5 and appendix D), against the solvers and networks themselves."""

import math

import numpy as np
import pytest

from tests.experiments.runs import assert_near, experiment, one, rows, run, whole
from thesis_cli.studies.synthesis.incidence import incidence
from thesis_cli.studies.synthesis.meanings import calibration
from thesis_cli.studies.synthesis.predictions import embedding, version
from thesis_cli.studies.synthesis.thesis_programs import SHOWN
from thesis_cli.synthesis import prior
from thesis_cli.synthesis.auto import Auto
from thesis_cli.synthesis.corpus.corpus_maker import random_tasks
from thesis_cli.synthesis.language.dsl import ATTRIBUTES, DEFAULT, OPERATIONS
from thesis_cli.synthesis.language.program import parse, search_space
from thesis_cli.synthesis.language.program import run as run_program
from thesis_cli.synthesis.language.task import Task
from thesis_cli.synthesis.meant.fitting import known_examples
from thesis_cli.synthesis.meant.meaning import meant
from thesis_cli.synthesis.networks.network_guide import network_guide
from thesis_cli.synthesis.networks.weights import load
from thesis_cli.synthesis.search.depth_first import ALL, NONE, DepthFirst, SortAndAdd
from thesis_cli.synthesis.search.solver import Limits
from thesis_cli.synthesis.training.corpora import held_out


def tasks_of(length, count):
    corpus = held_out(length, count)
    return [corpus.task(row) for row in range(count)]


def used_by(program):
    return {a for line in program.lines for a in OPERATIONS[line.operation].attributes}


def test_the_space_of_programs_is_counted_and_gone_through():
    found = run("search-space", part="size", signature=0, repeats=1)
    counted = rows(found, method="counted").set_index("length").programs
    assert counted.to_dict() == {length: search_space(("[int]",), length) for length in range(1, 6)}
    for method in ("examined in full", "examined lazily"):
        examined = rows(found, method=method).set_index("length")
        assert examined.programs.to_dict() == {length: counted[length] for length in (1, 2, 3)}
        assert (examined.seconds >= 0).all()


def test_random_tasks_are_solved_as_the_solver_does():
    found = run("search-space", part="solve", length=2, solvers=["dfs"], tasks=4, first=1, last=3, timeout=None)
    drawn = random_tasks(2, 4, np.random.default_rng(2))[1:]
    assert found.task.tolist() == [1, 2, 3]
    for row, labelled in zip(found.itertuples(), drawn, strict=True):
        solution = DepthFirst(ALL).solve(labelled.task, prior.load(), Limits(2))
        assert (row.programs, row.answer, row.proven) == (solution.nodes, len(solution.program), int(solution.proven))
        assert 0 <= row.found <= row.seconds


@pytest.mark.parametrize("name", ["exam", "mirror"])
def test_programs_of_the_appendix_are_found(name):
    shown = next(each for each in SHOWN if each.name == name)
    found = run("table-d-1", program=name, solver="dfs", repeats=2, timeout=None).iloc[0]
    solution = DepthFirst(ALL).solve(shown.task(), prior.load(), Limits(len(shown.program)))
    assert (found.lines, found.found, found.nodes) == (len(shown.program), len(solution.program), solution.nodes)
    assert (found.proven, found["where"]) == (int(solution.proven), shown.where)
    assert found.fits == (name == "mirror")  # the exam's listing does not give its example (docs/errata.md)
    answer = parse(found.answer)
    assert len(answer) == found.found
    for example in shown.task().examples:
        assert run_program(answer, example.inputs) == example.output


@pytest.mark.parametrize(
    ("name", "trained", "length", "search", "solver"),
    [
        ("table-5-1", 3, 3, "dfs, source", DepthFirst(NONE)),
        ("table-5-1", 3, 3, "sort-and-add", SortAndAdd(ALL)),
        ("fig-5-3a", 4, 5, "dfs", DepthFirst(ALL)),
    ],
)
def test_guided_searches_are_those_of_the_solvers(name, trained, length, search, solver):
    tasks = tasks_of(length, 4)[1:]
    common = {"trained": trained, "length": length, "search": search, "nodes": 20_000, "timeout": None}
    for guide in ("prior", "network"):
        found = run(name, **common, guide=guide, first=1, last=3)
        orders = [incidence(trained)] * 3 if guide == "prior" else network_guide(f"lines-{trained}").orders(tasks)
        assert found.task.tolist() == [1, 2, 3]
        for row, task, order in zip(found.itertuples(), tasks, orders, strict=True):
            solution = solver.solve(task, order, Limits(length, nodes=20_000))
            assert row.nodes == solution.nodes
            assert (row.answer == len(solution.program)) if solution.program else math.isnan(row.answer)
            assert (row.stopped == "nodes") == (solution.program is None)
        assert ((found.call == 0) | (guide == "network")).all()
        assert (found.seconds >= 0).all()


def test_figures_of_the_same_searches_share_their_runs():
    assert experiment("fig-d-2").run is experiment("table-5-1").run
    assert experiment("fig-d-3").run is experiment("fig-5-3a").run


def test_figure_5_3b_has_the_programs_until_a_fifth_is_solved():
    task = {"search": "sort-and-add, source", "trained": 1, "length": 2, "count": 10, "nodes": 100_000}
    found = run("fig-5-3b", **task, networks=[version("lines-1")]).iloc[0]
    tasks, solver = tasks_of(2, 10), SortAndAdd(NONE, again=True)
    nodes = {}
    for guide, orders in (("prior", [incidence(1)] * 10), ("network", network_guide("lines-1").orders(tasks))):
        solutions = [solver.solve(*pair, Limits(2, nodes=100_000)) for pair in zip(tasks, orders, strict=True)]
        nodes[guide] = sorted(s.nodes for s in solutions if s.program)[1]
        assert (found[guide], found[f"{guide}_exact"]) == (nodes[guide], 1)
    assert found.log10 == pytest.approx(math.log10(nodes["prior"] / nodes["network"]))
    assert (found.relation, found.tasks) == ("=", 10)


def test_predictions_are_those_of_the_networks():
    shown = next(each for each in SHOWN if each.where == "Figure 5.1")
    found = rows(whole("fig-5-2", redraws=20), training=0)
    probabilities = network_guide("lines-4").probabilities([shown.task()])[0]
    np.testing.assert_allclose(found.probability, probabilities, rtol=1e-4)
    assert found.attribute.tolist() == list(ATTRIBUTES)
    assert set(np.flatnonzero(found.used)) == used_by(shown.program)
    order, used = np.argsort(-probabilities, kind="stable"), found.used.to_numpy()
    loss = sum(used[i] and not used[j] for place, i in enumerate(order) for j in order[:place])
    assert (found.loss == loss).all()
    assert ((found.redrawn > 0.5) == (found["mean"] > 0.5))[(found["mean"] - 0.5).abs() > found.spread].all()
    assert found.losses.between(0, 34 * 33 / 4).all()
    assert (found.all_likely <= found.redrawn[found.used == 1].min() + 1e-12).all()

    nine = whole("fig-d-1", programs=9)
    for where, of in nine.groupby("where"):
        shown = next(each for each in SHOWN if each.where == where)
        np.testing.assert_allclose(of.probability, network_guide("lines-4").probabilities([shown.task()])[0], rtol=1e-4)
        assert set(np.flatnonzero(of.used)) == used_by(shown.program)
        np.testing.assert_allclose(of.prior, prior.load().probabilities)
    assert len(nine) == 9 * 34


def test_the_drawn_layers_are_those_of_the_thesis_and_hold_all_weights():
    found = whole("fig-d-4")
    length, dimensions, units = 20, 20, 256
    assert found.numbers.tolist() == [4 * length, 4 * (2 + length * dimensions), *[units] * 4, len(ATTRIBUTES)]
    assert found.pooled.tolist() == [0] * 5 + [1] * 2
    assert found.weights.sum() == sum(array.size for array in load("lines-4").arrays.values())


def test_the_embedding_is_decoded():
    found = whole("fig-d-5", permutations=20)
    integers, points = embedding("embedding-2")
    at = rows(found, part="point", training=0)
    assert at.integer.tolist() == integers.tolist()
    np.testing.assert_allclose(at[["x", "y"]], points)
    decoded = rows(found, part="decoded", decoder="neighbours", training=0).set_index("property")
    assert decoded.score.between(-1, 1).all()
    assert abs(decoded.chance["magnitude"]) < 5 * decoded.spread["magnitude"] / math.sqrt(20)
    assert (decoded.spread < 0.15).all()
    assert decoded.score["sign"] > decoded.chance["sign"] + 5 * decoded.spread["sign"]


@pytest.mark.parametrize(("name", "length", "weights"), [("fig-d-6", 3, "lines-3"), ("fig-d-7", 5, "lines-4")])
def test_confusions_are_means_of_false_positives(name, length, weights):
    found = whole(name, programs=40, resamples=5)
    corpus = held_out(length, 40)
    predicted = network_guide(weights).probabilities(tasks_of(length, 40))
    cells = rows(found, part="cell", training=0).set_index(["row", "column"])
    assert len(cells) == 34 * 33
    pairs = [("HEAD", "LAST"), ("MAP", "ZIPWITH"), ("SORT", "(+)"), ("(+)", "SORT")]
    for row, column in pairs:
        i, j = ATTRIBUTES.index(row), ATTRIBUTES.index(column)
        of = [p for p, uses in zip(predicted, corpus.attributes, strict=True) if uses[i] and not uses[j]]
        cell = cells.loc[(row, column)]
        assert cell["count"] == len(of)
        assert math.isnan(cell.value) if not of else cell.value == pytest.approx(np.mean([p[j] for p in of]), rel=1e-4)
    everything = cells.value.mean()
    against = rows(found, part="group", column="all cells", training=0)
    np.testing.assert_allclose(against.average[:-1], everything, rtol=1e-9)


def test_lemma_2_is_right_for_independent_labels():
    given = {"labels": 3, "distributions": 5, "part": "orders"}
    free = run("lemma-2", **given, kind="independent")
    loss = free[free.what.str.startswith("loss")]
    assert len(loss) == 10
    np.testing.assert_allclose(loss.value, 0, atol=1e-12)
    tied = run("lemma-2", **given, kind="strongly correlated")
    for length in range(1, 6):
        for name in ("loss", "power", "cost"):
            most = one(tied, what=f"{name}, most", length=length).value
            share = one(tied, what=f"{name}, share", length=length).value
            assert (most > 1e-9) == (share > 0)
            assert share <= 1
            assert 5 * share == round(5 * share)
    assert tied.value.max() > 0.01


def test_the_inequalities_of_lemma_2_are_gone_through():
    found = run("lemma-2", part="bounds").set_index(["what", "length"]).value
    example = {"C_P": 6, "C_A": 11, "D": 5, "L_r": 7}
    assert {name: found[name, 0] for name in example} == example
    active = np.arange(1.0, 35)
    for length in range(1, 6):
        total = np.cumsum(active**length)
        assert found["total over C_A^(T+1)", length] == pytest.approx((total / active ** (length + 1)).max())
        assert found["C_A^(T+1) over C C_A^T", length] == 1
        assert found["C C_A^T over total", length] == pytest.approx(np.median(34 * active**length / total))
        assert found["total less C^T D", length] <= 0
    assert found["least L_r - D", 0] == found["least C_P D - L_r", 0] == 0


def test_rank_losses_stand_beside_the_programs_examined():
    for guide in ("prior", version("lines-3")):
        found = run("lemma-2", part="searches", guide=guide, programs=1)
        corpus, tasks = held_out(3, 1), tasks_of(3, 1)
        orders = [prior.load()] if guide == "prior" else network_guide("lines-3").orders(tasks)
        for row, (task, order) in enumerate(zip(tasks, orders, strict=True)):
            uses = [bool(corpus.attributes[row, a]) for a in order.attributes]
            last = max(place for place, use in enumerate(uses) if use) + 1
            loss = sum(not other for place, use in enumerate(uses) if use for other in uses[:place])
            nodes = SortAndAdd(NONE, again=True).solve(task, order, Limits(3)).nodes
            exact = {"loss": loss, "active": last, "relevant": sum(uses), "nodes": nodes}
            assert {name: one(found, what=name, length=row).value for name in exact} == exact
    ratio = one(run("lemma-2", part="programs", length=2, count=100), what="cost by marginals over improved")
    assert_near(ratio.value, ratio.standard_error, 1, rounding=0.1)


def test_alternatives_are_the_searches_and_the_encoders_themselves():
    weights = [version("program"), version("lines-3")]
    found = run("alternatives", part="search", weights=weights, length=2, first=1, programs=1, timeout=None)
    (task,) = tasks_of(2, 2)[1:]
    for search, solver in (("dfs", DepthFirst(ALL)), ("dfs, unpruned", DepthFirst(NONE))):
        orders = {"prior": prior.load(), "network": network_guide("lines-3").orders([task])[0]}
        for guide, order in orders.items():
            row, solution = one(found, name=search, order=guide), solver.solve(task, order, Limits(2))
            assert (row.nodes, row.found, row.task, row.length) == (solution.nodes, 1, 2, 2)
            assert row.seconds >= 0


def test_guidance_has_the_searches_themselves():
    settings = {"calls": [2], "searches": [["dfs", ["prior", "network"], 3, 0, 3, 3, None, None]]}
    call, searches = experiment("guidance").tasks(settings)
    found, tasks = run("guidance", **searches), tasks_of(3, 3)
    for guide, orders in (("prior", [incidence(4)] * 3), ("network", network_guide("lines-4").orders(tasks))):
        of = rows(found, guide=guide)
        for row, task, order in zip(of.itertuples(), tasks, orders, strict=True):
            solution = DepthFirst(ALL).solve(task, order, Limits(3))
            assert (row.nodes, row.answer, row.length) == (solution.nodes, len(solution.program), 3)
            assert 0 <= row.found <= row.seconds
        assert ((of.call == 0) | (guide == "network")).all()
    called = run("guidance", **call).iloc[0]
    assert (called.search, called.task) == ("one call", 2)
    assert called.seconds >= 0


def test_answers_are_those_of_the_posterior_judged_on_fresh_inputs():
    found = run("meant", length=2, kind="small", first=1, programs=2, examples=[1, 3], asked=3)
    order, limits = prior.load(), Limits(6)
    for number in (1, 2):
        rng = np.random.default_rng([*np.random.SeedSequence(0).generate_state(4), number])
        program = held_out(2).program(number)
        known = known_examples(program, "small", 3, rng)
        for count in (1, 3):
            task = Task("t", tuple(known[:count]))
            answer = meant(Auto().solve(task, order, limits), task, order, limits, DEFAULT)
            row = one(found, program=number, examples=count)
            assert row.share == pytest.approx(answer.meaning.shares[0], abs=1e-12)
            assert row.unseen == pytest.approx(answer.meaning.unseen, abs=1e-12)
            assert row.behaviours == answer.meaning.behaviours + 1
            right = all(run_program(answer.program, e.inputs) == e.output for e in known[3:])
            assert row.meant == right
            assert (row.questions >= 0) == (count == 3)
    assert found.collected.min() == 1


def test_shares_are_compared_with_how_often_they_are_right():
    found = calibration(np.array([0.11, 0.19, 0.95, 1.0]), np.array([0.0, 1, 1, 1]))
    assert found == pytest.approx(np.array([[0.15, 0.5, 2], [0.975, 1, 2]]))
