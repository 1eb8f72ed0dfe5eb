"""Tasks: input-output examples that a program must fit, read from JSON or JSON Lines, or from
Python."""

from __future__ import annotations

import json
import reprlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from thesis_cli.base.errors import InputError, about
from thesis_cli.synthesis.language.dsl import DEFAULT, LIST, LONGEST, MOST_INPUTS, Semantics, Type, Value, type_of
from thesis_cli.synthesis.language.program import Program, run, signature

MAX_BYTES = 2**28
"""Largest file that is read."""

_FORM = '{"inputs": [[3, 1, 2]], "output": [1, 2, 3]}'


@dataclass(frozen=True)
class Example:
    """Inputs, and the output that a program must give."""

    inputs: tuple[Value, ...]
    output: Value


@dataclass(frozen=True)
class Task:
    """At least one example, all of the same types; `load_tasks` and `read_task` check what they
    read.

    Attributes
    ----------
    name : name in messages and tables.
    program : the program that made the examples, as text that nobody has checked; empty if it is not
        known. Searches do not see it.
    confirmed : how many of the last examples were questions to which the answer gave the right output.
    """

    name: str
    examples: tuple[Example, ...]
    program: str = field(default="", compare=False, repr=False)
    confirmed: int = field(default=0, compare=False, repr=False)

    @property
    def inputs(self) -> tuple[Type, ...]:
        """Types of the inputs."""
        return tuple(map(type_of, self.examples[0].inputs))

    @property
    def output(self) -> Type:
        """Type of the output."""
        return type_of(self.examples[0].output)

    def with_answer(self, example: Example, program: Program, semantics: Semantics = DEFAULT) -> Task:
        """The task with the answer to a question as a further example, which confirms a program or refutes it."""
        confirmed = self.confirmed + 1 if run(program, example.inputs, semantics) == example.output else 0
        return replace(self, examples=(*self.examples, example), confirmed=confirmed)

    def to_json(self, about: Mapping[str, object] | None = None) -> str:
        """One line that `load_tasks` reads, with what else there is to say of the task."""
        examples = [{"inputs": example.inputs, "output": example.output} for example in self.examples]
        return json.dumps({"name": self.name, **(about or {}), "examples": examples}, ensure_ascii=False)


@dataclass(frozen=True)
class BadTask:
    """A task that cannot be read.

    Attributes
    ----------
    name : name that the task would have.
    reason : the problem.
    """

    name: str
    reason: InputError


def check(program: Program, task: Task, semantics: Semantics = DEFAULT) -> bool:
    """Whether a program takes the inputs of a task and fits all its examples."""
    return program.inputs == task.inputs and all(
        run(program, example.inputs, semantics) == example.output for example in task.examples
    )


def load_tasks(path: str | Path, semantics: Semantics = DEFAULT) -> list[Task]:
    """Read a file of tasks. Raises InputError for no such file, not UTF-8, not JSON, no task, or a
    bad one. It names the file, the line (of JSON Lines) and the example.

    Parameters
    ----------
    path : JSON, one task, or JSON Lines, a task a line; `-` reads standard input. `read_task`
        describes tasks. A task without a name gets that of the file, with its line if there are
        several.
    semantics : examples must keep to its range of numbers and length of lists.
    """
    return [_good(task) for task in _load(path, semantics)]


def _good(task: Task | BadTask) -> Task:
    """A task; raises what is wrong with it."""
    if isinstance(task, BadTask):
        raise task.reason
    return task


def _load(path: str | Path, semantics: Semantics, skipping: bool = False) -> Iterator[Task | BadTask]:
    """The tasks of a file; a line of JSON Lines may be bad, the first only if bad ones are skipped."""
    source = "standard input" if str(path) == "-" else str(path)
    stem = "task" if str(path) == "-" else Path(path).stem
    try:
        text = _read(path).decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"it cannot be read ({error.strerror})", "give a JSON file", source=source) from None
    except UnicodeDecodeError:
        raise InputError("it is not UTF-8", "give JSON or JSON Lines in UTF-8", source=source) from None
    except InputError as error:
        raise error.at(source) from None
    rows = [(line, row) for line, row in enumerate(text.split("\n"), 1) if row.strip()]
    if not rows:
        raise InputError("it is empty", f"it must have examples such as [{_FORM}]", source=source)
    if _are_lines(text, rows, skipping):
        for line, row in rows:
            name = f"{stem}-{line}"
            try:
                yield _parse(row, name, semantics, source, line)
            except InputError as error:
                yield BadTask(name, error)
    else:
        yield _parse(text.rstrip(), stem, semantics, source)


def read_task(content: object, name: str, semantics: Semantics = DEFAULT) -> Task:
    """A task from what JSON holds.

    Parameters
    ----------
    content : `{"name": ..., "examples": [...]}`, or the list of examples alone. The name is optional,
        as is a program, text, and other keys are ignored. An example is `{"inputs": [...],
        "output": ...}` or a pair `[[...], ...]` of these.
    name : name of a task that has none.

    Raises
    ------
    InputError : there are no examples; an example has no inputs, more than 3, or no list among
        them; a value is neither a whole number in the range nor a list of such numbers; a list is
        too long; examples have different types or contradict each other. It names the example.
    """
    program = ""
    if isinstance(content, dict):
        if "examples" not in content:
            raise InputError("the task has no 'examples'", f'write {{"examples": [{_FORM}, ...]}}')
        name = content.get("name", name)
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise InputError(f"the task's name is {_show(name)}", "it must be text of one line")
        program = content["program"] if isinstance(content.get("program"), str) else ""
        content = content["examples"]
    if not isinstance(content, list):
        raise InputError(f"no examples: {_show(content)}", f"give a list of examples such as {_FORM}")
    if not content:
        raise InputError("the task has no examples", "it must have at least one")
    examples = tuple(_example(entry, f"example {i}", semantics) for i, entry in enumerate(content, 1))
    _check_types(examples)
    _check_agreement(examples)
    return Task(name, examples, program)


def tasks_of(source: object, semantics: Semantics = DEFAULT) -> list[Task]:
    """Tasks from what a Python caller has. Raises InputError as `load_tasks` and `read_task` do.

    Parameters
    ----------
    source : a path, as for `load_tasks`; a task; what `read_task` takes, where tuples and arrays
        may stand for lists; or a list of tasks, of which each is a `Task` or a mapping with
        examples.
    """
    return [_good(task) for task in _tasks_of(source, semantics)]


def tasks_and_bad_ones(source: object, semantics: Semantics = DEFAULT) -> list[Task | BadTask]:
    """`tasks_of`, where a bad line of JSON Lines, or a bad task of a list, stands for itself.
    Raises InputError if the source itself is bad, or all its tasks are."""
    found = list(_tasks_of(source, semantics, skipping=True))
    if all(isinstance(task, BadTask) for task in found):
        _good(found[0])
    return found


def _tasks_of(source: object, semantics: Semantics, skipping: bool = False) -> Iterator[Task | BadTask]:
    if isinstance(source, str | Path):
        yield from _load(source, semantics, skipping)
        return
    if isinstance(source, Task):
        source = [source]
    if not (isinstance(source, list | tuple) and source and all(map(_is_task, source))):
        yield _task(source, "task", semantics)
        return
    for number, entry in enumerate(source, 1):
        name = f"task-{number}"
        try:
            yield _task(entry, name, semantics)
        except InputError as error:
            yield BadTask(entry.name if isinstance(entry, Task) else name, error)


def _is_task(content: object) -> bool:
    return isinstance(content, Task) or (isinstance(content, Mapping) and "examples" in content)


def _task(content: object, name: str, semantics: Semantics) -> Task:
    if isinstance(content, Task):  # its values must be in the range, too
        shown = [(example.inputs, example.output) for example in content.examples]
        with about(content.name):
            return replace(content, examples=read_task(plain(shown), content.name, semantics).examples)
    with about(name):
        return read_task(plain(content), name, semantics)


def plain(content: object) -> object:
    """The same in the types of JSON: lists for tuples and arrays, numbers of Python for those of
    NumPy. Raises InputError if lists are nested too deeply, or hold themselves."""
    try:
        return _plain(content)
    except RecursionError:
        raise InputError("it is nested too deeply", f"give examples such as [{_FORM}]") from None


def _plain(content: object) -> object:
    if isinstance(content, Mapping):
        return {str(key): _plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(entry) for entry in content]
    return content.tolist() if hasattr(content, "tolist") else content


def read_value(content: object, where: str, semantics: Semantics = DEFAULT) -> Value:
    """A number or a list of numbers from what JSON holds; 3.0 is 3. Raises InputError for neither,
    out of range, or too long; names the place, `where`."""
    if not isinstance(content, list):
        return _number(content, where, semantics)
    if len(content) > semantics.longest:
        problem = f"{where} is a list of {len(content)} numbers"
        more = f" (--max-list allows up to {LONGEST})" * (semantics.longest < LONGEST)
        raise InputError(problem, f"it may have at most {semantics.longest}{more}")
    return tuple(_number(entry, f"{where}, number {i}", semantics) for i, entry in enumerate(content, 1))


def read_inputs(content: object, where: str, semantics: Semantics = DEFAULT) -> tuple[Value, ...]:
    """The inputs of a program from what JSON holds: a list of 1 to 3 values, one of them at least a
    list if the language needs one. Raises InputError if they are not, or one is no value
    (`read_value`); names the place, `where`."""
    remedy = f"it must be a list of 1 to {MOST_INPUTS} inputs, such as [[1, 2, 3]] for one list"
    if not isinstance(content, list):
        raise InputError(f"{where}: the inputs are {_show(content)}", remedy)
    if not 1 <= len(content) <= MOST_INPUTS:
        raise InputError(f"{where} has {len(content)} inputs", remedy)
    inputs = tuple(read_value(entry, f"{where}, input {i}", semantics) for i, entry in enumerate(content, 1))
    if semantics.language.needs_list and LIST not in map(type_of, inputs):
        raise InputError(f"{where} has no list among its inputs", "it must have one, such as [[1, 2, 3]]")
    return inputs


def _read(path: str | Path) -> bytes:
    if str(path) != "-":
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    elif sys.stdin is None:
        raise InputError("it is closed", "send examples to it")
    else:
        data = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InputError(f"it is larger than {MAX_BYTES >> 20} MiB", "give a smaller file")
    return data


def _are_lines(text: str, rows: Sequence[tuple[int, str]], skipping: bool) -> bool:
    """Whether a file is JSON Lines: its first line is complete or, if bad lines are skipped, any
    is."""
    if len(rows) < 2:
        return False
    return _is_json(rows[0][1]) or (skipping and any(_is_json(row) for _, row in rows) and not _is_json(text))


def _is_json(text: str) -> bool:
    """Whether a text is complete."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _parse(text: str, name: str, semantics: Semantics, source: str, line: int | None = None) -> Task:
    """The task of a JSON text: a whole file, or one line of it."""
    try:
        return read_task(_loads(text), name, semantics)
    except InputError as error:
        raise InputError(error.problem, error.remedy, source=source, line=line or error.line) from None


def _loads(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        problem = f"not JSON: {error.msg} (column {error.colno})"
        raise InputError(problem, f"give examples such as [{_FORM}]", line=error.lineno) from None
    except InputError:
        raise
    except RecursionError:
        raise InputError("it is nested too deeply", f"give examples such as [{_FORM}]") from None
    except ValueError:
        raise InputError("it has a number of too many digits", "numbers must be in the range") from None


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object; its names must differ."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{_show(twice)} occurs twice in one object", "write it once")
    return found


def _example(content: object, where: str, semantics: Semantics) -> Example:
    if isinstance(content, dict):
        for key in ("inputs", "output"):
            if key not in content:
                raise InputError(f"{where} has no {key!r}", f"write {_FORM}")
        inputs, output = content["inputs"], content["output"]
    elif isinstance(content, list) and len(content) == 2:
        inputs, output = content
    else:
        raise InputError(f"{where} is {_show(content)}", f"write {_FORM}")
    return Example(read_inputs(inputs, where, semantics), read_value(output, f"{where}, output", semantics))


def _number(content: object, where: str, semantics: Semantics) -> int:
    if isinstance(content, float) and content.is_integer():
        content = int(content)
    remedy = f"it must be a whole number from {semantics.low} to {semantics.high}"
    if isinstance(content, bool) or not isinstance(content, int):
        raise InputError(f"{where} is {_show(content)}", remedy)
    if not semantics.holds(content):
        raise InputError(f"{where} is out of range: {_show(content)}", f"{remedy} (--range sets other bounds)")
    return content


def _check_types(examples: Sequence[Example]) -> None:
    """Refuse examples that differ in type from the first."""
    types = [(tuple(map(type_of, example.inputs)), type_of(example.output)) for example in examples]
    for number, found in enumerate(types, 1):
        if found != types[0]:
            (inputs, output), (first, result) = found, types[0]
            problem = f"example {number} is {signature(inputs)} -> {output}"
            raise InputError(problem, f"it must be {signature(first)} -> {result}, as example 1 is")


def _check_agreement(examples: Sequence[Example]) -> None:
    """Refuse two outputs for the same inputs."""
    first: dict[tuple[Value, ...], int] = {}
    for number, example in enumerate(examples):
        earlier = first.setdefault(example.inputs, number)
        if examples[earlier].output != example.output:
            problem = f"examples {earlier + 1} and {number + 1} give different outputs for the same inputs"
            raise InputError(problem, "the same inputs must give one output")


def _show(content: object) -> str:
    """The content, shortened, in the words of JSON where they differ from those of Python."""
    if content is None or isinstance(content, bool):
        return json.dumps(content)
    try:
        return reprlib.repr(content)
    except ValueError:  # Python writes no number of more than 4,300 digits
        return "a number of too many digits"
