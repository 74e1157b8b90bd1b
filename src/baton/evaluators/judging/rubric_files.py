"""Reads rubrics strictly, reporting file and line, and replaces parts of them by options."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import msgspec

from baton.formats.document import Document, read_bytes
from baton.formats.explain_mistakes import Path as Place
from baton.formats.explain_mistakes import path_text
from baton.model import InputError, Problem, Unit, suggestion
from baton.plugins import RUBRIC_SUFFIXES

from .evidence import FINDINGS
from .inputs import FOREIGN_INPUTS, INPUTS, Missing, input_of, names_for
from .material import Kind
from .rubric import Rubric, RubricOptions
from .subject import Subject

FOLDER = Path(__file__).parent.parent / "rubrics"


def load_rubric(file: Path) -> Rubric:
    """Read one rubric.

    Raises:
        InputError: every fault, with its line.
    """
    return rubric_in(Document(str(file), read_bytes(file), "yaml"))


def rubric_in(document: Document) -> Rubric:
    """Return the rubric of a YAML document.

    Raises:
        InputError: every fault, with its line.
    """
    value = document.value()
    if not isinstance(value, dict):
        raise InputError(document.problem("a rubric is a mapping with `name:` and `prompt:`", 1))
    rubric = document.convert(value, Rubric)
    wrong = (*faults(rubric), *_example_faults(rubric))
    problems = [document.problem_at(place, message) for place, message in wrong]
    if problems:
        raise InputError(problems)
    return rubric


def load_folders(folders: Iterable[Path]) -> dict[str, tuple[Rubric, Path]]:
    """Read the rubrics in folders (or files), each with its path.

    Raises:
        InputError: a folder is missing or empty, a rubric is faulty, or a name is already taken.
    """
    rubrics: dict[str, tuple[Rubric, Path]] = {}
    problems: list[Problem] = []
    taken = {name for rubric in shipped().values() for name in names_of(rubric)}
    files = {file.resolve(): file for file in _files(folders, problems)}
    for file in files.values():
        try:
            rubric = load_rubric(file)
        except InputError as error:
            problems += error.problems
            continue
        twice = next((name for name in names_of(rubric) if name in taken), None)
        if twice is not None:
            problems.append(
                Problem(file=str(file), message=f"the name `{twice}` belongs to another rubric")
            )
        taken.update(names_of(rubric))
        rubrics[rubric.name] = (rubric, file)
    if problems:
        raise InputError(problems)
    return rubrics


@cache
def shipped() -> dict[str, Rubric]:
    """Return the rubrics that come with Baton, by name."""
    return {rubric.name: rubric for rubric in map(load_rubric, sorted(FOLDER.glob("*.yaml")))}


def names_of(rubric: Rubric) -> list[str]:
    """Return every name by which a rubric can be requested."""
    names = [rubric.name]
    for alias in rubric.aliases:
        names += [alias] if isinstance(alias, str) else [alias.name, alias.class_name or alias.name]
    return list(dict.fromkeys(names))


def faults(rubric: Rubric) -> Iterator[tuple[Place, str]]:
    """Yield each fault of a rubric, and its place. Structure and examples are not checked."""
    yield from _input_faults(rubric)
    yield from _finding_faults(rubric)
    low, high = rubric.answer.bounds
    reached = rubric.threshold <= high if rubric.direction == "higher" else rubric.threshold >= low
    if not reached:
        yield ("threshold",), f"never reached: scores go from {low:g} to {high:g}"
    # 0 is the value of a finding whose label has no score.
    low, high = min(low, 0.0), max(high, 0.0)
    lax = rubric.threshold < low if rubric.direction == "higher" else rubric.threshold > high
    if lax:
        yield (
            ("threshold",),
            f"always reached: scores go from {low:g} to {high:g}, so nothing can fail",
        )
    if rubric.kinds is not None and rubric.unit != "dispatch":
        yield ("kinds",), f"kinds belong to dispatches, and this rubric is about a {rubric.unit}"


def checked_rubric(rubric: Rubric, path: Place) -> Rubric:
    """Return a rubric combined from options. Raises InputError if it is faulty."""
    problems = [
        Problem(path=path_text((*path, *place)), message=message)
        for place, message in faults(rubric)
    ]
    if problems:
        raise InputError(problems)
    return rubric


def _input_faults(rubric: Rubric) -> Iterator[tuple[Place, str]]:
    claims = rubric.answer.claims
    wanted = [name for name, _ in rubric.wanted]
    for index, name in enumerate(wanted):
        if name not in INPUTS:
            hint = suggestion(name, names_for(rubric.unit))
            yield ("inputs", index), f"no input `{name}`; {hint}"
        elif input_of(name, rubric.unit) is None:
            units = dict.fromkeys(unit for each in INPUTS[name] for unit in each.units)
            yield (
                ("inputs", index),
                f"`{name}` is an input of {', '.join(units)}, not of {rubric.unit}",
            )
        elif wanted.index(name) != index:
            yield ("inputs", index), f"`{name}` is a duplicate"
    for key in rubric.hides:
        name, _, kind = key.partition(".")
        if input_of(name, rubric.unit) is None:
            hint = suggestion(name, names_for(rubric.unit))
            yield ("hides", key), f"no input `{name}` of a {rubric.unit}; {hint}"
        elif kind and kind not in get_args(Kind):
            yield (
                ("hides", key),
                f"no part `{kind}` of an input; {suggestion(kind, get_args(Kind))}",
            )
    if claims is not None and claims.of not in wanted:
        message = f"`{claims.of}` is not among the inputs; {suggestion(claims.of, wanted)}"
        yield ("answer", "claims", "of"), message


def _example_faults(rubric: Rubric) -> Iterator[tuple[Place, str]]:
    labels = rubric.answer.labels or {}
    wanted = [name for name, _ in rubric.wanted]
    for index, test in enumerate(rubric.tests):
        if test.label is not None and test.label not in labels and "answer" not in test.config:
            yield (
                ("tests", index, "label"),
                f"no label `{test.label}`; {suggestion(test.label, labels)}",
            )
        if test.config.keys() & {"inputs", "input_mapping"}:
            continue  # the option replaces them: running the example shows any fault
        for name in test.inputs:
            if name not in wanted:
                hint = suggestion(name, wanted)
                yield ("tests", index, "inputs", name), f"the rubric has no such input; {hint}"


def _finding_faults(rubric: Rubric) -> Iterator[tuple[Place, str]]:
    labels = rubric.answer.labels or {}
    if rubric.findings and rubric.unit != "dispatch":
        yield (
            ("findings",),
            f"findings belong to dispatches, and this rubric is about a {rubric.unit}",
        )
    for name, kinds in rubric.findings.items():
        if name not in FINDINGS:
            yield ("findings", name), f"no finding `{name}`; {suggestion(name, FINDINGS)}"
            continue
        for kind, label in kinds.items():
            place: tuple[Any, ...] = ("findings", name, kind)
            if kind not in FINDINGS[name][1]:
                yield place, f"`{name}` has no `{kind}`; {suggestion(kind, FINDINGS[name][1])}"
            if label not in labels:
                yield place, f"no label `{label}`; {suggestion(label, labels)}"
            elif rubric.answer.score_of(label) is None:
                yield place, f"`{label}` has no score, so it settles nothing"


def _files(folders: Iterable[Path], problems: list[Problem]) -> Iterator[Path]:
    for folder in folders:
        if folder.suffix in RUBRIC_SUFFIXES:
            yield folder
            continue
        files = sorted(file for file in folder.glob("*") if file.suffix in RUBRIC_SUFFIXES)
        if not files:
            what = "no rubric (*.yaml) in this folder" if folder.is_dir() else "no such folder"
            problems.append(Problem(file=str(folder), message=what))
        yield from files


PLACE = "{rubric}"
_CHECKS = {
    "reference": "response",
    "assertion": "rubrics",
    "expected_tools": "tools",
    "expected_agents": "agents",
    "expected_dispatches": "dispatches",
    "expected_visits": "interactions",
    "expected_state": "final_state",
}


def revised(rubric: Rubric, options: RubricOptions) -> Rubric:
    """Return the rubric with options applied. A different question gets a different version.

    Raises:
        InputError: parts contradict each other, or a text is missing or has no place.
    """
    parts = {**options.parts, **_mapped(rubric, options)}
    changes: dict[str, Any] = dict(parts)
    for name in ("threshold", "report", "samples", "direction", "kinds"):
        if getattr(options, name) is not None:
            changes[name] = getattr(options, name)
    _check_text(changes.get("prompt", rubric.prompt), options)
    values = [parts, options.rubric, options.rubrics]
    if any(values):
        digest = hashlib.sha256(
            msgspec.json.encode([rubric.version, *values], order="deterministic")
        ).hexdigest()
        changes["version"] = f"{rubric.version}+{digest[:8]}"
    if not changes:
        return rubric
    return checked_rubric(msgspec.structs.replace(rubric, **changes), ("config",))


_UNITS: tuple[Unit, ...] = ("dispatch", "tool_call", "turn", "run", "trace")
"""The units in order of preference: the first unit that has all the inputs is used."""


def _mapped(rubric: Rubric, options: RubricOptions) -> dict[str, Any]:
    """Return the inputs that ``input_mapping`` names, the unit that has them, and the prompt.

    A rubric judges dispatches if it has an input that only dispatches have, or uses one of
    ai-evaluation's names, which are meant for dispatches. The prompt states which name in the
    user's text stands for which block of the material.

    Raises:
        InputError: a name is not an input, no unit has all the inputs, or ``inputs`` is also set.
    """
    mapping = options.input_mapping
    if not mapping:
        return {}
    if options.inputs is not None:
        message = "selects the material, like `inputs`: leave one of them out"
        raise InputError(Problem(path="config.input_mapping", message=message))
    known = [*FOREIGN_INPUTS, *INPUTS]
    ours = {}
    problems = []
    for own, theirs in mapping.items():
        name, optional = theirs.removesuffix("?"), theirs.endswith("?")
        if name not in known:
            message = f"no input `{name}`; {suggestion(name, known)}"
            problems.append(Problem(path=f"config.input_mapping.{own}", message=message))
        ours[own] = (FOREIGN_INPUTS.get(name, name), optional)
    if problems:
        raise InputError(problems)
    names = list(dict.fromkeys(name for name, _ in ours.values()))
    of_dispatches = any(name.removesuffix("?") in FOREIGN_INPUTS for name in mapping.values())
    units = ("dispatch",) if of_dispatches else (rubric.unit, *_UNITS)
    units = units if options.unit is None else (options.unit,)
    unit = next((unit for unit in units if all(input_of(name, unit) for name in names)), None)
    if unit is None:
        listed = ", ".join(f"`{name}`" for name in names)
        message = f"no {units[0] if len(units) == 1 else 'unit'} has all of {listed}"
        raise InputError(Problem(path="config.input_mapping", message=message))
    required = {name for name, optional in ours.values() if not optional}
    shown = {name: [name] for name in names}
    if unit == "dispatch" and "before" in names and "request" not in names:
        # `before` leaves out the user's message, as our rubrics show it once, as `request`. In
        # ai-evaluation the context before a dispatch includes "the user input that led to" it.
        names.insert(names.index("before"), "request")
        shown["before"] = ["request", "before"]
    legend = []
    for own, (name, _) in ours.items():
        titles = [f"`{each.title}`" for part in shown[name] if (each := input_of(part, unit))]
        legend.append(f"- {own}: the block{'s' * (len(titles) > 1)} {' and '.join(titles)}")
    prompt = (options.prompt or rubric.prompt).rstrip()
    return {
        "unit": unit,
        "inputs": [name if name in required else f"{name}?" for name in names],
        "prompt": "\n".join([prompt, "", "Names that the rubric uses:", *legend]),
    }


def rubric_text(options: RubricOptions, subject: Subject) -> str | Missing | None:
    """Return the text for ``{rubric}``: the only one, or that of the judged agent."""
    if not isinstance(options.rubric, dict):
        return options.rubric
    for name in sorted(subject.names):
        if name in options.rubric:
            return options.rubric[name]
    return Missing(f"no rubric for `{subject.agent}` among those of the config")


def checks_of(rubric: Rubric) -> frozenset[str]:
    """Return the statements of a case that a rubric checks."""
    checks = {_CHECKS[name] for name, _ in rubric.wanted if name in _CHECKS}
    each = rubric.answer.each
    return frozenset(checks | ({"rubrics"} if each is not None and not each.items else set()))


def _check_text(prompt: str, options: RubricOptions) -> None:
    message = None
    if PLACE in prompt and not options.rubric:
        message = "the text to judge by is missing"
    if PLACE not in prompt and options.rubric is not None:
        message = f"the prompt has no placeholder for it: `{PLACE}`"
    if message is not None:
        raise InputError(Problem(path="config.rubric", message=message))
