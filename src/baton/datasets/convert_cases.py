"""Convert datasets from one dialect to another, and list everything that is lost."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any, Literal, NamedTuple

import msgspec

from baton.datasets.baton_cases import OWN
from baton.datasets.evalset import ADK, APP, BEGINNING, JUDGE_LLM, USER
from baton.datasets.files import (
    About,
    CaseSequence,
    Dialect,
    dialect_of_case,
    dialect_of_mapping,
    read_data,
)
from baton.datasets.strands import STRANDS
from baton.datasets.writers import Head, Writer
from baton.formats.adk import EvalCase, FunctionCall, Part, attachments, author_pair
from baton.formats.document import Document, read_bytes, without_comments
from baton.formats.explain_mistakes import Path, path_text
from baton.formats.key_case import normalise, prune, snake
from baton.formats.yaml import dump_yaml
from baton.model import AgentCard, Case, Dataset, InputError, Session
from baton.model.option_spelling import option
from baton.model.redact import ON, Redaction

Target = Literal["adk", "judge-llm", "strands", "baton"]
TARGETS: dict[Target, Writer] = {
    "adk": ADK,
    "judge-llm": JUDGE_LLM,
    "strands": STRANDS,
    "baton": OWN,
}


class Difference(NamedTuple):
    """A value of a case that is different or missing in the other case."""

    path: Path
    before: Any
    after: Any

    @property
    def is_added(self) -> bool:
        """Whether the first case states nothing here; an empty list may be a statement."""
        return self.before is None or (self.before in ([], {}) and self.after is not None)


def differences(before: Case, after: Case) -> list[Difference]:
    """Return all differences of two cases, at any depth; their places in files do not count."""
    bare = msgspec.structs.replace(before, where=None)
    return list(_differences(bare, msgspec.structs.replace(after, where=None), ()))


def _differences(before: Any, after: Any, path: Path) -> Iterator[Difference]:
    if isinstance(before, msgspec.Struct) and type(before) is type(after):
        for name in before.__struct_fields__:
            yield from _differences(getattr(before, name), getattr(after, name), (*path, name))
    elif _are_structs(before) and _are_structs(after):
        yield from _of_lists(before, after, path)
    elif _json(before) != _json(after):
        yield Difference(path, before, after)


def _of_lists(before: list[Any], after: list[Any], path: Path) -> Iterator[Difference]:
    kept = _positions(before, after)
    if kept is not None:
        for place, item in enumerate(before):
            if place not in kept:
                yield Difference((*path, place), item, None)
        return
    for place in range(max(len(before), len(after))):
        old, new = (items[place] if place < len(items) else None for items in (before, after))
        yield from _differences(old, new, (*path, place))


def _positions(before: list[Any], after: list[Any]) -> set[int] | None:
    """Return the indices of ``before`` that make up ``after``; ``None`` when it has other items."""
    texts = [_json(item) for item in before]
    places, at = set(), 0
    for item in map(_json, after):
        while at < len(texts) and texts[at] != item:
            at += 1
        if at == len(texts):
            return None
        places.add(at)
        at += 1
    return places


def _are_structs(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], msgspec.Struct)


def _json(value: Any) -> bytes:
    """Spell a value as for a content hash, which distinguishes 1, 1.0 and true."""
    return msgspec.json.encode(value, order="deterministic")


UNREAD = "not read, so it cannot be converted to another dialect"
NO_TURN = "the case is left out, because it has no user message"
NO_HEAD = "the target format has no place for it beside the cases"


class Loss(NamedTuple):
    """Something that the converted file does not state as the source does.

    ``case`` is empty for what a file states beside its cases. ``field`` is a path in Baton's case,
    or in the source's if Baton's case does not hold it. ``is_added``: the source does not state it,
    and the dialect cannot leave it out.
    """

    case: str
    field: str
    reason: str
    is_added: bool = False


class Converted(NamedTuple):
    """A converted file: its text, the number of cases, the losses, and notes."""

    text: str
    written: int
    losses: list[Loss]
    notes: list[str]


class _Piece(NamedTuple):
    """A case, and the data to write for it; ``None`` when the dialect cannot hold it."""

    case: Case
    written: dict[str, Any] | None
    is_carried: bool


def convert(
    dataset: Dataset,
    to: Target,
    out: FilePath,
    *,
    agents: Mapping[str, AgentCard] | None = None,
    redaction: Redaction = ON,
    start: tuple[Session, dict[str, Any]] | None = None,
) -> Converted:
    """Write a dataset in another dialect, as text for the file ``out``: JSON, or YAML by suffix.

    The output is read again, and every difference is a loss, so that nothing is lost silently. A
    case that is in the dialect already is copied unchanged. Cases that state no session and no
    state start with those of ``start``.

    Raises:
        InputError: the dialect can hold none of the cases, or ``out`` is neither JSON nor YAML.
    """
    if out.suffix not in (".json", ".yaml", ".yml"):
        raise InputError(f"{out}: write to a file that ends in .json, .yaml or .yml")
    writer = TARGETS[to]
    losses: list[Loss] = []
    pieces = [_piece(dataset, place, to, losses, start) for place in range(len(dataset))]
    kept = [piece for piece in pieces if piece.written is not None]
    if not kept:
        raise InputError(f"no case can be written: {losses[-1].reason}")
    cases = [piece.written for piece in kept if piece.written is not None]
    value = _whole(dataset, to, cases, all(piece.is_carried for piece in kept), losses)
    redacted = redaction.value(value)
    if out.suffix == ".json":
        text = msgspec.json.format(msgspec.json.encode(redacted), indent=2).decode() + "\n"
    else:
        text = dump_yaml(redacted)
    again = read_data(str(out), text.encode(), About(out.name.split(".")[0], agents))
    for piece, case in zip(kept, again.cases if again is not None else (), strict=True):
        stated = redaction.value(piece.case)
        for difference in differences(stated, case):
            reason = _reason(difference, writer)
            losses.append(Loss(stated.id, path_text(difference.path), reason, difference.is_added))
    order = {case_id: place for place, case_id in enumerate(dataset.ids)}
    losses.sort(key=lambda loss: order.get(loss.case, -1))
    notes = [f"{out}: {note}"] if (note := writer.notes.get(out.suffix)) else []
    if redacted is not value:
        notes.append(f"{out}: secrets were replaced by tags; {option('redact', False)} keeps them")
    return Converted(text, len(kept), losses, notes)


def states_session(case: Case) -> bool:
    """Return whether a case states app, user, session id or state, so that it keeps them."""
    return case.session != Session() or bool(case.state)


def _piece(
    dataset: Dataset,
    place: int,
    to: Target,
    losses: list[Loss],
    start: tuple[Session, dict[str, Any]] | None,
) -> _Piece:
    cases = dataset.cases
    case = cases[place]
    source = cases.source(place) if isinstance(cases, CaseSequence) else None
    starts_anew = start is not None and not states_session(case)
    if start is not None and starts_anew:
        case = msgspec.structs.replace(case, session=start[0], state=start[1])
    value = source.document.value() if source else None
    keys = value[0] if isinstance(value, list) and value else value
    dialect = dialect_of_case(keys) if isinstance(keys, dict) else None
    as_it_stands = kept_as_written(value, dialect, to)
    if source is not None and as_it_stands is not None:
        if source.parse(source.document).id != case.id:
            as_it_stands[ID_KEYS[to]] = case.id
        if starts_anew:
            begins = TARGETS[to].case(case, {}) or {}
            keys = ("session_input", "session", "state")
            as_it_stands |= {key: begins[key] for key in keys if key in begins}
        return _Piece(case, as_it_stands, is_carried=True)
    if source is not None:
        paths = unread(
            value,
            lambda changed: source.parse(
                Document(source.document.file, msgspec.json.encode(changed), "json")
            ),
        )
        losses += [Loss(case.id, path_text(path), UNREAD) for path in paths]
    written = TARGETS[to].case(case, blobs(value))
    if written is None:
        if case.scenario is None:
            losses.append(Loss(case.id, "turns", NO_TURN))
        else:
            losses.append(Loss(case.id, "scenario", TARGETS[to].reasons["scenario"]))
    return _Piece(case, written, is_carried=False)


def _whole(
    dataset: Dataset, to: Target, cases: list[dict[str, Any]], is_carried: bool, losses: list[Loss]
) -> Any:
    """Put cases into a file; a file that stays in its dialect keeps the data beside its cases."""
    heads = [_head(FilePath(file)) for file in dataset.files]
    head = heads[0] if len(heads) == 1 else {}
    if is_carried and head is None and to == "strands":
        return cases
    description = (head or {}).get("description")
    written = TARGETS[to].file(Head(dataset.name, description or None), cases)
    if is_carried and head:
        values = {snake(key) for key, item in head.items() if item is not None}
        rest = {key: item for key, item in written.items() if key not in values}
        return {**{snake(key): item for key, item in head.items()}, **rest}
    for each in heads:
        for key, item in (each or {}).items():
            if item and snake(key) != "creation_timestamp" and item not in written.values():
                losses.append(Loss("", key, NO_HEAD))
    return written


def _head(file: FilePath) -> dict[str, Any] | None:
    """Return the data of a file beside its cases; ``None`` when it is a list of cases."""
    data = read_bytes(file)
    value = _parsed(str(file), without_comments(data), "json")
    if value is None:
        value = _parsed(str(file), data, "yaml")
    if not isinstance(value, dict):
        return None
    key = (dialect_of_mapping(value) or (None, None))[1]
    return {} if key is None else {name: item for name, item in value.items() if name != key}


def _parsed(file: str, data: bytes, kind: Literal["json", "yaml"]) -> Any:
    """Parse a file; ``None`` when it is not JSON or YAML, such as JSON lines."""
    try:
        return Document(file, data, kind).value()
    except InputError:
        return None


def _reason(difference: Difference, writer: Writer) -> str:
    """Return why a dialect cannot hold a value, by the longest path that has a reason."""
    names = [step for step in difference.path if isinstance(step, str)]
    for sign in ("+", "") if difference.is_added else ("",):
        for length in range(len(names), 0, -1):
            reason = writer.reasons.get(sign + ".".join(names[:length]))
            if reason is not None:
                return reason
    return f"reads back as {msgspec.json.encode(difference.after).decode()}"


ID_KEYS: dict[Target, str] = {
    "adk": "eval_id",
    "judge-llm": "eval_id",
    "strands": "name",
    "baton": "id",
}
_JUDGE_LLM = {
    "": {
        "conversation",
        "creation_timestamp",
        "eval_id",
        "evaluator_config",
        "metadata",
        "session_input",
    },
    "turn": {
        "creation_timestamp",
        "final_response",
        "intermediate_data",
        "invocation_id",
        "user_content",
    },
    "data": {"intermediate_responses", "tool_uses"},
    "tool_use": {"args", "id", "input_data", "name"},
}
_OPEN = {"session_input", "usage_metadata"}


def kept_as_written(value: Any, source: Dialect | None, to: Target) -> dict[str, Any] | None:
    """Return a case unchanged if the target has the same dialect, else ``None``.

    Keys of eval sets become snake_case; fields that ADK or judge-llm require are added.
    """
    if not isinstance(value, dict):
        return None
    if (source, to) in (("own", "baton"), ("strands", "strands")):
        return dict(value)
    if source != "evalset" or to not in ("adk", "judge-llm"):
        return None
    case: dict[str, Any] = copy.deepcopy(normalise(value, EvalCase))
    if to == "adk":
        return _completed_for_adk(case) if _is_adk(case) else None
    return _completed_for_judge_llm(case) if _is_judge_llm(case) else None


def blobs(value: Any) -> dict[str, dict[str, Any]]:
    """Collect attachments that contain their bytes, by their SHA-256."""
    by_hash: dict[str, dict[str, Any]] = {}
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            blob = node.get("inline_data", node.get("inlineData"))
            if isinstance(blob, dict):
                for part in attachments([Part(inline_data=blob)]) or ():
                    by_hash[part.sha256 or ""] = blob
            stack += node.values()
        elif isinstance(node, list):
            stack += node
    return by_hash


def _turns(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from case.get("conversation") or ()


def _data(turn: dict[str, Any]) -> dict[str, Any]:
    return turn.get("intermediate_data") or {}


def _is_adk(case: dict[str, Any]) -> bool:
    """Tell whether ADK accepts a case: it refuses unknown keys and judge-llm's records."""
    unknown = prune(case, EvalCase)[1]
    if any(len(key.path) > 1 and not _OPEN & set(key.path) for key in unknown):
        return False
    return all(
        not isinstance(turn.get("user_content"), str)
        and not isinstance(turn.get("final_response"), str)
        and all("input_data" not in use for use in _data(turn).get("tool_uses") or ())
        and all(author_pair(record) for record in _data(turn).get("intermediate_responses") or ())
        for turn in _turns(case)
    )


def _is_judge_llm(case: dict[str, Any]) -> bool:
    """Tell whether judge-llm knows every field of a case."""
    return (
        "conversation" in case
        and _stated_keys(case) <= _JUDGE_LLM[""]
        and all(
            _stated_keys(turn) <= _JUDGE_LLM["turn"]
            and _stated_keys(_data(turn)) <= _JUDGE_LLM["data"]
            and all(
                _stated_keys(use) <= _JUDGE_LLM["tool_use"]
                for use in _data(turn).get("tool_uses") or ()
            )
            and all(isinstance(r, dict) for r in _data(turn).get("intermediate_responses") or ())
            for turn in _turns(case)
        )
    )


def _stated_keys(node: dict[str, Any]) -> set[str]:
    return {key for key, value in node.items() if value is not None}


def _completed_for_adk(case: dict[str, Any]) -> dict[str, Any]:
    for holder in (case, *_turns(case)):
        for number, rubric in enumerate(holder.get("rubrics") or (), 1):
            rubric.setdefault("rubric_id", f"rubric-{number}")
    _name_session(case.get("session_input"), APP, USER)
    return case


def _completed_for_judge_llm(case: dict[str, Any]) -> dict[str, Any]:
    case.setdefault("creation_timestamp", BEGINNING)
    case["session_input"] = case.get("session_input") or {}
    _name_session(case["session_input"], "", "")
    for number, turn in enumerate(_turns(case), 1):
        turn.setdefault("invocation_id", f"turn-{number}")
        turn.setdefault("creation_timestamp", BEGINNING)
        turn["user_content"] = _content(turn["user_content"])
        turn["final_response"] = _content(turn.get("final_response"))
        for place, use in enumerate(_data(turn).get("tool_uses") or (), 1):
            use.setdefault("id", f"call-{place}")
            use.setdefault("args", msgspec.convert(use, FunctionCall).arguments() or {})
    return case


def _content(value: Any) -> Any:
    if isinstance(value, str):
        return {"parts": [{"text": value}]}
    return {"parts": []} if value is None else value


def _name_session(session: dict[str, Any] | None, app: str, user: str) -> None:
    if session is not None:
        session["app_name"] = session.get("app_name") or app
        session["user_id"] = session.get("user_id") or user


BOOKKEEPING = frozenset(
    {"creation_timestamp", "from_agent", "id", "invocation_id", "role", "session_id"}
)
"""Fields that a tool generates or repeats, and that hold nothing a case states."""


def unread(value: Any, parse: Callable[[Any], Case]) -> list[Path]:
    """Return the paths of plain data that can be changed without changing the case.

    Each leaf is changed in turn and the case is read again, so this holds for any dialect, whatever
    its reader does. A branch that is not read at all is returned as one path.
    """
    before = parse(value).content_hash()

    def is_read(changed: Any) -> bool:
        try:
            return parse(changed).content_hash() != before
        except InputError:
            return True

    return _unread(value, (), value, is_read)[0]


def _unread(
    node: Any, path: Path, whole: Any, is_read: Callable[[Any], bool]
) -> tuple[list[Path], bool]:
    """Return the unread paths below a node, and whether the whole node is unread."""
    children = list(_children(node))
    if not children:
        if node in (None, "", [], {}) or (path and snake(str(path[-1])) in BOOKKEEPING):
            return [], True
        ignored = not is_read(_with(whole, path, _changed(node)))
        return ([path] if ignored else []), ignored
    unread_paths: list[Path] = []
    nothing = True
    for step, child in children:
        paths, ignored = _unread(child, (*path, step), whole, is_read)
        unread_paths += paths
        nothing = nothing and ignored
    return ([path] if nothing and unread_paths and path else unread_paths), nothing


def _children(node: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(node, dict):
        yield from node.items()
    elif isinstance(node, list):
        yield from enumerate(node)


def _changed(leaf: Any) -> Any:
    if isinstance(leaf, bool):
        return not leaf
    if isinstance(leaf, int | float):
        return 0 if leaf else 1
    return f"{leaf}~"


def _with(node: Any, path: Path, leaf: Any) -> Any:
    """Copy plain data with one leaf replaced."""
    if not path:
        return leaf
    step, *rest = path
    copy = node.copy()
    copy[step] = _with(node[step], tuple(rest), leaf)
    return copy
