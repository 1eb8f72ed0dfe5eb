import json
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import ROOT
from tests.tiers import examples
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.mechanisms.mechanism import Calibration
from thesis_cli.privacy.release.exponential import ChosenRows, Selection, SmallTable
from thesis_cli.privacy.release.files import parse_record, read_record
from thesis_cli.privacy.release.record import FORMAT, KernelRecord, PrivacyGuarantee, Record
from thesis_cli.privacy.release.release import synthetic
from thesis_cli.privacy.release.vectors import NoisyVector, noisy_vector
from thesis_cli.privacy.tables.schema import Boolean, Real, Schema

RELEASES = ROOT / "data" / "releases"
SCHEMA = Schema((Real("x", 0, 1), Boolean("é")))
NOISE = Calibration(mechanism="none", scale=1, granularity=0.0, epsilon=1.0, delta=1e-6, sensitivity=0.5)
CHOICE = Selection(1, 2, 3, "best", 1.0, 1.0, 0.0, 0.5)
WRITTEN = """\
{
 "format": "thesis-cli private release 1",
 "promise": {
  "epsilon": 1,
  "delta": 1e-06,
  "neighbours": "one row",
  "rows": 9
 },
 "method": "features",
 "size": 2,
 "basis": "random features",
 "entropy": 340282366920938463463374607431768211455,
 "kernel": {
  "gamma": [
   8.0
  ],
  "rho": [
   0.5
  ]
 },
 "schema": "[columns.x]\\ntype = \\"real\\"\\nlow = 0\\nhigh = 1\\n\\n[columns.\\"é\\"]\\ntype = \\"boolean\\"\\n",
 "public": [
  "all"
 ],
 "versions": {
  "numpy": "2"
 },
 "mechanism": {
  "mechanism": "none",
  "scale": 1,
  "granularity": 0.0,
  "epsilon": 1.0,
  "delta": 1e-06,
  "sensitivity": 0.5,
  "norm": 2,
  "rho": null,
  "analytic_scale": null,
  "classical_scale": null
 },
 "vector": [
  0.25,
  -1e-300
 ],
 "sha256": "1342a2a128700a870af5897c3e328202f2195fa1af6c7812deb00f60bf029d5a"
}
"""


VECTOR = NoisyVector((0.25, -1e-300))


def record_of(schema, output=VECTOR, **changes):
    """The record of a release of a schema's rows, with some fields as given."""
    record = Record(
        promise=PrivacyGuarantee(1, 1e-6, "one row", 9),
        method="features",
        size=len(output.vector) if isinstance(output, NoisyVector) else 3,
        basis="random features",
        entropy=2**128 - 1,
        kernel=KernelRecord((8.0,) * schema.reals, (0.5,) * len(schema.cardinalities)),
        schema_text=schema.to_toml(),
        public=("all",),
        versions={"numpy": "2"},
        mechanism=NOISE,
        output=output,
    )
    return replace(record, **changes)


def chosen():
    rows = SmallTable(((0.5,), (0.25,)), ((0,), (1,)))
    return record_of(SCHEMA, ChosenRows(rows), method="exponential", mechanism=CHOICE)


def test_what_is_written():
    assert record_of(SCHEMA).to_json() == WRITTEN


@pytest.mark.parametrize("record", [record_of(SCHEMA), record_of(SCHEMA, objective=0.5), chosen()])
def test_a_record_is_read_as_it_was_written(record):
    text = record.to_json()
    read = parse_record(text)
    assert read == record
    assert read.to_json() == text
    assert read.schema == SCHEMA


def test_the_noise_of_a_release():
    assert noisy_vector(record_of(SCHEMA)) == ((0.25, -1e-300), NOISE)
    with pytest.raises(InputError, match="no noisy vector"):
        _ = noisy_vector(chosen())


BAD = [
    ((), ("promise",), None, "promise is missing"),
    ((), ("promise", "rows"), None, "promise.rows is missing"),
    ((), ("mechanism", "norm"), None, "mechanism.norm is missing"),
    ((), ("promise", "rows"), 1.5, "promise.rows is 1.5"),
    ((), ("promise", "rows"), -1, "promise.rows is -1"),
    ((), ("promise", "rows"), True, "promise.rows is true"),
    ((), ("promise", "epsilon"), "1", 'promise.epsilon is "1"'),
    ((), ("promise",), [], "promise is \\[\\]; it must be an object"),
    ((), ("method",), "feature", "'features'"),
    ((), ("method",), [], "method is"),
    ((), ("entropy",), None, "entropy is missing"),
    ((), ("schema",), "[columns]", "schema: the schema has no columns"),
    ((), ("public",), "all", "public is"),
    ((), ("versions", "numpy"), 2, "versions.numpy is 2"),
    ((), ("vector",), [0.5, "x"], r"vector\[1\] is"),
    ((), ("vector",), [0.5, float("inf")], r"vector\[1\] is Infinity"),
    ((), ("vector",), [0.5], "vector has 1 numbers; it must have 2 of them"),
    ((), ("vector",), [0.5, 1e99], r"vector\[\] is 1e\+99"),
    ((), ("promise", "rows"), 0, "promise.rows is 0; it must be above 0"),
    ((), ("mechanism", "scale"), -1, "mechanism.scale is -1; it must be above 0"),
    ((), ("mechanism", "delta"), 1, "mechanism.delta is 1; it must be below 1"),
    ((), ("kernel", "gamma"), [], "kernel.gamma has 0 numbers; it must have 1"),
    ((), ("vector",), None, "by features has vector|vector and no rows"),
    ((), ("more",), 1, "more is an unknown key"),
    ((), ("mechanism", "sccale"), 1, "mechanism.sccale is an unknown key; 'scale'"),
    ((), ("method",), "exponential", "method 'exponential'"),
    ("chosen", ("rows", "codes"), [[0]], "rows do not fit"),
    ("chosen", ("rows", "reals"), [[0.5, 0.5]] * 2, "rows do not fit"),
    ("chosen", ("rows", "codes"), [[0], [2]], "rows has a code"),
    ("chosen", ("rows", "reals"), [[0.5], [2]], "rows has a coordinate"),
]


@pytest.mark.parametrize(("which", "path", "value", "message"), BAD, ids=[".".join(p) + str(v) for _, p, v, _ in BAD])
def test_what_is_wrong_is_one_line_that_names_file_and_key(which, path, value, message):
    content = json.loads((chosen() if which else record_of(SCHEMA)).to_json())
    del content["sha256"]
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    if value is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    with pytest.raises(InputError, match=message) as caught:
        parse_record(json.dumps(content), "r.json")
    assert str(caught.value).startswith("r.json: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["people", "people-features"])
def test_a_record_that_was_changed_is_refused_by_its_digest(name):
    text = read_record(RELEASES / f"{name}.json").to_json()
    content = json.loads(text)
    vector = content["stages"][0]["vector"] if "stages" in content else content["vector"]
    vector[0] += 1e-9
    with pytest.raises(InputError, match=r"^r.json: its content is not that of its sha256"):
        parse_record(json.dumps(content), "r.json")
    content = json.loads(text)
    parse_record(json.dumps(content))  # the layout does not matter
    del content["sha256"]
    parse_record(json.dumps(content))  # nor does the digest of a record of an earlier version


EDITS = ["delete", None, "x", 0, 10**9, 1e300, [1.0], [], "negative", "shorter", "twice"]


@settings(max_examples=examples(20))
@given(st.sampled_from(["people", "people-features"]), st.data())
def test_what_reads_an_edited_record_succeeds_or_says_what_is_wrong(name, data):
    """Here without a digest, so that every edit reaches the checks of the content."""
    content = json.loads((RELEASES / f"{name}.json").read_text())
    content.pop("sha256", None)
    inner, key = content, data.draw(st.sampled_from(sorted(content)))
    while isinstance(inner[key], dict | list) and inner[key] and data.draw(st.booleans()):
        inner = inner[key]
        key = data.draw(st.sampled_from(sorted(inner)) if isinstance(inner, dict) else st.integers(0, len(inner) - 1))
    match data.draw(st.sampled_from(EDITS)):
        case "delete":
            del inner[key]
        case "negative":
            inner[key] = -inner[key] if isinstance(inner[key], int | float) else -1
        case "shorter":
            inner[key] = inner[key][:-1] if isinstance(inner[key], list) else []
        case "twice":
            inner[key] = inner[key] * 2 if isinstance(inner[key], list) else [1, 1]
        case edit:
            inner[key] = edit
    with suppress(InputError):
        record = parse_record(json.dumps(content))
        assert len(synthetic(record, 5).points) == 5


@pytest.mark.parametrize("edit", ["shorter", "longer", "empty", "gone", "renamed", "more"])
def test_stages_have_the_shapes_that_schema_and_budget_give_them(edit):
    content = json.loads((RELEASES / "people.json").read_text())
    content.pop("sha256", None)
    for stage in (0, 1):
        changed = json.loads(json.dumps(content))
        stages = changed["stages"]
        vector = stages[stage]["vector"]
        if edit in ("shorter", "longer", "empty"):
            stages[stage]["vector"] = {"shorter": vector[:-1], "longer": [*vector, 0.0], "empty": []}[edit]
        elif edit == "renamed":
            stages[stage]["name"] = "x"
        else:
            changed["stages"] = stages[stage:][:1] if edit == "gone" else [*stages, stages[stage]]
        with pytest.raises(InputError, match=r"stages"):
            parse_record(json.dumps(changed))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"format": "other"}', "[" * 100_000])
def test_a_file_that_is_not_a_record(text):
    with pytest.raises(InputError, match=r"^r.json: it is not the record of a release"):
        parse_record(text, "r.json")


def test_the_format_has_a_name():
    assert json.loads(WRITTEN)["format"] == FORMAT
