"""A selection of cases as examples for an agent: from files to the text that the agent gets.

A selection is written like any dataset, ``FILE`` or ``FILE:case1,case2``, or as a separate file::

    from: cases.yaml
    ids: [refund-1, refund-2]   # in this order; all cases where it is left out
    number: 1                   # the first ones only

The agent gets one text: a JSON list with one example per line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from baton.formats.document import Document, read_bytes
from baton.model import Case, Example, ExpectedTurn, InputError, Problem, suggestion

from .dataset_paths import load_dataset


class Choice(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A file that selects cases: ``from`` is a dataset beside it."""

    from_: str = msgspec.field(name="from")
    ids: list[str] | None = None
    number: Annotated[int, msgspec.Meta(ge=0)] | None = None


def chosen_cases(choice: str, folder: Path = Path()) -> list[Case]:
    """Return the cases of a selection, in its order.

    Args:
        choice: ``FILE``, ``FILE:case1,case2``, or a file with ``from``.
        folder: what paths are relative to.

    Raises:
        InputError: a file is missing or has errors, or does not have a case.
    """
    file, ids, number = folder / choice, None, None
    if (stated := _stated(file)) is not None:
        document, own = stated
        dataset, ids, number = file.parent / own.from_, own.ids, own.number
        if not dataset.exists():
            message = f"`{own.from_}`: no such file or folder beside this one"
            raise InputError(document.problem_at(("from",), message))
    elif not file.exists() and ":" in choice:
        head, _, tail = choice.rpartition(":")
        dataset, ids = folder / head, [name.strip() for name in tail.split(",") if name.strip()]
    else:
        dataset = file
    cases = load_dataset(dataset)
    if ids is None:
        return list(cases)[:number]
    chosen: dict[str, list[Case]] = {name: [] for name in ids}
    for case in cases:
        if case.id in chosen:
            chosen[case.id].append(case)
    wrong = [name for name in chosen if len(chosen[name]) != 1]
    if wrong:
        raise InputError(
            Problem(
                file=str(dataset),
                message=f"several cases `{name}`: name the file that is meant"
                if chosen[name]
                else f"no case `{name}`; {suggestion(name, cases.ids)}",
            )
            for name in wrong
        )
    return [chosen[name][0] for name in ids[:number]]


def _stated(file: Path) -> tuple[Document, Choice] | None:
    """Read a file that selects cases; ``None`` for any other."""
    if file.suffix not in (".yaml", ".yml", ".json") or not file.is_file():
        return None
    document = Document(str(file), read_bytes(file), "json" if file.suffix == ".json" else "yaml")
    value = document.value()
    if not isinstance(value, dict) or "from" not in value:
        return None
    return document, document.decode(Choice)


def as_text(cases: Iterable[Case]) -> str:
    """Return cases as the text of a selection.

    Raises:
        InputError: a case states no expectations, so it shows nothing, or two cases have the same
            id.
    """
    examples = [_example(case) for case in cases]
    ids = [each.id for each in examples]
    if twice := sorted({each for each in ids if ids.count(each) > 1}):
        raise InputError(f"`{twice[0]}` is chosen twice as an example")
    lines = [msgspec.json.encode(each, order="deterministic").decode() for each in examples]
    return "[" + ",\n ".join(lines) + "]"


def _example(case: Case) -> Example:
    turn = case.turns[-1] if case.turns else None
    if turn is None:
        raise InputError(_about(case, "it has no turn"))
    calls = [{"name": each.name, "arguments": each.arguments} for each in turn.tool_calls or ()]
    example = Example(
        id=case.id,
        before=_before(case),
        input=turn.input.plain(),
        to=_receivers(turn),
        tool_calls=None if turn.tool_calls is None else calls,
        response=None if turn.response is None else turn.response.plain(),
    )
    if example.to is None and example.tool_calls is None and example.response is None:
        why = "it states neither `agents`, `dispatches`, `tool_calls` nor a `response`"
        raise InputError(_about(case, why))
    return example


def _about(case: Case, why: str) -> Problem:
    where = case.where
    return Problem(
        file=where.file if where is not None else None,
        line=where.line if where is not None else None,
        message=f"the case `{case.id}` cannot be an example: {why}",
    )


def _receivers(turn: ExpectedTurn) -> list[str] | None:
    """Return the receivers: all agents of a chain except the first."""
    if turn.dispatches is not None:
        return [each.to for each in turn.dispatches]
    if turn.agents is None:
        return None
    names = [name for each in turn.agents for name in _names(each)]
    return [name for name in names[1:] if name != names[0]]


def _names(agents: object) -> Sequence[str]:
    return [agents] if isinstance(agents, str) else getattr(agents, "any_order", [])


def _before(case: Case) -> list[str]:
    if case.dispatch is not None:
        messages = [each for each in case.dispatch.context if each.text]
        questions = [place for place, each in enumerate(messages) if each.role == "user"]
        earlier = messages[: questions[-1]] if questions else []
        return [f"{each.agent or each.role}: {each.text}" for each in earlier]
    lines = []
    for turn in case.turns[:-1]:
        lines.append(f"user: {turn.input.plain()}")
        if turn.response is not None:
            lines.append(f"agent: {turn.response.plain()}")
    return lines
