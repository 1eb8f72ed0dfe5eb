"""Programs: the notation both ways, runs, and the exact size of the search space."""

import pickle
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.synthesis.strategies import inputs_of, programs
from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.language.dsl import ATTRIBUTES, BY_NAME, DEEPCODER, INT, LIST, OPERATIONS, Semantics, type_of
from thesis_cli.synthesis.language.program import Line, Program, name_of, parse, run, search_space

FIGURE_5_1 = """\
a <- [int]
b <- FILTER (<0) a
c <- MAP (*4) b
d <- SORT c
e <- REVERSE d"""


def line(name, *arguments):
    return Line(BY_NAME[name].id, arguments)


def test_the_notation_of_the_thesis():
    program = parse(FIGURE_5_1)
    assert program == Program(
        (LIST,), (line("FILTER (<0)", 0), line("MAP (*4)", 1), line("SORT", 2), line("REVERSE", 3))
    )
    assert str(program) == FIGURE_5_1
    assert program.one_line == "a <- [int]; b <- FILTER (<0) a; c <- MAP (*4) b; d <- SORT c; e <- REVERSE d"
    assert len(program) == 4
    assert program.types == (LIST,) * 5
    assert {ATTRIBUTES[place] for place in program.attributes} == {"FILTER", "(<0)", "MAP", "(*4)", "SORT", "REVERSE"}


@pytest.mark.parametrize(
    "text",
    [
        "a <- [int]; k <- int; c <- MAP (*(-1)) a; d <- ZIPWITH MIN a c; e <- TAKE k d",
        "a ← [int] | k ← int | c ← MAP (*(-1)) a | d ← ZIPWITH MIN a c | e ← TAKE k d",
        "x<-[ INT ]\n\n  n<-Int;\r\nc\t<- map(*(\u22121))x\nd <- Zipwith (min) x c;; y_2 <- take n d\n",
        "a <- [int]; k <- int; c <- MAP *-1 a; d <- ZIPWITH min a c; e <- TAKE k d",
        "a <- [int]; k <- int; MIN <- MAP ( * ( \u2013 1 ) ) a; d <- ZIPWITH MIN a MIN; e <- TAKE k d",
    ],
)
def test_ways_to_write_a_program(text):
    expected = (line("MAP (*(-1))", 0), line("ZIPWITH MIN", 0, 2), line("TAKE", 1, 3))
    assert parse(text) == Program((LIST, INT), expected)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_every_operation_is_read_as_it_is_written(operation):
    arguments = " ".join("k" if kind is INT else "a" for kind in operation.inputs)
    assert parse(f"k <- int; a <- [int]; b <- {operation.name} {arguments}").lines[0].operation == operation.id


@given(programs(longest=40))
def test_what_is_written_is_read(program):
    assert parse(str(program)) == parse(program.one_line) == program
    assert len(str(program).splitlines()) == len(program.inputs) + len(program)
    assert pickle.loads(pickle.dumps(program)) == program


def test_names_of_variables():
    assert [name_of(i) for i in (0, 25, 26, 51, 52, 26 * 11)] == ["a", "z", "a1", "z1", "a2", "a11"]
    names = [name_of(i) for i in range(500)]
    assert len(set(names)) == 500


GOOD = "a <- [int]\nk <- int\n"
BAD = [
    ("", "p: the program has 0 inputs"),
    (" ;\n|", "p: the program has 0 inputs"),
    (GOOD, "p: the program has no lines"),
    ("; ".join(f"{x} <- [int]" for x in "abcd") + "; e <- SORT a", "p: the program has 4 inputs"),
    ("b <- SORT a", "p:1: no variable 'a' is above this line; begin with an input"),
    (GOOD + "c <- SORT c", "p:3: no variable 'c' is above this line; above are a, k"),
    (GOOD + "c <- SORT A", "p:3: no variable 'A' is above this line"),
    (GOOD + "c <- SORT a; c <- SORT a", "p:3: the variable c is defined twice"),
    (GOOD + "c <- SORT a\nl <- [int]", "p:4: the input l is below a line"),
    (GOOD + "c <- SORT k", "p:3: SORT takes ([int]); k is int"),
    (GOOD + "\nc <- TAKE a k", "p:4: TAKE takes (int, [int]); a is [int], k is int"),
    (GOOD + "c <- HEAD a\nd <- ZIPWITH (+) a c", "p:4: ZIPWITH (+) takes ([int], [int]); a is [int], c is int"),
    (GOOD + "c <- ZIPWITH (+) a", "p:3: ZIPWITH (+) takes ([int], [int]); a is [int]"),
    (GOOD + "c <- SORT a a", "p:3: SORT takes ([int]); a is [int]"),
    (GOOD + "c <- SORT", "p:3: SORT takes ([int]); nothing is given"),
    (GOOD + "c <- SROT a", "p:3: unknown function 'SROT'; it must be one of HEAD, LAST, TAKE,"),
    (GOOD + "c <- float", "p:3: unknown function 'float'"),
    (GOOD + "c <- MAP (>0) a", "p:3: MAP has no lambda (>0); it must be one of (+1), (-1),"),
    (GOOD + "c <- COUNT a", "p:3: COUNT has no lambda a; it must be one of (>0), (<0),"),
    (GOOD + "c <- MAP", "p:3: MAP lacks its lambda"),
    (GOOD + "c <- SORT (+1) a", "p:3: no variable '(+1)' is above this line"),
    (GOOD + "c <- MAP (+1 a", "p:3: parentheses do not match"),
    (GOOD + "c <- MAP (+1)) a", "p:3: parentheses do not match"),
    (GOOD + "SORT a", "p:3: 'SORT a' is not a statement"),
    (GOOD + "c <-", "p:3: 'c <-' is not a statement"),
    (GOOD + "2 <- SORT a", "p:3: '2 <- SORT a' is not"),
    (GOOD + "x" * 10**5, "p:3: 'xxx"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_programs_are_refused_in_one_line(text, message):
    with pytest.raises(InputError) as caught:
        parse(text, "p")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


@given(st.text(st.sampled_from("ab<-;|()[]int*1 \nSORTMAP\x00é"), max_size=60) | st.text())
def test_any_text_is_a_program_or_refused(text):
    try:
        program = parse(text)
    except InputError as error:
        fine = "\n" not in str(error)
    else:
        fine = parse(str(program)) == program
    assert fine


@pytest.mark.parametrize(
    ("inputs", "lines", "message"),
    [
        ((), [line("SORT", 0)], "the program has 0 inputs"),
        ((LIST,) * 4, [line("SORT", 0)], "the program has 4 inputs"),
        ((LIST,), [], "the program has no lines"),
        ((LIST,), [Line(99, (0,))], "program:2: no operation 99; .* from 0 to 77"),
        ((LIST,), [Line(-1, (0,))], "program:2: no operation -1"),
        ((LIST,), [line("SORT", 1)], "program:2: no variable 1 is above this line"),
        ((LIST,), [line("SORT", -1)], "program:2: no variable -1"),
        ((LIST,), [line("SORT", 0), line("TAKE", 1, 0)], r"program:3: TAKE takes \(int, \[int\]\); b is \[int\], a is"),
    ],
)
def test_no_program_is_ill_typed(inputs, lines, message):
    with pytest.raises(InputError, match=f"^{message}"):
        Program(inputs, tuple(lines))


@given(programs(), st.data())
def test_a_run_is_the_chain_of_its_operations(program, data):
    inputs = data.draw(inputs_of(program))
    semantics = Semantics()
    values = list(inputs)
    for step in program.lines:
        arguments = [values[i] for i in step.arguments]
        values.append(None if None in arguments else semantics.apply(OPERATIONS[step.operation], *arguments))
    result = run(program, inputs, semantics)
    assert result == (None if None in values else values[-1])
    assert result is None or type_of(result) is program.output


def test_null_or_a_number_out_of_range_discards_a_program_that_does_not_use_it():
    assert run(parse("a <- [int]; b <- HEAD a; c <- SUM a"), ((),)) is None
    assert run(parse("a <- [int]; b <- MAP (**2) a; c <- SUM a"), ((16,),)) is None
    assert run(parse("a <- [int]; b <- MAP (**2) a; c <- SUM a"), ((16,),), Semantics(high=256)) == 16


def test_semantics_reach_every_line():
    program = parse("a <- [int]; b <- SORT a; c <- MAP (/2) b")
    assert run(program, ((-1, -3),)) == (-1, 0)
    assert run(program, ((-1, -3),), Semantics("floor")) == (-2, -1)
    assert run(program, ((-1, -3),), Semantics(low=-2)) is None


@pytest.mark.parametrize("inputs", [(), (1,), ((1,), (2,)), ((1,), 2, 3)])
def test_a_program_runs_on_inputs_of_its_types(inputs):
    with pytest.raises(InputError, match=r"^the inputs are \(.*\); the program takes \(\[int\], int\)$"):
        run(parse("a <- [int]; k <- int; b <- TAKE k a"), inputs)


@pytest.mark.parametrize(
    ("text", "unused"),
    [
        ("a <- [int]; b <- SORT a", ()),
        ("a <- [int]; k <- int; b <- SORT a", (1,)),
        ("a <- [int]; b <- SORT a; c <- HEAD b; d <- TAKE c a; e <- REVERSE b", (2, 3)),
        ("a <- [int]; b <- [int]; c <- ZIPWITH (-) a a; d <- SUM c", (1,)),
    ],
)
def test_unused_variables(text, unused):
    assert parse(text).unused == unused


@given(programs(), st.data())
def test_unused_variables_do_not_matter(program, data):
    """Leaving out any unused line leaves every output that there is."""
    first = len(program.inputs)
    idle = [number for number in program.unused if number >= first]
    kept = [number for number in range(first + len(program)) if number not in idle]
    lines = [program.lines[number - first] for number in kept if number >= first]
    shorter = Program(
        program.inputs, tuple(Line(x.operation, tuple(kept.index(i) for i in x.arguments)) for x in lines)
    )
    assert all(number < first for number in shorter.unused)
    inputs = data.draw(inputs_of(program))
    result = run(program, inputs)
    assert result is None or run(shorter, inputs) == result


def enumerated(types, length):
    """The same number by listing every program."""
    if not length:
        return 1
    total = 0
    for operation in DEEPCODER.operations:
        for arguments in product(range(len(types)), repeat=len(operation.inputs)):
            if tuple(types[i] for i in arguments) == operation.inputs:
                total += enumerated((*types, operation.output), length - 1)
    return total


@pytest.mark.parametrize("types", [(LIST,), (LIST, LIST), (INT, LIST), (LIST, INT, INT)])
def test_the_search_space_is_what_enumeration_counts(types):
    assert [search_space(types, length) for length in range(3)] == [enumerated(types, length) for length in range(3)]


def test_published_sizes_of_the_search_space():
    """The thesis's 2e6 (T = 3) is that of two lists, its 1e10 (T = 5) that of one."""
    one, two = (LIST,), (LIST, LIST)
    assert [search_space(one, length) for length in (3, 4, 5)] == [283_230, 49_546_296, 12_022_345_224]
    assert [search_space(two, length) for length in (3, 4)] == [1_784_448, 440_030_628]
    assert sum(search_space(one, length) for length in (1, 2, 3)) == 285_687
    assert sum(search_space(two, length) for length in (1, 2, 3)) == 1_794_446
