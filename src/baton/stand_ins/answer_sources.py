"""Sources of a stand-in's answer: recordings, written answers, a JSON Schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from baton.model.stand_ins import Fixture, RecordedAnswer

MOCKED = {"status": "success", "data": "mock_response"}
"""The answer of mock mode."""


class NoAnswer(Exception):  # noqa: N818 - says what happened
    """There is no answer for a call; the text says why."""


class Answer(NamedTuple):
    """The answer to a call: a result, or an error.

    ``by`` says what answered; ``None`` is the real tool. It comes after ``seconds``.
    """

    result: Any = None
    error: str | None = None
    refused: bool = False
    timed_out: bool = False
    by: str | None = "fixture"
    seconds: float = 0.0


class Recordings:
    """Answers of a recorded run.

    The same call (name and input) gets its recorded answer; several answers are used in order, and
    then the last one is repeated. A call with other input gets the next unused answer of that tool:
    a model may write `{"id": "17"}` instead of `{"id": 17}`. That answer is marked ``replay in
    order``, as it belongs to other arguments.
    """

    def __init__(self, recorded: Sequence[RecordedAnswer]) -> None:
        self._recorded = recorded
        self._used: set[int] = set()

    def answer(self, kind: str, name: str, agent: str | None, input: Any) -> Answer:
        """Return the recorded answer for a call; raises NoAnswer."""
        places = [
            place
            for place, each in enumerate(self._recorded)
            if each.kind == kind and each.name == name and _may_be(each.agent, agent)
        ]
        if not places:
            raise NoAnswer("the recording does not contain a call of it")
        wanted = comparable(input)
        same = [place for place in places if comparable(self._recorded[place].input) == wanted]
        fresh = next((place for place in same if place not in self._used), None)
        if same:
            return self._take(same[-1] if fresh is None else fresh, "replay")
        fresh = next((place for place in places if place not in self._used), None)
        if fresh is None:
            raise NoAnswer("the recording does not contain a call of it with these arguments")
        return self._take(fresh, "replay in order")

    def made_before(self, name: str, input: Any) -> Answer | None:
        """Return the answer to a dispatch that was made before the case's dispatch.

        Only to the same agent with the same prompt: any other dispatch is the decision to test.
        """
        wanted = comparable(input)
        for place, each in enumerate(self._recorded):
            same = each.before and each.name == name and comparable(each.input) == wanted
            if same and place not in self._used:
                return self._take(place, "replay")
        return None

    def _take(self, place: int, by: str) -> Answer:
        self._used.add(place)
        each = self._recorded[place]
        return Answer(each.result, each.error, refused=each.refused, by=by)


def fixture_for(answers: Sequence[Fixture], input: Any, number: int) -> Answer | None:
    """Return the first written answer that matches the n-th call with this input."""
    for each in answers:
        calls = [each.call] if isinstance(each.call, int) else each.call
        if (calls is None or number in calls) and _fits(each.when, input):
            return Answer(each.result, each.error, seconds=each.seconds or 0.0)
    return None


def from_schema(schema: dict[str, Any]) -> Any:
    """Make the plainest value of a JSON Schema: its example or default, or a value of its type.

    Objects have their required properties, or all if none is required; lists have one item.
    """
    return _made(schema, schema, 0)


def _may_be(recorded: str | None, actual: str | None) -> bool:
    return recorded is None or actual is None or recorded == actual


def comparable(value: Any) -> bytes:
    """Return a comparable form of a value, independent of the order of keys."""
    try:
        return msgspec.json.encode(value, order="deterministic", enc_hook=repr)
    except (TypeError, ValueError, RecursionError):
        return repr(value).encode("utf-8", "surrogatepass")


def _fits(when: dict[str, Any] | list[str] | str | None, input: Any) -> bool:
    if when is None:
        return True
    if isinstance(when, dict):
        return isinstance(input, dict) and all(
            name in input and comparable(input[name]) == comparable(value)
            for name, value in when.items()
        )
    texts = [when] if isinstance(when, str) else when
    said = input if isinstance(input, str) else comparable(input).decode("utf-8", "replace")
    return all(text in said for text in texts)


# A schema may refer to itself: a comment with answers, which are comments. Levels below this one
# are null.
_DEEPEST = 20
_PLAIN: dict[str, Any] = {
    "string": "text",
    "integer": 1,
    "number": 1.0,
    "boolean": True,
    "null": None,
}


def _made(schema: Any, root: dict[str, Any], depth: int) -> Any:
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return None
    for name in ("const", "default"):
        if name in schema:
            return schema[name]
    for name in ("examples", "enum"):
        if isinstance(schema.get(name), list) and schema[name]:
            return schema[name][0]
    if isinstance(schema.get("$ref"), str):
        return _made(_referred(schema["$ref"], root), root, depth + 1)
    for name in ("anyOf", "oneOf", "allOf"):
        parts = schema.get(name)
        if isinstance(parts, list) and parts:
            if name != "allOf":
                return _made(parts[0], root, depth + 1)
            made = [_made(part, root, depth + 1) for part in parts]
            objects = [each for each in made if isinstance(each, dict)]
            return {k: v for each in objects for k, v in each.items()} if objects else made[0]
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "null")
    properties = schema.get("properties")
    if kind == "object" or isinstance(properties, dict):
        properties = properties if isinstance(properties, dict) else {}
        required = schema.get("required")
        names = [n for n in required if n in properties] if isinstance(required, list) else []
        return {name: _made(properties[name], root, depth + 1) for name in names or properties}
    if kind == "array":
        items = schema.get("items")
        return [_made(items, root, depth + 1)] if isinstance(items, dict) else []
    if kind in ("integer", "number"):
        least = schema.get("minimum", schema.get("exclusiveMinimum", 0))
        value = _PLAIN[kind]
        return max(value, least + 1) if isinstance(least, int | float) and least >= value else value
    return _PLAIN.get(str(kind))


def _referred(ref: str, root: dict[str, Any]) -> Any:
    at: Any = root
    for part in ref.removeprefix("#").strip("/").split("/"):
        at = at.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(at, dict) else None
    return at
