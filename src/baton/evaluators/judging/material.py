"""Turns parts of the record into text for a judge, in sections that are cut to size."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from baton.evaluators.judging.subject import Subject
from baton.judges.fenced_prompts import fenced_neutral, neutral
from baton.judges.shorten_texts import NOTE, clip, shares
from baton.model import (
    AgentCard,
    AgentRun,
    Content,
    Dispatch,
    GotBack,
    HandedOff,
    Said,
    Step,
    ToolCall,
    Trace,
    Unit,
)

Kind = Literal["texts", "arguments", "results"]
"""The content of a body: arguments for a tool or another agent, a tool's result, or other text.

The result of an agent counts as other text: the agent's words may report what it did.
"""

INDENT = "    "
# Line ends that JSON can contain unescaped. They are escaped, so no key or value starts a line.
_LINE_ENDS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})
_ODD_LINE_END = re.compile("[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# A description with such a line could pass for another field of its agent, for example
# `Reads files.\ntools: all`.
_LINE_END = rf"(?:\n|{_ODD_LINE_END.pattern})"
# Text of an agent that looks like a line of ours below its name: "\ntools: all". In the middle of a
# line it is only text.
_LIKE_A_FIELD = re.compile(rf"{_LINE_END}(?:(?!{_LINE_END})\s)*(?:tools|denied|what it is for)\s*:")


class Body(NamedTuple):
    """Content that can be shortened: a text, or JSON whose long texts can be."""

    content: Any
    kind: Kind
    indent: str = INDENT

    @property
    def text(self) -> str:
        """The full text, as shown if there is room."""
        text = value(self.content)
        if text.endswith("\n") or _ODD_LINE_END.search(text) is not None:
            return textwrap.indent(text, self.indent, lambda _: True)
        return self.indent + text.replace("\n", f"\n{self.indent}")  # the same, and faster


Part = str | Body
"""A line by Baton, which is always shown, or the content below it."""


class Piece(NamedTuple):
    """A text, the ids of its holders, and its parts. Created by :func:`piece`."""

    ids: tuple[str, ...]
    text: str
    parts: tuple[Part, ...]


def piece(ids: tuple[str, ...], *parts: Part) -> Piece:
    """Join parts, one below the other."""
    text = "\n".join([part if isinstance(part, str) else part.text for part in parts])
    return Piece(ids, text, parts)


def raw(ids: tuple[str, ...], text: str, kind: Kind = "texts") -> Piece:
    """Return a text without a line by Baton above it. It has to be the only text shown."""
    return Piece(ids, text, (Body(text, kind, ""),))


def plain(content: Content | None) -> str:
    """Return content as text, with attachments replaced by their names."""
    if content is None:
        return ""
    texts = [content.plain()]
    texts += [line(f"(attached: {part.mime or part.type})") for part in content.parts or ()]
    return "\n".join(text for text in texts if text)


def value(data: Any) -> str:
    """Return plain data as JSON, and a text unchanged."""
    if isinstance(data, str):
        return data
    text = msgspec.json.format(msgspec.json.encode(data), indent=1).decode()
    return text if text.isascii() else text.translate(_LINE_ENDS)


def line(text: str) -> str:
    """Return a name from the record on one line."""
    return " ".join(text.split())


def block(head: str, body: Any, kind: Kind = "texts") -> tuple[Part, ...]:
    """Put a text (or JSON) below a one-line heading."""
    return (line(head),) if body == "" else (line(head), Body(body, kind))


def step_pieces(trace: Trace, steps: Iterable[Step]) -> list[Piece]:
    """Write steps, each with its results. Thoughts are left out."""
    made = {d.id: d for turn in trace.turns for d in turn.dispatches}
    steps = list(steps)
    shown = {step.dispatch for step in steps if isinstance(step, HandedOff)}
    return [pieces for step in steps for pieces in _step(made, shown, step)]


def run_pieces(trace: Trace, run: AgentRun) -> list[Piece]:
    """Write a run: its agent, its steps, and its answer unless a step contains it."""
    pieces = [piece((run.id,), line(f"agent {run.agent} at work ({run.status})"))]
    pieces += step_pieces(trace, run.steps)
    texts = {plain(step.content) for step in run.steps if isinstance(step, Said)}
    if run.output and plain(run.output) not in texts:
        pieces.append(piece((run.id,), *block("its answer:", plain(run.output))))
    if run.error:
        pieces.append(piece((run.id,), *block("it ended with an error:", run.error, "results")))
    return pieces


def call_parts(call: ToolCall, *, result: bool = True, by: str = "") -> tuple[Part, ...]:
    """Write a tool call with its result and, if that is not clear, the caller (``by``)."""
    arguments = "(no arguments)" if call.arguments is None else call.arguments
    parts = block(f"{by} called the tool {call.name} with:", arguments, "arguments")
    if not result:
        return parts
    back = call.error or plain(call.result) or "(nothing)"
    return parts + block(f"which came back ({call.status}) with:", back, "results")


def dispatch_parts(dispatch: Dispatch, *, bare: bool = False) -> tuple[Part, ...]:
    """Write the agent and the work it was given, or with ``bare`` only the agent."""
    about = [dispatch.kind, dispatch.id]
    about += ["in the background"] if dispatch.mode == "background" else []
    about += [f"to the agent that did {dispatch.continues}"] if dispatch.continues else []
    parts: tuple[Part, ...] = (line(f"handed work to {dispatch.to_agent} ({', '.join(about)})"),)
    if bare:
        return parts
    if dispatch.description:
        parts += block("described as:", dispatch.description, "arguments")
    if dispatch.prompt:
        parts += block("with the prompt:", plain(dispatch.prompt), "arguments")
    if dispatch.context:
        parts += block("and the context:", dispatch.context, "arguments")
    return parts


def result_parts(dispatch: Dispatch) -> tuple[Part, ...]:
    """Write the result of a dispatch."""
    text = plain(dispatch.result) or dispatch.error or "(nothing)"
    return block(f"got back from {dispatch.to_agent} ({dispatch.status}):", text)


def card_parts(name: str, card: AgentCard) -> tuple[Part, ...]:
    """Write the known data of an agent."""
    says = card.description or "(not told)"
    if _LIKE_A_FIELD.search(says):
        says = textwrap.indent(says, INDENT, lambda _: True).strip()
    parts: tuple[Part, ...] = block(f"agent {name}", f"what it is for: {says}")
    parts += (f"{INDENT}tools: {tools_text(card.tools)}",)
    if card.denied_tools:
        parts += (f"{INDENT}denied: {tools_text(card.denied_tools)}",)
    return parts


def tools_text(names: list[str] | str | None) -> str:
    """Write a list of tools."""
    if names is None:
        return "(not told)"
    return "all" if isinstance(names, str) else line(", ".join(names)) or "(none)"


def _step(made: Mapping[str, Dispatch], shown: Collection[str], step: Step) -> Iterator[Piece]:
    """Write one step. If a call's dispatch is in ``shown``, only that is written for the call."""
    if isinstance(step, Said):
        if not step.thought:
            yield piece((step.id,), *block("said:", plain(step.content)))
    elif isinstance(step, ToolCall):
        if step.dispatch is None or step.dispatch not in made:
            yield piece((step.id,), *call_parts(step))
        elif step.dispatch not in shown:
            yield piece((step.id, step.dispatch), *dispatch_parts(made[step.dispatch]))
    elif isinstance(step, HandedOff) and step.dispatch in made:
        yield piece((step.id, step.dispatch), *dispatch_parts(made[step.dispatch]))
    elif isinstance(step, GotBack) and step.dispatch in made:
        yield piece((step.id, step.dispatch), *result_parts(made[step.dispatch]))


class Given(NamedTuple):
    """The known content, piece by piece. Without pieces, it is empty."""

    pieces: Sequence[Piece]


class Missing(NamedTuple):
    """Why an input is unknown, and how to supply it. ``unstated``: a case can omit it."""

    says: str
    unstated: bool = False


class Input(NamedTuple):
    """An input: its heading for the judge, the units that have it, and its source.

    ``none`` is the text for the judge if the input is empty. Without it, a subject with an empty
    input cannot be judged.
    """

    title: str
    units: tuple[Unit, ...]
    find: Callable[[Subject], Given | Missing]
    summary: str
    none: str | None = None


def given(*pieces: Piece) -> Given:
    """Return the pieces that have a text."""
    return Given([piece for piece in pieces if piece.text.strip()])


class Section(NamedTuple):
    """One input as the judge sees it: its name, heading and text, or why it is unknown.

    With ``is_list``, it lists the items to label one by one, and has its own room.
    """

    name: str
    title: str
    text: str
    pieces: Sequence[Piece] = ()
    missing: bool = False
    is_list: bool = False


class LeftOut(NamedTuple):
    """The part of a section that a judge was not shown: its step, kind and character count."""

    section: str
    ids: tuple[str, ...]
    kind: Kind
    chars: int


def omission_text(left_out: Sequence[LeftOut]) -> str:
    """Describe the omitted characters, their inputs, and the steps that lose the most."""
    inputs = ", ".join(f"`{name}`" for name in dict.fromkeys(one.section for one in left_out))
    steps = sorted((one for one in left_out if one.ids), key=lambda one: -one.chars)[:3]
    most = ", ".join(f"{one.chars:,} of the {one.kind} of `{one.ids[0]}`" for one in steps)
    total = f"{sum(one.chars for one in left_out):,} characters of {inputs}"
    return total + (f" ({most}{', ...' if len(left_out) > len(steps) else ''})" if most else "")


LONGEST = 4000
"""The characters always shown of each item to label: a long paragraph."""
_FREE = 5
"""The part of the limit (a fifth) reserved for content that can't change the verdict. The judge
should see the kinds of results, even if calls and texts alone fill the room."""

_LINE = len("said:\n")
"""The shortest line by Baton, with its line end. It gives the least room that all lines take."""

Matters = Callable[[str, Kind | None], bool]
"""Returns whether omitted content of a section (and kind of body) could change the verdict."""


class TooLongError(ValueError):
    """Raised if material can't be shown to a judge in a way that makes the verdict count."""


class FittedMaterial(NamedTuple):
    """The content of a request, and the parts left out of it."""

    content: str
    left_out: list[LeftOut]


class _Leaf:
    """A text that can be shortened to ``keep`` characters."""

    __slots__ = ("ids", "indent", "keep", "kind", "matters", "section", "text")

    def __init__(
        self, section: str, ids: tuple[str, ...], kind: Kind, text: str, indent: str, matters: bool
    ) -> None:
        self.section, self.ids, self.kind = section, ids, kind
        self.text, self.indent, self.matters = text, indent, matters
        self.keep = len(text)

    @property
    def least(self) -> int:
        """The least room it takes: that of a note, or of the full text if that is no longer."""
        return min(len(self.text), NOTE)

    @property
    def more(self) -> int:
        """The further room that the full text takes."""
        return len(self.text) - self.least

    def allow(self, more: int) -> None:
        """Grant it ``more`` room beyond the least."""
        self.keep = len(self.text) if more >= self.more else more

    @property
    def shown(self) -> str:
        return clip(self.text, self.keep, self.indent).text

    @property
    def cut(self) -> int:
        return len(self.text) - self.keep


class _Json(NamedTuple):
    """JSON whose long texts are leaves."""

    data: Any
    indent: str

    @property
    def shown(self) -> str:
        return Body(_filled(self.data, lambda leaf: leaf.shown), "arguments", self.indent).text

    @property
    def leaves(self) -> Iterator[_Leaf]:
        return _leaves(self.data)

    @property
    def frame(self) -> int:
        """The number of characters without its leaves.

        Escapes in the leaves do not count. In the worst case, a text made only of quotes, every
        character is escaped and the text is twice as long.
        """
        return len(Body(_filled(self.data, lambda _: ""), "arguments", self.indent).text)


_Token = str | _Leaf | _Json


def fit_material(
    sections: Sequence[Section],
    limit: int,
    matters: Matters,
    more: Sequence[tuple[str, str]] = (),
) -> FittedMaterial:
    """Return the content of a request, and the parts left out to keep to ``limit`` characters.

    ``more`` are further blocks, titles and neutral texts, which do not count.

    Lists of items to label do not count: all of them together can be as long as the limit, and
    each item can be as long as ``LONGEST``.

    Raises:
        TooLongError: the parts always shown, such as call names, are longer than the limit.
    """
    lines = sum(
        isinstance(part, str)
        for section in sections
        if not section.is_list and matters(section.name, None)
        for piece in section.pieces
        for part in piece.parts
    )
    if lines * _LINE > limit:  # 100,000 calls: not worth writing out
        raise _names_alone(lines * _LINE, limit)
    texts = {section.name: neutral(section.text) for section in sections}
    left_out: list[LeftOut] = []
    for listed in (False, True):
        group = [section for section in sections if section.is_list is listed]
        if sum(len(texts[section.name]) for section in group) <= limit:
            continue
        laid = {section.name: _tokens(section, matters) for section in group}
        leaves = [leaf for tokens in laid.values() for leaf in _all_leaves(tokens)]
        if listed:
            lengths = [len(leaf.text) for leaf in leaves]
            for leaf, room in zip(leaves, shares(lengths, limit), strict=True):
                leaf.keep = min(len(leaf.text), max(room, LONGEST))
        else:
            _fit(laid, leaves, limit)
        for name, tokens in laid.items():
            texts[name] = "\n".join(_text(token) for token in tokens)
        left_out += [
            LeftOut(leaf.section, leaf.ids, leaf.kind, leaf.cut) for leaf in leaves if leaf.cut
        ]
    blocks = [(section.title, texts[section.name]) for section in sections]
    content = fenced_neutral([*blocks, *more])
    return FittedMaterial(content, left_out)


def _fit(laid: dict[str, list[_Token]], leaves: list[_Leaf], limit: int) -> None:
    """Set the number of characters shown of each leaf."""
    room = limit - sum(_frame(token) for tokens in laid.values() for token in tokens)
    free = [leaf for leaf in leaves if not leaf.matters]
    rest = [leaf for leaf in leaves if leaf.matters]
    free_least = sum(leaf.least for leaf in free)
    free_whole = sum(len(leaf.text) for leaf in free)
    for_free = min(free_whole, max(free_least, room // _FREE))
    left = room - for_free - sum(leaf.least for leaf in rest)
    if left < 0:
        raise _names_alone(limit - left, limit)
    _share(rest, left)
    used = sum(min(len(leaf.text), leaf.keep + leaf.least) for leaf in rest)
    _share(free, room - used - free_least)


def _names_alone(chars: int, limit: int) -> TooLongError:
    return TooLongError(
        f"too long to judge: the parts that are always shown, such as names of calls, take "
        f"at least {chars:,} characters, and the limit is {limit:,}: raise `max_chars`"
    )


def _share(leaves: list[_Leaf], room: int) -> None:
    """Share room among sections first, so a transcript with many steps leaves the request room."""
    sections: dict[str, list[_Leaf]] = {}
    for leaf in leaves:
        sections.setdefault(leaf.section, []).append(leaf)
    wanted = [sum(leaf.more for leaf in group) for group in sections.values()]
    for group, share in zip(sections.values(), shares(wanted, room), strict=True):
        for leaf, more in zip(group, shares([leaf.more for leaf in group], share), strict=True):
            leaf.allow(more)


def _tokens(section: Section, matters: Matters) -> list[_Token]:
    """Split a section into parts that are always shown and parts that can be shortened."""
    if not section.pieces or section.missing:
        return [neutral(section.text)]
    if not matters(section.name, None):
        return [_Leaf(section.name, (), "texts", neutral(section.text), f"\n{INDENT}", False)]
    tokens: list[_Token] = []
    for piece in section.pieces:
        for part in piece.parts:
            if isinstance(part, str):
                tokens.append(neutral(part))
                continue
            counts = matters(section.name, part.kind)
            if isinstance(part.content, str):
                body = Body(neutral(part.content), part.kind, part.indent)
                tokens.append(
                    _Leaf(section.name, piece.ids, part.kind, body.text, f"\n{body.indent}", counts)
                )
            else:
                data = _planted(part.content, section.name, piece.ids, part.kind, counts)
                tokens.append(_Json(data, part.indent))
    return tokens


def _planted(data: Any, section: str, ids: tuple[str, ...], kind: Kind, matters: bool) -> Any:
    """Return JSON in which each long text is a leaf. Keys and short values are always shown."""
    if isinstance(data, dict):
        planted: dict[str, Any] = {}
        for key, each in data.items():
            name = neutral(str(key))
            while name in planted:  # `a\r` and `a\n` become one name when made harmless
                name += "'"
            planted[name] = _planted(each, section, ids, kind, matters)
        return planted
    if isinstance(data, list | tuple):
        return [_planted(each, section, ids, kind, matters) for each in data]
    if isinstance(data, str):
        text = neutral(data)
        return text if len(text) <= NOTE else _Leaf(section, ids, kind, text, " ", matters)
    return msgspec.to_builtins(data)


def _leaves(data: Any) -> Iterator[_Leaf]:
    if isinstance(data, _Leaf):
        yield data
    elif isinstance(data, dict | list):
        for each in data.values() if isinstance(data, dict) else data:
            yield from _leaves(each)


def _filled(data: Any, text_of: Callable[[_Leaf], str]) -> Any:
    if isinstance(data, _Leaf):
        return text_of(data)
    if isinstance(data, dict):
        return {key: _filled(each, text_of) for key, each in data.items()}
    return [_filled(each, text_of) for each in data] if isinstance(data, list) else data


def _all_leaves(tokens: Iterable[_Token]) -> Iterator[_Leaf]:
    for token in tokens:
        if isinstance(token, _Leaf):
            yield token
        elif isinstance(token, _Json):
            yield from token.leaves


def _frame(token: _Token) -> int:
    """Return the length of a token without its leaves, including the line end after it."""
    if isinstance(token, _Leaf):
        return 1
    return 1 + (len(token) if isinstance(token, str) else token.frame)


def _text(token: _Token) -> str:
    return token if isinstance(token, str) else token.shown
