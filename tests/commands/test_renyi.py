import csv
import json
import math
import os

import numpy as np
import pytest

import thesis_cli as tc
from tests.conftest import ROOT
from thesis_cli.base.errors import InputError
from thesis_cli.entropy.exact import exact_entropies
from thesis_cli.models import uai
from thesis_cli.models.factor_graph import Factor, FactorGraph, LogPotentials
from thesis_cli.models.files import load_model
from thesis_cli.models.spin_glass import random_spin_glass

MODELS = ROOT / "data/models"
P = np.array([0.5, 0.2, 0.2, 0.1])


@pytest.fixture
def p_csv(tmp_path):
    np.savetxt("p.csv", P)
    return "p.csv"


def write_grid(side, path):
    graph = random_spin_glass(side, side, 1.0, 1.0, "attractive", np.random.default_rng(1)).graph()
    with open(path, "w") as file:
        file.write(uai.write(graph))


def rows_of(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def estimates(cli, *arguments):
    result = cli("renyi", *arguments, "--json")
    assert result.status == 0, result.err
    return json.loads(result.out)["estimates"]


def within(estimate, truth):
    assert abs(estimate["value"] - truth) <= 5 * estimate["standard_error"] + 1e-9, (estimate, truth)


def test_entropies_of_a_model_by_every_trick(cli):
    truth = exact_entropies(load_model(MODELS / "ising-4x4.uai"), [0, 0.5, 1, 2, math.inf])
    for options in ([], ["--trick", "exponential"], ["--trick", "weibull", "--alpha", 0.7], ["--noise", "independent"]):
        found = estimates(
            cli, MODELS / "ising-4x4.uai", "--samples", 5000, "--seed", 1, "--out", "o.csv", "--overwrite", *options
        )
        assert [e["target"] for e in found] == ["H_0", "H_0.5", "H_1", "H_2", "H_inf"]
        for estimate, entropy in zip(found, truth.entropies, strict=True):
            within(estimate, entropy)
    table = rows_of("o.csv")
    assert [float(r["value"]) for r in table] == [e["value"] for e in found]
    assert {r["kind"] for r in table} == {"unbiased"}
    assert [r["order"] for r in table] == ["0.0", "0.5", "1.0", "2.0", "inf"]


def test_exact_alone_is_what_the_library_says(cli):
    found = estimates(cli, MODELS / "asia.uai", "--evidence", MODELS / "asia-xray.evid", "--exact", "--samples", 0)
    model = load_model(MODELS / "asia.uai", evidence=MODELS / "asia-xray.evid")
    truth = exact_entropies(model, [0, 0.5, 1, 2, math.inf]).entropies
    assert [e["value"] for e in found] == pytest.approx(list(truth), rel=1e-12)
    assert {e["kind"] for e in found} == {"exact"}


def test_probabilities_are_normalised_and_said_to_be(cli):
    np.save("p.npy", 3 * P)
    result = cli("renyi", "p.npy", "--probabilities", "--samples", 2000, "--seed", 1, "--exact", "--json")
    assert "warning: the probabilities sum to 3" in result.err
    found = json.loads(result.out)
    assert found["log_z"] == pytest.approx(math.log(3))
    exact = {e["target"]: e["value"] for e in found["estimates"] if e["kind"] == "exact"}
    assert exact["H_1"] == pytest.approx(-(P * np.log(P)).sum())
    for e in found["estimates"]:
        within(e, exact[e["target"]])
    strict = cli("renyi", "p.npy", "--probabilities", "--strict")
    assert strict.status == 2
    assert strict.err.startswith("error: p.npy: the probabilities sum to 3; ")


def test_probabilities_that_sum_to_one_pass_without_a_word(cli, p_csv):
    result = cli("renyi", p_csv, "--probabilities", "--strict", "--seed", 1)
    assert result.status == 0
    assert "warning" not in result.err


def test_log_potentials_that_look_like_probabilities_get_a_warning(cli, p_csv):
    assert "add --probabilities" in cli("renyi", p_csv, "--seed", 1).err


@pytest.mark.parametrize("options", [["--log-z", "exact"], ["--log-z", repr(math.log(7))]])
def test_a_known_partition_function_brings_a_control_variate(cli, options):
    np.savetxt("phi.csv", np.log(7 * P))
    found = estimates(cli, "phi.csv", "--order", 2, "--samples", 1000, "--seed", 1, *options)
    plain = estimates(cli, "phi.csv", "--order", 2, "--samples", 1000, "--seed", 1, "--no-control", *options)
    assert found[0]["control_saved"] > 0.5
    assert plain[0]["control_saved"] is None
    assert found[0]["standard_error"] < 0.75 * plain[0]["standard_error"]
    for e in (*found, *plain):
        within(e, -math.log((P**2).sum()))


@pytest.mark.parametrize(
    ("quantity", "truth"),
    [
        ("collision-probability", (P**2).sum()),
        ("inverse-participation-ratio", 1 / (P**2).sum()),
        ("shannon", -(P * np.log(P)).sum()),
        ("hartley", math.log(4)),
        ("min", -math.log(0.5)),
    ],
)
@pytest.mark.parametrize("options", [["--probabilities"], ["--noise", "independent"], []])
def test_quantities(cli, quantity, truth, options):
    np.savetxt("v.csv", P if "--probabilities" in options else np.log(P) + 3)
    found = estimates(cli, "v.csv", "--quantity", quantity, "--exact", "--samples", 4000, "--seed", 2, *options)
    assert found[0]["value"] == pytest.approx(truth)
    for e in found:
        within(e, truth)
    if found[0]["target"].startswith(("coll", "inv")):
        assert found[1]["kind"] == ("consistent" if not options else "unbiased")


def test_tsallis_entropies(cli, p_csv):
    found = estimates(cli, p_csv, "--probabilities", "--quantity", "tsallis", "--samples", 4000, "--seed", 1)
    truth = [3.0, (np.sqrt(P).sum() - 1) / 0.5, -(P * np.log(P)).sum(), 1 - (P**2).sum()]
    assert [e["target"] for e in found] == ["T_0", "T_0.5", "T_1", "T_2"]
    for e, t in zip(found, truth, strict=True):
        within(e, t)


def test_a_profile_is_a_curve_and_a_figure(cli, tmp_path, p_csv):
    arguments = (
        "renyi",
        p_csv,
        "--probabilities",
        "--profile",
        "--exact",
        "--samples",
        50,
        "--seed",
        1,
        "--out",
        "o.csv",
        "--figure",
        "o.png",
    )
    result = cli(*arguments)
    assert result.status == 0
    assert sorted(os.listdir(tmp_path)) == ["o.csv", "o.json", "o.pdf", "o.png", "p.csv"]
    table = rows_of("o.csv")
    curve = [float(r["order"]) for r in table[-60:]]
    assert curve == sorted(curve)
    assert curve[0] == 0
    assert curve[-1] == math.inf
    assert len(result.out.splitlines()) == 12  # model, nine estimates, samples, cost
    before = {name: (tmp_path / name).read_bytes() for name in ("o.csv", "o.png", "o.pdf")}
    cli(*arguments, "--jobs", 1)
    assert before == {name: (tmp_path / name).read_bytes() for name in before}


def test_shannon_and_its_bracket(cli):
    found = estimates(cli, MODELS / "asia.uai", "--shannon", "--samples", 20000, "--seed", 1, "--exact")
    exact, estimate, lower, upper = found
    assert [e["target"] for e in found] == ["H_1"] * 4
    within(estimate, exact["value"])
    assert (lower["kind"], upper["kind"]) == ("lower bound in expectation", "upper bound in expectation")
    assert lower["value"] < exact["value"] < upper["value"]


def test_low_rank_bounds_and_other_approximations(cli):
    options = ("--samples", 300, "--seed", 1, "--exact", "--bounds", "--bethe", "--trw", "--log-z", "exact")
    found = estimates(cli, MODELS / "ising-4x4.uai", "--order", 0.5, "--order", 1, "--order", 2, *options)
    exact = {e["target"]: e["value"] for e in found if e["kind"] == "exact"}
    assert [e["method"] for e in found if e["target"] == "H_2" and e["kind"] != "exact"] == [
        "gumbel, control variate",
        "(2 ln Z - U_2) / 1",
        "(2 ln Z - L_2) / 1",
        "Bethe",
        "TRW",
    ]
    for e in found:
        if "lower" in e["kind"]:
            assert e["value"] - 5 * e["standard_error"] <= exact[e["target"]]
        if "upper" in e["kind"] and e["target"] in exact:
            assert e["value"] + 5 * e["standard_error"] >= exact[e["target"]]
    assert sum(e["target"] == "H_1" for e in found) == 6
    assert sum(e["target"] == "H(x*)" for e in found) == 1


def test_a_model_beyond_enumeration_gets_the_exact_answer_or_bounds(cli):
    write_grid(7, "g.uai")
    found = estimates(cli, "g.uai", "--order", 1, "--seed", 1)
    assert [e["kind"] for e in found] == ["exact"]
    small = ("--memory", 0.001, "--order", 2, "--samples", 20, "--seed", 1)
    write_grid(18, "h.uai")
    result = cli("renyi", "h.uai", *small, "--json")
    assert "no exact answer: " in result.err
    assert [e["kind"].split()[0] for e in json.loads(result.out)["estimates"]] == ["lower", "upper"]


def test_integrals(cli, p_csv):
    f = np.array([1.0, 0.0, 5.0, 2.0])
    np.savetxt("f.csv", f)
    found = estimates(cli, p_csv, "--probabilities", "--integrand", "f.csv", "--samples", 3000, "--seed", 1, "--exact")
    assert found[0]["value"] == pytest.approx(math.log(P @ f))
    within(found[1], math.log(P @ f))
    asia = estimates(cli, MODELS / "asia.uai", "--integrand", MODELS / "asia.uai", "--seed", 1, "--exact")
    h_2 = exact_entropies(load_model(MODELS / "asia.uai"), [2.0]).entropies[0]
    assert asia[0]["value"] == pytest.approx(-h_2)
    within(asia[1], -h_2)


def test_an_integrand_that_is_zero_everywhere_on_the_support(cli):
    np.savetxt("phi.csv", [0.0, -np.inf])
    np.savetxt("f.csv", [0.0, 1.0])
    (found,) = estimates(cli, "phi.csv", "--integrand", "f.csv", "--seed", 1)
    assert (found["value"], found["kind"]) == (None, "exact")  # -inf is null in JSON


def test_an_integrand_is_conditioned_as_the_model_is(cli):
    evidence = ("--evidence", MODELS / "asia-xray.evid")
    (exact,) = estimates(
        cli, MODELS / "asia.uai", *evidence, "--integrand", MODELS / "asia.uai", "--exact", "--samples", 0
    )
    model = load_model(MODELS / "asia.uai", evidence=evidence[1])
    h_2 = exact_entropies(model, [2.0])
    assert exact["value"] == pytest.approx(h_2.log_z - h_2.entropies[0])


def test_a_wrong_ln_z_is_doubted(cli, p_csv):
    np.savetxt("phi.csv", np.log(P))
    assert "warning: ln Z is given as 7" in cli("renyi", "phi.csv", "--log-z", 7, "--seed", 1).err
    assert "warning" not in cli("renyi", "phi.csv", "--log-z", 0, "--seed", 1).err


def test_potentials_beyond_use_are_refused(cli):
    np.save("huge.npy", [1e308, -1e308, 5])
    result = cli("renyi", "huge.npy", "--seed", 1)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("error: huge.npy: a log-potential is 1e+308; ")
    found = estimates(cli, "huge.npy", "--exact", "--samples", 0)
    assert [e["value"] for e in found] == [pytest.approx(math.log(3)), 0, 0, 0, 0]


def test_one_sample_has_no_standard_error(cli, p_csv):
    result = cli("renyi", p_csv, "--probabilities", "--samples", 1, "--seed", 1)
    assert "warning: one perturbation" in result.err
    assert "standard error infinite" in result.out


def test_the_same_seed_gives_the_same_bytes(cli, tmp_path):
    for out, jobs in (("a.csv", 1), ("b.csv", 3)):
        cli("renyi", MODELS / "ising-4x4.uai", "--seed", 7, "--out", out, "--jobs", jobs, "--bounds", "--shannon")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_standard_input(cli, monkeypatch):
    import io
    import sys

    class Stream:
        buffer = io.BytesIO(b"0.5\n0.25\n0.25\n")

    monkeypatch.setattr(sys, "stdin", Stream())
    found = estimates(cli, "-", "--probabilities", "--format", "csv", "--exact", "--samples", 0, "--order", 2)
    assert found[0]["value"] == pytest.approx(-math.log(0.375))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--order", "-1"], "--order is -1; "),
        (["--order", "nan"], "--order is nan; "),
        (["--quantity", "shannon", "--order", "2"], "--order does not go with --quantity shannon; its order is 1"),
        (["--quantity", "tsallis", "--order", "inf"], "--order inf does not go with --quantity tsallis"),
        (["--quantity", "tsallis", "--trick", "gumbel"], "--trick does not go with --quantity tsallis"),
        (["--quantity", "collision-probability", "--profile"], "--profile does not go with --quantity collision"),
        (["--no-control"], "--no-control is given without --log-z"),
        (["--quantity", "collision-probability", "--no-control"], "--no-control does not go with --quantity collision"),
        (["--samples", "0"], "--samples is 0; add --exact, --bethe or --trw"),
        (["--samples", "0", "--exact", "--profile"], "--profile does not go with --samples 0"),
        (["--samples", "0", "--exact", "--design", "stratified"], "--design does not go with --samples 0"),
        (["--strict"], "--strict is given without --probabilities"),
        (["--probabilities", "--log-z", "0"], "--log-z does not go with --probabilities"),
        (["--log-z", "much"], "--log-z is much; "),
        (["--log-z", "inf"], "--log-z is inf; "),
        (["--share-above", "nan"], "--share-above is nan; "),
        (["--share-above", "1", "--noise", "independent"], "--share-above does not go with --noise independent"),
        (["--alpha", "1"], "--alpha does not go with --trick gumbel; it is for weibull and frechet"),
        (["--trick", "weibull", "--alpha", "-0.1"], "--alpha is -0.1; --trick weibull takes "),
        (["--trick", "frechet", "--alpha", "-3"], "--alpha is -3; --trick frechet takes "),
        (["--design", "stratified", "--trick", "exponential"], "--design stratified does not go with --trick exp"),
        (["--bounds"], "p.csv: --bounds takes models with variables"),
        (["--solver", "grid"], "p.csv: --solver does not go with "),
        (["--integrand", "p.csv", "--order", "2"], "--order does not go with --integrand; it is for entropies"),
        (["--integrand", "none.csv"], "none.csv: "),
        (["--confidence", "1"], "--confidence is 1; "),
        (["--max-configurations", "2"], "p.csv: a vector of 4 configurations"),
        (["--out", "p.csv"], "--out p.csv would overwrite the input"),
        (["--integrand", "./p.csv", "--out", "p.csv"], "--out p.csv would overwrite the input"),
        (["--shannon", "--quantity", "min"], "--shannon does not go with --quantity min"),
    ],
)
def test_bad_usage_is_one_line(cli, p_csv, tmp_path, arguments, message):
    result = cli("renyi", p_csv, *arguments)
    assert result.status == 2
    assert result.err.splitlines()[-1].startswith(f"error: {message}")
    assert result.out == ""
    assert os.listdir(tmp_path) == ["p.csv"]


def test_an_integrand_of_another_size_is_named(cli, p_csv):
    np.savetxt("f.csv", [1.0, 2.0])
    result = cli("renyi", p_csv, "--probabilities", "--integrand", "f.csv")
    assert result.status == 2
    assert result.err.startswith("error: f.csv: ")


def test_probabilities_are_of_vectors(cli):
    result = cli("renyi", MODELS / "asia.uai", "--probabilities")
    assert result.status == 2
    assert "--probabilities is for vectors" in result.err


@pytest.mark.parametrize("option", [["--trick", "exponential"], ["--noise", "independent"], ["--profile"]])
def test_noise_on_every_configuration_is_refused_for_a_model_too_large(cli, option):
    result = cli("renyi", MODELS / "asia.uai", "--max-configurations", 100, *option)
    assert result.status == 2
    assert f"too many for {option[0]}" in result.err


def test_a_function_of_an_entropy_has_no_bounds(cli):
    write_grid(18, "g.uai")
    result = cli("renyi", "g.uai", "--quantity", "collision-probability", "--memory", 0.001)
    assert result.status == 2
    assert result.err.splitlines()[-1].startswith("error: g.uai: ")


def test_python_takes_arrays_and_graphs():
    options = {"samples": 500, "seed": 1, "exact": True}
    found = tc.renyi(P, order=[0, 1, 2], probabilities=True, **options)
    assert [row.order for row in found.rows] == [0, 0, 1, 1, 2, 2]
    assert found.table.order.tolist() == [0, 0, 1, 1, 2, 2]
    assert [e.target for e in found.estimates[::2]] == ["H_0", "H_1", "H_2"]
    exact = exact_entropies(LogPotentials(np.log(P)), [0, 1, 2]).entropies
    np.testing.assert_allclose([e.value for e in found.estimates[::2]], exact)
    graph = load_model(MODELS / "asia.uai")
    same = tc.renyi(graph, order=2, **options)
    assert same.estimates == tc.renyi(MODELS / "asia.uai", order=[2.0], **options).estimates
    f = np.array([1.0, 0.0, 5.0, 2.0])
    integral = tc.renyi(P, probabilities=True, integrand=f, **options)
    assert integral.estimates[0].value == pytest.approx(math.log(P @ f))
    assert tc.renyi(np.log(P), log_z=0, order=1, seed=1).settings["log_z"] == 0
    for wrong in ([1, 2], True, math.nan):
        with pytest.raises(InputError, match="--log-z is"):
            tc.renyi(np.log(P), log_z=wrong)


def test_figures(cli):
    for options in (["--order", 1], ["--profile"], ["--integrand", MODELS / "asia.uai"]):
        result = cli("renyi", MODELS / "asia.uai", "--samples", 20, "--no-out", "--figure", "f.png", *options)
        assert result.status == 0, result.err
        assert os.path.getsize("f.png") > 5000
        os.remove("f.png")
        os.remove("f.pdf")


ONE = FactorGraph([1, 1, 1], [Factor((i,), np.array([phi])) for i, phi in enumerate((0.1, 0.2, 0.3))])
SURE = FactorGraph([2, 3], [Factor((0, 1), np.array([[-np.inf] * 3, [-np.inf, 0.3, -np.inf]]))])


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (ONE, {"exact": True, "log_z": "exact"}),
        (ONE, {"exact": True, "bounds": True, "log_z": "exact"}),
        (ONE, {"bethe": True, "trw": True, "samples": 0}),
        (SURE, {"exact": True, "log_z": "exact"}),
        (np.array([-np.inf, 0.3, -np.inf]), {"log_z": "exact"}),
    ],
)
def test_entropies_of_a_sure_configuration_are_zero_to_the_last_bit(model, options):
    for e in tc.renyi(model, seed=1, **options).estimates:
        if e.method not in ("gumbel", "gumbel, control variate"):
            assert (e.value, e.standard_error) == (0, 0), (e.method, e.target)
            assert not e.text().startswith("-")
