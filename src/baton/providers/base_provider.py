"""Common parts of providers: options, surroundings, hooks."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import msgspec

from baton.http.responses import ANSWER_MIB, EVENT_MIB, EVENTS, SECONDS, Count, Mebibytes
from baton.model import Case, ExpectedTurn, InputError, Problem, ProviderError, Trace, Turn
from baton.model.dataset import Need
from baton.plugins import Alias
from baton.plugins.user_code import Function, load_function
from baton.readers import Catalog
from baton.stand_ins import Play, decision_trace

from .user_functions import call, worded

Positive = Annotated[float, msgspec.Meta(gt=0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]


class CaseCancelled(asyncio.CancelledError):
    """Raised by a cancelled provider, with the partial record of the case."""

    def __init__(self, trace: Trace | None) -> None:
        super().__init__()
        self.trace = trace


class HookOptions(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The user's functions, as ``module:function``, sync or async.

    ``before_case(case)`` may return a dict that is added to the session's state at the start;
    ``after_turn(case, turn)`` gets the turn that was just played.
    """

    before_case: str | None = None
    after_turn: str | None = None


class ProviderOptions(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Options of any provider.

    ``agent_id`` and ``agent_metadata`` describe the agent in the evaluation's folder. ``model`` is
    the model used for the price of runs whose source does not name one. ``custom_pricing`` gives
    USD per million tokens by model, as ``input`` and ``output``. ``restart`` is a shell command
    that restarts the agents' server, for turns that request it. ``restart_timeout`` is the maximum
    number of seconds for the command and the server.
    """

    type: str
    agent_id: str | None = None
    agent_metadata: dict[str, Any] | None = None
    model: str | None = None
    custom_pricing: dict[str, dict[str, NotNegative]] | None = None
    hooks: HookOptions | None = None
    restart: str | None = None
    restart_timeout: Positive = 60


class PromptsOptions(ProviderOptions, kw_only=True):
    """Options of a provider whose agents' texts can be in files.

    ``prompts`` are these files by the name of the component (``agent:refunds``). ``prompts_to`` is
    a function, as ``module:function``. Before anything is played, it gets the changed texts as a
    dict by name. With ``environment``, a program reads them from BATON_PROMPTS instead.
    """

    prompts: dict[str, str] = msgspec.field(default_factory=dict)
    prompts_to: str | None = None


class ServerOptions(PromptsOptions, kw_only=True):
    """Options of a provider that talks to a server.

    ``timeout`` is the number of seconds for which the server may send nothing. ``retry_attempts``
    is the total number of times a request is sent. ``retry_delay`` is the number of seconds before
    the second attempt, and doubles for each further one. ``verify_ssl`` is true, false, or the file
    of a CA. One answer may have a size of ``max_answer_mib``, take ``max_seconds``, and have
    ``max_events`` events of up to ``max_event_mib`` each.
    """

    timeout: Positive = 60
    verify_ssl: bool | str = True
    retry_attempts: Count = 3
    retry_delay: NotNegative = 1
    max_answer_mib: Mebibytes = ANSWER_MIB
    max_events: Count = EVENTS
    max_event_mib: Mebibytes = EVENT_MIB
    max_seconds: Positive = SECONDS


class Surroundings(NamedTuple):
    """The environment of a provider: paths and functions are searched below ``folder``.

    ``texts`` are the changed components, by name.
    """

    folder: Path = Path()
    agents: Catalog = {}  # noqa: RUF012 - never written to
    texts: Mapping[str, str] = {}


Options = TypeVar("Options", bound=ProviderOptions)


class ConfiguredProvider(ABC, Generic[Options]):
    """A provider made from options of a config.

    ``summary`` describes its purpose in ``baton list``. A class with a summary is found by the name
    of its module, and by ``aliases``, which are other tools' names for it. ``notice`` is shown with
    every result. ``has_server`` allows ``restart``.
    """

    summary: ClassVar[str]
    aliases: ClassVar[tuple[Alias, ...]] = ()
    options_type: type[Options]
    notice: str | None = None
    has_server: bool = False

    def __init__(self, options: Options, around: Surroundings | None = None) -> None:
        """Check everything possible before the run; raises InputError."""
        if options.restart is not None and not self.has_server:
            raise InputError(Problem(path="restart", message=_no_server(options.type)))
        self.options = options
        self.around = around or Surroundings()
        self.hooks = Hooks(options.hooks, self.around.folder)

    @classmethod
    def translated(cls, spec: dict[str, Any]) -> dict[str, Any]:
        """Translate a spec with another tool's name to Baton's options; raises InputError."""
        return spec

    @abstractmethod
    async def __call__(self, case: Case) -> Trace:
        """Play a case; raises ProviderError."""

    def lacks(self, need: Need) -> str | None:
        """Return why cases with a need cannot be played here; ``None`` if they can."""
        if need != "restart" or self.options.restart is not None:
            return None
        if not self.has_server:
            return _no_server(self.options.type)
        return "state how, as `restart: COMMAND` of the provider"

    async def components(self) -> dict[str, str]:
        """Return the current texts that can be changed, by the name of the component.

        The provider has to be entered.

        Raises:
            ProviderError: it has no texts that Baton can change.
        """
        raise ProviderError(f"`{self.options.type}` has no texts that can be replaced from here")

    def text_places(self, component: str) -> list[Path]:
        """Return the files and folders with the text of a component; empty if unknown.

        They are used to replace a text with a better one. This method opens nothing.
        """
        if isinstance(self.options, PromptsOptions) and component in self.options.prompts:
            return [self.around.folder / self.options.prompts[component]]
        return []

    async def tools(self) -> set[str]:
        """Return the known names of the agents' tools. The provider has to be entered."""
        listed = [card.tools for card in self.around.agents.values()]
        return {name for tools in listed if isinstance(tools, list) for name in tools}

    async def prepare(self) -> None:
        """Prepare for the next call. The time for this does not count for the case."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None


async def stood_in(case: Case, play: Play, playing: Awaitable[Trace]) -> Trace:
    """Return the trace of a case that is played with stand-ins, with their answers marked in it.

    For a decision, the trace is made from the calls to stand-ins.

    Raises:
        ProviderError: a call had to be refused, or the case could not be played.
        CaseCancelled: with the record so far.
    """
    try:
        seen = await playing
    except CaseCancelled as cancelled:
        if cancelled.trace is not None:
            play.mark(cancelled.trace)
        raise
    except ProviderError as error:
        if error.trace is not None:
            play.mark(error.trace)
        play.check(error.trace)
        if not play.decided:
            raise
        return decision_trace(case, play, error.trace)
    except Exception:
        # A program can fail because a tool was refused. Then the refusal is reported, because it
        # explains what to do, and a resulting `IndexError` does not. Without a refusal, the
        # program's own error is reported.
        play.check()
        raise
    if play.stops:
        play.check(seen)
        return decision_trace(case, play, seen)
    play.mark(seen)
    play.check(seen)
    return seen


NextMessage = Callable[[Trace], Awaitable[ExpectedTurn | None]]
"""Receives the record of a conversation after a turn; returns the next message, if any."""
Watch = Callable[[Callable[[], Trace]], None]
"""Called when a running turn has more data, with a function that makes the record."""
_LOOK = 0.4
"""Seconds between two checks of a running function, which cannot report progress."""


class Hooks:
    """The user's functions around a case.

    ``next_message`` is called after each turn, to ask the user of a chat. With it, a case can begin
    with only its first message. ``watch`` is called while a turn is played.
    """

    next_message: NextMessage | None = None
    watch: Watch | None = None

    def __init__(self, options: HookOptions | None, folder: Path) -> None:
        self._before_case = _function(options.before_case if options else None, folder)
        self._after_turn = _function(options.after_turn if options else None, folder)

    @property
    def follows_turns(self) -> bool:
        """Whether there is a function to run after each turn."""
        return self._after_turn is not None

    async def state(self, case: Case) -> dict[str, Any]:
        """Run the hook before a case; return the state to start with."""
        if self._before_case is None:
            return case.state
        more = await _run("before_case", self._before_case, case)
        if more is not None and not isinstance(more, dict):
            kind = type(more).__name__
            raise ProviderError(f"the hook before_case returned {kind}, not a dict of state")
        return {**case.state, **(more or {})}

    async def after_turn(self, case: Case, turn: Turn) -> None:
        """Run the hook after a turn."""
        if self._after_turn is not None:
            await _run("after_turn", self._after_turn, case, turn)

    async def next_turn(self, case: Case, seen: Callable[[], Trace]) -> None:
        """Ask for the next message, if there is a chat, and add it as the last turn of the case.

        Providers call this after each turn, and iterate over the turns that the case then has.
        """
        if self.next_message is not None:
            reply = await self.next_message(seen())
            if reply is not None:
                case.turns.append(reply)

    def grew(self, seen: Callable[[], Trace]) -> None:
        """Notify watchers that a turn has more data; ``seen`` makes the record so far."""
        if self.watch is not None:
            self.watch(seen)

    @asynccontextmanager
    async def watching(self, seen: Callable[[], Trace]) -> AsyncIterator[None]:
        """Notify watchers several times a second while the block runs."""
        if self.watch is None:
            yield
            return

        async def look() -> None:
            while True:
                await asyncio.sleep(_LOOK)
                self.grew(seen)

        looking = asyncio.create_task(look())
        try:
            yield
        finally:
            looking.cancel()


def option_error(path: str, message: str) -> InputError:
    """Return the error of the option at ``path``."""
    return InputError(Problem(path=path, message=message))


def refuse_unplayable(case: Case, *, restarts: bool = False, stand_ins: bool = False) -> None:
    """Raise ProviderError for a case that has no messages to send, or nothing to restart.

    A case with stand-ins is played only if they can answer, because its tools must not really run.
    """
    if not stand_ins and (case.stand_ins is not None or case.dispatch is not None):
        what = "is a dispatch case" if case.dispatch is not None else "has stand-ins"
        raise ProviderError(
            f"the case {what}, and this provider cannot let stand-ins answer for tools; "
            "`python`, `adk_local`, `adk_http` and `claude_sdk` can"
        )
    if case.scenario is not None:
        raise ProviderError("the case is a scenario: it needs a simulated user")
    if case.dispatch is not None and case.dispatch.lacks is not None:
        raise ProviderError(f"the case cannot be played: {case.dispatch.lacks}")
    if not case.turns:
        raise ProviderError("the case has no turns: there is nothing to send")
    for number, turn in enumerate(case.turns, 1):
        if turn.input.parts:
            raise ProviderError(f"turn {number}: attachments of a message cannot be sent")
        if not turn.input.plain():
            raise ProviderError(f"turn {number}: the message is empty")
        if turn.restart and not restarts:
            raise ProviderError(
                f"turn {number}: no option says how to restart the agents' server (`restart` of "
                "`adk_http` and `http`)"
            )


def _no_server(kind: str) -> str:
    return f"`{kind}` has no server to restart; `adk_http` and `http` have one"


def _function(spec: str | None, folder: Path) -> Function | None:
    return None if spec is None else load_function(spec, folder)


async def _run(name: str, function: Function, *arguments: object) -> object:
    try:
        return await call(function, *arguments)
    except InputError as error:
        raise ProviderError(f"the hook {name} failed: {error}") from error
    except Exception as error:
        raise ProviderError(f"the hook {name} raised {worded(error)}") from error
