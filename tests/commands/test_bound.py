import csv
import json
import math
import os

import numpy as np
import pytest

import thesis_cli as tc
from tests.conftest import MODELS
from thesis_cli.commands import bound
from thesis_cli.commands.ln_z.estimates import LnZOptions
from thesis_cli.commands.ln_z.methods import METHODS, methods_of
from thesis_cli.inference import choose
from thesis_cli.inference.exact import exact_log_partition_function
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.files import load_model
from thesis_cli.models.spin_glass import random_spin_glass

ISING, ASIA = MODELS / "ising-4x4.uai", MODELS / "asia.bif"


def glass():
    return random_spin_glass(3, 3, 1.0, 0.5, "mixed", np.random.default_rng(0)).graph()


@pytest.mark.parametrize("method", methods_of("bound"))
def test_each_method_bounds_its_side(method):
    clamp = {"clamp": [0, 5]} if method == "clamp" else {}
    found = tc.bound(ISING, method=method, seed=1, exact=True, **clamp)
    exact, bounded = found.estimates
    assert exact.kind == "exact"
    slack = 5 * bounded.standard_error
    if METHODS[method].guarantee == "upper bound":
        assert "upper bound" in bounded.kind
        assert bounded.value > exact.value - slack
    if METHODS[method].guarantee == "lower bound":
        assert "lower bound" in bounded.kind
        assert bounded.value < exact.value + slack
    solved = "solver" in METHODS[method].heeds
    assert found.map_calls == {"max-marginal": 32, "clamp": 400}.get(method, 100 * solved)


def test_mini_buckets_give_both_sides_and_samples_an_interval_and_propagation_is_near():
    graph = random_spin_glass(6, 6, 1.0, 1.0, "mixed", np.random.default_rng(0)).graph()
    exact, upper, lower = tc.bound(graph, method="mini-bucket", table_size=8, exact=True).estimates
    assert (upper.kind, lower.kind) == ("upper bound", "lower bound")
    assert lower.value < exact.value < upper.value
    how = {"method": "importance", "table_size": 8, "seed": 1, "confidence": 0.9}
    sampled, above = tc.bound(graph, **how).estimates
    assert above.kind == "upper bound"
    assert exact.value < above.value
    assert sampled.low < exact.value < sampled.high
    assert sampled == tc.bound(graph, **how).estimates[0]
    near = tc.bound(graph, method="junction-graph", table_size=8).estimates[0]
    assert (near.kind, near.value) == ("approximation", pytest.approx(exact.value, abs=1))
    assert "standard error 0.0" in sampled.text()


def test_a_time_limit_that_is_not_reached_changes_nothing():
    graph = random_spin_glass(6, 6, 1.0, 1.0, "mixed", np.random.default_rng(0)).graph()
    limited, free = (tc.bound(graph, method="mini-bucket", **given).estimates for given in ({"time_limit": 600}, {}))
    assert limited == free


def test_methods_have_random_numbers_of_their_own_and_a_clamped_model_those_of_the_unary_bound():
    names = ("unary", "average", "subset", "importance", "clamp")
    options = [LnZOptions(samples=1, seed=7, stream=METHODS[name].stream) for name in names]
    words = [tuple(each.noise().generate_state(4)) for each in options]
    assert len(set(words)) == 4
    assert words[0] == words[-1]


def test_auto_gives_a_bound_on_either_side_that_needs_no_samples():
    found = tc.bound(ISING, seed=1)
    assert [e.method for e in found.estimates] == ["TRW", "max-marginal"]
    assert found.settings["method"] == "trw and max-marginal"
    exact, _ = exact_log_partition_function(load_model(ISING))
    upper, lower = found.estimates
    assert lower.value < exact < upper.value


@pytest.mark.parametrize(
    ("options", "methods"),
    [
        ({"alpha": [0.1]}, ["U(0.1)", "L(0.1)"]),
        ({"samples": 10}, ["U(0)", "L(0)"]),
        ({"solver": "elimination"}, ["U(0)", "max-marginal"]),
        ({"clamp": [3]}, ["U(0), 1 clamped"]),
        ({"subset": ["0,1", "2,3", "4,5", "6,7,8"]}, ["U(0)"]),
        ({"confidence_method": "concentration"}, ["U(0)", "L(0)"]),
    ],
)
def test_auto_chooses_among_methods_that_heed_the_options(options, methods):
    assert [e.method for e in tc.bound(glass(), seed=1, **options).estimates] == methods


def test_auto_samples_where_max_marginals_are_many(monkeypatch):
    monkeypatch.setattr(bound, "MOST_PROBLEMS", 17)
    assert [e.method for e in tc.bound(glass(), seed=1).estimates] == ["TRW", "L(0)"]


def test_alphas_share_their_map_calls(cli, tmp_path):
    result = cli("bound", ISING, "--method", "unary", "--alpha", 0, "--alpha", -0.1, "--alpha", 0, "--seed", 1)
    assert [line.split("(")[1][0] for line in result.out.splitlines() if "U(" in line] == ["U", "U"]
    assert "100 MAP calls" in result.out
    with open(tmp_path / "results/runs/bound-ising-4x4-unary.csv") as file:
        rows = list(csv.DictReader(file))
    assert [(r["method"], r["seed"], r["map_calls"]) for r in rows] == [("U(0)", "1", "100"), ("U(-0.1)", "1", "100")]
    clamped = tc.bound(ISING, method="clamp", clamp="5", alpha=[0, 0.1], seed=1)
    assert clamped.map_calls == 200
    alone = tc.bound(ISING, method="clamp", clamp="5", alpha=0.1, seed=1)
    assert clamped.estimates[1] == alone.estimates[0]


@pytest.mark.parametrize(
    "options",
    [
        {"method": "unary"},
        {"method": "average", "alpha": [0, -0.05]},
        {"method": "subset", "alpha": [0, 0.1]},
        {"method": "clamp", "clamp": [0, 1], "alpha": [0, -0.05]},
        {"method": "clamp", "clamp": ["0,5", 7], "alpha": [0, -0.05, 0.1, 0.1]},
        {"alpha": [0, -0.05]},
        {"method": "max-marginal"},
        {"method": "trw"},
    ],
)
def test_the_work_is_the_number_of_problems_that_the_solver_gets(monkeypatch, options):
    solved, map_solver = [], choose.map_solver

    def counting(*arguments, **options):
        solver, why = map_solver(*arguments, **options)
        maximise = solver.maximise
        monkeypatch.setattr(solver, "maximise", lambda noise: solved.append(len(noise)) or maximise(noise))
        return solver, why

    monkeypatch.setattr(choose, "map_solver", counting)
    found = tc.bound(glass(), seed=1, jobs=1, **options)
    assert found.map_calls == sum(solved)
    if "method" in options:
        assert {e.map_calls for e in found.estimates} == {sum(solved)}


def test_variables_are_numbers_or_names():
    by_name = tc.bound(ASIA, method="clamp", clamp=["lung,bronc"], seed=1)
    names = load_model(ASIA).names.variables
    numbers = [names.index("lung"), names.index("bronc")]
    assert by_name.estimates == tc.bound(ASIA, method="clamp", clamp=numbers, seed=1).estimates
    by_pair = tc.bound(ASIA, subset=[",".join(names[:4]), ",".join(names[4:])], seed=1)
    assert by_pair.estimates == tc.bound(ASIA, subset=["0,1,2,3", "4,5,6,7"], seed=1).estimates
    assert by_pair.estimates == tc.bound(ASIA, subset=[(0, 1, 2, 3), range(4, 8)], seed=1).estimates


def test_every_variable_clamped_is_exact():
    exact, found = tc.bound(glass(), clamp=list(range(9)), samples=1, exact=True, seed=1).estimates
    assert found.value == pytest.approx(exact.value, rel=1e-12)


def test_log10(cli):
    found = json.loads(cli("bound", ASIA, "--evidence", "xray=yes", "--quantity", "log10Z", "--exact", "--json").out)
    exact = found["estimates"][0]
    assert exact["target"] == "log10 Z"
    assert exact["value"] == pytest.approx(math.log10(0.11029004), rel=1e-7)
    natural = tc.bound(ISING, alpha=0.1, seed=1).estimates[0]
    decimal = tc.bound(ISING, alpha=0.1, seed=1, quantity="log10Z").estimates[0]
    for name in ("value", "standard_error", "low", "high"):
        assert getattr(decimal, name) == pytest.approx(getattr(natural, name) / math.log(10), rel=1e-14)


def test_the_uai_file_has_the_exact_answer_or_the_first_bound(cli, tmp_path):
    assert cli("bound", ISING, "--exact", "--uai", "i.PR", "--no-out").status == 0
    exact, _ = exact_log_partition_function(load_model(ISING))
    assert (tmp_path / "i.PR").read_text() == f"PR\n{exact / math.log(10):.17g}\n"
    found = tc.bound(ISING, uai=tmp_path / "b.PR", seed=1)
    assert float((tmp_path / "b.PR").read_text().split()[1]) == pytest.approx(found.estimates[0].in_log10().value)


def test_an_exact_answer_that_cannot_be_had_is_left_out(cli):
    result = cli("bound", ISING, "--exact", "--memory", 0.001, "--max-configurations", 10, "--json", "--seed", 1)
    assert result.status == 0
    assert [e["method"] for e in json.loads(result.out)["estimates"]][-1] == "max-marginal"


@pytest.mark.parametrize("exact", [False, True])
def test_the_figure_has_a_row_for_each_bound(exact):
    figure = tc.bound(ISING, alpha=[0, 0.1], seed=1, exact=exact).figure()
    (axes,) = figure.axes
    assert [text.get_text().split("\n")[0] for text in axes.get_yticklabels()] == ["U(0)", "U(0.1)", "L(0)", "L(0.1)"]
    assert len(axes.lines) > 4 * exact


def test_a_bound_that_rests_on_few_samples_says_that_its_error_is_uncertain(cli):
    arguments = ("--method", "unary", "--alpha", 0, "--alpha", -0.49, "--any-alpha", "--samples", 20, "--seed", 1)
    result = cli("bound", ISING, *arguments, "--json")
    warnings = [line for line in result.err.splitlines() if "uncertain" in line]
    assert len(warnings) == 1
    assert "U(-0.49)" in warnings[0]
    assert "U(0)" not in warnings[0]
    kinds = [e["kind"] for e in json.loads(result.out)["estimates"]]
    assert [kind.endswith("error uncertain") for kind in kinds] == [False, True]
    assert "uncertain" not in cli("bound", ISING, *arguments[:4], "--samples", 20).err


def test_concentration_is_wider_than_the_delta_method():
    normal, sure = (
        tc.bound(ISING, method="unary", seed=1, confidence_method=name).estimates[0]
        for name in ("normal", "concentration")
    )
    assert normal.value == sure.value
    assert sure.high - sure.low > normal.high - normal.low


@pytest.mark.parametrize("method", methods_of("bound"))
def test_an_impossible_model_is_an_error(cli, tmp_path, method):
    (tmp_path / "m.uai").write_text("MARKOV 1 2 2 1 0 1 0 2 1 0 2 0 1")
    clamp = ["--clamp", 0] if method == "clamp" else []
    result = cli("bound", "m.uai", "--method", method, *clamp, "--quiet")
    assert result.status == 2
    assert result.err.startswith("error: m.uai: no configuration is possible")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([ISING, "--method", "trw", "--alpha", "0.1"], "--alpha does not go with --method trw"),
        ([ISING, "--method", "average", "--clamp", "1"], "--clamp does not go with --method average"),
        ([ISING, "--method", "unary", "--subset", "0,1"], "--subset does not go with --method unary"),
        ([ISING, "--method", "bethe", "--solver", "grid"], "--solver does not go with --method bethe"),
        ([ISING, "--method", "trw", "--memory", "1"], "--memory does not go with --method trw"),
        ([ISING, "--method", "clamp"], "--method clamp needs --clamp"),
        ([ISING, "--clamp", "1", "--subset", "0,1"], "--clamp does not go with --subset"),
        (
            [ISING, "--clamp", "1", "--confidence", ".5", "--confidence-method", "concentration"],
            "--confidence-method does not go with --clamp",
        ),
        ([ISING, "--max-configurations", "5"], "--max-configurations is given without --exact"),
        ([ISING, "--alpha", "1e300"], "--alpha is 1e300"),
        ([ISING, "--alpha", "-1"], "--alpha is -1"),
        ([ISING, "--alpha", ".1", "--confidence-method", "concentration"], "--confidence-method concentration"),
        ([ISING, "--clamp", "x"], f"{ISING}: there is no variable 'x'"),
        ([ASIA, "--clamp", "lungs"], f"{ASIA}: there is no variable 'lungs'; 'lung'"),
        ([ISING, "--subset", "0,0"], f"{ISING}: subset 0 is (0, 0)"),
        ([ISING, "--subset", "0,1"], f"{ISING}: variable 2 is in no --subset"),
        ([ISING, "--method", "unary", "--alpha", "-0.18"], f"{ISING}: alpha is -0.18"),
        ([MODELS / "zipf-1000.csv"], f"{MODELS / 'zipf-1000.csv'}: is a vector"),
        ([ASIA, "--solver", "graph-cut"], f"{ASIA}: "),
        ([ISING, "--uai", ISING], "--uai "),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(cli, tmp_path, arguments, message):
    result = cli("bound", *arguments, "--seed", 1, "--quiet")
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("error: " + message)
    assert result.err.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_a_single_configuration():
    found = tc.bound(FactorGraph([1], [Factor((0,), np.array([0.5]))]), alpha=0.1, seed=1)
    assert [e.value for e in found.estimates] == [0.5, 0.5]
    assert [e.value for e in tc.bound(FactorGraph([1, 1], [])).estimates] == [0, 0]


def test_ln_z_of_normalised_models_is_zero():
    chain = [Factor((0,), np.log([0.1, 0.9])), Factor((0, 1), np.log([[0.3, 0.7], [0.6, 0.4]]))]
    model = FactorGraph([2, 2, 2], [*chain, Factor((1, 2), np.log([[0.1, 0.9], [0.25, 0.75]]))])
    assert exact_log_partition_function(model)[0] == 0
    for method in ("trw", "bethe"):
        assert [e.value for e in tc.bound(model, method=method, exact=True).estimates] == [
            0,
            pytest.approx(0, abs=1e-9),
        ]
    whole = tc.bound(model, method="clamp", clamp=[0, 1, 2], alpha=[0, 0.1], samples=20, seed=1)
    assert [(e.value, e.standard_error) for e in whole.estimates] == [(0, 0), (0, 0)]
    assert tc.estimate_z(np.log([0.1, 0.2, 0.7]), exact=True, samples=0).estimates[0].value == 0
