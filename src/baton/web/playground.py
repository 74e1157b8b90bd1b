"""Playground: talk to an agent, watch its run grow, and make cases of what it did."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.responses import Response
from starlette.routing import BaseRoute

from baton.formats.document import Document
from baton.model import InputError, Problem, Trace, Turn, known
from baton.model.views import agent_chain, tool_calls
from baton.reports.html.trace_view import cut, text_at, trace_view
from baton.server.access import Denied
from baton.session.chat import Chat, Chats

from .datasets import WAIT, captured, context, folders, need_run
from .frame import NavItem, View, Visit, Web
from .rendering import hue_of

NAV = NavItem("Playground", "/playground", "p")


class Playground:
    """The conversations that continue, and the pages over them."""

    def __init__(self) -> None:
        self._chats = Chats()
        self.close = self._chats.close

    def routes(self, web: Web) -> list[BaseRoute]:
        """Return the routes of this page."""
        actions: dict[str, Callable[[Visit], Response]] = {
            "start": self._start,
            "say": self._say,
            "end": self._end,
            "capture": self._capture,
        }
        return [
            web.page(NAV.path, self._page),
            web.data("/data/playground/chat", self._view, "run"),
            web.data("/data/playground/text", self._text, "run"),
            *(web.action(f"/do/playground/{name}", run, "run") for name, run in actions.items()),
        ]

    def _page(self, visit: Visit) -> View:
        open_ = [chat for chat in self._chats.of(visit.caller.project) if visit.may("run")]
        datasets = folders(visit).datasets(WAIT)
        given = {
            "open": [(chat.id, chat.name, chat.view()) for chat in open_][::-1],
            "datasets": [
                (each.name, None if each.reading else len(each.cases)) for each in datasets
            ],
            "homes": _homes(visit),
            **context(visit),
        }
        return View("playground.html", given, "Playground")

    def _start(self, visit: Visit) -> Response:
        need_run(visit)
        state: Any = {}
        if given := (visit.form.get("state") or [""])[-1].strip():
            state = Document("state", given.encode(), "json").value()
            if not isinstance(state, dict):
                raise InputError(Problem(path="state", message="has to be a JSON object: {...}"))
        before = (visit.form.get("instead") or [""])[-1]
        if before:
            self._chat(visit, before).end()
        chat = self._chats.start(
            visit.caller.project,
            visit.value("agent"),
            visit.state.live_settings().agents,
            visit.form.get("message", []),
            user=(visit.form.get("user") or [""])[-1].strip() or None,
            state=state,
        )
        return visit.json({"id": chat.id})

    def _say(self, visit: Visit) -> Response:
        need_run(visit)
        self._chat(visit, visit.value("id")).say(visit.value("message"))
        return visit.json({})

    def _end(self, visit: Visit) -> Response:
        self._chat(visit, visit.value("id")).end()
        return visit.json({})

    def _capture(self, visit: Visit) -> Response:
        """Save a conversation, as it is now, as a case."""
        need_run(visit)
        trace = self._chat(visit, visit.value("id")).view().trace
        if trace is None:
            raise InputError("the agent has not answered yet: there is nothing to save")
        return captured(visit, trace)

    def _view(self, visit: Visit) -> Response:
        view = self._chat(visit, visit.query("id") or "").view()
        if visit.query("version") == str(view.version):
            return visit.json({"version": view.version})
        trace = view.trace
        return visit.json(
            {
                "version": view.version,
                "agent": view.agent,
                "state": view.state,
                "error": view.error,
                "again": view.again,
                "user": view.user,
                "begins": view.begins,
                "messages": view.messages,
                "turns": [] if trace is None else [_turn(trace, turn) for turn in trace.turns],
                "run": None if trace is None else trace_view(trace),
                "hues": {} if trace is None else _hues(trace),
            }
        )

    def _text(self, visit: Visit) -> Response:
        """Answer with a text that was cut."""
        trace = self._chat(visit, visit.query("id") or "").view().trace
        text = None if trace is None else text_at(trace, visit.query("at") or "")
        if text is None:
            raise Denied(404, "there is no such text", "load the page again")
        return visit.json({"text": text})

    def _chat(self, visit: Visit, id_: str) -> Chat:
        try:
            return self._chats.chat(visit.caller.project, id_)
        except KeyError:
            said = "this conversation no longer exists: the server was restarted, or nobody used it"
            raise Denied(404, f"{said} for too long", "start another one") from None


def _turn(trace: Trace, turn: Turn) -> dict[str, Any]:
    """Return a turn as a conversation shows it."""
    owners = {step.id: run.agent for run in turn.runs for step in run.steps}
    answered = next(
        (run.agent for run in reversed(turn.runs) if known(trace, run, "agent") and run.output),
        None,
    )
    calls = [
        {"name": call.name, "agent": owners.get(call.id), "status": call.status}
        for call in tool_calls(turn, dispatches="exclude")
    ]
    dispatches = [
        {"from": each.from_agent, "to": each.to_agent, "kind": each.kind, "status": each.status}
        for each in turn.dispatches
    ]
    return {
        "id": turn.id,
        "output": cut(turn.output.plain(), f"{turn.id}/output") if turn.output else None,
        "agent": answered,
        "agents": agent_chain(trace, turn) or [],
        "calls": calls,
        "dispatches": dispatches,
        "status": turn.status,
        "error": turn.error,
        "seconds": turn.ended - turn.started if turn.ended and turn.started else None,
    }


def _hues(trace: Trace) -> dict[str, int]:
    """Return the colours of agents, which are the same on all pages."""
    names = {run.agent for turn in trace.turns for run in turn.runs}
    names |= {each.to_agent for turn in trace.turns for each in turn.dispatches}
    return {name: int(hue_of(name)[4:]) for name in names}


def _homes(visit: Visit) -> dict[str, dict[str, str]]:
    """Return where the datasets of each agent are created: ADK's are next to its agents."""
    places = {str(each.folder): each.name for each in folders(visit).places()}
    first = next(iter(places.values()), "")
    homes = {}
    for name, agent in visit.state.live_settings().agents.items():
        is_adk = isinstance(agent, dict) and agent.get("type") == "adk_local"
        path = str(Path(agent["path"]).resolve()) if is_adk else ""
        homes[name] = {"place": places.get(path, first), "kind": "adk" if is_adk else "baton"}
    return homes
