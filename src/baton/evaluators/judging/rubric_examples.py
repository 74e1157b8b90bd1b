"""The examples of a rubric: the expected and the actual verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from baton.evaluators.judged import Judged
from baton.evaluators.judging.material import TooLongError
from baton.model import (
    EvalContext,
    Judge,
    JudgeError,
    Score,
    Source,
    Trace,
    suggestion,
)

from .inputs import Given, Missing
from .judge_prompt import question_of, sections_of
from .material import given, raw
from .rubric import Example, Rubric
from .subject import Subject
from .verdicts import items_of

ReadTraces = Callable[[Path], Iterable[Trace]]
# An example says 0.67, and a mean of three samples is 0.6667.
NEAR = 0.01


class Checked(NamedTuple):
    """An example, its actual result (``None`` without a verdict), and the problem, if any."""

    example: Example
    score: Score | None
    problem: str | None


async def check_example(
    rubric: Rubric, example: Example, judge: Judge, read: ReadTraces, folder: Path
) -> Checked:
    """Check a rubric against one of its examples.

    ``read`` returns the traces of a file, whose path is relative to ``folder``.

    Raises:
        InputError: the options of the example are wrong, or its trace can't be read.
    """
    judged = Judged.from_options(rubric, None, example.config)
    try:
        if example.trace is None:
            score = await _of_texts(judged, example, judge)
        else:
            score = await _of_trace(judged, example, judge, list(read(folder / example.trace)))
    except (JudgeError, TooLongError) as error:
        return Checked(example, None, str(error))
    if isinstance(score, str):
        return Checked(example, None, score)
    return Checked(example, score, _wrong(example, score))


async def _of_texts(judged: Judged, example: Example, judge: Judge) -> Score | str:
    rubric = judged.rubric
    inputs: dict[str, Given | Missing] = {
        name: given(raw((), example.inputs[name]))
        if name in example.inputs
        else Missing("the example does not give it", unstated=True)
        for name, _ in rubric.wanted
    }
    unknown = example.inputs.keys() - inputs.keys()
    if unknown:
        return f"the rubric has no input {', '.join(f'`{name}`' for name in sorted(unknown))}"
    missing = [name for name, required in rubric.wanted if required and name not in example.inputs]
    if missing:
        return f"the example lacks {', '.join(f'`{name}`' for name in missing)}"
    blank = Trace(schema_version=1, id="example", source=Source(format="example"), turns=[])
    subject = Subject(blank, None, {}, rubric.unit)
    items = items_of(rubric, judged.options, subject, inputs)
    if isinstance(items, Missing):
        return items.says
    text = judged.options.rubric
    if isinstance(text, dict):
        return "an example has one `rubric`"
    sections = sections_of(rubric, inputs, [])
    question = question_of(rubric, sections, items, text, judged.options.max_chars)
    return await judged.ask(question, judge)


async def _of_trace(
    judged: Judged, example: Example, judge: Judge, traces: list[Trace]
) -> Score | str:
    context = EvalContext(judge=judge)
    matching = [each for trace in traces for each in judged.subjects(trace, None, context)]
    if example.subject is not None:
        ids = [each.id for each in matching]
        if example.subject not in ids:
            hint = suggestion(example.subject, ids)
            return f"the trace has no {judged.rubric.unit} `{example.subject}`; {hint}"
        matching = [each for each in matching if each.id == example.subject]
    if len(matching) != 1:
        ids = [each.id for each in matching]
        return f"name one of them as `subject`: {', '.join(ids) or 'the trace has none'}"
    return await judged.judged(matching[0], context)


def _wrong(example: Example, score: Score) -> str | None:
    if score.value is None:
        return f"{score.status}: {score.reason}"
    if example.label is not None:
        label = score.details.get("label")
        return None if label == example.label else f"it says `{label}`, not `{example.label}`"
    expected = example.score or 0.0
    if abs(score.value - expected) <= NEAR:
        return None
    return f"it scores {score.value:g}, not {expected:g}"
