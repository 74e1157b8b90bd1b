"""Types of stand-ins, which answer in place of a tool or an agent, and a check of their names.

`baton.stand_ins` plays them. In a file they are ``stand_ins:`` of a case, a dataset or a config.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Literal

import msgspec

from .errors import ProviderError, nearest

StandInMode = Literal["replay", "fixture", "schema", "mock", "llm", "live"]
"""The source of answers: a recording, written answers, a JSON Schema, mock mode, an LLM, or the
tool itself."""
Unmatched = Literal["error", "live", "schema"]
"""The treatment of a call without an answer."""
FaultKind = Literal[
    "timeout",
    "error",
    "empty",
    "wrong_type",
    "partial",
    "slow",
    "stale",
    "refused",
    "hostile",
]

Seconds = Annotated[float, msgspec.Meta(ge=0)]
Nth = Annotated[int, msgspec.Meta(ge=1)]


class Part(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of the parts of ``stand_ins``: an unknown key stops the run."""


class Fixture(Part, kw_only=True):
    """A written answer.

    ``when`` selects calls: for a tool by the arguments that a call must have (it may have more),
    for an agent by one or more texts that its prompt must contain. Without it, for all calls.
    ``call`` selects the n-th call, or several, counted from 1. The answer is a ``result``, or the
    tool's ``error``; it comes after ``seconds``.
    """

    when: dict[str, Any] | list[str] | str | None = None
    call: Nth | list[Nth] | None = None
    result: Any = None
    error: str | None = None
    seconds: Seconds | None = None


class Fault(Part, kw_only=True):
    """Something that goes wrong with an answer.

    ``timeout``, ``error`` and ``refused`` replace it; ``empty``, ``wrong_type``, ``partial``,
    ``stale`` (the answer of the call before) and ``hostile`` (``text`` is inserted) change it;
    ``slow`` delays it by ``seconds``. ``call`` lists the affected calls, counted from 1; all by
    default. ``text`` is the message of an error, or the hostile text. For an object, ``partial``
    removes the ``share`` of its fields, or truncates its texts to ``length`` characters, and
    ``wrong_type`` changes the ``share`` of its values.
    """

    kind: FaultKind
    call: Nth | list[Nth] | None = None
    seconds: Seconds | None = None
    text: str | None = None
    length: Annotated[int, msgspec.Meta(ge=0)] | None = None
    share: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None

    def __post_init__(self) -> None:
        takes = {"length": ("partial",), "share": ("partial", "wrong_type")}
        for name, kinds in takes.items():
            if getattr(self, name) is not None and self.kind not in kinds:
                raise ValueError(f"`{name}` only applies to `kind: {kinds[0]}`")


class StandIn(Part, kw_only=True):
    """The stand-in for one tool or agent.

    Args:
        mode: where answers come from; ``fixture`` if ``answers`` are given.
        on_unmatched: what happens to a call without an answer.
        answers: written answers; the first matching one is used, and if none matches, the mode
            decides.
        faults: faults of the answers.
        schema: the JSON Schema of a result, for the mode ``schema``.
        key: for the mode ``mock``: the environment variable with the tool's credentials. The answer
            is made up only while it is empty or ``dummy_key``.
        tools: for an agent: stand-ins for the tools that it calls.
    """

    mode: StandInMode | None = None
    on_unmatched: Unmatched | None = None
    answers: list[Fixture] = msgspec.field(default_factory=list)
    faults: list[Fault] = msgspec.field(default_factory=list)
    schema: dict[str, Any] | None = None
    key: str | None = None
    tools: dict[str, StandIn] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.mode in ("replay", "live") and self.answers:
            raise ValueError(f"`answers` are not used with `mode: {self.mode}`")
        if self.key is not None and self.mode != "mock":
            raise ValueError("`key` only applies to `mode: mock`")


class RecordedAnswer(Part, kw_only=True):
    """The answer of a tool or an agent in a recorded run; ``input`` are arguments or a prompt.

    ``before`` marks the answer to a dispatch before the one of the case.
    """

    kind: Literal["tool", "agent"] = "tool"
    name: str
    agent: str | None = None
    input: Any = None
    result: Any = None
    error: str | None = None
    refused: bool = False
    before: bool = False


class StandIns(Part, kw_only=True):
    """The stand-ins for tools and agents.

    Args:
        mode: where answers come from, for tools that are not listed; ``live`` by default.
        on_unmatched: what happens to a call without an answer; ``error`` by default.
        tools: stand-ins by the name of the tool; ``*`` is any tool that is not listed.
        agents: stand-ins by the name of the agent.
        recorded: answers of a recorded run, for the mode ``replay``.
        live: tools that really run, overriding everything else.
        key: for the mode ``mock``: as in a stand-in, for all tools that are not listed.
        about: a description of the world for an answering LLM: the data that the tools work on.
        from_: a file with stand-ins in another tool's format, beside the file that names it.
    """

    mode: StandInMode | None = None
    on_unmatched: Unmatched | None = None
    tools: dict[str, StandIn] = msgspec.field(default_factory=dict)
    agents: dict[str, StandIn] = msgspec.field(default_factory=dict)
    recorded: list[RecordedAnswer] = msgspec.field(default_factory=list)
    live: list[str] = msgspec.field(default_factory=list)
    key: str | None = None
    about: str | None = None
    from_: str | None = msgspec.field(default=None, name="from")

    def __post_init__(self) -> None:
        if self.key is not None and self.mode != "mock":
            raise ValueError("`key` only applies to `mode: mock`")

    @property
    def asks_llm(self) -> bool:
        """Whether an LLM may answer."""
        own = [*self.tools.values(), *self.agents.values()]
        own += [tool for agent in self.agents.values() for tool in agent.tools.values()]
        return "llm" in (self.mode, *(each.mode for each in own))


def merged(under: StandIns | None, over: StandIns | None) -> StandIns | None:
    """Override stand-ins by tool and agent: those of a dataset by those of its case."""
    if under is None or over is None:
        return over or under
    mode = over.mode or under.mode
    return StandIns(
        mode=mode,
        key=(over.key or under.key) if mode == "mock" else None,
        on_unmatched=over.on_unmatched or under.on_unmatched,
        tools={**under.tools, **over.tools},
        agents={**under.agents, **over.agents},
        recorded=over.recorded or under.recorded,
        live=[*dict.fromkeys([*under.live, *over.live])],
        about=over.about or under.about,
    )


_MISSPELT = 0.8
"""The least similarity of a misspelt name: `pay_bak` is, `pay_in` for `pay_out` is not."""


def check_names(
    ins: StandIns, tools: Callable[[], Iterable[str]], agents: Callable[[], Iterable[str]]
) -> None:
    """Raise ProviderError for a misspelt name: `pay_bak` mocked would let `pay_back` pay.

    Not all names are always known, such as those of an MCP server: only a name that is very similar
    to a known one is refused, unless the known one has its own stand-in.

    Args:
        ins: the stand-ins of a case.
        tools: returns the known names of tools; called if the case names one.
        agents: the same for agents.
    """
    own = [*ins.tools, *(tool for each in ins.agents.values() for tool in each.tools)]
    for kind, names, ask in (("tool", {*own} - {"*"}, tools), ("agent", {*ins.agents}, agents)):
        known = {*ask()} if names else set()
        for name in sorted(names - known):
            near = next(_meant(name, known), None)
            if near is not None and near not in names:
                raise ProviderError(
                    f"nothing was run: `stand_ins:` is for the unknown {kind} `{name}`; did you "
                    f"mean `{near}`? If both exist, also state what `{near}` does, as `mode: live`"
                )


def _meant(name: str, known: set[str]) -> Iterator[str]:
    """Yield the name that was probably intended.

    `pay` is `mcp__shop__pay`. The common prefix of a server's names does not make them similar:
    `mcp__shop__pay_in` is not `mcp__shop__pay_out`.
    """
    yield from sorted(each for each in known if each.endswith(f"__{name}"))
    server, mark, own = name.rpartition("__")
    beside = {each for each in known if mark and each.startswith(server + mark)}
    if beside:
        names = [each.removeprefix(server + mark) for each in beside]
        yield from (server + mark + each for each in _alike(own, names))
    else:
        yield from _alike(name, known)


def _alike(name: str, known: Iterable[str]) -> list[str]:
    """Return names with the same letters (`pya` and `pay`), else similar ones."""
    same = sorted(each for each in known if sorted(each) == sorted(name))
    return same or nearest(name, known, 1, _MISSPELT)
