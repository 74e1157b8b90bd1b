"""What a guard blocked is on the page of its conversation, and an alert comes, from real parts.

Hooks of Claude Code decide and note it, `baton push` sends the sessions, a worker reads and scores
them, a webhook hears of it, and a browser shows it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.server.test_alerts import Hook, listening

import baton
from baton.guard.claude import answer
from baton.server.settings import load_settings
from baton.server.store import open_store
from baton.server.worker import run

from .serving import web

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.heavy
SESSIONS = 12


def session(folder: Path, number: int, policy: Path) -> Path:
    """Write a session of Claude Code in which a dispatch is refused, with its real hook."""
    name, call = f"s{number}", f"toolu_{number}"
    file = folder / f"{name}.jsonl"
    file.write_text("")
    asked = {"description": "pay", "prompt": "Pay <b>R-7</b>.", "subagent_type": "payer"}
    said = answer(
        policy,
        folder / "guard.db",
        json.dumps({
            "session_id": name, "transcript_path": str(file), "prompt_id": "p1",
            "hook_event_name": "PreToolUse", "tool_name": "Agent", "tool_input": asked,
            "tool_use_id": call,
        }).encode(),
    )  # fmt: skip
    assert said is not None
    reason = said["hookSpecificOutput"]["permissionDecisionReason"]
    use = {"type": "tool_use", "id": call, "name": "Agent", "input": asked}
    refused = {"type": "tool_result", "tool_use_id": call, "content": reason, "is_error": True}
    told: list[tuple[str, Any]] = [
        ("user", "Pay R-7."),
        ("assistant", [use]),
        ("user", [refused]),
        ("assistant", [{"type": "text", "text": "I may not pay."}]),
    ]
    lines = [
        {
            "type": role, "uuid": f"{name}-{place}", "sessionId": name, "isSidechain": False,
            "timestamp": f"2026-11-28T10:00:0{place}Z",
            "message": {"role": role, "content": content, "id": f"{name}m{place}"},
        }
        for place, (role, content) in enumerate(told)
    ]  # fmt: skip
    file.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return file


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Hook]]:
    folder = tmp_path_factory.mktemp("guards")
    (folder / "sessions").mkdir()
    policy, settings, hook = folder / "policy.yaml", folder / "server.yaml", Hook()
    policy.write_text(
        "rules: [{allowed_edges: {main: [reader]}, reason: 'Nobody pays <i>here</i>.'}]"
    )
    with listening(hook) as url:
        settings.write_text(
            "rules:\n  - name: guards\n    on: conversation\n"
            "    evaluators: [{type: guard_decisions, config: {guarded: true}}]\n"
            "    alert: {when: 'guard_decisions < 0.95 over 10', to: webhook}\n"
            f"alerts: {{webhook: {url}/alert, private: [127.0.0.1]}}\n"
        )
        given = {"folder": str(folder / "server")}
        store, stop = open_store(folder / "server"), threading.Event()
        worker = threading.Thread(target=run, args=(load_settings(settings, given), stop))
        with web(store, given, file=settings) as address:
            worker.start()
            server = baton.connect(address)
            try:
                for number in range(SESSIONS):
                    server.push(session(folder / "sessions", number, policy))
                yield address, hook
            finally:
                stop.set()
                worker.join()
        store.close()


def test_what_was_blocked_is_on_the_pages_and_an_alert_is_sent(
    served: tuple[str, Hook], browser: Browser
) -> None:
    from .browsing import tab

    address, hook = served
    with tab(browser, address) as (page, wrong):
        for _ in range(120):
            page.goto("/status")
            if hook.got and page.get_by_text("guard_decisions").count():
                break
            page.wait_for_timeout(500)
        _, path, told = hook.got[0]
        assert (path, told["event"]) == ("/alert", "alert.opened")
        assert "guard_decisions is below 0.95" in json.dumps(told)
        assert page.get_by_text("guard_decisions is below 0.95").count()
        page.goto("/conversations/1")
        page.wait_for_selector("html[data-ready]")
        shown = page.inner_text("body")
        assert "guard: blocked main to payer by allowed_edges: Nobody pays <i>here</i>." in shown
        page.goto("/conversations")
        assert page.get_by_text("Pay R-7.").count() == SESSIONS
        assert wrong == []
