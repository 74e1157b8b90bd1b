"""Rules about the code of an ADK app, by itself and together with the cases that it plays."""

from __future__ import annotations

from collections.abc import Iterator

from baton.evaluators.tool_calls import ToolCalls
from baton.evaluators.tool_trajectory_avg_score import ToolTrajectoryAvgScore
from baton.formats.adk import TRANSFER_TOOL
from baton.model import Case, suggestion

from .checked_files import CaseFile, LintWarning, Scope
from .read_adk_app import App
from .read_adk_code import MODEL_TOOLS, CodeAgent

FUNCTION_AGENT = "function-agent"
_NAMELESS = ("lambda", "partial")


# What goes wrong: `sub_agents=[create_researcher]` without the parentheses. ADK refuses the app
# when it is imported: "Input should be a valid dictionary or instance of BaseAgent".
def function_agents(scope: Scope) -> Iterator[LintWarning]:
    """Warn of functions among ``sub_agents``, which have to be agents."""
    for agent in _agents(scope):
        for child in agent.children:
            if child.kind == "function":
                yield LintWarning(
                    file=agent.file,
                    line=child.line,
                    rule=FUNCTION_AGENT,
                    what=f"`{child.name}` among the sub-agents of {_of(agent)} is a function, not "
                    "an agent: ADK refuses it",
                    remedy="pass the agent that it returns"
                    if child.name in _NAMELESS
                    else f"call it: `{child.name}()`",
                )


SECOND_PARENT = "second-parent"


# What goes wrong: two pipelines share the agent `researcher`. ADK raises "already has a parent
# agent" when the second one is created. Agents that are created in functions are ignored: it is
# unknown how often these are called.
def second_parents(scope: Scope) -> Iterator[LintWarning]:
    """Warn of an agent that is a sub-agent twice."""
    for app in _apps(scope):
        at_import = [agent for agent in app.agents if agent.at_import]
        # Two modules can have a variable of the same name: what counts is where it was created.
        seen: set[tuple[str, int]] = set()
        for agent in at_import:
            for child in agent.children:
                if child.source is None:
                    continue
                if child.source in seen:
                    yield LintWarning(
                        file=agent.file,
                        line=child.line,
                        rule=SECOND_PARENT,
                        what=f"`{child.name}` is a sub-agent twice, here of {_of(agent)}: ADK "
                        "raises an error, because it already has a parent",
                        remedy="make one for each parent, in a function that is called for each",
                    )
                seen.add(child.source)


SEARCH_METRIC = "search-metric"


# What goes wrong: the root agent has `google_search`, and `tool_trajectory_avg_score` is requested.
# The search happens inside the model, so the trajectory never shows whether the agent searched.
def search_metrics(scope: Scope) -> Iterator[LintWarning]:
    """Warn of ADK's metric of trajectories for agents with tools that run inside the model."""
    for file in scope.cases:
        warned: set[str] = set()
        for case, written in file.written():
            app = file.app_of(case)
            if app is None or not _by_trajectory(file, case):
                continue
            for agent in app.agents:
                inside = _inside_model(app, agent)
                if inside is not None and inside not in warned:
                    warned.add(inside)
                    scored = f"`{ToolTrajectoryAvgScore.type}` scores case `{case.id}`"
                    yield _search_metric(file.file, written.turn_line(0), scored, agent, inside)
    for criteria in scope.criteria:
        stated = {name: (criterion, line) for name, criterion, line in criteria.criteria()}
        criterion, line = stated.get(ToolTrajectoryAvgScore.type, (0, None))
        if criteria.scores or not _threshold(criterion):
            continue  # warned of above, with the case
        for app in scope.apps:
            with_tools = [(each, _inside_model(app, each)) for each in app.agents]
            for agent, inside in [(each, tool) for each, tool in with_tools if tool][:1]:
                scored = f"`{ToolTrajectoryAvgScore.type}` scores all cases"
                yield _search_metric(criteria.document.file, line, scored, agent, inside)


def _inside_model(app: App, agent: CodeAgent) -> str | None:
    """Return the first tool of an agent that runs inside the model."""
    return min(agent.inside - app.functions, default=None)


def _threshold(criterion: object) -> object:
    """Return the threshold of a criterion: the number itself, or that of the object."""
    return criterion.get("threshold") if isinstance(criterion, dict) else criterion


def _search_metric(
    file: str, line: int | None, scored: str, agent: CodeAgent, inside: str
) -> LintWarning:
    return LintWarning(
        file=file,
        line=line,
        rule=SEARCH_METRIC,
        what=f"{scored}, and {_of(agent)} has `{inside}` ({agent.file}:{agent.line}), which runs "
        "inside the model: no trajectory shows it",
        remedy="leave the metric out, and judge the answer by rubrics",
    )


THINKING = "thinking"


# What goes wrong: a model that thinks may know enough, and call no tool. The case that expects the
# call fails now and then.
def thinking_models(scope: Scope) -> Iterator[LintWarning]:
    """Warn of expected calls if the model is configured to think, and not forced to call a tool."""
    for file in scope.cases:
        warned: set[tuple[str, int]] = set()
        for case, written in file.written():
            app = file.app_of(case)
            expected = {call.name for turn in case.turns for call in turn.tool_calls or ()}
            if app is None or not _by_calls(file, case):
                continue
            for agent in app.agents:
                tools = sorted(expected & (agent.tools or frozenset()))
                if agent.thinks and tools and (agent.file, agent.line) not in warned:
                    warned.add((agent.file, agent.line))
                    yield LintWarning(
                        file=agent.file,
                        line=agent.line,
                        rule=THINKING,
                        what=f"the model of {_of(agent)} thinks, and may skip `{tools[0]}`, which "
                        f"case `{case.id}` ({written.file}) expects",
                        remedy='set `tool_config` with `mode="ANY"`, or use a model that does not '
                        "think",
                    )


UNKNOWN_AGENT = "unknown-agent"


# What goes wrong: an agent was renamed, or the case has a typo: `biling_agent`. Every run fails,
# and nothing shows that the case is wrong. Silent if the code creates agents that cannot be read.
def unknown_agents(scope: Scope) -> Iterator[LintWarning]:
    """Warn of agents that a case names and the app does not have."""
    for file in scope.cases:
        for case, written in file.written():
            app = file.app_of(case)
            if app is None or not _all_agents_known(app):
                continue
            names = {agent.name for agent in app.agents if agent.name}
            known = {*names, *(file.agent_names.get(name, name) for name in names), "user"}
            known |= scope.agents.keys()
            for place, turn in enumerate(case.turns):
                stated = [
                    name
                    for stage in turn.agents or ()
                    for name in ([stage] if isinstance(stage, str) else stage.any_order)
                ]
                stated += [dispatch.to for dispatch in turn.dispatches or ()]
                stated += [call.agent for call in turn.tool_calls or () if call.agent]
                stated += [visit.agent for visit in turn.interactions or ()]
                for name in dict.fromkeys(stated):
                    if name not in known:
                        yield LintWarning(
                            file=file.file,
                            line=written.agents_line(place),
                            rule=UNKNOWN_AGENT,
                            what=f"case `{case.id}` names the agent `{name}`, but `{app.name}` "
                            "has no agent of that name",
                            remedy=suggestion(name, sorted(names)),
                        )


UNKNOWN_TOOL = "unknown-tool"


# What goes wrong: a tool was renamed, and the case still expects the old name. Silent if an agent
# has tools that cannot be read: sets of tools (MCP, OpenAPI), computed lists.
def unknown_tools(scope: Scope) -> Iterator[LintWarning]:
    """Warn of calls that a case expects of tools that no agent of the app has."""
    for file in scope.cases:
        for case, written in file.written():
            app = file.app_of(case)
            if app is None or not _all_agents_known(app):
                continue
            of_agents = [agent.tools for agent in app.agents]
            tools: set[str] = set().union(*(each for each in of_agents if each is not None))
            # An app without any tool gets them in another way, or is unfinished.
            if None in of_agents or not tools:
                continue
            known = {*tools, TRANSFER_TOOL, "set_model_response", *MODEL_TOOLS, *scope.functions}
            for place in range(len(case.turns)):
                for call in written.calls(place):
                    # ADK itself makes calls with this prefix, such as `adk_request_input`.
                    if call.name in known or call.recorded or call.name.startswith("adk_"):
                        continue
                    yield LintWarning(
                        file=file.file,
                        line=call.line,
                        rule=UNKNOWN_TOOL,
                        what=f"case `{case.id}` expects `{call.name}`, but no agent of "
                        f"`{app.name}` has such a tool",
                        remedy=suggestion(call.name, sorted(tools)),
                    )


def _apps(scope: Scope) -> list[App]:
    apps = {app.folder: app for file in scope.cases for app in file.apps}
    return list((apps | {app.folder: app for app in scope.apps}).values())


def _agents(scope: Scope) -> Iterator[CodeAgent]:
    for app in _apps(scope):
        yield from app.agents


def _of(agent: CodeAgent) -> str:
    return f"`{agent.name}`" if agent.name else "an agent"


def _by_trajectory(file: CaseFile, case: Case) -> bool:
    return any(each.threshold > 0 for each in file.scored_by(case, ToolTrajectoryAvgScore))


def _by_calls(file: CaseFile, case: Case) -> bool:
    return _by_trajectory(file, case) or any(
        each.threshold > 0 for each in file.scored_by(case, ToolCalls)
    )


def _all_agents_known(app: App) -> bool:
    return (
        bool(app.agents)
        and not app.unread
        and all(
            agent.name and all(child.kind != "unclear" for child in agent.children)
            for agent in app.agents
        )
    )
