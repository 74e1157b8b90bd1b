"""The user's program: its function or agent, and which parts of it can be replaced.

A target of the ``python`` provider can be an agent, graph or team of a framework (``app:graph``).
The user does not have to write a function around it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from baton import components
from baton.model import (
    Case,
    Content,
    InputError,
    MadeCall,
    Message,
    ProviderError,
    suggestion,
)
from baton.plugins.user_code import (
    Function,
    calls_of,
    is_installed_file,
    load_module,
    load_object,
    names_imported_below,
    refuse_elsewhere,
)
from baton.providers.prompt_delivery import Prompts
from baton.providers.recorder import marked_tools
from baton.providers.user_functions import Target
from baton.stand_ins import Play, check_names, current, playing

from .claude import ClaudeAgents
from .crewai_autogen import AgentFramework, AutoGen, CrewAI
from .framework import Ask, Framework, Session, Text, classes_of
from .functions import Functions
from .langgraph import LangChain, LangGraph
from .openai_agents import OpenAIAgents
from .pydantic_ai import PydanticAI
from .strands import Strands

FRAMEWORKS: tuple[Framework, ...] = (
    PydanticAI(),
    LangGraph(),
    LangChain(),
    OpenAIAgents(),
    Strands(),
    CrewAI(),
    AutoGen(),
    AgentFramework(),
    ClaudeAgents(),
    Functions(),
)
_ADK = (("google.adk", "BaseAgent"), ("google.adk", "App"))


class Program:
    """The loaded function or object of a target. It answers messages and plays dispatch cases.

    Args:
        spec: the target, as ``module:name``.
        folder: the folder to search for the module, if it has to be searched for.
        texts: components that are changed, by name; `Prompts.begin` has handed them out.
        prompts: texts that are in files.

    Raises:
        InputError: the function or object does not exist, or is neither a function nor an object
            of a framework; or a component that is to be changed does not exist.
    """

    def __init__(
        self,
        spec: str,
        folder: Path,
        texts: Mapping[str, str] | None = None,
        prompts: Prompts | None = None,
    ) -> None:
        self._spec = spec
        self._prompts = prompts
        _put_back()
        self._there_before = {each.package for each in FRAMEWORKS if each.package in sys.modules}
        self._value = load_object(spec, folder)
        self._module = load_module(spec, folder)
        self._root, self._imported = _imported_by(self._value, self._module, folder)
        self.target = Target(_function_of(self._value, spec))
        self.target.check(spec)
        if texts:
            self._change(texts)

    def components(self) -> dict[str, str]:
        """Return the current texts that can be changed, by name."""
        own = {name: text.read() for name, text in self._texts().items()}
        in_files = self._prompts.texts if self._prompts is not None else {}
        return {**in_files, **own, **self._asking(), **components.asked(self._is_own)}

    def _is_own(self, file: str) -> bool:
        """Return whether a file belongs to the program, which can itself be installed."""
        path = Path(file).resolve()
        return path.is_relative_to(self._root) or is_installed_file(path)

    def tools(self) -> set[str]:
        """Return the names of known tools: marked functions, and tools with a changeable text."""
        named = (name.removeprefix("tool:") for name in self._texts() if name.startswith("tool:"))
        return {*named, *marked_tools()}

    def _asking(self) -> dict[str, str]:
        """Return the texts that the program's code asks for, even if it has not run yet.

        Raises:
            InputError: the example files that it asks for have errors.
        """
        texts = calls_of(components.get, self._root)
        wanted = {each.name: each.text for each in texts if each.text is not None}
        for each in calls_of(components.examples, self._root):
            if each.text is not None:
                wanted[each.name] = components.chosen(each.text, each.file.parent)
        return wanted

    @contextmanager
    def playing(self, case: Case) -> Iterator[Play]:
        """Let the stand-ins of a case answer until the block ends.

        Raises:
            ProviderError: a stand-in has a name that the program does not use but that is similar
                to one of the program's names, which would really run.
        """
        if case.stand_ins is not None and case.dispatch is None:
            check_names(case.stand_ins, self.tools, self._agent_names)
        with playing(case) as play:
            if not play.is_idle:
                for framework in self._used():
                    framework.stand_in()
            yield play

    def _agent_names(self) -> set[str]:
        return {name for each in self._used() for name in self._agents(each)}

    async def answer(self, message: Any, case: Case, session: Session) -> Any:
        """Return the answer to a message, or the result of playing a dispatch case.

        Raises:
            ProviderError: no agent has the name that the dispatch case states, or its framework
                cannot continue from given messages.
        """
        if case.dispatch is None:
            return await self.target.call(message, case, session)
        name, messages = asked_of(case, needs_tool=False)
        framework, agent = self._agent(name)
        if framework.needs_tool:
            name, messages = asked_of(case)
        try:
            return plain(await framework.go_on(agent, messages, session))
        except asyncio.CancelledError:
            play = current()
            if play is None or not play.decided:
                raise
            return None

    def _used(self) -> Iterator[Framework]:
        """Yield the frameworks that the program can use.

        A framework that was loaded before the program can have been loaded by something else: for
        example, Baton's own judges load pydantic-ai. A program that imports only the standard
        library, Baton and its own files does not use it. It is unknown what other packages import,
        so a program that imports them counts as using the framework.
        """
        others = self._imported - sys.stdlib_module_names - {"baton"}
        for each in FRAMEWORKS:
            is_loaded = self._is_loaded(each.package)
            if each.package in self._imported or (
                is_loaded and (others or each.package not in self._there_before)
            ):
                yield each

    def _is_loaded(self, package: str) -> bool:
        """Return whether a framework is loaded, and not the program's own file `agents.py`."""
        module = sys.modules.get(package)
        file = getattr(module, "__file__", None)
        if module is None or not isinstance(file, str):
            return module is not None
        path = Path(file).resolve()
        return is_installed_file(path) or not path.is_relative_to(self._root)

    def _agents(self, framework: Framework) -> dict[str, Any]:
        """Return the agents that the target contains, and those in global names of its module."""
        module = sys.modules.get(getattr(self._value, "__module__", "") or "")
        named = list(vars(module).values()) if module is not None else []
        named += list(vars(self._module).values())
        agents: dict[str, Any] = {}
        for value in [self._value, *named]:
            for name, agent in framework.agents(value):
                agents.setdefault(name, agent)
        return agents

    def _agent(self, name: str) -> tuple[Framework, Any]:
        known: list[str] = []
        for framework in self._used():
            agents = self._agents(framework)
            if name in agents:
                return framework, agents[name]
            known += agents
        message = f"`{self._spec}` has no agent `{name}`"
        raise ProviderError(f"{message}; {_known(name, known)}")

    def _texts(self) -> dict[str, Text]:
        texts: dict[str, Text] = {}
        for framework in self._used():
            texts |= framework.texts(self._agents(framework))
        return texts

    def _change(self, changed: Mapping[str, str]) -> None:
        own = self._texts()
        requested = {*components.asked(self._is_own), *self._asking()}
        handed_over = self._prompts is not None and self._prompts.are_taken
        in_files = self._prompts.texts if self._prompts is not None else {}
        for name, text in changed.items():
            if name in own:
                _REPLACED.append((own[name], own[name].read()))
                own[name].write(text)
            elif name in requested or (handed_over and name in in_files):
                continue
            elif name in in_files:
                ask = "examples" if components.are_examples(name) else "get"
                raise InputError(
                    f"nothing in `{self._spec}` uses `{name}`: have it call "
                    f'`baton.prompts.{ask}("{name}", ...)`, or name the function that gets it '
                    "in `prompts_to:`"
                )
            else:
                self._refuse(name, [*own, *requested, *in_files])

    def _refuse(self, name: str, known: list[str]) -> NoReturn:
        ask = components.examples if components.are_examples(name) else components.get
        for each in calls_of(ask, self._root):
            if each.name == name:
                raise InputError(
                    f"the text of `{name}` is made only when {each.place} is run, so that no "
                    "change of it can be checked: make it a constant of its module"
                )
        raise InputError(f"`{self._spec}` has no component `{name}`; {_known(name, known)}")


def asked_of(case: Case, *, needs_tool: bool = True) -> tuple[str, list[Message]]:
    """Return the agent with which a dispatch case is played, and the messages that it gets.

    For a ``decision``, it is the sender with the messages that it had before. For a ``child``, it
    is the receiver with the prompt, or with the whole history if a transfer handed it over. For an
    ``integration``, it is the sender with its call and the result. If no tool made the dispatch and
    the framework needs none, the receiver's stand-in supplies the result.

    Raises:
        ProviderError: the case does not hold what its form needs.
    """
    dispatch = case.dispatch
    if dispatch is None:
        raise ProviderError("the case is not a dispatch case")
    if dispatch.lacks is not None:
        raise ProviderError(f"the case cannot be played: {dispatch.lacks}")
    call = dispatch.call
    if dispatch.form == "child":
        if call.prompt is None and call.kind == "transfer" and "prompt" not in call.unknown:
            made = MadeCall(name=call.tool or "", arguments=call.arguments)
            message = Message(role="agent", agent=call.sender, calls=[made])
            return call.to, [*dispatch.context, *([message] if call.tool is not None else [])]
        prompt = call.prompt or Content()
        return call.to, [Message(role="user", text=prompt.plain())]
    sender = call.sender or ""
    if dispatch.form == "decision" or (call.tool is None and not needs_tool):
        return sender, list(dispatch.context)
    if call.tool is None:
        raise ProviderError(
            "the sender cannot continue from the result: the case lacks the `tool` of its `call`"
        )
    made = MadeCall(name=call.tool, arguments=call.arguments, result=call.result)
    message = Message(role="agent", agent=sender, calls=[made])
    return sender, [*dispatch.context, message]


_REPLACED: list[tuple[Text, str]] = []
"""Changed texts of loaded objects, and their original values."""


def _put_back() -> None:
    """Restore the texts that the objects of programs had when they were loaded.

    A module is loaded once, so the next program in this process can have the same objects.
    """
    while _REPLACED:
        text, before = _REPLACED.pop()
        text.write(before)


_UNSEEN = "?"
"""Stands for the imports of a program that is installed or has no file: they are unknown."""


def _imported_by(value: Any, module: Any, folder: Path) -> tuple[Path, set[str]]:
    """Return the folder of a program's own files, and the packages that they import or can import.

    The folder is the one where the target was defined. An agent or graph does not show that,
    because its class belongs to the framework. For these it is the folder of ``module``, where the
    target was found.
    """
    written_in = sys.modules.get(getattr(value, "__module__", None) or "")
    files = [getattr(each, "__file__", None) for each in (written_in, module)]
    paths = [Path(each).resolve() for each in files if isinstance(each, str)]
    home = next((each for each in paths if not is_installed_file(each)), None)
    root = folder.resolve()
    if home is None:
        return root, {_UNSEEN}
    root = root if home.is_relative_to(root) else home.parent
    own = {each.stem for each in root.glob("*.py")}
    own |= {each.parent.name for each in root.glob("*/*.py")}
    names = {name.partition(".")[0] for name in names_imported_below(root)}
    for name in sorted(names & own - sys.stdlib_module_names):
        refuse_elsewhere(name, root)
    return root, names - own


def is_framework_object(value: Any) -> bool:
    """Return whether a value is an agent, graph or team of a framework, and not a function."""
    return any(name in _ASKS for name in classes_of(value))


def is_of_adk(value: Any) -> bool:
    """Return whether a value is an agent or an App of Google ADK."""
    return any(known in classes_of(value) for known in _ADK)


def plain(answer: Any) -> Any:
    """Return an answer as text or plain data; pydantic models are converted."""
    dump = getattr(answer, "model_dump", None)
    return dump(mode="json") if callable(dump) else answer


def _function_of(value: Any, spec: str) -> Function:
    """Return a function unchanged, or wrap a framework object in a function(message, session).

    Raises:
        InputError: the value is neither.
    """
    ask = _ask_of(value, spec)
    if ask is not None:
        asker = ask

        async def answer(message: Any, session: Session) -> Any:
            return plain(await asker(value, message, session))

        return answer
    if not callable(value):
        known = ", ".join(sorted({f"{package}.{name}" for package, name in _ASKS}))
        raise InputError(
            f"`{spec}` has the type {type(value).__name__}: it is neither a function nor a known "
            f"agent ({known}). Name a function that takes a message and calls it"
        )
    return value  # type: ignore[no-any-return]


def _ask_of(value: Any, spec: str) -> Ask | None:
    if is_of_adk(value):
        raise InputError(
            f"`{spec}` is of Google ADK, which records what its agents do: leave out `instrument`, "
            f"or name it as the `path` of the provider `adk_local`"
        )
    for known in classes_of(value):
        if known == ("claude_agent_sdk", "ClaudeAgentOptions"):
            raise InputError(
                f"`{spec}` holds options of the Claude Agent SDK: write them into a config with "
                "the provider `claude_sdk`, or name a function that asks the agent"
            )
        if known in _ASKS:
            return _ASKS[known]
    return None


def _known(name: str, known: list[str]) -> str:
    return suggestion(name, set(known)) or "none is known: give each a name in its module"


_ASKS = {known: ask for framework in FRAMEWORKS for known, ask in framework.asks.items()}
