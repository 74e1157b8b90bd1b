"""Claude Code with stand-ins: its tools are replaced by ones that look the same but run nothing.

Claude Code runs its own tools (``Bash``, ``Edit``) itself. A hook can forbid a call, but then the
model reads an error, and ``Edit`` checks its file before the hook is called. So each tool that has
a stand-in is left out, and Baton's own server offers one with the same name, description and
schema. These come from Claude Code itself: it is started once with a loopback server in place of
the model's (:func:`offered`). A hook before each call asks the play. So a tool that is not Baton's
and must not run never runs, regardless of permissions and settings.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from baton.findings.tool_permissions import meant_by
from baton.model import Content, ProviderError, ToolCall, Trace
from baton.readers.builder import MAIN, without
from baton.stand_ins import Decided, Play, Request, StandInError, check_names
from baton.stand_ins.answer_sources import Answer
from baton.stand_ins.play import PreparedAnswer

_DISPATCHING = frozenset({"Agent", "Task"})
"""The tool that starts a sub-agent; its name was `Task` before 2.1.63."""
_BUILT_IN = ("general-purpose", "Explore", "Plan")
"""Sub-agents that are built into Claude Code."""
_OF_THE_SESSION = frozenset(
    {
        *_DISPATCHING,
        "ListAgents",
        "StructuredOutput",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskOutput",
        "TaskStop",
        "TaskUpdate",
        "TodoRead",
        "TodoWrite",
    }
)
"""Tools that always run: they only manage the session's lists, or wait for or end sub-agents."""
_SERVER = "baton"
_STUB = "Answer with the one word OK. Use no tool."
"""The task of a sub-agent that a stand-in answers for, because Claude Code starts it anyway."""
_HOOK_SECONDS = 24 * 3600.0
"""A stand-in can be slow on purpose. The time-out of the turn limits its duration."""
_REFUSED_ARGUMENTS = (
    "allowedTools",
    "dangerously-skip-permissions",
    "mcp-config",
    "setting-sources",
    "settings",
    "tools",
)
"""Command-line arguments that would override the options set here."""


class Offered(NamedTuple):
    """A tool as it is offered to the model."""

    name: str
    description: str
    schema: dict[str, Any]


class Cast(NamedTuple):
    """The agent that the main thread plays: its name, and the tools that it may use."""

    name: str = MAIN
    tools: Sequence[str] | None = None
    denied: Sequence[str] = ()

    def has(self, tool: str) -> bool:
        """Return whether the agent may use a tool, at least for some arguments."""
        call = ToolCall(id="", name=tool, unknown=["arguments"])
        if meant_by(call, self.denied, every_part=False):
            return False
        return self.tools is None or meant_by(call, self.tools, every_part=True) is not False


async def staged(
    play: Play | None,
    options: Any,
    *,
    cast: Cast | None = None,
    descriptions: Mapping[str, str] | None = None,
) -> Any:
    """Return options with which no call runs that a stand-in answers.

    Args:
        play: the stand-ins; ``None`` if every call runs unchanged.
        options: ``ClaudeAgentOptions``.
        cast: the agent whose work the main thread does.
        descriptions: changed tool descriptions for models, by the name of the tool.

    Raises:
        ProviderError: a tool cannot be replaced, or Claude Code does not start.
    """
    play = play or Play()
    cast, descriptions = cast or Cast(), descriptions or {}
    if play.is_idle and not descriptions and cast == Cast():
        return _marked(dataclasses.replace(options))
    _refuse_surprises(options)
    specs = [play.stand_ins.tools, *(each.tools for each in play.stand_ins.agents.values())]
    asks = play.stand_ins.mode not in (None, "live") or any(specs)
    tools = await offered(options) if asks or descriptions or cast.tools is not None else []
    for name in [each for spec in specs for each in spec if each in _DISPATCHING]:
        raise ProviderError(
            f"nothing was run: `{name}` starts sub-agents: write their stand-ins below `agents:`"
        )
    if any(specs) or play.stand_ins.agents:
        check_names(
            play.stand_ins,
            lambda: [tool.name for tool in tools] if asks else [],
            lambda: [*(options.agents or {}), *_BUILT_IN],
        )
    return _marked(Stage(play, options, tools, cast, descriptions).options())


_STAGED = "_baton_staged"


def is_staged(options: Any) -> bool:
    """Return whether options were made by :func:`staged`, to avoid staging them twice."""
    return getattr(options, _STAGED, False)


def _marked(options: Any) -> Any:
    setattr(options, _STAGED, True)
    return options


class Stage:
    """One conversation with stand-ins."""

    def __init__(
        self,
        play: Play,
        options: Any,
        tools: Sequence[Offered],
        cast: Cast,
        descriptions: Mapping[str, str],
    ) -> None:
        self._play, self._options, self._cast = play, options, cast
        self._agents = dict(options.agents or {})
        self._tools = [
            tool._replace(description=descriptions.get(tool.name, tool.description))
            for tool in tools
        ]
        self._described = set(descriptions)
        self._ready: dict[str, dict[str, Any]] = {}
        self._prepared: dict[str, PreparedAnswer] = {}
        self._reports: dict[str, str] = {}

    def _answered(self, request: Request) -> bool:
        return not self._play.runs(request)

    def _is_stub(self, agent: str | None) -> bool:
        """Return whether a sub-agent is only started so that its answer can be replaced."""
        return (
            agent is not None
            and not self._play.stops
            and self._answered(Request(agent, kind="agent"))
        )

    def _is_replaced(self, tool: str) -> bool:
        """Return whether stand-ins answer a tool for any agent, so the real one is left out."""
        if tool in _OF_THE_SESSION and tool not in self._play.stand_ins.tools:
            return False
        callers = [self._cast.name, *self._play.stand_ins.agents]
        return any(self._answered(Request(tool, agent=caller)) for caller in callers)

    def options(self) -> Any:
        """Return the options for playing the conversation.

        Raises:
            ProviderError: a description cannot be replaced.
        """
        options, cast = self._options, self._cast
        has = [tool for tool in self._tools if cast.has(tool.name)]
        replaced = [tool for tool in has if self._is_replaced(tool.name)]
        servers = self._servers(replaced)
        denied = [*options.disallowed_tools]
        own = [tool.name for tool in self._tools if not tool.name.startswith("mcp__")]
        changed: dict[str, Any] = {}
        if self._tools:
            gone = {tool.name for tool in replaced}
            changed["tools"] = [name for name in own if cast.has(name) and name not in gone]
            denied += [each.name for each in self._tools if each not in has]
        return dataclasses.replace(
            options,
            **changed,
            disallowed_tools=denied,
            mcp_servers=servers,
            strict_mcp_config=True,
            agents={name: self._stubbed(name, one) for name, one in self._agents.items()} or None,
            hooks=self._hooks(),
            settings=merged_settings(
                options.settings, disableAllHooks=True, disableSkillShellExecution=True
            ),
            env={
                **options.env,
                # Baton's tools have the names of the tools that they replace.
                "CLAUDE_AGENT_SDK_MCP_NO_PREFIX": "1",
                # Otherwise the model has to search for a server's tools before it can call them.
                "ENABLE_TOOL_SEARCH": "false",
            },
        )

    def _servers(self, replaced: Sequence[Offered]) -> dict[str, Any]:
        """Return the servers: Baton's, the program's servers behind it, and others that run."""
        servers: dict[str, Any] = {}
        rest = list(replaced)
        configured = self._options.mcp_servers
        for name, config in configured.items() if isinstance(configured, dict) else ():
            prefix = prefix_of(name)
            own = [tool for tool in self._tools if tool.name.startswith(prefix)]
            gone = [tool for tool in own if tool in replaced]
            if isinstance(config, dict) and config.get("type") == "sdk":
                rest = [tool for tool in rest if tool not in gone]
                shown = [tool for tool in own if self._cast.has(tool.name)]
                front = _Front(shown, self._ready.pop, config["instance"], prefix)
                servers[name] = {**config, "instance": front}
                continue
            kept = [tool for tool in own if tool not in gone]
            described = [tool.name for tool in kept if tool.name in self._described]
            if described:
                raise ProviderError(
                    f"the description of `{described[0]}` comes from another program, `{name}`: "
                    "it can only be changed while stand-ins answer for the tool"
                )
            if kept:
                servers[name] = config
        if rest:
            ours = {"type": "sdk", "name": _SERVER, "instance": _Front(rest, self._ready.pop)}
            servers = {_SERVER: ours, **servers}
        return servers

    def _stubbed(self, name: str, definition: Any) -> Any:
        if definition.mcpServers:
            raise ProviderError(
                f"the sub-agent `{name}` has its own MCP servers, for which no stand-in can "
                "answer: name them in `mcp_servers`"
            )
        return dataclasses.replace(definition, prompt=_STUB) if self._is_stub(name) else definition

    def _hooks(self) -> dict[str, list[Any]]:
        from claude_agent_sdk import HookMatcher

        own = {
            "PreToolUse": self._before,
            "PostToolUse": self._after,
            "PostToolUseFailure": self._failed,
        }
        hooks = dict(self._options.hooks or {})
        for event, hook in own.items():
            matcher = HookMatcher(hooks=[hook], timeout=_HOOK_SECONDS, on_failure="block")
            hooks[event] = [matcher, *hooks.get(event, ())]
        return hooks

    async def _before(self, data: dict[str, Any], id_: str | None, _: Any) -> dict[str, Any]:
        """Decide about a call before it is made."""
        play, name = self._play, data["tool_name"]
        arguments, caller = data["tool_input"], data.get("agent_type") or self._cast.name
        if play.refused or play.decided:
            return _stopped("the case has ended")
        if self._is_stub(data.get("agent_type")):
            return _stopped("this agent is not played")
        request = Request(name, arguments, agent=caller, id=id_)
        is_dispatch = name in _DISPATCHING
        if is_dispatch:
            kind = arguments.get("subagent_type") or "general-purpose"
            request = Request(kind, arguments.get("prompt"), caller, "agent", id_, tool=name)
        elif name in _OF_THE_SESSION and name not in play.stand_ins.tools:
            return {}
        server = (data.get("mcp_server") or {}).get("name")
        is_ours = server is not None and server in self._fronts()
        try:
            if not is_ours and server is None and not is_dispatch:
                play.refuse_elsewhere(request, "inside of Claude Code")
            prepared = await play.before(request)
            if prepared.answer is None:
                if not is_ours and not play.runs(request):
                    play.refuse_elsewhere(request, "inside of Claude Code")
                self._prepared[id_ or ""] = prepared
                return {}
            result = play.after(prepared, prepared.answer)
        except Decided:
            return _stopped("the case ends with this dispatch")
        except ProviderError as error:
            return _stopped(str(error))
        except (StandInError, TimeoutError) as error:
            if not is_ours:
                return _denied(str(error))
            self._ready[id_ or ""] = {"content": _content(str(error)), "isError": True}
            return _answered()
        if is_dispatch:
            self._reports[id_ or ""] = _text(result)
            return _allowed({**arguments, "prompt": _STUB, "run_in_background": False})
        if not is_ours:
            play.refused.append(f"the tool `{name}` was not run: it could not be replaced")
            return _stopped(play.refused[-1])
        self._ready[id_ or ""] = {"content": _content(_text(result)), "isError": False}
        return _answered()

    def _fronts(self) -> set[str]:
        servers = self._options.mcp_servers
        named = servers.items() if isinstance(servers, dict) else ()
        return {
            _SERVER,
            *(n for n, each in named if isinstance(each, dict) and each.get("type") == "sdk"),
        }

    async def _after(self, data: dict[str, Any], id_: str | None, _: Any) -> dict[str, Any]:
        """Replace the result of a call with the stand-in's answer."""
        play, came = self._play, data["tool_response"]
        if play.refused or play.decided:
            return {"continue_": False, "stopReason": "the case has ended"}
        report, prepared = self._reports.pop(id_ or "", None), self._prepared.pop(id_ or "", None)
        if report is not None:
            if not isinstance(came, dict) or came.get("status") != "completed":
                return self._not_replaced(data["tool_input"].get("subagent_type"))
            return _replaced({**came, "content": _content(report)})
        if prepared is None:
            return {}
        before = _came(came)
        try:
            result = play.after(prepared, Answer(before, by=None))
        except StandInError as error:
            result = str(error)
        if result is before:
            return {}
        if prepared.request.kind == "agent" and isinstance(came, dict):
            if came.get("status") != "completed":
                return self._not_replaced(prepared.request.name)
            return _replaced({**came, "content": _content(_text(result))})
        return _replaced(_content(_text(result)))

    async def _failed(self, data: dict[str, Any], id_: str | None, _: Any) -> dict[str, Any]:
        self._prepared.pop(id_ or "", None)
        if self._reports.pop(id_ or "", None) is not None:
            return self._not_replaced(data["tool_input"].get("subagent_type"))
        return {}

    def _not_replaced(self, agent: str | None) -> dict[str, Any]:
        """Record that the model read something other than the stand-in's answer."""
        self._play.refused.append(
            f"the answer of the stand-in for `{agent}` could not be put in place of the sub-agent's"
        )
        return {"continue_": False, "stopReason": self._play.refused[-1]}


def _decision(decision: str, **more: Any) -> dict[str, Any]:
    specific = {"hookEventName": "PreToolUse", "permissionDecision": decision, **more}
    return {"hookSpecificOutput": specific}


def _denied(reason: str) -> dict[str, Any]:
    return _decision("deny", permissionDecisionReason=reason)


def _stopped(reason: str) -> dict[str, Any]:
    """Forbid a call and end the turn."""
    return {**_denied(reason), "continue_": False, "stopReason": reason}


def _allowed(arguments: dict[str, Any]) -> dict[str, Any]:
    return _decision("allow", updatedInput=arguments)


def _answered() -> dict[str, Any]:
    """Let a call through without its arguments, so that a tool run by mistake could do nothing."""
    return _allowed({})


def _replaced(output: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": output}}


def _content(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value, enc_hook=repr).decode("utf-8", "replace")


def _came(response: Any) -> Any:
    """Return the text of a result, if it is text."""
    blocks = response.get("content") if isinstance(response, dict) else response
    if isinstance(blocks, list) and all(isinstance(each, dict) for each in blocks):
        return "\n".join(each.get("text") or "" for each in blocks)
    return response


def prefix_of(server: str) -> str:
    """Return the prefix of the names of a server's tools, with special characters as `_`."""
    return f"mcp__{''.join(c if c.isalnum() or c in '_-' else '_' for c in server)}__"


def merged_settings(settings: str | None, **more: Any) -> str:
    """Add to settings, which are a file or JSON; raises ProviderError if they are neither."""
    if not settings:
        return msgspec.json.encode(more).decode()
    try:
        text = settings if settings.lstrip().startswith("{") else Path(settings).read_text()
        return msgspec.json.encode({**msgspec.json.decode(text, type=dict), **more}).decode()
    except (OSError, msgspec.MsgspecError) as error:
        raise ProviderError(f"the `settings` of Claude Code cannot be read: {error}") from error


def _refuse_surprises(options: Any) -> None:
    for name in options.extra_args or {}:
        if name.lstrip("-") in _REFUSED_ARGUMENTS:
            raise ProviderError(
                f"`--{name.lstrip('-')}` of `extra_args` may let tools run: a case with stand-ins "
                "cannot be played with it"
            )
    if not isinstance(options.mcp_servers, dict):
        raise ProviderError(
            "`mcp_servers` is a file or JSON, whose servers no stand-in can answer for: give the "
            "servers as a dict"
        )
    if _SERVER in options.mcp_servers:
        raise ProviderError(
            f"`{_SERVER}` is the name of the server that answers in place of tools: give the one "
            "in `mcp_servers` another"
        )


def without_stubs(trace: Trace, play: Play | None) -> Trace:
    """Remove sub-agents that were only started as stubs, and insert their answers."""
    answers = {
        each.request.id: each.answer
        for each in (play.answers if play is not None else ())
        if each.request.kind == "agent" and each.answer.error is None
    }
    for turn in trace.turns:
        gone: set[str] = set()
        for dispatch in turn.dispatches:
            if dispatch.call in answers and dispatch.call is not None:
                gone.update(dispatch.runs)
                dispatch.runs, dispatch.status, dispatch.error = [], "completed", None
                dispatch.unknown = without(dispatch.unknown, "runs", "result")
                if dispatch.result is None:
                    dispatch.result = Content.of(_text(answers[dispatch.call].result))
        # A model that ignores the stub's task can have passed on work. That call was refused.
        kept = []
        for dispatch in turn.dispatches:
            if dispatch.from_run in gone:
                gone.update(dispatch.runs)
            else:
                kept.append(dispatch)
        turn.dispatches = kept
        turn.runs = [run for run in turn.runs if run.id not in gone]
    return trace


class _Front:
    """A tool server whose answers have been prepared by the hook before the call.

    With ``inner``, it fronts a server of the program, which runs the calls that may run.
    """

    def __init__(
        self, tools: Sequence[Offered], take: Any, inner: Any = None, prefix: str = ""
    ) -> None:
        self._tools, self._take, self._inner, self._prefix = tools, take, inner, prefix

    def create_initialization_options(self) -> None:
        """Return nothing: requests are answered as they come."""

    async def run(self, read: Any, write: Any, *_: Any, **__: Any) -> None:
        """Answer requests until the other side closes the connection."""
        if self._inner is None:
            async for message in read:
                request = _plain(message)
                if "id" in request:
                    await write.send(_reply(request, self._result(request)))
            return
        from mcp.shared.memory import create_client_server_memory_streams

        async with create_client_server_memory_streams() as ((back, forth), (inward, outward)):
            inner = self._inner
            options = inner.create_initialization_options()
            running = [
                asyncio.ensure_future(inner.run(inward, outward, options, raise_exceptions=False)),
                asyncio.ensure_future(self._pass_back(back, write)),
            ]
            try:
                async for message in read:
                    await self._pass_on(message, forth, write)
            finally:
                for each in running:
                    each.cancel()
                await asyncio.gather(*running, return_exceptions=True)

    async def _pass_on(self, message: Any, forth: Any, write: Any) -> None:
        request = _plain(message)
        if request.get("method") == "tools/list":
            await write.send(_reply(request, self._result(request)))
            return
        if request.get("method") == "tools/call" and "id" in request:
            ready = self._take(_call_id(request), None)
            if ready is not None:
                await write.send(_reply(request, ready))
                return
            name = request["params"]["name"].removeprefix(self._prefix)
            request["params"] = {**request["params"], "name": name}
            message = _message(request, message)
        await forth.send(message)

    async def _pass_back(self, back: Any, write: Any) -> None:
        async for message in back:
            await write.send(message)

    def _result(self, request: dict[str, Any]) -> dict[str, Any]:
        params = request.get("params") or {}
        match request.get("method"):
            case "initialize":
                return {
                    "protocolVersion": params.get("protocolVersion"),
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": _SERVER, "version": "1"},
                }
            case "tools/list":
                tools = [
                    {"name": t.name, "description": t.description, "inputSchema": t.schema}
                    for t in self._tools
                ]
                return {"tools": tools}
            case "tools/call":
                nothing = {"content": _content("nothing answers this call"), "isError": True}
                ready: dict[str, Any] = self._take(_call_id(request), nothing)
                return ready
        return {}


def _call_id(request: dict[str, Any]) -> str:
    meta = request["params"].get("_meta") or {}
    return str(meta.get("claudecode/toolUseId") or "")


def _plain(message: Any) -> dict[str, Any]:
    if isinstance(message, Exception):
        return {}
    plain: dict[str, Any] = message.message.model_dump(
        by_alias=True, mode="json", exclude_none=True
    )
    return plain


def _reply(request: dict[str, Any], result: dict[str, Any]) -> Any:
    return _message({"jsonrpc": "2.0", "id": request["id"], "result": result}, None)


def _message(plain: dict[str, Any], like: Any) -> Any:
    """Make a message of the installed `mcp`: versions 1.x and 2.x use different types."""
    import mcp.types
    from mcp.shared.message import SessionMessage

    types: Any = mcp.types
    adapter = getattr(types, "jsonrpc_message_adapter", None)
    made = adapter.validate_python(plain) if adapter else types.JSONRPCMessage.model_validate(plain)
    return SessionMessage(made, metadata=getattr(like, "metadata", None))


async def listed(server: Any) -> list[dict[str, Any]]:
    """List the tools of an in-process ``mcp`` server, in their wire format."""
    from mcp.shared.memory import create_client_server_memory_streams

    client = {"name": _SERVER, "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    requests: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    async with create_client_server_memory_streams() as ((back, forth), (inward, outward)):
        options = server.create_initialization_options()
        running = asyncio.ensure_future(server.run(inward, outward, options))
        try:
            answer: dict[str, Any] = {}
            for each in requests:
                await forth.send(_message(each, None))
                while "id" in each and answer.get("id") != each["id"]:
                    answer = _plain(await back.receive())
            tools: list[dict[str, Any]] = answer["result"]["tools"]
            return tools
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


_OFFERED: dict[str, list[Offered]] = {}
_LOCKS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Lock]] = WeakKeyDictionary()
"""Makes cases that begin in parallel start Claude Code only once to list its tools."""
_MODELS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
_ASKING = 60.0
"""The number of seconds within which Claude Code and its MCP servers must start."""


async def offered(options: Any) -> list[Offered]:
    """Return the tools that the model is offered, by running Claude Code without a model.

    MCP servers are started for that, and list their tools. No tool is called, because the model
    request is never answered. The result is cached for the process.

    Raises:
        ProviderError: Claude Code, or one of the servers, does not start.
    """
    servers = options.mcp_servers if isinstance(options.mcp_servers, dict) else {}
    names = ("cli_path", "model", "tools", "disallowed_tools", "cwd", "skills", "env")
    key = repr([*(getattr(options, name) for name in names), servers, sorted(options.agents or {})])
    locks = _LOCKS.setdefault(asyncio.get_running_loop(), {})
    async with locks.setdefault(key, asyncio.Lock()):
        if key not in _OFFERED:
            _OFFERED[key] = await _asked_for_tools(options)
    return _OFFERED[key]


async def _asked_for_tools(options: Any) -> list[Offered]:
    import claude_agent_sdk as sdk

    bodies: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="baton-claude-") as folder:
        async with _deaf_model(bodies) as url:
            alone = _marked(
                dataclasses.replace(
                    options,
                    env={
                        **options.env,
                        **dict.fromkeys(_MODELS, ""),
                        "ANTHROPIC_API_KEY": "none",
                        "ANTHROPIC_AUTH_TOKEN": "",
                        "ANTHROPIC_BASE_URL": url,
                        "CLAUDE_CODE_OAUTH_TOKEN": "",
                        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                        "CLAUDE_CONFIG_DIR": folder,
                        "ENABLE_TOOL_SEARCH": "false",
                        "NO_PROXY": "127.0.0.1",
                    },
                    hooks=None,
                    can_use_tool=None,
                    resume=None,
                    session_id=None,
                    continue_conversation=False,
                    session_store=None,
                    setting_sources=[],
                    settings=None,
                    strict_mcp_config=True,
                    stderr=None,
                )
            )
            try:
                async with asyncio.timeout(_ASKING):
                    # Unwrapped, so that this is not recorded as a call by the program.
                    stream = inspect.unwrap(sdk.query)(prompt="Hello.", options=alone)
                    async with aclosing(stream) as messages:
                        async for message in messages:
                            _check_servers(message)
            except TimeoutError:
                raise ProviderError(
                    f"Claude Code did not list its tools within {_ASKING:g} seconds"
                ) from None
            except sdk.ClaudeSDKError as error:
                # The run ends with the refused model request, which the SDK reports as an error.
                if not bodies:
                    raise ProviderError(f"Claude Code does not start: {error}") from error
    if not bodies:
        raise ProviderError("Claude Code did not report which tools it offers")
    listed = max((body.get("tools") or [] for body in bodies), key=len)
    return [
        Offered(each["name"], each.get("description") or "", each["input_schema"])
        for each in listed
        if "input_schema" in each
    ]


def _check_servers(message: Any) -> None:
    data = getattr(message, "data", None)
    listed = data.get("mcp_servers") if isinstance(data, dict) else None
    for each in listed or ():
        if each.get("status") != "connected":
            raise ProviderError(
                f"the MCP server `{each.get('name')}` did not start ({each.get('status')}), and "
                "only it knows its tools, which stand-ins need"
            )


@asynccontextmanager
async def _deaf_model(bodies: list[dict[str, Any]]) -> AsyncIterator[str]:
    """Serve in place of the model's API: record each request and refuse it."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError, msgspec.MsgspecError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = next(
                (
                    int(line.partition(":")[2])
                    for line in head.split("\r\n")
                    if line.startswith("content-length:")
                ),
                0,
            )
            body = await reader.readexactly(length)
            path = head.split(" ")[1].partition("?")[0]
            if path.endswith("/messages"):
                bodies.append(msgspec.json.decode(body, type=dict))
            refusal = b'{"type":"error","error":{"type":"invalid_request_error","message":"none"}}'
            writer.write(
                b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
                b"Connection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(refusal), refusal)
            )
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=64 * 1024 * 1024)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
