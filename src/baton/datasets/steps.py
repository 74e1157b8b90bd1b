"""Cases written as ``steps``, as session-resume tests of Google's agent guides are."""

from __future__ import annotations

from typing import Any

import msgspec

from baton.formats.document import Document
from baton.formats.prune import Stray
from baton.model import Case, Content, ExpectedTurn, InputError

from .strays import refuse_misspelt

Texts = str | list[str]


class StepSpec(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A message of the user, what happens before it is sent, and what its answer has to hold."""

    input: str
    new_session: bool = False
    restart: bool = False
    expected_response_contains: Texts | None = None
    expected_response_not_contains: Texts | None = None


class StepsSpec(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A case; its first step opens a session whatever it says of one."""

    test_case: str
    steps: list[StepSpec]
    description: str | None = None
    metadata: dict[str, Any] | None = None


def steps_case(document: Document, strays: list[Stray]) -> Case:
    """Read one case; raises InputError with every fault it has."""
    found: list[Stray] = []
    spec = document.decode(StepsSpec, strays=found)
    refuse_misspelt(document, found)
    _refuse_expectations(document, found)
    strays += found
    if not spec.steps:
        message = "is empty; a case needs at least one user message"
        raise InputError(document.problem_at(("steps",), message))
    described = {"description": spec.description} if spec.description else {}
    return Case(
        id=spec.test_case,
        turns=[_turn(step) for step in spec.steps],
        metadata={**described, **(spec.metadata or {})},
    )


def _turn(spec: StepSpec) -> ExpectedTurn:
    return ExpectedTurn(
        input=Content(text=spec.input),
        new_session=spec.new_session,
        restart=spec.restart,
        response_contains=_list(spec.expected_response_contains),
        response_not_contains=_list(spec.expected_response_not_contains),
    )


def _refuse_expectations(document: Document, strays: list[Stray]) -> None:
    """Stop on what is expected and not known: a case must not pass by leaving it out."""
    problems = [
        document.problem_at(stray.path, "unknown expectation; it would not be checked")
        for stray in strays
        if str(stray.path[-1]).startswith("expect")
    ]
    if problems:
        raise InputError(problems)


def _list(value: Texts | None) -> list[str] | None:
    return [value] if isinstance(value, str) else value
